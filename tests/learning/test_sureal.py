import errno
import itertools
import json
import os
import shutil
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from interrupting import Running, wait_for
from tiny_training import (
    begin,
    command,
    counters,
    end,
    here,
    is_alive,
    kill,
    learned,
    no_less,
    pair,
    same,
    tiny,
    two,
)
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.execution.packing import PackedExecutions
from wordwing.learning import sureal
from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.algorithm2 import PPO, ProcessB
from wordwing.learning.recipes.config import RENAMED
from wordwing.learning.rollouts import Collector
from wordwing.learning.runtime import checkpoints as state, processes
from wordwing.learning.runtime.checkpoints import load_state
from wordwing.learning.runtime.messages import FolderLink, Heartbeat, Parameters, Rollouts, clear_exchange
from wordwing.learning.runtime.runs import opened
from wordwing.learning.sureal import train_synchronously


@pytest.fixture(scope="module")
def cage(run) -> Path:
    return run.data.datasets[0].folder


def policy(folder: Path) -> bytes:
    return (folder / "policy" / "model.safetensors").read_bytes()


def rollouts(examples: list[int], value: int, progress: float) -> Rollouts:
    """Of one pose each."""
    poses = torch.full((len(examples), 1, 6), value, dtype=torch.int16)
    lengths = torch.ones(len(examples), dtype=torch.int64)
    return Rollouts(torch.tensor(examples), PackedExecutions(poses, lengths), progress)


EVALUATED = "schedule.evaluate_every=1"


@pytest.fixture(scope="module")
def whole(cage, tmp_path_factory) -> Path:
    """The folder of a run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    train_synchronously(here(folder), tiny(cage, EVALUATED))
    return folder


def test_the_same_seed_learns_the_same_to_the_last_bit_and_another_seed_does_not(cage, whole, tmp_path):
    torch.manual_seed(77)
    train_synchronously(here(tmp_path / "a"), tiny(cage, EVALUATED))
    assert same(learned(whole / "state"), learned(tmp_path / "a" / "state"))
    assert policy(whole) == policy(tmp_path / "a")
    train_synchronously(here(tmp_path / "b"), tiny(cage, EVALUATED, "seed=1"))
    assert not same(learned(whole / "state"), learned(tmp_path / "b" / "state"))


@pytest.mark.parametrize("saves", [1, 4])
def test_what_is_interrupted_after_any_checkpoint_ends_as_if_it_were_not(cage, whole, tmp_path, monkeypatch, saves):
    # Before cloning, and between an iteration and the update that follows it.
    left = [saves]
    save_state = sureal.save_state

    def interrupted(*arguments):
        save_state(*arguments)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(sureal, "save_state", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_synchronously(here(tmp_path), tiny(cage, EVALUATED))
    train_synchronously(here(tmp_path), tiny(cage, EVALUATED))
    assert same(learned(whole / "state"), learned(tmp_path / "state"))
    assert policy(whole) == policy(tmp_path)


@pytest.fixture
def interrupted(monkeypatch):
    """Lets Ctrl-C come when a method is called for the n-th time."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell

    @contextmanager
    def at(owner, name, call):
        method, calls = getattr(owner, name), itertools.count(1)

        def called(*arguments, **options):
            if next(calls) == call:
                os.kill(os.getpid(), signal.SIGINT)
            return method(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, called)
            yield

    yield at
    signal.signal(signal.SIGINT, before)


MOMENTS = (
    (Supervised, "update", 2, {"updates": 2, "cloned": 0, "iterations": 0, "evaluated": -1}),
    (Collector, "_decide", 2, {"updates": 2, "cloned": 1, "iterations": 0, "evaluated": -1}),
    (ProcessB, "policy", 1, {"updates": 2, "cloned": 1, "iterations": 1, "evaluated": -1}),
    (PPO, "update", 1, {"updates": 3, "cloned": 1, "iterations": 2, "evaluated": 1}),
)
"""What is done when Ctrl-C comes to one session after another, and how far the run is then: flights and evaluations are
interrupted, updates are finished."""


def test_ctrl_c_saves_what_was_learned_and_the_same_command_goes_on(cage, whole, tmp_path, capsys, interrupted):
    config = tiny(cage, EVALUATED, "schedule.save_seconds=1000")
    for owner, name, call, counts in MOMENTS:
        with interrupted(owner, name, call), pytest.raises(KeyboardInterrupt):
            train_synchronously(here(tmp_path), config)
        assert "saving what has been learned" in capsys.readouterr().err
        found = counters(tmp_path)
        assert found == found | counts
    train_synchronously(here(tmp_path), config)
    assert "resuming at update 4, iteration 2\n" in capsys.readouterr().err
    assert same(learned(whole / "state"), learned(tmp_path / "state"))
    assert policy(whole) == policy(tmp_path)


def test_a_run_with_every_switch_goes_on_from_a_checkpoint_as_if_it_had_not_ended(cage, tmp_path, monkeypatch):
    switches = (
        "model.stage1.phases=4",
        "model.stage1.lingunet.attention=3",
        "model.stage2.phases=4",
        "supervised.average=0.9",
        "supervised.late_images=3",
    )
    train_synchronously(here(tmp_path / "whole"), tiny(cage, *switches))
    left, save_state = [2], sureal.save_state

    def interrupted(*arguments):
        save_state(*arguments)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(sureal, "save_state", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_synchronously(here(tmp_path / "cut"), tiny(cage, *switches))
    train_synchronously(here(tmp_path / "cut"), tiny(cage, *switches))
    assert same(learned(tmp_path / "whole" / "state"), learned(tmp_path / "cut" / "state"))
    assert policy(tmp_path / "whole") == policy(tmp_path / "cut")
    tensors = load_state(tmp_path / "whole" / "state")[0]
    kept = load_file(tmp_path / "whole" / "policy" / "model.safetensors")
    average = {name.partition(".average.")[2]: one for name, one in tensors.items() if ".average." in name}
    assert average, "what is kept is the average"
    assert all(torch.equal(kept[f"stage1.{name}"], one) for name, one in average.items() if "vision.lab" not in name)


def test_a_full_disk_ends_it_with_a_sentence_and_the_old_checkpoint_goes_on(cage, whole, tmp_path, monkeypatch, capsys):
    fsync, left = os.fsync, [4]

    def full(file):
        if "/state-1-of-" in os.readlink(f"/proc/self/fd/{file}"):
            left[0] -= 1
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    monkeypatch.setattr(state.os, "fsync", full)
    with pytest.raises(SystemExit) as stop:
        main(command(cage, tmp_path, EVALUATED))
    assert stop.value.code == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("wordwing: ")]
    assert said == [f"wordwing: {tmp_path / 'state'}: the disk is full; nothing was changed"]
    assert counters(tmp_path)["cloned"] == 1
    main(command(cage, tmp_path, EVALUATED))
    assert same(learned(whole / "state"), learned(tmp_path / "state"))


def test_the_time_of_process_b_includes_the_warm_up_of_earlier_sessions(cage, tmp_path, monkeypatch):
    sleep, seconds = time.sleep, []
    for nap in (0.5, 0.0):
        naps = iter([nap, 0.0])

        def doze(_given):
            if (given := next(naps, None)) is None:  # noqa: B023
                raise KeyboardInterrupt
            sleep(given)

        monkeypatch.setattr(sureal.time, "sleep", doze)
        with pytest.raises(KeyboardInterrupt):
            sureal._process_b(Heartbeat(tmp_path / "exchange", "b"), os.getppid(), here(tmp_path), tiny(cage))
        seconds.append(load_state(tmp_path / "state-b")[1]["seconds"])
    assert seconds[1] > seconds[0] > 0.5


@pytest.mark.parametrize(
    ("code", "said", "sentence"),
    [
        (-9, None, "Process A was killed by SIGKILL; the same command resumes from the last checkpoint"),
        (1, None, "Process A ended with status 1; the same command resumes from the last checkpoint"),
        (2, "x: the disk is full", "x: the disk is full"),
    ],
)
def test_who_vanishes_is_named_with_its_own_words_if_it_left_some(tmp_path, code, said, sentence):
    if said:
        Heartbeat(tmp_path, "a").beat({"phase": "failed", "error": said})
    assert str(processes._vanished("a", code, tmp_path)) == sentence


def test_an_exchange_is_cleared_of_messages_and_of_nothing_else(tmp_path):
    link = FolderLink(tmp_path / "exchange")
    link.send_parameters(Parameters(1, {"x": torch.zeros(1)}))
    link.send_rollouts(rollouts([0], 0, 0.5))
    Heartbeat(tmp_path / "exchange", "b").beat({})
    (tmp_path / "exchange" / ".parameters-abcd1234.safetensors").write_text("half a message")
    (tmp_path / "exchange" / "rates.csv").write_text("mine")
    clear_exchange(tmp_path / "exchange")
    assert [path.name for path in (tmp_path / "exchange").iterdir()] == ["rates.csv"]
    (tmp_path / "exchange" / "rates.csv").unlink()
    clear_exchange(tmp_path / "exchange")
    clear_exchange(tmp_path / "exchange")
    assert not (tmp_path / "exchange").exists()


def test_only_one_command_at_a_time_trains_in_a_folder(cage, tmp_path):
    config = tiny(cage)
    with opened(here(tmp_path), config) as finished:
        assert not finished
        with pytest.raises(WordwingError, match="another command is training there"), opened(here(tmp_path), config):
            pass
    with opened(here(tmp_path), config) as finished:
        assert not finished, "it was begun, but has no policy"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("data.limit=7", r"data\.limit \(8 there, 7 here\)"),
        ("schedule.minutes=3", r"schedule\.minutes \(none there, 3\.0 here\)"),
        ("seed=4", r"seed \(0 there, 4 here\)"),
        ("data.segments=1,2", r"data\.segments \(1 there, 1,2 here\)"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused_by_name(cage, tmp_path, change, name):
    with opened(here(tmp_path), tiny(cage)):
        (tmp_path / "state-b").mkdir()
    with pytest.raises(WordwingError, match=f"differs in {name}"), opened(here(tmp_path), tiny(cage, change)):
        pass


def test_a_run_that_has_nothing_yet_may_get_other_settings(cage, tmp_path):
    with opened(here(tmp_path), tiny(cage, "data.dev=7")):
        pass
    with opened(here(tmp_path), tiny(cage)) as finished:
        assert not finished
    assert json.loads((tmp_path / "run.json").read_text())["data"]["dev"] == 2


def test_a_folder_of_the_first_version_is_known_by_its_old_settings(cage, tmp_path):
    config = tiny(cage)
    with opened(here(tmp_path), config):
        (tmp_path / "state").mkdir()
    run = json.loads((tmp_path / "run.json").read_text())
    for old, new in RENAMED.items():
        *groups, name = old.split(".")
        record = run
        for group in groups:
            record = record[group]
        record[name] = record.pop(new.rpartition(".")[2])
    (tmp_path / "run.json").write_text(json.dumps(run))
    with opened(here(tmp_path), config):
        pass
    with pytest.raises(WordwingError, match=r"differs in data\.min_word_count \(2 there, 3 here\)"):
        opened(here(tmp_path), tiny(cage, "data.min_word_count=3")).__enter__()


def test_another_command_or_another_number_of_processes_in_the_same_folder_is_refused(cage, tmp_path):
    with opened(here(tmp_path), tiny(cage)):
        (tmp_path / "best").mkdir()
    with pytest.raises(WordwingError, match=r"differs in command \(sureal there, bc here\)"):
        opened(here(tmp_path, "bc"), tiny(cage)).__enter__()
    with pytest.raises(WordwingError, match=r"differs in synchronous \(true there, false here\)"):
        opened(replace(here(tmp_path), synchronous=False), tiny(cage)).__enter__()
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(WordwingError, match=r"run\.json: this cannot be read"):
        opened(here(tmp_path), tiny(cage)).__enter__()


def test_a_folder_that_cannot_be_one_is_refused(cage, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WordwingError, match="a run cannot be kept there"):
        opened(here(tmp_path / "file"), tiny(cage)).__enter__()


@pytest.mark.long
def test_killed_at_any_moment_and_begun_again_it_ends_with_the_same_parameters(cage, tmp_path, rng):
    more = "schedule.iterations=8"
    train_synchronously(here(tmp_path / "whole"), tiny(cage, more))
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    before: dict[str, int] = {}
    for kills in range(6):
        process = begin(command(cage, folder, more))
        if kills != 3:  # that one is killed before it has done anything
            assert wait_for(lambda: counters(folder) != before or process.poll() is not None, 60)  # noqa: B023
        if wait_for(lambda: process.poll() is not None, rng.uniform(0, 1.5)):  # noqa: B023
            break
        process.kill()
        process.communicate()
        after = counters(folder)
        assert no_less(before, after)
        before = after
    assert kills >= 3
    status, out, error = end(begin(command(cage, folder, more)))
    assert status == 0, error
    assert "policies:" in out
    assert same(learned(whole / "state"), learned(folder / "state"))
    assert policy(whole) == policy(folder)
    assert not list(folder.glob(".state-*")) + list(folder.glob(".policy-*")) + list(folder.glob(".best-*"))
    steps = [json.loads(line)["step"] for line in (folder / "log-a" / "scalars.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps)), "its log has every step once"


@pytest.fixture
def finishes(cage):
    """Whether the same command, begun again, finishes a run."""

    def check(out: Path, *more: str) -> None:
        status, _out, error = end(begin(two(cage, out, *more)))
        assert status == 0, error
        assert policy(out)
        assert counters(out)["iterations"] >= 2
        assert not (out / "exchange").exists()

    return check


@pytest.mark.long
def test_two_processes_run_to_the_end_and_a_finished_run_says_so(cage, tmp_path, finishes):
    finishes(tmp_path)
    before = policy(tmp_path)
    card = (tmp_path / "policy" / "README.md").read_text()
    assert "dev/success" in card
    status, out, error = end(begin(two(cage, tmp_path)))
    assert status == 0, error
    assert "this run is finished; another --out begins a new one" in out
    assert policy(tmp_path) == before
    assert (tmp_path / "policy" / "README.md").read_text() == card


@pytest.mark.long
@pytest.mark.parametrize("victim", ["A", "B"])
def test_if_a_process_vanishes_the_command_says_which_and_goes_on_when_begun_again(
    cage, tmp_path, rng, victim, finishes
):
    before: dict[str, int] = {}
    for turn in range(3):
        process = begin(two(cage, tmp_path, "schedule.iterations=40"))
        workers = pair(process)
        if turn:
            assert wait_for(lambda: counters(tmp_path) != before, 60)  # noqa: B023
        wait_for(lambda: False, rng.uniform(0, 4))
        kill(workers["AB".index(victim)])
        status, out, error = end(process, 30)
        assert status == 2
        assert out.count("\n") == 1, "only what is said about the recipe"
        assert error.splitlines()[-1] == (
            f"wordwing: Process {victim} was killed by SIGKILL; the same command resumes from the last checkpoint"
        )
        assert not any(is_alive(worker) for worker in workers)
        after = counters(tmp_path)
        assert no_less(before, after)
        before = after
    assert before
    (tmp_path / "run.json").write_text((tmp_path / "run.json").read_text().replace(": 40", ": 2"))
    finishes(tmp_path)


@pytest.mark.long
def test_processes_do_not_outlive_their_parent_and_its_run_can_be_gone_on_with_at_once(cage, tmp_path, rng, finishes):
    before: dict[str, int] = {}
    for turn in range(3):
        process = begin(two(cage, tmp_path))
        workers = pair(process)
        if turn:
            assert wait_for(lambda: counters(tmp_path) != before, 60)  # noqa: B023
        wait_for(lambda: False, rng.uniform(0, 1.5))
        process.kill()
        process.communicate()
        assert wait_for(lambda: not any(is_alive(worker) for worker in workers), 5)  # noqa: B023
        after = counters(tmp_path)
        assert no_less(before, after)
        before = after
    finishes(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_lets_both_processes_save_and_a_second_one_ends_them_at_once(cage, tmp_path, finishes, times):
    out = tmp_path / "run"
    slow = ("schedule.iterations=1000", "schedule.save_seconds=1000" if times == 1 else "schedule.save_seconds=0")
    with Running(["-m", "wordwing", *two(cage, out, *slow)], tmp_path) as running:
        running.wait_until((out / "log-b" / "scalars.jsonl").exists)
        running.wait_until(lambda: times == 1 or counters(out).get("iterations", 0) > 0)
        before = counters(out)
        running.interrupt()
        running.wait_until_said("saving what has been learned")
        if times == 2:
            running.interrupt()
        assert running.end().endswith("wordwing: interrupted\n")
    found = counters(out)
    assert no_less(before, found)
    assert found["updates"] >= 2
    assert found["iterations"] >= 1
    if times == 1:
        assert not list((out / "exchange").glob("rollouts-*")), "Process A has taken what Process B had flown"
    with Running(["-m", "wordwing", *two(cage, out, *slow)], tmp_path) as running:
        running.wait_until_said(f"A stage 1: resuming at update {found['updates'] + found['cloned']}\n")
        running.wait_until_said(f"B stage 2: resuming at iteration {found['iterations']}\n")
    run = out / "run.json"
    run.write_text(run.read_text().replace(": 1000,", ": 2,").replace('"save_seconds": 1000.0', '"save_seconds": 0.0'))
    finishes(out)


@pytest.mark.long
def test_stale_messages_of_a_previous_run_are_neither_taken_for_new_ones_nor_in_the_way(cage, tmp_path, finishes):
    stale = FolderLink(tmp_path / "exchange")
    stale.send_parameters(Parameters(1_000_000, {"stage1.nothing": torch.zeros(3)}))
    stale.send_rollouts(rollouts([0, 7_000], 30_000, 1.0))
    Heartbeat(tmp_path / "exchange", "b").beat({"phase": "finished"})
    Heartbeat(tmp_path / "exchange", "a").beat({"phase": "failed", "error": "long ago"})
    finishes(tmp_path)
    assert counters(tmp_path)["updates"] >= 2, "process A was not told that all is finished"
    assert load_state(tmp_path / "state-b")[1]["stage1_version"] < 1000


@pytest.mark.long
def test_when_only_process_b_had_finished_the_same_command_ends_soon(cage, tmp_path, finishes):
    finishes(tmp_path)
    before = policy(tmp_path)
    for name in ("policy", "state-a"):
        shutil.rmtree(tmp_path / name)
    finishes(tmp_path)
    assert policy(tmp_path) == before


FULL = """
import errno, os, sys
from pathlib import Path

if __name__ != "__main__":  # in both processes, not in the one that watches them
    from wordwing.learning.runtime import logs as metric_log

    fsync, write_bytes, write = os.fsync, Path.write_bytes, metric_log.MetricLog._write
    left = 3

    class Disk:
        def write(self, *_):
            global left
            left -= 1
            if left <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    def full_state(file):
        Disk().write()
        fsync(file)

    def full_exchange(path, data):
        if path.name.startswith(".parameters"):
            Disk().write()
        return write_bytes(path, data)

    def full_log(book, file, path, data):
        Disk().write() if left > 1 else write(book, Disk(), path, data)

    if {where!r} == "state":
        os.fsync = full_state
    elif {where!r} == "exchange":
        Path.write_bytes = full_exchange
    else:
        metric_log.MetricLog._write = full_log

if __name__ == "__main__":
    from wordwing.cli import main

    main(sys.argv[1:])
"""
"""A wordwing command on a disk that has room for two more writes of some kind."""


@pytest.mark.long
@pytest.mark.parametrize("where", ["state", "exchange", "log"])
def test_a_disk_that_fills_up_under_one_process_ends_both_with_its_sentence(cage, tmp_path, finishes, where):
    script, folder = tmp_path / "full.py", tmp_path / "run"
    script.write_text(FULL.format(where=where))
    status, _out, error = end(begin(two(cage, folder, "schedule.iterations=30"), script), 90)
    assert status == 2
    assert "Traceback" not in error
    said = [line for line in error.splitlines() if line.startswith("wordwing: ")]
    assert len(said) == 1
    assert said[0].startswith(f"wordwing: {folder}/{where}")
    assert "the disk is full" in said[0]
    before = counters(folder)
    run = folder / "run.json"
    run.write_text(run.read_text().replace('"iterations": 30', '"iterations": 2'))
    finishes(folder)
    assert no_less(before, counters(folder))
