"""What a user gets from the package index, not from a checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = ("fastapi", "uvicorn", "pymavlink", "pytest", "mypy", "ruff")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    subprocess.run(command, check=True)
    [built] = out.glob("wordwing-*.whl")
    return built


def test_the_wheel_holds_every_landmark_and_the_type_marker_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert sum(name.startswith("wordwing/world/landmarks/") and name.endswith(".xml") for name in names) == 90
    assert "wordwing/py.typed" in names
    assert "wordwing/world/catalogue.json" in names
    report = {
        "paper.csv",
        "templates/card.md",
        "templates/report.html",
        "templates/style.css",
        *(f"templates/table.{k}" for k in ("md", "tex", "html")),
    }
    assert {f"wordwing/evaluation/report/{name}" for name in report} <= set(names)
    assert {"wordwing/study/templates/mturk.html", "wordwing/data/written.jsonl.xz"} <= set(names)
    assert {f"wordwing/language/words/{name}" for name in ("english.npz", "NOTICE.md", "APACHE-2.0.txt")} <= set(names)
    assert not [name for name in names if "test" in name.lower()]
    assert all(name.startswith(("wordwing/", "wordwing-")) for name in names)  # no recorded flights, no documents


def test_the_wheel_flies_in_another_folder_without_extras(wheel, tmp_path):
    """The dependencies are those of this environment; importing any package of an extra fails."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = (
        "import sys\n"
        f"for name in {EXTRAS!r}: sys.modules[name] = None\n"
        "import wordwing, pathlib\n"
        f"assert pathlib.Path(wordwing.__file__).is_relative_to({str(site)!r}), wordwing.__file__\n"
        "from wordwing.cli import main\n"
        "main(['fly', 'go to the boat', '--seed', '1'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "fly" / "flight.mp4").stat().st_size > 10_000


@pytest.mark.long
def test_the_wheel_installs_and_flies_in_a_virtual_environment_of_its_own(wheel, tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    constraints = str(ROOT / "constraints.txt")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--constraint", constraints, str(wheel)], check=True)
    command = [tmp_path / "venv" / "bin" / "wordwing", "fly", "go to the boat"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "fly" / "flight.mp4").exists()
