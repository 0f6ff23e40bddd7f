"""Collect what writers and readers of the corpus `written` replied into the packed file that comes with wordwing.

Usage: python scripts/written_replies.py OUT [--packed FILE] [--check]

OUT is what written_sheets.py made. Replies with a mistake are reported and left out, unfinished ones too; what the
file has already stays as it is. The sentences that somebody is to read are then in OUT/readers/NN/sentences.jsonl.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field

from wordwing.data.schema import Paragraph
from wordwing.data.statistics import HIT
from wordwing.data.unwritten import REFUSED
from wordwing.data.written import PACKED, Profile, Reading, Written, read_written, write_written
from wordwing.errors import WordwingError
from wordwing.files import read_lines, replacing
from wordwing.frames import ARENA_HALF
from wordwing.language.tokenizer import tokenize
from wordwing.validation import parse_json
from written_plan import profiles

DOUBLES = 0.01
"""Largest share of sentences that somebody has written before."""


@dataclass(frozen=True)
class _Planned:
    """A line of paragraphs.jsonl."""

    writer: str
    sheet: str
    sha256: str
    world: str
    paragraph: dict[str, Any]
    layout: dict[str, Any]


@dataclass(frozen=True)
class _Read:
    """A line of readings.jsonl."""

    reader: str
    sheet: str
    paragraph: str
    segment: int
    sha256: str


@dataclass(frozen=True)
class _WriterReply:
    sheet: str
    sentences: tuple[str, ...]


Coordinate = Annotated[float, Field(ge=-ARENA_HALF, le=ARENA_HALF, allow_inf_nan=False)]


@dataclass(frozen=True)
class _ReaderReply:
    sheet: str
    x: Coordinate | None
    """To the right in the image, metres."""
    y: Coordinate | None
    """Upwards in the image, metres."""


Row = TypeVar("Row")


class Report:
    """Complaints, printed as they come and counted."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def say(self, kind: str, sentence: str) -> None:
        """One complaint."""
        self.counts[kind] += 1
        print(f"{kind}: {sentence}")


def rows(path: Path, kind: type[Row], complain: Callable[[str], None]) -> Iterator[tuple[str, Row]]:
    """Where each line of a file is, and the line; those that cannot be read are complained about."""
    for number, line in enumerate(read_lines(path, 1_000_000), start=1):
        try:
            yield f"{path.parent.name}: line {number}", parse_json(kind, line, f"{path.parent.name}: line {number}")
        except WordwingError as error:
            complain(str(error))


def planned(path: Path, kind: type[Row]) -> list[Row]:
    """All lines of a file of the plan; a mistake in it is raised."""
    return [parse_json(kind, line, str(path)) for line in read_lines(path, 1_000_000)]


def reply_to(plan: _Planned, sentences: tuple[str, ...]) -> Written:
    """A planned paragraph with a writer's sentences."""
    count = len(plan.layout["landmarks"])
    segments = Paragraph.from_json(json.dumps(plan.paragraph), {plan.paragraph["layout"]: count}, plan.sheet).segments
    points = [segments[0].path[:1], *(segment.path[1:] for segment in segments)]
    millimetres = np.round(1000 * np.concatenate(points)).astype(int)
    return Written(
        id=plan.paragraph["id"],
        writer=plan.writer,
        sha256=plan.sha256,
        world="cage" if plan.world == "cage" else "field",
        layout=plan.layout,
        path=tuple((x, y) for x, y in np.diff(millimetres, axis=0, prepend=0).tolist()),
        ends=tuple(np.cumsum([len(segment.path) - 1 for segment in segments]).tolist()),
        yaws=tuple(segment.start_yaw for segment in segments),
        sentences=sentences,
    )


def mistakes(sentences: Sequence[str], segments: int) -> Iterator[tuple[str, str]]:
    """What is wrong with a reply to a sheet: the kind of mistake, and the words."""
    if len(sentences) != segments:
        yield "number of sentences", f"{len(sentences)} for {segments} parts"
    for sentence in sentences:
        if not sentence.isprintable():
            yield "control characters", repr(sentence)
        for kind, pattern in REFUSED.items():
            if found := pattern.search(sentence):
                yield kind, f'"{found[0]}" in: {sentence}'


def collect_writers(out: Path, packed: dict[str, Written], report: Report) -> None:
    """Add the finished replies of all writers."""
    plans = {(plan.writer, plan.sheet): plan for plan in planned(out / "paragraphs.jsonl", _Planned)}
    for entry in plans.values():
        if kept := packed.get(entry.paragraph["id"]):
            written = reply_to(entry, kept.sentences)
            if (written.layout, written.path, written.ends) != (kept.layout, kept.path, kept.ends):
                raise WordwingError(f"{out}: {kept.id} is another path than in the packed file; draw the sheets again")
    for path in sorted(out.glob("writers/*/reply.jsonl")):
        for where, reply in rows(path, _WriterReply, lambda sentence: report.say("form", sentence)):
            plan = plans.get((path.parent.name, reply.sheet))
            if plan is None:
                report.say("form", f"{where}: there is no sheet {reply.sheet}")
                continue
            if not reply.sentences or not all(sentence.strip() for sentence in reply.sentences):
                report.counts["not yet written"] += 1
                continue
            if found := list(mistakes(reply.sentences, len(plan.paragraph["segments"]))):
                for kind, words in found:
                    report.say(kind, f"{where}: {words}")
                report.counts["paragraphs left out"] += 1
                continue
            written = reply_to(plan, reply.sentences)
            if packed.setdefault(written.id, written).sentences != written.sentences:
                report.say("form", f"{where}: the packed file has another reply to this sheet, which stays")


def collect_readers(out: Path, packed: dict[str, Written], report: Report) -> None:
    """Add where readers say that segments lead."""
    readings = {(entry.reader, entry.sheet): entry for entry in planned(out / "readings.jsonl", _Read)}
    for path in sorted(out.glob("readers/*/reply.jsonl")):
        for where, reply in rows(path, _ReaderReply, lambda sentence: report.say("form", sentence)):
            entry = readings.get((path.parent.name, reply.sheet))
            if entry is None or entry.paragraph not in packed:
                report.counts["not yet to be read"] += 1
            elif reply.x is None or reply.y is None:
                report.counts["not yet read"] += 1
            else:
                # The top of the image is x of the world, its left side y.
                reading = Reading(entry.segment, entry.reader, entry.sha256, x=reply.y, y=-reply.x)
                written = packed[entry.paragraph]
                known = {(kept.segment, kept.reader): kept for kept in written.readings}
                kept = known.setdefault((reading.segment, reading.reader), reading)
                if (kept.x, kept.y) != (reading.x, reading.y):
                    report.say("form", f"{where}: the packed file has another place, which stays")
                packed[written.id] = replace(written, readings=tuple(sorted(known.values(), key=astuple)))


def write_sentences(out: Path, packed: dict[str, Written]) -> None:
    """Give every reader the sentences that exist, each with those before it."""
    lines: dict[str, list[str]] = {}
    for entry in planned(out / "readings.jsonl", _Read):
        if entry.paragraph in packed:
            *before, sentence = packed[entry.paragraph].sentences[: entry.segment + 1]
            row = {"sheet": entry.sheet, "before": before, "sentence": sentence}
            lines.setdefault(entry.reader, []).append(json.dumps(row, ensure_ascii=False) + "\n")
    for reader, own in lines.items():
        with replacing(out / "readers" / reader / "sentences.jsonl") as temporary:
            temporary.write_text("".join(sorted(own)), "utf-8")


def doubles(paragraphs: Sequence[Written]) -> Iterator[str]:
    """Sentences that somebody has written before, whatever the capitals and punctuation."""
    first: dict[str, str] = {}
    for entry in paragraphs:
        for sentence in entry.sentences:
            words = " ".join(tokenize(sentence))
            if words in first:
                yield f"{first[words]} and {entry.id}: {sentence}"
            first.setdefault(words, entry.id)


def summary(known: Sequence[Profile], paragraphs: Sequence[Written]) -> None:
    """Print what the packed file has."""
    splits = {profile.id: profile.split for profile in known}
    for split in dict.fromkeys(splits.values()):
        own = [entry for entry in paragraphs if splits[entry.writer] == split]
        sentences = sum(len(entry.sentences) for entry in own)
        print(f"{split}: {len(own)} paragraphs, {sentences} segments, {len({entry.writer for entry in own})} writers")
    off = [
        math.dist(segment.path[-1], reading)
        for entry in paragraphs
        for segment in entry.paragraph(splits[entry.writer]).segments
        for reading in segment.readings
    ]
    if off:
        near = sum(distance < HIT for distance in off) / len(off)
        print(f"readers: {near:.1%} of {len(off)} within {HIT:.2f} m of the end of the segment")


def main() -> None:
    """Check, merge and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--packed", type=Path, default=PACKED)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    report = Report()
    known, kept = read_written(options.packed) if options.packed.exists() else ([], [])
    everybody = {profile.id: profile for profile in (*profiles(), *known)}
    packed = {entry.id: entry for entry in kept}
    collect_writers(options.out, packed, report)
    collect_readers(options.out, packed, report)
    paragraphs = sorted(packed.values(), key=lambda entry: entry.id)
    for double in doubles(paragraphs):
        report.say("double", double)
    sentences = sum(len(entry.sentences) for entry in paragraphs)
    print(", ".join(f"{kind}: {count}" for kind, count in report.counts.items()))
    summary(list(everybody.values()), paragraphs)
    if not options.check:
        write_written(list(everybody.values()), paragraphs, options.packed)
        write_sentences(options.out, packed)
        print(f"{options.packed}: {options.packed.stat().st_size:,} bytes")
    if report.counts["double"] > DOUBLES * sentences:
        raise SystemExit(f"more than {DOUBLES:.0%} of {sentences} sentences have been written before")


if __name__ == "__main__":
    main()
