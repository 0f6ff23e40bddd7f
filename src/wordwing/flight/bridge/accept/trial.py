"""One acceptance flight: the simulation, the bridge, the adapter of motion capture, and a pilot at a terminal.

Below the flight are its measures: how far the drone came, when it stopped, landed and was disarmed, what was sent.
"""

import math
import os
import re
import select
import signal
import subprocess
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from wordwing.errors import WordwingError
from wordwing.flight.bridge.accept.script import ScriptFile, Step
from wordwing.flight.bridge.bridge import Bridge, TruePoint
from wordwing.flight.bridge.sitl import ORIGIN, SitlProcess
from wordwing.flight.guardian.safety import AT_REST
from wordwing.flight.logs import EVENTS, TLOG, LoggedEvent, read_events
from wordwing.flight.mavlink.flight_stacks import OUR_SYSTEM
from wordwing.flight.mavlink.messages import Codec, Message
from wordwing.flight.mocap.relay import Kind
from wordwing.flight.options import PREFIX, DroneOptions
from wordwing.flight.served.autopilot_profile import PROFILES, AutopilotName
from wordwing.flight.served.vehicle import write_setup
from wordwing.frames import ARENA_HALF
from wordwing.world.layout import Layout

QUESTION = re.compile(rb'Type "(write|fly \d+)" to ')
"""A prompt; the answer is in its quotes."""

BOOT_SECONDS = 60.0
"""How long a simulation may take until it sends its ground truth."""


class TrialError(WordwingError):
    """A flight failed; the sentence says what was waited for."""


@dataclass(frozen=True)
class AcceptConfig:
    """What all flights share."""

    autopilot: AutopilotName
    binary: Path
    instance: int = 5
    """Chooses the simulation's ports."""
    folder: Path = Path("out/accept")
    """For logs."""
    kind: Kind = "odometry"
    """The message by which motion capture is sent to the autopilot."""


@dataclass
class Terminal:
    """A command in a pseudo-terminal whose prompts are answered."""

    command: Sequence[str]
    output: bytes = b""
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._ours, theirs = os.openpty()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            self.command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, process_group=0
        )
        os.close(theirs)
        self._thread = threading.Thread(target=self._answer_prompts, name="terminal", daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """All that it has printed."""
        return self.output.decode("utf-8", "replace").replace("\r\n", "\n")

    def interrupt(self) -> None:
        """Ctrl-C: to all processes that run in the terminal, but not to those with a session of their own."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def children(self) -> list[int]:
        """Process ids of what it has started: in flight, of the guardian."""
        pid = self.process.pid
        try:
            return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except FileNotFoundError:
            return []

    def kill(self, *, children: bool) -> None:
        """Kill its process, and what it has started if asked for, at once."""
        for pid in [self.process.pid, *(self.children() if children else ())]:
            _kill(pid)

    def close(self) -> None:
        """End it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._thread.join(2.0)
        with suppress(OSError):
            os.close(self._ours)

    def _answer_prompts(self) -> None:
        asked = 0
        while True:
            if not select.select([self._ours], [], [], 0.2)[0]:
                if self.process.poll() is not None:
                    return
                continue
            try:
                data = os.read(self._ours, 4096)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.output += data
            while (found := QUESTION.search(self.output, asked)) is not None:
                asked = found.end()
                os.write(self._ours, found[1] + b"\n")


class Trial:
    """From the boot of a simulation to the end of one pilot's flight."""

    def __init__(
        self,
        config: AcceptConfig,
        name: str,
        start: tuple[float, float, float] = (0.0, 0.0, 0.0),
        layout: Layout | None = None,
        parameters: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> None:
        """Start the simulation, lay the arena around its drone and send motion capture.

        Args:
            config: What all flights share.
            name: Of the folder with its logs.
            start: x, y in metres and heading in radians where the drone stands, world.
            layout: What stands in the arena.
            parameters: Of the autopilot, other than the bridge's.
            seed: Of noise.
        """
        self.config, self.stack = config, PROFILES[config.autopilot].stack
        self.folder = config.folder / config.autopilot / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.layout = layout or Layout(())
        self.marked: float | None = None
        """When the event happened that the flight is about."""
        self._log = 0
        self._guardians: list[int] = []
        self.terminal: Terminal | None = None
        base = 9000 + 10 * config.instance
        self._guardian = f"udp:127.0.0.1:{base + 5}"
        with ExitStack() as started:
            self._simulation = SitlProcess(config.autopilot, config.binary, config.instance, parameters=parameters)
            started.callback(self._simulation.close)
            self.bridge = Bridge(
                config.autopilot,
                self._simulation.ports.bridge,
                self.layout,
                start[:2],
                start[2],
                transmitter=self._simulation.ports.transmitter,
                mocap=[("127.0.0.1", base)],
                video=0,
                seed=seed,
                simulation=self._simulation,
            )
            thread = threading.Thread(target=self._serve, name="bridge", daemon=True)
            thread.start()
            started.callback(thread.join, 3.0)
            started.callback(self.bridge.stop)
            self.wait("the drone is seen", self.bridge.ready.is_set, BOOT_SECONDS)
            adapter = self._start_adapter(base)
            started.callback(adapter.wait)
            started.callback(adapter.kill)
            started.callback(self._kill_guardians)
            started.callback(self.close_terminal)
            self._started = started.pop_all()

    @property
    def now(self) -> float:
        """On the clock of all records, seconds."""
        return self.bridge.time

    @property
    def point(self) -> TruePoint:
        """Where the drone really is."""
        return self.bridge.recording.path[-1]

    @property
    def pilot(self) -> Terminal:
        """The terminal of the pilot who flies."""
        assert self.terminal is not None
        return self.terminal

    def fly(self, steps: Sequence[Step] | str, *, dry: bool = False) -> None:
        """Start a pilot at a terminal: one who takes steps, or the shipped policy with an instruction."""
        arena, bridge = self.folder / "arena.json", self.bridge
        setup = write_setup(arena, bridge.frame, bridge.config, self.layout)
        self._log += 1
        self.log = self.folder / f"log-{self._log}-{os.getpid()}-{round(self.now)}"
        stream, url = f"tcp://127.0.0.1:{bridge.video}", self._simulation.ports.pilot
        if isinstance(steps, str):
            options = ["--vehicle", PREFIX + url, "--camera", stream, "--mocap", self._guardian, *setup]
            options += ["--log", str(self.log), "--set-parameters", "--out", str(self.folder)]
            command = [sys.executable, "-m", "wordwing", "fly", steps, *options]
        else:
            file, camera = self.folder / "script.json", arena.with_name("camera.json")
            chosen = DroneOptions(arena, self._guardian, stream, camera, log=self.log, dry_run=dry, set_parameters=True)
            ScriptFile(url, chosen, tuple(steps)).save(file)
            command = [sys.executable, "-m", "wordwing.flight.bridge.accept.script", str(file)]
        self.close_terminal()
        self.began = self.now
        self.terminal = Terminal(command)

    def mark(self) -> float:
        """Mark the event that the flight is about: from here on it is judged, and not tried again."""
        self.marked = self.now
        return self.marked

    def wait(self, what: str, until: Callable[[], bool], seconds: float) -> float:
        """Wait for a condition and return the time; raises a `TrialError` if it does not become true."""
        limit = self.now + seconds
        while not until():
            if self.bridge.failure is not None:
                raise TrialError(self.bridge.failure)
            if self.now > limit:
                raise TrialError(f"not within {seconds:g} s: {what}{self._said()}")
            threading.Event().wait(0.01)
        return self.now

    def wait_for_end(self, seconds: float = 90.0) -> int:
        """Wait until the pilot's process has ended; returns its exit status."""
        process = self.pilot.process
        self.wait("the pilot's process ends", lambda: process.poll() is not None, seconds)
        status: int = process.wait()
        return status

    def wait_for_flight(self, seconds: float = 90.0) -> float:
        """Wait until the drone flies on decisions; returns the time."""

        def flying() -> bool:
            if self.phase_at("flying") is not None:
                self._guardians += self.pilot.children()
                return True
            if self.pilot.process.poll() is not None:
                raise TrialError(f"the pilot's process ended before it flew{self._said()}")
            return False

        return self.wait("the drone flies on decisions", flying, seconds)

    def events(self) -> list[LoggedEvent]:
        """The log of the newest flight as far as it is written."""
        return read_events(self.log) if (self.log / EVENTS).exists() else []

    def phase_at(self, phase: str, after: float = 0.0) -> float | None:
        """When the guardian first entered a phase after a moment."""
        times = (e.time for e in self.events() if e.kind == "phase" and e.values.get("phase") == phase)
        return next((time for time in times if time >= after), None)

    def mode_at(self, mode: int, after: float) -> float | None:
        """When the autopilot first showed a mode after a moment; that moment if it was in it."""
        return self._changed(lambda number, _armed: number == mode, after)

    def disarmed_at(self, after: float) -> float | None:
        """When the autopilot first showed that it is disarmed after a moment."""
        return self._changed(lambda _mode, armed: not armed, after)

    def _changed(self, wanted: Callable[[int, bool], bool], after: float) -> float | None:
        modes = self.bridge.recording.modes
        before = [entry for entry in modes if entry[0] <= after][-1:]
        for time, mode, armed in [*before, *(entry for entry in modes if entry[0] > after)]:
            if wanted(mode, armed):
                return max(time, after)
        return None

    def close_terminal(self) -> None:
        """End the pilot's process; its guardian ends by itself."""
        if self.terminal is not None:
            self.terminal.close()
            (self.folder / "terminal.txt").write_text(self.terminal.text, "utf-8")
            self.terminal = None

    def close(self) -> None:
        """End everything."""
        self._started.close()

    def _kill_guardians(self) -> None:
        """End guardians, which would wait for their drone."""
        for pid in self._guardians:
            if b"wordwing.flight.guardian.process" in _command_line(pid):
                _kill(pid)

    def _serve(self) -> None:
        with suppress(WordwingError):  # it is in `failure`
            self.bridge.run()

    def _start_adapter(self, port: int) -> subprocess.Popen[bytes]:
        """Start the adapter of motion capture, as a user does."""
        command = [sys.executable, "-m", "wordwing", "flight", "mocap", "--source", f"udp:127.0.0.1:{port}"]
        command += ["--url", self._simulation.ports.mocap, "--as", self.config.kind, "--guardian", self._guardian]
        if self.config.autopilot == "ardupilot":
            command += ["--origin", ",".join(map(str, ORIGIN))]
        with (self.folder / "mocap.txt").open("wb") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def _said(self) -> str:
        lines = "" if self.terminal is None else self.terminal.text.strip().splitlines()[-1:]
        return f'; the pilot\'s terminal says "{lines[0]}"' if lines else ""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _command_line(pid: int) -> bytes:
    """Command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@dataclass(frozen=True)
class Result:
    """One row of the table of results."""

    row: str
    seen: str
    """What was seen, in a few words with times."""
    holds: bool
    """Whether it is as `docs/flight.md` says."""
    x: float | None = None
    """Greatest |x| while it was armed, metres, world."""
    y: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """Numbers behind `seen`."""
    autopilot: str = ""
    version: str = ""
    """Of the autopilot."""
    wordwing: str = ""
    """Version of wordwing."""


def greatest_xy(trial: Trial, after: float = 0.0) -> tuple[float, float]:
    """Greatest |x| and |y| after a moment, metres, world."""
    points = [point for point in trial.bridge.recording.path if point.time >= after]
    return max(abs(point.x) for point in points), max(abs(point.y) for point in points)


def inside(x: float, y: float) -> bool:
    """Whether the drone's centre has stayed in the arena."""
    return max(x, y) <= ARENA_HALF


def to_fence(point: TruePoint) -> float:
    """How far the nearest fence is, metres; negative outside."""
    return ARENA_HALF - max(abs(point.x), abs(point.y))


def point_at(trial: Trial, time: float) -> TruePoint:
    """The true point nearest to a moment."""
    path = trial.bridge.recording.path
    return path[min(bisect_left(path, time, key=lambda point: point.time), len(path) - 1)]


def stopped_at(trial: Trial, after: float) -> float | None:
    """When the drone came to rest over the floor after a moment."""
    return next((p.time for p in trial.bridge.recording.path if p.time >= after and p.speed < AT_REST), None)


def duration(seconds: float | None) -> str:
    """A time in words, "never" for None."""
    return "never" if seconds is None else f"{seconds:.1f} s"


def elapsed(moment: float | None, begin: float) -> float | None:
    """Seconds from `begin` to a moment; None if there was none."""
    return None if moment is None else moment - begin


def within(seconds: float | None, most: float) -> bool:
    """Whether something happened in time."""
    return seconds is not None and seconds <= most


def pose_errors(trial: Trial) -> list[tuple[float, float]]:
    """Errors of the poses that the policy was shown: over the floor, and in height (estimate minus truth), metres."""
    errors = []
    for entry in trial.events():
        if entry.kind == "observation":
            x, y, z = entry.values["position"]
            true = point_at(trial, entry.values["image_time"])
            errors.append((math.hypot(x - true.x, y - true.y), z - true.z))
    return errors


def sent_packets(trial: Trial) -> Iterator[tuple[float, Message]]:
    """What we have sent in the newest flight, with times of the bridge's clock."""
    begun = next(entry for entry in trial.events() if entry.kind == "flight")
    offset = begun.time - begun.values["unix"]
    for stamp, message in read_tlog(trial.log / TLOG):
        if message.get_srcSystem() == OUR_SYSTEM:
            yield stamp + offset, message


def read_tlog(path: Path) -> Iterator[tuple[float, Message]]:
    """Times, seconds since 1970, and messages of a `.tlog`; an incomplete last packet is left out."""
    data, at, codec = path.read_bytes(), 0, Codec()
    while at + 20 <= len(data):
        stamp = int.from_bytes(data[at : at + 8], "big") / 1e6
        head, length = data[at + 8], data[at + 9]
        size = length + 8 if head == 0xFE else length + 12 + (13 if data[at + 10] & 1 else 0)
        for message in codec.parse(data[at + 8 : at + 8 + size]):
            yield stamp, message
        at += 8 + size
