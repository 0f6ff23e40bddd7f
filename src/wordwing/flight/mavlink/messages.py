"""MAVLink messages that we send, and bytes to messages and back. What we receive is in `parse_message.py`."""

import math
from dataclasses import dataclass
from typing import Any

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.flight_stacks import (
    BODY_NED,
    OUR_COMPONENT,
    OUR_SYSTEM,
    VELOCITY_AND_YAW_RATE,
    FlightStack,
)
from wordwing.flight.mavlink.geometry import to_ned
from wordwing.flight.mavlink.signing import UNITS, Verifier

try:
    from pymavlink.dialects.v20 import ardupilotmega as mavlink
except ImportError:
    raise WordwingError(
        "MAVLink needs pymavlink, which is not installed; run: pip install 'wordwing[flight]'"
    ) from None

Message = Any
"""A message of pymavlink."""

SET_MODE, ARM, TAKE_OFF, INTERVAL, REQUEST = 176, 400, 22, 511, 512
"""MAV_CMD: DO_SET_MODE, COMPONENT_ARM_DISARM, NAV_TAKEOFF, SET_MESSAGE_INTERVAL, REQUEST_MESSAGE."""

HEARTBEAT, GLOBAL_ORIGIN, AUTOPILOT_VERSION = 0, 49, 148
"""Message ids."""


class Codec:
    """Bytes to messages and back, with a sender's ids and sequence numbers.

    Args:
        stream: Whether bytes arrive as a stream (TCP, serial), not as datagrams that begin and end with a packet.
        key: 32 bytes to sign what is sent with and to check what comes with; None for no signing.
        signed_at: Signing time, seconds since 2015; must not go back from one use of a key to the next.
        system: Id of the sender, ours by default.
        component: The same.
    """

    def __init__(
        self,
        *,
        stream: bool = False,
        key: bytes | None = None,
        signed_at: float = 0.0,
        system: int = OUR_SYSTEM,
        component: int = OUR_COMPONENT,
    ) -> None:
        self._encoder = mavlink.MAVLink(None, srcSystem=system, srcComponent=component)
        self._decoder = mavlink.MAVLink(None)
        self._decoder.robust_parsing = True
        self._stream = stream
        self._verifier: Verifier | None = None
        if key is not None:
            began = round(signed_at * UNITS)
            self._verifier = Verifier(key, began)
            self._encoder.signing.secret_key = key
            self._encoder.signing.sign_outgoing = True
            self._encoder.signing.timestamp = began

    def parse(self, data: bytes) -> list[Message]:
        """The good messages in some bytes; what is broken, unknown or wrongly signed is left out."""
        if not self._stream:  # half a packet must not swallow the next one
            self._forget()
        try:
            found = self._decoder.parse_buffer(data) or []
        except Exception:  # no bytes whatsoever may stop the one who holds the drone
            self._forget()
            return []
        good = [message for message in found if message.get_msgId() >= 0]
        if self._verifier is None:
            return good
        return [message for message in good if self._verifier.accepts(bytes(message.get_msgbuf()))]

    def _forget(self) -> None:
        self._decoder.buf, self._decoder.buf_index = bytearray(), 0

    def pack(self, message: Message) -> bytes:
        """One packet, MAVLink 2."""
        if self._verifier is not None:  # a receiver that has seen a later time would take ours for old
            self._encoder.signing.timestamp = max(self._encoder.signing.timestamp, self._verifier.now)
        packet = bytes(message.pack(self._encoder))
        self._encoder.seq = (self._encoder.seq + 1) % 256
        return packet


@dataclass(frozen=True)
class MessageFactory:
    """Makes our messages for one autopilot."""

    stack: FlightStack
    system: int
    component: int = 1

    def setpoint(self, forward: float, yaw_rate: float, up: float, boot_ms: int, left: float = 0.0) -> Message:
        """SET_POSITION_TARGET_LOCAL_NED in the body frame.

        Args:
            forward: m/s.
            yaw_rate: rad/s, positive turns left.
            up: Vertical velocity, m/s.
            boot_ms: Milliseconds since we started.
            left: Velocity to the left, m/s.
        """
        x, y, z = (component + 0.0 for component in to_ned((forward, left, up)))  # no minus zero on the wire
        turn = -yaw_rate + 0.0
        if not all(map(math.isfinite, (x, y, z, turn))):
            raise ValueError(f"a setpoint must be finite, not {(x, y, z, turn)}")
        return mavlink.MAVLink_set_position_target_local_ned_message(
            time_boot_ms=boot_ms % 2**32,
            target_system=self.system,
            target_component=self.component,
            coordinate_frame=BODY_NED,
            type_mask=VELOCITY_AND_YAW_RATE,
            x=0.0,
            y=0.0,
            z=0.0,
            vx=x,
            vy=y,
            vz=z,
            afx=0.0,
            afy=0.0,
            afz=0.0,
            yaw=0.0,
            yaw_rate=turn,
        )

    def mode(self, custom_mode: int, again: int = 0) -> Message:
        """Ask for a mode; `again` counts repetitions."""
        return self._command(SET_MODE, *self.stack.mode_parameters(custom_mode), again=again)

    def arm(self, again: int = 0) -> Message:
        """Ask to arm, with all of the autopilot's checks: parameter 2 stays 0, never 21196."""
        return self._command(ARM, 1.0, again=again)

    def take_off(self, height: float, again: int = 0) -> Message:
        """Ask to climb to a height, metres."""
        return self._command(TAKE_OFF, last=height, again=again)

    def interval(self, message_id: int, hertz: float) -> Message:
        """Ask for a message so often a second."""
        return self._command(INTERVAL, float(message_id), round(1e6 / hertz))

    def request(self, message_id: int) -> Message:
        """Ask for one message, once."""
        return self._command(REQUEST, float(message_id))

    def read_parameter(self, name: str) -> Message:
        """Ask for a parameter by name."""
        return mavlink.MAVLink_param_request_read_message(self.system, self.component, name.encode(), -1)

    def write_parameter(self, name: str, value: float, kind: int) -> Message:
        """Set a parameter of a MAV_PARAM_TYPE."""
        encoded = self.stack.encode(value, kind)
        return mavlink.MAVLink_param_set_message(self.system, self.component, name.encode(), encoded, kind)

    def _command(
        self, command: int, first: float = 0, second: float = 0, third: float = 0, last: float = 0, again: int = 0
    ) -> Message:
        return mavlink.MAVLink_command_long_message(
            self.system, self.component, command, again, first, second, third, 0, 0, 0, last
        )


def timesync(now: float) -> Message:
    """Ask what time it is there, at a time of our clock, seconds."""
    return mavlink.MAVLink_timesync_message(tc1=0, ts1=round(now * 1e9))


def heartbeat() -> Message:
    """Ours: an onboard controller that is no autopilot."""
    return mavlink.MAVLink_heartbeat_message(
        type=mavlink.MAV_TYPE_ONBOARD_CONTROLLER,
        autopilot=mavlink.MAV_AUTOPILOT_INVALID,
        base_mode=0,
        custom_mode=0,
        system_status=mavlink.MAV_STATE_ACTIVE,
        mavlink_version=3,
    )
