"""A fake companion computer: it sends pymavlink messages to a served lab, in lock-step."""

from dataclasses import replace
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.camera import CameraConfig
from wordwing.flight.served.vehicle import ServedLab
from wordwing.lab.camera import LabCameraConfig
from wordwing.lab.flight import LabFlightConfig
from wordwing.lab.vehicle import LabConfig
from wordwing.lab.wind import WindConfig
from wordwing.lens import LensConfig
from wordwing.world.layout import Layout

QUICK = LabConfig(
    camera=LabCameraConfig(
        lens=LensConfig(sensor=CameraConfig(width=48, height=28, horizontal_fov_deg=82.0)), blur_samples=1
    )
)
"""The lab with a coarse camera."""

CALM = replace(
    QUICK,
    flight=LabFlightConfig(wind=WindConfig(standard_deviation=0.0)),
    position_noise=0.0,
    attitude_noise=0.0,
)
"""Without wind and noise, too."""

VELOCITY_AND_YAW_RATE = 1479


class Companion:
    """Speaks to one lab and keeps all that it hears."""

    def __init__(self, lab: ServedLab, system: int = 245, sender: str = "companion", *, beating: bool = True) -> None:
        self.lab = lab
        self.sender = sender
        self.codec = mavlink.MAVLink(None, system, 191)
        self.ears = mavlink.MAVLink(None)
        self.beating = beating
        self.heard: list[Any] = []
        self.times: list[float] = []
        self._next_beat = 0.0

    def send(self, message: Any) -> None:
        packet = message.pack(self.codec)
        self.codec.seq = (self.codec.seq + 1) % 256
        self.lab.receive(packet, self.sender)

    def wait(self, seconds: float, step: float = 0.05) -> None:
        for _ in range(round(seconds / step)):
            if self.beating and self.lab.time >= self._next_beat - 1e-6:
                self._next_beat = self.lab.time + 1.0
                self.send(mavlink.MAVLink_heartbeat_message(18, 8, 0, 0, 4, 3))
            for datagram in self.lab.advance(step):
                self.heard.append(self.ears.decode(bytearray(datagram)))
                self.times.append(self.lab.time)

    def command(self, number: int, *values: float) -> int:
        """Send a command; the result of its acknowledgement."""
        filled = (*values, *[0.0] * (7 - len(values)))
        self.send(mavlink.MAVLink_command_long_message(1, 1, number, 0, *filled))
        before = len(self.heard)
        self.wait(0.05)
        return next(m.result for m in self.heard[before:] if m.get_type() == "COMMAND_ACK" and m.command == number)

    def mode(self, *numbers: float) -> int:
        return self.command(176, 1, *numbers)

    def setpoint(
        self,
        vx: float,
        yaw_rate: float,
        vy: float = 0.0,
        vz: float = 0.0,
        *,
        frame: int = 8,
        mask: int = VELOCITY_AND_YAW_RATE,
        target: int = 1,
    ) -> None:
        self.send(
            mavlink.MAVLink_set_position_target_local_ned_message(
                0, target, 1, frame, mask, 0, 0, 0, vx, vy, vz, 0, 0, 0, 0, yaw_rate
            )
        )

    def fly(self, seconds: float, vx: float, yaw_rate: float, vy: float = 0.0, vz: float = 0.0, **options: int) -> None:
        """Setpoints at 20 Hz."""
        for _ in range(round(seconds / 0.05)):
            self.setpoint(vx, yaw_rate, vy, vz, **options)
            self.wait(0.05)

    def take_off(self) -> None:
        """Until it takes setpoints."""
        self.wait(3.0)
        if self.lab.profile.name == "ardupilot":
            assert self.mode(4) == 0
            assert self.command(400, 1) == 0
            assert self.command(22, 0, 0, 0, 0, 0, 0, 0.7) == 0
            self.wait(5.0)
        else:
            assert self.mode(4, 2) == 0
            assert self.command(400, 1) == 0
            self.wait(5.0)
            self.fly(1.2, 0.0, 0.0)
            assert self.mode(6) == 0
        assert self.lab.autopilot.airborne

    def land(self) -> None:
        assert (self.mode(9) if self.lab.profile.name == "ardupilot" else self.mode(4, 6)) == 0
        self.wait(8.0)

    def last(self, kind: str) -> Any:
        return next(m for m in reversed(self.heard) if m.get_type() == kind)

    def all(self, kind: str) -> list[Any]:
        return [m for m in self.heard if m.get_type() == kind]

    def texts(self) -> list[str]:
        return [m.text for m in self.all("STATUSTEXT")]


def empty_lab(autopilot: str, **options: Any) -> ServedLab:
    """Without landmarks, in calm air."""
    options.setdefault("config", CALM)
    return ServedLab(Layout(()), (0.0, 0.0), 0.0, autopilot=autopilot, **options)  # type: ignore[arg-type]
