"""Everything that comes from a page, checked: types, ranges, sizes, unknown keys; each mistake is one sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from wordwing.data.schema import MAX_TEXT
from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.frames import ARENA_HALF
from wordwing.interface import Domain
from wordwing.language.missing_landmarks import CORPORA
from wordwing.language.tokenizer import tokenize
from wordwing.model.text import MAX_WORDS
from wordwing.studio.live import Start
from wordwing.world.catalogue import Corpus, catalogue
from wordwing.world.layout import PROTRUSION, Layout
from wordwing.world.tasks import START_MARGIN

VERSION = 1
"""Of the protocol."""

MAX_MESSAGE = 65_536
"""Bytes of a message from the page, and of a shared link's content."""

MAX_SEED = 2**32 - 1
MIN_SPEED, MAX_SPEED = 0.25, 8.0
MAX_ID = 2**53
"""Whole numbers that JavaScript has."""

MAX_TEXTS = 20
"""Instructions that may follow one another."""

VEHICLES: tuple[Domain, ...] = ("sim", "lab")


class MalformedError(WordwingError):
    """A message that no page of ours sends: the connection that it came over is closed."""

    def __init__(self, sentence: str, code: int = 1008) -> None:
        super().__init__(sentence)
        self.code = code
        """Of WebSocket, to close with: 1007 for data that cannot be read, 1008 for what the protocol does not have."""


@dataclass(frozen=True)
class Hello:
    """A page is there."""


@dataclass(frozen=True)
class Stage:
    """Draw a random layout with what a text names."""

    text: str
    corpus: Corpus | None
    seed: int


@dataclass(frozen=True)
class Place:
    """Put landmarks and the drone somewhere."""

    start: Start


@dataclass(frozen=True)
class Fly:
    """Follow an instruction."""

    text: str
    policies: tuple[str, ...]
    goes_on: bool
    """From where the drones are, not from the placed start."""


@dataclass(frozen=True)
class Control:
    """One of the buttons."""

    kind: Literal["pause", "resume", "step", "stop", "reset", "keep"]


@dataclass(frozen=True)
class Speed:
    """How fast to fly at most; 1 is real time."""

    value: float


@dataclass(frozen=True)
class Words:
    """Which words of a text does a policy not know?"""

    text: str
    policy: str
    id: int


@dataclass(frozen=True)
class Link:
    """The content of a shared link: all that decides flights."""

    start: Start
    policies: tuple[str, ...]
    texts: tuple[str, ...]


Message = Hello | Stage | Place | Fly | Control | Speed | Words


def read_message(text: str, policies: Collection[str]) -> Message:
    """A message of the page.

    Args:
        text: JSON.
        policies: Names of those who can fly.

    Raises:
        MalformedError: It is no message at all.
        WordwingError: It asks for something that cannot be done.
    """
    document = read_object(text)
    kind = document.get("type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise MalformedError(f"the message's type is {shown(kind)}; it must be one of {', '.join(_READERS)}")
    required, optional, reader = _READERS[kind]
    _check_keys(document, ("type", *required), optional, f'the message "{kind}"')
    return reader(document, policies)


def read_object(text: str) -> dict[str, Any]:
    """A JSON object without NaN and infinities and with each key once."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        raise MalformedError(f"the message is longer than {MAX_MESSAGE} bytes")
    try:
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):  # brackets too deep; an integer too long
        raise MalformedError("the message is not JSON", 1007) from None
    if not isinstance(document, dict):
        raise MalformedError(f"the message is {shown(document)}; it must be an object")
    return document


def read_link(text: str, policies: Collection[str]) -> Link:
    """The content of a shared link; `policies` are the names of those who can fly."""
    document = read_object(text)
    _check_keys(document, ("layout", "start", "seed", "vehicle", "texts"), ("policy", "policies"), "the link")
    if ("policy" in document) == ("policies" in document):
        raise MalformedError('the link needs "policies", a list of one or two names')
    texts = document["texts"]
    if not isinstance(texts, list) or not 1 <= len(texts) <= MAX_TEXTS:
        raise MalformedError(f"the link needs 1 to {MAX_TEXTS} texts")
    given = document.get("policies", [document.get("policy")])
    return Link(_start(document), _policies(given, policies), tuple(_instruction(text) for text in texts))


def start_json(start: Start) -> dict[str, Any]:
    """The part of a message or a link that says where drones start; `_start` reads it."""
    return {
        "layout": json.loads(start.layout.to_json()),
        "start": {"x": start.xy[0], "y": start.xy[1], "yaw": start.yaw},
        "seed": start.seed,
        "vehicle": start.vehicle,
    }


def _hello(document: dict[str, Any], _policies_known: Collection[str]) -> Message:
    version = document["version"]
    if type(version) is not int or version != VERSION:
        raise MalformedError(f"the page speaks version {shown(version)}, the server {VERSION}; load the page again")
    return Hello()


def _stage(document: dict[str, Any], _policies_known: Collection[str]) -> Message:
    corpus = document["corpus"]
    if corpus is not None:
        corpus = cast(Corpus, _one_of(corpus, CORPORA, "corpus"))
    return Stage(_text(document["text"]), corpus, _whole(document["seed"], "seed", MAX_SEED))


def _place(document: dict[str, Any], _policies_known: Collection[str]) -> Message:
    return Place(_start(document))


def _fly(document: dict[str, Any], policies: Collection[str]) -> Message:
    goes_on = document.get("continue", False)
    if type(goes_on) is not bool:
        raise MalformedError(f"continue is {shown(goes_on)}; it must be true or false")
    return Fly(_instruction(document["text"]), _policies(document["policies"], policies), goes_on)


def _speed(document: dict[str, Any], _policies_known: Collection[str]) -> Message:
    return Speed(_number(document["value"], "speed", MIN_SPEED, MAX_SPEED))


def _words(document: dict[str, Any], policies: Collection[str]) -> Message:
    policy = _policies([document["policy"]], policies)[0]
    return Words(_text(document["text"]), policy, _whole(document["id"], "id", MAX_ID))


def _control(document: dict[str, Any], _policies_known: Collection[str]) -> Message:
    return Control(document["type"])


_READERS: dict[str, tuple[Sequence[str], Sequence[str], Callable[[dict[str, Any], Collection[str]], Message]]] = {
    "hello": (("version",), (), _hello),
    "stage": (("text", "corpus", "seed"), (), _stage),
    "place": (("layout", "start", "seed", "vehicle"), (), _place),
    "fly": (("text", "policies"), ("continue",), _fly),
    "speed": (("value",), (), _speed),
    "words": (("text", "policy", "id"), (), _words),
    **dict.fromkeys(("pause", "resume", "step", "stop", "reset", "keep"), ((), (), _control)),
}
"""For each type its keys, those that may be left out, and who reads it."""


def _start(document: dict[str, Any]) -> Start:
    """Layout, start, seed and vehicle; what reaches out of the arena is moved into it."""
    given, place = document["layout"], document["start"]
    if not isinstance(given, dict):
        raise MalformedError(f"the layout is {shown(given)}; it must be an object")
    if not isinstance(place, dict):
        raise MalformedError(f"the start is {shown(place)}; it must be an object with x, y and yaw")
    _check_keys(place, ("x", "y", "yaw"), (), "the start")
    return Start(
        layout=Layout.from_json(json.dumps(_moved_inside(given)), "this layout"),
        xy=(_within(place["x"], "the start's x"), _within(place["y"], "the start's y")),
        yaw=math.remainder(_number(place["yaw"], "the start's yaw", -100.0, 100.0), 2 * math.pi),
        seed=_whole(document["seed"], "seed", MAX_SEED),
        vehicle=cast(Domain, _one_of(document["vehicle"], VEHICLES, "vehicle")),
    )


def _moved_inside(layout: dict[str, Any]) -> dict[str, Any]:
    """A layout file's content with landmarks that reach too far out of the arena moved back into it.

    Whoever drags a landmark beyond the fence means the place beside the fence.
    """
    rows = layout.get("landmarks")
    return {**layout, "landmarks": [_moved(row) for row in rows]} if isinstance(rows, list) else layout


def _moved(row: object) -> object:
    if not isinstance(row, dict) or row.get("name") not in _footprints():
        return row
    most = ARENA_HALF + PROTRUSION - _footprints()[row["name"]] - 1e-9
    numbers = {key: row[key] for key in ("x", "y") if type(row.get(key)) in (int, float)}
    return {**row, **{key: min(max(number, -most), most) for key, number in numbers.items()}}


@cache
def _footprints() -> dict[object, float]:
    return {kind.name: kind.footprint for kind in catalogue()}


def _within(value: object, name: str) -> float:
    most = ARENA_HALF - START_MARGIN
    return min(max(_number(value, name, -1e6, 1e6), -most), most)


def _policies(names: object, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(names, list) or not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
        raise MalformedError("policies must be a list of one or two names")
    for name in names:
        if name not in known:
            hint = did_you_mean(name[:40], list(known)) or f"; there are {', '.join(known)}"
            raise WordwingError(f"no policy is called {shown(name)} here{hint}")
    return tuple(names)


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise MalformedError(f"the text is {shown(text)}; it must be a string")
    if len(text) > MAX_TEXT:
        raise WordwingError(f"the text has {len(text)} characters; {MAX_TEXT} are the most")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise WordwingError("the text holds half a character; type it again")
    return text


def _instruction(text: object) -> str:
    """A text that can be flown, as `wordwing fly` has it."""
    words = " ".join(_text(text).split())
    if not tokenize(words):
        raise WordwingError('there is no word in the instruction; try "go to the barrel"')
    if (count := len(tokenize(words))) > MAX_WORDS:
        raise WordwingError(f"the instruction has {count} words; {MAX_WORDS} are the most that are read")
    return words


def _whole(value: object, name: str, most: int) -> int:
    if type(value) is not int:
        raise MalformedError(f"{name} is {shown(value)}; it must be a whole number")
    if not 0 <= value <= most:
        raise WordwingError(f"{name} is {shown(value)}; it must be from 0 to {most}")
    return value


def _number(value: object, name: str, least: float, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise MalformedError(f"{name} is {shown(value)}; it must be a number")
    if not least <= value <= most:
        raise WordwingError(f"{name} is {shown(value)}; it must be from {least:g} to {most:g}")
    return float(value)


def _one_of(value: object, known: Sequence[str], name: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise MalformedError(f"{name} is {shown(value)}; it must be one of {', '.join(known)}")
    return value


def _check_keys(row: dict[str, Any], required: Collection[str], optional: Collection[str], what: str) -> None:
    for key in row:
        if key not in required and key not in optional:
            raise MalformedError(f"{what} has an unknown key {shown(key)}")
    for key in required:
        if key not in row:
            raise MalformedError(f'{what} has no "{key}"')


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key appears twice")
    return document
