"""Orders and shares of items."""

from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pytest

from wordwing.study.store import PendingItem, choose_items, separate


def items_of(*systems: int) -> list[PendingItem]:
    """Instructions with so many systems each."""
    kinds = [instruction for instruction, count in enumerate(systems) for _ in range(count)]
    return [PendingItem(number, instruction, 0) for number, instruction in enumerate(kinds)]


def touching(order) -> int:
    return sum(one.instruction == other.instruction for one, other in pairwise(order))


@pytest.mark.parametrize("systems", [(2, 2), (3, 1, 1), (4, 1, 1), (2, 2, 2), (1,), (3,), (3, 3), (5, 1), (4, 3)])
def test_systems_of_one_instruction_are_neighbours_only_where_that_cannot_be_avoided(systems, rng):
    items = items_of(*systems)
    least = min(map(touching, permutations(items)))
    for _ in range(30):
        order = separate(items, rng)
        assert touching(order) == least
        assert sorted(order) == items


def test_orders_differ_from_rater_to_rater_and_start_anywhere():
    items = items_of(*[3] * 10)
    orders = [separate(items, np.random.default_rng(seed)) for seed in range(60)]
    assert len(set(map(tuple, orders))) == 60
    assert all(touching(order) == 0 for order in orders)
    assert len({order[0].instruction for order in orders}) == 10


def test_the_least_judged_are_given_first_and_systems_of_an_instruction_together(rng):
    pending = [PendingItem(number, number // 3, 1 if number == 4 else 0) for number in range(9)]
    for _ in range(20):
        assert 4 not in [item.number for item in choose_items(pending, 8, rng)]
    counts = Counter(item.instruction for item in choose_items([item._replace(assigned=0) for item in pending], 6, rng))
    assert sorted(counts.values()) == [3, 3]
    assert sorted(choose_items(pending, None, rng)) == pending
