"""What tests of learning share."""

import pytest

from small_run import SmallRun, small_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """Cage, field and house, small enough for tests; nobody may change them."""
    return small_run(tmp_path_factory.mktemp("run"))
