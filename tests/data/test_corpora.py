"""Corpora by name: where they are kept, when they are built, and what is said when they cannot be."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pool_work import die
from wordwing import __version__
from wordwing.commands.datasets import build as build_command
from wordwing.data import corpora, generating
from wordwing.data.corpora import HouseJob, Job, corpus, corpus_folder
from wordwing.data.dataset import Dataset
from wordwing.errors import WordwingError
from wordwing.files import cache_folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def small(monkeypatch):
    """Corpora of a few paragraphs."""
    monkeypatch.setitem(generating.SIZES, "cage", {"train": 5})
    monkeypatch.setitem(generating.SIZES, "field", {"train": 3, "dev": 1, "test": 1})
    monkeypatch.setitem(generating.SIZES, "errands", {"train": 4})


@dataclass
class Builder:
    """Stands in for `build`, and remembers what it was asked."""

    asked: list[Job] = field(default_factory=list)

    def __call__(self, jobs, processes=0, tick=lambda paragraphs: None):
        self.asked += jobs
        raise InterruptedError


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path, cache):
    assert cache_folder() == cache
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == cache
    monkeypatch.delenv("WORDWING_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "wordwing"
    monkeypatch.setenv("WORDWING_CACHE", "")
    assert cache_folder() == tmp_path / "xdg" / "wordwing"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "wordwing"


def test_corpora_of_other_names_versions_and_seeds_lie_elsewhere(monkeypatch, cache):
    folders = {corpus_folder(name, seed) for name in ("field", "cage", "house") for seed in (0, 1, 10)}
    assert len(folders) == 9
    assert all(folder.parent == cache and __version__ in folder.name for folder in folders)
    for attribute, value in (("VERSION", "9.9.9"), ("SCHEMA", 99), ("REVISION", 99)):
        with monkeypatch.context() as patch:
            patch.setattr(corpora, attribute, value)
            assert corpus_folder("field", 0) not in folders


@pytest.mark.usefixtures("small")
def test_a_corpus_is_built_the_first_time_and_found_the_second(monkeypatch):
    ticks: list[int] = []
    first = corpus("field", seed=3, tick=ticks.append)
    assert sum(ticks) == 5
    assert first.folder == corpus_folder("field", 3)
    assert (first.name, first.meta["seed"]) == ("field", 3)
    assert first.meta["command"] == "wordwing data build --corpora field --seed 3"
    first.validate()
    builder = Builder()
    monkeypatch.setattr(corpora, "build", builder)
    again = corpus("field", seed=3, tick=ticks.append)
    assert isinstance(again, Dataset)
    assert again.folder == first.folder
    assert sum(ticks) == 5
    assert builder.asked == []
    # Another seed is another corpus, and so is another name.
    for name, seed in (("field", 4), ("cage", 3)):
        with pytest.raises(InterruptedError):
            corpus(name, seed)
    assert builder.asked == [
        Job("field", corpus_folder("field", 4), 4),
        Job("cage", corpus_folder("cage", 3), 3),
    ]


def test_a_folder_without_a_whole_corpus_in_it_is_none(monkeypatch):
    corpus_folder("field", 0).mkdir(parents=True)
    monkeypatch.setattr(corpora, "build", Builder())
    with pytest.raises(InterruptedError):
        corpus("field")


def test_a_corpus_that_does_not_exist_is_answered_with_those_that_do():
    with pytest.raises(WordwingError, match=r'^there is no corpus "fields"; did you mean "field"\?$'):
        corpus("fields")
    with pytest.raises(
        WordwingError,
        match=r'^there is no corpus "x"; there are field, cage, errands, tours, house, written, typed, dev-mini$',
    ):
        corpus("x")


def test_a_house_that_is_not_built_is_answered_with_how_to_build_it(cache):
    with pytest.raises(WordwingError, match=r"house is not there yet.*wordwing data build --house FOLDER"):
        corpus("house")
    assert not cache.exists()


@pytest.mark.usefixtures("small")
def test_the_build_command_says_what_it_built_and_where(capsys, tmp_path):
    build_command(corpora=("cage", "field", "cage"), seed=2, out=tmp_path / "out", processes=1)
    said = capsys.readouterr().out.splitlines()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["cage", "field"]
    for line, name in zip(said, ("cage", "field"), strict=False):
        dataset = Dataset(tmp_path / "out" / name)
        counts = {split: sum(1 for _ in dataset.instructions(split)) for split in dataset.splits}
        assert line.startswith(f"{name} (generated sentences): ")
        assert line.endswith(f"instructions in {dataset.folder}")
        assert all(f"{split} {count}" in line for split, count in counts.items())
    assert len(said) == 3


@pytest.mark.usefixtures("small")
def test_what_the_build_command_puts_into_the_cache_is_found_there(monkeypatch, capsys):
    build_command(corpora=("field",), seed=2, processes=1)
    monkeypatch.setattr(corpora, "build", Builder())
    assert corpus("field", seed=2).folder == corpus_folder("field", 2)
    assert str(corpus_folder("field", 2)) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ({"share": 0.0}, "--share is 0.0; it must be more than 0 and at most 1"),
        ({"share": -0.5}, "--share is -0.5; it must be"),
        ({"share": 1.5}, "--share is 1.5; it must be"),
        ({"share": float("nan")}, "--share is nan; it must be"),
        ({"share": 0.5, "out": None}, "--share needs --out: the cache holds whole corpora only"),
        ({"processes": -1}, "--processes is -1; it must be 0 or more"),
        ({"corpora": ()}, "there is nothing to build; name --corpora, --house or both"),
        ({"seed": -1}, "--seed is -1; it must be 0 or more"),
        ({"house": Path("no/such/folder")}, "--house is no/such/folder; there is no such folder"),
    ],
)
def test_a_mistake_in_a_build_command_is_one_sentence_and_nothing_is_built(mistake, sentence, tmp_path, cache):
    with pytest.raises(WordwingError) as error:
        build_command(**{"corpora": ("cage",), "out": tmp_path / "out", **mistake})
    assert str(error.value).startswith(sentence)
    assert not (tmp_path / "out").exists()
    assert not cache.exists()


def test_a_house_that_is_a_file_is_no_folder(tmp_path):
    (tmp_path / "house").write_text("")
    with pytest.raises(WordwingError, match="there is no such folder"):
        build_command(corpora=(), house=tmp_path / "house", out=tmp_path / "out", processes=1)


def test_a_folder_with_something_else_in_it_is_left_as_it_is_and_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "shared", None)
    (tmp_path / "out" / "field").mkdir(parents=True)
    (tmp_path / "out" / "field" / "thesis.tex").write_text("years of work")
    with pytest.raises(WordwingError, match=r"not a dataset \(thesis.tex is in it\)"):
        build_command(corpora=("field",), out=tmp_path / "out", processes=1)
    assert [path.name for path in (tmp_path / "out" / "field").iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("small")
def test_a_mistake_in_the_house_is_told_before_all_else_is_made(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    monkeypatch.setattr(generating, "CHUNK", 1)
    ticks: list[int] = []
    jobs = [Job("field", tmp_path / "field", 0), HouseJob(tmp_path / "in", tmp_path / "house", 0)]
    with pytest.raises(WordwingError, match=r"scenes\.json: there is no such file"):
        corpora.build(jobs, processes=1, tick=ticks.append)
    assert sum(ticks) < 5
    assert not (tmp_path / "field").exists()


@pytest.mark.usefixtures("small")
def test_a_process_that_is_killed_is_told_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "_do", die)
    with pytest.raises(WordwingError, match="was killed, perhaps for lack of memory; try --processes 1"):
        corpora.build([Job("field", tmp_path / "field", 0)], processes=2)
