"""What becomes of lines in episodes.jsonl that the evaluation did not write, or could not."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from small_evaluation import small_cage
from wordwing.data.dataset import Dataset
from wordwing.errors import WordwingError
from wordwing.evaluation.evaluate import EvaluationConfig, evaluate
from wordwing.evaluation.systems import find_systems
from wordwing.execution.episodes import EPISODES

Change = Callable[[dict], None]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return small_cage(tmp_path_factory.mktemp("data") / "cage", dev=1, test=1)


@pytest.fixture(scope="module")
def fly(dataset: Dataset) -> Callable[[Path], None]:
    systems = find_systems(["stop", "average"], dataset)

    def run(folder: Path) -> None:
        evaluate(EvaluationConfig(dataset, "test", limit=3), systems, folder)

    return run


def lines_of(folder: Path) -> list[str]:
    return (folder / EPISODES).read_text("utf-8").splitlines(keepends=True)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_line_that_is_there_twice_is_there_once_afterwards(place, fly, tmp_path):
    fly(tmp_path)
    whole, lines = (tmp_path / EPISODES).read_bytes(), lines_of(tmp_path)
    lines.insert(place, lines[2])
    (tmp_path / EPISODES).write_text("".join(lines), "utf-8")
    fly(tmp_path)
    assert (tmp_path / EPISODES).read_bytes() == whole


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda row: row.update(schema=2), "line 2 is damaged; delete it"),
        (lambda row: row["metrics"].update(emd="long"), "line 2 is damaged; delete it"),
        (lambda row: row["metrics"].update(emd=[1.0]), "line 2 is damaged; delete it"),
        (lambda row: row["metrics"].update(emd=None), "line 2 is damaged; delete it"),
        (lambda row: row["metrics"].pop("emd"), "line 2 is damaged; delete it"),
        (lambda row: row.update(system="oracle"), r"line 2, \S+ flown by oracle, does not belong to this evaluation"),
        (
            lambda row: row.update(id="elsewhere/0"),
            "elsewhere/0 flown by stop, does not belong to this evaluation",
        ),
    ],
)
def test_a_line_that_is_not_of_the_evaluation_is_named_and_left_alone(change: Change, complaint, fly, tmp_path):
    fly(tmp_path)
    lines = lines_of(tmp_path)
    row = json.loads(lines[1])
    change(row)
    lines[1] = json.dumps(row) + "\n"
    (tmp_path / EPISODES).write_text("".join(lines), "utf-8")
    with pytest.raises(WordwingError, match=complaint):
        fly(tmp_path)
    assert lines_of(tmp_path) == lines


def test_lines_of_before_a_metric_existed_are_measured_for_it(fly, tmp_path):
    fly(tmp_path)
    summary = (tmp_path / "summary.json").read_bytes()
    rows = [json.loads(line) for line in lines_of(tmp_path)]
    for row in rows:
        del row["metrics"]["followed"], row["metrics"]["clauses"]
    (tmp_path / EPISODES).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    old = (tmp_path / EPISODES).read_bytes()
    fly(tmp_path)
    assert (tmp_path / EPISODES).read_bytes() == old
    assert (tmp_path / "summary.json").read_bytes() == summary
    assert b'"followed"' in summary


def test_a_disk_that_is_full_ends_in_a_true_sentence_and_the_same_command_goes_on(fly, tmp_path, monkeypatch):
    fly(tmp_path / "whole")

    sync = os.fsync

    def full(descriptor: int) -> None:
        if not os.readlink(f"/proc/self/fd/{descriptor}").endswith(EPISODES):
            sync(descriptor)
            return
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - 100)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("wordwing.execution.episodes.os.fsync", full)
        with pytest.raises(WordwingError) as caught:
            fly(tmp_path / "full")
    file = tmp_path / "full" / EPISODES
    assert str(caught.value) == (
        f"{file}: cannot be written (no space left on device); the same command resumes from there"
    )
    assert not file.read_text("utf-8").endswith("\n")
    fly(tmp_path / "full")
    assert file.read_bytes() == (tmp_path / "whole" / EPISODES).read_bytes()
