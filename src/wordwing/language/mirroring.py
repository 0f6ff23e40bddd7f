"""What is said of a flight when it is seen in a mirror: left becomes right and clockwise the other way round."""

from __future__ import annotations

from collections.abc import Sequence

_PAIRS = (
    ("left", "right"),
    ("leftmost", "rightmost"),
    ("lefthand", "righthand"),
    ("leftward", "rightward"),
    ("leftwards", "rightwards"),
    ("clockwise", "counterclockwise"),
    ("cw", "ccw"),
)
_SWAPPED = dict(_PAIRS) | {b: a for a, b in _PAIRS} | {"anticlockwise": "clockwise"}

_JUST = frozenset(
    ("next", "in", "infront", "now", "before", "behind", "beside", "near", "there", "here", "where", "away")
)
"""What follows "right" where it means "just"…"""

_SIDED = frozenset(
    ("turn", "turning", "the", "your", "ur", "a", "its", "to", "on", "hard", "slight", "slightly", "far")
)
"""…unless one of these comes before it."""

_POINTED = frozenset(("look", "looking", "point", "pointed", "pointing", "aim", "aimed", "nose", "staring", "dead"))
"""After these "right at" means "exactly at"."""

_HOURS = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


def mirrored(words: Sequence[str]) -> list[str]:
    """Words of an instruction, lower-case as the tokenizer gives them, for the mirrored flight."""
    found: list[str] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        just = (after in _JUST and before not in _SIDED) or (after == "at" and before in _POINTED)
        if word == "right" and just:
            found.append(word)
        elif word == "clockwise" and before in ("counter", "anti"):
            found[-1] = word
        elif after in ("o", "oclock") and (hour := _mirrored_hour(word)):
            found.append(hour)
        else:
            found.append(_SWAPPED.get(word, word))
    return found


def _mirrored_hour(word: str) -> str:
    """The other side of the clock face for "two" or "2"; empty for what is no hour."""
    if word in _HOURS:
        return _HOURS[-_HOURS.index(word) % 12]
    if word.isdecimal() and 1 <= int(word) <= 12:
        return str((-int(word) % 12) or 12)
    return ""
