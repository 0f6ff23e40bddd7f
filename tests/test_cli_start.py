"""`wordwing train --start`: going on from a policy."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tiny_training import command
from wordwing.cli import main
from wordwing.data.dataset import Source, write_dataset
from wordwing.data.generating import Chunk, make
from wordwing.model.checkpoint import load_network

HARDLY = "supervised.learning_rate=1e-9"


def same(some: Tensor, other: Tensor) -> bool:
    return torch.allclose(some, other, atol=1e-7, rtol=0)


def written(folder: Path, name: str) -> Path:
    layouts, paragraphs = make(Chunk(name, "train", 0, 0, 8))
    return write_dataset(folder / name, Source(name, "generated", 0, "a test"), layouts, paragraphs).folder


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A cage, a field, and a policy that has been to the cage."""
    folder = tmp_path_factory.mktemp("start")
    written(folder, "field")
    main(command(written(folder, "cage"), folder / "first", what="bc"))
    return folder


def test_a_policy_that_hardly_learns_stays_as_it_is(place, tmp_path):
    start = place / "first" / "policy"
    out = tmp_path / "run"
    main([*command(place / "cage", out, HARDLY, what="stage1"), "--start", str(start)])
    (before, words), (after, others) = load_network(start), load_network(out / "policy")
    assert words == others
    weights = after.state_dict()
    assert all(same(weights[name], part) for name, part in before.state_dict().items())


def test_new_words_come_behind_those_that_are_known(place, tmp_path):
    start = place / "first" / "policy"
    out = tmp_path / "run"
    main([*command(place / "field", out, HARDLY, what="stage1"), "--start", str(start)])
    (before, words), (after, more) = load_network(start), load_network(out / "policy")
    assert len(more) > len(words) > 10
    assert more.words[: len(words)] == words.words
    assert same(after.stage1.text.words.weight[: len(words)], before.stage1.text.words.weight)
    assert same(after.stage1.text.lstm.weight_ih_l0, before.stage1.text.lstm.weight_ih_l0)
    assert (after.stage1.text.words.weight[len(words) :].abs().sum(1) > 0).all()


def test_training_goes_on_from_it_and_the_card_tells_both_lives(place, tmp_path):
    start = place / "first" / "policy"
    out = tmp_path / "run"
    main([*command(place / "field", out), "--start", str(start)])
    before, after = (load_network(folder)[0].state_dict() for folder in (start, out / "policy"))
    moved = [(after[name] - part).abs().max() for name, part in before.items() if after[name].shape == part.shape]
    assert 0 < max(moved) < 0.1  # a few small updates away, where another seed would be far away
    card = (out / "policy" / "README.md").read_text()
    first, then = card.index("- command: `wordwing train sureal"), card.index("- command: `wordwing train bc")
    assert first < card.index("### Before that") < then < card.index("## Measured")
    assert "--start policy" in card
    assert str(place) not in card


def test_a_policy_that_does_not_fit_is_refused(place, tmp_path, capsys):
    start = str(place / "first" / "policy")
    with pytest.raises(SystemExit):
        main([*command(place / "cage", tmp_path / "run", "model.stage1.vision.channels=5"), "--start", start])
    assert "its network differs from this run's" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*command(place / "cage", tmp_path / "other"), "--start", "nobody"])
    assert "nobody: this is not a policy, there is no such folder" in capsys.readouterr().err
