"""The SQLite file that a collection is: its settings and its tables."""

from dataclasses import dataclass
from typing import Literal

from wordwing.validation import SafeName
from wordwing.web.database import DatabaseFormat

RATE = 8
"""Frames of a video a second."""

Role = Literal["write", "follow"]

TABLES = """
CREATE TABLE paths (
    number INTEGER PRIMARY KEY,
    layout TEXT NOT NULL REFERENCES layouts,
    practice TEXT CHECK (practice IN ('write', 'follow')),
    writing TEXT NOT NULL UNIQUE,
    following TEXT NOT NULL UNIQUE
);

CREATE TABLE layouts (
    id TEXT PRIMARY KEY,
    split TEXT NOT NULL,
    document TEXT NOT NULL
);

CREATE TABLE segments (
    number INTEGER PRIMARY KEY,
    path INTEGER NOT NULL REFERENCES paths,
    place INTEGER NOT NULL,
    start TEXT NOT NULL,
    points TEXT NOT NULL,
    poses TEXT NOT NULL,
    example TEXT,
    writing TEXT NOT NULL UNIQUE,
    following TEXT NOT NULL UNIQUE,
    UNIQUE (path, place)
);

CREATE TABLE media (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (id, kind)
);

CREATE TABLE people (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    token BLOB NOT NULL UNIQUE,
    begun INTEGER NOT NULL,
    touched INTEGER NOT NULL
);

CREATE TABLE tasks (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL REFERENCES people,
    path INTEGER NOT NULL REFERENCES paths,
    role TEXT NOT NULL CHECK (role IN ('write', 'follow')),
    state TEXT NOT NULL CHECK (state IN ('open', 'done', 'left')),
    UNIQUE (person, path)
);
CREATE INDEX given ON tasks (path);

CREATE TABLE sentences (
    number INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL REFERENCES segments,
    task INTEGER NOT NULL REFERENCES tasks,
    text TEXT NOT NULL,
    kept INTEGER NOT NULL,
    sent INTEGER,
    UNIQUE (segment, task)
);

CREATE TABLE readings (
    sentence INTEGER PRIMARY KEY REFERENCES sentences,
    task INTEGER NOT NULL REFERENCES tasks,
    points TEXT NOT NULL,
    distance REAL NOT NULL CHECK (distance >= 0),
    agrees INTEGER NOT NULL CHECK (agrees IN (0, 1)),
    time INTEGER NOT NULL
);

CREATE VIEW latest AS SELECT MAX(number) AS number, segment, COUNT(*) AS tries
    FROM sentences WHERE sent IS NOT NULL GROUP BY segment;

CREATE VIEW standing AS
    SELECT segments.number AS segment, segments.path, segments.place, latest.number AS sentence, text,
    COALESCE(tries, 0) AS tries,
    CASE WHEN latest.number IS NULL THEN 'open' WHEN agrees IS NULL THEN 'sent' WHEN agrees THEN 'accepted'
    WHEN latest.tries >= (SELECT CAST(value AS INTEGER) FROM settings WHERE key = 'tries') THEN 'dropped'
    ELSE 'open' END AS state
    FROM segments JOIN paths ON paths.number = segments.path AND practice IS NULL
    LEFT JOIN latest ON latest.segment = segments.number
    LEFT JOIN sentences ON sentences.number = latest.number
    LEFT JOIN readings ON readings.sentence = latest.number;
"""
"""`start` is x, y and yaw, `points` are those of the path, or of what somebody drew, and `poses` x, y and yaw in each
frame of a segment's video: metres and radians in the world frame. Times are seconds since 1970. `writing` and
`following` are ids of what a writer and a follower are shown. A sentence is a draft until it is sent. Of a person's
token only its hash is kept: a copy of the file does not let anybody write in their name."""


@dataclass(frozen=True)
class CollectionSettings:
    """What a collection was made with; each is a row of the table `settings`, as JSON."""

    name: SafeName
    """Of the dataset that it becomes."""
    text: str
    """Who writes: a kind of `language.authors`."""
    tries: int
    """How many people write a sentence for a segment before it is dropped."""
    seed: int
    """Chooses layouts, paths and their order."""
    version: str
    """The version of wordwing that made it."""
    salt: str
    """Hex; makes the invitation."""


COLLECTION = DatabaseFormat(
    "collection", "collect", application=0x7777434F, schema=1, tables=TABLES, settings=CollectionSettings
)
"""The application is "wwCO"."""
