"""Which items a rater is given, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class PendingItem(NamedTuple):
    """An item that needs more judgements."""

    number: int
    instruction: int
    assigned: int
    """How many raters have been given it."""


def choose_items(pending: Sequence[PendingItem], most: int | None, rng: np.random.Generator) -> list[PendingItem]:
    """What the next rater gets: the items that fewest have, and as many systems of one instruction as can be.

    Since the least assigned come first, no two items are ever more than one rater apart, so that all reach the same
    number in the end.

    Args:
        pending: Items that need more judgements.
        most: How many a rater gets; None for all of them.
        rng: Chooses among equals.
    """
    instructions = sorted({item.instruction for item in pending})
    rank = dict(zip(instructions, rng.permutation(len(instructions)).tolist(), strict=True))
    chosen = sorted(pending, key=lambda item: (item.assigned, rank[item.instruction], item.number))
    return chosen[:most]


def separate(items: Sequence[PendingItem], rng: np.random.Generator) -> list[PendingItem]:
    """The items in random order, two of one instruction next to each other only where that cannot be avoided."""
    left = [items[place] for place in rng.permutation(len(items))]
    counts = Counter(item.instruction for item in left)
    order: list[PendingItem] = []
    while left:
        before = order[-1].instruction if order else None
        commonest, count = counts.most_common(1)[0]
        if 2 * count > len(left) and commonest != before:
            # Any other now, and the rest could not be kept apart.
            place = next(place for place, item in enumerate(left) if item.instruction == commonest)
        else:
            place = next((place for place, item in enumerate(left) if item.instruction != before), 0)
        item = left.pop(place)
        counts[item.instruction] -= 1
        order.append(item)
    return order
