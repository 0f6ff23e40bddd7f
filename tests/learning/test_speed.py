import json
from dataclasses import replace

import pytest
import torch

from wordwing.bench import learn
from wordwing.bench.learn import SMALL, LearnBenchmark, _report, _WorkA
from wordwing.cli import main
from wordwing.learning.recipes.presets import changed, gpu

FIGURES = (
    "Process A alone, contexts/s",
    "Process B alone, environment steps/s",
    "share of an iteration of B: fly",
    "share of an iteration of B: reward",
    "share of an iteration of B: learn",
    "both together, contexts/s",
    "both together, environment steps/s",
    "decisions of a flight",
    "seconds to start and compile",
    "the paper's budget, minutes",
)


USUAL = ("reinforcement.worlds=256", "supervised.executions=192", "model.stage1.lingunet.channels=48")
"""What the recipe has anyway, for the middle of each row."""


def rows(capsys) -> dict[str, dict]:
    return {row["figure"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}


def test_the_time_for_the_papers_budget_follows_from_the_rates(capsys):
    # 93 s of warm-up at 100,000 contexts/s; then B's 400,000 flights of 10 decisions at 20,000 steps/s take longer.
    a = {"alone": 100_000.0, "together": 50_000.0, "starting": 30.0, "contexts": 1024, "peak_gib": None}
    b = {"alone": 40_000.0, "together": 20_000.0, "starting": 20.0, "flights": 16, "peak_gib": None, "length": 10.0}
    b |= {"fly": 0.7, "reward": 0.1, "learn": 0.2}
    plan = LearnBenchmark("cpu", 1.0, False, "cage", None, 0)
    _report(a, b, torch.device("cpu"), plan)
    found = rows(capsys)
    assert tuple(found) == FIGURES
    assert found["the paper's budget, minutes"]["value"] == pytest.approx((30 + 93 + 200) / 60, abs=1e-3)
    _report(a | {"together": 10_000.0}, b, torch.device("cpu"), plan)  # then A's 6.7 million contexts do
    assert rows(capsys)["the paper's budget, minutes"]["value"] == pytest.approx((30 + 93 + 670) / 60, abs=1e-3)


def test_what_is_changed_stands_beside_each_figure(monkeypatch, capsys):
    measured = []
    monkeypatch.setattr(learn, "bench_learn", measured.append)
    main(["bench", "learn", "--device", "cpu", "--scaling"])
    assert [plan.changed for plan in measured] == ["", *learn.SCALING["cpu"]]
    for device, config in (("cpu", SMALL), ("cuda", gpu())):
        for setting in learn.SCALING[device]:
            assert changed(config, [setting]).to_json() != config.to_json() or setting in USUAL, setting
    a = {"alone": 1.0, "together": 1.0, "starting": 1.0, "contexts": 1, "peak_gib": None}
    b = {"alone": 1.0, "together": 1.0, "starting": 1.0, "flights": 1, "peak_gib": None, "length": 1.0}
    _report(a, b | dict.fromkeys(("fly", "reward", "learn"), 0.3), torch.device("cpu"), measured[-1])
    assert {row["changed"] for row in rows(capsys).values()} == {learn.SCALING["cpu"][-1]}


def test_a_corpus_that_is_not_there_is_refused_before_anything_is_started(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "learn", "--device", "cpu", "--corpus", "nowhere"])
    assert stop.value.code == 2
    assert "wordwing: nowhere: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_limit_that_leaves_nothing_is_refused(limit, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "learn", "--device", "cpu", "--limit", limit])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"wordwing: --limit is {limit}; it must be 1 or more\n"


@pytest.mark.long
def test_bench_learn_measures_both_processes_alone_and_together(run, capsys):
    cage = str(run.data.datasets[0].folder)
    main(["bench", "learn", "--device", "cpu", "--seconds", "1", "--corpus", cage, "--limit", "12"])
    found = rows(capsys)
    assert tuple(found) == FIGURES
    assert all(row["value"] > 0 for row in found.values())
    assert all((row["corpus"], row["compiled"]) == (cage, False) for row in found.values())
    shares = [found[f"share of an iteration of B: {part}"]["value"] for part in ("fly", "reward", "learn")]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    assert 1 <= found["decisions of a flight"]["value"] <= 50
    assert found["Process A alone, contexts/s"]["contexts"] == 64, "8 executions of 8 pictures"
    assert found["Process B alone, environment steps/s"]["flights"] == 16


def test_the_batches_of_the_recipe_gpu_are_measured_with_its_mirrored_flights(run):
    recipe = gpu()
    config = replace(
        recipe,
        supervised=replace(recipe.supervised, executions=2, cage_executions=1, discriminator_images=2),
        data=SMALL.data,
    )
    work = _WorkA(run.network(), run.data, config, LearnBenchmark("cpu", 1.0, False, "cage", None, 0, "gpu"))
    assert work() == 4 * 4, "two executions, one of the cage and one of the lab, of four pictures"
