"""A table, and the same table in Markdown, LaTeX and HTML; and rows as CSV. `results.py` has what is in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

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
        spanned = sum(width for _text, width in self.spans) if self.spans else len(self.columns)
        if spanned != len(self.columns) or any(len(row) != len(self.columns) for row in rows):
            raise ValueError(f"table {self.name}: rows and columns do not match")


def to_markdown(table: Table) -> str:
    """As GitHub shows tables: title, table, notes."""
    above = [text for text, width in table.spans for _ in range(width)] or [""] * len(table.columns)
    head = [f"{over}: {name}" if over else name for over, name in zip(above, table.columns, strict=True)]
    lines = [_markdown_row(head), "| --- |" + " ---: |" * (len(head) - 1)]
    for section in table.sections:
        if section.title:
            lines.append(f"| **{_markdown(section.title)}** |" + " |" * (len(head) - 1))
        lines += [_markdown_row(row) for row in section.rows]
    notes = [_markdown(" ".join(table.notes))] if table.notes else []
    return "\n\n".join([f"**{_markdown(table.title)}**", "\n".join(lines), *notes]) + "\n"


def to_latex(table: Table) -> str:
    """A floating table; the document needs the packages booktabs and graphicx."""
    width = len(table.columns)
    lines = []
    if table.spans:
        lines.append(" & ".join(_latex_span(text, span) for text, span in table.spans) + r" \\")
        lines += _rules(table)
    lines.append(_latex_row(table.columns))
    for section in table.sections:
        lines.append(r"\midrule")
        if section.title:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\textit{{{_latex(section.title)}}}}} \\")
        lines += [_latex_row(row) for row in section.rows]
    body = "\n".join(lines)
    # Shrunk to the line where it is wider, and left alone where it is not.
    return rf"""\begin{{table}}
\centering
\setlength{{\belowcaptionskip}}{{6pt}}
\setlength{{\tabcolsep}}{{4pt}}
\caption{{{_latex(" ".join([_sentence(table.title), *table.notes]))}}}
\label{{tab:{table.name}}}
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
\begin{{tabular}}{{l{"r" * (width - 1)}}}
\toprule
{body}
\bottomrule
\end{{tabular}}}}
\end{{table}}
"""


def to_html(table: Table) -> str:
    """A `<table>` with its caption; nothing in it is markup but what is written here."""
    lines = [f'<table id="{_html(table.name)}">']
    notes = f"\n<span>{_html(' '.join(table.notes))}</span>" if table.notes else ""
    lines += [f"<caption><strong>{_html(table.title)}</strong>{notes}</caption>", "<thead>"]
    if table.spans:
        lines.append("<tr>" + "".join(_html_span(text, width) for text, width in table.spans) + "</tr>")
    lines += ["<tr>" + "".join(f'<th scope="col">{_html(name)}</th>' for name in table.columns) + "</tr>", "</thead>"]
    for section in table.sections:
        lines.append("<tbody>")
        if section.title:
            lines.append(f'<tr><th scope="rowgroup" colspan="{len(table.columns)}">{_html(section.title)}</th></tr>')
        for first, *others in section.rows:
            cells = "".join(f"<td>{_html(cell)}</td>" for cell in others)
            lines.append(f'<tr><th scope="row">{_html(first)}</th>{cells}</tr>')
        lines.append("</tbody>")
    return "\n".join([*lines, "</table>"]) + "\n"


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows for other programs and spreadsheets; None is an empty cell.

    A text that a spreadsheet would take for a formula gets an apostrophe, and control characters become escapes:
    names come from files that others wrote.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_harmless(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return out.getvalue()


def _harmless(text: str) -> str:
    return f"'{printable(text)}" if text.startswith(tuple("=+-@＝＋－＠")) else printable(text)


def slug(*parts: str) -> str:
    """A table's name from words: "field-generated"."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|<>~])", r"\\\1", _one_line(text).replace("&", "&amp;"))


def _markdown_row(cells: Cells | list[str]) -> str:
    return "| " + " | ".join(_markdown(cell) for cell in cells) + " |"


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


def _latex_row(cells: Cells) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex_span(text: str, width: int) -> str:
    return _latex(text) if width == 1 else rf"\multicolumn{{{width}}}{{c}}{{{_latex(text)}}}"


def _rules(table: Table) -> list[str]:
    """A line under each heading that is over several columns."""
    rules, first = [], 1
    for text, width in table.spans:
        if text:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    return rules


def _html(text: str) -> str:
    return escape(_one_line(text))


def _html_span(text: str, width: int) -> str:
    if not text:
        return f'<td colspan="{width}"></td>'
    return f'<th scope="colgroup" colspan="{width}">{_html(text)}</th>'
