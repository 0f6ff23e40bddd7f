import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from small_policy import small_network
from wordwing.camera import Camera
from wordwing.frames import Pose
from wordwing.world.catalogue import landmark
from wordwing.world.layout import Layout, Placement

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "landmark_probe"))
from landmark_probe import LinearProbe, features_at, see_landmarks, sightings, take_images

CAMERA = Camera()
CENTRE = np.array([-1.9, -0.4])
LAYOUTS = [
    Layout((Placement("Barrel", 0.0, 0.0), Placement("Box", -0.6, 0.5), Placement("Banana", -2.1, 0.0))),
    Layout((Placement("Pumpkin", 1.6, -0.4), Placement("Gorilla", 0.4, 0.8), Placement("Boat", 0.0, -0.4))),
]
POSE = Pose.level(torch.from_numpy(np.stack([CENTRE, CENTRE])).float(), torch.tensor([0.2, -0.1]), 0.7)


def pixel_of(placement: Placement, yaw: float) -> tuple[float, float]:
    """Where a level drone at CENTRE, 0.7 m up, with its camera 15° down, sees a place on the ground."""
    x, y = np.array([placement.x, placement.y]) - CENTRE
    ahead, left = math.cos(yaw) * x + math.sin(yaw) * y, math.cos(yaw) * y - math.sin(yaw) * x
    tilt = math.radians(15)
    depth, up = math.cos(tilt) * ahead + math.sin(tilt) * 0.7, math.sin(tilt) * ahead - math.cos(tilt) * 0.7
    focal = 64 / math.tan(math.radians(42))
    return 64 - focal * left / depth, 36 - focal * up / depth


def test_sightings_are_the_landmarks_in_the_image_up_to_a_reach():
    found = sightings(LAYOUTS, POSE, CAMERA, reach=3.0)  # the banana is behind the drone, the pumpkin 3.5 m away
    expected = [(0, "Barrel", 0.2), (0, "Box", 0.2), (1, "Gorilla", -0.1), (1, "Boat", -0.1)]
    assert found.image.tolist() == [picture for picture, _name, _yaw in expected]
    assert found.kind.tolist() == [landmark(name).index for _picture, name, _yaw in expected]
    for number, (picture, name, yaw) in enumerate(expected):
        [placement] = [entry for entry in LAYOUTS[picture].landmarks if entry.name == name]
        assert found.pixel[number].tolist() == pytest.approx(pixel_of(placement, yaw), abs=1e-3)
        away = math.dist(CENTRE, (placement.x, placement.y))
        assert float(found.distance[number]) == pytest.approx(away, abs=1e-5)


def test_a_landmark_at_the_first_place_of_the_catalogue_is_not_seen_where_there_is_none():
    empty = Layout(())
    assert len(sightings([empty], Pose.level(torch.tensor([[-1.5, 0.0]]), torch.zeros(1), 0.7), CAMERA)) == 0


def test_the_feature_of_a_landmark_is_bilinear_between_those_around_it(rng):
    features = torch.from_numpy(rng.standard_normal((3, 5, 18, 32))).float()
    pixel = torch.tensor([[4 * 7 + 0.5, 4 * 3 + 0.5], [4 * 20 + 1.5, 4 * 10 + 3.5], [127.9, 71.9]])
    found = features_at(features, pixel, CAMERA)
    assert torch.allclose(found[0], features[0, :, 3, 7], atol=1e-5)
    upper = 0.75 * features[1, :, 10, 20] + 0.25 * features[1, :, 10, 21]
    lower = 0.75 * features[1, :, 11, 20] + 0.25 * features[1, :, 11, 21]
    assert torch.allclose(found[1], 0.25 * upper + 0.75 * lower, atol=1e-5)
    assert torch.allclose(found[2], features[2, :, 17, 31], atol=1e-5)  # beyond the last middle they go on


class Painter:
    """Eyes that see of each picture its red, and where they look: row, column and domain."""

    def encode_images(self, image, domain):
        row, column = torch.meshgrid(torch.arange(18.0), torch.arange(32.0), indexing="ij")
        planes = torch.stack([row, column, torch.full_like(row, domain == "lab")]).expand(len(image), -1, -1, -1)
        return torch.cat([planes, image[:, ::4, ::4, 0].float()[:, None]], dim=1)


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_what_is_seen_of_a_landmark_is_in_its_own_image_at_its_own_place(batch):
    layouts, pose = LAYOUTS * 2, POSE[torch.tensor([0, 1, 0, 1])]
    image = torch.tensor([10, 20, 30, 40], dtype=torch.uint8)[:, None, None, None].expand(4, 72, 128, 3)
    found = sightings(layouts, pose, CAMERA)
    seen = see_landmarks(Painter(), image, found, "lab", CAMERA, batch)
    assert seen[:, 3].tolist() == pytest.approx([10, 10, 20, 20, 30, 30, 40, 40])
    names = ["Barrel", "Box", "Gorilla", "Boat"] * 2
    for row, name, picture in zip(seen, names, found.image.tolist(), strict=True):
        [placement] = [entry for entry in layouts[picture].landmarks if entry.name == name]
        u, v = pixel_of(placement, (0.2, -0.1)[picture % 2])
        assert row[:3].tolist() == pytest.approx([(v - 0.5) / 4, (u - 0.5) / 4, 1.0], abs=1e-3)


def test_each_domain_has_its_own_eyes():
    stage1 = small_network().stage1
    image = take_images(LAYOUTS, POSE, "sim")
    found = sightings(LAYOUTS, POSE, CAMERA)
    sim, lab = (see_landmarks(stage1, image, found, domain, CAMERA) for domain in ("sim", "lab"))
    assert sim.shape == lab.shape == (4, 8)
    assert not torch.allclose(sim, lab, atol=0.1)
    assert not sim.requires_grad


def test_both_domains_show_the_landmark_at_the_same_place():
    layout = Layout((Placement("Pumpkin", 0.0, 0.0),))
    pose = Pose.level(torch.tensor([[-1.2, 0.2], [0.3, 1.3]]), torch.tensor([-0.3, -1.4]), 0.7)
    bare = Layout(())
    for domain in ("sim", "lab"):
        with_it, without = (take_images([one, one], pose, domain).float() for one in (layout, bare))
        found = sightings([layout, layout], pose, CAMERA)
        changed = (with_it - without).abs().amax(-1) > 60  # more than the lab's noise
        for number in range(2):
            rows, columns = changed[number].nonzero().T
            u, v = found.pixel[number].tolist()
            assert float(columns.float().mean()) == pytest.approx(u, abs=4), domain
            assert rows.min() < v < rows.max() + 4, domain


def test_lab_images_have_noise_that_only_a_seed_repeats():
    layouts, pose = [LAYOUTS[0], LAYOUTS[1], LAYOUTS[0]], POSE[torch.tensor([0, 1, 0])]
    first, again, other = (take_images(layouts, pose, "lab", seed) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[2])  # the same place at another time
    difference = (first[0].float() - first[2].float()).abs().mean()
    assert difference < (first[0].float() - first[1].float()).abs().mean()


def test_features_that_tell_all_kinds_apart_name_every_landmark(rng):
    kind = torch.from_numpy(rng.choice([3, 17, 60], 90))
    features = torch.nn.functional.one_hot(kind, 89).float()[:, [17, 60, 3]] * 100 + 7
    probe = LinearProbe.fit(features[:60], kind[:60])
    assert torch.equal(probe.name(features), kind)


def test_shuffled_names_are_learned_no_better_than_chance(rng):
    kind = torch.from_numpy(rng.choice(5, 4000))
    features = torch.nn.functional.one_hot(kind, 5).float() + 0.1 * torch.from_numpy(rng.standard_normal((4000, 5)))
    shuffled = kind[torch.from_numpy(rng.permutation(4000))]
    right = (LinearProbe.fit(features[:2000], shuffled[:2000]).name(features[2000:]) == shuffled[2000:]).float().mean()
    assert float(right) == pytest.approx(0.2, abs=4 * math.sqrt(0.2 * 0.8 / 2000))


def test_the_fit_has_no_slope_left_and_names_the_likeliest_kind(rng):
    features = torch.from_numpy(rng.standard_normal((300, 4)) * [1.0, 50.0, 0.01, 3.0] + [0.0, 9.0, -4.0, 1.0])
    kind = torch.from_numpy(rng.choice([2, 5, 8], 300))
    probe = LinearProbe.fit(features, kind, decay=0.01)
    inputs = ((features - features.mean(0)) / features.std(0, correction=0)).numpy()
    scores = inputs @ probe.weight.numpy().T + probe.bias.numpy()
    share = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    error = share - (kind.numpy()[:, None] == [2, 5, 8])
    assert np.allclose(error.T @ inputs / 300 + 0.01 * probe.weight.numpy(), 0, atol=1e-5)
    assert np.allclose(error.mean(0), 0, atol=1e-5)
    assert probe.name(features).tolist() == np.array([2, 5, 8])[share.argmax(1)].tolist()


def test_features_are_standardised_by_those_that_were_fitted(rng):
    kind = torch.tensor([1, 4] * 50)
    features = torch.from_numpy(rng.standard_normal((100, 1))) * 0.1 + (kind == 4)[:, None] * 2.0
    probe = LinearProbe.fit(features, kind)
    assert probe.name(torch.tensor([[2.5], [2.1]])).tolist() == [4, 4]
    assert probe.name(torch.tensor([[0.1]])).tolist() == [1]


def test_a_feature_that_never_changes_is_no_hindrance():
    kind = torch.tensor([1, 4] * 20)
    features = torch.stack([torch.ones(40), (kind == 4).float()], dim=1)
    probe = LinearProbe.fit(features, kind)
    assert torch.equal(probe.name(features), kind)
