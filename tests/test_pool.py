"""Work that is shared: every piece once, and no more of it than is wanted."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from interrupting import Running
from pool_work import doubled, killed, marked, mistaken, squared
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


def test_tensors_are_copied_and_nothing_is_shared():
    pieces = [[torch.arange(6.0).view(2, 3), torch.tensor(3), torch.zeros(0, 2)], [torch.ones(1, dtype=torch.bool)]]
    for piece, result in shared(doubled, pieces, 2, SENTENCE):
        assert all(torch.equal(tensor + tensor, twice) for tensor, twice in zip(piece, result, strict=True))
        assert not any(tensor.is_shared() for tensor in (*piece, *result))


def test_one_piece_is_done_here_and_none_at_all_is_nothing():
    [(piece, result)] = shared(squared, [7], 8, SENTENCE)
    assert (piece, result[:2]) == (7, (49, os.getpid()))
    assert list(shared(squared, [], 2, SENTENCE)) == []


def test_pieces_of_an_iterator_are_made_while_others_are_worked_on(tmp_path):
    made = []

    def pieces() -> Iterator[tuple[str, int, float]]:
        for number in range(4):
            made.append(number)
            yield str(tmp_path), number, 0.2

    work = shared(marked, pieces(), 2, SENTENCE)
    assert made == []
    first = next(work)[1]
    assert made[:2] == [0, 1]
    assert len(made) < 4, "the last one waits for a process"
    assert sorted([first, *(number for _piece, number in work)]) == made == [0, 1, 2, 3]


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
    assert 1 <= len(marks(tmp_path, "begun")) <= 3


INTERRUPTED = """
import sys
from interrupting import Running
from pool_work import written
from wordwing import interrupts
from wordwing.pool import shared
if __name__ == "__main__":
    with interrupts.answered():
        try:
            list(shared(written, [(sys.argv[1], number) for number in range(20)], 2, "killed"))
        except KeyboardInterrupt:
            interrupts.announce()
            sys.exit(interrupts.STATUS)
"""


def test_after_ctrl_c_pieces_are_broken_off_and_leave_nothing(tmp_path, monkeypatch):
    paths = [str(Path(__file__).parent), str(Path(sys.modules["wordwing"].__file__).parents[1])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    script, folder = tmp_path / "script.py", tmp_path / "pieces"
    script.write_text(INTERRUPTED)
    folder.mkdir()
    with Running([str(script), str(folder)], tmp_path) as running:
        running.wait_until(lambda: len(list(folder.iterdir())) == 2)  # both have come to work
        running.interrupt()
        assert running.end() == "wordwing: interrupted\n"
    assert list(folder.iterdir()) == []


def test_a_process_that_is_killed_is_told_in_the_sentence():
    with pytest.raises(WordwingError, match=rf"^{SENTENCE}$"):
        list(shared(killed, range(6), 2, SENTENCE))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_mistake_in_a_piece_is_told_as_it_is(processes):
    with pytest.raises(WordwingError, match=r"^piece 2 is wrong$"):
        list(shared(mistaken, range(6), processes, SENTENCE))
