"""A dataset is a folder; this reads and writes it.

    layouts.jsonl      {"id": …, "layout": {what a layout file has}}, or {"id": …, "scene": [landmarks]}
    paragraphs.jsonl   {"id": …, "split": …, "layout": …, "segments": […], "windows"?: […]}
    vocab.txt          words of the training split, one a line; the line's number is the word's index
    alignments.json    which words name which landmarks, from the training split
    meta.json          schema version, source, seed, command, counts, and what each split is

Opening reads only `meta.json`; paragraphs are read line by line and layouts when first asked for. A folder is written
beside its place and renamed when it is whole.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from wordwing.data.scenes import Scene
from wordwing.data.schema import Instruction, Paragraph, Window
from wordwing.errors import WordwingError, printable
from wordwing.files import check_replaceable, read_json, read_lines, replacing_folder, safe_name
from wordwing.frames import ARENA_HALF
from wordwing.language.alignment import Alignment, align, present
from wordwing.language.tokenizer import Vocabulary, tokenize
from wordwing.release import VERSION
from wordwing.validation import Label, SafeName, Version1, parse, parse_json
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

SCHEMA = 1
"""Version of the format; other versions are refused."""

FILES = ("layouts.jsonl", "paragraphs.jsonl", "vocab.txt", "alignments.json", "meta.json")
ROUNDING = 1e-3
"""How far out of its window a path may be because both were rounded, metres."""

DERIVED = "demonstrations"
"""Folder in a dataset for what is made from it, and goes with it."""

MAX_LINE = 4_000_000
"""Longest line that is read, bytes."""

MAX_META = 1_000_000
"""Largest `meta.json` that is read, bytes."""

MAX_STEPS = 10_000
"""Most control steps that a dataset may give a flight: 50 minutes."""


@dataclass(frozen=True)
class _Counts:
    paragraphs: int
    layouts: int
    segments: int
    instructions: int


@dataclass(frozen=True)
class _Meta:
    """What `meta.json` must have."""

    schema: Version1
    source: SafeName
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)]
    shared: Annotated[list[str], Field(description="a list of splits")]
    splits: Annotated[dict[str, str], Field(description="an object that says what splits are")]
    counts: Annotated[dict[SafeName, _Counts], Field(description="an object with a key for each split")]


@dataclass(frozen=True)
class _LayoutLine:
    id: Label
    layout: Any = None
    scene: Any = None


@dataclass(frozen=True)
class _SplitOnly:
    split: Any = None


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from: what `meta.json` says besides counts."""

    name: str
    """"field", "cage", "house", "lani", …"""
    text: str
    """Who wrote the sentences: a kind of `language.authors`."""
    seed: int | None
    command: str
    """The command that makes it again."""
    steps: int = 50
    """Most control steps that a flight is given."""
    splits: Mapping[str, str] = field(default_factory=dict)
    """What a split is, in words, where its name does not say it all."""
    shared: tuple[str, ...] = ()
    """Splits whose layouts also occur in training, and are meant to."""
    notes: tuple[str, ...] = ()
    """What was dropped, repaired or is otherwise worth knowing."""


class Dataset:
    """A dataset on disk, read lazily."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise WordwingError(f"{folder}: there is no such folder; wordwing data build makes one")
        for name in FILES:
            if not (self.folder / name).is_file():
                raise WordwingError(f"{folder}: there is no {name}; a dataset has {', '.join(FILES)}")
        self.meta = _printable(read_json(self.folder / "meta.json", MAX_META, "meta.json of a dataset"))
        parse(_Meta, self.meta, f"{self.folder / 'meta.json'}")
        self._layout = lru_cache(maxsize=4096)(self._read_layout)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the folder itself, once."""
        return _opened_once, (str(self.folder),)

    @property
    def name(self) -> str:
        """The corpus: "field", "cage", "house" or what an importer called it."""
        return str(self.meta["source"])

    @property
    def steps(self) -> int:
        """Most control steps that a flight of this dataset is given."""
        return int(self.meta["steps"])

    @property
    def splits(self) -> list[str]:
        """Names of the splits, training first."""
        return list(self.meta["counts"])

    @property
    def fingerprint(self) -> str:
        """A hash of all that a demonstration depends on: where things stand, and the paths."""
        digest = hashlib.sha256()
        for name in ("paragraphs.jsonl", "layouts.jsonl"):
            content = b"".join(read_lines(self.folder / name, MAX_LINE))
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()

    def label(self, split: str) -> str:
        """A split's name, with what it is where the name does not say it all: "dev (new tasks in …)"."""
        note = self.meta["splits"].get(split)
        return f"{split} ({note})" if note else split

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words of the training split."""
        return Vocabulary.load(self.folder / "vocab.txt")

    @cached_property
    def alignment(self) -> Alignment:
        """Which words name which landmarks."""
        path = self.folder / "alignments.json"
        return Alignment.from_json(read_json(path, MAX_LINE, "file of alignments"), str(path))

    def paragraphs(self, split: str | None = None) -> Iterator[Paragraph]:
        """Paragraphs in the file's order, of one split or all, each validated as it is read."""
        if split is not None and split not in self.splits:
            raise WordwingError(f'{self.folder}: there is no split "{split}"; there are {", ".join(self.splits)}')
        for where, line in _lines(self.folder / "paragraphs.jsonl"):
            if split is None or parse_json(_SplitOnly, line, where).split == split:
                paragraph = Paragraph.from_json(line, self.landmark_counts, where)
                if paragraph.split not in self.meta["counts"]:
                    raise WordwingError(f'{where}: meta.json does not count a split "{paragraph.split[:60]}"')
                yield paragraph

    def instructions(self, split: str | None = None, counts: tuple[int, ...] = (1, 2)) -> Iterator[Instruction]:
        """Instructions of one or two segments, paragraph by paragraph."""
        for paragraph in self.paragraphs(split):
            yield from paragraph.instructions(counts)

    def layout(self, name: str, window: Window | None = None) -> Layout:
        """A layout by its id; of a scene the part in a window."""
        found = self._layout(name)
        if isinstance(found, Scene):
            if window is None:
                raise WordwingError(f'{self.folder}: "{name}" is a scene; an instruction in it needs a window')
            return found.cut(window)
        if window is not None:
            raise WordwingError(f'{self.folder}: "{name}" is a layout; an instruction in it has no window')
        return found

    def task(self, instruction: Instruction) -> Task:
        """What a flight of an instruction needs."""
        segment = instruction.segment
        layout = self.layout(instruction.layout, instruction.window)
        return Task(segment.instruction, layout, segment.start_xy, segment.start_yaw, segment.path)

    def validate(self) -> None:
        """Read everything; raise a `WordwingError` about the first mistake."""
        _ = self.vocabulary, self.alignment
        layouts = {name: type(self._read_layout(name)) for name in self._lines}
        home: dict[str, str] = {}
        names: set[str] = set()
        found: Counter[str] = Counter()
        for paragraph in self.paragraphs():
            if paragraph.id in names:
                raise WordwingError(f'{self.folder}: two paragraphs are called "{paragraph.id}"')
            names.add(paragraph.id)
            found[paragraph.split] += 1
            _check_windows(paragraph, layouts[paragraph.layout], self.folder)
            for instruction in paragraph.instructions() if paragraph.windows is not None else ():
                flown = np.vstack([instruction.segment.start_xy, instruction.segment.path])
                if np.abs(flown).max() > ARENA_HALF + ROUNDING:
                    raise WordwingError(f'{self.folder}: instruction "{instruction.id}" leaves its window')
            if paragraph.split in self.meta["shared"]:
                continue
            first = home.setdefault(paragraph.layout, paragraph.split)
            if first != paragraph.split:
                raise WordwingError(
                    f'{self.folder}: layout "{paragraph.layout}" is in both {first} and {paragraph.split}; '
                    "splits must not share layouts"
                )
        for split, row in self.meta["counts"].items():
            if row["paragraphs"] != found[split]:
                raise WordwingError(
                    f'{self.folder}: split "{split}" has {found[split]} paragraphs; meta.json says {row["paragraphs"]}'
                )

    @cached_property
    def _lines(self) -> dict[str, tuple[int, int]]:
        """For each layout where its line of layouts.jsonl begins, bytes, and how many landmarks it has."""
        lines: dict[str, tuple[int, int]] = {}
        begin = 0
        for where, line in _lines(self.folder / "layouts.jsonl"):
            row = parse_json(_LayoutLine, line, where)
            if row.id in lines:
                raise WordwingError(f'{where}: another layout is called "{row.id[:60]}" too')
            landmarks = row.layout.get("landmarks") if isinstance(row.layout, dict) else row.scene
            lines[row.id] = begin, len(landmarks) if isinstance(landmarks, list) else 0
            begin += len(line)
        return lines

    @cached_property
    def landmark_counts(self) -> dict[str, int]:
        """How many landmarks each layout has."""
        return {name: landmarks for name, (_, landmarks) in self._lines.items()}

    def _read_layout(self, name: str) -> Layout | Scene:
        if name not in self._lines:
            raise WordwingError(f'{self.folder}: there is no layout "{name}"')
        path = self.folder / "layouts.jsonl"
        where = f'{path}: "{name}"'
        row = None
        with suppress(OSError, WordwingError), open(path, "rb") as file:
            file.seek(self._lines[name][0])
            row = parse_json(_LayoutLine, file.readline(MAX_LINE), where)
        if row is None or row.id != name:
            raise WordwingError(f"{where} is no longer where it was; the file was changed while it was read")
        if row.scene is not None:
            return Scene.from_json(row.scene, where)
        return Layout.from_document(row.layout, where)


@lru_cache(maxsize=4)
def _opened_once(folder: str) -> Dataset:
    return Dataset(folder)


def check_place(folder: str | Path) -> None:
    """Raise a `WordwingError` unless a folder is new, empty or a dataset and nothing else: said before long work."""
    check_replaceable(folder, (*FILES, DERIVED), "meta.json", "a dataset")


def write_dataset(
    folder: str | Path,
    source: Source,
    layouts: Mapping[str, Layout | Scene],
    paragraphs: Iterable[Paragraph],
) -> Dataset:
    """Write a dataset whole, or leave what was there.

    Vocabulary and alignments are made from the split "train".

    Args:
        folder: A new or empty folder, or one that holds a dataset and nothing else, which is replaced.
        source: What goes into `meta.json`.
        layouts: By id; those that no paragraph uses are left out.
        paragraphs: In any order; they are written training first, as they come within a split.
    """
    folder = Path(folder)
    check_place(folder)
    safe_name(source.name, f"{folder}: the dataset's name")
    if not 1 <= source.steps <= MAX_STEPS:
        raise WordwingError(f"{folder}: a flight would have {source.steps} steps; it must have from 1 to {MAX_STEPS}")
    entries = sorted(paragraphs, key=lambda entry: (_SPLITS.get(entry.split, 9), entry.split))
    used = {entry.layout for entry in entries}
    for entry in entries:
        safe_name(entry.split, f'{folder}: the split of paragraph "{entry.id}"')
        if entry.layout not in layouts:
            raise WordwingError(f'{folder}: paragraph "{entry.id}" is in layout "{entry.layout}", which is not given')
        _check_windows(entry, type(layouts[entry.layout]), folder)
    place = folder.resolve()  # the working folder may be the one that is replaced
    with replacing_folder(place) as temporary:
        rows = (
            {"id": name, "scene": layout.to_json()}
            if isinstance(layout, Scene)
            else {"id": name, "layout": layout.to_document()}
            for name, layout in layouts.items()
            if name in used
        )
        _write_lines(temporary / "layouts.jsonl", rows)
        _write_lines(temporary / "paragraphs.jsonl", (entry.to_json() for entry in entries))
        training = [entry for entry in entries if entry.split == "train"]
        texts = (segment.instruction for entry in training for segment in entry.used_segments())
        Vocabulary.of(texts).save(temporary / "vocab.txt")
        examples = (
            (
                tokenize(single.segment.instruction),
                present(_arena(layouts[single.layout], single.window), single.segment.path),
            )
            for entry in training
            for single in entry.instructions((1,))
        )
        _write_json(temporary / "alignments.json", align(examples).to_json())
        _write_json(temporary / "meta.json", _meta(source, entries))
    return Dataset(place)


_SPLITS = {"train": 0, "dev": 1, "dev-unseen": 2, "test": 3}


def _check_windows(paragraph: Paragraph, layout: type[Layout | Scene], folder: Path) -> None:
    if (layout is Scene) != (paragraph.windows is not None):
        has, kind = ("no windows", "scene") if layout is Scene else ("windows", "layout")
        raise WordwingError(f'{folder}: paragraph "{paragraph.id}" has {has}, but "{paragraph.layout}" is a {kind}')


def _arena(layout: Layout | Scene, window: Window | None) -> Layout:
    if isinstance(layout, Scene):
        assert window is not None, "instructions in scenes have windows"
        return layout.cut(window)
    return layout


def _printable(value: Any) -> Any:
    """A JSON document whose texts can be printed: they must not control the terminal."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return {printable(key): _printable(item) for key, item in value.items()} if isinstance(value, dict) else value


def _meta(source: Source, entries: list[Paragraph]) -> dict[str, Any]:
    """What goes into `meta.json`; paragraphs are sorted by split."""
    counts = {}
    for split, group in groupby(entries, key=lambda entry: entry.split):
        rows = list(group)
        counts[split] = {
            "paragraphs": len(rows),
            "layouts": len({entry.layout for entry in rows}),
            "segments": sum(len(entry.segments) for entry in rows),
            "instructions": sum(1 for entry in rows for _ in entry.instructions()),
        }
    return {
        "schema": SCHEMA,
        "source": source.name,
        "text": source.text,
        "wordwing": VERSION,
        "seed": source.seed,
        "command": source.command,
        "steps": source.steps,
        "splits": dict(source.splits),
        "shared": list(source.shared),
        "notes": list(source.notes),
        "counts": counts,
    }


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            try:
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")
            except ValueError as error:  # a number that is not finite, half a surrogate pair
                raise WordwingError(f'{path.name}: "{row["id"]}" cannot be written ({error})') from None


def _write_json(path: Path, document: Any) -> None:
    # Notes may name what no file can hold, half a surrogate pair.
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", "utf-8", "replace")


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Where each line of a file is, for complaints, and the line."""
    for number, line in enumerate(read_lines(path, MAX_LINE), start=1):
        yield f"{path}: line {number}", line
