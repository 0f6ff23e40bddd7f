"""The model card of a policy that is passed on: how it was made, what was measured, what it understands, its limits."""

from pathlib import Path

import pandas as pd
import torch

from wordwing.errors import WordwingError
from wordwing.evaluation.report.labels import NOT_LEARNED
from wordwing.evaluation.report.results import automated, by_corpus, followed, gaps
from wordwing.evaluation.report.summary import summarise
from wordwing.evaluation.report.tables import TEMPLATES, render_table
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
        raise WordwingError(f"{policy}: its {CARD} does not tell how it was made, so wordwing train did not make it")
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
    return TEMPLATES.get_template("card.md").render(
        name=name,
        heading=MADE,
        made=made,
        tables=[render_table(table, "md").strip() for table in tables if table is not None],
        words=len(vocabulary) - 2,
        landmarks=len(catalogue()),
        edge=ARENA_SIZE,
        height=FLIGHT_HEIGHT,
    )
