"""A thousand malformed or hostile messages: the server goes on, and writes nothing outside its folder."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from running_server import send_raw
from studio_server import LAYOUT, START, RunningStudio

KINDS = ["hello", "stage", "place", "fly", "pause", "resume", "step", "stop", "reset", "speed", "words", "keep"]
NUMBERS = [0, -1, 1e308, -1e308, 10**300, 2**63, 1.5, True, None, "1", [], {}]
STRINGS = [
    "",
    "\x00",
    "\u202e",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "'; DROP TABLE episodes; --",
    "%s%n{0}${jndi:ldap://x}",
    "𝕘𝕠" * 500,
    "é" * 2001,
    "\ud800",
    "go " * 1000,
    "__proto__",
    "CON",
    "\n\r\n\r",
]
PATHS = [
    "/../../../etc/passwd",
    "/static/../server.py",
    "/static/%2e%2e/server.py",
    "/static/..%5cserver.py",
    "/static//etc/passwd",
    "/episodes/../../x.json",
    "/episodes/%2e%2e%2f%2e%2e%2fx.json",
    "/episodes/" + "A" * 5000 + ".json",
    "/episodes/%00.json",
    "/cards/../../README.md",
    "/cards/%2fetc%2fpasswd",
    "/video/../x",
    "/video/%ff%fe",
    "/ws",
    "//evil.org/",
    "/?token=x&token=y",
    "/" + "a" * 20_000,
]


def hostile_text(rng) -> str | bytes:
    """A message that no page of ours sends, or that asks for nonsense."""
    kind = rng.integers(8)
    if kind == 0:
        return rng.bytes(int(rng.integers(1, 400)))
    if kind == 1:
        return rng.bytes(int(rng.integers(1, 400))).decode("latin-1")
    if kind == 2:
        bracket, depth = rng.choice(["[", '{"a":', '[{"layout":']), int(rng.integers(100, 6000))
        return str(bracket) * depth
    if kind == 3:
        return f'{{"type": "speed", "value": {rng.choice(["NaN", "-Infinity", "1e999", "9" * 5000, "0x10", "01"])}}}'
    if kind == 4:
        return json.dumps("x" * int(rng.integers(60_000, 80_000)))
    message = valid(rng)
    if kind == 5 and len(message) > 1:  # a value of another type
        key = rng.choice([key for key in message if key != "type"])
        message[key] = NUMBERS[rng.integers(len(NUMBERS))]
    elif kind == 6:
        message[str(rng.choice(STRINGS[:8])) or "x"] = 1
    else:
        changed(message, rng)
    return json.dumps(message)


def valid(rng) -> dict:
    """A message of a page, in good order."""
    kind = str(rng.choice(KINDS))
    more = {
        "hello": {"version": 1},
        "stage": {"text": "the barrel", "corpus": "cage", "seed": 1},
        "place": {"layout": json.loads(json.dumps(LAYOUT)), "start": dict(START), "seed": 1, "vehicle": "sim"},
        "fly": {"text": "go", "policies": ["small0"]},
        "speed": {"value": 8},
        "words": {"text": "go blorb", "policy": "small0", "id": 1},
    }
    return {"type": kind, **more.get(kind, {})}


def changed(message: dict, rng) -> None:
    """Put something nasty somewhere into a message."""
    text, number = STRINGS[rng.integers(len(STRINGS))], NUMBERS[rng.integers(len(NUMBERS))]
    if message["type"] == "place":
        row = message["layout"]["landmarks"][0]
        target, key = [(row, "x"), (row, "name"), (message["start"], "yaw"), (message["layout"], "lakes")][
            rng.integers(4)
        ]
        target[key] = text if key == "name" else [[0, 0, 99]] * 5000 if key == "lakes" else number
    elif "text" in message:
        message["text"] = text
    else:
        message["type"] = text


def hostile_request(rng, host: str) -> bytes:
    """Bytes for the HTTP port."""
    kind = rng.integers(6)
    path = PATHS[rng.integers(len(PATHS))]
    origin = f"origin: http://{host}\r\n"
    if kind == 0:
        return rng.bytes(int(rng.integers(1, 2000)))
    if kind == 1:
        return f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode()
    if kind == 2:
        body = hostile_text(rng)
        body = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
        target = str(rng.choice(["/layout", "/video"]))
        head = f"POST {target} HTTP/1.1\r\nhost: {host}\r\n{origin}connection: close"
        return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    if kind == 3:
        length = str(rng.choice(["-1", "99999999999999999999", "1e3", "5\r\ncontent-length: 6", "0x10"]))
        head = f"POST /layout HTTP/1.1\r\nhost: {host}\r\n{origin}connection: close\r\ncontent-length: {length}"
        return f"{head}\r\n\r\n{{}}".encode()
    if kind == 4:
        name = str(rng.choice(["evil.org", f"{host}@evil.org", f"{host}\r\nhost: evil.org", "\x00", "a" * 9000]))
        return f"GET / HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode()
    method = str(rng.choice(["PUT", "DELETE", "TRACE", "CONNECT", "PATCH", "OPTIONS", "GARBAGE"]))
    return f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n{origin}connection: close\r\n\r\n".encode()


def listing(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture
def hostile_studio(policies, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    with RunningStudio(policies, home / "kept", steps=3) as running:
        yield running


def test_five_hundred_hostile_messages_leave_the_server_serving(hostile_studio, tmp_path, rng):
    outside = listing(tmp_path)
    with hostile_studio.page() as bystander:
        page = hostile_studio.page()
        codes = []
        for _number in range(500):
            try:
                page.connection.send(hostile_text(rng))
                page.say("hello", version=1)
                page.until("welcome")  # so the message before has been answered
            except ConnectionClosed as error:
                codes.append(error.rcvd and error.rcvd.code)  # None: it hung up while more was being sent
                page = hostile_studio.page()
        assert len(codes) > 300
        assert set(codes) - {None} == {1007, 1008, 1009}
        page.connection.close()
        assert_serving(hostile_studio, bystander)
    assert {path: digest for path, digest in listing(tmp_path).items() if "/kept/" not in path} == outside
    kept = {path.name for path in (tmp_path / "home" / "kept").iterdir() if not path.name.startswith(".videos-")}
    assert all(len(name) == 22 + len(".json") for name in kept)


def test_five_hundred_hostile_requests_leave_the_server_serving(hostile_studio, tmp_path, rng):
    package = Path(__file__).parents[2] / "src" / "wordwing" / "studio"
    before, outside = listing(package), listing(tmp_path)
    with hostile_studio.page() as bystander:
        answered = 0
        for _number in range(500):
            answer = send_raw(hostile_studio.port, hostile_request(rng, hostile_studio.host))
            assert b"root:" not in answer
            assert b"class Guard" not in answer
            assert b"Traceback" not in answer
            if answer:
                status = int(answer.split(b" ", 2)[1])
                assert 200 <= status < 500
                answered += 1
        assert answered > 350
        assert_serving(hostile_studio, bystander)
    assert listing(package) == before
    assert listing(tmp_path) == outside


def test_hostile_handshakes_are_refused(hostile_studio, rng):
    for _number in range(20):
        with pytest.raises((InvalidHandshake, OSError, EOFError)):
            hostile_studio.page(origin=str(rng.choice(["null", "http://evil.org", "file://", "http://127.0.0.1"])))


def assert_serving(studio: RunningStudio, page) -> None:
    """Somebody who was there all the time can still fly."""
    page.say("hello", version=1)
    assert page.until("welcome")["version"] == 1
    assert np.array_equal(page.place()["start"]["x"], START["x"])
    page.say("speed", value=8)
    page.fly()
    assert page.until("ended")["reason"] in ("stop", "steps")
    with studio.http() as http:
        assert http.get("/cards/small0").status_code == 200
