"""`wordwing lab bridge`: wordwing's world around the user's own autopilot simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from wordwing.commands.lab import EXTRA, reachable, read_fault, sample_start
from wordwing.commands.options import check_seed, end_by_signals
from wordwing.errors import WordwingError
from wordwing.world.catalogue import Corpus


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
    """Put wordwing's world around your own autopilot simulation: motion capture and camera pictures of a layout.

    It starts ArduPilot's or PX4's own simulated quadcopter, or attaches to one, and takes the drone's true pose from
    it. Motion capture is sent as JSON over UDP, for wordwing flight mocap; the camera is on a TCP port. What to type
    next is printed. Ctrl-C ends it and what it has started.

    Args:
        autopilot: Whose simulation it is.
        binary: The simulation to start: ArduPilot's arducopter, or px4 in the bin folder of PX4's build.
        connect: Attach to one that runs, instead: a link that is the bridge's alone, as tcp:127.0.0.1:5760
            (ArduPilot) or udpin:127.0.0.1:19410 (PX4).
        layout: A layout file; without one a random layout is drawn.
        corpus: Which kind of random layout, and by which rules the start is drawn.
        seed: Chooses the layout, the start and the noise.
        host: Which address the camera listens on.
        video: For the camera over TCP.
        mocap: Where motion capture is sent, HOST:PORT.
        port: UDP port of the pilot's link, if a fault of the link is ordered: it then leads through the bridge.
        instance: Chooses the simulation's ports, so that several run on one machine.
        fault: What goes wrong, as KIND@START, KIND@START+DURATION or either with =VALUE, in seconds after the drone
            was armed, such as dropout@20 or jump@15+2=0.6; the kinds are those of motion capture (dropout, freeze,
            jump, drift), of the link (loss, delay, reordering), camera, battery, takeover and reboot (ArduPilot).
        arena: Where to write where the arena lies; camera.json and layout.json are written beside it.
    """
    try:
        import pymavlink  # noqa: F401
    except ImportError:
        raise WordwingError(EXTRA) from None
    import numpy as np

    from wordwing.flight.bridge.autopilots import ORIGIN, Simulation, ports
    from wordwing.flight.bridge.bridge import Bridge, needs_relay
    from wordwing.flight.bridge.faults import KINDS
    from wordwing.flight.calibration import Calibration
    from wordwing.world.layout import Layout
    from wordwing.world.samplers import sample_layout

    if (binary is None) == (connect is None):
        raise WordwingError("the bridge needs either --binary, a simulation to start, or --connect, one that runs")
    for name, value in (("port", port), ("video", video)):
        if not 1 <= value <= 65535:
            raise WordwingError(f"--{name} is {value}; it must be from 1 to 65535")
    if not 0 <= instance <= 9:
        raise WordwingError(f"--instance is {instance}; it must be from 0 to 9")
    if arena.name in ("camera.json", "layout.json"):
        raise WordwingError(f"--arena is {arena}; a file of that name is written beside it, so choose another")
    faults = [read_fault(text, KINDS) for text in fault]
    if autopilot == "px4" and any(text.startswith("reboot@") for text in fault):
        raise WordwingError("PX4 refuses to reboot in the air; the fault reboot is for ArduPilot")
    places = [_place(text) for text in mocap]
    rng = np.random.default_rng(check_seed(seed))
    plan = Layout.load(layout) if layout else sample_layout(corpus, rng)
    task = sample_start(plan, corpus, rng)
    links = ports(autopilot, instance)
    relay = (f"udpin:{host}:{port}", links.pilot) if needs_relay(faults) else None
    end_by_signals()  # and the simulation with us
    simulation = None if binary is None else Simulation(autopilot, binary, instance)
    try:
        world = Bridge(
            autopilot,
            connect or links.bridge,
            plan,
            task.start_xy,
            task.start_yaw,
            transmitter=links.transmitter,
            mocap=places,
            host=host,
            video=video,
            relay=relay,
            faults=faults,
            seed=seed,
            simulation=simulation,
        )
        camera, drawn = arena.with_name("camera.json"), arena.with_name("layout.json")
        world.frame.save(arena)
        Calibration.of(world.config.camera.lens, world.config.image_latency).save(camera)
        plan.save(drawn)
        pilot = links.pilot if relay is None else f"udp:{reachable(host)}:{port}"
        origin = f" --origin {','.join(map(str, ORIGIN))}" * (autopilot == "ardupilot")
        lines = (
            f"the simulation of {autopilot} is up, its camera is on TCP port {video}; end it with Ctrl+C",
            f"motion capture: wordwing flight mocap --source udp:{mocap[0]} --url {links.mocap}{origin}",
            f'fly it: wordwing fly "{task.instruction}" --vehicle mavlink:{pilot} '
            f"--camera tcp://{reachable(host)}:{video} --arena {arena} --calibration {camera} --layout {drawn} "
            "--set-parameters",
        )
        world.run(lambda: print(*lines, sep="\n", flush=True))
    finally:
        if simulation is not None:
            simulation.close()


def _place(text: str) -> tuple[str, int]:
    host, _colon, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 1 <= int(port) <= 65535:
        raise WordwingError(f'--mocap is "{text}"; it must be HOST:PORT, as in 127.0.0.1:9000')
    return host, int(port)
