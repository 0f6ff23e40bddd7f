"""A MAVLink drone as a vehicle: it waits until the drone is ready, takes off, matches images with poses, and lands.

What is sent to the drone is the guardian's business; this only orders it. As soon as the guardian does not fly any
more, be it that it lands or that somebody else has taken over, every call raises `FlightOverError` with the reason.
"""

import math
import re
from collections.abc import Callable

import torch

from wordwing.errors import WordwingError
from wordwing.flight.camera_stream import VideoSource
from wordwing.flight.decision_latency import likely_cause
from wordwing.flight.guardian.pose_history import TINY
from wordwing.flight.guardian.protocol import (
    FINAL,
    GROUND,
    Decision,
    GuardianState,
    Hold,
    KeepAlive,
    Land,
    Phase,
    SetParameters,
    TakeOff,
)
from wordwing.flight.guardian_client import GuardianClient
from wordwing.flight.logs import FlightLog
from wordwing.flight.matching import MatchedObservation, match
from wordwing.interface import FLIGHT_HEIGHT, FlightOverError, Observation, Setpoint, Vehicle

LOOK = 0.02
"""How often it is looked whether something has come, seconds."""

ALIVE_EVERY = 0.25
"""How often the guardian gets a keep-alive while the pilot waits, seconds."""

FROZEN = 0.4
"""An image that has not changed for longer counts as old: a drone in the air never keeps quite still, seconds."""

SENT_WITHIN = 0.3
"""How long the guardian may take to send a decision, seconds."""

READY_WITHIN = 90.0
"""How long an autopilot may take to know where it is, seconds; a real one took 41 with GPS and 14 without."""

TAKEN_WITHIN = 3.0
"""How long the guardian may take to begin a take-off, seconds."""

WRITTEN_WITHIN = 3.0
"""How long parameters that were written may take to be read back, seconds."""

LEVEL = 0.04
"""How far from the flight height a flight may begin, metres."""

HEIGHT_WITHIN = 5.0
"""How long to wait for it, seconds."""

DIGITS = re.compile(r"[-\d]")
"""A reason to wait in which only numbers have changed is the same reason."""

DOWN_WITHIN = 40.0
"""How long to wait for the end of a landing, seconds."""


class MavlinkVehicle(Vehicle):
    """One drone on a wire.

    Args:
        guardian: The client of its guardian.
        camera: Its camera.
        confirm: Asked with the drone's state before it is armed; raises if it must not be.
        log: Where observations, decisions and what became of them are written.
        say: Shows what is waited for.
        approve: Asked before parameters are written, with the state that holds old and new ones; None never writes.
        dry: Never take off: watch, and note what would be sent.
    """

    def __init__(
        self,
        guardian: GuardianClient,
        camera: VideoSource,
        confirm: Callable[[GuardianState], None],
        *,
        log: FlightLog | None = None,
        say: Callable[[str], None] = print,
        approve: Callable[[GuardianState], None] | None = None,
        dry: bool = False,
    ) -> None:
        self._guardian, self._camera, self._confirm = guardian, camera, confirm
        self._log, self._say, self._approve, self._dry = log, say, approve, dry
        self._seen: MatchedObservation | None = None
        self._last_state: GuardianState | None = None
        self._begun = self._looked_at = self._thinking = self._slowest = self._image_age = 0.0
        self._order_at = self._sent_at = -math.inf
        self._underway = self._refused = self._closed = False

    def connect(self) -> None:
        """Wait until nothing speaks against a flight, have it confirmed, take off and hover."""
        self._camera.start()
        state = self._wait_until_ready()
        if not self._dry:
            self._confirm(state)
        self._underway = True
        if not self._dry:
            self._order(TakeOff())
            self._wait_for_hover()
            self._find_height()
        self._begun = self._guardian.clock.now()

    def observe(self) -> Observation:
        """The newest image with the pose that it was taken at; waits for one that has not been seen yet."""
        while True:
            self._check()
            seen = match(self._camera.latest(), self._guardian.poses)
            if seen is not None and (self._seen is None or seen.frame.number != self._seen.frame.number):
                break
            self._pass(LOOK)
        self._seen = seen
        self._looked_at = self._guardian.clock.now()
        if self._log is not None:
            self._log.observation(self._looked_at, seen)
        return seen.observation(self._begun)

    def send(self, setpoint: Setpoint) -> Setpoint:
        """Ask the guardian for a setpoint [1], and wait until it has sent what it makes of it."""
        now = self._guardian.clock.now()
        wanted = setpoint.clamp().to("cpu")
        self._thinking = now - self._looked_at
        self._slowest = max(self._slowest, self._thinking)
        self._sent_at = now
        if self._log is not None:
            self._log.decision(now, wanted, stop=False)
        forward, yaw_rate = float(setpoint.forward[0]), float(setpoint.yaw_rate[0])  # absurd ones are the guardian's
        image_time = self._image_time(now)
        self._image_age = now - image_time
        self._order(Decision(forward, yaw_rate, image_time, now))
        state = self._wait_until_sent(now)
        self._refused = state.decision_time != now
        forward, yaw_rate, _up = state.setpoint or (0.0, 0.0, 0.0)
        if self._dry and self._refused:  # then the last setpoint is that of an earlier decision
            forward = yaw_rate = 0.0
        sent = Setpoint(torch.tensor([forward]), torch.tensor([yaw_rate]))
        if self._log is not None:
            self._log.flown(state.time, sent)
        return sent

    def wait(self, seconds: float) -> None:
        """Until so long after the last decision, less the time that a decision takes: decisions come at even pace."""
        now = self._guardian.clock.now()
        self._wait_until((now if math.isinf(self._sent_at) else self._sent_at) + seconds - self._thinking)

    def hover(self, seconds: float) -> None:
        """Stay where it is."""
        self._wait_until(self._guardian.clock.now() + seconds, Hold())

    def land(self) -> None:
        """Have the drone land, and wait until it stands, or nobody here can do more."""
        state = self._guardian.state()
        if self._dry or state.phase in GROUND or state.done:
            return
        self._order(Land())
        until = self._guardian.clock.now() + DOWN_WITHIN
        while self._guardian.clock.now() < until and self._guardian.lost is None:
            if self._guardian.state().done:
                return
            self._pass(ALIVE_EVERY)

    def close(self) -> None:
        """Release camera and guardian."""
        if not self._closed:
            self._last_state, self._closed = self.state, True
        self._camera.close()
        self._guardian.close()

    @property
    def state(self) -> GuardianState | None:
        """The guardian's last state; None if it has ended and left a drone in the air."""
        if self._closed:
            return self._last_state
        return None if self._abandoned() else self._guardian.state()

    def _wait_until(self, time: float, order: Hold | None = None) -> None:
        """Until a time of the clock, with an order again and again."""
        while (rest := time - self._guardian.clock.now()) > TINY:
            self._check()
            if order is not None:
                self._order(order)
            self._pass(min(rest, ALIVE_EVERY))

    def _wait_until_sent(self, made_at: float) -> GuardianState:
        """Until the guardian has sent a decision, or has had the time to and has not."""
        while True:
            self._check()
            state = self._guardian.state()
            if state.decision_time == made_at or state.time > made_at + SENT_WITHIN:
                return state
            self._pass(LOOK)

    def _image_time(self, now: float) -> float:
        """When what the last observation shows was seen."""
        if self._seen is None:
            return -math.inf
        unchanged = self._camera.unchanged(now)
        taken = self._seen.frame.taken
        return min(taken, now - unchanged) if unchanged > FROZEN else taken

    def _wait_until_ready(self) -> GuardianState:
        clock = self._guardian.clock
        began, shown, asked = clock.now(), "", False
        while True:
            state = self._checked_state()
            if state.phase is Phase.READY or (self._dry and state.pose is not None):
                return state
            waited = clock.now() - began
            if DIGITS.sub("", state.why) != shown:
                shown = DIGITS.sub("", state.why)
                self._say(f"waiting: {state.why}")
            wrong = [finding for finding in state.parameters if not finding.right]
            known = [finding for finding in wrong if finding.value is not None]
            if wrong and state.unready == tuple(str(finding) for finding in wrong):
                if self._approve is None or not known or asked:
                    hint = (
                        "they could not be written"
                        if self._approve
                        else "--set-parameters writes them, after showing old and new"
                    )
                    raise WordwingError(f"{'; '.join(state.unready)} ({hint})")
                self._approve(state)
                self._order(SetParameters())
                asked = True
                self._pass(WRITTEN_WITHIN)
            if waited > READY_WITHIN:
                reasons = "; ".join(state.unready)
                raise WordwingError(f"the drone was not ready after {READY_WITHIN:g} s: {reasons}{self._cause(state)}")
            self._pass(ALIVE_EVERY)

    def _wait_for_hover(self) -> None:
        until = self._guardian.clock.now() + TAKEN_WITHIN
        while True:
            state = self._checked_state()
            if state.phase not in (*GROUND, Phase.TAKING_OFF):
                break
            if state.phase in GROUND and (state.unready or self._guardian.clock.now() > until):
                why = "; ".join(state.unready) or "the order to take off was not taken"
                raise WordwingError(f"the drone was not armed: {why}")
            self._pass(LOOK)
        self._check()

    def _find_height(self) -> None:
        """Hover until the camera is as high as the policy knows it; a take-off ends a little off."""
        until = self._guardian.clock.now() + HEIGHT_WITHIN
        while self._guardian.clock.now() < until:
            state = self._checked_state()
            if state.pose is not None and abs(state.pose[2] - FLIGHT_HEIGHT) < LEVEL:
                return
            self.hover(ALIVE_EVERY)

    def _check(self) -> None:
        state = self._checked_state()
        if not self._dry and state.phase not in (Phase.HOLDING, Phase.FLYING):
            raise FlightOverError(f"the flight is over, {state.phase.value}: {state.why}{self._cause(state)}")

    def _cause(self, state: GuardianState) -> str:
        unchanged = self._camera.unchanged(self._guardian.clock.now())
        return likely_cause(
            state.reason, lab=state.lab, latency=self._slowest, unchanged=unchanged, failure=self._camera.failure
        )

    def _checked_state(self) -> GuardianState:
        if self._guardian.lost is not None:
            if not self._underway:
                raise WordwingError(self._guardian.lost)
            alone = "; the autopilot's own failsafe has the drone now; be ready to take over"
            raise FlightOverError(f"the flight is over: {self._guardian.lost}{alone if self._abandoned() else ''}")
        return self._guardian.state()

    def _abandoned(self) -> bool:
        """Whether the guardian has ended while the drone was in the air."""
        return self._guardian.lost is not None and self._guardian.state().phase not in (*GROUND, *FINAL)

    def _order(self, order: TakeOff | Decision | Hold | Land | SetParameters) -> None:
        self._guardian.order(order)
        self._order_at = self._guardian.clock.now()

    def _pass(self, seconds: float) -> None:
        """Let time pass, and let the guardian know that someone is here."""
        if self._guardian.clock.now() - self._order_at >= ALIVE_EVERY:
            self._guardian.order(KeepAlive())
            self._order_at = self._guardian.clock.now()
        self._guardian.sleep(seconds)
