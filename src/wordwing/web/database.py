"""The SQLite file in which a page keeps what people give it: how it is made, opened and read.

A connection is opened for each piece of work and closed after it, so any number of threads and processes may share a
file, and when nobody uses it it is one file that can be copied. What was committed survives a kill.
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from wordwing.errors import WordwingError
from wordwing.validation import parse_json

WRITE_TIMEOUT = 30.0
"""How long to wait for other writers, seconds."""

MAX_VALUE = 64_000_000
"""Largest video or text that is read, bytes."""

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class DatabaseFormat(Generic[Settings]):
    """A kind of file."""

    what: str
    """What people call it, such as "study"."""
    verb: str
    """The command by which it is made and served."""
    application: int
    """Tells it from other SQLite files: four letters."""
    schema: int
    """Version of the tables; others are refused."""
    tables: str
    """What makes them."""
    settings: type[Settings]
    """What a file was made with: a dataclass, each field a row of the table `settings`, as JSON."""

    @property
    def command(self) -> str:
        """What makes one."""
        return f"wordwing {self.verb} create"


class Database(Generic[Settings]):
    """A file of a format; may be used by many threads and processes at once."""

    format: DatabaseFormat[Settings]

    def __init__(self, file: str | Path, clock: Callable[[], float] = time.time) -> None:
        """Open a file.

        Args:
            file: Made with `new_database`.
            clock: Seconds since 1970.
        """
        self.file = Path(file)
        self._clock = clock
        [[document]] = self.rows("SELECT json_group_object(key, json(value)) FROM settings")
        self.settings = parse_json(self.format.settings, document, f"{self.file}: the {self.format.what}'s settings")

    @contextmanager
    def opened(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction, which is kept if the block ends well and forgotten if it does not.

        Args:
            write: Whether the block writes; those that do come one after another.
        """
        file, format = self.file, self.format
        if not file.is_file():
            what = "this is a folder" if file.is_dir() else "there is no such file"
            raise WordwingError(f"{file}: {what}; {format.command} makes a {format.what}")
        connection = None
        try:
            connection = sqlite3.connect(_address(file), uri=True, timeout=WRITE_TIMEOUT, isolation_level=None)
            connection.row_factory = sqlite3.Row
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON;")
            _check(format, connection, file)
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

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """All that a query finds."""
        with self.opened() as connection:
            return connection.execute(query, values).fetchall()

    def now(self) -> int:
        """Seconds since 1970."""
        return int(self._clock())


@contextmanager
def new_database(
    format: DatabaseFormat[Settings], settings: Settings, file: Path, named: Path
) -> Iterator[sqlite3.Connection]:
    """Put tables and settings into an empty file and yield a connection to fill them.

    A block that fails leaves a file that is of no use.

    Args:
        format: Its kind.
        settings: What it is made with.
        file: A temporary file, to be thrown away if the block fails.
        named: What errors call it.
    """
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA foreign_keys = ON; PRAGMA application_id = {format.application};"
            f"PRAGMA user_version = {format.schema};"
            f"CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL); {format.tables}"
        )
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO settings VALUES (?, ?)",
            [(key, json.dumps(value)) for key, value in asdict(settings).items()],  # type: ignore[call-overload]
        )
        yield connection
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        raise WordwingError(f"{named}: cannot be written ({error})") from None
    finally:
        connection.close()


def check_new(out: Path) -> None:
    """Raise a `WordwingError` if something is there; it may hold what nobody can give again."""
    if out.exists():
        raise WordwingError(f"{out}: this is there already, perhaps with people's work in it; choose another --out")


def _address(file: Path) -> str:
    """What SQLite opens; never a file that is not there."""
    place = file.resolve()
    ours = os.access(place, os.W_OK) and os.access(place.parent, os.W_OK)
    # Where nothing may be written SQLite cannot even read what is shared, unless it knows that nobody writes.
    alone = not ours and not place.with_name(f"{place.name}-wal").exists()
    return place.as_uri() + ("?mode=ro&immutable=1" if alone else "?mode=rw")


def _check(format: DatabaseFormat[Any], connection: sqlite3.Connection, file: Path) -> None:
    try:
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if "not a database" not in str(error):
            raise
        application = version = 0
    if application != format.application:
        raise WordwingError(f"{file}: this is not a {format.what}; {format.command} makes one")
    if version != format.schema:
        raise WordwingError(f"{file}: the {format.what}'s schema is {version}; this wordwing reads {format.schema}")
