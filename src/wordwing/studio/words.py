"""What the page is told of a text as somebody types it."""

from __future__ import annotations

from typing import Any

from wordwing.language.missing_landmarks import Absent, absent
from wordwing.language.out_of_vocabulary import marks
from wordwing.language.tokenizer import Vocabulary
from wordwing.world.layout import Layout


def words_json(text: str, vocabulary: Vocabulary, layout: Layout | None) -> dict[str, Any]:
    """Words that a policy does not know or that are misspelt, and what is named and not there.

    Places are counted in UTF-16 code units, as JavaScript counts the characters of a string.
    """
    units = [0]
    for letter in text:
        units.append(units[-1] + (2 if ord(letter) > 0xFFFF else 1))
    marked = list(dict.fromkeys((units[mark.begin], units[mark.end], mark.meant) for mark in marks(text, vocabulary)))
    missing = Absent() if layout is None else absent(text, layout)
    return {
        "unknown": [[begin, end] for begin, end, meant in marked if meant is None],
        "slips": [[begin, end, meant] for begin, end, meant in marked if meant is not None],
        "absent": list(missing.names),
        "worlds": list(missing.worlds),
    }
