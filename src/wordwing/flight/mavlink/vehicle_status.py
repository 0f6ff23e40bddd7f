"""What the autopilot reports of itself: who it is, its mode, whether it is armed, its battery and its checks."""

import math

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.flight_stacks import INVALID, MULTICOPTERS, PX4, FlightStack, flight_stack
from wordwing.flight.mavlink.messages import Message
from wordwing.flight.mavlink.parse_message import (
    Battery,
    Estimator,
    GlobalOrigin,
    LandedState,
    ParsedMessage,
    StatusText,
    SystemStatus,
    VehicleHeartbeat,
    Version,
)

AUTOPILOT = 1
"""MAV_COMP_ID_AUTOPILOT1: messages of other components of a vehicle are ignored."""

OVERTAKEN = 32
"""A packet so many sequence numbers behind has been overtaken by others; further behind, many have been lost."""

FRESH = 3.0
"""Reports that a start depends on must be younger, seconds."""

FROZEN = 1.0
"""An estimator whose variances have not changed for longer measures nothing any more, seconds."""

UNINIT, STANDBY, ACTIVE = 0, 3, 4
"""MAV_STATE; in the last two a vehicle is well; before them it boots or calibrates, after them it is in trouble."""


def failed(*checks: tuple[bool, str]) -> list[str]:
    """The sentences of those checks (whether something is wrong, and what) that have found something wrong."""
    return [sentence for wrong, sentence in checks if wrong]


def first_failed(*checks: tuple[bool, str]) -> str | None:
    """The sentence of the first of those checks that has found something wrong; None if none has."""
    return next(iter(failed(*checks)), None)


class VehicleStatus:
    """The one vehicle on the link."""

    def __init__(self) -> None:
        self.system: int | None = None
        """MAVLink system id."""
        self.stack: FlightStack | None = None
        self.refusal: str | None = None
        """Why this vehicle cannot be flown at all."""
        self.armed = False
        self.mode = -1
        """custom_mode of the newest heartbeat."""
        self.heartbeat_at = -math.inf
        """When the newest heartbeat came."""
        self.landed_state = 0
        """MAV_LANDED_STATE."""
        self.version: Version | None = None
        self.prearm: bool | None = None
        self.status_text = ""
        """Its last STATUSTEXT."""
        self._status = 0
        self._estimator = Estimator(0, math.nan)
        self._estimator_at = self._estimator_changed_at = self._prearm_at = -math.inf
        self._had_position = self._has_origin = False
        self._batteries: dict[int, float] = {}
        self._sequence: int | None = None

    def is_from(self, message: Message) -> bool:
        """Whether a message is from the vehicle's autopilot, and has not been overtaken by newer ones."""
        if self.system is None or message.get_srcSystem() != self.system or message.get_srcComponent() != AUTOPILOT:
            return False
        number = message.get_seq()
        if self._sequence is not None and (self._sequence - number) % 256 < OVERTAKEN:
            return False  # a mode from before would look like someone taking over
        self._sequence = number
        return True

    def identify(self, system: int, component: int, heartbeat: VehicleHeartbeat) -> bool:
        """Look at a heartbeat from any sender; true when it makes that one the vehicle."""
        if component != AUTOPILOT or heartbeat.autopilot == INVALID or system == self.system:
            return False
        if self.system is not None:
            self.refusal = f"there are two vehicles on this link, systems {self.system} and {system}; leave one"
            return False
        self.system = system
        try:
            self.stack = flight_stack(heartbeat.autopilot)
        except WordwingError as error:
            self.refusal = str(error)
            return True
        if heartbeat.kind not in MULTICOPTERS:
            self.refusal = f"the vehicle is of type {heartbeat.kind}; wordwing flies multicopters"
        return True

    def update(self, message: ParsedMessage, now: float) -> None:
        """Remember what it reports of itself."""
        match message:
            case VehicleHeartbeat():
                self.armed, self.mode, self._status = message.armed, message.mode, message.status
                self.heartbeat_at = now
            case SystemStatus():
                self.prearm, self._prearm_at = message.prearm, now
                self._note_battery(-1, message.battery)
            case Battery():
                self._note_battery(message.number, message.remaining)
            case Estimator():
                if message.fit != self._estimator.fit:
                    self._estimator_changed_at = now
                self._estimator, self._estimator_at = message, now
                self._had_position |= self._has_position
            case GlobalOrigin():
                self._has_origin = True
            case LandedState():
                self.landed_state = message.state
            case Version():
                self.version = message
            case StatusText():
                self.status_text = message.text

    @property
    def battery(self) -> float | None:
        """Share that remains in the emptiest battery; None if none is known."""
        return min(self._batteries.values(), default=None)

    @property
    def is_lab(self) -> bool:
        """Whether it says that it is wordwing's lab."""
        return self.version is not None and self.version.lab

    @property
    def mode_name(self) -> str:
        """Of the newest heartbeat."""
        return "unknown" if self.stack is None or self.mode < 0 else self.stack.mode_name(self.mode)

    def silence(self, now: float) -> float:
        """Seconds since the newest heartbeat."""
        return now - self.heartbeat_at

    @property
    def lost_position(self) -> bool:
        """Whether its estimator has known where it is, and does not any more, whatever positions it still sends.

        PX4 drops a flag and has no test ratio 0.8 s after motion capture has stopped; ArduPilot keeps its flags for
        seven seconds, but its variances stop changing.
        """
        frozen = self._estimator_at - self._estimator_changed_at > FROZEN
        return self._had_position and (not self._has_position or frozen)

    @property
    def _has_position(self) -> bool:
        flags = self.stack.wants_estimator_flags if self.stack else 0
        return self._estimator.flags & flags == flags and not math.isnan(self._estimator.fit)

    def unready(self, now: float) -> list[str]:
        """What its own reports say against arming."""
        stack = self.stack
        if self.refusal is not None:
            return [self.refusal]
        if stack is None:
            return ["no autopilot has been heard"]
        flags, estimator = stack.wants_estimator_flags, self._estimator
        checked = self.prearm is not None and now - self._prearm_at <= FRESH
        said = f' ("{self.status_text}")' if self.status_text else ""
        return failed(
            (self.armed, "the drone is armed already; disarm it"),
            (
                self._has_origin and not stack.lands_with_an_origin,
                f"{stack.name} has a global origin, with which its land mode may fly away on motion capture; "
                "restart it, and set no origin in a ground station",
            ),
            (
                self._status not in (STANDBY, ACTIVE),
                f"the autopilot is in system state {self._status}; it must be standby (3) or active (4){self._hint()}",
            ),
            (
                bool(flags) and (now - self._estimator_at > FRESH or estimator.flags & flags != flags),
                f"the autopilot's estimator has flags {estimator.flags}; it needs {flags}",
            ),
            (
                self.prearm is False or (stack.wants_prearm_bit and not checked),
                f"the autopilot's own checks before arming are not passed{said}",
            ),
            (self.version is None, "the autopilot has not told its version yet"),  # the lab is known by it
        )

    def _hint(self) -> str:
        """What helps a PX4 that says of itself that it has not started: it does so while its checks are not passed."""
        if self._status != UNINIT or self.stack is not PX4:
            return ""
        if self.mode_name != "AUTO.LOITER":
            return f": its own checks for {self.mode_name} are not passed; a ground station shows which"
        return (
            ": without a transmitter it waits in AUTO.LOITER, and Hold needs GPS; turn the transmitter on "
            "(COM_RC_IN_MODE says what counts as one) and switch to POSCTL"
        )

    def _note_battery(self, number: int, remaining: float | None) -> None:
        if remaining is None:
            self._batteries.pop(number, None)
        else:
            self._batteries[number] = remaining
