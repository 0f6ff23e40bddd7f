"""What Process A and Process B have in common: where they work, what they count, how they are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from wordwing.errors import WordwingError
from wordwing.learning.runtime.config import RunConfig
from wordwing.learning.runtime.messages import Link
from wordwing.learning.runtime.starting import begin_with
from wordwing.learning.training_data import Material, Say
from wordwing.model.policy import PolicyNetwork

Tensors = dict[str, Tensor]

HOPELESS = 50
"""So many updates in a row that had to be left out end a run: it would not get better."""


@dataclass(frozen=True)
class Place:
    """Where a process works."""

    folder: Path
    device: torch.device
    link: Link
    compiled: bool = False
    say: Say = lambda sentence: None
    command: str = "wordwing train sureal"
    """That was typed."""
    breakable: Callable[[], AbstractContextManager[None]] = nullcontext
    """Around work that may be broken off, because it changes nothing that is saved."""


class Clock:
    """Seconds that a process has worked, over all of its lives."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """So far."""
        return self._before + time.monotonic() - self._since

    def go_on(self, seconds: float) -> None:
        """Go on from a saved time."""
        self._before, self._since = seconds, time.monotonic()


class Meter:
    """How fast counts grow, over the last while."""

    def __init__(self) -> None:
        self._at, self._count = time.monotonic(), 0.0
        self.rate = 0.0

    def read(self, count: float) -> float:
        """Counts a second since it was last read."""
        now = time.monotonic()
        if now > self._at:
            self.rate = (count - self._count) / (now - self._at)
        self._at, self._count = now, count
        return self.rate

    def go_on(self, count: float) -> None:
        """Begin anew from a saved count, which says nothing about how fast it was reached."""
        self._at, self._count = time.monotonic(), count


class Skips:
    """Updates that were left out because something was not a number; counted on the device, where nobody waits."""

    def __init__(self, device: torch.device) -> None:
        self._total = torch.zeros((), device=device)
        self._row = torch.zeros((), device=device)
        self._longest = torch.zeros((), device=device)

    def count(self, skipped: Tensor, hopeless: Tensor | None = None) -> None:
        """One more update.

        Args:
            skipped: [] bool, or how many if it was made of several.
            hopeless: [] bool, whether nothing was learned; by default if any was left out.
        """
        lost = (skipped > 0) if hopeless is None else hopeless
        self._total = self._total + skipped
        self._row = (self._row + 1) * lost
        self._longest = self._longest.maximum(self._row)

    @property
    def total(self) -> Tensor:
        """[] how many so far."""
        return self._total

    def go_on(self, total: float) -> None:
        """Go on from a saved total."""
        self._total = torch.full_like(self._total, total)

    def check(self, folder: Path) -> None:
        """Raise a `WordwingError` if there were so many in a row that there is no hope; waits for the device."""
        if float(self._longest) >= HOPELESS:
            raise WordwingError(
                f"{folder}: {HOPELESS} updates in a row were left out because their loss was not a number; "
                "a smaller learning rate may help, in another --out"
            )


def new_network(config: RunConfig, material: Material, device: torch.device) -> PolicyNetwork:
    """A network to begin with; the same for the same seed."""
    torch.manual_seed(config.seed)
    network = PolicyNetwork(config.model, len(material.vocabulary))
    if config.start is not None:
        begin_with(network, config.start)
    return network.to(device)


def module_tensors(modules: Mapping[str, nn.Module]) -> Tensors:
    """What modules have learned, under their names."""
    return {
        f"{name}.{key}": tensor.detach()
        for name, module in modules.items()
        for key, tensor in module.state_dict().items()
    }


def restore_modules(modules: Mapping[str, nn.Module], tensors: Tensors) -> None:
    """Give modules back what `module_tensors` took, found among any other tensors."""
    for name, module in modules.items():
        found = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
        try:
            module.load_state_dict(found)
        except RuntimeError:
            raise WordwingError(f"the saved state is of another network: its {name} does not fit") from None
