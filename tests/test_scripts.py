"""Benchmarks, experiments and the scripts that build documents: none of them has gone stale."""

import hashlib
import runpy
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for folder in ("benchmarks", "experiments", "scripts") for path in (ROOT / folder).rglob("*.py"))
EXPERIMENTS = sorted(path for path in (ROOT / "experiments").iterdir() if path.is_dir() and path.name != "__pycache__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_can_be_imported_and_does_nothing_then(script, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(script.parent))  # as Python does for a script
    monkeypatch.setattr(sys, "argv", [str(script)])
    before = set(sys.modules)
    names = runpy.run_path(str(script), run_name="imported")
    for sibling in {path.stem for path in SCRIPTS} & (set(sys.modules) - before):
        del sys.modules[sibling]
    assert names["__doc__"]
    assert 'if __name__ == "__main__":' in script.read_text("utf-8")
    assert capsys.readouterr().out == ""


def test_scripts_have_different_names_so_that_mypy_can_check_them_all():
    names = [path.stem for path in SCRIPTS]
    assert len(names) > 30
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=lambda path: path.name)
def test_an_experiment_says_its_question_its_command_and_its_answer_and_names_all_its_lines(folder):
    text = (folder / "README.md").read_text("utf-8")
    for part in ("**Question.**", "**Command.**", "**Answer.**", "**Discussed in**"):
        assert part in text, part
    lines = {path.name for path in folder.iterdir() if path.suffix == ".jsonl"}
    assert lines <= {name for name in lines if name in text}


def test_the_recorded_flights_are_those_of_the_checksums_and_are_not_distributed():
    results = ROOT / "results"
    if not results.is_dir():
        pytest.skip("recorded flights are in a checkout, not in the source distribution")
    listed = dict(line.split()[::-1] for line in (results / "SHA256SUMS").read_text("utf-8").splitlines())
    files = {path.relative_to(results).as_posix(): path for path in results.glob("*/*")}
    assert files.keys() == listed.keys()
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[name], name
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert "results" not in built["sdist"]["include"]
    assert all((ROOT / name).exists() for name in built["sdist"]["include"])
    assert built["wheel"]["packages"] == ["src/wordwing"]
