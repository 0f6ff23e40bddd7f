from dataclasses import replace

import numpy as np
import pytest
import torch

from small_policy import CONFIG
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.ppo import PPOConfig
from wordwing.learning.recipes.config import ReinforcementConfig
from wordwing.learning.rewards import rewards
from wordwing.learning.training_data import ExampleSet
from wordwing.model.layers import each

TERMS = ("visitation", "stop", "exploration", "unobserved", "action", "step")


def short(examples: ExampleSet, count: int = 7, steps: int = 6) -> ExampleSet:
    """A few instructions, and few decisions for each."""
    index = torch.arange(count)
    fewer = replace(examples.examples[index], steps=torch.full((count,), steps))
    return replace(examples, examples=fewer)


def learner(run, flights=6, worlds=3, seed=0, count=7, **config) -> Reinforcement:
    stage2 = replace(CONFIG.stage2, first_stop=-1.5)
    ppo = PPOConfig(updates=3, minibatch=8, **config.pop("ppo", {}))
    given = ReinforcementConfig(flights, worlds, ppo, **config)
    torch.manual_seed(11)  # of the value network
    return Reinforcement(run.network(config=replace(CONFIG, stage2=stage2)), short(run.examples, count), given, seed)


@pytest.fixture(scope="module")
def iterated(run):
    """A learner, what stage 1 and all else were before, and what came of it."""
    made = learner(run)
    before = {name: tensor.clone() for name, tensor in made.network.state_dict().items()}
    values = {name: tensor.clone() for name, tensor in made.value_network.state_dict().items()}
    return made, before, values, made.iterate(0.25)


@pytest.mark.parametrize(("total", "flights"), [(7, 3), (7, 7), (7, 16), (5, 5), (6, 4)])
def test_all_instructions_are_flown_once_before_any_is_flown_twice(run, total, flights):
    made = learner(run, flights=flights, count=total)
    chosen = []
    for made.iterations in range(20):
        part = made.choose()
        assert len(part) == flights
        chosen += part.tolist()
    passes = [chosen[begin : begin + total] for begin in range(0, len(chosen) - total + 1, total)]
    assert len(passes) >= 8
    for part in passes:
        assert sorted(part) == list(range(total))
    assert len({tuple(part) for part in passes}) > 4, "every time in another order"


def test_the_order_depends_on_the_seed_and_the_iteration_alone(run):
    some, others, third = learner(run), learner(run), learner(run, seed=1)
    some.iterations = others.iterations = third.iterations = 4
    torch.manual_seed(99)
    assert some.choose().tolist() == others.choose().tolist()
    assert some.choose().tolist() != third.choose().tolist()


def test_an_iteration_changes_stage_2_and_the_value_network_and_never_stage_1(iterated):
    made, before, values, _outcome = iterated
    after = made.network.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith("stage2.") for name in changed)
    learned = {f"stage2.{name}" for name, _parameter in made.network.stage2.named_parameters()}
    assert changed == learned, "all that can learn did, and the drawn directions stayed"
    for name, _parameter in made.value_network.named_parameters():
        assert not torch.equal(values[name], made.value_network.state_dict()[name])
    assert all(parameter.grad is None for parameter in made.network.stage1.parameters())


def test_flights_and_decisions_are_counted(iterated):
    made, _before, _values, (rollouts, _metrics) = iterated
    assert made.iterations == 1
    assert made.flights == 6
    assert made.decisions == int(rollouts.length.sum())
    assert len(rollouts.example) == 6


def test_the_same_seed_learns_the_same_whatever_else_is_random(run, iterated):
    made, _before, _values, (rollouts, _metrics) = iterated
    again = learner(run)
    torch.manual_seed(5)
    other, _metrics = again.iterate(0.25)
    assert torch.equal(rollouts.action, other.action)
    for some, theirs in zip(made.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(some, theirs)


@pytest.mark.parametrize("gae", [None, 0.9])
def test_ppo_gets_every_decision_with_its_return_and_advantage(run, gae):
    made = learner(run, ppo={"gae_lambda": gae, "discount": 0.9})
    rollouts = made.collector.collect(made.choose(), torch.Generator().manual_seed(1))
    paid = rewards(rollouts, made.config.reward)
    found = made.advantages(rollouts, paid)
    row = 0
    for flight, length in enumerate(rollouts.length.tolist()):
        reward = sum(getattr(paid, name)[flight].double() for name in TERMS).tolist()
        value = rollouts.value[flight].double().tolist()
        for step in range(length):
            returns = sum(0.9 ** (later - step) * reward[later] for later in range(step, length))
            advantage = returns - value[step]
            if gae is not None:
                advantage = 0.0
                for later in range(step, length):
                    after = value[later + 1] if later + 1 < length else 0.0
                    advantage += (0.9 * gae) ** (later - step) * (reward[later] + 0.9 * after - value[later])
                returns = advantage + value[step]
            assert float(found.returns[row]) == pytest.approx(returns, abs=1e-4)
            assert float(found.advantage[row]) == pytest.approx(advantage, abs=1e-4)
            assert torch.equal(found.action[row], rollouts.action[flight, step])
            assert bool(found.stop[row]) == bool(rollouts.stop[flight, step])
            assert float(found.log_prob[row]) == float(rollouts.log_prob[flight, step])
            assert float(found.value[row]) == float(rollouts.value[flight, step])
            each(lambda a, b: torch.testing.assert_close(a, b), found.view[row], rollouts.view[flight, step])
            row += 1
    assert row == len(found)


def test_who_strays_pays_one_where_that_ends_flights_and_nobody_pays_else(run):
    made = learner(run, gold_distance=0.02, ppo={"discount": 1.0})
    rollouts = made.collector.collect(made.choose(), torch.Generator().manual_seed(1))
    paid = rewards(rollouts, made.config.reward)
    strayed = rollouts.strayed & rollouts.mask
    assert strayed.any()
    total = made.advantages(rollouts, paid).returns
    first = torch.cumsum(rollouts.length, 0) - rollouts.length
    for flight, begin in enumerate(first.tolist()):
        whole = float(paid.total[flight].sum()) - float(strayed[flight].any())
        assert float(total[begin]) == pytest.approx(whole, abs=1e-4)


def test_metrics_are_those_counted_flight_by_flight(iterated):
    made, _before, _values, (rollouts, metrics) = iterated
    paid = rewards(rollouts, made.config.reward)
    lengths = rollouts.length.tolist()
    last = [(flight, length - 1) for flight, length in enumerate(lengths)]
    assert float(metrics["charts/episodic_length"]) == pytest.approx(np.mean(lengths))
    assert float(metrics["charts/stopped"]) == pytest.approx(np.mean([bool(rollouts.stop[at]) for at in last]))
    assert float(metrics["charts/left_arena"]) == pytest.approx(np.mean([bool(rollouts.left_arena[at]) for at in last]))
    unobserved = [float(rollouts.view.unobserved[at][1]) for at in last]
    assert float(metrics["charts/unobserved_at_end"]) == pytest.approx(np.mean(unobserved), abs=1e-6)
    distance = [float(rollouts.stop_distance[at]) for at in last]
    assert float(metrics["charts/stop_distance"]) == pytest.approx(np.mean(distance), abs=1e-5)
    stops = sum(bool(rollouts.stop[at]) for at in last) / sum(lengths)
    assert float(metrics["charts/p_stop"]) == pytest.approx(stops, abs=1e-6)
    sums = {name: float(getattr(paid, name).sum()) / len(lengths) for name in TERMS}
    for name, value in sums.items():
        assert float(metrics[f"rewards/{name}"]) == pytest.approx(value, abs=1e-4)
    assert float(metrics["charts/episodic_return"]) == pytest.approx(sum(sums.values()), abs=1e-4)
    assert sum(float(metrics[f"rewards/share_{name}"]) for name in TERMS) == pytest.approx(1, abs=1e-5)
    assert float(metrics["losses/skipped_updates"]) == 0


def test_an_iteration_of_nonsense_is_left_out_and_counted(run):
    made = learner(run)
    with torch.no_grad():
        made.value_network.network.last.bias.fill_(torch.nan)
    before = [parameter.clone() for parameter in made.network.stage2.parameters()]
    _rollouts, metrics = made.iterate()
    assert float(metrics["losses/skipped_updates"]) == 3
    assert torch.isnan(metrics["losses/policy_loss"])
    for parameter, kept in zip(made.network.stage2.parameters(), before, strict=True):
        assert torch.equal(parameter, kept)


def test_preparing_changes_nothing_that_is_learned_or_counted(run):
    plain, prepared = learner(run), learner(run)
    for _iteration in range(3):
        before = {name: tensor.clone() for name, tensor in prepared.network.state_dict().items()}
        prepared.prepare()
        assert all(torch.equal(before[name], tensor) for name, tensor in prepared.network.state_dict().items())
        for one in (plain, prepared):
            one.iterate()
        assert (prepared.iterations, prepared.flights, prepared.decisions) == (
            plain.iterations,
            plain.flights,
            plain.decisions,
        )
        for theirs, mine in zip(plain.ppo.parameters, prepared.ppo.parameters, strict=True):
            assert torch.equal(theirs, mine)
            for name, tensor in plain.ppo.optimizer.state[theirs].items():
                assert torch.equal(tensor, prepared.ppo.optimizer.state[mine][name])
