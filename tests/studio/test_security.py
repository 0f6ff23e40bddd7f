import socket
from http.cookies import SimpleCookie

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from studio_server import RunningStudio
from wordwing.studio.server import StudioConfig
from wordwing.web.security import Bucket, HostNames, is_loopback, same, session_of

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def locked(policies, tmp_path_factory):
    with RunningStudio(policies, tmp_path_factory.mktemp("locked"), token=TOKEN) as running:
        yield running


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_loopback_is_reached_by_this_machine_alone(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org", ""])
def test_everything_else_is_not_loopback(host):
    assert not is_loopback(host)


def test_a_token_is_made_wherever_others_can_reach_the_studio(policies, tmp_path):
    assert StudioConfig(policies, tmp_path).token is None
    tokens = {StudioConfig(policies, tmp_path, host="0.0.0.0").token for _time in range(5)}
    assert len(tokens) == 5
    assert all(len(token) >= 43 for token in tokens)  # 256 bits
    assert StudioConfig(policies, tmp_path, host="192.168.1.5").token
    assert StudioConfig(policies, tmp_path, names=("studio.example.org",)).token


def test_names_are_those_that_were_bound():
    local = HostNames.of("127.0.0.1", 8080)
    for name in ("localhost:8080", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080"):
        assert name in local, name
    for name in (
        "localhost",
        "localhost:80",
        "evil.org:8080",
        "127.0.0.1.evil.org:8080",
        "127.0.0.1:8080@x.org",
        "",
    ):
        assert name not in local, name
    everywhere = HostNames.of("0.0.0.0", 8080, ["studio.example.org"])
    for name in ("192.168.7.7:8080", "[fe80::1]:8080", f"{socket.gethostname()}:8080", "studio.example.org"):
        assert name in everywhere, name
    for name in ("evil.org:8080", "192.168.7.7", "192.168.7.7:81", "1.2.3.4:8080@x", "x@1.2.3.4:8080", "[::1]:x"):
        assert name not in everywhere, name
    assert "10.0.0.1:8080" not in HostNames.of("10.0.0.2", 8080)
    assert "localhost" in HostNames.of("127.0.0.1", 80)


@pytest.mark.parametrize("host", ["evil.org", "evil.org:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_host_is_refused_even_on_loopback(studio, host):
    host = host.format(port=studio.port)
    with studio.http(headers={"host": host}) as http:
        assert http.get("/").status_code in (400, 421)
        assert http.get("/static/style.css").status_code in (400, 421)
    with pytest.raises(InvalidStatus), socket.create_connection(("127.0.0.1", studio.port)) as plain:
        connect(f"ws://{host or 'x'}/ws", sock=plain, origin=f"http://{host}")


@pytest.mark.parametrize(
    "origin", ["http://evil.org", "null", "http://127.0.0.1", "http://127.0.0.1:{port}.evil.org", "ftp://{host}", None]
)
def test_a_page_of_another_origin_can_neither_connect_nor_post(studio, origin):
    origin = origin and origin.format(port=studio.port, host=studio.host)
    with pytest.raises(InvalidStatus) as refused:
        studio.page(origin=origin)
    assert refused.value.response.status_code == 403
    with studio.http(headers={"origin": origin} if origin else {}) as http:
        for path in ("/layout", "/video"):
            assert http.post(path, content="{}").status_code == 403
        assert http.delete("/").status_code == 403
        assert http.get("/cards/small0").status_code == (403 if origin else 200)


def test_every_answer_forbids_what_the_page_does_not_need(studio):
    with studio.http() as http:
        for path in ("/", "/nothing", "/cards/small0", "/episodes/x.json"):
            headers = http.get(path).headers
            policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"
            assert policy["connect-src"].split() == ["'self'", f"ws://{studio.host}", f"wss://{studio.host}"]
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-opener-policy"] == "same-origin"
            assert "camera=()" in headers["permissions-policy"]
            assert "server" not in headers
        refused = httpx.get(studio.url, headers={"host": 'evil.org"; script-src *'})
        assert "evil" not in refused.headers["content-security-policy"]


def test_without_the_token_nothing_is_served(locked):
    with locked.http(headers={"origin": locked.url}) as http:
        for path in (
            "/",
            "/static/main.js",
            "/cards/small0",
            "/episodes/x.json",
            "/?token=",
            "/?token=no",
            "/?tok=1",
        ):
            assert http.get(path).status_code in (401, 403), path
        assert http.post("/layout", content="{}").status_code == 401
        assert http.get(f"/cards/small0?token={TOKEN}").status_code == 401
    with pytest.raises(InvalidStatus):
        locked.page()
    with pytest.raises(InvalidStatus):
        locked.page(additional_headers={"cookie": f"wordwing-studio-{locked.port}={TOKEN}"})


def test_the_token_becomes_a_cookie_and_leaves_the_address(locked):
    with locked.http() as http:
        answer = http.get(f"/?token={TOKEN}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        [morsel] = SimpleCookie(answer.headers["set-cookie"]).values()
        assert morsel["httponly"]
        assert morsel["samesite"] == "Strict"
        assert TOKEN not in morsel.value
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert http.get("/cards/small0").status_code == 200  # the client sends the cookie from now on
    cookie = f"{morsel.key}={morsel.value}"
    with locked.page(additional_headers={"cookie": cookie}) as page:
        page.say("hello", version=1)
        assert page.hear()["type"] == "welcome"
    with pytest.raises(InvalidStatus):
        locked.page(additional_headers={"cookie": cookie}, origin="http://evil.org")
    with pytest.raises(InvalidStatus):
        locked.page(additional_headers={"cookie": cookie[:-1] + ("0" if cookie[-1] != "0" else "1")})


def test_a_session_does_not_tell_its_token():
    assert session_of("a") != session_of("b")
    assert "secret" not in session_of("secret")
    assert same("é", "é")
    assert not same("\ud800", "x")
    assert not same("", "x")


def test_large_bodies_are_refused_before_they_are_read(studio):
    with studio.http(headers={"origin": studio.url}) as http:
        assert http.post("/layout", content=b" " * 1_000_001).status_code == 413
        assert http.post("/video", content=b" " * 65_537).status_code == 400

        def without_length():
            for _part in range(30):
                yield b" " * 65_536

        try:
            status = http.post("/layout", content=without_length()).status_code
        except httpx.TransportError:  # the server hung up, which is as well
            status = 400
        assert status in (400, 413)
        assert http.get("/cards/small0").status_code == 200


def test_a_bucket_lets_so_many_through_at_once_and_so_many_a_second():
    now = [0.0]
    bucket = Bucket(2.0, 3.0, lambda: now[0])
    assert [bucket.take() for _one in range(5)] == [True, True, True, False, False]
    now[0] = 0.5
    assert [bucket.take() for _one in range(2)] == [True, False]
    now[0] = 100.0
    assert [bucket.take() for _one in range(4)] == [True, True, True, False]
    waits = [bucket.wait() for _one in range(3)]
    assert waits == pytest.approx([0.5, 1.0, 1.5])


def test_too_many_requests_are_refused(policies, tmp_path):
    with RunningStudio(policies, tmp_path, changes=lambda: Bucket(0.01, 3)) as small:
        with small.http(headers={"origin": small.url}) as http:
            assert [http.post("/layout", content="{}").status_code for _one in range(4)] == [400, 400, 400, 429]
            assert http.get("/cards/small0").status_code == 200
        with pytest.raises(InvalidStatus):
            small.page()


def test_logs_hold_no_addresses_and_no_typed_text(policies, tmp_path, caplog, capfd):
    with caplog.at_level("DEBUG", "wordwing"), RunningStudio(policies, tmp_path, steps=2) as small:
        with small.page() as page:
            page.place()
            page.say("speed", value=8)
            page.fly("go to the xyzzybarrel")
            page.until("ended")
            page.say("stage", text="xyzzybarrel" * 300, corpus=None, seed=0)
            page.hear()
            page.connection.send('{"type": "xyzzybarrel"}')
            page.hear()
        with small.http() as http:
            http.get("/xyzzybarrel")
    written = caplog.text + "".join(capfd.readouterr())
    assert "xyzzy" not in written
    assert "127.0.0.1" not in written
