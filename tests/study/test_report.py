"""A report says what was rated, and nothing else."""

import csv
import json
import sqlite3

import pytest

from small_study import practised_rater, rate_everything, small_study
from wordwing.errors import WordwingError
from wordwing.study.questions import Answers
from wordwing.study.report import find, write_report
from wordwing.study.store import Study


@pytest.fixture
def rated(tmp_path) -> Study:
    """Four instructions, the goals of two behind; ORACLE gets fives, AVERAGE ones; both raters call i0 unclear."""
    study = small_study(tmp_path / "s.db", 4, ("average", "oracle"), raters=2, behind=(1, 3))
    rows = sqlite3.connect(study.file).execute(
        "SELECT items.id, system, instructions.id FROM items JOIN instructions ON instruction = instructions.number"
    )
    known = {item: (system, name) for item, system, name in rows}

    def answers(item: str) -> Answers:
        system, name = known[item]
        return Answers(*((5, 4, 5) if system == "oracle" else (1, 2, 1)), unclear=name == "i0", seconds=12.5)

    for _ in range(2):
        rate_everything(study, answers)
    return study


def test_scores_are_of_the_ratings_without_unclear_instructions(rated):
    found = find(rated)
    assert found.excluded == ("i0",)
    assert (len(found.ratings), found.raters, found.finished) == (16, 2, 2)
    everything, ahead, behind = found.groups
    assert [group.instructions for group in found.groups] == [3, 1, 2]
    assert everything.scores.loc["oracle", "path"].tolist() == [0, 0, 0, 0, 6, 6, 5.0]
    assert everything.scores.loc["oracle", "goal"].tolist() == [0, 0, 0, 6, 0, 6, 4.0]
    assert everything.scores.loc["average", "goal"].tolist() == [0, 6, 0, 0, 0, 6, 2.0]
    assert set(ahead.scores["n"]) == {2}
    assert set(behind.scores["n"]) == {4}
    path, goal = everything.comparisons
    assert (path.system, path.other, path.difference, goal.difference) == ("average", "oracle", -4.0, -2.0)
    assert path.p == pytest.approx(0.25)  # 3 differences of one sign: 2 of 8 ways
    assert path.corrected == pytest.approx(0.5)
    assert everything.alpha["path"] == pytest.approx(1.0)


def test_all_files_are_written_and_say_the_same(rated, tmp_path):
    write_report(rated, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    charts = {f"charts/{kind}-{group}.svg" for kind in ("scores", "efficiency") for group in ("all", "ahead")}
    charts |= {f"charts/{kind}-not-ahead.svg" for kind in ("scores", "efficiency")}
    assert names == {"report.json", "tables.md", "scores.csv", "ratings.csv"} | charts
    document = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert document["excluded"] == [{"id": "i0", "text": "instruction 0"}]
    assert document["ratings"] == 16
    ratings = list(csv.DictReader((tmp_path / "out" / "ratings.csv").open(newline="")))
    assert len(ratings) == 16
    assert {row["excluded"] for row in ratings if row["instruction"] == "i0"} == {"1"}
    assert {(row["path"], row["goal"], row["seconds"]) for row in ratings if row["system"] == "oracle"} == {
        ("5", "4", "12.5")
    }
    scores = list(csv.DictReader((tmp_path / "out" / "scores.csv").open(newline="")))
    [row] = [row for row in scores if (row["goal"], row["system"], row["question"]) == ("all", "oracle", "path")]
    assert (row["n"], row["mean"], row["score_5"]) == ("6", "5.0", "6")
    tables = (tmp_path / "out" / "tables.md").read_text("utf-8")
    assert "| ORACLE, goal | 6 | 4.00 | 0.0 | 0.0 | 0.0 | 100.0 | 0.0 |" in tables
    assert "| AVERAGE and ORACLE, path | 3 | 3 | -4.00 | 0 | 0.250 | 0.500 |" in tables
    assert "16 of 16" in tables
    assert "no real drone flew" not in tables  # it is not of the lab
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    write_report(rated, tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before


def test_a_report_replaces_nothing_but_a_report(rated, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(WordwingError, match="this is not a study's report"):
        write_report(rated, tmp_path / "mine")


def test_there_is_no_report_of_nothing(tmp_path):
    with pytest.raises(WordwingError, match="nobody has rated anything yet"):
        write_report(small_study(tmp_path / "s.db"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_study_whose_instructions_are_all_unclear_has_a_report_of_nothing(tmp_path):
    study = small_study(tmp_path / "s.db", 2)
    rate_everything(study, lambda item: Answers(1, 2, 3, unclear=True))
    found = write_report(study, tmp_path / "out")
    assert found.excluded == ("i0", "i1")
    assert {n for group in found.groups for n in group.scores["n"]} == {0}
    assert list((tmp_path / "out" / "charts").iterdir()) == []


def test_a_study_of_one_system_that_is_half_rated_has_a_report(tmp_path):
    study = small_study(tmp_path / "s.db", 2, ("oracle",), raters=3)
    token = practised_rater(study)
    study.rate(token, study.order(token)[0][0], Answers(2, 2, 2))
    found = write_report(study, tmp_path / "out")
    assert (found.raters, found.finished) == (1, 0)
    assert found.groups[0].alpha == {"path": None, "goal": None, "efficiency": None}
    assert found.groups[0].comparisons == ()
    assert not (tmp_path / "out" / "charts" / "scores-not-ahead.svg").exists()  # nobody was scored


def test_no_name_is_a_formula_in_a_spreadsheet(tmp_path):
    study = small_study(tmp_path / "s.db", 2, ("=1+1", "oracle"), raters=1)
    rate_everything(study)
    write_report(study, tmp_path / "out")
    for name in ("scores.csv", "ratings.csv"):
        with (tmp_path / "out" / name).open(newline="") as file:
            assert {row["system"] for row in csv.DictReader(file)} == {"'=1+1", "oracle"}
