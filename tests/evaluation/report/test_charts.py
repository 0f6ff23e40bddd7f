"""Charts show the numbers that they were given, where the axes say."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise, product

import matplotlib
import numpy as np
import pandas as pd
import pytest

from wordwing.evaluation.report.bootstrap import Estimate
from wordwing.evaluation.report.charts import (
    GOALS,
    LIKERT,
    TITLED,
    distance_chart,
    gap_chart,
    gap_limits,
    judge_chart,
    plain_style,
    score_shares,
    shares_within,
    system_looks,
    visibility_chart,
)
from wordwing.evaluation.report.summary import GAP_METRICS

BLUE, VERMILLION = "#0072b2", "#d55e00"
SVG = "{http://www.w3.org/2000/svg}"


def style_of(element: ET.Element) -> dict[str, str]:
    pairs = (part.split(":") for part in element.get("style", "").split(";") if ":" in part)
    return {key.strip(): value.strip() for key, value in pairs}


def points(element: ET.Element) -> np.ndarray:
    """[k, 2] corners of a path."""
    return np.array(re.findall(r"[ML] (\S+) (\S+)", element.get("d", "")), float)


def axes_of(svg: str) -> list[ET.Element]:
    groups = ET.fromstring(svg).iter(f"{SVG}g")
    return [group for group in groups if re.fullmatch(r"axes_\d+", group.get("id", ""))]


def marks(axes: ET.Element, colour: str) -> np.ndarray:
    """[k, 2] places of marks that are filled with a colour."""
    uses = [use for use in axes.iter(f"{SVG}use") if style_of(use).get("fill") == colour]
    return np.array([(float(use.get("x")), float(use.get("y"))) for use in uses])


def lines(axes: ET.Element, colour: str) -> list[np.ndarray]:
    found = [path for path in axes.iter(f"{SVG}path") if style_of(path).get("stroke") == colour]
    return [points(path) for path in found if len(points(path)) and style_of(path).get("fill") == "none"]


def sure(mean: float, n: int = 10) -> Estimate:
    return Estimate(mean, mean - 0.1, mean + 0.1, n)


def estimates(found: dict[str, Estimate], **columns: tuple) -> pd.DataFrame:
    """A table of estimates of one segment: each of them for every combination of other columns' values."""
    keys = [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]
    rows = [
        {"segments": 1, "system": system, **key, **entry._asdict()} for key in keys for system, entry in found.items()
    ]
    table = pd.DataFrame(rows, columns=["segments", "system", *columns, *Estimate._fields])
    return table.astype({"mean": float, "low": float, "high": float})


def same(found: dict[str, Estimate]) -> pd.DataFrame:
    return estimates(found, metric=GAP_METRICS, goal=tuple(GOALS))


def papers(**shares: float) -> pd.DataFrame:
    """The paper's shares of the gap in success, by system with _ for -."""
    rows = [(1, system.replace("_", "-"), "success", share) for system, share in shares.items()]
    return pd.DataFrame(rows, columns=["segments", "system", "metric", "mean"])


def judged(**scores: tuple[list[float], list[float]]) -> pd.DataFrame:
    """Flights with the judge's path and goal scores, by system."""
    rows = [(system, *pair) for system, both in scores.items() for pair in zip(*both, strict=True)]
    return pd.DataFrame(rows, columns=["system", "judge_path", "judge_goal"])


def rested(distances: dict[str, list[float]]) -> pd.DataFrame:
    """Flights of one segment with the distances at which they rest, by system."""
    rows = [(1, system, distance) for system, own in distances.items() for distance in own]
    return pd.DataFrame(rows, columns=["segments", "system", "distance"])


def test_the_same_input_gives_the_same_bytes_however_matplotlib_is_configured():
    drawn = judge_chart(judged(A=([0.1, 0.5], [0.9, 1.0])))
    with matplotlib.rc_context({"font.size": 31, "svg.hashsalt": None, "axes.facecolor": "black"}):
        assert judge_chart(judged(A=([0.1, 0.5], [0.9, 1.0]))) == drawn
        assert matplotlib.rcParams["font.size"] == 31
    assert "dc:date" not in drawn
    assert "<metadata>" not in drawn


def test_a_style_is_left_behind():
    before = dict(matplotlib.rcParams)
    with plain_style({"font.size": 3}):
        assert matplotlib.rcParams["font.size"] == 3
    assert dict(matplotlib.rcParams) == before


def test_dots_lie_in_proportion_to_the_means_one_row_for_each_system():
    means = {"low": sure(0.2), "middle": sure(0.4), "high": sure(0.8)}
    axes = axes_of(visibility_chart(same(means)))
    assert len(axes) == 2, "success and EMD"
    for panel in axes:
        blue = marks(panel, BLUE)
        assert len(blue) == len(marks(panel, VERMILLION)) == 3
        first, second = np.diff(blue[:, 0])
        assert second == pytest.approx(2 * first, rel=1e-3)
        assert np.diff(blue[:, 1])[0] == pytest.approx(np.diff(blue[:, 1])[1], rel=1e-3)
        assert (np.diff(blue[:, 1]) > 0).all(), "the first system is at the top"


def test_whiskers_reach_from_the_lower_to_the_upper_end():
    means = {"a": Estimate(0.5, 0.2, 0.6, 9), "b": Estimate(0.1, 0.1, 0.1, 9)}
    [success, _emd] = axes_of(visibility_chart(same(means).assign(segments=2)))
    unit = np.diff(marks(success, BLUE)[:, 0])[0] / -0.4  # pixels for all of it
    whisker = next(line for line in lines(success, BLUE) if np.ptp(line[:, 0]) > 1)
    left, right = sorted(whisker[:, 0])
    assert right - left == pytest.approx(0.4 * unit, rel=1e-3)
    assert marks(success, BLUE)[0, 0] - left == pytest.approx(0.3 * unit, rel=1e-3)


def test_what_is_not_known_is_not_drawn_and_a_mean_without_an_interval_is_a_dot():
    means = {"nothing": Estimate(None, None, None, 0), "alone": Estimate(0.5, None, None, 1), "nan": sure(float("nan"))}
    [success, _emd] = axes_of(visibility_chart(same(means)))
    assert len(marks(success, BLUE)) == 1
    assert "nan" not in re.sub(r"<!--.*?-->", "", visibility_chart(same(means)))


def test_the_papers_marks_are_hollow_and_only_where_ours_are():
    ours = estimates({"pvn-bc": sure(0.5), "mine": sure(0.25)}, metric=GAP_METRICS)
    chart = gap_chart(ours, papers(pvn_bc=0.75, pvn2_bc=0.1))
    [panel] = axes_of(chart)
    uses = [use for use in panel.iter(f"{SVG}use") if style_of(use).get("stroke") == BLUE]
    hollow = [use for use in uses if style_of(use).get("fill") == "#ffffff"]
    assert len(hollow) == 1
    half, quarter = (marks(panel, BLUE)[place, 0] for place in (0, 1))
    assert float(hollow[0].get("x")) == pytest.approx(half + (half - quarter), rel=1e-3)
    assert "the paper's" in chart
    assert "the paper's" not in gap_chart(ours, papers())


def test_the_axis_of_gaps_holds_all_means_but_not_endless_intervals():
    wide, far = Estimate(-0.73, -3.23, 1.84, 2), Estimate(2.5, 2.4, 9.0, 2)
    assert gap_limits(estimates({"a": sure(0.5)}), papers()) == pytest.approx((-8, 108))
    assert gap_limits(estimates({"a": wide}), papers()) == pytest.approx((-108, 192))
    both = estimates({"a": far, "b": Estimate(None, None, None, 0)})
    assert gap_limits(both, papers(a=-1.5)) == pytest.approx((-158, 258))


def test_scores_fall_into_five_equal_bins():
    assert score_shares([0.0, 0.19, 0.2, 0.5, 0.79, 0.8, 1.0, 1.0]).tolist() == [
        2 / 8,
        1 / 8,
        1 / 8,
        1 / 8,
        3 / 8,
    ]
    assert score_shares([]).tolist() == [0] * 5


def test_bars_of_scores_lie_with_the_middle_of_three_at_zero():
    flights = judged(good=([0.5, 0.5, 0.9, 0.9, 0.9], [0.9] * 5), bad=([0.1, 0.3, 0.3, 0.5, 0.7], [0.1] * 5))
    path, _goal = axes_of(judge_chart(flights))
    bars = {}
    for score, colour in enumerate(LIKERT, start=1):
        fill = "#" + "".join(f"{part:02x}" for part in colour)
        shapes = [shape for shape in path.iter(f"{SVG}path") if style_of(shape).get("fill") == fill]
        bars[score] = [(points(shape)[:, 0].min(), points(shape)[:, 0].max()) for shape in shapes]
    middles = [sum(bar) / 2 for bar in bars[3]]
    zero = next(line[0, 0] for line in lines(path, "#4c4c4c") if len(line) == 2 and np.ptp(line[:, 0]) == 0)
    assert middles == pytest.approx([zero, zero], abs=0.01)
    widths = {score: [right - left for left, right in shapes] for score, shapes in bars.items()}
    whole = widths[3][0] / 0.4
    assert [widths[score][0] / whole for score in range(1, 6)] == pytest.approx([0, 0, 0.4, 0, 0.6], abs=1e-3)
    assert [widths[score][1] / whole for score in range(1, 6)] == pytest.approx([0.2, 0.4, 0.2, 0.2, 0], abs=1e-3)
    assert all(bars[a][1][1] == pytest.approx(bars[b][1][0], abs=0.01) for a, b in pairwise(range(1, 6)))


def test_shares_within_a_distance_count_flights_that_are_nearer(rng):
    distances = [0.47, 0.2, *rng.uniform(0, 3, 30).tolist()]
    reaches = np.array([0.0, 0.2, 0.47, 0.48, 2.0])
    expected = [sum(one < reach for one in distances) / len(distances) for reach in reaches]
    assert shares_within(distances, reaches).tolist() == expected
    assert shares_within([], reaches).tolist() == [0.0] * 5


def test_a_line_of_distances_climbs_to_the_share_that_ends_within_two_metres():
    [panel] = axes_of(distance_chart(rested({"average": [0.5, 1.0, 1.5, 9.0], "oracle": [0.1] * 4})))
    sky = "#" + "".join(f"{part:02x}" for part in TITLED["AVERAGE"])
    [average] = [line for line in lines(panel, sky) if len(line) > 3]
    [oracle] = [line for line in lines(panel, "#202020") if len(line) > 3]
    bottom, top = average[0, 1], oracle[-1, 1]
    assert (bottom - average[-1, 1]) / (bottom - top) == pytest.approx(0.75, abs=1e-3)
    halfway = average[np.argmin(np.abs(average[:, 0] - (average[0, 0] + average[-1, 0]) * 0.5 - 2)), 1]
    assert (bottom - halfway) / (bottom - top) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("name", ["run", "pvn2-sureal-without-this", "a-policy-of-forty-letters-in-a-folder"])
def test_a_legend_of_many_systems_stays_inside_the_image(name):
    chart = distance_chart(rested({f"{name}-{number:02}": [0.5] for number in range(11)}))
    [legend] = [group for group in ET.fromstring(chart).iter(f"{SVG}g") if group.get("id") == "legend_1"]
    handles = [
        found
        for path in legend.iter(f"{SVG}path")
        if path.get("style", "").startswith("fill: none") and len(found := points(path))
    ]
    assert len(handles) == 11
    assert min(handle[:, 0].min() for handle in handles) >= 0, "it is centred: whatever is too wide leaves both sides"


def test_no_two_systems_look_the_same():
    names = [*TITLED, *(f"policy-{number}" for number in range(9))]
    looks = system_looks(names)
    assert len(set(looks)) == len(names)
    assert looks[: len(TITLED)] == system_looks(list(TITLED)), "the paper's systems look as they always do"


def test_names_are_written_as_they_are_not_as_formulas_or_markup():
    name = "a$\\bad$<b>--></svg>"
    for chart in (
        judge_chart(judged(**{name: ([0.5], [0.5])})),
        distance_chart(rested({name: [0.5]})),
        gap_chart(estimates({name: sure(0.5)}, metric=GAP_METRICS), papers()),
        visibility_chart(same({name: sure(0.5)})),
    ):
        assert ET.fromstring(chart).tag == f"{SVG}svg"
        assert "<b>" not in re.sub(r"<!--.*?-->", "", chart)
