"""Intervals against plain loops, theory, scipy and cases that can be seen through."""

import random

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from wordwing.evaluation.report.bootstrap import NOTHING, RESAMPLES, Estimate, Resampling


def clustered(rng, layouts=40, each=5):
    """Names of layouts, and values of which half the variance is the layout's."""
    names = [f"p{index // each}" for index in range(layouts * each)]
    shared = np.repeat(rng.normal(size=layouts), each)
    return names, shared + rng.normal(size=len(names))


def looped(names, columns, statistic, seed=1, resamples=4000):
    """2.5 and 97.5 % percentiles of a statistic of resampled layouts, one resample after another."""
    chance = random.Random(seed)
    flights = {}
    for index, name in enumerate(names):
        flights.setdefault(name, []).append(index)
    found = []
    for _ in range(resamples):
        drawn = [index for name in chance.choices(list(flights), k=len(flights)) for index in flights[name]]
        found.append(statistic(*(sum(column[index] for index in drawn) / len(drawn) for column in columns)))
    found.sort()
    return found[resamples // 40], found[-resamples // 40]


def close(estimate, bounds):
    """Whether an interval is another one but for chance: about 6 % of its width at either end."""
    low, high = bounds
    return estimate.low == pytest.approx(low, abs=0.06 * (high - low)) and estimate.high == pytest.approx(
        high, abs=0.06 * (high - low)
    )


def test_an_interval_is_that_of_a_plain_loop_over_resampled_layouts(rng):
    names, values = clustered(rng)
    names, values = names[:-3], values[:-3]  # layouts need not be of one size
    estimate = Resampling(names).interval(values)
    assert close(estimate, looped(names, [values], lambda mean: mean))
    assert estimate.mean == pytest.approx(values.mean(), abs=1e-6)
    assert estimate.n == 197


def test_layouts_are_drawn_and_not_flights(rng):
    names, values = clustered(rng)
    apart = Resampling([f"p{index}" for index in range(len(values))]).interval(values)
    together = Resampling(names).interval(values)
    # Flights of a layout are correlated by 1/2, so their mean varies 1 + 4/2 times as much as if they were not.
    assert (together.high - together.low) / (apart.high - apart.low) == pytest.approx(3**0.5, rel=0.25)


def test_flying_every_instruction_twice_makes_nobody_surer(rng):
    names, values = clustered(rng)
    once = Resampling(names).interval(values)
    twice = Resampling(names * 2).interval([*values, *values])
    assert (twice.mean, twice.low, twice.high) == (once.mean, once.low, once.high)
    assert twice.n == 2 * once.n


def test_of_many_layouts_the_interval_is_the_normal_one(rng):
    values = rng.exponential(size=1000)
    estimate = Resampling([str(index) for index in range(1000)]).interval(values)
    reach = norm.ppf(0.975) * values.std() / 1000**0.5
    assert estimate.low == pytest.approx(values.mean() - reach, abs=0.08 * reach)
    assert estimate.high == pytest.approx(values.mean() + reach, abs=0.08 * reach)


def test_of_many_flights_a_share_has_wilsons_interval(rng):
    hits = (rng.random(800) < 0.4).tolist()
    estimate = Resampling([str(index) for index in range(800)]).interval(hits, share=True)
    expected = binomtest(sum(hits), 800).proportion_ci(0.95, "wilson")
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_the_order_of_flights_does_not_change_a_bit(rng):
    names, values = clustered(rng)
    other = values + rng.normal(size=200)
    order = rng.permutation(200)
    shuffled = Resampling([names[index] for index in order])
    plain = Resampling(names)
    assert shuffled.interval(values[order]) == plain.interval(values)
    assert shuffled.difference(values[order], other[order]) == plain.difference(values, other)
    zeros = np.zeros(200)
    assert shuffled.gap_closed(values[order], zeros, zeros + 1) == plain.gap_closed(values, zeros, zeros + 1)


def test_what_is_not_there_counts_as_never_flown(rng):
    names, values = clustered(rng)
    gaps = [None if index % 7 == 0 or index < 10 else value for index, value in enumerate(values)]
    there = [index for index, value in enumerate(gaps) if value is not None]
    expected = Resampling([names[index] for index in there]).interval(values[there])
    assert Resampling(names).interval(gaps) == expected
    assert expected.n == len(there)


def test_seeds_draw_differently_and_agree_but_for_chance(rng):
    names, values = clustered(rng)
    first, second = (Resampling(names, seed).interval(values) for seed in (0, 1))
    assert first != second
    assert close(first, (second.low, second.high))


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_share_of_equal_outcomes_is_not_certain(outcome):
    estimate = Resampling([str(index // 2) for index in range(30)]).interval([outcome] * 30, share=True)
    expected = binomtest(30 * outcome, 30).proportion_ci(0.95, "wilson")
    assert estimate.mean == pytest.approx(outcome)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))


def test_one_layout_gives_shares_wilsons_interval_and_lengths_none():
    draws = Resampling(["p"] * 4)
    expected = binomtest(1, 4).proportion_ci(0.95, "wilson")
    share = draws.interval([0, 0, 0, 1], share=True)
    assert (share.low, share.high) == pytest.approx((expected.low, expected.high))
    assert draws.interval([0.5, 0.25, 0.0, 0.25]) == Estimate(0.25, None, None, 4)
    assert draws.difference([1, 2, 3, 4], [0, 0, 0, 2]) == Estimate(2.0, None, None, 4)


def test_of_nothing_nothing_is_known():
    assert Resampling([]).interval([]) == NOTHING
    assert Resampling(["p", "q"]).interval([None, None], share=True) == NOTHING
    assert Resampling(["p", "q"]).difference([None, 1], [1, None]) == NOTHING
    assert Resampling(["p"]).gap_closed([None], [0], [1]) == NOTHING


def test_one_flight_alone_is_its_mean():
    assert Resampling(["p"]).interval([0.3]) == Estimate(pytest.approx(0.3), None, None, 1)
    assert Resampling(["p"]).interval([True], share=True).low == pytest.approx(
        binomtest(1, 1).proportion_ci(0.95, "wilson").low
    )


def test_a_difference_is_paired(rng):
    names, hard = clustered(rng)
    a, b = hard + 0.1 * rng.normal(size=200) + 0.05, hard + 0.1 * rng.normal(size=200)
    draws = Resampling(names)
    paired = draws.difference(a, b)
    assert close(paired, looped(names, [a, b], lambda first, second: first - second))
    assert paired.mean == pytest.approx((a - b).mean(), abs=1e-6)
    alone = draws.interval(a)
    assert paired.high - paired.low < (alone.high - alone.low) / 4


def test_a_difference_is_of_what_both_flew():
    names = [str(index) for index in range(6)]
    a = [None, 1, 2, 3, 4, 5]
    b = [9, 0, 0, 1, 1, None]
    estimate = Resampling(names).difference(a, b)
    assert (estimate.mean, estimate.n) == (pytest.approx(2.0), 4)  # 1, 2, 2, 3
    assert 1 <= estimate.low < 2 < estimate.high <= 3


def test_two_that_always_differ_alike_may_have_exceptions():
    draws = Resampling([str(index) for index in range(20)])
    exceptions = binomtest(0, 20).proportion_ci(0.95, "wilson").high
    ones, zeros = [True] * 20, [False] * 20
    assert draws.difference(ones, zeros, share=True) == Estimate(1, pytest.approx(1 - exceptions), 1, 20)
    assert draws.difference(zeros, ones, share=True) == Estimate(-1, -1, pytest.approx(exceptions - 1), 20)
    same = draws.difference(ones, ones, share=True)
    assert (same.mean, same.low, same.high) == pytest.approx((0, -exceptions, exceptions))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_constant_part_of_the_way_is_that_part_with_certainty(rng, sign):
    names, bottom = clustered(rng)
    top = bottom + sign * (2 + rng.random(200))
    x = bottom + 0.3 * (top - bottom)
    estimate = Resampling(names).gap_closed(x, bottom, top, lower_is_better=sign < 0)
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((0.3, 0.3, 0.3), abs=1e-5)


def test_a_closed_gap_is_that_of_a_plain_loop(rng):
    names, hard = clustered(rng)
    bottom, top = hard, hard + 2 + rng.normal(size=200)
    x = hard + 0.8 + rng.normal(size=200)
    estimate = Resampling(names).gap_closed(x, bottom, top)
    assert close(estimate, looped(names, [x, bottom, top], lambda x, low, high: (x - low) / (high - low)))
    assert estimate.mean == pytest.approx((x - bottom).mean() / (top - bottom).mean(), abs=1e-5)


def test_without_a_gap_there_is_no_share_of_it():
    draws = Resampling(["a", "b", "c"])
    hardly = draws.gap_closed([1, 1, 1], [0, 0, 0], [0.009, 0.009, 0.009])
    assert (hardly.mean, hardly.low, hardly.high) == (None, None, None)
    assert draws.gap_closed([1, 1, 1], [0, 0, 0], [0.011, 0.011, 0.011]).mean == pytest.approx(1 / 0.011)
    worse = draws.gap_closed([1, 1, 1], [0, 0, 0], [-1, -1, -1])
    assert worse == Estimate(None, None, None, 3)
    assert draws.gap_closed([1, 1, 1], [0, 0, 0], [0, 0, 0]) == Estimate(None, None, None, 3)
    # In some resamples of these ORACLE is worse than AVERAGE.
    unsure = draws.gap_closed([1, 1, 1], [0, 0, 3], [2, 3, 2])
    assert (unsure.mean, unsure.low, unsure.high) == (pytest.approx((1 - 1) / (7 / 3 - 1)), None, None)


def test_draws_are_multinomial():
    from wordwing.evaluation.report.bootstrap import _weights

    weights = _weights(30, 0)
    assert weights.shape == (RESAMPLES, 30)
    assert (weights.sum(axis=1) == 30).all()
    assert weights.mean(axis=0) == pytest.approx(1, abs=0.1)
    assert weights.var() == pytest.approx(29 / 30, rel=0.05)
