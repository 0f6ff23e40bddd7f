"""A studio for all tests that do not change how it is made."""

from collections.abc import Iterator

import pytest

from studio_server import RunningStudio, small_policies
from wordwing.studio.resources import NamedPolicies


@pytest.fixture(scope="session")
def policies(tmp_path_factory: pytest.TempPathFactory) -> NamedPolicies:
    """Two small policies: "small0" and "other"."""
    return small_policies(tmp_path_factory.mktemp("policies"))


@pytest.fixture(scope="session")
def studio(policies: NamedPolicies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """A studio in which an instruction is given 12 decisions."""
    with RunningStudio(policies, tmp_path_factory.mktemp("kept"), steps=12) as running:
        yield running
