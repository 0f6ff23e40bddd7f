"""The studio's page in a real browser, against a real server."""

import base64
import json
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch

from browsing import DESKTOP, PHONE, Visitor, assert_accessible, open_browser
from studio_server import LAYOUT, START, RunningStudio
from wordwing.frames import Pose, start_frame
from wordwing.model.grid import START_GRID
from wordwing.viz.drawing import map_pixels

with suppress(ImportError):
    from playwright.sync_api import Browser, Locator, Page, expect

REFUSED = ("400 (Bad Request)",)
"""A refused file is no mistake of the page."""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: "Browser", studio: RunningStudio) -> Iterator[Visitor]:
    visitor = Visitor(browser, studio.url, REFUSED)
    yield visitor
    visitor.leave()
    assert not visitor.mistakes


@pytest.fixture(scope="module")
def regular(browser: "Browser", studio: RunningStudio) -> "Iterator[tuple[Visitor, Page]]":
    """One who stays from test to test, which saves the time of opening the page."""
    visitor = Visitor(browser, studio.url, REFUSED)
    yield visitor, visitor()
    visitor.leave()


@pytest.fixture
def page(regular: "tuple[Visitor, Page]") -> "Iterator[Page]":
    """A page with three landmarks, whose drones fly as fast as they can."""
    visitor, page = regular
    if page.locator("#reset").is_enabled():
        page.click("#reset")
    yield ready(page)
    assert not visitor.mistakes


def ready(page: "Page") -> "Page":
    until(page, "idle")
    page.wait_for_selector("#things-list li", state="attached")
    page.select_option("#speed", "8")
    page.select_option("#rival", "")
    page.check("[name=vehicle][value=sim]")
    page.fill("#text", "go to the barrel")
    page.locator("#things").evaluate("details => { details.open = true }")
    # What the test before left may look like the layout; a smaller one in between shows when the layout is there.
    for landmarks in (LAYOUT["landmarks"][:1], LAYOUT["landmarks"]):
        open_file(page, {**LAYOUT, "landmarks": landmarks})
        expect(page.locator("#things-list li")).to_have_count(1 + len(landmarks), timeout=20_000)
    return page


def open_file(page: "Page", document: Any) -> None:
    page.set_input_files("#file", {"name": "x.json", "mimeType": "", "buffer": json.dumps(document).encode()})


def until(page: "Page", phase: str) -> None:
    page.wait_for_selector(f"body[data-phase={phase}]")


def fly(page: "Page", text: str = "go to the barrel", button: str = "#fly") -> None:
    page.fill("#text", text)
    page.click(button)
    until(page, "flying")
    until(page, "ended")


def episode(page: "Page") -> dict[str, Any]:
    with page.expect_download() as download:
        page.click("#episode")
    return json.loads(download.value.path().read_text())


def poses(page: "Page", lane: int = 0) -> list[list[float]]:
    return [state["pose"] for state in episode(page)["lanes"][lane]["states"]]


def place_of(page: "Page", name: str) -> tuple[float, float]:
    text = thing(page, name).locator("span").inner_text()
    x, y = text.replace("−", "-").split(", ")
    return float(x), float(y)


def thing(page: "Page", name: str) -> "Locator":
    return page.get_by_role("button", name=re.compile(f"^{name} "))


def pixel(page: "Page", x: float, y: float) -> tuple[float, float]:
    """Where on the page a place of the world is: x up, y left, 5 m across."""
    page.locator(".overhead").scroll_into_view_if_needed()
    box = page.locator(".overhead").bounding_box()
    assert box
    return box["x"] + box["width"] * (0.5 - y / 5), box["y"] + box["height"] * (0.5 - x / 5)


def test_the_verdict_is_clause_by_clause_and_denials_are_not_judged(page):
    page.fill("#text", "go to the barrel and turn around")
    page.press("#text", "Enter")
    until(page, "ended")
    expect(page.locator(".clauses li.done")).to_have_text(["reached the barrel"])
    expect(page.locator(".clauses li:not(.done)")).to_have_text(["did not turn around"])
    expect(page.locator(".verdict")).to_have_attribute("data-followed", "false")
    page.fill("#text", "anywhere except near the barrel")
    page.press("#text", "Enter")
    expect(page.locator(".quote")).to_have_text("anywhere except near the barrel")
    until(page, "ended")
    expect(page.locator(".verdict")).to_contain_text('Not judged: "anywhere except near the barrel" is not understood.')
    expect(page.locator(".clauses li")).to_have_count(0)


def test_slips_are_marked_with_what_is_read(page):
    page.locator("#text").fill("go to the barel flumpkin")
    expect(page.locator("#marks mark.slip")).to_have_text(["barel"])
    expect(page.locator("#marks mark.unknown-word")).to_have_text(["flumpkin"])
    expect(page.locator("#unknown")).to_contain_text("small0 does not know: flumpkin. small0 reads: barel → barrel.")


def test_unknown_words_are_underlined_and_named_as_one_types(page):
    page.fill("#text", "")
    page.locator("#text").press_sequentially("go to 🛸 the flumpkin")
    expect(page.locator("#marks mark")).to_have_text(["flumpkin"])
    expect(page.locator("#unknown")).to_have_text("small0 does not know: flumpkin.")
    page.fill("#text", "go to the barrel")
    expect(page.locator("#marks mark")).to_have_count(0)
    expect(page.locator("#unknown")).to_have_text("")


def test_what_is_named_and_not_there_is_said_and_a_layout_can_be_drawn_with_it(page):
    page.select_option("#corpus", "house")
    page.fill("#text", "go to the windmill")
    expect(page.locator("#unknown")).to_contain_text("Nothing here is called “windmill”.")
    page.get_by_role("button", name="Draw a layout with it").click()
    expect(thing(page, "Windmill")).to_be_attached()
    expect(page.locator("#unknown")).not_to_contain_text("Nothing here")
    expect(page.locator("#text")).to_be_focused()
    page.fill("#text", "walk over to the sofa")
    page.get_by_role("button", name="Draw a layout with it").click()
    expect(thing(page, "Sofa")).to_be_attached()
    page.fill("#text", "go past the sofa to the windmill")
    expect(page.locator("#unknown")).to_contain_text("No kind of world has all of it")
    expect(page.get_by_role("button", name="Draw a layout with it")).to_have_count(0)
    page.select_option("#add", "Windmill")
    expect(page.locator("#unknown")).not_to_contain_text("Nothing here")


def test_enter_flies_a_sentence_and_says_how_it_went(page):
    page.fill("#text", "go to the barrel")
    page.press("#text", "Enter")
    until(page, "ended")
    expect(page.locator(".quote")).to_have_text("go to the barrel")
    expect(page.locator(".verdict")).to_contain_text("after 3.6 s")  # 12 decisions of 0.3 s
    expect(page.locator(".verdict")).to_contain_text("m. What was said was not done, says the judge.")
    expect(page.locator(".verdict")).to_have_attribute("data-followed", "false")
    late = "was at the barrel when its time was up, but had not stopped"
    expect(page.locator(".clauses li")).to_have_text([late])
    expect(page.locator(".now")).to_have_text("5.4 s · at rest")  # and 6 control periods until rest
    expect(page.locator("#announce")).to_contain_text("small0: Had not stopped")
    [ending] = episode(page)["lanes"][0]["endings"]
    assert ending["clauses"] == [{"words": late, "done": False}]
    states = episode(page)["lanes"][0]["states"]
    assert len(states) == 19
    assert all(len(state["pose"]) == 6 for state in states)


def test_a_paused_flight_waits_and_goes_step_by_step(page):
    page.select_option("#speed", "0.25")
    page.click("#fly")
    expect(page.locator("#clock")).to_have_text("0.0 / 0.0 s")
    page.click("#pause")
    until(page, "paused")
    before = int(page.get_attribute("#time", "max") or 0)
    page.wait_for_timeout(1500)
    assert int(page.get_attribute("#time", "max") or 0) == before
    page.click("#step")
    expect(page.locator("#time")).to_have_attribute("max", str(before + 1))
    page.select_option("#speed", "8")
    page.get_by_role("button", name="Go on").click()
    until(page, "ended")


def test_a_flight_can_be_stopped_by_hand(page):
    page.select_option("#speed", "0.25")
    page.click("#fly")
    expect(page.locator("#clock")).to_have_text("0.0 / 0.0 s")
    page.select_option("#speed", "8")
    page.click("#stop")
    until(page, "ended")
    expect(page.locator(".verdict")).to_contain_text("Stopped by hand")


def test_a_flight_that_begins_right_after_a_reset_is_whole(page, studio):
    page.select_option("#speed", "1")
    page.click("#fly")
    expect(page.locator("#clock")).not_to_have_text("0.0 s")
    page.select_option("#speed", "8")
    page.evaluate("document.getElementById('reset').click(); document.getElementById('fly').click()")
    until(page, "ended")
    states = episode(page)["lanes"][0]["states"]
    assert [state["step"] for state in states] == list(range(studio.settings.steps + 7))


def test_a_flight_that_was_reset_before_it_was_answered_confuses_nothing(page):
    page.evaluate("document.getElementById('fly').click(); document.getElementById('reset').click()")
    page.mouse.move(*pixel(page, 1.0, 0.5))  # the barrel
    page.mouse.down()
    page.mouse.move(*pixel(page, -0.5, 0.9), steps=3)
    page.mouse.move(*pixel(page, -1.0, 1.0), steps=3)  # onto the anvil
    page.mouse.up()
    expect(page.locator("#notice-text")).to_contain_text("Anvil")
    assert place_of(page, "Barrel") == (1.0, 0.5)
    fly(page)


def test_the_keyboard_is_never_lost_among_buttons_that_are_disabled(page):
    page.select_option("#speed", "0.25")
    page.focus("#fly")
    page.keyboard.press("Enter")
    until(page, "flying")
    expect(page.locator("#pause")).to_be_focused()
    page.select_option("#speed", "8")
    page.focus("#pause")
    until(page, "ended")
    expect(page.locator("#fly")).to_be_focused()
    page.focus("#reset")
    page.keyboard.press("Enter")
    until(page, "idle")
    expect(page.locator("#fly")).to_be_focused()


def test_the_slider_and_the_replay_show_earlier_moments(page):
    fly(page)
    states = episode(page)["lanes"][0]["states"]
    page.focus("#time")
    page.keyboard.press("Home")
    expect(page.locator("#clock")).to_have_text("0.0 / 5.4 s")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".now")).to_have_text("0.3 s · decision 2")
    label = page.get_attribute(".overhead", "aria-label") or ""
    x, y = states[1]["pose"][:2]
    assert f"at x {x:.2f}, y {y:.2f} m" in label
    page.click("#play")
    expect(page.locator("#play")).to_have_text("Hold")
    expect(page.locator("#clock")).to_have_text("5.4 / 5.4 s")
    expect(page.locator("#play")).to_have_text("Replay")


def test_the_next_instruction_goes_on_from_where_the_drone_is(page):
    fly(page)
    fly(page, "then turn left", "#then")
    document = episode(page)
    assert document["texts"] == ["go to the barrel", "then turn left"]
    states = document["lanes"][0]["states"]
    first, second = ([state for state in states if state["instruction"] == leg] for leg in (0, 1))
    assert second[0]["pose"] == first[-1]["pose"]
    assert [state["time"] for state in states] == pytest.approx(0.3 * np.arange(len(states)))
    fly(page)
    assert [state["pose"] for state in first] == poses(page)  # and Fly begins at the start again


def test_two_policies_fly_side_by_side(page):
    page.select_option("#rival", "other")
    fly(page)
    expect(page.locator(".lane h3")).to_have_text(["small0", "other"])
    boxes = [lane.bounding_box() for lane in page.locator(".lane").all()]
    assert boxes[0]
    assert boxes[1]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    lanes = episode(page)["lanes"]
    assert lanes[0]["states"][0]["pose"] == lanes[1]["states"][0]["pose"]
    assert lanes[0]["states"][-1]["pose"] != lanes[1]["states"][-1]["pose"]


def test_every_image_of_every_drone_is_described_however_often_policies_are_chosen(page):
    for rival, lanes in (("other", 2), ("", 1), ("other", 2)):
        page.select_option("#rival", rival)
        expect(page.locator(".lane")).to_have_count(lanes)
        described = page.locator(".tile").evaluate_all(
            "tiles => tiles.map((tile) => tile.getAttribute('aria-describedby'))"
        )
        assert len(set(described)) == 5 * lanes
        assert all(page.locator(f"[id={name}]").count() == 1 for name in described)


def test_drones_that_are_replaced_are_forgotten(visit):
    counted = """const listen = document.addEventListener;
        window.listeners = 0;
        document.addEventListener = function (...given) {
            window.listeners += 1;
            return listen.apply(this, given);
        };"""
    page = ready(visit(prepare=lambda page: page.add_init_script(counted)))
    before = page.evaluate("window.listeners")
    page.select_option("#rival", "other")
    expect(page.locator(".lane")).to_have_count(2)
    assert page.evaluate("window.listeners") == before


def test_a_landmark_is_dragged_to_where_the_pointer_lets_it_go(page):
    page.mouse.move(*pixel(page, 1.0, 0.5))  # the barrel
    page.mouse.down()
    page.mouse.move(*pixel(page, 1.2, 0.0), steps=3)
    page.mouse.move(*pixel(page, 1.5, -0.6), steps=3)
    page.mouse.up()
    expect(page.locator("#things-said")).to_contain_text("Barrel")
    assert place_of(page, "Barrel") == pytest.approx((1.5, -0.6), abs=0.02)
    fly(page)  # what is flown in is what the server has
    barrel = episode(page)["layout"]["landmarks"][0]
    assert (barrel["x"], barrel["y"]) == pytest.approx((1.5, -0.6), abs=0.02)
    page.mouse.click(*pixel(page, 1.5, -0.6))
    page.keyboard.press("ArrowDown")  # what was clicked follows the keys
    assert place_of(page, "Barrel") == pytest.approx((barrel["x"] - 0.1, barrel["y"]), abs=0.006)


SLOW_DECODING = """const decode = createImageBitmap;
    window.createImageBitmap = async (...given) => {
        document.body.dataset.decoding = "";
        await new Promise((go) => setTimeout(go, 1000));
        delete document.body.dataset.decoding;
        return decode(...given);
    };"""


def test_a_flight_that_is_asked_for_before_the_view_from_above_is_decoded_waits_for_it(visit):
    page = ready(visit(prepare=lambda page: page.add_init_script(SLOW_DECODING)))
    thing(page, "Barrel").focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_selector("body[data-decoding]")
    fly(page)
    barrel = episode(page)["layout"]["landmarks"][0]
    assert (barrel["x"], barrel["y"]) == pytest.approx((1.1, 0.5))


def test_the_drone_is_dragged_and_turned(page):
    x, y = place_of(page, "Drone")
    page.mouse.move(*pixel(page, x, y))
    page.mouse.down()
    page.mouse.move(*pixel(page, 0.4, 0.4), steps=3)
    page.mouse.move(*pixel(page, 0.3, 0.2), steps=3)
    page.mouse.up()
    assert place_of(page, "Drone") == pytest.approx((0.3, 0.2), abs=0.02)
    fly(page)
    yaw = episode(page)["start"]["yaw"]
    page.click("#reset")
    page.mouse.move(*pixel(page, 0.3 + 0.5 * math.cos(yaw), 0.2 + 0.5 * math.sin(yaw)))  # its handle, 0.5 m ahead
    page.mouse.down()
    page.mouse.move(*pixel(page, -0.2, 0.5), steps=3)
    page.mouse.move(*pixel(page, 0.3, 0.9), steps=3)  # straight to its left, along world y
    page.mouse.up()
    expect(page.locator("#things-said")).to_contain_text("turned 90°")
    fly(page)
    assert poses(page)[0][:2] == pytest.approx([0.3, 0.2], abs=0.02)
    assert poses(page)[0][5] == pytest.approx(math.pi / 2, abs=0.03)


def test_keys_move_turn_and_remove_a_landmark(page):
    thing(page, "Barrel").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert place_of(page, "Barrel") == (1.2, 0.6)  # x is up, y is left
    expect(page.locator("#things-said")).to_have_text("Barrel: x 1.20 m, y 0.60 m, turned 15°.")
    expect(thing(page, "Barrel")).to_be_focused()
    fly(page)
    barrel = episode(page)["layout"]["landmarks"][0]
    assert (barrel["x"], barrel["y"], barrel["yaw"]) == pytest.approx((1.2, 0.6, math.pi / 12), abs=1e-3)
    thing(page, "Pumpkin").focus()
    page.keyboard.press("Delete")
    expect(page.locator("#things-list li")).to_have_count(3)
    expect(thing(page, "Anvil")).to_be_focused()


def test_a_landmark_can_be_added_and_moved_by_buttons_alone(page):
    page.select_option("#add", "Apple")
    x, y = place_of(page, "Apple")
    page.get_by_role("button", name="Turn left").click()
    page.get_by_role("button", name="Down", exact=True).click()
    expect(page.locator("#things-said")).to_contain_text("turned 15°")
    assert place_of(page, "Apple") == pytest.approx((x - 0.1, y), abs=0.006)
    expect(page.locator("#notice")).to_be_hidden()


def test_who_removes_the_last_landmark_by_its_button_keeps_the_keyboard(page):
    thing(page, "Barrel").click()
    for _landmark in LAYOUT["landmarks"]:
        page.get_by_role("button", name="Remove").press("Enter")
    expect(page.locator("#things-list li")).to_have_count(1)
    expect(thing(page, "Drone")).to_be_focused()


def test_a_landmark_that_cannot_stand_there_goes_back_and_the_reason_is_given(page):
    page.mouse.move(*pixel(page, 1.0, 0.5))  # the barrel
    page.mouse.down()
    page.mouse.move(*pixel(page, -0.5, 0.9), steps=3)
    page.mouse.move(*pixel(page, -1.0, 1.0), steps=3)  # onto the anvil
    page.mouse.up()
    expect(page.locator("#notice-text")).to_contain_text("Anvil")
    assert place_of(page, "Barrel") == (1.0, 0.5)


def test_a_layout_survives_saving_and_opening_and_a_bad_one_is_refused_with_the_reason(page):
    with page.expect_download() as download:
        page.click("#save")
    saved = json.loads(download.value.path().read_text())
    assert [(row["name"], row["x"], row["y"]) for row in saved["landmarks"]] == [
        (row["name"], row["x"], row["y"]) for row in LAYOUT["landmarks"]
    ]
    saved["landmarks"][0]["name"] = "Barell"
    open_file(page, saved)
    expect(page.locator("#notice-text")).to_contain_text('did you mean "Barrel"?')


def test_a_link_opened_by_somebody_else_flies_the_same_flight(page, visit, studio):
    page.check("[name=vehicle][value=lab]")
    thing(page, "Barrel").focus()
    page.keyboard.press("ArrowUp")
    fly(page)
    fly(page, "then turn left", "#then")
    page.click("#share")
    link = page.locator("#link")
    expect(link).to_have_value(re.compile("#v=1&d=[A-Za-z0-9_-]+$"))
    other = visit("/" + link.input_value().partition("/#")[2].join(["#", ""]))
    other.wait_for_selector("body[data-phase]:not([data-phase=connecting])")  # it is idle no longer than it must
    other.select_option("#speed", "8")
    expect(other.locator(".quote")).to_have_text("then turn left", timeout=20_000)
    until(other, "ended")
    assert episode(other) == episode(page)
    assert episode(page)["layout"]["landmarks"][0]["x"] == 1.1
    assert len(poses(other)) == 2 * (studio.settings.steps + 7)


def test_a_kept_episode_is_the_downloaded_one_and_can_be_opened_again(page):
    page.select_option("#rival", "other")
    fly(page)
    fly(page, "then turn left", "#then")
    downloaded = episode(page)
    page.click("#keep")
    address = page.get_by_role("link", name="its address").get_attribute("href")
    kept = page.request.get(page.url.partition("/#")[0].rstrip("/") + address).json()
    assert json.dumps(kept, sort_keys=True) == json.dumps(nearly(downloaded, kept), sort_keys=True)
    page.select_option("#rival", "")
    page.fill("#text", "go to the anvil")
    open_file(page, kept)
    expect(page.locator(".quote")).to_have_text(["then turn left"] * 2, timeout=20_000)
    until(page, "ended")
    assert episode(page) == downloaded


def nearly(ours: Any, theirs: Any) -> Any:
    """Ours, with numbers that differ by rounding as theirs."""
    if isinstance(ours, dict):
        return {key: nearly(value, theirs.get(key)) for key, value in ours.items()}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [nearly(one, other) for one, other in zip(ours, theirs, strict=True)]
    if isinstance(ours, float | int) and isinstance(theirs, float | int) and abs(ours - theirs) < 3e-6:
        return theirs
    return ours


def test_an_episode_of_a_policy_that_is_not_there_is_refused_with_the_reason(page):
    document = {"layout": LAYOUT, "start": START, "seed": 1, "vehicle": "sim", "policies": ["x"], "texts": ["go"]}
    open_file(page, document)
    expect(page.locator("#notice-text")).to_have_text("This flight was flown by x, which this studio does not have.")


def test_a_link_that_is_opened_while_a_change_waits_is_flown_as_it_is(page):
    fly(page)
    thing(page, "Barrel").focus()
    page.keyboard.press("ArrowUp")
    page.evaluate("link => { location.href = link }", link_to("then turn left"))
    expect(page.locator(".quote")).to_have_text("then turn left", timeout=20_000)
    until(page, "ended")
    document = episode(page)
    assert document["texts"] == ["then turn left"]
    assert document["layout"]["landmarks"][0]["x"] == 1.0
    page.evaluate("history.replaceState(null, '', '/')")


def test_a_link_holds_exactly_what_decides_a_flight(page):
    fly(page)
    page.click("#share")
    link = page.locator("#link")
    expect(link).to_have_value(re.compile("#v=1"))
    data = link.input_value().partition("&d=")[2]
    content = json.loads(zlib.decompress(base64.urlsafe_b64decode(data + "=="), -15))
    assert set(content) == {"layout", "start", "seed", "vehicle", "policies", "texts"}
    assert content["texts"] == ["go to the barrel"]
    assert [row["name"] for row in content["layout"]["landmarks"]] == ["Barrel", "Anvil", "Pumpkin"]


@pytest.mark.parametrize("data", ["nonsense!", "eJw"], ids=["letters", "short"])
def test_a_damaged_link_is_said_to_be_one_and_the_page_works_on(visit, data):
    page = visit(f"/#v=1&d={data}")
    expect(page.locator("#notice-text")).to_contain_text("This link is damaged")
    fly(ready(page))


def test_a_link_that_the_server_refuses_leaves_a_world_to_go_on_with(visit):
    misspelt = {"schema": 1, "landmarks": [{"name": "Barell", "x": 0, "y": 0}]}
    page = visit(link_to("go to the barrel", layout=misspelt))
    expect(page.locator("#notice-text")).to_contain_text('did you mean "Barrel"?')
    page.wait_for_selector("#things-list li", state="attached")
    fly(ready(page))


def test_a_link_that_unpacks_to_very_much_is_refused(visit):
    page = visit(link_to("go to the barrel", padding=50_000_000))
    expect(page.locator("#notice-text")).to_contain_text("This link is damaged")


def test_what_is_typed_or_shared_never_becomes_html(visit):
    hostile = '<img src=x onerror="document.title=1"> go to the <b>barrel</b>'
    page = visit(link_to(hostile))
    until(page, "idle")
    page.select_option("#speed", "8")
    until(page, "ended")
    expect(page.locator(".quote")).to_have_text(hostile)
    expect(page.locator("#marks mark").first).to_be_attached()
    assert page.locator("main img, form img, .quote b, #marks b").count() == 0
    assert page.title() == "wordwing studio"


def link_to(text: str, padding: int = 0, layout: dict[str, Any] = LAYOUT) -> str:
    """The end of a link's address, made as the protocol says."""
    place = {"layout": layout, "start": START, "seed": 1, "vehicle": "sim"}
    content = json.dumps({**place, "policies": ["small0"], "texts": [text]}).encode() + b" " * padding
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = base64.urlsafe_b64encode(packer.compress(content) + packer.flush()).decode()
    return f"/#v=1&d={data.rstrip('=')}"


def test_a_lost_connection_is_said_and_can_be_made_again(visit):
    sockets: list[Any] = []

    def prepare(page: "Page") -> None:
        page.route_web_socket("**/ws", lambda socket: sockets.append((socket, socket.connect_to_server())))

    page = ready(visit(prepare=prepare))
    fly(page)
    flown = poses(page)
    sockets[-1][0].close(code=1001)
    expect(page.locator("#notice-text")).to_contain_text("The connection to the studio is lost.")
    assert poses(page) == flown  # what was flown stays
    page.get_by_role("button", name="Connect again").click()
    until(page, "idle")
    expect(page.locator("#notice")).to_be_hidden()
    fly(page)
    assert poses(page) == flown


def test_a_connection_that_is_lost_while_the_view_from_above_is_decoded_stays_lost(visit):
    sockets: list[Any] = []

    def prepare(page: "Page") -> None:
        page.add_init_script(SLOW_DECODING)
        page.route_web_socket("**/ws", lambda socket: sockets.append((socket, socket.connect_to_server())))

    page = ready(visit(prepare=prepare))
    thing(page, "Barrel").focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_selector("body[data-decoding]")
    sockets[-1][0].close(code=1001)
    until(page, "lost")
    page.wait_for_selector("body:not([data-decoding])")
    page.wait_for_timeout(300)
    until(page, "lost")
    page.get_by_role("button", name="Connect again").click()
    until(page, "idle")
    fly(page)


def test_a_busy_studio_is_said_to_be_and_can_be_asked_again(visit):
    busy = {"type": "busy", "message": "8 people are flying just now; try again in a minute", "limit": 8}
    refused: list[str] = []

    def prepare(page: "Page") -> None:
        def connect(socket: Any) -> None:
            server = socket.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                if json.loads(message)["type"] == "fly" and not refused:
                    refused.append("once")
                    socket.send(json.dumps(busy))
                else:
                    server.send(message)

            socket.on_message(pass_on)

        page.route_web_socket("**/ws", connect)

    page = ready(visit(prepare=prepare))
    page.click("#fly")
    expect(page.locator("#notice-text")).to_have_text("8 people are flying just now; try again in a minute.")
    until(page, "idle")
    page.get_by_role("button", name="Try again").click()
    until(page, "ended")


def test_a_studio_that_is_full_says_so_also_when_it_closes_the_connection(visit):
    def prepare(page: "Page") -> None:
        def connect(socket: Any) -> None:
            message = "40 pages are open, as many as there is room for; try again later"
            socket.send(json.dumps({"type": "busy", "message": message, "limit": 8}))
            socket.close(code=1013)

        page.route_web_socket("**/ws", connect)

    page = visit(prepare=prepare)
    until(page, "lost")
    expect(page.locator("#notice-text")).to_have_text(
        "40 pages are open, as many as there is room for; try again later."
    )
    expect(page.get_by_role("button", name="Connect again")).to_be_visible()


def test_maps_of_the_start_frame_lie_as_the_view_from_above_does(page):
    x, y, yaw = 0.7, -1.1, 2.0
    frame = start_frame(Pose.level(torch.tensor([[x, y]]), torch.tensor([yaw]), 0.7))
    centres = torch.nn.functional.pad(START_GRID.centres(), (0, 1)).reshape(1, -1, 3)
    expected = map_pixels(frame.apply(centres)[0, :, :2].numpy(), 400).reshape(64, 64, 2)
    a, b, c, d, e, f = page.evaluate(
        """async ([x, y, yaw]) => {
            const { mapTransform } = await import("/static/geometry.js");
            return mapTransform([x, y, yaw], { cells: 64, size: 9.4 }, 400, 5);
        }""",
        [x, y, yaw],
    )
    row, column = np.mgrid[:64, :64] + 0.5
    assert np.stack([a * column + c * row + e, b * column + d * row + f], -1) == pytest.approx(expected, abs=1e-3)


def test_nothing_reaches_out_of_the_page_at_the_side(visit):
    page = ready(visit(viewport=PHONE))
    page.select_option("#rival", "other")
    fly(page, "go to the barrelwithaverylongnamethatnobodyhasevertypedbeforeandthatdoesnotend " * 3)
    first, second = (lane.bounding_box() for lane in page.locator(".lane").all())
    assert first["y"] + first["height"] <= second["y"]  # one below the other, each as wide as the page
    assert first["width"] == second["width"] > 0.9 * PHONE["width"]
    for width in (320, 390, 768, 1024, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ends = page.locator("button:visible, select:visible, input:visible, canvas:visible").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().right)"
        )
        assert max(ends) <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_to_complain_about(visit, viewport, theme):
    page = ready(visit(viewport=viewport, color_scheme=theme))
    assert_accessible(page)
    fly(page, "go to the flumpkin")
    thing(page, "Barrel").focus()
    assert_accessible(page)


def test_the_switch_changes_the_theme_and_is_remembered(visit):
    page = visit(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(250, 250, 248)"
    page.get_by_role("button", name="Dark", exact=True).click()
    assert page.evaluate(paper) == "rgb(21, 24, 27)"
    page.reload()
    expect(page.get_by_role("button", name="Dark", exact=True)).to_have_attribute("aria-pressed", "true")
    assert page.evaluate(paper) == "rgb(21, 24, 27)"
