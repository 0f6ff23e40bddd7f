"""Ctrl-C while each command works: one line, status 130, no orphan, nothing half-written."""

import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tiny_training
from house_rooms import random_furniture, random_paragraph, write_human_nav
from interrupting import Running, command
from small_collection import small_collection
from small_evaluation import save_policy, small_cage
from small_study import small_study
from studio_server import LAYOUT, START

EPISODES = Path(__file__).parents[1] / "results" / "cage-dev-sim"


@dataclass(frozen=True)
class Place:
    """What commands are given."""

    folder: Path
    """Of one test."""
    cage: Path
    """A small dataset."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def port(self, kind: int = socket.SOCK_STREAM) -> int:
        with socket.socket(socket.AF_INET, kind) as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]


Case = Iterator[object]
"""First the arguments of a command; then, given the running command, it goes on when that works."""


@pytest.fixture(scope="module")
def cage(tmp_path_factory) -> Path:
    return small_cage(tmp_path_factory.mktemp("data") / "cage", steps=50, train=5, dev=5).folder


@pytest.fixture
def place(tmp_path, cage) -> Place:
    return Place(tmp_path, cage)


def fly(place: Place) -> Case:
    running = yield "fly", "go to the barrel", "--policy", "oracle", "--out", place.out
    running.wait_until(lambda: list(place.out.glob(".flight-*.mp4")))


def build(place: Place) -> Case:
    running = yield "data", "build", "--corpora", "cage", "errands", "--share", "0.02", "--out", place.out
    running.wait_until((place.out / "cage").exists)


def demonstrate_sim(place: Place) -> Case:
    running = yield "data", "demonstrate", place.cage, "--out", place.out
    running.wait_until(lambda: running.has_loaded("warp.so"))


def demonstrate_lab(place: Place) -> Case:
    running = yield "data", "demonstrate", place.cage, "--domain", "lab", "--processes", "2", "--out", place.out
    running.wait_until(lambda: list(place.out.glob("*.parts/*.npz")))


def import_human_nav(place: Place) -> Case:
    rng = np.random.default_rng(0)
    rows = [random_paragraph(rng, str(number), "hall") for number in range(20)]
    many = [{**row, "id": f"{row['id']}-{copy}"} for copy in range(200) for row in rows]
    source = write_human_nav(place.folder / "in", {"hall": random_furniture(rng, 8)}, {"train": many})
    running = yield "data", "import", "human-nav", source, "--out", place.out
    running.wait_until(lambda: running.reads(source / "train.jsonl.xz"))


def stats(place: Place) -> Case:
    running = yield "data", "stats", place.cage
    running.wait_until(lambda: running.has_loaded("libtorch_cpu"))


def show_frames(place: Place) -> Case:
    running = yield "data", "show", "frames", "--domain", "lab", "--count", "200", "--out", place.out / "frames.png"
    running.wait_until(lambda: running.has_loaded("warp.so"))


def train(what: str) -> Callable[[Place], Case]:
    def case(place: Place) -> Case:
        long = ("schedule.warm_up=1000", "schedule.save_seconds=1000")
        running = yield tiny_training.command(place.cage, place.out, *long, what=what)
        running.wait_until((place.out / "log-a" / "scalars.jsonl").exists)

    return case


def evaluate_sim(place: Place) -> Case:
    policy = save_policy(place.folder / "policy", stop=-1e4)
    running = yield "evaluate", "stop", policy, "--data", place.cage, "--out", place.out
    running.wait_until(lambda: (place.out / "episodes.jsonl").is_file())


def evaluate_lab(place: Place) -> Case:
    given = ("--data", place.cage, "--domain", "lab", "--processes", "2", "--out", place.out)
    running = yield "evaluate", "oracle", *given
    running.wait_until(lambda: (place.out / "episodes.jsonl").is_file())


def report(place: Place) -> Case:
    flown = shutil.copytree(EPISODES, place.folder / "flown")
    running = yield "report", flown, "--out", place.out
    running.wait_until(lambda: list(place.folder.glob(".out-*")))


def study_create(place: Place) -> Case:
    given = ("--limit", "60", "--processes", "2", "--out", place.out / "study.db")
    running = yield "study", "create", "--episodes", EPISODES, *given
    running.wait_until(lambda: len(running.members()) > 3)


def study_serve(place: Place) -> Case:
    small_study(place.folder / "study.db")
    running = yield "study", "serve", place.folder / "study.db", "--port", place.port()
    running.wait_until_said("close it with Ctrl+C")


def collect_create(place: Place) -> Case:
    given = ("--by", "human", "--paths", "60", "--processes", "2", "--out", place.out / "collection.db")
    running = yield "collect", "create", *given
    running.wait_until(lambda: len(running.members()) > 3)


def collect_serve(place: Place) -> Case:
    small_collection(place.folder / "collection.db")
    running = yield "collect", "serve", place.folder / "collection.db", "--port", place.port()
    running.wait_until_said("close it with Ctrl+C")


def studio(place: Place) -> Case:
    """While somebody flies in the lab."""
    from websockets.sync.client import connect

    port, policy = place.port(), save_policy(place.folder / "small", stop=-1e4)
    running = yield "studio", "--port", port, "--policies", policy, "--keep", place.out
    running.wait_until_said("close it with Ctrl+C")
    running.wait_until(lambda: _listens(port))
    with connect(f"ws://127.0.0.1:{port}/ws", origin=f"http://127.0.0.1:{port}", open_timeout=60) as page:
        page.send(json.dumps({"type": "place", "layout": LAYOUT, "start": START, "seed": 0, "vehicle": "lab"}))
        page.recv()
        page.send(json.dumps({"type": "fly", "text": "go to the barrel", "policies": ["small"]}))
        yield


def lab_serve(place: Place) -> Case:
    ports = ("--port", place.port(socket.SOCK_DGRAM), "--video", place.port())
    running = yield "lab", "serve", *ports, "--arena", place.out / "arena.json"
    running.wait_until_said("end it with Ctrl+C")


def flight_check(place: Place) -> Case:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as autopilot:
        autopilot.bind(("127.0.0.1", 0))
        autopilot.settimeout(120)
        given = ("--write", "--arena", place.out / "arena.json")
        yield "flight", "check", f"udp:127.0.0.1:{autopilot.getsockname()[1]}", *given
        autopilot.recv(300)


def flight_mocap(place: Place) -> Case:
    source, url = (f"udp:127.0.0.1:{place.port(socket.SOCK_DGRAM)}" for _each in range(2))
    running = yield "flight", "mocap", "--source", source, "--url", url
    running.wait_until_said("poses")


def bench(what: str, *options: str | int) -> Callable[[Place], Case]:
    def case(place: Place) -> Case:
        corpus = ("--corpus", place.cage) if what == "learn" else ()
        running = yield "bench", what, *options, *corpus
        if what in ("learn", "flight"):
            running.wait_until(lambda: len(running.members()) > 1)
        else:
            running.wait_until_said('"figure"')

    return case


QUICK = {"fly": fly, "data build": build, "train sureal": train("sureal"), "studio": studio}

LONG = {
    "data demonstrate": demonstrate_sim,
    "data demonstrate --domain lab": demonstrate_lab,
    "data import": import_human_nav,
    "data stats": stats,
    "data show": show_frames,
    "train bc": train("bc"),
    "train stage1": train("stage1"),
    "evaluate": evaluate_sim,
    "evaluate --domain lab": evaluate_lab,
    "report": report,
    "study create": study_create,
    "study serve": study_serve,
    "collect create": collect_create,
    "collect serve": collect_serve,
    "lab serve": lab_serve,
    "flight check": flight_check,
    "flight mocap": flight_mocap,
    "bench sim": bench("sim", "--seconds", 5),
    "bench model": bench("model", "--seconds", 5),
    "bench emd": bench("emd", "--seconds", 5),
    "bench learn": bench("learn", "--seconds", 5),
    "bench flight": bench("flight", "--seconds", 5),
}

CASES = [pytest.param(case, id=name) for name, case in QUICK.items()]
CASES += [pytest.param(case, id=name, marks=pytest.mark.long) for name, case in LONG.items()]


@pytest.mark.parametrize("case", CASES)
def test_it_ends_a_command_and_leaves_nothing_half_written(case, place, monkeypatch):
    temporary = place.folder / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    work = case(place)
    with Running(command(*next(work)), place.folder, stdin=subprocess.DEVNULL) as running:
        with suppress(StopIteration):
            work.send(running)
        running.interrupt()
        said = running.end()
    assert said.endswith("wordwing: interrupted\n")
    assert said.count("interrupted") == 1
    assert not [path.name for path in place.folder.rglob(".*") if path.name != ".lock"]
    assert not [path.name for path in temporary.iterdir() if not path.name.startswith("torchinductor")]  # a cache


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
