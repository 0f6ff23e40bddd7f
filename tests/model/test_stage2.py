"""The control network against numpy, and that it knows how much probability is where."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from plain_layers import convolve, leaky, linear
from wordwing.frames import Pose
from wordwing.model.ego import EgoView, ego_view
from wordwing.model.grid import START_GRID
from wordwing.model.layers import count_parameters
from wordwing.model.stage2 import Control, ControlNetwork, Stage2, Stage2Config, ValueNetwork, to_setpoint
from wordwing.model.visitation import Visitation


def random_view(count: int, seed: int = 0) -> EgoView:
    """Probabilities as they come: small in cells, larger in coarse ones."""
    random = torch.Generator().manual_seed(seed)
    close = torch.rand(count, 2, 16, 16, generator=random) / 200
    whole = torch.rand(count, 4, 24, 24, generator=random)
    whole[:, :2] /= 100
    return EgoView(close, whole, torch.rand(count, 2, generator=random))


def as_if_trained(seed: int) -> Stage2:
    """A network whose layers listen to each other, as training would make them."""
    torch.manual_seed(seed)
    stage2 = Stage2(Stage2Config())
    for layer in (stage2.network.first, stage2.network.second, stage2.network.last):
        nn.init.orthogonal_(layer.weight, 2.0)
    return stage2


def blob(x: float, y: float) -> torch.Tensor:
    """[1, 64, 64] a Gaussian of two cells around a point, sums to 1."""
    distance = (START_GRID.centres() - torch.tensor([x, y])).norm(dim=-1)
    weights = torch.exp(-0.5 * (distance / (2 * START_GRID.cell)).square())
    return (weights / weights.sum())[None]


def view_of(goal: tuple[float, float], mass: float = 0.9) -> EgoView:
    """A drone at the start that expects some mass on its way and at its goal; p_oob and masks are always the same."""
    plan = Visitation(mass * blob(0.5, 0.0), mass * blob(*goal), torch.tensor([[0.5, 0.1]]))
    none = torch.zeros(1, 64, 64, dtype=torch.bool)
    return ego_view(plan, none, none, Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7))


def test_stage_2_and_the_value_have_the_authors_parameters_and_those_of_the_view_of_the_whole_map():
    convolution = 2 * 4 * 9 + 4
    seen = 3 * 4 * 8 * 8 + 2 * 16
    perceptron = (seen + 1) * 32 + (seen + 32 + 1) * 32
    assert count_parameters(Stage2(Stage2Config())) == 3 * convolution + perceptron + 33 * 5 == 52_681
    assert count_parameters(ValueNetwork(Stage2Config())) == 3 * convolution + perceptron + 33 == 52_549
    # The authors have 36,120 before the last layer, 64 of them not learned; a third view goes into both layers.
    assert 3 * convolution + perceptron == 36_120 - 64 + convolution + 2 * 4 * 8 * 8 * 32


def test_an_unobserved_probability_is_embedded_along_its_fixed_direction():
    network = ControlNetwork(Stage2Config(embedding=3), outputs=1)
    network.directions.copy_(torch.tensor([[1.0, -2.0, 0.5], [4.0, 0.0, -1.0]]))
    # q p - q (1 - p) = q (2 p - 1): half of the first direction, minus one of the second; then 0 and 1 of them.
    found = network.embed(torch.tensor([[0.75, 0.0], [0.5, 1.0]]))
    assert found[0].tolist() == pytest.approx([0.5, -1.0, 0.25, -4.0, 0.0, 1.0])
    assert found[1].tolist() == pytest.approx([0.0, 0.0, 0.0, 4.0, 0.0, -1.0])


def test_the_control_network_agrees_with_numpy():
    torch.manual_seed(0)
    config = Stage2Config(hidden=6, filters=2, embedding=3)
    network = ControlNetwork(config, outputs=5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, 0.3)
    view = random_view(3)
    found = network(view).detach()
    directions = network.directions.double().numpy()
    for i in range(3):
        close, whole = view.close[i].double().numpy(), view.whole[i].double().numpy()
        unobserved = view.unobserved[i].double().numpy()
        maps = [
            convolve(config.close_gain * close, network.close),
            convolve(config.whole_gain * whole[:2], network.whole),
            convolve(whole[2:], network.masks),
        ]
        embedded = [q * p - q * (1 - p) for q, p in zip(directions, unobserved, strict=True)]
        inputs = np.concatenate([*(leaky(features).ravel() for features in maps), *embedded])
        hidden = leaky(linear(inputs, network.first))
        hidden = leaky(linear(np.concatenate([hidden, inputs]), network.second))
        assert np.allclose(found[i], linear(hidden, network.last), atol=1e-4)


def test_what_comes_out_is_means_then_deviations_then_the_stop_logit():
    stage2 = as_if_trained(0)
    view = random_view(4)
    raw = stage2.network(view).detach().double().numpy()
    control = stage2(view)
    assert np.allclose(control.mean.detach(), raw[:, :2], atol=1e-6)
    assert np.allclose(control.deviation.detach(), np.log1p(np.exp(raw[:, 2:4])) + 0.05, atol=1e-5)
    assert np.allclose(control.stop_logit.detach(), raw[:, 4], atol=1e-6)
    assert np.allclose(control.stop_probability.detach(), 1 / (1 + np.exp(-raw[:, 4])), atol=1e-6)


def test_an_untrained_drone_flies_on_at_half_speed_and_tries_things():
    for seed in range(3):
        torch.manual_seed(seed)
        control = Stage2(Stage2Config())(random_view(8, seed))
        # 1 / (1 + e³) = 0.0474, so a flight has 21 decisions on average.
        assert control.stop_probability.detach().numpy() == pytest.approx(0.0474, abs=0.005)
        assert control.setpoint.forward.detach().numpy() == pytest.approx(0.35, abs=0.03)
        assert control.setpoint.yaw_rate.detach().numpy() == pytest.approx(0, abs=0.05)
        assert control.deviation.detach().numpy() == pytest.approx(0.5, abs=0.03)


def test_deviations_have_a_floor():
    stage2 = Stage2(Stage2Config())
    with torch.no_grad():
        stage2.network.last.bias[2:4] = -1e4
    assert stage2(random_view(2)).deviation.detach().numpy() == pytest.approx(0.05)


def test_deviations_depend_on_what_is_seen():
    deviation = as_if_trained(0)(random_view(8)).deviation
    assert (deviation.std(0) > 1e-3).all()


def test_means_are_shares_of_the_limits_and_never_beyond_them():
    setpoint = to_setpoint(torch.tensor([[0.5, -0.25], [2.0, -3.0], [-1.0, 1.5], [math.nan, math.nan]]))
    assert setpoint.forward.tolist() == pytest.approx([0.35, 0.7, 0.0, 0.0])
    assert setpoint.yaw_rate.tolist() == pytest.approx([-0.25, -1.0, 1.0, 0.0])
    control = Control(torch.tensor([[0.5, 9.0]]), torch.ones(1, 2), torch.zeros(1))
    assert (control.setpoint.forward.item(), control.setpoint.yaw_rate.item()) == pytest.approx((0.35, 1.0))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ((0.5, 0.0), (2.5, 0.0)),  # out of the close view
        ((0.0, 0.0), (0.0, 2.0)),
        ((2.0, 0.0), (4.0, 0.0)),  # both beyond the close view
        ((3.0, 0.0), (-3.0, 0.0)),
        ((0.0, 3.0), (0.0, -3.0)),
    ],
)
def test_moving_the_goal_by_two_metres_or_more_changes_the_stop_logit(here, there):
    # Some random networks care little, but none not at all: a network that cannot see the goal gives 0 or 1e-7.
    changes = []
    for seed in range(10):
        stage2 = as_if_trained(seed)
        changes.append((stage2(view_of(here)).stop_logit - stage2(view_of(there)).stop_logit).item())
    assert np.abs(changes).min() > 1e-5
    assert np.sqrt(np.mean(np.square(changes))) > 0.01


def test_the_close_view_alone_would_not_tell_a_goal_ahead_from_one_behind():
    ahead, behind = view_of((3.0, 0.0)), view_of((-3.0, 0.0))
    assert torch.allclose(ahead.close, behind.close, atol=1e-6)
    assert (ahead.whole - behind.whole).abs().max() > 0.1


@pytest.mark.parametrize("where", [(0.3, 0.0), (3.0, 0.0)])
def test_twice_the_mass_at_the_same_places_is_not_the_same(where):
    for seed in range(10):
        network = as_if_trained(seed).network
        less, more = (network(view_of(where, mass)) for mass in (0.4, 0.8))
        assert (less - more).norm() > 1e-2


def test_stage_2_and_the_value_share_nothing():
    stage2, value = Stage2(Stage2Config()), ValueNetwork(Stage2Config())
    mine = {tensor.data_ptr() for tensor in stage2.state_dict().values()}
    assert mine.isdisjoint(tensor.data_ptr() for tensor in value.state_dict().values())
    assert not torch.equal(stage2.network.directions, value.network.directions)
    view = random_view(3)
    before = value(view)
    assert before.shape == (3,)
    with torch.no_grad():
        for parameter in stage2.parameters():
            parameter.add_(1.0)
    assert torch.equal(value(view), before)
    value(view).sum().backward()
    assert all(parameter.grad is None for parameter in stage2.parameters())


def test_half_precision_around_it_rounds_nothing():
    view = random_view(4)
    for network in (as_if_trained(0).network, ValueNetwork(Stage2Config()).network):
        with torch.autocast("cpu", torch.bfloat16):
            half = network(view)
        assert torch.equal(half, network(view))


def test_every_parameter_of_stage_2_and_of_the_value_learns():
    stage2, value = as_if_trained(0), ValueNetwork(Stage2Config())
    nn.init.normal_(value.network.last.weight)
    control = stage2(random_view(4))
    (control.mean.sum() + control.deviation.sum() + control.stop_logit.sum() + value(random_view(4)).sum()).backward()
    for parameter in (*stage2.parameters(), *value.parameters()):
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().max() > 1e-6


def test_each_of_the_five_outputs_learns_from_its_own_loss():
    stage2 = as_if_trained(0)
    control = stage2(random_view(4))
    parts = [
        control.mean[:, 0],
        control.mean[:, 1],
        control.deviation[:, 0],
        control.deviation[:, 1],
        control.stop_logit,
    ]
    for row, part in enumerate(parts):
        [slope] = torch.autograd.grad(part.sum(), stage2.network.last.weight, retain_graph=True)
        assert slope.abs().sum(1).nonzero().flatten().tolist() == [row]


def test_directions_are_saved_and_never_learned():
    torch.manual_seed(0)
    stage2 = Stage2(Stage2Config())
    assert "network.directions" in stage2.state_dict()
    assert all("directions" not in name for name, _ in stage2.named_parameters())
    before = stage2.network.directions.clone()
    assert before.shape == (2, 16)
    optimiser = torch.optim.Adam(stage2.parameters(), 0.1)
    stage2(random_view(2)).stop_logit.sum().backward()
    optimiser.step()
    assert torch.equal(stage2.network.directions, before)
    other = Stage2(Stage2Config())
    assert not torch.equal(other.network.directions, before)
    other.load_state_dict(stage2.state_dict())
    assert torch.equal(other(random_view(2)).mean, stage2(random_view(2)).mean)


def test_a_view_can_be_picked_apart():
    stage2, view = as_if_trained(0), random_view(4)
    index = torch.tensor([2, 0])
    assert torch.allclose(stage2(view[index]).mean, stage2(view).mean[index], atol=1e-6)
    assert torch.allclose(stage2(view[1:3]).stop_logit, stage2(view).stop_logit[1:3], atol=1e-6)
