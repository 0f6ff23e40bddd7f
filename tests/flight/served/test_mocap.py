"""Motion capture of a simulated drone, against the frames of `docs/flight.md` worked out on paper."""

import json
import math
import socket

import pytest

pytest.importorskip("pymavlink")

from wordwing.flight.arena import Arena
from wordwing.flight.mavlink.geometry import PlainPose
from wordwing.flight.mocap.sources import parse
from wordwing.flight.served.faults import FaultSchedule, MocapDrift, MocapFreeze, MocapJump, PoseDropout
from wordwing.flight.served.mocap import MocapStream, open_sender

ARENA = Arena(north=3.0, east=-1.0, heading_deg=90.0, floor_down=0.2)
"""The world's +x points east: world x is east, world y is north."""


def pose(x: float, y: float, z: float) -> PlainPose:
    return PlainPose((x, y, z), (1.0, 0.0, 0.0, 0.0))


def seen(stream: MocapStream, where: PlainPose, time: float) -> dict:
    return json.loads(stream.measure(where, time).to_json(name="drone"))


def test_poses_are_those_of_the_local_frame_and_the_adapter_reads_them() -> None:
    stream = MocapStream(ARENA, FaultSchedule((), 0, 0.01), (0, 3))
    found = parse(stream.measure(pose(0.5, 0.25, 0.7), 12.5).to_json(name="drone"), "drone")
    assert found is not None
    time, sample = found
    assert time == 12.5
    # 0.5 m east of the centre, 0.25 m north of it, 0.7 m above a floor that is 0.2 m below the origin; y is west.
    assert sample.position == pytest.approx((3.25, 0.5, 0.5), abs=0.003)
    # The nose points east, which is a quarter turn to the right of north.
    assert sample.quaternion == pytest.approx((math.cos(-math.pi / 4), 0, 0, math.sin(-math.pi / 4)), abs=0.005)


def test_no_two_poses_are_the_same_until_motion_capture_freezes() -> None:
    stream = MocapStream(ARENA, FaultSchedule([MocapFreeze(1.0)], 0, 0.01), (0, 3))
    first, second, *frozen = [seen(stream, pose(0.1 * t, 0.0, 0.7), t) for t in (0.0, 0.5, 1.0, 1.5, 2.0)]
    assert first["position"] != second["position"]
    assert [entry["time"] for entry in frozen] == [1.0, 1.5, 2.0]
    assert all(entry["position"] == second["position"] for entry in frozen)
    assert all(entry["quaternion"] == second["quaternion"] for entry in frozen)


@pytest.mark.parametrize(
    ("fault", "off"),
    [
        (MocapJump(1.0, distance=0.6, bearing=0.0), [0.0, 0.6, 0.6]),
        (MocapJump(1.0, 0.5, distance=0.6, bearing=0.0), [0.0, 0.6, 0.0]),
        (MocapDrift(1.0, speed=0.2, bearing=0.0), [0.0, 0.0, 0.4]),
    ],
    ids=["jump", "short jump", "drift"],
)
def test_a_wrong_position_is_off_by_what_was_ordered(fault: MocapJump | MocapDrift, off: list[float]) -> None:
    stream = MocapStream(Arena(), FaultSchedule([fault], 0, 0.01), (0, 3))
    found = [seen(stream, pose(0.0, 0.0, 0.7), time)["position"][0] for time in (0.5, 1.0, 3.0)]
    assert found == pytest.approx(off, abs=0.003)


def test_motion_capture_that_stops_says_nothing() -> None:
    stream = MocapStream(ARENA, FaultSchedule([PoseDropout(1.0, 1.0)], 0, 0.01), (0, 3))
    silent = [stream.measure(pose(0, 0, 0.7), time) is None for time in (0.9, 1.0, 1.9, 2.0)]
    assert silent == [False, True, True, False]


def test_datagrams_reach_all_addresses_and_nobody_is_waited_for() -> None:
    listeners = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for listener in listeners:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        nobody = free.getsockname()
    senders = [open_sender(*address) for address in (nobody, *(listener.getsockname() for listener in listeners))]
    for sender in 3 * senders:
        sender.send(b"here")
    assert [listener.recv(100) for listener in listeners] == [b"here", b"here"]
    for opened in (*senders, *listeners):
        opened.close()
