"""Summaries of flights that can be counted on fingers."""

import json

import numpy as np
import pytest

from small_scores import score
from wordwing.errors import WordwingError
from wordwing.evaluation.measures import Measures
from wordwing.evaluation.report.bootstrap import Resampling
from wordwing.evaluation.report.summary import METRICS, Group, Origin, Score, ordered, summarise, title

TEST = Origin("cage", "generated", "test", "sim")


def flights(system, outcomes, **others):
    """Flights of one segment, each in a paragraph of its own."""
    return [score(system, f"p{place}/0", success, **others) for place, success in enumerate(outcomes)]


def many(rng, systems, paragraphs=8):
    """Flights of both lengths with random outcomes, not all of them by every system."""
    found = []
    for place in range(paragraphs):
        for name in (f"p{place}/0", f"p{place}/1", f"p{place}/0-1"):
            seen = {"goal_ahead": bool(rng.integers(2)), "goal_in_sight": bool(rng.integers(2))}
            for system in systems:
                values = np.round(rng.random(3), 6).tolist()
                if rng.random() < 0.9:
                    found.append(score(system, name, bool(rng.integers(2)), values[0], judge_path=values[1], **seen))
    return found


def test_a_mean_is_of_the_flights_that_it_names():
    scores = [
        score("average", "a/0", True, 0.1, goal_ahead=True, goal_in_sight=False),
        score("average", "a/1", False, 0.3, goal_ahead=True, goal_in_sight=True),
        score("average", "b/0", False, 0.5, goal_ahead=False, goal_in_sight=False),
        score("average", "b/0-1", True, 1.1, goal_ahead=False, goal_in_sight=True),
    ]
    figures = summarise(scores).figures
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
    assert {(group.segments, group.goal) for group, _system, _metric in figures} == set(expected)
    for (segments, goal), (success, emd, n) in expected.items():
        group = Group(TEST, segments, goal)
        assert figures[group, "average", "success"].mean == pytest.approx(success)
        assert figures[group, "average", "emd"].mean == pytest.approx(emd)
        assert figures[group, "average", "emd"].n == n


def test_flights_are_told_apart_by_how_much_was_said():
    scores = [
        score("pvn2-bc", f"{name}/{place}", success, clauses=clauses, followed=followed)
        for name, place, success, clauses, followed in (
            ("a", "0", True, 1, True),
            ("b", "0", True, 2, True),
            ("c", "0", True, 2, False),
            ("d", "0-1", True, 3, False),
            ("e", "0-1", False, 5, False),
            ("f", "0-1", True, None, None),
        )
    ]
    figures = summarise(scores).figures
    found = {
        group.clauses: (figures[group, "pvn2-bc", "followed"].mean, figures[group, "pvn2-bc", "success"].mean)
        for group, _system, metric in figures
        if group.clauses != "all" and metric == "followed"
    }
    assert found == {"1 clause": (1.0, 1.0), "2 clauses": (0.5, 1.0), "3 or more clauses": (0.0, 0.5)}
    assert figures[Group(TEST, "both"), "pvn2-bc", "followed"].n == 5
    assert {group.segments for group, *_ in figures if group.clauses != "all"} == {"both"}


def test_an_interval_is_the_bootstraps(rng):
    scores = many(rng, ["oracle"])
    figures = summarise(scores).figures
    single = [entry for entry in scores if entry.segments == 1]
    draws = Resampling.of([entry.layout for entry in single])
    assert figures[Group(TEST, 1), "oracle", "emd"] == draws.interval([entry.measures.emd for entry in single])
    hits = [entry.measures.success for entry in single]
    assert figures[Group(TEST, 1), "oracle", "success"] == draws.interval(hits, share=True)


def test_all_that_succeed_get_wilsons_interval():
    figures = summarise(flights("oracle", [True] * 10)).figures
    success = figures[Group(TEST, 1), "oracle", "success"]
    assert (success.mean, success.low, success.high) == (pytest.approx(1), pytest.approx(0.7225, abs=1e-4), 1)


def test_every_metric_but_what_belongs_to_the_task_is_averaged():
    of_the_task = {"stop_emd", "gold_length", "clauses", "goal_ahead", "goal_in_sight"}
    assert {metric.name for metric in METRICS} == set(Measures.__annotations__) - of_the_task
    shares = {name for name, kind in Measures.__annotations__.items() if kind.startswith("bool")} - of_the_task
    assert {metric.name for metric in METRICS if metric.share} == shares


def test_corpora_authors_splits_and_domains_are_kept_apart():
    scores = [
        score("oracle", "p/0", split="dev"),
        score("oracle", "p/0", False),
        score("oracle", "p/0", domain="lab"),
        score("oracle", "p/0", split="test-20"),
        score("oracle", "p/0", corpus="field"),
        score("oracle", "p/0", corpus="attic"),
        score("oracle", "p/0", text="human"),
    ]
    summary = summarise(scores)
    assert [(o.corpus, o.text, o.split, o.domain) for o in summary.origins] == [
        ("cage", "generated", "test", "lab"),
        ("cage", "generated", "test", "sim"),
        ("cage", "generated", "test-20", "sim"),
        ("cage", "generated", "dev", "sim"),
        ("cage", "human", "test", "sim"),
        ("field", "generated", "test", "sim"),
        ("attic", "generated", "test", "sim"),
    ]
    assert all(estimate.n == 1 for estimate in summary.figures.values())
    assert summary.figures[Group(TEST, 1), "oracle", "success"].mean == 0


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
    summary = summarise(scores)
    gap = summary.gaps[Group(TEST, 1), "pvn2-bc", "success"]
    assert (gap.mean, gap.n) == (pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3)), 3)
    assert {system for _group, system, _metric in summary.gaps} == {"pvn2-bc"}


def test_less_emd_closes_the_gap():
    scores = [
        *flights("average", [True, True], emd=0.8),
        *flights("pvn2-bc", [True, True], emd=0.6),
        *flights("oracle", [True, True], emd=0.3),
    ]
    gap = summarise(scores).gaps[Group(TEST, 1), "pvn2-bc", "emd"]
    assert gap.mean == pytest.approx(0.2 / 0.5)


def test_differences_are_the_later_systems_less_the_earlier_ones():
    scores = [
        *flights("pvn2-bc", [True, False, False, False]),
        *flights("pvn2-sureal", [True, True, True]),
        *flights("stop", [False] * 4),
    ]
    found = summarise(scores).differences
    pairs = {(a, b) for _group, a, b, _metric in found}
    assert pairs == {("pvn2-sureal", "pvn2-bc"), ("pvn2-bc", "stop"), ("pvn2-sureal", "stop")}
    difference = found[Group(TEST, 1), "pvn2-sureal", "pvn2-bc", "success"]
    assert (difference.mean, difference.n) == (pytest.approx(2 / 3), 3)
    assert {metric for *_rest, metric in found} == {"success", "emd"}  # nothing was judged


def test_the_same_flights_give_the_same_bytes_in_any_order(rng):
    scores = many(rng, ["average", "pvn2-bc", "oracle", "mine"])
    text = summarise(scores).to_json()
    for _ in range(3):
        assert summarise([scores[index] for index in rng.permutation(len(scores))]).to_json() == text


def test_what_others_fly_changes_nobodys_figures(rng):
    scores = many(rng, ["average", "pvn2-bc", "oracle"])
    alone = summarise([entry for entry in scores if entry.system == "pvn2-bc"])
    together = summarise(scores)
    assert {key: found for key, found in together.figures.items() if key[1] == "pvn2-bc"} == alone.figures
    assert not alone.gaps
    assert not alone.differences


def test_a_summary_is_json_with_six_decimals(rng):
    summary = summarise(many(rng, ["average", "pvn2-bc", "oracle"]))
    text = summary.to_json()
    document = json.loads(text)
    assert text == json.dumps(document, indent=1) + "\n"
    assert document["systems"] == {"average": "AVERAGE", "pvn2-bc": "PVN2-BC", "oracle": "ORACLE"}
    row = document["figures"][0]
    keys = ("corpus", "text", "split", "domain", "segments", "goal", "system")
    assert [row[key] for key in keys] == ["cage", "generated", "test", "sim", 1, "all", "average"]
    assert row["metrics"]["emd"]["mean"] == round(summary.figures[Group(TEST, 1), "average", "emd"].mean, 6)
    assert len(document["gap_closed"]) == len(summary.gaps) == 6
    assert len(document["differences"]) == len(summary.differences)
    assert {row["minus"] for row in document["differences"]} == {"average", "pvn2-bc"}


def test_a_metric_that_nobody_has_is_not_there():
    metrics = {metric for _group, _system, metric in summarise(flights("stop", [False, True])).figures}
    assert "emd" in metrics
    assert not metrics & {"judge_path", "first_goal_error"}


def test_of_nothing_there_is_a_summary():
    document = json.loads(summarise([]).to_json())
    assert document["figures"] == document["differences"] == []


def test_an_instruction_flown_twice_is_refused():
    with pytest.raises(WordwingError, match="pvn2-bc flew p/0 of cage in sim twice"):
        summarise([score("pvn2-bc", "p/0"), score("pvn2-bc", "p/0")])


def test_tasks_that_share_no_more_than_a_name_are_refused():
    with pytest.raises(WordwingError, match="different tasks called p/0"):
        summarise([score("stop", "p/0"), score("oracle", "p/0", gold_length=1.4)])


def test_a_score_keeps_an_episodes_keys():
    class Flown:
        system, corpus, text, split, domain = "stop", "cage", "human", "dev", "lab"
        segments, id, layout_id = 2, "p/0-1", "p"

    kept = Score.of(Flown(), score("stop", "p/0-1").measures)
    assert kept == score("stop", "p/0-1", text="human", split="dev", domain="lab")
