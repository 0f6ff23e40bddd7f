"""The one exception that reaches a person: a sentence, no traceback."""

import difflib
from collections.abc import Sequence


class WordwingError(Exception):
    """Something the user can put right; `str()` is one clear sentence that says how."""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: its closest known one, or nothing."""
    folded = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f'; did you mean "{folded[close[0]]}"?' if close else ""
