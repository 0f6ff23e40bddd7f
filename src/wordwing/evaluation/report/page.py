"""A report as one HTML page that needs nothing but itself, and the videos beside it.

There is no script in it, and nothing is fetched. The same input gives the same bytes.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from wordwing.evaluation.report.charts import Chart
from wordwing.evaluation.report.gallery import IMAGE_SIZE, RULE, Example
from wordwing.evaluation.report.labels import Origin, ordered, segments_title, title
from wordwing.evaluation.report.tables import TEMPLATES, Table
from wordwing.interface import CONTROL_PERIOD
from wordwing.language.authors import author


@dataclass(frozen=True)
class FlownRow:
    """What was flown of one origin."""

    origin: Origin
    systems: tuple[str, ...]
    instructions: Mapping[int, int]
    """How many, by number of segments."""
    flights: int


@dataclass(frozen=True)
class Page:
    """What a report shows."""

    title: str
    version: str
    """The version of wordwing."""
    flown: Sequence[FlownRow] = ()
    seeds: Sequence[int] = ()
    """The seeds of the evaluations."""
    tables: Sequence[Table] = ()
    charts: Mapping[str, Sequence[Chart]] = field(default_factory=dict)
    """By what they are of."""
    curves: Sequence[tuple[str, bytes]] = ()
    """Name and learning curves, a PNG, of each training run."""
    gallery: Sequence[Example] = ()
    more_tables: Sequence[Table] = ()
    """Details, at the end."""

    @property
    def systems(self) -> list[str]:
        """All that flew, in the order of tables."""
        return ordered(system for row in self.flown for system in row.systems)


def flown_rows(flights: pd.DataFrame, origins: Sequence[Origin]) -> list[FlownRow]:
    """Count the flights (`summary.flight_table`), origins in the order given."""
    by_origin = flights.groupby([*Origin._fields])
    return [
        FlownRow(
            origin,
            tuple(ordered(own["system"])),
            own.drop_duplicates("id").groupby("segments").size().to_dict(),
            len(own),
        )
        for origin, own in zip(origins, map(by_origin.get_group, origins), strict=True)
    ]


def render(page: Page) -> str:
    """The page as HTML."""
    template = TEMPLATES.get_template("report.html")
    return template.render(page=page, rule=RULE, image_size=IMAGE_SIZE, control_period=CONTROL_PERIOD)


def inline_svg(chart: Chart) -> Markup:
    """A chart's SVG as a part of a page, in which no other SVG has the same ids."""
    drawing = chart.svg[chart.svg.index("<svg") :].strip()
    drawing = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{chart.name}-", drawing)
    return Markup(drawing.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1))


def _data_url(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


TEMPLATES.filters |= {
    "author": author,
    "title_of": title,
    "segments_title": segments_title,
    "inline_svg": inline_svg,
    "data_url": _data_url,
    "quote_url": quote,
}
