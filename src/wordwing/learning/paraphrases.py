"""Paraphrases of training instructions, and instructions for mirrored flights.

A network that sees an instruction often enough memorises it instead of learning to read. Of generated
instructions the meaning is known, so the writer can put each into words again; people's are what they are. And every
instruction has a mirror image, written by a person or not.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction, Paragraph, Segment
from wordwing.language.tokenizer import Vocabulary, mirrored
from wordwing.language.writing.tour_writer import TourWriter, Visitor
from wordwing.language.writing.writer import Persona, Writer
from wordwing.learning.training_data import DataConfig, Say, TrainingData, kinds_among
from wordwing.model.layers import each
from wordwing.model.text import Tokens
from wordwing.world.layout import Layout
from wordwing.world.tasks import StartPose


@dataclass(frozen=True)
class Paraphrases:
    """M texts of N instructions, those of one instruction in a row, the first as it stands in the dataset."""

    tokens: Tokens
    """[M], words as int16."""
    mirrored: Tokens
    """[M] of the mirrored flights."""
    mentioned: Tensor
    """[M, 89] bool, kinds of landmarks that the words are aligned with."""
    first: Tensor
    """[N] int64, where those of each instruction begin."""
    count: Tensor
    """[N] int64, how many there are."""

    def draw(self, example: Tensor, mirrored: Tensor, generator: torch.Generator) -> tuple[Tokens, Tensor]:
        """Draw one text for each of some instructions.

        Args:
            example: [E] int64.
            mirrored: [E] bool.
            generator: Of the choice.

        Returns:
            Tokens [E], and the landmarks that they are aligned with, [E, 89] bool.
        """
        share = torch.rand(len(example), device=example.device, generator=generator)
        row = self.first[example] + (share * self.count[example]).long()

        def either(theirs: Tensor, mine: Tensor) -> Tensor:
            return torch.where(mirrored.view(-1, *[1] * (mine.ndim - 1)), theirs[row], mine[row])

        tokens: Tokens = each(either, self.mirrored, self.tokens)
        return replace(tokens, words=tokens.words.long()), self.mentioned[row]


def paraphrase(
    datasets: Sequence[Dataset],
    instructions: Sequence[Sequence[Instruction]],
    vocabulary: Vocabulary,
    device: torch.device | str = "cpu",
    wordings: int = 1,
    seed: int = 0,
) -> Paraphrases:
    """Paraphrase training instructions.

    Args:
        datasets: Where they are from.
        instructions: Those of each dataset.
        vocabulary: The words that are known.
        device: Where the result goes.
        wordings: Texts of each instruction whose meaning is known.
        seed: Of the writer.
    """
    words: list[list[str]] = []
    mentioned: list[Collection[str]] = []
    counts: list[int] = []
    for number, (dataset, part) in enumerate(zip(datasets, instructions, strict=True)):
        others = _reworded(dataset, wordings - 1, np.random.default_rng([seed, number])) if wordings > 1 else {}
        for one in part:
            texts = [one.segment.instruction, *others.get(one.id, ())]
            counts.append(len(texts))
            for text in texts:
                words.append(vocabulary.tokenize(text))
                mentioned.append(dataset.alignment.mentioned(text))
    count = torch.tensor(counts, device=device)
    # Together, so that they are as wide: "counter clockwise" has one word more than "clockwise".
    both = _encoded([*words, *map(mirrored, words)], vocabulary, device)
    return Paraphrases(
        tokens=each(lambda tensor: tensor[: len(words)], both),
        mirrored=each(lambda tensor: tensor[len(words) :], both),
        mentioned=kinds_among(mentioned).to(device),
        first=count.cumsum(0) - count,
        count=count,
    )


def training_paraphrases(
    data: TrainingData, config: DataConfig, mirrored: bool, say: Say = lambda sentence: None
) -> Paraphrases | None:
    """Paraphrases of the examples, or None where a run has none; mirrored flights have instructions of their own."""
    if config.wordings == 1 and not mirrored:
        return None
    say("paraphrasing instructions")
    datasets, device = data.datasets, data.examples.device
    return paraphrase(datasets, data.training, data.vocabulary, device, config.wordings, config.seed)


def _reworded(dataset: Dataset, others: int, rng: np.random.Generator) -> dict[str, list[str]]:
    """Other texts for the training instructions of a dataset, by id; none where meanings are not known."""
    found: dict[str, list[str]] = {}
    for paragraph in dataset.paragraphs("train"):
        meanings = [segment.meaning for segment in paragraph.segments]
        if paragraph.windows is not None or not all(meanings):
            continue
        layout = dataset.layout(paragraph.layout)
        if dataset.name == "tours":
            written = [[_visitor(layout, segment, rng) for segment in paragraph.segments] for _ in range(others)]
        else:
            written = []  # [others][segments], each row by one person
            for _ in range(others):
                writer = Writer(layout, Persona.sample(rng), training=True, rng=rng)
                written.append([writer.word(meaning) for meaning in meanings if meaning])
        for name, span in _spans(paragraph):
            found[name] = [" ".join(row[span]) for row in written]
    return found


def _visitor(layout: Layout, tour: Segment, rng: np.random.Generator) -> str:
    """What another visitor says of a tour."""
    start = StartPose(*tour.start_xy, tour.start_yaw)
    return TourWriter(layout, Visitor.sample(rng), training=True, rng=rng, start=start).word(tour.meaning or ())


def _spans(paragraph: Paragraph) -> list[tuple[str, slice]]:
    """Ids of a paragraph's instructions, and which segments each has."""
    places = {one.id: one.id.rpartition("/")[2].split("-") for one in paragraph.instructions()}
    return [(name, slice(int(place[0]), int(place[-1]) + 1)) for name, place in places.items()]


def _encoded(words: Sequence[Sequence[str]], vocabulary: Vocabulary, device: torch.device | str) -> Tokens:
    """Texts as indices that fit into two bytes; a text without words becomes one unknown word."""
    if len(vocabulary) > torch.iinfo(torch.int16).max:
        raise ValueError(f"{len(vocabulary)} words are too many for two bytes")
    return Tokens.of(words, vocabulary, device, torch.int16)
