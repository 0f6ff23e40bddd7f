"""What a text says that a policy does not know, or a layout does not have; and layouts that have it."""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import get_args

import numpy as np

from wordwing.language.parser.reference_resolution import mentions
from wordwing.language.parser.spelling import correction, plain, words_of
from wordwing.language.tokenizer import Tokenizer, Vocabulary, normalize, token_spans, tokenize
from wordwing.world.catalogue import Corpus, landmarks
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import StartPose, Task, sample_task_in

CORPORA: tuple[Corpus, ...] = ("cage", "field", "house")
"""The smallest world first: it is the one that all policies know."""

assert set(CORPORA) == set(get_args(Corpus))


@dataclass(frozen=True)
class WordIssue:
    """A word that is no word to a policy, or not the one that was typed."""

    word: str
    """As `tokenize` has it."""
    begin: int
    end: int
    """Characters of the text; the end is not included."""
    meant: str | None = None
    """What it is read as; None where it means nothing to the policy."""


def word_issues(text: str, vocabulary: Vocabulary) -> list[WordIssue]:
    """The unknown and the misspelt words of a text, in order.

    Some misspellings are in the vocabulary, because training texts had them ("teh"); others are read as the nearest
    known word ("stopp"). Both come with the word that is meant.
    """
    found = []
    for word, begin, end in word_spans(text, vocabulary.tokenizer):
        read = vocabulary.repair(word)
        meant = (correction(read) or read) if read in vocabulary or vocabulary.row(read) else None
        if meant != word:
            found.append(WordIssue(word, begin, end, meant))
    return found


def unknown_words(marked: Sequence[WordIssue]) -> list[str]:
    """Words that mean nothing to a policy, each once."""
    return list(dict.fromkeys(mark.word for mark in marked if mark.meant is None))


def misspellings(marked: Sequence[WordIssue]) -> list[str]:
    """Misspelt words with what they are read as, each once: "stopp → stop"."""
    return list(dict.fromkeys(f"{mark.word} → {mark.meant}" for mark in marked if mark.meant is not None))


def word_spans(text: str, tokenizer: Tokenizer = 1) -> list[tuple[str, int, int]]:
    """The words of a text as `tokenize` has them, and where each stands: [begin, end) of the text.

    A character that becomes several words ("½") stands for each of them.
    """
    starts = [place for place, letter in enumerate(text) if place == 0 or not unicodedata.combining(letter)]
    spelled = [
        (letter, start, stop)
        for start, stop in pairwise([*starts, len(text)])  # a character with the accents behind it
        for letter in normalize(text[start:stop], tokenizer)
    ]
    found = token_spans("".join(letter for letter, _start, _stop in spelled), tokenizer)
    words = [(word, spelled[begin][1], spelled[end - 1][2]) for word, begin, end in found]
    if [word for word, _begin, _end in words] == tokenize(text, tokenizer):
        return words
    # Scripts in which letters change with their neighbours: then all words between two spaces share a place.
    return [(word, *chunk.span()) for chunk in re.finditer(r"\S+", text) for word in tokenize(chunk[0], tokenizer)]


@dataclass(frozen=True)
class MissingLandmarks:
    """What is spoken of and not there."""

    names: tuple[str, ...] = ()
    """As they were typed, in order, each once."""
    worlds: tuple[Corpus, ...] = ()
    """Kinds of worlds that have all that the text names; () where nothing is missing, or no kind has all."""


def missing_landmarks(text: str, layout: Layout) -> MissingLandmarks:
    """What a text names that does not stand in a layout.

    Only what some landmark is called counts: a word that is no name at all is an unknown word, and a policy whose
    training texts had it may still do something sensible.
    """
    text = plain(text)
    words = words_of(text, layout)
    names: dict[str, None] = {}
    fitting = set(CORPORA)
    for mention in mentions(words, layout):
        worlds = _worlds(mention.phrase)
        if mention.pronoun or not worlds:
            continue
        fitting &= worlds
        if not mention.candidates:
            names[" ".join(text[words[mention.first].start : words[mention.last].stop].split())] = None
    return MissingLandmarks(tuple(names), tuple(corpus for corpus in CORPORA if names and corpus in fitting))


@lru_cache(maxsize=4096)
def _worlds(phrase: tuple[str, ...]) -> frozenset[Corpus]:
    """Kinds of worlds that have something that is called so."""
    called = "the " + " ".join(phrase)  # the article makes a single word a name
    return frozenset(corpus for corpus in CORPORA if named_landmarks(called, corpus))


def missing_sentence(text: str, layout: Layout) -> str | None:
    """What is missing and what is there instead, before anybody flies; None where nothing is missing."""
    missing = missing_landmarks(text, layout)
    if not missing.names:
        return None
    called = " or ".join(f'"{name}"' for name in missing.names)
    there = ", ".join(dict.fromkeys(entry.kind.nouns[0] for entry in layout.landmarks)) or "nothing"
    return f"nothing in the layout is called {called}; what stands there: {there}"


def named_landmarks(instruction: str, corpus: Corpus) -> Sequence[str]:
    """Names of a corpus's landmarks that an instruction speaks of, in order, each once."""
    layout = catalogue_layout(corpus)
    named = [mention.candidates[:1] for mention in mentions(words_of(instruction, layout), layout)]
    return list(dict.fromkeys(layout.landmarks[one].name for some in named for one in some if isinstance(one, int)))


def catalogue_layout(corpus: Corpus) -> Layout:
    """One of each landmark of a corpus, in rows: to look names up in, not to fly in."""
    kinds = landmarks(corpus)
    edge = math.ceil(math.sqrt(len(kinds)))
    return Layout(
        tuple(Placement(kind.name, place // edge * 1.0, place % edge * 1.0, 0.0) for place, kind in enumerate(kinds))
    )


def sample_named_task(
    instruction: str, corpus: Corpus | None, rng: np.random.Generator, start: StartPose | None = None
) -> tuple[Corpus, Task]:
    """A start in a random layout with the landmarks that an instruction names, as far as there are such.

    Args:
        instruction: In plain English.
        corpus: Which kind of world; by default the first of cage, field and house that has most of what is named.
        rng: Source of catalogue_layout random.
        start: Where the drone begins; by default where a random walk does.
    """
    found = {name: named_landmarks(instruction, name) for name in (CORPORA if corpus is None else (corpus,))}
    chosen = max(found, key=lambda name: len(found[name]))  # of equals the first
    return chosen, sample_task_in(sample_layout(chosen, rng, found[chosen]), chosen, rng, start)
