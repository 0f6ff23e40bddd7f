"""Frames against scipy's rotations and hand-made cases."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from randomly import random_quaternions
from wordwing import frames
from wordwing.frames import Pose


def scipy_rotation(quaternion: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.roll(quaternion, -1, axis=-1))  # scipy has w last


def test_rotating_a_vector_agrees_with_scipy(rng):
    q, v = random_quaternions(rng, 50), rng.standard_normal((50, 3))
    ours = frames.quaternion_rotate(torch.from_numpy(q), torch.from_numpy(v)).numpy()
    assert np.allclose(ours, scipy_rotation(q).apply(v), atol=1e-12)


def test_multiplying_quaternions_applies_the_right_one_first(rng):
    a, b = random_quaternions(rng, 50), random_quaternions(rng, 50)
    ours = frames.quaternion_multiply(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    theirs = (scipy_rotation(a) * scipy_rotation(b)).as_matrix()
    assert np.allclose(scipy_rotation(ours).as_matrix(), theirs, atol=1e-12)


def test_euler_angles_turn_about_z_then_y_then_x_as_scipys_intrinsic_zyx(rng):
    yaw, pitch, roll = torch.from_numpy(rng.uniform(-1.4, 1.4, (3, 50)))
    ours = frames.quaternion_from_euler(roll, pitch, yaw).numpy()
    theirs = Rotation.from_euler("ZYX", torch.stack([yaw, pitch, roll], -1).numpy())
    assert np.allclose(scipy_rotation(ours).as_matrix(), theirs.as_matrix(), atol=1e-12)


def test_angles_of_a_quaternion_are_those_of_scipys_intrinsic_zyx(rng):
    q = random_quaternions(rng, 200)
    ours = torch.stack(frames.euler_from_quaternion(torch.from_numpy(q)), -1).numpy()
    theirs = scipy_rotation(q).as_euler("ZYX")[:, ::-1]
    assert np.allclose(ours, theirs, atol=1e-9)
    assert all(angle.shape == (10, 20) for angle in frames.euler_from_quaternion(torch.from_numpy(q).view(10, 20, 4)))


def test_angles_come_back_from_their_quaternion_in_double(rng):
    roll, yaw = torch.from_numpy(rng.uniform(-3.14, 3.14, (2, 100)))
    pitch = torch.from_numpy(rng.uniform(-1.5, 1.5, 100))
    quaternion = frames.quaternion_from_euler(roll, pitch, yaw)
    for exact, found in zip((roll, pitch, yaw), frames.euler_from_quaternion(quaternion), strict=True):
        assert torch.allclose(found, exact, atol=1e-9)
    for exact, found in zip((roll, pitch, yaw), frames.euler_from_quaternion(quaternion.float()), strict=True):
        assert found.dtype == torch.float64
        assert torch.allclose(found, exact, atol=1e-4)


def test_a_drone_on_its_nose_has_angles_all_the_same():
    down = torch.tensor([[0.5**0.5, 0.0, 0.5**0.5, 0.0], [0.5**0.5 + 1e-7, 0.0, 0.5**0.5 + 1e-7, 0.0]])
    angles = torch.stack(frames.euler_from_quaternion(down))
    assert angles.isfinite().all()
    assert angles[1].tolist() == pytest.approx([math.pi / 2] * 2, abs=1e-3)


def test_a_positive_pitch_points_the_nose_down():
    q = frames.quaternion_from_euler(torch.zeros(1), torch.tensor([0.2]), torch.zeros(1))
    nose = frames.quaternion_rotate(q, torch.tensor([[1.0, 0.0, 0.0]]))
    assert nose[0, 2] == pytest.approx(-math.sin(0.2))


def test_yaw_is_the_heading_of_the_body_x_axis(rng):
    poses = Pose(torch.zeros(50, 3), torch.from_numpy(random_quaternions(rng, 50)).float())
    ahead = scipy_rotation(poses.quaternion.numpy()).apply([1.0, 0.0, 0.0])
    assert np.allclose(poses.yaw.numpy(), np.arctan2(ahead[:, 1], ahead[:, 0]), atol=1e-5)


def test_composing_with_the_inverse_gives_the_identity(rng):
    pose = Pose(torch.from_numpy(rng.standard_normal((20, 3))), torch.from_numpy(random_quaternions(rng, 20)))
    identity = pose.inverse() @ pose
    assert torch.allclose(identity.position, torch.zeros(20, 3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(identity.quaternion[:, 0].abs(), torch.ones(20, dtype=torch.float64), atol=1e-12)


def test_apply_and_unapply_are_inverse_and_apply_adds_the_position(rng):
    pose = Pose(torch.from_numpy(rng.standard_normal((20, 3))), torch.from_numpy(random_quaternions(rng, 20)))
    points = torch.from_numpy(rng.standard_normal((20, 3)))
    assert torch.allclose(pose.unapply(pose.apply(points)), points, atol=1e-12)
    assert torch.allclose(pose.apply(torch.zeros(20, 3, dtype=torch.float64)), pose.position)


def test_points_of_a_plane_are_those_at_height_0(rng):
    pose = Pose(torch.from_numpy(rng.standard_normal((20, 3))), torch.from_numpy(random_quaternions(rng, 20)))
    points = torch.from_numpy(rng.standard_normal((20, 3)) * [1, 1, 0])
    assert torch.equal(pose.apply_xy(points[:, :2]), pose.apply(points)[:, :2])
    assert torch.equal(pose.unapply_xy(points[:, :2]), pose.unapply(points)[:, :2])


def test_the_start_frame_has_the_start_at_its_origin_and_ahead_along_x():
    start = Pose.level(torch.tensor([[1.0, 2.0]]), torch.tensor([math.pi / 2]), height=0.7)
    ahead = Pose.level(torch.tensor([[1.0, 3.5]]), torch.tensor([math.pi]), height=0.7)
    seen = frames.in_start_frame(ahead, start)
    assert seen.position[0].tolist() == pytest.approx([1.5, 0.0, 0.7], abs=1e-6)
    assert seen.yaw.item() == pytest.approx(math.pi / 2)


def test_wrapped_angles_lie_in_one_turn_and_keep_their_direction(rng):
    angles = torch.from_numpy(rng.uniform(-50, 50, 1000))
    wrapped = frames.wrap_angle(angles)
    assert wrapped.min() >= -math.pi
    assert wrapped.max() < math.pi
    assert torch.allclose(wrapped.sin(), angles.sin(), atol=1e-9)
    assert torch.allclose(wrapped.cos(), angles.cos(), atol=1e-9)


def test_ned_has_east_to_the_right_and_down_below():
    left_and_up = torch.tensor([0.0, 1.0, 2.0])
    assert frames.world_to_ned(left_and_up).tolist() == [0.0, -1.0, -2.0]
    assert frames.ned_to_world(frames.world_to_ned(left_and_up)).tolist() == left_and_up.tolist()


def test_an_attitude_in_ned_turns_frd_vectors_as_ours_turns_flu_vectors(rng):
    q, v = torch.from_numpy(random_quaternions(rng, 30)), torch.from_numpy(rng.standard_normal((30, 3)))
    through_ned = frames.quaternion_rotate(frames.quaternion_to_ned(q), frames.flu_to_frd(v))
    assert torch.allclose(frames.ned_to_world(through_ned), frames.quaternion_rotate(q, v), atol=1e-12)


def test_turning_left_is_a_negative_yaw_rate_in_ned():
    assert frames.yaw_rate_to_ned(torch.tensor(0.3)).item() == pytest.approx(-0.3)


@pytest.mark.parametrize(
    ("config", "world"),
    [((0, 0), (-2.35, -2.35)), ((1000, 500), (2.35, 0.0)), ((500, 1000), (0.0, 2.35))],
)
def test_layout_units_map_to_metres_about_the_centre(config, world):
    there = frames.config_to_world(torch.tensor(config, dtype=torch.float64))
    assert there.tolist() == pytest.approx(world)
    assert frames.world_to_config(there).tolist() == pytest.approx(config)


def test_unity_metres_map_to_the_same_place_as_layout_units():
    unity = torch.tensor([[225.0, 225.0], [250.0, 275.0]], dtype=torch.float64)
    config = (unity - 225.0) * 20.0  # the rule of the dataset's own software
    assert torch.allclose(frames.unity_to_world(unity), frames.config_to_world(config))
    assert torch.allclose(frames.world_to_unity(frames.unity_to_world(unity)), unity)


@pytest.mark.parametrize(("degrees", "yaw"), [(0, math.pi / 2), (90, 0.0), (180, -math.pi / 2), (45, math.pi / 4)])
def test_compass_degrees_run_clockwise_from_north(degrees, yaw):
    angle = torch.tensor(float(degrees), dtype=torch.float64)
    assert frames.compass_to_yaw(angle).item() == pytest.approx(yaw)
    assert frames.yaw_to_compass(frames.compass_to_yaw(angle)).item() == pytest.approx(degrees)


@pytest.mark.parametrize(
    ("degrees", "ahead"),
    [(0, (1.0, 0.0)), (90, (0.0, -1.0)), (180, (-1.0, 0.0)), (270, (0.0, 1.0)), (30, (0.75**0.5, -0.5))],
)
def test_headings_run_clockwise_from_north_where_x_is_north_and_y_west(degrees, ahead):
    yaw = frames.heading_to_yaw(torch.tensor(float(degrees), dtype=torch.float64))
    assert (math.cos(yaw), math.sin(yaw)) == pytest.approx(ahead)
    assert frames.yaw_to_heading(yaw).item() == pytest.approx(degrees)


def test_a_pose_of_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"\[\.\.\., 3\]"):
        Pose(torch.zeros(2), torch.zeros(4))
