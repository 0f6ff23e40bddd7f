"""`wordwing fly`: one instruction, one flight, one film."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from wordwing.commands.options import check_seed
from wordwing.world.catalogue import Corpus


def fly(
    text: Annotated[str, tyro.conf.Positional],
    /,
    layout: Path | None = None,
    corpus: Corpus | None = None,
    seed: int = 0,
    policy: str = "pvn2-sureal",
    vehicle: Literal["sim", "lab"] = "sim",
    out: Path = Path("out/fly"),
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
        vehicle: Where: the batched simulator or the lab.
        out: Folder for flight.mp4, filmstrip.png and layout.json.
    """
    from wordwing.data.schema import MAX_TEXT
    from wordwing.errors import WordwingError
    from wordwing.evaluation.demo import film_flight

    words = " ".join(text.split())
    if not words:
        raise WordwingError('the instruction is empty; try: wordwing fly "go to the barrel"')
    if len(words) > MAX_TEXT:
        raise WordwingError(f"the instruction has {len(words)} characters; {MAX_TEXT} are the most that are flown")
    film_flight(words, layout, corpus, check_seed(seed), policy, vehicle, out)
