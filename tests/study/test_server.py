"""The page's server, without a browser."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import httpx
import pytest

from running_server import send_raw, wait_until
from small_study import SYSTEMS, small_study
from study_server import RunningStudy
from wordwing.bench.flight import free_port
from wordwing.commands.common import invitations
from wordwing.commands.study import serve
from wordwing.errors import WordwingError
from wordwing.study import questions
from wordwing.study.server import STATIC
from wordwing.web import database
from wordwing.web.pages import PageConfig
from wordwing.web.security import Bucket
from wordwing.web.serving import SHARED

TOKEN = "a-token-that-nobody-guesses"
GOOD = {"path": 1, "goal": 2, "efficiency": 3, "unclear": True, "seconds": 4.5}


@pytest.fixture
def running(tmp_path):
    with RunningStudy(small_study(tmp_path / "study.db")) as running:
        yield running


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """For tests that leave nothing behind but raters."""
    study = small_study(tmp_path_factory.mktemp("study") / "study.db", raters=1000)
    with RunningStudy(study) as running:
        yield running


def judged(study) -> list[tuple]:
    return [(one.instruction, one.system, one.path, one.goal, one.efficiency) for one in study.ratings()]


def test_the_guide_is_the_papers(lasting):
    with lasting.http() as http:
        guide = http.get("/guide").json()
    assert guide["introduction"] == questions.INTRODUCTION
    assert guide["task"] == questions.TASK
    assert tuple(guide["guidelines"]) == questions.GUIDELINES
    assert guide["unclear"] == questions.UNCLEAR
    assert [(row["key"], row["text"]) for row in guide["questions"]] == [
        (question.key, question.text) for question in questions.QUESTIONS
    ]
    assert all(row["answers"][-1] == "Yes, perfectly" for row in guide["questions"])
    assert guide["invited"] is False


def test_a_rater_practises_rates_and_finishes_and_what_is_kept_is_what_was_sent(running):
    rater = running.rater()
    practice = rater.next()
    assert (practice["practice"], practice["place"], practice["of"]) == (True, 1, 1)
    told = rater.answer(practice, 5, 1, 3)["feedback"]
    assert [(row["key"], row["fits"]) for row in told] == [("path", True), ("goal", False), ("efficiency", None)]
    sent = {}
    while (item := rater.next()) is not None:
        scores = 1 + len(sent) % 5, 1 + len(sent) % 3, 1 + len(sent) % 2
        said = rater.answer(item, *scores, unclear=len(sent) == 4)
        sent[item["id"]] = scores
        assert said["feedback"] is None
        assert said["progress"]["rated"] == len(sent) == item["place"]
    assert len(sent) == 9
    assert rater.post("/rater/finish")["progress"]["finished"] is True
    with sqlite3.connect(running.study.file) as connection:
        rows = connection.execute(
            "SELECT id, path, goal, efficiency FROM ratings JOIN items ON number = item"
        ).fetchall()
        unclear = connection.execute("SELECT SUM(unclear) FROM ratings").fetchone()
    assert {item: tuple(scores) for item, *scores in rows} == sent
    assert unclear == (1,)


def test_who_comes_back_with_the_link_finds_everything_as_it_was(running):
    rater = running.rater()
    rater.answer(rater.next(), 3, 3, 3)
    first = rater.next()
    rater.answer(first, 2, 4, 1, unclear=True)
    second = rater.next()
    again = running.rater(rater.token)
    assert again.next() == second
    state = again.get("/rater")
    assert state["progress"] == {"practised": 1, "practice": 1, "rated": 1, "items": 9, "finished": False}
    assert [row["rated"] for row in state["order"]] == [True] + 8 * [False]
    assert [row["id"] for row in state["order"][:2]] == [first["id"], second["id"]]
    kept = again.get(f"/rater/items/{first['id']}")["item"]["answers"]
    assert kept == {"path": 2, "goal": 4, "efficiency": 1, "unclear": True, "seconds": 1.5}


def test_answers_can_be_changed_until_the_rater_has_finished(running):
    rater = running.rater()
    item = rater.rate_everything()[-1]
    rater.answer(item, 1, 1, 1)
    rater.post("/rater/finish")
    path = f"/rater/items/{item['id']}"
    late = rater.http.post(path, json=GOOD)
    assert (late.status_code, late.json()["state"]) == (409, "finished")
    assert rater.get(path)["item"]["answers"]["path"] == 1
    assert sorted(scores for *_who, scores, _goal, _efficiency in judged(running.study)) == [1] + 8 * [3]


def test_nobody_rates_before_practice_is_finished(running):
    rater = running.rater()
    [first, *_others] = rater.get("/rater")["order"]
    early = rater.http.post(f"/rater/items/{first['id']}", json=GOOD)
    assert (early.status_code, early.json()["state"]) == (409, "unpractised")
    assert judged(running.study) == []
    rater.answer(rater.next(), 3, 3, 3)
    assert rater.answer(first, 1, 2, 3)["progress"]["rated"] == 1


def test_nobody_finishes_before_everything_is_rated(running):
    rater = running.rater()
    early = rater.http.post("/rater/finish", json={})
    assert (early.status_code, early.json()["state"]) == (409, "unfinished")
    assert rater.get("/rater")["progress"]["finished"] is False


def test_two_raters_at_once_do_not_disturb_each_other_and_a_third_is_not_needed(running):
    with ThreadPoolExecutor(2) as pool:
        raters = [running.rater(), running.rater()]
        orders = list(pool.map(lambda rater: [item["id"] for item in rater.rate_everything()][1:], raters))
    assert set(orders[0]) == set(orders[1])
    assert orders[0] != orders[1]
    counts = Counter((instruction, system) for instruction, system, *_scores in judged(running.study))
    assert counts == {(f"i{name}", system): 2 for name in range(3) for system in SYSTEMS}
    with running.http(headers={"origin": running.url}) as http:
        full = http.post("/raters", json={})
    assert (full.status_code, full.json()["state"]) == (409, "full")


def test_nothing_that_is_sent_tells_who_flew_what_things_are_called_or_what_was_made_when(running):
    rater = running.rater()
    rater.rate_everything()
    rater.get("/rater")
    rater.post("/rater/finish")
    page = [rater.http.get(path) for path in ("/", "/guide", "/raters", "/rater/items/x", "/static/", "/media/x/video")]
    page += [rater.http.get(f"/static/{file.name}") for folder in (STATIC, SHARED) for file in folder.iterdir()]
    secrets = [*SYSTEMS, "gorilla", "cage", "landmark", "demonstrat", "gold", '"i0"', "sqlite", str(running.study.file)]
    for answer in [*rater.heard, *page]:
        text = (answer.text + str(answer.headers)).lower()
        assert not [secret for secret in secrets if secret.lower() in text], answer.url
    items = [answer.json()["item"] for answer in rater.heard if "next" in str(answer.url)][:-1]
    assert {key for item in items for key in item} == {"id", "instruction", "practice", "place", "of", "answers"}
    with sqlite3.connect(running.study.file) as connection:
        made = [item for (item,) in connection.execute("SELECT id FROM items WHERE practice IS NULL ORDER BY number")]
    assert [item["id"] for item in items[1:]] != made
    assert made != sorted(made)
    assert len(set(made)) == 9
    assert all(len(item) >= 22 for item in made)  # 128 bits


@pytest.mark.parametrize(
    ("wanted", "status", "begin", "end"),
    [
        (None, 200, None, None),
        ("bytes=0-", 206, 0, None),
        ("bytes=0-0", 206, 0, 1),
        ("bytes=3-7", 206, 3, 8),
        ("bytes=5-99999", 206, 5, None),
        ("bytes=-4", 206, -4, None),
        ("bytes=-99999", 206, 0, None),
        ("bytes=99999-", 416, 0, 0),
        ("bytes=7-3", 200, None, None),
        ("bytes=-", 200, None, None),
        ("bytes=0-1,3-4", 200, None, None),
        ("bytes=a-b", 200, None, None),
        ("lines=0-1", 200, None, None),
        ("bytes=" + "9" * 500 + "-", 200, None, None),
    ],
)
def test_a_video_comes_whole_or_in_the_range_that_is_asked_for(lasting, wanted, status, begin, end):
    rater = lasting.rater()
    item = rater.next()
    video = lasting.study.media_of(item["id"], "video")
    assert video == b"video oracle i900"
    with lasting.http() as http:  # as a browser's player asks: without the rater's secret
        got = http.get(f"/media/{item['id']}/video", headers={"range": wanted} if wanted else {})
    assert (got.status_code, got.content) == (status, video[begin:end])
    assert got.headers["accept-ranges"] == "bytes"
    assert got.headers["cache-control"] == "no-store"
    assert got.headers["content-type"] == "video/mp4"
    if status == 206:
        first = video.index(got.content)
        assert got.headers["content-range"] == f"bytes {first}-{first + len(got.content) - 1}/{len(video)}"
    if status == 416:
        assert got.headers["content-range"] == f"bytes */{len(video)}"


def test_images_and_videos_are_those_of_the_item(lasting):
    rater = lasting.rater()
    rater.answer(rater.next(), 1, 1, 1)
    item = rater.next()["id"]
    with lasting.http() as http:
        for kind, form in (("video", "video/mp4"), ("still", "image/webp"), ("legend", "image/webp")):
            got = http.get(f"/media/{item}/{kind}")
            assert got.content == lasting.study.media_of(item, kind)
            assert got.headers["content-type"] == form
        head = http.head(f"/media/{item}/video")
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) > 5


def test_all_that_is_not_there_is_answered_alike(running, tmp_path):
    rater, other = running.rater(), small_study(tmp_path / "other.db")
    foreign = other.order(other.new_participant())[0][0]
    practice = rater.next()["id"]
    requests = [
        ("GET", "/rater", "", {}),
        ("GET", "/rater", "Bearer", {}),
        ("GET", "/rater", "Bearer " + "x" * 22, {}),
        ("GET", "/rater", "Bearer " + rater.token[:-1], {}),
        ("GET", "/rater", "Basic " + rater.token, {}),
        ("GET", "/rater", "Bearer " + "x" * 5000, {}),
        ("GET", "/rater/next", "Bearer x", {}),
        ("GET", f"/rater/items/{practice}", "Bearer x", {}),
        ("GET", f"/rater/items/{foreign}", f"Bearer {rater.token}", {}),
        ("GET", "/rater/items/1", f"Bearer {rater.token}", {}),
        ("GET", "/rater/items/%00%ff", f"Bearer {rater.token}", {}),
        ("POST", f"/rater/items/{practice}", "Bearer x", GOOD),
        ("POST", f"/rater/items/{foreign}", f"Bearer {rater.token}", GOOD),
        ("POST", "/rater/finish", "Bearer x", {}),
        ("GET", f"/media/{foreign}/video", "", {}),
        ("GET", f"/media/{practice}/layout", "", {}),
        ("GET", f"/media/{practice}/", "", {}),
        ("GET", "/nothing", "", {}),
        ("GET", "/static/nothing.js", "", {}),
        ("GET", "/static/../server.py", "", {}),
        ("GET", "/docs", "", {}),
        ("GET", "/openapi.json", "", {}),
        ("DELETE", "/rater", f"Bearer {rater.token}", {}),
        ("PUT", f"/rater/items/{practice}", f"Bearer {rater.token}", GOOD),
    ]
    told = set()
    with running.http(headers={"origin": running.url}) as http:
        for method, path, secret, content in requests:
            headers = {"authorization": secret} if secret else {}
            got = http.request(method, path, headers=headers, json=content if method == "POST" else None)
            same = {name: value for name, value in got.headers.items() if name not in ("date", "connection")}
            told.add((got.status_code, got.content, tuple(sorted(same.items()))))
    assert len(told) == 1, told
    assert next(iter(told))[0] == 404
    assert judged(running.study) == []


def test_items_of_others_can_be_neither_read_nor_rated(tmp_path):
    with RunningStudy(small_study(tmp_path / "study.db", items_per_rater=4)) as running:
        one, other = running.rater(), running.rater()
        theirs = {row["id"] for row in other.get("/rater")["order"]} - {row["id"] for row in one.get("/rater")["order"]}
        assert theirs
        for item in theirs:
            assert one.http.get(f"/rater/items/{item}").status_code == 404
            assert one.http.post(f"/rater/items/{item}", json=GOOD).status_code == 404
    assert judged(running.study) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        "[]",
        '"x"',
        "{}",
        json.dumps({**GOOD, "path": 0}),
        json.dumps({**GOOD, "path": 6}),
        json.dumps({**GOOD, "path": 1.0}),
        json.dumps({**GOOD, "path": True}),
        json.dumps({**GOOD, "path": "1"}),
        json.dumps({**GOOD, "goal": None}),
        json.dumps({**GOOD, "goal": [1]}),
        json.dumps({**GOOD, "efficiency": "\ud800"}),
        json.dumps({**GOOD, "unclear": 1}),
        json.dumps({**GOOD, "seconds": -1}),
        json.dumps({**GOOD, "seconds": 1e9}),
        json.dumps({**GOOD, "seconds": float("nan")}),
        json.dumps({**GOOD, "seconds": float("inf")}),
        json.dumps({**GOOD, "rater": 1}),
        json.dumps({"path": 1, "goal": 2}),
        '{"path": ' + "9" * 3000 + "}",
        "[" * 3000,
        " " * 4001,
        b"\xff\xfe",
        '{"__proto__": {"path": 1}}',
    ],
)
def test_answers_that_make_no_sense_are_refused_and_not_kept(lasting, content):
    rater = lasting.rater()
    practice = rater.next()
    rater.answer(practice, 1, 1, 1)
    for item in (practice, rater.next()):
        got = rater.http.post(f"/rater/items/{item['id']}", content=content)
        assert got.status_code == 400
        assert len(got.json()["message"]) > 5
    assert rater.get("/rater")["progress"]["rated"] == 0


def test_only_who_was_invited_can_begin_where_others_can_come(tmp_path):
    with RunningStudy(small_study(tmp_path / "study.db"), token=TOKEN) as running:
        with running.http(headers={"origin": running.url}) as http:
            assert http.get("/guide").json()["invited"] is True
            for content in (
                {},
                {"invitation": ""},
                {"invitation": TOKEN[:-1]},
                {"invitation": [TOKEN]},
                {"invitation": None},
                {"invitation": "\ud800"},
                [],
                "x",
            ):
                assert http.post("/raters", content=json.dumps(content)).status_code == 404, content
            assert http.post(f"/raters?invitation={TOKEN}", json={}).status_code == 404
            assert http.post("/raters", json={"invitation": TOKEN}).status_code == 201
        assert running.rater().next()["practice"] is True


def test_an_invitation_is_needed_wherever_others_can_come_and_stays_the_same(tmp_path):
    study, other = small_study(tmp_path / "study.db"), small_study(tmp_path / "other.db")
    assert PageConfig(study).token is None
    token = PageConfig(study, host="0.0.0.0").token
    assert token == PageConfig(study, host="192.168.1.5").token == PageConfig(study, names=("study.example.org",)).token
    assert len(token) == 43  # 256 bits
    assert PageConfig(other, host="0.0.0.0").token == token  # small studies have the same salt
    other.settings = type(other.settings)(**{**asdict(other.settings), "salt": "11" * 32})
    assert PageConfig(other, host="0.0.0.0").token != token
    assert PageConfig(study, token=TOKEN).token == TOKEN
    for bad in ("short", "x" * 201, "sixteen signs and spaces", "x" * 15 + "ü"):
        with pytest.raises(WordwingError, match="--token"):
            PageConfig(study, token=bad)


def test_the_printed_link_holds_the_token_where_browsers_do_not_send_it():
    assert invitations("127.0.0.1", 8081, (), None) == ["http://127.0.0.1:8081/"]
    assert invitations("10.0.0.1", 80, (), "abc") == ["http://10.0.0.1:80/#invitation=abc"]
    names = ("a.example.org", "b.example.org:8443")
    assert invitations("127.0.0.1", 8081, names, "abc") == [
        "https://a.example.org/#invitation=abc",
        "https://b.example.org:8443/#invitation=abc",
    ]


def test_pages_of_others_and_other_names_are_refused(lasting):
    rater = lasting.rater()
    item = rater.next()
    for origin in ("http://evil.org", "null", "http://127.0.0.1"):
        got = rater.http.post(f"/rater/items/{item['id']}", json=GOOD, headers={"origin": origin})
        assert got.status_code == 403
        assert rater.http.post("/raters", json={}, headers={"origin": origin}).status_code == 403
        assert rater.http.get("/rater", headers={"origin": origin}).status_code == 403
    with lasting.http() as http:
        assert http.post("/raters", json={}).status_code == 403
        assert http.get("/", headers={"host": "evil.org"}).status_code == 421


def test_every_answer_keeps_the_page_to_itself_and_sets_no_cookie(lasting):
    rater = lasting.rater()
    item = rater.next()["id"]
    for path in ("/", "/guide", "/rater", "/rater/next", f"/media/{item}/video", "/static/main.js", "/nothing"):
        headers = rater.http.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers
        assert "server" not in headers


def test_too_many_newcomers_and_too_large_requests_are_refused(tmp_path):
    study = small_study(tmp_path / "study.db", raters=100)
    with RunningStudy(study, newcomers=lambda: Bucket(0.001, 3)) as running:
        origin = {"origin": running.url}
        answers = [httpx.post(f"{running.url}/raters", json={}, headers=origin) for _one in range(5)]
        assert [answer.status_code for answer in answers] == [201, 201, 201, 429, 429]
        assert httpx.post(f"{running.url}/raters", content=b" " * 2_000_000, headers=origin).status_code == 413
    with RunningStudy(study, changes=lambda: Bucket(0.001, 1)) as running:
        rater = running.rater()
        item = rater.next()
        rater.answer(item, 1, 1, 1)
        assert rater.http.post(f"/rater/items/{item['id']}", json=GOOD).status_code == 429
        assert rater.next()["practice"] is False


def test_a_study_that_cannot_be_used_just_now_says_so_without_naming_its_file(running, monkeypatch):
    monkeypatch.setattr(database, "WRITE_TIMEOUT", 0.05)
    rater = running.rater()
    item = rater.next()
    writer = sqlite3.connect(running.study.file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    got = rater.http.post(f"/rater/items/{item['id']}", json=GOOD)
    assert got.status_code == 503
    assert "study.db" not in got.text
    writer.execute("ROLLBACK")
    writer.close()
    assert rater.answer(item, 1, 1, 1)["feedback"]


def hostile(rng, host: str, item: str) -> bytes:
    """Bytes that no page of ours sends."""
    kind = rng.integers(6)
    paths = [
        "/../../../etc/passwd",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%5cstore.py",
        "/static//etc/passwd",
        "/media/../../x/video",
        "/media/%27%20OR%201=1--/video",
        "/media/" + "A" * 5000 + "/video",
        "/media/%00/legend",
        f"/media/{item}/%2e%2e",
        "/rater/items/%ff%fe",
        "/rater/items/1%27;DROP%20TABLE%20ratings;--",
        "//evil.org/",
        "/rater?token=x",
        "/" + "a" * 20_000,
    ]
    path = paths[rng.integers(len(paths))]
    head = f"host: {host}\r\norigin: http://{host}\r\nconnection: close\r\n"
    if kind == 0:
        return rng.bytes(int(rng.integers(1, 2000)))
    if kind == 1:
        secret = rng.bytes(int(rng.integers(0, 300))).replace(b"\r", b"").replace(b"\n", b"")
        return f"GET {path} HTTP/1.1\r\n{head}authorization: Bearer ".encode() + secret + b"\r\n\r\n"
    if kind == 2:
        bodies = [b"{", b"[" * 3000, rng.bytes(300), b'{"path": 1e999}', b'{"path": ' + b"9" * 3900 + b"}", b"\x00"]
        body = bodies[rng.integers(len(bodies))]
        target = str(rng.choice(["/raters", f"/rater/items/{item}", "/rater/finish", "/guide"]))
        return f"POST {target} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
    if kind == 3:
        length = str(rng.choice(["-1", "99999999999999999999", "1e3", "5\r\ncontent-length: 6", "0x10"]))
        return f"POST /raters HTTP/1.1\r\n{head}content-length: {length}\r\n\r\n{{}}".encode()
    if kind == 4:
        wanted = str(
            rng.choice(["bytes=--1", "bytes=0-" + "9" * 12, "bytes=0-0," * 900, "\x00", "bytes=18446744073709551616-"])
        )
        return f"GET /media/{item}/video HTTP/1.1\r\n{head}range: {wanted}\r\n\r\n".encode()
    method = str(rng.choice(["PUT", "DELETE", "TRACE", "CONNECT", "PATCH", "OPTIONS", "GARBAGE"]))
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode()


def test_three_hundred_hostile_requests_leave_the_study_as_it_was(tmp_path, rng):
    with RunningStudy(small_study(tmp_path / "study.db"), token=TOKEN) as running:
        rater = running.rater()
        first = rater.next()
        rater.answer(first, 1, 1, 1)
        item = rater.next()
        rater.answer(item, 1, 2, 3)
        before = rater.get("/rater"), judged(running.study)
        folder = sorted(path.name for path in tmp_path.iterdir())
        answered = 0
        for _number in range(300):
            answer = send_raw(running.port, hostile(rng, running.host, first["id"]))
            for secret in (b"root:", b"class Guard", b"Traceback", b"CREATE TABLE", str(tmp_path).encode()):
                assert secret not in answer
            if answer:
                assert 200 <= int(answer.split(b" ", 2)[1]) < 500
                answered += 1
        assert answered > 200
        assert (rater.get("/rater"), judged(running.study)) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == folder
        rater.answer(item, 5, 5, 5)
        assert [scores for *_who, scores, _goal, _efficiency in judged(running.study)] == [5]


def test_logs_hold_neither_addresses_nor_links_nor_answers(tmp_path, caplog, capfd, rng):
    with caplog.at_level("DEBUG"), RunningStudy(small_study(tmp_path / "study.db"), token=TOKEN) as running:
        rater = running.rater()
        item = rater.next()
        rater.answer(item, 1, 1, 1)
        rater.http.post(f"/rater/items/{item['id']}", json={"path": "xyzzy"})
        rater.http.get("/xyzzy")
        for _number in range(20):
            send_raw(running.port, hostile(rng, running.host, item["id"]))
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]  # the client's own
    written = "".join(ours) + "".join(capfd.readouterr())
    for secret in ("127.0.0.1", "xyzzy", TOKEN, rater.token, item["id"]):
        assert secret not in written


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"port": 0}, "--port"),
        ({"host": "no.such.host.invalid"}, "--host"),
        ({"token": "short"}, "--token"),
    ],
)
def test_each_mistake_is_one_sentence(tmp_path, options, sentence):
    study = small_study(tmp_path / "study.db")
    with pytest.raises(WordwingError, match=sentence):
        serve(study.file, **{"port": 8123, **options})


def test_a_study_that_is_missing_or_cannot_be_written_is_not_served(tmp_path, monkeypatch):
    with pytest.raises(WordwingError, match="no such file"):
        serve(tmp_path / "none.db")
    study = small_study(tmp_path / "study.db")
    monkeypatch.setattr(os, "access", lambda *_question: False)  # root may always write
    with pytest.raises(WordwingError, match="must be writable"):
        serve(study.file)


def test_without_the_extra_a_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(WordwingError, match=r"pip install 'wordwing\[studio\]'"):
        serve(tmp_path / "study.db")


def test_the_command_serves_a_study_and_prints_the_invitation(tmp_path):
    study = small_study(tmp_path / "study.db")
    port = free_port(socket.SOCK_STREAM)
    words = ["study", "serve", str(study.file), "--port", str(port), "--token", TOKEN]
    process = subprocess.Popen([sys.executable, "-m", "wordwing", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == f"invite raters with http://127.0.0.1:{port}/#invitation={TOKEN}\n"

        def answers():
            try:
                return httpx.get(f"http://127.0.0.1:{port}/guide").json()["invited"]
            except httpx.TransportError:
                return False

        wait_until(answers)
    finally:
        process.terminate()
        assert process.wait(20) in (0, -15)
