"""Videos of flights that are flown again: a short queue, and a background process of low priority that renders them.

The process is this module, run with a request on its standard input: drawing frames would hold up the flights in the
server's own process. It writes the share that is done, line by line.
"""

import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image

from wordwing.errors import WordwingError
from wordwing.evaluation.demo import STEPS
from wordwing.execution.runner import SETTLE_STEPS
from wordwing.files import replacing, unfinished
from wordwing.language.text_checks import word_issues
from wordwing.studio.episodes import DAY, new_name
from wordwing.studio.live import LiveFlight
from wordwing.studio.messages import SharedLink, read_link, start_json
from wordwing.studio.resources import NamedPolicies, load_policies
from wordwing.viz.animation import MAP_SIZE, write_video
from wordwing.viz.belief_video import belief_frames
from wordwing.viz.overhead import overheads

QUEUE = 4
"""Videos that may wait, the one being rendered included."""

KEPT = 12
"""Finished videos that are kept for those who asked; an older one goes when another comes."""

PREFIX = ".videos-"
"""Of the folder for videos that belong to no kept episode."""

TIMEOUT = 900.0
"""Seconds that rendering one video may take."""

NICE = 15
"""How much the process that renders gives way to the flights of pages."""

log = logging.getLogger("wordwing.studio")


class QueueFullError(WordwingError):
    """The queue is full."""


@dataclass
class VideoJob:
    """A video to render."""

    link: SharedLink
    out: Path
    share: float = 0.0
    """How much of it is done."""
    state: Literal["waiting", "done", "failed"] = "waiting"


class VideoQueue:
    """The queue, and the process that works on it."""

    def __init__(self, policies: NamedPolicies, folder: Path, steps: int = STEPS) -> None:
        """Begin with an empty queue.

        Args:
            policies: Which can fly.
            folder: Videos that belong to no kept episode are in a folder in it while the server runs.
            steps: Decisions that an instruction is given.
        """
        self._policies, self._steps = policies, steps
        self._jobs: dict[str, VideoJob] = {}
        self._waiting: asyncio.Queue[VideoJob] = asyncio.Queue()
        for left in folder.glob(f"{PREFIX}*"):  # by a server that was killed
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        unfinished.add(self._folder)
        self._task: asyncio.Task[None] | None = None

    def add(self, link: SharedLink, name: str | None = None, out: Path | None = None) -> str:
        """Put a video into the queue, or find it there.

        Args:
            link: What is flown.
            name: The episode that it shows; by default it gets a new name.
            out: Where its video goes.

        Returns:
            The job's name.
        """
        if name is not None and name in self._jobs and self._jobs[name].state == "waiting":
            return name
        if sum(job.state == "waiting" for job in self._jobs.values()) >= QUEUE:
            raise QueueFullError("other videos are being made; try again in a minute")
        name = name or new_name()
        self._jobs[name] = job = VideoJob(link, out or self._folder / f"{name}.mp4")
        self._forget()
        self._waiting.put_nowait(job)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return name

    def job(self, name: str) -> VideoJob | None:
        """One of those that are waiting, being rendered or done."""
        return self._jobs.get(name)

    async def close(self) -> None:
        """Stop working; videos of no kept episode go."""
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
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(TIMEOUT):
                    await self._render(job)
                job.state = "done" if job.out.is_file() else "failed"
            if job.state != "done":
                job.state = "failed"
                log.warning("a video could not be made")

    async def _render(self, job: VideoJob) -> None:
        """Fly and draw in a process of its own."""
        request = {
            **start_json(job.link.start),
            "policies": {name: self._policies[name].policy for name in job.link.policies},
            "names": job.link.policies,
            "texts": job.link.texts,
            "steps": self._steps,
            "out": str(job.out),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "wordwing.studio.videos",
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
                with suppress(ValueError):
                    job.share = min(max(float(line), job.share), 1.0)
            if await process.wait() != 0:
                job.out.unlink(missing_ok=True)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def video_frames(
    link: SharedLink, policies: NamedPolicies, steps: int = STEPS, tell: Callable[[float], None] = lambda share: None
) -> Iterator[Image.Image]:
    """Frames of the video of a link: its policies one after another, each with all texts.

    No more than one instruction's images are in memory.

    Args:
        link: What is flown.
        policies: Which can fly, by name.
        steps: Decisions that an instruction is given.
        tell: Told how much is done, from 0 to 1.
    """
    overhead = np.asarray(overheads([link.start.layout], MAP_SIZE)[0])
    count = len(link.policies) * len(link.texts)
    for first, name in enumerate(link.policies):
        live = LiveFlight(link.start, max_steps=steps, keep=True)
        for number, text in enumerate(link.texts, start=first * len(link.texts)):
            policy = policies[name].instance(link.start.vehicle)
            live.begin(text, policy, name)
            while live.flying:
                live.advance()
                tell((number + min(0.3 * live.step / (steps + SETTLE_STEPS), 1.0)) / count)
            flight = live.executions[-1]
            heading, threshold = f"{name} in {link.start.vehicle}", policy.network.config.stop_threshold
            frames = belief_frames(flight, overhead, heading, word_issues(text, policy.vocabulary), threshold)
            for index, frame in enumerate(frames):
                yield frame
                tell((number + 0.3 + 0.7 * (index + 1) / len(flight.positions)) / count)


def main() -> None:
    """Read a request, render the video whole or not at all, write how far it is line by line."""
    os.nice(NICE)
    torch.set_num_threads(1)
    request = json.loads(sys.stdin.read())
    out, steps, names = Path(request.pop("out")), request.pop("steps"), request.pop("names")
    policies = load_policies([f"{name}={policy}" for name, policy in request.pop("policies").items()])
    link = read_link(json.dumps({**request, "policies": names}), policies)
    with replacing(out) as temporary:
        write_video(video_frames(link, policies, steps, lambda share: print(f"{share:.3f}", flush=True)), temporary)


if __name__ == "__main__":
    main()
