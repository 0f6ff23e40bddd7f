"""`wordwing bench model`: its figures add up, and are those of the network that flies."""

import json
import warnings
from functools import partial

import pytest
import torch

from wordwing.bench import model as cost
from wordwing.bench.model import PartMeter, RandomContexts, costs, flying, parts_of, step, training
from wordwing.cli import main
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.model.stage1 import Stage1Config


@pytest.fixture(scope="module")
def network() -> PolicyNetwork:
    torch.manual_seed(0)
    return PolicyNetwork(ModelConfig(), cost.VOCABULARY).eval()


def test_the_parts_cost_what_can_be_counted_by_hand(network):
    """A 3×3 convolution costs 9 multiply-accumulates for each pixel, input and output channel."""
    found = costs(network)
    stem = 9 * 72 * 128 * 3 * 32
    blocks = [(72, 36), (36, 36), (36, 18), (18, 18), (18, 18), (18, 18)]  # rows in and out; 16 columns for 9 rows
    vision = stem + sum(9 * 32 * 32 * (rows * rows + out * out) * 16 // 9 for rows, out in blocks)
    assert found["vision"] == (111_872, vision)
    assert found["text"] == (2080 * 50 + 4 * 50 * (50 + 50 + 2), cost.WORDS * 4 * 50 * (50 + 50))
    assert found["grounding kernels"] == (51 * 256, 50 * 256)
    assert found["grounding"] == (0, 64 * 64 * 32 * 8)
    assert found["LingUNet kernels 1"] == (51 * 24 * 48, 50 * 24 * 48)
    assert found["LingUNet down 1"] == (9 * 40 * (40 + 48) + 40 + 48, 9 * 32 * 32 * 40 * (40 + 48))
    assert found["LingUNet up 2"] == (9 * 48 * (72 + 48) + 96, 9 * 48 * (16 * 16 * 72 + 32 * 32 * 48))
    assert found["LingUNet filters"] == (0, 48 * 24 * (32**2 + 16**2 + 8**2 + 4**2) + 48 * 48 * 2**2)
    assert found["mapping"] == (0, 4 * 64 * 64 * 32)
    assert found["ego view"] == (0, 4 * 96 * 96 * 4)


def test_the_wide_lingunet_costs_what_the_authors_does():
    found = costs(
        PolicyNetwork(ModelConfig(Stage1Config(lingunet=LingUNetConfig.wide(), grounding=3)), cost.VOCABULARY)
    )
    working = [name for name in found if name.startswith("LingUNet") and "kernels" not in name]
    assert round(sum(found[name][1] for name in working) / 1e6) == 713
    assert round(found["LingUNet up 2"][1] / 1e6) == 646
    assert round(found["vision"][1] / 1e6) == 215


def test_a_watched_step_is_the_step_that_flies(network):
    contexts = RandomContexts.of(2)
    with torch.no_grad():
        state = network.begin(contexts.tokens, contexts.start)
        expected, beliefs = network(state, contexts.image, contexts.pose, "sim")
        controls = []
        hook = network.stage2.register_forward_hook(lambda module, inputs, control: controls.append(control))
        found = step(network, state, contexts, PartMeter(lambda: 0))
        hook.remove()
    assert torch.equal(found.map.features, expected.map.features)
    assert torch.equal(found.observed, expected.observed)
    assert torch.equal(controls[0].mean, beliefs.control.mean)


def test_a_meter_charges_the_innermost_part():
    clock = iter([0, 1, 3, 7, 15, 20, 30, 31])
    meter = PartMeter(lambda: next(clock))
    with meter.part("outer"):  # from 0 to 20
        with meter.part("inner"):  # from 1 to 3
            pass
        with meter.part("inner"):  # from 7 to 15
            pass
    with meter.part("other"):  # from 30 to 31
        pass
    assert meter.spent == {"outer": 1 + 4 + 5, "inner": 2 + 8, "other": 1}


def test_a_watched_network_is_left_without_hooks(network):
    with PartMeter(lambda: 0).watching(parts_of(network)):
        assert network.stage2._forward_hooks
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


def test_flying_and_training_compile_to_one_graph_each(network):
    from torch._dynamo.testing import CompileCounterWithBackend

    contexts = RandomContexts.of(1)
    for work in (flying, training):
        torch.compiler.reset()
        counter = CompileCounterWithBackend("eager")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = work(network, contexts, partial(torch.compile, fullgraph=True, dynamic=False, backend=counter))
            for _call in range(3):
                call()
        assert counter.frame_count == 1


def test_training_lowers_the_loss(network):
    torch.manual_seed(1)
    contexts = RandomContexts.of(2)

    def loss() -> float:
        with torch.no_grad():
            return cost.objective(network, network.begin(contexts.tokens, contexts.start), contexts).item()

    before = loss()
    train = training(network, contexts, lambda function: function)
    for _step in range(4):
        train()
    assert loss() < before - 0.01


def test_the_command_prints_json_lines_whose_parts_sum_to_the_whole(capsys, monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setattr(cost, "THREADS", 1)  # two that wait for each other are slow where other tests run too
    main(["bench", "model", "--device", "cpu", "--batch", "2", "--seconds", "0.01"])
    assert torch.get_num_threads() == threads
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for lingunet in ("default", "wide"):
        mine = [row for row in rows if row["lingunet"] == lingunet]
        costs_of = [row for row in mine if row["figure"] == "multiply-accumulates"]
        for per in ("flight", "step"):
            [whole] = [row["value"] for row in costs_of if row["part"] == "all" and row["per"] == per]
            assert whole == sum(row["value"] for row in costs_of if row["part"] != "all" and row["per"] == per)
        [parameters] = [row["value"] for row in mine if row["figure"] == "parameters"]
        assert parameters == sum(row.get("parameters", 0) for row in costs_of)
        shares = [row["value"] for row in mine if row["figure"] == "share of a step"]
        assert sum(shares) == pytest.approx(1, abs=0.01)
        timed = [row for row in mine if row["figure"] in {"forward contexts/s", "training contexts/s"}]
        assert [(row["batch"], row["precision"], row["compiled"]) for row in timed] == [(2, "float32", False)] * 2
        [step_time] = [row for row in mine if row["figure"] == "ms for a step, median"]
        assert 1 < step_time["value"] <= step_time["p90"]
        assert step_time["steps"] >= 5
        assert all("one core of" in row["device"] for row in [step_time, *timed])


def test_a_batch_that_does_not_fit_is_said_and_skipped(capsys, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(cost, "rate_of", full)
    monkeypatch.setattr(cost, "THREADS", 1)
    main(["bench", "model", "--device", "cpu", "--batch", "1", "--seconds", "0.01"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["figure"] for row in rows if "take a smaller --batch" in row.get("skipped", "")] == [
        "forward contexts/s",
        "training contexts/s",
    ] * 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--batch", "-1"], "--batch is -1; it must be from 1 to 65536"),
        (["--batch", "1000000"], "--batch is 1000000; it must be from 1 to 65536"),
        (["--seconds", "0"], "--seconds is 0.0; it must be more than 0"),
        (["--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (["--device", "gpu"], 'no device is called "gpu"'),
    ],
)
def test_options_that_make_no_sense_are_refused(capsys, arguments, sentence):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "model", *arguments])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
