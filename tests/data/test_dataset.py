import itertools
import json
import math
import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from wordwing import files
from wordwing.data import dataset
from wordwing.data.dataset import FILES, Dataset, Source, write_dataset
from wordwing.data.scenes import Scene
from wordwing.data.schema import Paragraph, Segment, Window
from wordwing.errors import WordwingError, shown
from wordwing.files import SAFE_NAME_RULE
from wordwing.language.alignment import align
from wordwing.language.meaning.clauses import Clause
from wordwing.language.tokenizer import Vocabulary
from wordwing.world.layout import Layout, Placement

YARD = Layout((Placement("Barrel", 1.0, 0.5, yaw=0.25), Placement("Boat", -1.0, 0.5)), lakes=((3, 4), (3, 5), (99, 0)))
PARK = Layout((Placement("Gorilla", 0.0, 1.5),))
ROOM = Scene(
    (
        Placement("Sofa", 10.0, 4.0, yaw=1.0),
        Placement("Desk", 12.0, 5.0),
        Placement("DeskLamp", 12.1, 5.0, elevation=0.56),
        Placement("Bed", 30.0, 4.0),
    )
)
LAYOUTS = {"yard": YARD, "park": PARK, "room": ROOM}
SOURCE = Source(
    "field",
    "generated",
    seed=7,
    command="wordwing data build field",
    steps=60,
    splits={"dev": "other layouts"},
    notes=("nothing was dropped",),
)


def segment(text: str, *path: tuple[float, float], meaning: tuple[Clause, ...] | None = None) -> Segment:
    return Segment(text, path[0], 0.5, np.array(path, float), meaning)


def paragraph(name: str, split: str, layout: str, *texts: str) -> Paragraph:
    return Paragraph(name, split, layout, tuple(segment(text, (0.0, 0.0), (0.5, -0.25)) for text in texts))


def room_paragraph(name: str = "room-1", split: str = "test") -> Paragraph:
    legs = (
        segment("Turn to the sofa", (11.0, 4.0)),
        segment("walk to the café 🚁", (11.0, 4.0), (11.5, 4.5)),
        segment("walk away", (11.5, 4.5), (35.0, 4.0)),
    )
    windows = {(1, 1): Window(11.0, 4.0, 0.5), (0, 1): Window(10.5, 4.25, -2.0)}
    return Paragraph(name, split, "room", legs, windows)


def paragraphs() -> list[Paragraph]:
    known = segment("Go to the barrel.", (0.0, 0.0), (0.5, 0.25), meaning=(Clause("straight"), Clause("reach", 0)))
    return [
        room_paragraph(),
        paragraph("park-1", "dev", "park", "go to the gorilla", "stop"),
        Paragraph("yard-1", "train", "yard", (known, segment("Turn", (0.5, 0.25)))),
        paragraph("yard-2", "train", "yard", "go to the boat"),
    ]


def in_order() -> list[Paragraph]:
    """`paragraphs` as they are written: training, dev, then the rest."""
    [room, park, first, second] = paragraphs()
    return [first, second, park, room]


def assert_same(read: Paragraph, written: Paragraph) -> None:
    assert (read.id, read.split, read.layout) == (written.id, written.split, written.layout)
    assert read.windows == written.windows
    for a, b in zip(read.segments, written.segments, strict=True):
        assert (a.instruction, a.start_xy, a.start_yaw) == (b.instruction, b.start_xy, b.start_yaw)
        assert a.path.tolist() == b.path.tolist()
        assert a.meaning == b.meaning


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small dataset; nothing else is beside it."""
    write_dataset(tmp_path / "data", SOURCE, LAYOUTS, paragraphs())
    return tmp_path / "data"


def change(folder: Path, name: str, number: int, edit: Callable[[dict], object]) -> None:
    """Edit line `number`, from 1, of a .jsonl file, or the whole of a .json file."""
    path = folder / name
    lines = path.read_text("utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text("utf-8")]
    document = json.loads(lines[number - 1])
    edit(document)
    lines[number - 1] = json.dumps(document)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def complaint(action: Callable[[], object]) -> str:
    with pytest.raises(WordwingError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What is written and read.


def test_what_is_written_is_what_is_read(folder):
    read = Dataset(folder)
    for a, b in zip(read.paragraphs(), in_order(), strict=True):
        assert_same(a, b)
    assert read.layout("yard") == YARD
    assert read.layout("yard").lakes == ((3, 4), (3, 5), (99, 0))
    assert read.layout("park") == PARK
    assert (read.name, read.steps, read.splits) == ("field", 60, ["train", "dev", "test"])
    read.validate()
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["data"]


def test_a_scene_is_read_as_it_was_and_cut_by_a_window(folder):
    read = Dataset(folder)
    for instruction in read.instructions("test"):
        assert instruction.window is not None
        assert read.layout("room", instruction.window) == ROOM.cut(instruction.window)
    names = {entry.name for entry in read.layout("room", Window(11.0, 4.0, 0.5)).landmarks}
    assert names == {"Sofa", "Desk", "DeskLamp"}
    assert complaint(lambda: read.layout("room")) == (
        f'{folder}: "room" is a scene; an instruction in it needs a window'
    )
    assert complaint(lambda: read.layout("yard", Window(0, 0, 0))) == (
        f'{folder}: "yard" is a layout; an instruction in it has no window'
    )
    assert complaint(lambda: read.layout("attic")) == f'{folder}: there is no layout "attic"'


def test_a_split_is_read_alone_and_its_instructions_one_by_one(folder):
    read = Dataset(folder)
    assert [entry.id for entry in read.paragraphs("train")] == ["yard-1", "yard-2"]
    assert [entry.id for entry in read.instructions("train")] == ["yard-1/0", "yard-1/1", "yard-1/0-1", "yard-2/0"]
    assert [entry.id for entry in read.instructions("test")] == ["room-1/1", "room-1/0-1"]
    assert [entry.id for entry in read.instructions(counts=(2,))] == ["yard-1/0-1", "park-1/0-1", "room-1/0-1"]
    assert complaint(lambda: list(read.paragraphs("tset"))) == (
        f'{folder}: there is no split "tset"; there are train, dev, test'
    )


def test_a_task_is_an_instruction_with_its_layout_in_the_arena(folder):
    read = Dataset(folder)
    for instruction in read.instructions():
        task = read.task(instruction)
        assert task.instruction == instruction.segment.instruction
        assert (task.start_xy, task.start_yaw) == (instruction.segment.start_xy, instruction.segment.start_yaw)
        assert task.gold_path.tolist() == instruction.segment.path.tolist()
        task.layout.validate()
        assert np.abs(task.gold_path).max() < 2.35
    assert read.task(next(read.instructions("train"))).layout == YARD


def test_meta_says_what_was_written(folder):
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    assert meta["counts"] == {
        "train": {"paragraphs": 2, "layouts": 1, "segments": 3, "instructions": 4},
        "dev": {"paragraphs": 1, "layouts": 1, "segments": 2, "instructions": 3},
        "test": {"paragraphs": 1, "layouts": 1, "segments": 3, "instructions": 2},
    }
    stated = {key: meta[key] for key in ("schema", "source", "text", "seed", "command", "steps", "splits", "notes")}
    assert stated == {
        "schema": 1,
        "source": "field",
        "text": "generated",
        "seed": 7,
        "command": "wordwing data build field",
        "steps": 60,
        "splits": {"dev": "other layouts"},
        "notes": ["nothing was dropped"],
    }


def test_splits_come_training_first_whatever_they_are_called(tmp_path):
    splits = ["zoo", "test", "dev-unseen", "attic", "train", "dev", "zoo"]
    entries = [paragraph(f"p{i}", split, "yard", "go") for i, split in enumerate(splits)]
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, iter(entries))
    assert written.splits == ["train", "dev", "dev-unseen", "test", "attic", "zoo"]
    assert [entry.id for entry in written.paragraphs()] == ["p4", "p5", "p2", "p1", "p3", "p0", "p6"]


def test_layouts_that_no_paragraph_uses_are_left_out(tmp_path):
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, [paragraph("p", "train", "yard", "go")])
    ids = [json.loads(line)["id"] for line in (tmp_path / "data" / "layouts.jsonl").read_text("utf-8").splitlines()]
    assert ids == ["yard"]
    written.validate()


def test_a_dataset_may_be_empty(tmp_path):
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, [])
    written.validate()
    assert list(written.paragraphs()) == []
    assert written.splits == []
    assert len(written.vocabulary) == 2


def test_the_same_dataset_is_written_twice_the_same(folder, tmp_path):
    write_dataset(tmp_path / "again", SOURCE, LAYOUTS, paragraphs())
    assert contents(tmp_path / "again") == contents(folder)


# What is counted.


def test_the_vocabulary_is_of_the_training_split_alone(tmp_path):
    entries = [
        paragraph("a", "train", "yard", "fly to the barrel", "now fly on"),
        paragraph("b", "dev", "park", "zebra zebra zebra", "barrel on now"),
    ]
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, entries)
    assert written.vocabulary.words == ("<pad>", "<unk>", "fly")


def test_a_sentence_counts_once_though_it_is_part_of_single_segments_and_of_pairs(tmp_path):
    texts = ["turn left here", "go straight", "stop here"]
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, [paragraph("a", "train", "yard", *texts)])
    assert written.vocabulary == Vocabulary.of(texts)
    assert written.vocabulary.words[2:] == ("here",)


def test_a_leg_that_is_flown_only_with_its_neighbour_has_its_words_in_the_vocabulary(tmp_path):
    entries = [room_paragraph("a", "train"), room_paragraph("b", "train")]
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, entries)
    assert set(written.vocabulary.words[2:]) == {"turn", "to", "the", "sofa", "walk", "café"}
    assert "away" not in written.vocabulary


def training_walks(rng: np.random.Generator) -> Iterator[Paragraph]:
    """Flights near the barrel, far from the gorilla and in the room; who sees a thing often names it."""
    for i in range(60):
        if i % 3 == 2:
            legs = (segment(f"word{i} sofa", (10.5, 3.0), (11.0, 3.0)), segment("elsewhere", (25.0, 4.0)))
            yield Paragraph(f"p{i}", "train", "room", legs, {(0, 0): Window(11.0, 3.5, 0.0)})
        else:
            thing = rng.choice(["barrel", "boat"])
            yield paragraph(f"p{i}", "train", "yard" if thing == "barrel" else "park", f"word{i} {thing}", f"more{i}")


def test_alignments_are_counted_over_single_segments_of_the_training_split(tmp_path, rng):
    training = list(training_walks(rng))
    others = [paragraph(f"q{i}", "dev", "yard", "zebra") for i in range(5)]
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, training + others)
    near = {"yard": {"Barrel", "Boat"}, "park": set(), "room": {"Sofa"}}  # by hand: 1.41 m from what is flown
    examples = [
        (text.split(), near[entry.layout])
        for entry in training
        for text in (leg.instruction for leg in entry.segments)
        if text != "elsewhere"
    ]
    expected = align(examples).scores
    assert written.alignment.scores == {
        word: {name: pytest.approx(pmi, abs=1e-6) for name, pmi in row.items()} for word, row in expected.items()
    }
    assert "zebra" not in written.alignment.scores
    assert written.alignment.mentioned("word2") == {"Sofa"}


# What is read when.


def many(tmp_path: Path, count: int) -> Path:
    entries = [paragraph(f"p{i}", "train", "yard", "go") for i in range(count)]
    write_dataset(tmp_path / "data", SOURCE, LAYOUTS, entries)
    return tmp_path / "data"


def test_a_broken_line_is_met_when_it_is_reached_and_not_before(tmp_path):
    folder = many(tmp_path, 600)
    path = folder / "paragraphs.jsonl"
    lines = path.read_text("utf-8").splitlines()
    lines[499] = lines[499][:40]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    read = Dataset(folder)
    assert (read.splits, len(read.vocabulary)) == (["train"], 3)
    found = read.paragraphs("train")
    assert [entry.id for entry in itertools.islice(found, 499)] == [f"p{i}" for i in range(499)]
    assert complaint(lambda: next(found)).startswith(f"{path}: line 500: not valid JSON (")


def test_opening_reads_only_meta(folder):
    for name in FILES:
        if name != "meta.json":
            (folder / name).write_bytes(b"\xff nonsense")
    read = Dataset(folder)
    assert (read.name, read.splits) == ("field", ["train", "dev", "test"])
    for action in (
        lambda: read.vocabulary,
        lambda: read.alignment,
        lambda: read.layout("yard"),
        lambda: next(read.paragraphs()),
        read.validate,
    ):
        assert complaint(action).startswith(str(folder))


def test_a_broken_layout_is_met_when_it_is_asked_for(folder):
    change(folder, "layouts.jsonl", 2, lambda row: row["layout"]["landmarks"][0].update(name="Gorila"))
    read = Dataset(folder)
    assert len(list(read.paragraphs())) == 4
    assert read.layout("yard") == YARD
    assert complaint(lambda: read.layout("park")).startswith(
        f'{folder / "layouts.jsonl"}: "park": landmark 1 is called "Gorila"; did you mean "Gorilla"?'
    )


def test_a_layout_is_found_whatever_stands_before_it(tmp_path):
    layouts = {f"läyout {i}": Layout((Placement("Barrel", round(i / 100, 2), 0.0),)) for i in range(50)}
    entries = [paragraph(f"p{i}", "train", name, "go") for i, name in enumerate(layouts)]
    read = write_dataset(tmp_path / "data", SOURCE, layouts, entries)
    for name in reversed(layouts):
        assert read.layout(name) == layouts[name]


def test_a_dataset_that_is_replaced_while_it_is_open_is_not_mixed_up_with_the_new_one(folder):
    read = Dataset(folder)
    assert read.layout("park") == PARK
    write_dataset(folder, SOURCE, {"park": YARD, "longer name": PARK}, [paragraph("p", "train", "longer name", "go")])
    assert read.layout("park") == PARK
    assert complaint(lambda: read.layout("yard")).endswith("the file was changed while it was read")
    assert Dataset(folder).layout("longer name") == PARK


# Mistakes in a folder.


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert complaint(lambda: Dataset(folder)) == f"{folder}: there is no {name}; a dataset has {', '.join(FILES)}"


def test_a_missing_folder_is_named_with_what_makes_one(tmp_path):
    for path in (tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").touch()
        assert complaint(lambda path=path: Dataset(path)) == (
            f"{path}: there is no such folder; wordwing data build makes one"
        )


def test_a_file_that_vanishes_after_opening_is_named(folder):
    read = Dataset(folder)
    for name in FILES:
        (folder / name).unlink()
    reason = "there is no such file"
    assert complaint(lambda: next(read.paragraphs())) == f"{folder / 'paragraphs.jsonl'}: {reason}"
    assert complaint(lambda: read.layout("yard")) == f"{folder / 'layouts.jsonl'}: {reason}"
    assert complaint(lambda: read.alignment) == f"{folder / 'alignments.json'}: {reason}"
    assert complaint(lambda: read.vocabulary) == f"{folder / 'vocab.txt'}: there is no such file"


@pytest.mark.parametrize("schema", [2, 0, True, 1.0, "1", None, [1]])
def test_another_schema_is_refused(folder, schema):
    change(folder, "meta.json", 1, lambda meta: meta.update(schema=schema))
    assert complaint(lambda: Dataset(folder)) == (
        f'{folder}/meta.json: "schema" is {shown(schema)}; it must be 1, the version that this wordwing reads'
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "/meta.json: the file is empty; it must be JSON"),
        ("{", "/meta.json: not valid JSON at line 1, column 2 (Expecting property name"),
        ("[" * 100_000, "/meta.json: not valid JSON (maximum recursion depth exceeded"),
        ("[]", "/meta.json: this is a list; it must be an object"),
        ("{}", '/meta.json: "schema" is missing; it must be 1'),
        ('{"schema": 1}', '/meta.json: "source" is missing; it must be a name'),
    ],
)
def test_a_meta_file_that_says_nothing_is_answered_with_a_sentence(folder, text, sentence):
    (folder / "meta.json").write_text(text)
    assert complaint(lambda: Dataset(folder)).startswith(f"{folder}{sentence}")


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("source", 7, SAFE_NAME_RULE),
        ("source", "../x", SAFE_NAME_RULE),
        ("steps", "50", "a whole number from 1 to 10,000"),
        ("steps", True, "a whole number from 1 to 10,000"),
        ("shared", "dev", "a list of splits"),
        ("steps", 0, "a whole number from 1 to 10,000"),
        ("counts", ["train"], "an object with a key for each split"),
        ("counts", None, "an object with a key for each split"),
    ],
)
def test_what_meta_says_must_be_of_its_kind(folder, key, value, wanted):
    change(folder, "meta.json", 1, lambda meta: meta.update({key: value}))
    assert complaint(lambda: Dataset(folder)) == f'{folder}/meta.json: "{key}" is {shown(value)}; it must be {wanted}'


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (2, '"counts": "train" is 2; it must be an object, {…}'),
        ({"paragraphs": 2}, '"counts": "train": "layouts" is missing; it must be a whole number'),
    ],
)
def test_meta_counts_everything_of_each_split(folder, row, said):
    change(folder, "meta.json", 1, lambda meta: meta["counts"].update(train=row))
    assert complaint(lambda: Dataset(folder)) == f"{folder}/meta.json: {said}"


@pytest.mark.parametrize("name", ["layouts.jsonl", "paragraphs.jsonl"])
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b" " * 4_000_001 + b"\n", "line 2 is longer than 4 MB"),
        (b'{"id": "x"', "line 2: not valid JSON (EOF while parsing an object at line 1 column 10); was it cut off?"),
        (b"\n", "line 2: not valid JSON (EOF while parsing a value"),
        (b'{"id": "\xff"}\n', "line 2: not valid JSON (invalid unicode code point at line 1 column 9"),
        (b"[" * 100_000, "line 2: not valid JSON (recursion limit exceeded"),
        (b"9" * 5000, "line 2: not valid JSON (number out of range"),
        (b"[1, 2]\n", "line 2: this is a list; it must be an object"),
        (b"null\n", "line 2: this is null; it must be an object"),
        (b'{"split": "train", "layout": "yard", "segments": []}\n', "line 2: "),
    ],
)
def test_a_damaged_line_is_named_by_its_number(folder, name, line, sentence):
    path = folder / name
    first, *_ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line)
    assert complaint(Dataset(folder).validate).startswith(f"{path}: {sentence}")
    assert complaint(lambda: list(Dataset(folder).paragraphs("train"))).startswith(f"{path}: {sentence}")


def test_a_line_may_be_as_long_as_it_says(folder):
    path = folder / "paragraphs.jsonl"
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].ljust(3_999_999)
    path.write_bytes(b"\n".join(lines))
    Dataset(folder).validate()


def test_two_layouts_of_one_name_are_found(folder):
    change(folder, "layouts.jsonl", 2, lambda row: row.update(id="yard"))
    assert (
        complaint(Dataset(folder).validate)
        == f'{folder / "layouts.jsonl"}: line 2: another layout is called "yard" too'
    )


@pytest.mark.parametrize(
    ("name", "number", "edit", "sentence"),
    [
        ("paragraphs.jsonl", 2, lambda row: row.update(id="yard-1"), ': two paragraphs are called "yard-1"'),
        (
            "paragraphs.jsonl",
            3,
            lambda row: row.update(layout="yard"),
            ': layout "yard" is in both train and dev; splits must not share layouts',
        ),
        (
            "paragraphs.jsonl",
            3,
            lambda row: row.update(layout="attic"),
            '/paragraphs.jsonl: line 3: layout "attic" is not in layouts.jsonl',
        ),
        (
            "paragraphs.jsonl",
            1,
            lambda row: row["segments"][0]["meaning"][1].update(reference=2),
            '/paragraphs.jsonl: line 1: segment 0: a "reach" clause speaks of 2; it must be a fence',
        ),
        (
            "paragraphs.jsonl",
            3,
            lambda row: row.update(split="dve"),
            '/paragraphs.jsonl: line 3: meta.json does not count a split "dve"',
        ),
        (
            "paragraphs.jsonl",
            2,
            lambda row: row.update(windows=[{"segments": [0, 0], "at": [0, 0, 0]}]),
            ': paragraph "yard-2" has windows, but "yard" is a layout',
        ),
        (
            "paragraphs.jsonl",
            2,
            lambda row: row.update(layout="room"),
            ': paragraph "yard-2" has no windows, but "room" is a scene',
        ),
        (
            "paragraphs.jsonl",
            4,
            lambda row: row["windows"][1].update(at=[13.4, 4.0, 0.0]),
            ': instruction "room-1/0-1" leaves its window',
        ),
        (
            "layouts.jsonl",
            1,
            lambda row: row.pop("layout"),
            '/layouts.jsonl: "yard": this is null; it must be an object',
        ),
        (
            "layouts.jsonl",
            3,
            lambda row: row.update(scene={}),
            '/layouts.jsonl: "room": this is an object; it must be a list',
        ),
        ("alignments.json", 1, lambda document: document.update(words=7), '/alignments.json: "words" must map'),
        (
            "meta.json",
            1,
            lambda meta: meta["counts"].update(zoo={**meta["counts"]["train"], "paragraphs": 3}),
            ': split "zoo" has 0 paragraphs; meta.json says 3',
        ),
        ("meta.json", 1, lambda meta: meta["counts"].pop("dev"), "/paragraphs.jsonl: line 3: meta.json does not count"),
    ],
)
def test_each_mistake_is_found_by_validate(folder, name, number, edit, sentence):
    change(folder, name, number, edit)
    assert complaint(Dataset(folder).validate).startswith(f"{folder}{sentence}")


def test_validate_reads_the_vocabulary_too(folder):
    (folder / "vocab.txt").write_text("fly\n")
    assert complaint(Dataset(folder).validate).startswith(f"{folder / 'vocab.txt'}: a vocabulary begins with")


def test_lost_lines_are_found_by_validate(folder):
    path = folder / "paragraphs.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert complaint(Dataset(folder).validate) == f'{folder}: split "test" has 0 paragraphs; meta.json says 1'


@pytest.mark.parametrize("shared", [(), ("dev",), ("dev", "test")])
def test_splits_may_share_layouts_only_where_they_are_meant_to(tmp_path, shared):
    source = Source("field", "generated", 0, "", shared=shared)
    entries = [paragraph(split, split, "yard", "go") for split in ("train", "dev", "test")]
    written = write_dataset(tmp_path / "data", source, LAYOUTS, entries)
    if shared == ("dev", "test"):
        written.validate()
    else:
        other = "test" if shared else "dev"
        assert complaint(written.validate) == (
            f'{tmp_path / "data"}: layout "yard" is in both train and {other}; splits must not share layouts'
        )


def test_two_splits_without_training_may_not_share_layouts_either(tmp_path):
    entries = [paragraph(split, split, "yard", "go") for split in ("dev", "test")]
    written = write_dataset(tmp_path / "data", SOURCE, LAYOUTS, entries)
    assert "in both dev and test" in complaint(written.validate)


# Replacing, whole or not at all.


NEW = [paragraph("new", "train", "park", "other words")]


def write_new(folder: Path) -> Dataset:
    return write_dataset(folder, SOURCE, LAYOUTS, NEW)


def test_a_dataset_replaces_another_whole(folder):
    read = write_new(folder)
    assert [entry.id for entry in read.paragraphs()] == ["new"]
    write_new(folder.parent / "fresh")
    assert contents(folder) == contents(folder.parent / "fresh")


def test_nothing_is_left_beside_a_dataset_that_replaced_another(folder):
    read = write_new(folder)
    assert os.listdir(folder.parent) == ["data"]
    read.validate()


def test_a_dataset_goes_into_a_new_or_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b" / "new"):
        write_new(path).validate()
        assert os.listdir(path.parent).count(path.name) == 1
    assert sorted(os.listdir(tmp_path)) == ["a", "empty"]


def test_colleagues_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o027)
    try:
        write_new(tmp_path / "data")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o750
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()} == {0o640}


def test_a_link_to_a_dataset_stays_a_link(folder, tmp_path):
    link = tmp_path / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(folder)
    write_new(link)
    assert link.is_symlink()
    assert [entry.id for entry in Dataset(folder).paragraphs()] == ["new"]
    assert os.listdir(link.parent) == ["link"]


def test_the_working_folder_may_be_the_dataset(folder, monkeypatch):
    monkeypatch.chdir(folder)
    write_new(Path("."))
    assert [entry.id for entry in Dataset(folder).paragraphs()] == ["new"]


@pytest.mark.parametrize("names", [["notes.txt"], ["notes.txt", *FILES], ["sub/meta.json"], ["layouts.jsonl"]])
def test_a_folder_that_is_no_dataset_is_not_replaced(tmp_path, names):
    folder = tmp_path / "data"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    first = names[0].split("/")[0]
    assert complaint(lambda: write_new(folder)) == (
        f"{folder}: this is not a dataset ({first} is in it), so it is not replaced; choose another --out"
    )
    assert all((folder / name).read_text() == "mine" for name in names)
    assert os.listdir(tmp_path) == ["data"]


def test_a_file_is_not_replaced_and_no_folder_can_be_in_it(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "data"):
        assert complaint(lambda path=path: write_new(path)) == f"{path}: cannot be written (not a directory)"
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_is_read_from_a_generator_whose_dataset_has_no_place(tmp_path):
    (tmp_path / "notes.txt").touch()

    def never() -> Iterator[Paragraph]:
        pytest.fail("hours of work, for nothing")
        yield

    complaint(lambda: write_dataset(tmp_path, SOURCE, LAYOUTS, never()))


def assert_untouched(folder: Path, before: dict[str, bytes]) -> None:
    assert contents(folder) == before
    assert os.listdir(folder.parent) == [folder.name]


def test_a_generator_that_fails_half_way_leaves_the_old_dataset(folder):
    before = contents(folder)

    def failing() -> Iterator[Paragraph]:
        yield from NEW
        raise RuntimeError("no more walks")

    with pytest.raises(RuntimeError, match="no more walks"):
        write_dataset(folder, SOURCE, LAYOUTS, failing())
    assert_untouched(folder, before)


def bad_text() -> Paragraph:
    return paragraph("bad", "train", "park", "half a character \ud83d")


def no_number() -> Paragraph:
    return Paragraph("bad", "train", "park", (segment("go", (0.0, 0.0), (math.nan, 0.0)),))


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (bad_text(), "paragraphs.jsonl: \"bad\" cannot be written ('utf-8' codec can't encode character"),
        (no_number(), 'paragraphs.jsonl: "bad" cannot be written (Out of range float values are not JSON compliant'),
        (paragraph("bad", "dev", "attic", "go"), 'paragraph "bad" is in layout "attic", which is not given'),
        (paragraph("bad", "train", "room", "go"), 'paragraph "bad" has no windows, but "room" is a scene'),
        (
            Paragraph("bad", "dev", "park", (), {}),
            'paragraph "bad" has windows, but "park" is a layout',
        ),
    ],
)
def test_a_paragraph_that_could_not_be_read_again_leaves_the_old_dataset(folder, entry, sentence):
    before = contents(folder)
    message = complaint(lambda: write_dataset(folder, SOURCE, LAYOUTS, [*NEW, entry]))
    assert message.removeprefix(f"{folder}: ").startswith(sentence)
    assert_untouched(folder, before)


class FullDisk:
    """`open` and `Path.write_text` of a disk that has no room for one of the files."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self.write_text = Path.write_text
        monkeypatch.setattr(Path, "write_text", lambda path, *args: self.write(path, *args))
        monkeypatch.setattr(dataset, "open", self.open, raising=False)

    def write(self, path: Path, *args: str) -> int:
        if self.full(path):
            raise OSError(28, "No space left on device")
        return self.write_text(path, *args)

    def open(self, path: Path, mode: str, **options: str):
        # The device that is always full, and fails when its buffer is flushed.
        return open("/dev/full" if self.full(path) and mode == "w" else path, mode, **options)

    def full(self, path: Path) -> bool:
        return self.name.split(".")[0] in path.name


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("existing", [True, False])
def test_a_full_disk_leaves_the_old_dataset_or_none(folder, name, existing, monkeypatch):
    before = contents(folder)
    target = folder if existing else folder.parent / "new"
    FullDisk(name, monkeypatch)
    assert complaint(lambda: write_new(target)).endswith("the disk is full; nothing was changed")
    assert_untouched(folder, before)


def test_where_folders_cannot_be_exchanged_the_old_one_is_moved_away_first(folder, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    write_new(folder).validate()
    assert [entry.id for entry in Dataset(folder).paragraphs()] == ["new"]
    assert os.listdir(folder.parent) == ["data"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", [1, 2])
def test_a_failed_exchange_leaves_the_old_dataset(folder, call, failure, monkeypatch):
    before = contents(folder)
    replace, calls = os.replace, itertools.count(1)

    def fail_once(source: Path, target: Path) -> None:
        if Path(target).name == "vocab.txt" or next(calls) != call:
            replace(source, target)
        else:
            raise failure

    monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises((WordwingError, KeyboardInterrupt)):
        write_new(folder)
    assert_untouched(folder, before)


def test_an_exchange_swaps_two_folders_or_says_that_it_did_not(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    swapped = files._exchange(tmp_path / "a", tmp_path / "b")
    assert os.listdir(tmp_path / "a") == (["b"] if swapped else ["a"])
    assert os.listdir(tmp_path / "b") == (["a"] if swapped else ["b"])
    assert not files._exchange(tmp_path / "a", tmp_path / "none")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def killed(action: Callable[[], object]) -> None:
    """Do something in a process of its own, which must not survive it."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            action()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["_write_lines", "_write_json", "_meta", "_umask", "_exchange", "_swap"])
def test_a_killed_process_leaves_one_of_the_two_datasets_whole(folder, step, after, monkeypatch):
    before = contents(folder)
    module = dataset if hasattr(dataset, step) else files
    function = getattr(module, step)

    def last(*args: object) -> None:
        if after:
            function(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(module, step, last)
    killed(lambda: write_new(folder))
    Dataset(folder).validate()
    replaced = [entry.id for entry in Dataset(folder).paragraphs()] == ["new"]
    assert replaced or contents(folder) == before
    if step != "_exchange":  # which not every file system can
        assert replaced == (after and step == "_swap")
    monkeypatch.undo()
    write_new(folder).validate()
