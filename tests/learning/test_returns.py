"""Returns and advantages against plain loops over flights of different lengths."""

import math

import numpy as np
import pytest
import torch

from wordwing.learning.ppo import discounted_returns, generalized_advantages


def flights(rng, lengths=(5, 1, 3, 7)):
    """Rewards, values and their mask, with NaN in the padding: it must not matter."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    reward, value = torch.from_numpy(rng.normal(size=(2, *mask.shape)))
    return torch.where(mask, reward, math.nan), torch.where(mask, value, math.nan), mask


def test_a_return_is_the_discounted_sum_of_the_rewards_still_to_come(rng):
    reward, _value, mask = flights(rng)
    found = discounted_returns(reward, mask, 0.9)
    for row, length in enumerate(mask.sum(1).tolist()):
        for decision in range(length):
            expected = sum(0.9 ** (later - decision) * float(reward[row, later]) for later in range(decision, length))
            assert float(found[row, decision]) == pytest.approx(expected, abs=1e-12)
        assert (found[row, length:] == 0).all()


def test_a_generalised_advantage_mixes_looks_ahead_of_every_length(rng):
    # Schulman et al., 2016: (1 - λ) Σ λ^(k-1) Â^(k), where Â^(k) trusts k rewards and then the value.
    reward, value, mask = flights(rng)
    discount, decay = 0.9, 0.7
    found = generalized_advantages(reward, value, mask, discount, decay)
    for row, length in enumerate(mask.sum(1).tolist()):
        rewards = np.append(reward[row, :length].numpy(), np.zeros(400))
        values = np.append(value[row, :length].numpy(), np.zeros(400))  # after the end comes nothing
        for decision in range(length):
            expected = 0.0
            for ahead in range(1, 200):
                seen = sum(discount**k * rewards[decision + k] for k in range(ahead))
                guess = discount**ahead * values[decision + ahead]
                expected += (1 - decay) * decay ** (ahead - 1) * (seen + guess - values[decision])
            assert float(found[row, decision]) == pytest.approx(expected, abs=1e-10)
        assert (found[row, length:] == 0).all()


def test_advantages_that_look_to_the_end_are_returns_less_values(rng):
    reward, value, mask = flights(rng)
    found = generalized_advantages(reward, value, mask, 0.99, 1.0)
    assert torch.allclose(found[mask], (discounted_returns(reward, mask, 0.99) - value)[mask], rtol=0, atol=1e-12)


def test_by_hand():
    reward = torch.tensor([[1.0, 2.0, 4.0], [8.0, 100.0, 100.0]])
    value = torch.tensor([[3.0, 5.0, 1.0], [2.0, 100.0, 100.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    # 4; 2 + 4/2; 1 + 4/2
    assert discounted_returns(reward, mask, 0.5).tolist() == [[3.0, 4.0, 4.0], [8.0, 0.0, 0.0]]
    # Surprises: 1 + 5/2 - 3; 2 + 1/2 - 5; 4 - 1. Each later one counts a quarter.
    expected = [[0.5 - 1.75 / 4, -2.5 + 3 / 4, 3.0], [6.0, 0.0, 0.0]]
    assert generalized_advantages(reward, value, mask, 0.5, 0.5).tolist() == expected


def test_a_lost_reward_spoils_its_own_flight_alone(rng):
    reward, value, mask = flights(rng)
    reward[0, 2] = math.nan
    for found in (discounted_returns(reward, mask, 0.9), generalized_advantages(reward, value, mask, 0.9, 0.9)):
        assert found[0, :3].isnan().all()
        assert found[0, 3:].isfinite().all()
        assert found[1:].isfinite().all()


@pytest.mark.parametrize(
    ("reward", "value", "mask"),
    [((3, 4), (3, 1), (3, 4)), ((3, 4), (3, 4), (4,)), ((3,), (3,), (3,)), ((3, 0), (3, 0), (3, 0))],
)
def test_what_is_no_table_of_flights_is_refused(reward, value, mask):
    mask = torch.ones(mask, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"must be \[R, D\]"):
        generalized_advantages(torch.zeros(reward), torch.zeros(value), mask, 0.9, 0.9)


def test_a_mask_must_be_bool():
    with pytest.raises(ValueError, match="a mask must be bool"):
        discounted_returns(torch.zeros(2, 3), torch.ones(2, 3), 0.9)
