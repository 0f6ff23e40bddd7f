"""Commands that must be answered with one sentence."""

import pytest

from wordwing.cli import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence on stderr of a command that must exit with 2."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("wordwing: ")
    assert said.err.count("\n") == 1
    return said.err
