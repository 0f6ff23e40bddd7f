"""The served lab on this machine's ports."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from served_flight import QUICK, empty_lab
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.flight.mavlink.link import open_link
from wordwing.flight.mavlink.messages import Codec, heartbeat
from wordwing.flight.mavlink.signing import signing_time
from wordwing.flight.served import faults
from wordwing.flight.served.faults import parse_fault
from wordwing.flight.served.server import LabServer

SPEED = 5.0


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[LabServer]:
    autopilot = getattr(request, "param", "ardupilot")
    made = LabServer(empty_lab(autopilot, config=QUICK), port=0, video=0, speed=SPEED)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join(10.0)
    assert not thread.is_alive()


class Line:
    """A companion on a real socket."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.socket.settimeout(2.0)
        self.next_beat = 0.0
        self.codec, self.ears = mavlink.MAVLink(None, 245, 191), mavlink.MAVLink(None)

    def send(self, message: mavlink.MAVLink_message) -> None:
        self.socket.send(message.pack(self.codec))
        self.codec.seq = (self.codec.seq + 1) % 256

    def beat(self) -> None:
        self.send(mavlink.MAVLink_heartbeat_message(18, 8, 0, 0, 4, 3))

    def command(self, number: int, *values: float) -> int:
        self.send(mavlink.MAVLink_command_long_message(1, 1, number, 0, *values, *[0.0] * (7 - len(values))))
        while True:
            message = self.hear()
            if message.get_type() == "COMMAND_ACK" and message.command == number:
                return message.result

    def hear(self) -> mavlink.MAVLink_message:
        """The next message; heartbeats go on meanwhile."""
        if time.monotonic() >= self.next_beat:
            self.next_beat = time.monotonic() + 0.1
            self.beat()
        return self.ears.decode(bytearray(self.socket.recv(2048)))


def test_a_flight_over_loopback_takes_off_and_lands(server):
    line, lab = Line(server.port), server.lab
    while lab.time < 3.0:
        line.hear()
    for number, *values in ((176, 1, 4), (400, 1), (22, 0, 0, 0, 0, 0, 0, 0.7)):
        assert line.command(number, *values) == 0
    began = lab.time
    while lab.time < began + 4.5:
        line.hear()
    assert lab.true_pose.position[0, 2] == pytest.approx(0.81, abs=0.1)
    assert line.command(176, 1, 9) == 0
    while lab.armed and lab.time < began + 20:
        line.hear()
    assert not lab.armed
    assert lab.true_pose.position[0, 2] < 0.12


def test_a_second_companion_is_neither_heard_nor_answered(server):
    first, second = Line(server.port), Line(server.port)
    first.beat()
    first.hear()
    second.send(mavlink.MAVLink_command_long_message(1, 1, 512, 0, 148, 0, 0, 0, 0, 0, 0))
    second.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        second.hear()
    assert server.lab.packet_filter.dropped["other peer"] >= 1


@pytest.mark.parametrize("server", ["px4"], indirect=True)
def test_px4_answers_one_flight_after_the_other_over_udp(server):
    beat = Codec().pack(heartbeat())
    for _flight in range(2):
        link = open_link(f"udp:127.0.0.1:{server.port}")
        link.send(beat)
        answers = link.receive(2.0)
        link.close()
        assert answers


@pytest.mark.parametrize("server", ["px4"], indirect=True)
def test_px4_does_not_answer_a_second_partner_however_long_the_first_is_silent(server):
    first, second = Line(server.port), Line(server.port)
    first.beat()
    first.hear()
    while server.lab.time < 8.0:
        time.sleep(0.05)
    second.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        second.hear()
    first.beat()
    assert first.hear()


def test_lab_time_passes_at_its_speed(server):
    before, began = server.lab.time, time.monotonic()
    time.sleep(1.0)
    passed = (server.lab.time - before) / (time.monotonic() - began)
    assert 0.5 * SPEED < passed < 1.05 * SPEED  # a busy machine may be slower, never faster


def test_it_listens_on_loopback_only(server):
    assert server._socket.getsockname()[0] == "127.0.0.1"
    assert server.video._listener.getsockname()[0] == "127.0.0.1"


def test_its_camera_is_read_by_pyav_with_lab_times(server):
    import av

    images, times = [], []
    with av.open(f"tcp://127.0.0.1:{server.video.port}", timeout=(10.0, 5.0)) as container:
        for frame in container.decode(video=0):
            images.append(frame.to_ndarray(format="rgb24"))
            times.append(float(frame.time))
            if len(images) == 6:
                break
    assert images[0].shape == (28, 48, 3)
    assert times == sorted(set(times))
    assert 0.0 <= times[0] <= times[-1] <= server.lab.time - 0.06
    taken = server.lab.camera.render(server.lab.camera.expose())[0]
    assert np.abs(images[-1].astype(float) - taken).mean() < 12  # it stands still; noise and JPEG differ


def test_a_port_in_use_is_named():
    lab = empty_lab("px4")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(WordwingError, match=rf"UDP port {port} of 127.0.0.1 .*choose another --port"):
            LabServer(lab, port=port, video=None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(WordwingError, match=rf"TCP port {port} of 127.0.0.1 .*choose another --video"):
            LabServer(lab, port=0, video=port)


def test_signing_time_counts_10_microseconds_since_2015():
    years = signing_time() / 1e5 / (365.25 * 86400)
    assert 2015 + years == pytest.approx(time.gmtime().tm_year + time.gmtime().tm_yday / 365.25, abs=0.02)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("takeover@20", faults.Takeover(20.0)),
        ("loss@15+2=0.8", faults.PacketLoss(15.0, 2.0, share=0.8)),
        ("delay@3.5=0.2", faults.Delay(3.5, seconds=0.2)),
        ("battery@9=12", faults.LowBattery(9.0, level=12.0)),
        ("reboot@30", faults.Reboot(30.0, 1.0)),
        ("camera@5+4", faults.FrozenCamera(5.0, 4.0)),
    ],
)
def test_faults_are_read_from_the_command_line(text, fault):
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("takeover", "it must be like takeover@20"),
        ("takover@20", 'no fault "takover"; did you mean "takeover"'),
        ("loss@5=1.5", "a share must be from 0 to 1"),
        ("takeover@20=3", 'a fault "takeover" has no value'),
        ("loss@1.2.3", '"1.2.3" is not a number'),
        ("loss@-3", "it must be like takeover@20"),
    ],
)
def test_a_wrong_fault_gets_one_sentence(text, complaint):
    with pytest.raises(WordwingError, match=re.escape(complaint)):
        parse_fault(text)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--port", "0"], "--port is 0; it must be from 1 to 65535"),
        (["--speed", "0"], "--speed is 0.0; it must be more than 0"),
        (["--arena", "camera.json"], "--arena is camera.json; a file of that name is written beside it"),
        (["--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (["--layout", "none.json"], "none.json: there is no such file"),
        (["--sign", "none.key"], "none.key: there is no such file"),
        (["--fault", "storm@3"], 'there is no fault "storm"'),
    ],
)
def test_a_wrong_option_gets_one_sentence(arguments, complaint, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["lab", "serve", *arguments])
    assert complaint in capsys.readouterr().err


def test_the_command_writes_the_files_and_says_how_to_fly(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(LabServer, "run", lambda self: self._socket.close() or self.video.close())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free, socket.socket() as also_free:
        free.bind(("127.0.0.1", 0))
        also_free.bind(("127.0.0.1", 0))
        port, video = free.getsockname()[1], also_free.getsockname()[1]
    arena = tmp_path / "arena.json"
    main(["lab", "serve", "--as", "px4", "--port", str(port), "--video", str(video), "--arena", str(arena)])
    said = capsys.readouterr().out
    assert f"--arena {arena} --calibration {tmp_path / 'camera.json'}" in said
    assert f"mavlink:udp:127.0.0.1:{port}" in said
    assert f"tcp://127.0.0.1:{video}" in said
    assert {path.name for path in tmp_path.iterdir()} == {"arena.json", "camera.json", "layout.json"}
