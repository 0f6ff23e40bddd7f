"""Did a flight do what it was told? Clause by clause: ✓ passed the barrel on its left, ✗ did not turn around.

What is not understood is not judged: rather no verdict than a wrong one. A clause with a word in it that nothing
explains gets neither ✓ nor ✗, and then nothing is said of the whole.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordwing.execution.execution import Execution
from wordwing.language.meaning.clauses import Clause, Kind, Reference
from wordwing.language.meaning.judge import judge
from wordwing.language.parser.parsing import Parsed, parse
from wordwing.language.text_checks import missing_landmarks
from wordwing.world.layout import Layout

DONE, MISSED = "✓", "✗"

BROKEN_OFF = "not judged: the flight was broken off"

LONGEST = 60
"""Characters of what is quoted."""


@dataclass(frozen=True)
class Verdict:
    """What can be said about whether a flight did everything that it was told."""

    summary: str
    followed: bool | None
    """None where that is not judged."""
    clauses: tuple[tuple[str, bool], ...] = ()
    """In order what was understood and whether it was done: ("passed the barrel on its left", True)."""

    @property
    def lines(self) -> list[str]:
        """For a screen or an image: a line for each clause, and the summary."""
        return [f"{DONE if done else MISSED} {words}" for words, done in self.clauses] + [self.summary]


def verdict(flight: Execution) -> Verdict:
    """What the judge says of a flight, by what the parser makes of its instruction.

    A drone that is where it was told to rest when its time is up, but has not stopped, has not come to rest.
    """
    task = flight.task
    parsed = parse(task.instruction, task.layout, task.start_xy)
    if parsed.unclear or not parsed.meaning:
        missing = bool(parsed.unclear) and set(parsed.unclear) <= set(
            missing_landmarks(task.instruction, task.layout).names
        )
        return Verdict(f"not judged: {_not(parsed.unclear, 'in the layout' if missing else 'understood')}", None)
    judged = judge(parsed.meaning, flight.path, task.start_yaw, task.layout)
    last = len(parsed.meaning) - 1
    late = not flight.stopped
    rested = _rests(parsed.meaning[-1])
    done = [*judged.done[:-1], judged.done[-1] and not (late and rested)]
    clauses = tuple(
        (
            f"was {_where(clause, task.layout)} when its time was up, but had not stopped"
            if late and rested and place == last and judged.done[-1]
            else clause_words(clause, task.layout, done[place], last=place == last),
            done[place],
        )
        for place, clause in enumerate(parsed.meaning)
        if place not in parsed.doubtful
    )
    if parsed.unknown:
        return Verdict(f"not judged: {_not(parsed.unknown, 'understood')}", None, clauses)
    if late and all(done):
        return Verdict(
            "not judged: it had not stopped when its time was up; all else was done, says the judge", None, clauses
        )
    return Verdict(f"{_counted(done)}, says the judge{_doubt(parsed)}", all(done), clauses)


def _counted(done: Sequence[bool]) -> str:
    if all(done):
        return "everything that was said was done"
    if len(done) == 1:
        return "what was said was not done"
    return f"{sum(done)} of {len(done)} things that were said were done"


def _doubt(parsed: Parsed) -> str:
    """What else could change the verdict."""
    return f"; by {_quoted(parsed.ambiguous[:1])} another one may be meant" if parsed.ambiguous else ""


def _not(texts: Sequence[str], what: str) -> str:
    """`"boat", "barrel" are not understood`; of nothing in particular, the instruction."""
    return f"{_quoted(texts) or 'the instruction'} {'are' if len(texts) > 1 else 'is'} not {what}"


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(f'"{text[: LONGEST - 1]}…"' if len(text) > LONGEST else f'"{text}"' for text in texts)


_VERBS: dict[Kind, tuple[str, str]] = {
    "turn": ("turn", "turned"),
    "turn_around": ("turn", "turned"),
    "turn_to": ("turn", "turned"),
    "pass": ("pass", "passed"),
    "circle": ("circle", "circled"),
    "hug": ("keep", "kept"),
    "reach": ("reach", "reached"),
    "reach_side": ("get", "got"),
    "reach_fence": ("reach", "reached"),
    "reach_own_side": ("get", "got"),
    "reach_between": ("get", "got"),
    "face": ("face", "faced"),
    "abeam": ("get", "got"),
    "leave": ("leave", "left"),
    "return": ("come", "came"),
    "avoid": ("keep", "kept"),
    "spin": ("spin", "spun"),
    "look": ("look", "looked"),
    "move": ("move", "moved"),
    "hover": ("hover", "hovered"),
}
"""What is done, and was done; all else is flown."""

_PLACES = {"front": "in front of", "behind": "behind", "left": "to the left of", "right": "to the right of"}
_OWN = {"front": "front", "behind": "back", "left": "left", "right": "right"}
_WAYS = {"front": "forward", "behind": "backwards", "left": "to the left", "right": "to the right"}
_OTHER = {"left": "right", "right": "left"}


def clause_words(clause: Clause, layout: Layout, done: bool, last: bool = False) -> str:
    """A clause as what was done or was not: "passed the barrel on its left", "did not turn around".

    Args:
        clause: What was to be done.
        layout: Where.
        done: Whether it was.
        last: Whether nothing comes after it: whatever is reached then is where the flight comes to rest.
    """
    verb, past = _VERBS.get(clause.kind, ("fly", "flew"))
    rest = _rest(clause, layout)
    if last and _rests(clause):
        verb, past, rest = "come to rest", "came to rest", _where(clause, layout)
    return f"{past} {rest}" if done else f"did not {verb} {rest}"


def _rests(clause: Clause) -> bool:
    """Whether a drone that does this clause last is to come to rest there."""
    return clause.kind.startswith(("reach", "abeam", "face"))


def _where(clause: Clause, layout: Layout) -> str:
    """Where a clause has the drone rest: "at the boat", "facing the boat", "behind the boat"."""
    word = {"face": "facing ", "reach": "at ", "reach_fence": "at "}.get(clause.kind, "")
    return f"{word}{_rest(clause, layout)}"


def _rest(clause: Clause, layout: Layout) -> str:
    """What stands behind the verb."""
    things = [_thing(entry, layout) for entry in clause.references]
    thing, side = things[0] if things else "", clause.side or ""
    amount = clause.amount or 0.0
    held = f"{amount:.2g} m " if amount else ""
    both = " and ".join(things)
    # A drone that passes a barrel on the left, as seen by someone facing it, has it on its right.
    rests: dict[Kind, str] = {
        "turn": f"{side} by {math.degrees(amount):.0f}°",
        "turn_around": "around",
        "turn_to": f"to {thing}",
        "straight": "straight on",
        "forward": f"{amount:.2g} m straight on",
        "curve": f"in a curve to the {side}",
        "pass": f"{thing} on its {_OTHER.get(side, '')}",
        "circle": f"{thing} {'counterclockwise' if side == 'left' else 'clockwise'} by {math.degrees(amount):.0f}°",
        "hug": f"close to {thing}, with it on the {side}",
        "between": f"between {both}",
        "toward": f"towards {thing}",
        "reach": thing,
        "reach_side": f"{_PLACES.get(side, '')} {thing}",
        "reach_own_side": f"to {thing}'s own {_OWN.get(side, '')}",
        "reach_fence": thing,
        "reach_between": f"between {both}",
        "face": thing,
        "abeam": f"beside {thing}, with it on the {side}",
        "along": f"along {thing}, with it on the {side}",
        "leave": f"{thing} behind",
        "return": "back to where it started",
        "avoid": f"{held}away from {thing}",
        "spin": f"{side} by {math.degrees(amount):.0f}°",
        "look": f"at {thing}",
        "move": f"{_WAYS.get(side, '')} by {amount:.2g} m",
        "hover": f"for {amount:.2g} s",
    }
    return f"{rests[clause.kind]}, {held}away" if held and clause.kind.startswith("reach") else rests[clause.kind]


def _thing(reference: Reference, layout: Layout) -> str:
    return (
        f"the {reference} fence" if isinstance(reference, str) else f"the {layout.landmarks[reference].kind.nouns[0]}"
    )
