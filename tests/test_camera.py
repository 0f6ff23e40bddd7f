"""The pinhole camera against hand computation and a 3×4 projection matrix."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from randomly import random_poses
from wordwing.camera import Camera
from wordwing.frames import Pose


def test_the_focal_length_is_the_papers():
    assert Camera().focal == pytest.approx(64 / math.tan(math.radians(42)))
    assert Camera().vertical_fov_deg == pytest.approx(53.7, abs=0.1)


def test_projection_agrees_with_an_optical_frame_matrix(rng):
    camera, drones = Camera(), random_poses(rng, 40)
    points = torch.from_numpy(rng.uniform(-2, 2, (40, 3))).float()
    pixels, in_front = camera.project(points, camera.pose(drones))
    intrinsic = np.array([[camera.focal, 0, 64], [0, camera.focal, 36], [0, 0, 1]])
    optical = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]])  # x right, y down, z ahead
    for i in range(40):
        drone = Rotation.from_quat(np.roll(drones.quaternion[i].numpy(), -1))
        tilt = Rotation.from_euler("y", 15, degrees=True)
        local = optical @ (drone * tilt).inv().apply((points[i] - drones.position[i]).numpy())
        assert bool(in_front[i]) == (local[2] > 0)
        if local[2] > 0.05:
            u, v, w = intrinsic @ local
            assert pixels[i].tolist() == pytest.approx([u / w, v / w], abs=0.05)


def test_the_optical_axis_hits_the_middle_and_left_is_left():
    camera = Camera()
    pose = Pose.level(torch.zeros(3, 2), torch.zeros(3), height=0.0)
    pose = Pose(pose.position, camera.pose(pose).quaternion)
    down = math.radians(15)
    axis = torch.tensor([math.cos(down), 0.0, -math.sin(down)])
    points = torch.stack([axis, axis + torch.tensor([0.0, 0.1, 0.0]), axis + torch.tensor([0.0, 0.0, 0.1])])
    pixels, _ = camera.project(points, pose)
    assert pixels[0].tolist() == pytest.approx([64, 36], abs=1e-3)
    assert pixels[1, 0] < 64
    assert pixels[2, 1] < 36


def test_rays_through_pixel_centres_project_back_onto_them():
    camera = Camera()
    identity = Pose(torch.zeros(3), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    pixels, in_front = camera.project(camera.rays() * 3.0, identity)
    rows, columns = torch.meshgrid(torch.arange(72) + 0.5, torch.arange(128) + 0.5, indexing="ij")
    assert in_front.all()
    assert torch.allclose(pixels, torch.stack([columns, rows], dim=-1), atol=1e-3)
    assert camera.contains(pixels).all()


def test_the_nearest_ground_in_view_is_about_78_cm_ahead():
    camera = Camera()
    pose = camera.pose(Pose.level(torch.zeros(2, 2), torch.zeros(2), height=0.7))
    pixels, _ = camera.project(torch.tensor([[0.76, 0.0, 0.0], [0.80, 0.0, 0.0]]), pose)
    assert camera.contains(pixels).tolist() == [False, True]
