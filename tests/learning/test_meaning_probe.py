"""The probe that is told the meaning: compared with the same gold distributions as stage 1."""

import sys
from pathlib import Path

import pytest
import torch

from wordwing.data.dataset import Source, write_dataset
from wordwing.data.generating import Chunk
from wordwing.data.tours.making import make_tours

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "meaning_probe"))
import meaning_probe
from meaning_probe import PHASES, Mixture, divergences, encoded, learn, measured


@pytest.fixture(scope="module")
def batch(tmp_path_factory) -> meaning_probe.Batch:
    made = make_tours(Chunk("tours", "dev", seed=1, first=0, count=20))
    folder = tmp_path_factory.mktemp("probe") / "tours"
    return encoded(write_dataset(folder, Source("tours", "generated", 1, "", steps=100), *made), "dev")


def test_a_mixture_of_the_path_itself_has_no_divergence_from_gold_and_no_other_has_less(batch):
    phases = batch.path.unflatten(1, (PHASES, -1))
    end = batch.path[:, -1:, None].expand(-1, 1, phases.shape[2], -1)
    shape = len(batch.counts), PHASES + 1, phases.shape[2]
    exact = Mixture(torch.zeros(shape).log_softmax(-1), torch.cat([phases, end], 1), torch.full(shape, -6.0))
    apart = divergences(exact, batch)
    assert apart.abs().max() < 0.01
    aside = divergences(exact._replace(means=exact.means + 0.3), batch)
    assert (aside > 0.5).all()
    assert (exact.likeliest()[:, PHASES] - batch.path[:, -1]).norm(dim=-1).max() < 1e-6


def test_the_probe_learns_where_few_tours_lead(batch, monkeypatch):
    monkeypatch.setattr(meaning_probe, "BATCH", 12)
    few = batch.take(torch.arange(6))
    _, apart = measured(learn(few, epochs=120, seed=0), few)
    _, untrained = measured(learn(few, epochs=0, seed=0), few)
    assert (apart.mean(0) < 0.6 * untrained.mean(0)).all()
