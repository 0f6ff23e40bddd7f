"""Systems that can be evaluated: STOP, AVERAGE and ORACLE, and learned policies by name or folder."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from wordwing.data.dataset import Dataset
from wordwing.data.demonstrations.flying import training_mean_action
from wordwing.errors import WordwingError
from wordwing.interface import Domain, Policy
from wordwing.model.checkpoint import CONFIG, WEIGHTS, WORDS, policy_folder, shipped
from wordwing.policies.baselines import MeanAction
from wordwing.policies.loading import BASELINES, check_known, exists, load_policy
from wordwing.policies.oracle import Oracle

Say = Callable[[str], None]

RUNS_OWN = ("best", "policy")
"""What a training run calls its policies: such a policy is called after its run."""


@dataclass(frozen=True)
class System:
    """A policy under evaluation, by its name in tables."""

    name: str
    """In tables and files."""
    policy: str
    """A baseline's name, or a learned policy's name or folder."""
    fingerprint: str
    """Changes when the system does."""
    mean_action: MeanAction | None = None
    """Of AVERAGE, in the dataset that is flown."""

    @property
    def needs_images(self) -> bool:
        """Whether it needs images."""
        return self.policy not in BASELINES

    def load(self, domain: Domain, device: torch.device | str = "cpu") -> Policy:
        """Its policy, ready to fly."""
        return load_policy(self.policy, domain, device, self.mean_action)


def find_systems(
    given: Sequence[str], dataset: Dataset, device: torch.device | str = "cpu", say: Say = lambda sentence: None
) -> list[System]:
    """Find systems: "oracle", "out/sureal-quick/best", or with a name for the tables "ours=out/sureal-quick/best".

    Args:
        given: At least one.
        dataset: What they will fly, for AVERAGE's mean action.
        device: Where ORACLE flies to measure that action, if it is not known.
        say: Told that it does, which takes long.
    """
    systems: list[System] = []
    for entry in given:
        name, policy = split_name(entry)
        if name in BASELINES and policy != name:
            raise WordwingError(f'"{name}" is {name.upper()}\'s name in tables; give {policy} another: NAME=POLICY')
        system = _system(name, policy, dataset, device, say)
        if any(other.name == system.name for other in systems):
            raise WordwingError(f'two systems are called "{system.name}"; name one of them: NAME=POLICY')
        systems.append(system)
    return systems


def _system(name: str, policy: str, dataset: Dataset, device: torch.device | str, say: Say) -> System:
    if policy == "average":
        mean = training_mean_action(dataset, device, say)
        return System(name, policy, f"average {mean.forward} {mean.yaw_rate} {mean.steps}", mean)
    if policy in BASELINES:
        return System(name, policy, repr(Oracle().config) if policy == "oracle" else policy)
    check_known(policy)
    folder = policy_folder(policy)
    digest = hashlib.sha256()
    for part in (CONFIG, WEIGHTS, WORDS):
        try:
            with open(folder / part, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise WordwingError(f"{folder / part}: cannot be read ({error.strerror})") from None
    return System(name, policy if policy in shipped() else str(folder), digest.hexdigest()[:16])


def split_name(given: str) -> tuple[str, str]:
    """Name and policy of "NAME=POLICY", or of "POLICY", which is called after itself or after its run."""
    label, equals, policy = given.partition("=")
    if not equals or exists(given):
        return _name(given), given
    if not label:
        raise WordwingError(f'"{given}" has no name before "="; a system is POLICY or NAME=POLICY')
    return label, policy


def _name(policy: str) -> str:
    if policy in BASELINES or policy in shipped():
        return policy
    folder = Path(policy).resolve()
    return (folder.parent if folder.name in RUNS_OWN else folder).name
