"""Combine stage 1 of one policy with stage 2 of another, to separate planning from control.

Usage: python experiments/shortcuts/mixed_stages.py PLANS FLIES OUT

Both are names or folders with the same configuration of stage 2. The result is an ordinary policy.
"""

import sys
from pathlib import Path

import torch

from wordwing.errors import WordwingError
from wordwing.model.checkpoint import load_network, save_network


def main() -> None:
    """Write the mixed policy, in half precision like those that come with wordwing."""
    plans, flies, out = sys.argv[1:]
    network, vocabulary = load_network(plans)
    other, _words = load_network(flies)
    if network.config.stage2 != other.config.stage2:
        raise WordwingError(f"stage 2 of {flies} is not of the kind that {plans} has")
    network.stage2.load_state_dict(other.stage2.state_dict())
    save_network(Path(out), network, vocabulary, f"Stage 1 of {plans}, stage 2 of {flies}\n", torch.float16)


if __name__ == "__main__":
    main()
