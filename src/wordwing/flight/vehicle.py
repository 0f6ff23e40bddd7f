"""What a single drone offers, be it the lab's or a real one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import Self

from wordwing.errors import WordwingError
from wordwing.interface import Observation, Setpoint
from wordwing.interrupts import ABORTED_FLIGHT


class FlightOverError(WordwingError):
    """The vehicle does not fly for this pilot any more; the message says why."""

    status = ABORTED_FLIGHT


class Vehicle(ABC):
    """A drone that takes setpoints.

    Use it as a context manager: it connects on entry, and lands and closes on exit, whatever has happened;
    also if connecting fails halfway.
    """

    @abstractmethod
    def connect(self) -> None:
        """Make contact and hover at the start of a flight."""

    @abstractmethod
    def observe(self) -> Observation:
        """The newest picture and pose estimate, a batch of one."""

    @abstractmethod
    def send(self, setpoint: Setpoint) -> Setpoint:
        """Fly this setpoint [1] until the next one.

        Returns:
            What was really sent, after limits and safety.
        """

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass: simulated time for a simulated drone, real time for a real one."""

    @abstractmethod
    def land(self) -> None:
        """Come down and stop the motors; does nothing on the ground or before it has connected."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the drone; may be called twice."""

    @property
    def seconds_inside_landmarks(self) -> float | None:
        """How long it has flown through landmarks; a real drone does not know."""
        return None

    def __enter__(self) -> Self:
        try:
            self.connect()
        except BaseException:
            with suppress(Exception):  # why it could not connect is the better story
                self.land()
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.land()
        finally:
            self.close()
