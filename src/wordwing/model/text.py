"""From words to a vector: the instruction embedding (paper: Instruction Representation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from wordwing.errors import WordwingError
from wordwing.language.tokenizer import UNKNOWN, Vocabulary, tokenize

MAX_WORDS = 200
"""Longest instruction, words; the longest that people wrote has 91."""


@dataclass(frozen=True)
class TextConfig:
    """Size of the instruction's network."""

    words: int = 50
    """Length of a word's embedding."""
    hidden: int = 50
    """Length of the instruction's embedding."""
    dropout: float = 0.0
    """Share of both that is dropped in training."""


@dataclass(frozen=True)
class Tokens:
    """N instructions as word indices, padded to the longest."""

    words: Tensor
    """[N, W] int64."""
    lengths: Tensor
    """[N] int64, each at least 1."""

    @classmethod
    def encode(cls, instructions: Sequence[str], vocabulary: Vocabulary, device: torch.device | str = "cpu") -> Tokens:
        """Look words up; a text without any becomes one unknown word."""
        for text in instructions:  # before the slow search for typing mistakes
            if (count := len(tokenize(text))) > MAX_WORDS:
                raise WordwingError(f"the instruction has {count} words; {MAX_WORDS} are the most that are read")
        return cls.of([vocabulary.encode(text) or [vocabulary.index[UNKNOWN]] for text in instructions], device)

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], device: torch.device | str, kind: torch.dtype = torch.int64) -> Tokens:
        """Word indices of each text, as a kind of integers."""
        words = pad_sequence([torch.tensor(row, dtype=kind) for row in rows], batch_first=True)
        return cls(words.to(device), torch.tensor([len(row) for row in rows]).to(device))

    @property
    def known(self) -> Tensor:
        """[N, W] bool, where there is a word and no padding."""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.lengths[:, None]

    def padded(self, width: int) -> Tokens:
        """The same, W at least `width`."""
        return Tokens(functional.pad(self.words, (0, max(0, width - self.words.shape[1]))), self.lengths)

    def blank(self) -> Tokens:
        """As many instructions of one unknown word each."""
        unknown = torch.ones_like(self.lengths)
        return Tokens(unknown[:, None], unknown)


class InstructionEncoder(nn.Module):
    """**u** = h_l of h_i = LSTM(φ(u_i), h_{i-1})."""

    def __init__(self, config: TextConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary_size, config.words, padding_idx=0)
        self.lstm = nn.LSTM(config.words, config.hidden, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        for name, weights in self.lstm.named_parameters():
            if name.startswith("weight"):
                nn.init.xavier_normal_(weights)
            else:
                nn.init.zeros_(weights)

    def forward(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """**u** [N, hidden] of N instructions and their token states [N, W, hidden].

        **u** is the state of the last word: padding makes no difference. States behind the last word mean
        nothing.
        """
        states, _last = self.lstm(self.dropout(self.words(tokens.words)))  # [N, W, hidden]
        last = (tokens.lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
        return self.dropout(states.gather(1, last)[:, 0]), states
