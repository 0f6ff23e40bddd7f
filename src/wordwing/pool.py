"""Work that several processes share, piece by piece."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from wordwing.errors import WordwingError

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def shared(
    function: Callable[[Piece], Result], pieces: Sequence[Piece], processes: int, killed: str
) -> Iterator[tuple[Piece, Result]]:
    """Results of pieces of work as they come, with the pieces; in this process if there is only one.

    After Ctrl-C the pieces that are being worked on are ended, and no others begun.

    Args:
        function: Done with each piece, in processes of one thread each; of a module, as processes are spawned.
        pieces: What there is to do.
        processes: How many share it.
        killed: The sentence to say when one of them was killed.
    """
    processes = min(processes, len(pieces))
    if processes <= 1:
        for piece in pieces:
            yield piece, function(piece)
        return
    with _one_thread_each():
        # Warp and torch run threads, which a forked process would not have.
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _leave_interrupts)
        try:
            # One each at a time: what waits in the pool's queue would still be done after Ctrl-C.
            left = iter(pieces)
            working: dict[Future[Result], Piece] = {}
            while True:
                for piece in islice(left, processes - len(working)):
                    working[pool.submit(function, piece)] = piece
                if not working:
                    return
                for future in wait(working, return_when=FIRST_COMPLETED).done:
                    yield working.pop(future), future.result()
        except BrokenProcessPool:
            raise WordwingError(killed) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _leave_interrupts() -> None:
    """Ctrl-C is for the process that waits: the others end what they are doing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
