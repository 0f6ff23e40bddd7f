"""Taking off and landing, step by step, as each autopilot wants it.

ArduPilot: GUIDED, arm, NAV_TAKEOFF, hover; any setpoint before the hover would replace the take-off. PX4: zero
setpoints for more than a second, OFFBOARD, arm, climb by setpoints; if they stop on the way up, it lands by itself.
"""

import math
from collections.abc import Callable, Sequence

from wordwing.flight.guardian.protocol import PhaseReason
from wordwing.flight.guardian.safety import FlightLimits, Motion, Timeouts
from wordwing.flight.mavlink.messages import ARM, SET_MODE, TAKE_OFF, Message, MessageFactory
from wordwing.flight.mavlink.parse_message import RESULTS, CommandAck
from wordwing.flight.mavlink.vehicle_status import VehicleStatus

STEADY = 0.1
"""A drone keeps its height if it climbs or sinks by less, m/s."""

LIFTED = 0.15
"""A drone that is so much higher than it stood is taking off, metres."""

FLYING_STATES = (2, 3)
"""MAV_LANDED_STATE: in the air, taking off."""

ACCEPTED, IN_PROGRESS = 0, 5
"""MAV_RESULT."""


class CommandRetry:
    """One command, sent again until it is answered.

    Args:
        what: It in words: "arm".
        command: MAV_CMD number.
        make: Makes the message for the n-th repetition.
        timeouts: How long to wait, how often to try.
    """

    def __init__(self, what: str, command: int, make: Callable[[int], Message], timeouts: Timeouts) -> None:
        self.accepted = False
        self.problem: str | None = None
        """Why it has failed."""
        self._what, self._command, self._make, self._timeouts = what, command, make, timeouts
        self._sent = 0
        self._sent_at = self._accepted_at = math.inf

    def update(self, ack: CommandAck, now: float) -> None:
        """Take in an answer of the autopilot to some command."""
        if ack.command != self._command or not self._sent or self.accepted or ack.result == IN_PROGRESS:
            return
        if ack.result == ACCEPTED:
            self.accepted, self._accepted_at = True, now
        else:
            meaning = RESULTS.get(ack.result, f"result {ack.result}")
            self.problem = f"the autopilot refused to {self._what} ({meaning})"

    def due(self, now: float, heartbeat_at: float) -> Message | None:
        """The message if it is to be sent now; `heartbeat_at` is when the newest heartbeat came."""
        if self.problem is not None:
            return None
        if self.accepted:
            if now - self._accepted_at > self._timeouts.effect:
                self.problem = f"the autopilot agreed to {self._what}, but it did not happen"
            return None
        if self._sent and (now - self._sent_at < self._timeouts.answer or heartbeat_at <= self._sent_at):
            return None
        if self._sent >= self._timeouts.tries:
            self.problem = f"the autopilot did not answer {self._sent} requests to {self._what}"
            return None
        message = self._make(self._sent)
        self._sent, self._sent_at = self._sent + 1, now
        return message


class TakeoffSequence:
    """One take-off. Ask for `allowed` modes and `problem` too; it ends when `done`."""

    def __init__(
        self, vehicle: VehicleStatus, factory: MessageFactory, limits: FlightLimits, timeouts: Timeouts, now: float
    ) -> None:
        self.problem: str | None = None
        """Why it has failed."""
        self._vehicle, self._limits, self._timeouts = vehicle, limits, timeouts
        self._stack = factory.stack
        self._steps = list(self._stack.takeoff)
        mode = self._stack.flying_mode
        self._commands = {
            "mode": CommandRetry(
                f"go to {self._stack.mode_name(mode)}", SET_MODE, lambda again: factory.mode(mode, again), timeouts
            ),
            "arm": CommandRetry("arm", ARM, factory.arm, timeouts),
            "takeoff": CommandRetry(
                "take off", TAKE_OFF, lambda again: factory.take_off(limits.height, again), timeouts
            ),
        }
        self._before = vehicle.mode
        self._seen_flying = False
        self._stood: float | None = None
        self._since = now
        self._steady_since = math.inf

    @property
    def step(self) -> str:
        """What is being done, in a word."""
        return self._steps[0] if self._steps else "done"

    @property
    def done(self) -> bool:
        """Whether the drone hovers in the mode in which it flies setpoints."""
        return not self._steps

    @property
    def streaming(self) -> bool:
        """Whether setpoints are to be sent."""
        return self.done or self._stack.stream_seconds > 0

    @property
    def climbing(self) -> bool:
        """Whether they are to bring the drone up; else they are zero."""
        return self.step in ("hover", "done")

    @property
    def allowed(self) -> tuple[int, ...]:
        """Modes in which the drone may be now; in any other, someone else flies it."""
        flying = self._stack.flying_mode
        if self.step == "stream":  # nobody has asked for another yet
            return (self._before,)
        return (flying,) if self._seen_flying else (self._before, flying)

    def note_mode(self) -> None:
        """A heartbeat in an allowed mode has come."""
        self._seen_flying |= self._vehicle.mode == self._stack.flying_mode and self.step != "stream"

    def update(self, ack: CommandAck, now: float) -> None:
        """Take in an answer to some command."""
        if self.step in self._commands:
            self._commands[self.step].update(ack, now)

    def tick(self, motion: Motion | None, now: float) -> Message | None:
        """The command to send now, if any (setpoints apart, see `streaming`)."""
        self.note_mode()
        while self._steps and self._finished(motion, now):
            self._steps.pop(0)
            self._since, self._steady_since = now, math.inf
        if self.step in ("hover", "takeoff") and now - self._since > self._timeouts.climb:
            self.problem = f"the drone did not hover within {self._timeouts.climb:g} s"
            return None
        command = self._commands.get(self.step)
        message = None if command is None else command.due(now, self._vehicle.heartbeat_at)
        self.problem = None if command is None else command.problem
        return message

    def _finished(self, motion: Motion | None, now: float) -> bool:
        """Whether the present step has had its effect."""
        match self.step:
            case "stream":
                return now - self._since >= self._stack.stream_seconds
            case "mode":
                return self._vehicle.mode == self._stack.flying_mode
            case "arm":
                return self._vehicle.armed
            case "takeoff":
                # Asked a second time it refuses, because it is on its way.
                return self._commands["takeoff"].accepted or self._leaves_the_floor(motion)
        return self._hovers(motion, now)

    def _leaves_the_floor(self, motion: Motion | None) -> bool:
        if motion is not None and self._stood is None:
            self._stood = motion.height
        climbs = motion is not None and self._stood is not None and motion.height > self._stood + LIFTED
        return climbs or self._vehicle.landed_state in FLYING_STATES

    def _hovers(self, motion: Motion | None, now: float) -> bool:
        up = motion is not None and motion.height > 0.5 * self._limits.height
        if motion is None or not up or abs(float(motion.velocity[2])) > STEADY:
            self._steady_since = math.inf
            return False
        self._steady_since = min(self._steady_since, now)
        return now - self._steady_since >= self._timeouts.hover


class LandingSequence:
    """One landing.

    Args:
        vehicle: The drone.
        factory: Makes messages for it.
        timeouts: How long things may take.
        why: The reason for it, in words.
        reason: The same for programs.
        before: Modes in which it may be until the land mode shows.
        streamed: Whether setpoints have been sent; then zero ones go on until the land mode shows.
        armed_at: When it was last asked to arm; minus infinity for never.
        now: Seconds.
    """

    def __init__(
        self,
        vehicle: VehicleStatus,
        factory: MessageFactory,
        timeouts: Timeouts,
        why: str,
        reason: PhaseReason | None,
        before: Sequence[int],
        streamed: bool,
        armed_at: float,
        now: float,
    ) -> None:
        self.why, self.reason = why, reason
        self._vehicle, self._factory, self._timeouts = vehicle, factory, timeouts
        self._land = factory.stack.land_mode
        self._before, self._streamed, self._asked_to_arm_at, self._since = tuple(before), streamed, armed_at, now
        self._seen, self._was_armed = False, vehicle.armed
        self._sent_at = self._accepted_at = -math.inf
        self._lost_at = math.inf

    @property
    def allowed(self) -> tuple[int, ...]:
        """Modes in which the drone may be; in any other, someone else flies it."""
        return (self._land,) if self._seen else (*self._before, self._land)

    def note_heartbeat(self, now: float) -> bool:
        """A heartbeat has come; true when it says that the drone is disarmed for good."""
        vehicle = self._vehicle
        self._seen |= vehicle.mode == self._land
        self._was_armed |= vehicle.armed
        self._lost_at = math.inf
        # A request to arm may still be on its way.
        settled = self._was_armed or now - self._asked_to_arm_at > self._timeouts.heartbeat
        return not vehicle.armed and settled

    def update(self, ack: CommandAck, now: float) -> None:
        """Take in an answer to some command."""
        if ack.command == SET_MODE and ack.result == ACCEPTED and not math.isinf(self._sent_at):
            self._accepted_at = now

    def note_lost(self, now: float) -> None:
        """The autopilot has fallen silent."""
        self._lost_at = min(self._lost_at, now)

    def lost_for(self, now: float) -> float:
        """Seconds since it was lost; negative if it is not."""
        return now - self._lost_at

    def tick(self, now: float) -> Message | None:
        """LAND, if it is to be sent now."""
        needed = self._vehicle.armed or not math.isinf(self._asked_to_arm_at)
        if self._seen or not needed or self.lost_for(now) > self._timeouts.lost_link:
            return None
        if self._accepted_at >= max(self._sent_at, self._vehicle.heartbeat_at):
            return None  # it lands, or a pilot has taken over meanwhile: the next heartbeat tells
        wait = self._timeouts.answer if self._vehicle.heartbeat_at > self._sent_at else 2 * self._timeouts.answer
        if now - self._sent_at < wait:
            return None
        self._sent_at = now
        return self._factory.mode(self._land)

    def hovers(self, now: float) -> bool:
        """Whether zero setpoints are to be sent."""
        return self._streamed and not self._seen and not self.only_land(now) and math.isinf(self._lost_at)

    def only_land(self, now: float) -> bool:
        """Whether LAND has not shown for so long, or the link is lost, that all but LAND is left out."""
        unheard = not self._seen and self._vehicle.armed and now - self._since >= self._timeouts.land_unconfirmed
        return unheard or not math.isinf(self._lost_at)
