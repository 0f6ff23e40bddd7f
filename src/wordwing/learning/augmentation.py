"""What may change about an example without changing what is right: where its map points, which side is left, a word."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.learning.examples import Examples
from wordwing.model.text import Tokens

UNKNOWN_WORD = 1
"""Index of the unknown word in every vocabulary."""


def turned(examples: Examples, deviation: float, generator: torch.Generator) -> Examples:
    """Examples [E] whose start frames are turned by normally distributed angles.

    Maps, masks and gold are drawn in the start frame, so all of them turn by that one angle, and nothing is resampled.
    """
    start = examples.start
    angle = deviation * torch.randn(len(examples), device=start.position.device, generator=generator)
    return replace(examples, start=Pose.level(start.xy, start.yaw + angle, FLIGHT_HEIGHT))


def forgetful(tokens: Tokens, share: float, generator: torch.Generator) -> Tokens:
    """Instructions [E] of which a share of the words is unknown."""
    draw = torch.rand(tokens.words.shape, device=tokens.words.device, generator=generator)
    lost = (draw < share) & (tokens.words > UNKNOWN_WORD)
    return Tokens(torch.where(lost, UNKNOWN_WORD, tokens.words), tokens.lengths)


def mirrored_points(points: Tensor, which: Tensor) -> Tensor:
    """Points [E, ..., 2] (or 3) of the world, those of some executions [E] seen in a mirror along its x axis."""
    sign = _signs(which, points.ndim)
    return torch.cat([points[..., :1], points[..., 1:2] * sign, points[..., 2:]], dim=-1)


def mirrored_pose(pose: Pose, which: Tensor) -> Pose:
    """Poses [E, ...] of which some executions' [E] are seen in that mirror: a rotation R becomes M R M."""
    sign = _signs(which, pose.quaternion.ndim)
    w, x, y, z = pose.quaternion.split(1, dim=-1)
    return Pose(mirrored_points(pose.position, which), torch.cat([w, x * sign, y, z * sign], dim=-1))


def mirrored_image(image: Tensor, which: Tensor) -> Tensor:
    """Pictures [E, K, H, W, 3], those of some executions [E] with left and right exchanged."""
    return torch.where(which.view(-1, 1, 1, 1, 1), image.flip(-2), image)


def _signs(which: Tensor, ndim: int) -> Tensor:
    """[E, 1, ...] -1 where mirrored, else 1."""
    return torch.where(which, -1.0, 1.0).view(-1, *[1] * (ndim - 1))
