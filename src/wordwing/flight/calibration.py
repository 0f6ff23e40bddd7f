"""The drone's camera as its calibration has it, and the file that says so, `camera.json`.

A file is `{"schema": 1, "width": 1280, "height": 720, "fx": 700.0, "fy": 700.0, "cx": 640.0, "cy": 360.0, "k1": -0.1,
"k2": 0.01, "p1": 0.0, "p2": 0.0, "k3": 0.0, "pitch_down_deg": 15.0, "latency": 0.06}`: what OpenCV's `calibrateCamera`
gives, how the camera is mounted, and how old a picture is when it arrives. Instead of `fx` there may be
`horizontal_fov_deg`, that of the pinhole without the lens. All but `schema`, `width`, `height`, one of these two and
`latency` may be left out.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from wordwing.camera import CameraConfig
from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.files import read_text, replacing
from wordwing.lens import LensConfig, Rectifier

SCHEMA = 1
"""Version of the file format."""

MAX_BYTES = 100_000
"""Largest file that is read; far beyond what one can hold."""

RANGES = {
    "width": (64, 8192),
    "height": (36, 8192),
    "fx": (10.0, 20_000.0),
    "fy": (10.0, 20_000.0),
    "cx": (0.0, 8192.0),
    "cy": (0.0, 8192.0),
    "horizontal_fov_deg": (20.0, 170.0),
    "k1": (-10.0, 10.0),
    "k2": (-10.0, 10.0),
    "k3": (-10.0, 10.0),
    "p1": (-1.0, 1.0),
    "p2": (-1.0, 1.0),
    "pitch_down_deg": (-90.0, 90.0),
    "latency": (0.0, 2.0),
}
"""What the numbers of a file may be."""


@dataclass(frozen=True)
class Calibration:
    """A camera on a drone, in OpenCV's numbers; making one checks nothing, `load` and `save` do."""

    width: int
    """Of the raw picture, pixels."""
    height: int
    """Of the raw picture, pixels."""
    latency: float
    """How old a picture is when it arrives, seconds."""
    fx: float | None = None
    """Focal length along the picture's rows, pixels."""
    fy: float | None = None
    """Focal length along its columns, pixels; None for the same."""
    cx: float | None = None
    """Where the optical axis meets the picture, pixels from the middle of the first one; None for its middle."""
    cy: float | None = None
    """The same along its columns."""
    horizontal_fov_deg: float | None = None
    """Instead of `fx`: the field of view if the lens did not bend, degrees."""
    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0
    k3: float = 0.0
    """Distortion."""
    pitch_down_deg: float = 15.0
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

    def validate(self, where: str = "camera") -> None:
        """Raise a `WordwingError` about the first mistake; `where` begins the sentence."""
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL and _OPTIONAL[name] is None:
                continue
            whole = name in ("width", "height")
            if type(value) is not int and (whole or type(value) is not float):
                kind = "a whole number" if whole else "a number"
                raise WordwingError(f"{where}: {name} is {shown(value)}; it must be {kind}")
            if not least <= value <= most:  # NaN is not, either
                raise WordwingError(f"{where}: {name} is {shown(value)}; it must be from {least:g} to {most:g}")
        if (self.fx is None) == (self.horizontal_fov_deg is None):
            raise WordwingError(f"{where}: there must be either fx or horizontal_fov_deg")
        if self.fx is None and self.fy is not None:
            raise WordwingError(f"{where}: there is fy without fx")
        try:
            Rectifier(self.lens)
        except ValueError as error:
            raise WordwingError(f"{where}: {error}") from None

    def to_json(self) -> str:
        """The text of a file; what is not said is left out."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        document = {"schema": SCHEMA, **{name: value for name, value in values.items() if value is not None}}
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "camera") -> Calibration:
        """Read what `to_json` made; `where` begins each complaint."""
        try:
            document: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise WordwingError(f"{where}: this is not JSON ({error})") from None
        if not isinstance(document, dict):
            raise WordwingError(f'{where}: this is {shown(document)}; it must be an object, {{"schema": {SCHEMA}, …}}')
        for name, value in document.items():
            if name not in ("schema", *RANGES):
                hint = did_you_mean(name[:40], list(RANGES))
                raise WordwingError(f"{where}: there is an unknown entry {shown(name)}{hint}")
            if value is None:
                raise WordwingError(f"{where}: {name} is null; leave it out instead")
        for name in ("schema", "width", "height", "latency"):
            if name not in document:
                raise WordwingError(f'{where}: there is no "{name}"')
        version = document.pop("schema")
        if type(version) is not int or version != SCHEMA:
            raise WordwingError(f"{where}: the schema is {shown(version)}; this wordwing reads {SCHEMA}")
        calibration = cls(**document)
        calibration.validate(where)
        return calibration

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a file; each mistake gives one sentence."""
        return cls.from_json(
            read_text(path, MAX_BYTES, "calibration", "docs/flight.md says how to make one"), str(path)
        )

    def save(self, path: str | Path) -> None:
        """Write a file, all of it or nothing."""
        self.validate(str(path))
        with replacing(path) as temporary:
            temporary.write_text(self.to_json(), "utf-8")


_OPTIONAL = {entry.name: entry.default for entry in fields(Calibration)[3:]}
