"""Layouts on the device: lakes bit by bit, and worlds that change layout."""

import numpy as np
import torch

from randomly import random_lakes
from wordwing.bench.sim import crowded_layout
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.world.layout import Layout


def cells_of(bits: torch.Tensor) -> set[tuple[int, int]]:
    """The cells (i, j) whose bit is set in [100, 4] words."""
    words = bits.numpy().astype(np.int64) & 0xFFFFFFFF
    return {(i, 32 * k + b) for i, k in np.argwhere(words).tolist() for b in range(32) if words[i, k] >> b & 1}


def test_every_lake_cell_is_one_bit(rng):
    corners = ((0, 0), (0, 31), (0, 32), (0, 63), (0, 64), (0, 95), (0, 96), (0, 99), (99, 0), (99, 99))
    layouts = [Layout((), lakes=lakes) for lakes in (corners, random_lakes(rng), (), random_lakes(rng))]
    packed = PackedLayouts.pack(layouts)
    assert packed.lakes.shape == (4, 100, 4)
    for bits, layout in zip(packed.lakes, layouts, strict=True):
        assert cells_of(bits) == set(layout.lakes)


def test_layouts_without_lakes_keep_no_room_for_them(rng):
    packed = PackedLayouts.pack([crowded_layout(3, rng), Layout(())])
    assert packed.lakes.numel() == 0
    assert packed.take(torch.tensor([1, 0, 1])).lakes.shape[0] == 3


def test_take_takes_the_lakes_along(rng):
    layouts = [Layout((), lakes=random_lakes(rng)) for _ in range(3)]
    taken = PackedLayouts.pack(layouts).take(torch.tensor([2, 0]))
    assert cells_of(taken.lakes[0]) == set(layouts[2].lakes)
    assert cells_of(taken.lakes[1]) == set(layouts[0].lakes)


def test_a_world_is_wet_only_while_its_layout_has_lakes(rng):
    scene = SimScene(4, torch.device("cpu"))
    wet, dry = Layout((), lakes=random_lakes(rng)), Layout(())
    for layouts, worlds, expected in (
        ([wet, dry], [1, 3], [0, 1, 0, 0]),
        ([wet, dry], [3, 1], [0, 0, 0, 1]),
        ([wet, wet], [0, 1], [1, 1, 0, 1]),
        ([dry, dry], [3, 0], [0, 1, 0, 0]),
    ):
        scene.place(PackedLayouts.pack(layouts), torch.tensor(worlds))
        assert scene.tensors["wet"].tolist() == expected
    assert cells_of(scene.tensors["lakes"][1]) == set(wet.lakes)
