"""`wordwing flight`: what stands around a real flight."""

import os
import select
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wordwing.commands.common import check_packages, check_range, end_by_signals
from wordwing.errors import WordwingError
from wordwing.flight.options import MOCAP

REAL_DRONE = "flying a real drone"


def check(
    url: Annotated[str, tyro.conf.Positional],
    /,
    arena: Path = Path("arena.json"),
    stand: float = 0.1,
    inset: float = 0.3,
    write: bool = False,
    mocap: str = MOCAP,
    sign: Path | None = None,
) -> None:
    """Check that the arena is where the autopilot thinks it is.

    Carry the disarmed drone to the centre of the arena and to two of its corners, as prompted, and press Enter at
    each. Nothing is armed and no motor turns. A place that is off by more than 0.1 m, or a nose that is off by more
    than 10 degrees, is an error.

    Args:
        url: How to reach the autopilot: udp:127.0.0.1:14550, udpin:0.0.0.0:14550, tcp:HOST:PORT or
            serial:/dev/ttyACM0:921600.
        arena: Where the arena lies.
        stand: Height of the autopilot above the floor when the drone stands on it, metres.
        inset: How far the drone's centre is from both fences in a corner, metres.
        write: Save the arena that fits what was found best, in --arena.
        mocap: Where motion capture is received, which wordwing flight mocap copies there: its heights count.
        sign: A file with a key of 64 hexadecimal digits for MAVLink 2 signing.
    """
    check_packages(REAL_DRONE, "flight")
    from wordwing.flight.arena import Arena
    from wordwing.flight.arena_check import MavlinkDrone, compare, fitted, places, table, visit, wrong
    from wordwing.flight.mavlink.clock import SystemClock
    from wordwing.flight.mavlink.link import BYTE_STREAMS, open_link
    from wordwing.flight.mavlink.messages import Codec
    from wordwing.flight.mavlink.signing import UNITS, read_key, signing_time
    from wordwing.flight.mocap.sources import open_source

    check_range("stand", stand, 0, 1, " m")
    check_range("inset", inset, 0, 1, " m")
    known = None if write and not arena.exists() else Arena.load(arena)
    key = None if sign is None else read_key(sign)
    codec = Codec(stream=url.startswith(BYTE_STREAMS), key=key, signed_at=signing_time() / UNITS)
    clock = SystemClock()
    with closing(open_link(url)) as link, closing(open_source(mocap, clock)) as heights:
        drone = MavlinkDrone(link, clock, codec, heights)
        drone.connect()
        visited = visit(drone, places(inset), lambda sentence: ask(sentence, drone.idle), print)
    best = fitted(visited, stand, known)
    after = compare(best, visited, stand)
    rows = after if known is None else compare(known, visited, stand)
    print(table(rows, stand))
    trouble = wrong(rows)
    if trouble is None and not write:
        print(f"the arena is where {arena} says, within {max(row.error for row in rows):.2f} m")
        return
    if (left := wrong(after)) is not None:
        raise WordwingError(
            f"no arena fits what was found, even the best one has {left}; "
            "look at motion capture's axes, its scale and the rigid body"
        )
    proposal = (
        f"north {best.north:g}, east {best.east:g}, heading_deg {best.heading_deg:g}, floor_down {best.floor_down:g} "
        f"(within {max(row.error for row in after):.2f} m)"
    )
    if not write:
        raise WordwingError(f"the arena is not where {arena} says: {trouble}; with --write it would say {proposal}")
    best.save(arena)
    print(f"{arena} now says {proposal}", f"check it: wordwing flight check {url} --arena {arena}", sep="\n")


def mocap(
    source: str,
    url: str,
    kind: Annotated[Literal["odometry", "vision"], tyro.conf.arg(name="as")] = "odometry",
    rate: float = 40.0,
    body: str | None = None,
    y_up: bool = False,
    origin: str | None = None,
    guardian: str = MOCAP,
) -> None:
    """Send poses from motion capture to an autopilot, until Ctrl-C.

    A pose that is old, broken or the same as the one before is dropped, never repeated. It needs a link of its own: the
    one that `wordwing fly` uses belongs to it alone.

    Args:
        source: udp:HOST:PORT (receives JSON), file:PATH (JSON lines) or motioncapture:TYPE:HOST (vicon, optitrack,
            …).
        url: How to reach the autopilot: udp:127.0.0.1:14551, tcp:HOST:PORT or serial:/dev/ttyUSB0:921600.
        kind: As which message: ODOMETRY or VISION_POSITION_ESTIMATE.
        rate: Poses a second at most; autopilots want 30 to 50.
        body: The drone's rigid body in the motion-capture system.
        y_up: Whether y is up in the motion-capture system's frame, as is OptiTrack's custom, not z.
        origin: Where on Earth the room is, LATITUDE,LONGITUDE or LATITUDE,LONGITUDE,ALTITUDE: ArduPilot without GPS
            needs it before it knows where it is in the room.
        guardian: Where each pose that is sent is copied to: where `wordwing fly --mocap` receives them.
    """
    check_packages(REAL_DRONE, "flight")
    from wordwing.flight.mavlink.clock import SystemClock
    from wordwing.flight.mavlink.link import open_link
    from wordwing.flight.mocap.relay import LEAST_RATE, MOST_RATE, OriginSender, PoseRelay, relay
    from wordwing.flight.mocap.sources import open_source

    if not LEAST_RATE <= rate <= MOST_RATE:
        raise WordwingError(f"--rate is {rate}; autopilots want {LEAST_RATE:.0f} to {MOST_RATE:.0f} poses a second")
    room = None if origin is None else OriginSender.parse(origin)
    clock = SystemClock()
    with (
        closing(open_source(source, clock, body)) as poses,
        closing(open_link(url)) as link,
        closing(open_link(guardian)) as copy,
    ):
        pose_relay = PoseRelay(kind, rate, y_up=y_up)
        relay(poses, link, pose_relay, clock, lambda sentence: print(sentence, flush=True), origin=room, guardian=copy)
        if link.lost is not None:
            raise WordwingError(f"the link to {url} was lost ({link.lost})")


def accept(
    autopilot: Literal["ardupilot", "px4"],
    binary: Path,
    only: tuple[str, ...] = (),
    out: Path = Path("out/accept"),
    again: bool = False,
    instance: int = 5,
    kind: Annotated[Literal["odometry", "vision"], tyro.conf.arg(name="as")] = "odometry",
) -> None:
    """Fly the acceptance list on an autopilot's own simulation, and print what was seen.

    Each row starts the simulation anew in a room with motion capture and a camera (wordwing lab bridge), flies it by
    wordwing fly as a user would, with typed confirmations, and judges by the simulator's true position. Rows that were
    flown before are not flown again. Takes about a minute a flight; a row that fails makes the exit status 2.

    Args:
        autopilot: Whose simulation it is.
        binary: The simulation: ArduPilot's arducopter, or px4 in the bin folder of PX4's build.
        only: Beginnings of names of flights or rows; without any, all are flown.
        out: Folder for AUTOPILOT.jsonl, one line a row, and for logs.
        again: Fly rows again that were flown before.
        instance: Chooses ports, so that several run on one machine.
        kind: As which message motion capture is sent to the autopilot: ODOMETRY or VISION_POSITION_ESTIMATE.
    """
    check_packages(REAL_DRONE, "flight")
    from wordwing.flight.bridge.accept.running import run_all, summarise, to_text
    from wordwing.flight.bridge.accept.trial import AcceptConfig

    check_range("instance", instance, 0, 9)
    end_by_signals()
    config = AcceptConfig(autopilot, binary, instance, out, kind)
    results = run_all(config, out / f"{autopilot}.jsonl", only, lambda text: print(text, flush=True), again=again)
    failed = [result.row for result in results if not result.holds]
    print(to_text(summarise(results)))
    print(f"{len(results) - len(failed)} of {len(results)} rows hold: {out / f'{autopilot}.jsonl'}")
    if failed:
        raise WordwingError(f"these do not hold: {', '.join(failed)}")


def ask(sentence: str, meanwhile: Callable[[], None]) -> None:
    """Show a sentence and wait for Enter; `meanwhile` is called several times a second."""
    print(sentence, flush=True)
    read = b""
    while read != b"\n":
        while not select.select([sys.stdin], [], [], 0.2)[0]:
            meanwhile()
        read = os.read(sys.stdin.fileno(), 1)  # not `readline`, which may buffer the next Enter out of `select`'s sight
        if not read:
            raise WordwingError("the check needs somebody who carries the drone and presses Enter")
