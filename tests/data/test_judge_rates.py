"""The judge's rates on flights whose outcome is plain to see."""

import math
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.stats import binomtest

from wordwing.commands.statistics import judge as judge_command, opened
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.judge_rates import Rate, judge_rates, mirror, mirrored_scores
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause
from wordwing.language.meaning.flown_path import Track
from wordwing.language.meaning.judge import judge_track, sections
from wordwing.language.meaning.scores import score
from wordwing.world.layout import Layout, Placement

ARENA = Layout((Placement("Barrel", 0.0, 0.0), Placement("Rock", 1.5, 1.5)))
PAST = np.array([[-1.0, -0.5], [0.7, -0.5]])
"""Along x, with the barrel on the left."""


def flight(path: object, yaw: float, *meaning: Clause) -> Segment:
    path = np.asarray(path, float)
    return Segment("fly", (path[0, 0], path[0, 1]), yaw, path, meaning)


def arc(radius: float, begin: float, sweep: float) -> np.ndarray:
    """A part of a circle around the barrel; degrees."""
    angles = np.radians(begin + np.linspace(0, sweep, 60))
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


@pytest.mark.parametrize(("hits", "total"), [(0, 5), (3, 7), (98, 100), (40, 40)])
def test_intervals_are_wilsons(hits, total):
    expected = binomtest(hits, total).proportion_ci(0.95, "wilson")
    assert Rate(hits, total).interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_nothing_is_known_about_nothing():
    assert math.isnan(Rate().share)
    assert Rate().interval == (0, 1)
    assert Rate().to_json()["share"] is None


def test_a_mirror_keeps_its_line_and_distances_and_swaps_sides(rng):
    for _ in range(20):
        path, at, line = rng.normal(size=(5, 2)), rng.normal(size=2), rng.uniform(-4, 4)
        mirrored, yaw = mirror(path, 0.3, at, line)
        # By complex numbers: turned so that the line is real, conjugated, turned back.
        z = np.conj((path - at) @ [1, 1j] * np.exp(-1j * line)) * np.exp(1j * line)
        assert mirrored == pytest.approx(np.stack([z.real, z.imag], axis=-1) + at)
        assert math.remainder(yaw - line + (0.3 - line), 2 * math.pi) == pytest.approx(0, abs=1e-9)


def test_sections_are_the_judges_own(rng):
    for _ in range(30):
        size = int(rng.integers(1, 9))
        scores = [rng.random((size, size)) for _ in range(int(rng.integers(1, 5)))]
        found = sections(scores)
        assert tuple(entry[bounds] for entry, bounds in zip(scores, found, strict=True)) == judge_track(scores).clauses
        assert found[0][0] == 0
        assert found[-1][1] == size - 1


HANDED = {
    "turn": flight([[0, -1], [0, 0.5]], 0.0, Clause("turn", side="left", amount=math.pi / 2), Clause("straight")),
    "curve": flight(arc(1, -90, 90), 0.0, Clause("curve", side="left")),
    "pass": flight(PAST, 0.0, Clause("pass", 0, side="left")),
    "circle": flight(arc(0.6, -90, 180), 0.0, Clause("circle", 0, side="left", amount=math.pi)),
    "hug": flight(arc(0.5, 90, -120), 0.0, Clause("hug", 0, side="right")),
    "reach_side": flight([[-1.5, 0], [0, 0.5]], 0.0, Clause("reach_side", 0, side="left")),
    "abeam": flight([[-1, -0.5], [0, -0.5]], 0.0, Clause("abeam", 0, side="left")),
    "abeam a fence": flight([[1.9, 1], [1.9, 0]], -math.pi / 2, Clause("abeam", "red", side="left")),
    "along": flight([[1.9, 1], [1.9, -1]], -math.pi / 2, Clause("along", "red", side="left")),
}


@pytest.mark.parametrize("name", HANDED)
def test_a_handed_clause_is_done_and_in_the_mirror_not_at_all(name):
    segment = HANDED[name]
    track = Track(segment.path, segment.start_yaw, ARENA)
    assert judge_track([score(c, track, first=k == 0) for k, c in enumerate(segment.meaning)]).score == 1
    (_, mirrored), *others = mirrored_scores(segment, ARENA)
    assert mirrored == 0
    assert [value for _, value in others] == [None] * len(others)


def test_front_and_behind_have_no_mirror():
    segment = flight([[-1.5, 0], [-0.5, 0]], 0.0, Clause("reach_side", 0, side="front"))
    assert list(mirrored_scores(segment, ARENA)) == [(segment.meaning[0], None)]


def test_a_flight_that_sways_to_both_sides_is_mirrored_as_a_whole():
    loop = np.concatenate([arc(0.5, -100, 110), arc(0.5, 10, -40)])
    (_, mirrored), *_ = mirrored_scores(flight(loop, 0.0, Clause("pass", 0, side="left")), ARENA)
    assert mirrored == 0


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    """One paragraph: past the barrel, then back past it, then a sentence that its path does not follow."""
    back = [[0.7, -0.5], [0.7, 0.5], [-1.0, 0.5]]
    segments = (
        flight(PAST, 0.0, Clause("pass", 0, side="left")),
        flight(back, math.pi / 2, Clause("pass", 0, side="left"), Clause("face", "blue")),
        flight([[-1.0, 0.5], [-1.6, 0.5]], math.pi, Clause("reach_fence", "red")),
    )
    alone = Paragraph("alone", "dev", "other", (flight(PAST, 0.0, Clause("pass", 0, side="left")),))
    paragraphs = [Paragraph("three", "dev", "arena", segments), alone]
    source = Source("cage", "generated", 0, "by hand")
    layouts = {"arena": ARENA, "other": ARENA}
    return write_dataset(tmp_path_factory.mktemp("data") / "mini", source, layouts, paragraphs)


def test_rates_are_those_counted_by_hand(dataset):
    rates = judge_rates(dataset, "dev")
    assert (rates[1].gold.hits, rates[1].gold.total) == (3, 4)
    assert rates[1].missed == ["three/2"]
    # The lonely paragraph has no other path in its layout.
    assert (rates[1].another.total, rates[2].another.total) == (3, 2)
    assert {kind: (rate.hits, rate.total) for kind, rate in rates[1].mirrored.items()} == {"pass": (3, 3)}
    assert (rates[2].gold.hits, rates[2].gold.total) == (1, 2)
    assert rates[2].missed == ["three/1-2"]
    assert rates[2].all_mirrored.total == 3


def test_another_path_is_flown_with_its_own_heading(tmp_path):
    turn = (Clause("turn", side="left", amount=math.pi / 2), Clause("straight"))
    paths = {"a": ([[0, 0], [0, 1]], 0.0), "b": ([[1, 1], [0, 1]], math.pi / 2)}
    # Both turn left by a quarter: each follows the other's instruction, though their headings differ.
    paragraphs = [Paragraph(name, "dev", "arena", (flight(*entry, *turn),)) for name, entry in paths.items()]
    data = write_dataset(tmp_path / "data", Source("cage", "generated", 0, ""), {"arena": ARENA}, paragraphs)
    assert judge_rates(data, "dev")[1].another.hits == 0


def test_the_seed_chooses_the_other_path_and_nothing_else(dataset):
    runs = [judge_rates(dataset, "dev", seed) for seed in (0, 0, *range(1, 12))]
    assert runs[0] == runs[1]
    assert all(run[1].gold == runs[0][1].gold for run in runs)
    assert len({run[1].another.hits for run in runs}) > 1


def test_text_without_meanings_cannot_judge_the_judge(tmp_path):
    paragraphs = [Paragraph("a", "dev", "arena", (Segment("fly", (-1.0, -0.5), 0.0, PAST),))]
    data = write_dataset(tmp_path / "data", Source("x", "human", 0, ""), {"arena": ARENA}, paragraphs)
    with pytest.raises(WordwingError, match="no meaning is known"):
        judge_rates(data, "dev")


def test_the_command_prints_each_rate_with_its_number(dataset, tmp_path, capsys):
    judge_command(dataset.folder, json=tmp_path / "rates.json")
    printed = capsys.readouterr().out
    [row] = [line for line in printed.splitlines() if "demonstrations accepted" in line]
    assert row.split() == ["demonstrations", "accepted", "75.0", "30.1–95.4", "4", "50.0", "9.5–90.5", "2", "98"]
    assert '"n": 4' in (tmp_path / "rates.json").read_text()


def test_nothing_is_cut_off_on_a_narrow_terminal(dataset, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    judge_command(dataset.folder)
    assert "…" not in capsys.readouterr().out


def test_a_dataset_is_named_by_its_folder_or_as_a_corpus_and_not_both(dataset):
    assert opened(dataset.folder, None).name == "cage"
    for folder, corpus in ((None, None), (dataset.folder, "cage")):
        with pytest.raises(WordwingError, match="either its folder or --corpus"):
            opened(folder, corpus)
    with pytest.raises(WordwingError, match="there is no corpus"):
        opened(None, "lani")


def test_a_corpus_that_is_built_first_shows_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path))
    bars: list[tuple[str, int]] = []
    ticked: list[int] = []

    @contextmanager
    def bar(title: str, total: int, unit: str):
        bars.append((title, total))
        yield ticked.append

    def build(name, seed, tick):
        tick(7)
        return f"{name} {seed}"

    monkeypatch.setattr("wordwing.commands.statistics.bar", bar)
    monkeypatch.setattr("wordwing.data.corpora.corpus", build)
    assert opened(None, "cage", 3) == "cage 3"
    assert (bars, ticked) == ([("building cage", 698 + 150 + 149)], [7])
