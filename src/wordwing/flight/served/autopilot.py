"""The autopilot of the served lab: arming, modes, take-off, setpoints, timeouts and failsafes.

Both autopilots are in one class because they differ in single rules, each noted where it applies. The control loops
that run at 500 Hz are in `lab`.
"""

import math
from collections import deque
from dataclasses import dataclass

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.flight.mavlink.vehicle_status import first_failed
from wordwing.flight.served.autopilot_profile import ACCEPTED, DENIED, FAILED, AutopilotProfile, Mode, ParameterTable
from wordwing.flight.served.faults import RefusedArming
from wordwing.lab.autopilot import Guidance
from wordwing.lab.flight import REST, STILL, LabFlight

TICK = 0.01
"""Period of the state machine, seconds."""

EMERGENCY, ERROR, WARNING, NOTICE, INFO = 0, 3, 4, 5, 6
"""MAV_SEVERITY."""

BOOT = 2.0
"""From boot until the position estimate is valid, seconds; a real one took 13.5 s."""

LEAST_BATTERY = 15.0
"""Below this it does not arm, percent."""

STREAM_GAP, STREAM_TIME = 0.5, 1.0
"""Before OFFBOARD, PX4 wants setpoints at most so far apart for so long, seconds: above 2 Hz for 1 s."""

MAX_YAW_RATE = 2.0
"""rad/s."""

DRAIN = 0.1
"""Battery drain, percent for each second with motors on."""

RETURN, LAND, HOLD = 3, 4, 5
"""COM_OBL_RC_ACT; below RETURN it waits for the pilot's sticks."""


@dataclass(frozen=True)
class VelocitySetpoint:
    """A velocity setpoint as it was received, but in our frames."""

    forward: float
    """m/s along `heading`."""
    left: float
    """m/s."""
    up: float
    """m/s."""
    yaw_rate: float
    """rad/s, positive turns left."""
    heading: float
    """Heading of the drone when the setpoint came, or of the frame that it was given in: radians, world."""
    body: bool
    """Whether it was given in the body frame."""


class ServedAutopilot:
    """The state machine of one autopilot: arming, modes, setpoints and failsafes."""

    def __init__(self, flight: LabFlight, profile: AutopilotProfile, parameters: ParameterTable) -> None:
        self.flight, self.profile, self.parameters = flight, profile, parameters
        self.texts: deque[tuple[int, str]] = deque()
        """Severities and texts of STATUSTEXT messages to send."""
        self.accepted: list[tuple[float, VelocitySetpoint]] = []
        """Times and setpoints that it has really flown, before its own limits."""
        self.refusal: RefusedArming | None = None
        """The injected fault because of which it refuses to arm."""
        self.battery = 100.0
        """Percent left."""
        self.mocap_lost_since: float | None = None
        """When motion capture was lost, lab time; None while it works."""
        self._ground = flight.config.airframe.leg_height
        self.boot()

    def boot(self) -> None:
        """Boot; in the air it stays armed and lands."""
        self.booted = self.flight.time
        self.mode = self.profile.mode(self.profile.first_mode)
        self.armed = self.flight.motors_on
        self.failsafe: str | None = "Reboot" if self.flight.motors_on else None
        """The failsafe that has acted, if any."""
        self._emergency = self.flight.motors_on
        self._setpoint: VelocitySetpoint | None = None
        self.last_setpoint = -math.inf
        """When the last setpoint came, lab time."""
        self._stream_since = math.inf
        self._climb_to: float | None = None
        self._height = float(self.flight.position[2])
        self._resting = 0.0
        self._idle_since = self.flight.time
        self.gcs_heartbeat: float | None = None
        """When the last heartbeat of the ground station came, lab time."""
        self.battery_acted = False
        """Whether the battery failsafe has acted; it acts only once."""

    @property
    def time(self) -> float:
        """Lab time, seconds."""
        return self.flight.time

    @property
    def airborne(self) -> bool:
        """Whether the motors are running."""
        return self.flight.motors_on

    @property
    def landing(self) -> bool:
        """Whether it is landing."""
        return self.mode.kind == "land" or self._emergency

    @property
    def climbing(self) -> bool:
        """Whether it is taking off."""
        return self._climb_to is not None and self.airborne

    @property
    def dead_reckoning_expired(self) -> bool:
        """Whether dead reckoning has lasted too long."""
        limit = self.profile.dead_reckoning_timeout
        seconds = self.parameters[limit] / 1e6 if isinstance(limit, str) else limit
        return self.mocap_lost_since is not None and self.time - self.mocap_lost_since > seconds

    @property
    def position_valid(self) -> bool:
        """Whether its position estimate is valid; on dead reckoning it is for a while."""
        return self.time - self.booted >= BOOT and not self.dead_reckoning_expired

    @property
    def volts(self) -> float:
        """Voltage of the four-cell battery."""
        return 13.2 + 3.6 * self.battery / 100

    def prearm_failure(self) -> str | None:
        """The failed pre-arm check, if any."""
        return first_failed(
            (not self.position_valid, "Need Position Estimate"), (self.battery < LEAST_BATTERY, "Battery low")
        )

    def arm(self, *, force: bool = False) -> int:
        """Arm, and return the MAV_RESULT."""
        if self.armed:
            return ACCEPTED
        silent = self.profile.name == "px4" and self.mode.kind == "guided" and not self._streaming()
        why = (
            self.prearm_failure()
            or (self.refusal and self.refusal.why)
            or first_failed(
                (not self.mode.armable, f"{self.mode.name} mode not armable"), (silent, "No offboard signal")
            )
        )
        if why is not None and not force:
            self.statustext(ERROR, f"Arm: {why}" if self.profile.name == "ardupilot" else f"Arming denied: {why}")
            return self.profile.refusal
        self.armed = True
        self._idle_since = self.time
        self._ground = float(self.flight.position[2])
        self.statustext(INFO, "Arming motors" if self.profile.name == "ardupilot" else "Armed by external command")
        if self.mode.kind == "takeoff":
            self._take_off(self.parameters["MIS_TAKEOFF_ALT"])
        return ACCEPTED

    def disarm(self, *, force: bool = False) -> int:
        """Disarm, and return the MAV_RESULT; a flying drone that is forced to disarm falls."""
        if self.airborne and not force:
            return self.profile.refusal
        self._disarm()
        return ACCEPTED

    def set_mode(self, mode: Mode | None) -> int:
        """Change the mode, and return the MAV_RESULT; None is an unknown mode."""
        if mode is None:
            return DENIED if self.profile.name == "px4" else FAILED
        refusal = first_failed(
            (mode.kind in ("guided", "takeoff") and not self.position_valid, "requires position"),
            (mode.kind == "guided" and self.profile.name == "px4" and not self._streaming(), "no offboard signal"),
        )
        if refusal is not None:
            self.statustext(WARNING, f"Mode change to {mode.name} failed: {refusal}")
            return self.profile.refusal
        self.enter(mode)
        if mode.kind == "takeoff" and self.armed and not self.airborne:
            self._take_off(self.parameters["MIS_TAKEOFF_ALT"])
        if mode.kind == "guided" and self.armed and self._setpoint is not None:
            self.accepted.append((self.time, self._setpoint))  # PX4's, sent before the mode
        return ACCEPTED

    def take_over(self, *, stabilize: bool) -> None:
        """Change to a pilot's mode, as the switch on the transmitter does."""
        self.enter(self.profile.mode(self.profile.pilot_modes[int(stabilize)]))
        self.statustext(NOTICE, f"Mode {self.mode.name} by the pilot")

    def take_off(self, height: float) -> int:
        """Execute NAV_TAKEOFF to a height above the ground, metres, and return the MAV_RESULT."""
        if self.profile.name == "px4":  # it goes to its own mode and its own height
            return self.set_mode(self.profile.mode("TAKEOFF"))
        if self.mode.kind != "guided" or not self.armed or self.airborne or not 0 < height <= 100:
            return FAILED
        self._take_off(height)
        return ACCEPTED

    def receive_setpoint(self, setpoint: VelocitySetpoint | None) -> None:
        """Receive a velocity setpoint; None is one with a frame or type mask that is not supported."""
        if self.profile.name == "px4":
            if setpoint is None:
                return
            if self.time - self.last_setpoint > STREAM_GAP:
                self._stream_since = self.time
            self.last_setpoint = self.time
            self._setpoint = setpoint
        if self.mode.kind != "guided" or not self.armed:
            return
        if self.profile.name == "ardupilot":
            # Any setpoint ends the take-off; an unsupported one means to hold.
            if self.climbing:
                self._climb_to = None
                self._height = float(self.flight.position[2])
            self.last_setpoint = self.time
            self._setpoint = setpoint
        if setpoint is not None:
            self.accepted.append((self.time, setpoint))

    def heartbeat(self, system: int, kind: int) -> None:
        """Receive a heartbeat: ArduPilot watches one system id or a range of them, PX4 all ground stations."""
        if self.profile.name == "ardupilot":
            first = self.parameters["MAV_GCS_SYSID"]
            watched = first <= system <= max(first, self.parameters["MAV_GCS_SYSID_HI"])
        else:
            watched = kind == mavlink.MAV_TYPE_GCS
        if watched:
            self.gcs_heartbeat = self.time

    def tick(self) -> None:
        """Check all timeouts, then fly for one tick."""
        if self.airborne:
            self.battery = max(0.0, self.battery - DRAIN * TICK)
            self._check_failsafes()
        guidance = self._guidance()
        self.flight.follow(TICK, guidance)
        self._touch_down(guidance)

    def statustext(self, severity: int, text: str) -> None:
        """Queue a STATUSTEXT."""
        self.texts.append((severity, text))

    def _streaming(self) -> bool:
        return self.time - self.last_setpoint <= STREAM_GAP and self.time - self._stream_since >= STREAM_TIME

    def enter(self, mode: Mode) -> None:
        """Change the mode without checks."""
        if mode == self.mode and not self._emergency:
            return
        if mode.kind != "guided" or self.mode.kind != "guided":
            self._climb_to = None
            self._height = float(self.flight.position[2])
        if self.profile.name == "ardupilot":
            self._setpoint = None
        self.mode = mode
        self.failsafe = None
        self._emergency = False
        self._idle_since = self.time

    def _take_off(self, height: float) -> None:
        self._climb_to = self._ground + height
        self._setpoint = None
        self.flight.start_motors()

    def failsafe_land(self, why: str) -> None:
        """Land because of a failsafe."""
        self.enter(self.profile.mode("LAND"))
        self.failsafe = why
        self.statustext(EMERGENCY if self.profile.name == "px4" else WARNING, f"{why}: landing")

    def _check_failsafes(self) -> None:
        """Land a drone in the air if one of its timeouts has expired; nothing interrupts a landing."""
        parameters, ardupilot = self.parameters, self.profile.name == "ardupilot"
        if self.landing:
            return
        if self.dead_reckoning_expired:
            self.failsafe_land("EKF Failsafe")
        elif ardupilot:
            # In a pilot's modes a lost ground station is ignored (FS_OPTIONS 16); BRAKE is none of them.
            watches = self.mode.name not in self.profile.pilot_modes
            if watches and parameters["FS_GCS_ENABLE"] and self._gcs_lost(parameters["FS_GCS_TIMEOUT"]):
                self.failsafe_land("GCS Failsafe")
            elif parameters["BATT_FS_LOW_ACT"] and self.volts < parameters["BATT_LOW_VOLT"]:
                self._battery_failsafe("Battery Failsafe")
        elif self.mode.kind == "guided" and self.time - self.last_setpoint > parameters["COM_OF_LOSS_T"]:
            self._offboard_lost(int(parameters["COM_OBL_RC_ACT"]))
        elif (
            self.mode.kind in ("guided", "takeoff")
            and parameters["NAV_DLL_ACT"]
            and self._gcs_lost(parameters["COM_DL_LOSS_T"])
        ):
            self.failsafe_land("Data link lost")
        elif parameters["COM_LOW_BAT_ACT"] >= 2 and self.battery / 100 < parameters["BAT_CRIT_THR"]:
            self._battery_failsafe("Critical battery")

    def _gcs_lost(self, timeout: float) -> bool:
        """Whether heartbeats of a ground station have stopped for longer than a timeout, seconds."""
        return self.gcs_heartbeat is not None and self.time - self.gcs_heartbeat > timeout

    def _battery_failsafe(self, why: str) -> None:
        if not self.battery_acted:
            self.battery_acted = True
            self.failsafe_land(why)

    def _offboard_lost(self, action: int) -> None:
        if action in (RETURN, LAND):  # there is nowhere to return to
            self.failsafe_land("No offboard control")
        else:
            self.enter(self.profile.mode("LOITER" if action == HOLD else "POSCTL"))
            self.failsafe = "No offboard control"

    def _guidance(self) -> Guidance:
        """The flight controller's setpoint for one tick."""
        hold = self.mocap_lost_since is None and self.flight.drift is None  # without a position it cannot hold it
        if self.landing:
            speed = self.parameters["LAND_SPD_MS" if self.profile.name == "ardupilot" else "MPC_LAND_SPEED"]
            return Guidance(heading=self._heading, hold=hold, climb=-speed, descent=speed)
        if self._climb_to is not None:
            self._climb(self._climb_to)
        height = self._height if self._climb_to is None else self._climb_to
        still = Guidance(heading=self._heading, hold=hold, height=height)
        if self.mode.kind != "guided" or self._setpoint is None or self._climb_to is not None:
            return still
        ardupilot, setpoint = self.profile.name == "ardupilot", self._setpoint
        if ardupilot and self.time - self.last_setpoint > self.parameters["GUID_TIMEOUT"]:
            return still
        at_rest = setpoint.forward == 0 and setpoint.left == 0
        return Guidance(
            setpoint.forward,
            setpoint.left,
            self._heading,
            turning=setpoint.body,
            yaw_rate=min(max(setpoint.yaw_rate, -MAX_YAW_RATE), MAX_YAW_RATE),
            height=self._height_along(setpoint.up) if ardupilot else None,
            climb=setpoint.up,
            hold=hold and ardupilot and at_rest,
        )

    @property
    def _heading(self) -> float:
        """Heading of the velocity that is being flown or slowed down."""
        return self.flight.yaw if self._setpoint is None else self._setpoint.heading

    def _height_along(self, climb: float) -> float:
        """The height that ArduPilot holds, moved along with the climb rate."""
        config, height = self.flight.config.autopilot, float(self.flight.position[2])
        self._height += min(max(climb, -config.max_descent), config.max_climb) * TICK
        self._height = min(max(self._height, height - 0.3), height + 0.3)
        return self._height

    def _climb(self, height: float) -> None:
        position, velocity = self.flight.position, self.flight.velocity
        if abs(position[2] - height) < STILL and abs(velocity[2]) < STILL:
            self._climb_to = None
            self._height = height
            if self.mode.kind == "takeoff":
                self.enter(self.profile.mode("LOITER"))
                self._height = height

    def _touch_down(self, guidance: Guidance) -> None:
        """Stop the motors on the floor; disarm after a landing or when nothing happens."""
        px4 = self.profile.name == "px4"
        if self.airborne:
            rests = self.flight.at_rest_on_floor and not self.climbing and guidance.climb <= 0
            self._resting = self._resting + TICK if rests else 0.0
            if self._resting >= REST:
                self.flight.stop_motors()
                self._resting = 0.0
                self._idle_since = self.time
        elif self.armed:
            # PX4 takes off in OFFBOARD when told to climb; ArduPilot stays down until NAV_TAKEOFF.
            if px4 and self.mode.kind == "guided" and self._setpoint is not None and self._setpoint.up > 0.05:
                self.flight.start_motors()
                return
            landed = self.parameters["COM_DISARM_LAND"] if px4 else 0.0
            unflown = self.parameters["COM_DISARM_PRFLT" if px4 else "DISARM_DELAY"]
            if self.time - self._idle_since >= (landed if self.landing else unflown):
                self._disarm()

    def _disarm(self) -> None:
        self.flight.stop_motors()
        self.armed = False
        self.failsafe = None
        self._emergency = False
        self._climb_to = None
        self.statustext(INFO, "Disarming motors" if self.profile.name == "ardupilot" else "Disarmed")
