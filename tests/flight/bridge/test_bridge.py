"""The bridge around a fake SITL: real processes, real sockets, real MAVLink."""

import json
import math
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pymavlink")

from command_line import refused
from served_flight import QUICK
from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.bridge.bridge import STANDING_HEIGHT, Bridge
from wordwing.flight.bridge.sitl import SitlProcess, sitl_ports
from wordwing.flight.served.faults import MocapJump, PoseDropout, Takeover
from wordwing.world.layout import Layout

MADE = Path(__file__).with_name("fake_sitl.py")


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


@pytest.fixture
def instance() -> int:
    """Ports of its own for each test process."""
    for number in range(600, 900):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", 5760 + 10 * number))
            except OSError:
                continue
            return number
    raise AssertionError("no port is free")


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    program = tmp_path / "arducopter"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {MADE} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


class Listener:
    """A UDP port of this machine."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(20.0)
        self.port: int = self.socket.getsockname()[1]

    def pose(self) -> dict:
        return json.loads(self.socket.recv(4096))


@pytest.fixture
def simulation(binary: Path, instance: int) -> Iterator[SitlProcess]:
    made = SitlProcess("ardupilot", binary, instance, {"FS_EKF_ACTION": 2})
    yield made
    made.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.close()


def bridged(simulation: SitlProcess, listener: Listener, transmitter: Listener, **options: object) -> Bridge:
    return Bridge(
        "ardupilot",
        simulation.ports.bridge,
        Layout(()),
        (1.0, -0.5),
        math.pi / 2,
        transmitter=transmitter.port,
        mocap=[("127.0.0.1", listener.port)],
        video=0,
        frame=Arena(),
        config=QUICK,
        simulation=simulation,
        **options,  # type: ignore[arg-type]
    )


def test_the_arena_lies_around_the_drone_and_faults_begin_when_it_is_armed(
    simulation: SitlProcess, listener: Listener
) -> None:
    transmitter = Listener()
    faults = [MocapJump(0.5, 0.5, distance=5.0, bearing=0.0), PoseDropout(1.5), Takeover(0.3)]
    bridge = bridged(simulation, listener, transmitter, faults=faults)
    thread = threading.Thread(target=bridge.run)
    thread.start()
    try:
        assert bridge.ready.wait(20.0)
        first = listener.pose()
        # With an arena at the origin the local frame is the world: it stands at its start, looking along +y.
        assert first["position"] == pytest.approx([1.0, -0.5, STANDING_HEIGHT], abs=0.005)
        assert first["quaternion"] == pytest.approx([math.sqrt(0.5), 0, 0, math.sqrt(0.5)], abs=0.005)
        (simulation.folder / "arm").touch()
        channels = struct.unpack("<16H", transmitter.socket.recv(100))
        assert channels[4] == 1700  # the mode switch at LOITER
        assert channels[2] == 1500  # the throttle stick in the middle
        listener.socket.settimeout(1.0)
        poses = []
        while True:
            try:
                poses.append(listener.pose())
            except TimeoutError:
                break
        armed = next(time for time, _mode, armed in bridge.recording.modes if armed)
        # Looking east, which is +y of the world here, it flies north, which is to its left: -x.
        flown = [pose for pose in poses if pose["time"] < armed + 0.5]
        assert flown[-1]["position"][0] < 0.9
        assert flown[-1]["position"][1] == pytest.approx(-0.5, abs=0.02)
        jumped = [pose for pose in poses if armed + 0.5 <= pose["time"] < armed + 1.0]
        back = [pose for pose in poses if armed + 1.0 <= pose["time"] < armed + 1.5]
        assert all(pose["position"][0] > 4.0 for pose in jumped)
        assert all(pose["position"][0] < 1.0 for pose in back)
        assert max(pose["time"] for pose in poses) < armed + 1.5
    finally:
        bridge.stop()
        thread.join(10.0)
        transmitter.socket.close()
    assert not thread.is_alive()


def test_a_simulation_gets_our_parameters_and_ends_with_all_that_it_started(binary: Path, instance: int) -> None:
    simulation = SitlProcess("ardupilot", binary, instance, {"FS_EKF_ACTION": 2})
    while not (told := simulation.folder / "told.json").exists() or not told.read_text():
        time.sleep(0.01)
    document = json.loads(told.read_text())
    options = document["arguments"]
    parameters = Path(options[options.index("--defaults") + 1]).read_text().splitlines()
    assert "EK3_SRC1_POSXY 6" in parameters
    assert "FS_EKF_ACTION 2" in parameters
    folder = simulation.folder
    simulation.close()
    until = time.monotonic() + 10.0
    while not all(gone(pid) for pid in document["pids"]):  # killed, but the system takes a moment
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not folder.exists()


def test_a_simulation_that_ends_is_told_with_its_last_words(tmp_path: Path, instance: int) -> None:
    program = tmp_path / "arducopter"
    program.write_text("#!/bin/sh\necho this frame is unknown\n")
    program.chmod(0o755)
    listener = Listener()
    simulation = SitlProcess("ardupilot", program, instance)
    try:
        with pytest.raises(WordwingError, match="this frame is unknown"):
            bridged(simulation, listener, listener).run()
    finally:
        simulation.close()
        listener.socket.close()


def test_ctrl_c_ends_the_command_and_the_simulation(binary: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with Listener().socket as mocap:
        options = {"autopilot": "ardupilot", "binary": binary, "instance": 9, "arena": tmp_path / "arena.json"}
        options |= {"video": free_port(), "mocap": f"127.0.0.1:{mocap.getsockname()[1]}"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        process = subprocess.Popen(
            [sys.executable, "-m", "wordwing", "lab", "bridge", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(scratch)},
            text=True,
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        told = json.loads(next(scratch.glob("*/told.json")).read_text())
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "wordwing: interrupted\n"
    assert all(gone(pid) for pid in told["pids"])
    assert not list(scratch.glob("wordwing-bridge-*"))
    assert lines[1].startswith("motion capture: wordwing flight mocap --source udp:127.0.0.1:")
    assert "--vehicle mavlink:tcp:127.0.0.1:5852" in lines[2]
    Arena.load(tmp_path / "arena.json")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_each_instance_has_ports_of_its_own() -> None:
    assert sitl_ports("ardupilot", 2).pilot == "tcp:127.0.0.1:5782"
    assert sitl_ports("px4", 2).pilot == "udpin:127.0.0.1:14542"
    assert sitl_ports("px4", 0).bridge == "udpin:127.0.0.1:19410"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "needs either --binary"),
        (["--binary", "nowhere/arducopter"], "there is no program there"),
        (["--connect", "tcp:127.0.0.1:1", "--fault", "melt@3"], 'no fault "melt"'),
        (["--connect", "tcp:127.0.0.1:1", "--fault", "freeze@3=2"], "has no value"),
        (["--connect", "tcp:127.0.0.1:1", "--mocap", "9000"], "it must be HOST:PORT"),
        (["--connect", "tcp:127.0.0.1:1", "--instance", "12"], "from 0 to 9"),
        (["--connect", "nothing"], "is no link"),
    ],
)
def test_mistakes_get_one_sentence(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, "lab", "bridge", "--autopilot", "ardupilot", "--video", str(free_port()), *options)
    assert words in said


def test_px4_must_lie_in_its_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "px4"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    said = refused(capsys, "lab", "bridge", "--autopilot", "px4", "--binary", str(program))
    assert "bin folder of its build" in said
