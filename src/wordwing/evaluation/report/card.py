"""The model card of a policy that is passed on: how it was made, what was measured, what it understands, its limits."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch

from wordwing.errors import WordwingError
from wordwing.evaluation.report.labels import NOT_LEARNED
from wordwing.evaluation.report.results import automated, by_corpus, followed, gaps
from wordwing.evaluation.report.summary import summarise
from wordwing.evaluation.report.tables import render_table
from wordwing.frames import ARENA_SIZE
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.recipes.cards import MADE, how_made
from wordwing.model.checkpoint import CARD, load_network, read_card, save_network
from wordwing.world.catalogue import catalogue

HALF = torch.float16


def pack(policy: str | Path, name: str, flights: pd.DataFrame, out: Path) -> None:
    """Write a policy in half precision, with a card that says how well it flies.

    Args:
        policy: One that training made, whose card tells how.
        name: What it is called from now on, and was called when it was evaluated.
        flights: Its own, AVERAGE's and ORACLE's (`summary.flight_table`); others are left out.
        out: Folder; replaced if it holds a policy.
    """
    network, vocabulary = load_network(policy)
    made = how_made(read_card(policy))
    if not made:
        raise WordwingError(f"{policy}: its {CARD} does not tell how it was made, so it is not one of wordwing train")
    kept = flights[flights["system"].isin([name, *NOT_LEARNED])]
    if name not in set(kept["system"]):
        flown = ", ".join(sorted(flights["system"].unique())) or "nobody"
        raise WordwingError(f"the evaluations have no flight of {name}, only of {flown}; evaluate {name}={policy}")
    save_network(out, network, vocabulary, model_card(name, made, vocabulary, kept), HALF)


def model_card(name: str, made: str, vocabulary: Vocabulary, flights: pd.DataFrame) -> str:
    """The card's text, in Markdown.

    Args:
        name: Of the policy.
        made: How it was made.
        vocabulary: The words that it knows.
        flights: Its own, and those that they are compared with (`summary.flight_table`).
    """
    tables = [make(own) for own in by_corpus(summarise(flights)) for make in (automated, followed, gaps)]
    parts = [
        f"# {name}",
        "A policy of wordwing: it flies a quadcopter by instructions in plain English and sees only its own camera and "
        "a pose estimate. Its weights are in half precision.",
        f"{MADE}\n\n{made}",
        "## Measured",
        *(render_table(table, "md").strip() for table in tables if table is not None),
        f"## What it understands\n\n{_understood(vocabulary)}",
        f"## Limits\n\n{_limits()}",
    ]
    return "\n\n".join(parts) + "\n"


def _understood(vocabulary: Vocabulary) -> str:
    return _bullets(
        f"English: {len(vocabulary) - 2:,} words (vocab.txt). A word with one typing mistake is read as the word that "
        "was meant; other words it does not know, and `wordwing fly` says which.",
        "Instructions like those it was trained on, named above: one or two things to do, in order. Generated ones are "
        "made by a grammar with six voices; human ones were written by people for another task and fitted to rooms of "
        "this size. Longer texts, questions and negations are hardly among them.",
        f"{len(catalogue())} kinds of landmarks, those of wordwing's catalogue, and fences by their colour.",
    )


def _limits() -> str:
    return _bullets(
        f"Flat ground in a square of {ARENA_SIZE} m, flown {FLIGHT_HEIGHT} m above it with a camera like wordwing's. "
        "It knows no obstacles, and flies through landmarks.",
        "One training run with one seed.",
        "`lab` is a stand-in for a real cage, with another camera, light, wind and a drone that answers late. The "
        "policy has never flown a real drone.",
        "It flies somewhere whatever the instruction. The video of `wordwing fly` shows what it makes of a sentence.",
    )


def _bullets(*sentences: str) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
