import threading

import pytest
from websockets.exceptions import ConnectionClosed

from running_server import wait_until
from studio_server import START, RunningStudio, poses
from wordwing.studio import sessions


def test_a_paused_flight_waits_and_goes_step_by_step(studio):
    with studio.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly()
        page.until("state", phase="flying")
        page.say("pause")
        page.until("state", phase="paused")
        page.listen(0.2)  # a decision may have been under way
        count = len(page.frames)
        assert count < 12
        assert page.listen(0.3) == 0
        for number in (1, 2, 3):
            page.say("step")
            page.until("state", phase="paused")
            page.listen(0.3)
            assert len(page.frames) == count + number
        page.say("resume")
        page.until("state", phase="flying")
        page.until("ended")
    assert [header["step"] for header, _arrays in page.frames] == list(range(len(page.frames)))


def test_speed_1_is_real_time_at_most(studio):
    with studio.page() as page:
        page.place()
        page.say("speed", value=1)
        page.fly()
        page.until("state", phase="flying")
        assert 5 <= page.listen(2.0) <= 8  # 2.0 / 0.3 is 6.7
        page.say("stop")
        assert page.until("ended")["reason"] == "stopped"


def test_a_second_instruction_begins_where_the_first_ended(studio):
    with studio.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly()
        page.until("state", phase="ended")
        first = len(page.frames)
        page.fly("left of the barrel", **{"continue": True})
        page.until("state", phase="ended")
        last, begun = page.frames[first - 1][0], page.frames[first][0]
        assert begun["pose"] == last["pose"]
        assert begun["frame"] == pytest.approx([*last["pose"][:2], last["pose"][5]], abs=1e-5)
        assert (begun["step"], begun["instruction"]) == (0, 1)
        assert begun["time"] == pytest.approx(last["time"])
        page.fly()  # without "continue" from the placed start
        page.until("state", phase="ended")
    assert poses(page)[-first:] == poses(page)[:first]


def test_two_policies_fly_side_by_side(studio):
    with studio.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly(policies=("small0", "other"))
        assert {page.until("ended")["lane"] for _lane in range(2)} == {0, 1}
        alone = {}
    assert poses(page, 0)[0] == poses(page, 1)[0]
    assert poses(page, 0)[-1] != poses(page, 1)[-1]
    for lane, name in enumerate(("small0", "other")):
        with studio.page() as other:
            other.place()
            other.say("speed", value=8)
            other.fly(policies=(name,))
            other.until("ended")
        alone[lane] = poses(other)
        assert poses(page, lane) == alone[lane]


def test_reset_breaks_a_flight_off_and_puts_the_drone_back(studio):
    with studio.page() as page:
        page.place()
        page.fly()
        page.until("state", phase="flying")
        page.say("reset")
        page.until("state", phase="idle")
        page.fly(**{"continue": True})
        assert "nothing has been flown" in page.until("error")["message"]
        page.frames.clear()
        page.say("speed", value=8)
        page.fly()
        page.until("ended")
    assert page.frames[0][0]["pose"][:2] == pytest.approx([START["x"], START["y"]])


def test_more_visitors_than_the_limit_are_told_to_wait_and_a_closed_page_frees_its_place(policies, tmp_path):
    with RunningStudio(policies, tmp_path, limit=2, steps=100) as small:
        pages = [small.page() for _number in range(3)]
        for page in pages[:2]:
            page.place()
            page.fly()
            page.until("state", phase="flying")
        pages[2].place()
        pages[2].fly()
        busy = pages[2].hear()
        assert (busy["type"], busy["limit"]) == ("busy", 2)
        pages[0].connection.close()
        wait_until(lambda: small.resources.flying == 1)
        pages[2].fly()
        assert pages[2].hear()["type"] == "state"
        pages[1].say("reset")
        pages[1].until("state", phase="idle")
        assert small.resources.flying == 1
        pages[2].connection.close()
        wait_until(lambda: small.resources.flying == 0)
        pages[1].connection.close()
        wait_until(lambda: small.server.config.app.state.pages == 0)


def test_a_flight_that_is_paused_for_long_gives_its_place_up_and_takes_one_again(policies, tmp_path, monkeypatch):
    monkeypatch.setattr("wordwing.studio.sessions.GRACE", 0.2)
    with RunningStudio(policies, tmp_path, limit=1, steps=8) as small, small.page() as first, small.page() as second:
        for page in (first, second):
            page.place()
            page.fly()
            if page is first:
                page.until("state", phase="flying")
                page.say("pause")
                page.until("state", phase="paused")
                assert small.resources.flying == 1
                wait_until(lambda: small.resources.flying == 0)
        second.until("state", phase="flying")
        for button in ("resume", "step"):
            first.say(button)
            assert first.until("busy")["limit"] == 1
        seen = len(first.frames)
        second.say("speed", value=8)
        second.until("state", phase="ended")
        wait_until(lambda: small.resources.flying == 0)
        assert first.listen(0.2) == 0
        first.say("speed", value=8)
        first.say("step")
        first.until("state", phase="paused")
        first.say("resume")
        first.until("state", phase="ended")
        wait_until(lambda: small.resources.flying == 0)
    assert seen < len(first.frames)
    assert [header["step"] for header, _arrays in first.frames] == list(range(8 + 7))


def test_visitors_take_turns(policies, tmp_path):
    with RunningStudio(policies, tmp_path, steps=40, workers=1) as small:
        pages = [small.page() for _number in range(4)]
        for page in pages:
            page.place()
            page.say("speed", value=8)
        ready = threading.Barrier(len(pages))

        def fly(page):
            ready.wait()
            page.fly()
            page.listen(1.5)

        threads = [threading.Thread(target=fly, args=(page,)) for page in pages]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for page in pages:
            page.connection.close()
    counts = [len(page.frames) for page in pages]
    assert min(counts) > 0.7 * max(counts)


def test_a_page_that_says_nothing_is_let_go(policies, tmp_path):
    with RunningStudio(policies, tmp_path, idle=0.3) as small, small.page() as page:
        assert page.hear()["type"] == "error"
        with pytest.raises(ConnectionClosed):
            page.hear()


def test_what_cannot_be_continued_or_pressed_is_answered(studio):
    with studio.page() as page:
        page.place()
        page.say("pause")  # nothing flies: a button that was pressed too late
        page.fly(**{"continue": True})
        assert "nothing has been flown yet" in page.until("error")["message"]
        page.say("speed", value=8)
        page.fly()
        page.until("state", phase="ended")
        page.fly(policies=("small0", "other"), **{"continue": True})
        assert "with as many drones as before" in page.until("error")["message"]


def test_so_many_instructions_follow_one_another_and_no_more(studio, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_TEXTS", 1)
    with studio.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly()
        page.until("state", phase="ended")
        page.fly(**{"continue": True})
        assert page.until("error")["message"].startswith("1 instructions are the most")
