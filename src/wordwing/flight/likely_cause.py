"""Why a flight probably ended early: what the pilot knows of itself besides what the guardian saw."""

from __future__ import annotations

from wordwing.flight.decision_latency import SLOWER, too_slow
from wordwing.interface import CONTROL_PERIOD

NO_DECISIONS = ("it has hovered for", "the pilot has been silent for")
"""In the guardian's reason when decisions did not come, or were too old."""

OLD_POSE = "the newest pose is"
"""In its reason when poses were too old."""

UNCHANGED = 1.0
"""A camera that has shown nothing new for longer is the cause, seconds."""


def likely_cause(why: str, *, lab: bool, latency: float, unchanged: float, failure: str | None = None) -> str:
    """The end of a sentence about a flight that the guardian has ended, or nothing.

    Args:
        why: The guardian's reason.
        lab: Whether it was wordwing's lab.
        latency: How long the slowest decision took, seconds.
        unchanged: How long the camera has shown nothing new, seconds.
        failure: What is wrong with the camera, if anything is known.
    """
    if any(reason in why for reason in NO_DECISIONS):
        if latency > CONTROL_PERIOD:
            return f"; {too_slow(latency, lab=lab)}"
        if unchanged > UNCHANGED:
            return f"; the camera has shown nothing new for {unchanged:.1f} s{f' ({failure})' if failure else ''}"
        return f"; no decision took longer than {latency:.2f} s, but this machine may be busy (top shows with what)"
    if lab and OLD_POSE in why:
        return f"; on a busy machine the lab falls behind its clock: end other programs (top shows them), or {SLOWER}"
    return ""
