"""The SQLite file that a study is: its settings and its tables."""

from dataclasses import dataclass
from typing import Literal

from wordwing.web.database import DatabaseFormat

TABLES = """
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


STUDY = DatabaseFormat("study", "study", application=0x77775354, schema=1, tables=TABLES, settings=StudySettings)
"""The application is "wwST"."""
