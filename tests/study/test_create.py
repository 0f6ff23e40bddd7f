"""From saved evaluations to a study, and from its ratings to a report; what is refused, and how."""

import inspect
import json
import re
import shlex
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import tyro

from small_evaluation import plain_episode, small_cage
from small_study import rate_everything
from wordwing.cli import main
from wordwing.commands import study as command
from wordwing.errors import WordwingError
from wordwing.execution.episodes import episode_line
from wordwing.study import create
from wordwing.study.create import create_study, plan
from wordwing.study.questions import Answers
from wordwing.study.store import Study


def evaluation(folder, episodes):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "episodes.jsonl").write_text("".join(episode_line(episode, {}) for episode in episodes), "utf-8")
    return folder


def flights(systems="stop average oracle", names=range(6), **changes):
    """ORACLE flies to the demonstration's end, AVERAGE away from it, STOP stays."""
    ends = {"stop": 0.0, "average": -1.5}
    gold = np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]])
    return [
        plain_episode(
            [[0.0, 0.0], [ends.get(system, 1.0) / 2, 0.0], [ends.get(system, 1.0), 0.0]],
            **{"gold": gold, "system": system, "id": f"p{name}/0", "instruction": f"do {name}"} | changes,
        )
        for system in systems.split()
        for name in names
    ]


def test_only_instructions_that_all_systems_flew_are_rated(tmp_path):
    one = evaluation(tmp_path / "one", flights("stop", range(0, 5)))
    other = evaluation(tmp_path / "other", flights("oracle", range(2, 7)))
    made = plan([one, other], practice=0)
    assert {(entry.provenance.system, entry.provenance.id) for entry in made.items} == {
        (system, f"p{name}/0") for system in ("stop", "oracle") for name in (2, 3, 4)
    }
    assert (made.settings.systems, made.instructions, made.held_out) == (("stop", "oracle"), 3, 0)


def test_flights_to_practise_on_are_good_and_bad_ones_of_instructions_that_are_not_rated(tmp_path):
    folder = evaluation(tmp_path / "x", flights(names=range(9)))
    made = plan([folder], systems=("stop", "average"), limit=4, practice=3)
    assert made.instructions == 4
    assert made.held_out == 0
    rated = {entry.provenance.id for entry in made.items}
    practised = [entry for entry, _facts in made.practice]
    assert [entry.provenance.system for entry in practised] == ["oracle", "average", "oracle"]
    assert len({entry.provenance.id for entry in practised} | rated) == 7
    assert [facts.distance for _entry, facts in made.practice] == pytest.approx([0.0, 2.5, 0.0])
    again = plan([folder], systems=("stop", "average"), limit=4, practice=3)
    assert [entry.provenance.id for entry in again.items] == [entry.provenance.id for entry in made.items]
    other = plan([folder], systems=("stop", "average"), limit=4, practice=3, seed=1)
    assert {entry.provenance.id for entry in other.items} != rated


def test_instructions_are_held_out_for_practice_where_there_are_no_others(tmp_path):
    folder = evaluation(tmp_path / "x", flights(names=range(5)))
    made = plan([folder], practice=2)
    assert (made.instructions, made.held_out, len(made.practice)) == (3, 2, 2)
    assert not {entry.provenance.id for entry in made.items} & {entry.provenance.id for entry, _facts in made.practice}
    with pytest.raises(WordwingError, match="only 5 instructions, which leaves none to rate"):
        plan([folder], practice=5)


@pytest.mark.parametrize(
    ("episodes", "wishes", "sentence"),
    [
        (flights(instruction=None, text="human"), {}, "may not be passed on"),
        (flights(), {"systems": ("oracel",)}, '"oracel" did not fly; did you mean "oracle"'),
        (flights(), {"systems": ("stop", "stop")}, "stop is named twice"),
        (flights(), {"segments": (2,)}, "no instruction of 2 segments"),
        (flights("stop") + flights("oracle", range(6, 9)), {}, "that all of stop, oracle flew"),
        (flights() + flights("stop", [0]), {}, "stop flew p0/0 twice"),
        (flights() + flights("late", domain="lab"), {}, "one corpus, split and domain"),
        (flights() + flights("late", instruction="other"), {}, "another instruction there"),
        (flights(instruction="x" * 2001), {}, "more than 2,000 characters"),
        ([], {}, "no flights in it yet"),
    ],
)
def test_what_cannot_be_a_study_is_refused_with_the_reason(tmp_path, episodes, wishes, sentence):
    with pytest.raises(WordwingError, match=sentence):
        plan([evaluation(tmp_path / "x", episodes)], **wishes)


def test_a_study_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    made = plan([evaluation(tmp_path / "x", flights())], practice=1)
    out = tmp_path / "there" / "study.db"

    def fail(flown):
        raise WordwingError("no")

    monkeypatch.setattr(create, "draw_flights", fail)
    with pytest.raises(WordwingError):
        create_study(made, out)
    assert list(out.parent.iterdir()) == []
    out.write_text("ratings")
    with pytest.raises(WordwingError, match="perhaps with people's work in it"):
        create_study(made, out)
    assert out.read_text() == "ratings"


def test_mistakes_in_options_are_sentences(tmp_path):
    for options, sentence in (
        ({"raters": 0}, "--raters is 0"),
        ({"items_per_rater": 0}, "--items-per-rater is 0"),
        ({"practice": -1}, "--practice is -1"),
        ({"limit": 0}, "--limit is 0"),
        ({"seed": -1}, "--seed is -1"),
        ({"processes": -1}, "--processes is -1"),
        ({"episodes": ()}, "a study of what"),
        ({"episodes": (tmp_path / "nowhere",)}, "there is no episodes.jsonl"),
    ):
        with pytest.raises(WordwingError, match=sentence):
            command.create(**{"episodes": (tmp_path,), "out": tmp_path / "s.db"} | options)
    assert list(tmp_path.iterdir()) == []


def run(*arguments: str) -> None:
    app = tyro.extras.SubcommandApp()
    app.command(command.create)
    app.command(command.report)
    app.command(command.export)
    app.command(command.import_results, name="import")
    app.cli(args=list(arguments))


def test_a_study_of_real_flights_goes_from_evaluation_to_report(tmp_path, capsys):
    small_cage(tmp_path / "cage", train=1, dev=1)
    folder, out = tmp_path / "flown", tmp_path / "study.db"
    main(["evaluate", "stop", "oracle", "--data", str(tmp_path / "cage"), "--limit", "3", "--out", str(folder)])
    capsys.readouterr()
    options = ["--raters", "2", "--practice", "1", "--processes", "1", "--out", str(out)]
    run("create", "--episodes", str(folder), "--systems", "oracle", "stop", *options)
    assert capsys.readouterr().out.splitlines() == [
        "2 instructions x 2 systems = 4 items, 2 judgements each; flights to practise on: 1",
        "held out for practice, since all instructions were to be rated: 1",
        str(out),
    ]
    (folder / "episodes.jsonl").unlink()  # not needed any more
    study = Study(out)
    systems = dict(sqlite3.connect(out).execute("SELECT id, system FROM items WHERE practice IS NULL"))
    scores = {"oracle": Answers(5, 4, 3), "stop": Answers(1, 2, 3, True)}
    tokens = [rate_everything(study, lambda item: scores[systems.get(item, "stop")]) for _ in range(2)]
    videos = [study.media_of(item, "video") for item, _rated in study.order(tokens[0])]
    assert len(set(videos)) == 4
    assert all(video[4:8] == b"ftyp" for video in videos)
    run("report", str(out), "--out", str(tmp_path / "report"))
    assert capsys.readouterr().out.splitlines() == [
        "8 judgements by 2 raters; 0 instructions excluded",
        str(tmp_path / "report"),
    ]
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    found = {(row["system"], row["question"]): row for row in report["groups"]["all"]["scores"]}
    assert found["oracle", "path"]["counts"] == [0, 0, 0, 0, 4]
    assert found["stop", "goal"]["mean"] == 2
    assert report["study"]["text"] == "generated"
    assert "salt" not in json.dumps(report)
    assert "written by a program, not by people" in (tmp_path / "report" / "tables.md").read_text("utf-8")


def test_the_commands_and_options_of_the_page_exist():
    page = (Path(__file__).parents[2] / "docs" / "study.md").read_text("utf-8")
    lines = [shlex.split(line, comments=True)[2:] for line in page.splitlines() if line.startswith("wordwing study ")]
    commands = {
        "create": command.create,
        "serve": command.serve,
        "report": command.report,
        "export": command.export,
        "import": command.import_results,
    }
    assert {words[0] for words in lines} == set(commands)
    for name, *words in lines:
        options = {word[2:].replace("-", "_") for word in words if word.startswith("--")}
        assert options <= set(inspect.signature(commands[name]).parameters), name
    told = set(re.findall(r"`--([a-z-]+)`", page.partition("## What raters see")[0]))
    taken = {option.replace("_", "-") for option in inspect.signature(command.create).parameters}
    assert told == taken - {"out"}
    serving = page.partition("## Serving the page")[2].partition("\n## ")[0]
    rows = "".join(line.partition(" | ")[0] for line in serving.splitlines() if line.startswith("| `--"))
    assert set(re.findall(r"`--([a-z-]+)`", rows)) == set(inspect.signature(command.serve).parameters) - {"study"}
