"""Curves of training runs show what was logged, when it was logged."""

import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from wordwing.errors import WordwingError
from wordwing.evaluation.report.curves import ProcessLog, TrainingRun, draw_curves, panels, save_curves, smoothed
from wordwing.learning.runtime.logs import MetricLog


def begun(folder: Path, corpora: tuple[str, ...] = ("cage",), gold_distance: float | None = None) -> Path:
    """A run of which nothing is logged yet."""
    folder.mkdir(parents=True)
    settings = {
        "command": "sureal",
        "seed": 3,
        "data": {"corpora": list(corpora), "initial_executions": "demonstrations"},
        "reinforcement": {"gold_distance": gold_distance},
    }
    (folder / "run.json").write_text(json.dumps(settings))
    return folder


def taught(folder: Path) -> None:
    """What Process A logs."""
    book = MetricLog(folder / "log-a")
    for step in (10, 20, 30):
        executions = {"executions/demonstrations_left": 1.0, "executions/length": 9.0}
        losses = {"supervised/trajectory": 4.0, "supervised/goal": 50 / step, "supervised/object": 1.0}
        book.scalars({**losses, **executions, "charts/minutes": step / 10}, step)
    book.close()


def flown(folder: Path) -> None:
    """What Process B logs."""
    book = MetricLog(folder / "log-b")
    for step in (1, 2):
        ends = {"charts/stopped": 0.5, "charts/left_arena": 0.125, "charts/episodic_length": 12.0}
        amounts = {"charts/flights": 48.0 * step, "charts/global_step": 600.0 * step}
        book.scalars({**ends, **amounts, "rewards/stop": -2.0, "charts/minutes": 3.0 + step}, step)
        marks = {"dev/emd": 0.5, "dev/emd_gap": 0.25, "dev/emd_gap_low": 0.125, "dev/emd_gap_high": 0.375}
        book.scalars({**marks, "dev/cage_emd": 0.5, "dev/cage_success": 0.25, "charts/minutes": 3.5 + step}, step)
    book.close()


@pytest.fixture
def whole(tmp_path):
    folder = begun(tmp_path / "sureal-quick")
    taught(folder)
    flown(folder)
    return folder


def found(folder: Path, title: str, label: str):
    [panel] = [one for one in panels(TrainingRun.read(folder)) if one.title.startswith(title)]
    [curve] = [one for one in panel.curves if one.label == label]
    return curve


def test_what_is_logged_without_the_time_lies_between_what_is_logged_with_it():
    rows = [
        {"step": 10, "time": 0.0, "charts/minutes": 1.0},
        {"step": 15, "time": 0.0, "first_look/cage_error": 0.5},
        {"step": 30, "time": 0.0, "charts/minutes": 2.0},
        {"step": 30, "time": 0.0, "charts/minutes": 2.5},
        {"step": 35, "time": 0.0, "first_look/cage_error": 0.25},
    ]
    log = ProcessLog(rows)
    assert log.minutes.tolist() == [1.0, 1.25, 2.0, 2.5, 2.5]
    minutes, values = log.series("first_look/cage_error")
    assert minutes.tolist() == [1.25, 2.5]
    assert values.tolist() == [0.5, 0.25]


def test_without_any_minutes_the_clock_on_the_wall_counts():
    rows = [{"step": 1, "time": 1000.0, "x": 1.0}, {"step": 2, "time": 1090.0, "x": 2.0}]
    assert ProcessLog(rows).minutes.tolist() == [0.0, 1.5]


def test_what_is_not_a_number_leaves_a_gap(tmp_path):
    folder = begun(tmp_path / "run")
    book = MetricLog(folder / "log-a")
    for step, loss in ((1, 2.0), (2, float("nan")), (3, 1.0)):
        book.scalars({"supervised/goal": loss, "charts/minutes": step}, step)
    book.close()
    curve = found(folder, "Visitation losses", "goal")
    assert curve.minutes.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(curve.values, [2.0, np.nan, 1.0])
    draw_curves(folder)


def test_average_lies_above_the_policy_by_the_gap_and_outside_the_band_where_the_gap_is_certain(whole):
    assert found(whole, "EMD", "AVERAGE").values.tolist() == [0.75, 0.75]
    policy = found(whole, "EMD", "policy")
    assert policy.values.tolist() == [0.5, 0.5]
    assert policy.minutes.tolist() == [4.5, 5.5]
    low, high = policy.band
    assert low.tolist() == [0.375, 0.375]
    assert high.tolist() == [0.625, 0.625]


def test_every_flight_ends_somehow(whole, tmp_path):
    labels = ("STOP", "left the arena", "out of steps")
    assert [found(whole, "How flights end", label).values.tolist() for label in labels] == [
        [50] * 2,
        [12.5] * 2,
        [37.5] * 2,
    ]
    astray = begun(tmp_path / "astray", gold_distance=2.0)
    flown(astray)
    assert found(astray, "How flights end", "out of steps, strayed").values.tolist() == [37.5, 37.5]


@pytest.mark.parametrize("name", ["initial_executions", "first"])  # the second is that of version 0.1
def test_flights_are_compared_with_the_demonstrations_only_where_those_are_what_was_there_first(whole, tmp_path, name):
    assert set(found(whole, "Length", "demonstrations, mean").values) == {9.0}
    standing = begun(tmp_path / "standing")
    settings = json.loads((standing / "run.json").read_text())
    settings["data"] = {"corpora": ["cage"], name: "standing"}
    (standing / "run.json").write_text(json.dumps(settings))
    taught(standing)
    flown(standing)
    [panel] = [one for one in panels(TrainingRun.read(standing)) if one.title.startswith("Length")]
    assert [curve.label for curve in panel.curves] == ["flights"]


def test_each_corpus_has_its_curve_with_the_text_and_without(tmp_path):
    folder = begun(tmp_path / "run", corpora=("/data/cage", "/data/yard"))
    book = MetricLog(folder / "log-a")
    names = [f"look_around/{corpus}_within{kind}" for corpus in ("cage", "yard") for kind in ("", "_without_text")]
    book.scalars({"charts/minutes": 2.0, **dict(zip(names, (0.5, 0.25, 0.75, 0.125), strict=True))}, 7)
    book.close()
    run = TrainingRun.read(folder)
    [panel] = [one for one in panels(run) if one.title.startswith("Goals found")]
    assert [(curve.label, curve.values.tolist(), curve.style) for curve in panel.curves] == [
        ("cage", [50.0], "-"),
        ("", [25.0], "--"),
        ("yard", [75.0], "-"),
        ("", [12.5], "--"),
    ]
    assert panel.curves[0].colour == panel.curves[1].colour != panel.curves[2].colour
    assert "cage and yard" in run.heading


def test_the_heading_says_which_run_it_is_and_how_much_it_has_learned_from(whole):
    run = TrainingRun.read(whole)
    assert run.heading == "sureal-quick: wordwing train sureal, cage, seed 3"
    assert run.amounts == "5.5 minutes; Process A: 30 updates; Process B: 96 flights, 1,200 decisions"


def test_the_image_is_1600_pixels_wide_and_shows_every_curve(whole, tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn = []
    plot = Axes.plot

    def watched(self, *args, **kwargs):
        drawn.append(kwargs.get("label"))
        return plot(self, *args, **kwargs)

    monkeypatch.setattr(Axes, "plot", watched)
    save_curves(whole, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width == 1600
        assert len(picture.convert("L").getcolors()) > 50
    shown = [curve.label for panel in panels(TrainingRun.read(whole)) if not panel.stacked for curve in panel.curves]
    assert len(shown) > 8
    assert drawn == shown


def test_the_same_log_gives_the_same_bytes_however_matplotlib_is_configured(whole, tmp_path):
    save_curves(whole, tmp_path / "one.png")
    with matplotlib.rc_context({"font.size": 31, "axes.facecolor": "black", "savefig.dpi": 30}):
        save_curves(whole, tmp_path / "two.png")
        assert matplotlib.rcParams["font.size"] == 31
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    with Image.open(tmp_path / "one.png") as picture:
        assert set(picture.info) <= {"dpi"}, "no date, no program"


def test_a_run_that_has_only_begun_is_drawn_too(tmp_path):
    folder = begun(tmp_path / "stage1-quick")
    taught(folder)
    run = TrainingRun.read(folder)
    assert run.amounts == "3.0 minutes; Process A: 30 updates"
    save_curves(folder, tmp_path / "a" / "curves.png")
    assert (tmp_path / "a" / "curves.png").is_file()


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(WordwingError, match=r"nowhere: this is not a run of wordwing train"):
        TrainingRun.read(tmp_path / "nowhere")
    with pytest.raises(WordwingError, match="nothing has been logged"):
        TrainingRun.read(begun(tmp_path / "early"))
    with pytest.raises(WordwingError, match="nowhere"):
        save_curves(tmp_path / "nowhere", tmp_path / "curves.png")
    assert not (tmp_path / "curves.png").exists()


def test_a_running_mean_keeps_a_straight_line_and_skips_gaps():
    line = np.arange(60.0)
    assert smoothed(line)[3:-3].tolist() == line[3:-3].tolist()
    assert smoothed(line)[0] == 1.5, "of the first four"
    line[30] = np.nan
    assert smoothed(line)[30] == 30.0
    assert smoothed(line)[33] == pytest.approx((31 + 32 + 33 + 34 + 35 + 36) / 6)


def test_names_are_written_as_they_are_not_as_formulas(tmp_path):
    folder = begun(tmp_path / "run$\\bad$", corpora=("a$\\bad$", "cage"))
    book = MetricLog(folder / "log-a")
    names = [f"look_around/{corpus}_within" for corpus in ("a$\\bad$", "cage")]
    book.scalars({"charts/minutes": 2.0, **dict.fromkeys(names, 0.5)}, 7)
    book.close()
    save_curves(folder, tmp_path / "curves.png")


@pytest.mark.parametrize(
    "settings",
    [[], {}, {"data": 3}, {"data": {"corpora": [3], "first": 1}, "reinforcement": {"gold_distance": 1}, "seed": 1}],
)
def test_a_run_that_does_not_tell_what_was_trained_is_refused(tmp_path, settings):
    (tmp_path / "run.json").write_text(json.dumps(settings))
    with pytest.raises(WordwingError, match="does not tell what was trained"):
        TrainingRun.read(tmp_path)
