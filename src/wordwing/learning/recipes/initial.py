"""The network that a run starts with: a new one, or that of a policy, for other data or for longer training."""

import torch

from wordwing.errors import WordwingError
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.training_data import TrainingData
from wordwing.model.checkpoint import WORDS, load_network, policy_folder
from wordwing.model.policy import PolicyNetwork

EMBEDDING = "stage1.text.words.weight"
"""A row for each word."""


def initial_vocabulary(config: RunConfig) -> Vocabulary | None:
    """The vocabulary of the policy that a run starts from."""
    return None if config.start is None else Vocabulary.load(policy_folder(config.start) / WORDS)


def new_network(config: RunConfig, data: TrainingData, device: torch.device) -> PolicyNetwork:
    """The network that a run starts with; the same for the same seed."""
    torch.manual_seed(config.seed)
    network = PolicyNetwork(config.model, len(data.vocabulary))
    if config.start is not None:
        load_weights(network, config.start)
    return network.to(device)


def load_weights(network: PolicyNetwork, policy: str) -> None:
    """Load a policy's weights; words that it does not know come behind its own, and are still to be learned.

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
            f"{policy}: its network differs from this run's ({unfit[0]} does not fit), so the run cannot start from it"
        )
    network.load_state_dict(weights)
