import json
import lzma
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from house_rooms import leg, random_furniture, random_paragraph, write_human_nav
from wordwing import files
from wordwing.data.dataset import FILES, Dataset
from wordwing.data.importers.houses import import_human_nav
from wordwing.data.importers.rooms import held_out
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF
from wordwing.world.paths import path_length

LINE = [[0.0, 0.0], [0.25, 0.0], [0.5, 0.0]]
SOFA = [("Sofa", 1.2, 0.0)]


def house(rng: np.random.Generator, folder: Path, scenes: list[str], packed: bool = True) -> Path:
    """Rooms with 8 training paragraphs each, 2 for dev in each second one, and a test split in rooms of its own."""
    rooms = {name: random_furniture(rng, 8) for name in [*scenes, "Annex1", "Annex2"]}
    train = [random_paragraph(rng, f"t{i}-{name}", name) for name in scenes for i in range(8)]
    dev = [random_paragraph(rng, f"d{i}-{name}", name) for name in scenes[::2] for i in range(2)]
    test = [random_paragraph(rng, f"x{i}-{name}", name) for name in ("Annex1", "Annex2") for i in range(3)]
    return write_human_nav(folder, rooms, {"train": train, "dev": dev, "test": test}, packed)


def one(tmp_path: Path, *segments: object, furniture=SOFA, **options: object) -> Dataset:
    """A dataset of one paragraph."""
    row = {"id": "p", "scene": "hall", "segments": list(segments)}
    folder = write_human_nav(tmp_path / "in", {"hall": furniture}, {"train": [row]})
    return import_human_nav(folder, tmp_path / "out", **options)


def windows(dataset: Dataset) -> dict[str, object]:
    return {entry.id: entry.windows for entry in dataset.paragraphs()}


def notes(dataset: Dataset) -> str:
    return "\n".join(dataset.meta["notes"])


def test_a_house_becomes_a_valid_dataset_of_people_s_sentences(rng, tmp_path):
    folder = house(rng, tmp_path / "in", [f"Room{n}" for n in range(1, 7)])
    dataset = import_human_nav(folder, tmp_path / "out", hold_out=2)
    dataset.validate()
    assert (dataset.name, dataset.meta["text"], dataset.steps) == ("house", "human", 100)
    assert dataset.splits == ["train", "dev", "dev-unseen", "test"]
    assert dataset.meta["splits"]["dev"] == "new tasks in rooms of the training split"
    assert dataset.meta["splits"]["dev-unseen"] == "rooms never seen in training"
    assert dataset.meta["shared"] == ["dev"]
    rooms = {split: {entry.layout for entry in dataset.paragraphs(split)} for split in dataset.splits}
    assert len(rooms["dev-unseen"]) == 2
    assert not rooms["dev-unseen"] & (rooms["train"] | rooms["dev"])
    assert rooms["dev"] <= rooms["train"]
    assert rooms["test"] == {"Annex1", "Annex2"}


def test_every_instruction_lies_in_its_arena_and_ends_where_people_ended(rng, tmp_path):
    folder = house(rng, tmp_path / "in", ["Room1", "Room2"])
    dataset = import_human_nav(folder, tmp_path / "out", hold_out=0)
    raw = {}
    for split in ("train", "dev", "test"):
        for line in lzma.decompress((folder / f"{split}.jsonl.xz").read_bytes()).splitlines():
            row = json.loads(line)
            for i, segment in enumerate(row["segments"]):
                raw[f"{row['id']}/{i}"] = segment["path"]
                if i:
                    before = row["segments"][i - 1]["path"]
                    raw[f"{row['id']}/{i - 1}-{i}"] = before + segment["path"][1:]
    count = Counter()
    for instruction in dataset.instructions():
        count[instruction.segments] += 1
        dataset.layout(instruction.layout, instruction.window).validate()
        path = instruction.segment.path
        assert np.abs(path).max() <= ARENA_HALF - 0.2
        expected = np.array(raw[instruction.id])
        assert path_length(path) == pytest.approx(path_length(expected))
        assert math.dist(path[0], path[-1]) == pytest.approx(math.dist(expected[0], expected[-1]), abs=1e-6)
        along = path[1] - path[0]
        turn = math.atan2(*(expected[1] - expected[0])[::-1]) - 1.5708
        facing = math.atan2(along[1], along[0]) - instruction.segment.start_yaw
        assert math.remainder(facing - turn, 2 * math.pi) == pytest.approx(0, abs=1e-3)
        if instruction.split == "train":
            assert not dataset.layout(instruction.layout, instruction.window).inside(path + 1e-9).any()
    assert count[1] > 40
    assert count[2] > 25


def test_sentences_are_verbatim_but_for_white_space(tmp_path):
    dataset = one(tmp_path, leg("  Walk,  PLEASE,\tto the «sofa»\n(café) ", LINE))
    [entry] = dataset.paragraphs()
    assert entry.segments[0].instruction == "Walk, PLEASE, to the «sofa» (café)"


def test_what_cannot_be_flown_has_no_window_and_is_counted(tmp_path):
    far = [[0.25 * i, 0.0] for i in range(28)]  # 6.75 m in a straight line
    around = [[2.0 * (i % 2), 0.0] for i in range(8)]  # 14 m to and fro
    segments = [
        leg("turn around", [[0.0, 0.0]]),
        leg("walk on", LINE),
        leg(" ... ", [[0.5, 0.0], [0.0, 0.0]]),
        leg("all the way", far),
        leg("pace", around),
    ]
    dataset = one(tmp_path, *segments, furniture=[("Sofa", 0.0, 3.0)])
    [entry] = dataset.paragraphs()
    assert len(entry.segments) == 5
    assert set(entry.windows) == {(1, 1), (0, 1)}
    assert "1 too short to fly" in notes(dataset)
    single, pairs = (note for note in dataset.meta["notes"] if "legs kept" in note)
    assert single == (
        "single legs kept: 1 train; left out: "
        "1 too long to fly, 1 too short to fly, 1 too wide for the arena, 1 without a sentence"
    )
    assert pairs == "pairs of legs kept: 1 train; left out: 2 without a sentence, 1 not end to end"


def test_training_ground_is_kept_free_and_other_legs_through_furniture_are_left_out(tmp_path):
    through = {"id": "d", "scene": "hall", "segments": [leg("onto the bed", [[0.0, 0.0], [2.0, 0.0]])]}
    beside = {"id": "t", "scene": "hall", "segments": [leg("past the bed", [[0.0, 1.0], [2.0, 1.0]])]}
    rooms = {"hall": [("Bed", 1.0, 0.0)]}
    folder = write_human_nav(tmp_path / "in", rooms, {"train": [beside], "dev": [through]})
    dataset = import_human_nav(folder, tmp_path / "out")
    assert dataset.splits == ["train"]
    assert "1 through furniture" in notes(dataset)
    # As training data the same walk says that the bed is elsewhere.
    folder = write_human_nav(tmp_path / "in2", rooms, {"train": [through]})
    dataset = import_human_nav(folder, tmp_path / "out2")
    [instruction] = dataset.instructions()
    assert [entry.name for entry in dataset.layout("hall", instruction.window).landmarks] == ["Bed"]
    assert not dataset.layout("hall", instruction.window).inside(instruction.segment.path).any()
    assert "through furniture" not in notes(dataset)


def test_legs_that_do_not_follow_one_another_are_not_paired(tmp_path):
    dataset = one(tmp_path, leg("one", LINE), leg("two", [[0.75, 0.0], [0.75, 0.25]]))
    [entry] = dataset.paragraphs()
    assert set(entry.windows) == {(0, 0), (1, 1)}
    assert "1 not end to end" in notes(dataset)


def test_packed_and_plain_files_are_the_same(tmp_path):
    made = []
    for packed in (True, False):
        folder = house(np.random.default_rng(4), tmp_path / "in", ["Room1"], packed)
        made.append(import_human_nav(folder, tmp_path / f"out{packed}", hold_out=0))
        for path in folder.iterdir():
            path.unlink()
    for name in FILES:
        assert (made[0].folder / name).read_bytes() == (made[1].folder / name).read_bytes()


def test_one_seed_makes_the_same_bytes_and_another_does_not(rng, tmp_path):
    folder = house(rng, tmp_path / "in", [f"Room{n}" for n in range(1, 7)])
    a, b, c = (import_human_nav(folder, tmp_path / name, seed, 2) for name, seed in (("a", 3), ("b", 3), ("c", 4)))
    for name in FILES:
        assert (a.folder / name).read_bytes() == (b.folder / name).read_bytes()
    assert windows(a) != windows(c)


def test_windows_do_not_depend_on_order_or_on_other_files(rng, tmp_path):
    folder = house(rng, tmp_path / "in", ["Room1", "Room2"])
    whole = windows(import_human_nav(folder, tmp_path / "a", hold_out=0))
    lines = lzma.decompress((folder / "train.jsonl.xz").read_bytes()).splitlines(keepends=True)
    for name in ("dev", "test", "train"):
        (folder / f"{name}.jsonl.xz").unlink()
    (folder / "train.jsonl").write_bytes(b"".join(reversed(lines)))
    alone = windows(import_human_nav(folder, tmp_path / "b", hold_out=0))
    assert len(alone) > 10
    assert alone == {name: whole[name] for name in alone}


def test_rooms_are_held_out_evenly_over_kinds(rng):
    names = [f"FloorPlan{n + 100 * kind}" for kind in (0, 2, 3, 4) for n in range(1, 28)]
    for seed in range(20):
        chosen = held_out(names, 10, seed)
        assert len(chosen) == 10
        kinds = Counter(int(name[9:]) // 100 for name in chosen)
        assert sorted(kinds.values()) == [2, 2, 3, 3]
        assert chosen == held_out(list(reversed(names)), 10, seed)
    assert held_out(names, 10, 0) != held_out(names, 10, 1)
    assert len(held_out(["attic", "cellar", "hall7"], 2, 0)) == 2
    # Where one kind has few rooms, others give more.
    assert len(held_out(["a1", "a201", "a202", "a203"], 3, 0)) == 3
    assert held_out(names, 0, 0) == set()


def test_with_few_rooms_none_is_held_out_and_that_is_said(rng, tmp_path):
    folder = house(rng, tmp_path / "in", ["Room1", "Room2", "Room3"])
    dataset = import_human_nav(folder, tmp_path / "out", hold_out=2)
    assert "dev-unseen" not in dataset.splits
    assert "no rooms were held out: there are 3 training rooms, and holding out 2 takes 6" in notes(dataset)


def test_other_splits_are_labelled_by_the_rooms_they_share(tmp_path):
    rows = {
        split: [{"id": f"{split}{room}", "scene": room, "segments": [leg("go", LINE)]} for room in rooms]
        for split, rooms in {"train": "ab", "quiz": "b", "exam": "c", "retake": "cd"}.items()
    }
    folder = write_human_nav(tmp_path / "in", dict.fromkeys("abcd", SOFA), rows)
    dataset = import_human_nav(folder, tmp_path / "out")
    dataset.validate()
    assert dataset.meta["splits"] == {
        "quiz": "new tasks in rooms of the training split",
        "exam": "rooms never seen in training",
        "retake": "rooms never seen in training, some of them those of exam",
    }
    assert dataset.meta["shared"] == ["quiz", "retake"]


def test_rooms_outside_training_that_two_splits_share_are_told(tmp_path):
    rows = {
        split: [{"id": f"{split}{room}", "scene": room, "segments": [leg("go", LINE)]} for room in rooms]
        for split, rooms in {"train": "a", "dev": "ab", "test": "b"}.items()
    }
    folder = write_human_nav(tmp_path / "in", dict.fromkeys("ab", SOFA), rows)
    dataset = import_human_nav(folder, tmp_path / "out")
    dataset.validate()
    assert dataset.meta["splits"] == {
        "dev": "new tasks, 1 of its 2 rooms in the training split",
        "test": "rooms never seen in training, some of them those of dev",
    }
    assert dataset.meta["shared"] == ["dev", "test"]


def test_test_walks_in_held_out_rooms_stay_test_walks(tmp_path):
    rows = {
        split: [{"id": f"{split}{room}", "scene": room, "segments": [leg("go", LINE)]} for room in "abc"]
        for split in ("train", "dev", "test")
    }
    folder = write_human_nav(tmp_path / "in", dict.fromkeys("abc", SOFA), rows)
    dataset = import_human_nav(folder, tmp_path / "out", hold_out=1)
    dataset.validate()
    names = {split: {entry.id[:-1] for entry in dataset.paragraphs(split)} for split in dataset.splits}
    assert names == {"train": {"train"}, "dev": {"dev"}, "dev-unseen": {"train", "dev"}, "test": {"test"}}
    label = "new tasks, 2 of its 3 rooms in the training split, some of them those of dev-unseen"
    assert dataset.meta["splits"]["test"] == label


def test_a_split_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    folder = write_human_nav(tmp_path / "in", {"hall": SOFA}, {"train": [GOOD]})

    def refuse(path, mode):
        if path.suffix == ".xz":
            raise PermissionError(13, "Permission denied")
        return open(path, mode)

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(WordwingError, match=r"train\.jsonl\.xz: the file cannot be read \(permission denied\)"):
        import_human_nav(folder, tmp_path / "out")


def test_a_place_that_is_taken_is_told_before_anything_is_read(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(WordwingError, match=r"not a dataset \(thesis.tex is in it\)"):
        import_human_nav(tmp_path / "nowhere", tmp_path / "out")


def test_rooms_without_furniture_and_paragraphs_without_legs_are_no_trouble(tmp_path):
    rows = [
        {"id": "a", "scene": "bare", "segments": [leg("go", LINE)]},
        {"id": "b", "scene": "bare", "segments": []},
        {"id": "c", "scene": "bare", "segments": [leg("turn", [[0, 0]])]},
    ]
    folder = write_human_nav(tmp_path / "in", {"bare": []}, {"train": rows})
    dataset = import_human_nav(folder, tmp_path / "out")
    assert [entry.id for entry in dataset.paragraphs()] == ["a"]
    assert "paragraphs without an instruction that can be flown, left out: 2" in notes(dataset)


def test_unknown_furniture_stops_the_import_unless_it_may_be_skipped(tmp_path):
    row = {"id": "p", "scene": "hall", "segments": [leg("go", LINE)]}
    folder = write_human_nav(tmp_path / "in", {"hall": [*SOFA, ("Soffa", 0.0, 3.0)]}, {"train": [row]})
    with pytest.raises(WordwingError, match=r'scene "hall": a piece is called "Soffa"; did you mean "Sofa"\?'):
        import_human_nav(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    dataset = import_human_nav(folder, tmp_path / "out", skip_unknown=True)
    assert "furniture that the catalogue does not have: 1 Soffa" in notes(dataset)
    folder = write_human_nav(tmp_path / "in", {"hall": [*SOFA, ("\ud800", 0.0, 3.0)]}, {"train": [row]})
    half = import_human_nav(folder, tmp_path / "half", skip_unknown=True)
    assert "furniture that the catalogue does not have: 1 ?" in notes(half)
    assert dataset.meta["command"].endswith("--seed 0 --hold-out 10 --skip-unknown")


GOOD = {"id": "p", "scene": "hall", "segments": [leg("go", LINE)]}


def edited(**changes: object) -> str:
    """The good paragraph with its segment changed; None removes a key."""
    segment = {**GOOD["segments"][0], **changes}
    row = {**GOOD, "segments": [{key: value for key, value in segment.items() if value is not None}]}
    return json.dumps(row)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: not valid JSON"),
        ("[" * 100_000, "line 2: not valid JSON"),
        ("7", "line 2: this is 7; it must be an object"),
        ('{"scene": "hall", "segments": []}', 'line 2: "id" is missing; it must be a name'),
        ('{"id": "q", "segments": []}', 'line 2: "scene" is missing; it must be a name'),
        ('{"id": "q", "scene": "moon", "segments": []}', 'line 2: scene "moon" is not in scenes.json'),
        ('{"id": "q", "scene": "hall"}', 'line 2: "segments" is missing; it must be a list'),
        ('{"id": "p", "scene": "hall", "segments": []}', 'line 2: a paragraph is called "p" already'),
        ('{"id": "q", "scene": "hall", "segments": [1]}', "line 2: segment 0 is 1; it must be an object"),
        (edited(instruction=None), 'line 2: segment 0: "instruction" is missing; it must be a text'),
        (edited(instruction=5), 'line 2: segment 0: "instruction" is 5; it must be a text'),
        (edited(instruction="x" * 2001), "2001 characters; 2000 are the most"),
        (edited(start_yaw=None), 'line 2: segment 0: "start_yaw" is missing; it must be a finite number'),
        (edited(start_yaw=float("nan")), 'line 2: segment 0: "start_yaw" is NaN; it must be a finite number'),
        (edited(start_yaw=1e9), 'line 2: segment 0: "start_yaw" is 1000000000.0; it must be a finite'),
        (edited(end_yaw="north"), 'line 2: segment 0: "end_yaw" is "north"; it must be a finite number'),
        (edited(end_yaw=True), 'line 2: segment 0: "end_yaw" is true; it must be a finite number'),
        (edited(path=None), 'line 2: segment 0: "path" is missing; it must be a list'),
        (edited(path=[]), 'line 2: segment 0: "path" is a list of 0; it must be a list'),
        (edited(path=[[0, 0], [0]]), 'line 2: segment 0: "path" has a list of 1 in it; it must be a list'),
        (edited(path=[[0, float("inf")]]), 'line 2: segment 0: "path" has Infinity in it; it must be a'),
        (edited(path=[["0", 1]]), 'line 2: segment 0: "path" has "0" in it; it must be a list'),
        (edited(path=[[5000, 0]]), "more than 1000 m"),
        ('{"id": "q' + " " * 1_000_000, "line 2 is longer than 1 MB"),
    ],
)
def test_each_mistake_in_a_split_is_named_with_file_and_line(tmp_path, line, words):
    folder = write_human_nav(tmp_path / "in", {"hall": SOFA}, {})
    (folder / "train.jsonl").write_text(json.dumps(GOOD) + "\n" + line + "\n")
    with pytest.raises(WordwingError) as raised:
        import_human_nav(folder, tmp_path / "out")
    assert "train.jsonl: line 2" in str(raised.value)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "it must be an object"),
        ('{"hall": {}}', '"hall" is an object; it must be a list'),
        ('{"hall": [4]}', '"hall": piece 1 is 4; it must be an object'),
        ('{"hall": [{"name": "Sofa", "x": 1}]}', '"hall": piece 1: "y" is missing; it must be a finite number'),
        ('{"hall": [{"name": 1, "x": 1, "y": 1}]}', '"hall": piece 1: "name" is 1; it must be a text'),
        ('{"hall": [{"name": "Sofa", "x": NaN, "y": 1}]}', 'piece 1: "x" is NaN; it must be a finite number'),
        ('{"hall": [{"name": "Sofa", "x": "1", "y": 1}]}', 'piece 1: "x" is "1"; it must be a finite number'),
        ('{"hall": [{"name": "Sofa", "x": 1e4, "y": 1}]}', "x and y must be between ±1000 m"),
    ],
)
def test_each_mistake_in_the_scenes_gets_a_sentence(tmp_path, text, words):
    folder = write_human_nav(tmp_path / "in", {}, {"train": [GOOD]})
    (folder / "scenes.json").write_text(text)
    with pytest.raises(WordwingError) as raised:
        import_human_nav(folder, tmp_path / "out")
    assert words in str(raised.value)


def test_a_broken_or_cut_xz_file_is_named_with_the_last_good_line(rng, tmp_path):
    rows = [random_paragraph(rng, f"p{i}", "hall") for i in range(3000)]
    folder = write_human_nav(tmp_path / "in", {"hall": SOFA}, {"train": rows})
    path = folder / "train.jsonl.xz"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(WordwingError, match=r"train.jsonl.xz: after line \d+: not a whole xz file"):
        import_human_nav(folder, tmp_path / "out")
    path.write_bytes(b"not xz at all")
    with pytest.raises(WordwingError, match="after line 0: not a whole xz file"):
        import_human_nav(folder, tmp_path / "out")


def test_folders_that_are_not_human_nav_are_refused(tmp_path):
    with pytest.raises(WordwingError, match="there is no such folder"):
        import_human_nav(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(WordwingError, match=r"scenes.json: there is no such file"):
        import_human_nav(tmp_path, tmp_path / "out")
    write_human_nav(tmp_path, {"hall": SOFA}, {})
    with pytest.raises(WordwingError, match=r"there is no train.jsonl.xz"):
        import_human_nav(tmp_path, tmp_path / "out")
    write_human_nav(tmp_path, {"hall": SOFA}, {"train": [GOOD]})
    write_human_nav(tmp_path, {"hall": SOFA}, {"train": [GOOD]}, packed=False)
    with pytest.raises(WordwingError, match=r"both train.jsonl and train.jsonl.xz; keep one"):
        import_human_nav(tmp_path, tmp_path / "out")


def test_a_folder_in_which_nothing_can_be_flown_is_refused(tmp_path):
    with pytest.raises(WordwingError, match="no instruction can be flown"):
        one(tmp_path, leg("turn", [[0.0, 0.0]]))
