"""`wordwing lab`: the lab as a MAVLink vehicle, and wordwing's world around an autopilot's own simulation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.common import (
    check_packages,
    check_port,
    check_positive,
    check_range,
    check_seed,
    end_by_signals,
    reachable,
)
from wordwing.errors import WordwingError
from wordwing.world.catalogue import Corpus

if TYPE_CHECKING:
    from wordwing.world.layout import Layout
    from wordwing.world.tasks import Task

MAVLINK_DRONE = "a drone that speaks MAVLink"


def serve(
    layout: Path | None = None,
    corpus: Corpus = "cage",
    seed: int = 0,
    autopilot: Annotated[Literal["ardupilot", "px4"], tyro.conf.arg(name="as")] = "ardupilot",
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
    """Serve the lab as a MAVLink vehicle: MAVLink on a UDP port, its camera on a TCP port.

    The drone stands disarmed on the floor of a random or given layout and answers as ArduCopter or PX4 would, to one
    companion computer at a time. Anyone who can reach the ports can fly it; only this machine can unless --host says
    otherwise.

    Args:
        layout: A layout file; without one a random layout is drawn.
        corpus: Which kind of random layout, and by which rules the start is drawn.
        seed: Chooses the layout and the start, and gusts and noise.
        autopilot: Which autopilot it imitates.
        host: Which address to listen on; 0.0.0.0 is every address of this machine.
        port: For MAVLink over UDP.
        video: For the camera over TCP.
        mocap: UDP port of the companion to which motion-capture poses are sent, where wordwing fly listens.
        speed: Simulated seconds per second of real time.
        fault: A fault to inject, as KIND@START, KIND@START+DURATION or either with =VALUE, in seconds of lab time, such
            as takeover@20 or loss@15+2=0.8; the kinds are loss, delay, reordering, camera, jump, drift, dropout,
            battery, wind, arming, takeover and reboot.
        sign: A file with a key, 32 bytes or 64 hexadecimal digits: only packets signed with it are accepted.
        factory: Start with the autopilot's default parameters instead of those that wordwing wants indoors.
        arena: Where to write the arena's pose; camera.json and layout.json are written beside it.
        carry: Move the disarmed drone to positions that are typed here, for wordwing flight check.
    """
    check_packages(MAVLINK_DRONE, "flight")
    for name, value in (("port", port), ("video", video), ("mocap", mocap)):
        check_port(value, name)
    check_positive("speed", speed)
    _check_arena(arena)
    from wordwing.flight.mavlink.signing import read_key, signing_time
    from wordwing.flight.served.faults import parse_fault
    from wordwing.flight.served.server import MOCAP_PORT, PLACEMENT_HELP, LabServer, PlacementReader
    from wordwing.flight.served.vehicle import ServedLab, write_setup

    faults = [parse_fault(text) for text in fault]
    key = None if sign is None else read_key(sign)
    drawn, task = _draw(layout, corpus, seed)
    lab = ServedLab(
        drawn,
        task.start_xy,
        task.start_yaw,
        seed=seed,
        autopilot=autopilot,
        faults=faults,
        factory=factory,
        key=key,
        signing_time=0 if key is None else signing_time(),
    )
    server = LabServer(lab, host=host, port=port, video=video, mocap=mocap, speed=speed)
    options = " ".join([*write_setup(arena, lab.frame, lab.config, drawn), "--yes"])
    options += f" --sign {sign}" * (sign is not None) + f" --speed {speed:g}" * (speed != 1)
    options += f" --mocap udp:0.0.0.0:{mocap}" * (mocap != MOCAP_PORT or host != "127.0.0.1")
    address = reachable(host)
    print(
        f"the lab answers as {autopilot} on UDP port {port}, its camera is on TCP port {video}; end it with Ctrl+C",
        f'fly it: wordwing fly "{task.instruction}" --vehicle mavlink:udp:{address}:{port} '
        f"--camera tcp://{address}:{video} {options}",
        sep="\n",
        flush=True,
    )
    if not carry:
        server.run()
        return
    print(PLACEMENT_HELP, flush=True)
    server.run(until=PlacementReader(lab, sys.stdin, lambda sentence: print(sentence, flush=True)).poll)


def bridge(
    autopilot: Literal["ardupilot", "px4"],
    binary: Path | None = None,
    connect: str | None = None,
    layout: Path | None = None,
    corpus: Corpus = "cage",
    seed: int = 0,
    host: str = "127.0.0.1",
    video: int = 5600,
    mocap: tuple[str, ...] = ("127.0.0.1:9000",),
    port: int = 14550,
    instance: int = 0,
    fault: tuple[str, ...] = (),
    arena: Path = Path("out/bridge/arena.json"),
) -> None:
    """Put wordwing's world around your own autopilot simulation: motion capture and camera images of a layout.

    It starts the SITL quadcopter of ArduPilot or PX4, or attaches to a running one, and reads the drone's ground truth
    from it. Motion capture is sent as JSON over UDP, for wordwing flight mocap; the camera is on a TCP port. What to
    type next is printed. Ctrl-C ends it and what it has started.

    Args:
        autopilot: Whose simulation it is.
        binary: The simulation to start: ArduPilot's arducopter, or px4 in the bin folder of PX4's build.
        connect: Attach to a running simulation instead: a link of the bridge's own, as tcp:127.0.0.1:5760
            (ArduPilot) or udpin:127.0.0.1:19410 (PX4).
        layout: A layout file; without one a random layout is drawn.
        corpus: Which kind of random layout, and by which rules the start is drawn.
        seed: Chooses the layout, the start and the noise.
        host: Which address the camera listens on.
        video: For the camera over TCP.
        mocap: Where motion capture is sent, HOST:PORT.
        port: UDP port of the pilot's link, which goes through the bridge if a fault of the link is injected.
        instance: Chooses the simulation's ports, so that several run on one machine.
        fault: A fault to inject, as KIND@START, KIND@START+DURATION or either with =VALUE, in seconds after arming,
            such as dropout@20 or jump@15+2=0.6; the kinds are those of motion capture (dropout, freeze, jump, drift),
            of the link (loss, delay, reordering), camera, battery, takeover and reboot (ArduPilot).
        arena: Where to write the arena's pose; camera.json and layout.json are written beside it.
    """
    check_packages(MAVLINK_DRONE, "flight")
    from wordwing.flight.bridge.bridge import Bridge
    from wordwing.flight.bridge.sitl import ORIGIN, SitlProcess, sitl_ports
    from wordwing.flight.served.faults import SITL_FAULTS, LinkFault, parse_fault
    from wordwing.flight.served.vehicle import write_setup

    if (binary is None) == (connect is None):
        raise WordwingError("the bridge needs either --binary, a simulation to start, or --connect, one that runs")
    check_port(port)
    check_port(video, "video")
    check_range("instance", instance, 0, 9)
    _check_arena(arena)
    faults = [parse_fault(text, SITL_FAULTS) for text in fault]
    if autopilot == "px4" and any(text.startswith("reboot@") for text in fault):
        raise WordwingError("PX4 refuses to reboot in the air; the fault reboot is for ArduPilot")
    addresses = [_parse_address(text) for text in mocap]
    drawn, task = _draw(layout, corpus, seed)
    links = sitl_ports(autopilot, instance)
    relay = (f"udpin:{host}:{port}", links.pilot) if any(isinstance(one, LinkFault) for one in faults) else None
    end_by_signals()  # and the simulation with us
    simulation = None if binary is None else SitlProcess(autopilot, binary, instance)
    try:
        world = Bridge(
            autopilot,
            connect or links.bridge,
            drawn,
            task.start_xy,
            task.start_yaw,
            transmitter=links.transmitter,
            mocap=addresses,
            host=host,
            video=video,
            relay=relay,
            faults=faults,
            seed=seed,
            simulation=simulation,
        )
        options = " ".join(write_setup(arena, world.frame, world.config, drawn))
        pilot = links.pilot if relay is None else f"udp:{reachable(host)}:{port}"
        origin = f" --origin {','.join(map(str, ORIGIN))}" * (autopilot == "ardupilot")
        lines = (
            f"the simulation of {autopilot} is up, its camera is on TCP port {video}; end it with Ctrl+C",
            f"motion capture: wordwing flight mocap --source udp:{mocap[0]} --url {links.mocap}{origin}",
            f'fly it: wordwing fly "{task.instruction}" --vehicle mavlink:{pilot} '
            f"--camera tcp://{reachable(host)}:{video} {options} --set-parameters",
        )
        world.run(lambda: print(*lines, sep="\n", flush=True))
    finally:
        if simulation is not None:
            simulation.close()


def _check_arena(arena: Path) -> None:
    if arena.name in ("camera.json", "layout.json"):
        raise WordwingError(f"--arena is {arena}; a file of that name is written beside it, so choose another")


def _draw(layout: Path | None, corpus: Corpus, seed: int) -> tuple[Layout, Task]:
    """The layout that was named, or a random one, and a task whose start a drone may take off from."""
    import numpy as np

    from wordwing.flight.served.vehicle import sample_start
    from wordwing.world.layout import Layout
    from wordwing.world.samplers import sample_layout

    rng = np.random.default_rng(check_seed(seed))
    drawn = Layout.load(layout) if layout else sample_layout(corpus, rng)
    return drawn, sample_start(drawn, corpus, rng)


def _parse_address(text: str) -> tuple[str, int]:
    host, _colon, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 1 <= int(port) <= 65535:
        raise WordwingError(f'--mocap is "{text}"; it must be HOST:PORT, as in 127.0.0.1:9000')
    return host, int(port)
