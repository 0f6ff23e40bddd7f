"""Records of batches, tensor by tensor."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from wordwing.model.layers import each


@dataclass(frozen=True)
class Inner:
    tensor: Tensor
    missing: Tensor | None = None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    several: tuple[Tensor, ...]


def record(*numbers: float) -> Outer:
    first, *others = (torch.tensor([number]) for number in numbers)
    return Outer(Inner(first), tuple(others))


def test_every_tensor_is_changed_wherever_it_is():
    found = each(lambda tensor: 10 * tensor, record(1, 2, 3))
    assert found == Outer(Inner(torch.tensor([10])), (torch.tensor([20]), torch.tensor([30])))
    assert found.inner.missing is None


def test_tensors_in_the_same_place_meet():
    found = each(lambda mine, theirs: mine - theirs, record(1, 2, 3), record(10, 30, 20))
    assert found == record(-9, -28, -17)


def test_records_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="zip"):
        each(lambda mine, theirs: mine - theirs, record(1, 2, 3), record(1, 2))
