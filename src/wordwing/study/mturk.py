"""Studies on Amazon Mechanical Turk: a batch to publish, and the results of a batch.

A batch is an HTML template for a project's design layout and a CSV file with a row for each item, whose columns are
the template's variables. The results are the CSV file that "Download CSV" gives.
"""

import csv
import hashlib
import hmac
import io
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel, BeforeValidator, Field

from wordwing.errors import WordwingError, shown
from wordwing.files import check_replaceable, read_text, replacing, replacing_folder, safe_name, write_text
from wordwing.study.questions import GUIDELINES, INTRODUCTION, KEYS, MAX_SECONDS, QUESTIONS, TASK, UNCLEAR, Answers
from wordwing.study.store import Study
from wordwing.validation import parse

COLUMNS = ("item", "instruction", "video", "still", "legend")
"""Variables of the template."""

ENDINGS = {"video": "mp4", "still": "webp", "legend": "legend.webp"}

MAX_BYTES = 64_000_000
"""Largest file of results that is read."""

REVIEW = ("Approve", "Reject")
"""The last columns of results; MTurk leaves their fields out of the rows."""

YES = ("1", "true", "on")


def export_batch(study: Study, file: Path, url: str = "") -> int:
    """Write a batch: the CSV file, the template beside it (.html), and a folder of the images and videos they show.

    Args:
        study: Whose items.
        file: The CSV file; its name must end in .csv.
        url: Where the folder's files will be on the web; without it the CSV file has only their names.

    Returns:
        How many items there are.
    """
    if file.suffix.lower() != ".csv":
        raise WordwingError(f"--mturk is {file}; a batch's name must end in .csv")
    base = _checked(url)
    folder = media_folder(file)
    if folder.exists():
        names = {path.name for path in folder.iterdir() if path.name.endswith(tuple(ENDINGS.values()))}
        check_replaceable(folder, names, min(names, default=""), "a folder of a batch's images")
    rows = []
    with replacing_folder(folder) as temporary:
        for item_id, instruction, media in study.media():
            safe_name(item_id, f"{study.file}: the id of an item")
            row = {"item": item_id, "instruction": markup(instruction)}
            for kind, content in media.items():
                name = f"{item_id}.{ENDINGS[kind]}"
                (temporary / name).write_bytes(content)
                row[kind] = base + name
            rows.append(row)
    table = pd.DataFrame(rows, columns=COLUMNS)
    with replacing(file) as temporary:
        table.to_csv(temporary, index=False, quoting=csv.QUOTE_ALL, lineterminator="\r\n", encoding="ascii")
    write_text(file.with_suffix(".html"), template())
    return len(rows)


def media_folder(file: Path) -> Path:
    """Where the images and videos of a batch go."""
    return file.with_name(f"{file.stem}-images")


def markup(text: str) -> Markup:
    """A text as HTML in ASCII: MTurk puts variables into the template as they are, and refuses some characters.

    The first character is a reference where a spreadsheet would take it for a formula.
    """
    plain = escape(" ".join(text.split())).encode("ascii", "xmlcharrefreplace").decode()
    plain = plain.replace("${", "&#36;{")  # it would be looked for among the template's variables
    return Markup(f"&#{ord(plain[0])};{plain[1:]}" if plain[:1] in tuple("=+-@|") else plain)


def template() -> str:
    """The HTML of one task; `${…}` are the batch's columns."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["ascii"] = markup
    return environment.get_template("mturk.html").render(
        introduction=INTRODUCTION, task=TASK, guidelines=GUIDELINES, questions=QUESTIONS, unclear=UNCLEAR
    )


class ImportedResults(NamedTuple):
    """What was read."""

    judgements: int
    workers: int
    """How many of them are new to the study."""
    rejected: int
    """Rows that were left out, since the work was rejected."""


_Score = Annotated[Literal["1", "2", "3", "4", "5"], Field(description="a whole number from 1 to 5")]


def _as_number(text: str) -> float | str:
    with suppress(ValueError):
        return float(text)
    return text  # which is refused


class ResultRow(BaseModel):
    """The fields of a row of results that are read, as texts."""

    worker: Annotated[str, Field(alias="WorkerId", pattern=r"^[A-Za-z0-9]{1,64}$", description="letters and digits")]
    item: Annotated[str, Field(alias="Input.item")]
    path: Annotated[_Score, Field(alias="Answer.path")]
    goal: Annotated[_Score, Field(alias="Answer.goal")]
    efficiency: Annotated[_Score, Field(alias="Answer.efficiency")]
    unclear: Annotated[
        Literal["1", "true", "on", "", "0", "false"], Field(alias="Answer.unclear", description="1 or empty")
    ]
    seconds: Annotated[
        float,
        Field(alias="WorkTimeInSeconds", ge=0, le=MAX_SECONDS, allow_inf_nan=False),
        BeforeValidator(_as_number),
    ] = 0.0


def import_batch(study: Study, file: Path) -> ImportedResults:
    """Add the results of a batch, all of them or, if a row is wrong, none.

    Of workers only a salted hash of their id is kept; ids of tasks and assignments, and what was entered in the columns
    Approve and Reject, are not.
    """
    rows = []
    rejected = 0
    salt = bytes.fromhex(study.settings.salt)
    for where, fields in _read(file):
        if fields.get("AssignmentStatus") == "Rejected":
            rejected += 1
            continue
        row = parse(ResultRow, _with_answers(fields), where)
        answers = Answers(int(row.path), int(row.goal), int(row.efficiency), row.unclear in YES, row.seconds)
        rows.append((where, hashed(row.worker, salt), row.item, answers))
    if not rows:
        raise WordwingError(f"{file}: there is no judgement in it")
    return ImportedResults(len(rows), study.import_ratings(rows), rejected)


def hashed(worker: str, salt: bytes) -> bytes:
    """A worker's id as it is kept: 128 bits of its HMAC-SHA256 under the study's salt."""
    return hmac.digest(salt, worker.encode(), hashlib.sha256)[:16]


def _with_answers(fields: dict[str, str]) -> dict[str, str]:
    """A row whose answers are in one column each, also where crowd elements gave five of which one is true."""
    unclear = fields.get("Answer.unclear", fields.get("Answer.unclear.1", ""))
    answers = {"Answer.unclear": unclear.strip().lower()}
    for column in (f"Answer.{key}" for key in KEYS):
        ticked = [score for score in "12345" if fields.get(f"{column}.{score}", "").strip().lower() in YES]
        answers[column] = fields.get(column, "".join(ticked)).strip()
    return {**fields, **answers}


def _read(file: Path) -> Iterable[tuple[str, dict[str, str]]]:
    """Where each row of a file of results is, and its fields by column."""
    text = read_text(file, MAX_BYTES, "file of results that is read at once")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = next(reader, [])
        _check_columns(columns, file)
        for fields in reader:
            where = f"{file}: line {reader.line_num}"
            if not fields:
                continue
            spare = len(columns) - len(fields)
            if spare < 0 or not set(columns[len(fields) :]) <= set(REVIEW):
                raise WordwingError(f"{where} has {len(fields)} fields; its {len(columns)} columns need as many")
            yield where, dict(zip(columns, fields + [""] * spare, strict=True))
    except csv.Error as error:
        raise WordwingError(f"{file}: line {reader.line_num} is not CSV ({error})") from None


def _check_columns(columns: Sequence[str], file: Path) -> None:
    for column in columns:
        if columns.count(column) > 1:
            raise WordwingError(f"{file}: line 1 has the column {shown(column)} twice")
    for column in ("WorkerId", "Input.item", *(f"Answer.{key}" for key in KEYS)):
        choices = [f"{column}.{score}" for score in "12345"] if column.startswith("Answer.") else []
        if not {column, *choices} & set(columns):
            raise WordwingError(
                f"{file}: line 1 has no column {column}; are these the results of a batch with the study's template?"
            )


def _checked(url: str) -> str:
    """The address of a folder on the web, with a slash at its end; or nothing."""
    if url and not re.fullmatch(r"(?i:https)://[A-Za-z0-9:._~%@+-]+(/[A-Za-z0-9:/._~%@+-]*)?", url):
        raise WordwingError(f"--url is {url[:60]}; it must be an address such as https://example.org/study")
    return url.rstrip("/") + "/" if url else ""
