"""A collection as its page sees it: people come, are given paths to write about or sentences to follow, and do that.

Nobody is given a path twice, so that nobody follows their own sentence, or one about a path that they know. A sentence
that its follower takes elsewhere goes back to be written by somebody else, until it has been tried often enough.
"""

import json
import math
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from wordwing.collect.database import COLLECTION, CollectionSettings, Role
from wordwing.collect.guidelines import (
    PracticeFeedback,
    agrees,
    following_feedback,
    remarks,
    writing_feedback,
)
from wordwing.data.schema import Segment
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF
from wordwing.validation import Point, parse
from wordwing.web.database import Database
from wordwing.web.participants import (
    IDLE,
    RefusedRequestError,
    UnavailableError,
    UnknownError,
    new_id,
    new_token,
    plain_id,
    token_hash,
)
from wordwing.world.layout import Layout

MAX_SENTENCE = 500
"""Longest sentence, characters."""

MAX_DRAWN = 400
"""Most points of what a follower draws."""

AT_START = 0.1
"""How far from the drone a drawing may begin, metres."""


class UnsentError(UnavailableError):
    """The sentences cannot be sent; one is missing."""

    state = "unfinished"


@dataclass(frozen=True)
class Part:
    """A segment of a path as a page may show it."""

    place: int
    """From 0."""
    start: tuple[float, float, float]
    """Where the drone is: x, y and yaw, metres and radians."""
    media: str
    """Id of its images and video; empty where it is not to be seen."""
    poses: list[list[float]]
    """Where the drone is in each frame of the video, for a writer."""
    sentence: str
    """What is to be followed, what others have written, or what the writer has kept so far."""
    yours: bool
    """Whether something is to be done with it."""
    remarks: list[str]
    """What the writer may want to change."""


@dataclass(frozen=True)
class Assigned:
    """What somebody is to do, all of which is sent to the page."""

    id: str
    role: Role
    practice: bool
    map: str
    """Id of the map and the legend."""
    parts: list[Part]
    """For a writer all; for a follower those up to the one to follow, which is the last."""
    of: int
    """How many parts are to be written, or are left to follow."""


@dataclass(frozen=True)
class Contribution:
    """How far somebody is, sentences counted."""

    practised: int
    practice: int
    """Tasks to practise on: done, and all."""
    written: int
    accepted: int
    followed: int


@dataclass(frozen=True)
class _Sent:
    """A sentence as a page sends it."""

    sentence: Annotated[str, Field(max_length=MAX_SENTENCE, description=f"at most {MAX_SENTENCE} characters of text")]


@dataclass(frozen=True)
class _Drawn:
    """A drawing as a page sends it."""

    path: Annotated[
        tuple[Point, ...],
        Field(min_length=2, max_length=MAX_DRAWN, description=f"a line of 2 to {MAX_DRAWN} points [x, y] in metres"),
    ]


def parse_sentence(sent: object) -> str:
    """A sentence as it is kept: one line, as it was typed."""
    text = parse(_Sent, sent, "your sentence").sentence
    kept = "".join(" " if unicodedata.category(sign) == "Cc" else sign for sign in text)
    kept = " ".join(unicodedata.normalize("NFC", kept).split())
    if not any(sign.isalpha() for sign in kept):
        raise WordwingError("your sentence has no words; write what you would say to the drone")
    return kept


def parse_drawing(sent: object) -> tuple[tuple[float, float], ...]:
    """A drawing, inside the fences."""
    drawn = parse(_Drawn, sent, "your line").path
    if any(max(abs(x), abs(y)) > ARENA_HALF + 1e-6 for x, y in drawn):
        raise WordwingError("your line leaves the field; draw inside the fences")
    return drawn


class Collection(Database[CollectionSettings]):
    """A collection in its file."""

    format = COLLECTION

    def new_participant(self) -> str:
        """The token of somebody who begins."""
        token = new_token()
        with self.opened(write=True) as connection:
            row = token_hash(token), self.now()
            connection.execute("INSERT INTO people (token, begun, touched) VALUES (?1, ?2, ?2)", row)
        return token

    def token_hashes(self) -> set[bytes]:
        """Hashes of the tokens of all who have begun on the page."""
        return {bytes(row["token"]) for row in self.rows("SELECT token FROM people")}

    def media_of(self, item_id: str, kind: str) -> bytes:
        """An image or a video; its id has 128 random bits, and only those who were given it know it."""
        found = self.rows("SELECT content FROM media WHERE id = ? AND kind = ?", plain_id(item_id), plain_id(kind))
        if not found:
            raise UnknownError("there is no such image or video")
        return bytes(found[0]["content"])

    def contribution(self, token: str) -> Contribution:
        """How far somebody is."""
        with self._person(token) as (connection, person):
            row = connection.execute(
                "SELECT (SELECT COUNT(*) FROM tasks JOIN paths ON paths.number = path WHERE person = ?1"
                " AND practice IS NOT NULL AND state = 'done') AS practised,"
                " (SELECT COUNT(*) FROM paths WHERE practice IS NOT NULL) AS practice,"
                " COUNT(*) AS written, COALESCE(SUM(agrees), 0) AS accepted,"
                " (SELECT COUNT(*) FROM readings JOIN tasks ON tasks.number = task WHERE person = ?1) AS followed"
                " FROM sentences JOIN tasks ON tasks.number = sentences.task"
                " JOIN paths ON paths.number = path AND practice IS NULL"
                " LEFT JOIN readings ON sentence = sentences.number WHERE person = ?1 AND sent IS NOT NULL",
                (person,),
            ).fetchone()
            return Contribution(**dict(row))

    def work(self, token: str) -> Assigned | None:
        """What somebody is to do now, the same until it is done; None if there is nothing for them."""
        with self._person(token, write=True) as (connection, person):
            task = _open_task(connection, person) or self._assign(connection, person)
            return None if task is None else _assigned(connection, task)

    def keep(self, token: str, task_id: str, place: int, text: str) -> list[str]:
        """Keep a draft of a sentence; returns what the writer may want to change."""
        with self._task(token, task_id, "write") as (connection, task):
            segment = _own_segment(connection, task, place)
            connection.execute(
                "INSERT INTO sentences (segment, task, text, kept) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (segment, task) DO UPDATE SET text = excluded.text, kept = excluded.kept",
                (segment["number"], task["number"], text, self.now()),
            )
        return remarks(text)

    def send(self, token: str, task_id: str) -> PracticeFeedback | None:
        """Send all sentences of a task; returns what is said of them after practice.

        Raises:
            UnsentError: If one of them is missing.
        """
        with self._task(token, task_id, "write") as (connection, task):
            kept = {row["segment"]: row["text"] for row in _sentences(connection, task)}
            own = [row for row in _segments(connection, task) if _yours(row, task)]
            if missing := [row["place"] + 1 for row in own if row["number"] not in kept]:
                raise UnsentError(f"the sentence of part {missing[0]} is missing")
            now, number = self.now(), task["number"]
            connection.execute("UPDATE sentences SET sent = ? WHERE task = ?", (now, number))
            _done(connection, task)
            if task["practice"] is None:
                return None
            [row] = own
            return writing_feedback(kept[row["number"]], segment_of(row), _layout(connection, task))

    def follow(
        self, token: str, task_id: str, place: int, drawn: tuple[tuple[float, float], ...]
    ) -> PracticeFeedback | None:
        """Keep where somebody says that a sentence leads; returns what is said of it after practice."""
        with self._task(token, task_id, "follow") as (connection, task):
            row = _own_segment(connection, task, place)
            segment = segment_of(row)
            if math.dist(drawn[0], segment.start_xy) > AT_START:
                raise RefusedRequestError("your line must begin at the drone")
            if task["practice"] is not None:
                _done(connection, task)
                return following_feedback(drawn, segment)
            distance = math.dist(drawn[-1], segment.path[-1])
            points = json.dumps(np.round(drawn, 4).tolist())
            connection.execute(
                "INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?)",
                (row["sentence"], task["number"], points, distance, agrees(drawn, segment), self.now()),
            )
            if not any(_yours(other, task) for other in _segments(connection, task)):
                _done(connection, task)
            return None

    def _assign(self, connection: sqlite3.Connection, person: int) -> sqlite3.Row | None:
        """Give somebody the next task: practice first, then the role that they have had less, or the other."""
        connection.execute(
            "UPDATE tasks SET state = 'left' WHERE state = 'open' AND path IN (SELECT number FROM paths"
            " WHERE practice IS NULL) AND person IN (SELECT number FROM people WHERE touched < ?)",
            (self.now() - IDLE,),
        )
        free = (
            "path NOT IN (SELECT path FROM tasks WHERE person = ?1) AND path NOT IN"
            " (SELECT path FROM tasks WHERE state = 'open')"
        )
        practice = (
            "SELECT number AS path, practice AS role FROM paths WHERE practice IS NOT NULL"
            " AND number NOT IN (SELECT path FROM tasks WHERE person = ?1) ORDER BY number"
        )
        follow = f"SELECT path, 'follow' AS role FROM standing WHERE state = 'sent' AND {free} ORDER BY sentence"
        # What somebody else has tried before is finished first.
        write = f"SELECT path, 'write' AS role FROM standing WHERE state = 'open' AND {free} ORDER BY tries = 0, path"
        [balance] = connection.execute(
            "SELECT COALESCE(SUM(CASE role WHEN 'write' THEN 1 ELSE -1 END), 0) FROM tasks WHERE person = ?", (person,)
        ).fetchone()
        for query in (practice, *((follow, write) if balance > 0 else (write, follow))):
            found = connection.execute(f"{query} LIMIT 1", (person,)).fetchone()
            if found is not None:
                connection.execute(
                    "INSERT INTO tasks (id, person, path, role, state) VALUES (?, ?, ?, ?, 'open')",
                    (new_id(), person, found["path"], found["role"]),
                )
                self._touch(connection, person)
                return _open_task(connection, person)
        return None

    @contextmanager
    def _person(self, token: str, write: bool = False) -> Iterator[tuple[sqlite3.Connection, int]]:
        """A transaction, and the number of the person with a token."""
        with self.opened(write) as connection:
            row = connection.execute("SELECT number FROM people WHERE token = ?", (token_hash(token),)).fetchone()
            if row is None:
                raise UnknownError("this is not the link of somebody in this collection")
            yield connection, row["number"]

    @contextmanager
    def _task(self, token: str, task_id: str, role: Role) -> Iterator[tuple[sqlite3.Connection, sqlite3.Row]]:
        """A transaction that writes, and somebody's open task."""
        with self._person(token, write=True) as (connection, person):
            task = _open_task(connection, person)
            if task is None or task["id"] != plain_id(task_id) or task["role"] != role:
                raise UnknownError("this is not what you are to do")
            yield connection, task
            self._touch(connection, person)

    def _touch(self, connection: sqlite3.Connection, person: int) -> None:
        connection.execute("UPDATE people SET touched = ? WHERE number = ?", (self.now(), person))


def _open_task(connection: sqlite3.Connection, person: int) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT tasks.*, layout, practice, writing, following FROM tasks JOIN paths ON paths.number = path"
        " WHERE person = ? AND state = 'open'",
        (person,),
    ).fetchone()
    return row


def _done(connection: sqlite3.Connection, task: sqlite3.Row) -> None:
    connection.execute("UPDATE tasks SET state = 'done' WHERE number = ?", (task["number"],))


def _segments(connection: sqlite3.Connection, task: sqlite3.Row) -> list[sqlite3.Row]:
    """The segments of a task's path, with their last sentence and how it stands; practice has an example."""
    return connection.execute(
        "SELECT segments.*, sentence, state, COALESCE(text, example, '') AS text FROM segments"
        " LEFT JOIN standing ON segment = segments.number WHERE segments.path = ? ORDER BY segments.place",
        (task["path"],),
    ).fetchall()


def _sentences(connection: sqlite3.Connection, task: sqlite3.Row) -> list[sqlite3.Row]:
    """What a writer has kept."""
    return connection.execute("SELECT * FROM sentences WHERE task = ?", (task["number"],)).fetchall()


def _yours(row: sqlite3.Row, task: sqlite3.Row) -> bool:
    """Whether a segment is there to be written about, or to be followed."""
    return row["state"] is None or row["state"] == {"write": "open", "follow": "sent"}[task["role"]]


def _own_segment(connection: sqlite3.Connection, task: sqlite3.Row, place: int) -> sqlite3.Row:
    """A segment that is to be done; a follower has one at a time, since the next one begins where it ends."""
    own = [row for row in _segments(connection, task) if _yours(row, task)]
    found = next((row for row in own if row["place"] == place), None)
    if found is None or (task["role"] == "follow" and found is not own[0]):
        raise UnknownError("this is not the part that you are to do")
    return found


def _assigned(connection: sqlite3.Connection, task: sqlite3.Row) -> Assigned:
    rows = _segments(connection, task)
    count = sum(_yours(row, task) for row in rows)
    kept = {row["segment"]: row["text"] for row in _sentences(connection, task)}
    writes, practice = task["role"] == "write", task["practice"] is not None
    parts = []
    for row in rows:
        yours = _yours(row, task)
        text = row["text"]
        if writes and yours:
            text = kept.get(row["number"], "")
        elif row["state"] in ("open", "dropped"):
            text = ""  # it led somebody elsewhere
        parts.append(
            Part(
                row["place"],
                json.loads(row["start"]),
                row["writing"] if writes else row["following"] if yours else "",
                json.loads(row["poses"]) if writes else [],
                text,
                yours,
                remarks(text) if writes and yours and text else [],
            )
        )
        if yours and not writes:
            break  # what comes after begins where this one ends
    return Assigned(task["id"], task["role"], practice, task["writing" if writes else "following"], parts, count)


def segment_of(row: sqlite3.Row) -> Segment:
    """A segment as datasets have it, of a row with `text`, `start` and `points`."""
    x, y, yaw = json.loads(row["start"])
    return Segment(row["text"], (x, y), yaw, np.array(json.loads(row["points"])))


def _layout(connection: sqlite3.Connection, task: sqlite3.Row) -> Layout:
    [document] = connection.execute("SELECT document FROM layouts WHERE id = ?", (task["layout"],)).fetchone()
    return Layout.from_document(json.loads(document), "layout of a practice path")
