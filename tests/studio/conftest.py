"""A studio for all tests that do not change how it is made."""

from collections.abc import Iterator

import pytest

from studio_server import RunningStudio, small_crew
from wordwing.studio.crew import Crew


@pytest.fixture(scope="session")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Crew:
    """Two small policies: "small0" and "other"."""
    return small_crew(tmp_path_factory.mktemp("policies"))


@pytest.fixture(scope="session")
def studio(crew: Crew, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """A studio in which an instruction is given 12 decisions."""
    with RunningStudio(crew, tmp_path_factory.mktemp("kept"), steps=12) as running:
        yield running
