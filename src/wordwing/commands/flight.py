"""`wordwing flight`: what stands around a real flight."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wordwing.errors import WordwingError

EXTRA = "flying a real drone needs packages that are not installed; run: pip install 'wordwing[flight]'"


def check(
    url: Annotated[str, tyro.conf.Positional],
    /,
    arena: Path = Path("arena.json"),
    stand: float = 0.1,
    inset: float = 0.3,
    write: bool = False,
    sign: Path | None = None,
) -> None:
    """Check that the arena is where the autopilot thinks it is.

    Carry the disarmed drone to the centre of the arena and to two of its corners, as you are told, and press Enter at
    each. Nothing is armed and no motor turns. A place that is off by more than 0.1 m, or a nose that is off by more
    than 10 degrees, is an error.

    Args:
        url: How to reach the autopilot: udp:127.0.0.1:14550, udpin:0.0.0.0:14550, tcp:HOST:PORT or
            serial:/dev/ttyACM0:921600.
        arena: Where the arena lies.
        stand: Height of the autopilot above the floor when the drone stands on it, metres.
        inset: How far the drone's centre is from both fences in a corner, metres.
        write: Save the arena that fits what was found best, in --arena.
        sign: A file with a key of 64 hexadecimal digits for MAVLink 2 signing.
    """
    _need()
    from wordwing.flight.arena import Arena
    from wordwing.flight.checking import MavlinkDrone, compare, fitted, places, table, visit, wrong
    from wordwing.flight.clock import SystemClock
    from wordwing.flight.link import open_link
    from wordwing.flight.messages import Codec
    from wordwing.flight.signing import UNITS, read_key, signing_time

    if not 0 <= stand <= 1:
        raise WordwingError(f"--stand is {stand}; it must be from 0 to 1 m")
    if not 0 <= inset <= 1:
        raise WordwingError(f"--inset is {inset}; it must be from 0 to 1 m")
    known = None if write and not arena.exists() else Arena.load(arena)
    key = None if sign is None else read_key(sign)
    codec = Codec(stream=url.startswith(("tcp:", "serial:")), key=key, signed_at=signing_time() / UNITS)
    link = open_link(url)
    try:
        drone = MavlinkDrone(link, SystemClock(), codec)
        drone.connect()
        visited = visit(drone, places(inset), lambda sentence: ask(sentence, drone.idle), print)
    finally:
        link.close()
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
) -> None:
    """Send poses from motion capture to an autopilot, until Ctrl-C.

    A pose that is old, broken or the same as the one before is dropped, never repeated. It needs a link of its own: the
    one that `wordwing fly` uses belongs to it alone.

    Args:
        source: udp:HOST:PORT (listens for JSON), file:PATH (JSON lines) or motioncapture:TYPE:HOST (vicon, optitrack,
            …).
        url: How to reach the autopilot: udp:127.0.0.1:14551, tcp:HOST:PORT or serial:/dev/ttyUSB0:921600.
        kind: As which message: ODOMETRY or VISION_POSITION_ESTIMATE.
        rate: Poses a second at most; autopilots want 30 to 50.
        body: The drone's rigid body in the motion-capture system.
        y_up: Whether y is up in the motion-capture system's frame, as is OptiTrack's custom, not z.
        origin: Where on Earth the room is, LATITUDE,LONGITUDE or LATITUDE,LONGITUDE,ALTITUDE: ArduPilot without GPS
            must be told before it knows where it is in the room.
    """
    _need()
    from wordwing.flight.clock import SystemClock
    from wordwing.flight.link import open_link
    from wordwing.flight.mocap import LEAST_RATE, MOST_RATE, Relay, relay
    from wordwing.flight.mocap_sources import open_source
    from wordwing.flight.origin import Origin

    if not LEAST_RATE <= rate <= MOST_RATE:
        raise WordwingError(f"--rate is {rate}; autopilots want {LEAST_RATE:.0f} to {MOST_RATE:.0f} poses a second")
    room = None if origin is None else Origin.read(origin)
    clock = SystemClock()
    poses = open_source(source, clock, body)
    link = open_link(url)
    try:
        chosen = Relay(kind, rate, y_up=y_up)
        relay(poses, link, chosen, clock, lambda sentence: print(sentence, flush=True), origin=room)
        if link.lost is not None:
            raise WordwingError(f"the link to {url} was lost ({link.lost})")
    finally:
        poses.close()
        link.close()


def ask(sentence: str, meanwhile: Callable[[], None]) -> None:
    """Show a sentence and wait for Enter; `meanwhile` is called several times a second."""
    print(sentence, flush=True)
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        meanwhile()
    if not sys.stdin.readline():
        raise WordwingError("the check needs somebody who carries the drone and presses Enter")


def _need() -> None:
    try:
        import pymavlink  # noqa: F401
    except ImportError:
        raise WordwingError(EXTRA) from None
