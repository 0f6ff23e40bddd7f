"""What judgements say, against numbers from elsewhere."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from wordwing.study.questions import Rating
from wordwing.study.statistics import (
    compare,
    frequencies,
    holm,
    ordinal_alpha,
    signed_rank,
    unclear_instructions,
    with_visibility,
)


def judgement(instruction="i0", system="a", path=3, goal=3, rater=1, unclear=False, ahead=True) -> Rating:
    return Rating(rater, instruction, system, path, goal, 3, unclear, ahead)


def table(judgements: list[Rating]) -> pd.DataFrame:
    return pd.DataFrame(judgements, columns=Rating._fields)


def of_scores(scores: dict[str, list[list[int]]]) -> pd.DataFrame:
    """Path scores by system, instruction and rater; goal scores are the same the other way round."""
    return table(
        [
            judgement(f"i{place}", system, score, 6 - score, rater)
            for system, rows in scores.items()
            for place, row in enumerate(rows)
            for rater, score in enumerate(row)
        ]
    )


def test_an_instruction_is_out_for_all_systems_when_most_judgements_of_all_systems_together_call_it_unclear():
    votes = {
        "majority": {"a": [1, 1, 1], "b": [1, 0, 0]},  # 4 of 6
        "half": {"a": [1, 1, 1], "b": [0, 0, 0]},
        "only one system's": {"a": [1, 1, 1], "b": [1, 0, 0], "c": [0, 0, 0]},  # 4 of 9
        "nobody": {"a": [0], "b": [0]},
    }
    judgements = [
        judgement(name, system, unclear=bool(vote))
        for name, systems in votes.items()
        for system, cast in systems.items()
        for vote in cast
    ]
    assert unclear_instructions(table(judgements)) == ["majority"]


def test_frequencies_are_of_each_system_and_question():
    judgements = [judgement(path=1), judgement(path=5), judgement(path=5), judgement(system="b", path=2, goal=4)]
    scores = frequencies(table(judgements), ["a", "b", "c"])
    assert scores.columns.tolist() == [1, 2, 3, 4, 5]
    assert scores.loc["a", "path"].tolist() == [1, 0, 0, 0, 2]
    assert scores.loc["b", "goal"].tolist() == [0, 0, 0, 1, 0]
    assert scores.loc["c", "goal"].tolist() == [0] * 5


def test_instructions_are_split_by_whether_their_goal_is_ahead():
    both = table([judgement("i0", ahead=True), judgement("i1", ahead=False)])
    expected = {"ahead": ["i0"], "not ahead": ["i1"], "all": ["i0", "i1"]}
    assert {kind: with_visibility(both, kind)["instruction"].tolist() for kind in expected} == expected


def test_p_values_are_corrected_as_holm_does():
    # The smallest of four times 4, the next times 3, …, never less than one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def by_all_signs(differences: list[float]) -> tuple[float, float]:
    """W and its exact two-sided p-value, by going through all signs."""
    sizes = np.abs(differences)
    ranks = np.array([(sizes < size).sum() + ((sizes == size).sum() + 1) / 2 for size in sizes])
    total = ranks.sum()
    plus = ranks[np.array(differences) > 0].sum()
    least = min(plus, total - plus)
    sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(ranks))]
    return least, np.mean([min(other, total - other) <= least for other in sums])


def test_systems_are_compared_by_the_signed_ranks_of_instruction_means(rng):
    # One judgement of each; differences of 1, 2, 3, 4 with other signs tell W = 1 + 2 from all other orders.
    scores = {"a": [[5], [5], [1], [1], [3]], "b": [[1], [2], [3], [2], [3]]}
    path, goal = compare(of_scores(scores), ["a", "b"])
    assert (path.system, path.other, path.key, path.instructions, path.differing) == ("a", "b", "path", 5, 4)
    assert path.difference == pytest.approx((4 + 3 - 2 - 1 + 0) / 5)
    assert (path.statistic, path.p) == pytest.approx(by_all_signs([4, 3, -2, -1]))
    assert goal.difference == pytest.approx(-path.difference)
    assert goal.p == pytest.approx(path.p)
    assert path.corrected == goal.corrected == pytest.approx(min(1.0, 2 * path.p))


def test_ties_among_few_instructions_are_counted_exactly():
    # Differences 1, 1, 1, -1, 2: with ties the usual tables do not hold, going through all signs does.
    scores = {"a": [[2], [3], [5], [1], [3]], "b": [[1], [2], [4], [2], [1]]}
    path, _goal = compare(of_scores(scores), ["a", "b"])
    assert (path.statistic, path.p) == pytest.approx(by_all_signs([1, 1, 1, -1, 2]))
    [one, _goal] = compare(of_scores({"a": [[2]], "b": [[1]]}), ["a", "b"])
    assert (one.differing, one.p) == (1, 1.0)


def test_tests_are_scipys_where_nothing_ties_and_nearly_where_something_does(rng):
    for count in (6, 13, 14, 30, 50):
        differences = rng.permutation(np.arange(1, count + 1)) * np.where(rng.random(count) < 0.35, -1.0, 1.0)
        expected = wilcoxon(differences, method="exact")
        assert signed_rank(differences) == pytest.approx((expected.statistic, expected.pvalue))
    for count in (40, 200):
        differences = rng.integers(1, 6, count) * np.where(rng.random(count) < 0.45, -0.2, 0.2)
        expected = wilcoxon(differences, method="approx")
        statistic, p = signed_rank(differences)
        assert statistic == expected.statistic
        assert p == pytest.approx(expected.pvalue, abs=0.01)


def test_means_are_taken_before_the_test_so_that_raters_do_not_count_as_instructions(rng):
    scores = {name: rng.integers(1, 6, (60, 5)).tolist() for name in "ab"}
    path, _goal = compare(of_scores(scores), ["a", "b"])
    differences = np.round(np.mean(scores["a"], axis=1) - np.mean(scores["b"], axis=1), 9)
    expected = wilcoxon(differences[differences != 0], method="approx")
    assert path.instructions == 60
    assert path.differing > 50
    assert (path.statistic, path.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_only_instructions_of_both_systems_are_compared_and_equal_ones_differ_in_nothing():
    judgements = [judgement("i0", "a", 1), judgement("i1", "a", 4), judgement("i1", "b", 4), judgement("i2", "b", 5)]
    path, goal = compare(table(judgements), ["a", "b"])
    assert (path.instructions, path.differing, path.difference, path.p) == (1, 0, 0.0, 1.0)
    [alone, _goal] = compare(table(judgements[:1]), ["a", "b"])
    assert (alone.instructions, alone.p, alone.corrected) == (0, None, None)
    assert goal.corrected == 1.0


# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four observers, twelve units; ordinal 0.815.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def test_alpha_is_the_published_one_for_ordered_scores():
    judgements = [
        judgement(f"i{unit // 2}", "ab"[unit % 2], path=score, rater=rater)
        for rater, row in enumerate(PUBLISHED)
        for unit, score in enumerate(row)
        if score is not None
    ]
    assert ordinal_alpha(table(judgements), "path") == pytest.approx(0.815, abs=5e-4)
    assert ordinal_alpha(table(judgements), "goal") is None  # all the same
    assert ordinal_alpha(table(judgements[:9]), "path") is None  # one observer


def test_alpha_is_that_of_a_computation_by_hand():
    # Pairs (1, 1), (1, 2), (2, 3): n is 3, 2 and 1, so ordinal differences squared are 2.5², 1.5² and, from 1 to 3, 4².
    # Observed (2·6.25 + 2·2.25) / 6, expected 2 (3·2·6.25 + 3·1·16 + 2·1·2.25) / (6·5): alpha = 1 − (17/6) / 6.
    pairs = [(1, 1), (1, 2), (2, 3)]
    judgements = [
        judgement(f"i{n}", "a", path=score, rater=r) for n, pair in enumerate(pairs) for r, score in enumerate(pair)
    ]
    assert ordinal_alpha(table(judgements), "path") == pytest.approx(19 / 36)
