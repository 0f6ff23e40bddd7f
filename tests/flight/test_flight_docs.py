"""What docs/flight.md says is so."""

import json
import re
from pathlib import Path

import pytest

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.calibration import Calibration
from wordwing.flight.decision_latency import DECISIONS
from wordwing.flight.flying import STEPS
from wordwing.flight.guardian.safety import FlightLimits, Timeouts
from wordwing.flight.mavlink.flight_stacks import FLIGHT_STACKS, OUR_COMPONENT, OUR_SYSTEM
from wordwing.flight.mavlink.link import LOCAL_PORTS
from wordwing.interface import CONTROL_PERIOD, FlightOverError

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "flight.md").read_text("utf-8")


def parameter_rows(stack: str) -> list[tuple[str, str, str]]:
    """Name, range and reason of the rows of a table of parameters."""
    table = PAGE.partition(f"\n**{stack}**\n")[2].strip().split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return [(re.match(r"`(\w+)`", name)[1], wanted, why) for name, wanted, why in rows]


@pytest.mark.parametrize("stack", FLIGHT_STACKS, ids=lambda stack: stack.name)
def test_the_tables_of_parameters_are_what_is_checked_before_arming(stack):
    assert parameter_rows(stack.name) == [(entry.name, entry.range, entry.why) for entry in stack.wanted]
    for entry in stack.wanted:
        for name, _scale in entry.older:
            assert f"(older: `{name}`" in PAGE


def test_the_files_that_are_shown_can_be_read(tmp_path):
    for name, text in zip(("arena", "camera"), re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL), strict=True):
        (tmp_path / name).write_text(text)
    assert Arena.load(tmp_path / "arena").heading_deg == 125.0
    assert Calibration.load(tmp_path / "camera").width == 1280
    [pose] = re.findall(r"datagram: `(.*?)`", PAGE)
    assert set(json.loads(pose.replace("[x, y, z]", "[1, 2, 3]").replace("[w, x, y, z]", "[1, 0, 0, 0]"))) == {
        "time",
        "name",
        "position",
        "quaternion",
    }


def test_the_times_and_limits_of_the_failsafes_are_the_guardians():
    times, limits = Timeouts(), FlightLimits()
    for said in (
        f"a decision is older than {times.decision:g} s",
        f"lands after another {times.hold:g} s",
        f"older than {times.image:g} s at the decision",
        f"silent for {times.pilot:g} s",
        f"pose is older than {times.pose:g} s",
        f"heartbeat is older than {times.heartbeat:g} s",
        f"suspended for {times.tick:g} s",
        f"roll or pitch over {round(limits.tilt * 57.29578)}°, height over {limits.ceiling:g} m",
        f"battery below {limits.battery * 100:g} %, flight longer than {limits.flight_time:g} s",
        f"system {OUR_SYSTEM}, component {OUR_COMPONENT}",
    ):
        assert said in PAGE, said


def test_the_pilots_numbers_are_those_of_the_page():
    for said in (
        f"| {FlightOverError.status} | a take-off was commanded",
        f"| {WordwingError.status} | refused before",
        f"its {STEPS} decisions were flown",
        f"longer than the control period, {CONTROL_PERIOD:g} s",
        f"{LOCAL_PORTS[14550 % len(LOCAL_PORTS)]} for port 14550",
    ):
        assert said in PAGE, said
    assert DECISIONS == 10
    assert "ten decisions are timed" in PAGE


def test_every_image_and_section_that_is_linked_is_there():
    for target in re.findall(r"\]\(([^)]+)\)", PAGE.replace("\n", " ")):
        if target.startswith("#"):
            titles = [line.lstrip("# ").lower().replace(" ", "-") for line in PAGE.splitlines() if line.startswith("#")]
            assert target[1:] in titles
        else:
            assert (DOCS / target).exists()
