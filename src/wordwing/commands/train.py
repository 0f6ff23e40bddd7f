"""`wordwing train`: stage 1 alone, behaviour cloning, SuReAL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.common import check_seed

if TYPE_CHECKING:
    from wordwing.learning.recipes.config import RunConfig

Recipe = Literal["quick", "paper", "gpu"]

Ablation = Literal[
    "no-instruction",
    "no-image",
    "no-exploration",
    "no-discriminator",
    "sim-only",
    "half-lab",
    "tenth-lab",
    "gold-path-end",
    "from-standing",
    "pvn",
]

# Repeated, such an option adds to what was given before: that a first --ablate does not count would go unnoticed.
Ablations = Annotated[tuple[tuple[Ablation, ...], ...], tyro.conf.UseAppendAction]
Changes = Annotated[tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction]


def sureal(
    recipe: Recipe = "quick",
    out: Path | None = None,
    ablate: Ablations = (),
    set: Changes = (),
    start: str | None = None,
    synchronous: bool = False,
    device: str = "",
    compile: bool | None = None,
    seed: int = 0,
) -> None:
    """Learn to plan and to fly at once: stage 1 by supervised learning, stage 2 by reinforcement learning.

    Two processes share the work and exchange parameters and flights. If it is interrupted or killed, the same command
    goes on from the last checkpoint. The folder gets `best` and `policy`, the policy that flew dev instructions best
    and the last one (wordwing fly "go to the barrel" --policy OUT/best), and logs for tensorboard --logdir OUT.

    Args:
        recipe: quick: two CPU cores, a quarter of an hour, a slim network for the cage. paper: the paper's amounts of
            contexts and flights. gpu: 25 minutes of one large GPU.
        out: Folder of the run; by default out/sureal-RECIPE.
        ablate: Leave something out: no-instruction and no-image blank an input; no-exploration pays nothing for
            finding the goal; no-discriminator drops the Wasserstein loss; sim-only, half-lab and tenth-lab take none,
            50 % and 10 % of the lab's demonstrations; gold-path-end ends flights 2 m from the demonstrated path, as
            the authors' software does; from-standing begins with a policy that always stops instead of
            demonstrations in sim; pvn has no observability masks.
        set: Change settings: --set schedule.minutes=10 schedule.warm_up=2400 data.corpora=cage,house. The folder's
            run.json shows all of them.
        start: Go on from a policy, its name or folder: with your data, or for longer. Its network and its words are
            taken over, words that are new are added.
        synchronous: Both in one process, in turns; the same result every time on the CPU.
        device: "cpu" or "cuda"; by default CUDA where there is one.
        compile: Let torch compile the networks, which takes a minute or two; by default on CUDA.
        seed: Of everything random.
    """
    _train("sureal", recipe, out, ablate, set, start, device, compile, seed, synchronous)


def bc(
    recipe: Recipe = "quick",
    out: Path | None = None,
    ablate: Ablations = (),
    set: Changes = (),
    start: str | None = None,
    device: str = "",
    compile: bool | None = None,
    seed: int = 0,
) -> None:
    """Behaviour cloning: PVN2-BC, or PVN-BC with --ablate pvn.

    Stage 1 learns as in SuReAL's warm-up; then stage 2 is cloned from ORACLE's setpoints, on gold and on predicted
    distributions.

    Args:
        recipe: As in wordwing train sureal, of which only the warm-up counts.
        out: Folder of the run; by default out/bc-RECIPE.
        ablate: As in wordwing train sureal; what is about rewards and flights changes nothing here.
        set: As in wordwing train sureal; schedule.warm_up and schedule.cloning_updates are the updates of both stages,
            a quarter as many of stage 2 where the recipe has none. schedule.minutes does not end it.
        start: As in wordwing train sureal.
        device: "cpu" or "cuda"; by default CUDA where there is one.
        compile: Let torch compile the networks; by default on CUDA.
        seed: Of everything random.
    """
    _train("bc", recipe, out, ablate, set, start, device, compile, seed)


def stage1(
    recipe: Recipe = "quick",
    out: Path | None = None,
    ablate: Ablations = (),
    set: Changes = (),
    start: str | None = None,
    device: str = "",
    compile: bool | None = None,
    seed: int = 0,
) -> None:
    """Process A alone: learn to plan, not to fly.

    Args:
        recipe: As in wordwing train sureal, of which only the warm-up counts.
        out: Folder of the run; by default out/stage1-RECIPE.
        ablate: As in wordwing train sureal; what is about rewards and flights changes nothing here.
        set: As in wordwing train sureal; schedule.warm_up is the number of updates. schedule.minutes does not end it.
        start: As in wordwing train sureal.
        device: "cpu" or "cuda"; by default CUDA where there is one.
        compile: Let torch compile the networks; by default on CUDA.
        seed: Of everything random.
    """
    _train("stage1", recipe, out, ablate, (*set, ("schedule.cloning_updates=0",)), start, device, compile, seed)


def _train(
    what: str,
    recipe: Recipe,
    out: Path | None,
    ablate: Ablations,
    set: Changes,
    start: str | None,
    device: str,
    compile: bool | None,
    seed: int,
    synchronous: bool = True,
) -> None:
    """Open the folder of a run and learn, as `wordwing train WHAT` with these options does."""
    from wordwing.devices import find_device, missing_compiler
    from wordwing.learning.runtime.runs import RunSettings, opened
    from wordwing.learning.sureal import train, train_synchronously

    ablations, changes = (tuple(chain.from_iterable(given)) for given in (ablate, set))
    config = _config(what, recipe, ablations, changes, start, seed)
    where = find_device(device)
    if where.type == "cpu" and recipe != "quick":
        print(f"the recipe {recipe} is meant for a GPU, and learns far too slowly on the CPU; take --recipe quick")
    compiled = where.type == "cuda" if compile is None else compile
    if compiled and where.type == "cuda" and (missing := missing_compiler()):
        print(f"{missing}, so the networks are not compiled; learning takes about three times as long")
        compiled = False
    together = synchronous or (where.type == "cpu" and recipe == "quick")
    options = {"--recipe": [recipe], "--ablate": ablations, "--set": changes, "--start": [start] if start else []}
    typed = " ".join(chain(["wordwing train", what], *([name, *given] for name, given in options.items() if given)))
    folder = out or Path("out") / f"{what}-{recipe}"
    settings = RunSettings(folder, where, compiled, together, what, f"{typed} --seed {seed}")
    both = what == "sureal"
    with opened(settings, config) as finished:
        if finished:
            print(f"{folder}: this run is finished; another --out begins a new one")
        elif together:
            train_synchronously(settings, config, until="end" if both else "warm")
        else:
            train(settings, config)
    print(f"policies: {folder / 'best'} and {folder / 'policy'}" if both else f"policy: {folder / 'policy'}")


def _config(
    what: str, recipe: Recipe, ablations: Sequence[str], changes: Sequence[str], start: str | None, seed: int
) -> RunConfig:
    """What to learn."""
    from wordwing.learning.recipes.config import check_settings
    from wordwing.learning.recipes.presets import RECIPES, ablated, changed, check_ablations
    from wordwing.model.checkpoint import load_network

    check_ablations(ablations)
    config = replace(RECIPES[recipe](), seed=check_seed(seed))
    if start is not None:
        config = replace(config, start=start, model=load_network(start)[0].config)
    config = changed(reduce(ablated, ablations, config), changes)
    schedule = config.schedule
    if what != "sureal":  # there is nothing after the warm-up, so the schedule is as long
        schedule = replace(schedule, updates=schedule.warm_up, minutes=None)
    if what == "bc" and schedule.cloning_updates == 0:
        schedule = replace(schedule, cloning_updates=max(1, schedule.warm_up // 4))
    config = replace(config, schedule=schedule)
    check_settings(config)
    return config
