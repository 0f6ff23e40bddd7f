"""Gradient updates that can be repeated and that NaN cannot spoil: seeds, Adam's step, the count of skipped steps."""

import hashlib
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordwing.errors import WordwingError

MAX_SKIPPED = 50
"""So many skipped updates in a row end a run: it would not get better."""


def generator_of(device: torch.device, seed: int, purpose: str, number: int) -> torch.Generator:
    """A generator that depends on its arguments alone, so that a resumed run continues as if never interrupted.

    Args:
        device: Where the numbers are needed.
        seed: Of the run.
        purpose: What they are for.
        number: Of the update.
    """
    return torch.Generator(device).manual_seed(seed_of(seed, purpose, number))


def seed_of(seed: int, purpose: str, number: int) -> int:
    """The seed of such a generator."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{number}".encode()).digest()
    return int.from_bytes(digest[:7], "big")


def adam(
    parameters: list[nn.Parameter], rate: float, weight_decay: float = 0.0, epsilon: float = 1e-8
) -> torch.optim.Adam:
    """Adam, fused: only then can a step be skipped on the device; on CUDA it may be part of a graph."""
    device = parameters[0].device
    first = torch.tensor(rate, device=device) if device.type == "cuda" else rate
    settings: dict[str, Any] = {"weight_decay": weight_decay, "eps": epsilon, "fused": True}
    return torch.optim.Adam(parameters, first, **settings, capturable=device.type == "cuda")


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate from now on, where a graph reads it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def optimizer_step(optimizer: torch.optim.Optimizer, loss: Tensor, max_norm: float = math.inf) -> tuple[Tensor, Tensor]:
    """Take one step down a loss, unless it or its gradient is not finite; never waits for the device.

    A skipped step changes neither the parameters nor Adam's moments.

    Args:
        optimizer: From `adam`; gradients of each of its groups of parameters are clipped apart.
        loss: [].
        max_norm: Longer gradients are clipped to this.

    Returns:
        The gradient's norm [] and whether the step was skipped, [] bool.
    """
    optimizer.zero_grad()
    loss.backward()
    norms = []
    for group in optimizer.param_groups:
        norms.append(nn.utils.get_total_norm([one.grad for one in group["params"] if one.grad is not None]))
        if max_norm < math.inf:
            nn.utils.clip_grads_with_norm_(group["params"], max_norm, norms[-1])
    norm = norms[0] if len(norms) == 1 else torch.stack(norms).norm()
    skipped = ~(norm.isfinite() & loss.detach().isfinite())
    # What torch's GradScaler sets: where it is 1 the fused kernel writes nothing and takes its count of steps back.
    # Zeros for a gradient would not do: Adam would go on with its momentum.
    optimizer.found_inf = skipped.float()  # type: ignore[attr-defined]
    optimizer.step()
    optimizer.zero_grad()  # before the next loss: a CUDA graph would have to work around gradients that are still there
    return norm, skipped


class SkippedUpdates:
    """Counts, on the device, updates that were skipped because something was not a number."""

    def __init__(self, device: torch.device) -> None:
        self.total = torch.zeros((), device=device)
        """[] how many so far."""
        self._row = torch.zeros((), device=device)
        self._longest = torch.zeros((), device=device)

    def count(self, skipped: Tensor, hopeless: Tensor | None = None) -> None:
        """Count one more update.

        Args:
            skipped: [] bool, or how many if it was made of several.
            hopeless: [] bool, whether nothing was learned; by default if any was skipped.
        """
        lost = (skipped > 0) if hopeless is None else hopeless
        self.total = self.total + skipped
        self._row = (self._row + 1) * lost
        self._longest = self._longest.maximum(self._row)

    def check(self, folder: Path) -> None:
        """Raise a `WordwingError` if too many in a row were skipped; waits for the device."""
        if float(self._longest) >= MAX_SKIPPED:
            raise WordwingError(
                f"{folder}: {MAX_SKIPPED} updates in a row were skipped because their loss was not a number; "
                "a smaller learning rate may help, in another --out"
            )
