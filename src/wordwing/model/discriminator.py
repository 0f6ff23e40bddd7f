"""The discriminator h between image features of the two domains (paper: Discriminator Architecture and Training).

It is trained to be high for `sim` and low for `lab`, the vision encoders of both domains to make it fail.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from wordwing.model.layers import leaky


@dataclass(frozen=True)
class DiscriminatorConfig:
    """How the discriminator is kept Lipschitz continuous."""

    clamp: float = 0.01
    """Weights are clamped to ± this after every update, as in the paper; 0 does not clamp them."""
    gradient_penalty: float = 0.0
    """Weight of the gradient penalty (WGAN-GP), the later alternative."""


class Discriminator(nn.Module):
    """Four convolutions and a linear layer."""

    def __init__(self, config: DiscriminatorConfig, channels: int = 32) -> None:
        super().__init__()
        self.config = config
        widths = [channels, 8, 16, 16, 32]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inputs, outputs, kernel_size=4, stride=2, padding=1, bias=False)
            for inputs, outputs in pairwise(widths)
        )
        self.last = nn.Linear(2 * widths[-1], 1)  # 18×32 features are 1×2 after four halvings

    def forward(self, image_features: Tensor) -> Tensor:
        """F^C [N, 32, 18, 32] to scores [N]."""
        for layer in self.convolutions:
            image_features = leaky(layer(image_features), 0.2)
        return self.last(image_features.flatten(1))[:, 0]

    @torch.no_grad()
    def clamp_weights(self) -> None:
        """Bring every weight into [-c, c], so that h is K-Lipschitz for some K."""
        if self.config.clamp:
            parameters: list[Tensor] = list(self.parameters())
            torch._foreach_clamp_min_(parameters, -self.config.clamp)
            torch._foreach_clamp_max_(parameters, self.config.clamp)

    def penalty(self, sim: Tensor, lab: Tensor) -> Tensor:
        """E[(‖∇h‖ − 1)²] at random points between features of both domains [N, 32, 18, 32]; not yet weighted."""
        share = torch.rand(len(sim), 1, 1, 1, device=sim.device)
        between = (share * sim.detach() + (1 - share) * lab.detach()).requires_grad_()
        [slope] = torch.autograd.grad(self(between).sum(), between, create_graph=True)
        return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def wasserstein(discriminator: Discriminator, sim: Tensor, lab: Tensor) -> Tensor:
    """L_W: mean score of `sim` features minus mean score of `lab` features; N may differ."""
    scores = discriminator(torch.cat([sim, lab])).float()  # one launch instead of two
    return scores[: len(sim)].mean() - scores[len(sim) :].mean()
