"""The paper's numbers against what its text says about them, and against arithmetic."""

import pytest

from wordwing.evaluation.report.labels import Origin
from wordwing.evaluation.report.paper import HUMAN_BEST_SCORES, PAPER_RESULTS, paper_gap, paper_result

OURS = "PVN2-SuReAL"


def test_all_rows_of_both_tables_are_there():
    rows = {key[:4] for key in PAPER_RESULTS}
    assert len(rows) == 5 + 5 + 4 + 3 + 6 + 3
    assert len(PAPER_RESULTS) == 2 * len(rows)


@pytest.mark.parametrize("key", [key for key, found in PAPER_RESULTS.items() if found.n])
def test_success_rates_are_whole_numbers_of_flights(key):
    success, _emd, n = PAPER_RESULTS[key]
    assert success in {round(100 * hits / n, 1) for hits in range(n + 1)}


def test_the_numbers_are_those_that_the_text_speaks_of():
    real, sim = (PAPER_RESULTS["cage", domain, "test", OURS, 2] for domain in ("lab", "sim"))
    # "an absolute performance degradation of 2.7% SR and 0.1 EMD from simulation to the real environment"
    assert sim.success - real.success == pytest.approx(2.7)
    assert real.emd - sim.emd == pytest.approx(0.1)
    # "gets 30.6% SR compared to a perfect human score 39.72% of the time"
    assert (real.success, HUMAN_BEST_SCORES[OURS]["goal"]) == (30.6, 39.72)


def test_our_approach_has_the_best_emd_of_all_that_learn_on_the_drone():
    for segments in (1, 2):
        emds = {
            system: found.emd
            for (*origin, system, count), found in PAPER_RESULTS.items()
            if origin == ["cage", "lab", "test"] and count == segments and system != "ORACLE"
        }
        assert min(emds, key=emds.__getitem__) == OURS


def test_the_fixed_parts_of_splits_stand_beside_the_same_numbers():
    origin = Origin("cage", "generated", "test-20", "sim")
    assert paper_result(origin, "oracle", 2) == (98.6, 0.17, 72)
    assert paper_result(origin, "oracle", "both") is None
    assert paper_result(origin._replace(split="train"), "oracle", 2) is None
    assert paper_result(origin._replace(corpus="house"), "oracle", 2) is None


def test_gaps_follow_from_the_numbers():
    drone = Origin("cage", "generated", "test", "lab")
    success, emd = paper_gap(drone, "pvn2-sureal", 1)
    assert success == pytest.approx(19.5 / 63)  # 37.0, 56.5, 100.0
    assert emd == pytest.approx(0.08 / 0.25)  # 0.42, 0.34, 0.17
    assert paper_gap(drone._replace(split="dev"), "pvn2-sureal", 1) is None
    field = Origin("field", "generated", "test", "sim")
    assert paper_gap(field, "pvn2-sureal-no-instruction", 1) is None
    assert paper_result(field, "stop", 1)
    assert paper_gap(field, "stop", 1) is None
