"""The room's place on Earth, told to an autopilot, by packets taken apart by hand."""

import struct

import pytest

pytest.importorskip("pymavlink")

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.mocap.relay import MocapSample, OriginSender, PoseRelay, relay


class Autopilot:
    """A link to an autopilot that says what it is told to say."""

    def __init__(self, *says: mavlink.MAVLink_message, component: int = 1) -> None:
        self.lost: str | None = None
        self.packets: list[bytes] = []
        self._packer = mavlink.MAVLink(None, srcSystem=7, srcComponent=component)
        self._says = [list(says)]

    def send(self, data: bytes) -> None:
        self.packets.append(data)

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        said = self._says.pop() if self._says else []
        return [bytes(message.pack(self._packer)) for message in said]

    def close(self) -> None:
        pass


class Seconds:
    """A source that sees nothing for some seconds."""

    def __init__(self, seconds: int, clock: ManualClock) -> None:
        self.left, self.clock, self.ended, self.broken = seconds, clock, False, 0

    def read(self, timeout: float) -> list[MocapSample]:
        self.clock.sleep(0.5)
        self.left -= 0.5
        self.ended = self.left <= 0
        return []

    def close(self) -> None:
        pass


def heartbeat(armed: bool = False) -> mavlink.MAVLink_message:
    return mavlink.MAVLink_heartbeat_message(2, 3, 128 if armed else 0, 0, 3, 3)


def told(autopilot: Autopilot) -> list[tuple[int, ...]]:
    """Latitude, longitude, altitude and target of each SET_GPS_GLOBAL_ORIGIN (48) that was sent."""
    clock = ManualClock()
    relay(Seconds(4, clock), autopilot, PoseRelay(), clock, origin=OriginSender(52.5, -13.25, 40.5))
    found = []
    for packet in autopilot.packets:
        assert packet[0] == 0xFD
        assert int.from_bytes(packet[7:10], "little") == 48
        found.append(struct.unpack("<iiiB", packet[10 : 10 + packet[1]].ljust(13, b"\0")[:13]))
    return found


def test_an_autopilot_on_the_floor_is_told_each_second_until_it_knows():
    assert told(Autopilot(heartbeat())) == [(525_000_000, -132_500_000, 40_500, 7)] * 4


def test_an_autopilot_that_has_an_origin_is_told_none():
    known = mavlink.MAVLink_gps_global_origin_message(1, 2, 3)
    assert told(Autopilot(heartbeat(), known)) == []


@pytest.mark.parametrize(
    "autopilot",
    [Autopilot(), Autopilot(heartbeat(armed=True)), Autopilot(heartbeat(), component=191)],
    ids=["silent", "armed", "no autopilot"],
)
def test_nobody_else_is_told_anything(autopilot):
    assert told(autopilot) == []


@pytest.mark.parametrize("text", ["", "52.5", "north,east", "52.5,nan", "91,0", "0,181", "0,0,20000", "1,2,3,4"])
def test_a_place_that_is_none_gets_one_sentence(text):
    with pytest.raises(WordwingError, match=r"--origin is .*; it must be LATITUDE,LONGITUDE"):
        OriginSender.parse(text)


def test_a_place_is_read_with_and_without_its_altitude():
    place = OriginSender.parse("52.5,-13.25,40.5")
    assert (place.latitude, place.longitude, place.altitude) == (52.5, -13.25, 40.5)
    assert OriginSender.parse("52.5,-13.25").altitude == 0
