"""Understand a sentence: from what a person typed to the clauses that the judge can score.

A text is cut into pieces (`parser.segmentation`). Which of them belong together is decided for the whole text at once:
of all ways to group them, the one that leaves least unsaid, with the fewest clauses. "Keep the barrel on your left, go
by" is one clause because its second half says nothing alone; "turn left, go by the barrel on its right" is two because
no clause has both the turn and the side. What a group means `parser.clause_parsing` says, what its nouns name
`parser.reference_resolution`. There is nothing learned in it, and nothing is guessed silently: what was left out is in
`Parsed.unclear`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause, Kind, Reference
from wordwing.language.parser.clause_parsing import Draft, content, read
from wordwing.language.parser.coverage import Explained
from wordwing.language.parser.reference_resolution import Mention, distance
from wordwing.language.parser.segmentation import ACROSS, Piece, Text, pieces_of
from wordwing.language.parser.spelling import BREAKS
from wordwing.world.layout import Layout

MOST_PIECES = 6
"""How many pieces one clause can have."""
CLAUSE = 1.0
"""What each clause costs a grouping, in the units of `reading.content`."""
LOST = 2.0
"""What a movement costs that a piece speaks of and its group's clause does not."""

_COVERED: dict[Kind, tuple[Kind, ...]] = {
    "turn": ("turn", "turn_around", "curve"),
    "turn_around": ("turn_around",),
    "curve": ("curve", "hug", "circle"),
    "forward": ("forward",),
    "straight": ("straight", "forward", "along", "leave", "toward", "curve"),
}
"""Movements, and the clauses by which they are said as well."""

_COURTESY = BREAKS | frozenset(
    ("stop", "stopping", "halt", "hold", "position", "park", "end", "finish", "done", "stay", "put", "wait", "hover",
     "land", "come", "to", "rest", "there", "and", "then", "now", "just", "at", "so", "you", "are", "your", "youre",
     "it", "is", "do", "that", "thats", "of", "can", "go", "ahead", "spot", "no", "more", "farther", "further", "than",
     "please", "thanks", "thank", "ok", "okay", "alright", "hi", "hello", "drone", "well")
)  # fmt: skip
"""Words that need no clause of their own."""


@dataclass(frozen=True)
class Parsed:
    """What was understood of a text."""

    meaning: tuple[Clause, ...]
    """In the order in which it is to be done; () if nothing was understood."""
    unclear: tuple[str, ...] = ()
    """Pieces of which no clause was made and names of things that are not there or not in a clause, as typed."""
    ambiguous: tuple[str, ...] = ()
    """Names that fit several things that are there, as typed; one of them was taken."""
    ends: bool = False
    """Whether the last clause is the last thing that was said, so that it is known where to stop."""
    unknown: tuple[str, ...] = ()
    """Words in a row that are not explained (`parser.coverage`), as typed: what they add is in no clause."""
    doubtful: frozenset[int] = frozenset()
    """The places in the meaning of those clauses."""


def parse(text: str, layout: Layout, start: tuple[float, float] | None = None) -> Parsed:
    """Understand a text.

    A name that fits several things means the one nearest to what was spoken of before, or to the start: people leave
    out what tells things apart where the one they mean is the next on the way. Without either it is the first of the
    layout. Movements towards a thing that nothing follows end at the thing.

    Args:
        text: Anything that a person types.
        layout: Where the drone is.
        start: Where it begins, metres, world frame, if known.
    """
    typed = Text(text, layout)
    chooser = _Chooser(typed, layout, start)
    meaning: list[Clause] = []
    groups: list[tuple[Sequence[Piece], Kind]] = []
    unclear: list[str] = []
    ends = False
    for group, draft in _grouped(pieces_of(typed), typed):
        clause = _clause(draft, chooser) if draft is not None else None
        missed = _missed(group, draft if clause is not None else None, typed)
        if clause is not None:
            meaning.append(clause)
            groups.append(([piece for piece in group if not _idle(piece, typed)], clause.kind))
        ends = (ends or clause is not None) and not missed
        unclear += missed
    rest = typed.text[typed.words[-1].stop :].strip(" .,;:!?()\n-") if typed.words else typed.text.strip()
    if any(letter.isalnum() for letter in rest):
        unclear.append(rest[:60])
        ends = False
    settled = _settled(meaning)
    kinds = [frozenset((kind, clause.kind)) for (_, kind), clause in zip(groups, settled, strict=True)]
    explained = Explained(typed, layout, frozenset().union(*kinds))
    missing = [explained.missing(group, kind) for (group, _), kind in zip(groups, kinds, strict=True)]
    once = dict.fromkeys
    return Parsed(
        tuple(settled),
        tuple(once(unclear)),
        tuple(once(chooser.ambiguous)),
        ends,
        tuple(once(typed.typed(first, last) for places in missing for first, last in _runs(places))),
        frozenset(place for place, places in enumerate(missing) if places),
    )


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of each row of numbers that follow one another, of sorted ones."""
    firsts = [place for place in places if place - 1 not in places]
    lasts = [place for place in places if place + 1 not in places]
    return list(zip(firsts, lasts, strict=True))


Group = tuple[tuple[Piece, ...], Draft | None]


def _grouped(pieces: Sequence[Piece], text: Text) -> list[Group]:
    """The cheapest grouping of the pieces, with what each group means."""
    alone = [text.read(piece) for piece in pieces]
    best: list[tuple[float, int, Draft | None]] = [
        (0.0, 0, None)
    ]  # of the pieces up to each, and where its group begins
    for stop in range(1, len(pieces) + 1):
        single = text.said(pieces[stop - 1 : stop])
        options: list[tuple[float, int, Draft | None]] = [(best[stop - 1][0] + content(*single), stop - 1, None)]
        for begin in range(max(stop - MOST_PIECES, 0), stop):
            draft = read(*text.said(pieces[begin:stop]))
            if draft is not None:
                cost = CLAUSE + draft.cost + sum(ACROSS[piece.joint] for piece in pieces[begin + 1 : stop])
                if stop - begin > 1:
                    cost += LOST * sum(_loses(draft, own) for own in alone[begin:stop])
                options.append((best[begin][0] + cost, begin, draft))
        best.append(min(options, key=lambda option: (option[0], option[2] is None, -option[1])))
    found: list[Group] = []
    stop = len(pieces)
    while stop:
        _, begin, draft = best[stop]
        found.insert(0, (tuple(pieces[begin:stop]), draft))
        stop = begin
    return found


def _loses(draft: Draft, own: Draft | None) -> bool:
    """Whether a group's clause has not what one of its pieces says alone."""
    if own is None or own.weak:
        return False
    if draft.kind in ("turn_to", "face"):
        return own.kind in _COVERED or own.kind in ("reach", "reach_side", "pass", "circle", "abeam")
    return own.kind in _COVERED and draft.kind not in _COVERED[own.kind]


@dataclass
class _Chooser:
    """Decides what a name means where it fits several things."""

    text: Text
    layout: Layout
    near: Reference | tuple[float, float] | None
    """What was spoken of last, or where the drone starts."""
    ambiguous: list[str] = field(default_factory=list)
    _chosen: dict[object, Reference] = field(default_factory=dict)

    def choose(self, mention: Mention, taken: Sequence[Reference]) -> Reference | None:
        """The thing that is meant and is not one of those taken; None if there is none."""
        known = self._chosen.get(mention.key)
        if known is not None and known not in taken:
            return known
        options = [entry for entry in mention.candidates if entry not in taken]
        if not options:
            return next((entry for entry in mention.others if entry not in taken), None)
        near = next((entry for entry in taken if isinstance(entry, int)), self.near)
        if len(options) > 1:
            self.ambiguous.append(self.text.typed(mention.first, mention.last))
            if near is not None:
                options.sort(key=lambda entry: distance(entry, near, self.layout))
        return self._chosen.setdefault(mention.key, options[0]) if known is None else options[0]


def _clause(draft: Draft, chooser: _Chooser) -> Clause | None:
    """A draft with its names resolved; None if something is not there or there is no such clause."""
    found: dict[int, Reference] = {}
    # Of "the cone and the safety cone" the second says which the first is not.
    for place in sorted(range(len(draft.mentions)), key=lambda i: len(draft.mentions[i].candidates)):
        reference = chooser.choose(draft.mentions[place], list(found.values()))
        if reference is None:
            return None
        found[place] = reference
    chosen = [found[place] for place in sorted(found)]
    first, second = (*chosen, None, None)[:2]
    clause = Clause(draft.kind, first, second, draft.side, draft.amount)
    try:
        clause.validate(len(chooser.layout.landmarks), "the instruction")
    except WordwingError:
        return None
    if chosen:
        chooser.near = chosen[-1]
    return clause


def _settled(meaning: Sequence[Clause]) -> list[Clause]:
    """At the end, to turn to a thing after flying is to end facing it, and to fly towards it is to reach it."""
    found = list(meaning)
    for place, clause in enumerate(meaning):
        last = place == len(meaning) - 1
        if clause.kind == "turn_to" and last and place > 0:
            found[place] = Clause("face", clause.reference)
        elif clause.kind == "toward" and last:
            found[place] = Clause("reach_fence" if isinstance(clause.reference, str) else "reach", clause.reference)
    return found


def _missed(group: Sequence[Piece], draft: Draft | None, text: Text) -> list[str]:
    """What a group says that its clause, if it has one, does not."""
    _, spoken = text.said(group)
    used = {entry.key for entry in draft.mentions} if draft is not None else set()
    left = [entry for entry in spoken if not entry.pronoun and entry.key not in used]
    if draft is None and any(not entry.candidates for entry in left):
        left = [entry for entry in left if not entry.candidates]
    elif draft is None:
        idle = all(_idle(piece, text) for piece in group)
        return [] if idle else [text.typed(piece.first, piece.last) for piece in group]
    return [text.typed(entry.first, entry.last) for entry in left]


def _idle(piece: Piece, text: Text) -> bool:
    """Whether a piece needs no clause."""
    words = [word.text for word in text.words[piece.first : piece.last + 1]]
    return words != ["no"] and all(word in _COURTESY for word in words)
