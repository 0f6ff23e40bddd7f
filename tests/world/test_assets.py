"""Landmark bodies keep to their catalogue entries, in both looks."""

import numpy as np
import pytest

from wordwing.errors import WordwingError
from wordwing.world.assets import BOX, asset, materials, rebuilt
from wordwing.world.catalogue import catalogue, landmark, landmarks

NAMES = [entry.name for entry in catalogue()]


def test_the_catalogue_holds_63_landmarks_15_of_the_cage_and_26_pieces_of_furniture():
    assert len(landmarks("field")) == 63
    assert [entry.cage for entry in landmarks("cage")] == list(range(1, 16))
    assert len(landmarks("house")) == 26
    assert [entry.index for entry in catalogue()] == list(range(89))


def test_an_unknown_landmark_is_answered_with_the_nearest_name():
    with pytest.raises(WordwingError, match='no landmark is called "Barell"; did you mean "Barrel"'):
        landmark("Barell")


@pytest.mark.parametrize("name", NAMES)
def test_a_landmark_fits_its_footprint_and_height_and_stands_on_the_floor(name):
    entry = landmark(name)
    for look in ("sim", "lab"):
        body = asset(name, look)
        assert 6 <= len(body) <= 16
        assert footprint(body) <= entry.footprint + 1e-6
        assert height(body) <= entry.height + 1e-6
        assert -0.021 <= body.surface_points()[:, 2].min() <= 0.03
    assert entry.footprint < entry.radius


@pytest.mark.parametrize("name", NAMES)
def test_the_lab_look_is_within_15_per_cent_in_shape_and_differs_in_paint(name):
    sim, lab = asset(name, "sim"), asset(name, "lab")
    assert (lab.kind == sim.kind).all()
    used = sim.size > 0
    ratio = lab.size[used] / sim.size[used]
    assert ratio.min() > 0.83
    assert ratio.max() < 1.0 + 1e-9
    assert footprint(lab) > 0.83 * footprint(sim)
    assert height(lab) > 0.83 * height(sim)
    assert np.abs(lab.rgb - sim.rgb).mean() > 0.01


def test_the_lab_look_is_the_same_every_time():
    first, again = rebuilt(asset("Boat")), rebuilt(asset("Boat"))
    assert (first.size == again.size).all()
    assert (first.rgb == again.rgb).all()


def test_surface_points_lie_inside_the_bounding_spheres():
    for name in NAMES:
        body = asset(name)
        points = body.surface_points()
        gaps = np.linalg.norm(points[:, None] - body.position, axis=-1) - body.bounding_radius()
        assert gaps.min(axis=1).max() < 1e-9, name


def test_landmarks_that_share_their_first_noun_differ_in_colour_or_shape():
    groups: dict[str, list[str]] = {}
    for entry in catalogue():
        groups.setdefault(entry.nouns[0], []).append(entry.name)
    for names in groups.values():
        for i, a in enumerate(names):
            for b in names[:i]:
                one, other = asset(a), asset(b)
                paint = np.abs(mean_colour(one) - mean_colour(other)).max()
                shape = abs(height(one) / height(other) - 1) + abs(footprint(one) / footprint(other) - 1)
                assert paint > 0.08 or shape > 0.15, (a, b)


def footprint(body) -> float:
    """Radius of the circle around the origin that holds all geoms seen from above."""
    return float(np.hypot(*body.surface_points().T[:2]).max())


def height(body) -> float:
    return float(body.surface_points()[:, 2].max())


def mean_colour(body) -> np.ndarray:
    half = body.half_extents()
    surface = half[:, 0] * half[:, 1] + half[:, 1] * half[:, 2] + half[:, 2] * half[:, 0]
    return (body.rgb * surface[:, None]).sum(0) / surface.sum()


def test_every_pattern_that_a_material_names_can_be_drawn():
    from wordwing.sim.kernels.textures import PATTERNS

    assert {material.pattern for material in materials()} <= set(PATTERNS)


def test_boxes_keep_their_own_three_sizes_and_round_things_stay_round_in_the_lab():
    sim, lab = asset("Barrel"), asset("Barrel", "lab")
    round_ = sim.kind != BOX
    ratio = lab.size[round_][:, :2] / sim.size[round_][:, :2]
    assert np.allclose(ratio[:, 0], ratio[:, 1])
