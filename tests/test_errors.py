"""Sentences about files that others wrote: nothing in them reaches the terminal but letters."""

import json

import pytest

from command_line import refused
from wordwing.errors import WordwingError, printable
from wordwing.flight.logs import FlightLog
from wordwing.flight.replay import replay
from wordwing.world.layout import Layout

CLEAR = "\x1b[2J\x1b]0;gone\x07"
"""Clears the screen and renames the window."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("go to the café, 20 × 3 m²", "go to the café, 20 × 3 m²"),
        (CLEAR, "\\x1b[2J\\x1b]0;gone\\x07"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("safe\u202efdp.exe", "safe\\u202efdp.exe"),
        ("half \ud800 pair", "half \\ud800 pair"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(text, shown):
    assert printable(text) == str(WordwingError(text)) == shown


def test_a_complaint_about_a_file_does_not_obey_what_is_in_it(tmp_path, capsys):
    place = tmp_path / f"{CLEAR.replace('/', '')}.json"
    place.write_text(json.dumps({"schema": 1, "landmarks": [], CLEAR: 1}))
    said = refused(capsys, "fly", "go", "--layout", str(place))
    assert "\x1b" not in said
    assert "\\x1b[2J" in said


def test_the_film_of_a_log_does_not_obey_what_is_in_it(tmp_path):
    with FlightLog(tmp_path / "log") as log:
        log.begin(1.0, 1.0, f"go {CLEAR}", f"some{CLEAR}body", f"mavlink:{CLEAR}", None, Layout(()))
        for time in (1, 2):
            log.event(time, "observation", position=[0, 0, 0.7], quaternion=[0, 0, 0, 1], frame=None)
    said: list[str] = []
    replay(tmp_path / "log", tmp_path / "film", say=said.append)
    assert said
    assert all(line.isprintable() for line in said)
