"""Work that is shared: every piece once, and no more of it than is wanted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pool_work import killed, marked, mistaken, squared
from wordwing.errors import WordwingError
from wordwing.pool import shared

SENTENCE = "a process was killed; try again"


def marks(folder: Path, word: str) -> set[int]:
    return {int(path.name.partition("-")[2]) for path in folder.glob(f"{word}-*")}


@pytest.mark.parametrize("processes", [0, 1, 2, 3])
def test_every_piece_comes_once_with_its_result(processes):
    found = list(shared(squared, range(5), processes, SENTENCE))
    assert sorted(piece for piece, _result in found) == [0, 1, 2, 3, 4]
    assert all(result[0] == piece * piece for piece, result in found)
    workers = {result[1] for _piece, result in found}
    assert (workers == {os.getpid()}) == (processes <= 1)
    assert len(workers) <= max(processes, 1)


def test_one_piece_is_done_here_and_none_at_all_is_nothing():
    [(piece, result)] = shared(squared, [7], 8, SENTENCE)
    assert (piece, result[:2]) == (7, (49, os.getpid()))
    assert list(shared(squared, [], 2, SENTENCE)) == []


@pytest.mark.parametrize("before", [None, "5"])
def test_processes_have_one_thread_each_and_this_one_keeps_its_own(before, monkeypatch):
    if before is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", before)
    assert {result[2] for _piece, result in shared(squared, range(3), 2, SENTENCE)} == {"1"}
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_in_one_process_a_piece_begins_when_the_one_before_has_been_taken(tmp_path):
    work = shared(marked, [(str(tmp_path), number, 0.0) for number in range(4)], 1, SENTENCE)
    assert marks(tmp_path, "begun") == set()
    for number in range(3):
        next(work)
        assert marks(tmp_path, "begun") == set(range(number + 1))


def test_after_an_exception_where_results_are_taken_no_further_pieces_begin(tmp_path):
    def take() -> None:
        for _piece, _number in shared(marked, [(str(tmp_path), number, 0.2) for number in range(20)], 2, SENTENCE):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        take()
    begun = marks(tmp_path, "begun")
    assert 1 <= len(begun) <= 3
    assert marks(tmp_path, "ended") == begun, "what was begun is ended before the exception goes on"


def test_after_ctrl_c_pieces_that_were_begun_are_ended_and_no_others_begin(tmp_path):
    source = """
import signal
import sys
from pool_work import marked
from wordwing.pool import shared
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background of a shell
    pieces = [(sys.argv[1], number, 1.0) for number in range(20)]
    try:
        for _piece, number in shared(marked, pieces, 2, "killed"):
            print(number, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""
    (tmp_path / "script.py").write_text(source)
    paths = [str(Path(__file__).parent), str(Path(sys.modules["wordwing"].__file__).parents[1])]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    while len({mark.read_text() for mark in tmp_path.glob("begun-*")} - {""}) < 2:
        time.sleep(0.01)  # until both have come to work
    before = marks(tmp_path, "begun")
    os.killpg(process.pid, signal.SIGINT)  # a terminal tells the whole group
    said, complained = process.communicate(timeout=60)
    assert said.splitlines()[-1] == "interrupted"
    assert complained == ""
    begun = marks(tmp_path, "begun")
    assert len(begun - before) <= 1, "one may have been on its way"
    assert len(begun) < 20
    assert marks(tmp_path, "ended") == begun


def test_a_process_that_is_killed_is_told_in_the_sentence():
    with pytest.raises(WordwingError, match=rf"^{SENTENCE}$"):
        list(shared(killed, range(6), 2, SENTENCE))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_mistake_in_a_piece_is_told_as_it_is(processes):
    with pytest.raises(WordwingError, match=r"^piece 2 is wrong$"):
        list(shared(mistaken, range(6), processes, SENTENCE))
