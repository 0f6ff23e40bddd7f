"""The SQLite file that a study is: its tables, and how it is opened.

A connection is opened for each piece of work and closed after it, so any number of threads and processes may share a
study, and when nobody uses it it is one file that can be copied.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wordwing.errors import WordwingError

APPLICATION = 0x77775354
"""Tells studies from other SQLite files: "wwST"."""

SCHEMA = 1
"""Version of the tables; others are refused."""

WRITE_TIMEOUT = 30.0
"""How long to wait for other writers, seconds."""

MAX_VALUE = 64_000_000
"""Largest video or text that is read, bytes."""

TABLES = f"""
PRAGMA journal_mode = OFF;
PRAGMA foreign_keys = ON;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};

CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE instructions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    segments INTEGER NOT NULL,
    text TEXT NOT NULL,
    goal_ahead INTEGER NOT NULL CHECK (goal_ahead IN (0, 1)),
    goal_in_sight INTEGER NOT NULL CHECK (goal_in_sight IN (0, 1)),
    layout TEXT NOT NULL,
    start TEXT NOT NULL,
    legend BLOB NOT NULL
);

CREATE TABLE items (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    instruction INTEGER NOT NULL REFERENCES instructions,
    system TEXT NOT NULL,
    practice TEXT,
    poses TEXT NOT NULL,
    UNIQUE (instruction, system)
);

CREATE TABLE films (
    item INTEGER PRIMARY KEY REFERENCES items,
    film BLOB NOT NULL,
    still BLOB NOT NULL
);

CREATE TABLE raters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    token BLOB UNIQUE,
    worker BLOB UNIQUE,
    begun INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    finished INTEGER,
    CHECK ((token IS NULL) <> (worker IS NULL))
);

CREATE TABLE practised (
    rater INTEGER NOT NULL REFERENCES raters,
    item INTEGER NOT NULL REFERENCES items,
    PRIMARY KEY (rater, item)
) WITHOUT ROWID;

CREATE TABLE assignments (
    rater INTEGER NOT NULL REFERENCES raters,
    item INTEGER NOT NULL REFERENCES items,
    place INTEGER NOT NULL,
    PRIMARY KEY (rater, item),
    UNIQUE (rater, place)
) WITHOUT ROWID;
CREATE INDEX assigned ON assignments (item);

CREATE TABLE ratings (
    rater INTEGER NOT NULL,
    item INTEGER NOT NULL,
    path INTEGER NOT NULL CHECK (path IN (1, 2, 3, 4, 5)),
    goal INTEGER NOT NULL CHECK (goal IN (1, 2, 3, 4, 5)),
    efficiency INTEGER NOT NULL CHECK (efficiency IN (1, 2, 3, 4, 5)),
    unclear INTEGER NOT NULL CHECK (unclear IN (0, 1)),
    seconds REAL NOT NULL CHECK (seconds >= 0),
    time INTEGER NOT NULL,
    PRIMARY KEY (rater, item),
    FOREIGN KEY (rater, item) REFERENCES assignments
) WITHOUT ROWID;
"""
"""`poses` is a list of [x, y, z, roll, pitch, yaw], `start` x, y and yaw, metres and radians in the world frame; what
is not null in `practice` is what is known of a flight to practise on. Times are seconds since 1970. Of a rater's token
only its hash is kept: a copy of the file does not let anybody rate in their name."""


@dataclass(frozen=True)
class StudySettings:
    """What a study was made with; each is a row of the table `settings`, as JSON."""

    systems: tuple[str, ...]
    corpus: str
    text: str
    """Who wrote the instructions: a kind of `language.authors`."""
    split: str
    domain: Literal["sim", "lab"]
    raters: int
    """Judgements that each item needs."""
    items_per_rater: int | None
    """How many items a rater is given; None for all."""
    seed: int
    """Chooses practice items, instructions and orders."""
    version: str
    """The version of wordwing that made it."""
    salt: str
    """Hex; goes into the hashes of workers' ids."""


@contextmanager
def new_database(file: Path, named: Path) -> Iterator[sqlite3.Connection]:
    """Put the tables into an empty file and yield a connection to fill them.

    A block that fails leaves a file that is of no use.

    Args:
        file: A temporary file, to be thrown away if the block fails.
        named: What errors call it.
    """
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.executescript(TABLES)
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        raise WordwingError(f"{named}: cannot be written ({error})") from None
    finally:
        connection.close()


@contextmanager
def opened(file: Path, write: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection inside a transaction, which is kept if the block ends well and forgotten if it does not.

    Args:
        file: A study.
        write: Whether the block writes; those that do come one after another.
    """
    if not file.is_file():
        what = "this is a folder" if file.is_dir() else "there is no such file"
        raise WordwingError(f"{file}: {what}; wordwing study create makes a study")
    connection = None
    try:
        connection = sqlite3.connect(_address(file), uri=True, timeout=WRITE_TIMEOUT, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON;")
        _check(connection, file)
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        yield connection
        connection.execute("COMMIT")
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        raise WordwingError(f"{file}: cannot be used ({error})") from None
    finally:
        if connection is not None:
            connection.close()  # what was not committed is rolled back


def _address(file: Path) -> str:
    """What SQLite opens; never a file that is not there."""
    place = file.resolve()
    ours = os.access(place, os.W_OK) and os.access(place.parent, os.W_OK)
    # Where nothing may be written SQLite cannot even read what is shared, unless it knows that nobody writes.
    alone = not ours and not place.with_name(f"{place.name}-wal").exists()
    return place.as_uri() + ("?mode=ro&immutable=1" if alone else "?mode=rw")


def _check(connection: sqlite3.Connection, file: Path) -> None:
    try:
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        application = version = 0
    if application != APPLICATION:
        raise WordwingError(f"{file}: this is not a study; wordwing study create makes one")
    if version != SCHEMA:
        raise WordwingError(f"{file}: the study's schema is {version}; this wordwing reads {SCHEMA}")
