"""PX4 and ArduPilot in one place: modes, take-off, parameters and their encodings.

Both use MAVLink, but the numbers of modes, the order of a take-off, the names and meanings of parameters and the way
an integer parameter travels differ. Numbers are those of the MAVLink specification and of each autopilot's parameter
reference; how ArduCopter answers them has been measured on its own simulator.
"""

import struct
from dataclasses import dataclass
from typing import Literal

from wordwing.errors import WordwingError

OUR_SYSTEM, OUR_COMPONENT = 245, 191
"""MAVLink ids of wordwing: not a ground station's 255, and MAV_COMP_ID_ONBOARD_COMPUTER."""

BODY_NED = 8
"""MAV_FRAME_BODY_NED: both autopilots fly it; MAV_FRAME_BODY_FRD (12) makes ArduPilot hold its place instead."""

VELOCITY_AND_YAW_RATE = 1479
"""Type mask 0x5C7: position (1, 2, 4), acceleration (64, 128, 256) and yaw (1024) are to be ignored."""

INT32, REAL32 = 6, 9
"""MAV_PARAM_TYPE."""

MULTICOPTERS = (2, 3, 13, 14, 15, 29)
"""MAV_TYPE: quadrotor, coaxial, hexarotor, octorotor, tricopter, dodecarotor."""

MESSAGE_RATES = {
    32: 50.0,  # LOCAL_POSITION_NED
    30: 50.0,  # ATTITUDE
    1: 2.0,  # SYS_STATUS
    147: 2.0,  # BATTERY_STATUS
    245: 5.0,  # EXTENDED_SYS_STATE
    0: 10.0,  # HEARTBEAT: where it is granted, a pilot who takes over is seen sooner
}
"""Message ids that are asked for, and how often a second."""

Step = Literal["stream", "mode", "arm", "takeoff", "hover"]
"""Of a take-off: send zero setpoints; set the flying mode; arm; NAV_TAKEOFF; climb until it hovers."""


@dataclass(frozen=True)
class RequiredParameter:
    """A parameter that must be right before arming."""

    name: str
    least: float
    most: float
    write: float
    """What is written with the user's leave."""
    why: str
    """Ends the sentence "… because"."""
    older: tuple[tuple[str, float], ...] = ()
    """Older names, each with how many of its units are one of ours."""
    optional: bool = False
    """Not every version has it; where it is missing, nothing is wrong."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it has or had, the newest first."""
        return (self.name, *(name for name, _ in self.older))

    def scale(self, name: str) -> float:
        """How many units of the parameter called `name` are one of ours."""
        return dict(self.older).get(name, 1.0)

    def accepts(self, name: str, value: float) -> bool:
        """Whether a value, in the units of the parameter called `name`, will do."""
        slack = 1e-4  # values travel in single precision
        return self.least - slack <= value / self.scale(name) <= self.most + slack

    @property
    def range(self) -> str:
        """What it must be, in words."""
        return f"{self.write:g}" if self.least == self.most else f"from {self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class FlightStack:
    """What one kind of autopilot expects and means."""

    name: str
    autopilot: int
    """MAV_AUTOPILOT of its heartbeat."""
    modes: dict[int, str]
    """custom_mode of a heartbeat to a name."""
    flying_mode: int
    """In which it is armed, takes off and flies our setpoints."""
    land_mode: int
    takeoff: tuple[Step, ...]
    stream_seconds: float
    """How long zero setpoints are sent before the flying mode is asked for, and go on until it is armed and climbs by
    them; 0 if no setpoint may be sent before it hovers."""
    integers_as_bytes: bool
    """Whether an integer parameter's four bytes stand in the float field, or its value as a float."""
    submodes: bool
    """Whether DO_SET_MODE has a main and a sub mode, or one number."""
    wants_estimator_flags: int
    """Bits of EKF_STATUS_REPORT or ESTIMATOR_STATUS that must be set before arming and in the air."""
    wants_prearm_bit: bool
    """Whether SYS_STATUS must have the pre-arm bit; otherwise it must be good only where it is there."""
    lands_with_an_origin: bool
    """Whether its land mode comes down in place on motion capture when it knows where on Earth it is. PX4 1.16 flew off
    at 4 m/s, as its navigator took itself to be at latitude and longitude 0."""
    heartbeat_on_request: bool
    """Whether heartbeats come more often than once a second only if each is asked for."""
    rates: dict[int, float]
    """Message ids that are asked for, and how often a second."""
    wanted: tuple[RequiredParameter, ...]

    def mode_name(self, custom_mode: int) -> str:
        """A mode in words, also one that is not in the list."""
        return self.modes.get(custom_mode, f"mode {custom_mode}")

    def mode_parameters(self, custom_mode: int) -> tuple[float, float, float]:
        """The first three parameters of DO_SET_MODE."""
        if not self.submodes:
            return 1.0, float(custom_mode), 0.0
        return 1.0, float(custom_mode >> 16 & 0xFF), float(custom_mode >> 24 & 0xFF)

    def encode(self, value: float, kind: int) -> float:
        """A parameter's value as it stands in the float field of PARAM_SET; `kind` is a MAV_PARAM_TYPE."""
        if self.integers_as_bytes and kind != REAL32:
            return float(struct.unpack("<f", struct.pack("<i", round(value)))[0])
        return float(value)

    def decode(self, field: float, kind: int) -> float:
        """The value of a parameter from the float field of PARAM_VALUE."""
        if self.integers_as_bytes and kind != REAL32:
            return float(struct.unpack("<i", struct.pack("<f", field))[0])
        return field


def _px4_mode(main: int, sub: int = 0) -> int:
    return main << 16 | sub << 24


def _exactly(name: str, value: float, why: str, **more: object) -> RequiredParameter:
    return RequiredParameter(name, value, value, value, why, **more)  # type: ignore[arg-type]


ARDUPILOT = FlightStack(
    name="ArduPilot",
    autopilot=3,
    modes={
        0: "STABILIZE",
        1: "ACRO",
        2: "ALT_HOLD",
        3: "AUTO",
        4: "GUIDED",
        5: "LOITER",
        6: "RTL",
        7: "CIRCLE",
        9: "LAND",
        13: "SPORT",
        16: "POSHOLD",
        17: "BRAKE",
        20: "GUIDED_NOGPS",
        21: "SMART_RTL",
    },
    flying_mode=4,
    land_mode=9,
    takeoff=("mode", "arm", "takeoff", "hover"),
    stream_seconds=0.0,
    integers_as_bytes=False,
    submodes=False,
    wants_estimator_flags=831,  # attitude, velocities, positions and their predictions
    wants_prearm_bit=True,
    lands_with_an_origin=True,
    heartbeat_on_request=False,
    rates={**MESSAGE_RATES, 193: 5.0},  # EKF_STATUS_REPORT
    wanted=(
        RequiredParameter("GUID_TIMEOUT", 0.1, 0.5, 0.5, "it must stop soon after the last setpoint"),
        _exactly("FS_GCS_ENABLE", 5, "it must land when our heartbeats stop"),
        RequiredParameter("FS_GCS_TIMEOUT", 1.0, 3.0, 3.0, "it must land soon after our last heartbeat"),
        _exactly("MAV_GCS_SYSID", OUR_SYSTEM, "it must watch our heartbeats", older=(("SYSID_MYGCS", 1.0),)),
        # Above MAV_GCS_SYSID it is the end of a range: a ground station's heartbeats would count as ours.
        RequiredParameter(
            "MAV_GCS_SYSID_HI", 0, OUR_SYSTEM, 0, "it must watch no other heartbeats than ours", optional=True
        ),  # 4.7 and newer
        _exactly("FS_OPTIONS", 16, "our silence must not take it from a pilot who has taken over"),
        _exactly("FS_THR_ENABLE", 3, "it must land when the pilot's transmitter is lost"),
        _exactly("BATT_FS_LOW_ACT", 1, "it must land when its battery is low"),
        _exactly("BATT_FS_CRT_ACT", 1, "it must land when its battery is nearly empty"),
        _exactly("FS_EKF_ACTION", 1, "it must land when it no longer knows where it is"),
        _exactly("FS_DR_ENABLE", 1, "it must land, not climb and return, on dead reckoning", optional=True),  # 4.3
        _exactly("FENCE_ENABLE", 0, "a fence of its own would make it climb and return"),
        _exactly("WP_YAW_BEHAVIOR", 0, "it must not turn by itself"),
        RequiredParameter("LAND_SPD_MS", 0.2, 0.3, 0.3, "it must come down gently", older=(("LAND_SPEED", 100.0),)),
    ),
)

PX4 = FlightStack(
    name="PX4",
    autopilot=12,
    modes={
        _px4_mode(1): "MANUAL",
        _px4_mode(2): "ALTCTL",
        _px4_mode(3): "POSCTL",
        _px4_mode(4, 1): "AUTO.READY",
        _px4_mode(4, 2): "AUTO.TAKEOFF",
        _px4_mode(4, 3): "AUTO.LOITER",
        _px4_mode(4, 4): "AUTO.MISSION",
        _px4_mode(4, 5): "AUTO.RTL",
        _px4_mode(4, 6): "AUTO.LAND",
        _px4_mode(5): "ACRO",
        _px4_mode(6): "OFFBOARD",
        _px4_mode(7): "STABILIZED",
    },
    flying_mode=_px4_mode(6),
    land_mode=_px4_mode(4, 6),
    # Not its own take-off mode: it watches setpoints in OFFBOARD only, so nothing would bring it down if we died.
    takeoff=("stream", "mode", "arm", "hover"),
    stream_seconds=1.2,  # PX4 wants a stream for more than one second
    integers_as_bytes=True,
    submodes=True,
    wants_estimator_flags=271,  # attitude, velocities, relative position and its prediction (it has 367 indoors)
    wants_prearm_bit=False,
    lands_with_an_origin=False,
    heartbeat_on_request=True,
    rates={**MESSAGE_RATES, 230: 5.0},  # ESTIMATOR_STATUS
    wanted=(
        RequiredParameter("COM_OF_LOSS_T", 0.0, 0.5, 0.5, "it must notice soon that setpoints have stopped"),
        _exactly("COM_OBL_RC_ACT", 4, "it must land when setpoints stop"),
        RequiredParameter(
            "COM_FAIL_ACT_T", 0.0, 0.5, 0.0, "it must not wait long before a failsafe", optional=True
        ),  # 1.14 and newer
        _exactly("NAV_RCL_ACT", 3, "it must land when the pilot's transmitter is lost"),
        _exactly("COM_RCL_EXCEPT", 0, "a lost transmitter must count in each mode", optional=True),  # 1.12 and newer
        _exactly("COM_LOW_BAT_ACT", 2, "it must land when its battery is low"),
        RequiredParameter("NAV_DLL_ACT", 0, 1, 0, "it must not climb and return when a ground station goes"),
        RequiredParameter("GF_ACTION", 0, 2, 1, "a fence of its own must not make it climb and return", optional=True),
        # Microseconds. On dead reckoning it does not notice the floor, and leans after a position that runs away.
        RequiredParameter(
            "EKF2_NOAID_TOUT", 5e5, 1e6, 1e6, "it must come down level soon after motion capture is lost"
        ),
        RequiredParameter("COM_DISARM_LAND", 0.1, 5.0, 2.0, "it must disarm by itself after a landing"),
        RequiredParameter("MPC_LAND_SPEED", 0.2, 0.7, 0.6, "it must come down gently"),
    ),
)

FLIGHT_STACKS = (ARDUPILOT, PX4)

INVALID = 8
"""MAV_AUTOPILOT_INVALID: a ground station, a camera, a companion; not an autopilot."""


def flight_stack(autopilot: int) -> FlightStack:
    """The flight stack for a heartbeat's autopilot field (MAV_AUTOPILOT)."""
    for stack in FLIGHT_STACKS:
        if stack.autopilot == autopilot:
            return stack
    raise WordwingError(f"the autopilot is of kind {autopilot}; wordwing flies ArduPilot (3) and PX4 (12)")
