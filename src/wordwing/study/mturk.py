"""Studies on Amazon Mechanical Turk: a batch to publish, and the results of a batch.

A batch is an HTML template for a project's design layout and a CSV file with a row for each item, whose columns are
the template's variables. The results are the CSV file that "Download CSV" gives.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from wordwing.errors import WordwingError, shown
from wordwing.files import check_replaceable, read_text, replacing, replacing_folder, safe_name
from wordwing.study.questions import GUIDELINES, INTRODUCTION, KEYS, MAX_SECONDS, QUESTIONS, TASK, UNCLEAR, Answers, Key
from wordwing.study.store import Study

COLUMNS = ("item", "instruction", "film", "still", "legend")
"""Variables of the template."""

ENDINGS = {"film": "mp4", "still": "webp", "legend": "legend.webp"}

MAX_BYTES = 64_000_000
"""Largest file of results that is read."""

_REVIEW = ("Approve", "Reject")
"""The last columns of results; MTurk leaves their fields out of the rows."""

_YES, _NO = ("1", "true", "on"), ("", "0", "false")


def export_batch(study: Study, file: Path, url: str = "") -> int:
    """Write a batch: the CSV file, the template beside it (.html), and a folder of the pictures that they show.

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
    folder = pictures_folder(file)
    if folder.exists():
        names = {path.name for path in folder.iterdir() if path.name.endswith(tuple(ENDINGS.values()))}
        check_replaceable(folder, names, min(names, default=""), "a folder of a batch's pictures")
    rows = []
    with replacing_folder(folder) as temporary:
        for item_id, instruction, pictures in study.exhibits():
            safe_name(item_id, f"{study.file}: the id of an item")
            row = {"item": item_id, "instruction": markup(instruction)}
            for kind, content in pictures.items():
                name = f"{item_id}.{ENDINGS[kind]}"
                (temporary / name).write_bytes(content)
                row[kind] = base + name
            rows.append(row)
    with replacing(file) as temporary:
        temporary.write_text(_to_csv(rows), "ascii", newline="")
    with replacing(file.with_suffix(".html")) as temporary:
        temporary.write_text(template(), "ascii")
    return len(rows)


def pictures_folder(file: Path) -> Path:
    """Where the pictures of a batch go."""
    return file.with_name(f"{file.stem}-pictures")


def markup(text: str) -> str:
    """A text as HTML in ASCII: MTurk puts variables into the template as they are, and refuses some characters.

    The first sign is a reference where a spreadsheet would take it for a formula.
    """
    plain = escape(" ".join(text.split())).encode("ascii", "xmlcharrefreplace").decode()
    # `${…}` would be looked for in the template's variables.
    plain = plain.replace("${", "&#36;{")
    return f"&#{ord(plain[0])};{plain[1:]}" if plain[:1] in tuple("=+-@|") else plain


def template() -> str:
    """The HTML of one task; `${…}` are the batch's columns."""
    guidelines = "\n".join(f"<li>{markup(text)}</li>" for text in GUIDELINES)
    questions = "\n".join(
        f"<fieldset>\n<legend>{number}. {markup(question.text)}</legend>\n{_choices(question.key, question.answers)}"
        "\n</fieldset>"
        for number, question in enumerate(QUESTIONS, start=1)
    )
    return f"""<style>
.study {{ max-width: 52rem; margin: 0 auto; font: 16px/1.5 sans-serif; color: #202020; background: #fff; }}
.study blockquote {{ margin: 1rem 0; padding: 0.5rem 1rem; border-left: 4px solid #0072b2; font-size: 1.15rem; }}
.study img, .study video {{ display: block; max-width: 100%; height: auto; margin: 0.75rem 0; }}
.study fieldset {{ margin: 1rem 0; border: 1px solid #767676; }}
.study label {{ display: block; padding: 0.2rem 0; }}
</style>
<div class="study">
<p>{markup(INTRODUCTION)}</p>
<p>{markup(TASK)}</p>
<ul>
{guidelines}
</ul>
<blockquote>${{instruction}}</blockquote>
<img src="${{legend}}" alt="The numbered objects as the drone sees them">
<video src="${{film}}" poster="${{still}}" controls autoplay muted playsinline></video>
{questions}
<p><label><input type="checkbox" name="unclear" value="1"> {markup(UNCLEAR)}</label></p>
</div>
"""


def _choices(key: Key, answers: Sequence[str]) -> str:
    best_first = sorted(enumerate(answers, start=1), reverse=True)
    return "\n".join(
        f'<label><input type="radio" name="{key}" value="{score}" required> {score}: {markup(answer)}</label>'
        for score, answer in best_first
    )


class Results(NamedTuple):
    """What was read."""

    judgements: int
    workers: int
    """How many of them are new to the study."""
    rejected: int
    """Rows that were left out, since the work was rejected."""


def import_batch(study: Study, file: Path) -> Results:
    """Add the results of a batch, all of them or, if a row is wrong, none.

    Of workers only a salted hash of their id is kept; ids of tasks and assignments, and what was entered in the columns
    Approve and Reject, are not.
    """
    rows = []
    rejected = 0
    salt = bytes.fromhex(study.settings.salt)
    for where, row in _read(file):
        if row.get("AssignmentStatus") == "Rejected":
            rejected += 1
            continue
        rows.append((where, hashed(row["WorkerId"], salt, where), row["Input.item"], _answers(row, where)))
    if not rows:
        raise WordwingError(f"{file}: there is no judgement in it")
    return Results(len(rows), study.import_ratings(rows), rejected)


def hashed(worker: str, salt: bytes, where: str) -> bytes:
    """A worker's id as it is kept: 128 bits of its HMAC-SHA256 under the study's salt."""
    if not re.fullmatch(r"[A-Za-z0-9]{1,64}", worker):
        raise WordwingError(f"{where}: WorkerId is {shown(worker)}; it must be letters and digits")
    return hmac.digest(salt, worker.encode(), hashlib.sha256)[:16]


def _answers(row: dict[str, str], where: str) -> Answers:
    scores = {key: _score(row, key, where) for key in KEYS}
    unclear = row.get("Answer.unclear", row.get("Answer.unclear.1", "")).strip().lower()
    if unclear not in (*_YES, *_NO):
        raise WordwingError(f"{where}: Answer.unclear is {shown(unclear)}; it must be 1 or empty")
    try:
        seconds = float(row.get("WorkTimeInSeconds", "0"))
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MAX_SECONDS:
        raise WordwingError(
            f"{where}: WorkTimeInSeconds is {shown(row['WorkTimeInSeconds'])}; "
            f"it must be a number up to {MAX_SECONDS:.0f}"
        )
    return Answers(**scores, unclear=unclear in _YES, seconds=seconds)


def _score(row: dict[str, str], key: Key, where: str) -> int:
    """A question's score: in one column or, as forms of crowd elements have it, in five of which one is true."""
    if f"Answer.{key}" in row:
        text = row[f"Answer.{key}"].strip()
    else:
        text = "".join(score for score in "12345" if row.get(f"Answer.{key}.{score}", "").strip().lower() in _YES)
    if text not in tuple("12345"):
        raise WordwingError(f"{where}: Answer.{key} is {shown(text)}; it must be a whole number from 1 to 5")
    return int(text)


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
            if spare < 0 or not set(columns[len(fields) :]) <= set(_REVIEW):
                raise WordwingError(f"{where} has {len(fields)} fields; its {len(columns)} columns need as many")
            yield where, dict(zip(columns, fields + [""] * spare, strict=True))
    except csv.Error as error:
        raise WordwingError(f"{file}: line {reader.line_num} is not CSV ({error})") from None


def _check_columns(columns: Sequence[str], file: Path) -> None:
    for column in columns:
        if columns.count(column) > 1:
            raise WordwingError(f"{file}: line 1 has the column {shown(column)} twice")
    for column in ("WorkerId", "Input.item"):
        if column not in columns:
            raise WordwingError(f"{file}: line 1 has no column {column}; are these the results of a batch?")
    for key in KEYS:
        if not any(column == f"Answer.{key}" or column.startswith(f"Answer.{key}.") for column in columns):
            raise WordwingError(
                f"{file}: line 1 has no column Answer.{key}; are these results of the study's template?"
            )


def _to_csv(rows: Iterable[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _checked(url: str) -> str:
    """The address of a folder on the web, with a slash at its end; or nothing."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme != "https" or not parts.netloc or not re.fullmatch(r"[A-Za-z0-9:/._~%@+-]+", url):
        raise WordwingError(f"--url is {url[:60]}; it must be an address such as https://example.org/study")
    return url.rstrip("/") + "/"
