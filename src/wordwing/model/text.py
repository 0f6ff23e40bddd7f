"""From words to a vector: the instruction embedding (paper: Instruction Representation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from wordwing.errors import WordwingError
from wordwing.language.tokenizer import Vocabulary
from wordwing.language.word_vectors import word_table
from wordwing.model.layers import each

MAX_WORDS = 200
"""Longest instruction, words; the longest that people wrote has 91."""

UNKNOWN_WORD = 1
"""Index of the unknown word in every vocabulary."""


@dataclass(frozen=True)
class TextConfig:
    """Size of the instruction's network."""

    words: int = 50
    """Length of a word's embedding."""
    hidden: int = 50
    """Length of the instruction's embedding."""
    dropout: float = 0.0
    """Share of both that is dropped in training."""
    vectors: bool = False
    """Whether φ(w) = W e(w) + δ(w), where e is a table of English words; else, as in the paper, φ is learned alone."""
    offset_dropout: float = 0.3
    """Share of the words of the table whose δ is dropped in training: words without any are read by e alone."""


@dataclass(frozen=True)
class Tokens:
    """N instructions as word indices, padded to the longest."""

    words: Tensor
    """[N, W] int64."""
    lengths: Tensor
    """[N] int64, each at least 1."""
    rows: Tensor | None = None
    """[N, W] int32 rows of the table of vectors, 0 for none; None for the words of tokenizer 1."""

    @classmethod
    def encode(cls, instructions: Sequence[str], vocabulary: Vocabulary, device: torch.device | str = "cpu") -> Tokens:
        """Split texts into words and look them up."""
        texts = [vocabulary.tokenize(text) for text in instructions]
        for text in texts:  # before the slow search for typing mistakes
            if len(text) > MAX_WORDS:
                raise WordwingError(f"the instruction has {len(text)} words; {MAX_WORDS} are the most that are read")
        return cls.of(texts, vocabulary, device)

    @classmethod
    def of(
        cls,
        texts: Sequence[Sequence[str]],
        vocabulary: Vocabulary,
        device: torch.device | str = "cpu",
        kind: torch.dtype = torch.int64,
    ) -> Tokens:
        """Look the words of texts up, indices as a kind of integers; a text without words becomes one unknown word."""
        # Once for each word: typing mistakes take long to repair.
        found = {word: vocabulary.look_up(word) for word in {*chain(*texts)}}
        pairs = [torch.tensor([found[word] for word in text] or [(UNKNOWN_WORD, 0)]) for text in texts]
        both = pad_sequence(pairs, batch_first=True).to(device)  # [N, W, 2]
        rows = both[..., 1].int() if vocabulary.tokenizer > 1 else None
        return cls(both[..., 0].to(kind), torch.tensor([len(pair) for pair in pairs]).to(device), rows)

    @property
    def known(self) -> Tensor:
        """[N, W] bool, where there is a word and no padding."""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.lengths[:, None]

    def padded(self, width: int) -> Tokens:
        """The same, W at least `width`."""
        more = (0, max(0, width - self.words.shape[1]))
        return each(lambda part: functional.pad(part, more) if part.ndim == 2 else part, self)

    def blank(self) -> Tokens:
        """As many instructions of one unknown word each."""
        unknown = torch.ones_like(self.lengths)
        return Tokens(unknown[:, None], unknown)


class WordVectors(nn.Module):
    """W e(w), of words in the table that comes with wordwing; it is not saved with a policy."""

    table: Tensor
    scale: Tensor

    def __init__(self, outputs: int) -> None:
        super().__init__()
        found = word_table()
        self.register_buffer("table", torch.from_numpy(found.vectors), persistent=False)
        self.register_buffer("scale", torch.from_numpy(found.scale), persistent=False)
        self.projection = nn.Linear(len(found.scale), outputs, bias=False)
        nn.init.normal_(self.projection.weight, std=len(found.scale) ** -0.5)

    def forward(self, rows: Tensor) -> Tensor:
        """[N, W, outputs] of rows [N, W]; zero where the row is 0."""
        return self.projection(self.table[rows] * self.scale)


class InstructionEncoder(nn.Module):
    """**u** = h_l of h_i = LSTM(φ(u_i), h_{i-1})."""

    def __init__(self, config: TextConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(vocabulary_size, config.words, padding_idx=0)
        """φ of the paper, or δ."""
        self.vectors = WordVectors(config.words) if config.vectors else None
        if config.vectors:  # e says more than a random δ
            nn.init.normal_(self.words.weight, std=0.1)
            with torch.no_grad():
                self.words.weight[0].zero_()
        self.lstm = nn.LSTM(config.words, config.hidden, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        for name, weights in self.lstm.named_parameters():
            if name.startswith("weight"):
                nn.init.xavier_normal_(weights)
            else:
                nn.init.zeros_(weights)

    def embed(self, tokens: Tokens) -> Tensor:
        """φ [N, W, words]: W e(w) + δ(w), where δ is zero for words of the table that training did not have."""
        if self.vectors is None or tokens.rows is None:
            return self.words(tokens.words)
        dropped = tokens.words == UNKNOWN_WORD
        if self.training:
            dropped = dropped | (torch.rand(dropped.shape, device=dropped.device) < self.config.offset_dropout)
        offset = self.words(tokens.words.masked_fill(dropped & (tokens.rows > 0), 0))
        return self.vectors(tokens.rows) + offset

    def forward(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """**u** [N, hidden] of N instructions and their token states [N, W, hidden].

        **u** is the state of the last word: padding makes no difference. States behind the last word mean
        nothing.
        """
        states, _last = self.lstm(self.dropout(self.embed(tokens)))  # [N, W, hidden]
        last = (tokens.lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
        return self.dropout(states.gather(1, last)[:, 0]), states
