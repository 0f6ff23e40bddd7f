"""`wordwing lab serve`: the lab as a drone that speaks MAVLink."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.options import check_positive, check_seed
from wordwing.errors import WordwingError, did_you_mean
from wordwing.world.catalogue import Corpus

if TYPE_CHECKING:
    import numpy as np

    from wordwing.flight.served.faults import Fault
    from wordwing.world.layout import Layout
    from wordwing.world.tasks import Task

EXTRA = "a drone that speaks MAVLink needs packages that are not installed; run: pip install 'wordwing[flight]'"

MAIN = {
    "loss": "share",
    "delay": "seconds",
    "reordering": "share",
    "dropout": "drift",
    "battery": "level",
    "wind": "gusts",
}
"""Which number of a fault `=VALUE` sets."""

ROOM = 0.1
"""How much further from the fences than it must the drone stands, metres: poses are noisy."""

TRIES = 50
"""How many tasks are drawn for one that begins there; about one in ten does not."""

FAULT = re.compile(r"(?P<kind>[a-z]+)@(?P<start>[0-9.]+)(\+(?P<duration>[0-9.]+))?(=(?P<value>[0-9.]+))?")


def serve(
    layout: Path | None = None,
    corpus: Corpus = "cage",
    seed: int = 0,
    personality: Annotated[Literal["ardupilot", "px4"], tyro.conf.arg(name="as")] = "ardupilot",
    host: str = "127.0.0.1",
    port: int = 14550,
    video: int = 5600,
    mocap: int = 9005,
    speed: float = 1.0,
    fault: tuple[str, ...] = (),
    sign: Path | None = None,
    factory: bool = False,
    arena: Path = Path("out/lab/arena.json"),
    carry: bool = False,
) -> None:
    """Serve the lab as a drone on the wire: MAVLink on a UDP port, its camera on a TCP port.

    It stands on the floor of a random or given layout, disarmed, and answers as ArduCopter or PX4 would. One companion
    at a time is heard. Anyone who can reach the ports can fly it; only this machine can unless --host says otherwise.

    Args:
        layout: A layout file; without one a random layout is drawn.
        corpus: Which kind of random layout, and by which rules the start is drawn.
        seed: Chooses the layout and the start, and gusts and noise.
        personality: Whose manners it has.
        host: Which address to listen on; 0.0.0.0 is every address of this machine.
        port: For MAVLink over UDP.
        video: For the camera over TCP.
        mocap: UDP port of the companion to which the poses of motion capture are sent, where wordwing fly listens.
        speed: How many seconds of lab time pass in one.
        fault: What goes wrong, as KIND@START, KIND@START+DURATION or either with =VALUE, in seconds of lab time, such
            as takeover@20 or loss@15+2=0.8; the kinds are loss, delay, reordering, camera, jump, dropout, battery,
            wind, arming, takeover and reboot.
        sign: A file with a key, 32 bytes or 64 hexadecimal digits: only packets signed with it are heard.
        factory: Start with the autopilot's own parameters instead of those that wordwing wants indoors.
        arena: Where to write where the arena lies; camera.json and layout.json are written beside it.
        carry: Carry the disarmed drone to places that are typed here, for wordwing flight check.
    """
    try:
        import pymavlink  # noqa: F401
    except ImportError:
        raise WordwingError(EXTRA) from None
    for name, value in (("port", port), ("video", video), ("mocap", mocap)):
        if not 1 <= value <= 65535:
            raise WordwingError(f"--{name} is {value}; it must be from 1 to 65535")
    check_positive("speed", speed)
    if arena.name in ("camera.json", "layout.json"):
        raise WordwingError(f"--arena is {arena}; a file of that name is written beside it, so choose another")
    import numpy as np

    from wordwing.flight.calibration import Calibration
    from wordwing.flight.mavlink.signing import read_key, signing_time
    from wordwing.flight.served.carrying import HOW, Hands
    from wordwing.flight.served.server import MOCAP_PORT, LabServer
    from wordwing.flight.served.vehicle import ServedLab
    from wordwing.world.layout import Layout
    from wordwing.world.samplers import sample_layout

    faults = [read_fault(text) for text in fault]
    key = None if sign is None else read_key(sign)
    rng = np.random.default_rng(check_seed(seed))
    place = Layout.load(layout) if layout else sample_layout(corpus, rng)
    task = sample_start(place, corpus, rng)
    lab = ServedLab(
        place,
        task.start_xy,
        task.start_yaw,
        seed=seed,
        personality=personality,
        faults=faults,
        factory=factory,
        key=key,
        signing_time=0 if key is None else signing_time(),
    )
    server = LabServer(lab, host=host, port=port, video=video, mocap=mocap, speed=speed)
    camera, plan = arena.with_name("camera.json"), arena.with_name("layout.json")
    lab.frame.save(arena)
    Calibration.of(lab.config.camera.lens, lab.config.image_latency).save(camera)
    place.save(plan)
    address = reachable(host)
    options = f"--arena {arena} --calibration {camera} --layout {plan} --yes"
    options += f" --sign {sign}" * (sign is not None) + f" --speed {speed:g}" * (speed != 1)
    options += f" --mocap udp:0.0.0.0:{mocap}" * (mocap != MOCAP_PORT or host != "127.0.0.1")
    print(
        f"the lab answers as {personality} on UDP port {port}, its camera is on TCP port {video}; end it with Ctrl+C",
        f'fly it: wordwing fly "{task.instruction}" --vehicle mavlink:udp:{address}:{port} '
        f"--camera tcp://{address}:{video} {options}",
        sep="\n",
        flush=True,
    )
    if not carry:
        server.run()
        return
    print(HOW, flush=True)
    hands = Hands(lab, sys.stdin, lambda sentence: print(sentence, flush=True))
    server.run(until=hands.look)


def sample_start(place: Layout, corpus: Corpus, rng: np.random.Generator) -> Task:
    """Draw a task whose start is so far from the fences that a flight over MAVLink may begin there."""
    from wordwing.flight.served.vehicle import LOCAL_FRAME
    from wordwing.world.tasks import sample_task_in

    reach = LOCAL_FRAME.half - max(LOCAL_FRAME.margin, LOCAL_FRAME.side_margin) - ROOM
    for _try in range(TRIES):
        task = sample_task_in(place, corpus, rng)
        if max(map(abs, task.start_xy)) <= reach:
            return task
    raise WordwingError(f"no start within {reach:.2f} m of the centre was found in this layout; take another --seed")


def read_fault(text: str, kinds: Mapping[str, tuple[type[Fault], str | None]] | None = None) -> Fault:
    """A fault as the command line has it, `KIND@START[+DURATION][=VALUE]`.

    Args:
        text: The fault.
        kinds: All faults by name, and which number VALUE sets; by default those of `lab serve`.
    """
    from wordwing.flight.served.faults import KINDS

    kinds = kinds or {kind: (made, MAIN.get(kind)) for kind, made in KINDS.items()}
    found = FAULT.fullmatch(text)
    if found is None:
        raise WordwingError(f'--fault is "{text}"; it must be like takeover@20 or loss@15+2=0.8')
    kind = found["kind"]
    if kind not in kinds:
        hint = did_you_mean(kind, list(kinds)) or f"; the kinds are {', '.join(kinds)}"
        raise WordwingError(f'--fault is "{text}"; there is no fault "{kind}"{hint}')
    made, main = kinds[kind]
    numbers: dict[str, float] = {}
    for name, field in (("start", "start"), ("duration", "duration"), ("value", main)):
        if found[name] is None:
            continue
        if field is None:
            raise WordwingError(f'--fault is "{text}"; a fault "{kind}" has no value')
        try:
            numbers[field] = float(found[name])
        except ValueError:
            raise WordwingError(f'--fault is "{text}"; "{found[name]}" is no number') from None
    if numbers.get("share", 0.0) > 1.0:
        raise WordwingError(f'--fault is "{text}"; a share must be from 0 to 1')
    return made(**numbers)


def reachable(host: str) -> str:
    """A name under which others reach an address that is listened on."""
    import socket

    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"[{name}]" if ":" in name else name
