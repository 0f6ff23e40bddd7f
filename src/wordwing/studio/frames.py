"""A decision as one binary message: the length of its header, the header as JSON, then arrays of bytes."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.execution.runner import Transition
from wordwing.frames import Pose, euler_from_quaternion
from wordwing.interface import Setpoint
from wordwing.model.grid import START_GRID
from wordwing.model.policy import Beliefs
from wordwing.viz.belief_maps import Bytes, FeatureColours
from wordwing.viz.instruments import OUTSIDE, UNOBSERVED

OBSERVED, ARENA, BOUNDARY = 1, 2, 4
"""Bits of the array "masks": M^W, cells of the arena, B^W."""

GRID: dict[str, Any] = {
    "cells": START_GRID.cells,
    "size": 2 * START_GRID.half,
    "cell": START_GRID.cell,
    "origin": [START_GRID.half, START_GRID.half],
    "x": "origin[0] - (row + 0.5) * cell",
    "y": "origin[1] - (column + 0.5) * cell",
}
"""Where the cells of all maps are, start frame, metres: x forward, y left; `origin` the outer corner of cell 0, 0."""


class FrameWriter:
    """Writes the decisions of one instruction; its colours mean the same throughout."""

    def __init__(self, lane: int = 0, instruction: int = 0) -> None:
        """Begin.

        Args:
            lane: Which of the drones side by side.
            instruction: Which of those that followed one another since the placed start.
        """
        self.lane = lane
        self.instruction = instruction
        self._features: FeatureColours | None = None
        self._grounding: FeatureColours | None = None
        self._thought: Beliefs | None = None
        self._maps: list[tuple[str, Bytes]] = []
        self._peaks: list[float] = []

    def __call__(self, moment: Transition, frame: Pose) -> bytes:
        """The message of one control period, of a policy whose start frame is `frame` [1], world frame."""
        beliefs, pose = moment.beliefs, moment.observation.pose
        assert beliefs is not None
        assert moment.goals is not None
        if beliefs is not self._thought:  # while the drone comes to rest its last thought stays
            self._maps, self._peaks = self._painted(beliefs)
            self._thought = beliefs
        arrays = [("image", moment.observation.image[0].cpu().contiguous().numpy()), *self._maps]
        turn = [float(angle[0]) for angle in euler_from_quaternion(pose.quaternion)]
        header = {
            "lane": self.lane,
            "instruction": self.instruction,
            "step": moment.step,
            "time": _finite(moment.observation.time[0], 4),
            "pose": [_finite(number) for number in (*pose.position[0].tolist(), *turn)],
            "setpoint": _setpoint(moment.setpoint),
            "stop": _finite(beliefs.control.stop_probability[0]),
            "stopped": moment.action is None or bool(moment.action.stop[0]),
            "settling": moment.action is None,
            "unobserved": [_finite(number) for number in beliefs.visitation.unobserved[0].tolist()],
            "goal": [_finite(number) for number in moment.goals[0, :2].tolist()],
            "frame": [_finite(number) for number in (*frame.xy[0].tolist(), float(frame.yaw[0]))],
            "peaks": self._peaks,
            "arrays": [{"name": name, "shape": list(array.shape), "type": "uint8"} for name, array in arrays],
        }
        return packed(header, [array for _name, array in arrays])

    def _painted(self, beliefs: Beliefs) -> tuple[list[tuple[str, Bytes]], list[float]]:
        """The maps of a thought, and the largest cells of d^p and d^g."""
        shown = (beliefs.arena[0] & (beliefs.semantic_map[0] != 0).any(0)).cpu().numpy()
        arena = beliefs.arena[0].cpu().numpy()
        image, semantic = _cells(beliefs.image_features), _cells(beliefs.semantic_map)
        grounding = _cells(beliefs.grounding_map)
        if self._features is None or self._grounding is None:
            self._features = FeatureColours.fit(semantic[shown])
            self._grounding = FeatureColours.fit(grounding[shown])
        cells = np.nan_to_num(beliefs.visitation.cells[0].cpu().numpy())  # [2, 64, 64]
        peaks = cells.max(axis=(1, 2))
        scaled = np.rint(cells * (255 / np.maximum(peaks, 1e-9))[:, None, None]).astype(np.uint8)
        masks = torch.stack([beliefs.observed[0], beliefs.arena[0], beliefs.boundary[0]]).cpu().numpy()
        bits = np.array([OBSERVED, ARENA, BOUNDARY], np.uint8)
        return [
            ("features", self._features(image)),
            ("semantic", _map(self._features, semantic, shown, arena)),
            ("grounding", _map(self._grounding, grounding, shown, arena)),
            ("path", scaled[0]),
            ("goal", scaled[1]),
            ("masks", np.einsum("kij,k->ij", masks.view(np.uint8), bits)),
        ], [_finite(peak) for peak in peaks.tolist()]


def packed(header: dict[str, Any], arrays: Sequence[Bytes]) -> bytes:
    """A header and arrays of bytes as one message, each array copied once."""
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    return b"".join([struct.pack("<I", len(text)), text, *(np.ascontiguousarray(array).data for array in arrays)])


def _map(
    colours: FeatureColours, cells: NDArray[np.float32], shown: NDArray[np.bool_], arena: NDArray[np.bool_]
) -> Bytes:
    """Cells [64, 64, C] in their colours where they are shown, else grey; outside the arena lighter."""
    picture = np.where(arena[..., None], np.array(UNOBSERVED, np.uint8), np.array(OUTSIDE, np.uint8))
    picture[shown] = colours(cells[shown])
    return picture


def _cells(features: torch.Tensor) -> NDArray[np.float32]:
    """[1, C, h, w] to [h, w, C]."""
    return features[0].permute(1, 2, 0).float().cpu().numpy()


def _setpoint(setpoint: Setpoint | None) -> list[float] | None:
    """The first drone's (v, ω), m/s and rad/s; None while nothing is commanded."""
    return None if setpoint is None else [_finite(setpoint.forward[0]), _finite(setpoint.yaw_rate[0])]


def _finite(number: object, digits: int = 6) -> float:
    """A number as JSON can have it; what is not finite is 0."""
    value = float(number)  # type: ignore[arg-type]
    return round(value, digits) if math.isfinite(value) else 0.0
