"""Cells that attend to words, against plain loops."""

import math

import numpy as np
import pytest
import torch

from wordwing.model.lingunet import HEADS, WIDTH, LingUNet, LingUNetConfig, WordAttention


def layer(channels: int = 5, hidden: int = 6, cells: int = 4) -> WordAttention:
    """One whose every parameter matters."""
    torch.manual_seed(0)
    made = WordAttention(channels, hidden, cells)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0, 0.7)
    return made


def example(lengths: tuple[int, ...] = (3, 7, 1)) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Maps, token states and which of them are words."""
    torch.manual_seed(1)
    known = torch.arange(7) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), 5, 4, 4), torch.randn(len(lengths), 7, 6), known


def attended(made: WordAttention, maps: np.ndarray, states: np.ndarray) -> np.ndarray:
    """What one map takes from all of some words, in loops."""
    weights = {name: tensor.double().numpy() for name, tensor in made.state_dict().items()}
    states = (states - states.mean(1, keepdims=True)) / np.sqrt(states.var(1, keepdims=True) + 1e-5)
    states = states * weights["words.0.weight"] + weights["words.0.bias"]
    answers = states @ weights["words.1.weight"].T + weights["words.1.bias"]
    keys, values = answers.reshape(len(states), 2, HEADS, WIDTH).transpose(1, 2, 0, 3)
    found = np.zeros_like(maps)
    for cell, (row, column) in enumerate(np.ndindex(maps.shape[1:])):
        seen = maps[:, row, column] + weights["place"][cell]
        seen = (seen - seen.mean()) / math.sqrt(seen.var() + 1e-5) * weights["norm.weight"] + weights["norm.bias"]
        query = (weights["query.weight"] @ seen + weights["query.bias"]).reshape(HEADS, WIDTH)
        heard = []
        for head in range(HEADS):
            share = np.exp(keys[head] @ query[head] / math.sqrt(WIDTH))
            heard.append(share / share.sum() @ values[head])
        found[:, row, column] = weights["last.weight"] @ np.concatenate(heard) + weights["last.bias"]
    return found


@torch.no_grad()
def test_each_cell_takes_a_softmax_of_the_words_that_there_are():
    made, (maps, states, known) = layer(), example()
    found = made(maps, made.keys_and_values(states), known)
    for i in range(3):
        expected = attended(made, maps[i].double().numpy(), states[i, known[i]].double().numpy())
        assert found[i].numpy() == pytest.approx(expected, abs=1e-4)


@torch.no_grad()
def test_shares_of_attention_sum_to_one_and_padding_has_none():
    made, (maps, states, known) = layer(), example()
    shares = made.attend(maps, made.keys_and_values(states)[:, :, 0], known)
    assert shares.shape == (3, HEADS, 16, 7)
    assert shares.sum(-1).numpy() == pytest.approx(1, abs=1e-5)
    assert not shares[~known[:, None, None].expand_as(shares)].any()


def test_as_many_of_the_coarsest_levels_attend_as_are_asked_for():
    for count in (0, 2, 5):
        network = LingUNet(LingUNetConfig(attention=count), 40, 50, unobserved=True)
        assert [len(layer.place) for layer in network.attention] == [4 ** (6 - k) for k in range(6 - count, 6)]


@torch.no_grad()
def test_words_matter_to_a_lingunet_that_attends_even_if_its_kernels_are_the_same():
    torch.manual_seed(0)
    network = LingUNet(LingUNetConfig(channels=8, filtered=4, last=8, attention=3), 5, 6, unobserved=True)
    maps, kernels = torch.randn(1, 5, 64, 64), network.kernels(torch.randn(1, 6))
    known = torch.ones(1, 7, dtype=torch.bool)
    one, other = (network(maps, kernels, network.token_keys(torch.randn(1, 7, 6), known)) for _ in range(2))
    assert (one.cells - other.cells).abs().max() > 1e-3
