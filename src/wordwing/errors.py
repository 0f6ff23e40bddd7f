"""The one exception that reaches a person: a sentence, no traceback."""

import difflib
import json
from collections.abc import Sequence


class WordwingError(Exception):
    """Something the user can put right; `str()` is one clear sentence that says how, safe to print."""

    status = 2
    """What a command that fails with it exits with."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def printable(text: str) -> str:
    """A text that may quote files: what would move the cursor, colour or rewrite a terminal is shown as an escape."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: its closest known one, or nothing."""
    folded = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f'; did you mean "{folded[close[0]]}"?' if close else ""


def shown(value: object) -> str:
    """A JSON value in a sentence: short and on one line."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"
