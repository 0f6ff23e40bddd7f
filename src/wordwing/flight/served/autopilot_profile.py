"""ArduCopter and PX4 as they look from outside: modes, parameters, answers to commands.

What a pilot must know of them, too, is in `FlightStack`; how they behave is in `autopilot.py`. Each parameter has two
values: the autopilot's default, and what wordwing wants indoors, with which the served lab starts by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from wordwing.errors import WordwingError, did_you_mean
from wordwing.flight.mavlink.flight_stacks import ARDUPILOT, INT32, PX4, REAL32, FlightStack

AutopilotName = Literal["ardupilot", "px4"]
"""Which autopilot the served lab imitates."""

ModeKind = Literal["guided", "takeoff", "hold", "land"]
"""What a drone in the air does in a mode. In a pilot's modes nobody moves the sticks, so it holds its position."""

UINT8, INT8, INT16 = 1, 2, 4
"""MAV_PARAM_TYPE, besides INT32 and REAL32."""

ACCEPTED, TEMPORARILY_REJECTED, DENIED, UNSUPPORTED, FAILED = range(5)
"""MAV_RESULT."""


@dataclass(frozen=True)
class Mode:
    """One flight mode."""

    name: str
    custom: int
    """The heartbeat's custom_mode."""
    kind: ModeKind
    armable: bool = True


@dataclass(frozen=True)
class ParameterSpec:
    """One parameter, which the served lab obeys where it matters here."""

    name: str
    type: int
    factory: float
    indoor: float
    older: tuple[str, int, float] | None = None
    """Name, type and scale in older versions."""


@dataclass(frozen=True)
class AutopilotProfile:
    """What the served lab must know of one autopilot to imitate it."""

    name: AutopilotName
    stack: FlightStack
    """Mode numbers and parameter encoding, as a pilot uses them."""
    version: int
    """flight_sw_version: major, minor, patch and release type, a byte each."""
    modes: tuple[Mode, ...]
    first_mode: str
    """The mode in which it boots."""
    pilot_modes: tuple[str, ...]
    """Flown by a pilot's sticks; a switch changes to the first, which holds its position, or to the second, which does
    not."""
    frames: tuple[int, ...]
    """MAV_FRAME values of setpoints that it flies."""
    fused_estimators: tuple[int, ...] | None
    """MAV_ESTIMATOR_TYPE of odometry that its estimator reads; None for any."""
    dead_reckoning_timeout: float | str
    """How long it flies on dead reckoning without motion capture before it lands by itself, seconds, or the parameter
    that says so, microseconds."""
    refusal: int
    """MAV_RESULT when it refuses to arm or to change its mode."""
    parameters: tuple[ParameterSpec, ...]

    def mode(self, name: str) -> Mode:
        """By its name."""
        return next(mode for mode in self.modes if mode.name == name)

    def mode_of(self, *values: float) -> Mode | None:
        """By parameters 2 and 3 of DO_SET_MODE; None for one that the lab does not have."""
        given = slice(1 + self.stack.submodes)  # ArduPilot ignores parameter 3
        wanted = (mode for mode in self.modes if self.stack.mode_parameters(mode.custom)[1:][given] == values[given])
        return next(wanted, None)


def _modes(stack: FlightStack, **kinds: ModeKind) -> tuple[Mode, ...]:
    """Modes of an autopilot by name, without PX4's prefix; it does not arm in LAND and BRAKE."""
    numbers = {name.removeprefix("AUTO."): number for number, name in stack.modes.items()}
    return tuple(Mode(name, numbers[name], kind, name not in ("LAND", "BRAKE")) for name, kind in kinds.items())


PROFILES: Mapping[AutopilotName, AutopilotProfile] = {
    "ardupilot": AutopilotProfile(
        name="ardupilot",
        stack=ARDUPILOT,
        version=0x04080000,
        modes=_modes(
            ARDUPILOT, STABILIZE="hold", ALT_HOLD="hold", GUIDED="guided", LOITER="hold", LAND="land", BRAKE="hold"
        ),
        first_mode="STABILIZE",
        pilot_modes=("LOITER", "STABILIZE", "ALT_HOLD"),
        frames=(1, 7, 8, 9),
        fused_estimators=None,
        dead_reckoning_timeout=7.1,
        refusal=FAILED,
        parameters=(
            ParameterSpec("GUID_TIMEOUT", REAL32, 3.0, 0.5),
            ParameterSpec("FS_GCS_ENABLE", INT8, 0, 5),
            ParameterSpec("FS_GCS_TIMEOUT", REAL32, 5.0, 3.0),
            ParameterSpec("MAV_GCS_SYSID", UINT8, 255, 245, ("SYSID_MYGCS", INT16, 1.0)),
            ParameterSpec("MAV_GCS_SYSID_HI", UINT8, 0, 0),
            ParameterSpec("FS_OPTIONS", INT32, 16, 16),
            ParameterSpec("FS_THR_ENABLE", INT8, 1, 3),
            ParameterSpec("BATT_FS_LOW_ACT", INT8, 0, 1),
            ParameterSpec("BATT_FS_CRT_ACT", INT8, 0, 1),
            ParameterSpec("BATT_LOW_VOLT", REAL32, 10.5, 13.6),
            ParameterSpec("FS_EKF_ACTION", INT8, 1, 1),
            ParameterSpec("FS_DR_ENABLE", INT8, 2, 1),
            ParameterSpec("FENCE_ENABLE", INT8, 0, 0),
            ParameterSpec("WP_YAW_BEHAVIOR", INT8, 2, 0),
            ParameterSpec("LAND_SPD_MS", REAL32, 0.5, 0.3, ("LAND_SPEED", INT16, 100.0)),
            ParameterSpec("DISARM_DELAY", INT8, 10, 10),
        ),
    ),
    "px4": AutopilotProfile(
        name="px4",
        stack=PX4,
        version=0x010F00FF,
        modes=_modes(
            PX4,
            MANUAL="hold",
            ALTCTL="hold",
            POSCTL="hold",
            TAKEOFF="takeoff",
            LOITER="hold",
            LAND="land",
            OFFBOARD="guided",
            STABILIZED="hold",
        ),
        first_mode="MANUAL",
        pilot_modes=("POSCTL", "STABILIZED"),
        frames=(1, 8),
        fused_estimators=(2, 3),  # VISION and VIO; what comes as MOCAP is published, and never read
        dead_reckoning_timeout="EKF2_NOAID_TOUT",
        refusal=TEMPORARILY_REJECTED,
        parameters=(
            ParameterSpec("COM_OF_LOSS_T", REAL32, 1.0, 0.5),
            ParameterSpec("COM_OBL_RC_ACT", INT32, 0, 4),
            ParameterSpec("NAV_RCL_ACT", INT32, 2, 3),
            ParameterSpec("COM_RCL_EXCEPT", INT32, 0, 0),
            ParameterSpec("NAV_DLL_ACT", INT32, 0, 0),
            ParameterSpec("GF_ACTION", INT32, 2, 1),
            ParameterSpec("COM_DL_LOSS_T", INT32, 10, 10),
            ParameterSpec("COM_LOW_BAT_ACT", INT32, 0, 2),
            ParameterSpec("BAT_CRIT_THR", REAL32, 0.07, 0.1),
            ParameterSpec("MIS_TAKEOFF_ALT", REAL32, 2.5, 0.7),
            ParameterSpec("MPC_LAND_SPEED", REAL32, 0.7, 0.3),
            ParameterSpec("EKF2_NOAID_TOUT", INT32, 5e6, 1e6),
            ParameterSpec("COM_DISARM_LAND", REAL32, 2.0, 2.0),
            ParameterSpec("COM_DISARM_PRFLT", REAL32, 10.0, 10.0),
        ),
    ),
}


@dataclass
class ParameterTable:
    """The parameter values of one vehicle, by the newest names and in the newest units."""

    profile: AutopilotProfile
    factory: bool = False
    """Whether to start with the autopilot's defaults."""
    older: bool = False
    """Whether it uses the names of older versions."""
    values: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {entry.name: entry.factory if self.factory else entry.indoor for entry in self.profile.parameters}

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def put(self, changes: Mapping[str, float]) -> None:
        """Change some values, by the newest names."""
        for name, value in changes.items():
            if name not in self.values:
                hint = did_you_mean(name, list(self.values))
                raise WordwingError(f"the served lab's {self.profile.name} has no parameter {name}{hint}")
            self.values[name] = float(value)

    def names(self) -> list[str]:
        """Names as they are sent, in order."""
        return [self._wire(entry)[0] for entry in self.profile.parameters]

    def read(self, name: str) -> tuple[float, int] | None:
        """The float field and the type of PARAM_VALUE for a name on the wire; None if there is no such parameter."""
        for entry in self.profile.parameters:
            wire_name, kind, scale = self._wire(entry)
            if wire_name == name:
                value = self.values[entry.name] * scale
                return self.profile.stack.encode(value if kind == REAL32 else round(value), kind), kind
        return None

    def write(self, name: str, encoded: float, kind: int) -> bool:
        """Execute PARAM_SET; returns whether there is such a parameter, and of such a type."""
        for entry in self.profile.parameters:
            wire_name, own_kind, scale = self._wire(entry)
            if wire_name == name and (kind == own_kind or not self.profile.stack.integers_as_bytes):
                value = self.profile.stack.decode(encoded, own_kind)
                self.values[entry.name] = (value if own_kind == REAL32 else float(round(value))) / scale
                return True
        return False

    def _wire(self, entry: ParameterSpec) -> tuple[str, int, float]:
        return entry.older if self.older and entry.older else (entry.name, entry.type, 1.0)
