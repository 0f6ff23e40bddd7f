"""Flying a shared link again and filming it: the process behind `videos`, with the link on its standard input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from wordwing.evaluation.demo import STEPS
from wordwing.execution.runner import SETTLE_STEPS
from wordwing.files import replacing
from wordwing.language.out_of_vocabulary import marks
from wordwing.studio.crew import Crew, load_crew
from wordwing.studio.live import LiveFlight
from wordwing.studio.messages import Link, read_link
from wordwing.viz.animation import MAP_SIZE, write_video
from wordwing.viz.overhead import overheads
from wordwing.viz.thinking import thinking_frames

NICE = 15
"""How much this process gives way to the flights of visitors."""


def film(
    link: Link,
    members: Crew,
    out: Path,
    steps: int = STEPS,
    tell: Callable[[float], None] = lambda share: None,
) -> None:
    """Write the film of a link: its policies one after another, each with all texts.

    Args:
        link: What is flown.
        members: Who flies, by name.
        out: An MP4 file, written whole or not at all.
        steps: Decisions that an instruction is given.
        tell: Told how much is done, from 0 to 1.
    """
    with replacing(out) as temporary:
        write_video(film_frames(link, members, steps, tell), temporary)


def film_frames(
    link: Link, members: Crew, steps: int = STEPS, tell: Callable[[float], None] = lambda share: None
) -> Iterator[Image.Image]:
    """The frames of a film; no more than one instruction's pictures are in memory."""
    overhead = overheads([link.start.layout], MAP_SIZE)[0]
    parts = [(name, text) for name in link.policies for text in link.texts]
    live = None
    for number, (name, text) in enumerate(parts):
        if live is None or number % len(link.texts) == 0:
            live = LiveFlight(link.start, max_steps=steps, keep=True)
        done = _part(number, len(parts), tell)
        policy = members[name].wear(link.start.vehicle)
        live.begin(text, policy, name)
        while live.flying:
            live.advance()
            done(0.3 * live.step / (steps + SETTLE_STEPS))
        flight = live.executions[-1]
        marked = marks(text, policy.vocabulary)
        threshold = policy.network.config.stop_threshold
        heading = f"{name} in {link.start.vehicle}"
        for index, frame in enumerate(thinking_frames(flight, np.asarray(overhead), heading, marked, threshold)):
            yield frame
            done(0.3 + 0.7 * (index + 1) / len(flight.positions))


def _part(number: int, count: int, tell: Callable[[float], None]) -> Callable[[float], None]:
    return lambda share: tell((number + min(share, 1.0)) / count)


def main() -> None:
    """Read a request, make the film, write how far it is line by line."""
    os.nice(NICE)
    torch.set_num_threads(1)
    request = json.loads(sys.stdin.read())
    out = Path(request.pop("out"))
    given = request.pop("policies")
    steps = request.pop("steps")
    members = load_crew(list({name: f"{name}={policy}" for name, policy in given}.values()))
    names = [name for name, _policy in given]
    film(read_link(json.dumps({**request, "policies": names}), members), members, out, steps, tell)


def tell(share: float) -> None:
    """One line for whoever waits."""
    print(f"{share:.3f}", flush=True)


if __name__ == "__main__":
    main()
