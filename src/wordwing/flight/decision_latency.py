"""How long a policy takes to decide, measured before a drone is armed."""

import torch

from wordwing.errors import WordwingError
from wordwing.execution.runner import decide
from wordwing.flight.guardian.protocol import PhaseReason
from wordwing.flight.mavlink.clock import Clock
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, FLIGHT_HEIGHT, Observation, Policy

DECISIONS = 10
"""How many decisions are timed."""

SLOWER = "serve the lab, and fly it, with the same lower --speed"
"""What helps with the lab only."""


def decision_latency(policy: Policy, instruction: str, clock: Clock) -> float:
    """How long the slowest of some decisions takes, seconds of a clock; the first is not timed, because it loads."""
    noise = torch.Generator().manual_seed(0)
    slowest = 0.0
    for number in range(DECISIONS + 1):
        pose = Pose.level(torch.tensor([[0.1 * number, 0.0]]), torch.tensor([0.2 * number]), FLIGHT_HEIGHT)
        image = torch.randint(0, 256, (1, 72, 128, 3), dtype=torch.uint8, generator=noise)
        if number == 0:
            policy.reset([instruction], pose)
        began = clock.now()
        decide(policy, Observation(image, pose, torch.tensor([CONTROL_PERIOD * number])))
        if number > 0:
            slowest = max(slowest, clock.now() - began)
    return slowest


def check_latency(latency: float, *, lab: bool) -> None:
    """Raise if decisions come too late for a flight.

    Args:
        latency: Of the slowest decision, seconds.
        lab: Whether it is wordwing's lab that would be flown.
    """
    if latency > CONTROL_PERIOD:
        raise WordwingError(f"the drone stays on the floor: {too_slow(latency, lab=lab)}")


def too_slow(latency: float, *, lab: bool) -> str:
    """The end of a sentence about a decision that took longer than it may."""
    return (
        f"a decision took {latency:.2f} s and may take {CONTROL_PERIOD} s; this machine is probably busy: "
        f"end other programs (top shows them), {f'{SLOWER}, ' if lab else ''}or take another --policy"
    )


UNCHANGED = 1.0
"""A camera that has shown nothing new for longer is the cause, seconds."""


def likely_cause(
    reason: PhaseReason | None, *, lab: bool, latency: float, unchanged: float, failure: str | None = None
) -> str:
    """The end of a sentence about a flight that the guardian has ended, or nothing.

    Args:
        reason: The guardian's.
        lab: Whether it was wordwing's lab.
        latency: How long the slowest decision took, seconds.
        unchanged: How long the camera has shown nothing new, seconds.
        failure: What is wrong with the camera, if anything is known.
    """
    if reason == "no decision":
        if latency > CONTROL_PERIOD:
            return f"; {too_slow(latency, lab=lab)}"
        if unchanged > UNCHANGED:
            return f"; the camera has shown nothing new for {unchanged:.1f} s{f' ({failure})' if failure else ''}"
        return f"; no decision took longer than {latency:.2f} s, but this machine may be busy (top shows with what)"
    if lab and reason == "old pose":
        return f"; on a busy machine the lab falls behind its clock: end other programs (top shows them), or {SLOWER}"
    return ""
