"""What most tests need."""

import gc
from collections import Counter

import numpy as np
import pytest
import torch

FIRST = ("test_wire.py", "test_page.py")
"""Files of few tests that mostly wait: last, they would leave all cores but one idle."""


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator that is the same in every run, and another one for every test."""
    return np.random.default_rng(list(request.node.name.encode()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that workers end together; what needs CUDA is skipped where there is none."""
    for item in items:
        marker = item.get_closest_marker("cuda")
        if marker and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip("no CUDA device"))
        elif marker and marker.kwargs.get("cpu_kernels") and not _warp_compiles_for_the_cpu():
            item.add_marker(pytest.mark.skip("this build of Warp cannot compile for the CPU"))
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.name not in FIRST, -sizes[item.path], item.path))


def _warp_compiles_for_the_cpu() -> bool:
    import warp

    warp.init()
    return warp._src.context.runtime.llvm is not None


def pytest_collection_finish() -> None:
    """Six thousand tests and what they import stay to the end; nobody need look for garbage among them."""
    gc.collect()
    gc.freeze()
