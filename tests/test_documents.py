"""What the pages on the paper and on learning say is so."""

import inspect
import re
import shlex
import sys
import types
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import torch

from wordwing.cli import application, main
from wordwing.commands.train import Ablation
from wordwing.execution.packing import PackedExecutions
from wordwing.learning.recipes.config import RENAMED, RunConfig, settings_of
from wordwing.learning.recipes.presets import RECIPES, changed
from wordwing.learning.runtime.messages import DirectLink, Parameters, Rollouts

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "wordwing"
PAPER, LEARNING = ((ROOT / "docs" / name).read_text("utf-8") for name in ("paper.md", "learning.md"))


def section(document: str, heading: str) -> str:
    """From a heading to the next one of the same rank or a higher one."""
    rank = heading.split(" ")[0]
    _before, _heading, rest = document.partition(f"\n{heading}\n")
    assert rest, heading
    return re.split(rf"\n#{{1,{len(rank)}}} ", rest)[0]


def rows(text: str) -> list[list[str]]:
    """Cells of the tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    heads = {number - 1 for number, row in enumerate(cells) if set(row[0]) == {"-"}}
    return [row for number, row in enumerate(cells) if number not in heads and number - 1 not in heads]


@pytest.mark.parametrize(
    ("heading", "folder"),
    [("### The model, symbol by symbol", "model"), ("### Learning, symbol by symbol", "learning")],
)
def test_everything_that_the_paper_is_mapped_to_exists(heading, folder):
    count = 0
    for row in rows(section(PAPER, heading)):
        file = None
        for quoted in re.findall(r"`([^`]+)`", row[-1]):
            if quoted.endswith(".py"):
                file = next(path for path in (SOURCE / folder / quoted, SOURCE / quoted) if path.is_file())
            elif file is not None and re.fullmatch(r"[A-Za-z_.]+", quoted):
                for name in quoted.split("."):
                    assert re.search(rf"\b(def|class) {name}\b|\b{name}\b( =|:)", file.read_text("utf-8")), (name, row)
                    count += 1
    assert count > 30


def test_the_hyper_parameters_are_the_settings_that_are_named_beside_them():
    settings = dict(settings_of(RunConfig()))
    checked = 0
    for _paper, _value, setting, default in rows(section(PAPER, "### Hyper-parameters")):
        name = re.match(r"`([^`]+)`", setting)[1]
        if name.endswith(".py"):
            continue
        assert name in settings
        if default != "by recipe":
            assert str(settings[name]) == default, name
            checked += 1
    assert checked > 25


def test_every_switch_and_recipe_of_training_is_explained():
    assert [row[0].strip("`") for row in rows(section(LEARNING, "## Changing a run"))] == list(get_args(Ablation))
    assert [row[0].strip("`") for row in rows(section(LEARNING, "## Two processes"))] == list(RECIPES)


def test_the_commands_of_the_learning_page_take_these_options():
    blocks = re.findall(r"```sh\n(.*?)```", LEARNING, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("wordwing ")]
    assert len(lines) > 8
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        here = application()
        while hasattr(here, "_subcommands"):
            here = here._subcommands[words.pop(0)].target
        options = [word for word in words if word.startswith("--")]
        assert {option[2:] for option in options} <= set(inspect.signature(here).parameters), line
        recipe = words[words.index("--recipe") + 1] if "--recipe" in options else "quick"
        if "--set" in options:
            assert changed(RECIPES[recipe](), words[words.index("--set") + 1 :]) != RECIPES[recipe]()


class Actor:
    """What Ray makes of an object, as far as the page needs it: each method has a `remote`."""

    def __init__(self, inside: object) -> None:
        for name in ("send_parameters", "newest_parameters", "send_rollouts", "take_rollouts"):
            setattr(self, name, types.SimpleNamespace(remote=getattr(inside, name)))


def test_the_link_of_the_learning_page_carries_both_kinds_of_messages(monkeypatch):
    remote = lambda kind: types.SimpleNamespace(remote=lambda: Actor(kind()))  # noqa: E731
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(remote=remote, get=lambda found: found))
    [code] = re.findall(r"```python\n(.*?)```", LEARNING, re.DOTALL)
    names: dict = {}
    exec(code, names)
    link = names["link"]
    weights = {"stage1.w": torch.arange(3.0)}
    link.send_parameters(Parameters(7, weights))
    weights["stage1.w"] += 1
    assert link.newest_parameters(7) is None
    assert link.newest_parameters(6).weights["stage1.w"].tolist() == [0.0, 1.0, 2.0]
    flown = PackedExecutions(torch.zeros(1, 2, 6, dtype=torch.int16), torch.tensor([2]))
    link.send_rollouts(Rollouts(torch.tensor([4]), flown, 0.5))
    [taken] = link.take_rollouts()
    assert (taken.example.tolist(), taken.executions.lengths.tolist(), taken.progress) == ([4], [2], 0.5)
    assert link.take_rollouts() == []
    methods = {name for name in vars(DirectLink) if not name.startswith("_")}
    assert methods <= set(dir(link))


PACKAGE_FOLDERS = {path.name for path in SOURCE.iterdir() if path.is_dir()}
THEIR_OWN = {"make.py"}
"""Scripts of the reader's."""
TOP_FOLDERS = {"src", "tests", "docs", "benchmarks", "experiments", "results", "scripts"}
PAGES = [
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),  # which speaks of the past
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("*/README.md"),
    *ROOT.glob("experiments/*/README.md"),
]


def paths_named_in(text: str) -> set[str]:
    """Files and folders of the repository that a page names, in code or after `python`; braces are expanded."""
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    words = {word for entry in [*quoted, *re.findall(r"```.*?```", text, re.DOTALL)] for word in entry.split()}
    plain = {re.sub(r":\d+$", "", word.strip("`,;:()[]'\"#")) for word in words}
    found = {word for word in plain if re.fullmatch(r"[\w./*{},-]+\.py", word)}
    return found | {
        word
        for word in plain
        if re.fullmatch(r"[\w./*{},-]+", word) and "/" in word and not word.startswith(("/", "."))
    }


def alternatives(path: str) -> list[str]:
    """What a shell makes of braces."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if braces is None:
        return [path]
    return [one for part in braces[1].split(",") for one in alternatives(path.replace(braces[0], part, 1))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_exists(page):
    for path in (one for name in paths_named_in(page.read_text("utf-8")) for one in alternatives(name)):
        first = path.split("/")[0]
        if path.endswith(".py"):
            found = any([*ROOT.glob(path), *page.parent.glob(path), *SOURCE.glob(path), *SOURCE.rglob(path)])
            assert found or path in THEIR_OWN, f"{page.name}: {path}"
        elif first in TOP_FOLDERS:
            assert any(ROOT.glob(path.rstrip("/"))), f"{page.name}: {path}"
        elif first in PACKAGE_FOLDERS:
            assert any(SOURCE.glob(path.rstrip("/"))), f"{page.name}: {path}"


def test_every_test_that_a_page_names_exists():
    names = set(
        re.findall(r"(?m)^def (test_\w+)", "\n".join(path.read_text("utf-8") for path in ROOT.glob("tests/**/*.py")))
    )
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))}
    assert named
    assert named <= names


def test_every_name_of_the_glossary_is_defined_in_the_file_beside_it():
    checked = 0
    for row in rows((ROOT / "docs" / "glossary.md").read_text("utf-8")):
        names: list[str] = []
        for quoted in re.findall(r"`([^`]+)`", row[1]):
            if not quoted.endswith(".py"):
                names.append(quoted)
                continue
            text = (SOURCE / quoted).read_text("utf-8")
            assert names, row
            for name in names:
                for part in name.split("."):
                    assert re.search(rf"\b(def|class) {part}\b|\b{part}\b( =|:)", text), f"{name} in {quoted}"
                checked += 1
            names = []
        assert not names, row
    assert checked > 60


@cache
def words_of_the_code() -> set[str]:
    """All identifiers of the package."""
    return {word for path in SOURCE.rglob("*.py") for word in re.findall(r"\w+", path.read_text("utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_setting_and_class_that_a_page_names_exists(page):
    text = page.read_text("utf-8")
    settings = dict(settings_of(RunConfig()))
    named = re.findall(r"\b(?:data|model|supervised|reinforcement|schedule)(?:\.[a-z0-9_]+)+(?==)", text)
    assert {RENAMED.get(name, name) for name in named} <= settings.keys()  # records have older names
    quoted = " ".join(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    for name in set(re.findall(r"(?<![\w/-])[A-Z][a-z]+[A-Z]\w*\b", quoted)):
        assert name in words_of_the_code(), name


def commands_named_in(text: str) -> list[str]:
    """Command lines of wordwing in code, without comments."""
    blocks = "\n".join(re.findall(r"```.*?```", text, re.DOTALL)).replace("\\\n", " ")
    inline = re.findall(r"`(wordwing [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL).replace("\n", " "))
    return [line.split(" #")[0] for line in [*re.findall(r"(?m)^wordwing .+", blocks), *inline]]


def test_every_command_and_option_that_a_page_names_exists(capsys):
    options: dict[tuple[str, ...], dict[str, str]] = {}
    for page in PAGES:
        for line in commands_named_in(page.read_text("utf-8")):
            here, path, words = application(), (), line.split()[1:]
            while hasattr(here, "_subcommands") and words and words[0] in here._subcommands:
                path, here = (*path, words[0]), here._subcommands[words.pop(0)].target
            assert not hasattr(here, "_subcommands") or not words or words[0].startswith("-"), f"{page.name}: {line}"
            if not path:  # `wordwing --version`
                continue
            named = options.setdefault(path, {})
            named |= {found[0]: line for word in words if (found := re.match(r"--[a-z][a-z-]*", word))}
    assert len(options) > 25
    for path, named in options.items():
        with pytest.raises(SystemExit):
            main([*path, "--help"])
        printed = capsys.readouterr().out
        for option, line in named.items():
            assert re.search(rf"{option}\b", printed), line
