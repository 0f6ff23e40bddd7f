"""Which words name which landmarks, found by counting (paper: Automatic Word-object Alignment Extraction).

PMI(o, τ) = P(o, τ) log(P(o, τ) / (P(o) P(τ))), where o is the event that a landmark stands within 15 m of the path (of
the 50 m field, 1.41 m here), τ that a word occurs in the instruction, and probabilities are shares of training
instructions. A pair is kept if its PMI is above 0.008 and the word occurs in fewer than a tenth of all instructions.
Counted for each corpus on its own: pooled, an object's synonyms are too rare among all instructions to reach the
threshold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from wordwing.errors import WordwingError
from wordwing.frames import ARENA_SIZE
from wordwing.language.tokenizer import tokenize
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, line_distance, lines_of

NEAR = 15 / 50 * ARENA_SIZE
"""Distance from the path within which a landmark may have been spoken of, metres."""

MIN_PMI = 0.008
MAX_WORD_SHARE = 0.1
"""T_PMI and T_τ of the paper."""


@dataclass(frozen=True)
class Alignment:
    """Words and the landmarks they name."""

    scores: dict[str, dict[str, float]]
    """PMI by word and landmark name, greatest first; only pairs that were kept."""

    def mentioned(self, text: str) -> set[str]:
        """Names of the landmarks that a text's words are aligned with, whether or not they are in the layout."""
        return {name for word in tokenize(text) for name in self.scores.get(word, ())}

    def to_json(self) -> dict[str, Any]:
        """As in alignments.json."""
        rounded = {word: {name: round(pmi, 6) for name, pmi in row.items()} for word, row in self.scores.items()}
        return {"near": NEAR, "min_pmi": MIN_PMI, "max_word_share": MAX_WORD_SHARE, "words": rounded}

    @classmethod
    def from_json(cls, document: Any, where: str) -> Alignment:
        """Read what `to_json` made; `where` begins the complaint."""
        words = document.get("words") if isinstance(document, dict) else None
        known = {entry.name for entry in catalogue()}
        rows = list(words.values()) if isinstance(words, dict) else [None]
        if not all(isinstance(row, dict) and set(row) <= known and all(map(_is_pmi, row.values())) for row in rows):
            raise WordwingError(f'{where}: "words" must map each word to landmarks of the catalogue and their PMI')
        return cls(dict(words or {}))


def _is_pmi(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


def present(layout: Layout, path: Floats, near: float = NEAR) -> frozenset[str]:
    """Names of the landmarks whose centre is within `near` metres of a path [P, 2], world frame."""
    distance = line_distance(layout.centres, lines_of(np.asarray(path, float)))  # [L]
    return frozenset(entry.name for entry, d in zip(layout.landmarks, distance, strict=True) if d < near)


def align(examples: Iterable[tuple[Iterable[str], Collection[str]]]) -> Alignment:
    """Count words and landmarks over instructions and keep the pairs above the paper's thresholds.

    Args:
        examples: For each training instruction its words and the names of the landmarks near its path.
    """
    rows = [(set(tokens), set(names)) for tokens, names in examples]
    total = len(rows)
    words = Counter(word for kinds, _ in rows for word in kinds)
    objects = Counter(name for _, names in rows for name in names)
    both = Counter(pair for row in rows for pair in product(*row))
    scores: dict[str, dict[str, float]] = {}
    for (word, name), count in both.items():
        pmi = count / total * math.log(count * total / (words[word] * objects[name]))
        if pmi > MIN_PMI and words[word] < MAX_WORD_SHARE * total:
            scores.setdefault(word, {})[name] = pmi
    return Alignment(
        {word: dict(sorted(row.items(), key=lambda item: (-item[1], item[0]))) for word, row in sorted(scores.items())}
    )
