"""ArduCopter and PX4 as they look from outside: numbers of modes, parameters, answers to commands.

How they behave is in `autopilot.py`; here are the tables. Each parameter has two values: the autopilot's default, and
what wordwing wants indoors, with which the served lab starts unless it is told otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from wordwing.errors import WordwingError, did_you_mean

AutopilotName = Literal["ardupilot", "px4"]
"""Which autopilot the served lab imitates."""

ModeKind = Literal["guided", "takeoff", "hold", "land"]
"""What a drone in the air does in a mode. In a pilot's modes nobody moves the sticks, so the lab holds its place."""

UINT8, INT8, INT16, INT32, REAL32 = 1, 2, 4, 6, 9
"""MAV_PARAM_TYPE."""

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
    """One parameter that the lab knows and, where it matters to a flight here, obeys."""

    name: str
    type: int
    factory: float
    indoor: float
    older: tuple[str, int, float] | None = None
    """Name, type and units per unit of ours in older versions."""


@dataclass(frozen=True)
class AutopilotProfile:
    """One autopilot's tables."""

    name: AutopilotName
    autopilot: int
    """MAV_AUTOPILOT."""
    version: int
    """flight_sw_version: major, minor, patch and release type, a byte each."""
    modes: tuple[Mode, ...]
    first_mode: str
    """In which it boots."""
    pilot_modes: tuple[str, ...]
    """Which a pilot flies by sticks; a switch changes to the first, which holds the place, or the second, which does
    not."""
    guided: str
    """The mode in which it takes setpoints."""
    frames: tuple[int, ...]
    """MAV_FRAME values of setpoints that it flies."""
    fused_estimators: tuple[int, ...] | None
    """MAV_ESTIMATOR_TYPE of odometry that its estimator reads; None for any."""
    dead_reckoning_timeout: float | str
    """How long it flies on dead reckoning without motion capture before it lands by itself, seconds, or the parameter
    that says so, microseconds."""
    refused_mode: int
    refused_arming: int
    """MAV_RESULT of a refusal."""
    parameters: tuple[ParameterSpec, ...]
    params_bytewise: bool
    """Whether an integer's bytes stand in PARAM_VALUE's float field, or the float nearest to it."""

    def mode(self, name: str) -> Mode:
        """By its name."""
        return next(mode for mode in self.modes if mode.name == name)

    def mode_of(self, first: float, second: float) -> Mode | None:
        """By parameters 2 and 3 of DO_SET_MODE; None for one that the lab does not have."""
        if first != int(first) or second != int(second) or not (0 <= first < 256 and 0 <= second < 256):
            return None
        custom = int(first) if self.name == "ardupilot" else int(first) << 16 | int(second) << 24
        return next((mode for mode in self.modes if mode.custom == custom), None)


ARDUPILOT = AutopilotProfile(
    name="ardupilot",
    autopilot=3,
    version=0x04080000,
    modes=(
        Mode("STABILIZE", 0, "hold"),
        Mode("ALT_HOLD", 2, "hold"),
        Mode("GUIDED", 4, "guided"),
        Mode("LOITER", 5, "hold"),
        Mode("LAND", 9, "land", armable=False),
        Mode("BRAKE", 17, "hold", armable=False),
    ),
    first_mode="STABILIZE",
    pilot_modes=("LOITER", "STABILIZE", "ALT_HOLD"),
    guided="GUIDED",
    frames=(1, 7, 8, 9),
    fused_estimators=None,
    dead_reckoning_timeout=7.1,
    refused_mode=FAILED,
    refused_arming=FAILED,
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
    params_bytewise=False,
)

PX4 = AutopilotProfile(
    name="px4",
    autopilot=12,
    version=0x010F00FF,
    modes=(
        Mode("MANUAL", 1 << 16, "hold"),
        Mode("ALTCTL", 2 << 16, "hold"),
        Mode("POSCTL", 3 << 16, "hold"),
        Mode("TAKEOFF", 4 << 16 | 2 << 24, "takeoff"),
        Mode("LOITER", 4 << 16 | 3 << 24, "hold"),
        Mode("LAND", 4 << 16 | 6 << 24, "land", armable=False),
        Mode("OFFBOARD", 6 << 16, "guided"),
        Mode("STABILIZED", 7 << 16, "hold"),
    ),
    first_mode="MANUAL",
    pilot_modes=("POSCTL", "STABILIZED"),
    guided="OFFBOARD",
    frames=(1, 8),
    fused_estimators=(2, 3),  # VISION and VIO; what comes as MOCAP is published, and never read
    dead_reckoning_timeout="EKF2_NOAID_TOUT",
    refused_mode=TEMPORARILY_REJECTED,
    refused_arming=TEMPORARILY_REJECTED,
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
    params_bytewise=True,
)

PROFILES: Mapping[AutopilotName, AutopilotProfile] = {"ardupilot": ARDUPILOT, "px4": PX4}


@dataclass
class ParameterTable:
    """The values that one vehicle has now, by today's names and in today's units."""

    profile: AutopilotProfile
    factory: bool = False
    """Whether to start with what the autopilot comes with."""
    older: bool = False
    """Whether it goes by the names of older versions."""
    values: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {entry.name: entry.factory if self.factory else entry.indoor for entry in self.profile.parameters}

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def put(self, changes: Mapping[str, float]) -> None:
        """Change some values by today's names."""
        for name, value in changes.items():
            if name not in self.values:
                hint = did_you_mean(name, list(self.values))
                raise WordwingError(f"the served lab's {self.profile.name} has no parameter {name}{hint}")
            self.values[name] = float(value)

    def names(self) -> list[str]:
        """As they stand on the wire, in order."""
        return [self._wire(entry)[0] for entry in self.profile.parameters]

    def read(self, name: str) -> tuple[float, int] | None:
        """The float field and the type of PARAM_VALUE for a name on the wire; None if there is no such parameter."""
        for entry in self.profile.parameters:
            wire_name, kind, scale = self._wire(entry)
            if wire_name == name:
                value = self.values[entry.name] * scale
                return self._encode(value, kind), kind
        return None

    def write(self, name: str, encoded: float, kind: int) -> bool:
        """What PARAM_SET asks for; whether there is such a parameter, and of such a type."""
        for entry in self.profile.parameters:
            wire_name, own_kind, scale = self._wire(entry)
            if wire_name != name or (self.profile.params_bytewise and kind != own_kind):
                continue
            self.values[entry.name] = self._decode(encoded, own_kind) / scale
            return True
        return False

    def _wire(self, entry: ParameterSpec) -> tuple[str, int, float]:
        return entry.older if self.older and entry.older else (entry.name, entry.type, 1.0)

    def _encode(self, value: float, kind: int) -> float:
        if kind == REAL32:
            return value
        if self.profile.params_bytewise:
            return float(struct.unpack("<f", struct.pack("<i", round(value)))[0])
        return float(round(value))

    def _decode(self, encoded: float, kind: int) -> float:
        if kind == REAL32:
            return encoded
        if self.profile.params_bytewise:
            return float(struct.unpack("<i", struct.pack("<f", encoded))[0])
        return float(round(encoded))
