"""Summaries of flights that can be counted on fingers."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from small_flights import flight, measures
from wordwing.errors import WordwingError
from wordwing.evaluation.report.bootstrap import Resampling
from wordwing.evaluation.report.labels import Origin, ordered, title
from wordwing.evaluation.report.summary import METRICS, flight_row, flight_table, rounded, summarise
from wordwing.execution.execution import Provenance
from wordwing.execution.metrics import Metrics

TEST = Origin("cage", "generated", "test", "sim")


def summary_of(rows):
    return summarise(flight_table(rows))


def flights(system, outcomes, **others):
    """Flights of one segment, each in a paragraph of its own."""
    return [flight(system, f"p{place}/0", success, **others) for place, success in enumerate(outcomes)]


def many(rng, systems, paragraphs=8):
    """Flights of both lengths with random outcomes, not all of them by every system."""
    found = []
    for place in range(paragraphs):
        for name in (f"p{place}/0", f"p{place}/1", f"p{place}/0-1"):
            seen = {"goal_ahead": bool(rng.integers(2)), "goal_in_sight": bool(rng.integers(2))}
            for system in systems:
                values = np.round(rng.random(3), 6).tolist()
                if rng.random() < 0.9:
                    found.append(flight(system, name, bool(rng.integers(2)), values[0], judge_path=values[1], **seen))
    return found


def test_a_mean_is_of_the_flights_that_it_names():
    scores = [
        flight("average", "a/0", True, 0.1, goal_ahead=True, goal_in_sight=False),
        flight("average", "a/1", False, 0.3, goal_ahead=True, goal_in_sight=True),
        flight("average", "b/0", False, 0.5, goal_ahead=False, goal_in_sight=False),
        flight("average", "b/0-1", True, 1.1, goal_ahead=False, goal_in_sight=True),
    ]
    summary = summary_of(scores)
    expected = {
        (1, "all"): (1 / 3, 0.3, 3),
        (1, "ahead"): (0.5, 0.2, 2),
        (1, "not ahead"): (0.0, 0.5, 1),
        (1, "in sight"): (0.0, 0.3, 1),
        (1, "not in sight"): (0.5, 0.3, 2),
        (2, "all"): (1.0, 1.1, 1),
        (2, "not ahead"): (1.0, 1.1, 1),
        (2, "in sight"): (1.0, 1.1, 1),
        ("both", "all"): (0.5, 0.5, 4),
        ("both", "ahead"): (0.5, 0.2, 2),
        ("both", "not ahead"): (0.5, 0.8, 2),
        ("both", "in sight"): (0.5, 0.7, 2),
        ("both", "not in sight"): (0.5, 0.3, 2),
    }
    assert set(summary.select(TEST)[["segments", "goal"]].itertuples(index=False, name=None)) == set(expected)
    for (segments, goal), (success, emd, n) in expected.items():
        assert summary.estimate(TEST, segments, "average", "success", goal=goal).mean == pytest.approx(success)
        assert summary.estimate(TEST, segments, "average", "emd", goal=goal).mean == pytest.approx(emd)
        assert summary.estimate(TEST, segments, "average", "emd", goal=goal).n == n


def test_flights_are_told_apart_by_how_much_was_said():
    scores = [
        flight("pvn2-bc", f"{name}/{place}", success, clauses=clauses, followed=followed)
        for name, place, success, clauses, followed in (
            ("a", "0", True, 1, True),
            ("b", "0", True, 2, True),
            ("c", "0", True, 2, False),
            ("d", "0-1", True, 3, False),
            ("e", "0-1", False, 5, False),
            ("f", "0-1", True, None, None),
        )
    ]
    summary = summary_of(scores)
    found = {
        clauses: tuple(
            summary.estimate(TEST, "both", "pvn2-bc", metric, clauses=clauses).mean
            for metric in ("followed", "success")
        )
        for clauses in summary.select(metric="followed")["clauses"].unique()
        if clauses != "all"
    }
    assert found == {"1 clause": (1.0, 1.0), "2 clauses": (0.5, 1.0), "3 or more clauses": (0.0, 0.5)}
    assert summary.estimate(TEST, "both", "pvn2-bc", "followed").n == 5
    assert set(summary.select(clauses=list(found))["segments"]) == {"both"}


def test_an_interval_is_the_bootstraps(rng):
    scores = many(rng, ["oracle"])
    summary = summary_of(scores)
    single = [entry for entry in scores if entry["segments"] == 1]
    draws = Resampling([entry["layout_id"] for entry in single])
    assert summary.estimate(TEST, 1, "oracle", "emd") == draws.interval([entry["emd"] for entry in single])
    hits = [entry["success"] for entry in single]
    assert summary.estimate(TEST, 1, "oracle", "success") == draws.interval(hits, share=True)


def test_all_that_succeed_get_wilsons_interval():
    success = summary_of(flights("oracle", [True] * 10)).estimate(TEST, 1, "oracle", "success")
    assert (success.mean, success.low, success.high) == (pytest.approx(1), pytest.approx(0.7225, abs=1e-4), 1)


def test_every_metric_but_what_belongs_to_the_task_is_averaged():
    of_the_task = {"stop_emd", "gold_length", "clauses", "goal_ahead", "goal_in_sight"}
    assert set(METRICS) == set(Metrics.__annotations__) - of_the_task
    shares = {name for name, kind in Metrics.__annotations__.items() if kind in (bool, bool | None)} - of_the_task
    assert {name for name, metric in METRICS.items() if metric.share} == shares


def test_corpora_authors_splits_and_domains_are_kept_apart():
    scores = [
        flight("oracle", "p/0", split="dev"),
        flight("oracle", "p/0", False),
        flight("oracle", "p/0", domain="lab"),
        flight("oracle", "p/0", split="test-20"),
        flight("oracle", "p/0", corpus="field"),
        flight("oracle", "p/0", corpus="attic"),
        flight("oracle", "p/0", text="human"),
    ]
    summary = summary_of(scores)
    assert summary.origins == [
        ("cage", "generated", "test", "lab"),
        ("cage", "generated", "test", "sim"),
        ("cage", "generated", "test-20", "sim"),
        ("cage", "generated", "dev", "sim"),
        ("cage", "human", "test", "sim"),
        ("field", "generated", "test", "sim"),
        ("attic", "generated", "test", "sim"),
    ]
    assert set(summary.estimates["n"]) == {1}
    assert summary.estimate(TEST, 1, "oracle", "success").mean == 0


def test_systems_stand_as_in_the_paper():
    given = ["oracle", "pvn2-sureal-tenth-lab", "zebra", "pvn2-sureal", "ant", "average", "pvn2-bc", "pvn-bc", "stop"]
    assert [title(system) for system in ordered(given)] == [
        "STOP", "AVERAGE", "PVN-BC", "PVN2-BC", "PVN2-SuReAL", "PVN2-SuReAL-10real", "ant", "zebra", "ORACLE",
    ]  # fmt: skip
    assert title("pvn2-sureal-no-instruction") == "PVN2-SuReAL-noU"
    assert title("pvn2-sureal-no-image") == "PVN2-SuReAL-noI"
    assert title("pvn2-sureal-no-exploration") == "PVN2-SuReAL-noExp"
    assert title("pvn2-sureal-half-lab") == "PVN2-SuReAL-50real"


def test_the_gap_closed_is_of_what_all_three_flew():
    scores = [
        *flights("average", [False, False, True, False]),
        *flights("oracle", [True, True, True, True]),
        *flights("pvn2-bc", [True, False, True]),  # the fourth it did not fly
    ]
    summary = summary_of(scores)
    gap = summary.estimate(TEST, 1, "pvn2-bc", "success", kind="gap closed")
    assert (gap.mean, gap.n) == (pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3)), 3)
    assert set(summary.select(kind="gap closed")["system"]) == {"pvn2-bc"}


def test_less_emd_closes_the_gap():
    scores = [
        *flights("average", [True, True], emd=0.8),
        *flights("pvn2-bc", [True, True], emd=0.6),
        *flights("oracle", [True, True], emd=0.3),
    ]
    gap = summary_of(scores).estimate(TEST, 1, "pvn2-bc", "emd", kind="gap closed")
    assert gap.mean == pytest.approx(0.2 / 0.5)


def test_differences_are_the_later_systems_less_the_earlier_ones():
    scores = [
        *flights("pvn2-bc", [True, False, False, False]),
        *flights("pvn2-sureal", [True, True, True]),
        *flights("stop", [False] * 4),
    ]
    summary = summary_of(scores)
    found = summary.select(kind="difference")
    pairs = set(found[["system", "minus"]].itertuples(index=False, name=None))
    assert pairs == {("pvn2-sureal", "pvn2-bc"), ("pvn2-bc", "stop"), ("pvn2-sureal", "stop")}
    difference = summary.estimate(TEST, 1, "pvn2-sureal", "success", kind="difference", minus="pvn2-bc")
    assert (difference.mean, difference.n) == (pytest.approx(2 / 3), 3)
    assert set(found["metric"]) == {"success", "emd"}  # nothing was judged


def test_the_same_flights_give_the_same_bytes_in_any_order(rng):
    scores = many(rng, ["average", "pvn2-bc", "oracle", "mine"])
    text = summary_of(scores).to_json()
    for _ in range(3):
        assert summary_of([scores[index] for index in rng.permutation(len(scores))]).to_json() == text


def test_what_others_fly_changes_nobodys_means(rng):
    scores = many(rng, ["average", "pvn2-bc", "oracle"])
    alone = summary_of([entry for entry in scores if entry["system"] == "pvn2-bc"])
    together = summary_of(scores).select(kind="mean", system="pvn2-bc")
    pd.testing.assert_frame_equal(together.reset_index(drop=True), alone.estimates)
    assert set(alone.estimates["kind"]) == {"mean"}


def test_a_summary_is_json_with_six_decimals(rng):
    summary = summary_of(many(rng, ["average", "pvn2-bc", "oracle"]))
    text = summary.to_json()
    document = json.loads(text)
    assert text == json.dumps(document, indent=1) + "\n"
    assert document["systems"] == {"average": "AVERAGE", "pvn2-bc": "PVN2-BC", "oracle": "ORACLE"}
    row = document["figures"][0]
    keys = ("corpus", "text", "split", "domain", "segments", "goal", "system")
    assert [row[key] for key in keys] == ["cage", "generated", "test", "sim", 1, "all", "average"]
    assert row["metrics"]["emd"]["mean"] == round(summary.estimate(TEST, 1, "average", "emd").mean, 6)
    assert len(document["gap_closed"]) == len(summary.select(kind="gap closed")) == 6
    assert len(document["differences"]) == len(summary.select(kind="difference"))
    assert {row["minus"] for row in document["differences"]} == {"average", "pvn2-bc"}


def test_a_metric_that_nobody_has_is_not_there():
    metrics = set(summary_of(flights("stop", [False, True])).estimates["metric"])
    assert "emd" in metrics
    assert not metrics & {"judge_path", "first_goal_error"}


def test_of_nothing_there_is_a_summary():
    document = json.loads(summary_of([]).to_json())
    assert document["figures"] == document["differences"] == []


def test_an_instruction_flown_twice_is_refused():
    with pytest.raises(WordwingError, match="pvn2-bc flew p/0 of cage in sim twice"):
        summary_of([flight("pvn2-bc", "p/0"), flight("pvn2-bc", "p/0")])


def test_tasks_that_share_no_more_than_a_name_are_refused():
    with pytest.raises(WordwingError, match="different tasks called p/0"):
        summary_of([flight("stop", "p/0"), flight("oracle", "p/0", gold_length=1.4)])


def test_a_row_keeps_an_episodes_keys():
    kept = flight_row(Provenance("stop", "cage", "human", "dev", "lab", 0, "p/0-1", 2, "p"), measures())
    assert kept == flight("stop", "p/0-1", text="human", split="dev", domain="lab")


def test_values_are_written_with_six_decimals_and_without_a_minus_before_zero():
    assert rounded({"mean": 1 / 3, "low": -1e-9, "high": math.nan, "n": 7}) == {
        "mean": 0.333333,
        "low": 0.0,
        "high": None,
        "n": 7,
    }
    assert math.copysign(1, rounded({"mean": 0.0, "low": -1e-9, "high": 0.0, "n": 7})["low"]) == 1
