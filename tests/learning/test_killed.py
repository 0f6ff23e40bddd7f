"""Training that is killed thirty times, at random moments, goes on each time and comes to its end."""

from pathlib import Path

import pytest

from interrupting import wait_for
from killing import victims
from tiny_training import begin, counters, end, here, is_alive, kill, learned, no_less, pair, same, tiny, two
from wordwing.learning.sureal import train_synchronously
from wordwing.model.checkpoint import load_network, read_card

KILLS = 30


@pytest.fixture(scope="module")
def cage(run) -> Path:
    return run.data.datasets[0].folder


@pytest.mark.long
def test_two_processes(cage, tmp_path, rng):
    """The command, Process A or Process B is killed: early, when there is a new checkpoint, or a little later."""
    command = two(cage, tmp_path, "schedule.iterations=100000")
    before: dict[str, int] = {}
    for _kill in range(KILLS):
        process = begin(command)
        workers = pair(process)
        if rng.random() < 0.7:
            assert wait_for(lambda: counters(tmp_path) != before, 120)  # noqa: B023
        wait_for(lambda: False, rng.uniform(0, 2))
        kill(rng.choice([process.pid, *workers]))
        end(process)
        assert wait_for(lambda: not any(is_alive(worker) for worker in workers), 10)  # noqa: B023
        after = counters(tmp_path)
        assert no_less(before, after)
        before = after
    assert before["iterations"] > 5
    run = tmp_path / "run.json"
    run.write_text(run.read_text().replace('"iterations": 100000', f'"iterations": {before["iterations"] + 1}'))
    more = f"schedule.iterations={before['iterations'] + 1}"
    status, _out, error = end(begin(two(cage, tmp_path, more)))
    assert status == 0, error
    load_network(tmp_path / "policy")
    assert not list(tmp_path.glob(".*-*")), "nothing of the killed ones is left"


STAGE2 = """
from pathlib import Path
from tiny_training import here, tiny
from wordwing.learning.algorithm2 import ProcessB
from wordwing.learning.sureal import train_synchronously

step = ProcessB.step

def step_and_say(b):
    step(b)
    say(b.reinforcement.iterations)

ProcessB.step = step_and_say
folder, config = Path({folder!r}), tiny(Path({cage!r}), {more!r})
"""


@pytest.mark.long
def test_stage_2(cage, tmp_path, rng):
    """Killed while it learns to fly, it ends with the same parameters to the last bit."""
    more, folder, whole = "schedule.iterations=100", tmp_path / "killed", tmp_path / "whole"
    said = 0
    with victims(
        STAGE2.format(folder=str(folder), cage=str(cage), more=more), "train_synchronously(here(folder), config)"
    ) as children:
        for _kill in range(KILLS // 3):
            lines = children.kill_one_after(rng.uniform(0, 0.5), said=2)  # so that each gets on
            assert int(lines[0]) > said - 2, "it goes on where it was"
            said = int(lines[-1])
            assert said - 1 <= counters(folder)["iterations"] <= said + 1
    assert 5 < said < 100
    for place in (folder, whole):
        train_synchronously(here(place), tiny(cage, more))
    assert same(learned(folder / "state"), learned(whole / "state"))
    files = [(place / "policy" / "model.safetensors").read_bytes() for place in (folder, whole)]
    assert files[0] == files[1]


WRITING = """
import itertools, torch
from small_policy import VOCABULARY, small_network
from wordwing.model.checkpoint import read_card, save_network

network = small_network(0)
"""

WRITE = """
first = int(read_card({folder!r})) + 1 if __import__("os").path.exists({folder!r}) else 1
for number in itertools.count(first):
    with torch.no_grad():
        for tensor in network.state_dict().values():
            tensor.fill_(number)
    save_network({folder!r}, network, VOCABULARY, str(number))
    say(number)
"""


def test_the_writing_of_policies(tmp_path, rng):
    """A policy is always whole: its card tells what its weights are."""
    folder, said = tmp_path / "best", 0
    with victims(WRITING, WRITE.format(folder=str(folder))) as children:
        for _kill in range(KILLS):
            lines = children.kill_one_after(rng.uniform(0, 0.1))
            number = int(read_card(folder))
            assert max(said, int(lines[-1])) <= number <= int(lines[-1]) + 1
            network, _words = load_network(folder)
            assert all(bool((tensor == number).all()) for tensor in network.state_dict().values())
            said = number
    assert said > KILLS
