import sys

import numpy as np
import pytest
import tyro

from house_rooms import random_furniture, random_paragraph, write_human_nav
from wordwing.commands import datasets
from wordwing.data.dataset import Dataset
from wordwing.errors import WordwingError


def run(*arguments: object) -> None:
    app = tyro.extras.SubcommandApp()
    app.command(datasets.human_nav)
    app.command(datasets.alfred)
    app.cli(args=[str(argument) for argument in arguments], prog="wordwing data import")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    rooms = {name: random_furniture(rng, 6) for name in ("a", "b", "c")}
    train = [random_paragraph(rng, f"{name}{i}", name) for name in rooms for i in range(4)]
    return write_human_nav(tmp_path / "in", rooms, {"train": train})


def test_human_nav_is_imported_and_summed_up(folder, tmp_path, capsys):
    run("human-nav", folder, "--out", tmp_path / "out", "--seed", 3, "--hold-out", 1)
    dataset = Dataset(tmp_path / "out")
    assert dataset.splits == ["train", "dev-unseen"]
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[-1] == str(tmp_path / "out")
    assert lines[0].startswith(f"train: {dataset.meta['counts']['train']['paragraphs']} paragraphs, 2 layouts, ")
    assert lines[1].endswith("(rooms never seen in training)")
    assert "single legs kept: " in printed.out
    assert "pairs of legs kept: " in printed.out
    assert "furniture: " in printed.out
    assert dataset.meta["command"] == f"wordwing data import human-nav {folder} --seed 3 --hold-out 1"


def test_progress_is_shown_on_a_terminal_only(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run("human-nav", folder, "--out", tmp_path / "out")
    printed = capsys.readouterr()
    assert "rooms" in printed.err
    assert "windows" in printed.err
    assert "windows" not in printed.out


@pytest.mark.parametrize("command", ["human-nav", "alfred"])
def test_wrong_options_get_a_sentence(folder, tmp_path, command):
    for option, value in (("--seed", -1), ("--hold-out", -2)):
        with pytest.raises(WordwingError, match=f"{option} is {value}; it must be 0 or more"):
            run(command, folder, "--out", tmp_path / "out", option, value)
    with pytest.raises(WordwingError, match="there is no such folder"):
        run(command, tmp_path / "nowhere", "--out", tmp_path / "out")
