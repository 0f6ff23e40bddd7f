"""`wordwing pack`: a policy to pass on, with its model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from wordwing.commands.progress import bar
from wordwing.errors import WordwingError


def pack(
    policy: Annotated[Path, tyro.conf.Positional],
    evaluations: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="EVALUATION ...")],
    /,
    name: str,
    out: Path | None = None,
) -> None:
    """Make a trained policy one to pass on: weights in half precision, and a model card with what was measured.

    wordwing evaluate average oracle brave=out/sureal-gpu/best --corpus cage --split dev --out out/brave-cage
    wordwing pack out/sureal-gpu/best out/brave-cage --name brave

    Args:
        policy: A policy of wordwing train: best or policy in the folder of a run.
        evaluations: Folders of wordwing evaluate in which it flew.
        name: What the policy is called, also in the evaluations.
        out: Where it goes; by default out/NAME.
    """
    if not evaluations:
        raise WordwingError("a model card needs evaluations; wordwing evaluate makes them")
    from wordwing.evaluation.episodes import count_lines
    from wordwing.evaluation.report import writing
    from wordwing.evaluation.report.card import pack as write

    given = writing.sorted_folders(evaluations)
    if given.runs:
        raise WordwingError(f"{given.runs[0]}: this is a training run; name folders of wordwing evaluate")
    with bar("measuring", sum(map(count_lines, given.evaluations)), "flights") as tick:
        scores = writing.rescore(given, tick)
    place = out or Path("out") / name
    write(policy, name, scores, place)
    print(f"policy: {place}")
