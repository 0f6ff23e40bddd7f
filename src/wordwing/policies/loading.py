"""How a name becomes a policy: a baseline, a shipped policy, or a folder that holds one."""

from collections.abc import Callable
from pathlib import Path

import torch

from wordwing.errors import WordwingError, did_you_mean
from wordwing.interface import Domain, Policy
from wordwing.model.checkpoint import shipped
from wordwing.policies.baselines import MEAN_ACTIONS, Average, MeanAction, Stop
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.oracle import Oracle

BASELINES = ("stop", "average", "oracle")
"""Policies that neither learn nor read the instruction."""


def load_policy(
    name: str, domain: Domain, device: torch.device | str = "cpu", mean_action: MeanAction | None = None
) -> Policy:
    """Load a baseline by its name, or a learned policy by its name or folder.

    Args:
        name: Of a baseline or of a shipped policy, or a folder.
        domain: Which camera its images come from.
        device: Where it is computed.
        mean_action: AVERAGE's constants; by default the cage's.
    """
    baselines: dict[str, Callable[[], Policy]] = {
        "stop": Stop,
        "average": lambda: Average(*(mean_action or MEAN_ACTIONS["cage"])),
        "oracle": Oracle,
    }
    if name in baselines:
        return baselines[name]()
    check_known(name)
    return LearnedPolicy.from_pretrained(name, domain, device)


def check_known(name: str) -> None:
    """Raise a `WordwingError` if a name is neither a policy's nor a folder's."""
    known = [*BASELINES, *shipped()]
    if name not in known and not exists(name):
        raise WordwingError(
            f'no policy is called "{name}", and there is no such folder{did_you_mean(name, known)}'
            f" (known: {', '.join(known)})"
        )


def exists(path: str) -> bool:
    """Whether there is such a file or folder; a name that no file can have does not exist."""
    try:
        return bool(path) and Path(path).exists()
    except OSError:  # a name that is too long, a folder that others may not enter
        return False
