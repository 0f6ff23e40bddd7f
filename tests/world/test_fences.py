import numpy as np
import pytest

from wordwing.world.fences import FENCES, distance_to_fences, nearest_on_fences


def test_an_image_with_x_up_and_y_left_shows_red_on_top_white_right_blue_below_and_yellow_left():
    right_and_up = {fence.colour: (-fence.middle[1], fence.middle[0]) for fence in FENCES}
    assert right_and_up == {
        "red": (0.0, 2.35),
        "white": (2.35, 0.0),
        "blue": (0.0, -2.35),
        "yellow": (-2.35, 0.0),
    }


def test_fences_follow_each_other_around_the_whole_arena():
    assert [fence.end for fence in FENCES] == [fence.start for fence in FENCES[1:] + FENCES[:1]]
    assert sum(np.hypot(*np.subtract(fence.end, fence.start)) for fence in FENCES) == pytest.approx(4 * 4.7)


def test_normals_are_unit_vectors_from_the_middle_of_a_fence_to_the_centre():
    for fence in FENCES:
        assert np.hypot(*fence.normal) == 1.0
        assert fence.middle + np.multiply(fence.normal, 2.35) == pytest.approx([0.0, 0.0])


def test_the_arena_is_on_the_right_of_every_fence():
    for fence in FENCES:
        along, inward = np.subtract(fence.end, fence.start), fence.normal
        assert along[0] * inward[1] - along[1] * inward[0] < 0


def test_paint_looks_like_the_name_of_the_colour():
    channels = {fence.colour: np.array(fence.rgb) for fence in FENCES}
    assert channels["red"].argmax() == 0
    assert channels["blue"].argmax() == 2
    assert channels["yellow"].argmin() == 2
    assert min(channels["white"]) > 0.9
    assert all(0.0 <= value <= 1.0 for fence in FENCES for value in fence.rgb)


def test_distances_by_hand():
    red, white, blue, yellow = distance_to_fences([1.0, -2.0])
    assert (red, white, blue, yellow) == pytest.approx((1.35, 0.35, 3.35, 4.35))
    assert distance_to_fences([2.5, 0.0])[0] == pytest.approx(-0.15)


def test_distances_keep_leading_dimensions_and_opposite_ones_add_up_to_the_edge(rng):
    distances = distance_to_fences(rng.uniform(-2.35, 2.35, (3, 5, 2)))
    assert distances.shape == (3, 5, 4)
    assert distances[..., 0] + distances[..., 2] == pytest.approx(np.full((3, 5), 4.7))
    assert distances[..., 1] + distances[..., 3] == pytest.approx(np.full((3, 5), 4.7))


def test_no_point_of_a_fence_is_nearer_than_the_nearest(rng):
    for point in rng.uniform(-2.3, 2.3, (20, 2)):
        for fence, nearest in zip(FENCES, nearest_on_fences(point), strict=True):
            line = np.linspace(fence.start, fence.end, 4701)  # a point in each millimetre
            assert nearest == pytest.approx(line[np.linalg.norm(line - point, axis=1).argmin()], abs=1e-3)
