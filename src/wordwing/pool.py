"""Work that several processes share, piece by piece."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import TypeVar

from wordwing.errors import WordwingError
from wordwing.interrupts import blocked

Piece = TypeVar("Piece")
Result = TypeVar("Result")

CLEANING = 0.3
"""Seconds that a process which is broken off has to remove what it has half written."""


def shared(
    function: Callable[[Piece], Result], pieces: Iterable[Piece], processes: int, killed: str
) -> Iterator[tuple[Piece, Result]]:
    """Results of pieces of work as they come, with the pieces; in this process if there is only one.

    After Ctrl-C, or an exception where results are taken, the pieces that are being worked on are broken off.

    Args:
        function: Done with each piece, in processes of one thread each; of a module, as processes are spawned.
        pieces: What there is to do; what comes from an iterator is made in this process while others work.
        processes: How many share it.
        killed: The sentence to say when one of them was killed.
    """
    if isinstance(pieces, Sized):
        processes = min(processes, len(pieces))
    if processes <= 1:
        for piece in pieces:
            yield piece, function(piece)
        return
    others = multiprocessing.active_children()
    working: dict[Future[Result], Piece] = {}
    _copy_tensors()
    with _one_thread_each():
        # Warp and torch run threads, which a forked process would not have.
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (os.getpid(),))
        try:
            # One each at a time: what waits in the pool's queue would be begun when the others are broken off.
            left, exhausted = iter(pieces), False
            while working or not exhausted:
                if not exhausted and len(working) < processes:
                    new = list(islice(left, 1))
                    exhausted = not new
                    with blocked():
                        working |= {pool.submit(_call, function, piece): piece for piece in new}
                patience = None if exhausted or len(working) == processes else 0
                for future in wait(working, patience, FIRST_COMPLETED).done:
                    yield working.pop(future), future.result()
        except BrokenProcessPool:
            raise WordwingError(killed) from None
        finally:
            unwanted = multiprocessing.active_children() if working else []
            _break_off(pool, [child for child in unwanted if child not in others])


def die_with(parent: int) -> None:
    """Let the system end this process with its parent: nobody would end it afterwards."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    check_parent(parent)  # which may have ended before that, or on another system


def check_parent(parent: int) -> None:
    """End this process if its parent has ended."""
    if os.getppid() != parent:
        raise SystemExit(1)


def _begin(parent: int) -> None:
    signal.signal(signal.SIGTERM, _end)
    die_with(parent)


def _call(function: Callable[[Piece], Result], piece: Piece) -> Result:
    _copy_tensors()
    return function(piece)


def _copy_tensors() -> None:
    """Let tensors go to other processes as copies.

    torch would share their memory, by a socket and a file for each: a process that is slow to open one finds it gone,
    and one that is broken off leaves them behind.
    """
    torch = sys.modules.get("torch")  # a process that has not loaded it has no tensors
    if torch is not None:
        ForkingPickler.register(torch.Tensor, lambda tensor: (torch.from_numpy, (tensor.numpy(),)))


def _end(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _break_off(pool: ProcessPoolExecutor, processes: Collection[BaseProcess]) -> None:
    """End a pool whose processes have nothing to do, but for some that have a moment to clean up."""
    for process in processes:
        process.terminate()
    pool.shutdown(wait=not processes)
    until = time.monotonic() + CLEANING
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        process.kill()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started meanwhile take one core each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
