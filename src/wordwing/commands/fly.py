"""`wordwing fly`: one instruction, one flight, one film."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import tyro

from wordwing.commands.options import check_positive, check_seed
from wordwing.flight.options import PREFIX, DroneOptions
from wordwing.world.catalogue import Corpus

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
    out: Path = Path("out/fly"),
    drone: Annotated[DroneOptions, tyro.conf.arg(name="")] = NO_DRONE,
) -> None:
    """Fly one instruction and film it.

    The policy reads the text, and its film shows what it thinks: what it sees and remembers, where it wants to pass
    and to stop. What is printed says in one line whether it stopped where the text means, as far as a parser of such
    texts understands it.

    Args:
        text: What the drone is told, in plain English.
        layout: A layout file; without one a random layout is drawn, with the landmarks that the text names.
        corpus: Which kind of random layout, and by which rules the start is drawn; by default the first of cage, field
            and house that has what the text names.
        seed: Chooses the layout and the start; the same seed gives the same flight.
        policy: Who flies: pvn2-sureal, which comes with wordwing, or a learned policy's folder; or oracle, average or
            stop, which do not read: ORACLE follows a path that is sampled among the landmarks.
        vehicle: Where: sim, the batched simulator; lab; or a drone on a wire, mavlink:udp:HOST:PORT, mavlink:tcp:… or
            mavlink:serial:DEVICE:BAUD, with --camera, --arena and --calibration (docs/flight.md).
        replay: The log of a flight over MAVLink: no new flight, but the film of that one. With pictures in the log it
            shows what the policy thinks of them: the one that flew, or another --policy.
        out: Folder for flight.mp4, filmstrip.png and layout.json.
        drone: How to reach a drone over MAVLink.
    """
    from wordwing.data.schema import MAX_TEXT
    from wordwing.errors import WordwingError
    from wordwing.evaluation.demo import film_flight
    from wordwing.interface import Domain

    words = " ".join(text.split())
    if replay is not None:
        from wordwing.flight.replay import replay as film_log

        if words:
            raise WordwingError("--replay films a flight that was flown; leave the instruction out")
        film_log(replay, out, None if policy == SHIPPED else policy)
        return
    if not words:
        raise WordwingError('the instruction is empty; try: wordwing fly "go to the barrel"')
    if len(words) > MAX_TEXT:
        raise WordwingError(f"the instruction has {len(words)} characters; {MAX_TEXT} are the most that are flown")
    if vehicle.startswith(PREFIX):
        check_positive("speed", drone.speed)
        from wordwing.flight.flying import fly_drone

        fly_drone(words, vehicle.removeprefix(PREFIX), policy, drone, layout, out)
    elif vehicle in get_args(Domain):
        film_flight(words, layout, corpus, check_seed(seed), policy, cast(Domain, vehicle), out)
    else:
        raise WordwingError(f'--vehicle is "{vehicle}"; it must be sim, lab or mavlink:URL')
