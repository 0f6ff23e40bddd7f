"""Films of flights show what happened, where it happened, the right way round."""

import math
from dataclasses import replace
from itertools import pairwise

import av
import numpy as np
import pytest
import torch
from PIL import Image, ImageFont

from wordwing.cli import main
from wordwing.execution.execution import Execution
from wordwing.viz.animation import filmstrip, flight_frames, still_states, write_video
from wordwing.world.layout import Layout
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import Task

# Okabe and Ito's palette as published: blue for what was flown, orange for the demonstration.
BLUE, ORANGE = (0, 114, 178), (230, 159, 0)
ACROSS = 5.0  # metres that the map spans
Box = tuple[slice, slice]


def flight_of(
    path: list[tuple[float, float]],
    yaws: list[float] | None = None,
    setpoints: list[tuple[float, float]] | None = None,
    gold: list[tuple[float, float]] | None = None,
    text: str = "fly on",
) -> Execution:
    """A flight through states that were made up."""
    yaw = np.array(yaws or [0.0] * len(path))
    quaternions = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], axis=-1)
    task = Task(text, Layout(()), path[0], float(yaw[0]), np.array(gold or [(-2.2, -2.2), (-2.1, -2.2)]))
    return Execution.single(
        task=task,
        positions=np.array([(x, y, 0.7) for x, y in path], np.float32),
        quaternions=quaternions.astype(np.float32),
        setpoints=np.array(setpoints or [(0.0, 0.0)] * (len(path) - 1), np.float32).reshape(-1, 2),
        decisions=len(path) - 1,
        ended_by="stop",
        images=[np.full((72, 128, 3), 90, np.uint8) for _ in path],
    )


def frames_of(flight: Execution, ground: int = 200, title: str = "somebody") -> list[np.ndarray]:
    overhead = np.full((600, 600, 3), ground, np.uint8)
    return [np.asarray(frame).astype(int) for frame in flight_frames(flight, overhead, title)]


def changed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two frames differ."""
    return (one != other).any(axis=-1)


def box_of(mask: np.ndarray) -> Box:
    """The smallest rectangle around what is true."""
    rows, columns = np.nonzero(mask)
    return slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)


HOVER = flight_of([(0.0, 0.0)] * 2)


@pytest.fixture(scope="module")
def map_box() -> Box:
    """Where frames show the world from above: what another ground changes."""
    return box_of(changed(frames_of(HOVER, 200)[0], frames_of(HOVER, 60)[0]))


@pytest.fixture(scope="module")
def camera_box() -> Box:
    """Where frames show what the drone sees."""
    other = replace(HOVER, images=((np.full((72, 128, 3), 30, np.uint8),) * 2,))
    return box_of(changed(frames_of(HOVER)[0], frames_of(other)[0]))


def like(frame: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    return np.abs(frame - colour).max(axis=-1) < 12


def on_map(frame: np.ndarray, box: Box, x: float, y: float) -> np.ndarray:
    """The map's pixel at a place in the world: x up, y left."""
    picture = frame[box]
    size = len(picture)
    return picture[int(size * (0.5 - x / ACROSS)), int(size * (0.5 - y / ACROSS))]


def test_the_map_is_square_and_the_camera_image_as_wide_as_the_cameras(map_box, camera_box):
    rows, columns = map_box
    assert rows.stop - rows.start == columns.stop - columns.start == 600
    rows, columns = camera_box
    assert (columns.stop - columns.start) / (rows.stop - rows.start) == pytest.approx(128 / 72)
    assert camera_box[1].start >= map_box[1].stop


BEND = [(-1.5, 0.5), (-0.5, 0.5), (0.5, 0.5), (1.5, 0.5), (1.5, 1.25), (1.5, 2.0)]  # ahead, then left


def test_the_flown_path_is_drawn_where_it_was_flown_x_up_and_y_left(map_box):
    last = frames_of(flight_of(BEND))[-1]
    for place in [(-1.0, 0.5), (0.0, 0.5), (1.0, 0.5), (1.5, 0.9), (1.5, 1.6)]:
        assert like(on_map(last, map_box, *place), BLUE), place
    for mirrored in [(-1.0, -0.5), (1.0, -0.5), (1.5, -1.6), (-1.5, 1.6), (-1.5, -1.6), (0.5, -1.0), (1.6, 1.5)]:
        assert not like(on_map(last, map_box, *mirrored), BLUE), mirrored


def test_the_path_grows_state_by_state(map_box):
    frames = frames_of(flight_of(BEND))
    assert len(frames) == len(BEND)
    for index, frame in enumerate(frames):
        for leg, (start, end) in enumerate(pairwise(BEND)):
            x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
            assert like(on_map(frame, map_box, x, y), BLUE) == (leg < index), (index, leg)


def test_the_demonstration_is_drawn_in_orange_where_it_was_all_the_time(map_box):
    gold = [(0.5, -2.0), (0.5, -1.0), (2.0, -1.0)]
    for frame in frames_of(flight_of([(-2.0, 2.0), (-2.0, 2.0)], gold=gold)):
        for x, y in [(0.5, -1.5), (1.2, -1.0), (2.0, -1.0)]:
            assert like(on_map(frame, map_box, x, y), ORANGE)
            assert not like(on_map(frame, map_box, x, -y), ORANGE)
            assert not like(on_map(frame, map_box, -x, y), ORANGE)


@pytest.mark.parametrize("yaw", [0.0, 0.6, 2.0, -2.5])
def test_the_drone_points_where_it_heads(map_box, yaw):
    frame = frames_of(flight_of([(0.4, -0.3)], [yaw]))[0]
    ahead = np.array([math.cos(yaw), math.sin(yaw)])
    assert like(on_map(frame, map_box, *(np.array([0.4, -0.3]) + 0.09 * ahead)), BLUE)
    assert not like(on_map(frame, map_box, *(np.array([0.4, -0.3]) - 0.09 * ahead)), BLUE)


@pytest.mark.parametrize("yaw", [0.0, 1.0, math.pi / 2, -2.5])
def test_the_ground_is_bright_within_42_degrees_of_the_heading_and_dark_elsewhere(map_box, yaw):
    x, y = 0.3, -0.4
    frame = frames_of(flight_of([(x, y)], [yaw]))[0]
    for bearing in np.radians(np.arange(-180, 180, 5)):
        off = abs(math.remainder(bearing - yaw, math.tau))
        if abs(off - math.radians(42)) > 0.03:
            for away in (0.3, 1.0, 1.9):
                tone = on_map(frame, map_box, x + away * math.cos(bearing), y + away * math.sin(bearing))
                assert np.ptp(tone) == 0
                assert (tone[0] == 200) if off < math.radians(42) else (80 < tone[0] < 150), (bearing, away)


def bar_ends(map_box: Box, forward: float, yaw_rate: float) -> tuple[int, int]:
    """First and last column of the longest blue bar beside the map."""
    frame = frames_of(flight_of([(0.0, 0.0)] * 2, setpoints=[(forward, yaw_rate)]))[0]
    blue = like(frame[:, map_box[1].stop :], BLUE)
    columns = np.flatnonzero(blue[blue.sum(axis=-1).argmax()])
    return int(columns[0]), int(columns[-1])


def test_turning_left_extends_the_bar_to_the_left_and_turning_right_to_the_right(map_box):
    left, right = bar_ends(map_box, 0.0, 0.5), bar_ends(map_box, 0.0, -0.5)
    assert left[1] == pytest.approx(right[0], abs=2)  # both begin in the middle
    assert left[0] < left[1] - 20
    assert right[1] > right[0] + 20
    assert np.ptp(left) == pytest.approx(np.ptp(right), abs=2)
    assert np.ptp(bar_ends(map_box, 0.0, 1.0)) == pytest.approx(2 * np.ptp(left), abs=3)
    assert np.ptp(bar_ends(map_box, 0.0, -0.25)) == pytest.approx(np.ptp(right) / 2, abs=3)


def test_the_forward_bar_grows_to_the_right_with_the_speed(map_box):
    whole = bar_ends(map_box, 0.0, 1.0)[0], bar_ends(map_box, 0.0, -1.0)[1]
    assert bar_ends(map_box, 0.7, 0.0) == pytest.approx(whole, abs=2)
    half = bar_ends(map_box, 0.35, 0.0)
    assert half[0] == pytest.approx(whole[0], abs=2)
    assert np.ptp(half) == pytest.approx(np.ptp(whole) / 2, abs=2)


def test_a_frame_shows_the_setpoint_chosen_at_its_own_state(map_box):
    flight = flight_of([(0.0, 0.0)] * 4, setpoints=[(0.7, 0.0), (0.0, 0.0), (0.35, 0.0)])
    blue = [like(frame[:, map_box[1].stop :], BLUE).sum() for frame in frames_of(flight)]
    assert blue[0] > 1.8 * blue[2] > 1.8 * 5 * blue[1]
    assert blue[3] == blue[1]  # nothing is chosen at the end


def overlap(mask: np.ndarray, box: Box) -> bool:
    return bool(mask[box].any())


LONG = "go between the red barrel and the blue one and then turn left at " + "the very old " * 60 + "tree"


@pytest.mark.parametrize("text", ["turn right at the well", "go", LONG, "x" * 500])
def test_another_text_changes_the_frames_where_the_words_are_and_nowhere_else(map_box, camera_box, text):
    before, after = (
        frames_of(replace(HOVER, tasks=(replace(HOVER.task, instruction=it),)))[0] for it in ("fly on", text)
    )
    words = changed(before, after)
    assert words.sum() > 50
    turning = frames_of(flight_of([(0.0, 0.0)] * 2, setpoints=[(0.5, 1.0)]))[0]
    for elsewhere in (map_box, camera_box, box_of(changed(frames_of(HOVER)[0], turning))):
        assert not overlap(words, elsewhere)
    rows, columns = box_of(words)
    assert columns.start >= map_box[1].stop
    assert columns.stop <= camera_box[1].stop + 6  # as wide as the picture above it
    assert rows.start >= camera_box[0].stop


def test_another_title_changes_only_what_is_above_the_map(map_box, camera_box):
    words = changed(frames_of(HOVER, title="ORACLE")[0], frames_of(HOVER, title="somebody else")[0])
    assert words.any()
    assert box_of(words)[0].stop <= min(map_box[0].start, camera_box[0].start)


def test_the_film_of_a_flight_shows_the_text_that_the_user_typed(tmp_path, capsys):
    strips = []
    layout = tmp_path / "layout.json"
    sample_layout("field", np.random.default_rng(5)).save(layout)
    for name, text in (("a", "fly to the well"), ("b", "go around the big tree twice"), ("c", "fly to the well")):
        main(["fly", text, "--policy", "stop", "--layout", str(layout), "--out", str(tmp_path / name)])
        with Image.open(tmp_path / name / "filmstrip.png") as still:
            strips.append(np.asarray(still.convert("RGB")).astype(int))
    assert np.array_equal(strips[0], strips[2])
    words = changed(strips[0], strips[1])
    height, width = (side // 2 for side in words.shape)
    for row in (0, 1):
        for column in (0, 1):
            quarter = words[row * height : (row + 1) * height, column * width : (column + 1) * width]
            assert quarter.any()
            assert quarter.mean() < 0.05
            assert not quarter[:, : width // 2].any()  # the map, on the left, is the same


def test_the_legend_calls_blue_flown_and_orange_the_demonstration(map_box):
    below = frames_of(HOVER)[0][map_box[0].stop :]
    blue, orange = (np.flatnonzero(like(below, colour).any(axis=0)) for colour in (BLUE, ORANGE))
    ink = np.flatnonzero((below.max(axis=-1) < 100).any(axis=0))
    assert blue.max() < orange.min()
    beside_blue = ink[(ink > blue.max()) & (ink < orange.min())]
    beside_orange = ink[ink > orange.max()]
    length = ImageFont.load_default(15).getlength
    ratio = length("demonstration") / length("flown")
    assert np.ptp(beside_orange) / np.ptp(beside_blue) == pytest.approx(ratio, rel=0.15)


def test_the_camera_image_is_the_one_of_each_state_upright_and_not_mirrored(camera_box):
    images = []
    for shade in (60, 220):
        image = np.zeros((72, 128, 3), np.uint8)
        image[:36, :64], image[:36, 64:] = (shade, 0, 0), (0, shade, 0)
        image[36:, :64], image[36:, 64:] = (0, 0, shade), (shade, shade, 0)
        images.append(image)
    for frame, image in zip(frames_of(replace(HOVER, images=(tuple(images),))), images, strict=True):
        seen = frame[camera_box]
        height, width = seen.shape[:2]
        for row, column in [(0.1, 0.1), (0.1, 0.9), (0.9, 0.1), (0.9, 0.9), (0.45, 0.45), (0.55, 0.55)]:
            there = seen[int(row * height), int(column * width)]
            assert there.tolist() == image[int(row * 72), int(column * 128)].tolist()


def test_a_frame_tells_how_the_flight_ended_once_it_has():
    flight = replace(flight_of([(0.0, 0.0)] * 5), decisions=torch.tensor([2]))
    stopped, exhausted = frames_of(flight), frames_of(replace(flight, ended_by=("steps",)))
    same = [np.array_equal(one, other) for one, other in zip(stopped, exhausted, strict=True)]
    assert same == [True, True, False, False, False]


def plain_frames(count: int) -> list[Image.Image]:
    """Frames in colours that tell their number."""
    return [Image.new("RGB", (160, 120), (25 * number, 255 - 25 * number, 128)) for number in range(count)]


def test_a_filmstrip_goes_from_the_first_frame_to_the_last_row_by_row():
    flight = flight_of([(0.0, 0.0)] * 10)
    frames = plain_frames(10)
    strip = np.asarray(filmstrip([frames[state] for state in still_states(flight)])).astype(int)
    height, width = strip.shape[:2]
    reds = [strip[int(row * height), int(column * width), 0] for row in (0.25, 0.75) for column in (0.25, 0.75)]
    assert reds == [0, 75, 150, 225]


def test_a_film_runs_as_fast_as_the_flight_did_and_its_end_can_be_looked_at(tmp_path):
    write_video(iter(plain_frames(6)), tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as film:
        shown = [(frame.time, int(frame.to_ndarray(format="rgb24")[60, 80, 0])) for frame in film.decode(video=0)]
    for number in range(6):
        time, red = shown[number]
        assert time == pytest.approx(0.3 * number, abs=0.01)  # a state every control period
        assert red == pytest.approx(25 * number, abs=8)
    assert shown[-1][0] - shown[5][0] > 1.0
    assert {red for _time, red in shown[6:]} <= set(range(117, 134))
