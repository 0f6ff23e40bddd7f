"""What all pages share: policies, each loaded once; worker threads; kept episodes; places for those who fly."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch

from wordwing.errors import WordwingError
from wordwing.evaluation.demo import STEPS
from wordwing.evaluation.systems import split_name
from wordwing.interface import Domain
from wordwing.model.checkpoint import read_card
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import BASELINES, load_policy
from wordwing.studio.episodes import Episodes

DEFAULT = "pvn2-sureal"
MAX_NAME = 60

MAX_FLYING = 8
"""Pages with flights under way at the same time."""

T = TypeVar("T")


@dataclass(frozen=True)
class NamedPolicy:
    """A learned policy that pages can choose."""

    name: str
    """On the page."""
    policy: str
    """Its name or folder, for `load_policy`."""
    loaded: LearnedPolicy
    """Whose network and vocabulary all flights share; it does not fly itself."""

    def instance(self, domain: Domain) -> LearnedPolicy:
        """A policy with this network and a state of its own."""
        return LearnedPolicy(self.loaded.network, self.loaded.vocabulary, domain)

    @property
    def card(self) -> str:
        """The model card, Markdown."""
        try:
            return read_card(self.policy)
        except WordwingError:
            return f"# {self.name}\n\nThere is no model card.\n"


NamedPolicies = dict[str, NamedPolicy]


def load_policies(given: Sequence[str] = (DEFAULT,)) -> NamedPolicies:
    """Load policies: "pvn2-sureal", "out/sureal/best" or, with a name for the page, "ours=out/sureal/best"."""
    policies: NamedPolicies = {}
    if not given:
        raise WordwingError(f"--policies is empty; name at least one policy, such as {DEFAULT}")
    for entry in given:
        name, policy = split_name(entry)
        if policy in BASELINES:
            raise WordwingError(f'"{policy}" does not read, so the studio cannot offer it; name a learned policy')
        if not name or len(name) > MAX_NAME or not name.isprintable() or "/" in name:
            raise WordwingError(f"{entry[:200]!r} has no name that fits a page; write NAME=POLICY")
        if name in policies:
            raise WordwingError(f'two policies are called "{name}"; name one of them: NAME=POLICY')
        loaded = load_policy(policy, "sim")
        assert isinstance(loaded, LearnedPolicy)
        policies[name] = NamedPolicy(name, policy, loaded)
    return policies


class WorkerPool:
    """One thread a core for decisions, and one thread for all that is prepared meanwhile.

    A page has at most one piece of work in the queue, which is first in, first out: so pages take turns. What is
    prepared (random layouts, overhead images, unknown words) waits in a queue of its own and holds up no flight.
    """

    def __init__(self, count: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # One thread of torch's each: eight pages on two cores get as many decisions as with two, and the last bits of
        # a flight do not depend on how many cores there are.
        one_thread = partial(torch.set_num_threads, 1)
        self._flying = ThreadPoolExecutor(count or cores, "studio-fly", one_thread)
        self._preparing = ThreadPoolExecutor(1, "studio-prepare", one_thread)

    async def fly(self, work: Callable[[], T]) -> T:
        """Do a piece of work of a flight."""
        return await asyncio.get_running_loop().run_in_executor(self._flying, work)

    async def prepare(self, work: Callable[[], T]) -> T:
        """Do anything else."""
        return await asyncio.get_running_loop().run_in_executor(self._preparing, work)

    def close(self) -> None:
        """Finish what is being done and drop the rest."""
        for pool in (self._flying, self._preparing):
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Resources:
    """What all sessions share."""

    policies: NamedPolicies
    workers: WorkerPool
    episodes: Episodes
    limit: int = MAX_FLYING
    steps: int = STEPS
    """Decisions that an instruction is given."""
    flying: int = 0
    """Pages with flights under way, but for those that have been paused for long."""
