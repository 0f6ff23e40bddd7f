"""Where on Earth a room lies: ArduPilot without GPS has no local position before it has been told.

It does not matter for flying in the room, but its estimator wants to know, once after each start and before arming.
"""

from __future__ import annotations

import math

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.errors import WordwingError
from wordwing.flight.aircraft import AUTOPILOT
from wordwing.flight.messages import Message

PERIOD = 1.0
"""How often it is told, seconds, until the autopilot says that it knows: it does not listen before it is aligned."""


class Origin:
    """Tells a disarmed autopilot where the room lies, until it says so itself."""

    def __init__(self, latitude: float, longitude: float, altitude: float = 0.0) -> None:
        """Nothing is told yet.

        Args:
            latitude: Degrees, north is positive.
            longitude: Degrees, east is positive.
            altitude: Above the sea, metres.
        """
        self.latitude, self.longitude, self.altitude = latitude, longitude, altitude
        self.known = False
        """Whether the autopilot has an origin, ours or another that it had before."""
        self._system: int | None = None
        self._armed = True  # until it says otherwise
        self._due = -math.inf

    @classmethod
    def read(cls, text: str) -> Origin:
        """From "LATITUDE,LONGITUDE" or "LATITUDE,LONGITUDE,ALTITUDE"; each mistake gives one sentence."""
        wanted = "it must be LATITUDE,LONGITUDE or LATITUDE,LONGITUDE,ALTITUDE, as in 52.5,13.4,40"
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
            raise WordwingError(f"--origin is {text[:80]!r}; {wanted}")
        if any(abs(number) > most for number, most in zip(numbers, (90, 180, 10_000), strict=False)):
            raise WordwingError(f"--origin is {text[:80]!r}, which is nowhere on Earth; {wanted}")
        return cls(*numbers)

    def hear(self, message: Message) -> None:
        """A message from the link."""
        if message.get_srcComponent() != AUTOPILOT:
            return
        if message.get_type() == "HEARTBEAT" and message.autopilot == mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA:
            self._system = message.get_srcSystem()
            self._armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        elif message.get_type() == "GPS_GLOBAL_ORIGIN":
            self.known = True

    def due(self, now: float) -> Message | None:
        """What to send now, if anything."""
        if self.known or self._armed or self._system is None or now < self._due:
            return None
        self._due = now + PERIOD
        return mavlink.MAVLink_set_gps_global_origin_message(
            self._system,
            round(self.latitude * 1e7),
            round(self.longitude * 1e7),
            round(self.altitude * 1e3),
        )
