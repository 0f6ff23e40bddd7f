"""What the README shows works as it stands there."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_examples_run_on_the_readmes_own_layout(tmp_path, monkeypatch, capsys):
    [layout] = blocks("json")
    (tmp_path / "yard.json").write_text(layout)
    monkeypatch.chdir(tmp_path)
    sentence, batched, gym = blocks("python")
    names: dict = {}
    exec(sentence, names)
    assert "✓ turned around" in capsys.readouterr().out
    assert (tmp_path / "flight.png").stat().st_size > 100_000
    exec(batched.replace("1024", "4").replace('"cuda"', '"cpu"'), names)  # fewer worlds, no GPU
    assert names["images"].shape == (4, 72, 128, 3)
    assert names["flown"].forward.shape == (4,)
    exec(gym.replace("64", "2"), names)
    names["env"].close()
    names["envs"].close()


def test_every_command_of_the_readme_exists():
    from wordwing.cli import application

    app = application()
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("wordwing ")]
    assert len(lines) > 15
    for line in lines:
        words = line.split("#")[0].split()
        here = app
        for word in words[1:]:
            if not hasattr(here, "_subcommands"):
                break
            assert word in here._subcommands, line
            here = here._subcommands[word].target


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_link_image_and_anchor_in_the_documents_exists():
    folders = [ROOT, ROOT / "docs", ROOT / "benchmarks", ROOT / "results", *(ROOT / "experiments").iterdir()]
    for document in sorted(path for folder in folders for path in folder.glob("*.md")):
        for link in re.findall(r"\]\(([^)]+)\)", document.read_text("utf-8")):
            target, _hash, anchor = link.partition("#")
            if target.startswith(("http", "mailto")):
                continue
            pointed = document.parent / target if target else document
            assert pointed.exists(), f"{document.name} points to {target}"
            if anchor:
                headings = re.findall(r"(?m)^#+ (.+)$", pointed.read_text("utf-8"))
                assert anchor in map(slug, headings), f"{document.name} points to {link}"


def test_ci_runs_the_readmes_test_command():
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert "make test" in README


def test_the_tables_in_the_documents_are_those_of_the_lines_they_name():
    sys.path.insert(0, str(ROOT / "scripts"))
    from tables import fill

    pages = {"results": 18, "data": 5, "experiments": 25, "studio": 1, "flight": 3}
    for name, tables in {"README.md": 1, **{f"docs/{page}.md": count for page, count in pages.items()}}.items():
        document = (ROOT / name).read_text("utf-8")
        assert document.count("<!-- table ") == tables
        assert fill(document, reports=False) == document


@pytest.mark.long
def test_the_tables_of_reports_in_the_documents_are_those_of_the_recorded_flights():
    sys.path.insert(0, str(ROOT / "scripts"))
    from tables import fill

    if not (ROOT / "results").is_dir():
        pytest.skip("recorded flights are in a checkout, not in the source distribution")
    for name, tables in {"results": 27, "flight": 1}.items():
        document = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        assert document.count("<!-- report ") == tables
        assert fill(document) == document


def test_the_python_examples_of_the_data_page_run(tmp_path, monkeypatch):
    from wordwing.data import corpora
    from wordwing.data.corpora import Job, build

    built = build([Job("cage", tmp_path / "cage", seed=0, share=0.01)], processes=1)
    monkeypatch.setattr(corpora, "corpus", lambda name: {"cage": built[0]}[name])
    monkeypatch.chdir(tmp_path)
    reading, writing = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "data.md").read_text("utf-8"), re.DOTALL)
    names: dict = {}
    exec(reading, names)
    assert names["task"].gold_path.shape[1] == 2
    exec(writing, names)
    assert names["mine"].splits == ["train"]
    names["mine"].validate()
