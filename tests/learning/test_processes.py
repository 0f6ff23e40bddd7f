import re
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from tiny_training import learned, same, tiny
from wordwing.errors import WordwingError
from wordwing.learning.algorithm1 import ProcessA
from wordwing.learning.algorithm2 import ProcessB
from wordwing.learning.runtime import updates as runtime_updates, worker
from wordwing.learning.runtime.checkpoints import load_state, save_state
from wordwing.learning.runtime.logs import read_scalars
from wordwing.learning.runtime.messages import DirectLink, FolderLink, Parameters
from wordwing.learning.runtime.updates import MAX_SKIPPED, SkippedUpdates
from wordwing.learning.runtime.worker import RunContext
from wordwing.learning.training_data import load_training_data
from wordwing.model.checkpoint import load_network
from wordwing.policies.learned import LearnedPolicy

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def config(run):
    return tiny(run.data.datasets[0].folder, "schedule.first_look_every=2", "schedule.iterations=4")


@pytest.fixture(scope="module")
def data(config):
    return load_training_data(config.data, CPU)


@pytest.fixture
def pair(config, data, tmp_path):
    """Both processes, in one folder."""
    context = RunContext(tmp_path, CPU, DirectLink())
    return ProcessA(context, config, data), ProcessB(context, config, data)


def copy(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def moved(module, before):
    """Whether anything in a module is not as it was."""
    return any(not torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def updates(a: ProcessA, count: int) -> None:
    for _update in range(count):
        a.step()


def poison(a: ProcessA, when) -> None:
    """Make what an update of Process A is asked for nonsense, for the updates that `when` says."""
    draw = a.supervised.source.draw

    def drawn(generator):
        contexts = draw(generator)
        if not when(a.supervised.updates):
            return contexts
        return replace(contexts, examples=replace(contexts.examples, points=contexts.examples.points * torch.nan))

    a.supervised.source.draw = drawn


def test_time_includes_earlier_sessions_and_rates_count_from_the_last_measurement(pair, monkeypatch):
    a, _b = pair
    start = time.monotonic()
    monkeypatch.setattr(worker.time, "monotonic", lambda: start + now[0])
    now = [7.0]
    state = a.state()
    before = a.seconds
    now[0] = 9.0
    assert a.seconds == pytest.approx(before + 2)
    a.supervised.updates = 10
    now[0] = 10.0
    a.measure_rate()
    a.supervised.updates = 40
    now[0] = 12.0
    assert a.measure_rate() == pytest.approx(15 * a.supervised.contexts_per_update)
    a.restore(state[0], state[1] | {"seconds": 50.0, "updates": 1_000_000})
    now[0] = 15.0
    assert a.seconds == pytest.approx(53)
    a.supervised.updates += 6
    assert a.measure_rate() == pytest.approx(2 * a.supervised.contexts_per_update), (
        "what was done before does not count"
    )


def test_a_state_of_the_first_version_is_restored_by_its_old_names(pair):
    _a, b = pair
    tensors, counters = b.state()
    old = {"stage1_version": "heard", "warm_up_seconds": "began", "evaluated": "examined", "dev_metrics": "marks"}
    values = {"stage1_version": 7, "warm_up_seconds": 1.5, "evaluated": 2, "dev_metrics": {"dev/success": 0.5}}
    b.restore(tensors, {old.get(name, name): values.get(name, value) for name, value in counters.items()})
    found = b.state()[1]
    assert found | values == found


def test_process_a_learns_stage_1_then_clones_stage_2_then_learns_on(pair):
    a, _b = pair
    phases = []
    for _update in range(4):
        phases.append(a.phase)
        stage1, stage2 = copy(a.network.stage1), copy(a.network.stage2)
        assert a.warm == (phases[-1] == "learning")
        a.step()
        cloning = phases[-1] == "cloning"
        assert moved(a.network.stage1, stage1) == (not cloning)
        assert moved(a.network.stage2, stage2) == cloning
    assert phases == ["warm-up", "warm-up", "cloning", "learning"]
    assert [row["step"] for row in read_scalars(a.context.folder / "log-a") if "charts/minutes" in row] == [1, 2, 3, 4]


def test_before_its_first_iteration_process_b_takes_both_stages_and_then_stage_1_alone(pair):
    a, b = pair
    assert not b.pull_stage1()
    updates(a, 3)
    a.send()
    assert b.pull_stage1()
    assert same(copy(b.network), copy(a.network))
    assert b.stage1_version == 2
    b.step()
    stage2 = copy(b.network.stage2)
    a.step()
    a.send()
    b.pull_stage1()
    assert b.stage1_version == 3
    assert not moved(b.network.stage1, copy(a.network.stage1))
    assert not moved(b.network.stage2, stage2)


@pytest.mark.parametrize("iterations", [0, 1])
def test_parameters_that_lack_a_tensor_of_stage_1_are_refused(pair, iterations):
    a, b = pair
    b.reinforcement.iterations = iterations
    name, *others = a.network.state_dict().items()
    a.context.link.send_parameters(Parameters(1, dict(others) | {f"{name[0]}s": name[1]}))
    with pytest.raises(WordwingError, match="belongs to another network: its stage1 does not fit"):
        b.pull_stage1()


def test_rollouts_become_executions(pair):
    a, b = pair
    updates(a, 3)
    a.send()
    b.step()
    a.merge()
    assert a.executions.merged == 4, "one flight of each instruction that was flown"
    assert int(a.executions.is_rollout.sum()) == 4


def test_a_restored_pair_goes_on_as_if_it_had_never_ended(pair, config, data, tmp_path):
    a, b = pair

    def turn(a, b):
        b.step()
        a.step()
        a.merge()
        b.pull_stage1()

    updates(a, 3)
    a.send()
    turn(a, b)
    save_state(tmp_path / "a", *a.state())
    save_state(tmp_path / "b", *b.state())
    context = replace(a.context, link=DirectLink(), folder=tmp_path / "second")
    a_again, b_again = ProcessA(context, config, data), ProcessB(context, config, data)
    a_again.restore(*load_state(tmp_path / "a"))
    b_again.restore(*load_state(tmp_path / "b"))
    for _turn in range(2):
        turn(a, b)
        turn(a_again, b_again)
    assert same(a.state()[0], a_again.state()[0])
    assert same(b.state()[0], b_again.state()[0])
    for process, again in ((a, a_again), (b, b_again)):
        meta, meta_again = process.state()[1], again.state()[1]
        assert meta_again["seconds"] > 0
        timeless = {"seconds": 0, "warm_up_seconds": 0}
        assert meta | timeless == meta_again | timeless


def test_after_a_restart_process_b_takes_the_parameters_of_a_process_a_that_lost_more(config, data, tmp_path):
    context = RunContext(tmp_path, CPU, FolderLink(tmp_path / "exchange"))
    b = ProcessB(context, config, data)
    other = {name: tensor + 1 for name, tensor in b.network.state_dict().items()}
    FolderLink(tmp_path / "exchange").send_parameters(Parameters(40, other))
    b.step()
    assert b.stage1_version == 40
    save_state(tmp_path / "state", *b.state())

    again = ProcessB(replace(context, link=FolderLink(tmp_path / "exchange")), config, data)
    again.restore(*load_state(tmp_path / "state"))
    (tmp_path / "exchange" / "parameters.safetensors").unlink()  # as the command does when it begins
    assert not again.pull_stage1(), "it waits for what process A has now"
    older = {name: tensor + 2 for name, tensor in b.network.state_dict().items()}
    FolderLink(tmp_path / "exchange").send_parameters(Parameters(30, older))
    stage2 = copy(again.network.stage2)
    assert again.pull_stage1()
    assert again.stage1_version == 30
    expected = {name.removeprefix("stage1."): tensor for name, tensor in older.items() if name.startswith("stage1.")}
    assert same(copy(again.network.stage1), expected)
    assert not moved(again.network.stage2, stage2)


def test_a_policy_that_has_seen_nothing_of_the_lab_copies_the_vision_encoder_of_sim(config, data, tmp_path):
    def kept(name, config):
        b = ProcessB(RunContext(tmp_path, CPU, DirectLink()), config, data)
        with torch.no_grad():
            next(b.network.stage1.vision["sim"].parameters()).add_(1.0)
        b.save_policy(name)
        return load_network(tmp_path / name)[0].stage1

    assert config.data.lab == "none"
    assert kept("alone", config).same_vision
    assert kept("longer", replace(config, start=str(tmp_path / "alone"))).same_vision
    both = kept("both", replace(config, data=replace(config.data, lab="all")))
    assert not both.same_vision
    later = kept("later", replace(config, start=str(tmp_path / "both")))
    assert same(copy(later.vision["lab"]), copy(both.vision["lab"])), "what it knew of the lab it still knows"
    assert moved(later.vision["sim"], copy(both.vision["sim"]))


def test_the_log_of_a_restored_process_has_every_step_once(config, data, tmp_path):
    context = RunContext(tmp_path, CPU, DirectLink())
    a = ProcessA(context, config, data)
    updates(a, 2)
    save_state(tmp_path / "a", *a.state())
    updates(a, 3)  # which will be lost
    again = ProcessA(context, config, data)
    again.restore(*load_state(tmp_path / "a"))
    updates(again, 4)
    rows = read_scalars(tmp_path / "log-a")
    assert [row["step"] for row in rows if "charts/minutes" in row] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in rows if "first_look/cage_error" in row] == [2, 5], "every second update of stage 1"


def test_a_poisoned_batch_is_skipped_and_counted(pair):
    a, _b = pair
    poison(a, lambda update: update == 1)
    a.step()
    before, optimizer = copy(a.network.stage1), a.state()[0]
    a.step()
    assert not moved(a.network.stage1, before)
    assert same(optimizer, a.state()[0])
    assert a.state()[1]["skipped"] == 1
    a.step()
    a.step()
    rows = [row for row in read_scalars(a.context.folder / "log-a") if "supervised/skipped_updates" in row]
    assert [row["supervised/skipped_updates"] for row in rows] == [0, 1, 1]
    assert moved(a.network.stage1, before)


def test_poisoned_batches_in_a_row_end_the_run_with_a_sentence(config, data, tmp_path, monkeypatch):
    monkeypatch.setattr(runtime_updates, "MAX_SKIPPED", 14)
    patient = replace(config, schedule=replace(config.schedule, warm_up=1000, log_every=1000, first_look_every=1000))
    a = ProcessA(RunContext(tmp_path, CPU, DirectLink()), patient, data)
    poison(a, lambda update: update not in (0, 10))
    with pytest.raises(WordwingError, match=r"14 updates in a row were skipped .* smaller learning rate"):
        updates(a, 100)
    assert a.supervised.updates == 30, "the next look after update 11 and 14 more"
    assert all(tensor.isfinite().all() for tensor in a.network.state_dict().values())


def test_fifty_updates_in_which_nothing_was_learned_end_the_run_and_fewer_do_not(tmp_path):
    skips = SkippedUpdates(CPU)
    yes, no = torch.tensor(True), torch.tensor(False)
    for _iteration in range(MAX_SKIPPED - 1):
        skips.count(torch.tensor(12.0), yes)
    skips.count(torch.tensor(11.0), no)
    for _iteration in range(MAX_SKIPPED - 1):
        skips.count(torch.tensor(12.0), yes)
    skips.check(tmp_path)
    assert int(skips.total) == 12 * 98 + 11
    skips.count(torch.tensor(12.0), yes)
    with pytest.raises(WordwingError, match="not a number"):
        skips.check(tmp_path)


def test_process_b_ends_when_nothing_can_be_learned_any_more(pair):
    _a, b = pair
    with torch.no_grad():
        b.reinforcement.value_network.network.last.bias.fill_(torch.nan)
    b.skipped._row.fill_(MAX_SKIPPED - 2)  # as after 48 such iterations
    b.step()
    with pytest.raises(WordwingError, match="50 updates in a row"):
        b.step()


def test_a_finished_process_b_keeps_a_policy_that_flies_and_a_card_with_what_was_measured(pair, tmp_path):
    a, b = pair
    updates(a, 3)
    a.send()
    b.step()
    with torch.no_grad():
        b.network.stage2.network.last.bias[4] = 2.0  # short flights are soon evaluated
    b.finish()
    assert b.evaluated == 1
    for name in ("best", "policy"):
        policy = LearnedPolicy.from_pretrained(tmp_path / name)
        assert same(copy(policy.network), copy(b.network))
    again = b.evaluator.fly(LearnedPolicy.from_pretrained(tmp_path / "policy"))
    card = (tmp_path / "policy" / "README.md").read_text()
    assert "- command: `wordwing train sureal`" in card
    contexts = a.supervised.contexts_per_update
    assert f"- stage 1: 2 supervised updates of {contexts} contexts" in card
    assert f"of cloning, then 4 flights ({b.reinforcement.decisions:,} decisions)" in card
    for dataset, part in zip(b.data.datasets, b.data.training, strict=True):
        assert f"- data: {dataset.name}, {len(part):,} {dataset.meta['text']} instructions" in card
        assert str(dataset.folder) not in card
    assert float(re.search(r"dev/cage_emd: (\S+)", card)[1]) == pytest.approx(np.mean(again["cage"].emd), abs=1e-3)
    [row] = [row for row in read_scalars(tmp_path / "log-b") if "dev/emd" in row]
    assert row["step"] == 1
    b.evaluator.fly = None  # nothing is flown twice
    b.finish()


def test_only_a_policy_that_is_not_worse_becomes_the_best(pair, tmp_path, monkeypatch):
    _a, b = pair
    monkeypatch.setattr(b.evaluator, "image", lambda policy: np.zeros((2, 2, 3), np.uint8))
    metrics = b.evaluator.metrics

    def evaluated(success, stop):
        monkeypatch.setattr(b.evaluator, "metrics", lambda flown: metrics(flown) | {"dev/success": success})
        with torch.no_grad():
            b.network.stage2.network.last.bias[4] = stop  # marks the policy
        b.evaluate()
        return float(LearnedPolicy.from_pretrained(tmp_path / "best").network.stage2.network.last.bias.detach()[4])

    assert [evaluated(0.5, 3.0), evaluated(0.4, 4.0), evaluated(0.5, 5.0), evaluated(0.1, 6.0)] == [3, 3, 5, 5]
    assert b.state()[1]["best"] == 0.5


def test_a_state_of_another_network_is_refused(pair, run, tmp_path, data):
    a, _b = pair
    other = tiny(run.data.datasets[0].folder, "model.stage1.text.hidden=9")
    with pytest.raises(WordwingError, match="the state belongs to another network: its stage1 does not fit"):
        ProcessA(RunContext(tmp_path, CPU, DirectLink()), other, data).restore(*a.state())


def test_what_the_display_shows_has_numbers_and_a_phase(pair):
    a, b = pair
    assert (a.status()["phase"], a.status()["done"], a.status()["total"]) == ("warm-up", 0, 2)
    assert b.status()["phase"] == "waiting"
    updates(a, 3)
    a.send()
    b.step()
    assert (a.status()["phase"], a.status()["done"]) == ("learning", 2)
    assert b.status()["phase"] == "learning"
    assert b.status()["done"] == 250
    assert {"return", "decisions"} <= set(b.status()["metrics"])
    assert a.status()["rates"]["contexts/s"] > 0


def test_a_whole_checkpoint_of_the_papers_networks_has_few_small_files(tmp_path, run, data):
    # Both processes with everything that Adam remembers; executions come on top, 15 MiB at most.
    config = tiny(run.data.datasets[0].folder)
    config = replace(config, model=type(config.model)())
    a, b = (kind(RunContext(tmp_path, CPU, DirectLink()), config, data) for kind in (ProcessA, ProcessB))
    updates(a, 3)
    tensors = {f"a.{name}": tensor for name, tensor in a.state()[0].items()}
    tensors |= {f"b.{name}": tensor for name, tensor in b.state()[0].items()}
    save_state(tmp_path / "state", tensors, {})
    sizes = [path.stat().st_size for path in (tmp_path / "state").iterdir()]
    assert max(sizes) <= 16 * 2**20
    assert len(sizes) <= 3
    assert same(learned(tmp_path / "state"), tensors)
