"""The page's server, without a browser."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from collection_server import Person, RunningCollection, address
from killing import victims
from running_server import wait_until
from small_collection import LAYOUT, ends, small_collection
from wordwing.bench.flight import free_port
from wordwing.collect.export import sentences_of, status_of
from wordwing.collect.guidelines import GUIDELINES, TASK
from wordwing.collect.server import STATIC
from wordwing.collect.store import Collection
from wordwing.commands.collect import serve
from wordwing.errors import WordwingError
from wordwing.web.pages import PageConfig
from wordwing.web.serving import SHARED

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture
def running(tmp_path):
    with RunningCollection(small_collection(tmp_path / "c.db")) as running:
        yield running


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """For tests that leave nothing behind but people and drafts."""
    collection = small_collection(tmp_path_factory.mktemp("collection") / "c.db", paths=100, segments=2)
    with RunningCollection(collection) as running:
        yield running


def test_two_people_do_all_there_is_over_the_wire(running):
    people = [running.person(), running.person()]
    for _turn in range(3):
        for person in people:
            person.act(running.collection)
    for person in people:
        assert person.post("/participant/next") == {
            "work": None,
            "progress": {"practised": 0, "practice": 0, "written": 2, "accepted": 2, "followed": 2},
        }
    assert status_of(running.collection).segments["accepted"] == 4


def test_the_guide_is_ours_and_says_what_the_page_must_know(lasting):
    with lasting.http() as http:
        guide = http.get("/guide").json()
    assert (guide["task"], tuple(guide["guidelines"])) == (TASK, GUIDELINES)
    assert (guide["max_sentence"], guide["max_points"], guide["invited"]) == (500, 400, False)


def test_a_follower_is_sent_nothing_that_tells_where_a_path_leads(running):
    writer, follower = running.person(), running.person()
    writer.act(running.collection)
    work = follower.next()  # a path of their own
    follower.write(work)
    work = follower.next()
    assert work["role"] == "follow"
    part = work["parts"][-1]
    x, _y = ends(running.collection.file)[part["media"]]
    told = json.dumps(work)
    assert part["poses"] == []
    assert f"{x}" not in told.replace(json.dumps(part["start"]), "")
    with running.http() as http:
        for kind in ("video", "still", "map", "legend"):  # of the part; the map is the whole path's
            assert http.get(f"/media/{part['media']}/{kind}").status_code == 404
        for kind in ("video", "still", "view"):
            assert http.get(f"/media/{work['map']}/{kind}").status_code == 404
        assert http.get(f"/media/{part['media']}/view").headers["content-type"] == "image/webp"
        assert http.get(f"/media/{work['map']}/map").headers["content-type"] == "image/webp"
    drawn = {kind: running.collection.media_of(work["map"], kind) for kind in ("map", "legend")}
    assert all(drawn.values())
    assert work["map"] not in json.dumps([answer.text for answer in writer.heard])


def test_a_writer_fetches_videos_in_ranges(lasting):
    work = lasting.person().next()
    with lasting.http() as http:
        got = http.get(f"/media/{work['parts'][0]['media']}/video", headers={"range": "bytes=2-5"})
    whole = lasting.collection.media_of(work["parts"][0]["media"], "video")
    assert (got.status_code, got.content, got.headers["content-type"]) == (206, whole[2:6], "video/mp4")


def test_nothing_that_is_sent_tells_what_things_are_called_or_where_the_file_is(running):
    person = running.person()
    person.act(running.collection)
    person.next()
    with running.http() as http:
        page = [http.get(path) for path in ("/", "/guide", "/participants", "/nothing", "/media/x/map")]
        page += [http.get(f"/static/{file.name}") for folder in (STATIC, SHARED) for file in folder.iterdir()]
    secrets = [entry.name.lower() for entry in LAYOUT.landmarks if entry.name != "Barrel"]  # the writer's own word
    secrets += ["landmark", "cage", "sqlite", "layout", str(running.collection.file)]
    for answer in [*person.heard, *page]:
        text = (answer.text + str(answer.headers)).lower()
        assert not [secret for secret in secrets if secret in text], answer.url


def bad(work: dict) -> list[tuple[str, str, str]]:
    """Requests of a page that is not ours: path, body, what the answer says."""
    sentences, lines = f"{address(work)}/sentences/0", f"{address(work)}/lines/0"
    return [
        (sentences, "", "not JSON"),
        (sentences, "{", "not JSON"),
        (sentences, "[" * 5000, "not JSON"),
        (sentences, '{"sentence": "go"', "not JSON"),
        (sentences, " " * 40_001, "larger than 40 kB"),
        (sentences, "null", "your sentence"),
        (sentences, '{"sentence": ""}', "your sentence has no words"),
        (sentences, '{"sentence": "🚁🚁 🚁"}', "your sentence has no words"),
        (sentences, json.dumps({"sentence": "go " * 200}), "at most 500 characters"),
        (sentences, '{"sentence": ["go"]}', "at most 500 characters"),
        (lines, '{"path": []}', "a line of 2 to 400 points"),
        (lines, json.dumps({"path": [[0, 0]] * 401}), "a line of 2 to 400 points"),
        (lines, '{"path": [[0, 0], [NaN, 1]]}', "your line"),
        (lines, '{"path": [[0, 0], [1e999, 1]]}', "your line"),
        (lines, '{"path": [[0, 0], [9, 1]]}', "leaves the field"),
    ]


def test_what_makes_no_sense_is_answered_with_one_sentence_and_not_kept(lasting):
    person = lasting.person()
    work = person.next()
    person.post(f"{address(work)}/sentences/0", {"sentence": "go to the barrel"})
    for path, content, why in bad(work):
        got = person.http.post(path, content=content)
        assert got.status_code == 400, content[:60]
        message = got.json()["message"]
        assert why in message, content[:60]
        assert "\n" not in message
        assert len(message) < 200
    assert [part["sentence"] for part in person.next()["parts"]] == ["go to the barrel", ""]
    assert person.http.post(f"{address(work)}/sentences/0", content=b" " * 2_000_000).status_code == 413


def test_html_and_emoji_come_back_as_they_were_typed(lasting):
    person = lasting.person()
    work = person.next()
    typed = '<img src=x onerror="alert(1)"> go to the <b>barrel</b> 🚁 &amp; stop'
    told = person.post(f"{address(work)}/sentences/0", {"sentence": typed})
    assert told == {"sentence": typed, "remarks": []}
    assert person.next()["parts"][0]["sentence"] == typed


def test_all_that_is_not_there_or_not_theirs_is_answered_alike(lasting):
    person, other = lasting.person(), lasting.person()
    work, foreign = person.next(), other.next()
    good = {"sentence": "go on"}
    requests = [
        ("POST", "/participant/next", "", {}),
        ("POST", "/participant/next", "Bearer " + "x" * 22, {}),
        ("POST", f"{address(foreign)}/sentences/0", f"Bearer {person.token}", good),
        ("POST", f"{address(work)}/sentences/7", f"Bearer {person.token}", good),
        ("POST", f"{address(work)}/sentences/x", f"Bearer {person.token}", good),
        ("POST", f"{address(foreign)}/send", f"Bearer {person.token}", {}),
        ("POST", f"{address(work)}/lines/0", f"Bearer {person.token}", {"path": [[-2, -2], [0, 0]]}),
        ("POST", "/participant/work/x/send", f"Bearer {person.token}", {}),
        ("GET", f"/media/{work['map']}/layout", "", {}),
        ("GET", f"/media/{'0' * 32}/map", "", {}),
        ("GET", "/static/../store.py", "", {}),
        ("DELETE", address(work), f"Bearer {person.token}", {}),
    ]
    told = set()
    with lasting.http(headers={"origin": lasting.url}) as http:
        for method, path, secret, content in requests:
            headers = {"authorization": secret} if secret else {}
            got = http.request(method, path, headers=headers, json=content if method == "POST" else None)
            told.add((got.status_code, got.content))
    assert told == {(404, b'{"message":"there is no such thing here"}')}


def test_only_who_was_invited_can_begin_where_others_can_come(tmp_path):
    collection = small_collection(tmp_path / "c.db")
    token = PageConfig(collection, host="0.0.0.0").token
    assert re.fullmatch(r"[\w-]{43}", token)
    assert PageConfig(Collection(collection.file), names=("a.example.org",)).token == token
    with RunningCollection(collection, token=TOKEN) as running:
        with running.http(headers={"origin": running.url}) as http:
            for content in ({}, {"invitation": token}, {"invitation": None}, [], "x"):
                assert http.post("/participants", json=content).status_code == 404
        assert running.person().next()["role"] == "write"


def test_each_mistake_of_serving_is_one_sentence(tmp_path):
    collection = small_collection(tmp_path / "c.db")
    for options, sentence in (
        ({"port": 0}, "--port"),
        ({"token": "short"}, "--token"),
        ({"host": "no.host.x"}, "--host"),
    ):
        with pytest.raises(WordwingError, match=sentence):
            serve(collection.file, **{"port": 8124, **options})
    with pytest.raises(WordwingError, match="no such file"):
        serve(tmp_path / "none.db")


SETUP = """
from wordwing.collect.server import make_server
from wordwing.collect.store import Collection
from wordwing.web.pages import PageConfig
from wordwing.web.security import Bucket
"""
WORK = """
server = make_server(PageConfig(Collection({file!r}), port={port}, changes=lambda: Bucket(1e6, 1e6)))
say("serving")
server.run()
"""


def test_a_server_that_is_killed_while_people_work_has_lost_nothing_that_it_had_acknowledged(tmp_path):
    collection = small_collection(tmp_path / "c.db", paths=300, segments=2, tries=1)
    port = free_port(socket.SOCK_STREAM)
    url = f"http://127.0.0.1:{port}"
    kept: dict[str, str] = {}
    followed: set[str] = set()
    where = ends(collection.file)

    def work(person: Person) -> None:
        """Until the server is gone."""
        while (task := person.next()) is not None:
            if task["role"] == "follow":
                person.follow(task, where)
                followed.add(task["parts"][-1]["sentence"])
                continue
            for part in task["parts"]:
                text = f"sentence {len(kept)} of {person.token}"
                person.post(f"{address(task)}/sentences/{part['place']}", {"sentence": text})
                kept[part["media"]] = text
            person.post(f"{address(task)}/send")

    tokens = [collection.new_participant() for _person in range(2)]
    with victims(SETUP, WORK.format(file=str(collection.file), port=port)) as children, ThreadPoolExecutor(3) as pool:
        for seconds in (0.7, 1.0):
            before = len(kept)
            killed = pool.submit(children.kill_one_after, seconds)
            wait_until(lambda: answers(url))
            headers = [{"origin": url, "authorization": f"Bearer {token}"} for token in tokens]
            people = [
                Person(httpx.Client(base_url=url, headers=each), token)
                for each, token in zip(headers, tokens, strict=True)
            ]
            for working in [pool.submit(work, person) for person in people]:
                with pytest.raises(httpx.TransportError):
                    working.result(30)
            assert killed.result(30) == ["serving"]
            assert len(kept) > before + 2
    found = Collection(collection.file)
    rows = found.rows("SELECT writing, text FROM sentences JOIN segments ON segments.number = segment")
    stored = {row["writing"]: row["text"] for row in rows}
    assert {name: stored.get(name) for name in kept} == kept
    assert followed
    assert followed <= {row["sentence"] for row in sentences_of(found) if row["accepted"]}
    assert found.rows("PRAGMA integrity_check")[0][0] == "ok"
    assert Path(found.file).stat().st_size > 0


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/guide").status_code == 200
    except httpx.TransportError:
        return False
