"""Motion capture against packets taken apart by hand and turns worked out on paper."""

import json
import math
import socket
import struct
import sys
import types

import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("pymavlink")

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.clock import ManualClock, SystemClock
from wordwing.flight.mocap.relay import MocapSample, PoseRelay, relay, report
from wordwing.flight.mocap.sources import FileSource, UdpSource, open_source, parse

LEVEL = (1.0, 0.0, 0.0, 0.0)


class Wire:
    """A link that keeps what is sent."""

    def __init__(self) -> None:
        self.lost: str | None = None
        self.packets: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.packets.append(data)

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        return []

    def close(self) -> None:
        pass


class Tape:
    """A source that gives poses at their times, on a clock that it moves itself."""

    def __init__(self, samples: list[MocapSample], clock: ManualClock, delay: float = 0.0) -> None:
        self.samples, self.clock, self.delay = list(samples), clock, delay
        self.ended, self.broken = False, 0

    def read(self, timeout: float) -> list[MocapSample]:
        if not self.samples:
            self.ended = True
            return []
        sample = self.samples.pop(0)
        self.clock.sleep(sample.time + self.delay - self.clock.now())
        return [sample]

    def close(self) -> None:
        pass


def sent(samples: list[MocapSample], chosen: PoseRelay, delay: float = 0.0) -> list[bytes]:
    wire, clock = Wire(), ManualClock()
    relay(Tape(samples, clock, delay), wire, chosen, clock)
    return wire.packets


def payload(packet: bytes, message: int, length: int) -> bytes:
    """The payload of a MAVLink 2 packet, with the zeros that the sender has cut off."""
    assert packet[0] == 0xFD
    assert int.from_bytes(packet[7:10], "little") == message
    return packet[10 : 10 + packet[1]].ljust(length, b"\0")


def odometry(packet: bytes) -> dict[str, object]:
    """ODOMETRY (331), field by field, by the offsets of the specification."""
    data = payload(packet, 331, 233)
    return {
        "time": struct.unpack_from("<Q", data, 0)[0],
        "position": struct.unpack_from("<3f", data, 8),
        "q": struct.unpack_from("<4f", data, 20),
        "velocity": struct.unpack_from("<3f", data, 36),
        "rates": struct.unpack_from("<3f", data, 48),
        "pose_covariance": struct.unpack_from("<21f", data, 60),
        "velocity_covariance": struct.unpack_from("<21f", data, 144),
        "frames": tuple(data[228:230]),
        "estimator": data[231],
    }


def vision(packet: bytes) -> dict[str, object]:
    """VISION_POSITION_ESTIMATE (102), field by field."""
    data = payload(packet, 102, 117)
    return {
        "time": struct.unpack_from("<Q", data, 0)[0],
        "position": struct.unpack_from("<3f", data, 8),
        "angles": struct.unpack_from("<3f", data, 20),
        "covariance": struct.unpack_from("<21f", data, 32),
    }


def turned(yaw: float = 0.0, pitch: float = 0.0, roll: float = 0.0) -> tuple[float, float, float, float]:
    """(w, x, y, z) with z up, of angles in degrees."""
    x, y, z, w = Rotation.from_euler("ZYX", [yaw, pitch, roll], degrees=True).as_quat()
    return (w, x, y, z)


def pair(first: tuple, second: tuple, quaternion: tuple) -> list[MocapSample]:
    """Two poses, 0.05 s apart."""
    return [MocapSample(1.0, first, quaternion), MocapSample(1.05, second, quaternion)]


def test_poses_in_a_burst_after_a_gap_do_not_make_a_wild_velocity():
    times = [0.0, 0.025, 0.05, 0.075, 0.1, 0.6, 0.6002, 0.6004, 0.625, 0.65, 0.675]
    noise = [0.001 * (-1) ** number for number in range(len(times))]
    samples = [MocapSample(time, (1.0 + shake, 0.0, 0.1), LEVEL) for time, shake in zip(times, noise, strict=True)]
    told = [odometry(packet) for packet in sent(samples, PoseRelay(rate=50.0))]
    assert max(abs(entry["velocity"][0]) for entry in told) <= 0.002 / 0.05 + 1e-6
    assert {0.65, 0.675} <= {entry["time"] / 1e6 for entry in told}


def test_odometry_says_its_frames_its_time_and_its_kind():
    [packet] = sent(pair((1.0, 2.0, 0.7), (1.0, 2.0, 0.701), LEVEL), PoseRelay())
    assert packet[5:7] == bytes([246, 197])  # not the pilot's system, whose heartbeats the autopilot watches
    told = odometry(packet)
    assert told["frames"] == (20, 12)  # MAV_FRAME_LOCAL_FRD, MAV_FRAME_BODY_FRD
    assert told["time"] == 1_050_000
    assert told["estimator"] == 2  # MAV_ESTIMATOR_TYPE_VISION: PX4 fuses no other
    assert all(math.isnan(rate) for rate in told["rates"])
    assert math.isnan(told["pose_covariance"][0])  # unknown
    assert math.isnan(told["velocity_covariance"][0])


def test_left_and_up_become_right_and_down():
    [packet] = sent(pair((1.0, 2.0, 0.7), (1.5, 2.25, 0.75), LEVEL), PoseRelay())
    told = odometry(packet)
    assert told["position"] == pytest.approx((1.5, -2.25, -0.75))
    assert told["velocity"] == pytest.approx((10.0, -5.0, -1.0))
    assert told["q"] == pytest.approx((1, 0, 0, 0))


def test_a_turn_to_the_left_is_negative_about_down_and_the_velocity_is_the_bodys():
    # Nose to the left (world +y), flying that way: forward in the body.
    [packet] = sent(pair((0.1, 0.0, 0.7), (0.1, 0.05, 0.7), turned(yaw=90)), PoseRelay())
    told = odometry(packet)
    root = math.sqrt(0.5)
    assert told["q"] == pytest.approx((root, 0, 0, -root), abs=1e-6)
    assert told["velocity"] == pytest.approx((1.0, 0.0, 0.0), abs=1e-5)


def test_a_nose_that_points_up_is_a_positive_pitch_for_the_autopilot():
    # With z up a positive pitch points the nose down; -10 degrees is nose up. FRD's pitch is positive nose up.
    [packet, *_] = sent(pair((0.1, 0.0, 0.7), (0.1, 0.05, 0.7), turned(pitch=-10, roll=5, yaw=20)), PoseRelay("vision"))
    told = vision(packet)
    assert [math.degrees(angle) for angle in told["angles"]] == pytest.approx([5, 10, -20], abs=1e-4)
    assert told["position"] == pytest.approx((0.1, 0.0, -0.7))
    assert told["time"] == 1_000_000
    assert math.isnan(told["covariance"][0])


def test_with_y_up_the_axes_are_swapped_as_px4_says():
    # OptiTrack: x = x, y = z, z = -y in FRD.
    [packet] = sent(pair((1.0, 0.7, 2.0), (1.05, 0.8, 2.2), LEVEL), PoseRelay(y_up=True))
    told = odometry(packet)
    assert told["position"] == pytest.approx((1.05, 2.2, -0.8))
    assert told["velocity"] == pytest.approx((1.0, 4.0, -2.0), abs=1e-5)
    # A turn to the left about y, which is up there, is one to the left.
    half = math.radians(60) / 2
    about_y = (math.cos(half), 0.0, math.sin(half), 0.0)
    [packet, *_] = sent(pair((1.0, 0.7, 2.0), (1.05, 0.8, 2.2), about_y), PoseRelay("vision", y_up=True))
    assert [math.degrees(angle) for angle in vision(packet)["angles"]] == pytest.approx([0, 0, -60], abs=1e-4)


def track(rate: float, seconds: float = 2.0) -> list[MocapSample]:
    """0.5 m/s along x."""
    count = round(rate * seconds)
    return [MocapSample(1 + k / rate, (0.5 * k / rate, 0.2, 0.7), LEVEL) for k in range(count)]


@pytest.mark.parametrize(("rate", "least", "most"), [(100.0, 39, 41), (240.0, 39, 41), (120.0, 39, 41), (35.0, 34, 36)])
def test_a_quick_system_is_thinned_to_the_rate_and_a_slow_one_is_not(rate, least, most):
    packets = sent(track(rate), PoseRelay(rate=40.0))
    assert least * 2 - 2 <= len(packets) <= most * 2
    velocities = [odometry(packet)["velocity"] for packet in packets]
    assert velocities[-1] == pytest.approx((0.5, 0.0, 0.0), abs=1e-4)
    assert [packet[4] for packet in packets] == [k % 256 for k in range(len(packets))]  # sequence numbers


def test_velocities_are_taken_over_a_tenth_of_a_second(rng):
    chosen = PoseRelay(rate=50.0)
    noisy = [
        MocapSample(sample.time, (sample.position[0] + 0.001 * float(rng.normal()), 0.2, 0.7), LEVEL)
        for sample in track(50.0)
    ]
    told = [odometry(packet)["velocity"][0] for packet in sent(noisy, chosen)[10:]]
    assert max(abs(velocity - 0.5) for velocity in told) < 0.001 * 5 * 1.5 / 0.1  # five sigmas


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (MocapSample(1.02, (math.nan, 0.0, 0.7), LEVEL), "not finite"),
        (MocapSample(1.02, (0.1, 0.0, 0.7), (math.inf, 0.0, 0.0, 0.0)), "not finite"),
        (MocapSample(math.nan, (0.1, 0.0, 0.7), LEVEL), "not finite"),
        (MocapSample(1.02, (0.1, 0.0, 0.7), (0.0, 0.0, 0.0, 0.0)), "no unit quaternion"),
        (MocapSample(1.02, (1e39, 0.0, 0.7), LEVEL), "too far away"),
        (MocapSample(1.02, (0.0, 0.0, 0.0), LEVEL), "out of sight"),
        (MocapSample(1.01, (0.1, 0.0, 0.7), LEVEL), "not newer than the last"),
        (MocapSample(0.95, (0.1, 0.0, 0.7), LEVEL), "not newer than the last"),
        (MocapSample(1.02, (0.5, 0.0, 0.7), LEVEL), "the same as the last"),
        (MocapSample(0.5, (0.1, 0.0, 0.7), LEVEL), "too old"),
    ],
)
def test_a_pose_that_is_broken_or_old_or_repeated_is_dropped(bad, why):
    chosen = PoseRelay("vision")
    assert chosen.update(MocapSample(1.01, (0.5, 0.0, 0.7), LEVEL), now=1.01) is not None
    assert chosen.update(bad, now=1.04) is None
    assert chosen.dropped == {why: 1}
    assert chosen.update(MocapSample(1.05, (0.6, 0.0, 0.7), LEVEL), now=1.05) is not None


def test_poses_that_arrive_late_are_not_sent_at_all():
    assert sent(track(50.0), PoseRelay(), delay=0.09)
    assert sent(track(50.0), PoseRelay(), delay=0.11) == []


def test_a_system_that_lost_sight_and_repeats_itself_falls_silent_and_comes_back_without_a_false_velocity():
    good = track(50.0, 1.0)
    lost = [MocapSample(good[-1].time + 0.02 * (k + 1), good[-1].position, LEVEL) for k in range(40)]
    again = [MocapSample(lost[-1].time + 0.02 * (k + 1), (2.0 + 0.01 * k, 0.2, 0.7), LEVEL) for k in range(10)]
    chosen = PoseRelay(rate=50.0)
    packets = sent(good + lost + again, chosen)
    assert len(packets) == len(good) - 3 + len(again) - 3  # 0.05 s without a velocity, each time
    assert chosen.dropped["the same as the last"] == 40
    assert max(abs(odometry(packet)["velocity"][0]) for packet in packets) == pytest.approx(0.5, abs=1e-4)


def test_how_it_goes_is_told():
    chosen = PoseRelay(rate=50.0)
    told: list[str] = []
    clock = ManualClock()
    relay(Tape(track(25.0, 12.0), clock), Wire(), chosen, clock, told.append, every=5.0)
    assert "25 poses a second; autopilots want 30 to 50" in told[1]
    assert told[-1] == "298 poses sent; dropped: 2 without a velocity yet"
    assert report(PoseRelay(), 40.0) == "40 poses a second"


def test_what_comes_but_is_no_pose_is_told():
    clock, told = ManualClock(), []
    tape = Tape(track(50.0, 6.0), clock)
    tape.broken = 12
    relay(tape, Wire(), PoseRelay("vision"), clock, told.append)
    assert len(told) == 2
    assert all("dropped: 12 that are no poses" in sentence for sentence in told)


def test_a_lost_link_ends_the_relay():
    wire, clock, told = Wire(), ManualClock(), []
    wire.lost = "the other side closed it"
    relay(Tape(track(50.0), clock), wire, PoseRelay(), clock, told.append)
    assert wire.packets == []
    assert told == ["0 poses sent; the link was lost (the other side closed it)"]


def row(time: float, x: float, **more: object) -> str:
    return json.dumps({"time": time, "position": [x, 0.0, 0.7], "quaternion": [1, 0, 0, 0], **more})


def test_a_recording_is_played_at_its_own_pace(tmp_path):
    file = tmp_path / "walk.jsonl"
    file.write_text("\n".join([row(50.0, 0.1), row(50.5, 0.2, name="other"), "", row(51.0, 0.3)]))
    clock = ManualClock(7.0)
    source = FileSource(file, clock, "drone")
    found = []
    while not source.ended:
        found += source.read(0.1)
    assert [(sample.time, sample.position[0]) for sample in found] == [
        (pytest.approx(7.0), 0.1),
        (pytest.approx(8.0), 0.3),
    ]
    assert clock.now() == pytest.approx(8.0, abs=0.01)


def test_datagrams_are_poses_as_old_as_they_are():
    clock = ManualClock(100.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    source = UdpSource(f"127.0.0.1:{port}", clock)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(text: str) -> list[MocapSample]:
        sender.sendto(text.encode(), ("127.0.0.1", port))
        return source.read(2.0)

    assert send(row(5.0, 0.1))[0].time == pytest.approx(100.0)
    clock.sleep(0.1)
    assert send(row(5.02, 0.2))[0].time == pytest.approx(100.02)  # 0.08 s longer under way than the first
    for wrong in (
        "nonsense",
        "[]",
        "{}",
        row(1.0, 0.1)[:-3],
        '{"position": [1, 2], "quaternion": [1, 0, 0, 0]}',
        row(10**400, 0.1),
        row(1.0, 10**400),
    ):
        assert send(wrong) == []
    assert source.broken == 7
    assert send('{"position": [1, 2, 3], "quaternion": [1, 0, 0, 0]}')[0].time == pytest.approx(100.1)
    source.close()
    sender.close()


def test_a_pose_in_json_that_is_not_finite_is_left_to_be_counted():
    _, sample = parse('{"position": [NaN, 0, 0], "quaternion": [1, 0, 0, 0]}', None)
    assert math.isnan(sample.position[0])


def test_the_motioncapture_package_is_spoken_to_as_its_manual_says(monkeypatch):
    """A stand-in for the package, which needs a motion-capture system."""
    asked = []

    class System:
        frames = 0
        rigidBodies = {  # noqa: N815, RUF012
            "drone": types.SimpleNamespace(
                position=[1.0, 2.0, 3.0], rotation=types.SimpleNamespace(x=0.1, y=0.2, z=0.3, w=0.9)
            ),
            "other": None,
        }

        def waitForNextFrame(self) -> None:  # noqa: N802
            self.frames += 1
            if self.frames > 3:
                raise RuntimeError("gone")

    def connect(kind: str, options: dict) -> System:
        asked.append((kind, options))
        return System()

    monkeypatch.setitem(sys.modules, "motioncapture", types.SimpleNamespace(connect=connect))
    source = open_source("motioncapture:vicon:10.0.0.2", ManualClock(4.0), "drone")
    found = []
    with pytest.raises(WordwingError, match=r"motion capture has gone away \(gone\)"):  # noqa: PT012
        for _ in range(100):
            found += source.read(0.2)
    assert asked == [("vicon", {"hostname": "10.0.0.2"})]
    assert found == [MocapSample(4.0, (1.0, 2.0, 3.0), (0.9, 0.1, 0.2, 0.3))] * 3


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("vicon", "it must begin with udp:, file: or motioncapture:"),
        ("upd:0.0.0.0:9000", 'did you mean "udp"?'),
        ("udp:9000", "HOST:PORT"),
        ("file:none.jsonl", "none.jsonl: there is no such file"),
        ("motioncapture:vicon", "motioncapture:TYPE:HOST"),
        ("motioncapture:vicon:host", "is for wordwing flight mocap, whose --body must name"),
    ],
)
def test_a_wrong_source_gets_one_sentence(source, sentence):
    with pytest.raises(WordwingError) as error:
        open_source(source, SystemClock())
    assert sentence in str(error.value)


def test_without_the_package_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "motioncapture", None)
    with pytest.raises(WordwingError, match="pip install motioncapture"):
        open_source("motioncapture:vicon:host", SystemClock(), "drone")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["{"], "line 1 is no pose"),
        ([row(1.0, 0.1), '{"time": 2}'], 'line 2 is no pose ("position" must be a list of 3 numbers)'),
        ([row(1.0, 0.1), row(0.5, 0.1)], "line 2 is of 0.5 s, before the line above it"),
        (['{"position": [0, 0, 0], "quaternion": [1, 0, 0, 0]}'], 'line 1 has no "time"'),
        ([row(1.0, 0.1, name="other")], "there is no pose of drone in it"),
        (['{"time": "1", "position": [0, 0, 0], "quaternion": [1, 0, 0, 0]}'], '"time" must be a number'),
    ],
)
def test_a_wrong_recording_gets_one_sentence(lines, sentence, tmp_path):
    file = tmp_path / "walk.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(WordwingError) as error:
        open_source(f"file:{file}", SystemClock(), "drone")
    assert sentence in str(error.value)
