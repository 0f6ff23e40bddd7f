"""The arena in the autopilot's frame, against places that were worked out on paper."""

import json
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from wordwing.errors import WordwingError
from wordwing.flight.arena import COLOURS, Arena
from wordwing.frames import Pose
from wordwing.world.fences import FENCES

LEVEL = [1.0, 0.0, 0.0, 0.0]


def from_ned(north: float, east: float, down: float) -> list[float]:
    """A place in the local frame with z up: x north, y west."""
    return [north, -east, -down]


def heading_quaternion(degrees: float) -> list[float]:
    """A level drone whose nose points along a compass heading, (w, x, y, z), in the local frame with z up."""
    x, y, z, w = Rotation.from_euler("z", -degrees, degrees=True).as_quat()
    return [w, x, y, z]


def test_the_centre_is_the_worlds_origin_on_the_floor():
    arena = Arena(north=3.0, east=-2.0, heading_deg=40.0, floor_down=0.25)
    assert arena.world_pose(from_ned(3.0, -2.0, 0.25), LEVEL).position == pytest.approx([0, 0, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("heading", "ned", "world"),
    [
        (0.0, (1.0, 0.0, 0.0), (1.0, 0.0)),  # north is ahead
        (0.0, (0.0, 1.0, 0.0), (0.0, -1.0)),  # east is to the right, where y is negative
        (90.0, (0.0, 1.0, 0.0), (1.0, 0.0)),  # +x points east, so east is ahead
        (90.0, (1.0, 0.0, 0.0), (0.0, 1.0)),  # and north to the left
        (180.0, (1.0, 0.0, 0.0), (-1.0, 0.0)),
        (-90.0, (0.0, 1.0, 0.0), (-1.0, 0.0)),
        (30.0, (math.cos(math.radians(30)), 0.5, 0.0), (1.0, 0.0)),
    ],
)
def test_a_metre_north_or_east_of_the_centre_is_where_the_heading_says(heading, ned, world):
    arena = Arena(north=5.0, east=7.0, heading_deg=heading)
    there = arena.world_pose(from_ned(5.0 + ned[0], 7.0 + ned[1], ned[2]), LEVEL)
    assert there.position == pytest.approx((*world, 0.0), abs=1e-6)


def test_heights_are_above_the_floor():
    arena = Arena(floor_down=0.2)  # the floor is 0.2 m below where the autopilot began
    assert arena.world_pose(from_ned(0, 0, -0.5), LEVEL).position[2] == pytest.approx(0.7)


@pytest.mark.parametrize(("nose", "yaw"), [(50.0, 0.0), (140.0, -math.pi / 2), (20.0, math.pi / 6)])
def test_a_nose_along_the_arenas_heading_is_yaw_zero_and_turning_right_makes_yaw_less(nose, yaw):
    pose = Arena(heading_deg=50.0).world_pose((0.0, 0.0, 0.0), heading_quaternion(nose))
    assert pose.yaw == pytest.approx(yaw, abs=1e-6)


def test_roll_and_pitch_stay_the_bodys():
    local = Rotation.from_euler("ZYX", [-35.0, 8.0, -4.0], degrees=True)  # yaw, pitch, roll with z up
    x, y, z, w = local.as_quat()
    pose = Arena(heading_deg=20.0).world_pose((0.0, 0.0, 0.0), (w, x, y, z))
    w, x, y, z = pose.quaternion
    assert Rotation.from_quat([x, y, z, w]).as_euler("ZYX", degrees=True) == pytest.approx([-15.0, 8.0, -4.0])


def test_velocities_turn_with_the_arena_and_do_not_move_with_it():
    arena = Arena(north=9.0, east=9.0, heading_deg=90.0, floor_down=3.0)
    assert arena.world_velocity(from_ned(0.0, 0.6, -0.1)) == pytest.approx((0.6, 0.0, 0.1), abs=1e-6)


def test_poses_are_taken_to_the_world_and_many_at_once_back(rng):
    arena = Arena(1.0, 2.0, 33.0, -0.4)
    position = torch.from_numpy(rng.normal(size=(4, 3)))
    quaternion = torch.from_numpy(Rotation.random(4, rng=rng).as_quat())
    world = [arena.world_pose(*pose) for pose in zip(position.tolist(), quaternion.tolist(), strict=True)]
    there = [torch.tensor(found).double() for found in ([p.position for p in world], [p.quaternion for p in world])]
    back = arena.frame @ Pose(*there)
    assert back.position.numpy() == pytest.approx(position.numpy())
    assert back.quaternion.numpy() == pytest.approx(quaternion.numpy())


def places() -> np.ndarray:
    return np.array([[0.0, 0.0, 0.05], [2.35, 2.35, 0.05], [2.35, -2.35, 0.05], [-2.0, 1.0, 0.05]])


def carried(arena: Arena, where: np.ndarray) -> np.ndarray:
    """What the autopilot says at places in the world, by scipy's rotation; local frame with z up."""
    turn = Rotation.from_euler("z", -arena.heading_deg, degrees=True)
    return turn.apply(where) + np.array([arena.north, -arena.east, -arena.floor_down])


def test_a_fit_finds_the_arena_that_places_were_carried_in():
    true = Arena(north=1.5, east=-0.7, heading_deg=217.0, floor_down=0.12)
    found = Arena.fit(places(), carried(true, places()))
    assert (found.north, found.east, found.heading_deg, found.floor_down) == pytest.approx((1.5, -0.7, 217.0, 0.12))


def test_a_fit_of_noisy_places_is_the_least_squares_one(rng):
    said = carried(Arena(0.3, 2.0, 75.0, -0.2), places()) + 0.05 * rng.normal(size=(4, 3))

    def wrong(values: np.ndarray) -> float:
        return float(np.square(carried(Arena(*values), places()) - said).sum())

    best = minimize(wrong, [0.0, 2.0, 70.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15})
    found = Arena.fit(places(), said)
    fitted = [found.north, found.east, found.heading_deg, found.floor_down]
    assert fitted == pytest.approx(best.x, abs=1e-3)
    assert wrong(np.array(fitted)) == pytest.approx(best.fun, rel=1e-4)


def test_a_fit_keeps_margins_and_fences():
    like = Arena(margin=0.5, side_margin=0.4, fences=(None,) * 4)
    found = Arena.fit(places(), places(), like)
    assert (found.margin, found.side_margin, found.fences) == (0.5, 0.4, (None,) * 4)


def test_one_place_alone_fits_nothing():
    with pytest.raises(ValueError, match="apart from each other"):
        Arena.fit([[0.0, 0.0, 0.0]] * 2, [[0.0, 0.0, 0.0]] * 2)


def test_a_file_holds_the_arena(tmp_path):
    arena = Arena(1.25, -0.5, 359.0, 0.1, 0.4, 0.36, ("red", None, None, "yellow"))
    arena.save(tmp_path / "arena.json")
    assert Arena.load(tmp_path / "arena.json") == arena


def test_a_file_written_by_hand_needs_four_numbers(tmp_path):
    file = tmp_path / "arena.json"
    file.write_text('{"schema": 1, "north": 1, "east": 2, "heading_deg": 90, "floor_down": 0}')
    arena = Arena.load(file)
    assert arena == Arena(1.0, 2.0, 90.0, 0.0)
    assert (arena.margin, arena.side_margin) == (0.35, 0.35)
    assert isinstance(arena.north, float)


def test_a_rounded_arena_is_what_a_person_would_write():
    assert Arena(1.23456, -0.00049, 12.3456, 0.1).rounded() == Arena(1.235, -0.0, 12.35, 0.1)


def test_its_fences_are_those_of_the_world():
    assert tuple(fence.colour for fence in FENCES) == COLOURS


GOOD = {"schema": 1, "north": 0.0, "east": 0.0, "heading_deg": 0.0, "floor_down": 0.0}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"north": "1"}, '"north" is "1"; it must be a number of metres from -1000 to 1000'),
        ({"east": True}, '"east" is true'),
        ({"north": math.nan}, '"north" is NaN'),
        ({"north": 10**400}, "it must be a number of metres"),
        ({"heading_deg": 400}, '"heading_deg" is 400; it must be a number of degrees from -360 to 360'),
        ({"floor_down": None}, '"floor_down" is null'),
        ({"margin": 0.1}, '"margin" is 0.1; it must be a number of metres from 0.35 to 1.5'),
        ({"side_margin": -1}, '"side_margin" is -1'),
        ({"schema": 2}, '"schema" is 2; it must be 1'),
        ({"schema": True}, '"schema" is true'),
        ({"heading": 1}, 'unknown key "heading"; did you mean "heading_deg"?'),
        ({"fences": "red"}, '"fences" is "red"; it must be a list of 4'),
        ({"fences": [1, 2, 3, 4]}, "fence 1 is 1; it must be red, white, blue or yellow or null"),
        ({"fences": ["red"]}, '"fences" is a list of 1; it must be a list of 4'),
        ({"fences": ["red", "wihte", "blue", "yellow"]}, 'fence 2 is "wihte"; it must be red, white, blue or yellow'),
        (
            {"fences": ["red", "green", "blue", "yellow"]},
            'fence 2 is "green"; it must be red, white, blue or yellow',
        ),
        ({"fences": ["yellow", "red", "white", "blue"]}, "add 90 to heading_deg and leave fences out"),
        ({"fences": ["white", "blue", "yellow", "red"]}, "add 270 to heading_deg"),
        ({"fences": ["red", "yellow", "blue", "white"]}, "the fences are red, yellow, blue, white; instructions mean"),
    ],
)
def test_each_mistake_in_a_file_gets_one_sentence(change, sentence, tmp_path):
    file = tmp_path / "arena.json"
    file.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(WordwingError) as error:
        Arena.load(file)
    assert str(error.value).startswith(f"{file}: ")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_the_corrected_heading_of_turned_fences_points_at_the_red_one():
    # Clockwise from +x: yellow, red, white, blue; so red is at the right hand, where y is negative.
    wrong = Arena(heading_deg=10.0)
    red = (wrong.frame @ Pose.level(torch.tensor([0.0, -2.35]).double(), torch.zeros(()).double())).position
    right = Arena(heading_deg=10.0 + 90.0)
    assert right.world_pose(red.tolist(), LEVEL).position == pytest.approx((2.35, 0.0, 0.0), abs=1e-5)


@pytest.mark.parametrize("missing", ["north", "east", "heading_deg", "floor_down", "schema"])
def test_what_cannot_be_guessed_must_be_said(missing, tmp_path):
    file = tmp_path / "arena.json"
    file.write_text(json.dumps({key: value for key, value in GOOD.items() if key != missing}))
    with pytest.raises(WordwingError, match=f'"{missing}" is missing; it must be'):
        Arena.load(file)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "this is a list"),
        (b"\xff", "not UTF-8"),
        (b" " * 200_000, "more than 100000 bytes"),
    ],
)
def test_a_file_that_is_no_arena_gets_one_sentence(data, sentence, tmp_path):
    file = tmp_path / "arena.json"
    file.write_bytes(data)
    with pytest.raises(WordwingError, match=sentence):
        Arena.load(file)


def test_a_missing_file_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(WordwingError, match="no such file; wordwing flight check --write"):
        Arena.load(tmp_path / "none.json")


def test_an_impossible_arena_is_not_saved(tmp_path):
    with pytest.raises(WordwingError, match='"north" is NaN'):
        Arena(north=math.nan).save(tmp_path / "arena.json")
    assert list(tmp_path.iterdir()) == []
