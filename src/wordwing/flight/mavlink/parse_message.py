"""What an autopilot sends: its MAVLink messages parsed into small records in our conventions.

Records are still in the autopilot's local frame, but with z up (x north, y west), bodies x forward, y left, z up, turns
to the left positive; `geometry.ArenaFrame` turns them into the world frame.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wordwing.flight.mavlink.flight_stacks import OUR_COMPONENT, OUR_SYSTEM
from wordwing.flight.mavlink.geometry import Vector, rotate, to_ned
from wordwing.flight.mavlink.messages import Message

LAB = b"wordwing"
"""flight_custom_version of AUTOPILOT_VERSION, by which wordwing knows its own lab: 8 bytes."""

LOCAL_NED, BODY_FRD = 1, 12
"""MAV_FRAME."""


@dataclass(frozen=True)
class VehicleHeartbeat:
    """An autopilot or something else on the link is there."""

    kind: int
    """MAV_TYPE."""
    autopilot: int
    """MAV_AUTOPILOT."""
    armed: bool
    mode: int
    """custom_mode."""
    status: int
    """MAV_STATE."""


@dataclass(frozen=True)
class Position:
    """Where the drone is and how it moves, local frame with z up."""

    boot: float
    """Seconds since the autopilot started."""
    position: Vector
    """Metres."""
    velocity: Vector
    """m/s."""


@dataclass(frozen=True)
class Attitude:
    """How the drone is turned, local frame with z up."""

    boot: float
    """Seconds since the autopilot started."""
    angles: Vector
    """Roll, pitch (positive: nose down) and yaw, radians."""
    rates: Vector
    """Body rates about x forward, y left, z up, rad/s."""


@dataclass(frozen=True)
class SystemStatus:
    """SYS_STATUS."""

    prearm: bool | None
    """Whether its pre-arm checks are passed; None if it does not say."""
    battery: float | None
    """Share that remains; None if it does not know."""


@dataclass(frozen=True)
class Battery:
    """One battery."""

    number: int
    remaining: float | None
    """Share; None if it is not known."""


@dataclass(frozen=True)
class Estimator:
    """ArduPilot's EKF_STATUS_REPORT or PX4's ESTIMATOR_STATUS."""

    flags: int
    fit: float
    """How well the horizontal position fits what is measured, a variance or a test ratio; NaN if nothing is."""


@dataclass(frozen=True)
class LandedState:
    """MAV_LANDED_STATE: 1 on the ground, 2 in the air, 3 taking off, 4 landing, 0 unknown."""

    state: int


@dataclass(frozen=True)
class Version:
    """What the autopilot is made of."""

    lab: bool
    """Whether it is wordwing's lab."""
    number: str
    """"4.8.0"."""


@dataclass(frozen=True)
class GlobalOrigin:
    """The autopilot knows where on Earth its local frame is."""


@dataclass(frozen=True)
class ParameterValue:
    """A parameter's value, still encoded as the flight stack has it."""

    name: str
    field: float
    kind: int
    """MAV_PARAM_TYPE."""


@dataclass(frozen=True)
class CommandAck:
    """COMMAND_ACK to us."""

    command: int
    result: int
    """MAV_RESULT."""


@dataclass(frozen=True)
class TimesyncReply:
    """TIMESYNC that answers ours."""

    asked: float
    """When we asked, seconds of our clock."""
    boot: float
    """When it was answered, seconds of the autopilot's."""


@dataclass(frozen=True)
class StatusText:
    """STATUSTEXT."""

    severity: int
    text: str


@dataclass(frozen=True)
class InvalidMessage:
    """A pose with a number that is not finite, or that no drone can have; none of its fields is used."""

    name: str


ParsedMessage = (
    VehicleHeartbeat
    | Position
    | Attitude
    | SystemStatus
    | Battery
    | Estimator
    | LandedState
    | Version
    | GlobalOrigin
    | ParameterValue
    | CommandAck
    | TimesyncReply
    | StatusText
    | InvalidMessage
)

RESULTS = {
    1: "temporarily rejected",
    2: "denied",
    3: "unsupported",
    4: "failed",
    5: "in progress",
    6: "cancelled",
}
"""MAV_RESULT in words."""

ARMED = 128
"""Bit of a heartbeat's base_mode."""

POSES = ("LOCAL_POSITION_NED", "ATTITUDE", "ODOMETRY")
"""Messages whose floats are used, so that all of them must be good.

Others hold floats that nobody here reads, and NaN stands there rightly: PX4's ESTIMATOR_STATUS has it wherever nothing
is measured. What stands in PARAM_VALUE may be the bytes of an integer.
"""

ABSURD = 1e6
"""Metres, m/s, radians or rad/s: from here on it is no pose, and sums of such numbers may not be finite."""

PREARM_BIT = 1 << 28
"""MAV_SYS_STATUS_PREARM_CHECK."""


def parse_message(message: Message) -> ParsedMessage | None:
    """The record in a message; None for one that does not matter here."""
    name = message.get_type()
    parser = _PARSERS.get(name)
    if parser is None:
        return None
    if name in POSES and not all(abs(value) < ABSURD for value in _floats(message)):  # NaN is not, either
        return InvalidMessage(name)
    return parser(message)


def _floats(message: Message) -> Iterable[float]:
    for name, kind in zip(message.fieldnames, message.fieldtypes, strict=True):
        if kind == "float" and "covariance" not in name:  # those are NaN where they are not known
            value = getattr(message, name)
            yield from value if isinstance(value, list | tuple) else (value,)


def _odometry(m: Message) -> Position | None:
    """Position and velocity; the attitude comes from ATTITUDE."""
    if m.frame_id != LOCAL_NED or m.child_frame_id != BODY_FRD:
        return None
    velocity = rotate(tuple(m.q), (m.vx, m.vy, m.vz))
    return Position(m.time_usec / 1e6, to_ned((m.x, m.y, m.z)), to_ned(velocity))


def _share(percent: int) -> float | None:
    return percent / 100 if 0 <= percent <= 100 else None


def _sys_status(m: Message) -> SystemStatus:
    there = bool(m.onboard_control_sensors_present & PREARM_BIT)
    good = bool(m.onboard_control_sensors_health & PREARM_BIT)
    return SystemStatus(good if there else None, _share(m.battery_remaining))


def _answer(m: Message) -> CommandAck | None:
    # Older autopilots leave the addressee 0.
    ours = m.target_system in (0, OUR_SYSTEM) and m.target_component in (0, OUR_COMPONENT)
    return CommandAck(m.command, m.result) if ours else None


_PARSERS: dict[str, Callable[[Message], ParsedMessage | None]] = {
    "HEARTBEAT": lambda m: VehicleHeartbeat(
        m.type, m.autopilot, bool(m.base_mode & ARMED), m.custom_mode, m.system_status
    ),
    "LOCAL_POSITION_NED": lambda m: Position(
        m.time_boot_ms / 1000, to_ned((m.x, m.y, m.z)), to_ned((m.vx, m.vy, m.vz))
    ),
    "ATTITUDE": lambda m: Attitude(
        m.time_boot_ms / 1000, to_ned((m.roll, m.pitch, m.yaw)), to_ned((m.rollspeed, m.pitchspeed, m.yawspeed))
    ),
    "ODOMETRY": _odometry,
    "SYS_STATUS": _sys_status,
    "BATTERY_STATUS": lambda m: Battery(m.id, _share(m.battery_remaining)),
    "EKF_STATUS_REPORT": lambda m: Estimator(m.flags, m.pos_horiz_variance),
    "ESTIMATOR_STATUS": lambda m: Estimator(m.flags, m.pos_horiz_ratio),
    "EXTENDED_SYS_STATE": lambda m: LandedState(m.landed_state),
    "AUTOPILOT_VERSION": lambda m: Version(
        bytes(m.flight_custom_version) == LAB,
        ".".join(str(m.flight_sw_version >> shift & 0xFF) for shift in (24, 16, 8)),
    ),
    "GPS_GLOBAL_ORIGIN": lambda _m: GlobalOrigin(),
    "PARAM_VALUE": lambda m: ParameterValue(m.param_id, m.param_value, m.param_type),
    "COMMAND_ACK": _answer,
    "TIMESYNC": lambda m: TimesyncReply(m.ts1 / 1e9, m.tc1 / 1e9) if m.tc1 > 0 else None,  # 0 asks
    "STATUSTEXT": lambda m: StatusText(m.severity, m.text),
}
