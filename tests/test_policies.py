"""The policies that come with wordwing."""

from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from wordwing.cli import main
from wordwing.evaluation.report.labels import title
from wordwing.execution.episodes import EPISODES, read_episodes
from wordwing.execution.metrics import measure
from wordwing.language.tokenizer import UNKNOWN
from wordwing.model.checkpoint import CARD, WEIGHTS, load_network, shipped
from wordwing.policies.learned import LearnedPolicy

ROOT = Path(__file__).parent.parent
MOST = 12_000_000
"""Bytes of all of them together."""


def test_they_are_small_and_in_half_precision():
    assert list(shipped()) == ["pvn-bc", "pvn2-bc", "pvn2-sureal"]
    files = [path for folder in shipped().values() for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in files) < MOST
    for folder in shipped().values():
        with safe_open(folder / WEIGHTS, "numpy") as weights:
            assert {weights.get_tensor(name).dtype for name in weights.keys()} == {np.dtype(np.float16)}  # noqa: SIM118


@pytest.mark.parametrize("name", shipped())
def test_each_loads_by_its_name_for_both_domains(name):
    for domain in ("sim", "lab"):
        assert isinstance(LearnedPolicy.from_pretrained(name, domain), LearnedPolicy)
    _network, words = load_network(name)
    read = words.encode("turn around, pass the barrel on its left and stop in front of the boat")
    assert words.index[UNKNOWN] not in read


@pytest.mark.parametrize("name", shipped())
def test_each_has_a_card_that_tells_how_it_was_made_and_what_was_measured(name):
    card = (shipped()[name] / CARD).read_text("utf-8")
    assert card.startswith(f"# {name}\n")
    for said in (
        "- command: `wordwing train ",
        "(commit ",
        "seed 0",
        "- hardware: NVIDIA",
        " minutes",
        "- data: cage, ",
    ):
        assert said in card, said
    for said in (title(name), "AVERAGE", "ORACLE", "generated sentences", "sentences written by people", "## Limits"):
        assert said in card, said
    assert "/" not in card.partition("- command: ")[2].partition("\n")[0], "where the data lay is nobody's business"


@pytest.mark.long
def test_dev_mini_is_flown_as_the_documents_say(tmp_path):
    """On any CPU: at most one of 64 outcomes differs, and EMD by at most 1 cm."""
    main(["evaluate", "pvn2-sureal", "--corpus", "dev-mini", "--device", "cpu", "--out", str(tmp_path)])
    kept = ROOT / "results" / "dev-mini-dev-sim" / f"{EPISODES}.xz"
    told, flown = (
        {
            episode.provenance.id: measure(episode)
            for episode in read_episodes([file])
            if episode.provenance.system == "pvn2-sureal"
        }
        for file in (kept, tmp_path / EPISODES)
    )
    assert told.keys() == flown.keys()
    assert len(told) == 64
    assert sum(told[name].success != flown[name].success for name in told) <= 1
    means = [np.mean([measures.emd for measures in some.values()]) for some in (told, flown)]
    assert abs(means[0] - means[1]) <= 0.01
