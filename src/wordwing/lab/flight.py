"""A flight in the lab: drone, autopilot and wind in lock-step at 500 Hz, and its last poses."""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordwing.lab.airframe import Airframe, AirframeConfig, BodyState, Vector
from wordwing.lab.autopilot import Autopilot, AutopilotConfig, Guidance
from wordwing.lab.wind import Wind, WindConfig

BELOW_THE_FLOOR = -10.0
"""Height setpoint of a landing, metres."""

STILL = 0.05
"""A drone hovers if its height error (metres) and its vertical speed (m/s) are smaller."""

REST = 0.3
"""How long a landed drone waits before it stops its motors, and how long they run down, seconds."""

PATIENCE = 30.0
"""How long to wait for the end of a landing, seconds."""


@dataclass(frozen=True)
class LabFlightConfig:
    """The drone, its autopilot and its weather."""

    airframe: AirframeConfig = field(default_factory=AirframeConfig)
    autopilot: AutopilotConfig = field(default_factory=AutopilotConfig)
    wind: WindConfig = field(default_factory=WindConfig)
    height: float = 0.7
    """Flight height, metres: that of the paper's camera."""
    memory: float = 0.5
    """How far back `pose_at` can look, seconds."""


class _Moment(NamedTuple):
    time: float
    state: BodyState


class LabFlight:
    """One drone in the lab. Simulated time passes in `advance`, `follow` and `land` only.

    The same seed and the same calls give a bit-identical flight.
    """

    gust: Vector | None
    """Wind on top of the configured one, m/s, world; `reset` clears it."""
    drift: Vector | None
    """Error of the autopilot's velocity estimate, m/s, world; `reset` clears it."""

    def __init__(self, config: LabFlightConfig | None = None) -> None:
        self.config = config = config or LabFlightConfig()
        self._timestep = config.airframe.timestep
        self._airframe = Airframe(config.airframe)
        self._autopilot = Autopilot(config.airframe, config.autopilot)
        self._wind = Wind(config.wind, self._timestep)
        self.reset((0.0, 0.0), 0.0, 0)

    def reset(self, position_xy: Sequence[float], yaw: float, seed: int, *, flying: bool = True) -> None:
        """Begin a flight at time 0, at rest.

        Args:
            position_xy: [2] metres, world.
            yaw: Heading, radians.
            seed: Of the gusts.
            flying: Whether it hovers at the configured height or stands on the floor, motors off.
        """
        x, y = map(float, position_xy)
        height = self.config.height if flying else self.config.airframe.leg_height
        self._airframe.reset((x, y, height), yaw, flying=flying)
        self._autopilot.reset()
        self._wind.reset(seed)
        self._motors_on = flying
        self._steps = 0
        self.gust = None
        self.drift = None
        state = self._airframe.state
        # As if it had kept still before: a delayed pose exists from the first moment on.
        self._moments = deque(
            [_Moment(-self.config.memory, state), _Moment(0.0, state)],
            maxlen=round(self.config.memory / self._timestep) + 2,
        )

    def put(self, position_xy: Sequence[float], yaw: float) -> None:
        """Put a drone whose motors are off down on the floor somewhere else, [2] metres, world, with a heading."""
        x, y = map(float, position_xy)
        self._airframe.reset((x, y, self.config.airframe.leg_height), yaw, flying=False)
        self._autopilot.reset()

    def advance(self, seconds: float, forward: float, yaw_rate: float) -> None:
        """Fly one setpoint for a while, at the configured height; landed, only let time pass.

        Args:
            seconds: Rounded to whole timesteps.
            forward: Speed along the heading, m/s.
            yaw_rate: Turn to the left, rad/s.
        """
        if not all(map(math.isfinite, (seconds, forward, yaw_rate))):
            raise ValueError(f"cannot fly {forward} m/s and {yaw_rate} rad/s for {seconds} s")
        self.follow(seconds, Guidance(forward=forward, yaw_rate=yaw_rate, height=self.config.height))

    def follow(self, seconds: float, guidance: Guidance) -> None:
        """Fly a setpoint of the autopilot for a while, rounded to whole timesteps; motors off, only let time pass."""
        for _ in range(round(seconds / self._timestep)):
            self._step(guidance)

    def start_motors(self) -> None:
        """Begin to fly from the floor: setpoints count from now on."""
        if not self._motors_on:
            self._autopilot.reset()
            self._motors_on = True

    def stop_motors(self) -> None:
        """Stop the motors at once; in the air the drone falls."""
        self._motors_on = False

    def land(self) -> None:
        """Sink at the autopilot's landing speed until on the floor, then stop the motors."""
        if not self._motors_on:
            return
        still = 0
        guidance = Guidance(height=BELOW_THE_FLOOR)
        for _ in range(round(PATIENCE / self._timestep)):
            self._step(guidance)
            still = still + 1 if self.at_rest_on_floor else 0
            if still * self._timestep >= REST:
                self._motors_on = False
                self.advance(REST, 0.0, 0.0)
                return
        raise RuntimeError(f"no floor within {PATIENCE} s")

    def pose_at(self, time: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the drone was at a moment within its memory, interpolated between timesteps.

        Args:
            time: Seconds since `reset`; the pose before it is that of the reset.

        Returns:
            The position [3], metres, world, and the quaternion [4] (w, x, y, z), body to world.
        """
        moments = self._moments
        if not moments[0].time <= time <= moments[-1].time:
            raise ValueError(
                f"the pose at {time} s is unknown; kept are {moments[0].time:.3f} s to {moments[-1].time:.3f} s"
            )
        index = max(bisect_left(moments, time, key=lambda moment: moment.time), 1)
        before, after = moments[index - 1], moments[index]
        part = (time - before.time) / (after.time - before.time)
        position = _blend(before.state.position, after.state.position, part)
        # Within a timestep the drone turns by a few milliradians: chord and arc are the same.
        quaternion = _blend(before.state.quaternion, after.state.quaternion, part)
        return position, quaternion / np.linalg.norm(quaternion)

    def state_at(self, time: float) -> BodyState:
        """Where the drone was and how it moved at a moment within its memory, of the nearest timestep."""
        back = max(round((self.time - time) / self._timestep), 0)
        return self._moments[max(len(self._moments) - 1 - back, 0)].state

    def _step(self, guidance: Guidance) -> None:
        commands = self._autopilot.follow(self._estimate, guidance) if self._motors_on else (0.0, 0.0, 0.0, 0.0)
        wind = self._wind.step()
        if self.gust is not None:
            wind = _sum(wind, self.gust)
        self._airframe.step(commands, wind)
        self._steps += 1
        self._moments.append(_Moment(self.time, self._airframe.state))

    @property
    def _estimate(self) -> BodyState:
        """The autopilot's estimate."""
        state = self.state
        return state if self.drift is None else state._replace(velocity=_sum(state.velocity, self.drift))

    @property
    def at_rest_on_floor(self) -> bool:
        """Whether it touches the floor and neither climbs nor sinks."""
        return self._airframe.touches_floor and abs(self.state.velocity[2]) < STILL

    @property
    def state(self) -> BodyState:
        """Where the drone is and how it moves."""
        return self._moments[-1].state

    @property
    def time(self) -> float:
        """Simulated seconds since `reset`."""
        return self._steps * self._timestep

    @property
    def motors_on(self) -> bool:
        """Whether the motors run."""
        return self._motors_on

    @property
    def position(self) -> NDArray[np.float64]:
        """[3] metres, world."""
        return np.array(self.state.position)

    @property
    def velocity(self) -> NDArray[np.float64]:
        """[3] m/s, world."""
        return np.array(self.state.velocity)

    @property
    def body_rates(self) -> NDArray[np.float64]:
        """[3] rad/s about the body axes."""
        return np.array(self.state.body_rates)

    @property
    def yaw(self) -> float:
        """Heading, radians in [-π, π]."""
        w, x, y, z = self.state.quaternion
        return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def _sum(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _blend(a: Sequence[float], b: Sequence[float], part: float) -> NDArray[np.float64]:
    return (1 - part) * np.array(a) + part * np.array(b)
