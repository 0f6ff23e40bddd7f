"""Belief videos: what is believed is shown where it lies in the world, and colours mean what they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from wordwing.execution.execution import Execution
from wordwing.frames import Pose
from wordwing.language.text_checks import WordIssue
from wordwing.model.ego import EgoView
from wordwing.model.policy import Beliefs
from wordwing.model.stage2 import Control
from wordwing.model.visitation import Scores, Visitation
from wordwing.viz.animation import still_states
from wordwing.viz.belief_maps import FeatureColours, from_oklab, glowing, ramp, to_oklab
from wordwing.viz.belief_video import (
    EDGE,
    FEATURES,
    GOAL,
    GROUNDING,
    MASKS,
    OUTSIDE,
    SEEN,
    SEMANTIC_MAP,
    TRACKS,
    TRAJECTORY,
    UNOBSERVED,
    belief_frames,
    belief_strip,
)
from wordwing.viz.drawing import FLOWN, GOLD, map_pixels
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

# Okabe and Ito's palette as published.
BLUE, GREEN, VERMILLION = (0, 114, 178), (0, 158, 115), (213, 94, 0)
SKY, YELLOW = (86, 180, 233), (240, 228, 66)
HALF, CELL, ACROSS = 4.7, 4.7 / 32, 5.0  # metres: half a map, a cell, an overhead view
FAR = (2.2, 2.2)  # where the drone and its path hide nothing


def belief(**parts: object) -> Beliefs:
    """Of a drone that has seen the whole arena, wants to stay in no place, and knows it."""
    flat = torch.full((1, 64, 64), 1 / 4096)
    everywhere = torch.ones(1, 64, 64, dtype=torch.bool)
    made = Beliefs(
        pose=Pose.level(torch.zeros(1, 2), torch.zeros(1)),
        image_features=torch.zeros(1, 32, 18, 32),
        semantic_map=torch.ones(1, 32, 64, 64),
        grounding_map=torch.ones(1, 3, 64, 64),
        in_view=everywhere,
        observed=everywhere,
        arena=everywhere,
        boundary=~everywhere,
        scores=Scores(torch.zeros(1, 2, 64, 64), torch.zeros(1, 2)),
        visitation=Visitation(flat, flat, torch.zeros(1, 2)),
        view=EgoView(torch.zeros(1, 2, 16, 16), torch.zeros(1, 4, 24, 24), torch.zeros(1, 2)),
        control=Control(torch.zeros(1, 2), torch.ones(1, 2), torch.full((1,), -3.0)),
    )
    return replace(made, **parts)


def flight_of(beliefs: list[Beliefs], start=(*FAR, 0.0), states: int | None = None, **parts: object) -> Execution:
    """A drone that hovers where it starts (x, y, yaw), one decision for each belief and then some states of rest."""
    x, y, yaw = start
    count = states or len(beliefs)
    made = {
        "task": Task("fly on", Layout(()), (x, y), yaw, np.array([(-2.2, -2.2), (-2.1, -2.2)])),
        "positions": np.array([(x, y, 0.7)] * count, np.float32),
        "quaternions": np.array([(math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))] * count, np.float32),
        "setpoints": np.zeros((count - 1, 2), np.float32),
        "decisions": len(beliefs) - 1,
        "ended_by": "stop",
        "images": [np.full((72, 128, 3), 90, np.uint8)] * count,
        "beliefs": beliefs,
    }
    return Execution.single(**{**made, **parts})


def frames_of(flight: Execution, ground: int = 200, **words: object) -> list[np.ndarray]:
    overhead = np.full((600, 600, 3), ground, np.uint8)
    return [np.asarray(frame).astype(int) for frame in belief_frames(flight, overhead, "somebody", **words)]


def frame_of(made: Beliefs, **words: object) -> np.ndarray:
    return frames_of(flight_of([made, made]), **words)[0]


def panel(frame: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray:
    left, top, width, height = box
    return frame[top : top + height, left : left + width]


def like(picture: np.ndarray, colour: tuple[int, int, int], within: int = 12) -> np.ndarray:
    return np.abs(picture - colour).max(axis=-1) <= within


def cell_at(x: float, y: float, start: tuple[float, float, float]) -> tuple[tuple[int, int], tuple[float, float]]:
    """Row and column of the map's cell around a place in the world, and where in the world its centre lies."""
    cos, sin = math.cos(start[2]), math.sin(start[2])
    dx, dy = x - start[0], y - start[1]
    row, column = (int((HALF - along) / CELL) for along in (cos * dx + sin * dy, cos * dy - sin * dx))
    ahead, left = HALF - (row + 0.5) * CELL, HALF - (column + 0.5) * CELL
    return (row, column), (start[0] + cos * ahead - sin * left, start[1] + sin * ahead + cos * left)


def on_map(box: tuple[int, int, int, int], x: float, y: float) -> tuple[float, float]:
    """Row and column of a place in the world on a panel: x up, y left."""
    return box[3] * (0.5 - x / ACROSS), box[2] * (0.5 - y / ACROSS)


def middle(mask: np.ndarray) -> tuple[float, float]:
    rows, columns = np.nonzero(mask)
    return rows.mean() + 0.5, columns.mean() + 0.5


STARTS = [(-2.0, -2.0, 0.3), (1.9, -1.8, 2.2), (-1.0, 2.0, -1.5), (0.5, 0.5, -2.9)]


@pytest.mark.parametrize(
    ("start", "place"), zip(STARTS, [(1.4, 1.2), (-0.6, 0.4), (0.3, -1.7), (2.1, -0.9)], strict=True)
)
def test_a_distribution_in_one_cell_is_shown_at_that_cell_of_the_world(start, place):
    cell, centre = cell_at(*place, start)
    nothing, one = torch.zeros(2, 1, 64, 64)
    one[0, *cell] = 1.0
    bare, passing, stopping = (
        frames_of(flight_of([belief(visitation=Visitation(*maps, torch.zeros(1, 2)))], start))[0]
        for maps in ((nothing, nothing), (one, nothing), (nothing, one))
    )
    for frame, box, other, colour in ((passing, TRAJECTORY, GOAL, SKY), (stopping, GOAL, TRAJECTORY, YELLOW)):
        glow = np.abs(panel(frame, box) - panel(bare, box)).max(axis=-1) > 0
        assert middle(like(panel(frame, box), colour, within=40) & glow) == pytest.approx(on_map(box, *centre), abs=1.5)
        assert np.array_equal(panel(frame, other), panel(bare, other))


@pytest.mark.parametrize("start", STARTS)
def test_a_cell_of_every_map_is_shown_at_that_cell_of_the_world(start):
    cell, centre = cell_at(-1.2, 0.7, start)
    features, grounded, observed = torch.ones(1, 32, 64, 64), torch.ones(1, 3, 64, 64), torch.zeros(1, 64, 64)
    features[0, :, *cell] = torch.linspace(-5, 5, 32)
    grounded[0, :, *cell] = torch.tensor([3.0, -2.0, 1.0])
    observed[0, *cell] = 1
    made = belief(semantic_map=features, grounding_map=grounded, observed=observed.bool())
    plain = belief(observed=torch.zeros(1, 64, 64, dtype=torch.bool))
    frame, before = (frames_of(flight_of([each], start))[0] for each in (made, plain))
    sides = {}
    for box in (SEMANTIC_MAP, GROUNDING, MASKS):
        shown = np.abs(panel(frame, box) - panel(before, box)).max(axis=-1) > 60
        assert middle(shown) == pytest.approx(on_map(box, *centre), abs=1.0), box
        sides[box] = math.sqrt(shown.sum())
    wanted = CELL * SEMANTIC_MAP.width / ACROSS  # each cell as large as it is, with its own edges
    assert list(sides.values()) == pytest.approx([wanted] * 3, abs=1.0)
    row, column = (int(at) for at in on_map(MASKS, *centre))
    red, green, blue = panel(frame, MASKS)[row, column]
    assert red > blue > green + 30


def test_zero_leaves_the_dimmed_world_and_the_peak_has_the_full_colour():
    ground = np.full((2, 3, 3), 100, np.uint8)
    amounts = np.array([[0.0, 1.0, 0.5]] * 2)
    picture = glowing(ground, np.zeros((2, 3, 1)), amounts, YELLOW)
    assert picture[0, 0].tolist() == [100, 100, 100]
    assert picture[0, 1].tolist() == list(YELLOW)
    assert 60 < picture[0, 2].mean() < np.mean(YELLOW)
    nothing = torch.zeros(1, 64, 64)
    dark = panel(frame_of(belief(visitation=Visitation(nothing, nothing, torch.ones(1, 2)))), GOAL)
    assert np.ptp(dark[300:]) == 0
    assert 80 <= dark[400, 100, 0] <= 140


def test_a_landmark_can_be_made_out_under_a_distribution():
    everywhere = torch.full((1, 64, 64), 1 / 4096)
    ground = np.full((600, 600, 3), 110, np.uint8)
    ground[390:420, 90:120] = 190  # a landmark of 25 cm
    flight = flight_of([belief(visitation=Visitation(everywhere, everywhere, torch.zeros(1, 2)))])
    [frame] = belief_frames(flight, ground, "somebody")
    shown = panel(np.asarray(frame).astype(float), GOAL)
    row, column = 405 * GOAL.height // 600, 105 * GOAL.width // 600
    beside = lightness(shown[row, column - 40])
    assert abs(lightness(shown[row, column]) - beside) > 4
    assert beside == pytest.approx(lightness(np.array(YELLOW)), abs=3)  # the tone around it stays that of the scale


def lightness(colour: np.ndarray) -> float:
    """L* of CIELAB, 0 to 100."""
    share = colour / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    luminance = float(light @ [0.2126, 0.7152, 0.0722])
    return 116 * np.cbrt(luminance) - 16 if luminance > 0.008856 else 903.3 * luminance


@pytest.mark.parametrize("colour", [SKY, YELLOW])
def test_a_ramp_gets_lighter_in_even_steps(colour):
    tones = [lightness(tone) for tone in ramp(colour)[::17]]
    steps = np.diff(tones)
    assert tones[0] < 25
    assert steps.min() > 0.6 * steps.mean()
    assert steps.max() < 1.4 * steps.mean()


def test_where_to_stop_ends_much_lighter_than_where_to_pass():
    assert lightness(ramp(YELLOW)[-1]) > lightness(ramp(SKY)[-1]) + 15


def test_oklab_has_the_published_values():
    known = {(255, 255, 255): (1, 0, 0), (255, 0, 0): (0.628, 0.2249, 0.1258), (0, 0, 255): (0.452, -0.0325, -0.3115)}
    for colour, lab in known.items():
        assert to_oklab(np.array(colour)) == pytest.approx(lab, abs=1e-3)


def test_every_colour_comes_back_from_oklab(rng):
    colours = rng.integers(0, 256, (500, 3)).astype(np.uint8)
    assert np.array_equal(from_oklab(to_oklab(colours)), colours)


def test_feature_colours_are_the_principal_components_with_the_first_as_lightness(rng):
    spread = np.array([9.0, 4.0, 2.0] + [0.1] * 29)
    turned, _r = np.linalg.qr(rng.normal(size=(32, 32)))
    features = rng.normal(size=(4000, 32)) * spread @ turned + 3
    colours = FeatureColours.fit(features)
    lab = to_oklab(colours(features))
    _u, _s, directions = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    along = (features - features.mean(axis=0)) @ directions[:3].T
    for channel, component in ((0, 0), (2, 1), (1, 2)):
        match = [abs(np.corrcoef(lab[:, channel], along[:, k])[0, 1]) for k in range(3)]
        assert int(np.argmax(match)) == component
        assert match[component] > 0.85


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_not_a_number_is_drawn_as_nothing_and_spoils_nothing_else(rng):
    ground = np.full((1, 2, 3), 100, np.uint8)
    picture = glowing(ground, np.zeros((1, 2, 1)), np.array([[np.nan, 1.0]]), YELLOW)
    assert picture[0].tolist() == [[100, 100, 100], list(YELLOW)]
    features = rng.normal(size=(50, 8))
    colours = FeatureColours.fit(np.concatenate([features, np.full((2, 8), np.nan), np.full((1, 8), np.inf)]))
    assert np.array_equal(colours(features), FeatureColours.fit(features)(features))
    assert np.array_equal(colours(np.full(8, np.nan)), colours(colours.mean)), "as a feature that says nothing"


def test_a_feature_has_one_colour_in_image_map_and_time(rng):
    kinds = torch.tensor(rng.normal(size=(5, 32)), dtype=torch.float32)
    made = []
    for kind in (0, 3):
        cells = kinds[torch.tensor(rng.integers(0, 5, (64, 64)))]
        cells[30:34, 30:34] = kinds[kind]
        picture = kinds[torch.full((18, 32), kind)]
        parts = {"semantic_map": cells, "image_features": picture}
        made.append(belief(**{name: part.permute(2, 0, 1)[None] for name, part in parts.items()}))
    frames = frames_of(flight_of([*made, made[0]], (0.0, 0.0, 0.0)))
    row, column = (int(at) for at in on_map(SEMANTIC_MAP, 0.2, -0.2))
    colours = [panel(frame, FEATURES)[90, 160].tolist() for frame in frames]
    assert [panel(frame, SEMANTIC_MAP)[row, column].tolist() for frame in frames] == colours
    assert colours[0] == colours[2] != colours[1]


def test_cells_without_features_are_grey_and_those_outside_the_arena_lighter():
    features, arena = torch.ones(1, 32, 64, 64), torch.ones(1, 64, 64, dtype=torch.bool)
    features[:, :, :32] = 0  # ahead of the start nothing has been seen
    arena[:, :, 32:] = False  # to its right the arena ends
    edge = torch.zeros(1, 64, 64, dtype=torch.bool)
    edge[:, 40, :32] = True
    made = belief(semantic_map=features, arena=arena, observed=(features[:, 0] != 0), boundary=edge)
    frame = frames_of(flight_of([made], (0.0, 0.0, 0.0)))[0]
    places = {"unseen": (1.5, 1.5), "outside": (1.5, -1.5), "seen": (-0.7, 1.5)}
    for box in (SEMANTIC_MAP, GROUNDING, MASKS):
        tones = {}
        for name, (x, y) in places.items():
            row, column = on_map(box, x, y)
            tones[name] = panel(frame, box)[int(row), int(column)]
        assert np.ptp(tones["unseen"]) < 8
        assert np.ptp(tones["outside"]) < 8
        assert 170 < tones["unseen"].mean() < tones["outside"].mean() - 20
        assert np.abs(tones["seen"] - tones["unseen"]).max() > 30
        assert np.abs(tones["seen"] - tones["outside"]).max() > 30
    row, column = on_map(MASKS, -(8.5 * CELL), 1.5)
    assert panel(frame, MASKS)[int(row), int(column)].max() < 100  # the edge of the arena is dark


@pytest.mark.parametrize("share", [0.0, 0.001, 0.25, 0.8, 1.0])
def test_the_green_bar_beside_the_goal_is_as_high_as_p_oob(share):
    flat = torch.full((1, 64, 64), (1 - share) / 4096)
    made = belief(visitation=Visitation(flat, flat, torch.tensor([[0.5, share]])))
    frame = frame_of(made)
    for box, wanted in ((TRAJECTORY, 0.5), (GOAL, share)):
        left, top, width, height = box
        beside = like(frame[top : top + height, left + width : left + width + 30], GREEN)
        rows = np.flatnonzero(beside.any(axis=1))
        assert len(rows) == pytest.approx(wanted * height, abs=1)
        assert not len(rows) or rows.max() == height - 1


def test_colours_are_the_same_probability_throughout_a_flight():
    def sure(probability: float) -> Beliefs:
        cells = torch.full((1, 64, 64), (1 - probability) / 4095)
        cells[0, 20, 20] = probability
        return belief(visitation=Visitation(cells, cells, torch.zeros(1, 2)))

    start = (-1.0, -1.0, 0.0)
    flight = flight_of([sure(0.1), sure(0.4), sure(0.1)], start)
    # Cell (20, 20) of the map: 4.7 m - 20.5 cells ahead of the start, and as much to its left.
    row, column = (int(at) for at in on_map(GOAL, *(-1 + HALF - 20.5 * CELL,) * 2))
    unsure, surest, again = (panel(frame, GOAL)[row, column] for frame in frames_of(flight))
    assert like(surest, YELLOW, within=10)
    assert unsure.tolist() == again.tolist()
    middle_of_the_ramp = ramp(YELLOW)[round(255 * 0.1**0.5 / 0.4**0.5)]
    assert like(unsure, tuple(middle_of_the_ramp.astype(int)), within=6)


def test_there_is_one_frame_of_even_sides_for_each_state_and_the_last_belief_stays():
    flat = torch.full((1, 64, 64), 1 / 4096)
    first = belief(visitation=Visitation(flat, flat, torch.tensor([[0.9, 0.9]])))
    last = belief(visitation=Visitation(flat, flat, torch.tensor([[0.2, 0.2]])))
    frames = frames_of(flight_of([first, last], states=5))
    assert [frame.shape for frame in frames] == [(900, 1600, 3)] * 5
    left, top, width, height = GOAL
    bars = [like(frame[top : top + height, left + width : left + width + 30], GREEN).sum() for frame in frames]
    assert bars[0] > 4 * bars[1] > 0
    assert bars[1:] == [bars[1]] * 4


def test_the_demonstration_is_not_shown():
    flight = flight_of([belief()] * 2)
    elsewhere = replace(flight, tasks=(replace(flight.task, gold_path=np.array([(1.0, 1.0), (-1.0, 0.5)])),))
    for one, other in zip(frames_of(flight), frames_of(elsewhere), strict=True):
        assert np.array_equal(one, other)


def seen_without_green(colour: np.ndarray) -> np.ndarray:
    """As a deuteranope sees it (Machado, Oliveira and Fernandes 2009, severity 1)."""
    share = colour / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    rows = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    seen = (light @ np.array(rows).T).clip(0, 1)
    return 255 * np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("eyes", [lambda colour: colour, seen_without_green])
def test_what_was_looked_at_is_told_from_what_was_not_and_from_the_edge_by_tone_alone(eyes):
    tones = sorted(lightness(eyes(np.array(colour))) for colour in (SEEN, UNOBSERVED, OUTSIDE, EDGE))
    assert np.diff(tones).min() > 13
    assert lightness(eyes(np.array(UNOBSERVED))) - lightness(eyes(np.array(SEEN))) > 25


def test_a_still_image_has_a_row_of_panels_for_each_of_four_states():
    shares = [0.1, 0.4, 0.7, 1.0]
    flat = torch.full((1, 64, 64), 1 / 4096)
    made = [belief(visitation=Visitation(flat, flat, torch.tensor([[0.0, share]]))) for share in shares]
    images = [np.full((72, 128, 3), tone, np.uint8) for tone in (10, 60, 110, 160)]
    flight = flight_of(made, images=images)
    frames = list(belief_frames(flight, np.full((600, 600, 3), 200, np.uint8), "somebody"))
    ground = np.full((600, 600, 3), 200, np.uint8)
    strip = np.asarray(belief_strip(flight, frames, ground, "somebody")).astype(int)
    assert strip.shape[0] < 0.75 * strip.shape[1]
    pictures = [strip[152 + 246 * row + 60, 120] for row in range(4)]
    assert [picture.tolist() for picture in pictures] == [[image[0, 0, 0]] * 3 for image in images]
    bars = [
        like(strip[152 + 246 * row : 152 + 246 * row + 226, 1700:1770], GREEN).any(axis=1).sum() for row in range(4)
    ]
    assert bars == pytest.approx([226 * share for share in shares], abs=3)


def test_a_still_image_shows_the_whole_flight_among_named_landmarks_in_their_colours_and_what_is_said_of_it():
    task = Task("go", Layout((Placement("Barrel", 1.0, 1.0),)), (-1.5, -1.5), 0.0, np.zeros((0, 2)))
    path = [(-1.5, -1.5), (-1.5, 1.5)]
    positions = np.array([(*place, 0.7) for place in path], np.float32)
    flight = flight_of([belief()] * 2, states=2, task=task, positions=positions)
    ground = np.full((600, 600, 3), (90, 160, 60), np.uint8)
    frames = list(belief_frames(flight, ground, "somebody", states=still_states(flight)))

    def strip(layout: Layout, verdict: list[str]) -> np.ndarray:
        shown = replace(flight, tasks=(replace(task, layout=layout),))
        return np.asarray(belief_strip(shown, frames, ground, "somebody", verdict=verdict)).astype(int)

    bare = strip(Layout(()), [])
    map_left = bare.shape[1] - 620
    world = bare[152:752, map_left : map_left + 600]
    assert like(world, (90, 160, 60)).mean() > 0.9  # in colour, and not dimmed
    column, row = (round(value) for value in map_pixels(np.array([-1.5, 0.0]), 600))
    assert like(world[row - 4 : row + 5, column - 4 : column + 5], FLOWN).any()  # halfway
    named = np.argwhere((strip(task.layout, []) != bare).any(axis=-1))
    x, y = map_pixels(np.array([1.0, 1.0]), 600)
    assert abs(named.mean(axis=0) - (152 + y, map_left + x)).max() < 40  # the name stands at the barrel
    said = (strip(Layout(()), ["✓ passed the barrel", "✗ did not turn"]) != bare).any(axis=-1)
    rows, columns = np.nonzero(said)
    assert rows.min() > 752
    assert columns.min() >= map_left


def test_slips_are_underlined_otherwise_than_unknown_words_and_shown_as_read():
    flight = flight_of([belief()])
    flight = replace(flight, tasks=(replace(flight.task, instruction="stopp at grobnik"),))
    unknown, slip = WordIssue("grobnik", 9, 16), WordIssue("stopp", 0, 5, "stop")
    [frame] = frames_of(flight, marked=[unknown, slip])
    line, other = (columns_of(like(frame[WORDS], colour)) for colour in (VERMILLION, GOLD))
    assert len(line) == len(other) == 1
    assert other[0][1] < line[0][0]
    plain = frames_of(flight, marked=[unknown])[0]
    assert (frame[:40] != plain[:40]).any()  # "stopp → stop" beside who flies


def test_unknown_words_are_underlined_where_they_stand_also_where_a_line_begins_in_another_script():
    alone = columns_of(like(marked_words("שלום", ["שלום"])[WORDS], VERMILLION))
    mixed = columns_of(like(marked_words("שלום go on", ["שלום"])[WORDS], VERMILLION))
    assert mixed == alone
    ink = columns_of(marked_words("שלום go on", [])[WORDS].max(axis=-1) < 120)
    plain = columns_of(marked_words("go on", [])[WORDS].max(axis=-1) < 120)
    assert np.diff(ink[-len(plain) :]).tolist() == np.diff(plain).tolist()  # the English words stand last


def columns_of(mask: np.ndarray) -> list[tuple[int, int]]:
    """First and last of each run of columns in which anything is true."""
    edges = np.flatnonzero(np.diff(np.r_[0, mask.any(axis=0).astype(int), 0]))
    return [(int(begin), int(end) - 1) for begin, end in edges.reshape(-1, 2)]


WORDS = slice(30, 130)


def marked_words(text: str, unknown: list[str]) -> np.ndarray:
    flight = flight_of([belief()])
    flight = replace(flight, tasks=(replace(flight.task, instruction=text),))
    return frames_of(flight, marked=[WordIssue(word, 0, 0) for word in unknown])[0]


def test_words_that_the_policy_does_not_know_are_underlined_and_no_others():
    text = "go to the grobnik, then left at the Frumious well"
    plain, marked = (marked_words(text, unknown)[WORDS] for unknown in ([], ["grobnik", "frumious"]))
    assert not like(plain, VERMILLION).any()
    lines = columns_of(like(marked, VERMILLION))
    assert len(lines) == 2
    ink = plain.max(axis=-1) < 120
    letters = columns_of(ink)
    for (begin, end), word in zip(lines, ("grobnik,", "Frumious"), strict=True):
        under = [run for run in letters if begin - 2 <= run[0] and run[1] <= end + 2]
        assert under[0][0] == pytest.approx(begin, abs=4), word
        assert under[-1][1] == pytest.approx(end, abs=6), word
        gap_before = begin - max(run[1] for run in letters if run[1] < begin - 2)
        assert gap_before > 4, word  # the line begins where the word does, not with the one before


@pytest.mark.parametrize("text", ["left " * 30 + "grobnik", "the very old tree " * 150, "x" * 3000])
def test_words_of_any_length_stay_above_the_panels(text):
    short = marked_words("go", [])
    changed = (marked_words(text, ["grobnik", "x" * 3000]) != short).any(axis=-1)
    rows, columns = np.nonzero(changed[: TRACKS.top])
    assert rows.max() < SEMANTIC_MAP.top - 20
    assert columns.max() < 1590


def test_a_word_longer_than_a_line_is_underlined_on_each():
    frame = marked_words("go " + "y" * 300, ["y" * 300])[WORDS]
    rows = np.flatnonzero(like(frame, VERMILLION).any(axis=1))
    assert (np.diff(rows) > 1).sum() == 1


def test_the_legend_mentions_unknown_words_only_where_there_are_some():
    legend = np.s_[650:, 1330:]
    assert not like(marked_words("go on", [])[legend], VERMILLION).any()
    assert like(marked_words("go on", ["on"])[legend], VERMILLION).any()


def track_heights(frame: np.ndarray, colour: tuple[int, int, int]) -> list[int]:
    """How high a colour stands in each column of the curves, from left to right, where it is at all."""
    shown = like(panel(frame, TRACKS), colour).sum(axis=0)
    return [int(height) for height in shown if height > 0]


def test_the_stop_probability_is_drawn_at_each_decision():
    logits = [-2.0, 0.0, 2.0]
    made = [belief(control=Control(torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([logit]))) for logit in logits]
    frames = frames_of(flight_of(made))
    shares = [1 / (1 + math.exp(-logit)) for logit in logits]
    for count, frame in enumerate(frames, start=1):
        heights = track_heights(frame, VERMILLION)
        whole = 44
        thirds = np.array_split(np.array(heights), count)
        assert [np.median(part) for part in thirds] == pytest.approx([whole * s for s in shares[:count]], abs=2.5)


def test_the_goals_share_out_of_sight_is_drawn_at_each_decision():
    flat = torch.full((1, 64, 64), 1 / 4096)
    made = [belief(visitation=Visitation(flat, flat, torch.tensor([[0.1, share]]))) for share in (1.0, 0.25)]
    heights = track_heights(frames_of(flight_of(made))[-1], GREEN)
    first, second = np.array_split(np.array(heights), 2)
    assert [np.median(first), np.median(second)] == pytest.approx([44, 11], abs=2.5)


def test_a_frame_shows_the_setpoints_up_to_its_own_state():
    setpoints = np.array([[0.7, 0.0], [0.35, 0.0], [0.0, 1.0]], np.float32)
    frames = frames_of(flight_of([belief()] * 4, setpoints=setpoints))
    rows = [like(panel(frame, TRACKS)[:45], BLUE) for frame in frames]
    areas = np.array([row.sum() for row in rows])
    assert areas[1] - areas[0] == pytest.approx(areas[0] / 2, rel=0.1)
    assert areas[2] - areas[1] < areas[0] / 10
    turning = [like(panel(frame, TRACKS)[52:97], BLUE) for frame in frames]
    up = turning[2].sum(axis=1)
    assert up[:20].sum() > 10 * up[26:].sum()  # to the left is up
    assert turning[2].sum() > 10 * turning[1].sum()


def test_the_image_of_each_state_and_the_ground_are_shown():
    flight = flight_of([belief()] * 2, images=[np.full((72, 128, 3), tone, np.uint8) for tone in (40, 170)])
    first, second = frames_of(flight)
    assert first[240, 180].tolist() == [40] * 3
    assert second[240, 180].tolist() == [170] * 3
    frames = list(belief_frames(flight, np.full((300, 300, 3), 200, np.uint8), "x"))
    assert all(isinstance(frame, Image.Image) for frame in frames)


def test_a_turn_of_nothing_has_no_sign():
    frames = []
    for rate in (-0.001, 0.0):
        setpoints = np.array([[0.35, rate], [0.35, rate]], np.float32)
        flight = flight_of([belief(), belief()], setpoints=setpoints)
        frames.append(frames_of(flight)[0])
    assert np.array_equal(*frames)
