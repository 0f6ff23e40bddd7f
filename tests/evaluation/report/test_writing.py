"""A report is computed from lines alone, and the same lines make the same bytes."""

import csv
import html
import json
import lzma
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from small_evaluation import save_policy, small_cage
from wordwing.errors import WordwingError
from wordwing.evaluation.evaluate import EvaluationConfig, evaluate
from wordwing.evaluation.report.writing import check_place, measure_again, sort_folders, write_report
from wordwing.evaluation.systems import find_systems


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory) -> Path:
    """STOP, ORACLE and a policy that has learned nothing, on a few instructions."""
    folder = tmp_path_factory.mktemp("evaluated")
    dataset = small_cage(folder / "cage", train=1, dev=2)
    policy = save_policy(folder / "mine")
    settings = EvaluationConfig(dataset, "dev", limit=6)
    evaluate(settings, find_systems(["stop", "oracle", str(policy)], dataset), folder / "flown")
    return folder / "flown"


def copied(evaluated: Path, place: Path) -> Path:
    shutil.copytree(evaluated, place)
    return place


def reported(folder: Path, out: Path, videos: int = 1) -> dict[str, bytes]:
    """All files of a report on a folder, and the summary that was written."""
    given = sort_folders([folder])
    write_report(given, measure_again(given), out, videos)
    files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    return files | {"summary": (folder / "summary.json").read_bytes()}


@pytest.fixture(scope="module")
def honest(evaluated, tmp_path_factory) -> dict[str, bytes]:
    """The report on what was flown, without videos."""
    folder = tmp_path_factory.mktemp("honest")
    return reported(copied(evaluated, folder / "flown"), folder / "report", videos=0)


def changed_lines(folder: Path, change) -> None:
    file = folder / "episodes.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(json.dumps(change(row)) + "\n" for row in rows), "utf-8")


def test_the_same_lines_make_the_same_bytes_twice_and_without_summaries(evaluated, tmp_path):
    first = reported(copied(evaluated, tmp_path / "a"), tmp_path / "report-a")
    bare = copied(evaluated, tmp_path / "elsewhere" / "b")
    (bare / "summary.json").unlink()
    (bare / "evaluation.json").unlink()
    second = reported(bare, tmp_path / "report-b")
    assert first.keys() == second.keys() >= {"report.html", "tables.md", "tables.tex", "metrics.csv", "summary"}
    assert [name for name in first if first[name] != second[name]] == []
    assert sum(name.startswith("videos/") for name in first) == 1
    assert first["summary"] == (evaluated / "summary.json").read_bytes(), "as the evaluation itself has it"


def test_metrics_in_lines_are_not_believed(evaluated, honest, tmp_path):
    forged = copied(evaluated, tmp_path / "b")
    changed_lines(forged, lambda row: {**row, "metrics": {**row["metrics"], "success": True, "emd": 0.0}})
    assert reported(forged, tmp_path / "report-b", videos=0) == honest


def test_a_flight_that_ends_elsewhere_is_scored_elsewhere(evaluated, tmp_path):
    moved = copied(evaluated, tmp_path / "a")

    def to_goal(row):
        [x, y] = row["gold"][-1]
        return {**row, "poses": [*row["poses"][:-1], [x, y, *row["poses"][-1][2:]]]} if row["system"] == "stop" else row

    changed_lines(moved, to_goal)
    files = reported(moved, tmp_path / "report", videos=0)
    rows = list(csv.DictReader(files["metrics.csv"].decode().splitlines()))
    shares = {row["mean"] for row in rows if (row["system"], row["metric"], row["minus"]) == ("stop", "success", "")}
    assert {float(share) for share in shares} == {1.0}


def test_compressed_lines_make_the_same_report_and_get_no_summary(evaluated, honest, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    with lzma.open(packed / "episodes.jsonl.xz", "wb") as file:
        file.write((evaluated / "episodes.jsonl").read_bytes())
    given = sort_folders([packed])
    write_report(given, measure_again(given), tmp_path / "report-b", videos=0)
    assert (tmp_path / "report-b" / "report.html").read_bytes() == honest["report.html"]
    assert [path.name for path in packed.iterdir()] == ["episodes.jsonl.xz"]


def test_sentences_that_may_not_be_passed_on_are_not(evaluated, honest, tmp_path):
    sentences = {json.loads(line)["instruction"] for line in (evaluated / "episodes.jsonl").read_text().splitlines()}
    hidden_folder = copied(evaluated, tmp_path / "b")
    changed_lines(hidden_folder, lambda row: {**row, "instruction": None})
    hidden = reported(hidden_folder, tmp_path / "report-b", videos=1)
    page = html.unescape(honest["report.html"].decode())
    assert any(sentence in page for sentence in sentences)
    assert not any(sentence in html.unescape(hidden["report.html"].decode()) for sentence in sentences)
    assert hidden["metrics.csv"] == honest["metrics.csv"]


def test_one_system_flown_twice_is_refused(evaluated, tmp_path):
    twice = [evaluated, copied(evaluated, tmp_path / "again")]
    given = sort_folders(twice)
    with pytest.raises(WordwingError, match=r"flew .* twice"):
        write_report(given, measure_again(given), tmp_path / "report", videos=0)
    assert not (tmp_path / "report").exists()


def test_folders_that_are_neither_an_evaluation_nor_a_run_are_refused(evaluated, tmp_path):
    with pytest.raises(WordwingError, match="there is no such folder"):
        sort_folders([tmp_path / "nowhere"])
    with pytest.raises(WordwingError, match=r"there is no episodes\.jsonl in it"):
        sort_folders([tmp_path])
    with pytest.raises(WordwingError, match="named twice"):
        sort_folders([evaluated, evaluated.parent / "." / "flown"])
    (tmp_path / "episodes.jsonl").touch()
    with pytest.raises(WordwingError, match="no flights in it yet"):
        measure_again(sort_folders([tmp_path]))


def test_only_a_report_is_replaced(evaluated, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(WordwingError, match=r"thesis\.tex is in it"):
        check_place(tmp_path)
    with pytest.raises(WordwingError, match=r"not a report"):
        reported(copied(evaluated, tmp_path / "flown"), tmp_path, videos=0)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_report_of_version_0_1_is_replaced(evaluated, tmp_path):
    old = tmp_path / "report"
    (old / "films").mkdir(parents=True)
    for name in ("report.html", "figures.csv"):
        (old / name).touch()
    files = reported(copied(evaluated, tmp_path / "flown"), old, videos=0)
    assert {"report.html", "metrics.csv"} < files.keys()
    assert not (old / "figures.csv").exists()


def test_flying_evaluating_and_training_can_be_imported_without_pandas():
    code = """
import sys
sys.modules["pandas"] = sys.modules["jinja2"] = None
import wordwing.cli, wordwing.learning.sureal, wordwing.evaluation.demo, wordwing.evaluation.evaluate
"""
    subprocess.run([sys.executable, "-c", code], check=True)
