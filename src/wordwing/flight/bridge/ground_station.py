"""A ground station and a safety pilot with an RC transmitter, as there are beside a real flight.

The ground station is system 255 on a link of its own. It sends heartbeats, requests ground truth and injects faults.
The transmitter of ArduPilot's simulation listens on a UDP port; PX4's is a joystick of the ground station.
"""

import math
import socket
import struct

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.flight.bridge.ground_truth import MESSAGES
from wordwing.flight.mavlink.flight_stacks import REAL32
from wordwing.flight.mavlink.link import MavlinkLink
from wordwing.flight.mavlink.messages import AUTOPILOT_VERSION, HEARTBEAT, Codec, MessageFactory
from wordwing.flight.served.autopilot_profile import PROFILES, AutopilotName

SYSTEM, COMPONENT = 255, 190
"""Ids of a ground station."""

AUTOPILOT = mavlink.MAV_COMP_ID_AUTOPILOT1

GROUND_TRUTH_RATE, HEARTBEAT_RATE = 100.0, 10.0
"""Rates of the requested messages, Hz."""

EVERY = 1.0
"""Between two heartbeats, and between two requests for messages, seconds."""

STICKS_EVERY = 0.1
"""Between two messages of the joystick, and between two requests for a heartbeat of PX4, seconds."""

MIDDLE, LOITER_SWITCH, BRAKE_SWITCH, STABILIZE_SWITCH, STANDBY_SWITCH = 1500, 1700, 1550, 1100, 1800
"""PWM values of ArduPilot's transmitter, microseconds: a stick, and the mode switch (`ARDUPILOT_PARAMETERS`)."""

FORCE_REBOOT = 20190226
"""ArduPilot reboots in the air only with this number."""


class GroundStation:
    """One ground station and a transmitter."""

    def __init__(self, autopilot: AutopilotName, link: MavlinkLink, transmitter: int | None) -> None:
        """Prepare.

        Args:
            autopilot: Which autopilot it is.
            link: To the autopilot.
            transmitter: UDP port of ArduPilot's simulated receiver; None without one.
        """
        self._autopilot, self._link, self._profile = autopilot, link, PROFILES[autopilot]
        self._codec = Codec(system=SYSTEM, component=COMPONENT)
        self.system: int | None = None
        """System id of the drone, once it is known."""
        self._beat_at = self._sticks_at = -math.inf
        self._receiver: socket.socket | None = None
        if transmitter is not None:
            self._receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._receiver.connect(("127.0.0.1", transmitter))

    def tick(self, now: float, *, version_known: bool = True) -> None:
        """Send what is due."""
        if now - self._sticks_at >= STICKS_EVERY and self._autopilot == "px4" and self.system is not None:
            self._sticks_at = now
            self.send(mavlink.MAVLink_manual_control_message(self.system, 0, 0, 500, 0, 0))
            # By itself it sends one heartbeat a second, whatever interval it is asked for.
            self.send(self._messages.request(HEARTBEAT))
        if now - self._beat_at < EVERY:
            return
        self._beat_at = now
        invalid, active = mavlink.MAV_AUTOPILOT_INVALID, mavlink.MAV_STATE_ACTIVE
        self.send(mavlink.MAVLink_heartbeat_message(mavlink.MAV_TYPE_GCS, invalid, 0, 0, active, 3))
        self.send(self._messages.interval(MESSAGES[self._autopilot], GROUND_TRUTH_RATE))
        self.send(self._messages.interval(HEARTBEAT, HEARTBEAT_RATE))
        if not version_known:
            self.send(self._messages.request(AUTOPILOT_VERSION))

    def take_over(self, *, stabilize: bool = False, brake: bool = False) -> None:
        """The safety pilot switches to LOITER or POSCTL; to STABILIZE(D) if `stabilize`; to ArduPilot's BRAKE."""
        if self._receiver is not None:
            switch = STABILIZE_SWITCH if stabilize else BRAKE_SWITCH if brake else LOITER_SWITCH
            # The throttle stick in the middle holds the height; at the bottom the drone would sink.
            channels = [MIDDLE, MIDDLE, MIDDLE, MIDDLE, switch, 1000, 1000, STANDBY_SWITCH, *[MIDDLE] * 8]
            self._receiver.send(struct.pack("<16H", *channels))
        else:
            self.send(self._messages.mode(self._profile.mode(self._profile.pilot_modes[stabilize]).custom))

    def drain_battery(self, level: float) -> None:
        """Drain the battery to a level, percent."""
        if self._autopilot == "ardupilot":
            self._command(mavlink.MAV_CMD_BATTERY_RESET, 0xFFFF, level)
        else:
            self.send(self._messages.write_parameter("SIM_BAT_MIN_PCT", level, REAL32))
            self.send(self._messages.write_parameter("SIM_BAT_DRAIN", 1.0, REAL32))

    def reboot(self) -> None:
        """Reboot the autopilot, also in the air."""
        self._command(mavlink.MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN, 1, 0, 0, 0, 0, FORCE_REBOOT)

    def send(self, message: mavlink.MAVLink_message) -> None:
        """Send a message as ground station; before the drone is known, only a heartbeat."""
        if self.system is not None or message.get_type() == "HEARTBEAT":
            self._link.send(self._codec.pack(message))

    def close(self) -> None:
        """Close the transmitter's socket; the link stays open."""
        if self._receiver is not None:
            self._receiver.close()

    @property
    def _messages(self) -> MessageFactory:
        return MessageFactory(self._profile.stack, self.system or 0, AUTOPILOT)

    def _command(self, number: int, *values: float) -> None:
        filled = (*values, *[0.0] * (7 - len(values)))
        self.send(mavlink.MAVLink_command_long_message(self.system or 0, AUTOPILOT, number, 0, *filled))
