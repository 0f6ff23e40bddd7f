"""R^W: the semantic map seen through the instruction's words (paper: Grounding)."""

from __future__ import annotations

from torch import Tensor, nn

from wordwing.model.layers import filter_by_text, instance_norm, leaky


class Grounding(nn.Module):
    """K_G = W_G **u** + b_G and R^W = S^W ⊛ K_G."""

    def __init__(self, hidden: int, channels: int, outputs: int) -> None:
        super().__init__()
        self.shape = (outputs, channels)
        self.kernel = nn.Linear(hidden, outputs * channels)

    def kernels(self, instruction_embedding: Tensor) -> Tensor:
        """[N, hidden] to [N, 8, C]."""
        return self.kernel(instruction_embedding).unflatten(-1, self.shape)

    def forward(self, semantic_map: Tensor, kernels: Tensor) -> Tensor:
        """[N, C, 64, 64] to [N, 8, 64, 64]; normalised, so that the size of a kernel says nothing."""
        return instance_norm(leaky(filter_by_text(semantic_map, kernels)))
