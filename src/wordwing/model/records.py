"""Records of batches: dataclasses of tensors [N, ...], of tuples of such tensors and of other records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from torch import Tensor


def each(function: Callable[..., Tensor], record: Any, *others: Any) -> Any:
    """The record whose every tensor is `function` of that tensor, and of those in the same place of other records."""
    if isinstance(record, Tensor):
        return function(record, *others)
    if isinstance(record, tuple):
        return tuple(each(function, *parts) for parts in zip(record, *others, strict=True))
    if is_dataclass(record):
        names = [entry.name for entry in fields(record)]
        parts = {name: each(function, *(getattr(one, name) for one in (record, *others))) for name in names}
        return replace(record, **parts)  # type: ignore[type-var]
    return record
