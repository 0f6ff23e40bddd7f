"""From a collection to a dataset, and how far it is."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from wordwing.collect.database import CollectionSettings
from wordwing.collect.store import Collection, segment_of
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.schema import Paragraph
from wordwing.data.statistics import HIT
from wordwing.errors import WordwingError
from wordwing.files import write_text
from wordwing.world.layout import Layout


@dataclass(frozen=True)
class PersonCounts:
    """What one person has done."""

    number: int
    written: int
    """Sentences sent."""
    accepted: int
    refused: int
    """Sentences that led somebody elsewhere."""
    followed: int


@dataclass(frozen=True)
class CollectionStatus:
    """How far a collection is."""

    settings: CollectionSettings
    segments: dict[str, int]
    """How many are `open`, `sent`, `accepted` and `dropped`."""
    sentences: int
    """Sent, in all tries."""
    readings: int
    """How many of them have been followed."""
    agreeing: int
    """How many of those led to where they were meant."""
    median: float | None
    """Median distance from where they were meant to where they led, metres."""
    people: tuple[PersonCounts, ...]

    def to_json(self) -> dict[str, Any]:
        """As `wordwing collect status --json` writes it."""
        counts = {key: value for key, value in asdict(self).items() if key != "settings"}
        return {"name": self.settings.name, "text": self.settings.text, **counts}

    @property
    def agreement(self) -> str:
        """In words."""
        if not self.readings:
            return f"{self.sentences:,} sentences, none of them followed yet"
        share = f"{self.agreeing:,} of {self.readings:,} ({self.agreeing / self.readings:.1%})"
        return (
            f"{self.sentences:,} sentences; of those followed {share} led to within {HIT:.2f} m of where they were "
            f"meant, median {self.median:.2f} m"
        )


def status_of(collection: Collection) -> CollectionStatus:
    """Count everything; may be asked while people work."""
    states = collection.rows("SELECT state, COUNT(*) AS n FROM standing GROUP BY state")
    tries = list(sentences_of(collection))
    distances = [row["distance"] for row in tries if row["distance"] is not None]
    agreeing = sum(bool(row["accepted"]) for row in tries)
    people = {row["writer"] for row in tries} | {row["follower"] for row in tries} - {None}
    counts = (
        PersonCounts(
            number,
            sum(row["writer"] == number for row in tries),
            sum(row["writer"] == number and row["accepted"] is True for row in tries),
            sum(row["writer"] == number and row["accepted"] is False for row in tries),
            sum(row["follower"] == number for row in tries),
        )
        for number in sorted(people)
    )
    return CollectionStatus(
        collection.settings,
        {"open": 0, "sent": 0, "accepted": 0, "dropped": 0} | {row["state"]: row["n"] for row in states},
        len(tries),
        len(distances),
        agreeing,
        float(np.median(distances)) if distances else None,
        tuple(counts),
    )


def sentences_of(collection: Collection) -> Iterator[dict[str, Any]]:
    """Every sentence that was sent, accepted or not: who wrote and followed it, and the line that was drawn."""
    rows = collection.rows(
        "SELECT layout, paths.number AS path, segments.place, sentences.text, writers.person AS writer,"
        " followers.person AS follower, readings.points AS drawn, distance, agrees FROM sentences"
        " JOIN segments ON segments.number = segment JOIN paths ON paths.number = segments.path AND practice IS NULL"
        " JOIN tasks AS writers ON writers.number = sentences.task LEFT JOIN readings ON sentence = sentences.number"
        " LEFT JOIN tasks AS followers ON followers.number = readings.task"
        " WHERE sent IS NOT NULL ORDER BY segments.number, sentences.number"
    )
    for row in rows:
        yield {
            "layout": row["layout"],
            "path": row["path"],
            "segment": row["place"],
            "sentence": row["text"],
            "writer": row["writer"],
            "follower": row["follower"],
            "drawn": None if row["drawn"] is None else json.loads(row["drawn"]),
            "distance": None if row["distance"] is None else round(row["distance"], 4),
            "accepted": None if row["agrees"] is None else bool(row["agrees"]),
        }


def export(collection: Collection, out: Path, sentences: Path | None = None) -> Dataset:
    """Write what was accepted as a dataset, all of it or nothing.

    A paragraph has neighbouring segments of one path; where one between them was not accepted it is two paragraphs.

    Args:
        collection: May be unfinished.
        out: A new folder.
        sentences: A new file of JSON lines for every sentence that was sent; None for none.
    """
    for place in filter(None, (out, sentences)):
        if place.exists():
            raise WordwingError(f"{place}: this is there already; nothing is overwritten, choose another place")
    found = status_of(collection)
    if not found.segments["accepted"]:
        raise WordwingError(f"{collection.file}: there is nothing to export yet: {found.agreement}")
    settings = collection.settings
    layouts = {
        row["id"]: Layout.from_document(json.loads(row["document"]), f"{collection.file}: layout {row['id']}")
        for row in collection.rows("SELECT id, document FROM layouts")
    }
    left = found.segments["open"] + found.segments["sent"]
    notes = (
        f"{found.agreement}; those that did are in this dataset",
        f"written and followed by {len(found.people)} participants, none of whom followed a path that they knew",
        f"segments without an accepted sentence: {found.segments['dropped']} dropped after {settings.tries} tries, "
        f"{left} unfinished",
    )
    command = f"wordwing collect export {collection.file.name} --out DIR"
    source = Source(settings.name, settings.text, settings.seed, command, notes=notes)
    dataset = write_dataset(out, source, layouts, _paragraphs(collection))
    if sentences is not None:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in sentences_of(collection))
        write_text(sentences, "".join(lines))
    return dataset


def _paragraphs(collection: Collection) -> Iterator[Paragraph]:
    """Runs of accepted segments."""
    rows = collection.rows(
        "SELECT standing.path, standing.place, text, start, points, layout, split FROM standing"
        " JOIN segments ON segments.number = segment JOIN paths ON paths.number = standing.path"
        " JOIN layouts ON layouts.id = layout WHERE state = 'accepted' ORDER BY standing.path, standing.place"
    )
    # In a run of neighbours the place grows as the count does.
    for (path, _gap), run in groupby(enumerate(rows), key=lambda pair: (pair[1]["path"], pair[1]["place"] - pair[0])):
        members = [row for _count, row in run]
        first = members[0]
        name = f"{collection.settings.name}-{path:05}.{first['place'] + 1}"
        yield Paragraph(name, first["split"], first["layout"], tuple(segment_of(row) for row in members))
