"""How fast and how evenly a flight over MAVLink runs on this machine: the lab, the guardian and the policy at once."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.bench import report
from wordwing.devices import device_title, one_thread
from wordwing.errors import WordwingError
from wordwing.execution.runner import decide, execute
from wordwing.files import temporary_folder
from wordwing.flight.arena import Arena
from wordwing.flight.calibration import Calibration
from wordwing.flight.camera_stream import CameraStream
from wordwing.flight.guardian.guardian import TICK
from wordwing.flight.guardian.process import GuardianConfig
from wordwing.flight.guardian_client import ProcessClient
from wordwing.flight.logs import TLOG, FlightLog, read_events
from wordwing.flight.mavlink.messages import Codec
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.interface import Action, FlightOverError
from wordwing.interrupts import blocked
from wordwing.policies.loading import load_policy

INSTRUCTION = "go to the barrel"
SETPOINT = "SET_POSITION_TARGET_LOCAL_NED"


@one_thread()
def bench_flight(seconds: float, autopilot: str, policy_name: str, seed: int) -> None:
    """Fly the lab over UDP on loopback in real time, and print a JSON line for each figure."""
    policy = load_policy(policy_name, "lab")
    with temporary_folder() as folder, served_lab(folder, autopilot, seed) as lab:
        arena, calibration = Arena.load(folder / "arena.json"), Calibration.load(folder / "camera.json")
        log = FlightLog.fresh(folder / "log")
        guardian = ProcessClient(GuardianConfig(lab.url, arena, lab.mocap, log=str(folder / "log")))
        vehicle = MavlinkVehicle(
            guardian,
            CameraStream(lab.camera, calibration, guardian.clock),
            lambda _state: None,
            log=log,
            say=lambda _words: None,
        )
        with vehicle, suppress(FlightOverError):
            seen = vehicle.observe()
            policy.reset([INSTRUCTION], seen.pose)
            flying = torch.ones(1, dtype=torch.bool)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                action = decide(policy, seen)
                # A policy that wants to stop flies on: the pace is what counts.
                execute(vehicle, Action(action.setpoint, ~flying), flying)
                seen = vehicle.observe()
        log.close()
        _report(folder / "log", autopilot, policy_name)


def _report(log: Path, autopilot: str, policy_name: str) -> None:
    events = read_events(log)
    decided = np.array([event.time for event in events if event.kind == "decision"])
    seen = np.array([event.time - event.values["image_time"] for event in events if event.kind == "observation"])
    sent = sent_setpoints(log / TLOG)
    if len(decided) < 3 or len(sent) < 10:
        raise WordwingError("the flight ended before anything could be measured; see wordwing lab serve")
    # The stream pauses before and after a flight; what counts is the time in between.
    sent = sent[(sent > sent[-1] - (decided[-1] - decided[0])) & (sent <= sent[-1])]
    gaps = np.diff(sent)
    figures = {
        "decisions/s": (len(decided) - 1) / (decided[-1] - decided[0]),
        "setpoints/s": len(gaps) / (sent[-1] - sent[0]),
        "setpoint jitter 95 %, ms": 1000 * float(np.quantile(np.abs(gaps - TICK), 0.95)),
        "longest gap between setpoints, ms": 1000 * float(gaps.max()),
        "age of an image at its decision, median, ms": 1000 * float(np.median(seen)),
    }
    flown = {"autopilot": autopilot, "policy": policy_name, "decisions": len(decided), "setpoints": len(sent)}
    for name, value in figures.items():
        report(name, float(f"{value:.3g}"), **flown, device=device_title(torch.device("cpu"), cores=2))


def sent_setpoints(tlog: Path) -> NDArray[np.float64]:
    """[N] when setpoints were sent, seconds since 1970, as a `.tlog` has it."""
    data, times, at = tlog.read_bytes(), [], 0
    codec = Codec()
    while at + 20 <= len(data):
        stamp = int.from_bytes(data[at : at + 8], "big") / 1e6
        length = 12 + data[at + 9] + (13 if data[at + 10] & 1 else 0)  # MAVLink 2, signed or not
        messages = codec.parse(data[at + 8 : at + 8 + length])
        times += [stamp for message in messages if message.get_type() == SETPOINT]
        at += 8 + length
    return np.array(times)


class LabAddresses(NamedTuple):
    """Where a served lab is."""

    url: str
    """Of the MAVLink link."""
    camera: str
    mocap: str
    """Where its motion capture is to be listened to."""


@contextmanager
def served_lab(folder: Path, autopilot: str, seed: int, *options: str) -> Iterator[LabAddresses]:
    """`wordwing lab serve` in a process of its own, with its files in a folder."""
    port, mocap, video = map(free_port, (socket.SOCK_DGRAM, socket.SOCK_DGRAM, socket.SOCK_STREAM))
    served = f"lab serve --as {autopilot} --seed {seed} --port {port} --video {video} --mocap {mocap}".split()
    command = [sys.executable, "-m", "wordwing", *served, "--arena", str(folder / "arena.json"), *options]
    with blocked():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise WordwingError("the lab could not be served")
        yield LabAddresses(f"udp:127.0.0.1:{port}", f"tcp://127.0.0.1:{video}", f"udp:127.0.0.1:{mocap}")
    finally:
        process.terminate()
        process.wait(20)


def free_port(kind: int) -> int:
    """A port of this machine that nobody uses."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
