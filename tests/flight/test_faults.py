"""Whatever goes wrong: the drone stays in the arena and comes down, and its log says why."""

import math

import pytest

from fault_flight import FLYING, KINDS, Story, fly_with_a_fault
from wordwing.frames import ARENA_HALF

REASONS = {
    "nothing": ["the pilot ordered it"],
    "dead link": ["silent", "pose is"],
    "frozen picture": ["image was"],
    "no pictures": ["older than 0.6 s", "image was"],
    "jump": ["motion capture jumped"],
    "dropout": ["motion capture is lost"],
    "drift": ["the pilot ordered it"],  # nobody can see it
    "battery": ["battery", "mode is"],
    "refusal": ["refused to arm"],
    "takeover": ["without our order"],
    "free takeover": ["without our order"],
    "reboot": ["started anew", "without our order", "pose is"],
    "killed pilot": ["the pilot is gone"],
    "hung pilot": ["the pilot has been silent", "older than 0.6 s"],
    "crashed policy": ["the pilot ordered it"],
}
"""One of these must be in the last words of such a flight."""

EARLY = ["refused to", "did not happen", "did not hover"]
"""Or one of these, if it went wrong during the take-off."""

ARM, MODE = 400, 176


def hold_to_account(story: Story) -> None:
    what = f"{story.kind} at {story.moment:.1f} s, {story.autopilot}: {story.phase}, {story.why}"
    for _time, wanted in story.setpoints:
        ahead = 0 <= wanted.forward <= 0.7 + 1e-6 and abs(wanted.left) <= 0.2 + 1e-6  # led back from a fence beside it
        assert ahead or math.hypot(wanted.forward, wanted.left) <= 0.2 + 1e-6, what  # holds its place
        assert abs(wanted.up) <= 0.3 + 1e-6, what
        assert abs(wanted.yaw_rate) <= 1 + 1e-6, what
    assert story.furthest < ARENA_HALF, f"{what}; it was at {story.furthest:.2f} m"
    assert story.highest < 1.5, what
    arming = [(command, answer) for _time, command, answer in story.commands if command.command == ARM]
    assert all(command.param1 == 1 and command.param2 == 0 for command, _answer in arming), what
    assert sum(answer == 0 for _command, answer in arming) <= 1, what
    landed = not story.armed and story.height < 0.2
    in_other_hands = story.phase == "released" and story.speed < 1.0
    assert landed or in_other_hands, f"{what}; {story.mode} at {story.height:.2f} m"
    if story.kind in ("takeover", "free takeover"):
        assert all(command.command != MODE or time < story.moment + 0.3 for time, command, _answer in story.commands), (
            what
        )
        assert all(time < story.moment + 0.3 for time, _wanted in story.setpoints), what
    expected = REASONS.get(story.kind, [""]) + (EARLY if story.moment < FLYING else [])
    assert any(part in story.why for part in expected), what
    phases = [event.text for event in story.events if event.kind == "phase"]
    assert phases, what


@pytest.mark.parametrize("seed", range(20), ids=lambda seed: KINDS[seed])
def test_a_drone_in_trouble_stays_inside_and_comes_down(seed):
    hold_to_account(fly_with_a_fault(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 200))
def test_two_hundred_drones_in_trouble_stay_inside_and_come_down(seed):
    hold_to_account(fly_with_a_fault(seed))
