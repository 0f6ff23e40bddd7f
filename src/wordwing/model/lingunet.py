"""LingUNet: a U-Net whose skips are filtered by the instruction (paper: LingUNet and Visitation Distributions).

    F_k = CONV^D_k(F_{k-1})                                     k = 1 … L, half the size each
    G_k = F_k ⊛ K_k,   K_k = W_k **u** + b_k                     1×1 filters computed from the text
    H_k = UPSCALE(CONV^U_k([H_{k+1}, G_k])),   H_{L+1} nothing   twice the size each
    h   = AVGPOOL(CONV^h(H_2))                                  the score of what has not been observed

With `LingUNetConfig.attention` the cells of the coarsest maps also attend to the words, which the paper has not:

    F_k ← F_k + ATTEND_k(F_k, h_1 … h_l)                        before the text kernels filter it

The scores are (H_1, h). Each CONV is two 3×3 convolutions. In the authors' software nine tenths of the cost are H_2,
256 channels wide; `LingUNetConfig.wide` has it, and the default is as wide there as everywhere else (docs/results.md
compares them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wordwing.model.grid import START_GRID
from wordwing.model.layers import (
    channels_last,
    convolution,
    convolve,
    filter_by_text,
    instance_norm,
    leaky,
    mean_convolution,
    shrink_init,
    single_precision,
    twice_as_large,
)
from wordwing.model.visitation import Scores

HEADS, WIDTH = 4, 16
"""Attention heads, and the length of a query."""


@dataclass(frozen=True)
class TokenKeys:
    """Keys and values of N instructions of up to W tokens; computed once for each flight."""

    levels: tuple[Tensor, ...]
    """[N, W, 2, heads, width] keys and values, for each level that attends, from fine to coarse."""
    known: Tensor
    """[N, W] bool, where there is a token and no padding."""


class WordAttention(nn.Module):
    """ATTEND: multi-head attention from the cells of a map to the tokens of an instruction."""

    def __init__(self, channels: int, hidden: int, cells: int) -> None:
        """Build a layer.

        Args:
            channels: Of the map.
            hidden: Length of a token's state.
            cells: Along an edge of the map.
        """
        super().__init__()
        self.place = nn.Parameter(torch.zeros(cells * cells, channels))
        """Learned position encoding: words such as "left" and "behind you" refer to the start frame."""
        self.norm = nn.LayerNorm(channels)
        self.query = nn.Linear(channels, HEADS * WIDTH)
        # The states of an untrained LSTM are small; without the norm attention would stay uniform for a long time.
        self.words = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 2 * HEADS * WIDTH))
        self.last = nn.Linear(HEADS * WIDTH, channels)
        shrink_init(self.last)  # an untrained layer hardly changes the map

    def keys_and_values(self, states: Tensor) -> Tensor:
        """Token states [N, W, hidden] to [N, W, 2, heads, width]."""
        return self.words(states).unflatten(-1, (2, HEADS, WIDTH))

    def attend(self, features: Tensor, keys: Tensor, known: Tensor) -> Tensor:
        """Attention of the cells of maps [N, C, S, S] to tokens: [N, heads, S · S, W], of sum 1 over the tokens.

        Args:
            features: The maps.
            keys: [N, W, heads, width].
            known: [N, W] bool.
        """
        cells = self.norm(features.flatten(2).mT + self.place)  # [N, S · S, C]
        queries = self.query(cells).unflatten(-1, (HEADS, WIDTH))
        scores = torch.einsum("nshd,nwhd->nhsw", queries, keys) * WIDTH**-0.5
        return scores.float().masked_fill(~known[:, None, None], -torch.inf).softmax(-1)

    def forward(self, features: Tensor, tokens: Tensor, known: Tensor) -> Tensor:
        """Attend from maps [N, C, S, S] to tokens [N, W, 2, heads, width], `known` [N, W]: [N, C, S, S]."""
        keys, values = tokens.unbind(2)
        attention = self.attend(features, keys, known).to(values.dtype)
        attended = torch.einsum("nhsw,nwhd->nshd", attention, values).flatten(2)
        return self.last(attended).mT.unflatten(-1, features.shape[2:])


@dataclass(frozen=True)
class LingUNetConfig:
    """Depth and width."""

    levels: int = 5
    """L."""
    channels: int = 48
    """Of every F_k and H_k but two: H_1 is the output, H_2 has `last`."""
    filtered: int = 24
    """Channels of G_k below level L, where it is as wide as F_k."""
    last: int = 48
    """Channels of H_2."""
    attention: int = 0
    """How many of the coarsest levels attend to the tokens; none in the paper."""

    @classmethod
    def wide(cls) -> LingUNetConfig:
        """The authors' width at the end."""
        return cls(last=256)


class Down(nn.Module):
    """CONV^D: two convolutions, the first with stride 2."""

    def __init__(self, inputs: int, outputs: int, *, norm: bool) -> None:
        super().__init__()
        self.first = convolution(inputs, inputs, stride=2)
        self.second = convolution(inputs, outputs)
        self.norm = norm

    def forward(self, features: Tensor) -> Tensor:
        """[N, inputs, S, S] to [N, outputs, S / 2, S / 2]."""
        found = leaky(self.second(leaky(self.first(features))))
        return instance_norm(found) if self.norm else found


class Up(nn.Module):
    """UPSCALE(CONV^U): a convolution, twice the size, another convolution."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = convolution(inputs, outputs)
        self.second = convolution(outputs, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """[N, inputs, S, S] to [N, outputs, 2S, 2S]."""
        return convolve(self.second, twice_as_large(leaky(convolve(self.first, features))))


class UnobservedHead(nn.Module):
    """h = AVGPOOL(CONV^h(H_2)): one score for each distribution."""

    def __init__(self, inputs: int, outputs: int = 2) -> None:
        super().__init__()
        self.first = convolution(inputs, 16, stride=2)
        self.second = convolution(16, outputs, stride=2)
        # Some 400 cells are in view at first, so p_oob starts near a half instead of near zero.
        shrink_init(self.second, bias=6.0)

    def forward(self, features: Tensor) -> Tensor:
        """[N, inputs, 32, 32] to [N, outputs], in single precision: around 6, bf16 has steps of 0.03."""
        hidden = leaky(self.first(features)).float()
        with single_precision(features.device):
            return mean_convolution(self.second, hidden)


class LingUNet(nn.Module):
    """Scores of all cells and of p_oob, from maps and an instruction."""

    def __init__(self, config: LingUNetConfig, inputs: int, hidden: int, *, unobserved: bool, outputs: int = 2) -> None:
        """Build the network.

        Args:
            config: Depth and width.
            inputs: Channels of F_0.
            hidden: Length of the instruction embedding.
            unobserved: Whether there is the head for p_oob, as in PVN2.
            outputs: Number of distributions: the phases of the trajectory, and the goal.
        """
        super().__init__()
        levels, width = range(1, config.levels + 1), config.channels
        top = config.levels
        self.filtered = {k: width if k == top else config.filtered for k in levels}
        self.outputs = {k: {1: outputs, 2: config.last}.get(k, width) for k in levels}
        # Level L has 2×2 cells, too few for a mean and a variance.
        self.down = nn.ModuleList(Down(inputs if k == 1 else width, width, norm=k < top) for k in levels)
        self.kernel = nn.ModuleList(nn.Linear(hidden, self.filtered[k] * width) for k in levels)
        above = {k: 0 if k == top else self.outputs[k + 1] for k in levels}
        self.up = nn.ModuleList(Up(above[k] + self.filtered[k], self.outputs[k]) for k in levels)
        shrink_init(self.up[0].second)  # type: ignore[arg-type]
        self.head = UnobservedHead(self.outputs[2], outputs) if unobserved else None
        self.attention = nn.ModuleList(
            WordAttention(width, hidden, START_GRID.cells >> k) for k in levels if k > top - config.attention
        )

    def kernels(self, instruction_embedding: Tensor) -> list[Tensor]:
        """K_1 … K_L of N instructions [N, hidden]: [N, filtered, channels] each."""
        return [
            linear(instruction_embedding).unflatten(-1, (self.filtered[k], -1))
            for k, linear in enumerate(self.kernel, start=1)
        ]

    def token_keys(self, states: Tensor, known: Tensor) -> TokenKeys | None:
        """Keys and values of token states [N, W, hidden] for the attending levels; `known` [N, W] bool, no padding."""
        if not self.attention:
            return None
        levels = tuple(layer.keys_and_values(states) for layer in self.attention)  # type: ignore[operator]
        return TokenKeys(levels, known)

    def forward(self, maps: Tensor, kernels: Sequence[Tensor], tokens: TokenKeys | None = None) -> Scores:
        """Maps F_0 [N, inputs, 64, 64], kernels and, where levels attend to them, tokens to scores."""
        skips = []
        features = channels_last(maps)
        first = len(self.down) - len(self.attention)  # below it levels do not attend
        for number, (down, kernel) in enumerate(zip(self.down, kernels, strict=True)):
            features = down(features)
            if tokens is not None and number >= first:
                attend, level = self.attention[number - first], tokens.levels[number - first]
                features = features + attend(features, level, tokens.known)
            skips.append(filter_by_text(features, kernel))
        top = len(skips)
        found = self.up[top - 1](skips[top - 1])  # H_L
        unobserved = None
        for k in range(top - 1, 0, -1):
            found = leaky(found) if k + 1 == top else instance_norm(leaky(found))
            if k == 1 and self.head is not None:
                unobserved = self.head(found)
            found = self.up[k - 1](channels_last(torch.cat([found, instance_norm(skips[k - 1])], dim=1)))
        return Scores(found, unobserved)
