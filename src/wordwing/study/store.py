"""A study as its page sees it: raters come, are given items, shown them one after another, and rate them.

Nothing that a page is given tells which system flew or what an object is called. Raters are numbers with a secret link;
nothing about them is kept but what they answered and when.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from wordwing.errors import WordwingError, shown
from wordwing.study.database import STUDY, StudySettings
from wordwing.study.questions import Answers, Feedback, Practice, Rating, feedback
from wordwing.validation import parse_json
from wordwing.web.database import Database
from wordwing.web.participants import IDLE, UnavailableError, UnknownError, new_token, plain_id, token_hash


class EnoughRatersError(UnavailableError):
    """Every item has the judgements that it needs, or raters who have been assigned to it."""

    state = "full"


class UnpractisedError(UnavailableError):
    """The rater cannot rate yet; there is something left to practise on."""

    state = "unpractised"


class FinishedError(UnavailableError):
    """The rater has finished; nothing can be changed."""

    state = "finished"


class UnfinishedError(UnavailableError):
    """The rater cannot finish; something has not been rated yet."""

    state = "unfinished"


@dataclass(frozen=True)
class Item:
    """What a page may show of an item, all of which is sent to it; images and video are fetched by the id."""

    id: str
    instruction: str
    practice: bool
    place: int
    """From 1, among the items to practise on or among those to rate."""
    of: int
    """How many of them there are."""
    answers: Answers | None
    """What the rater has answered so far; never of an item to practise on."""


@dataclass(frozen=True)
class Progress:
    """How far a rater is."""

    practised: int
    practice: int
    """Items to practise on: done, and all."""
    rated: int
    items: int
    """Items to rate: done, and all. None at all are left where the rater was away so long that others got them."""
    finished: bool


Media = Literal["video", "still", "legend"]
"""What an item shows: its animation (MP4), the last frame and the numbered objects as the drone sees them (WebP)."""


class Study(Database[StudySettings]):
    """A study in its file."""

    format = STUDY

    def new_participant(self) -> str:
        """A new rater's token, with items to rate.

        Raises:
            EnoughRatersError: If no item needs another rater.
        """
        token = new_token()
        now = self.now()
        with self.opened(write=True) as connection:
            _release(connection, now - IDLE)
            rows = connection.execute(
                "SELECT number, instruction, COUNT(rater) AS assigned FROM items LEFT JOIN assignments ON item = number"
                " WHERE practice IS NULL GROUP BY number HAVING assigned < ?",
                (self.settings.raters,),
            )
            pending = [PendingItem(*row) for row in rows]
            if not pending:
                raise EnoughRatersError("this study needs no more raters; thank you for coming")
            added = connection.execute(
                "INSERT INTO raters (token, begun, touched) VALUES (?, ?, ?)", (token_hash(token), now, now)
            )
            rng = np.random.default_rng([self.settings.seed, added.lastrowid or 0])
            order = separate(choose_items(pending, self.settings.items_per_rater, rng), rng)
            connection.executemany(
                "INSERT INTO assignments VALUES (?, ?, ?)",
                [(added.lastrowid, item.number, place) for place, item in enumerate(order, start=1)],
            )
        return token

    def progress(self, token: str) -> Progress:
        """How far a rater is."""
        with self._rater(token) as (connection, rater):
            return _progress(connection, rater)

    def order(self, token: str) -> list[tuple[str, bool]]:
        """Ids of the rater's items to rate, in order, and whether each has been rated."""
        with self._rater(token) as (connection, rater):
            rows = connection.execute(
                "SELECT items.id, ratings.item IS NOT NULL AS rated FROM assignments"
                " JOIN items ON items.number = assignments.item LEFT JOIN ratings USING (rater, item)"
                " WHERE rater = ? ORDER BY place",
                (rater["number"],),
            )
            return [(row["id"], bool(row["rated"])) for row in rows]

    def next_item(self, token: str) -> Item | None:
        """The first item to practise on, then to rate, that the rater has not done; None when all are."""
        with self._rater(token) as (connection, rater):
            found = connection.execute(
                "SELECT number, 1 AS rated, number AS place FROM items WHERE practice IS NOT NULL"
                " AND number NOT IN (SELECT item FROM practised WHERE rater = ?1) UNION ALL"
                " SELECT item, 2, place FROM assignments WHERE rater = ?1"
                " AND item NOT IN (SELECT item FROM ratings WHERE rater = ?1) ORDER BY rated, place LIMIT 1",
                (rater["number"],),
            ).fetchone()
            return None if found is None else _item(connection, rater, found["number"])

    def item(self, token: str, item_id: str) -> Item:
        """One of the rater's items."""
        with self._rater(token) as (connection, rater):
            return _item(connection, rater, _own_item(connection, rater, item_id)["number"])

    def media_of(self, item_id: str, kind: Media) -> bytes:
        """An image or the video of any item; its id has 128 random bits, and only those who were given it know it."""
        with self.opened() as connection:
            row = connection.execute("SELECT number FROM items WHERE id = ?", (plain_id(item_id),)).fetchone()
            if row is None:
                raise UnknownError("there is no such item")
            return _media(connection, row["number"], kind)

    def practise(self, token: str, item_id: str, answers: Answers) -> tuple[Feedback, ...]:
        """What to tell a rater about answers to an item to practise on; the answers themselves are not kept."""
        with self._rater(token, write=True) as (connection, rater):
            row = _own_item(connection, rater, item_id)
            if row["practice"] is None:
                raise UnknownError("this item is not there to practise on")
            connection.execute("INSERT OR IGNORE INTO practised VALUES (?, ?)", (rater["number"], row["number"]))
            _touch(connection, rater, self.now())
            return feedback(parse_json(Practice, row["practice"], f"{self.file}: practice item"), answers)

    def rate(self, token: str, item_id: str, answers: Answers) -> None:
        """Keep a rater's answers; those given before to the same item are replaced.

        Raises:
            UnpractisedError: If the rater has not done all items to practise on.
            FinishedError: If the rater has finished.
        """
        now = self.now()
        with self._rater(token, write=True) as (connection, rater):
            row = _own_item(connection, rater, item_id)
            if row["practice"] is not None:
                raise UnknownError("this item is only there to practise on")
            if rater["finished"] is not None:
                raise FinishedError("you have finished; ratings cannot be changed any more")
            done = _progress(connection, rater)
            if done.practised < done.practice:
                raise UnpractisedError(f"{done.practice - done.practised} flights are to be practised on first")
            _write(connection, rater["number"], row["number"], answers, now)
            _touch(connection, rater, now)

    def finish(self, token: str) -> None:
        """Say that a rater is done; from now on nothing can be changed.

        Raises:
            UnfinishedError: If there is something left to rate.
        """
        with self._rater(token, write=True) as (connection, rater):
            done = _progress(connection, rater)
            if done.rated < done.items:
                raise UnfinishedError(f"{done.items - done.rated} of {done.items} items have not been rated yet")
            if rater["finished"] is None:
                connection.execute("UPDATE raters SET finished = ? WHERE number = ?", (self.now(), rater["number"]))

    def import_ratings(self, rows: Sequence[tuple[str, bytes, str, Answers]]) -> int:
        """Add judgements from elsewhere, all of them or, if one cannot be, none.

        Args:
            rows: Where each stands, for errors; a hash of the rater; the item's id; the answers.

        Returns:
            How many raters there are that had no ratings before.
        """
        now, new = self.now(), 0
        with self.opened(write=True) as connection:
            items = {
                row["id"]: row["number"]
                for row in connection.execute("SELECT id, number FROM items WHERE practice IS NULL")
            }
            for where, worker, item_id, answers in rows:
                if item_id not in items:
                    raise WordwingError(f"{where}: this study has no item {shown(item_id)}; is it another study's?")
                new += connection.execute(
                    "INSERT OR IGNORE INTO raters (worker, begun, touched, finished) VALUES (?1, ?2, ?2, ?2)",
                    (worker, now),
                ).rowcount
                [rater] = connection.execute("SELECT number FROM raters WHERE worker = ?", (worker,)).fetchone()
                if connection.execute(
                    "SELECT 1 FROM ratings WHERE rater = ? AND item = ?", (rater, items[item_id])
                ).fetchone():
                    raise WordwingError(f"{where}: this worker has rated this item already")
                connection.execute(
                    "INSERT INTO assignments SELECT ?1, ?2, 1 + COUNT(*) FROM assignments WHERE rater = ?1",
                    (rater, items[item_id]),
                )
                _write(connection, rater, items[item_id], answers, now)
        return new

    def ratings(self) -> list[Rating]:
        """All ratings, for the report; this is the one place that tells who flew."""
        rows = self.rows(
            "SELECT rater, instructions.id AS instruction, system, path, goal, efficiency, unclear, goal_ahead,"
            " seconds FROM ratings JOIN items ON items.number = item"
            " JOIN instructions ON instructions.number = instruction ORDER BY instruction, system, rater"
        )
        flags = ("unclear", "goal_ahead")
        return [Rating(**{**dict(row), **{name: bool(row[name]) for name in flags}}) for row in rows]

    def instructions(self) -> dict[str, tuple[str, int]]:
        """Text and number of segments of the instructions that are rated, by id."""
        rows = self.rows(
            "SELECT DISTINCT instructions.id, text, segments FROM instructions"
            " JOIN items ON instruction = instructions.number WHERE practice IS NULL ORDER BY instructions.id"
        )
        return {row["id"]: (row["text"], row["segments"]) for row in rows}

    def token_hashes(self) -> set[bytes]:
        """Hashes of the tokens of all raters who have begun on the page."""
        return {bytes(row["token"]) for row in self.rows("SELECT token FROM raters WHERE token IS NOT NULL")}

    def raters(self) -> tuple[int, int]:
        """How many raters have rated at least one item, and how many have finished, imported ones included."""
        [(begun, finished)] = self.rows(
            "SELECT COUNT(*), COUNT(finished) FROM raters WHERE number IN (SELECT rater FROM ratings)"
        )
        return begun, finished

    def media(self) -> Iterator[tuple[str, str, dict[Media, bytes]]]:
        """Id, instruction, images and video of every item to rate, in no order that tells who flew."""
        with self.opened() as connection:
            rows = connection.execute(
                "SELECT items.id, items.number, text FROM items JOIN instructions ON instruction = instructions.number"
                " WHERE practice IS NULL ORDER BY items.id"
            ).fetchall()
            for row in rows:
                yield (
                    row["id"],
                    row["text"],
                    {kind: _media(connection, row["number"], kind) for kind in get_args(Media)},
                )

    @contextmanager
    def _rater(self, token: str, write: bool = False) -> Iterator[tuple[sqlite3.Connection, sqlite3.Row]]:
        """A transaction, and the row of the rater with a token."""
        with self.opened(write) as connection:
            row = connection.execute("SELECT * FROM raters WHERE token = ?", (token_hash(token),)).fetchone()
            if row is None:
                raise UnknownError("this is not the link of a rater of this study")
            yield connection, row


def _own_item(connection: sqlite3.Connection, rater: sqlite3.Row, item_id: str) -> sqlite3.Row:
    """Number and practice of an item that a rater is given; of all others nobody learns whether they exist."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT number, practice FROM items WHERE id = ? AND (practice IS NOT NULL"
        " OR number IN (SELECT item FROM assignments WHERE rater = ?))",
        (plain_id(item_id), rater["number"]),
    ).fetchone()
    if row is None:
        raise UnknownError("this is not one of your items")
    return row


def _item(connection: sqlite3.Connection, rater: sqlite3.Row, number: int) -> Item:
    row = connection.execute(
        "SELECT items.id, text, practice FROM items JOIN instructions ON instruction = instructions.number"
        " WHERE items.number = ?",
        (number,),
    ).fetchone()
    progress = _progress(connection, rater)
    if row["practice"] is not None:
        [place] = connection.execute(
            "SELECT COUNT(*) FROM items WHERE practice IS NOT NULL AND number <= ?", (number,)
        ).fetchone()
        return Item(row["id"], row["text"], True, place, progress.practice, None)
    # Counted, not read: items before it may have been given to others.
    [place] = connection.execute(
        "SELECT COUNT(*) FROM assignments WHERE rater = ?1 AND place <="
        " (SELECT place FROM assignments WHERE rater = ?1 AND item = ?2)",
        (rater["number"], number),
    ).fetchone()
    given = connection.execute(
        "SELECT path, goal, efficiency, unclear, seconds FROM ratings WHERE rater = ? AND item = ?",
        (rater["number"], number),
    ).fetchone()
    answers = None if given is None else Answers(**{**dict(given), "unclear": bool(given["unclear"])})
    return Item(row["id"], row["text"], False, place, progress.items, answers)


def _progress(connection: sqlite3.Connection, rater: sqlite3.Row) -> Progress:
    counts = connection.execute(
        "SELECT (SELECT COUNT(*) FROM practised WHERE rater = ?1) AS practised,"
        " (SELECT COUNT(*) FROM items WHERE practice IS NOT NULL) AS practice,"
        " (SELECT COUNT(*) FROM ratings WHERE rater = ?1) AS rated,"
        " (SELECT COUNT(*) FROM assignments WHERE rater = ?1) AS items",
        (rater["number"],),
    ).fetchone()
    return Progress(**dict(counts), finished=rater["finished"] is not None)


def _media(connection: sqlite3.Connection, number: int, kind: Media) -> bytes:
    query = {
        "video": "SELECT film FROM films WHERE item = ?",
        "still": "SELECT still FROM films WHERE item = ?",
        "legend": "SELECT legend FROM instructions JOIN items ON instruction = instructions.number"
        " WHERE items.number = ?",
    }[kind]
    [content] = connection.execute(query, (number,)).fetchone()
    return bytes(content)


def _release(connection: sqlite3.Connection, before: int) -> None:
    """Take back what raters who have not answered since a time have not rated."""
    connection.execute(
        "DELETE FROM assignments WHERE rater IN (SELECT number FROM raters WHERE finished IS NULL AND touched < ?)"
        " AND NOT EXISTS (SELECT 1 FROM ratings WHERE ratings.rater = assignments.rater"
        " AND ratings.item = assignments.item)",
        (before,),
    )


def _write(connection: sqlite3.Connection, rater: int, item: int, answers: Answers, now: int) -> None:
    row = (rater, item, *astuple(answers), now)
    connection.execute("INSERT OR REPLACE INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _touch(connection: sqlite3.Connection, rater: sqlite3.Row, now: int) -> None:
    connection.execute("UPDATE raters SET touched = ? WHERE number = ?", (now, rater["number"]))


class PendingItem(NamedTuple):
    """An item that needs more judgements."""

    number: int
    instruction: int
    assigned: int
    """How many raters have been given it."""


def choose_items(pending: Sequence[PendingItem], most: int | None, rng: np.random.Generator) -> list[PendingItem]:
    """What the next rater gets: the items that fewest have, and as many systems of one instruction as can be.

    Since the least assigned come first, no two items are ever more than one rater apart, so that all reach the same
    number in the end.

    Args:
        pending: Items that need more judgements.
        most: How many a rater gets; None for all of them.
        rng: Chooses among equals.
    """
    instructions = sorted({item.instruction for item in pending})
    rank = dict(zip(instructions, rng.permutation(len(instructions)).tolist(), strict=True))
    return sorted(pending, key=lambda item: (item.assigned, rank[item.instruction], item.number))[:most]


def separate(items: Sequence[PendingItem], rng: np.random.Generator) -> list[PendingItem]:
    """The items in random order, two of one instruction next to each other only where that cannot be avoided."""
    left = [items[place] for place in rng.permutation(len(items))]
    counts = Counter(item.instruction for item in left)
    order: list[PendingItem] = []
    while left:
        before = order[-1].instruction if order else None
        commonest, count = counts.most_common(1)[0]
        if 2 * count > len(left) and commonest != before:
            # Any other now, and the rest could not be kept apart.
            place = next(place for place, item in enumerate(left) if item.instruction == commonest)
        else:
            place = next((place for place, item in enumerate(left) if item.instruction != before), 0)
        item = left.pop(place)
        counts[item.instruction] -= 1
        order.append(item)
    return order
