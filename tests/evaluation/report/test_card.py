import re

import pandas as pd
import pytest
import torch

from command_line import refused
from small_evaluation import save_policy
from small_flights import flight
from wordwing.errors import WordwingError
from wordwing.evaluation.report.card import model_card, pack
from wordwing.evaluation.report.summary import flight_table
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.recipes.cards import MADE, MEASURED, how_made
from wordwing.model.checkpoint import CARD, load_network

TRAINED = (
    f"# A wordwing policy\n\n{MADE}\n\n- command: `wordwing train sureal`\n- seed 3\n\n{MEASURED}\n\n- dev/emd: 0.5\n"
)


@pytest.fixture
def trained(tmp_path):
    folder = save_policy(tmp_path / "best")
    (folder / CARD).write_text(TRAINED)
    return folder


def flights(system: str, hits: int, emd: float):
    return [flight(system, f"p{number}/0", number < hits, emd) for number in range(10)]


def all_flights(name: str = "brave"):
    return flight_table(flights("average", 1, 1.0) + flights("oracle", 10, 0.0) + flights(name, 7, 0.25))


def test_a_packed_policy_has_the_same_weights_to_half_precision_and_half_the_size(trained, tmp_path):
    pack(trained, "brave", all_flights(), tmp_path / "out")
    before, words = load_network(trained)
    after, kept = load_network(tmp_path / "out")
    assert kept.words == words.words
    for name, tensor in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], tensor.half().float()), name
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (trained, tmp_path / "out")]
    assert sizes[1] < 0.6 * sizes[0]


def test_the_card_tells_how_the_policy_was_made_and_how_well_it_flew(trained, tmp_path):
    others = flight_table(flights("other", 10, 0.0))
    pack(trained, "brave", pd.concat([all_flights(), others]), tmp_path / "out")
    card = (tmp_path / "out" / CARD).read_text()
    assert card.startswith("# brave\n")
    assert f"{MADE}\n\n- command: `wordwing train sureal`\n- seed 3\n\n" in card
    assert "dev/emd" not in card
    assert re.search(r"\| brave \| 10 \| 70\.0 \(", card)
    assert re.search(r"\| brave \| 67 \(", card), "from 10 % to 100 % of flights, 70 % is two thirds of the way"
    assert "other |" not in card
    assert "| AVERAGE |" in card


def test_the_card_says_how_many_words_are_known():
    card = model_card("brave", "- by hand", Vocabulary.of(["go to the barrel"], min_count=1), all_flights())
    assert "English: 4 words" in card


def test_only_what_training_made_can_be_packed(trained, tmp_path):
    (trained / CARD).write_text("# Nobody knows\n")
    with pytest.raises(WordwingError, match=r"its README.md does not tell how it was made"):
        pack(trained, "brave", all_flights(), tmp_path / "out")
    assert how_made(TRAINED) == "- command: `wordwing train sureal`\n- seed 3"
    assert not (tmp_path / "out").exists()


def test_evaluations_without_the_policy_are_refused(trained, tmp_path):
    with pytest.raises(WordwingError, match=r"no flight of brave, only of average, bold, oracle; evaluate brave="):
        pack(trained, "brave", all_flights("bold"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "a model card needs evaluations"),
        (["nowhere"], "there is no such folder"),
    ],
)
def test_mistakes_are_told_in_a_sentence(trained, tmp_path, capsys, arguments, sentence):
    options = ["--name", "brave", "--out", str(tmp_path / "out")]
    assert sentence in refused(capsys, "pack", str(trained), *arguments, *options)
