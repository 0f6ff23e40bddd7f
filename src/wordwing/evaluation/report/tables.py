"""A table, and the same table in Markdown, LaTeX and HTML; and rows as CSV. `results.py` has what is in them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from wordwing.errors import printable

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    """Stands above them; empty for none."""
    rows: tuple[Cells, ...]


@dataclass(frozen=True)
class Table:
    """Cells of plain text; the first column names the rows."""

    name: str
    """What it is called in files and links: small letters, digits and hyphens."""
    title: str
    notes: tuple[str, ...]
    """Sentences that a reader needs for the numbers to be true."""
    columns: Cells
    sections: tuple[Section, ...]
    spans: tuple[tuple[str, int], ...] = ()
    """Headings above the columns, each over so many of them; empty for none."""

    def __post_init__(self) -> None:
        rows = [row for section in self.sections for row in section.rows]
        widths = sum(width for _text, width in self.spans) if self.spans else len(self.columns)
        if widths != len(self.columns) or any(len(row) != len(self.columns) for row in rows):
            raise ValueError(f"table {self.name}: rows and columns do not match")

    @property
    def headings(self) -> list[str]:
        """One for each column, with what stands above it: "1 segment: n"."""
        above = [text for text, width in self.spans for _ in range(width)] or [""] * len(self.columns)
        return [f"{over}: {name}" if over else name for over, name in zip(above, self.columns, strict=True)]


def render_table(table: Table, language: Literal["md", "tex", "html"]) -> str:
    """A table as text; nothing in its cells is taken for markup.

    Markdown is as GitHub shows tables, with the title above and the notes below. In LaTeX it floats, and the document
    needs the packages booktabs and graphicx. In HTML it is a `<table>` with its caption.
    """
    return TEMPLATES.get_template(f"table.{language}").render(table=table)


def csv_text(rows: pd.DataFrame) -> str:
    """Rows for other programs and spreadsheets; what is missing is an empty cell.

    A text that a spreadsheet would take for a formula gets an apostrophe, and control characters become escapes:
    names come from files that others wrote.
    """
    return rows.map(_harmless).to_csv(index=False, lineterminator="\n")


def _harmless(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    return f"'{printable(cell)}" if cell.startswith(tuple("=+-@＝＋－＠")) else printable(cell)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|<>~])", r"\\\1", _one_line(text).replace("&", "&amp;"))


_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
}


def _latex(text: str) -> str:
    text = "".join(_LATEX.get(sign, sign) for sign in _one_line(text))
    return re.sub(r"(\d) \\%", r"\1~\\%", text)  # no line ends between a number and its %


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {"one_line": _one_line, "markdown": _markdown, "latex": _latex}
