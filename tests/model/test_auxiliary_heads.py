"""Auxiliary heads: linear, and of the right place."""

import pytest
import torch
from torch import nn

from wordwing.model.layers import count_parameters
from wordwing.model.stage1 import AuxiliaryHeads, Stage1Config
from wordwing.world.catalogue import catalogue


def silent() -> AuxiliaryHeads:
    """Heads that say nothing about anything."""
    heads = AuxiliaryHeads(Stage1Config())
    for parameter in heads.parameters():
        nn.init.zeros_(parameter)
    return heads


def centre(row: int, column: int) -> list[float]:
    """Of a cell, metres: the map is 9.4 m wide, x runs up and y to the left from its middle."""
    return [4.7 - (row + 0.5) * 9.4 / 64, 4.7 - (column + 0.5) * 9.4 / 64]


def test_heads_are_linear_layers_over_89_kinds_of_landmarks_and_empty_ground():
    heads = AuxiliaryHeads(Stage1Config())
    assert len(catalogue()) == 89
    assert heads.empty_class == 89
    assert count_parameters(heads) == 33 * 90 + 9 * 2 + 51 * 89
    points = torch.zeros(2, 5, 2)
    assert heads.object_logits(torch.zeros(2, 32, 64, 64), points).shape == (2, 5, 90)
    assert heads.grounding_logits(torch.zeros(2, 8, 64, 64), points).shape == (2, 5, 2)
    assert heads.mention(torch.zeros(2, 50)).shape == (2, 89)


def test_the_object_head_reads_the_feature_of_the_cell_that_the_point_lies_in():
    heads = silent()
    with torch.no_grad():
        heads.object.weight[7, 5] = 1.0  # kind 7 is what feature 5 shows
    maps = torch.zeros(2, 32, 64, 64)
    maps[0, 5, 10, 40] = 3.0  # 3.16 m ahead, 1.25 m to the right
    maps[1, 5, 50, 3] = 2.0  # 2.72 m behind, 4.19 m to the left
    assert centre(10, 40) == pytest.approx([3.158, -1.248], abs=1e-3)
    assert centre(50, 3) == pytest.approx([-2.717, 4.186], abs=1e-3)
    points = torch.tensor([centre(10, 40), centre(50, 3), centre(40, 10), centre(10, 23)])
    found = heads.object_logits(maps, points.expand(2, 4, 2))
    assert found[0, :, 7].tolist() == pytest.approx([3.0, 0.0, 0.0, 0.0], abs=1e-4)
    assert found[1, :, 7].tolist() == pytest.approx([0.0, 2.0, 0.0, 0.0], abs=1e-4)
    found[..., 7] = 0
    assert not found.any()


def test_between_two_cells_half_of_each_is_read():
    heads = silent()
    with torch.no_grad():
        heads.grounding.weight[1, 2] = 1.0
        heads.grounding.bias[0] = 0.5
    maps = torch.zeros(1, 8, 64, 64)
    maps[0, 2, 20, 30], maps[0, 2, 21, 30] = 1.0, 5.0
    above, below = torch.tensor(centre(20, 30)), torch.tensor(centre(21, 30))
    points = torch.stack([above, (above + below) / 2, below, below - (above - below), torch.tensor([9.0, 9.0])])
    found = heads.grounding_logits(maps, points[None])[0]
    assert found[:, 1].tolist() == pytest.approx([1.0, 3.0, 5.0, 0.0, 0.0], abs=1e-4)
    assert found[:, 0].tolist() == pytest.approx([0.5] * 5)


def test_the_mention_head_reads_the_instruction_alone():
    heads = silent()
    with torch.no_grad():
        heads.mention.weight[88, 49], heads.mention.bias[0] = 2.0, -1.0
    found = heads.mention(torch.eye(50)[[49, 0]])
    assert found[0, [0, 1, 88]].tolist() == [-1.0, 0.0, 2.0]
    assert found[1, [0, 1, 88]].tolist() == [-1.0, 0.0, 0.0]
