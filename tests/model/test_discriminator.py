"""The discriminator: how steep it may be, and which way it goes."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from wordwing.model.discriminator import Discriminator, DiscriminatorConfig, wasserstein
from wordwing.model.layers import count_parameters


def discriminator(clamp: float = 0.01, channels: int = 32) -> Discriminator:
    torch.manual_seed(0)
    return Discriminator(DiscriminatorConfig(clamp=clamp), channels)


def features(count: int, bias: float = 0.0, seed: int = 1) -> Tensor:
    return torch.randn(count, 32, 18, 32, generator=torch.Generator().manual_seed(seed)) + bias


def test_it_has_the_authors_parameters_and_gives_one_score_each():
    network = discriminator()
    convolutions = 16 * (32 * 8 + 8 * 16 + 16 * 16 + 16 * 32)
    assert count_parameters(network) == 18_497 == convolutions + 64 + 1
    assert network(features(3)).shape == (3,)


def test_scores_of_one_sample_do_not_depend_on_the_others():
    network, some = discriminator(), features(4)
    assert torch.allclose(network(some)[2], network(some[2:3])[0], atol=1e-6)


def test_without_biases_twice_the_features_score_twice_as_much():
    network = discriminator()
    nn.init.zeros_(network.last.bias)
    assert torch.allclose(network(2 * features(3)), 2 * network(features(3)), rtol=1e-4, atol=1e-6)
    # LeakyReLU with a slope below 1: the negative of the features does not score the negative.
    assert not torch.allclose(network(-features(3)), -network(features(3)), rtol=0.1)


def test_clamping_brings_every_weight_into_its_range_and_keeps_the_small_ones():
    network = discriminator()
    with torch.no_grad():
        network.convolutions[0].weight.flatten()[:3] = torch.tensor([0.005, -0.009, 0.5])
    optimiser = torch.optim.Adam(network.parameters(), 0.1)
    (-wasserstein(network, features(2, 1.0), features(2, -1.0))).backward()
    optimiser.step()
    assert max(parameter.abs().max() for parameter in network.parameters()) > 0.05
    before = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    network.clamp_weights()
    after = torch.cat([parameter.detach().flatten() for parameter in network.parameters()])
    assert np.allclose(after, np.clip(before.numpy(), -0.01, 0.01))
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_clamped_it_is_never_steeper_than_the_product_of_its_layers():
    network = discriminator()
    network.clamp_weights()
    # The Frobenius norm of a layer's matrix: each of its weights is used at no more places than the layer has outputs.
    steepest = 1.0
    for layer, places in zip(network.convolutions, (9 * 16, 4 * 8, 2 * 4, 1 * 2), strict=True):
        steepest *= np.sqrt(places * layer.weight.numel()) * 0.01
    steepest *= np.sqrt(64) * 0.01
    one, other = features(8), features(8, seed=2)
    rise = (network(one) - network(other)).abs()
    run = (one - other).flatten(1).norm(dim=1)
    assert (rise <= steepest * run).all()


def test_without_a_clamp_weights_are_free():
    network = discriminator(clamp=0.0)
    before = [parameter.clone() for parameter in network.parameters()]
    network.clamp_weights()
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


class Slope(Discriminator):
    """A linear function, steep in one direction."""

    def __init__(self, steepness: float) -> None:
        super().__init__(DiscriminatorConfig())
        self.steepness = nn.Parameter(torch.tensor(steepness))

    def forward(self, image_features: Tensor) -> Tensor:
        return self.steepness * (0.6 * image_features[:, 3, 2, 1] - 0.8 * image_features[:, 0, 17, 31])


@pytest.mark.parametrize(("steepness", "penalty"), [(1.0, 0.0), (3.0, 4.0), (-0.5, 0.25), (0.0, 1.0)])
def test_the_gradient_penalty_of_a_linear_function_is_its_steepness_less_1_squared(steepness, penalty):
    network = Slope(steepness)
    found = network.penalty(features(4), features(4, seed=2))
    assert found.item() == pytest.approx(penalty, abs=1e-5)
    if steepness:
        found.backward()
        # d/ds (|s| - 1)² = 2 (|s| - 1) sign(s)
        expected = 2 * (abs(steepness) - 1) * np.sign(steepness)
        assert network.steepness.grad.item() == pytest.approx(expected, abs=1e-5)


def test_the_gradient_penalty_agrees_with_finite_differences():
    network = discriminator(channels=1).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
    some = torch.randn(2, 1, 18, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    step = 1e-6
    lengths = []
    with torch.no_grad():
        for sample in some:
            steps = step * torch.eye(18 * 32, dtype=torch.float64).reshape(-1, 1, 18, 32)
            slopes = (network(sample + steps) - network(sample - steps)) / (2 * step)
            lengths.append(slopes.norm().item())
    assert lengths[0] != pytest.approx(lengths[1], rel=1e-3)
    expected = np.mean([(length - 1) ** 2 for length in lengths])
    # All that lies between a point and itself is that point.
    assert network.penalty(some, some).item() == pytest.approx(expected, rel=1e-5)


def test_the_gradient_penalty_looks_between_the_domains_and_at_features_that_it_does_not_change():
    seen = []

    class Spy(Discriminator):
        def forward(self, image_features: Tensor) -> Tensor:
            seen.append(image_features.detach())
            return super().forward(image_features)

    sim, lab = torch.zeros(50, 32, 18, 32).requires_grad_(), torch.ones(50, 32, 18, 32).requires_grad_()
    Spy(DiscriminatorConfig()).penalty(sim, lab).backward()
    assert sim.grad is None
    assert lab.grad is None
    shares = seen[0].flatten(1)
    assert torch.equal(shares, shares[:, :1].expand_as(shares))
    assert shares.min() < 0.2 < 0.8 < shares.max()


def test_the_penalty_teaches_every_weight_that_has_a_say_in_the_slope():
    network = discriminator(clamp=0.0)
    network.penalty(features(2), features(2, seed=2)).backward()
    for name, parameter in network.named_parameters():
        assert name == "last.bias" or parameter.grad.abs().max() > 0


def test_the_distance_is_the_mean_score_of_sim_less_that_of_lab():
    network, sim, lab = discriminator(), features(5), features(3, seed=2)
    with torch.no_grad():
        one_by_one = [float(network(sample[None])) for sample in (*sim, *lab)]
    expected = np.mean(one_by_one[:5]) - np.mean(one_by_one[5:])
    assert wasserstein(network, sim, lab).item() == pytest.approx(expected, abs=1e-6)
    assert wasserstein(network, lab, sim).item() == pytest.approx(-expected, abs=1e-6)


def test_climbing_the_distance_scores_sim_above_lab_and_features_that_descend_it_meet():
    network = discriminator()
    network.clamp_weights()
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    sim, lab = features(8), features(8, seed=2)
    sim[:, :4] += 1.0
    first = wasserstein(network, sim, lab).item()
    for _ in range(30):
        optimiser.zero_grad()
        (-wasserstein(network, sim, lab)).backward()
        optimiser.step()
        network.clamp_weights()
    last = wasserstein(network, sim, lab).item()
    assert last > first + 1e-5
    assert network(sim).min() > network(lab).max()
    sim.requires_grad_()
    wasserstein(network, sim, lab).backward()
    # Descending, the channels that give sim away come down, by far the most of all.
    pull = sim.grad.mean((0, 2, 3))
    assert (pull[:4] > 0).all()
    assert pull[:4].mean() > 3 * pull[4:].abs().mean()
