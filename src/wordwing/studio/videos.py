"""Films of flights that are flown again: one background process at a time, of low priority, and a short queue."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from wordwing.errors import WordwingError
from wordwing.evaluation.demo import STEPS
from wordwing.files import unfinished
from wordwing.studio.crew import Crew
from wordwing.studio.episodes import DAY, new_name
from wordwing.studio.messages import Link, start_json

QUEUE = 4
"""Films that may wait, the one being made included."""

KEPT = 12
"""Finished films that are kept for those who asked; an older one goes when another comes."""

PREFIX = ".films-"
"""Of the folder for films that belong to no kept episode."""

TIMEOUT = 900.0
"""Seconds that one film may take."""

log = logging.getLogger("wordwing.studio")


class QueueFullError(WordwingError):
    """The queue is full."""


@dataclass
class Job:
    """A film to make."""

    link: Link
    out: Path
    share: float = 0.0
    """How much of it is done."""
    state: str = "waiting"
    """Then "done" or "failed"."""


class Films:
    """The queue, and the process that works on it."""

    def __init__(self, crew: Crew, folder: Path, steps: int = STEPS) -> None:
        """Begin with an empty queue.

        Args:
            crew: Who can fly.
            folder: Films that belong to no kept episode are in a folder in it while the server runs.
            steps: Decisions that an instruction is given.
        """
        self._crew = crew
        self._steps = steps
        self._jobs: dict[str, Job] = {}
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        for left in folder.glob(f"{PREFIX}*"):  # by a server that was killed
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        unfinished.add(self._folder)
        self._task: asyncio.Task[None] | None = None

    def add(self, link: Link, name: str | None = None, out: Path | None = None) -> str:
        """Put a film into the queue, or find it there.

        Args:
            link: What is flown.
            name: The episode that it shows; by default it gets a new name.
            out: Where its film goes.

        Returns:
            The job's name.
        """
        if name is not None and name in self._jobs and self._jobs[name].state == "waiting":
            return name
        if sum(job.state == "waiting" for job in self._jobs.values()) >= QUEUE:
            raise QueueFullError("other films are being made; try again in a minute")
        name = name or new_name()
        self._jobs[name] = job = Job(link, out or self._folder / f"{name}.mp4")
        self._forget()
        self._waiting.put_nowait(job)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return name

    def job(self, name: str) -> Job | None:
        """One of those that are waiting, being made or done."""
        return self._jobs.get(name)

    async def close(self) -> None:
        """Stop working; films of no kept episode go."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        unfinished.discard(self._folder)

    def _forget(self) -> None:
        finished = [name for name, job in self._jobs.items() if job.state != "waiting"]
        for name in finished[: max(0, len(finished) - KEPT)]:
            job = self._jobs.pop(name)
            if job.out.parent == self._folder:
                job.out.unlink(missing_ok=True)

    async def _work(self) -> None:
        while not self._waiting.empty():
            job = self._waiting.get_nowait()
            try:
                async with asyncio.timeout(TIMEOUT):
                    await self._film(job)
                job.state = "done" if job.out.is_file() else "failed"
            except (OSError, TimeoutError):
                job.state = "failed"
            if job.state == "failed":
                log.warning("a film could not be made")

    async def _film(self, job: Job) -> None:
        """Fly and film in a process of its own: drawing frames would hold up the flights in this one."""
        request = {
            **start_json(job.link.start),
            "policies": [[name, self._crew[name].policy] for name in job.link.policies],
            "texts": list(job.link.texts),
            "steps": self._steps,
            "out": str(job.out),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "wordwing.studio.filming",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
            async for line in process.stdout:
                job.share = _share(line, job.share)
            if await process.wait() != 0:
                job.out.unlink(missing_ok=True)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _share(line: bytes, before: float) -> float:
    try:
        return min(max(float(line), before), 1.0)
    except ValueError:
        return before
