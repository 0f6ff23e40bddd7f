"""Which wordwing this is: its version, and the commit where that is known."""

import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

try:
    VERSION = version("wordwing")
except PackageNotFoundError:  # run from a source tree that was never installed
    VERSION = "0+unknown"

ARCHIVED = "commit.txt"
"""Git writes the commit into it when it makes an archive; in a checkout it holds a placeholder."""


def commit() -> str:
    """The commit's first twelve digits; with a "+" if files have changed since; empty if nobody knows."""
    package = Path(str(files("wordwing")))
    archived = (package / ARCHIVED).read_text("utf-8").strip()
    if not archived.startswith("$"):
        return archived[:12]
    found = _git(package, "rev-parse", "HEAD", "--show-prefix").split()
    if len(found) != 2 or not found[1].endswith("src/wordwing/"):  # a wordwing that is installed in somebody's checkout
        return ""
    return found[0][:12] + "+" * bool(_git(package, "status", "--porcelain", "--untracked-files=no"))


def release() -> str:
    """For people: "0.1.0 (commit 0123456789ab)"."""
    known = commit()
    return f"{VERSION} (commit {known})" if known else VERSION


def _git(folder: Path, *arguments: str) -> str:
    """What git says, nothing if it cannot be asked."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
