"""The guardian: it alone sends to the autopilot, and decides what of a pilot's orders reaches it.

It has no input and output of its own: messages and orders come in, packets go out, and `now` is always given. So the
same code flies in lock-step simulated time and, in a process of its own that outlives the pilot's, in real time.

Phases: CONNECTING → READY → TAKING_OFF → HOLDING ⇄ FLYING → LANDING → LANDED. RELEASED is final: the drone is in
someone else's hands, and nothing is sent but heartbeats, until it is disarmed: without them ArduPilot would take the
drone from a pilot and land it. In LOST the link is dead: LAND is still sent for a while, then
there is silence, so that the autopilot's own failsafe acts.
"""

import math
from collections.abc import Sequence

from wordwing.flight.guardian.protocol import (
    AIRBORNE,
    FINAL,
    GROUND,
    Decision,
    GuardianState,
    Hold,
    Land,
    Order,
    Outbox,
    Phase,
    PhaseReason,
    PilotDisconnected,
    SetParameters,
    TakeOff,
)
from wordwing.flight.guardian.safety import FenceMargins, FlightLimits, Motion, Safety, Timeouts
from wordwing.flight.guardian.setpoints import SetpointSender, SetpointTimeout
from wordwing.flight.guardian.state_estimate import StateEstimate
from wordwing.flight.guardian.takeoff_landing import LandingSequence, TakeoffSequence
from wordwing.flight.guardian.watchdogs import TickWatchdog, Watchdogs
from wordwing.flight.mavlink.geometry import ArenaFrame
from wordwing.flight.mavlink.messages import (
    ARM,
    HEARTBEAT,
    REQUEST,
    Codec,
    Message,
    MessageFactory,
    heartbeat,
    timesync,
)
from wordwing.flight.mavlink.parameters import PreflightRequests
from wordwing.flight.mavlink.parse_message import (
    Attitude,
    CommandAck,
    InvalidMessage,
    ParameterValue,
    Position,
    StatusText,
    TimesyncReply,
    VehicleHeartbeat,
    parse_message,
)
from wordwing.flight.mavlink.vehicle_status import VehicleStatus

TICK = 0.05
"""Seconds between two calls of `tick`."""

HEARTBEAT_EVERY = 0.5
"""Seconds between two heartbeats of ours: ArduPilot lands after at most 3 without one, and links lose packets."""

HEARTBEAT_WITHIN = 0.1
"""How often the autopilot's heartbeat is asked for in the air, where it must be, seconds."""

SWITCHED_OFF = 10.0
"""After so long without a heartbeat a drone that somebody has taken over counts as switched off, seconds."""

GIVEN_UP = 60.0
"""After so long without a heartbeat a lost drone is not waited for any more, seconds."""


class Guardian:
    """Phases, watchdogs and safety between one pilot and one autopilot.

    Args:
        arena: Takes the autopilot's local frame (z up) to the world frame.
        limits: What the drone may do.
        timeouts: How long things may take.
        fence: How near to the fences it may come; the arena's margins if left out. Less than 0.35 m is only for a
            vehicle that says that it is wordwing's lab.
        codec: Packs messages; one with a key if the link is signed.
        dry: Never arm, never send a setpoint or a mode; note what would be sent.
        may_set_parameters: Whether `SetParameters` may be ordered.
        now: Seconds of the clock that all later calls use.
    """

    def __init__(
        self,
        arena: ArenaFrame,
        limits: FlightLimits | None = None,
        timeouts: Timeouts | None = None,
        *,
        fence: FenceMargins | None = None,
        codec: Codec | None = None,
        dry: bool = False,
        may_set_parameters: bool = False,
        now: float = 0.0,
    ) -> None:
        self.limits, self.timeouts = limits or FlightLimits(), timeouts or Timeouts()
        fence = fence or FenceMargins(arena.margin, arena.side_margin, min(arena.margin, arena.side_margin) / 2)
        self.dry = dry
        self.phase = Phase.CONNECTING
        self.why = "waiting for an autopilot"
        self.reason: PhaseReason | None = None
        self.codec = codec or Codec()
        self.estimate = StateEstimate(arena)
        self._may_set_parameters = may_set_parameters
        self._out = Outbox(self.codec)
        self.events = self._out.events
        """What has happened: each change of phase with its reason, each command, each setpoint; may be cleared."""
        self._vehicle = VehicleStatus()
        self._watchdogs = Watchdogs(self.limits, self.timeouts, fence)
        self._setpoints = SetpointSender(Safety(self.limits, fence), self._out, now, dry=dry)
        self._pilot = SetpointTimeout(self.timeouts)
        self._factory: MessageFactory | None = None
        self._preflight: PreflightRequests | None = None
        self._takeoff: TakeoffSequence | None = None
        self._landing: LandingSequence | None = None
        self._unready: Sequence[str] = ("no autopilot has been heard",)
        self._tick_watchdog = TickWatchdog(self.timeouts, now)
        self._heartbeat_at = self._asked_at = self._arming_at = -math.inf
        self._took_off_at = math.inf
        self._was_armed = self._rebooted = False

    def receive(self, message: Message, now: float) -> None:
        """Take in a message that `Codec.parse` has made of bytes from the link."""
        item, vehicle, history = parse_message(message), self._vehicle, self.estimate.history
        if (
            isinstance(item, VehicleHeartbeat)
            and vehicle.identify(message.get_srcSystem(), message.get_srcComponent(), item)
            and vehicle.stack is not None
            and vehicle.system is not None
        ):
            self._factory = self._setpoints.factory = MessageFactory(vehicle.stack, vehicle.system)
            self._preflight = PreflightRequests(self._factory)
            self._out.note("note", f"heard {vehicle.stack.name}, system {vehicle.system}", now)
        if not vehicle.is_from(message) or item is None:
            return
        vehicle.update(item, now)
        match item:
            case Position() | Attitude():
                history.update(item, now)
                if history.rebooted and not self._rebooted:
                    self._release("the autopilot has been started anew", now)
            case VehicleHeartbeat():
                self._check_heartbeat(now)
            case ParameterValue() if self._preflight is not None:
                self._preflight.parameters.update(item)
            case TimesyncReply():
                history.sync.add_reply(item.asked, item.boot, now)
            case CommandAck() if item.command != REQUEST:
                self._out.note("told", f"answer {item.result} to command {item.command}", now)
                for sequence in (self._takeoff, self._landing):
                    if sequence is not None:
                        sequence.update(item, now)
            case StatusText():
                self._out.note("told", item.text, now, severity=item.severity)
            case InvalidMessage():
                history.note_jump(f"{item.name} held a number that no drone can have", now)

    def receive_mocap(self, time: float, position: Sequence[float], quaternion: Sequence[float], now: float) -> None:
        """Take in a pose that motion capture has measured, as the autopilot gets it.

        Args:
            time: When it was measured, seconds of our clock.
            position: [3] metres, local frame with z up.
            quaternion: [4] (w, x, y, z), body to local frame.
            now: Seconds of our clock.
        """
        flying = self.phase in (Phase.HOLDING, Phase.FLYING)
        self.estimate.mocap.add(time, position, quaternion, now, flying=flying)

    def order(self, order: Order, now: float) -> None:
        """Take in an order of the pilot."""
        note = self._out.note
        if isinstance(order, PilotDisconnected):
            note("order", "the pilot's connection has closed", now)
        elif self._pilot.disconnected and self.phase in GROUND:
            self._pilot.reconnect()
        elif self._pilot.disconnected and not isinstance(order, Land):
            return  # only the pilot that took off flies on
        problem = self._pilot.update(order, now)
        match order:
            case TakeOff():
                note("order", "take off", now)
                self._order_take_off(now)
            case Land():
                note("order", "land", now)
                self._land("the pilot ordered it", now, "ordered")
            case SetParameters():
                note("order", "set parameters", now)
                self._order_parameters(now)
            case Hold():
                note("order", "hold", now)
            case Decision():
                note("order", "decision", now, **vars(order))
                motion = self.estimate.motion() if self.dry else None
                if problem is None and self.dry and motion is None:
                    problem = "there is no pose yet"
                elif problem is None and not self.dry and self.phase not in (Phase.HOLDING, Phase.FLYING):
                    problem = f"no decision is flown while {self.phase.value}"
                if problem is not None:
                    note("refused", problem, now)
                elif motion is not None:
                    self._setpoints.fly(order, motion, self.estimate.history.age(now), now)

    def tick(self, now: float) -> list[bytes]:
        """Packets to send now; call it 20 times a second, after all messages and orders have been taken in."""
        away = self._tick_watchdog.tick(now)
        if self.phase not in (*GROUND, *FINAL):
            if away is not None:
                self._out.note("note", away, now)
                self._pilot.drop(away, now)
            if self._tick_watchdog.outdated(self._vehicle.heartbeat_at, now):
                self._send_heartbeat(now)
                return self._out.take()
        motion = self.estimate.motion()
        if self.phase in AIRBORNE or self.phase is Phase.LANDING:
            self._check_watchdogs(motion, now)
        match self.phase:
            case Phase.CONNECTING | Phase.READY:
                self._prepare(motion, now)
            case Phase.TAKING_OFF:
                self._climb(motion, now)
            case Phase.HOLDING | Phase.FLYING:
                self._fly(motion, now)
        if self.phase in (Phase.LANDING, Phase.LOST):
            self._descend(now)
        self._send_heartbeat(now)
        self._request_heartbeat(now)
        return self._out.take()

    def state(self, now: float) -> GuardianState:
        """What a pilot may know."""
        vehicle, age, newest = self._vehicle, self.estimate.history.age(now), self.estimate.newest()
        return GuardianState(
            time=now,
            phase=self.phase,
            why=self.why,
            done=self._done(now),
            unready=tuple(self._unready) if self.phase in GROUND else (),
            autopilot=vehicle.stack.name if vehicle.stack else None,
            system=vehicle.system,
            version=vehicle.version.number if vehicle.version else None,
            lab=vehicle.is_lab,
            armed=vehicle.armed,
            mode=vehicle.mode_name,
            battery=vehicle.battery,
            pose_time=newest[0] if newest else None,
            pose=newest[1] if newest else None,
            pose_age=None if math.isinf(age) else age,
            heartbeat_age=None if math.isinf(vehicle.heartbeat_at) else vehicle.silence(now),
            setpoint=self._setpoints.setpoint,
            decision_time=self._setpoints.decision_time,
            parameters=tuple(self._preflight.parameters.findings()) if self._preflight else (),
            reason=self.reason,
        )

    def finished(self, now: float) -> bool:
        """Whether nothing is left to be sent: not even heartbeats to a drone that somebody else flies."""
        if self.phase is not Phase.RELEASED:
            return self._done(now)
        return not self._vehicle.armed or self._vehicle.silence(now) > SWITCHED_OFF

    def _done(self, now: float) -> bool:
        if self._landing is not None and self._landing.lost_for(now) > GIVEN_UP:
            return True
        return self.phase in FINAL or (self.phase in GROUND and self._pilot.disconnected)

    def _enter(self, phase: Phase, why: str, now: float, reason: PhaseReason | None = None) -> None:
        if phase is not self.phase:
            values = {"phase": phase.value, "before": self.phase.value, **({"reason": reason} if reason else {})}
            self._out.note("phase", f"{phase.value}: {why}", now, **values)
        self.phase, self.why, self.reason = phase, why, reason

    def _release(self, why: str, now: float) -> None:
        """Leave the drone to somebody else."""
        self._rebooted = self.estimate.history.rebooted
        if self.phase in FINAL:
            self._out.note("note", why, now)
        else:
            self._enter(Phase.RELEASED, why, now)

    def _land(self, why: str, now: float, reason: PhaseReason | None = None) -> None:
        if self.phase not in AIRBORNE or self._factory is None:
            return
        before, streamed = self._allowed(), self._setpoints.begun
        self._landing = LandingSequence(
            self._vehicle, self._factory, self.timeouts, why, reason, before, streamed, self._arming_at, now
        )
        self._takeoff = None
        self._enter(Phase.LANDING, why, now, reason)

    def _send_heartbeat(self, now: float) -> None:
        """Our heartbeat. It says that someone is in charge, so a dead pilot must not have one in the air.

        On the floor the pilot may be silent while a person thinks about the confirmation; ArduPilot would not arm then.
        """
        there = self._pilot.present(now) or (self.phase in GROUND and not self._pilot.disconnected)
        there = there or self.phase is Phase.RELEASED  # somebody is in charge
        quiet = self.phase in (Phase.LANDING, Phase.LOST) and self._landing is not None and self._landing.only_land(now)
        if there and not quiet and now - self._heartbeat_at >= HEARTBEAT_EVERY - TICK / 2:
            self._heartbeat_at = now
            self._out.send_quietly(heartbeat())
            if self.phase in GROUND or self.phase in AIRBORNE:
                self._out.send_quietly(timesync(now))

    def _request_heartbeat(self, now: float) -> None:
        """In the air, where a pilot who takes over must be seen soon."""
        factory = self._factory
        if factory is None or not factory.stack.heartbeat_on_request or self.phase not in (*AIRBORNE, Phase.LANDING):
            return
        if now - self._asked_at >= HEARTBEAT_WITHIN - TICK / 2:
            self._asked_at = now
            self._out.send_quietly(factory.request(HEARTBEAT))

    def _allowed(self) -> tuple[int, ...]:
        """Modes in which the drone may be now, in flight."""
        if self._landing is not None:
            return self._landing.allowed
        if self.phase is Phase.TAKING_OFF and self._takeoff is not None:
            return self._takeoff.allowed
        return () if self._factory is None else (self._factory.stack.flying_mode,)

    def _check_heartbeat(self, now: float) -> None:
        """Look whether the drone is still ours."""
        vehicle = self._vehicle
        if self.phase in GROUND or self.phase in FINAL:
            return
        foreign = vehicle.mode not in self._allowed()
        strange = f"the mode is {vehicle.mode_name} without our order"
        self._was_armed |= vehicle.armed
        if self._landing is not None:
            if self._landing.note_heartbeat(now):
                flew = "disarmed; it came down because" if self._was_armed else "never armed:"
                self._enter(Phase.LANDED, f"{flew} {self._landing.why}", now, self._landing.reason)
            elif vehicle.armed and foreign:
                self._release(strange, now)
            elif self.phase is Phase.LOST:
                self._enter(Phase.LANDING, "the autopilot is heard again", now)
        elif self._was_armed and not vehicle.armed:
            self._release("the drone was disarmed without our order", now)
        elif foreign:
            self._release(strange, now)
        elif self._takeoff is not None:
            self._takeoff.note_mode()

    def _check_watchdogs(self, motion: Motion | None, now: float) -> None:
        """Change the phase if anything is wrong."""
        silence = self._vehicle.silence(now)
        if silence > self.timeouts.heartbeat:
            self._land(f"the autopilot has been silent for {silence:.1f} s", now)
            if self._landing is not None:
                self._landing.note_lost(now)
            self._enter(Phase.LOST, f"the autopilot has been silent for {silence:.1f} s", now)
        elif self.phase in AIRBORNE:
            flawed = self._watchdogs.must_land(
                self._vehicle, self.estimate.history, motion, self._took_off_at, now
            ) or self.estimate.mocap.must_land(self._took_off_at, now)
            why = (
                flawed
                or self._pilot.absent(now, at_once=self.phase is Phase.TAKING_OFF)
                or (None if self.phase is Phase.TAKING_OFF else self._pilot.idle(now))
            )
            if why is not None:
                old = self._watchdogs.old_pose(self.estimate.history, now)
                self._land(why, now, "no decision" if flawed is None else "old pose" if old else None)

    def _prepare(self, motion: Motion | None, now: float) -> None:
        if self._preflight is not None:
            known = self._vehicle.version is not None
            for message in self._preflight.tick(self.phase is Phase.READY, known, now):
                self._out.send(message, now)
        self._unready = self._reasons(motion, now)
        if self._unready:
            old = motion is not None and self._watchdogs.old_pose(self.estimate.history, now)
            self._enter(Phase.CONNECTING, self._unready[0], now, "old pose" if old else None)
        else:
            self._enter(Phase.READY, "nothing speaks against arming", now)

    def _reasons(self, motion: Motion | None, now: float) -> list[str]:
        parameters = self._preflight.parameters if self._preflight else None
        reasons = self._watchdogs.unready(self._vehicle, parameters, self.estimate.history, motion, now)
        met = self._vehicle.stack is not None and self._vehicle.refusal is None
        return reasons + (self.estimate.mocap.unready(now) if met else [])

    def _order_parameters(self, now: float) -> None:
        if not self._may_set_parameters or self.dry:
            self._out.note("refused", "parameters are not written unless it was asked for (--set-parameters)", now)
        elif self.phase not in GROUND or self._vehicle.armed or self._preflight is None:
            self._out.note("refused", "parameters are written on the ground only, disarmed", now)
        else:
            for finding in self._preflight.parameters.write():
                text = f"writing {finding.name}: {finding.value} becomes {finding.write}"
                self._out.note("note", text, now, name=finding.name, old=finding.value, new=finding.write)

    def _order_take_off(self, now: float) -> None:
        reasons = self._reasons(self.estimate.motion(), now) if self.phase in GROUND else ["it has taken off already"]
        if reasons or self._factory is None:
            self._out.note("refused", f"no take-off: {'; '.join(reasons)}", now)
        elif self.dry:
            steps = ", ".join(self._factory.stack.takeoff)
            self._out.note("would send", f"a take-off to {self.limits.height} m: {steps}", now)
        else:
            self._took_off_at = now
            self._takeoff = TakeoffSequence(self._vehicle, self._factory, self.limits, self.timeouts, now)
            self._enter(Phase.TAKING_OFF, "the pilot ordered it", now)

    def _climb(self, motion: Motion | None, now: float) -> None:
        takeoff = self._takeoff
        assert takeoff is not None
        message = takeoff.tick(motion, now)
        if message is not None:
            if message.command == ARM:
                self._arming_at = now
            self._out.send(message, now)
        if takeoff.problem is not None:
            said = f'; it says "{self._vehicle.status_text}"' if self._vehicle.status_text else ""
            self._land(f"{takeoff.problem}{said}", now)
        elif takeoff.done:
            self._pilot.begin(now)
            self._enter(Phase.HOLDING, "it has taken off", now)
            self._fly(motion, now)
        elif takeoff.streaming and takeoff.climbing and motion is not None:
            self._setpoints.fly(None, motion, self.estimate.history.age(now), now)
        elif takeoff.streaming:
            self._setpoints.stand_still(now)

    def _fly(self, motion: Motion | None, now: float) -> None:
        assert motion is not None
        decision = self._pilot.current(now)
        if decision is None:
            self._enter(Phase.HOLDING, self._pilot.why, now)
        else:
            self._enter(Phase.FLYING, "on a decision", now)
        self._setpoints.fly(decision, motion, self.estimate.history.age(now), now)

    def _descend(self, now: float) -> None:
        assert self._landing is not None
        message = self._landing.tick(now)
        if message is not None:
            self._out.send(message, now)
        if self._landing.hovers(now):
            self._setpoints.stand_still(now)
