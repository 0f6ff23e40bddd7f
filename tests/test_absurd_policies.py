"""Policies whose weights are finite and absurd: one sentence wherever they fly."""

from pathlib import Path

import pytest
import torch

from command_line import refused
from small_policy import VOCABULARY, small_network
from studio_server import RunningStudio
from wordwing.model.checkpoint import save_network
from wordwing.studio.resources import load_policies

SENTENCE = "the policy's decision makes no sense"


@pytest.fixture(scope="module", params=["everywhere", "at the end"])
def absurd(request, tmp_path_factory) -> Path:
    network = small_network(0)
    with torch.no_grad():
        if request.param == "everywhere":
            for weights in network.parameters():
                weights.copy_(torch.where(torch.rand_like(weights) < 0.5, 3e38, -3e38))
        else:
            network.stage2.network.last.weight.mul_(1e30)
    folder = tmp_path_factory.mktemp("policies") / "absurd"
    save_network(folder, network, VOCABULARY, "")
    return folder


@pytest.mark.parametrize("vehicle", ["sim", "lab"])
def test_a_flight_is_refused(absurd, vehicle, capsys, tmp_path):
    out = tmp_path / "out"
    said = refused(capsys, "fly", "go to the barrel", "--policy", str(absurd), "--vehicle", vehicle, "--out", str(out))
    assert SENTENCE in said
    assert not out.exists() or list(out.iterdir()) == []


def test_an_evaluation_is_refused(absurd, capsys, tmp_path):
    out = tmp_path / "out"
    given = ("--limit", "2", "--segments", "1", "--device", "cpu", "--out", str(out))
    assert SENTENCE in refused(capsys, "evaluate", str(absurd), *given)
    assert not (out / "summary.json").exists()


def test_the_studio_tells_the_visitor(absurd, tmp_path):
    with RunningStudio(load_policies([str(absurd)]), tmp_path) as studio, studio.page() as page:
        page.place()
        page.fly(policies=("absurd",))
        assert SENTENCE in page.until("error")["message"]
        assert page.until("state")["phase"] == "idle"
        page.place()  # and goes on
