"""What the page is sent: the world, words that a policy does not know, and every decision as a binary message."""

import base64
import json
import math
import struct
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from wordwing.data.schema import MAX_TEXT
from wordwing.execution.runner import Transition
from wordwing.frames import Pose, euler_from_quaternion
from wordwing.language.text_checks import CORPORA, MissingLandmarks, missing_landmarks, word_issues
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.grid import START_GRID
from wordwing.model.policy import Beliefs
from wordwing.studio.live import Start
from wordwing.studio.messages import VERSION, start_json
from wordwing.studio.resources import DEFAULT, NamedPolicies
from wordwing.viz.belief_maps import Bytes, FeatureColours, cells_of, shown_cells
from wordwing.viz.belief_video import OUTSIDE, UNOBSERVED
from wordwing.viz.drawing import MAP_EXTENT, webp
from wordwing.viz.overhead import overheads
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import MAX_LANDMARKS, Layout

EXAMPLES = {
    "cage": [
        "go to the pumpkin and stop in front of it",
        "turn left and fly to the boat",
        "pass the gorilla on its left, then stop at the banana",
        "fly between the rock and the traffic cone",
        "go around the mushroom to the tree stump",
    ],
    "field": [
        "find the red telephone box and stop just short of it",
        "keep the windmill on your left and go to the lighthouse",
        "fly to the well, then turn right towards the tank",
        "go past the bench to the barrel",
        "head for the anvil",
    ],
    "house": [
        "walk over to the sofa",
        "turn right and go up to the fridge",
        "go past the table to the bed",
        "cross the room and stop at the chest of drawers",
        "go to the television and stop in front of it",
    ],
}
"""Our own sentences; none is in a corpus."""

OVERHEAD = 720
"""Edge of the image from above, pixels."""

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


def welcome(policies: NamedPolicies, limit: int) -> dict[str, Any]:
    """All that a page has to know before its first flight."""
    return {
        "type": "welcome",
        "version": VERSION,
        "policies": [{"name": name, "title": name, "card_url": f"/cards/{name}"} for name in policies],
        "corpora": list(CORPORA),
        "landmarks": [
            {"name": kind.name, "radius": kind.footprint, "nouns": list(kind.nouns), "set": kind.set}
            for kind in catalogue()
        ],
        "examples": EXAMPLES,
        "limits": {"text": MAX_TEXT, "visitors": limit, "landmarks": MAX_LANDMARKS},
        "default_policy": DEFAULT if DEFAULT in policies else next(iter(policies)),
        "grid": GRID,
    }


def placed(start: Start) -> dict[str, Any]:
    """Where everything is now, with the layout from above, x up and y left, as an address that a page can show."""
    return {"type": "placed", **start_json(start), "overhead": _overhead(start.layout), "extent": MAP_EXTENT}


@lru_cache(maxsize=32)
def _overhead(layout: Layout) -> str:
    """The address of a layout from above; who moves the drone or begins anew has the same layout again."""
    [ground] = overheads([layout], OVERHEAD)
    image = base64.b64encode(webp(Image.fromarray(ground), quality=82, method=2)).decode()
    return f"data:image/webp;base64,{image}"


def words_json(text: str, vocabulary: Vocabulary, layout: Layout | None) -> dict[str, Any]:
    """Words that a policy does not know or that are misspelt, and what is named and not there.

    Places are counted in UTF-16 code units, as JavaScript counts the characters of a string.
    """
    units = list(accumulate((2 if ord(letter) > 0xFFFF else 1 for letter in text), initial=0))
    marked = list(
        dict.fromkeys((units[mark.begin], units[mark.end], mark.meant) for mark in word_issues(text, vocabulary))
    )
    missing = MissingLandmarks() if layout is None else missing_landmarks(text, layout)
    return {
        "unknown": [[begin, end] for begin, end, meant in marked if meant is None],
        "slips": [[begin, end, meant] for begin, end, meant in marked if meant is not None],
        "absent": list(missing.names),
        "worlds": list(missing.worlds),
    }


class FrameWriter:
    """Writes the decisions of one instruction; its colours mean the same throughout.

    A message is the length of its header, the header as JSON, then arrays of bytes.
    """

    def __init__(self, lane: int = 0, instruction: int = 0) -> None:
        """Begin.

        Args:
            lane: Which of the drones side by side.
            instruction: Which of those that followed one another since the placed start.
        """
        self._numbers = {"lane": lane, "instruction": instruction}
        self._colours: tuple[FeatureColours, FeatureColours] | None = None
        """Of S^W and F^C, and of R^W."""
        self._drawn: Beliefs | None = None
        self._maps: dict[str, Bytes] = {}
        self._peaks: list[float] = []

    def __call__(self, transition: Transition, frame: Pose) -> bytes:
        """The message of one control period, of a policy whose start frame is `frame` [1], world frame."""
        beliefs, pose, setpoint = transition.beliefs, transition.observation.pose, transition.setpoint
        assert beliefs is not None
        assert transition.goals is not None
        if beliefs is not self._drawn:  # while the drone comes to rest its last belief stays
            self._draw(beliefs)
        arrays = {"image": transition.observation.image[0].cpu().contiguous().numpy(), **self._maps}
        turn = [float(angle[0]) for angle in euler_from_quaternion(pose.quaternion)]
        header = {
            **self._numbers,
            "step": transition.step,
            "time": _finite(transition.observation.time[0], 4),
            "pose": [_finite(number) for number in (*pose.position[0].tolist(), *turn)],
            "setpoint": None if setpoint is None else [_finite(setpoint.forward[0]), _finite(setpoint.yaw_rate[0])],
            "stop": _finite(beliefs.control.stop_probability[0]),
            "stopped": transition.action is None or bool(transition.action.stop[0]),
            "settling": transition.action is None,
            "unobserved": [_finite(number) for number in beliefs.visitation.unobserved[0].tolist()],
            "goal": [_finite(number) for number in transition.goals[0, :2].tolist()],
            "frame": [_finite(number) for number in (*frame.xy[0].tolist(), float(frame.yaw[0]))],
            "peaks": self._peaks,
            "arrays": [{"name": name, "shape": list(array.shape), "type": "uint8"} for name, array in arrays.items()],
        }
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        copied = (np.ascontiguousarray(array).data for array in arrays.values())
        return b"".join([struct.pack("<I", len(text)), text, *copied])

    def _draw(self, beliefs: Beliefs) -> None:
        """Draw the maps of a belief, and find the largest cells of d^p and d^g."""
        shown, arena = shown_cells(beliefs), beliefs.arena[0].cpu().numpy()
        semantic, grounding = cells_of(beliefs.semantic_map), cells_of(beliefs.grounding_map)
        if self._colours is None:
            self._colours = FeatureColours.fit(semantic[shown]), FeatureColours.fit(grounding[shown])
        cells = np.nan_to_num(beliefs.visitation.cells[0].cpu().numpy())  # [2, 64, 64]
        peaks = cells.max(axis=(1, 2))
        scaled = np.rint(cells * (255 / np.maximum(peaks, 1e-9))[:, None, None]).astype(np.uint8)
        masks = torch.stack([beliefs.observed[0], beliefs.arena[0], beliefs.boundary[0]]).cpu().numpy()
        bits = np.array([OBSERVED, ARENA, BOUNDARY], np.uint8)
        self._drawn, self._peaks = beliefs, [_finite(peak) for peak in peaks.tolist()]
        self._maps = {
            "features": self._colours[0](cells_of(beliefs.image_features)),
            "semantic": _map(self._colours[0], semantic, shown, arena),
            "grounding": _map(self._colours[1], grounding, shown, arena),
            "path": scaled[0],
            "goal": scaled[1],
            "masks": np.einsum("kij,k->ij", masks.view(np.uint8), bits),
        }


def _map(
    colours: FeatureColours, cells: NDArray[np.float32], shown: NDArray[np.bool_], arena: NDArray[np.bool_]
) -> Bytes:
    """Cells [64, 64, C] in their colours where they are shown, else grey; outside the arena lighter."""
    image = np.where(arena[..., None], np.array(UNOBSERVED, np.uint8), np.array(OUTSIDE, np.uint8))
    image[shown] = colours(cells[shown])
    return image


def _finite(number: object, digits: int = 6) -> float:
    """A number as JSON can have it; what is not finite is 0."""
    value = float(number)  # type: ignore[arg-type]
    return round(value, digits) if math.isfinite(value) else 0.0
