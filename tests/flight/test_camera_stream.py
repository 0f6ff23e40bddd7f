"""Cameras against films made here, a small server, and times worked out by hand."""

import json
import math
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation, Slerp

from wordwing.camera import Camera
from wordwing.errors import WordwingError
from wordwing.flight.calibration import Calibration
from wordwing.flight.camera_stream import CameraFrame, CameraStream, VideoSource
from wordwing.flight.matching import PoseTrack, match
from wordwing.flight.mavlink.clock import ManualClock, SystemClock
from wordwing.frames import Pose
from wordwing.lens import LensConfig

PLAIN = Calibration(128, 72, latency=0.06, horizontal_fov_deg=84.0)


def noise(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 256, (72, 128, 3), dtype=np.uint8)


def film(path: Path, colours: list[int], rate: int = 20, size: tuple[int, int] = (128, 72)) -> Path:
    """A video of grey images, one after the other."""
    with av.open(str(path), "w", format="mpegts" if path.suffix == ".ts" else None) as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.bit_rate, stream.time_base = 4_000_000, Fraction(1, rate)
        for number, colour in enumerate(colours):
            frame = av.VideoFrame.from_ndarray(np.full((size[1], size[0], 3), colour, np.uint8), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def age(camera: VideoSource, now: float) -> float:
    """Seconds since the newest image was taken."""
    return now - camera.latest().taken


def test_before_the_first_image_nothing_is_seen_and_nothing_has_changed():
    buffer = VideoSource(PLAIN)
    assert buffer.latest() is None
    assert buffer.unchanged(5.0) == math.inf


def test_an_image_is_as_old_as_its_arrival_and_the_stated_latency(rng):
    buffer = VideoSource(PLAIN)
    raw = noise(rng)
    buffer.put(raw, arrived=10.0)
    seen = buffer.latest()
    assert seen.taken == pytest.approx(9.94)
    assert age(buffer, 10.5) == pytest.approx(0.56)
    assert seen.image.dtype == torch.uint8
    assert np.abs(seen.image.numpy().astype(int) - raw).max() <= 1


def test_only_the_newest_image_is_seen(rng):
    buffer = VideoSource(PLAIN)
    for number in range(5):
        buffer.put(np.full((72, 128, 3), 50 * number, np.uint8), arrived=number / 10)
    assert buffer.latest().number == 5
    assert buffer.latest().image.unique().tolist() == [200]


def test_images_that_queue_up_on_the_way_show_their_age(rng):
    buffer = VideoSource(PLAIN)
    ages = []
    # 10 pictures a second by the camera's clock; from the fourth on each comes 0.2 s later than it should.
    for number in range(8):
        stamp = 100.0 + number / 10
        arrived = 7.0 + number / 10 + 0.2 * max(0, number - 3)
        buffer.put(noise(rng), arrived, stamp)
        ages.append(age(buffer, arrived))
    assert ages == pytest.approx([0.06] * 4 + [0.26, 0.46, 0.66, 0.86])


def test_a_slow_first_image_is_forgiven_when_a_quicker_one_comes(rng):
    buffer = VideoSource(PLAIN)
    buffer.put(noise(rng), 5.5, 0.0)  # came half a second late, but nobody can know
    buffer.put(noise(rng), 5.6, 0.6)
    assert age(buffer, 5.6) == pytest.approx(0.06)
    buffer.put(noise(rng), 5.8, 0.7)
    assert age(buffer, 5.8) == pytest.approx(0.16)


def test_the_quickest_way_is_forgotten_after_ten_seconds(rng):
    buffer = VideoSource(PLAIN)
    buffer.put(noise(rng), 0.0, 0.0)
    ages = []
    for second in range(1, 13):
        buffer.put(noise(rng), second + 0.3, float(second))  # a way 0.3 s longer, for good
        ages.append(round(age(buffer, second + 0.3), 6))
    assert ages[:9] == [0.36] * 9
    assert ages[-2:] == [0.06] * 2


@pytest.mark.parametrize("anew", [True, False])
def test_a_camera_that_counts_anew_is_not_taken_for_old(anew, rng):
    buffer = VideoSource(PLAIN)
    buffer.put(noise(rng), 50.0, 50.0)
    if anew:
        buffer.restart()
    buffer.put(noise(rng), 51.0, 0.0)
    assert age(buffer, 51.0) == pytest.approx(0.06)


def test_a_hanging_camera_that_sends_the_same_image_is_noticed(rng):
    buffer = VideoSource(PLAIN)
    frozen = noise(rng)
    buffer.put(noise(rng), 0.0)
    for number in range(1, 11):
        buffer.put(frozen, number / 10)
    assert age(buffer, 1.0) == pytest.approx(0.06)
    assert buffer.unchanged(1.0) == pytest.approx(0.96)
    hardly = frozen.copy()
    hardly[0, 0] ^= 1  # what an encoder may do
    buffer.put(hardly, 1.1)
    assert buffer.unchanged(1.1) == pytest.approx(1.06)
    grain = rng.integers(-3, 4, frozen.shape)  # what a sensor does
    buffer.put(np.clip(frozen + grain, 0, 255).astype(np.uint8), 1.2)
    assert buffer.unchanged(1.2) == pytest.approx(0.06)


def test_an_image_of_another_size_is_refused():
    with pytest.raises(WordwingError, match=r"images are 64×36; camera\.json is for 128×72"):
        VideoSource(PLAIN).put(np.zeros((36, 64, 3), np.uint8), 0.0)


def test_a_film_is_played_at_its_own_pace_and_ends(tmp_path):
    path = film(tmp_path / "flight.mp4", [40, 80, 120, 160, 200])
    clock = ManualClock(100.0)
    camera = CameraStream(path, PLAIN, clock)
    camera.start()
    camera._thread.join(10.0)
    assert camera.ended
    assert camera.failure == "the video is over"
    assert camera.latest().number == 5
    assert camera.latest().image.float().mean().item() == pytest.approx(200, abs=3)
    assert clock.now() == pytest.approx(100.2)  # four steps of 1/20 s
    assert camera.latest().taken == pytest.approx(100.14)
    camera.close()
    camera.close()


def test_a_stream_that_breaks_off_is_opened_again(tmp_path):
    data = film(tmp_path / "stream.ts", [60, 61, 180] * 20).read_bytes()
    served = []

    def serve(server: socket.socket) -> None:
        while True:
            try:
                caller, _ = server.accept()
            except OSError:
                return
            with caller:
                served.append(1)
                caller.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        port = server.getsockname()[1]
        with closing(CameraStream(f"tcp://127.0.0.1:{port}", PLAIN, SystemClock())) as camera:
            camera.start()
            first = camera.latest().number
            for _ in range(200):
                if camera.connections >= 2 and camera.latest().number > first:
                    break
                threading.Event().wait(0.05)
            assert camera.connections >= 2
            assert len(served) >= 2
            assert not camera.ended
            assert age(camera, SystemClock().now()) < 60
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """The address of somebody who answers everyone like that, or never."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        callers = []

        def answer_all() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                callers.append(caller)
                if answer is not None:
                    caller.recv(1000)
                    caller.sendall(answer)
                    caller.close()

        threading.Thread(target=answer_all, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for caller in callers:
            caller.close()


NOTHING = "HTTP/1.1 {} \r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("scheme", "answer", "sentence"),
    [
        ("tcp", None, "it sends nothing"),
        ("http", NOTHING.format("404 Not Found"), "the server knows no such stream"),
        ("http", NOTHING.format("401 Unauthorized"), "the server wants NAME:PASSWORD@ before the host"),
        ("http", NOTHING.format("503 Service Unavailable"), "it cannot be read"),
        ("rtsp", "RTSP/1.0 404 Stream Not Found\r\nCSeq: 1\r\n\r\n", "the server knows no such stream"),
    ],
)
def test_a_stream_that_does_not_come_gets_our_words_and_not_ffmpegs(scheme, answer, sentence, monkeypatch):
    monkeypatch.setattr("wordwing.flight.camera_stream.OPEN_SECONDS", 0.5)
    monkeypatch.setattr("wordwing.flight.camera_stream.READ_SECONDS", 0.5)
    with answering(None if answer is None else answer.encode()) as place:
        camera = CameraStream(f"{scheme}://{place}/front", PLAIN)
        with pytest.raises(WordwingError) as error:
            camera.start(timeout=1.5)
        assert str(error.value) == f"no image came from {scheme}://{place}/front ({sentence})"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("none.mp4", "no such file"),
        ("/dev/video99", "no such file"),
        ("tcp://127.0.0.1:1", "connection refused"),
        ("rtsp://no-such.invalid", "it cannot be reached"),
    ],
)
def test_a_camera_that_is_not_there_gets_one_sentence(source, sentence, tmp_path):
    camera = CameraStream(source if "/" in source else tmp_path / source, PLAIN)
    with pytest.raises(WordwingError, match=rf"no image came from .*{source.split('/')[-1]} \({sentence}"):
        camera.start(timeout=0.4)


def test_a_film_that_is_none_and_one_of_another_size_get_one_sentence(tmp_path):
    (tmp_path / "text.mp4").write_text("no film")
    with pytest.raises(WordwingError, match=r"no image came from .*\(it is no video that can be read\)"):
        CameraStream(tmp_path / "text.mp4", PLAIN).start()
    path = film(tmp_path / "large.mp4", [1, 2], size=(256, 144))
    with pytest.raises(WordwingError, match=r"images are 256×144; camera\.json is for 128×72"):
        CameraStream(path, PLAIN).start()


def test_a_film_that_is_none_is_told_at_once(tmp_path):
    clock = SystemClock()
    began = clock.now()
    with pytest.raises(WordwingError, match=r"no image came from .*\(is a directory"):
        CameraStream(tmp_path, PLAIN).start()
    assert clock.now() - began < 5


def quaternion(rotation: Rotation) -> torch.Tensor:
    x, y, z, w = rotation.as_quat()
    return torch.tensor([w, x, y, z])


@pytest.mark.parametrize("sign", [1.0, -1.0])  # both quaternions stand for the same turn
def test_poses_between_two_measured_ones_lie_on_the_straight_way(sign):
    ends = Rotation.from_euler("ZYX", [[170, 3, 0], [-172, 5, 2]], degrees=True)  # through south, the short way
    track = PoseTrack()
    track.add(1.0, Pose(torch.tensor([0.0, 0.0, 0.7]), quaternion(ends[0])))
    track.add(1.1, Pose(torch.tensor([0.1, -0.2, 0.8]), sign * quaternion(ends[1])))
    found = track.pose_at(1.025)
    assert found.position.tolist() == pytest.approx([0.025, -0.05, 0.725])
    expected = quaternion(Slerp([0, 1], ends)(0.25))
    assert abs(float((found.quaternion * expected).sum())) == pytest.approx(1.0, abs=1e-5)


def test_the_gap_is_to_the_nearest_pose_before_or_after():
    track = PoseTrack()
    assert track.gap_at(0.0) == math.inf
    for time in (1.0, 1.1, 1.5):
        track.add(time, Pose.level(torch.zeros(2), torch.tensor(0.0)))
    gaps = [track.gap_at(time) for time in (0.9, 1.0, 1.04, 1.08, 1.3, 1.45, 1.52)]
    assert gaps == pytest.approx([0.1, 0.0, 0.04, 0.02, 0.2, 0.05, 0.02])


def test_a_track_forgets_and_takes_nothing_that_is_older():
    track = PoseTrack(seconds=1.0)
    for time in (0.0, 0.5, 1.0, 1.5, 1.2):
        track.add(time, Pose.level(torch.tensor([time, 0.0]), torch.tensor(0.0)))
    assert track.gap_at(0.0) == pytest.approx(0.5)
    assert track.pose_at(1.2).position[0].item() == pytest.approx(1.2)  # between 1.0 and 1.5
    assert track.pose_at(9.0).position[0].item() == pytest.approx(1.5)


def picture(taken: float) -> CameraFrame:
    return CameraFrame(torch.full((72, 128, 3), 7, dtype=torch.uint8), taken, 1)


def test_an_image_goes_with_the_pose_of_its_moment_and_not_with_the_newest():
    track = PoseTrack()
    for step in range(11):  # 0.5 m/s along x
        track.add(step / 10, Pose.level(torch.tensor([0.05 * step, 0.0]), torch.tensor(0.0), 0.7))
    matched = match(picture(0.44), track)
    assert matched.pose.position.tolist() == pytest.approx([0.22, 0.0, 0.7])
    assert matched.gap == pytest.approx(0.04)
    observation = matched.observation(begun=0.24)
    assert observation.image.shape == (1, 72, 128, 3)
    assert observation.pose.position.shape == (1, 3)
    assert observation.time.item() == pytest.approx(0.2)


@pytest.mark.parametrize("taken", [0.94, 2.06, 1.5])
def test_an_image_too_far_from_every_pose_is_refused(taken):
    track = PoseTrack()
    for time in (1.0, 2.0):
        track.add(time, Pose.level(torch.zeros(2), torch.tensor(0.0)))
    assert match(picture(taken), track) is None
    assert match(picture(1.04), track).gap == pytest.approx(0.04)
    assert match(picture(taken), track, tolerance=0.6).gap <= 0.5


def test_without_an_image_or_a_pose_there_is_no_observation():
    assert match(None, PoseTrack()) is None
    assert match(picture(0.0), PoseTrack()) is None


OPENCV = {"schema": 1, "width": 1280, "height": 720, "fx": 640.0, "fy": 630.0, "cx": 645.0, "cy": 355.0, "latency": 0.1}


def test_a_calibration_file_of_opencvs_numbers_is_read(tmp_path):
    file = tmp_path / "camera.json"
    file.write_text(json.dumps({**OPENCV, "k1": -0.1, "k2": 0.01, "p1": 0.001, "p2": -0.002, "k3": 0.0}))
    calibration = Calibration.load(file)
    assert calibration.latency == 0.1
    assert calibration.lens == LensConfig(
        Camera(calibration.lens.sensor).config, -0.1, 0.01, 0.0, 0.001, -0.002, (640.0, 630.0), (645.5, 355.5)
    )
    assert calibration.lens.sensor.pitch_down_deg == 15.0
    calibration.save(tmp_path / "again.json")
    assert Calibration.load(tmp_path / "again.json") == calibration


def test_the_labs_own_lens_survives_the_file(tmp_path):
    lens = LensConfig()
    Calibration.of(lens, latency=0.06).save(tmp_path / "camera.json")
    assert Calibration.load(tmp_path / "camera.json").lens == lens
    assert "fx" not in (tmp_path / "camera.json").read_text()


def test_a_focal_length_and_a_field_of_view_that_mean_the_same_are_the_same():
    fov = math.degrees(2 * math.atan(640 / 640.0))
    by_fov = Calibration(1280, 720, 0.0, horizontal_fov_deg=fov).lens
    by_focal = Calibration(1280, 720, 0.0, fx=640.0).lens
    assert by_focal.sensor.horizontal_fov_deg == pytest.approx(by_fov.sensor.horizontal_fov_deg)
    assert Camera(by_fov.sensor).focal == pytest.approx(640.0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"width": 1280.5}, '"width" is 1280.5; it must be a whole number from 64 to 8,192'),
        ({"width": True}, '"width" is true'),
        ({"width": 10}, '"width" is 10; it must be a whole number from 64 to 8,192'),
        ({"fx": "640"}, '"fx" is "640"; it must be a finite number'),
        ({"fx": math.nan}, '"fx" is NaN; it must be a finite number from 10 to 20,000'),
        ({"k1": None}, '"k1" is null; it must be a finite number'),
        ({"latency": -0.1}, '"latency" is -0.1; it must be a finite number from 0 to 2'),
        ({"horizontal_fov_deg": 90.0}, "there must be either fx or horizontal_fov_deg"),
        ({"schema": 7}, '"schema" is 7; it must be 1'),
        ({"pitch_down": 1}, 'unknown key "pitch_down"; did you mean "pitch_down_deg"?'),
        ({"fx": 2000.0}, "does not see all of the policy's 84.0° view"),
        ({"pitch_down_deg": 60.0}, "pitched down by 60.0°, with this lens does not see all"),
        ({"k1": -0.9}, "some places of the policy's view twice"),
    ],
)
def test_each_mistake_in_a_calibration_gets_one_sentence(change, sentence, tmp_path):
    file = tmp_path / "camera.json"
    file.write_text(json.dumps({**OPENCV, **change}))
    with pytest.raises(WordwingError) as error:
        Calibration.load(file)
    assert str(error.value).startswith(f"{file}: ")
    assert sentence in str(error.value)


@pytest.mark.parametrize("missing", ["schema", "width", "height", "latency"])
def test_what_a_calibration_cannot_do_without_must_be_there(missing, tmp_path):
    file = tmp_path / "camera.json"
    file.write_text(json.dumps({key: value for key, value in OPENCV.items() if key != missing}))
    with pytest.raises(WordwingError, match=f'"{missing}" is missing; it must be'):
        Calibration.load(file)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(b"{", "not valid JSON"), (b"3", "this is 3"), (b"\xff", "UTF-8"), (b" " * 200_000, "more than 100000 bytes")],
)
def test_a_file_that_is_no_calibration_gets_one_sentence(data, sentence, tmp_path):
    file = tmp_path / "camera.json"
    file.write_bytes(data)
    with pytest.raises(WordwingError, match=sentence):
        Calibration.load(file)
    with pytest.raises(WordwingError, match="there is no such file"):
        Calibration.load(tmp_path / "none.json")
