"""A fake autopilot without physics: it sends the pymavlink messages that a test chooses."""

import struct
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink
from scipy.spatial.transform import Rotation

from wordwing.flight.arena import Arena
from wordwing.flight.guardian.guardian import Guardian
from wordwing.flight.guardian.protocol import Decision, Hold, KeepAlive, Order, Phase, TakeOff

TICK = 0.05

MODES = {
    "ardupilot": {"STABILIZE": 0, "GUIDED": 4, "LOITER": 5, "LAND": 9, "RTL": 6},
    "px4": {
        "STABILIZE": 7 << 16,
        "POSCTL": 3 << 16,
        "LOITER": 4 << 16 | 3 << 24,
        "RTL": 4 << 16 | 5 << 24,
        "LAND": 4 << 16 | 6 << 24,
        "OFFBOARD": 6 << 16,
    },
}
PARAMETERS = {
    "ardupilot": {
        "GUID_TIMEOUT": (0.5, 9),
        "FS_GCS_ENABLE": (5, 2),
        "FS_GCS_TIMEOUT": (3.0, 9),
        "MAV_GCS_SYSID": (245, 4),
        "FS_OPTIONS": (16, 6),
        "FS_THR_ENABLE": (3, 2),
        "MAV_GCS_SYSID_HI": (0, 1),
        "BATT_FS_LOW_ACT": (1, 2),
        "BATT_FS_CRT_ACT": (1, 2),
        "FS_DR_ENABLE": (1, 2),
        "FENCE_ENABLE": (0, 2),
        "FS_EKF_ACTION": (1, 2),
        "WP_YAW_BEHAVIOR": (0, 2),
        "LAND_SPD_MS": (0.3, 9),
    },
    "px4": {
        "COM_OF_LOSS_T": (0.5, 9),
        "COM_OBL_RC_ACT": (4, 6),
        "NAV_RCL_ACT": (3, 6),
        "COM_RCL_EXCEPT": (0, 6),
        "COM_FAIL_ACT_T": (0.0, 9),
        "COM_LOW_BAT_ACT": (2, 6),
        "NAV_DLL_ACT": (0, 6),
        "GF_ACTION": (1, 6),
        "EKF2_NOAID_TOUT": (1000000, 6),
        "COM_DISARM_LAND": (2.0, 9),
        "MPC_LAND_SPEED": (0.5, 9),
    },
}


class FakeAutopilot:
    """Talks with a guardian in ticks of 50 ms; local NED, the arena's centre at its origin, +x north."""

    def __init__(self, kind: str = "ardupilot", *, arena: Arena | None = None, **options: Any) -> None:
        self.kind = kind
        self.modes = MODES[kind]
        self.parameters = dict(PARAMETERS[kind])
        self.guardian = Guardian(arena or Arena(), **options)
        self.now = 0.0
        self.boot = 100.0
        self.mode = self.modes["STABILIZE"]
        self.armed = False
        self.position = [0.0, 0.0, 0.0]
        self.velocity = [0.0, 0.0, 0.0]
        self.attitude = [0.0, 0.0, 0.0]
        self.battery = 90
        self.flags = 831 if kind == "ardupilot" else 367
        self.variance = 0.0
        self.mocap_offset = [0.0, 0.0]
        """Of what motion capture measures, metres north and west."""
        self.measured: tuple[float, ...] | None = None
        self.noise = 1e-8
        self.height_bias = 0.0
        """By how much it thinks that it is higher than it is, metres."""
        self.prearm = True
        self.lab = False
        self.status = 3
        self.type = 2
        self.landed_state = 1
        self.silent: set[str] = set()
        """Kinds of messages that it does not send; "all" for none at all."""
        self.refuses: dict[int, int] = {}
        """Commands that it answers with a result instead of doing them."""
        self.deaf: set[int] = set()
        """Commands that do not arrive."""
        self.mute: set[int] = set()
        """Commands whose answers do not arrive."""
        self.pilot = True
        self.got: list[tuple[float, Any]] = []
        """Times and messages that have come."""
        self._pack = mavlink.MAVLink(None, 1, 1)
        self._decoder = mavlink.MAVLink(None)

    def say(self, message: Any, system: int = 1, component: int = 1) -> None:
        """Send a message to the guardian now."""
        sender = self._pack if (system, component) == (1, 1) else mavlink.MAVLink(None, system, component)
        packet = message.pack(sender)
        sender.seq = (sender.seq + 1) % 256
        self.guardian.receive(self._decoder.decode(bytearray(packet)), self.now)

    def heartbeat(self) -> None:
        autopilot = 3 if self.kind == "ardupilot" else 12
        base = 128 * self.armed + 1
        self.say(mavlink.MAVLink_heartbeat_message(self.type, autopilot, base, self.mode, self.status, 3))

    def pose(self) -> None:
        time = round((self.boot + self.now) * 1000)
        north, east, down = self.position
        self.say(mavlink.MAVLink_local_position_ned_message(time, north, east, down - self.height_bias, *self.velocity))
        self.say(mavlink.MAVLink_attitude_message(time, *self.attitude, 0, 0, 0))

    def tell(self) -> None:
        """One tick's messages, all that are not silenced."""
        if "all" in self.silent:
            return
        if "HEARTBEAT" not in self.silent:
            self.heartbeat()
        if "POSE" not in self.silent:
            self.pose()
        bit = 1 << 28
        self.say(mavlink.MAVLink_sys_status_message(bit, bit, bit * self.prearm, 0, 0, 0, self.battery, *[0] * 6))
        if "LANDED" not in self.silent:
            self.say(mavlink.MAVLink_extended_sys_state_message(0, self.landed_state))
        self.variance = 0.0 if "EKF" in self.silent else self.variance + 1e-3
        if self.kind == "ardupilot":
            self.say(mavlink.MAVLink_ekf_status_report_message(self.flags, 0, self.variance, 0, 0, 0))
        else:
            self.say(mavlink.MAVLink_estimator_status_message(0, self.flags, 0, self.variance, *[0] * 6))

    def measure(self) -> None:
        """Motion capture sees the drone twice in a tick, with noise: exactly the same pose would be a repeated one."""
        roll, pitch, yaw = self.attitude
        x, y, z, w = Rotation.from_euler("ZYX", [-yaw, -pitch, roll]).as_quat()
        north, east, down = self.position
        here = (north + self.mocap_offset[0], -east + self.mocap_offset[1], -down)
        before, self.measured = self.measured or here, here
        for share in (0.5, 1.0):
            self.noise = -self.noise
            moved = [a + share * (b - a) + self.noise for a, b in zip(before, here, strict=True)]
            self.guardian.receive_mocap(self.now - (1 - share) * TICK, moved, (w, x, y, z), self.now)

    def tick(self, order: Order | None = None) -> list[Any]:
        """One round: messages to the guardian, orders, its packets; returns what has come."""
        self.now = round(self.now + TICK, 6)
        self.tell()
        if "MOCAP" not in self.silent:
            self.measure()
        if self.pilot:
            self.guardian.order(KeepAlive(), self.now)
        if order is not None:
            self.guardian.order(order, self.now)
        came = [self._decoder.decode(bytearray(packet)) for packet in self.guardian.tick(self.now)]
        self.got += [(self.now, message) for message in came]
        for message in came:
            self._obey(message)
        return came

    def ticks(self, seconds: float, order: Order | None = None) -> list[Any]:
        return [message for _ in range(round(seconds / TICK)) for message in self.tick(order)]

    def until(self, phase: Phase, seconds: float = 20.0, order: Order | None = None) -> None:
        for _ in range(round(seconds / TICK)):
            if self.guardian.phase is phase:
                return
            self.tick(order)
        raise AssertionError(f"still {self.guardian.phase}: {[e.text for e in self.guardian.events][-5:]}")

    def take_off(self, hold: bool = True) -> None:
        """From the floor to a hover, all as it should be."""
        self.until(Phase.READY)
        self.tick(TakeOff())
        for _ in range(200):
            if self.guardian.phase is Phase.HOLDING:
                break
            self.tick()
            self.rise()
        assert self.guardian.phase is Phase.HOLDING
        if hold:
            self.tick(Hold())

    def rise(self) -> None:
        """As a drone that is armed and has been told to take off."""
        if self.armed and (self.landed_state == 3 if self.kind == "ardupilot" else self._told_to_climb()):
            self.position[2] = max(self.position[2] - 0.1, -0.7)
            if self.position[2] == -0.7:
                self.landed_state = 2

    def _told_to_climb(self) -> bool:
        setpoints = self.setpoints([message for _, message in self.got])
        return self.mode == self.modes["OFFBOARD"] and bool(setpoints) and setpoints[-1][1] < 0

    def decide(self, forward: float = 0.5, yaw_rate: float = 0.0, image_age: float = 0.1, age: float = 0.0) -> Decision:
        """A decision for the coming tick."""
        made_at = self.now + TICK - age
        return Decision(forward, yaw_rate, made_at - image_age, made_at)

    def fly(self) -> None:
        self.take_off()
        self.tick(self.decide())
        assert self.guardian.phase is Phase.FLYING

    def setpoints(self, messages: list[Any]) -> list[tuple[float, float, float]]:
        """vx, vz and yaw rate of setpoints among messages."""
        return [(m.vx, m.vz, m.yaw_rate) for m in messages if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED"]

    def commands(self, messages: list[Any] | None = None) -> list[tuple[int, float, float, float]]:
        """Numbers and first three parameters of commands that are no requests for messages."""
        came = [message for _, message in self.got] if messages is None else messages
        longs = [m for m in came if m.get_type() == "COMMAND_LONG" and m.command not in (511, 512)]
        return [(m.command, m.param1, m.param2, m.param3) for m in longs]

    def mode_command(self, name: str) -> tuple[int, float, float, float]:
        number = self.modes[name]
        if self.kind == "ardupilot":
            return (176, 1.0, float(number), 0.0)
        return (176, 1.0, float(number >> 16 & 255), float(number >> 24))

    def story(self, kind: str = "phase") -> list[str]:
        return [event.text for event in self.guardian.events if event.kind == kind]

    def _obey(self, message: Any) -> None:
        kind = message.get_type()
        if kind == "COMMAND_LONG" and message.command not in self.deaf:
            result = self.refuses.get(message.command, 0)
            if result == 0:
                self._do(message)
            if message.command not in self.mute and "all" not in self.silent:
                self.say(mavlink.MAVLink_command_ack_message(message.command, result, 0, 0, 245, 191))
        elif kind == "PARAM_REQUEST_READ" and message.param_id in self.parameters:
            self._tell_parameter(message.param_id)
        elif kind == "PARAM_SET" and message.param_id in self.parameters:
            _, type_ = self.parameters[message.param_id]
            value = message.param_value
            if self.kind == "px4" and type_ == 6:
                value = struct.unpack("<i", struct.pack("<f", value))[0]
            self.parameters[message.param_id] = (value, type_)
            self._tell_parameter(message.param_id)

    def _tell_parameter(self, name: str) -> None:
        value, type_ = self.parameters[name]
        if self.kind == "px4" and type_ == 6:
            value = struct.unpack("<f", struct.pack("<i", value))[0]
        self.say(mavlink.MAVLink_param_value_message(name.encode(), value, type_, 9, 0))

    def _do(self, message: Any) -> None:
        if message.command == 176:
            main, sub = int(message.param2), int(message.param3)
            self.mode = main if self.kind == "ardupilot" else main << 16 | sub << 24
        elif message.command == 400:
            self.armed = message.param1 == 1
        elif message.command == 22:
            self.landed_state = 3
        elif message.command == 512:
            custom = list(b"wordwing" if self.lab else b"12345678")
            self.say(
                mavlink.MAVLink_autopilot_version_message(0, 0x040800FF, 0, 0, 0, custom, [0] * 8, [0] * 8, 0, 0, 0)
            )
