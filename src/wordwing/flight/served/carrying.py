"""Somebody in the lab who carries the disarmed drone from place to place, as `wordwing flight check` asks for."""

from __future__ import annotations

import math
import select
from collections.abc import Callable
from typing import TextIO

from wordwing.errors import WordwingError
from wordwing.flight.served.vehicle import ServedLab

HOW = "type where the drone is put down, X Y or X Y DEGREES: metres from the centre, and where its nose points"


def read_place(line: str) -> tuple[float, float, float]:
    """Where a line of text says: x and y in metres and a heading in radians (0 if it has none), world frame."""
    words = line.split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise WordwingError(f'"{line.strip()[:40]}" is no place; {HOW}')
    x, y, degrees = [*numbers, 0.0][:3]
    return x, y, math.radians(degrees)


class Hands:
    """Looks, whenever it is called, whether a line has come that says where to carry the drone."""

    def __init__(self, lab: ServedLab, lines: TextIO, say: Callable[[str], None] = print) -> None:
        """Nothing is carried yet.

        Args:
            lab: Whose drone it is.
            lines: A terminal, or a pipe.
            say: Told what was done.
        """
        self._lab, self._lines, self._say = lab, lines, say
        self._ended = False

    def look(self) -> bool:
        """Carry the drone if a line has come; never waits for one. False, whatever comes: the lab is served on."""
        if not self._ended and select.select([self._lines], [], [], 0)[0]:
            line = self._lines.readline()
            self._ended = not line
            if line.strip():
                self._say(self._obey(line))
        return False

    def _obey(self, line: str) -> str:
        try:
            x, y, yaw = read_place(line)
            self._lab.carry((x, y), yaw)
        except WordwingError as error:
            return str(error)
        return f"the drone stands at ({x:g}, {y:g}), its nose at {math.degrees(yaw):g}°"
