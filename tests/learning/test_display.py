import io
import time

import pytest
from rich.console import Console

from wordwing.learning.runtime.display import Display


class Screen:
    def __init__(self, live, width=120):
        self.now = 0.0
        self.file = io.StringIO()
        self.console = Console(file=self.file, force_terminal=live, width=width, color_system=None)
        self.display = Display("SuReAL", self.console, live, clock=lambda: self.now)

    @property
    def text(self):
        return self.file.getvalue()

    @property
    def lines(self):
        return self.text.splitlines()


A = {
    "phase": "learning",
    "done": 40,
    "total": 400,
    "rates": {"contexts/s": 15023.4},
    "metrics": {"loss": 0.123456, "goal error": None},
}
B = {"phase": "waiting", "done": 0, "total": 1000}


def test_without_a_terminal_there_is_a_line_every_30_seconds():
    screen = Screen(live=False)
    with screen.display as display:
        display.show(None, None)
        assert screen.lines == []
        for second in range(0, 66):
            screen.now = float(second)
            display.show(A | {"done": 40 + 2 * second}, None)
        assert len(screen.lines) == 3
        display.show(A | {"done": 400}, B)
    first, _second, third, last = screen.lines
    assert first == "SuReAL, 0:00; A stage 1: learning, 40/400, 15,023 contexts/s, loss 0.123, goal error –"
    # 160 of 400 are done, at 2 a second since the first sight: 240 are left
    assert third.startswith("SuReAL, 1:00; A stage 1: learning, 160/400, 2:00 left, 15,023 contexts/s")
    assert last.startswith("SuReAL, 1:05; A stage 1: learning, 400/400, 0:00 left")
    assert last.endswith("B stage 2: waiting, 0/1,000")
    assert "\x1b" not in screen.text


def test_on_a_terminal_each_process_has_a_line():
    screen = Screen(live=True)
    with screen.display as display:
        display.show(A, B)
        screen.now = 100.0
        display.show(A | {"done": 140}, B)
    title, a, b = [line for line in screen.lines if "SuReAL" in line or "stage" in line][-3:]
    assert title.endswith("SuReAL, 1:40")
    assert a.startswith("A stage 1  ━━━━━━━━━━━━━━━━  learning  140/400  4:20 left  15,023 contexts/s  loss 0.123")
    assert b.startswith("B stage 2  ━━━━━━━━━━━━━━━━  waiting   0/1,000")
    assert a.index("140/400") == b.index("0/1,000")


@pytest.mark.parametrize("width", [30, 80])
def test_lines_stay_lines_in_a_narrow_window(width):
    screen = Screen(live=True, width=width)
    with screen.display as display:
        display.show(A | {"metrics": {f"figure {n}": n for n in range(40)}}, B)
    shown = [line for line in screen.lines if "stage" in line]
    assert len(shown) == 2
    assert all(len(line) <= width for line in shown)


@pytest.mark.parametrize("live", [False, True])
def test_a_message_is_shown_once(live):
    screen = Screen(live)
    with screen.display as display:
        for _time in range(5):
            screen.now += 1
            display.show(A, B | {"message": "waits for [stage 1]"})
    assert screen.text.count("B stage 2: waits for [stage 1]") == 1


def test_time_left_is_counted_from_the_beginning_of_a_phase():
    screen = Screen(live=False)
    with screen.display as display:
        display.show(A | {"phase": "warm-up", "done": 0, "total": 10}, None)
        screen.now = 50.0
        display.show(A | {"phase": "warm-up", "done": 10, "total": 10}, None)
        screen.now = 100.0
        display.show(A | {"done": 0, "total": 300}, None)
        screen.now = 130.0
        display.show(A | {"done": 60, "total": 300}, None)
    assert "left" not in screen.lines[2]
    assert "60/300, 2:00 left" in screen.lines[3]


def test_a_process_that_says_nothing_for_long_is_called_silent():
    screen = Screen(live=False)
    with screen.display as display:
        display.show(A | {"time": time.time() - 75}, B | {"done": 1000, "time": time.time() - 75})
    assert "A stage 1: learning, silent 1:15, 40/400" in screen.text
    assert "B stage 2: waiting, 1,000/1,000" in screen.text


def test_a_process_that_cannot_be_heard_for_a_moment_keeps_its_figures():
    screen = Screen(live=False)
    with screen.display as display:
        display.show(A, B)
        screen.now = 31.0
        display.show(None, B)
    assert "A stage 1: learning, 40/400, 15,023 contexts/s" in screen.lines[1]


def test_anything_may_be_said():
    screen = Screen(live=False)
    with screen.display as display:
        display.show({"phase": None, "done": "x", "total": [], "rates": 3, "metrics": {"a": "b"}, "time": "now"}, {})
        screen.now = 31.0
        display.show({"done": float("nan"), "total": 5, "metrics": {"loss": float("nan")}}, {"total": 5, "done": 9})
    assert "loss nan" in screen.text


def test_stderr_that_is_no_terminal_gets_plain_lines(capsys):
    with Display("cloning") as display:
        display.show(A, None)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("cloning, 0:00; A stage 1: learning")
    assert output.err.count("\n") == 1
    assert "\x1b" not in output.err
