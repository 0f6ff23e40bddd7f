"""Train the paper's ablations and a reference with the same small budget, several at once on one GPU.

Usage: python experiments/ablations/ablations.py OUT DATASET… [--names NAME…] [--lanes N] [--also NAME=VALUE…]

Each run is `wordwing train sureal --recipe gpu --synchronous --ablate NAME` in OUT/pvn2-sureal-NAME, the reference
without `--ablate` in OUT/pvn2-sureal; the output of a run goes to a file beside its folder. The processes alternate, so
that all runs have the same number of updates, however busy the GPU is. Finished runs are skipped, so the same command
resumes after an interruption. `wordwing evaluate` names the policies by their folders.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import tyro

REFERENCE = "reference"

NAMES = (
    REFERENCE,
    "no-instruction",
    "no-image",
    "no-exploration",
    "sim-only",
    "no-discriminator",
    "tenth-lab",
    "half-lab",
    "from-standing",
)
"""The most important ones come first."""

BUDGET = (
    "data.dev=250",
    "data.wordings=4",
    "supervised.executions=96",
    "supervised.cage_executions=16",
    "schedule.minutes=none",
    "schedule.warm_up=1200",
    "schedule.updates=1840",
    "schedule.iterations=80",
    "schedule.updates_per_iteration=8",
    "schedule.evaluate_every=20",
    "schedule.first_look_every=600",
    "schedule.save_seconds=900",
)
"""1,840 updates of stage 1, with half of the recipe's batch and wordings; after the first 1,200, 80 iterations of 512
flights in turns with eight updates each."""


def main(
    out: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    names: tuple[str, ...] = NAMES,
    lanes: int = 3,
    also: tuple[str, ...] = (),
    seed: int = 0,
) -> None:
    """Train the ablations.

    Args:
        out: Folder of the runs.
        data: Datasets to learn from, with their demonstrations.
        names: Which ablations.
        lanes: How many runs train at a time.
        also: Further settings, as in --set.
        seed: Of all random numbers.
    """
    settings = [f"data.corpora={','.join(map(str, data))}", *BUDGET, *also]
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(lanes) as pool:
        codes = list(pool.map(lambda name: trained(out, name, settings, seed), names))
    sys.exit(max(codes))


def trained(out: Path, name: str, settings: list[str], seed: int) -> int:
    """Train one and return the command's exit code."""
    folder = out / ("pvn2-sureal" if name == REFERENCE else f"pvn2-sureal-{name}")
    command = [sys.executable, "-m", "wordwing", "train", "sureal", "--recipe", "gpu", "--synchronous"]
    command += ["--out", str(folder), "--seed", str(seed), "--set", *settings]
    if name != REFERENCE:
        command += ["--ablate", name]
    began = time.monotonic()
    with folder.with_suffix(".log").open("a", encoding="utf-8") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    ended = "done" if code == 0 else f"exit code {code}"
    print(f"{name}: {ended}, {(time.monotonic() - began) / 60:.1f} min", flush=True)
    return code


if __name__ == "__main__":
    tyro.cli(main)
