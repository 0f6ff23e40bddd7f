"""Names in files that others wrote: none of them chooses where something is read or written."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from command_line import refused
from original_files import entry, release, workspace
from small_evaluation import bare_dataset
from small_study import small_study
from wordwing.cli import main
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.importers.lani import import_drif, import_lani
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.files import safe_name
from wordwing.flight.logs import FlightLog
from wordwing.study.mturk import export_batch
from wordwing.study.store import Study
from wordwing.world.layout import Layout

STRANGE = [
    "../outside",
    "/tmp/outside",
    "..",
    ".",
    ".hidden",
    "-rf",
    "a/b",
    "a\\b",
    "a b",
    "a\0b",
    "a\nb",
    "a\x1b[31m",
    "",
    "ä",
    "x" * 61,
    7,
    None,
]


@pytest.mark.parametrize("name", ["cage", "dev-mini", "dev_unseen", "a..b", "6001.2", "Lani2018", "x" * 60])
def test_names_of_letters_digits_dots_and_dashes_are_safe(name):
    assert safe_name(name, "f: the name") == name


@pytest.mark.parametrize("name", STRANGE)
def test_every_other_name_is_refused_in_one_printable_sentence(name):
    with pytest.raises(WordwingError) as caught:
        safe_name(name, "f: the name")
    assert str(caught.value).startswith("f: the name is ")
    assert str(caught.value).isprintable()


def changed(folder: Path, **values: object) -> Path:
    """A dataset of one paragraph whose meta.json says something else."""
    bare_dataset(folder, [("p", "train", "l"), ("q", "dev", "m")])
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps(meta | values), "utf-8")
    return folder


def test_nothing_that_a_dataset_says_of_itself_commands_a_terminal(tmp_path):
    told = {"text": "\x1b[31mred", "notes": ["a\x07b"], "splits": {"train": "\x9b2J"}}
    meta = Dataset(changed(tmp_path / "data", **told)).meta
    assert (meta["text"], meta["notes"], meta["splits"]) == ("\\x1b[31mred", ["a\\x07b"], {"train": "\\x9b2J"})


def files_under(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_a_dataset_does_not_choose_where_an_evaluation_is_written(tmp_path, monkeypatch, capsys, kind):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = changed(tmp_path / "data", source="../../../outside" if kind == "relative" else str(tmp_path / "outside"))
    before = files_under(tmp_path)
    said = refused(capsys, "evaluate", "stop", "--data", str(folder), "--device", "cpu")
    assert 'meta.json: "source" is' in said
    assert files_under(tmp_path) == before


def test_a_split_does_not_choose_where_demonstrations_are_written(tmp_path, capsys):
    folder = bare_dataset(tmp_path / "data", [("p", "train", "l")]).folder
    for name in ("meta.json", "paragraphs.jsonl"):
        text = (folder / name).read_text("utf-8").replace('"train"', '"/../../../outside"')
        (folder / name).write_text(text, "utf-8")
    before = files_under(tmp_path)
    said = refused(capsys, "data", "demonstrate", str(folder), "--device", "cpu")
    assert 'meta.json: "counts": "' in said
    assert files_under(tmp_path) == before


@pytest.mark.parametrize(("source", "split"), [("../x", "train"), ("x", "../train")])
def test_no_dataset_is_written_under_a_strange_name(tmp_path, source, split):
    row = Paragraph("p", split, "l", (Segment("go", (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [1.0, 0.0]])),))
    with pytest.raises(WordwingError, match=r"\.\./"):
        write_dataset(tmp_path / "a", Source(source, "human", 0, ""), {"l": Layout(())}, [row])
    assert not (tmp_path / "a").exists()


def test_an_import_that_cannot_be_used_does_not_replace_a_dataset(tmp_path):
    root = workspace(tmp_path / "drif")
    import_drif(root, tmp_path / "made")
    (root / "wordwing.json").write_text(json.dumps({"name": "mine", "steps": 20_000}), "utf-8")
    with pytest.raises(WordwingError, match="is 20000; it must be a whole number from 1 to 10,000"):
        import_drif(root, tmp_path / "made")
    assert Dataset(tmp_path / "made").meta["source"] == "drif"


def test_a_workspace_does_not_name_a_dataset_like_a_path(tmp_path):
    root = workspace(tmp_path / "drif")
    (root / "wordwing.json").write_text(json.dumps({"name": "../../outside"}), "utf-8")
    with pytest.raises(WordwingError, match=r"wordwing\.json: \"name\" is"):
        import_drif(root, tmp_path / "made")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("key", ["config_file", "path_file"])
@pytest.mark.parametrize("up", ["../", "configs/../../", "..\\"])
def test_lanis_file_names_do_not_lead_out_of_its_resources(tmp_path, key, up):
    names = {"config_file": "configs/random_config_12.json", "path_file": "paths/random_curve_12.json"}
    root = release(tmp_path / "lani", [entry(**names | {key: f"{up}resources/{names[key]}"})])
    with pytest.raises(WordwingError, match=rf'entry 1 \(id 12\): "{key}" is .*\.\.'):
        import_lani(root, tmp_path / "made")


@pytest.mark.parametrize("key", ["config_file", "path_file"])
def test_lanis_file_names_that_no_file_can_have_get_one_sentence(tmp_path, key):
    root = release(tmp_path / "lani", [entry(**{key: "a/" * 3000 + "x.json"})])
    with pytest.raises(WordwingError, match=rf'"{key}" is .* lies more than 7 folders deep'):
        import_lani(root, tmp_path / "made")


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000, "a/" * 3000])
def test_lanis_configuration_may_name_a_folder_that_cannot_be(tmp_path, name):
    root = release(tmp_path / "lani", resources_dir=name)
    assert len(list(import_lani(root, tmp_path / "made").paragraphs())) == 1  # found where it is


def test_lanis_configuration_does_not_lead_out_of_the_release(tmp_path):
    root = release(tmp_path / "lani", resources_dir=str(tmp_path / "elsewhere"))
    (root / "resources").rename(tmp_path / "elsewhere")
    with pytest.raises(WordwingError, match="--resources"):
        import_lani(root, tmp_path / "made")
    assert len(list(import_lani(root, tmp_path / "made", resources=tmp_path / "elsewhere").paragraphs())) == 1


def test_a_study_does_not_choose_where_its_images_are_written(tmp_path):
    small_study(tmp_path / "s.db")
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("UPDATE items SET id = '../outside' WHERE number = 2")
    with pytest.raises(WordwingError, match=r"s\.db: the id of an item is"):
        export_batch(Study(tmp_path / "s.db"), tmp_path / "batch" / "b.csv")
    assert not list(tmp_path.rglob("outside*"))


def test_a_log_does_not_choose_which_folder_a_policy_is_read_from(tmp_path, monkeypatch, capsys):
    """A policy's folder is read if the command names it; from a log only names of policies that come with wordwing."""
    from wordwing.flight import replay

    named = []
    monkeypatch.setattr(replay, "load_policy", lambda name, domain: named.append(name))
    with FlightLog(tmp_path / "log", record=True) as log:
        log.begin(1.0, 1.0, "go", str(tmp_path / "secret"), "mavlink:test")
        for number in (1, 2):
            (tmp_path / "log" / "frames").mkdir(exist_ok=True)
            from PIL import Image

            Image.new("RGB", (128, 72)).save(tmp_path / "log" / "frames" / f"{number}.png")
            log.event(number, "observation", position=[0, 0, 0.7], quaternion=[0, 0, 0, 1], frame=f"{number}.png")
    main(["fly", "--replay", str(tmp_path / "log"), "--out", str(tmp_path / "film")])
    assert named == []
    assert f"--policy {tmp_path / 'secret'}" in capsys.readouterr().out
