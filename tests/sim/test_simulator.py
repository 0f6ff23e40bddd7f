"""The batched simulator: lock-step, bit-identical, world by world; safe; honest about flying through things."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from randomly import random_lakes, random_poses
from wordwing.bench.sim import crowded_layout
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, Pose, wrap_angle
from wordwing.interface import Setpoint
from wordwing.sim.dynamics import SafetyConfig
from wordwing.sim.render import RenderConfig
from wordwing.sim.scene import PackedLayouts
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout, Placement


def random_setpoints(rng: np.random.Generator, count: int) -> Setpoint:
    forward, yaw_rate = rng.uniform(0, 0.7, count), rng.uniform(-1, 1, count)
    return Setpoint(torch.from_numpy(forward).float(), torch.from_numpy(yaw_rate).float())


def fly(count: int, layouts, poses: Pose, setpoints: list[Setpoint]) -> tuple[torch.Tensor, ...]:
    """The first `count` worlds flown alone: positions, attitudes and images along the way."""
    simulator = Simulator(count, render=RenderConfig(shadows=True))
    simulator.reset(layouts[:count], poses[:count])
    states = []
    for setpoint in setpoints:
        simulator.step(Setpoint(setpoint.forward[:count], setpoint.yaw_rate[:count]), safety=True)
        observation = simulator.observe()
        states.append((observation.pose.position, observation.pose.quaternion, observation.image))
    return tuple(torch.stack(column) for column in zip(*states, strict=True))


@pytest.fixture
def flight(rng):
    layouts = [crowded_layout(8, rng) for _ in range(19)]
    return layouts, random_poses(rng, 19), [random_setpoints(rng, 19) for _ in range(6)]


def test_the_same_flight_is_the_same_to_the_last_bit(flight):
    for first, again in zip(fly(19, *flight), fly(19, *flight), strict=True):
        assert torch.equal(first, again)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_world_does_not_depend_on_how_many_others_there_are(flight, count):
    for many, few in zip(fly(19, *flight), fly(count, *flight), strict=True):
        assert torch.equal(many[:, :count], few)


def test_64_worlds_together_are_64_worlds_alone(rng):
    layouts = [crowded_layout(3, rng) for _ in range(64)]
    yaw = torch.from_numpy(rng.uniform(-np.pi, np.pi, 64)).float()
    poses = Pose.level(torch.from_numpy(rng.uniform(-2, 2, (64, 2))).float(), yaw)
    together = Simulator(64).reset(layouts, poses)
    for i, layout in enumerate(layouts):
        single = Pose.level(poses.xy[i : i + 1], yaw[i : i + 1])
        alone = Simulator(1).reset([layout], single)
        assert torch.equal(together.pose.quaternion[i], alone.pose.quaternion[0])
        assert torch.equal(together.image[i], alone.image[0])


def test_time_passes_only_in_step(flight):
    layouts, poses, setpoints = flight
    simulator = Simulator(19)
    before = simulator.reset(layouts, poses)
    simulator.images()
    simulator.overhead(64)
    assert torch.equal(simulator.observe().pose.position, before.pose.position)
    assert simulator.observe().time.unique().tolist() == [0.0]
    simulator.step(setpoints[0])
    assert simulator.observe().time.unique().tolist() == pytest.approx([0.3])


def test_resetting_one_world_leaves_the_others_alone(flight):
    layouts, poses, setpoints = flight
    simulator = Simulator(19)
    simulator.reset(layouts, poses)
    simulator.step(setpoints[0])
    before = simulator.observe()
    simulator.reset([layouts[0]], poses[:1], worlds=torch.tensor([5]))
    after = simulator.observe()
    others = torch.arange(19) != 5
    assert torch.equal(before.image[others], after.image[others])
    assert torch.equal(before.pose.position[others], after.pose.position[others])
    assert torch.equal(after.pose.xy[5], poses.xy[0])
    assert after.time[5] == 0.0


def test_worlds_that_begin_are_those_that_are_reset_and_the_others_fly_on(flight):
    layouts, poses, setpoints = flight
    packed, worlds = PackedLayouts.pack(layouts), torch.arange(19) % 3 == 0
    begun, reset = Simulator(19), Simulator(19)
    for simulator in (begun, reset):
        simulator.reset(packed, poses)
        for setpoint in setpoints[:3]:
            simulator.step(setpoint)
    elsewhere = torch.where(worlds, torch.arange(18, -1, -1), torch.arange(19))
    begun.begin(packed.take(elsewhere), poses[elsewhere], worlds)
    index = worlds.nonzero()[:, 0]
    reset.reset(packed.take(elsewhere[index]), poses[elsewhere[index]], index)
    for simulator in (begun, reset):
        simulator.step(setpoints[3])
    assert all(map(torch.equal, begun.snapshot(), reset.snapshot()))
    assert torch.equal(begun.images(), reset.images())


def test_packed_layouts_give_the_same_images_as_layouts(flight):
    layouts, poses, _ = flight
    simulator = Simulator(19)
    plain = simulator.reset(layouts, poses).image
    packed = PackedLayouts.pack(layouts[::-1]).take(torch.arange(18, -1, -1))
    assert torch.equal(plain, simulator.reset(packed, poses).image)


def test_worlds_with_and_without_lakes_change_places(flight, rng):
    dry, poses, _ = flight
    wet = [replace(layout, lakes=random_lakes(rng)) for layout in dry]
    images = {"wet": Simulator(19).reset(wet, poses).image, "dry": Simulator(19).reset(dry, poses).image}
    assert all(not torch.equal(*pair) for pair in zip(images["wet"], images["dry"], strict=True))
    simulator = Simulator(19)
    simulator.reset(dry, poses)
    now = np.array(["dry"] * 19)
    for kinds in (["wet", "wet"], ["dry", "wet"], ["dry", "dry"], ["wet", "dry"]) * 3:
        worlds = rng.choice(19, 6, replace=False)
        now[worlds] = rng.choice(kinds, 6)
        layouts = [(wet if now[world] == "wet" else dry)[world] for world in worlds]
        image = simulator.reset(layouts, poses[worlds], torch.from_numpy(worlds)).image
        assert torch.equal(image, torch.stack([images[kind][world] for world, kind in enumerate(now)]))
    packed = PackedLayouts.pack([*wet, *dry])
    mixed = torch.where(torch.from_numpy(rng.random(19) < 0.5), torch.arange(19), torch.arange(19, 38))
    expected = torch.cat([images["wet"], images["dry"]])[mixed]
    assert torch.equal(simulator.reset(packed.take(mixed), poses).image, expected)


def test_drones_fly_over_lakes_as_over_grass(flight, rng):
    layouts, poses, setpoints = flight
    lakes = [replace(layout, lakes=random_lakes(rng)) for layout in layouts]
    for over_grass, over_water in zip(fly(19, *flight)[:2], fly(19, lakes, poses, setpoints)[:2], strict=True):
        assert torch.equal(over_grass, over_water)


def test_an_image_kept_is_not_drawn_over(flight):
    layouts, poses, setpoints = flight
    simulator = Simulator(19)
    kept = simulator.reset(layouts, poses).image
    copy = kept.clone()
    simulator.step(setpoints[0])
    simulator.observe()
    assert torch.equal(kept, copy)


def test_setpoints_are_limited_and_nan_hovers():
    simulator = Simulator(3)
    wild = Setpoint(torch.tensor([9.0, -1.0, float("nan")]), torch.tensor([-9.0, float("nan"), 9.0]))
    flown = simulator.step(wild)
    assert flown.forward.tolist() == pytest.approx([0.7, 0.0, 0.0])
    assert flown.yaw_rate.tolist() == [-1.0, 0.0, 1.0]
    assert torch.isfinite(simulator.pose.position).all()


def near_the_fences(rng: np.random.Generator, count: int) -> Simulator:
    """Drones at rest within half a metre of a fence, headed anywhere; nobody looks at images."""
    simulator = Simulator(count, draw=False)

    edge = rng.uniform(1.9, 2.3, count) * rng.choice([-1, 1], count)
    other = rng.uniform(-2.3, 2.3, count)
    swap = rng.random(count) < 0.5
    xy = np.where(swap[:, None], np.column_stack([edge, other]), np.column_stack([other, edge]))
    yaw = rng.uniform(-np.pi, np.pi, count)
    poses = Pose.level(torch.from_numpy(xy).float(), torch.from_numpy(yaw).float())
    simulator.reset([Layout(())] * count, poses)
    return simulator


def bold_setpoints(rng: np.random.Generator, count: int) -> Setpoint:
    """Half of them flat out: the worst that a policy can ask for."""
    asked = random_setpoints(rng, count)
    flat_out = torch.from_numpy(rng.random(count) < 0.5)
    return Setpoint(torch.where(flat_out, 0.7, asked.forward), asked.yaw_rate)


def swerving_setpoints(rng: np.random.Generator, count: int) -> Setpoint:
    """Bold ones that turn as hard as they can, this way or that."""
    swerve = torch.from_numpy(rng.choice([-1.0, 1.0], count)).float()
    return Setpoint(bold_setpoints(rng, count).forward, swerve)


def test_no_drone_crosses_a_fence_in_10000_random_setpoints_near_the_fences(rng):
    simulator, slowed = near_the_fences(rng, 500), 0
    for _ in range(20):
        asked = bold_setpoints(rng, 500)
        flown = simulator.step(asked, safety=True)
        assert torch.equal(flown.yaw_rate, asked.yaw_rate)
        assert (flown.forward <= asked.forward).all()
        assert simulator.pose.xy.abs().max() <= ARENA_HALF
        slowed += int((flown.forward < asked.forward).sum())
    assert slowed > 1000


@pytest.mark.long
def test_no_drone_crosses_a_fence_in_400000_random_setpoints(rng):
    """Enough to see that braking is judged for turns both ways and that the centimetre is needed."""
    simulator = near_the_fences(rng, 4000)
    for _ in range(100):
        simulator.step(swerving_setpoints(rng, 4000), safety=True)
        assert simulator.pose.xy.abs().max() <= ARENA_HALF


def test_no_drone_is_ever_stuck_at_a_fence(rng):
    """Whatever has happened near the fences, a drone that turns to the middle may fly there."""
    simulator = near_the_fences(rng, 1000)
    for _ in range(20):
        simulator.step(bold_setpoints(rng, 1000), safety=True)
    for _ in range(25):
        pose = simulator.pose
        bearing = torch.atan2(-pose.xy[:, 1], -pose.xy[:, 0])
        error = wrap_angle(bearing - pose.yaw)
        forward = torch.where(error.abs() < 0.3, 0.5, 0.0)
        simulator.step(Setpoint(forward, (2 * error).clamp(-1, 1)), safety=True)
        assert simulator.pose.xy.abs().max() <= ARENA_HALF
    assert simulator.pose.xy.abs().max() < 1.5


@pytest.mark.parametrize("x", [2.345, 2.35, 2.6])
def test_a_drone_beyond_the_bound_may_come_back_but_not_go_on(x):
    simulator = Simulator(2, draw=False)
    poses = Pose.level(torch.tensor([[x, 0.0], [x, 0.0]]), torch.tensor([np.pi, 0.0]))
    simulator.reset([Layout(())] * 2, poses)
    for _ in range(10):
        simulator.step(Setpoint(torch.full((2,), 0.6), torch.zeros(2)), safety=True)
    inwards, outwards = simulator.pose.xy[:, 0].tolist()
    assert inwards < 1.5
    assert outwards == pytest.approx(x, abs=0.01)


def test_the_one_second_rule_alone_would_let_more_cross(rng):
    """Why safety also asks whether the drone could brake; both without the centimetre that is otherwise kept."""
    seed = int(rng.integers(1000))
    plain = excursions(SafetyConfig(margin=0.0, braking=0.0), np.random.default_rng(seed))
    ours = excursions(SafetyConfig(margin=0.0), np.random.default_rng(seed))
    assert plain > 200
    assert ours < plain / 50


def excursions(safety: SafetyConfig, rng: np.random.Generator) -> int:
    """How often a drone is outside, looked at every 0.05 s of 20,000 setpoints."""
    simulator, outside = near_the_fences(rng, 1000), 0
    for _ in range(20):
        flown = simulator.drones.restrain(swerving_setpoints(rng, 1000), ARENA_HALF, safety)
        for _moment in range(6):
            simulator.drones.advance(flown, 0.05, simulator.scene.worlds, simulator.scene.geoms)
            outside += int((simulator.pose.xy.abs() > ARENA_HALF).any(dim=-1).sum())
    return outside


def test_safety_leaves_a_drone_alone_that_has_room():
    simulator = Simulator(1)
    flown = simulator.step(Setpoint(torch.tensor([0.7]), torch.tensor([0.5])), safety=True)
    assert flown.forward.item() == pytest.approx(0.7)


def test_safety_still_lets_a_drone_fly_up_to_the_fence():
    simulator = Simulator(1)
    simulator.reset([Layout(())], Pose.level(torch.tensor([[0.0, 0.0]]), torch.zeros(1)))
    for _ in range(40):
        simulator.step(Setpoint(torch.tensor([0.7]), torch.tensor([0.0])), safety=True)
    assert 2.1 < simulator.pose.xy[0, 0] <= ARENA_HALF


def test_without_safety_a_drone_can_leave():
    simulator = Simulator(1)
    simulator.reset([Layout(())], Pose.level(torch.tensor([[2.2, 0.0]]), torch.zeros(1)))
    for _ in range(5):
        simulator.step(Setpoint(torch.tensor([0.7]), torch.tensor([0.0])))
    assert simulator.pose.xy[0, 0] > ARENA_HALF


def test_flying_through_a_landmark_is_counted_and_flying_over_one_is_not():
    simulator = Simulator(2)
    through, over = Layout((Placement("Fridge", 1.0, 0.0),)), Layout((Placement("Boat", 1.0, 0.0),))
    simulator.reset([through, over], Pose.level(torch.zeros(2, 2), torch.zeros(2)))
    for _ in range(12):
        simulator.step(Setpoint(torch.full((2,), 0.5), torch.zeros(2)))
    seconds = simulator.seconds_inside_landmarks
    assert 0.5 < seconds[0] < 2.0  # about half a metre of fridge at half a metre a second
    assert seconds[1] == 0.0


def test_a_simulator_of_no_worlds_or_of_an_unknown_device_is_refused():
    with pytest.raises(WordwingError, match="at least one world"):
        Simulator(0)
    with pytest.raises(WordwingError, match='no device is called "gpu0"'):
        Simulator(1, "gpu0")


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 1), ()])
def test_setpoints_of_another_shape_are_refused(shape):
    simulator = Simulator(2, draw=False)
    for safety in (False, True):
        with pytest.raises(WordwingError, match=r"2 drones need setpoints of shape \[2\]"):
            simulator.step(Setpoint(torch.zeros(shape), torch.zeros(shape)), safety=safety)


def test_bounds_may_differ_between_drones_and_axes():
    simulator = Simulator(2, draw=False)
    simulator.reset([Layout(())] * 2, Pose.level(torch.zeros(2, 2), torch.tensor([0.0, np.pi / 2])))
    for _ in range(20):
        asked = Setpoint(torch.full((2,), 0.7), torch.zeros(2))
        simulator.step(simulator.drones.restrain(asked, torch.tensor([[1.0, 0.1], [0.1, 1.5]])))
    assert simulator.pose.xy.tolist() == [pytest.approx([0.9, 0.0], abs=0.1), pytest.approx([0.0, 1.4], abs=0.1)]
    with pytest.raises(WordwingError, match="2 drones need as many pairs of bounds"):
        simulator.drones.restrain(asked, torch.ones(1, 2))


def test_more_camera_poses_than_worlds_are_refused(rng):
    simulator = Simulator(1)
    with pytest.raises(WordwingError, match="a scene of 1 worlds is drawn from as many camera poses"):
        simulator.renderer.first_person(random_poses(rng, 4))


@pytest.mark.parametrize("worlds", [[0, 0], [-1, 0], [1, 2]])
def test_worlds_named_twice_or_outside_are_refused(worlds):
    poses = Pose.level(torch.zeros(2, 2), torch.zeros(2))
    with pytest.raises(WordwingError, match="different numbers from 0 to 1"):
        Simulator(2, draw=False).reset([Layout(())] * 2, poses, torch.tensor(worlds))


def test_a_refused_reset_changes_nothing():
    simulator = Simulator(1)
    before = simulator.reset([Layout((Placement("Boat", 1.0, 0.0),))], Pose.level(torch.zeros(1, 2), torch.zeros(1)))
    with pytest.raises(WordwingError):
        simulator.reset([Layout(())], Pose.level(torch.full((1, 2), float("nan")), torch.zeros(1)))
    crowd = Layout(tuple(Placement("Boat", 0.0, 0.0) for _ in range(41)))
    with pytest.raises(WordwingError, match="41 landmarks; 40 are the most"):
        simulator.reset([crowd], Pose.level(torch.zeros(1, 2), torch.zeros(1)))
    assert torch.equal(simulator.images(), before.image)


def test_a_snapshot_brings_a_flight_back_to_the_last_bit(flight):
    layouts, poses, setpoints = flight
    simulator = Simulator(19, draw=False)
    simulator.reset(layouts, poses)
    simulator.step(setpoints[0])
    kept = simulator.snapshot()
    simulator.step(setpoints[1])
    first = simulator.pose.position
    simulator.step(setpoints[2])
    simulator.restore(kept)
    simulator.step(setpoints[1])
    assert torch.equal(simulator.pose.position, first)


def test_a_simulator_that_does_not_draw_flies_the_same(flight):
    layouts, poses, setpoints = flight
    seeing, blind = Simulator(19), Simulator(19, draw=False)
    for simulator in (seeing, blind):
        simulator.reset(layouts, poses)
        simulator.step(setpoints[0], safety=True)
    assert torch.equal(seeing.pose.position, blind.pose.position)
    assert blind.images().shape == seeing.images().shape
    assert blind.images().sum() == 0


def test_too_few_layouts_and_nan_poses_are_refused():
    simulator = Simulator(2)
    with pytest.raises(WordwingError, match="2 worlds need as many layouts and poses, not 1 and 2"):
        simulator.reset([Layout(())], Pose.level(torch.zeros(2, 2), torch.zeros(2)))
    with pytest.raises(WordwingError, match="NaN"):
        simulator.reset([Layout(())] * 2, Pose.level(torch.full((2, 2), float("nan")), torch.zeros(2)))
