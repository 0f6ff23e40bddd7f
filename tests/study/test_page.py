"""The page on which people rate, in a real browser, against a real server."""

import csv
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsing import DESKTOP, PHONE, Visitor, assert_accessible, open_browser
from small_study import small_study, tiny
from study_server import RunningStudy
from wordwing.cli import main
from wordwing.study.questions import BEST, GUIDELINES, INTRODUCTION, QUESTIONS, TASK, UNCLEAR

with suppress(ImportError):
    from playwright.sync_api import Browser, Page, expect

KEYS = [question.key for question in QUESTIONS]
SYSTEMS = ("average", "pvn2-sureal")
TOKEN = "an-invitation-that-nobody-guesses"
EXPECTED = ("404 (Not Found)", "409 (Conflict)", "ERR_INTERNET_DISCONNECTED")
"""What the console says of links that are unknown, studies that are full and cables that are cut."""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with open_browser() as browser:
        yield browser


def open_study(file: Path, raters: int = 100, clock: Any = None, **options: Any) -> RunningStudy:
    study = small_study(file, 5, SYSTEMS, raters=raters, practice=2, clock=clock, draw=tiny)
    return RunningStudy(study, **options)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudy]:
    """A study of 10 items that never has enough raters."""
    with open_study(tmp_path_factory.mktemp("study") / "study.db") as running:
        yield running


@pytest.fixture
def visit(browser: "Browser", lasting: RunningStudy) -> Iterator[Visitor]:
    visitor = Visitor(browser, lasting.url, EXPECTED)
    yield visitor
    visitor.leave()
    assert not visitor.mistakes


def begin(page: "Page") -> "Page":
    page.click("#begin")
    at(page, "Practice 1 of 2")
    return page


def at(page: "Page", title: str) -> None:
    expect(page.get_by_role("heading", level=2)).to_have_text(title)


def choose(page: "Page", scores: tuple[int, ...], unclear: bool = False) -> None:
    for key, score in zip(KEYS, scores, strict=True):
        page.check(f"[name={key}][value='{score}']")
    page.set_checked("#unclear", unclear)


def practise(page: "Page") -> None:
    for number in (1, 2):
        at(page, f"Practice {number} of 2")
        choose(page, (5, 1, 3))
        page.click("#save")
        expect(page.locator("#checked")).to_have_text("Answers that fit: 1 of 2.")
        page.click("#save")
    at(page, "Flight 1 of 10")


def shown_item(page: "Page") -> str:
    return re.findall(r"/media/([\w-]+)/video", page.get_attribute("#video", "src") or "")[0]


def flights(study: Any) -> dict[str, tuple[str, str]]:
    """Instruction and system of each item."""
    with sqlite3.connect(study.file) as connection:
        rows = connection.execute(
            "SELECT items.id, instructions.id, system FROM items JOIN instructions ON instruction = instructions.number"
        ).fetchall()
    return {item: (instruction, system) for item, instruction, system in rows}


def test_a_rater_finishes_a_study_of_ten_items_and_the_report_shows_exactly_those_ratings(
    browser, tmp_path, rng, capsys
):
    with open_study(tmp_path / "study.db", raters=1, token=TOKEN) as running:
        visitor = Visitor(browser, running.url, EXPECTED)
        page = visitor(f"/#invitation={TOKEN}")
        practise(begin(page))
        flown, clicked = flights(running.study), {}
        for number in range(1, 11):
            at(page, f"Flight {number} of 10")
            if number == 5:  # close the browser in the middle, and come back with the link
                link = page.url
                page.context.close()
                page = visitor("/" + link.partition("/#")[2].join(["#", ""]))
                at(page, "Flight 5 of 10")
            scores, unclear = tuple(rng.integers(1, 6, 3).tolist()), number in (2, 7)
            choose(page, scores, unclear)
            clicked[flown[shown_item(page)]] = (*scores, unclear)
            page.click("#save")
        at(page, "All 10 flights are rated")
        page.click("#review-back")
        at(page, "Flight 10 of 10")
        changed = flown[shown_item(page)]
        assert tuple(page.evaluate(SCORES)) == clicked[changed][:3]
        page.check("[name=goal][value='1']")
        clicked[changed] = (clicked[changed][0], 1, *clicked[changed][2:])
        page.click("#save")
        page.get_by_role("button", name="Finish").click()
        at(page, "Thank you")
        page.reload()
        at(page, "Thank you")
        newcomer = visitor(f"/#invitation={TOKEN}")
        newcomer.click("#begin")
        at(newcomer, "There are enough raters")
        visitor.leave()
        assert not visitor.mistakes
    assert len(clicked) == 10
    main(["study", "report", str(running.study.file), "--out", str(tmp_path / "report")])
    assert "10 judgements by 1 raters" in capsys.readouterr().out
    with (tmp_path / "report" / "ratings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    told = {
        (row["instruction"], row["system"]): (*(int(row[key]) for key in KEYS), row["unclear"] in ("1", "true", "True"))
        for row in rows
    }
    assert len(rows) == 10
    assert told == clicked
    document = json.loads((tmp_path / "report" / "report.json").read_text())
    assert (document["ratings"], document["raters_finished"]) == (10, 1)
    unclear = {name for name, _system in clicked if all(clicked[name, system][3] for system in SYSTEMS)}
    assert {row["id"] for row in document["excluded"]} == unclear
    for row in document["groups"]["all"]["scores"]:
        place = KEYS.index(row["question"])
        own = [
            scores[place]
            for (name, system), scores in clicked.items()
            if system == row["system"] and name not in unclear
        ]
        assert (row["n"], row["mean"]) == (len(own), pytest.approx(np.mean(own)))
        assert list(row["counts"]) == [own.count(score) for score in range(1, 6)]


def test_the_welcome_says_what_the_paper_says(visit):
    page = visit()
    at(page, INTRODUCTION)
    welcome = page.locator("#welcome")
    for text in (TASK, *GUIDELINES):
        expect(welcome).to_contain_text(text)
    begin(page)
    expect(page.locator("legend")).to_have_text([f"{n}. {one.text}" for n, one in enumerate(QUESTIONS, start=1)])
    expect(page.get_by_role("radio", name=f"5 {BEST}")).to_have_count(3)
    expect(page.get_by_label(UNCLEAR)).not_to_be_checked()


def test_practice_is_commented_on_and_not_kept(visit, lasting):
    page = begin(visit())
    before = len(lasting.study.ratings())
    choose(page, (2, 5, 3))
    page.click("#save")
    said = page.locator(".said")
    expect(said.nth(0)).to_contain_text("The path is close to the one that was shown")
    expect(said.nth(0)).to_contain_text("A score of 4 or 5 would fit.")
    expect(said.nth(1)).to_contain_text("Your answer fits.")
    expect(page.locator("#path-said")).to_have_attribute("data-kind", "misses")
    expect(page.get_by_role("button", name="Next practice flight")).to_be_focused()
    assert len(lasting.study.ratings()) == before


def test_no_question_can_be_left_out(visit, lasting):
    page = begin(visit())
    practise(page)
    before = len(lasting.study.ratings())
    page.check("[name=path][value='2']")
    page.click("#save")
    expect(page.locator("#goal-said")).to_have_text("Please choose an answer.")
    expect(page.locator("#efficiency-said")).to_have_text("Please choose an answer.")
    expect(page.locator("#path-said")).to_have_text("")
    expect(page.locator("[name=goal]").first).to_be_focused()
    at(page, "Flight 1 of 10")
    page.check("[name=goal][value='2']")
    expect(page.locator("#goal-said")).to_have_text("")
    assert len(lasting.study.ratings()) == before


def test_who_goes_back_finds_saved_and_unsaved_answers_alike(visit):
    page = begin(visit())
    practise(page)
    expect(page.get_by_role("button", name="Back")).to_be_hidden()
    choose(page, (1, 2, 3), unclear=True)
    page.click("#save")
    at(page, "Flight 2 of 10")
    assert page.evaluate(SCORES) == []
    page.check("[name=goal][value='4']")
    page.click("#back")
    at(page, "Flight 1 of 10")
    assert page.evaluate(SCORES) == [1, 2, 3]
    expect(page.locator("#unclear")).to_be_checked()
    page.click("#save")
    at(page, "Flight 2 of 10")
    assert page.evaluate(SCORES) == [4]
    expect(page.locator("#unclear")).not_to_be_checked()


def test_a_lost_connection_is_said_and_the_answers_stay(visit, lasting):
    page = begin(visit())
    practise(page)
    choose(page, (5, 4, 2))
    item, before = shown_item(page), len(lasting.study.ratings())
    page.context.set_offline(True)
    page.click("#save")
    expect(page.locator("#notice-text")).to_have_text(
        "The connection to the study is lost. Your answers are still here."
    )
    at(page, "Flight 1 of 10")
    assert page.evaluate(SCORES) == [5, 4, 2]
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#notice")).to_be_visible()
    page.context.set_offline(False)  # and the page notices by itself
    at(page, "Flight 2 of 10")
    expect(page.locator("#notice")).to_be_hidden()
    assert len(lasting.study.ratings()) == before + 1
    token = page.url.partition("#rater=")[2]
    kept = lasting.study.item(token, item).answers
    assert (kept.path, kept.goal, kept.efficiency) == (5, 4, 2)
    assert 0 < kept.seconds < 60


def test_who_was_away_for_more_than_a_day_is_told_that_others_have_the_flights(browser, tmp_path):
    now = [1e9]
    with open_study(tmp_path / "study.db", raters=1, clock=lambda: now[0]) as running:
        visitor = Visitor(browser, running.url, EXPECTED)
        page = begin(visitor())
        practise(page)
        choose(page, (1, 1, 1))
        now[0] += 25 * 3600
        running.study.new_participant()
        page.click("#save")
        at(page, "There is nothing left to rate")
        page.click("#finish")
        at(page, "Thank you")
        visitor.leave()
        assert not visitor.mistakes
    assert running.study.ratings() == []


def test_an_item_can_be_rated_by_keyboard_alone(visit, lasting):
    page = visit()
    at(page, INTRODUCTION)
    tab_to(page, "#begin")
    page.keyboard.press("Enter")
    at(page, "Practice 1 of 2")
    page.reload()
    practise(page)
    item = shown_item(page)
    tab_to(page, "#play")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play again")).to_be_visible()
    tab_to(page, "#moment")
    page.keyboard.press("Home")
    expect(page.locator("#clock")).to_have_text(re.compile("^0.0 /"))
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    for key, digit in zip(KEYS, "425", strict=True):
        tab_to(page, f"[name={key}]")
        page.keyboard.press(digit)
    page.keyboard.press("ArrowLeft")  # as radio buttons do
    tab_to(page, "#unclear")
    page.keyboard.press("Space")
    tab_to(page, "#save")
    page.keyboard.press("Enter")
    at(page, "Flight 2 of 10")
    expect(page.locator("#item-title")).to_be_focused()
    kept = lasting.study.item(page.url.partition("#rater=")[2], item).answers
    assert (kept.path, kept.goal, kept.efficiency, kept.unclear) == (4, 2, 4, True)


def tab_to(page: "Page", selector: str) -> None:
    for _press in range(25):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


@pytest.mark.parametrize(("motion", "moves"), [("reduce", False), ("no-preference", True)])
def test_the_video_starts_by_itself_unless_things_shall_keep_still(visit, motion, moves):
    statuses: list[int] = []

    def prepare(page: "Page") -> None:
        page.on("response", lambda answer: "/video" in answer.url and statuses.append(answer.status))

    page = begin(visit(reduced_motion=motion, prepare=prepare))
    expect(page.locator("#clock")).to_have_text(re.compile("/ 3.3 s$"))
    expect(page.locator("#legend")).to_have_js_property("naturalWidth", 80)
    assert page.get_attribute("#video", "poster").endswith("/still")
    if moves:
        expect(page.get_by_role("button", name="Play again")).to_be_visible()
    else:
        expect(page.locator("#clock")).to_have_text("0.0 / 3.3 s")
        assert page.evaluate("document.getElementById('video').paused")
    assert set(statuses) == {206}  # asked for in ranges


def test_a_video_that_does_not_come_is_asked_for_again(visit):
    def prepare(page: "Page") -> None:
        page.route("**/video", lambda route: route.fulfill(status=404, body=""))

    page = begin(visit(prepare=prepare))
    expect(page.locator("#notice-text")).to_have_text("The video could not be loaded.")
    page.unroute("**/video")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#clock")).to_have_text(re.compile("/ 3.3 s$"))
    expect(page.locator("#notice")).to_be_hidden()


def test_the_link_is_copied_and_holds_the_rater(visit, lasting):
    page = begin(visit(permissions=["clipboard-read", "clipboard-write"]))
    page.click("#copy")
    expect(page.locator("#copied")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    assert lasting.study.progress(copied.partition("#rater=")[2]).items == 10
    assert page.evaluate("history.length") <= 2  # there is no way back to the invitation, which would begin anew


def test_who_opens_the_invitation_again_can_go_on_where_they_stopped(visit):
    page = begin(visit())
    practise(page)
    mine = page.url
    page.goto("about:blank")
    page.goto(visit.url)
    page.get_by_role("button", name="Go on where I stopped").click()
    at(page, "Flight 1 of 10")
    assert page.url == mine


@pytest.mark.parametrize("link", ["/#rater=x", "/#rater=AAAAAAAAAAAAAAAAAAAAAA", "/#rater=%00%ff<b>"])
def test_a_link_that_nobody_has_is_said_to_be_unknown(visit, link):
    page = visit(link)
    at(page, "This link is not known")
    expect(page.locator("#later")).to_be_hidden()


def test_without_the_invitation_nobody_begins(browser, tmp_path):
    with open_study(tmp_path / "study.db", token=TOKEN) as running:
        visitor = Visitor(browser, running.url, EXPECTED)
        at(visitor(), "This link is not known")
        page = visitor("/#invitation=guessed")
        page.click("#begin")
        at(page, "This link is not known")
        visitor.leave()


def test_an_instruction_never_becomes_html(browser, tmp_path):
    hostile = '<img src=x onerror="document.title=1"> go to <b>it</b> &amp; ${1}'
    with open_study(tmp_path / "study.db") as running:
        with sqlite3.connect(running.study.file) as connection:
            connection.execute("UPDATE instructions SET text = ?", (hostile,))
        visitor = Visitor(browser, running.url)
        page = begin(visitor())
        expect(page.locator("#instruction")).to_have_text(hostile)
        assert page.locator("#instruction *").count() == 0
        visitor.leave()
        assert not visitor.mistakes


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudy]:
    """A study of one item, and a long sentence."""
    study = small_study(tmp_path_factory.mktemp("short") / "study.db", 1, ("oracle",), raters=100, draw=tiny)
    with sqlite3.connect(study.file) as connection:
        text = "go past the supercalifragilisticexpialidociousandevenlongerthing, then stop at the boat " * 3
        connection.execute("UPDATE instructions SET text = ?", (text,))
    with RunningStudy(study) as running:
        yield running


@pytest.mark.parametrize(
    ("viewport", "theme"),
    [
        pytest.param(DESKTOP, "light", id="desktop-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(DESKTOP, "dark", id="desktop-dark", marks=pytest.mark.long),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.long),
    ],
)
def test_every_state_of_the_page_is_accessible_and_fits_the_screen(browser, short, viewport, theme):
    visitor = Visitor(browser, short.url, EXPECTED)
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
    at(page, "Practice 1 of 1")
    page.click("#save")  # nothing is answered yet
    check("Practice 1 of 1")
    choose(page, (5, 1, 3))
    page.click("#save")
    expect(page.locator("#checked")).to_contain_text("1 of 2")
    check("Practice 1 of 1")
    page.click("#save")
    at(page, "Flight 1 of 1")
    page.click("summary")
    choose(page, (5, 1, 3), unclear=True)
    page.context.set_offline(True)
    page.click("#save")
    expect(page.locator("#notice")).to_be_visible()
    check("Flight 1 of 1")
    page.context.set_offline(False)
    check("The flight is rated")
    page.click("#finish")
    check("Thank you")
    visitor.leave()
    assert not visitor.mistakes


SCORES = "() => [...document.querySelectorAll('#questions input:checked')].map((radio) => Number(radio.value))"
