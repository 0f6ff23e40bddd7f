"""The LANI release, in files written by hand: where its files are looked for, and what differs from drif."""

import numpy as np
import pytest
import tyro

from original_files import SQUARE, config, curve, entry, release, unity, write
from wordwing.commands import datasets
from wordwing.data.dataset import Dataset
from wordwing.data.importers.lani import import_lani
from wordwing.errors import WordwingError


def imported(root, out=None, **options) -> Dataset:
    dataset = import_lani(root, out or root.parent / "made", **options)
    dataset.validate()
    return dataset


def complaint(root, **options) -> str:
    with pytest.raises(WordwingError) as caught:
        import_lani(root, root.parent / "made", **options)
    assert "\n" not in str(caught.value)
    assert not (root.parent / "made").exists()
    return str(caught.value)


def test_a_paragraph_has_the_paths_of_its_own_files(tmp_path):
    dataset = imported(release(tmp_path / "lani"))
    [paragraph] = dataset.paragraphs()
    np.testing.assert_allclose(paragraph.segments[0].path, [[-1.88, -1.88], [-0.94, -1.88], [0, -1.88]], atol=1e-9)
    np.testing.assert_allclose(paragraph.segments[1].path, [[0, -1.88], [0, -0.94], [0, 0]], atol=1e-9)
    assert [mark.name for mark in dataset.layout("12").landmarks] == ["Barrel", "Windmill"]
    assert (dataset.name, dataset.steps, dataset.meta["text"]) == ("lani", 50, "human")
    assert "1 paragraphs with paths that writers were shown" in dataset.meta["notes"]


@pytest.mark.parametrize("named", ["data/nav_drone", "nav", "."])
def test_the_release_or_the_folder_in_it_may_be_named(tmp_path, named):
    root = release(tmp_path / "lani")
    if named == "nav":
        (root / "data" / "nav_drone").rename(root / "nav_drone")
        folder = root
    else:
        folder = root / named
    resources = root / "resources"
    assert len(list(imported(folder, resources=resources).paragraphs())) == 1


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("simulators/res", "simulators/res/"),
        ("data/nav_drone/res", "res"),
        ("deep/down/in/the/disk", "/home/someone/else"),
        (".", None),
    ],
)
def test_resources_are_where_the_configuration_says_or_searched_for(tmp_path, place, said):
    root = release(tmp_path / "lani", resources=place, resources_dir=said)
    assert len(list(imported(root).paragraphs())) == 1


def test_a_configured_folder_wins_over_one_that_is_found(tmp_path):
    root = release(tmp_path / "lani", resources="right", resources_dir="right")
    write(root / "a" / "configs" / "random_config_12.json", config(("Tank", 500, 500)))
    write(root / "a" / "paths" / "random_curve_12.json", curve())
    assert len(imported(root).layout("12").landmarks) == 2
    (root / "data" / "nav_drone" / "config_localmoves_6000.json").unlink()
    assert [mark.name for mark in imported(root).layout("12").landmarks] == ["Tank"]


def test_resources_that_are_nowhere_are_asked_for(tmp_path):
    root = release(tmp_path / "lani")
    elsewhere = (root / "resources").rename(tmp_path / "elsewhere")
    said = complaint(root)
    assert "configs/random_config_12.json" in said
    assert "entry 1 (id 12)" in said
    assert said.endswith("--resources")
    assert "there is no such folder" in complaint(root, resources=tmp_path / "nowhere")
    assert len(list(imported(root, resources=elsewhere).paragraphs())) == 1


def test_file_names_of_other_systems_are_understood(tmp_path):
    row = entry(config_file="\\configs\\random_config_12.json", path_file="/paths/random_curve_12.json")
    assert len(list(imported(release(tmp_path / "lani", [row])).paragraphs())) == 1


def test_paragraphs_may_share_files_that_are_named_otherwise(tmp_path):
    rows = [entry("1", config_file="configs/random_config_12.json", path_file="paths/random_curve_12.json"), entry()]
    dataset = imported(release(tmp_path / "lani", rows))
    assert [(paragraph.id, paragraph.layout) for paragraph in dataset.paragraphs()] == [("1", "1"), ("12", "1")]


def test_invalid_paragraphs_are_left_out_unless_told_otherwise(tmp_path):
    root = release(tmp_path / "lani", [entry(valid=False), entry()])
    dataset = imported(root, tmp_path / "a")
    assert [paragraph.id for paragraph in dataset.paragraphs()] == ["12-1"]
    assert "paragraphs marked invalid, left out: 1 (12)" in dataset.meta["notes"]
    assert len(list(imported(root, tmp_path / "b", valid_only=False).paragraphs())) == 2


def test_the_larger_set_of_annotations_is_preferred(tmp_path):
    root = release(tmp_path / "lani")
    write(root / "data" / "nav_drone" / "train_annotations_4000.json", [entry(instructions=["four", "4"])])
    assert next(imported(root).paragraphs()).segments[0].instruction == "go to place 0 ."
    four = imported(root, annotations="4000")
    assert next(four.paragraphs()).segments[0].instruction == "four"
    assert "there are no annotations for dev and test" in four.meta["notes"]


def test_who_strayed_from_the_curve_is_replayed(tmp_path):
    """Nothing says what a follower flew but the moves."""
    row = entry(path=[(100, 100), (100, 400)], ends=[1], moves=["F" * 10], start_rot=[0])
    dataset = imported(release(tmp_path / "lani", [row]))
    [segment] = next(dataset.paragraphs()).segments
    assert segment.path[-1] == pytest.approx([-1.88, -1.88 + 10 * 1.5 * 0.094], abs=1e-4)
    assert any("a move F is 1.5 Unity m" in line for line in dataset.meta["notes"])


def test_without_path_files_moves_are_replayed(tmp_path):
    row = entry(path=[(100, 100), (100, 200)], ends=[1], moves=["F" * 5], start_rot=[0], path_file=None)
    [segment] = next(imported(release(tmp_path / "lani", [row])).paragraphs()).segments
    assert len(segment.path) == 6


def test_ids_from_6000_to_6999_are_the_cage(tmp_path):
    root = release(tmp_path / "lani", [entry(), entry(6012)], configs={"12": config(), "6012": config()},
                   shown={"12": curve(), "6012": curve()})  # fmt: skip
    assert [paragraph.id for paragraph in imported(root, part="cage").paragraphs()] == ["6012"]


def test_entries_without_a_layout_file_are_named(tmp_path):
    said = complaint(release(tmp_path / "lani", [entry(), entry(config_file=None)]))
    assert 'train_annotations_6000.json: entry 2 (id 12): there is no "config_file"' in said


def test_what_is_no_release_is_refused(tmp_path):
    assert "there is no such folder" in complaint(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "train_annotations_6000.json is not there; name the LANI release" in complaint(tmp_path / "empty")
    root = release(tmp_path / "lani", [entry(valid=False)])
    assert "of 1 paragraphs none is wanted" in complaint(root)


def test_a_broken_configuration_is_named(tmp_path):
    root = release(tmp_path / "lani")
    path = write(root / "data" / "nav_drone" / "config_localmoves_6000.json", '{"port"')
    assert complaint(root).startswith(f"{path}: not valid JSON")


def test_curves_in_unity_metres_are_known_by_their_values(tmp_path):
    metres = curve([(unity(x), unity(z)) for x, z in SQUARE])
    plain = imported(release(tmp_path / "a"), tmp_path / "made-a")
    other = imported(release(tmp_path / "b", shown={"12": metres}), tmp_path / "made-b")
    assert [p.to_json() for p in plain.paragraphs()] == [p.to_json() for p in other.paragraphs()]


def test_the_command_line_has_the_options(tmp_path, capsys):
    root = release(tmp_path / "lani", [entry(valid=False), entry()])
    words = [str(root), "--out", str(tmp_path / "made"), "--no-valid-only", "--resources", str(root / "resources")]
    tyro.cli(datasets.lani, args=words)
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("train: 2 paragraphs, ")
    assert "paragraphs marked invalid, kept: 1 (12)" in said.out
    assert "--no-valid-only --resources" in Dataset(tmp_path / "made").meta["command"]
