"""The house stays plain: one loop, one direction, no name twice, and the walks that docs/architecture.md describes."""

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from small_policy import VOCABULARY, small_network
from small_run import small_run
from tiny_training import here, tiny
from wordwing.data import schema
from wordwing.execution.runner import fly
from wordwing.learning.contexts import FlightCamera
from wordwing.learning.sureal import train_synchronously
from wordwing.model.stage1 import Stage1
from wordwing.policies.baselines import Average
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "wordwing"
FILES = sorted(PACKAGE.rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def name(file: Path) -> str:
    return str(file.relative_to(PACKAGE))


def test_no_public_class_name_is_used_twice():
    homes = defaultdict(list)
    for file in FILES:
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name(file))
    assert {cls: found for cls, found in homes.items() if len(found) > 1} == {}


def test_no_folder_has_more_than_fifteen_modules():
    assert {name(folder): count for folder, count in Counter(file.parent for file in FILES).items() if count > 15} == {}


def test_a_policy_acts_and_an_environment_steps_in_one_place():
    """What measures speed calls the parts themselves, and the guardian predicts with a drone of its own."""
    acts, steps = [], []
    for file in FILES:
        if name(file).startswith("bench/") or name(file) == "flight/guardian/prediction.py":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value).rpartition(".")[2].strip("_")
                if node.func.attr == "act":
                    acts.append(name(file))
                elif node.func.attr == "step" and owner in ("environment", "simulator", "env", "vehicle", "drone"):
                    steps.append(name(file))
    assert acts == ["execution/runner.py"]
    assert steps == ["execution/runner.py"]


def test_the_image_of_the_layers_is_that_of_the_contract():
    sys.path.insert(0, str(ROOT / "scripts"))
    import architecture

    drawn = (ROOT / "docs" / "architecture.svg").read_text("utf-8")
    assert drawn == architecture.picture()
    folders = {name(file.parent) for file in FILES if file.name == "__init__.py"}
    listed = {module for layer in architecture.layers() for module in layer}
    top = {folder for folder in folders if "/" not in folder and folder != "."}
    assert top | {file.stem for file in PACKAGE.glob("*.py") if file.stem != "__init__"} == listed


def stack() -> list[str]:
    """The files of the package that are on the call stack, the outermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if PACKAGE in file.parents:
            found.insert(0, name(file))
        frame = frame.f_back
    return found


class Walk:
    """The files that a call passes through on its way to some functions, in the order in which it first meets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.reached = monkeypatch, {}

    def to(self, owner: object, function: str) -> None:
        """Note the stack when a function is called for the first time."""
        called = getattr(owner, function)

        def noting(*arguments, **options):
            self.reached.setdefault(function, stack())
            return called(*arguments, **options)

        self.monkeypatch.setattr(owner, function, noting)

    @property
    def stops(self) -> list[str]:
        return list(dict.fromkeys(file for found in self.reached.values() for file in found))


def described(title: str) -> list[str]:
    """The stops of a walk as the page lists them."""
    [section] = re.findall(rf"^### {title}$(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


def test_a_sentence_becomes_a_video_in_the_stops_that_the_page_lists(monkeypatch, tmp_path):
    import av

    from wordwing.cli import main

    LearnedPolicy(small_network(), VOCABULARY).save(tmp_path / "policy")
    walk = Walk(monkeypatch)
    walk.to(Stage1, "encode_text")
    walk.to(Simulator, "step")
    walk.to(av, "open")
    monkeypatch.setattr("wordwing.evaluation.demo.STEPS", 3)
    main(["fly", "go to the barrel", "--policy", str(tmp_path / "policy"), "--out", str(tmp_path / "out")])
    assert walk.stops == described("From a sentence to a video")
    assert len(walk.stops) <= 7


def test_a_line_of_json_becomes_a_gradient_in_the_stops_that_the_page_lists(monkeypatch, tmp_path):
    cage = small_run(tmp_path).data.datasets[0].folder
    walk = Walk(monkeypatch)
    walk.to(schema, "parse_json")
    walk.to(FlightCamera, "render")
    walk.to(Stage1, "predict")
    walk.to(torch.Tensor, "backward")
    train_synchronously(here(tmp_path / "run"), tiny(cage, "data.limit=2"), until="warm")
    assert walk.stops == described("From a line of JSON to a gradient")
    assert len(walk.stops) <= 10


def test_a_decision_becomes_a_packet_in_the_stops_that_the_page_lists(monkeypatch):
    from wordwing.flight.guardian import safety
    from wordwing.flight.guardian.guardian import Guardian
    from wordwing.flight.lockstep import LabLink, open_lockstep
    from wordwing.flight.mavlink import messages

    task = Task("go on", Layout(()), (0.0, 0.0), 0.0, np.zeros((1, 2)))
    with open_lockstep("lab", [task], autopilot="px4") as vehicle:
        walk = Walk(monkeypatch)
        walk.to(Guardian, "order")
        walk.to(safety, "largest_safe_speed")
        walk.to(messages.mavlink.MAVLink_set_position_target_local_ned_message, "__init__")
        walk.to(LabLink, "send")
        fly(Average(0.4, 0.1, 2), vehicle, [task], max_steps=3)
    assert walk.stops == described("From a decision to a packet")
    assert len(walk.stops) <= 10
