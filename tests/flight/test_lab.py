"""The lab as a vehicle: what it reports, what it flies, and that it stays in the arena."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from wordwing.camera import CameraConfig
from wordwing.execution import runner
from wordwing.frames import ARENA_HALF, Pose
from wordwing.interface import Observation, Setpoint
from wordwing.lab.camera import LabCamera, LabCameraConfig
from wordwing.lab.flight import LabFlightConfig
from wordwing.lab.vehicle import LabConfig, LabVehicle
from wordwing.lab.wind import WindConfig
from wordwing.lens import LensConfig
from wordwing.policies.oracle import Oracle
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import sample_tasks

EMPTY = Layout(())
BOXES = Layout((Placement("Box", 0.8, 0.3), Placement("Banana", -1.0, -0.8)))
SENSOR = CameraConfig(width=48, height=28, horizontal_fov_deg=82.0)
QUICK = LabConfig(camera=LabCameraConfig(lens=LensConfig(sensor=SENSOR), blur_samples=1))
"""The lab with a coarse camera, for tests that do not look."""

EXACT = replace(QUICK, position_noise=0.0, attitude_noise=0.0)


def setpoint(forward: float, yaw_rate: float) -> Setpoint:
    return Setpoint(torch.tensor([forward]), torch.tensor([yaw_rate]))


def fly(vehicle: LabVehicle, *setpoints: tuple[float, float]) -> list[Observation]:
    seen = [vehicle.observe()]
    for forward, yaw_rate in setpoints:
        vehicle.send(setpoint(forward, yaw_rate))
        vehicle.wait(0.3)
        seen.append(vehicle.observe())
    return seen


def same(first: list[Observation], second: list[Observation]) -> bool:
    """Whether two flights agree to the last bit, pictures included."""
    return all(
        torch.equal(a.image, b.image)
        and torch.equal(a.pose.position, b.pose.position)
        and torch.equal(a.pose.quaternion, b.pose.quaternion)
        and torch.equal(a.time, b.time)
        for a, b in zip(first, second, strict=True)
    )


def rotation(pose: Pose) -> Rotation:
    return Rotation.from_quat(pose.quaternion.numpy(), scalar_first=True)


def test_it_starts_in_hover_where_it_is_told():
    with LabVehicle(EMPTY, (0.5, -1.0), 2.0, config=EXACT) as vehicle:
        observation = vehicle.observe()
    assert observation.pose.position.tolist() == [pytest.approx([0.5, -1.0, 0.7])]
    assert observation.pose.yaw.item() == pytest.approx(2.0)
    assert observation.time.tolist() == [0.0]
    assert observation.image.shape == (1, 72, 128, 3)
    assert observation.image.dtype == torch.uint8


def test_the_reported_pose_is_the_true_one_of_30_milliseconds_ago():
    vehicle = LabVehicle(EMPTY, (0.0, 0.0), 0.0, config=EXACT)
    vehicle.send(setpoint(0.7, -1.0))
    true = {}
    for step in range(1, 151):
        vehicle.wait(0.01)
        true[step] = vehicle.true_pose
    for step in range(150, 300, 30):
        observation = vehicle.observe()
        assert observation.time.item() == pytest.approx(step * 0.01)
        then, now = true[step - 3], true[step]
        assert observation.pose.position.numpy() == pytest.approx(then.position.numpy(), abs=1e-6)
        assert observation.pose.quaternion.numpy() == pytest.approx(then.quaternion.numpy(), abs=1e-6)
        assert (observation.pose.position - now.position).norm() > 0.01
        for later in range(step + 1, step + 31):
            vehicle.wait(0.01)
            true[later] = vehicle.true_pose


def test_the_image_was_exposed_from_80_to_60_milliseconds_ago():
    quiet = LabCameraConfig(exposure_spread=0.0, flicker=0.0, read_noise=0.0, shot_noise=0.0)
    vehicle = LabVehicle(BOXES, (-0.5, 0.0), 0.2, config=LabConfig(camera=quiet))
    vehicle.send(setpoint(0.6, 1.0))
    vehicle.wait(1.0)
    poses = []
    for _ in range(5):  # at 1.00, 1.02, … 1.08 s
        poses.append(vehicle.true_pose)
        vehicle.wait(0.02)
    seen = vehicle.observe().image[0]  # at 1.10 s
    expected = LabCamera(BOXES, np.random.default_rng(), quiet).take(poses[1], poses[2])
    assert torch.equal(seen, expected)
    other = LabCamera(BOXES, np.random.default_rng(), quiet).take(poses[2], poses[3])
    assert not torch.equal(seen, other)


def test_poses_are_measured_to_under_a_centimetre():
    vehicle = LabVehicle(EMPTY, (1.0, 0.5), 0.7, config=QUICK)
    observations = [vehicle.observe() for _ in range(400)]  # time stands still
    offsets = torch.cat([seen.pose.position for seen in observations]) - vehicle.true_pose.position
    assert offsets.std(dim=0).tolist() == pytest.approx([0.003] * 3, rel=0.15)
    assert offsets.mean(dim=0).tolist() == pytest.approx([0.0] * 3, abs=6e-4)
    assert offsets.norm(dim=-1).square().mean().sqrt() < 0.01
    turns = np.stack(
        [(rotation(vehicle.true_pose).inv() * rotation(seen.pose)).as_rotvec()[0] for seen in observations]
    )
    assert turns.std(axis=0) == pytest.approx([0.003] * 3, rel=0.15)
    assert turns.mean(axis=0) == pytest.approx([0.0] * 3, abs=6e-4)


def test_time_passes_only_in_wait_and_in_landing():
    vehicle = LabVehicle(EMPTY, (0.0, 0.0), 0.0, config=QUICK)
    fly(vehicle, (0.5, 0.3), (0.5, 0.3))
    time, position = vehicle.time, vehicle.true_pose.position
    for _ in range(3):
        vehicle.observe()
        vehicle.send(setpoint(0.7, -1.0))
    assert vehicle.time == time == pytest.approx(0.6)
    assert torch.equal(vehicle.true_pose.position, position)
    vehicle.wait(0.25)
    assert vehicle.time == pytest.approx(0.85)
    vehicle.land()
    assert vehicle.time > 2.0


def test_the_same_seed_flies_the_same_flight_to_the_last_pixel():
    setpoints = [(0.7, 0.5), (0.7, -1.0), (0.2, 0.0)]
    vehicle = LabVehicle(BOXES, (-0.5, 0.2), 0.1, seed=3)
    first = fly(vehicle, *setpoints)
    assert same(first, fly(LabVehicle(BOXES, (-0.5, 0.2), 0.1, seed=3), *setpoints))
    vehicle.land()
    vehicle.connect()
    assert same(first, fly(vehicle, *setpoints))
    other = fly(LabVehicle(BOXES, (-0.5, 0.2), 0.1, seed=4), *setpoints)
    for a, b in zip(first, other, strict=True):
        assert not torch.equal(a.image, b.image)
        assert not torch.equal(a.pose.position, b.pose.position)
    assert first[-1].pose.position.tolist() == [pytest.approx(other[-1].pose.position[0].tolist(), abs=0.1)]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ((0.3, -0.4), (0.3, -0.4)),
        ((9.0, 3.0), (0.7, 1.0)),
        ((-1.0, -3.0), (0.0, -1.0)),
        ((math.nan, math.nan), (0.0, 0.0)),
        ((math.inf, -math.inf), (0.7, -1.0)),
    ],
)
def test_send_says_what_was_sent_after_the_limits(asked, sent):
    vehicle = LabVehicle(EMPTY, (-1.5, 0.0), 0.0, config=QUICK)
    answer = vehicle.send(setpoint(*asked))
    assert (answer.forward.item(), answer.yaw_rate.item()) == pytest.approx(sent)


def test_what_send_says_is_what_is_flown():
    calm = replace(EXACT, flight=LabFlightConfig(wind=WindConfig(standard_deviation=0.0)))
    vehicle = LabVehicle(EMPTY, (-2.0, 0.0), 0.0, config=calm)
    sent = vehicle.send(setpoint(5.0, 0.0))
    vehicle.wait(2.0)
    before = vehicle.true_pose.position
    vehicle.wait(1.0)
    assert (vehicle.true_pose.position - before)[0, 0].item() == pytest.approx(sent.forward.item(), abs=0.05)


def test_a_setpoint_with_gradient_is_sent_like_any_other():
    vehicle = LabVehicle(EMPTY, (0.0, 0.0), 0.0, config=QUICK)
    sent = vehicle.send(Setpoint(torch.tensor([0.4], requires_grad=True), torch.tensor([0.1], requires_grad=True)))
    assert not sent.forward.requires_grad
    assert sent.forward.item() == pytest.approx(0.4)


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2, math.pi, -math.pi / 2])
def test_flown_at_a_fence_it_slows_down_and_stops_before_it(yaw):
    vehicle = LabVehicle(EMPTY, (0.0, 0.0), yaw, config=QUICK)
    speeds = []
    for _ in range(25):
        speeds.append(vehicle.send(setpoint(0.7, 0.0)).forward.item())
        vehicle.wait(0.3)
    assert speeds[0] == pytest.approx(0.7)
    assert speeds[-1] == 0.0
    assert 1.7 < vehicle.true_pose.xy.abs().max() < ARENA_HALF - 0.1


@pytest.mark.parametrize("habit", ["random", "charging", "spinning"])
def test_it_never_leaves_the_arena(habit, rng):
    for seed in range(8):
        vehicle = LabVehicle(EMPTY, rng.uniform(-2.0, 2.0, 2), rng.uniform(-3.1, 3.1), seed, QUICK)
        turn = 1.0
        for step in range(40):
            turn = rng.choice([-1.0, 1.0]) if step % 8 == 0 else turn
            asked = {
                "random": (rng.uniform(0.0, 1.0), rng.uniform(-1.0, 1.0)),
                "charging": (0.7, 0.0),
                "spinning": (0.7, turn),
            }[habit]
            sent = vehicle.send(setpoint(*asked))
            assert 0.0 <= sent.forward.item() <= min(asked[0], 0.7) + 1e-6
            assert sent.yaw_rate.item() == pytest.approx(asked[1])
            for _ in range(6):
                vehicle.wait(0.05)
                assert vehicle.true_pose.xy.abs().max() < ARENA_HALF


def test_without_margins_it_would_be_carried_out():
    """Why the lab keeps a distance that `sim` does not need."""
    careless = replace(QUICK, fence_margin=0.0, side_margin=0.0)
    furthest = 0.0
    for seed in range(4):
        vehicle = LabVehicle(EMPTY, (0.0, 0.0), 0.4 * seed, seed, careless)
        for _ in range(30):
            vehicle.send(setpoint(0.7, 0.0))
            vehicle.wait(0.3)
            furthest = max(furthest, vehicle.true_pose.xy.abs().max().item())
    assert furthest > ARENA_HALF


def test_without_safety_it_would_leave():
    vehicle = LabVehicle(EMPTY, (1.5, 0.0), 0.0, config=QUICK, safety=False)
    for _ in range(8):
        assert vehicle.send(setpoint(0.7, 0.0)).forward.item() == pytest.approx(0.7)
        vehicle.wait(0.3)
    assert vehicle.true_pose.xy[0, 0] > ARENA_HALF


def test_a_drone_too_near_to_a_fence_may_fly_back_but_not_on():
    vehicle = LabVehicle(EMPTY, (2.2, 0.0), 0.0, config=QUICK)
    assert vehicle.send(setpoint(0.7, 0.0)).forward.item() == 0.0
    for _ in range(11):
        assert vehicle.send(setpoint(0.0, 1.0)).yaw_rate.item() == 1.0
        vehicle.wait(0.3)
    vehicle.send(setpoint(0.7, 0.0))
    for _ in range(8):
        vehicle.send(setpoint(0.7, 0.0))
        vehicle.wait(0.3)
    assert vehicle.true_pose.xy[0, 0] < 1.5


@pytest.mark.parametrize("towards", [-0.3, 0.0, 0.2])
def test_along_a_fence_it_flies_unhindered(towards):
    vehicle = LabVehicle(EMPTY, (2.1, -1.5), math.pi / 2 - towards, config=QUICK)
    for _ in range(3):
        assert vehicle.send(setpoint(0.7, 0.0)).forward.item() == pytest.approx(0.7)
        vehicle.wait(0.3)


def test_a_drone_that_looks_along_a_fence_and_turns_to_it_is_held():
    vehicle = LabVehicle(EMPTY, (2.1, -1.5), math.pi / 2, config=QUICK)
    assert vehicle.send(setpoint(0.7, -1.0)).forward.item() == 0.0
    assert vehicle.send(setpoint(0.7, 1.0)).forward.item() == pytest.approx(0.7)


def test_leaving_the_context_lands_even_when_something_has_gone_wrong():
    def go_wrong() -> None:
        vehicle.send(setpoint(0.7, 0.0))
        vehicle.wait(1.0)
        assert vehicle.flying
        raise LookupError

    vehicle = LabVehicle(EMPTY, (0.0, 0.0), 0.0, config=QUICK)
    with pytest.raises(LookupError), vehicle:
        go_wrong()
    assert not vehicle.flying
    assert vehicle.true_pose.position[0, 2] < 0.15


def test_a_latency_beyond_the_flights_memory_is_refused():
    with pytest.raises(ValueError, match=r"a pose 0.7 s old is needed, but the flight remembers 0.5 s"):
        LabVehicle(EMPTY, (0.0, 0.0), 0.0, config=replace(QUICK, pose_latency=0.7))


def test_the_oracle_flies_sampled_paths_to_their_ends(rng):
    for task in sample_tasks("cage", 3, rng):
        with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=7, config=QUICK) as vehicle:
            [flight] = runner.fly(Oracle(), vehicle, [task])
            rest = vehicle.true_pose.xy[0].numpy()
        assert flight.stopped
        assert np.linalg.norm(rest - task.gold_path[-1]) < 0.47
        assert np.linalg.norm(flight.path[-1] - rest) < 0.02
        # On the way it keeps to the path.
        gaps = np.linalg.norm(flight.path[:, None] - task.gold_path, axis=-1).min(axis=1)
        assert gaps.max() < 0.47


def test_flying_through_a_landmark_is_counted_and_flying_over_one_is_not():
    for name, expected in (("Fridge", 0.8), ("Boat", 0.0)):
        vehicle = LabVehicle(Layout((Placement(name, 0.9, 0.0),)), (0.0, 0.0), 0.0, config=QUICK)
        vehicle.send(setpoint(0.5, 0.0))
        vehicle.wait(3.6)
        assert vehicle.seconds_inside_landmarks == pytest.approx(expected, abs=0.4)
        vehicle.connect()
        assert vehicle.seconds_inside_landmarks == 0.0
