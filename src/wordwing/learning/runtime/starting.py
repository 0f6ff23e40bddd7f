"""Going on from a policy: its network, its words and what it has learned, for other data or for longer."""

from __future__ import annotations

import torch

from wordwing.errors import WordwingError
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.runtime.config import RunConfig
from wordwing.model.checkpoint import load_network
from wordwing.model.policy import PolicyNetwork

EMBEDDING = "stage1.text.words.weight"
"""A row for each word."""


def known_words(config: RunConfig) -> Vocabulary | None:
    """The words of the policy that a run goes on from."""
    return None if config.start is None else load_network(config.start)[1]


def begin_with(network: PolicyNetwork, policy: str) -> None:
    """Take a policy's weights over; words that it does not know come behind its own, and are still to be learned.

    Args:
        network: Of a run whose vocabulary begins with the policy's.
        policy: Its name or folder.
    """
    weights, own = load_network(policy)[0].state_dict(), network.state_dict()
    known, rows = weights[EMBEDDING], own[EMBEDDING]
    if known.shape[1] == rows.shape[1]:
        weights[EMBEDDING] = torch.cat([known, rows[len(known) :]])
    shapes, others = ({name: part.shape for name, part in parts.items()} for parts in (own, weights))
    unfit = sorted(name for name in shapes | others if shapes.get(name) != others.get(name))
    if unfit:
        raise WordwingError(
            f"{policy}: its network is not this run's, which therefore cannot begin with it ({unfit[0]} does not fit)"
        )
    network.load_state_dict(weights)
