"""`wordwing report` from the command line: what it says, what it writes, how it answers mistakes."""

import pytest

from command_line import refused
from small_evaluation import small_cage
from wordwing.cli import main


@pytest.fixture
def flown(tmp_path):
    small_cage(tmp_path / "cage", train=1, dev=1)
    main(["evaluate", "stop", "oracle", "--data", str(tmp_path / "cage"), "--limit", "3", "--out", str(tmp_path / "x")])
    return tmp_path / "x"


def test_a_report_lies_in_the_evaluations_folder_unless_told_otherwise(flown, tmp_path, capsys):
    main(["report", str(flown), "--videos", "0"])
    assert capsys.readouterr().out.splitlines()[-1] == str(flown / "report" / "report.html")
    page = (flown / "report" / "report.html").read_text("utf-8")
    assert "ORACLE" in page
    assert "written by a program, not by people" in page
    main(["report", str(flown), "--videos", "0", "--out", str(tmp_path / "there")])
    assert (tmp_path / "there" / "report.html").read_text("utf-8") == page
    main(["evaluate", "average", "--data", str(tmp_path / "cage"), "--limit", "3", "--out", str(flown)])
    main(["report", str(flown), "--videos", "0"])
    assert "AVERAGE" in (flown / "report" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "report on what?"),
        (["nowhere"], "nowhere: there is no such folder"),
        (["."], "there is no episodes.jsonl in it"),
        (["x", "--videos", "-1"], "--videos is -1; it must be 0 or more"),
        (["x", "--films", "3"], "wordwing report: --films is called --videos now"),
    ],
)
def test_mistakes_are_answered_with_one_sentence(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, "report", *arguments)
    assert list(tmp_path.iterdir()) == []
