"""Licences of all dependencies, extras included, for docs/licences.md.

    python scripts/licences.py > docs/licences.md

Licences are those in the metadata of the installed packages. The metadata does not list libraries that a wheel
bundles; those under copyleft licences are found by their file names.
"""

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
EXTRAS = ("flight", "studio")
"""Extras for users; `dev` is for developers."""

COPYLEFT = re.compile(
    r"\b(A|L)?GPL|GNU|\bMPL\b|Mozilla|\bEPL\b|Eclipse|\bCDDL\b|\bEUPL\b|CC-BY-SA|\bSSPL\b", re.IGNORECASE
)

NAMED = {
    "pymavlink": (
        "LGPL-3.0: it is imported, not copied or changed, and can be replaced by another version; only the extra "
        "`flight` needs it"
    ),
}
"""Packages that may be copyleft, and why."""

LIBRARIES = {
    r"x264|x265": "GPL-2.0-or-later",
    r"av(codec|device|filter|format|util)|sw(resample|scale)": "LGPL-3.0-or-later",
    r"mp3lame": "LGPL-2.0-or-later",
    r"gnutls|asound": "LGPL-2.1-or-later",
    r"gmp|nettle|hogweed|unistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    r"quadmath": "LGPL-2.1-or-later",
    r"gfortran|gomp|gcc_s|stdc\+\+": "GPL-3.0-or-later WITH GCC-exception-3.1",
}
"""Licences of shared libraries, by name."""

WHEELS = {
    "av": (
        "FFmpeg, under the licence that it states itself, and its libraries; wordwing writes videos with x264, "
        "and a drone's camera may use H.264 or H.265. If you redistribute these wheels, in a container for example, "
        "you redistribute code under the GPL"
    ),
    "numpy": "run-time libraries of GCC, for OpenBLAS",
    "pot": "a run-time library of GCC",
    "scipy": "run-time libraries of GCC, for OpenBLAS",
    "torch": "a run-time library of GCC",
}
"""Wheels that may bundle such libraries, and what for."""


def needed(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Installed packages that requirements need, directly or indirectly, by name."""
    found: dict[str, Distribution] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (name, extras) in done:
            continue
        done.add((name, extras))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # of another system or Python
            continue
        for text in found[name].requires or []:
            further = Requirement(text)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                waiting.append(further)
    return dict(sorted(found.items()))


def requirements() -> list[str]:
    """Requirements in pyproject.toml, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project["dependencies"] + [text for extra in EXTRAS for text in project["optional-dependencies"][extra]]


def licence_of(package: Distribution) -> str:
    """The licence in a package's metadata, in short; empty if there is none."""
    stated = package.metadata
    [expression, *_more] = stated.get_all("License-Expression") or [""]
    if expression:
        return str(expression)
    classified = [entry.rpartition(" :: ")[2] for entry in stated.get_all("Classifier") or [] if "License ::" in entry]
    if classified:
        return " and ".join(classified)
    [text, *_more] = stated.get_all("License") or [""]
    first = text.strip().splitlines()
    return first[0] if first and len(first[0]) < 80 else ""


def is_copyleft(licence: str) -> bool:
    """Whether a licence demands more than attribution."""
    return COPYLEFT.search(licence) is not None


def libraries_in(package: Distribution) -> dict[str, str]:
    """Shared libraries of copyleft licences inside a package, with their licences."""
    found: dict[str, str] = {}
    for file in package.files or []:
        named = re.match(r"lib([A-Za-z0-9+_]+?)(-[0-9a-f]{8})*[0-9.]*\.so\b", file.name)
        if named:
            for pattern, licence in LIBRARIES.items():
                if re.fullmatch(pattern, named[1]):
                    found[named[1]] = licence
    return dict(sorted(found.items()))


def unnamed_copyleft(packages: dict[str, Distribution]) -> list[str]:
    """A sentence about each package under a copyleft licence, or with such libraries, that is not listed above."""
    found = []
    for name, package in packages.items():
        licence = licence_of(package)
        if not licence:
            found.append(f"{name} does not state its licence")
        if is_copyleft(licence) and name not in NAMED:
            found.append(f"{name} is under {licence}")
        if libraries_in(package) and name not in WHEELS:
            found.append(f"{name} holds {', '.join(libraries_in(package))}")
    return found


def page() -> str:
    """docs/licences.md."""
    tested = {canonicalize_name(line.partition("==")[0]) for line in _constraints()}
    packages = {name: package for name, package in needed(requirements()).items() if name in tested}
    lines = [
        "# Licences of dependencies",
        "",
        "`python scripts/licences.py > docs/licences.md` writes this page from the metadata of the packages that",
        "`make` installs (`constraints.txt`). wordwing itself is under the MIT licence. A test refuses packages and",
        "libraries under copyleft licences that are not named here.",
        "",
        "| package | licence |",
        "| --- | --- |",
        *(f"| {package.name} | {licence_of(package)} |" for package in packages.values()),
        "",
        "## Data",
        "",
        "The word vectors in `src/wordwing/language/words` come from all-MiniLM-L6-v2 (Apache-2.0) and from SymSpell's",
        "English words (MIT; Google Books Ngrams, CC BY 3.0; SCOWL, permissive). `NOTICE.md` there has the notices.",
        "",
        "## Copyleft, and why it is acceptable",
        "",
        *(f"- `{name}`: {why}." for name, why in NAMED.items()),
        "",
        "Some wheels bundle libraries; these are under copyleft licences:",
        "",
        "| wheel | library | licence |",
        "| --- | --- | --- |",
    ]
    for name, package in packages.items():
        lines += [f"| {name} | {library} | {licence} |" for library, licence in libraries_in(package).items()]
    lines += ["", *(f"- `{name}`: {why}." for name, why in WHEELS.items() if libraries_in(packages[name]))]
    return "\n".join(lines) + "\n"


def _constraints() -> list[str]:
    text = (ROOT / "constraints.txt").read_text("utf-8")
    return [line for line in text.splitlines() if "==" in line and not line.startswith("#")]


if __name__ == "__main__":
    print(page(), end="")
