"""Static vectors of 50,000 English words, so that a word that no training text had is read by what it means.

`scripts/word_vectors.py` made the table from a sentence encoder; `words/NOTICE.md` has the licences. A change of the
table or of the tokens is a new tokenizer (`Vocabulary.tokenizer`): policies keep the one that they were trained with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = Path(str(files("wordwing"))) / "language" / "words" / "english.npz"

DIMENSIONS = 96


@dataclass(frozen=True)
class WordTable:
    """Vectors e(w) of T words."""

    row: dict[str, int]
    """Row of each word, from 1."""
    vectors: NDArray[np.int8]
    """[1 + T, 96] in units of `scale`; row 0 is zero and stands for every word that is not in the table."""
    scale: NDArray[np.float32]
    """[96]."""

    def vector(self, word: str) -> NDArray[np.float32]:
        """e(w) [96]; zero for a word that is not in the table."""
        return self.vectors[self.row.get(word, 0)] * self.scale


@cache
def word_table() -> WordTable:
    """The table that comes with wordwing; read when it is first asked for."""
    with np.load(FILE, allow_pickle=False) as file:
        words = file["words"].tobytes().decode().split("\n")
        vectors = np.concatenate([np.zeros((1, DIMENSIONS), np.int8), file["vectors"]])
        return WordTable({word: row for row, word in enumerate(words, start=1)}, vectors, file["scale"])
