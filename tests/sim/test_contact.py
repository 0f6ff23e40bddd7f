"""What counts as inside a landmark, against geometry on paper; MuJoCo says where each geom is."""

import mujoco
import numpy as np
import pytest
import torch

from mujoco_oracle import mujoco_world
from wordwing.bench.sim import crowded_layout
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.frames import Pose
from wordwing.interface import Action, Observation, Setpoint
from wordwing.sim.dynamics import SUBSTEP, DynamicsConfig, FleetState
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.sim.simulator import Simulator
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

CPU = torch.device("cpu")
SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")) for name in ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
)


class Bodies:
    """The geoms of a layout as MuJoCo places them: floor left out, [G] each."""

    def __init__(self, layout: Layout) -> None:
        model = mujoco_world(layout)
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        self.kind, self.size = model.geom_type[1:], model.geom_size[1:]
        self.centre, self.axes = data.geom_xpos[1:], data.geom_xmat[1:].reshape(-1, 3, 3)

    def reach(self) -> np.ndarray:
        """[G, 3] half sides of a box around each geom, geom frame."""
        radius, half = self.size[:, 0], self.size[:, 1]
        tall = {SPHERE: radius, CAPSULE: half + radius, CYLINDER: half}
        return np.array(
            [
                size if kind in (BOX, ELLIPSOID) else (size[0], size[0], tall[int(kind)][g])
                for g, (kind, size) in enumerate(zip(self.kind, self.size, strict=True))
            ]
        )

    def depth(self, points: np.ndarray) -> np.ndarray:
        """[P, G] how deep points [P, 3] lie inside each geom, positive inside; metres, rough for ellipsoids."""
        depths = []
        for kind, size, centre, axes in zip(self.kind, self.size, self.centre, self.axes, strict=True):
            q = (points - centre) @ axes
            if kind == BOX:
                depths.append((size - np.abs(q)).min(axis=-1))
            elif kind == CYLINDER:
                depths.append(np.minimum(size[0] - np.hypot(q[:, 0], q[:, 1]), size[1] - np.abs(q[:, 2])))
            elif kind == CAPSULE:
                beyond = np.maximum(np.abs(q[:, 2]) - size[1], 0.0)
                depths.append(size[0] - np.sqrt(q[:, 0] ** 2 + q[:, 1] ** 2 + beyond**2))
            else:
                half = size[[0, 0, 0]] if kind == SPHERE else size
                depths.append((1 - np.linalg.norm(q / half, axis=-1)) * half.min())
        return np.stack(depths, axis=-1)


def around_geoms(bodies: Bodies, rng: np.random.Generator, count: int) -> np.ndarray:
    """[G * count, 3] points in and just outside every geom, world frame."""
    local = rng.uniform(-1.25, 1.25, (len(bodies.kind), count, 3)) * bodies.reach()[:, None]
    return (np.einsum("gij,gpj->gpi", bodies.axes, local) + bodies.centre[:, None]).reshape(-1, 3)


def counted_as_inside(layouts: list[Layout], clouds: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Hover at points [P, 3] of each layout for one substep: whether it was counted [P], and where that was [P, 3]."""
    points = torch.from_numpy(np.concatenate(clouds)).float()
    sizes = torch.tensor([len(cloud) for cloud in clouds])
    count = len(points)
    scene, drones = SimScene(count, CPU), FleetState(count, CPU, DynamicsConfig())
    which = torch.repeat_interleave(torch.arange(len(layouts)), sizes)
    scene.place(PackedLayouts.pack(layouts).take(which), torch.arange(count))
    level = Pose.level(torch.zeros(count, 2), torch.zeros(count)).quaternion
    drones.reset(Pose(points, level), torch.arange(count))
    drones.advance(Setpoint.zero(count), SUBSTEP, scene.worlds, scene.geoms)
    ends = np.cumsum(sizes.numpy())[:-1]
    counted, where = np.split(drones.hits.numpy() == 1, ends), np.split(drones.position.double().numpy(), ends)
    return list(zip(counted, where, strict=True))


def anywhere(name: str, rng: np.random.Generator) -> Placement:
    x, y, yaw, elevation = rng.uniform([-1.5, -1.5, -np.pi, 0.0], [1.5, 1.5, np.pi, 0.5])
    return Placement(name, float(x), float(y), float(yaw), float(elevation))


def test_points_are_inside_every_landmark_where_geometry_says_whatever_its_yaw_and_elevation(rng):
    layouts = [Layout((anywhere(entry.name, rng),)) for entry in catalogue()]
    worlds = [Bodies(layout) for layout in layouts]
    found = counted_as_inside(layouts, [around_geoms(bodies, rng, 30) for bodies in worlds])
    alone = dict.fromkeys((SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX), 0)
    for layout, bodies, (counted, points) in zip(layouts, worlds, found, strict=True):
        depth = bodies.depth(points)
        deepest = depth.max(axis=-1)
        clear = np.abs(deepest) > 1e-5  # float32 cannot tell closer than this
        assert clear.mean() > 0.99
        assert np.array_equal(counted[clear], deepest[clear] > 0), layout.landmarks[0].name
        # A point inside two geoms says nothing about either.
        single = ((depth > 0).sum(axis=-1) == 1) & clear
        for kind in alone:
            alone[kind] += int(((depth[:, bodies.kind == kind] > 0).any(axis=-1) & single).sum())
    assert min(alone.values()) > 250


def test_points_are_inside_a_crowd_where_geometry_says(rng):
    layouts = [crowded_layout(20, rng) for _ in range(4)]
    worlds = [Bodies(layout) for layout in layouts]
    clouds = [
        np.concatenate([around_geoms(bodies, rng, 5), rng.uniform([-2.3, -2.3, 0.0], [2.3, 2.3, 1.0], (1000, 3))])
        for bodies in worlds
    ]
    for bodies, (counted, points) in zip(worlds, counted_as_inside(layouts, clouds), strict=True):
        deepest = bodies.depth(points).max(axis=-1)
        clear = np.abs(deepest) > 1e-5
        assert np.array_equal(counted[clear], deepest[clear] > 0)
        assert 0.1 < counted.mean() < 0.9


class Straight:
    """Flies straight on at half a metre a second; drone i stops after `steps[i]` decisions."""

    needs_gold_path = False

    def __init__(self, steps: list[int]) -> None:
        self.steps = torch.tensor(steps)

    def reset(self, instructions, start, gold_paths=None) -> None:
        self.taken = 0

    def act(self, observation: Observation) -> Action:
        self.taken += 1
        count = len(self.steps)
        return Action(Setpoint(torch.full((count,), 0.5), torch.zeros(count)), self.taken > self.steps)


def fly_straight(steps: list[int], layouts: list[Layout]) -> list[Execution]:
    """From (-1, 0) along world x."""
    path = np.array([[-1.0, 0.0], [1.0, 0.0]])
    tasks = [Task("fly on", layout, (-1.0, 0.0), 0.0, path) for layout in layouts]
    return fly(Straight(steps), Simulator(len(tasks)), tasks, safety=False)


def seconds_inside(flight: Execution) -> float:
    """The same by geometry, along the recorded path at millisecond steps."""
    states = np.arange(len(flight.positions)) * 0.3
    times = np.arange(0.0, states[-1], 0.001)
    points = np.stack([np.interp(times, states, axis) for axis in flight.positions.T.astype(float)], axis=-1)
    return float((Bodies(flight.task.layout).depth(points) > 0).any(axis=-1).sum() * 0.001)


def test_a_flight_tells_how_long_it_went_through_a_fridge_and_that_it_went_over_a_boat():
    layouts = [Layout((Placement(name, 0.0, 0.0, 1.0),)) for name in ("Fridge", "Boat", "Column")]
    fridge, boat, column = fly_straight([14, 14, 14], layouts)
    assert fridge.seconds_inside_landmarks[0] > 0.6
    assert fridge.seconds_inside_landmarks[0] == pytest.approx(seconds_inside(fridge), abs=0.05)
    assert boat.path[-1, 0] > 0.5  # it did come by
    assert boat.seconds_inside_landmarks[0] == 0.0
    assert 0.3 < column.seconds_inside_landmarks[0] < fridge.seconds_inside_landmarks[0]
    assert column.seconds_inside_landmarks[0] == pytest.approx(seconds_inside(column), abs=0.05)


def test_a_flight_that_ends_inside_a_landmark_is_counted_until_its_rest_and_not_while_others_fly_on():
    layout = Layout((Placement("Fridge", 0.0, 0.0),))
    ends_inside, flies_on = fly_straight([7, 30], [layout, layout])
    assert abs(ends_inside.path[-1, 0]) < 0.15
    assert ends_inside.seconds_inside_landmarks[0] == pytest.approx(seconds_inside(ends_inside), abs=0.05)
    assert ends_inside.seconds_inside_landmarks[0] < 0.3 * len(ends_inside.positions)
    assert flies_on.seconds_inside_landmarks[0] == pytest.approx(seconds_inside(flies_on), abs=0.05)
