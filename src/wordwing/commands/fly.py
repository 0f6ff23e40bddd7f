"""`wordwing fly`: one instruction, one flight, one video."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import tyro

from wordwing.commands.common import check_positive, check_seed
from wordwing.errors import WordwingError
from wordwing.flight.options import PREFIX, DroneOptions
from wordwing.world.catalogue import Corpus

if TYPE_CHECKING:
    from wordwing.world.tasks import StartPose

SHIPPED = "pvn2-sureal"
"""Who flies if nobody else is named."""

NO_DRONE = DroneOptions()


def fly(
    text: Annotated[str, tyro.conf.Positional] = "",
    /,
    layout: Path | None = None,
    corpus: Corpus | None = None,
    seed: int = 0,
    policy: str = SHIPPED,
    vehicle: str = "sim",
    replay: Path | None = None,
    start: str | None = None,
    out: Path = Path("out/fly"),
    drone: Annotated[DroneOptions, tyro.conf.arg(name="")] = NO_DRONE,
) -> None:
    """Fly one instruction and make a video of it.

    The policy reads the text, and its video shows what it thinks: what it sees, its maps, where it wants to pass
    and to stop. What is printed says clause by clause whether it did what the text means; what the rules by which texts
    are understood do not understand is not judged.

    The exit status is 0, or 2 if nothing was flown, with a sentence that says why. Over MAVLink it is 0 only if the
    policy ended the flight, or its 100 decisions were flown, and the drone then landed by our order; 3 if the flight
    ended in any other way; and 130 after Ctrl-C, which lands the drone.

    Args:
        text: What the drone is to do, in plain English.
        layout: A layout file; without one a random layout is drawn, with the landmarks that the text names.
        corpus: Which kind of random layout, and by which rules the start is drawn; by default the first of cage, field
            and house that has what the text names.
        seed: Chooses the layout and the start; the same seed gives the same flight.
        policy: Who flies: pvn2-sureal, which comes with wordwing, or a learned policy's folder; or oracle, average or
            stop, which do not read: ORACLE follows a path that is sampled among the landmarks.
        vehicle: Where: sim, the batched simulator; lab; or a drone on a wire, mavlink:udp:HOST:PORT, mavlink:tcp:… or
            mavlink:serial:DEVICE:BAUD, with --camera, --arena and --calibration (docs/flight.md).
        replay: The log of a flight over MAVLink: no new flight, but the video of that one. With images in the log it
            shows what a policy thinks of them: the one that flew, if it comes with wordwing, or that of --policy.
        start: X,Y,YAW: where the drone begins, metres from the arena's centre, x up and y left as seen from above, and
            where it looks, degrees counter-clockwise from x: --start -1,0.5,90. By default the seed chooses.
        out: Folder for flight.mp4, filmstrip.png and layout.json.
        drone: How to reach a drone over MAVLink.
    """
    from wordwing.data.schema import MAX_TEXT
    from wordwing.evaluation.demo import record_flight
    from wordwing.interface import Domain

    instruction = " ".join(text.split())
    if start is not None and (replay is not None or vehicle.startswith(PREFIX)):
        raise WordwingError("--start is for sim and lab; a drone over MAVLink starts where it stands")
    if replay is not None:
        from wordwing.flight.replay import replay as replay_log

        if instruction:
            raise WordwingError("--replay makes the video of a flight that was flown; leave the instruction out")
        replay_log(replay, out, None if policy == SHIPPED else policy)
        return
    if not instruction:
        raise WordwingError('the instruction is empty; try: wordwing fly "go to the barrel"')
    if len(instruction) > MAX_TEXT:
        raise WordwingError(
            f"the instruction has {len(instruction)} characters; {MAX_TEXT} are the most that are flown"
        )
    if vehicle.startswith(PREFIX):
        check_positive("speed", drone.speed)
        from wordwing.flight.flying import fly_drone

        fly_drone(instruction, vehicle.removeprefix(PREFIX), policy, drone, layout, out)
    elif vehicle in get_args(Domain):
        record_flight(instruction, layout, corpus, check_seed(seed), policy, cast(Domain, vehicle), out, _start(start))
    else:
        raise WordwingError(f'--vehicle is "{vehicle}"; it must be sim, lab or mavlink:URL')


def _start(text: str | None) -> StartPose | None:
    """X,Y,YAW, metres and degrees, as a start in the arena; yaw in radians."""
    if text is None:
        return None
    from wordwing.frames import ARENA_HALF
    from wordwing.world.tasks import START_MARGIN, StartPose

    try:
        x, y, degrees = (float(part) for part in text.split(","))
    except ValueError:
        raise WordwingError(f'--start is "{text}"; it must be X,Y,YAW: metres, metres and degrees') from None
    most = ARENA_HALF - START_MARGIN
    if not (abs(x) <= most and abs(y) <= most):
        raise WordwingError(f"--start is {text}; X and Y must be from -{most:g} to {most:g} m, inside the arena")
    if not abs(degrees) <= 360:
        raise WordwingError(f"--start is {text}; YAW must be from -360 to 360 degrees")
    return StartPose(x, y, math.radians(degrees))
