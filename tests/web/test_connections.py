"""Strangers who ask much, wait long, send slowly or endlessly or take no answer: others get in. Over real sockets."""

import select
import socket
import sqlite3
import time
from contextlib import ExitStack

import pytest

from running_server import wait_until
from small_study import small_study
from studio_server import RunningStudio, small_policies
from study_server import RunningStudy
from wordwing.studio import server as studio_server
from wordwing.web import pages, serving
from wordwing.web.security import Bucket, Limits, network_of

TOKEN = "a-token-that-nobody-guesses"
FEW = {"requests": lambda: Bucket(0.001, 30), "changes": lambda: Bucket(0.001, 10)}
ELSEWHERE = ("127.0.0.2", 0)
"""Another address of this machine."""


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    return small_policies(tmp_path_factory.mktemp("policies"))


@pytest.fixture
def study(tmp_path):
    return small_study(tmp_path / "study.db", raters=20)


@pytest.fixture
def patient(monkeypatch):
    """Who sends slowly is not hung up on while a slow machine still tests."""
    monkeypatch.setattr(serving, "STRANGERS_PATIENCE", 60)


def connected(running, address=("127.0.0.1", 0)) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", running.port), timeout=20, source_address=address)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    return made


def heard(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    answer = b""
    try:
        while part := connection.recv(65_536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def hung_up(connection: socket.socket) -> bool:
    """Whether the server has, when one more byte is sent."""
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def asked(running, path: str, address=("127.0.0.1", 0), *headers: str) -> bytes:
    """The answer to a GET."""
    lines = [f"GET {path} HTTP/1.1", f"host: {running.host}", "connection: close", *headers, "", ""]
    with connected(running, address) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return heard(connection)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_strangers_without_the_token_do_not_spend_what_visitors_may_ask(policies, tmp_path):
    with RunningStudio(policies, tmp_path, token=TOKEN, **FEW) as studio, studio.http() as visitor:
        for address in (("127.0.0.1", 0), ELSEWHERE):
            answers = [status(asked(studio, "/", address)) for _one in range(40)]
            assert set(answers) == {401, 429}  # they, too, are told to wait, but nobody else is
        assert visitor.get(f"/?token={TOKEN}").status_code == 303
        assert visitor.get("/cards/small0").status_code == 200


def test_strangers_do_not_spend_what_raters_may_ask(study):
    with RunningStudy(study, **FEW) as running:
        rater = running.rater()
        for path in ("/", "/rater"):
            answers = [status(asked(running, path)) for _one in range(40)]
        assert answers[-1] == 429
        guess = [status(asked(running, "/rater", ELSEWHERE, f"authorization: Bearer {n}")) for n in range(40)]
        assert guess[-1] == 429  # another secret at each request is no way around it
        item = rater.next()
        assert rater.answer(item, 1, 2, 3)["progress"]["practised"] == 1
        assert status(asked(running, "/", ("127.0.0.3", 0))) == 200


@pytest.mark.parametrize(("kind", "count"), [("studio", 200), ("study", 420)])
def test_sockets_that_ask_for_nothing_keep_nobody_out(policies, study, tmp_path, kind, count):
    make = {"studio": lambda: RunningStudio(policies, tmp_path / "kept"), "study": lambda: RunningStudy(study)}[kind]
    with make() as running, ExitStack() as held:
        for number in range(count):
            connection = held.enter_context(connected(running, (f"127.0.0.{2 + number % 4}", 0)))
            connection.sendall(b"GET / HTTP/1.1\r\nhost:" if number % 2 else b"")
        assert status(asked(running, "/")) == 200
        assert len(running.server.server_state.connections) <= serving.MAX_WAITING + 1
        crowd = [held.enter_context(connected(running, ELSEWHERE)) for _one in range(serving.MAX_WAITING_OF_ONE)]
        assert status(asked(running, "/", ELSEWHERE)) == 200
        assert crowd


def test_who_does_not_send_a_whole_head_in_time_is_hung_up_on(study, monkeypatch):
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(serving, "WATCH_PERIOD", 0.05)
    with RunningStudy(study) as running:
        with connected(running) as idle, connected(running) as half, connected(running) as dripping:
            half.sendall(b"GET / HTTP/1.1\r\nhost: x")
            dripping.settimeout(0.05)
            assert any(hung_up(dripping) for _time in range(400))  # a byte now and then does not help
            assert heard(idle) == heard(half) == b""
        wait_until(lambda: not running.server.server_state.connections)
        with connected(running) as twice:  # also where a whole request came before
            head = f"GET /guide HTTP/1.1\r\nhost: {running.host}\r\n\r\n".encode()
            twice.sendall(head + head[:20])
            assert heard(twice).count(b"HTTP/1.1 200 OK") == 1


def test_who_asks_again_and_again_keeps_the_connection(study, monkeypatch):
    monkeypatch.setattr(serving, "HEAD_SECONDS", 2.0)
    with RunningStudy(study) as running, connected(running) as connection:
        ask = f"HEAD /nothing HTTP/1.1\r\nhost: {running.host}\r\n\r\n".encode()
        end = time.monotonic() + 2 * serving.HEAD_SECONDS
        while time.monotonic() < end:
            connection.sendall(ask)
            assert connection.recv(4000), "an answer that was quicker than a watch was not noticed"
            time.sleep(0.1)


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nx: ", b"GET /", b"GET / HTTP/1.1\r\n"])
def test_a_head_without_an_end_is_not_kept(study, begin):
    more = b"a: b\r\n" * 2000 if begin.endswith(b"\n") else b"a" * 12_000
    with RunningStudy(study) as running, connected(running) as connection:
        try:
            connection.sendall(begin + more + more)
            answer = heard(connection)  # which ends when the server hangs up
        except ConnectionError:
            answer = b""
        assert answer == b"" or status(answer) == 400
        assert status(asked(running, "/")) == 200


def with_long_film(study) -> str:
    """The id of an item whose film fits into no socket's buffer."""
    with sqlite3.connect(study.file) as connection:
        [number, item] = connection.execute("SELECT number, id FROM items LIMIT 1").fetchone()
        connection.execute("UPDATE films SET film = zeroblob(20000000) WHERE item = ?", (number,))
    return item


def test_who_takes_no_answer_is_hung_up_on_and_who_takes_it_slowly_gets_all(study, monkeypatch):
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(serving, "STALLED_SECONDS", 0.5)
    monkeypatch.setattr(serving, "WATCH_PERIOD", 0.05)
    item = with_long_film(study)
    with RunningStudy(study) as running, connected(running) as stalled, connected(running) as slow:
        for connection in (stalled, slow):
            connection.sendall(f"GET /media/{item}/video HTTP/1.1\r\nhost: {running.host}\r\n\r\n".encode())
        got = 0
        while got < 20_000_000:
            part = slow.recv(40_000)
            assert part, "the slow one was hung up on"
            got += len(part)
            time.sleep(0.002)
        wait_until(lambda: len(running.server.server_state.connections) <= 1)
        assert len(heard(stalled)) < 20_000_000


def slow(running, path: str, address, *headers: str) -> socket.socket:
    """Somebody who begins to send something."""
    connection = connected(running, address)
    lines = (f"POST {path} HTTP/1.1", f"host: {running.host}", f"origin: {running.url}", "content-length: 9", *headers)
    connection.sendall("\r\n".join([*lines, "", "{"]).encode())
    return connection


def slow_strangers(running, path: str) -> ExitStack:
    """25 at each of four addresses; those for whom the server has no room have been answered."""
    held = ExitStack()
    made = [held.enter_context(slow(running, path, (f"127.0.0.{2 + number % 4}", 0))) for number in range(100)]
    wait_until(lambda: len(select.select(made, [], [], 0)[0]) + active(running) == 100)
    return held


def active(running) -> int:
    """Requests that are being answered."""
    return running.server.config.app.guard._limits._active.total()


@pytest.mark.usefixtures("patient")
def test_a_server_without_room_for_strangers_says_so_and_has_room_again(study, monkeypatch):
    monkeypatch.setattr(pages, "MAX_REQUESTS", 8)  # four of strangers
    monkeypatch.setattr("wordwing.web.security.STRANGERS_OF_ONE", 2)
    with RunningStudy(study) as running, ExitStack() as held:
        first = [held.enter_context(slow(running, "/raters", ELSEWHERE)) for _one in range(2)]
        wait_until(lambda: active(running) == 2)
        busy = asked(running, "/", ELSEWHERE)
        assert status(busy) == 503
        assert b"retry-after: 5" in busy
        assert b'<meta http-equiv="refresh" content="5">' in busy
        assert status(asked(running, "/")) == 200  # others are not concerned
        wait_until(lambda: active(running) == 2)
        for _one in range(2):
            held.enter_context(slow(running, "/raters", ("127.0.0.3", 0)))
        wait_until(lambda: active(running) == 4)
        assert status(asked(running, "/")) == 503
        for connection in first:
            connection.close()
        wait_until(lambda: active(running) == 2)
        assert status(asked(running, "/")) == 200


@pytest.mark.usefixtures("patient")
def test_strangers_who_send_slowly_from_many_addresses_keep_no_rater_out(study, monkeypatch):
    monkeypatch.setattr(pages, "MAX_REQUESTS", 60)
    with RunningStudy(study) as running:
        rater = running.rater()
        with slow_strangers(running, "/raters"):
            assert active(running) == 30
            assert rater.get("/rater")["progress"]["practised"] == 0
            item = rater.next()
            for kind in ("video", "still", "legend"):  # which browsers fetch without the secret
                assert status(asked(running, f"/media/{item['id']}/{kind}")) == 200
            assert rater.answer(item, 1, 2, 3)["progress"]["practised"] == 1
            assert status(asked(running, "/media/0/video")) == 503


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("token", "kept"), [(TOKEN, 0), (None, 30)])
def test_strangers_who_send_slowly_from_many_addresses_keep_nobody_out(policies, tmp_path, monkeypatch, token, kept):
    monkeypatch.setattr(studio_server, "MAX_PAGES", 15)  # 60 requests
    with RunningStudio(policies, tmp_path, token=token) as studio, studio.http() as visitor:
        visitor.get(f"/?token={TOKEN}")
        with slow_strangers(studio, "/layout"):
            assert active(studio) == kept
            assert visitor.get("/cards/small0").status_code == 200
            cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
            with studio.page(additional_headers={"cookie": cookie}) as page:
                page.say("hello", version=1)
                assert page.hear()["type"] == "welcome"


def test_a_strangers_body_is_not_awaited_as_long_as_a_raters(study, monkeypatch):
    monkeypatch.setattr(serving, "STRANGERS_PATIENCE", 0.2)
    with RunningStudy(study) as running:
        rater = running.rater()
        bearer = f"authorization: Bearer {rater.token}"
        path = f"/rater/items/{rater.next()['id']}"
        with slow(running, path, ELSEWHERE, bearer, "connection: close") as known:
            with slow(running, "/raters", ELSEWHERE, "connection: close") as stranger:
                assert b"too long" in heard(stranger)
            known.sendall(b"        ")
            assert b"not JSON" in heard(known)


def test_a_network_of_ipv6_counts_as_one_address():
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("fe80::1%eth0") == network_of("fe80::2")
    assert network_of("::ffff:10.0.0.1") != network_of("::ffff:10.0.0.2")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("somewhere") == "somewhere"


def test_only_so_many_visitors_are_remembered():
    limits = Limits(lambda: Bucket(0.001, 1), lambda: Bucket(0.001, 1))
    assert limits.take("", "first", False)
    assert not limits.take("", "first", False)
    for number in range(5000):
        assert limits.take("", str(number), False)
    assert len(limits._buckets) == 4096
    assert limits.take("", "first", False)
