"""Everything that comes from a page, checked: keys and types by pydantic, values here; each mistake is one sentence."""

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, Field, with_config

from wordwing.data.schema import MAX_TEXT
from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.frames import ARENA_HALF
from wordwing.interface import Domain
from wordwing.language.tokenizer import tokenize
from wordwing.model.text import MAX_WORDS
from wordwing.studio.live import Start
from wordwing.validation import parse, unique_keys
from wordwing.world.catalogue import Corpus, catalogue
from wordwing.world.layout import PROTRUSION, Layout
from wordwing.world.tasks import START_MARGIN

VERSION = 1
"""Of the protocol."""

MAX_MESSAGE = 65_536
"""Bytes of a message from the page, and of a shared link's content."""

MAX_SEED = 2**32 - 1
MAX_ID = 2**53
"""Whole numbers that JavaScript has."""

MIN_SPEED, MAX_SPEED = 0.25, 8.0

MAX_TEXTS = 20
"""Instructions that may follow one another."""

Policies = Annotated[tuple[str, ...], Field(min_length=1, max_length=2, description="a list of one or two names")]

exact = with_config(ConfigDict(extra="forbid"))
"""Refuses unknown keys."""

T = TypeVar("T")


class MalformedError(WordwingError):
    """A message that no page of ours sends: the connection that it came over is closed."""

    def __init__(self, sentence: str, code: int = 1008) -> None:
        super().__init__(sentence)
        self.code = code
        """Of WebSocket, to close with: 1007 for data that cannot be read, 1008 for what the protocol does not have."""


@exact
@dataclass(frozen=True)
class Hello:
    """A page is there."""

    version: int
    type: Literal["hello"] = "hello"


@exact
@dataclass(frozen=True)
class RandomLayout:
    """Draw a random layout with what a text names."""

    text: str
    corpus: Corpus | None
    seed: int
    type: Literal["stage"] = "stage"


@exact
@dataclass(frozen=True)
class StartRow:
    """Where the drone starts, metres and radians, world frame."""

    x: float
    y: float
    yaw: float


@exact
@dataclass(frozen=True)
class _World:
    """Where landmarks and the drone are; what reaches out of the arena is moved into it."""

    layout: dict[str, Any]
    start: StartRow
    seed: int
    vehicle: Domain

    def checked(self) -> Start:
        """The start, with a layout that is one."""
        most = ARENA_HALF - START_MARGIN
        for name, value, limit in (("x", self.start.x, 1e6), ("y", self.start.y, 1e6), ("yaw", self.start.yaw, 100.0)):
            _check_range(f"the start's {name}", value, -limit, limit)
        _check_range("seed", self.seed, 0, MAX_SEED)
        x, y = (min(max(value, -most), most) for value in (self.start.x, self.start.y))
        layout = Layout.from_document(_moved_inside(self.layout), "this layout")
        return Start(layout, (x, y), math.remainder(self.start.yaw, 2 * math.pi), self.seed, self.vehicle)


@exact
@dataclass(frozen=True)
class PlaceLayout(_World):
    """Put landmarks and the drone somewhere."""

    type: Literal["place"] = "place"


@exact
@dataclass(frozen=True)
class Fly:
    """Follow an instruction."""

    text: str
    policies: Policies
    continues: Annotated[bool, Field(alias="continue")] = False
    """From where the drones are, not from the placed start."""
    type: Literal["fly"] = "fly"


@exact
@dataclass(frozen=True)
class Button:
    """One of the buttons."""

    type: Literal["pause", "resume", "step", "stop", "reset", "keep"]


@exact
@dataclass(frozen=True)
class Speed:
    """How fast to fly at most; 1 is real time."""

    value: float
    type: Literal["speed"] = "speed"


@exact
@dataclass(frozen=True)
class UnknownWords:
    """Which words of a text does a policy not know?"""

    text: str
    policy: str
    id: int
    type: Literal["words"] = "words"


@exact
@dataclass(frozen=True)
class _LinkRow(_World):
    texts: Annotated[list[str], Field(min_length=1, max_length=MAX_TEXTS)]
    policies: Policies | None = None
    policy: str | None = None
    """Of older links, which had one."""


@dataclass(frozen=True)
class SharedLink:
    """The content of a shared link: all that decides flights."""

    start: Start
    policies: tuple[str, ...]
    texts: tuple[str, ...]


Message = Hello | RandomLayout | Start | Fly | Button | Speed | UnknownWords
"""What a page may ask for; a `PlaceLayout` comes as the `Start` that it says."""

_CLASSES: dict[str, Any] = {
    kind: message
    for message in (Hello, RandomLayout, PlaceLayout, Fly, Speed, UnknownWords, Button)
    for kind in get_args(get_type_hints(message)["type"])
}
"""Messages by their type."""


def read_message(text: str, policies: Collection[str]) -> Message:
    """A message of the page.

    Args:
        text: JSON.
        policies: Names of those who can fly.

    Raises:
        MalformedError: It is no message at all.
        WordwingError: It asks for something that cannot be done.
    """
    document = _read_object(text, "the message")
    kind = document.get("type")
    if not isinstance(kind, str) or kind not in _CLASSES:
        raise MalformedError(f"the message's type is {shown(kind)}; it must be one of {', '.join(_CLASSES)}")
    message = _shaped(_CLASSES[kind], document, f'the message "{kind}"')
    match message:
        case Hello(version) if version != VERSION:
            raise MalformedError(f"the page speaks version {version}, the server {VERSION}; load the page again")
        case RandomLayout():
            _check_text(message.text)
            _check_range("seed", message.seed, 0, MAX_SEED)
        case PlaceLayout():
            return message.checked()
        case Fly():
            _check_policies(message.policies, policies)
            return replace(message, text=_instruction(message.text))
        case Speed(value):
            _check_range("speed", value, MIN_SPEED, MAX_SPEED)
        case UnknownWords():
            _check_policies([message.policy], policies)
            _check_text(message.text)
            _check_range("id", message.id, 0, MAX_ID)
    return message


def read_link(text: str, policies: Collection[str]) -> SharedLink:
    """The content of a shared link; `policies` are the names of those who can fly."""
    row = _shaped(_LinkRow, _read_object(text, "the link"), "the link")
    names = tuple(name for name in (*(row.policies or ()), row.policy) if name is not None)
    if (row.policy is None) == (row.policies is None):
        raise MalformedError('the link needs "policies", a list of one or two names')
    _check_policies(names, policies)
    return SharedLink(row.checked(), names, tuple(map(_instruction, row.texts)))


def start_json(start: Start) -> dict[str, Any]:
    """The part of a message or a link that says where drones start; `PlaceLayout` reads it."""
    return {
        "layout": start.layout.to_document(),
        "start": {"x": start.xy[0], "y": start.xy[1], "yaw": start.yaw},
        "seed": start.seed,
        "vehicle": start.vehicle,
    }


def _read_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object without NaN and infinities and with each key once."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        raise MalformedError(f"{what} is longer than {MAX_MESSAGE} bytes")
    try:
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=unique_keys)
        spelled = json.dumps(document, ensure_ascii=False)
    except (ValueError, RecursionError, WordwingError):  # an integer too long; brackets too deep; a key twice
        raise MalformedError(f"{what} is not JSON", 1007) from None
    if any("\ud800" <= letter <= "\udfff" for letter in spelled):
        raise WordwingError("the text holds half a character; type it again")
    if not isinstance(document, dict):
        raise MalformedError(f"{what} is {shown(document)}; it must be an object")
    return document


def _shaped(kind: type[T], document: dict[str, Any], what: str) -> T:
    """A document with the keys and types of a class."""
    try:
        return parse(kind, document, what)
    except WordwingError as error:
        raise MalformedError(str(error)) from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _moved_inside(layout: dict[str, Any]) -> dict[str, Any]:
    """A layout file's content with landmarks that reach too far out of the arena moved back into it.

    A landmark that is dragged beyond the fence is meant to stand beside the fence.
    """
    rows = layout.get("landmarks")
    if not isinstance(rows, list):
        return layout
    most = {kind.name: ARENA_HALF + PROTRUSION - kind.footprint - 1e-9 for kind in catalogue()}

    def moved(row: Any) -> Any:
        limit = most.get(str(row.get("name"))) if isinstance(row, dict) else None
        if limit is None:
            return row
        numbers = {key: row[key] for key in ("x", "y") if type(row.get(key)) in (int, float)}
        return {**row, **{key: min(max(number, -limit), limit) for key, number in numbers.items()}}

    return {**layout, "landmarks": [moved(row) for row in rows]}


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise WordwingError(f"{name} is {shown(value)}; it must be from {least:.10g} to {most:.10g}")


def _check_policies(names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            hint = did_you_mean(name[:40], list(known)) or f"; there are {', '.join(known)}"
            raise WordwingError(f"no policy is called {shown(name)} here{hint}")


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise WordwingError(f"the text has {len(text)} characters; {MAX_TEXT} are the most")


def _instruction(text: str) -> str:
    """A text that can be flown, as `wordwing fly` has it."""
    _check_text(text)
    words = " ".join(text.split())
    if not tokenize(words):
        raise WordwingError('there is no word in the instruction; try "go to the barrel"')
    if (count := len(tokenize(words))) > MAX_WORDS:
        raise WordwingError(f"the instruction has {count} words; {MAX_WORDS} are the most that are read")
    return words
