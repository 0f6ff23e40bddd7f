"""Training runs of a few seconds, and how they are looked at and killed."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from interrupting import wait_for
from wordwing.data.dataset import DERIVED, Dataset
from wordwing.data.demonstrations.archive import Demonstrations, Header, encode
from wordwing.data.demonstrations.flying import fly_sim
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.recipes.presets import ablated, changed, quick
from wordwing.learning.runtime.checkpoints import is_saved, load_state
from wordwing.learning.runtime.runs import RunSettings

TINY = (
    "data.segments=1",
    "data.limit=8",
    "data.lab=none",
    "data.dev=2",
    "model.stage1.vision.channels=4",
    "model.stage1.text.words=4",
    "model.stage1.text.hidden=8",
    "model.stage1.lingunet.channels=4",
    "model.stage1.lingunet.filtered=4",
    "model.stage1.lingunet.last=4",
    "supervised.executions=2",
    "supervised.contexts.images=2",
    "supervised.cage_executions=2",
    "supervised.discriminator_updates=2",
    "supervised.discriminator_images=3",
    "reinforcement.flights=4",
    "reinforcement.worlds=2",
    "reinforcement.ppo.updates=2",
    "model.stage2.first_stop=-2",
    "model.stop_threshold=0.1",
    "schedule.warm_up=2",
    "schedule.cloning_updates=1",
    "schedule.iterations=2",
    "schedule.updates_per_iteration=1",
    "schedule.send_every=1",
    "schedule.log_every=1",
    "schedule.save_seconds=0",
)
"""A slim network, eight instructions, a few updates, a checkpoint after each; it stops at once when it is evaluated."""


def tiny(cage: Path, *more: str, ablate: tuple[str, ...] = ()) -> RunConfig:
    """All settings of a tiny run."""
    config = changed(quick(), (f"data.corpora={cage}", *TINY))
    for name in ablate:
        config = ablated(config, name)
    return changed(config, more)


def here(folder: Path, command: str = "sureal") -> RunSettings:
    """A run in this process, on the CPU."""
    return RunSettings(folder, torch.device("cpu"), command=command)


def command(cage: Path, out: Path, *more: str, what: str = "sureal", recipe: str = "quick") -> list[str]:
    """The command line of a tiny run; recipes but quick have two processes."""
    settings = (f"data.corpora={cage}", *TINY, *more)
    return ["train", what, "--recipe", recipe, "--device", "cpu", "--out", str(out), "--set", *settings]


def begin(arguments: list[str], script: Path | None = None) -> subprocess.Popen[str]:
    """Run a command, or a script that does, beside this process."""
    start = ["-m", "wordwing"] if script is None else [str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *start, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment)


def end(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, str, str]:
    """Wait for a command: its status, and what it wrote to stdout and stderr; it must end by itself."""
    try:
        out, error = process.communicate(timeout=seconds)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out, error


def with_lab(cage: Path, folder: Path) -> Path:
    """A copy of a cage with ten lab flights of its first instructions, whose pictures are noise.

    As in the real set, half of the paragraphs and a tenth of them have names.
    """
    shutil.copytree(cage, folder)
    dataset = Dataset(folder)
    paragraphs = list(dataset.paragraphs("train"))[:5]
    singles = [single for paragraph in paragraphs for single in list(paragraph.instructions((1,)))[:2]]
    flown = fly_sim(dataset, singles)
    rng = np.random.default_rng(0)
    pictures = [encode(rng.integers(0, 256, (72, 128, 3), np.uint8), 50) for _row in flown.rows]
    names = [paragraph.id for paragraph in paragraphs]
    subsets = {"half": names[:3], "tenth": names[:1]}
    header = Header("lab", dataset.name, dataset.fingerprint, "train", dataset.steps, 0, 50, subsets)
    Demonstrations(
        header,
        flown.ids,
        flown.decisions,
        flown.stopped,
        flown.rows,
        flown.rests,
        sizes=np.array([len(picture) for picture in pictures], np.int32),
        pictures=np.frombuffer(b"".join(pictures), np.uint8),
    ).save(folder / DERIVED / "lab-train.npz")
    return folder


def learned(state: Path) -> dict[str, Tensor]:
    """All tensors of a checkpoint."""
    return load_state(state)[0]


def same(some: dict[str, Tensor], others: dict[str, Tensor]) -> bool:
    """Whether two checkpoints are the same to the last bit."""
    return some.keys() == others.keys() and all(torch.equal(some[name], others[name]) for name in some)


def children(parent: int) -> dict[int, str]:
    """Process ids and command lines of a process's living children."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                # The name in brackets may hold anything; after it come the state and the parent.
                state, above = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, ValueError):
                continue
            if int(above) == parent and state != "Z":
                found[int(entry.name)] = line
    return found


def is_alive(process: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(process: int) -> None:
    """SIGKILL, even if it has just ended."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


COUNTERS = ("updates", "cloned", "merged", "iterations", "evaluated")


def counters(folder: Path) -> dict[str, int]:
    """How far the checkpoints of a run are; each that is there must load."""
    found = {}
    for name in ("state", "state-a", "state-b"):
        if is_saved(folder / name):
            meta = load_state(folder / name)[1]
            parts = [meta["a"], meta["b"]] if name == "state" else [meta]
            for part in parts:
                found |= {key: part[key] for key in COUNTERS if key in part}
    return found


def no_less(before: dict[str, int], after: dict[str, int]) -> bool:
    """Whether nothing was lost."""
    return all(after[key] >= value for key, value in before.items())


def two(cage: Path, out: Path, *more: str) -> list[str]:
    """The command of a tiny run with two processes."""
    return command(cage, out, *more, recipe="paper")


def pair(process: subprocess.Popen[str]) -> list[int]:
    """Process A and Process B, the older one first, once both are there."""

    def workers():
        return [child for child, line in children(process.pid).items() if "spawn_main" in line]

    assert wait_for(lambda: len(workers()) == 2 or process.poll() is not None, 180)
    born = {child: int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19]) for child in workers()}
    return sorted(born, key=lambda child: (born[child], child))
