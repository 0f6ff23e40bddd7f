"""From image features to a map of the ground, and what of it has been seen (paper: Semantic Mapping; Model, Stage 1).

Everything is drawn straight into the start frame with the camera's true 6-DOF pose; no map is ever resampled. Two
masks are kept apart: where an image gives *features*, and what counts as *observed*. The second also holds the blind
spot between the drone and the lower edge of its image, about 0.8 m ahead: otherwise the ground below the drone would
count as never seen. It holds cells of the arena only.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose, start_frame
from wordwing.model.grid import START_GRID
from wordwing.model.layers import channels_last, on_cuda


@dataclass(frozen=True)
class MappingConfig:
    """How successive images of the ground are combined."""

    blend: float = 0.2
    """λ, the weight of a new image of a cell that has been seen often; see `accumulate`."""
    blind_range: float = 1.2
    """How far ahead the ground below the image counts as observed, metres."""
    blind_radius: float = 0.3
    """Around the drone all ground counts as observed, metres."""


@dataclass(frozen=True)
class VisibleGround:
    """Where N images show the cells of the ground."""

    pixels: Tensor
    """[N, 64, 64, 2] (u, v) of the cell centres; they mean nothing out of view."""
    in_view: Tensor
    """[N, 64, 64] bool: the cell centre is in the image."""
    covered: Tensor
    """[N, 64, 64] bool: in the image or in the blind spot below it."""


def visible_ground(pose: Pose, camera: Camera, config: MappingConfig) -> VisibleGround:
    """Project the cells of the ground into the images of drones at poses [N], start frame."""
    centres = START_GRID.centres(pose.position.device)
    ground = functional.pad(centres, (0, 1))  # [64, 64, 3], elevation zero
    pixels, in_front = camera.project(ground, camera.pose(pose)[:, None, None])
    in_view = in_front & camera.contains(pixels)
    u, v = pixels.unbind(-1)
    below = in_front & (u >= 0) & (u < camera.config.width) & (v >= camera.config.height)
    distance = (centres - pose.xy[:, None, None]).norm(dim=-1)  # [N, 64, 64]
    around = (distance <= config.blind_radius) & ~u.isnan()  # without an attitude nothing is seen
    blind = (below & (distance <= config.blind_range)) | around
    return VisibleGround(pixels, in_view, in_view | blind)


def project(features: Tensor, ground: VisibleGround, stride: int, camera: Camera) -> Tensor:
    """F^W: image features projected onto the ground.

    Args:
        features: [N, C, h, w] of which (i, j) is centred on the middle of pixel (stride · i, stride · j).
        ground: Of N images.
        stride: 1 for the image itself.
        camera: That took the images.

    Returns:
        [N, C, 64, 64], zero where the ground is not in view.
    """
    height, width = features.shape[-2:]
    if (height * stride, width * stride) != (camera.config.height, camera.config.width):
        raise ValueError(f"{height}x{width} features {stride} pixels apart do not belong to this camera")
    # grid_sample wants (column, row) between the outer edges of the features, -1 and 1. Beyond the middles of the
    # outermost features these are repeated; out of view there are none, and none receives a gradient.
    column, row = ((ground.pixels - 0.5) / stride).unbind(-1)  # whole numbers are features
    column, row = column.clamp(0, width - 1), row.clamp(0, height - 1)
    where = torch.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], dim=-1)
    where = torch.where(ground.in_view[..., None], where, 2.0)
    found = _sample(features.float(), where)  # bf16 is too coarse within a pixel
    return found.to(features.dtype)


def _sample(features: Tensor, where: Tensor) -> Tensor:
    """`grid_sample` at places [N, 64, 64, 2] of features [N, C, h, w], beside whose edges there are none."""
    if on_cuda(features):
        return _PixelSample.apply(features, where)
    return functional.grid_sample(features, where, align_corners=False)


class _PixelSample(torch.autograd.Function):
    """The same where features lie pixel by pixel: neighbouring threads then read neighbouring channels of one pixel."""

    @staticmethod
    def forward(context: Any, features: Tensor, where: Tensor) -> Tensor:
        """[N, C, 64, 64]."""
        context.save_for_backward(features, where)
        height, width = features.shape[2:]
        column, row = (
            ((share + 1) * size - 1) / 2 for share, size in zip(where.unbind(-1), (width, height), strict=True)
        )
        left, above = column.floor(), row.floor()
        inside = (where.abs() <= 1).all(-1)
        pixels = features.permute(0, 2, 3, 1).flatten(1, 2)  # [N, h · w, C]
        image = torch.arange(len(features), device=features.device)[:, None, None]
        found = torch.zeros((), device=features.device)
        for j, i in itertools.product((left, left + 1), (above, above + 1)):
            weight = (1 - (column - j).abs()) * (1 - (row - i).abs())
            index = i.clamp(0, height - 1).long() * width + j.clamp(0, width - 1).long()
            found = found + torch.where(inside, weight, 0.0)[..., None] * pixels[image, index]
        return found.permute(0, 3, 1, 2)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Of the features alone."""
        features, where = context.saved_tensors
        how = (0, 0, False, (True, False))  # bilinear, zeros beyond the edges
        found, _none = torch.ops.aten.grid_sampler_2d_backward(gradient, features, where, *how)
        return found, None


@dataclass(frozen=True)
class SemanticMap:
    """S^W: N maps of features, and how often each cell has been seen."""

    features: Tensor
    """[N, C, 64, 64] start frame; zero where nothing has been seen."""
    view_counts: Tensor
    """[N, 64, 64] how many images have shown each cell."""

    @classmethod
    def empty(cls, count: int, channels: int, device: torch.device | str = "cpu") -> SemanticMap:
        """N maps before the first image."""
        shape = (count, channels, START_GRID.cells, START_GRID.cells)
        counts = torch.zeros(shape[:1] + shape[2:], device=device)
        return cls(channels_last(torch.zeros(shape, device=device)), counts)

    def accumulate(self, ground_features: Tensor, in_view: Tensor, blend: float) -> SemanticMap:
        """Blend in another image's features [N, C, 64, 64] where it shows the ground, `in_view` [N, 64, 64].

        S ← S + a · (F − S) with a = max(1 / n, λ) when a cell is seen for the n-th time: the first feature is taken
        whole, the next are averaged, and from the (1 / λ)-th on old ones fade. (With a = λ from the first time on, as
        the authors have it, a cell that is seen late keeps a fifth of its feature.)
        """
        view_counts = self.view_counts + in_view
        share = torch.where(in_view, (1 / view_counts.clamp(min=1)).clamp(min=blend), 0.0)[:, None]
        features = self.features + share * (ground_features - self.features)
        return SemanticMap(features, view_counts)


def arena_cells(start: Pose) -> Tensor:
    """[N, 64, 64] bool: cells whose centre lies in the arena, for starts [N] (world frame)."""
    return _reach(start) <= ARENA_HALF


def boundary_cells(start: Pose) -> Tensor:
    """B^W [N, 64, 64] bool: cells of the arena whose centre lies within a cell of its edge."""
    reach = _reach(start)
    return (reach <= ARENA_HALF) & (reach > ARENA_HALF - START_GRID.cell)


def _reach(start: Pose) -> Tensor:
    """[N, 64, 64] greater of |x| and |y| of the cell centres, world frame, metres."""
    ground = functional.pad(START_GRID.centres(start.position.device), (0, 1))
    return start_frame(start)[:, None, None].apply(ground)[..., :2].abs().amax(-1)
