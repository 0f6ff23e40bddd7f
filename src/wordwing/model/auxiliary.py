"""Linear heads that give maps and words their meaning while training (paper: Auxiliary Objectives)."""

from __future__ import annotations

from torch import Tensor, nn

from wordwing.model.grid import START_GRID
from wordwing.model.stage1 import Stage1Config
from wordwing.world.catalogue import catalogue


class AuxiliaryHeads(nn.Module):
    """What stands here, was it spoken of, what was spoken of: read off by one linear layer each."""

    def __init__(self, config: Stage1Config) -> None:
        super().__init__()
        kinds = len(catalogue())
        self.object = nn.Linear(config.vision.channels, kinds + 1)
        self.grounding = nn.Linear(config.grounding, 2)
        self.mention = nn.Linear(config.text.hidden, kinds)

    @property
    def nothing(self) -> int:
        """The class of empty ground."""
        return self.object.out_features - 1

    def name(self, semantic_map: Tensor, points: Tensor) -> Tensor:
        """L_percept's logits: which landmark stands at points of S^W?

        Args:
            semantic_map: [N, 32, 64, 64] start frame.
            points: [N, P, 2] start frame, metres.

        Returns:
            [N, P, 90], in the catalogue's order, empty ground last.
        """
        return self.object(START_GRID.sample(semantic_map, points).mT)

    def mentioned(self, grounding_map: Tensor, points: Tensor) -> Tensor:
        """L_ground's logits [N, P, 2]: was what stands at points [N, P, 2] of R^W spoken of, no or yes?"""
        return self.grounding(START_GRID.sample(grounding_map, points).mT)

    def spoken(self, instruction_embedding: Tensor) -> Tensor:
        """L_lang's logits [N, 89]: was each kind of landmark spoken of? Above zero for yes."""
        return self.mention(instruction_embedding)
