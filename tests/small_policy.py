"""A policy that is small enough for tests, and that does not do the same whatever happens."""

import torch

from wordwing.language.tokenizer import Vocabulary
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.model.stage1 import Stage1Config
from wordwing.model.stage2 import Stage2Config
from wordwing.model.text import TextConfig
from wordwing.model.vision import VisionConfig

VOCABULARY = Vocabulary(("<pad>", "<unk>", "go", "to", "the", "barrel", "left", "of", "café", "飞"))

CONFIG = ModelConfig(Stage1Config(VisionConfig(8), TextConfig(10, 12), LingUNetConfig(5, 8, 4, 16)))

ORDERED = ModelConfig(
    Stage1Config(VisionConfig(8), TextConfig(10, 12), LingUNetConfig(5, 8, 4, 16, attention=3), phases=4),
    Stage2Config(phases=4, history=True),
)
"""One that plans in phases, attends to words, and sees the phases one by one, and what it has done."""


def small_network(seed: int = 0, config: ModelConfig = CONFIG) -> PolicyNetwork:
    """A network whose plans and setpoints depend on all it sees and reads."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = PolicyNetwork(config, len(VOCABULARY))
        with torch.no_grad():
            network.stage2.network.last.weight.mul_(100)
            network.stage1.lingunet.up[0].second.weight.mul_(30)
    return network.eval()
