"""What an instruction means: an ordered list of typed clauses over landmarks and fences.

The writer (`writing.writer`) begins with a meaning and puts it into words; the judge (`meaning.judge`) takes a
meaning and a flown path and says how well the one was followed by the other. "Left" and "right" are the flying drone's,
always: `Clause("pass", 3, side="left")` has landmark 3 on the drone's left, whatever words are chosen for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from wordwing.errors import WordwingError
from wordwing.world.fences import FENCES

Kind = Literal[
    "turn",
    "turn_around",
    "turn_to",
    "straight",
    "forward",
    "curve",
    "pass",
    "circle",
    "hug",
    "between",
    "toward",
    "reach",
    "reach_side",
    "reach_fence",
    "reach_between",
    "face",
    "abeam",
    "along",
    "leave",
    "return",
    "avoid",
    "reach_own_side",
    "spin",
    "look",
    "move",
    "hover",
]
Side = Literal["left", "right", "front", "behind"]
Reference = int | str
"""A landmark by its place in the layout's list, or a fence by its colour."""

KINDS: tuple[Kind, ...] = get_args(Kind)
COLOURS = tuple(fence.colour for fence in FENCES)

MAX_AMOUNT = 1000.0
"""Most metres, radians or seconds of one clause: beyond it is only nonsense."""

_NEEDS: dict[Kind, tuple[str, ...]] = {
    "turn": ("side", "amount"),
    "turn_around": (),
    "turn_to": ("reference",),
    "straight": (),
    "forward": ("amount",),
    "curve": ("side",),
    "pass": ("reference", "side"),
    "circle": ("reference", "side", "amount"),
    "hug": ("reference", "side"),
    "between": ("reference", "other"),
    "toward": ("reference",),
    "reach": ("reference",),
    "reach_side": ("reference", "side"),
    "reach_fence": ("reference",),
    "reach_between": ("reference", "other"),
    "face": ("reference",),
    "abeam": ("reference", "side"),
    "along": ("reference", "side"),
    "leave": ("reference",),
    "return": (),
    "avoid": ("reference",),
    "reach_own_side": ("reference", "side"),
    "spin": ("side", "amount"),
    "look": ("reference",),
    "move": ("side", "amount"),
    "hover": ("amount",),
}
_WITH_DISTANCE: tuple[Kind, ...] = ("reach", "reach_side", "reach_own_side", "reach_fence", "avoid")
"""Kinds that may have an amount."""
_ANY_SIDE: tuple[Kind, ...] = ("reach_side", "reach_own_side", "move")
_ONLY_LANDMARKS: tuple[Kind, ...] = ("pass", "circle", "hug", "reach_own_side")
_ONLY_FENCES: tuple[Kind, ...] = ("reach_fence", "along")


@dataclass(frozen=True)
class Clause:
    """One thing to do. Which fields a kind needs is checked by `validate`.

    Kinds: `turn` on the spot by `amount` radians to a `side`; `turn_around`; `turn_to` face `reference`; fly `straight`
    on, or `forward` `amount` metres; `curve` to a `side`; `pass` `reference`, which is on `side`; `circle` it by
    `amount` radians; `hug` it, close by; fly through `between` `reference` and `other`; fly `toward` `reference`;
    `reach` it; `reach_side`: end before, behind, left or right of it as seen from where the clause began;
    `reach_fence`; `reach_between`; end so as to `face` it; end with it `abeam` on `side`; fly `along` a fence on
    `side`; `leave` it behind; `return` to where the flight began; `avoid` it, throughout;
    `reach_own_side`: end before, behind, left or right of it as it looks itself, wherever one comes from.

    The way that the drone looks, rather than the direction of flight, is what these speak of: `spin` on the spot by
    `amount` radians to a `side`; `look` at `reference`; `move` by `amount` metres to a `side` of where it looked when
    the clause began, backwards for "behind". And `hover` for `amount` seconds.

    With an `amount`, `reach`, `reach_side`, `reach_own_side` and `reach_fence` end that many metres from the thing's
    edge, and `avoid` keeps as many metres from it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    kind: Kind
    reference: Reference | None = None
    other: Reference | None = None
    side: Side | None = None
    amount: Annotated[float, Field(gt=0, le=MAX_AMOUNT)] | None = None
    """Metres, radians or seconds."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """What it speaks of, in order."""
        return tuple(entry for entry in (self.reference, self.other) if entry is not None)

    @property
    def handed(self) -> bool:
        """Whether it says left or right."""
        return self.side in ("left", "right")

    def validate(self, landmarks: int, where: str) -> None:
        """Raise a `WordwingError` unless it has what its kind needs and speaks of what exists; types are not checked.

        Args:
            landmarks: How many the layout has.
            where: Begins the sentence.
        """
        for name in ("reference", "other", "side", "amount"):
            if name == "amount" and self.kind in _WITH_DISTANCE:
                continue
            if (getattr(self, name) is not None) != (name in _NEEDS[self.kind]):
                wanted = "needs" if name in _NEEDS[self.kind] else "has no"
                raise WordwingError(f'{where}: a clause of kind "{self.kind}" {wanted} "{name}"')
        fences = () if self.kind in _ONLY_LANDMARKS else COLOURS
        numbers = range(0 if self.kind in _ONLY_FENCES else landmarks)
        for entry in self.references:
            if entry not in (fences if isinstance(entry, str) else numbers):
                fence, number = f"a fence ({', '.join(COLOURS)})", f"the number of one of {landmarks} landmarks, from 0"
                wanted = number if not fences else fence if self.kind in _ONLY_FENCES else f"{fence} or {number}"
                raise WordwingError(f'{where}: a "{self.kind}" clause speaks of {entry!r:.40}; it must be {wanted}')
        if len(set(self.references)) < len(self.references):
            raise WordwingError(f'{where}: a "{self.kind}" clause speaks of {self.other!r} twice; it needs two things')
        sides = get_args(Side) if self.kind in _ANY_SIDE else ("left", "right")
        if self.side is not None and self.side not in sides:
            raise WordwingError(
                f'{where}: a "{self.kind}" clause has side {self.side!r:.40}; it must be {" or ".join(sides)}'
            )

    def to_json(self) -> dict[str, Any]:
        """As it stands in a dataset: fields that are None left out."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}


Meaning = Sequence[Clause]
