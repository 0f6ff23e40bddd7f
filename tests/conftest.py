"""What most tests need."""

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator that is the same in every run, and another one for every test."""
    return np.random.default_rng(list(request.node.name.encode()))
