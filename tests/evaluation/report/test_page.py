"""The page of a report is one whole, safe and legible document that says what was measured."""

import base64
import io
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from small_evaluation import plain_episode
from small_flights import flight, measures
from wordwing.evaluation.report.charts import Chart, charts_of, gap_chart
from wordwing.evaluation.report.gallery import Choice, Example, ExampleFlight
from wordwing.evaluation.report.labels import Origin
from wordwing.evaluation.report.page import Page, flown_rows, inline_svg, render
from wordwing.evaluation.report.summary import flight_table, summarise
from wordwing.evaluation.report.tables import TEMPLATES, Section, Table

SIM = Origin("cage", "generated", "test", "sim")
LAB = SIM._replace(domain="lab")
EVIL = '<script>alert("&")</script>'


def image() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (9, 9, 9)).save(out, "WEBP")
    return out.getvalue()


def flown(system: str, success: bool = True, video: str | None = None, **others) -> ExampleFlight:
    episode = plain_episode(np.zeros((4, 2)), system=system, id="p/0", decisions=2)
    return ExampleFlight(episode, measures(success, **others), image(), video)


def example(instruction: str | None = "fly on", origin: Origin = SIM, *flights: ExampleFlight) -> Example:
    return Example(Choice(origin, "p/0", 1, "failure", "mine"), instruction, flights or (flown("mine"),))


SVG = (
    '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg xmlns="http://www.w3.org/2000/svg"><defs><path id="a" d="M 0 0"/>'
    '<clipPath id="c"><rect/></clipPath></defs><use href="#a"/><g clip-path="url(#c)"/></svg>\n'
)


@cache
def whole() -> Page:
    rows = [flight(name, f"p{k}/0", k > 1) for name in ("average", "mine", "oracle") for k in range(4)]
    rows += [flight("mine", f"p{k}/0-1", judge_path=0.5, judge_goal=0.5) for k in range(4)]
    flights = flight_table(rows)
    summary = summarise(flights)
    return Page(
        "A report",
        "9.9",
        flown_rows(flights, summary.origins),
        [0, 7],
        [Table("t", "One <b>", (), ("a", "b"), (Section("", (("x", "1"),)),))],
        {SIM.title: charts_of(SIM, flights, summary), "again": [Chart("x", "X", "c", "a", SVG)]},
        [("run", b"PNG")],
        [example("fly on", SIM, flown("mine", False, "videos/01 x.mp4"), flown("oracle"))],
    )


class Document(HTMLParser):
    """What is in a page: tags with attributes in order, and whether they are closed in order."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_needs_nothing_but_itself_and_the_videos():
    document = Document(render(whole()))
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in document.tags}
    targets = [
        value
        for tag, attributes in document.tags
        for key, value in attributes.items()
        if key in ("src", "href", "xlink:href", "poster", "data")
    ]
    assert [target for target in targets if not target.startswith(("#", "data:image/"))] == ["videos/01%20x.mp4"]
    assert not re.search(r"@import|url\((?!#)", render(whole()))


def test_the_same_input_gives_the_same_bytes():
    assert render(whole()) == render(whole.__wrapped__())


def test_headings_are_in_order_and_landmarks_are_there_once():
    document = Document(render(whole()))
    ranks = [int(tag[1]) for tag, _ in document.tags if re.fullmatch(r"h[1-6]", tag)]
    assert ranks[0] == 1
    assert ranks.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(ranks))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(document.named(landmark)) == 1
    [html] = document.named("html")
    assert html["lang"] == "en"


def test_ids_are_unique_and_every_link_inside_leads_somewhere():
    text = render(whole())
    document = Document(text)
    ids = Counter(attributes["id"] for _tag, attributes in document.tags if "id" in attributes)
    assert max(ids.values()) == 1
    inside = [
        value[1:]
        for _tag, attributes in document.tags
        for key, value in attributes.items()
        if key in ("href", "xlink:href", "aria-labelledby") and (value or "").startswith("#")
    ]
    inside += re.findall(r"url\(#([^)]+)\)", text)
    assert set(inside) <= set(ids)
    assert len(inside) > 50


def test_two_charts_with_the_same_names_inside_do_not_meet():
    one, two = (inline_svg(Chart(name, "", "", "", SVG)) for name in ("one", "two"))
    assert one.startswith("<svg ")
    assert set(re.findall(r'id="([^"]+)"', one)) == {"one-a", "one-c"}
    assert 'href="#one-a"' in one
    assert "url(#one-c)" in one
    assert not set(re.findall(r'id="([^"]+)"', one)) & set(re.findall(r'id="([^"]+)"', two))


def test_every_image_is_told_in_words():
    document = Document(render(whole()))
    assert len(document.named("img")) == 3
    assert all(len(attributes.get("alt") or "") > 20 for attributes in document.named("img"))
    drawings = [attributes for attributes in document.named("div") if attributes.get("role") == "img"]
    assert len(drawings) == len(document.named("svg"))
    assert all(attributes.get("aria-label") for attributes in drawings)
    assert len(document.named("figure")) == len(document.named("figcaption"))


def test_tables_are_regions_that_can_be_told_apart_and_reached_by_keyboard():
    regions = [entry for entry in Document(render(whole())).named("div") if entry.get("role") == "region"]
    assert [region["aria-label"] for region in regions] == ["Instructions and flights", "One <b>"]
    assert all(region["tabindex"] == "0" for region in regions)


def test_what_a_reader_wants_first_stands_first():
    more = Table("t2", "More", (), ("a",), ())
    page = replace(whole(), more_tables=[more])
    headings = re.findall(r"<h2[^>]*>([^<]+)<", render(page))
    assert headings == ["What was flown", "Tables", "Charts", "Gallery", "Learning curves", "More tables"]


def test_images_are_in_the_page_as_they_were_given():
    sources = [attributes["src"] for attributes in Document(render(whole())).named("img")]
    assert base64.b64decode(sources[0].removeprefix("data:image/webp;base64,")) == image()
    assert base64.b64decode(sources[2].removeprefix("data:image/png;base64,")) == b"PNG"


def test_nothing_that_comes_from_lines_is_markup():
    origin = Origin(EVIL, EVIL, EVIL, "sim")
    flights = flight_table(
        flight(system, "p0/0", corpus=EVIL, text=EVIL, split=EVIL, judge_path=0.5, judge_goal=0.5)
        for system in (EVIL, "average", "oracle")
    )
    choice = Choice(origin, EVIL, 1, "success", EVIL)
    page = Page(
        EVIL,
        EVIL,
        flown_rows(flights, [origin]),
        charts={EVIL: charts_of(origin, flights, summarise(flights))},
        curves=[(EVIL, b"")],
        gallery=[
            Example(choice, EVIL, (flown(EVIL, video=f'videos/{EVIL}".mp4'),)),
            Example(choice, None, (flown(EVIL),)),
        ],
    )
    document = Document(re.sub(r"<!--.*?-->", "", render(page), flags=re.DOTALL))
    assert not document.named("script")
    assert document.text.count(EVIL) > 10
    assert all("onerror" not in attributes for _tag, attributes in document.tags)


def test_a_sentence_that_may_not_be_passed_on_is_not_there_but_its_id_is():
    document = Document(render(Page("t", "1", gallery=[example(None)])))
    assert not document.named("blockquote")
    assert "instruction p/0" in document.text


def test_a_flight_is_described_by_its_metrics():
    page = Page("t", "1", gallery=[example("go", SIM, flown("mine", False, emd=0.456, distance=1.234))])
    text = Document(render(page)).text
    assert "✗ no success" in text
    assert "rests 1.23 m from the goal" in text
    assert "EMD 0.46 m" in text
    assert "stopped after 0.6 s" in text, "two decisions of 0.3 s"
    assert "judge" not in text
    page = Page("t", "1", gallery=[example("go", SIM, flown("mine", judge_path=0.25, judge_goal=1.0))])
    text = Document(render(page)).text
    assert "✓ success" in text
    assert "judge: path 0.25, goal 1.00" in text
    assert "followed" not in text
    assert "believes" not in text
    for done, words in ((True, "✓ followed"), (False, "✗ not followed")):
        page = Page("t", "1", gallery=[example("go", SIM, flown("mine", clauses=2, followed=done))])
        assert words in Document(render(page)).text
    page = Page("t", "1", gallery=[example("go", SIM, flown("mine", last_goal_error=0.311))])
    assert "believes the goal 0.31 m off" in Document(render(page)).text


def test_what_was_flown_is_counted():
    scores = [flight("mine", f"p{k}/0") for k in range(3)] + [flight("stop", f"p{k}/0") for k in range(3)]
    scores += [flight("mine", "p0/0-1"), flight("mine", "p0/0", domain="lab")]
    lab, sim = flown_rows(flight_table(scores), [LAB, SIM])
    assert (lab.origin, lab.systems, lab.instructions, lab.flights) == (LAB, ("mine",), {1: 1}, 1)
    assert (sim.origin, sim.systems, sim.instructions, sim.flights) == (SIM, ("stop", "mine"), {1: 3, 2: 1}, 7)
    text = Document(render(Page("t", "1", [lab, sim]))).text
    assert "8 flights by 2 systems: STOP, mine." in text


@pytest.mark.parametrize(
    ("origin", "said", "not_said"),
    [
        (SIM, ["by a program, not by people"], ["written by people", "stand-in"]),
        (LAB, ["by a program, not by people", "simulated stand-in", "no physical drone flew"], ["written by people"]),
        (SIM._replace(text="human"), ["written by people"], ["program", "stand-in"]),
    ],
)
def test_generated_language_human_language_and_the_stand_in_are_named_as_what_they_are(origin, said, not_said):
    keys = {"text": origin.text, "domain": origin.domain}
    text = Document(render(Page("t", "1", flown_rows(flight_table([flight("mine", "p0/0", **keys)]), [origin])))).text
    assert all(words in text for words in said)
    assert not any(words in text for words in not_said)


def test_an_empty_report_is_a_page_too():
    document = Document(render(Page("Nothing", "1")))
    assert not document.named("section")


def test_scores_of_the_judge_are_never_called_peoples():
    flights = flight_table(flight("mine", name, judge_path=0.5, judge_goal=0.9) for name in ("p0/0", "p0/0-1"))
    charts = {chart.name: chart for chart in charts_of(SIM, flights, summarise(flights))}
    names = [f"cage-generated-test-sim-{kind}" for kind in ("visibility", "judge-2", "judge-1", "distance")]
    assert list(charts) == names
    for chart in (charts[names[1]], charts[names[2]]):
        assert "automatic judge" in chart.title
        assert "no person scored" in chart.caption
    assert "n = 1" in charts[names[1]].svg


def test_the_papers_gap_stands_beside_ours_only_where_there_is_one(monkeypatch):
    drawn = []

    def watched(shares, papers):
        drawn.append({metric: own["mean"].tolist() for metric, own in papers.groupby("metric")})
        return gap_chart(shares, papers)

    monkeypatch.setattr("wordwing.evaluation.report.charts.gap_chart", watched)

    def caption(corpus: str, split: str) -> str:
        keys = {"corpus": corpus, "split": split}
        scores = [flight("average", f"p{k}/0", False, 0.6, **keys) for k in range(4)]
        scores += [flight("pvn2-sureal", f"p{k}/0", k < 2, 0.4, **keys) for k in range(4)]
        scores += [flight("oracle", f"p{k}/0", True, 0.2, **keys) for k in range(4)]
        origin = Origin(corpus, "generated", split, "sim")
        flights = flight_table(scores)
        [chart] = [one for one in charts_of(origin, flights, summarise(flights)) if one.name.endswith("gap")]
        assert "PVN2-SuReAL 50 %" in chart.alt
        assert ("the paper's" in chart.svg) == ("paper" in chart.caption)
        return chart.caption

    assert "REAL" in caption("cage", "test")
    assert drawn[0]["success"] == [pytest.approx((53.3 - 29.5) / (100.0 - 29.5))]
    assert drawn[0]["emd"] == [pytest.approx((0.53 - 0.30) / (0.53 - 0.13))]
    assert "LANI" in caption("field", "test")
    assert "paper" not in caption("cage", "dev")
    assert "paper" not in caption("mine", "test")


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_can_be_read_in_light_and_dark():
    style = TEMPLATES.loader.get_source(TEMPLATES, "style.css")[0]
    palettes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in style.split("@media (prefers")[:2]]
    assert len(palettes) == 2
    for palette in palettes:
        for ink in ("ink", "soft", "link", "yes", "no"):
            for paper in ("paper", "band"):
                light, dark = sorted((luminance(palette[ink]), luminance(palette[paper])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)
