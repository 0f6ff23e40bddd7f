"""The paper's numbers against what its text says about them, and against arithmetic."""

import pytest

from wordwing.evaluation.report.published import (
    HUMAN_FIVE_POINTS,
    PUBLISHED,
    Key,
    gap_closed,
    published,
)

OURS = "PVN2-SuReAL"


def test_all_rows_of_both_tables_are_there():
    rows = {key[:4] for key in PUBLISHED}
    assert len(rows) == 5 + 5 + 4 + 3 + 6 + 3
    assert len(PUBLISHED) == 2 * len(rows)


@pytest.mark.parametrize("key", [key for key, found in PUBLISHED.items() if found.n])
def test_success_rates_are_whole_numbers_of_flights(key):
    success, _emd, n = PUBLISHED[key]
    assert success in {round(100 * hits / n, 1) for hits in range(n + 1)}


def test_the_numbers_are_those_that_the_text_speaks_of():
    real, sim = (PUBLISHED[Key("cage", domain, "test", OURS, 2)] for domain in ("lab", "sim"))
    # "an absolute performance degradation of 2.7% SR and 0.1 EMD from simulation to the real environment"
    assert sim.success - real.success == pytest.approx(2.7)
    assert real.emd - sim.emd == pytest.approx(0.1)
    # "gets 30.6% SR compared to a perfect human score 39.72% of the time"
    assert (real.success, HUMAN_FIVE_POINTS[OURS].goal) == (30.6, 39.72)


def test_our_approach_has_the_best_emd_of_all_that_learn_on_the_drone():
    for segments in (1, 2):
        emds = {
            key.system: found.emd
            for key, found in PUBLISHED.items()
            if key[:3] == ("cage", "lab", "test") and key.segments == segments and key.system != "ORACLE"
        }
        assert min(emds, key=emds.__getitem__) == OURS


def test_the_fixed_parts_of_splits_stand_beside_the_same_numbers():
    key = Key("cage", "sim", "test-20", "ORACLE", 2)
    assert published(key) == (98.6, 0.17, 72)
    assert published(key._replace(split="train")) is None
    assert published(key._replace(corpus="house")) is None


def test_gaps_follow_from_the_numbers():
    success, emd = gap_closed(Key("cage", "lab", "test", OURS, 1))
    assert success == pytest.approx(19.5 / 63)  # 37.0, 56.5, 100.0
    assert emd == pytest.approx(0.08 / 0.25)  # 0.42, 0.34, 0.17
    assert gap_closed(Key("cage", "lab", "dev", OURS, 1)) is None
    assert gap_closed(Key("field", "sim", "test", "PVN2-SuReAL-noU", 1)) is None
