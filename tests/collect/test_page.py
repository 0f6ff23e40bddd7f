"""The page on which people write and follow, in a real browser, against a real server."""

import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from browsing import CHROMIUM, DESKTOP, PHONE, Visitor, assert_accessible, open_browser
from collection_server import RunningCollection
from running_server import wait_until
from small_collection import EXAMPLE, act, ends, small_collection
from wordwing.bench.flight import free_port
from wordwing.cli import main
from wordwing.collect.export import sentences_of, status_of
from wordwing.collect.guidelines import GUIDELINES, INTRODUCTION, TASK
from wordwing.collect.store import Collection
from wordwing.data.dataset import Dataset

with suppress(ImportError):
    from playwright.sync_api import Browser, Page, expect

EXPECTED = (
    "404 (Not Found)",
    "409 (Conflict)",
    "400 (Bad Request)",
    "ERR_INTERNET_DISCONNECTED",
    "ERR_CONNECTION_REFUSED",
)
"""What the console says of unknown links, refused sentences and servers that are gone."""

REVIEW = "Is this what you want to say?"


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with open_browser() as browser:
        yield browser


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningCollection]:
    with RunningCollection(small_collection(tmp_path / "c.db", paths=2, segments=2, tries=1)) as running:
        yield running


@pytest.fixture
def visit(browser: "Browser", running: RunningCollection) -> Iterator[Visitor]:
    visitor = Visitor(browser, running.url, EXPECTED)
    yield visitor
    visitor.leave()
    assert not visitor.mistakes


def at(page: "Page", title: str) -> None:
    expect(page.get_by_role("heading", level=2)).to_have_text(title)


def begin(page: "Page") -> "Page":
    page.click("#begin")
    at(page, "Write: part 1 of 2")
    return page


def token_of(page: "Page") -> str:
    return page.url.partition("#participant=")[2]


def draw(page: "Page", end: tuple[float, float]) -> None:
    """Draw on the map with the mouse, from the drone to a place in the world."""
    box = page.locator("#sketch").bounding_box()
    start = page.evaluate("document.querySelector('#follow .drawn').getAttribute('points')").split(",")
    page.mouse.move(box["x"] + float(start[0]) / 1000 * box["width"], box["y"] + float(start[1]) / 1000 * box["height"])
    page.mouse.down()
    x, y = end
    page.mouse.move(box["x"] + (0.5 - y / 5) * box["width"], box["y"] + (0.5 - x / 5) * box["height"], steps=4)
    page.mouse.up()


def to_follow(page: "Page") -> str:
    """The id of what a follower is shown."""
    return re.findall(r"/media/(\w+)/view", page.get_attribute("#view", "src") or "")[0]


def test_a_person_writes_looks_again_changes_and_sends(visit, running):
    page = visit()
    at(page, INTRODUCTION)
    for text in (TASK, *GUIDELINES):
        expect(page.locator("#welcome")).to_contain_text(text)
    begin(page)
    expect(page.get_by_role("button", name="Back")).to_be_hidden()
    page.click("#save")
    expect(page.locator("#sentence-said")).to_have_text("Write what you would say to the drone.")
    page.fill("#sentence", "look at the map")
    page.keyboard.press("Enter")
    at(page, "Write: part 2 of 2")
    expect(page.locator("#write-before li")).to_have_text(["look at the map"])
    page.fill("#sentence", "half a thou")
    page.click("#back")
    at(page, "Write: part 1 of 2")
    expect(page.locator("#sentence-said")).to_contain_text("map or camera image")
    page.click("#save")
    expect(page.locator("#sentence")).to_have_value("half a thou")
    page.fill("#sentence", "go on to the boat")
    page.click("#save")
    at(page, REVIEW)
    expect(page.locator("#review-list .said")).to_have_text(
        ["The drone does not know this: sheet, picture, map or camera image."]
    )
    page.get_by_role("button", name="Change part 1").click()
    page.fill("#sentence", "go past the <b>barrel</b> 🚁")
    page.click("#save")
    at(page, "Write: part 2 of 2")
    page.click("#save")
    at(page, REVIEW)
    expect(page.locator("#review-list li > span:first-child")).to_have_text(
        ["go past the <b>barrel</b> 🚁", "go on to the boat"]
    )
    assert page.locator("#review-list b").count() == 0
    assert status_of(running.collection).sentences == 0
    page.click("#send")
    at(page, "Write: part 1 of 2")
    expect(page.locator("#status")).to_have_text("2 written, 0 accepted, 0 followed")
    assert [row["sentence"] for row in sentences_of(running.collection)] == [
        "go past the <b>barrel</b> 🚁",
        "go on to the boat",
    ]


def test_a_sentence_is_followed_by_mouse_by_touch_and_by_keyboard(visit, running):
    collection = running.collection
    act(collection, collection.new_participant())
    act(collection, collection.new_participant())
    mouse = visit()
    mouse.click("#begin")
    at(mouse, "Follow")
    expect(mouse.locator("#order")).to_have_text("go past the barrel, part 0")
    mouse.click("#lead")
    expect(mouse.locator("#follow-told")).to_have_text("Draw a line on the map first.")
    draw(mouse, (0.0, 0.0))
    expect(mouse.locator("#sketch-said")).to_contain_text("Your line ends")
    mouse.click("#clear")
    expect(mouse.locator("#sketch-said")).to_have_text("")
    draw(mouse, tuple(ends(collection.file)[to_follow(mouse)]))
    expect(mouse.locator("#sketch-said")).to_have_text("Your line ends 0.8 m ahead of the drone.")
    mouse.click("#lead")
    expect(mouse.locator("#order")).to_have_text("go past the barrel, part 1")
    expect(mouse.locator("#follow-before li")).to_have_text(["go past the barrel, part 0"])
    keyboard = visit()
    tab_to(keyboard, "#begin")
    keyboard.keyboard.press("Enter")
    at(keyboard, "Follow")
    tab_to(keyboard, "#sketch")
    for _step in range(8):
        keyboard.keyboard.press("ArrowUp")
    keyboard.keyboard.press("ArrowLeft")
    expect(keyboard.locator("#sketch-said")).to_have_text("Your line ends 0.8 m ahead of the drone.")
    keyboard.keyboard.press("Backspace")
    keyboard.keyboard.press("Shift+ArrowRight")
    tab_to(keyboard, "#lead")
    keyboard.keyboard.press("Enter")
    expect(keyboard.locator("#order")).to_have_text("go past the barrel, part 1")
    rows = [row for row in sentences_of(collection) if row["drawn"]]
    assert [row["accepted"] for row in rows] == [True, True]
    assert sorted(round(row["distance"], 2) for row in rows)[1] == 0.02
    touch = visit(f"/#participant={token_of(mouse)}", viewport=PHONE, has_touch=True)
    expect(touch.locator("#order")).to_have_text("go past the barrel, part 1")
    touch.locator("#sketch").scroll_into_view_if_needed()
    box = touch.locator("#sketch").bounding_box()
    x, y = ends(collection.file)[to_follow(touch)]
    touch.touchscreen.tap(box["x"] + (0.5 - y / 5) * box["width"], box["y"] + (0.5 - x / 5) * box["height"])
    expect(touch.locator("#sketch-said")).to_have_text("Your line ends 0.8 m ahead of the drone.")
    touch.click("#lead")
    at(touch, "There is nothing for you just now")
    assert sum(bool(row["drawn"]) for row in sentences_of(collection)) == 3


def tab_to(page: "Page", selector: str) -> None:
    expect(page.locator(selector)).to_be_visible()
    for _press in range(25):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_who_comes_back_by_the_link_finds_sentences_and_place(visit):
    page = begin(visit())
    page.fill("#sentence", "go past the barrel")
    page.click("#save")
    at(page, "Write: part 2 of 2")
    mine = page.url
    page.context.close()
    page = visit(f"/#{mine.partition('#')[2]}")
    at(page, "Write: part 2 of 2")
    expect(page.locator("#write-before li")).to_have_text(["go past the barrel"])
    page.goto("about:blank")
    page.goto(visit.url)
    page.get_by_role("button", name="Go on where I stopped").click()
    at(page, "Write: part 2 of 2")
    assert page.url == mine


def test_a_lost_connection_is_said_and_the_sentence_stays(visit, running):
    page = begin(visit())
    page.fill("#sentence", "go past the barrel")
    page.context.set_offline(True)
    page.click("#save")
    expect(page.locator("#notice-text")).to_have_text(
        "The connection to the collection is lost. What you have done is still here."
    )
    expect(page.locator("#sentence")).to_have_value("go past the barrel")
    page.context.set_offline(False)  # and the page notices by itself
    at(page, "Write: part 2 of 2")
    assert running.collection.work(token_of(page)).parts[0].sentence == "go past the barrel"


def test_a_sentence_that_is_refused_says_why_and_can_be_changed(visit):
    page = begin(visit())
    page.fill("#sentence", "🚁🚁")
    page.click("#save")
    expect(page.locator("#notice-text")).to_have_text(
        "Your sentence has no words; write what you would say to the drone."
    )
    page.fill("#sentence", "go 🚁")
    page.click("#save")
    at(page, "Write: part 2 of 2")
    expect(page.locator("#notice")).to_be_hidden()


def test_the_video_moves_the_drone_on_the_map(visit):
    page = begin(visit(reduced_motion="no-preference"))
    drone = page.locator("#write .drone")
    first = drone.get_attribute("points")
    expect(page.get_by_role("button", name="Play again")).to_be_visible()
    assert drone.get_attribute("points") != first


@pytest.mark.parametrize("link", ["/#participant=x", "/#participant=%00%ff<b>"])
def test_a_link_that_nobody_has_is_said_to_be_unknown(visit, link):
    at(visit(link), "This link is not known")


@pytest.mark.parametrize(
    ("viewport", "theme"),
    [
        pytest.param(DESKTOP, "light", id="desktop-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(DESKTOP, "dark", id="desktop-dark", marks=pytest.mark.long),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.long),
    ],
)
def test_every_state_of_the_page_is_accessible_and_fits_the_screen(browser, tmp_path, viewport, theme):
    collection = small_collection(tmp_path / "c.db", paths=1, segments=1, practice=1)
    with RunningCollection(collection) as running:
        visitor = Visitor(browser, running.url, EXPECTED)
        page = visitor(viewport=viewport, color_scheme=theme)

        def check(title: str) -> None:
            at(page, title)
            expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")
            assert_accessible(page)
            for width in (320, viewport["width"]):
                page.set_viewport_size({**viewport, "width": width})
                assert page.evaluate("document.documentElement.scrollWidth") <= width

        check(INTRODUCTION)
        page.click("#begin")
        at(page, "Practice: write")
        page.click("#save")
        check("Practice: write")
        page.fill("#sentence", "follow the supercalifragilisticexpialidociousandevenlongerthing on the map to the end")
        page.click("#save")
        at(page, REVIEW)
        page.click("#send")
        expect(page.locator("#review-told")).to_contain_text(EXAMPLE)
        check(REVIEW)
        page.click("#send")
        at(page, "Practice: follow")
        draw(page, (0.0, 0.0))
        page.click("#lead")
        expect(page.locator("#follow-told")).to_contain_text("The orange line was meant.")
        check("Practice: follow")
        page.click("#lead")
        at(page, "Write: part 1 of 1")
        page.fill("#sentence", "go on")
        page.click("#save")
        page.click("#send")
        check("There is nothing for you just now")
        visitor.leave()
        assert not visitor.mistakes


class Served:
    """The command itself, which can be killed and served again at the same address."""

    def __init__(self, file: Path) -> None:
        self.file, self.port = file, free_port(socket.SOCK_STREAM)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        words = ["collect", "serve", str(self.file), "--port", str(self.port)]
        self.process = subprocess.Popen([sys.executable, "-m", "wordwing", *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == f"invite people with {self.url}/\n"

        def answers() -> bool:
            try:
                return httpx.get(f"{self.url}/guide").status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        self.process.stdout.close()


@pytest.mark.long
def test_two_people_in_two_browsers_collect_and_follow_twenty_segments_while_the_server_is_killed(tmp_path, capsys):
    """Practice included; twelve sentences are given to the drone by each, one of which leads elsewhere."""
    file = tmp_path / "c.db"
    collection = small_collection(file, paths=4, segments=5, tries=2, practice=1)
    where, wrong = ends(file), {ends_at(file, 2, 3)}
    served = Served(file)
    served.start()
    with open_browser() as one, open_another(one) as other:
        visitors = [Visitor(browser, served.url, EXPECTED) for browser in (one, other)]
        pages = [visitor() for visitor in visitors]
        for page in pages:
            page.click("#begin")
        written: list[str] = []
        idle, steps = set(), 0
        while len(idle) < 2:
            for number, page in enumerate(pages):
                before = screen(page)
                if before == "idle":
                    idle.add(number)
                    if len(idle) < 2:
                        page.click("#look")
                        expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")
                    continue
                idle.discard(number)
                steps += 1
                if steps in (15, 40):
                    served.kill()
                step(page, number, where, wrong, written)
                if steps in (15, 40):
                    expect(page.locator("#notice-text")).to_contain_text("The connection to the collection is lost.")
                    served.start()
                    page.click("#notice-action")
                    expect(page.locator("#notice")).to_be_hidden()
                expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")
            assert steps < 200
        for visitor in visitors:
            visitor.leave()
            assert not visitor.mistakes
    served.kill()
    rows = list(sentences_of(Collection(file)))
    assert len(rows) == 20
    assert all(row["drawn"] for row in rows)
    assert sorted(row["sentence"] for row in rows) == sorted(
        text for text in written if not text.startswith("practice")
    )
    assert [row["accepted"] for row in rows].count(False) == 1
    assert {(row["writer"], row["follower"]) for row in rows} == {(1, 2), (2, 1)}
    main(["collect", "status", str(file)])
    told = capsys.readouterr().out
    assert "20 segments: 19 accepted, 0 wait for a follower, 1 wait for a writer, 0 dropped" in told
    assert "19 of 20 (95.0%)" in told
    main(["collect", "export", str(file), "--out", str(tmp_path / "mine")])
    dataset = Dataset(tmp_path / "mine")
    dataset.validate()
    assert sum(len(paragraph.segments) for paragraph in dataset.paragraphs()) == 19
    main(["data", "stats", str(tmp_path / "mine")])
    assert collection.settings.text == "human"


@contextmanager
def open_another(browser: "Browser") -> "Iterator[Browser]":
    """A second browser, of the same Playwright: two of those cannot be in one thread."""
    path = CHROMIUM or browser.browser_type.executable_path
    another = browser.browser_type.launch(executable_path=path, args=["--no-sandbox"])
    yield another
    another.close()


def ends_at(file: Path, path: int, place: int) -> str:
    """The id of a segment for followers."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute(
            "SELECT segments.following FROM segments JOIN paths ON path = paths.number"
            " WHERE practice IS NULL AND place = ? ORDER BY path",
            (place,),
        ).fetchall()
    return str(rows[path][0])


def screen(page: "Page") -> str:
    page.wait_for_function("document.body.dataset.screen && document.body.dataset.screen !== 'welcome'")
    return str(page.evaluate("document.body.dataset.screen"))


def step(page: "Page", number: int, where: dict[str, list[float]], wrong: set[str], written: list[str]) -> None:
    """Do what the page wants done, once."""
    shown = screen(page)
    if shown == "write":
        title = page.locator("#write-title").inner_text()
        text = f"{'practice' if 'Practice' in title else 'go past the barrel'} {number} {len(written)}"
        written.append(text)
        page.fill("#sentence", text)
        page.click("#save")
    elif shown == "review":
        page.click("#send")
    else:
        if page.locator("#lead").inner_text() != "Go on":
            name = to_follow(page)
            x, y = where[name]
            draw(page, (x, y + (1.0 if name in wrong else 0.0)))
        page.click("#lead")
