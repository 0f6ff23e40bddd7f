"""Ctrl-C: one line and exit status 130 within a second, from the first import on.

Python raises KeyboardInterrupt between two instructions of its own. That is late where compiled code works for long,
and lost where an import or a library catches everything. So a thread waits beside it, and ends a process that Ctrl-C
has not ended in time: its children are killed and its unfinished files removed.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, Self

STATUS = 130
"""Of a command that was interrupted."""

ABORTED_FLIGHT = 3
"""Of a flight over MAVLink that did not end as it should."""

GRACE = 0.5
"""Seconds that an interrupted command is given to clean up by itself."""

_interrupted = _deferring = _announced = False
_stderr: int | None = None
"""Where the line goes once Ctrl-C is answered here; libraries may silence the real one for a while."""
_leaving = threading.RLock()


@contextmanager
def answered() -> Iterator[None]:
    """Answer Ctrl-C in this process, a command, unless whoever started it lets it be ignored.

    The block is all that the command does; after it nothing is left to be cleaned up.
    """
    global _stderr, _interrupted
    if not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    _stderr = os.dup(2)
    wakeup, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_watch, args=(wakeup,), name="Ctrl-C", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # written to at once, whatever the main thread is doing
    try:
        signal.signal(signal.SIGINT, _handle)
        yield
    except SystemExit as end:
        if end.code in (STATUS, ABORTED_FLIGHT):
            # All is cleaned up. Python's own end takes seconds once torch has been loaded, and has been seen to abort
            # when a camera's thread was still being closed, which hid the status.
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            if end.code == ABORTED_FLIGHT:
                os._exit(ABORTED_FLIGHT)
            leave()
        raise
    finally:
        _interrupted = True


class Deferred:
    """Ctrl-C, or another signal, that waits while the block lasts, so that all can be saved first.

    A second one ends the process at once.
    """

    def __init__(self, say: Callable[[], None] = lambda: None, number: int = signal.SIGINT) -> None:
        """Nothing is deferred before the block.

        Args:
            say: Called when it comes, to tell that something is done first.
            number: Which signal.
        """
        self.came = False
        """Whether it has come; whoever defers it raises KeyboardInterrupt when all is saved."""
        self._say, self._number = say, number
        self._interruptible = False

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Work that changes nothing and may be broken off: KeyboardInterrupt is raised in it at once."""
        if self.came:
            raise KeyboardInterrupt
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    def __enter__(self) -> Self:
        global _deferring
        self._before = signal.getsignal(self._number)
        # Where it is ignored it stays so, and where it does not come it need not wait.
        self._active = callable(self._before) and threading.current_thread() is threading.main_thread()
        if self._active:
            _deferring = True
            signal.signal(self._number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        global _deferring
        if self._active:
            _deferring = False
            signal.signal(self._number, self._before)
        if self.came:
            end_soon()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.came and callable(self._before):
            self._before(number, frame)
        self.came = True
        self._say()
        if self._interruptible:
            raise KeyboardInterrupt


@contextmanager
def blocked() -> Iterator[None]:
    """Start processes that Ctrl-C, which a terminal sends to all of a group, does not reach.

    They inherit that it is blocked; in this process it only waits until the block has ended.
    """
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # started with the first process, it would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_soon() -> None:
    """End this process if it has not ended by itself after a moment; nothing where Ctrl-C is not answered here."""
    if _stderr is not None:
        timer = threading.Timer(GRACE, leave)
        timer.daemon = True
        timer.start()


def announce() -> None:
    """Say that the command was interrupted, once."""
    global _announced
    line = "wordwing: interrupted\n"
    if _stderr is None:
        sys.stderr.write(line)
    elif not _announced:
        _announced = True
        # Bars hide the cursor and leave it at their end, and nobody else can tell them to stop any more.
        free = "\x1b[?25h\r\n" if os.isatty(_stderr) else ""
        os.write(_stderr, (free + line).encode())


def leave() -> NoReturn:
    """End this process now."""
    with _leaving:  # for good; but a handler may come here while its own thread is here already
        announce()
        for child in _children():
            with suppress(OSError):
                if os.getsid(child) == os.getsid(0):  # others, such as a drone's guardian, are meant to outlive it
                    os.kill(child, signal.SIGKILL)
        remove = getattr(sys.modules.get("wordwing.files"), "remove_unfinished", None)
        if remove is not None:
            remove()
        os._exit(STATUS)


def _children() -> list[int]:
    """Of all threads of this process, as Linux tells."""
    found = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                found += [int(child) for child in file.read().split()]
    return found


def _handle(number: int, frame: FrameType | None) -> None:
    """Python's answer, in the main thread."""
    global _interrupted
    if _interrupted or _importing(frame):
        leave()
    _interrupted = True
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported; many catch what is raised in them, and go on with half of what they need."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _watch(wakeup: int) -> None:
    """The thread that waits beside."""
    times = 0
    while True:
        times += os.read(wakeup, 64).count(signal.SIGINT)
        ours = signal.getsignal(signal.SIGINT) is _handle  # a drone in the air is brought down first, however long
        if times > 1 and (ours or _deferring):
            leave()
        elif times and ours:
            end_soon()
