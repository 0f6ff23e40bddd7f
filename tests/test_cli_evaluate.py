"""`wordwing evaluate` as a person meets it."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import refused
from small_evaluation import bare_dataset, save_policy
from wordwing.cli import main
from wordwing.data.corpora import corpus
from wordwing.evaluation import evaluate as flying
from wordwing.files import locked

EVALUATE = ["evaluate", "stop", "average", "oracle", "--limit", "4", "--device", "cpu"]


def rows_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf-8").splitlines()]


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory) -> Path:
    """A folder that a command has filled; nobody may change it."""
    folder = tmp_path_factory.mktemp("out") / "evaluation"
    main([*EVALUATE, "--out", str(folder)])
    return folder


def assert_clauses(table: str, folder: Path) -> None:
    """A table of clauses counts those of the lines and, over all kinds, what the judge's path scores add up to."""
    counted: Counter[tuple[str, str]] = Counter()
    scores: Counter[str] = Counter()
    for row in rows_of(folder):
        counted.update((row["system"], clause["kind"]) for clause in row["meaning"])
        scores[row["system"]] += row["metrics"]["judge_path"] * len(row["meaning"])
    said = [line.split() for line in table.splitlines() if len(line.split()) == 5 and line.split()[2].isdigit()]
    assert {(system.lower(), kind): int(n) for system, kind, n, _done, _score in said} == counted
    for system, total in scores.items():
        own = [(int(n), float(score)) for name, _kind, n, _done, score in said if name.lower() == system]
        assert sum(n * score for n, score in own) == pytest.approx(total, abs=0.006 * sum(n for n, _ in own))


def test_a_command_prints_a_table_of_what_its_flights_measured(evaluated, capsys):
    main([*EVALUATE, "--out", str(evaluated)])  # flies nothing, and says the same
    said = capsys.readouterr()
    assert said.err == ""
    metrics, clauses = said.out.split("Clauses done, by kind")
    assert_clauses(clauses, evaluated)
    title, *table = [line for line in (metrics + clauses[clauses.index(str(evaluated)) :]).splitlines() if line.strip()]
    assert title.strip() == "dev-mini dev in sim, generated instructions, 95 % intervals"
    assert table[-2:] == [str(evaluated / "episodes.jsonl"), str(evaluated / "summary.json")]
    rows, counts = rows_of(evaluated), set()
    for line in table[2:-2]:
        system, segments, n, success, _interval, followed, stopped, emd, _interval, ndtw, path, goal = line.split()
        counts.add(segments)
        flown = [
            row["metrics"]
            for row in rows
            if row["system"] == system.lower() and segments in (str(row["segments"]), "both")
        ]
        assert int(n) == len(flown) > 0
        assert float(followed) == pytest.approx(100 * np.mean([one["followed"] for one in flown]), abs=0.06)
        assert float(stopped) == pytest.approx(100 * np.mean([one["stopped"] for one in flown]), abs=0.06)
        means = [np.mean([float(one[key]) for one in flown]) for key in ("emd", "ndtw", "judge_path", "judge_goal")]
        assert float(success) == pytest.approx(100 * np.mean([one["success"] for one in flown]), abs=0.06)
        assert [float(emd), float(ndtw), float(path), float(goal)] == pytest.approx(means, abs=0.006)
    assert counts == {"1", "2", "both"}
    assert len(table) == 2 + 9 + 2


def test_all_systems_fly_the_same_four_of_dev_minis_instructions(evaluated):
    flown: dict[str, list[str]] = {}
    for row in rows_of(evaluated):
        flown.setdefault(row["system"], []).append(row["id"])
        assert (row["corpus"], row["text"], row["split"], row["domain"]) == ("dev-mini", "generated", "dev", "sim")
    assert list(flown) == ["stop", "average", "oracle"]
    assert len(flown["stop"]) == 4
    assert flown["stop"] == flown["average"] == flown["oracle"]
    assert set(flown["stop"]) <= {entry.id for entry in corpus("dev-mini").instructions("dev")}


def test_intervals_in_the_table_are_those_of_the_summary(evaluated, capsys):
    main([*EVALUATE, "--out", str(evaluated)])
    said = capsys.readouterr().out
    summary = json.loads((evaluated / "summary.json").read_text())
    figures = [row for row in summary["figures"] if row["goal"] == row["clauses"] == "all"]
    assert len(figures) == 9
    for row in figures:
        success, emd = row["metrics"]["success"], row["metrics"]["emd"]
        assert f"{100 * success['mean']:.1f} ({100 * success['low']:.1f}–{100 * success['high']:.1f})" in said
        assert f"{emd['mean']:.2f} ({emd['low']:.2f}–{emd['high']:.2f})" in said


def test_a_policy_by_its_folder_is_added_under_the_name_it_is_given(tmp_path, capsys):
    out = tmp_path / "out"
    policy = save_policy(tmp_path / "untrained", stop=1e4)
    common = ["--limit", "2", "--segments", "1", "--device", "cpu", "--out", str(out)]
    main(["evaluate", "stop", *common])
    main(["evaluate", f"mine={policy}", *common])
    said = capsys.readouterr().out
    assert "\n mine " in said
    rows = rows_of(out)
    assert [(row["system"], row["segments"]) for row in rows] == [("stop", 1), ("stop", 1), ("mine", 1), ("mine", 1)]
    for row in rows[2:]:
        assert (row["ended_by"], row["decisions"], len(row["goals"])) == ("stop", 0, 1)
        assert row["metrics"]["first_goal_error"] == row["metrics"]["last_goal_error"] > 0
    assert len({path.name for path in out.iterdir()} - {".lock"}) == 3


def test_the_lab_and_a_dataset_of_ones_own_can_be_flown_and_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = bare_dataset(tmp_path / "data", [("a", "test", "yard"), ("b", "test", "yard")], name="yard")
    arguments = [
        "--data",
        str(data.folder),
        "--split",
        "test-20",
        "--domain",
        "lab",
        "--limit",
        "1",
        "--processes",
        "1",
    ]
    main(["evaluate", "stop", *arguments])
    said = capsys.readouterr().out
    assert "yard test-20 in lab, generated instructions" in said
    [row] = rows_of(tmp_path / "out" / "evaluate" / "yard-test-20-lab")
    assert (row["corpus"], row["split"], row["domain"], row["metrics"]["judge_path"]) == (
        "yard",
        "test-20",
        "lab",
        None,
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "who is to fly? Name systems: wordwing evaluate average oracle"),
        (["oracel"], 'no policy is called "oracel", and there is no such folder; did you mean "oracle"?'),
        (["=x"], '"=x" has no name before "="; a system is POLICY or NAME=POLICY'),
        (["x="], 'no policy is called ""'),
        (["stop", "stop"], 'two systems are called "stop"; name one of them: NAME=POLICY'),
        (["x" * 5000], "and there is no such folder"),
        (["stop", "--segments", "3"], "--segments is 3; it must be 1, 2 or both"),
        (["stop", "--segments", "1", "0"], "--segments is 1 0; it must be 1, 2 or both"),
        (["stop", "--segments"], "--segments is empty; it must be 1, 2 or both"),
        (["stop", "--limit", "0"], "--limit is 0; it must be 1 or more"),
        (["stop", "--limit", "-3"], "--limit is -3; it must be 1 or more"),
        (["stop", "--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (["stop", "--processes", "-1"], "--processes is -1; it must be 0 or more"),
        (["stop", "--data", ".", "--corpus", "cage"], "name one dataset: either its folder or --corpus"),
        (["stop", "--data", "nowhere"], "nowhere: there is no such folder"),
        (["stop", "--corpus", "dev-mimi"], 'there is no corpus "dev-mimi"; did you mean "dev-mini"?'),
        (["stop", "--split", "tset"], 'there is no split "tset"; there are dev, dev-20'),
        (["stop", "--device", "gpu"], 'no device is called "gpu"'),
    ],
)
def test_wrong_arguments_are_answered_in_a_sentence_and_nothing_is_written(
    capsys, tmp_path, monkeypatch, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, "evaluate", *arguments)
    assert sentence in refused(capsys, "evaluate", *arguments, "--out", str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--domain", "moon"], ["--limit", "many"], ["--seed", "0.5"], ["--fast"]])
def test_words_that_are_no_arguments_exit_with_2_and_nothing_is_written(capsys, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "stop", *arguments])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert arguments[-1] in said.err + said.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--limit", "5"], "this is an evaluation with limit 4, not 5; take another --out"),
        (["--seed", "1"], "this is an evaluation with seed 0, not 1"),
        (["--segments", "2"], "this is an evaluation with segments [1, 2], not [2]"),
        (["--domain", "lab"], "this is an evaluation with domain sim, not lab"),
        (["--split", "dev-20"], "this is an evaluation with split dev, not dev-20"),
    ],
)
def test_a_folder_that_holds_another_evaluation_is_refused_and_left_as_it_is(evaluated, capsys, change, sentence):
    before = files_of(evaluated)
    said = refused(capsys, *EVALUATE, "--out", str(evaluated), *change)
    assert said.startswith(f"wordwing: {evaluated}: {sentence}")
    assert files_of(evaluated) == before


def test_a_folder_in_which_another_command_evaluates_is_refused(evaluated, capsys):
    before = files_of(evaluated)
    with locked(evaluated, "an evaluation", "evaluating"):
        assert "another command is evaluating there" in refused(capsys, *EVALUATE, "--out", str(evaluated))
    assert files_of(evaluated) == before


def test_an_output_folder_that_is_a_file_is_refused(capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    said = refused(capsys, *EVALUATE, "--out", str(tmp_path / "taken"))
    assert said.endswith("taken: an evaluation cannot be kept there (it is a file)\n")


def test_ctrl_c_leaves_what_was_flown_and_the_same_command_goes_on(evaluated, tmp_path, capsys, monkeypatch):
    really, flown = flying.fly_batch, []

    def once(piece):
        if flown:
            raise KeyboardInterrupt
        flown.append(piece)
        return really(piece)

    with monkeypatch.context() as patch:
        patch.setattr(flying, "fly_batch", once)
        with pytest.raises(SystemExit) as stop:
            main([*EVALUATE, "--out", str(tmp_path)])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "wordwing: interrupted\n"
    assert len(rows_of(tmp_path)) == 4
    main([*EVALUATE, "--out", str(tmp_path)])
    for name in ("episodes.jsonl", "summary.json"):
        assert (tmp_path / name).read_bytes() == (evaluated / name).read_bytes()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_is_refused_in_a_sentence_where_there_is_none(capsys, tmp_path):
    assert "no CUDA device" in refused(capsys, "evaluate", "stop", "--device", "cuda", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
