"""Map cells that attend to words: each takes from the instruction what matters where it is.

The paper reads an instruction into one vector **u**, of which every text kernel is a linear function. Here a cell asks
with what the map shows there and where it lies, and every word of the instruction answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from wordwing.model.layers import quieten

HEADS, WIDTH = 4, 16
"""Questions that each cell asks at once, and the length of each."""


@dataclass(frozen=True)
class Words:
    """What N instructions of up to W words answer; computed once for a flight."""

    levels: tuple[Tensor, ...]
    """[N, W, 2, heads, width] keys and values, for each level that attends, from fine to coarse."""
    known: Tensor
    """[N, W] bool, whether there is such a word."""


class WordAttention(nn.Module):
    """ATTEND: multi-head attention from the cells of a map to the words of an instruction."""

    def __init__(self, channels: int, hidden: int, cells: int) -> None:
        """Build a layer.

        Args:
            channels: Of the map.
            hidden: Length of a token's state.
            cells: Along an edge of the map.
        """
        super().__init__()
        self.place = nn.Parameter(torch.zeros(cells * cells, channels))
        """Learned, since words such as "left" and "behind you" name places of the start frame."""
        self.norm = nn.LayerNorm(channels)
        self.query = nn.Linear(channels, HEADS * WIDTH)
        # An untrained LSTM whispers; without the norm all words would be heeded alike for a long time.
        self.words = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 2 * HEADS * WIDTH))
        self.last = nn.Linear(HEADS * WIDTH, channels)
        quieten(self.last)  # an untrained layer hardly changes the map

    def keys_and_values(self, states: Tensor) -> Tensor:
        """Token states [N, W, hidden] to [N, W, 2, heads, width]."""
        return self.words(states).unflatten(-1, (2, HEADS, WIDTH))

    def attend(self, features: Tensor, keys: Tensor, known: Tensor) -> Tensor:
        """How much each cell of maps [N, C, S, S] heeds each word: [N, heads, S · S, W], of sum 1 over the words.

        Args:
            features: The maps.
            keys: [N, W, heads, width].
            known: [N, W] bool.
        """
        cells = self.norm(features.flatten(2).mT + self.place)  # [N, S · S, C]
        queries = self.query(cells).unflatten(-1, (HEADS, WIDTH))
        scores = torch.einsum("nshd,nwhd->nhsw", queries, keys) * WIDTH**-0.5
        return scores.float().masked_fill(~known[:, None, None], -torch.inf).softmax(-1)

    def forward(self, features: Tensor, words: Tensor, known: Tensor) -> Tensor:
        """What maps [N, C, S, S] take from words [N, W, 2, heads, width], `known` [N, W]: [N, C, S, S]."""
        keys, values = words.unbind(2)
        shares = self.attend(features, keys, known).to(values.dtype)
        heard = torch.einsum("nhsw,nwhd->nshd", shares, values).flatten(2)
        return self.last(heard).mT.unflatten(-1, features.shape[2:])
