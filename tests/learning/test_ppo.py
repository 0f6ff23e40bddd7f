"""PPO against scipy, one sample at a time, and its updates against Adam's by hand."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import bernoulli, norm
from torch import Tensor, nn

from wordwing.learning import algorithm2 as learning
from wordwing.learning.algorithm2 import PPO
from wordwing.learning.ppo import Minibatch, PPOConfig, entropy, explained_variance, log_prob, ppo_loss, sample_action
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.model.stage2 import Control, Stage2, Stage2Config, ValueNetwork


def networks(seed: int = 0) -> tuple[Stage2, ValueNetwork]:
    """In double precision, and with a will of their own, as training would make them."""
    torch.manual_seed(seed)
    stage2, value = Stage2(Stage2Config(first_stop=0.0)), ValueNetwork(Stage2Config())
    for network in (stage2.network, value.network):
        nn.init.orthogonal_(network.last.weight, 2.0)
    return stage2.double(), value.double()


def random_decisions(rng, stage2: Stage2, count: int) -> Minibatch:
    """Ratios of new to old probability from 0.6 to 1.6, advantages of both signs, every other one a STOP."""
    unit = torch.from_numpy(rng.random((count, 2, 16, 16))) / 200, torch.from_numpy(rng.random((count, 4, 24, 24)))
    unit[1][:, :2] /= 100
    view = EgoView(*unit, torch.from_numpy(rng.random((count, 2))))
    action = torch.from_numpy(rng.normal(0.3, 0.7, (count, 2)))
    stop = torch.arange(count) % 2 == 0
    with torch.no_grad():
        now = log_prob(stage2(view), action, stop)
    old = now - torch.from_numpy(rng.uniform(math.log(0.6), math.log(1.6), count))
    value, to_come, advantage = torch.from_numpy(rng.normal(size=(3, count)))
    return Minibatch(view, action, stop, old, value, to_come, advantage)


def parts_by_hand(outputs, action, stop, old, value, to_come, advantage, config) -> dict[str, float]:
    """PPO for one decision, of the six numbers that the networks say."""
    forward, yaw_rate, forward_deviation, yaw_rate_deviation, logit, expected = outputs
    velocities = norm(forward, forward_deviation), norm(yaw_rate, yaw_rate_deviation)
    stopping = bernoulli(expit(logit))
    log = stopping.logpmf(int(stop))
    if not stop:
        log += velocities[0].logpdf(action[0]) + velocities[1].logpdf(action[1])
    ratio = math.exp(log - old)
    # Better than expected: no reward for more than 1 + clip. Worse: none for less than 1 - clip.
    gained = min(ratio, 1 + config.clip) if advantage > 0 else max(ratio, 1 - config.clip)
    error = (expected - to_come) ** 2
    if config.clip_value:
        near = min(max(expected, value - config.clip), value + config.clip)
        error = max(error, (near - to_come) ** 2)
    flies_on = 1 - expit(logit)
    return {
        "losses/policy_loss": -gained * advantage,
        "losses/value_loss": error / 2,
        "losses/entropy": stopping.entropy() + flies_on * (velocities[0].entropy() + velocities[1].entropy()),
        "losses/old_approx_kl": old - log,
        "losses/approx_kl": ratio - 1 - math.log(ratio),
        "losses/clipfrac": float(not 1 - config.clip <= ratio <= 1 + config.clip),
    }


@pytest.mark.parametrize("config", [PPOConfig(value_weight=0.7), PPOConfig(clip=0.2, clip_value=True)])
def test_the_gradient_is_that_of_one_sample_at_a_time(rng, config):
    count, weight = 40, 0.05
    stage2, value_network = networks()
    decisions = random_decisions(rng, stage2, count)
    loss, found = ppo_loss(stage2, value_network, decisions, config, weight)
    loss.backward()
    together = [parameter.grad.clone() for parameter in (*stage2.parameters(), *value_network.parameters())]
    stage2.zero_grad()
    value_network.zero_grad()

    def loss_by_hand(outputs, one) -> float:
        parts = parts_by_hand(outputs, *one, config)
        policy, error, spread = (parts[f"losses/{name}"] for name in ("policy_loss", "value_loss", "entropy"))
        return (policy + config.value_weight * error - weight * spread) / count

    sides, parts = set(), []
    for number in range(count):
        row = decisions[number : number + 1]
        control, value = stage2(row.view), value_network(row.view)
        said = torch.cat([control.mean[0], control.deviation[0], control.stop_logit, value])
        outputs = said.detach().numpy()
        rest = (row.action, row.stop, row.log_prob, row.value, row.returns, row.advantage)
        one = [tensor[0].numpy() for tensor in rest]
        steps = 1e-6 * np.eye(6)
        slopes = [(loss_by_hand(outputs + step, one) - loss_by_hand(outputs - step, one)) / 2e-6 for step in steps]
        said.backward(torch.tensor(slopes))
        parts.append(parts_by_hand(outputs, *one, config))
        ratio = math.exp(-parts[-1]["losses/old_approx_kl"])
        sides.add((bool(row.advantage > 0), int(ratio > 1 + config.clip) - int(ratio < 1 - config.clip)))

    assert len(sides) == 6  # both signs; below, within and above the range
    alone = [parameter.grad for parameter in (*stage2.parameters(), *value_network.parameters())]
    for mine, theirs in zip(together, alone, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-6, atol=1e-8)
        assert theirs.abs().max() > 1e-5
    for name, statistic in found.items():
        assert statistic.shape == ()
        assert not statistic.requires_grad
        assert statistic.item() == pytest.approx(np.mean([part[name] for part in parts]), abs=1e-7)


def test_probabilities_are_scipys():
    control = Control(
        torch.tensor([[0.2, -0.5], [0.9, 0.1], [0.5, 0.0]], dtype=torch.float64),
        torch.tensor([[0.3, 0.6], [0.05, 2.0], [0.5, 0.5]], dtype=torch.float64),
        torch.tensor([0.4, -3.0, 60.0], dtype=torch.float64),
    )
    action = torch.tensor([[0.1, 1.7], [1.0, -1.0], [0.3, 0.2]], dtype=torch.float64)
    flies = log_prob(control, action, torch.tensor([False] * 3))
    stops = log_prob(control, action, torch.tensor([True] * 3))
    for row in range(3):
        mean, deviation, logit = (part[row].numpy() for part in (control.mean, control.deviation, control.stop_logit))
        velocities = norm.logpdf(action[row], mean, deviation).sum()
        assert float(flies[row]) == pytest.approx(velocities - np.logaddexp(0, logit), abs=1e-9)
        assert float(stops[row]) == pytest.approx(-np.logaddexp(0, -logit), abs=1e-12)


def test_decisions_are_drawn_as_often_as_their_probability_says():
    count = 40_000
    control = Control(
        torch.tensor([[0.4, -0.2]]).expand(count, 2),
        torch.tensor([[0.3, 0.1]]).expand(count, 2),
        torch.tensor([-0.5]).expand(count),
    )
    action, stop = sample_action(control, torch.Generator().manual_seed(0))
    assert stop.dtype == torch.bool
    assert stop.float().mean().item() == pytest.approx(expit(-0.5), abs=0.01)
    assert action.mean(0).tolist() == pytest.approx([0.4, -0.2], abs=0.01)
    assert action.std(0).tolist() == pytest.approx([0.3, 0.1], abs=0.01)
    assert abs(np.corrcoef(action.T)[0, 1]) < 0.02
    # The entropy is what the logarithm of a draw's probability is on average.
    assert -log_prob(control, action, stop).mean().item() == pytest.approx(entropy(control)[0].item(), abs=0.02)
    again = sample_action(control, torch.Generator().manual_seed(0))
    assert torch.equal(action, again[0])
    assert torch.equal(stop, again[1])


def test_a_policy_that_is_sure_of_its_stop_has_no_infinite_entropy():
    sure = Control(torch.zeros(2, 2), torch.ones(2, 2), torch.tensor([200.0, -200.0]))
    assert entropy(sure).tolist() == pytest.approx([0.0, math.log(2 * math.pi * math.e)], abs=1e-6)


def test_a_lost_drone_draws_nan_and_does_not_stop():
    lost = Control(torch.full((2, 2), math.nan), torch.full((2, 2), math.nan), torch.full((2,), math.nan))
    action, stop = sample_action(lost, torch.Generator().manual_seed(0))
    assert action.isnan().all()
    assert not stop.any()


def test_velocities_of_a_stop_learn_nothing():
    parts = [torch.randn(4, 2), torch.rand(4, 2) + 0.1, torch.randn(4)]
    mean, deviation, logit = (part.requires_grad_() for part in parts)
    stop = torch.tensor([True, False, True, False])
    log_prob(Control(mean, deviation, logit), torch.randn(4, 2), stop).sum().backward()
    assert (mean.grad[stop] == 0).all()
    assert (deviation.grad[stop] == 0).all()
    assert (mean.grad[~stop] != 0).all()
    assert torch.allclose(logit.grad, stop.float() - torch.sigmoid(logit.detach()), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("action", (6,)),
        ("action", (6, 1)),
        ("action", (6, 3)),
        ("stop", (6, 1)),
        ("log_prob", (6, 1)),
        ("value", (6, 1)),
        ("returns", (1,)),
        ("advantage", (6, 1)),
        ("advantage", ()),
    ],
)
def test_a_column_for_a_row_is_refused(rng, name, shape):
    decisions = random_decisions(rng, networks()[0], 6)
    kind = getattr(decisions, name).dtype
    with pytest.raises(ValueError, match=r"must be \[6"):
        replace(decisions, **{name: torch.ones(shape, dtype=kind)})


def test_views_of_other_decisions_are_refused(rng):
    decisions = random_decisions(rng, networks()[0], 6)
    with pytest.raises(ValueError, match=r"view.close must be \[6, 2, 16, 16\], not \[5, 2, 16, 16\]"):
        replace(decisions, view=decisions.view[:5])


def test_stops_must_be_bool(rng):
    decisions = random_decisions(rng, networks()[0], 6)
    with pytest.raises(ValueError, match=r"stop must be bool, not torch\.float32"):
        replace(decisions, stop=decisions.stop.float())


def test_networks_that_answer_in_columns_are_refused(rng):
    stage2, value_network = networks()
    decisions = random_decisions(rng, stage2, 6)
    with pytest.raises(ValueError, match=r"the value network's output must be \[6\], not \[6, 1\]"):
        ppo_loss(stage2, lambda view: value_network(view)[:, None], decisions, PPOConfig(), 0.0)  # type: ignore[arg-type]

    def in_columns(view: EgoView) -> Control:
        control = stage2(view)
        return replace(control, stop_logit=control.stop_logit[:, None])

    with pytest.raises(ValueError, match=r"control.stop_logit must be \[6\], not \[6, 1\]"):
        ppo_loss(in_columns, value_network, decisions, PPOConfig(), 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("progress", "weight"), [(0.0, 0.3), (0.49, 0.3), (0.5, 0.06), (1.0, 0.06)])
def test_an_update_is_adams_first_step_along_the_clipped_gradient(rng, progress, weight):
    stage2, value_network = networks()
    decisions = random_decisions(rng, stage2, 30)
    config = PPOConfig(updates=1, entropy=0.3, late_entropy=0.2, max_gradient_norm=0.05, learning_rate=0.01)
    twins = copy.deepcopy(stage2), copy.deepcopy(value_network)
    advantage = decisions.advantage.numpy()
    normal = torch.from_numpy((advantage - advantage.mean()) / (advantage.std() + 1e-5))
    ppo_loss(*twins, replace(decisions, advantage=normal), config, weight)[0].backward()
    gradients = [parameter.grad for twin in twins for parameter in twin.parameters()]
    size = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    assert size > 0.05

    statistics = PPO(stage2, value_network, config).update(decisions, torch.Generator().manual_seed(0), progress)
    expected = [parameter for twin in twins for parameter in twin.parameters()]
    for mine, theirs, gradient in zip(
        (*stage2.parameters(), *value_network.parameters()), expected, gradients, strict=True
    ):
        clipped = gradient * 0.05 / size
        # In the first step both of Adam's means are those of a single gradient.
        assert torch.allclose(mine, theirs - 0.01 * clipped / (clipped.abs() + 1e-5), atol=1e-6)
    assert statistics["losses/gradient_norm"].item() == pytest.approx(size, rel=1e-6)
    assert statistics["charts/learning_rate"].item() == pytest.approx(0.01)
    assert statistics["losses/skipped_updates"].item() == 0


@pytest.fixture
def watched(monkeypatch) -> list[tuple[Minibatch, dict[str, Tensor]]]:
    """The decisions that each update took, and its statistics."""
    seen = []

    def watching(stage2, value_network, decisions, *others):
        loss, statistics = ppo_loss(stage2, value_network, decisions, *others)
        seen.append((each(Tensor.clone, decisions), dict(statistics)))  # the next update's are written there
        return loss, statistics

    monkeypatch.setattr(learning, "ppo_loss", watching)
    return seen


def chosen_by(rng, watched, config: PPOConfig, count: int = 10, seed: int = 0) -> list[list[int]]:
    """The decisions that each update takes, by their numbers."""
    watched.clear()
    stage2, value_network = networks()
    numbers = torch.arange(count, dtype=torch.float64)
    decisions = replace(random_decisions(rng, stage2, count), returns=numbers)
    PPO(stage2, value_network, config).update(decisions, torch.Generator().manual_seed(seed), 0.0)
    return [some.returns.int().tolist() for some, _statistics in watched]


def test_every_decision_is_used_once_before_any_is_used_twice(rng, watched):
    config = PPOConfig(updates=6, minibatch=4)
    chosen = chosen_by(rng, watched, config)
    assert [len(some) for some in chosen] == [4] * 6
    used = [number for some in chosen for number in some]
    assert sorted(used[:10]) == sorted(used[10:20]) == list(range(10))
    assert used[:10] != used[10:20] != list(range(10))
    assert len(set(used[20:])) == 4
    assert chosen == chosen_by(rng, watched, config)
    assert chosen != chosen_by(rng, watched, config, seed=1)


def test_the_policys_gradient_is_as_long_as_it_is_however_wrong_values_are(rng):
    stage2, value_network = networks()
    decisions = random_decisions(rng, stage2, 20)
    config = PPOConfig(updates=1, minibatch=20, learning_rate=0.1, epsilon=1.0, max_gradient_norm=0.5)
    moved = []
    for apart, returns in ((True, 1e4), (True, 0.0), (False, 1e4)):
        mine, values = copy.deepcopy(stage2), copy.deepcopy(value_network)
        ppo = PPO(mine, values, replace(config, clip_apart=apart))
        ppo.update(replace(decisions, returns=decisions.returns + returns), torch.Generator().manual_seed(0), 0.0)
        pairs = zip(mine.parameters(), stage2.parameters(), strict=True)
        moved.append(torch.cat([(new - old).flatten() for new, old in pairs]).detach())
    assert torch.allclose(moved[0], moved[1])
    assert moved[2].norm() < 0.1 * moved[0].norm(), "clipped together, values leave the policy next to nothing"


def test_advantages_are_normalised_over_the_whole_iteration(rng, watched):
    stage2, value_network = networks()
    decisions = random_decisions(rng, stage2, 20)
    decisions = replace(decisions, advantage=5 + 3 * decisions.advantage, returns=torch.arange(20.0).double())
    ppo = PPO(stage2, value_network, PPOConfig(updates=4, minibatch=5))
    ppo.update(decisions, torch.Generator().manual_seed(0), 0.0)
    raw = decisions.advantage.numpy()
    for some, _statistics in watched:
        expected = (raw[some.returns.long()] - raw.mean()) / (raw.std() + 1e-5)
        assert np.allclose(some.advantage, expected, atol=1e-12)


def test_a_minibatch_larger_than_the_data_is_the_data(rng, watched):
    chosen = chosen_by(rng, watched, PPOConfig(updates=3))
    assert [sorted(some) for some in chosen] == [list(range(10))] * 3


def test_updates_end_once_the_policy_has_gone_too_far(rng, watched):
    stage2, value_network = networks()
    decisions = random_decisions(rng, stage2, 30)
    with torch.no_grad():
        now = log_prob(stage2(decisions.view), decisions.action, decisions.stop)
    gone = []
    for target in (None, 0.01):
        watched.clear()
        config = PPOConfig(learning_rate=1e-5, target_kl=target)
        ppo = PPO(copy.deepcopy(stage2), copy.deepcopy(value_network), config)
        ppo.update(replace(decisions, log_prob=now), torch.Generator().manual_seed(0), 0.0)
        gone.append([statistics["losses/approx_kl"].item() for _some, statistics in watched])
    assert gone[0][0] == pytest.approx(0, abs=1e-15)
    assert len(gone[0]) == 8
    assert 2 < len(gone[1]) < 8
    assert [far > 0.01 for far in gone[1]] == [False] * (len(gone[1]) - 1) + [True]
    assert gone[1] == pytest.approx(gone[0][: len(gone[1])], abs=1e-15)


def test_explained_variance_is_what_is_left_after_guessing(rng):
    to_come, value = rng.normal(size=(2, 50))
    value += to_come
    expected = 1 - np.var(to_come - value) / np.var(to_come)
    assert explained_variance(torch.from_numpy(value), torch.from_numpy(to_come)).item() == pytest.approx(expected)
    assert explained_variance(torch.zeros(3), torch.ones(3)).isnan()


SPOILED = ["advantage", "returns", "log_prob", "action", "view"]


def spoil(decisions: Minibatch, name: str, number: int, bad: float) -> Minibatch:
    """One decision with a number that is none."""
    decisions = each(Tensor.clone, decisions)
    part = decisions.view.whole[:, 0] if name == "view" else getattr(decisions, name)
    part[number] = bad
    return replace(decisions, stop=torch.zeros_like(decisions.stop))


@pytest.mark.parametrize("name", SPOILED)
@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_spoiled_minibatch_changes_nothing_and_is_counted(rng, name, bad):
    stage2, value_network = networks()
    first, second = random_decisions(rng, stage2, 20), random_decisions(rng, stage2, 20)
    config = PPOConfig(updates=1, learning_rate=0.01)
    ppo, generator = PPO(stage2, value_network, config), torch.Generator().manual_seed(0)
    ppo.update(first, generator, 0.0)  # so that Adam has momentum
    before = copy.deepcopy(list(ppo.parameters))
    twin = copy.deepcopy(ppo)

    spoiled = ppo.update(spoil(first, name, 3, bad), generator, 0.0)
    assert spoiled["losses/skipped_updates"].item() == 1
    for mine, theirs in zip(ppo.parameters, before, strict=True):
        assert torch.equal(mine, theirs)
    # Nor does anything remember it.
    ppo.update(second, torch.Generator().manual_seed(1), 0.0)
    twin.update(second, torch.Generator().manual_seed(1), 0.0)
    for mine, theirs, old in zip(ppo.parameters, twin.parameters, before, strict=True):
        assert torch.equal(mine, theirs)
        assert not torch.equal(mine, old)


@pytest.mark.parametrize("name", SPOILED)
def test_one_spoiled_decision_costs_one_minibatch(rng, name):
    stage2, value_network = networks()
    decisions = spoil(random_decisions(rng, stage2, 40), name, 7, math.nan)
    ppo = PPO(stage2, value_network, PPOConfig(updates=4, minibatch=10))
    statistics = ppo.update(decisions, torch.Generator().manual_seed(0), 0.0)
    assert statistics["losses/skipped_updates"].item() == 1
    assert all(statistic.isfinite() for statistic in statistics.values())
    assert all(parameter.isfinite().all() for parameter in ppo.parameters)


def test_a_saved_optimiser_goes_on_as_if_nothing_had_happened(rng):
    stage2, value_network = networks()
    first, second = random_decisions(rng, stage2, 20), random_decisions(rng, stage2, 20)
    ppo = PPO(stage2, value_network, PPOConfig(minibatch=8))
    ppo.update(first, torch.Generator().manual_seed(0), 0.0)
    again = PPO(copy.deepcopy(stage2), copy.deepcopy(value_network), PPOConfig(minibatch=8))
    again.optimizer.load_state_dict(copy.deepcopy(ppo.optimizer.state_dict()))
    for one in (ppo, again):
        one.update(second, torch.Generator().manual_seed(1), 0.0)
    for mine, theirs in zip(ppo.parameters, again.parameters, strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.cuda
def test_updates_on_cuda_never_wait_and_leave_out_what_is_spoiled(rng):
    stage2, value_network = (network.float() for network in networks())
    decisions = spoil(random_decisions(rng, networks()[0], 40), "returns", 7, math.nan)
    decisions = each(lambda part: part.cuda().float() if part.is_floating_point() else part.cuda(), decisions)
    ppo = PPO(stage2.cuda(), value_network.cuda(), PPOConfig(updates=4, minibatch=10))
    generator = torch.Generator("cuda").manual_seed(0)
    ppo.update(decisions, generator, 0.0)
    torch.cuda.set_sync_debug_mode("error")
    try:
        statistics = ppo.update(decisions, generator, 0.0)
        sample_action(stage2(decisions.view), generator)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert statistics["losses/skipped_updates"].item() == 1
    assert all(parameter.isfinite().all() for parameter in ppo.parameters)
