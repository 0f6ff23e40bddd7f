"""What a page does: its drones, whose turn it is to decide, and what the buttons do."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from wordwing.errors import WordwingError
from wordwing.interface import CONTROL_PERIOD, Domain
from wordwing.language.text_checks import sample_named_task
from wordwing.studio.episodes import ending_json, episode_json
from wordwing.studio.live import Ending, LiveFlight, Start
from wordwing.studio.messages import MAX_TEXTS, Button, Fly, Hello, Message, RandomLayout, Speed, UnknownWords
from wordwing.studio.replies import FrameWriter, placed, welcome, words_json
from wordwing.studio.resources import Resources
from wordwing.web.security import where

GRACE = 60.0
"""Seconds that a paused flight keeps its place for; then others may have it until it goes on."""

log = logging.getLogger("wordwing.studio")

Tell = Callable[[dict[str, Any] | bytes], Awaitable[None]]
"""Sends a message to a page."""


class GoneError(ConnectionError):
    """Raised by a `Tell`: the page has gone, or does not read what it is sent."""


@dataclass
class Lane:
    """One of the drones side by side."""

    number: int
    live: LiveFlight
    writer: FrameWriter = field(default_factory=FrameWriter)

    def advance(self) -> tuple[bytes, Ending | None]:
        """One decision as a message and, with the last, how the flight went."""
        message = self.writer(self.live.advance(), self.live.frame)
        return message, None if self.live.flying else self.live.ending()


class Session:
    """A page and its drones. All methods run in the event loop; what takes time is done by the workers."""

    def __init__(self, resources: Resources, tell: Tell) -> None:
        self._resources = resources
        self._tell = tell
        self._start: Start | None = None
        self._lanes: list[Lane] = []
        self._texts: list[str] = []
        self._kept: str | None = None
        self._flying: asyncio.Task[None] | None = None
        self._has_place = False
        self._paused = False
        self._permits = 0
        self._quitting = False
        self._speed = 1.0
        self._due = 0.0
        self._wake = asyncio.Event()

    @property
    def flying(self) -> bool:
        """Whether a flight is under way, be it paused."""
        return self._flying is not None and not self._flying.done()

    async def handle(self, message: Message) -> None:
        """Do what a message asks for; raises a `WordwingError` where that cannot be."""
        match message:
            case Hello():
                await self._tell(welcome(self._resources.policies, self._resources.limit))
            case RandomLayout():
                await self._stage(message)
            case Start():
                await self._place(message)
            case Fly():
                await self._fly(message)
            case Speed(value):
                self._speed = value
                self._wake.set()
            case UnknownWords():
                await self._words(message)
            case Button("keep"):
                await self._keep()
            case Button("reset"):
                await self._reset()
            case Button(button):
                await self._press(button)

    async def close(self) -> None:
        """The page is gone: its flight ends and its place is free."""
        self._quitting = True
        self._wake.set()
        if self._flying is not None:
            self._flying.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._flying
        self._lanes = []

    async def _stage(self, message: RandomLayout) -> None:
        await self._check_still()
        vehicle: Domain = "sim" if self._start is None else self._start.vehicle

        def draw() -> Start:
            rng = np.random.default_rng(message.seed)
            _corpus, task = sample_named_task(message.text, message.corpus, rng)
            return Start(task.layout, task.start_xy, task.start_yaw, message.seed, vehicle)

        await self._place(await self._resources.workers.prepare(draw))

    async def _place(self, start: Start) -> None:
        await self._check_still()
        answer = await self._resources.workers.prepare(partial(placed, start))
        self._start, self._lanes, self._texts = start, [], []
        await self._tell(answer)

    async def _fly(self, message: Fly) -> None:
        await self._check_still()
        start = self._start
        if start is None:
            raise WordwingError("there is no world yet; place landmarks and a drone first")
        if message.continues and not self._texts:
            raise WordwingError("nothing has been flown yet, so there is nothing to continue")
        if message.continues and len(message.policies) != len(self._lanes):
            raise WordwingError("a flight is continued with as many drones as before; reset to change their number")
        if message.continues and len(self._texts) >= MAX_TEXTS:
            raise WordwingError(f"{MAX_TEXTS} instructions are the most that follow one another; reset first")
        if not await self._take_place():
            return
        try:
            texts = [*self._texts, message.text] if message.continues else [message.text]
            self._lanes = await self._resources.workers.fly(partial(self._begin, start, message, len(texts) - 1))
            self._texts, self._kept = texts, None
            self._paused, self._permits, self._due = False, 0, time.monotonic()
            await self._say("flying")
        except BaseException:
            self._give_place()
            self._lanes, self._texts = [], []  # some of them may have begun
            raise
        self._flying = asyncio.create_task(self._flight())
        self._flying.add_done_callback(lambda _task: self._give_place())  # also if it never came to its first step

    async def _take_place(self) -> bool:
        """Take one of the places for those who fly, unless there is one already; if all are taken the page is told."""
        shared, limit = self._resources, self._resources.limit
        if not self._has_place and shared.flying >= limit:
            text = f"{limit} people are flying just now, as many as there is room for; try again in a minute"
            await self._tell({"type": "busy", "message": text, "limit": limit})
            return False
        shared.flying += not self._has_place
        self._has_place = True
        return True

    def _give_place(self) -> None:
        self._resources.flying -= self._has_place
        self._has_place = False

    def _begin(self, start: Start, message: Fly, number: int) -> list[Lane]:
        """Put drones at the start, unless they go on from where they are, and tell them what to do; in a worker."""
        lanes = self._lanes
        if not message.continues:
            if len(lanes) != len(message.policies):
                lanes = [
                    Lane(index, LiveFlight(start, max_steps=self._resources.steps))
                    for index in range(len(message.policies))
                ]
            for lane in lanes:
                lane.live.restart()
        for lane, name in zip(lanes, message.policies, strict=True):
            lane.live.begin(message.text, self._resources.policies[name].instance(start.vehicle), name)
            lane.writer = FrameWriter(lane.number, number)
        return lanes

    async def _flight(self) -> None:
        """Fly all lanes to their ends, one decision each in turn."""
        try:
            while any(lane.live.flying for lane in self._lanes):
                await self._turn()
                for lane in self._lanes:
                    if self._quitting:
                        return
                    if lane.live.flying:
                        message, ending = await self._resources.workers.fly(lane.advance)
                        await self._tell(message)
                        if ending is not None:
                            await self._tell({"type": "ended", "lane": lane.number, **ending_json(ending)})
                            await self._tell(state("ended", lane))
        except GoneError:
            return
        except Exception as error:
            log.warning("a flight was broken off: %s", where(error))
            self._lanes, self._texts = [], []
            ours = "the flight was broken off by a fault of the server"
            with suppress(Exception):
                await self._tell({"type": "error", "message": str(error) if isinstance(error, WordwingError) else ours})
                await self._tell({"type": "state", "phase": "idle", "lane": 0, "step": 0})

    async def _turn(self) -> None:
        """Wait until the next decision may be taken: in its time and, when paused, on request."""
        while not self._quitting:
            now, delay = time.monotonic(), None
            if self._paused and self._permits:
                self._permits -= 1
                break
            if not self._paused:
                delay = self._due - now
                if delay <= 0:
                    break
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), GRACE if delay is None else delay)
            except TimeoutError:
                if self._paused:
                    self._give_place()
            if delay is not None:  # the speed may have changed
                self._due = min(self._due, time.monotonic() + CONTROL_PERIOD / self._speed)
        period = CONTROL_PERIOD / self._speed
        # Behind time it hurries by at most a period, so that a pause is not made up for.
        self._due = max(self._due, time.monotonic() - period) + period

    async def _press(self, kind: str) -> None:
        if not self.flying:
            return  # a button that was pressed as the flight ended
        if kind in ("resume", "step") and not await self._take_place():
            return
        if kind == "stop":
            for lane in self._lanes:
                lane.live.halt()
            self._paused = False
        elif kind == "step":
            self._permits = min(self._permits + 1, 100) if self._paused else 1
            self._paused = True
        else:
            self._paused, self._permits = kind == "pause", 0
            self._due = max(self._due, time.monotonic())
        self._wake.set()
        await self._say("paused" if self._paused else "flying")

    async def _reset(self) -> None:
        """Break a flight off and put the drones back."""
        self._quitting = True
        self._wake.set()
        if self._flying is not None:
            await self._flying  # at most one decision
        self._quitting, self._texts = False, []
        await self._tell({"type": "state", "phase": "idle", "lane": 0, "step": 0})

    async def _words(self, message: UnknownWords) -> None:
        vocabulary = self._resources.policies[message.policy].loaded.vocabulary
        layout = None if self._start is None else self._start.layout
        look = partial(words_json, message.text, vocabulary, layout)
        await self._tell({"type": "words", "id": message.id, **await self._resources.workers.prepare(look)})

    async def _keep(self) -> None:
        await self._check_still()
        if self._start is None or not self._texts:
            raise WordwingError("only a flight that has ended can be kept")
        if self._kept is None:
            record = episode_json(self._start, self._texts, [lane.live for lane in self._lanes])
            self._kept = await self._resources.workers.prepare(partial(self._resources.episodes.keep, record))
        await self._tell({"type": "kept", "id": self._kept})

    async def _check_still(self) -> None:
        """Raise a `WordwingError` if a drone is flying."""
        if self._flying is not None and not any(lane.live.flying for lane in self._lanes):
            await self._flying  # all drones have come to rest; the page may know before it has been told everything
        if self.flying:
            raise WordwingError("the drone is flying; stop it first")

    async def _say(self, phase: str) -> None:
        for lane in self._lanes:
            await self._tell(state(phase if lane.live.flying else "ended", lane))


def state(phase: str, lane: Lane) -> dict[str, Any]:
    """The message about what a lane does."""
    return {"type": "state", "phase": phase, "lane": lane.number, "step": lane.live.step}
