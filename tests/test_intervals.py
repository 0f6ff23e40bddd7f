"""Wilson's interval against published examples."""

import pytest

from wordwing.intervals import wilson


# Newcombe (1998), Statistics in Medicine 17, table I, method 3.
@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_newcombes(hits, total, low, high):
    assert wilson(hits, total) == pytest.approx((low, high), abs=5e-5)


def test_an_interval_ends_where_shares_do_and_says_nothing_of_nothing():
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)
