"""Where randomness comes from: a generator for every update, so that a resumed run goes on as if never stopped."""

from __future__ import annotations

import hashlib

import torch


def generator_of(device: torch.device, seed: int, purpose: str, number: int) -> torch.Generator:
    """A generator that depends on nothing but its arguments.

    Args:
        device: Where the numbers are needed.
        seed: Of the run.
        purpose: What they are for.
        number: Of the update.
    """
    name = f"{seed}/{purpose}/{number}".encode()
    digest = hashlib.sha256(name).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:7], "big"))
