"""The grid of ground cells that every map is drawn on (paper: Coordinate Frames of Reference).

A map is drawn as a person would hold it: x (forward) points up and y (left) to the left, so row 0 lies farthest ahead
and column 0 farthest to the left. The frame's origin is the corner where the four middle cells meet: the grid has no
middle cell, so nothing is off by half a cell.
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.frames import ARENA_SIZE


@dataclass(frozen=True)
class Grid:
    """A square of `cells` × `cells` cells around the origin of its frame."""

    cells: int = 64
    """Cells along an edge."""
    cell: float = ARENA_SIZE / 32
    """Edge of a cell, metres."""

    @property
    def half(self) -> float:
        """From the origin to an edge, metres."""
        return self.cells * self.cell / 2

    def centres(self, device: torch.device | str = "cpu") -> Tensor:
        """[cells, cells, 2] (x, y) of the cell centres, metres."""
        return _centres(self, torch.device(device))

    def place(self, points: Tensor) -> Tensor:
        """Points [..., 2] metres to (row, column) [..., 2]; whole numbers are cell centres."""
        return (self.half - points) / self.cell - 0.5

    def contains(self, points: Tensor) -> Tensor:
        """Whether points [..., 2] metres lie on the grid."""
        return (points.abs() <= self.half).all(-1)

    def sample(self, maps: Tensor, points: Tensor) -> Tensor:
        """Maps [N, C, cells, cells] at points [N, ..., 2], bilinearly between cell centres; zero off the grid.

        Returns:
            [N, C, ...].
        """
        # grid_sample wants (column, row) from -1 to 1 between the outer edges of the map, and so 1 where we have -half.
        where = -points.flip(-1).reshape(len(points), -1, 1, 2) / self.half
        found = functional.grid_sample(maps.float(), where.float(), align_corners=False)  # [N, C, P, 1]
        return found.reshape(*maps.shape[:2], *points.shape[1:-1])


@cache
def _centres(grid: Grid, device: torch.device) -> Tensor:
    along = grid.half - (torch.arange(grid.cells, device=device) + 0.5) * grid.cell
    return torch.stack(torch.meshgrid(along, along, indexing="ij"), dim=-1)


START_GRID = Grid()
"""The paper's 64×64 map in the start frame, ±4.7 m."""
