"""MuJoCo model of a quadcopter: a rigid body, four motors, linear drag and a floor.

The numbers describe an Intel Aero Ready-to-Fly, the drone of the paper. Motors are numbered and
turn as in PX4's "quad x": 1 front right and 2 rear left counter-clockwise, 3 front left and 4 rear
right clockwise. Left out are ground effect, a battery that runs down and the propellers' own wash.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mujoco

Vector = tuple[float, float, float]

GRAVITY = 9.81
"""m/s²."""

HULL_RADIUS = 0.26
"""Radius of the drone with its propeller guards, metres: half of the 52 cm in Neural-Fly, see below."""

FOOT_RADIUS = 0.01
"""Radius of the four balls that the drone stands on, metres."""

MOTOR_LAYOUT = ((1, -1, -1), (-1, 1, -1), (1, 1, 1), (-1, -1, 1))
"""Per motor the signs of its x, of its y and of its reaction torque about z."""


@dataclass(frozen=True)
class AirframeConfig:
    """Mass, motors and drag of the drone.

    Sources: [A] Intel's data sheet; [N] O'Connell et al., "Neural-Fly enables rapid learning for
    agile flight in strong winds", Science Robotics 2022, table S1, about an Intel Aero with
    propeller guards; [G] the x500 quadcopter of PX4's Gazebo simulation. What has no source is
    called an estimate.
    """

    mass: float = 1.37
    """Kilograms: 0.865 without battery [A], a 4-cell battery and guards. [N] gives 1.4 and 1.47."""
    arm: float = 0.18
    """Distance from the centre to a motor, metres: half of 360 mm between motors [A]."""
    inertia: Vector = (0.0090, 0.0110, 0.0185)
    """About x, y and z, kg m². An estimate: 0.11 kg of motor, propeller and guard at the end of
    each arm, and a box of 0.93 kg that measures 0.20 × 0.12 × 0.10 m."""
    max_thrust: float = 5.77
    """Of one motor, newtons: a thrust-to-weight ratio of 1.6 at 1.47 kg [N]."""
    torque_ratio: float = 0.016
    """A propeller's drag torque over its thrust, metres [G]."""
    motor_time_constant: float = 0.02
    """From commanded to actual thrust, seconds; [G] has 12.5 ms up and 25 ms down."""
    drag: Vector = (0.35, 0.35, 0.60)
    """Newtons per m/s through the air along body x, y and z. Linear in speed, as rotor drag is
    (Faessler, Franchi and Scaramuzza, "Differential Flatness of Quadrotor Dynamics Subject to Rotor
    Drag", RA-L 2018); the values are estimates. Along z it is the thrust that a climbing rotor
    loses. The hull's own quadratic drag, some 0.02 N at 1 m/s, is left out."""
    drag_height: float = 0.03
    """Height of the rotors, where drag acts, above the centre of mass, metres: an estimate."""
    leg_height: float = 0.11
    """Height of the centre of mass of a standing drone, metres: an estimate."""
    timestep: float = 0.002
    """Of the physics and of the autopilot, seconds."""

    @property
    def motor_offset(self) -> float:
        """Distance of each motor from the body's x axis, and from its y axis, metres."""
        return self.arm / math.sqrt(2)

    @property
    def hover_command(self) -> float:
        """The motor command in [0, 1] at which four motors carry the weight."""
        return self.mass * GRAVITY / (4 * self.max_thrust)


class BodyState(NamedTuple):
    """Pose and velocities of the drone, in plain floats for a loop that runs 500 times a second."""

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
    """The MuJoCo model of the drone and a floor at z = 0.

    A motor is an actuator whose activation is its thrust as a fraction of full thrust; MuJoCo lets
    it lag behind the command by an exact first-order filter.
    """
    offset, foot = config.motor_offset, FOOT_RADIUS - config.leg_height
    inertia = " ".join(map(str, config.inertia))
    sites = "".join(
        f'<site name="motor{i}" pos="{x * offset} {y * offset} {config.drag_height}"/>'
        for i, (x, y, _) in enumerate(MOTOR_LAYOUT, start=1)
    )
    feet = "".join(
        f'<geom type="sphere" size="{FOOT_RADIUS}" pos="{x * 0.1} {y * 0.1} {foot}"/>' for x, y, _ in MOTOR_LAYOUT
    )
    motors = "".join(
        f'<general site="motor{i}" gear="0 0 1 0 0 {spin * config.torque_ratio}" '
        f'gainprm="{config.max_thrust}" ctrllimited="true" ctrlrange="0 1" '
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
          <inertial pos="0 0 0" mass="{config.mass}" diaginertia="{inertia}"/>
          <geom name="hull" type="cylinder" size="{HULL_RADIUS} 0.04"/>
          {feet}
          {sites}
        </body>
      </worldbody>
      <actuator>{motors}</actuator>
    </mujoco>
    """


class Airframe:
    """One drone over a floor. It moves in `step` only."""

    def __init__(self, config: AirframeConfig) -> None:
        self.config = config
        self.model = mujoco.MjModel.from_xml_string(mjcf(config))
        self.data = mujoco.MjData(self.model)
        self.reset((0.0, 0.0, config.leg_height), 0.0, flying=False)

    def reset(self, position: Sequence[float], yaw: float, *, flying: bool = True) -> None:
        """Put the drone somewhere, level and at rest.

        Args:
            position: [3] metres, world.
            yaw: Heading, radians.
            flying: Whether the motors turn at hover thrust or stand still.
        """
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3] = position
        self.data.qpos[3:] = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
        self.data.act[:] = self.config.hover_command if flying else 0.0

    def step(self, motor_commands: Sequence[float], wind: Sequence[float]) -> None:
        """Advance by one timestep.

        Args:
            motor_commands: [4] thrust asked for, as a fraction of full thrust; clipped to [0, 1].
            wind: [3] velocity of the air, m/s, world.
        """
        self.data.ctrl[:] = motor_commands
        self.data.qfrc_applied[:] = self._drag(wind)
        mujoco.mj_step(self.model, self.data)

    def _drag(self, wind: Sequence[float]) -> tuple[float, ...]:
        """Force in the world and torque in the body frame, as MuJoCo's free joint has them."""
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = body_axes(self.data.qpos.tolist()[3:])
        vx, vy, vz, _, _, _ = self.data.qvel.tolist()
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
    def state(self) -> BodyState:
        """What a perfect estimator knows."""
        px, py, pz, w, x, y, z = self.data.qpos.tolist()
        vx, vy, vz, p, q, r = self.data.qvel.tolist()
        return BodyState((px, py, pz), (w, x, y, z), (vx, vy, vz), (p, q, r))

    @property
    def touches_floor(self) -> bool:
        """Whether any part of the drone touched the floor in the last step."""
        return bool(self.data.ncon > 0)
