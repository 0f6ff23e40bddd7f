"""A report as one HTML page that needs nothing but itself, and the films beside it.

There is no script in it, and nothing is fetched. The same input gives the same bytes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote

from wordwing.evaluation.report.figures import Chart, origin_title
from wordwing.evaluation.report.gallery import PICTURE_SIZE, RULE, Exhibit, Flown
from wordwing.evaluation.report.style import CSS
from wordwing.evaluation.report.summary import Origin, Score, ordered, segments_title, title
from wordwing.evaluation.report.tables import Table, to_html
from wordwing.interface import CONTROL_PERIOD


@dataclass(frozen=True)
class FlownRow:
    """What was flown of one origin."""

    origin: Origin
    systems: tuple[str, ...]
    instructions: Mapping[int, int]
    """How many, by number of segments."""
    flights: int


@dataclass(frozen=True)
class Curves:
    """Learning curves of a training run."""

    name: str
    png: bytes


@dataclass(frozen=True)
class Page:
    """What a report shows."""

    title: str
    version: str
    """Of wordwing."""
    flown: Sequence[FlownRow] = ()
    seeds: Sequence[int] = ()
    """Of the evaluations."""
    tables: Sequence[Table] = ()
    charts: Mapping[str, Sequence[Chart]] = field(default_factory=dict)
    """By what they are of."""
    curves: Sequence[Curves] = ()
    gallery: Sequence[Exhibit] = ()
    more_tables: Sequence[Table] = ()
    """For who wants to know more, at the end."""


def flown_rows(scores: Iterable[Score], origins: Sequence[Origin]) -> list[FlownRow]:
    """Count what was flown, origins in the order given."""
    by_origin: dict[Origin, list[Score]] = {origin: [] for origin in origins}
    for score in scores:
        by_origin[score.origin].append(score)
    rows = []
    for origin, own in by_origin.items():
        ids = {score.id: score.segments for score in own}
        counts = {segments: list(ids.values()).count(segments) for segments in sorted(set(ids.values()))}
        rows.append(FlownRow(origin, tuple(ordered(score.system for score in own)), counts, len(own)))
    return rows


def render(page: Page) -> str:
    """The page as HTML."""
    sections = [
        ("flown", "What was flown", _flown(page)),
        ("tables", "Tables", _tables(page.tables)),
        ("charts", "Charts", "".join(_charts(*entry) for entry in page.charts.items())),
        ("gallery", "Gallery", _gallery(page.gallery)),
        ("curves", "Learning curves", "".join(map(_curves, page.curves))),
        ("more", "More tables", _tables(page.more_tables)),
    ]
    there = [(name, heading, body) for name, heading, body in sections if body]
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _body in there)
    parts = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{body}</section>'
        for name, heading, body in there
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_text(page.title)}</title>
<style>
{CSS}</style>
</head>
<body>
<a class="skip" href="#content">To the results</a>
<header>
<h1>{_text(page.title)}</h1>
<p>{_text(_lead(page))}</p>
<nav aria-label="Contents"><ul>{links}</ul></nav>
</header>
<main id="content">
{parts}
</main>
<footer>
<p>Made by wordwing {_text(page.version)}. What each metric means is in its docs/metrics.md.</p>
</footer>
</body>
</html>
"""


def _lead(page: Page) -> str:
    flights = sum(row.flights for row in page.flown)
    systems = [title(name) for name in ordered(name for row in page.flown for name in row.systems)]
    if not flights:
        return "How training went."
    return f"{flights:,} flights by {len(systems)} system{'s' * (len(systems) > 1)}: {', '.join(systems)}."


def _flown(page: Page) -> str:
    if not page.flown:
        return ""
    body = "".join(_flown_row(row) for row in page.flown)
    words = ("corpus", "split", "domain", "instructions by", "systems")
    numbers = ("1 segment", "2 segments", "flights")
    head = "".join(
        [f'<th scope="col" class="word">{name}</th>' for name in words]
        + [f'<th scope="col">{name}</th>' for name in numbers]
    )
    name = "Instructions and flights"
    caption = f"<caption><strong>{name}</strong></caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    notes = "".join(f"<li>{_text(note)}</li>" for note in _notes(page))
    return f'{_scrolling(table, name)}<ul class="notes">{notes}</ul>\n'


def _flown_row(row: FlownRow) -> str:
    origin = row.origin
    domain = "sim" if origin.domain == "sim" else "lab (stand-in)"
    writer = {"generated": "a program", "human": "people"}.get(origin.text, origin.text)
    words = "".join(f'<td class="word">{_text(cell)}</td>' for cell in (origin.split, domain, writer))
    names = f'<td class="word wrap">{_text(", ".join(map(title, row.systems)))}</td>'
    counts = "".join(f"<td>{row.instructions.get(segments, 0):,}</td>" for segments in (1, 2))
    return f'<tr><th scope="row">{_text(origin.corpus)}</th>{words}{names}{counts}<td>{row.flights:,}</td></tr>'


def _notes(page: Page) -> list[str]:
    """What a reader must know for the numbers to be true."""
    origins = [row.origin for row in page.flown]
    notes = []
    if any(origin.text == "generated" for origin in origins):
        notes.append("Generated instructions are written by a program, not by people.")
    if any(origin.text == "human" for origin in origins):
        notes.append("Human instructions were written by people.")
    if any(origin.domain == "lab" for origin in origins):
        notes.append("The lab is a simulated stand-in for a physical drone in a cage; no physical drone flew here.")
    if any(origin.domain == "sim" for origin in origins):
        notes.append("sim is wordwing's own simulator.")
    if page.seeds:
        word = "Seed" if len(page.seeds) == 1 else "Seeds"
        notes.append(f"{word} of the evaluations: {', '.join(map(str, page.seeds))}.")
    notes.append("Intervals are 95 %, by resampling layouts.")
    return notes


def _tables(tables: Sequence[Table]) -> str:
    return "".join(_scrolling(to_html(table), table.title) for table in tables)


def _scrolling(table: str, name: str) -> str:
    """A table in a box of its own, which scrolls on a narrow screen, with a keyboard too."""
    return f'<div class="scroll" role="region" aria-label="{_text(name)}" tabindex="0">\n{table}</div>\n'


def _charts(heading: str, charts: Sequence[Chart]) -> str:
    return f"<h3>{_text(heading)}</h3>\n" + "".join(map(_chart, charts)) if charts else ""


def _chart(chart: Chart) -> str:
    return (
        f'<figure class="chart">\n<h4>{_text(chart.title)}</h4>\n<div class="card" role="img" '
        f'aria-label="{_text(chart.alt)}" tabindex="0">{inline_svg(chart.svg, chart.name)}</div>\n'
        f"<figcaption>{_text(chart.caption)}</figcaption>\n</figure>\n"
    )


def inline_svg(svg: str, name: str) -> str:
    """An SVG file's text as a part of a page, in which no other SVG has the same ids."""
    drawing = svg[svg.index("<svg") :].strip()
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", drawing)
    return drawing.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def _curves(curves: Curves) -> str:
    name = _text(curves.name)
    alt = f"Nine curves over the minutes of the training run {name}: losses, rewards, dev flights."
    caption = (
        "Over minutes of training: what stage 1 learns, what flights are paid for, and what comes of both on dev "
        "instructions."
    )
    return (
        f'<figure class="chart">\n<h3>{name}</h3>\n<div class="card" tabindex="0">'
        f'<img src="{_data(curves.png, "png")}" alt="{alt}"></div>\n<figcaption>{caption}</figcaption>\n</figure>\n'
    )


_LEGEND = {
    "flown": "flown",
    "gold": "demonstration",
    "ring": "success ends in here",
    "start": "start",
    "belief": "goal as believed at the last decision",
}


def _gallery(gallery: Sequence[Exhibit]) -> str:
    if not gallery:
        return ""
    references = list(dict.fromkeys(title(exhibit.choice.reference) for exhibit in gallery))
    legend = "".join(f'<span><i class="{mark}"></i>{meaning}</span>' for mark, meaning in _LEGEND.items())
    parts = [f"<p>{_text(RULE.format(reference=' or '.join(references)))}</p>\n", f'<p class="legend">{legend}</p>\n']
    last: Origin | None = None
    for exhibit in gallery:
        if exhibit.choice.origin != last:
            last = exhibit.choice.origin
            parts.append(f"<h3>{_text(origin_title(last))}</h3>\n")
        parts.append(_exhibit(exhibit))
    return "".join(parts)


def _exhibit(exhibit: Exhibit) -> str:
    choice = exhibit.choice
    who = title(choice.reference)
    what = {"success": f"{who} succeeds", "middle": f"{who} at its median", "failure": f"{who} fails"}[choice.kind]
    if exhibit.instruction is None:
        words = f'<p class="words">The sentence may not be passed on: instruction {_text(choice.id)}.</p>'
    else:
        words = f'<blockquote class="words">{_text(exhibit.instruction)}</blockquote>'
    flights = "".join(_flight(flown) for flown in exhibit.flights)
    return (
        f"<article>\n<h4>{_text(what)}, {segments_title(choice.segments)}</h4>\n{words}\n"
        f'<p class="id">{_text(choice.id)}</p>\n<div class="flights">\n{flights}</div>\n</article>\n'
    )


def _flight(flown: Flown) -> str:
    measures, episode = flown.measures, flown.episode
    name = _text(title(episode.system))
    verdict = '<b class="yes">✓ success</b>' if measures.success else '<b class="no">✗ no success</b>'
    if measures.followed is not None:
        verdict += ' <b class="yes">✓ followed</b>' if measures.followed else ' <b class="no">✗ not followed</b>'
    ended = "stopped" if episode.ended_by == "stop" else "out of steps"
    facts = [
        f"rests {measures.distance:.2f} m from the goal",
        f"EMD {measures.emd:.2f} m",
        f"{ended} after {episode.decisions * CONTROL_PERIOD:.1f} s",
    ]
    if measures.last_goal_error is not None:
        facts.append(f"believes the goal {measures.last_goal_error:.2f} m off")
    if measures.judge_path is not None and measures.judge_goal is not None:
        facts.append(f"judge: path {measures.judge_path:.2f}, goal {measures.judge_goal:.2f}")
    film = f'<a href="{_text(quote(flown.film))}">Film<span class="unseen"> of {name}</span></a>' if flown.film else ""
    alt = f"From above: the path of {name} and the demonstration; it rests {measures.distance:.2f} m from the goal."
    source = _data(flown.picture, "webp")
    return (
        f'<figure>\n<img src="{source}" width="{PICTURE_SIZE}" height="{PICTURE_SIZE}" alt="{alt}">\n'
        f"<figcaption><strong>{name}</strong> {verdict}<br>{'<br>'.join(facts)}"
        f"{'<br>' + film if film else ''}</figcaption>\n</figure>\n"
    )


def _data(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _text(text: str) -> str:
    return escape(text, quote=True)
