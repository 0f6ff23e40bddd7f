"""What a text names that does not stand in a layout, and in which kinds of worlds all that it names can stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from wordwing.evaluation.staging import CORPORA, spoken_of
from wordwing.language.reference import mentions
from wordwing.language.spelling import plain, words_of
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout


@dataclass(frozen=True)
class Absent:
    """What is spoken of and not there."""

    names: tuple[str, ...] = ()
    """As they were typed, in order, each once."""
    worlds: tuple[Corpus, ...] = ()
    """Kinds of worlds that have all that the text names; () where nothing is absent, or no kind has all."""


def absent(text: str, layout: Layout) -> Absent:
    """What a text names that does not stand in a layout.

    Only what some landmark is called counts: a word that is no name at all is an unknown word, and a policy that has
    heard of it may still do something sensible.
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
    return Absent(tuple(names), tuple(corpus for corpus in CORPORA if names and corpus in fitting))


@lru_cache(maxsize=4096)
def _worlds(phrase: tuple[str, ...]) -> frozenset[Corpus]:
    """Kinds of worlds that have something that is called so."""
    called = "the " + " ".join(phrase)  # the article makes a single word a name
    return frozenset(corpus for corpus in CORPORA if spoken_of(called, corpus))
