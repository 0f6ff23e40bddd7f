"""What wordwing needs may be used and passed on as wordwing itself may, but for what is named."""

import sys
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import licences  # noqa: E402


def package(folder: Path, metadata: str, files: str = "") -> Distribution:
    """An installed package of which only this is known."""
    place = folder / "thing-1.dist-info"
    place.mkdir(parents=True, exist_ok=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.4\nName: thing\nVersion: 1\n{metadata}\n")
    (place / "RECORD").write_text(files)
    return PathDistribution(place)


def test_nothing_that_is_needed_is_copyleft_but_what_is_named():
    packages = licences.needed(licences.requirements())
    assert {"torch", "fastapi", "pymavlink", "starlette", "numpy"} <= packages.keys()
    assert licences.unnamed_copyleft(packages) == []
    for name in licences.NAMED:
        assert licences.is_copyleft(licences.licence_of(packages[name]))
    for name in licences.WHEELS:
        assert licences.libraries_in(packages[name])


@pytest.mark.parametrize(
    ("metadata", "files", "said"),
    [
        ("License-Expression: GPL-3.0-or-later", "", "thing is under GPL-3.0-or-later"),
        (
            "Classifier: License :: OSI Approved :: GNU Affero General Public License v3",
            "",
            "thing is under GNU Affero",
        ),
        ("License: LGPLv3", "", "thing is under LGPLv3"),
        ("License-Expression: MIT AND MPL-2.0", "", "thing is under MIT AND MPL-2.0"),
        ("", "", "thing does not state its licence"),
        ("License: MIT", "thing.libs/libx264-d6533a8d.so.165,,\n", "thing holds x264"),
    ],
)
def test_a_package_that_is_not_named_is_refused(tmp_path, metadata, files, said):
    [sentence] = licences.unnamed_copyleft({"thing": package(tmp_path, metadata, files)})
    assert sentence.startswith(said)


@pytest.mark.parametrize(
    "metadata",
    [
        "License-Expression: MIT-CMU",
        "License-Expression: Apache-2.0 WITH LLVM-exception",
        "Classifier: License :: OSI Approved :: BSD License",
        "License: 3-Clause BSD License",
    ],
)
def test_a_permissive_package_is_not(tmp_path, metadata):
    assert licences.unnamed_copyleft({"thing": package(tmp_path, metadata, "thing/libzstd-40ad5e7e.so.1,,\n")}) == []


def test_the_page_lists_every_package_that_is_installed_with_the_constraints():
    listed = {row.split("|")[1].strip() for row in licences.page().splitlines() if row.startswith("| ")}
    page = (ROOT / "docs" / "licences.md").read_text("utf-8")
    assert {row.split("|")[1].strip() for row in page.splitlines() if row.startswith("| ")} == listed
    assert len(listed) > 60
