"""Distributions over what has been observed, against scipy and plain loops."""

import math

import numpy as np
import pytest
import torch
from scipy.special import softmax

from wordwing.model.visitation import Scores, Visitation, cross_entropy, entropy, log_probabilities, visitation


def random_scores(count: int = 3, scale: float = 2.0, seed: int = 0) -> tuple[Scores, torch.Tensor]:
    """Scores, and about a third of the cells observed."""
    generator = torch.Generator().manual_seed(seed)
    cells = scale * torch.randn(count, 2, 64, 64, generator=generator)
    observed = torch.rand(count, 64, 64, generator=generator) < 0.3
    return Scores(cells, scale * torch.randn(count, 2, generator=generator)), observed


def random_gold(observed: torch.Tensor, seed: int = 1) -> Visitation:
    """Distributions over a few of the observed cells and p_oob."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.rand(len(observed), 2, 64, 64, generator=generator) * observed[:, None]
    cells = cells * (torch.rand(cells.shape, generator=generator) < 0.1)
    unobserved = torch.tensor([[0.25, 0.5]]).expand(len(observed), 2)
    cells = cells / cells.sum((2, 3), keepdim=True) * (1 - unobserved)[..., None, None]
    return Visitation(cells[:, 0], cells[:, 1], unobserved)


def gathered(scores: Scores, observed: torch.Tensor, i: int, j: int) -> np.ndarray:
    """Scores of the observed cells and of the unobserved, of one distribution."""
    cells = scores.cells[i, j][observed[i]].detach().double().numpy()
    return cells if scores.unobserved is None else np.append(cells, scores.unobserved[i, j].detach().double().numpy())


def test_distributions_are_scipys_softmax_of_the_gathered_scores_and_exactly_zero_elsewhere():
    scores, observed = random_scores()
    found = visitation(scores, observed)
    for i in range(3):
        for j, cells in enumerate((found.trajectory[i], found.goal[i])):
            expected = softmax(gathered(scores, observed, i, j))
            assert np.allclose(cells[observed[i]], expected[:-1], rtol=1e-4, atol=1e-9)
            assert found.unobserved[i, j].item() == pytest.approx(expected[-1], rel=1e-4)
            assert not cells[~observed[i]].any()
            assert (cells.double().sum() + found.unobserved[i, j]).item() == pytest.approx(1, abs=1e-5)


def test_what_is_unobserved_can_be_kept_without_the_cells():
    unobserved = visitation(*random_scores()).unobserved
    assert unobserved.untyped_storage().nbytes() == 3 * 2 * 4


def test_cells_are_the_trajectory_and_then_the_goal():
    scores, observed = random_scores()
    found = visitation(scores, observed)
    assert torch.equal(found.cells[:, 0], found.trajectory)
    assert torch.equal(found.cells[:, 1], found.goal)


def test_a_hand_computed_distribution():
    cells, observed = torch.full((1, 2, 64, 64), 9.0), torch.zeros(1, 64, 64, dtype=torch.bool)
    observed[0, 10, 20] = observed[0, 30, 5] = True
    cells[0, :, 10, 20], cells[0, :, 30, 5] = math.log(2), math.log(5)
    found = visitation(Scores(cells, torch.tensor([[0.0, math.log(3)]])), observed)
    # Weights 2 : 5 : 1 and 2 : 5 : 3.
    assert found.trajectory[0, 10, 20].item() == pytest.approx(0.25)
    assert found.trajectory[0, 30, 5].item() == pytest.approx(0.625)
    assert found.goal[0, 30, 5].item() == pytest.approx(0.5)
    assert found.unobserved[0].tolist() == pytest.approx([0.125, 0.3])


def test_the_earlier_pvn_spreads_over_all_cells_and_nothing_is_unobserved():
    scores, observed = random_scores()
    scores, everywhere = Scores(scores.cells, None), torch.ones_like(observed)
    found = visitation(scores, everywhere)
    assert not found.unobserved.any()
    assert np.allclose(found.goal[1].flatten(), softmax(scores.cells[1, 1].double().numpy().ravel()), rtol=1e-4)
    gold = random_gold(observed)
    whole = Visitation(gold.trajectory / 0.75, gold.goal / 0.5, torch.zeros(3, 2))
    assert cross_entropy(scores, everywhere, whole).isfinite().all()


def test_before_the_first_look_all_is_unobserved():
    scores, observed = random_scores()
    found = visitation(scores, torch.zeros_like(observed))
    assert torch.equal(found.unobserved, torch.ones(3, 2))
    assert not found.cells.any()


def test_cross_entropy_agrees_with_a_plain_loop():
    scores, observed = random_scores()
    gold = random_gold(observed)
    found = cross_entropy(scores, observed, gold)
    assert found.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            predicted = softmax(gathered(scores, observed, i, j))
            wanted = np.append(gold.cells[i, j][observed[i]].double(), gold.unobserved[i, j])
            expected = -sum(w * math.log(p) for w, p in zip(wanted, predicted, strict=True) if w > 0)
            assert found[i, j].item() == pytest.approx(expected, rel=1e-5)


def test_entropy_agrees_with_a_plain_loop():
    gold = random_gold(random_scores()[1])
    for i in range(3):
        for j in range(2):
            wanted = [*gold.cells[i, j].double().flatten().tolist(), gold.unobserved[i, j].item()]
            expected = -sum(w * math.log(w) for w in wanted if w > 0)
            assert entropy(gold)[i, j].item() == pytest.approx(expected, rel=1e-5)


def test_cross_entropy_is_never_below_the_entropy_and_reaches_it_at_the_logarithm_of_the_gold():
    for seed in range(5):
        scores, observed = random_scores(seed=seed)
        gold = random_gold(observed, seed + 1)
        assert (cross_entropy(scores, observed, gold) > entropy(gold) + 0.1).all()
        # A softmax forgets what is added to all scores, so 3 changes nothing.
        perfect = Scores(gold.cells.log() + 3, gold.unobserved.log() + 3)
        assert torch.allclose(cross_entropy(perfect, observed, gold), entropy(gold), atol=1e-5)


def test_the_slope_of_the_loss_is_predicted_minus_gold():
    scores, observed = random_scores()
    gold = random_gold(observed)
    cells, unobserved = scores.cells.requires_grad_(), scores.unobserved.requires_grad_()
    cross_entropy(Scores(cells, unobserved), observed, gold).sum().backward()
    for i in range(3):
        for j in range(2):
            slope = softmax(gathered(scores, observed, i, j))
            slope -= np.append(gold.cells[i, j][observed[i]].double(), gold.unobserved[i, j])
            assert np.allclose(cells.grad[i, j][observed[i]], slope[:-1], atol=1e-6)
            assert unobserved.grad[i, j].item() == pytest.approx(slope[-1], abs=1e-6)


def test_the_slope_of_the_loss_agrees_with_finite_differences():
    scores, observed = random_scores(1)
    gold = random_gold(observed)
    cells = scores.cells.requires_grad_()
    [slope] = torch.autograd.grad(cross_entropy(scores, observed, gold).sum(), cells)
    direction = torch.randn(cells.shape, generator=torch.Generator().manual_seed(5))
    near = [Scores((cells + step * direction).detach(), scores.unobserved) for step in (0.01, -0.01)]
    rise = (cross_entropy(near[0], observed, gold) - cross_entropy(near[1], observed, gold)).sum().item() / 0.02
    assert (slope * direction).sum().item() == pytest.approx(rise, rel=1e-3, abs=1e-3)


def test_scores_of_cells_that_have_not_been_observed_get_exactly_no_gradient():
    scores, observed = random_scores()
    cells = scores.cells.requires_grad_()
    found = visitation(Scores(cells, scores.unobserved), observed)
    loss = cross_entropy(Scores(cells, scores.unobserved), observed, random_gold(observed)).sum()
    (loss + (found.goal * torch.rand(3, 64, 64)).sum()).backward()
    assert not cells.grad[~observed[:, None].expand(-1, 2, -1, -1)].any()
    assert cells.grad[observed[:, None].expand(-1, 2, -1, -1)].all()


@pytest.mark.parametrize("broken", [math.nan, math.inf, 1e30])
def test_what_is_scored_where_nothing_has_been_observed_changes_nothing(broken):
    scores, observed = random_scores()
    cells = torch.where(observed[:, None], scores.cells, broken).requires_grad_()
    expected, found = visitation(scores, observed), visitation(Scores(cells, scores.unobserved), observed)
    assert torch.equal(found.cells, expected.cells)
    assert torch.equal(found.unobserved, expected.unobserved)
    cross_entropy(Scores(cells, scores.unobserved), observed, random_gold(observed)).sum().backward()
    assert cells.grad.isfinite().all()


def test_extreme_scores_stay_finite():
    scores, observed = random_scores(scale=1e4)
    cells, unobserved = scores.cells.requires_grad_(), scores.unobserved.requires_grad_()
    scores = Scores(cells, unobserved)
    found = visitation(scores, observed)
    assert torch.allclose(found.cells.sum((2, 3)) + found.unobserved, torch.ones(3, 2), atol=1e-5)
    loss = cross_entropy(scores, observed, random_gold(observed))
    assert loss.isfinite().all()
    loss.sum().backward()
    assert cells.grad.isfinite().all()
    assert unobserved.grad.isfinite().all()


def test_half_precision_scores_are_normalised_in_single_precision():
    scores, observed = random_scores()
    half = Scores(scores.cells.bfloat16(), scores.unobserved.bfloat16())
    found = visitation(half, observed)
    assert found.goal.dtype == found.unobserved.dtype == torch.float32
    expected = softmax(np.append(half.cells[0, 1][observed[0]].double(), half.unobserved[0, 1].double()))
    assert np.allclose(found.goal[0][observed[0]], expected[:-1], rtol=1e-4, atol=1e-9)
    assert found.unobserved[0, 1].item() == pytest.approx(expected[-1], rel=1e-4)
    everywhere = visitation(Scores(half.cells, None), torch.ones_like(observed)).goal  # PVN
    assert np.allclose(everywhere[0].flatten(), softmax(half.cells[0, 1].double().numpy().ravel()), rtol=1e-4)


def test_gold_out_of_reach_is_infinitely_wrong():
    scores, observed = random_scores()
    gold = random_gold(torch.ones_like(observed))
    assert cross_entropy(scores, observed, gold).isinf().all()


def test_the_log_probabilities_end_with_the_unobserved():
    scores, observed = random_scores()
    logs, found = log_probabilities(scores, observed), visitation(scores, observed)
    assert logs.shape == (3, 2, 64 * 64 + 1)
    assert torch.equal(logs[..., -1].exp(), found.unobserved)
    assert torch.equal(logs[..., 64 * 3 + 5].exp(), found.cells[:, :, 3, 5])
    assert torch.equal(logs[..., :-1].isfinite(), observed.flatten(1)[:, None].expand(-1, 2, -1))


def ordered_scores(phases: int = 4) -> tuple[Scores, torch.Tensor]:
    """Scores of phases and goal, and about a third of the cells observed."""
    generator = torch.Generator().manual_seed(2)
    cells = 2 * torch.randn(3, phases + 1, 64, 64, generator=generator)
    observed = torch.rand(3, 64, 64, generator=generator) < 0.3
    return Scores(cells, 2 * torch.randn(3, phases + 1, generator=generator)), observed


def ordered_gold(observed: torch.Tensor, phases: int = 4) -> Visitation:
    """Every phase another distribution; the trajectory is their mean."""
    parts = [random_gold(observed, seed) for seed in range(phases)]
    ordered = torch.stack([part.trajectory for part in parts], dim=1)
    unobserved = torch.stack([part.unobserved[:, 0] for part in parts], dim=1)
    return Visitation(ordered.mean(1), parts[0].goal, parts[0].unobserved, ordered, unobserved)


def test_every_phase_is_a_softmax_of_its_own_and_the_trajectory_is_their_mean():
    scores, observed = ordered_scores()
    found = visitation(scores, observed)
    assert found.phases is not None
    assert found.phases_unobserved is not None
    for i in range(3):
        expected = np.array([softmax(gathered(scores, observed, i, j)) for j in range(5)])
        assert np.allclose(found.phases[i][:, observed[i]], expected[:4, :-1], rtol=1e-4, atol=1e-9)
        assert np.allclose(found.phases_unobserved[i], expected[:4, -1], rtol=1e-4)
        assert np.allclose(found.trajectory[i][observed[i]], expected[:4, :-1].mean(0), rtol=1e-4, atol=1e-9)
        assert np.allclose(found.goal[i][observed[i]], expected[4, :-1], rtol=1e-4, atol=1e-9)
        assert np.allclose(found.unobserved[i], [expected[:4, -1].mean(), expected[4, -1]], rtol=1e-4)
        assert not found.phases[i][:, ~observed[i]].any()


def test_the_cross_entropy_of_an_ordered_trajectory_is_the_mean_over_its_phases():
    scores, observed = ordered_scores()
    gold = ordered_gold(observed)
    found, least = cross_entropy(scores, observed, gold), entropy(gold)
    assert gold.phases is not None
    assert found.shape == least.shape == (3, 2)
    for i in range(3):
        losses, entropies = [], []
        for k in range(4):
            logs = np.log(softmax(gathered(scores, observed, i, k)))
            wanted = np.append(gold.phases[i, k][observed[i]].double(), 0.25)
            losses.append(-(wanted * logs).sum())
            entropies.append(-(wanted[wanted > 0] * np.log(wanted[wanted > 0])).sum())
        assert found[i, 0].item() == pytest.approx(np.mean(losses), rel=1e-4)
        assert least[i, 0].item() == pytest.approx(np.mean(entropies), rel=1e-4)


def test_without_its_order_gold_is_compared_with_the_trajectory_as_a_whole():
    scores, observed = ordered_scores()
    gold, whole = ordered_gold(observed), visitation(scores, observed)
    found = cross_entropy(scores, observed, gold.unordered)
    for i in range(3):
        logs = np.log(np.append(whole.trajectory[i][observed[i]].double(), whole.unobserved[i, 0].double()))
        wanted = np.append(gold.trajectory[i][observed[i]].double(), 0.25)
        assert found[i, 0].item() == pytest.approx(-(wanted * logs).sum(), rel=1e-4)
    assert torch.equal(found[:, 1], cross_entropy(scores, observed, gold)[:, 1])
