"""Checks what comes from outside (files, the web, wire JSON) with pydantic and says what is wrong in one sentence.

How to use it:

1. Describe what a document must be as a frozen dataclass, a pydantic model or any annotated type:

       @dataclass(frozen=True)
       class SegmentRow:
           instruction: Annotated[str, Field(max_length=2000)]
           start: Annotated[tuple[Number, Number, Number], Field(description="[x, y, yaw] in metres and radians")]
           path: Annotated[Floats, Array(2, least=1, most=10_000)]
           meaning: list[ClauseRow] | None = None

2. Read it: `parse_json(SegmentRow, line, f"{file}: line {number}")` from a text or bytes, or
   `parse(SegmentRow, value, where)` from what a JSON reader has returned already.

3. A mistake is a `WordwingError` that says where it is, what was found and what it must be:

       data/x.jsonl: line 3: segment 2: "start" is "home"; it must be [x, y, yaw] in metres and radians

What it must be is generated from the type ("a whole number from 1 to 50"), unless a `Field(description=…)` says it; the
description of a list also stands for mistakes inside it. An item of a list is called by the list's name, counted from 1
("landmark 3" of "landmarks"); `numbered("segment", first=0)` as an annotation changes both.

Types are strict: "1" and true are no numbers, 1.0 is no whole number; a whole number may stand for a float and a list
for a tuple. Unknown keys are ignored; a class with `__pydantic_config__ = ConfigDict(extra="forbid")` refuses them and
suggests the name that was meant. For what a type cannot say (one field depends on another) raise a `ValueError` in a
validator or in `__post_init__`; its message continues the sentence: "leaves the arena; x and y must be …".
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, TypeVar, overload

import numpy as np
from pydantic import Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.files import SAFE_NAME, SAFE_NAME_RULE

MAX_NUMBER = 1e6
"""Largest coordinate, metres, and angle, radians; beyond it is only nonsense."""

Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]
"""A finite number that may be a coordinate or an angle."""

Point = Annotated[tuple[Number, Number], Field(description="a point [x, y] in metres")]

Pose2 = Annotated[tuple[Number, Number, Number], Field(description="[x, y, yaw] in metres and radians")]

SafeName = Annotated[str, Field(pattern=f"^(?:{SAFE_NAME})$", description=SAFE_NAME_RULE)]
"""A name that a path may be made of; see `files.safe_name`."""

Version1 = Annotated[int, Field(ge=1, le=1, description="1, the version that this wordwing reads")]
"""The "schema" of a document whose format has had one version so far; other versions are refused."""

Label = Annotated[str, Field(min_length=1, description="a name")]
"""A name that is only shown or compared, never made a path of."""

T = TypeVar("T")


@dataclass(frozen=True)
class Array:
    """Annotates a numpy array [N, columns] float64 that a document writes as a list of rows of finite numbers."""

    columns: int
    least: int = 0
    """Fewest rows."""
    most: int | None = None
    """Most rows."""
    description: str = ""
    """What it must be; by default made from the sizes."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Numbers in rows, then an array of them."""
        number = core_schema.float_schema(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False, strict=True)
        row = core_schema.tuple_schema([number] * self.columns)
        rows = core_schema.list_schema(row, min_length=self.least, max_length=self.most, fail_fast=True)
        what = "points [x, y] in metres" if self.columns == 2 else f"rows of {self.columns} finite numbers"
        count = f"{self.least} to {self.most:,} " if self.most else ""
        wanted = self.description or f"a list of {count}{what}{', at least one' * (self.least == 1 and not self.most)}"
        return core_schema.no_info_after_validator_function(
            lambda values: np.array(values, float).reshape(-1, self.columns),
            rows,
            metadata={"pydantic_js_updates": {"description": wanted}},
        )


def numbered(name: str, first: int = 1) -> FieldInfo:
    """Annotates a list whose items sentences call `name` and count from `first`."""
    field: FieldInfo = Field(json_schema_extra={"item": name, "first": first})
    return field


@overload
def parse(kind: type[T] | TypeAdapter[T], value: Any, where: str) -> T: ...
@overload
def parse(kind: Any, value: Any, where: str) -> Any: ...
def parse(kind: Any, value: Any, where: str) -> Any:
    """A document that a JSON reader has returned, as `kind`; see the module.

    Args:
        kind: A dataclass, a pydantic model, an annotated type or an adapter of one.
        value: Objects, lists, texts, numbers.
        where: Begins the sentence about a mistake: the file, and the place in it.
    """
    try:
        # One way to read: only from JSON is a list a tuple in strict mode. Half a surrogate pair, which Python's reader
        # lets through, becomes a question mark.
        text = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    except (RecursionError, ValueError) as error:
        raise WordwingError(f"{where}: not valid JSON ({error})") from None
    return parse_json(kind, text, where)


@overload
def parse_json(kind: type[T] | TypeAdapter[T], text: str | bytes, where: str) -> T: ...
@overload
def parse_json(kind: Any, text: str | bytes, where: str) -> Any: ...
def parse_json(kind: Any, text: str | bytes, where: str) -> Any:
    """A JSON text as `kind`; see `parse`."""
    adapter: TypeAdapter[Any] = kind if isinstance(kind, TypeAdapter) else _adapter(kind)
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise WordwingError(_sentence(adapter, error, where)) from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, for `json.loads` as `object_pairs_hook`; one that has a key twice is refused."""
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise WordwingError(f"{shown(key)} appears twice in one object; keep one")
        document[key] = value
    return document


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _sentence(adapter: TypeAdapter[Any], invalid: ValidationError, where: str) -> str:
    """What is wrong first."""
    errors = invalid.errors(include_url=False)
    error = next((entry for entry in errors if entry["loc"] == ("schema",)), errors[0])  # another format explains all
    kind, found = error["type"], error["input"]
    if kind == "json_invalid":
        reason = str(error["ctx"]["error"])
        return f"{where}: not valid JSON ({reason}){'; was it cut off?' if reason.startswith('EOF') else ''}"
    try:
        schema = adapter.json_schema()
    except PydanticInvalidForJsonSchema:
        schema = {}
    parent, key, place, inside, node = _locate(schema, error["loc"])
    before = ": ".join([where, *place])
    if kind in ("value_error", "assertion_error"):
        reason = str(error["ctx"]["error"])
        return f"{before} {reason}" if place or reason.startswith("is ") else f"{before}: {reason}"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = list(parent.get("properties", {}))
        hint = did_you_mean(key[:40], known) or f"; the keys are {', '.join(known)}"
        return f"{': '.join([where, *place[:-1]])}{' ' if place[:-1] else ': it '}has an unknown key {shown(key)}{hint}"
    wanted = _wanted(node) or error["msg"].removeprefix("Input should be ")
    if kind in ("missing", "missing_argument") and isinstance(error["loc"][-1], str):
        return f"{before} is missing; it must be {wanted}"
    if options := _options(node):
        hint = did_you_mean(found[:40], options) if isinstance(found, str) else ""
        return f"{before} is {shown(found)}{hint or f'; it must be {wanted}'}"
    what = (
        f"a list of {len(found)}"
        if isinstance(found, list) and (inside or node.get("type") == "array")
        else shown(found)
    )
    inside -= kind == "missing"  # a list that is too short is wrong itself
    has = f"has {what} in it" if inside else f"is {what}"
    return f"{before} {has}; it must be {wanted}" if place else f"{before}: this {has}; it must be {wanted}"


def _locate(schema: dict[str, Any], loc: tuple[int | str, ...]) -> tuple[dict[str, Any], str, list[str], int, Any]:
    """Where an error is: the object around it, its key, the place in words, how much deeper it is, what it must be."""
    parent: dict[str, Any] = {}
    node, key, place, inside = schema, "", list[str](), 0
    declared = False
    deep = schema  # where the error itself is, if a list around it is described
    for step in loc:
        branches = list(_branches(deep, schema))
        if isinstance(step, int):
            items = next((branch for branch in branches if branch.get("type") == "array"), {})
            deep = (
                items.get("prefixItems", [{}] * (step + 1))[step] if "prefixItems" in items else items.get("items", {})
            )
            is_object = any("properties" in branch for branch in _branches(deep, schema))
            if (node.get("description") or items.get("description")) and not deep.get("description") and not is_object:
                inside += 1
                continue
            name = items.get("item") or node.get("item") or _singular(key)
            label = f"{name} {step + items.get('first', node.get('first', 1))}"
            place = [*(place[:-1] if declared and place[-1] == f'"{key}"' else place), label]
        else:
            objects = [branch for branch in branches if branch.get("type") == "object"]
            known = next((branch for branch in objects if step in branch.get("properties", {})), None)
            if known is None and step == "[key]":
                deep = parent.get("propertyNames", {})
                node = deep
                continue
            if known is None and not objects:
                continue  # the name of a member of a union
            parent = known or objects[0]
            others = [parent.get("additionalProperties"), *parent.get("patternProperties", {}).values()]
            declared = known is not None  # else the keys are names, as of splits
            deep = parent["properties"][step] if known else next((o for o in others if isinstance(o, dict)), {})
            place, key = [*place, f'"{step[:60]}"'], step
        node, inside = deep, 0
    return parent, key, place, inside, _resolved(node, schema)


def _branches(node: Any, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a node of a JSON schema may be, references followed."""
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        yield from _branches(schema.get("$defs", {}).get(node["$ref"].rpartition("/")[2]), schema)
    options = node.get("anyOf", node.get("oneOf", node.get("allOf")))
    if options is None and "$ref" not in node:
        yield node
    for option in options or ():
        yield from _branches(option, schema)


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A node with what its references stand for."""
    branches = list(_branches(node, schema))
    whole = branches[0] if len(branches) == 1 else {"anyOf": branches}
    return whole if node is schema or "description" not in node else {**whole, "description": node["description"]}


def _singular(key: str) -> str:
    if not key:
        return "entry"
    return f"{key[:-3]}y" if key.endswith("ies") else key.removesuffix("s")


def _options(node: dict[str, Any]) -> list[str]:
    """The texts that a value is chosen from; none if it may be anything else."""
    values = node.get("enum", [node["const"]] if "const" in node else [])
    return [value for value in values if isinstance(value, str)]


def _wanted(node: dict[str, Any]) -> str:
    """What a value must be, in words."""
    if node.get("description") and "properties" not in node:  # a class's docstring does not describe a field
        return str(node["description"])
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(filter(None, map(_wanted, node["anyOf"]))))
    if "const" in node or "enum" in node:
        texts = [
            value if isinstance(value, str) else json.dumps(value) for value in node.get("enum", [node.get("const")])
        ]
        return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
    kind = node.get("type")
    if kind == "string":
        return f"a text{_limits(node, 'Length', 'of ', ' characters')}"
    if kind in ("integer", "number"):
        return f"a {'whole' if kind == 'integer' else 'finite'} number{_limits(node, 'imum', '', '')}"
    if kind == "array":
        return f"a list{_limits(node, 'Items', 'of ', '') or ', […]'}"
    return {"object": "an object, {…}", "boolean": "true or false", "null": "null"}.get(str(kind), "")


def _limits(node: dict[str, Any], name: str, before: str, after: str) -> str:
    """The limits of a node in words: " from 1 to 50", " of at most 2,000 characters"."""
    low, high = node.get(f"min{name}"), node.get(f"max{name}")
    above, below = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" {before or 'from '}{low:,.10g}{f' to {high:,.10g}' if high != low else ''}{after}"
    limits = (("at least", low), ("above", above), ("at most", high), ("below", below))
    words = [f"{word} {limit:,.10g}" for word, limit in limits if limit is not None]
    return f" {before}{' and '.join(words)}{after}" if words else ""
