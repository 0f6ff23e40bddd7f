"""What can be seen at the start: by hand, and against the pixels of the `sim` camera."""

import math

import numpy as np
import pytest
import torch

from wordwing.camera import Camera
from wordwing.frames import Pose
from wordwing.sim.render import Renderer
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.world.assets import asset
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout
from wordwing.world.visibility import goal_ahead, goal_in_sight

EMPTY = Layout(())
GROUND = -1


@pytest.mark.parametrize(("bearing", "seen"), [(0, True), (41.9, True), (-41.9, True), (42.1, False), (180, False)])
def test_ahead_is_42_degrees_to_either_side_of_any_heading(bearing, seen):
    for yaw in (-3.0, 0.0, 3.1, 10.0):
        angle = yaw + math.radians(bearing)
        assert goal_ahead((0.5, -0.5), yaw, (0.5 + math.cos(angle), -0.5 + math.sin(angle))) == seen


def test_a_goal_at_the_start_is_ahead_and_out_of_sight_below():
    assert goal_ahead((0.5, -0.5), 2.0, (0.5, -0.5))
    assert not goal_in_sight(EMPTY, (0.5, -0.5), 2.0, (0.5, -0.5))


def test_ahead_does_not_depend_on_where_in_the_world_it_is(rng):
    for _ in range(20):
        start, goal, move = rng.uniform(-2, 2, (3, 2))
        yaw, angle = rng.uniform(-math.pi, math.pi, 2)
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        assert goal_ahead(turn @ start + move, yaw + angle, turn @ goal + move) == goal_ahead(start, yaw, goal)


def test_the_blind_spot_before_the_drones_feet_is_out_of_sight():
    # The picture's lower edge is atan(36 / (64 / tan 42°)) = 26.86° below an axis that points 15° down, at 0.7 m.
    blind = 0.7 / math.tan(math.radians(15 + 26.861))
    for yaw in (0.0, 2.5):
        ahead = np.array([math.cos(yaw), math.sin(yaw)])
        assert not goal_in_sight(EMPTY, (-0.5, 0.2), yaw, (-0.5, 0.2) + (blind - 0.005) * ahead)
        assert goal_in_sight(EMPTY, (-0.5, 0.2), yaw, (-0.5, 0.2) + (blind + 0.005) * ahead)
        assert not goal_in_sight(EMPTY, (-0.5, 0.2), yaw, (-0.5, 0.2) - 2 * ahead)


def test_a_camera_that_looks_down_sees_beyond_42_degrees_nearby():
    # At the lower corners it looks atan(0.900 / (cos 15° - 0.507 sin 15°)) = 47° to the side.
    near = 1.15 * np.array([math.cos(math.radians(45)), math.sin(math.radians(45))])
    assert goal_in_sight(EMPTY, (0.0, 0.0), 0.0, near)
    assert not goal_ahead((0.0, 0.0), 0.0, near)


def test_a_landmark_between_hides_the_goal_and_one_beside_or_behind_it_does_not():
    barrel = asset("Barrel").surface_points()
    assert barrel[:, 2].max() > 0.3
    footprint = np.hypot(barrel[:, 0], barrel[:, 1]).max()
    for y, hidden in ((0.0, True), (0.5, False)):
        layout = Layout((Placement("Barrel", 0.3, y),))
        assert goal_in_sight(layout, (-1.5, 0.0), 0.0, (0.3 + footprint + 0.2, 0.0)) != hidden
    assert goal_in_sight(Layout((Placement("Barrel", 1.5, 0.0),)), (-1.5, 0.0), 0.0, (0.5, 0.0))
    raised = Layout((Placement("Barrel", -0.8, 0.0, elevation=0.8),))
    assert goal_in_sight(raised, (-1.5, 0.0), 0.0, (0.9, 0.0))


@pytest.mark.parametrize("name", ["Barrel", "Rock", "Stump", "Box"])
def test_what_stands_in_the_last_5_centimetres_of_the_line_of_sight_does_not_hide_the_goal(name):
    eye, layout = np.array([-2.0, 0.0, 0.7]), Layout((Placement(name, 0.0, 0.0),))
    outcomes = set()
    for x in np.arange(-0.6, 0.1, 0.01):
        line = np.array([x, 0.0, 0.0]) - eye
        length = np.linalg.norm(line)
        along = np.arange(0, length, 0.001)
        inside = asset(name).contains(eye + along[:, None] * line / length)
        met = along[inside.argmax()] if inside.any() else math.inf
        if abs(met - (length - 0.05)) > 0.002:
            assert goal_in_sight(layout, eye[:2], 0.0, (x, 0.0)) == (met > length - 0.05)
            outcomes.add("free" if met == math.inf else "near" if met > length - 0.05 else "hidden")
    assert outcomes == {"free", "near", "hidden"}


def test_what_is_in_sight_is_the_ground_in_the_first_image(rng):
    layouts = [sample_layout("cage", rng) for _ in range(40)]
    starts = rng.uniform(-2.2, 2.2, (40, 2))
    yaws = np.arctan2(-starts[:, 1], -starts[:, 0]) + rng.uniform(-0.6, 0.6, 40)
    scene = SimScene(40, torch.device("cpu"))
    scene.place(PackedLayouts.pack(layouts), torch.arange(40))
    camera = Camera()
    poses = camera.pose(Pose.level(torch.tensor(starts).float(), torch.tensor(yaws).float(), 0.7))
    _, slots = Renderer(scene, camera).probe(poses)
    seen, hidden = 0, 0
    for layout, start, yaw, picture in zip(layouts, starts, yaws, slots, strict=True):
        for goal in rng.uniform(-2.3, 2.3, (60, 2)):
            if layout.inside(goal):
                continue
            # Where the goal is in the picture, by hand: along the heading and to its left, then tilted by 15°.
            x, y = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]]) @ (goal - start)
            tilt, down = math.radians(15), 0.7
            depth, below = x * math.cos(tilt) + down * math.sin(tilt), down * math.cos(tilt) - x * math.sin(tilt)
            focal = 64 / math.tan(math.radians(42))
            u, v = 64 - focal * y / depth, 36 + focal * below / depth
            inside = depth > 0 and 0 <= u < 128 and 0 <= v < 72
            if not inside:
                assert not goal_in_sight(layout, start, yaw, goal)
                continue
            row, column = int(v), int(u)
            around = picture[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
            if len(around.unique()) > 1:
                continue  # an edge runs through the neighbourhood
            visible = int(picture[row, column]) == GROUND
            assert goal_in_sight(layout, start, yaw, goal) == visible
            seen, hidden = seen + visible, hidden + (not visible)
    assert seen > 300
    assert hidden > 30
