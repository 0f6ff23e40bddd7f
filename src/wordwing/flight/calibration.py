"""The drone's camera as its calibration has it, and the file that says so, `camera.json`.

A file is `{"schema": 1, "width": 1280, "height": 720, "fx": 700.0, "fy": 700.0, "cx": 640.0, "cy": 360.0, "k1": -0.1,
"k2": 0.01, "p1": 0.0, "p2": 0.0, "k3": 0.0, "pitch_down_deg": 15.0, "latency": 0.06}`: what OpenCV's `calibrateCamera`
gives, how the camera is mounted, and how old an image is when it arrives. Instead of `fx` there may be
`horizontal_fov_deg`, that of the pinhole without the lens. All but `schema`, `width`, `height`, one of these two and
`latency` may be left out.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field

from wordwing.camera import CameraConfig
from wordwing.files import read_text, write_text
from wordwing.lens import LensConfig, Rectifier
from wordwing.validation import parse, parse_json

MAX_BYTES = 100_000
"""Largest file that is read; far beyond what one can hold."""

Focal = Annotated[float, Field(ge=10, le=20_000)]
Pixel = Annotated[float, Field(ge=0, le=8192)]
Radial = Annotated[float, Field(ge=-10, le=10)]
Tangential = Annotated[float, Field(ge=-1, le=1)]


@dataclass(frozen=True)
class Calibration:
    """A camera on a drone, in OpenCV's numbers; making one checks nothing, `load` and `save` do."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    width: Annotated[int, Field(ge=64, le=8192)]
    """Of the raw image, pixels."""
    height: Annotated[int, Field(ge=36, le=8192)]
    """Of the raw image, pixels."""
    latency: Annotated[float, Field(ge=0, le=2)]
    """How old an image is when it arrives, seconds."""
    fx: Focal | None = None
    """Focal length along the image's rows, pixels."""
    fy: Focal | None = None
    """Focal length along its columns, pixels; None for the same."""
    cx: Pixel | None = None
    """Where the optical axis meets the image, pixels from the middle of the first one; None for its middle."""
    cy: Pixel | None = None
    """The same along its columns."""
    horizontal_fov_deg: Annotated[float, Field(ge=20, le=170)] | None = None
    """Instead of `fx`: the field of view if the lens did not bend, degrees."""
    k1: Radial = 0.0
    k2: Radial = 0.0
    p1: Tangential = 0.0
    p2: Tangential = 0.0
    k3: Radial = 0.0
    """Distortion."""
    pitch_down_deg: Annotated[float, Field(ge=-90, le=90)] = 15.0
    """Tilt of the optical axis below the drone's x axis, degrees."""

    @property
    def lens(self) -> LensConfig:
        """The same for `lens.Rectifier`."""
        fov, focal = self.horizontal_fov_deg, None
        if self.fx is not None:
            fov, focal = math.degrees(2 * math.atan(self.width / 2 / self.fx)), (self.fx, self.fy or self.fx)
        if fov is None:
            raise ValueError("a calibration needs fx or horizontal_fov_deg")
        across = self.width / 2 if self.cx is None else self.cx + 0.5
        down = self.height / 2 if self.cy is None else self.cy + 0.5
        centre = None if self.cx is None and self.cy is None else (across, down)
        sensor = CameraConfig(self.width, self.height, fov, self.pitch_down_deg)
        return LensConfig(sensor, self.k1, self.k2, self.k3, self.p1, self.p2, focal, centre)

    @classmethod
    def of(cls, lens: LensConfig, latency: float) -> Calibration:
        """The calibration of a lens that is known, as the lab's is."""
        fx, fy = lens.focal or (None, None)
        cx, cy = (None, None) if lens.centre is None else (lens.centre[0] - 0.5, lens.centre[1] - 0.5)
        sensor = lens.sensor
        fov = None if lens.focal else sensor.horizontal_fov_deg
        bends = {name: getattr(lens, name) for name in ("k1", "k2", "p1", "p2", "k3")}
        return cls(
            sensor.width, sensor.height, latency, fx, fy, cx, cy, fov, **bends, pitch_down_deg=sensor.pitch_down_deg
        )

    def to_json(self) -> str:
        """The text of a file; what is not known is left out."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({"schema": 1, **known}, indent=2) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a file; each mistake gives one sentence."""
        text = read_text(path, MAX_BYTES, "calibration", "docs/flight.md says how to make one")
        values = asdict(parse_json(CalibrationFile, text, str(path)))
        del values["schema"]
        return cls(**values)

    def save(self, path: str | Path) -> None:
        """Write a file, all of it or nothing; a camera that cannot be gives one sentence."""
        parse(CalibrationFile, json.loads(self.to_json()), str(path))
        write_text(path, self.to_json())


@dataclass(frozen=True)
class CalibrationFile(Calibration):
    """The keys of `camera.json`."""

    schema: Annotated[int, Field(ge=1, le=1, description="1, which this wordwing reads")] = field(kw_only=True)
    """Version of the file format."""

    def __post_init__(self) -> None:
        """The camera must see all that the policy sees."""
        if (self.fx is None) == (self.horizontal_fov_deg is None):
            raise ValueError("there must be either fx or horizontal_fov_deg")
        if self.fx is None and self.fy is not None:
            raise ValueError("there is fy without fx")
        Rectifier(self.lens)
