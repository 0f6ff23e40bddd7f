"""A quadcopter as MuJoCo knows it: a rigid body, four motors, air that drags, a floor to stand on.

The numbers describe an Intel Aero Ready-to-Fly, the drone of the paper. Motors are numbered and turn as PX4's
"quad x": 1 front right and 2 rear left counter-clockwise, 3 front left and 4 rear right clockwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = tuple[float, float, float]

GRAVITY = 9.81
"""m/s²."""

FOOT_RADIUS = 0.01
"""Of the spheres the drone stands on, metres."""

MOTOR_LAYOUT = ((1, -1, -1), (-1, 1, -1), (1, 1, 1), (-1, -1, 1))
"""Per motor the signs of its x, of its y and of the torque that its drag leaves on the body about z."""


@dataclass(frozen=True)
class AirframeConfig:
    """What the drone weighs, how it pushes and how the air resists; metres, kilograms, seconds, newtons.

    Sources: [A] the Intel Aero's data sheet and CAD model; [N] O'Connell et al., "Neural-Fly enables rapid
    learning for agile flight in strong winds", Science Robotics 2022, table S1, who flew one with propeller
    guards; [G] the x500 model of PX4's Gazebo simulation. What has no source is called an estimate.
    """

    mass: float = 1.37
    """Take-off mass: 0.865 kg without battery [A], a 4-cell 4 Ah battery and guards. [N] weighed 1.4 to 1.47 kg."""
    arm: float = 0.18
    """Distance of a motor's axis from the centre: half of 360 mm from motor to motor [A]."""
    inertia: tuple[float, float, float] = (0.0090, 0.0110, 0.0185)
    """Principal moments of inertia about x, y, z, kg m². An estimate: four pods (motor, propeller, guard) of
    0.11 kg at the ends of the arms and a box of 0.93 kg that measures 0.20 × 0.12 × 0.10 m."""
    max_thrust: float = 5.77
    """Of one motor at full command: a thrust-to-weight ratio of 1.6 at 1.47 kg [N]."""
    torque_ratio: float = 0.016
    """Drag torque of a propeller over its thrust, metres [G]."""
    motor_time_constant: float = 0.02
    """Of the first-order lag from commanded to actual thrust: between the 12.5 ms up and 25 ms down of [G]."""
    drag: tuple[float, float, float] = (0.35, 0.35, 0.60)
    """Force per speed through the air along body x, y, z, N s/m. Linear, as Faessler, Franchi and Scaramuzza,
    "Differential Flatness of Quadrotor Dynamics Subject to Rotor Drag", RA-L 2018, found for rotors; their
    0.61 kg drone had 0.33 and 0.24 along x and y. The values are estimates. The vertical one is
    larger because a rotor that climbs at constant speed loses thrust. Drag of the fuselage, quadratic, stays below
    0.02 N at indoor speeds and is left out."""
    drag_height: float = 0.03
    """Height of the rotor plane, where drag attacks, above the centre of mass: an estimate."""
    leg_height: float = 0.11
    """Height of the centre of mass above the floor when standing: an estimate."""
    timestep: float = 0.002
    """Of the simulation and of the autopilot's control loop."""

    @property
    def motor_offset(self) -> float:
        """Distance of a motor from the body x axis, and as well from the y axis."""
        return self.arm / math.sqrt(2)

    @property
    def hover_command(self) -> float:
        """The motor command in [0, 1] at which four motors carry the weight."""
        return self.mass * GRAVITY / (4 * self.max_thrust)


class State(NamedTuple):
    """What a perfect state estimator knows; plain floats, for a loop that runs 500 times a second."""

    position: Vector
    """Metres, world."""
    quaternion: tuple[float, float, float, float]
    """Unit (w, x, y, z), body (x forward, y left, z up) to world."""
    velocity: Vector
    """m/s, world."""
    body_rates: Vector
    """rad/s about the body axes."""


def body_axes(quaternion: Sequence[float]) -> tuple[Vector, Vector, Vector]:
    """The body's x, y and z axes in the world, of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )


def mjcf(config: AirframeConfig) -> str:
    """The MuJoCo model of the drone over a floor at z = 0.

    The motors are MuJoCo actuators whose activation is the lagging thrust, as a fraction of full thrust.
    """
    offset, foot = config.motor_offset, config.leg_height - FOOT_RADIUS
    sites = "".join(
        f'<site name="motor{i}" pos="{x * offset} {y * offset} {config.drag_height}"/>'
        for i, (x, y, _) in enumerate(MOTOR_LAYOUT, start=1)
    )
    feet = "".join(
        f'<geom type="sphere" size="{FOOT_RADIUS}" pos="{x * 0.1} {y * 0.1} {-foot}"/>'
        for x, y, _ in MOTOR_LAYOUT
    )
    motors = "".join(
        f'<general site="motor{i}" gear="0 0 {config.max_thrust} 0 0 '
        f'{spin * config.torque_ratio * config.max_thrust}" ctrllimited="true" ctrlrange="0 1" '
        f'dyntype="filterexact" dynprm="{config.motor_time_constant}"/>'
        for i, (_, _, spin) in enumerate(MOTOR_LAYOUT, start=1)
    )
    return f"""
    <mujoco model="lab drone">
      <option timestep="{config.timestep}" gravity="0 0 {-GRAVITY}"/>
      <worldbody>
        <geom name="floor" type="plane" size="0 0 1"/>
        <body name="drone" pos="0 0 {config.leg_height}">
          <freejoint/>
          <inertial pos="0 0 0" mass="{config.mass}" diaginertia="{" ".join(map(str, config.inertia))}"/>
          <geom name="hull" type="cylinder" size="0.25 0.04"/>
          {feet}
          {sites}
        </body>
      </worldbody>
      <actuator>{motors}</actuator>
    </mujoco>
    """


class Airframe:
    """One drone and the floor below it, advanced by `step` only."""

    def __init__(self, config: AirframeConfig = AirframeConfig()) -> None:
        self.config = config
        self.model = mujoco.MjModel.from_xml_string(mjcf(config))
        self.data = mujoco.MjData(self.model)
        # Views into MuJoCo's memory; fetching them anew in every step would cost more than the physics.
        self._qpos, self._qvel = self.data.qpos, self.data.qvel
        self._control, self._activation = self.data.ctrl, self.data.act
        self._applied = self.data.qfrc_applied
        self.reset((0.0, 0.0, config.leg_height), 0.0, flying=False)

    def reset(self, position: Sequence[float], yaw: float, *, flying: bool = True) -> None:
        """Put the drone somewhere, level and at rest.

        Args:
            position: [3] metres, world.
            yaw: Heading, radians.
            flying: Whether the motors turn at hover thrust or stand still.
        """
        mujoco.mj_resetData(self.model, self.data)
        self._qpos[:3] = position
        self._qpos[3:] = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
        self._activation[:] = self.config.hover_command if flying else 0.0

    def step(self, motor_commands: Sequence[float], wind: Sequence[float]) -> None:
        """Advance by one timestep.

        Args:
            motor_commands: [4] thrust asked for, as a fraction of full thrust; clipped to [0, 1].
            wind: [3] velocity of the air, m/s, world.
        """
        self._control[:] = motor_commands
        self._applied[:] = self._drag(wind)
        mujoco.mj_step(self.model, self.data)

    def _drag(self, wind: Sequence[float]) -> tuple[float, ...]:
        """Force in the world and torque in the body frame, the coordinates of MuJoCo's free joint."""
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = body_axes(self._qpos.tolist()[3:])
        vx, vy, vz, _, _, _ = self._qvel.tolist()
        air_x, air_y, air_z = wind[0] - vx, wind[1] - vy, wind[2] - vz
        drag_x, drag_y, drag_z = self.config.drag
        fx = drag_x * (xx * air_x + xy * air_y + xz * air_z)
        fy = drag_y * (yx * air_x + yy * air_y + yz * air_z)
        fz = drag_z * (zx * air_x + zy * air_y + zz * air_z)
        height = self.config.drag_height
        return (
            xx * fx + yx * fy + zx * fz,
            xy * fx + yy * fy + zy * fz,
            xz * fx + yz * fy + zz * fz,
            -height * fy,
            height * fx,
            0.0,
        )

    @property
    def state(self) -> State:
        """Everything the autopilot looks at."""
        px, py, pz, w, x, y, z = self._qpos.tolist()
        vx, vy, vz, p, q, r = self._qvel.tolist()
        return State((px, py, pz), (w, x, y, z), (vx, vy, vz), (p, q, r))

    @property
    def position(self) -> NDArray[np.float64]:
        """[3] centre of mass, metres, world."""
        return self._qpos[:3].copy()

    @property
    def quaternion(self) -> NDArray[np.float64]:
        """[4] unit (w, x, y, z), body (x forward, y left, z up) to world."""
        return self._qpos[3:].copy()

    @property
    def velocity(self) -> NDArray[np.float64]:
        """[3] m/s, world."""
        return self._qvel[:3].copy()

    @property
    def body_rates(self) -> NDArray[np.float64]:
        """[3] rad/s about the body axes."""
        return self._qvel[3:].copy()

    @property
    def motor_thrusts(self) -> NDArray[np.float64]:
        """[4] newtons, as the motors give them now."""
        return self._activation * self.config.max_thrust

    @property
    def touches_floor(self) -> bool:
        """Whether any part of the drone touched the floor in the last step."""
        return bool(self.data.ncon > 0)
