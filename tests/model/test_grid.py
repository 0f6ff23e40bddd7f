"""The grid of ground cells against hand-computed places and scipy's interpolation."""

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

from wordwing.model.grid import START_GRID, Grid

CELL = 4.7 / 32


def test_the_papers_map_has_64_cells_of_147_mm_and_reaches_4_70_m_each_way():
    assert START_GRID.cells == 64
    assert START_GRID.cell == pytest.approx(0.146875)
    assert START_GRID.half == pytest.approx(4.7)


def test_row_0_lies_farthest_ahead_and_column_0_farthest_to_the_left():
    centres = START_GRID.centres()
    assert centres.shape == (64, 64, 2)
    assert centres[0, 0].tolist() == pytest.approx([4.7 - CELL / 2, 4.7 - CELL / 2], abs=1e-6)
    assert centres[0, 63].tolist() == pytest.approx([4.7 - CELL / 2, CELL / 2 - 4.7], abs=1e-6)
    assert centres[63, 0].tolist() == pytest.approx([CELL / 2 - 4.7, 4.7 - CELL / 2], abs=1e-6)


def test_the_origin_is_the_corner_of_the_four_middle_cells():
    middle = START_GRID.centres()[31:33, 31:33].reshape(-1, 2)
    assert middle.mean(0).tolist() == pytest.approx([0, 0], abs=1e-6)
    assert middle.abs().numpy() == pytest.approx(CELL / 2, abs=1e-6)
    assert START_GRID.place(torch.zeros(2)).tolist() == [31.5, 31.5]


@pytest.mark.parametrize("grid", [START_GRID, Grid(cells=6, cell=0.5), Grid(cells=5, cell=0.25)])
def test_every_cell_centre_is_placed_on_its_own_row_and_column(grid):
    expected = np.stack(np.mgrid[: grid.cells, : grid.cells], axis=-1)
    assert grid.place(grid.centres()).numpy() == pytest.approx(expected, abs=1e-4)
    assert grid.contains(grid.centres()).all()


def test_points_are_placed_by_hand_computed_fractions_of_a_cell():
    grid = Grid(cells=4, cell=0.5)  # rows at x = 0.75, 0.25, -0.25, -0.75
    points = torch.tensor([[0.75, -0.75], [0.5, 0.0], [-1.0, 1.0]])
    assert grid.place(points).tolist() == [[0.0, 3.0], [0.5, 1.5], [3.5, -0.5]]


def test_a_point_beyond_any_edge_or_nowhere_is_not_on_the_grid():
    points = torch.tensor([[4.69, -4.69], [4.71, 0], [0, 4.71], [-4.71, 0], [0, -4.71], [torch.nan, 0]])
    assert START_GRID.contains(points).tolist() == [True, False, False, False, False, False]


def test_sampling_at_the_cell_centres_gives_the_cells(rng):
    maps = torch.from_numpy(rng.normal(size=(2, 3, 64, 64))).float()
    points = START_GRID.centres().expand(2, 64, 64, 2)
    assert torch.allclose(START_GRID.sample(maps, points), maps, atol=1e-4)


def test_sampling_is_scipys_bilinear_interpolation_with_zeros_around_the_map(rng):
    maps = rng.normal(size=(2, 3, 64, 64))
    points = rng.uniform(-5.2, 5.2, (2, 500, 2))
    found = START_GRID.sample(torch.from_numpy(maps), torch.from_numpy(points))
    assert found.shape == (2, 3, 500)
    for n in range(2):
        rows, columns = ((4.7 - points[n]) / CELL - 0.5).T
        for c in range(3):
            expected = map_coordinates(maps[n, c], [rows, columns], order=1, mode="grid-constant")
            assert found[n, c].numpy() == pytest.approx(expected, abs=1e-4)
            off = (np.abs(points[n]) > 4.7 + CELL / 2).any(-1)
            assert off.any()
            assert (found[n, c].numpy()[off] == 0).all()
