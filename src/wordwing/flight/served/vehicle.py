"""The lab as a MAVLink vehicle, without sockets and without a clock of its own.

Datagrams go in by `receive`, time passes in `advance`, which gives the datagrams that the vehicle sends meanwhile.
The same calls with the same seed give the same bytes.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.calibration import Calibration
from wordwing.flight.served.autopilot import TICK, ServedAutopilot, VelocitySetpoint
from wordwing.flight.served.autopilot_profile import (
    ACCEPTED,
    FAILED,
    PROFILES,
    UNSUPPORTED,
    AutopilotName,
    ParameterTable,
)
from wordwing.flight.served.camera import ServedCamera
from wordwing.flight.served.faults import (
    Fault,
    FaultSchedule,
    LossyChannel,
    LowBattery,
    PoseDropout,
    Reboot,
    RefusedArming,
    Takeover,
)
from wordwing.flight.served.mocap import MocapStream
from wordwing.flight.served.packet_filter import COMPONENT, SYSTEM, PacketFilter
from wordwing.flight.served.telemetry import Telemetry
from wordwing.frames import ARENA_HALF, Pose, frd_to_flu, ned_to_world, quaternion_rotate, yaw_rate_to_ned
from wordwing.lab.flight import LabFlight
from wordwing.lab.vehicle import LabConfig
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task, sample_task_in

LOCAL_FRAME = Arena(north=3.2, east=-1.5, heading_deg=125.0, floor_down=0.05)
"""Where the arena lies by default in the autopilot's local frame: neither at its origin nor along its north."""

BODY_FRAMES = (8, 9)
"""MAV_FRAME_BODY_NED and MAV_FRAME_BODY_OFFSET_NED."""

VELOCITY_IGNORED, POSITION_IGNORED, YAW_RATE_IGNORED = 0x38, 0x07, 0x800
EXTERNAL_MOCAP_TIMEOUT = 0.25
"""After so long without an external pose motion capture is lost, seconds."""

FORCE = 21196
"""Second parameter of COMPONENT_ARM_DISARM that skips all checks."""


START_MARGIN = 0.1
"""Extra distance of a start from the fences, metres: poses are noisy."""

TRIES = 50
"""How many tasks are drawn at most; about one in ten begins too close to a fence."""


def sample_start(layout: Layout, corpus: Corpus, rng: np.random.Generator) -> Task:
    """Draw a task whose start is far enough from the fences for a flight over MAVLink."""
    reach = ARENA_HALF - max(LOCAL_FRAME.margin, LOCAL_FRAME.side_margin) - START_MARGIN
    for _try in range(TRIES):
        task = sample_task_in(layout, corpus, rng)
        if max(map(abs, task.start_xy)) <= reach:
            return task
    raise WordwingError(f"no start within {reach:.2f} m of the centre was found in this layout; take another --seed")


def write_setup(arena: Path, frame: Arena, config: LabConfig, layout: Layout) -> list[str]:
    """Write what `wordwing fly` reads, side by side: arena, camera calibration and layout. Returns its options."""
    camera, plan = arena.with_name("camera.json"), arena.with_name("layout.json")
    frame.save(arena)
    Calibration.of(config.camera.lens, config.image_latency).save(camera)
    layout.save(plan)
    return ["--arena", str(arena), "--calibration", str(camera), "--layout", str(plan)]


class ServedLab:
    """One drone in one lab that speaks MAVLink. It stands on the floor, disarmed, and waits for a companion."""

    def __init__(
        self,
        layout: Layout,
        start_xy: Sequence[float],
        start_yaw: float,
        *,
        seed: int = 0,
        autopilot: AutopilotName = "ardupilot",
        config: LabConfig | None = None,
        faults: Iterable[Fault] = (),
        frame: Arena = LOCAL_FRAME,
        parameters: Mapping[str, float] | None = None,
        factory: bool = False,
        older_names: bool = False,
        key: bytes | None = None,
        signing_time: int = 0,
        external_mocap: bool = False,
    ) -> None:
        """Put a drone on the floor.

        Args:
            layout: What stands in the lab.
            start_xy: [2] where it stands, metres, world.
            start_yaw: Its heading, radians.
            seed: Of wind, noise and faults.
            autopilot: Which autopilot it imitates.
            config: The lab's imperfections.
            faults: What goes wrong, and when.
            frame: Where the arena lies in the autopilot's local frame.
            parameters: Other values than the starting ones, by name.
            factory: Whether it starts with the autopilot's own parameters instead of those for indoors.
            older_names: Whether parameters go by the names and units of older versions.
            key: [32] of MAVLink 2 signing; without one nothing is signed.
            signing_time: Our time in MAVLink's 10 µs since 2015; signed streams from before it are refused.
            external_mocap: Whether its autopilot knows where it is only while `receive_mocap` tells it; otherwise the
                lab's own motion capture does.
        """
        self.config = config = config or LabConfig()
        self.profile, self.frame = PROFILES[autopilot], frame
        self._flight = LabFlight(config.flight)
        self._flight.reset((float(start_xy[0]), float(start_xy[1])), float(start_yaw), seed, flying=False)
        self.parameters = ParameterTable(self.profile, factory, older_names)
        self.parameters.put(parameters or {})
        self.autopilot = ServedAutopilot(self._flight, self.profile, self.parameters)
        self._faults = FaultSchedule(faults, seed, TICK)
        self.camera = ServedCamera(layout, config, self, self._faults, seed)
        self.packet_filter = PacketFilter(
            key,
            signing_time,
            params_bytewise=self.profile.stack.integers_as_bytes,
            first_peer_only=autopilot == "px4",
        )
        self.mocap = MocapStream(frame, self._faults, (seed, 15), config.position_noise, config.attitude_noise)
        self._telemetry = Telemetry(self.autopilot, config, frame, self._faults, seed)
        self._codec = mavlink.MAVLink(None, SYSTEM, COMPONENT)
        self._codec.signing.secret_key = key
        self._codec.signing.sign_outgoing = key is not None
        self._uplink = LossyChannel(self._faults, "in", seed)
        self._downlink = LossyChannel(self._faults, "out", seed)
        self._pending_seconds = 0.0
        self._external_mocap_at = -math.inf if external_mocap else None
        self.commands: list[tuple[float, Any, int]] = []
        """All commands so far: times, COMMAND_LONG messages, and the MAV_RESULTs that answered them."""

    def receive(self, datagram: bytes, sender: Hashable = None) -> None:
        """Receive a datagram from a sender, now."""
        self._uplink.send((bytes(datagram), sender), self.time)
        self._receive_due()

    def receive_mocap(self, datagram: bytes) -> None:
        """Receive a datagram of the motion-capture adapter, now."""
        for message in mavlink.MAVLink(None).parse_buffer(datagram) or []:
            kind, fused = message.get_type(), self.profile.fused_estimators
            odometry = kind == "ODOMETRY" and (fused is None or message.estimator_type in fused)
            if self._external_mocap_at is not None and (odometry or kind == "VISION_POSITION_ESTIMATE"):
                self._external_mocap_at = self.time

    def advance(self, seconds: float) -> list[bytes]:
        """Let time pass, in ticks of 10 ms; what does not fill one is kept for the next call.

        Returns:
            The datagrams sent meanwhile, in order.
        """
        self._pending_seconds += seconds
        sent = self._downlink.receive(self.time)
        while self._pending_seconds > TICK - 1e-9:
            self._pending_seconds -= TICK
            self._tick()
            sent += self._downlink.receive(self.time)
        return sent

    def place(self, xy: Sequence[float], yaw: float) -> None:
        """Put the disarmed drone down elsewhere on the arena's floor, [2] metres, world.

        To be called in the thread that calls `advance`.
        """
        if self.armed:
            raise WordwingError("the drone is armed; only a disarmed drone can be moved")
        if not all(abs(along) <= ARENA_HALF for along in xy):  # NaN is not, either
            raise WordwingError(f"that is outside the arena, which ends {ARENA_HALF} m from its centre")
        self._flight.put(xy, yaw)

    def image(self) -> tuple[NDArray[np.uint8], float]:
        """The camera's newest raw image [H, W, 3] RGB, and when its shutter closed, lab time."""
        return self.camera.render(self.camera.expose())

    @property
    def time(self) -> float:
        """Simulated seconds since it was made."""
        return self._flight.time

    @property
    def true_pose(self) -> Pose:
        """[1] where the drone really is, world frame."""
        return self.pose_at(self.time)

    def pose_at(self, time: float) -> Pose:
        """[1] where it really was at a moment within the flight's memory, world frame."""
        position, quaternion = self._flight.pose_at(max(time, -self._flight.config.memory))
        return Pose(torch.tensor(position[None]).float(), torch.tensor(quaternion[None]).float())

    @property
    def armed(self) -> bool:
        """Whether it is armed."""
        return self.autopilot.armed

    def _tick(self) -> None:
        autopilot, faults, time = self.autopilot, self._faults, self.time
        rebooting = faults.active(Reboot, time) is not None
        if faults.trigger(Reboot, time) is not None:
            autopilot.boot()
            self._telemetry.reset()
            self._codec.seq = 0
            self.packet_filter.reset()
        takeover = faults.trigger(Takeover, time)
        if takeover is not None:
            autopilot.take_over(stabilize=takeover.stabilize)
        autopilot.refusal = faults.active(RefusedArming, time)
        low = faults.active(LowBattery, time)
        autopilot.battery = autopilot.battery if low is None else min(autopilot.battery, low.level)
        dropout = faults.active(PoseDropout, time)
        autopilot.mocap_lost_since = None if dropout is None else dropout.start
        if self._external_mocap_at is not None and time - self._external_mocap_at > EXTERNAL_MOCAP_TIMEOUT:
            autopilot.mocap_lost_since = self._external_mocap_at
        self._flight.drift = faults.velocity_error(time)
        self._flight.gust = faults.gust(time)
        self._receive_due()
        autopilot.tick()
        self.mocap.tick(self._flight.pose_at, self.time)
        if rebooting:
            autopilot.texts.clear()
            self._uplink.receive(self.time)
            return
        while autopilot.texts:
            severity, text = autopilot.texts.popleft()
            self._send(mavlink.MAVLink_statustext_message(severity, text.encode()[:50]))
        for message in self._telemetry.due():
            self._send(message)

    def _send(self, message: Any) -> None:
        signing = self._codec.signing
        signing.timestamp = max(signing.timestamp, self.packet_filter.signing_time, round(self.time * 1e5))
        packet = message.pack(self._codec)
        self._codec.seq = (self._codec.seq + 1) % 256
        self._downlink.send(packet, self.time)

    def _receive_due(self) -> None:
        if self._faults.active(Reboot, self.time) is not None:
            return
        for datagram, sender in self._uplink.receive(self.time):
            for message in self.packet_filter.accept(datagram, sender, self.time):
                self._handle_message(message)

    def _handle_message(self, message: Any) -> None:
        names = self.parameters.names()
        match message.get_type():
            case "HEARTBEAT":
                self.autopilot.heartbeat(message.get_srcSystem(), message.type)
            case "SET_POSITION_TARGET_LOCAL_NED":
                self.autopilot.receive_setpoint(self._parse_setpoint(message))
            case "COMMAND_LONG":
                self._command(message)
            case "TIMESYNC" if message.tc1 == 0:
                boot = round(1e9 * (self.time - self.autopilot.booted))
                self._send(mavlink.MAVLink_timesync_message(max(1, boot), message.ts1))
            case "PARAM_REQUEST_READ":
                by_index = 0 <= message.param_index < len(names)
                self._send_parameter(names[message.param_index] if by_index else message.param_id)
            case "PARAM_REQUEST_LIST":
                for name in names:
                    self._send_parameter(name)
            case "PARAM_SET":
                self.parameters.write(message.param_id, message.param_value, message.param_type)
                self._send_parameter(message.param_id)  # the value now, whether or not it was changed

    def _parse_setpoint(self, message: Any) -> VelocitySetpoint | None:
        """A setpoint in our frames; None for a frame or a type mask that is not flown."""
        mask, frame = message.type_mask, message.coordinate_frame
        velocity_only = mask & POSITION_IGNORED == POSITION_IGNORED and not mask & VELOCITY_IGNORED
        if frame not in self.profile.frames or not velocity_only:
            return None
        velocity = torch.tensor([message.vx, message.vy, message.vz], dtype=torch.float64)
        rate = 0.0 if mask & YAW_RATE_IGNORED else float(yaw_rate_to_ned(torch.tensor(message.yaw_rate)))
        body = frame in BODY_FRAMES
        if body:
            forward, left, up = frd_to_flu(velocity).tolist()
            heading = self._flight.yaw
        else:
            back = self.frame.frame.inverse().quaternion
            forward, left, up = quaternion_rotate(back, ned_to_world(velocity)).tolist()
            heading = 0.0
        return VelocitySetpoint(forward, left, up, rate, heading, body)

    def _command(self, message: Any) -> None:
        values = tuple(getattr(message, f"param{number}") for number in range(1, 8))
        answer = self._execute(message.command, values)
        self.commands.append((self.time, message, answer))
        self._send(
            mavlink.MAVLink_command_ack_message(
                message.command, answer, 255, 0, message.get_srcSystem(), message.get_srcComponent()
            )
        )
        if message.command == mavlink.MAV_CMD_REQUEST_MESSAGE and answer == ACCEPTED:
            requested = self._telemetry.make(int(values[0]))
            if requested is not None:
                self._send(requested)

    def _execute(self, command: int, values: tuple[float, ...]) -> int:
        autopilot = self.autopilot
        match command:
            case mavlink.MAV_CMD_DO_SET_MODE:
                custom = math.isclose(values[0] % 2, 1)
                return autopilot.set_mode(self.profile.mode_of(values[1], values[2]) if custom else None)
            case mavlink.MAV_CMD_COMPONENT_ARM_DISARM:
                change = autopilot.arm if values[0] == 1 else autopilot.disarm
                return change(force=values[1] == FORCE)
            case mavlink.MAV_CMD_NAV_TAKEOFF:
                return autopilot.take_off(values[6])
            case mavlink.MAV_CMD_NAV_LAND:
                return autopilot.set_mode(self.profile.mode("LAND"))
            case mavlink.MAV_CMD_SET_MESSAGE_INTERVAL:
                return ACCEPTED if self._telemetry.set_interval(int(values[0]), values[1]) else FAILED
            case mavlink.MAV_CMD_REQUEST_MESSAGE:
                return ACCEPTED if self._telemetry.knows(int(values[0])) else FAILED
        return UNSUPPORTED

    def _send_parameter(self, name: str) -> None:
        names = self.parameters.names()
        if (found := self.parameters.read(name)) is not None:
            self._send(mavlink.MAVLink_param_value_message(name.encode(), *found, len(names), names.index(name)))
