"""The bridge: it reads ground truth from an autopilot's simulation and sends motion capture and camera images.

The arena is placed around the drone when its first true pose comes, so that it stands at the start of the layout's
task; the simulation need not be configured.
"""

import itertools
import math
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field, replace

import torch
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.bridge.ground_station import AUTOPILOT, GroundStation
from wordwing.flight.bridge.ground_truth import GroundTruth, TruePose
from wordwing.flight.bridge.sitl import SitlProcess
from wordwing.flight.matching import PoseTrack
from wordwing.flight.mavlink.clock import Clock, SystemClock
from wordwing.flight.mavlink.geometry import PlainPose
from wordwing.flight.mavlink.link import MavlinkLink, open_link
from wordwing.flight.mavlink.messages import Codec, Message
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.flight.served.camera import ServedCamera, VideoServer, stream_camera
from wordwing.flight.served.faults import Fault, FaultSchedule, LossyChannel, LowBattery, Reboot, Takeover
from wordwing.flight.served.mocap import MocapStream, open_sender
from wordwing.flight.served.server import SWITCH
from wordwing.flight.served.vehicle import LOCAL_FRAME
from wordwing.frames import Pose
from wordwing.lab.vehicle import LabConfig
from wordwing.world.layout import Layout

STANDING_HEIGHT = 0.1
"""Height of the autopilot above the floor when the drone stands on it, metres."""

CONNECT_SECONDS = 30.0
"""How long a simulation may take until it sends its ground truth, seconds."""

POLL_SECONDS = 0.01
"""How long the loop waits for a message, seconds."""

MOCAP_PERIOD = 0.009
"""Between two poses of motion capture, seconds. It goes on when the simulation stalls, as real cameras would."""

STALLED = 1.0
"""After so long without a true pose motion capture ends, too, seconds."""

RIGID_BODY = "drone"
"""Name of the drone in motion capture."""

WAIT = 0.005
"""How long the relay waits for either side before it polls the other, seconds."""

RELEASES = ((255, ""), (192, "-rc"), (128, "-beta"), (64, "-alpha"))
"""Least FIRMWARE_VERSION_TYPE of each kind of release."""


@dataclass(frozen=True)
class TruePoint:
    """True position of the drone at a moment, world frame."""

    time: float
    """On the bridge's clock, seconds."""
    x: float
    y: float
    z: float
    yaw: float
    """Radians."""
    speed: float
    """Over the floor, m/s."""


@dataclass
class Recording:
    """All that the bridge has seen of its drone; times are on the bridge's clock, seconds."""

    path: list[TruePoint] = field(default_factory=list)
    modes: list[tuple[float, int, bool]] = field(default_factory=list)
    """Each change of the custom mode or of the armed state."""


class LinkRelay:
    """Carries MAVLink packets between a pilot and an autopilot, one at a time."""

    def __init__(self, pilot: str, autopilot: str, faults: FaultSchedule, clock: Clock, seed: int = 0) -> None:
        """Open both links.

        Args:
            pilot: URL on which the pilot connects, `udpin:…`.
            autopilot: URL of the autopilot's link for a pilot.
            faults: Faults to inject.
            clock: Of the faults' times.
            seed: Of what is random in them.
        """
        self._clock = clock
        with ExitStack() as opened:
            ours, theirs = (opened.enter_context(closing(open_link(url))) for url in (pilot, autopilot))
            self._opened = opened.pop_all()
        self._ways = (
            (ours, theirs, Codec(stream=True), LossyChannel(faults, "in", seed)),
            (theirs, ours, Codec(stream=True), LossyChannel(faults, "out", seed)),
        )

    def run(self, stopping: threading.Event) -> None:
        """Carry packets until told to stop."""
        while not stopping.is_set():
            for sender, _receiver, codec, channel in self._ways:
                for message in itertools.chain.from_iterable(map(codec.parse, sender.receive(WAIT))):
                    channel.send(bytes(message.get_msgbuf()), self._clock.now())
            for _sender, receiver, _codec, channel in self._ways:
                for packet in channel.receive(self._clock.now()):
                    receiver.send(packet)

    def close(self) -> None:
        """Let go of both links; may be called twice."""
        self._opened.close()


class Bridge:
    """One simulated drone in one layout. `run` serves it in the caller's thread, the camera in another."""

    def __init__(
        self,
        autopilot: AutopilotName,
        url: str,
        layout: Layout,
        start_xy: Sequence[float],
        start_yaw: float,
        *,
        transmitter: int | None = None,
        mocap: Sequence[tuple[str, int]] = (("127.0.0.1", 9000),),
        host: str = "127.0.0.1",
        video: int = 5600,
        relay: tuple[str, str] | None = None,
        faults: Iterable[Fault] = (),
        seed: int = 0,
        frame: Arena = LOCAL_FRAME,
        config: LabConfig | None = None,
        simulation: SitlProcess | None = None,
    ) -> None:
        """Bind; nothing is connected before `run`.

        Args:
            autopilot: Whose simulation it is.
            url: Of the bridge's own link to it.
            layout: What stands in the arena.
            start_xy: [2] where the drone stands, metres, world.
            start_yaw: Its heading, radians, world.
            transmitter: UDP port of ArduPilot's simulated receiver.
            mocap: Where poses of motion capture are sent.
            host: The address that the camera listens on.
            video: Its TCP port; 0 takes a free one.
            relay: The pilot's link through the bridge, from a URL to another, so that its packets can get lost.
            faults: What goes wrong, seconds after the drone was armed.
            seed: Of noise and faults.
            frame: Where the arena lies in the frame of motion capture.
            config: Of the camera.
            simulation: The process behind the link, if we have started it: it is watched, not ended.
        """
        self.autopilot, self.frame, self.layout = autopilot, frame, layout
        self.config = config = config or LabConfig()
        self.recording = Recording()
        self.ready = threading.Event()
        """Set when the drone has been seen and the arena lies around it."""
        self.version = ""
        """Version of the autopilot, once it is known."""
        self.failure: str | None = None
        """Why `run` has ended by itself."""
        self._clock = SystemClock()
        self._url, self._transmitter, self._relayed = url, transmitter, relay
        self._start = (float(start_xy[0]), float(start_xy[1]), float(start_yaw))
        self._simulation = simulation
        self._pending_faults = tuple(faults)
        self.faults = FaultSchedule((), seed, POLL_SECONDS)
        """What goes wrong, and when on the bridge's clock."""
        self._seed = seed
        self._ground_truth = GroundTruth(autopilot)
        self._world: Pose | None = None
        self._track = PoseTrack()
        self._newest: tuple[float, Pose] | None = None
        self._measured_at = -math.inf
        self._codec = Codec(stream=True)  # which also reads datagrams
        self._mocap = MocapStream(frame, self.faults, (seed, 3))
        self._camera = ServedCamera(layout, config, self, self.faults, seed)
        self._stopping = threading.Event()
        with ExitStack() as opened:
            self._senders = [opened.enter_context(closing(open_sender(*address))) for address in mocap]
            self._video = opened.enter_context(closing(VideoServer(host, video, self._camera.size)))
            self._opened = opened.pop_all()
        self.video: int = self._video.port
        self._station: GroundStation | None = None

    @property
    def time(self) -> float:
        """Now, on the clock of all that it records."""
        return self._clock.now()

    def pose_at(self, time: float) -> Pose:
        """[1] the drone's true pose at a moment of the last two seconds, world frame."""
        pose = self._track.pose_at(time)
        assert pose is not None, "nothing is asked for before the drone has been seen"
        return Pose(pose.position[None].float(), pose.quaternion[None].float())

    def take_over(self, *, stabilize: bool = False, brake: bool = False) -> None:
        """Let the safety pilot take over now."""
        assert self._station is not None
        self._station.take_over(stabilize=stabilize, brake=brake)

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop` is called; a simulation that ends or does not answer is a `WordwingError`.

        Args:
            ready: Called once the arena lies around the drone.
        """
        sys.setswitchinterval(SWITCH)
        try:
            with self._opened as opened:
                link = opened.enter_context(closing(self._connect()))
                self._station = GroundStation(self.autopilot, link, self._transmitter)
                opened.callback(self._station.close)
                self._serve(link, until=self.ready.is_set)
                if self._stopping.is_set():
                    return
                streamed = (self._camera, self, self._video, self.config.image_latency, self._stopping, nullcontext())
                threads = [threading.Thread(target=stream_camera, args=streamed, name="camera", daemon=True)]
                if self._relayed is not None:
                    relay = LinkRelay(*self._relayed, self.faults, self._clock, self._seed)
                    opened.callback(relay.close)
                    threads.append(threading.Thread(target=relay.run, args=[self._stopping], name="relay", daemon=True))
                for thread in threads:
                    thread.start()
                    opened.callback(thread.join, 1.0)
                opened.callback(self._stopping.set)
                ready()
                self._serve(link, until=lambda: False)
        except WordwingError as error:
            self.failure = str(error)
            raise
        finally:
            self._stopping.set()

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._stopping.set()

    def _connect(self) -> MavlinkLink:
        until = self.time + CONNECT_SECONDS
        while True:
            try:
                return open_link(self._url)
            except WordwingError:
                self._check_simulation()
                if self.time > until or self._stopping.is_set() or self._simulation is None:
                    raise
            self._stopping.wait(0.1)

    def _serve(self, link: MavlinkLink, until: Callable[[], bool]) -> None:
        begun = self.time
        while not self._stopping.is_set() and not until():
            messages = [message for data in link.receive(POLL_SECONDS) for message in self._codec.parse(data)]
            now = self.time
            moments = [moment for message in messages if (moment := self._handle_message(message, now)) is not None]
            if moments:  # the newest of several that came at once
                self._update_pose(moments[-1])
            self._tick(now)
            if link.lost is not None:
                raise WordwingError(f"the link to the simulation was lost ({link.lost})")
            self._check_simulation()
            if not self.ready.is_set() and now - begun > CONNECT_SECONDS:
                raise WordwingError(
                    f"{self._url}: no true pose came within {CONNECT_SECONDS:g} s; is this the simulation of "
                    f"{self.autopilot}{self._output_tail()}?"
                )

    def _check_simulation(self) -> None:
        if self._simulation is not None and (output := self._simulation.ended) is not None:
            raise WordwingError(f'the simulation has ended; its last output was "{output}"')

    def _output_tail(self) -> str:
        return "" if self._simulation is None else f' (its last output was "{self._simulation.output_tail()}")'

    def _handle_message(self, message: Message, now: float) -> TruePose | None:
        """Handle a message; returns the true pose, if it holds one."""
        station = self._station
        assert station is not None
        if message.get_srcComponent() != AUTOPILOT or station.system not in (None, message.get_srcSystem()):
            return None
        recording = self.recording
        match message.get_type():
            case "HEARTBEAT":
                station.system = message.get_srcSystem()
                state = (message.custom_mode, bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED))
                if not recording.modes or recording.modes[-1][1:] != state:
                    recording.modes.append((now, *state))
                if state[1]:
                    for fault in self._pending_faults:
                        self.faults.add(replace(fault, start=fault.start + now))
                    self._pending_faults = ()
            case "AUTOPILOT_VERSION":
                self.version = _version(message)
        return self._ground_truth.update(message, now)

    def _update_pose(self, moment: TruePose) -> None:
        if self._world is None:
            x, y, yaw = self._start
            self._world = (
                _level((x, y), yaw, STANDING_HEIGHT)
                @ _level(moment.pose.xy.tolist(), float(moment.pose.yaw), float(moment.pose.position[2])).inverse()
            )
        pose = self._world @ moment.pose
        self._track.add(moment.time, pose)
        x, y, z = pose.position.tolist()
        speed = math.hypot(*moment.velocity[:2].tolist())
        self.recording.path.append(TruePoint(moment.time, x, y, z, float(pose.yaw), speed))
        self._newest = moment.time, pose
        self.ready.set()

    def _measure(self, now: float) -> None:
        """Send a pose of motion capture, if one is due."""
        if self._newest is None or now - self._measured_at < MOCAP_PERIOD or now - self._newest[0] > STALLED:
            return
        self._measured_at = now
        pose = self._newest[1]
        measured = self._mocap.measure(PlainPose.of(pose.position, pose.quaternion), now)
        if measured is not None:
            for sender in self._senders:
                sender.send(measured.to_json(name=RIGID_BODY))

    def _tick(self, now: float) -> None:
        self._measure(now)
        assert self._station is not None
        self._station.tick(now, version_known=bool(self.version))
        takeover = self.faults.trigger(Takeover, now)
        if takeover is not None:
            self._station.take_over(stabilize=takeover.stabilize)
        battery = self.faults.trigger(LowBattery, now)
        if battery is not None:
            self._station.drain_battery(battery.level)
        if self.faults.trigger(Reboot, now) is not None:
            self._station.reboot()


def _version(message: Message) -> str:
    """As in "4.8.0-dev (6fb4ba51)": the number, its kind, and the beginning of the commit."""
    number = message.flight_sw_version
    kind = next((name for least, name in RELEASES if number & 0xFF >= least), "-dev")
    commit = bytes(message.flight_custom_version)
    text = commit.decode("ascii", "replace") if all(0x20 <= byte < 0x7F for byte in commit) else commit[::-1].hex()
    return f"{number >> 24}.{number >> 16 & 0xFF}.{number >> 8 & 0xFF}{kind} ({text[:8]})"


def _level(xy: Sequence[float], yaw: float, height: float) -> Pose:
    return Pose.level(torch.tensor(xy, dtype=torch.float64), torch.tensor(yaw, dtype=torch.float64), height)
