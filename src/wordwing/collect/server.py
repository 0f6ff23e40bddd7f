"""The page on which people write and follow, as a web application.

A follower is sent nothing that tells where a path leads, and nobody is told what a landmark is called.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from wordwing.collect.database import RATE
from wordwing.collect.guidelines import GUIDE, PracticeFeedback
from wordwing.collect.store import MAX_DRAWN, MAX_SENTENCE, Collection, parse_drawing, parse_sentence
from wordwing.web.pages import PageConfig, ParticipantPage, page_server

STATIC = Path(__file__).parent / "static"

MAX_BODY = 40_000
"""Bytes of a request: a drawing of `MAX_DRAWN` points needs about 16,000."""

TYPES = {
    "map": "image/webp",
    "legend": "image/webp",
    "view": "image/webp",
    "still": "image/webp",
    "video": "video/mp4",
}


def application(config: PageConfig[Collection]) -> ParticipantPage:
    """The page and what it asks for."""
    guide = {**GUIDE, "max_sentence": MAX_SENTENCE, "max_points": MAX_DRAWN, "rate": RATE}
    page = ParticipantPage(config, STATIC, "participant", guide, TYPES, MAX_BODY)
    _add_routes(page, config.store)
    return page


def make_server(config: PageConfig[Collection]) -> uvicorn.Server:
    """A server that is ready to run."""
    return page_server(application(config))


def _add_routes(page: ParticipantPage, collection: Collection) -> None:
    """What people ask for."""

    def told(feedback: PracticeFeedback | None) -> Response:
        return JSONResponse({"feedback": None if feedback is None else asdict(feedback)})

    @page.post("/participant/next")
    def following(request: Request) -> Response:
        """What somebody is to do, and how far they are; null when there is nothing for them just now."""
        token = page.token(request)
        work = collection.work(token)
        if work is not None:
            page.shown.update({work.map, *(part.media for part in work.parts)} - {""})
        content: dict[str, Any] = {"work": None if work is None else asdict(work)}
        return JSONResponse({**content, "progress": asdict(collection.contribution(token))})

    @page.post("/participant/work/{task_id}/sentences/{place}")
    async def keep(request: Request, task_id: str, place: int) -> Response:
        """Keep a draft."""
        token, text = page.token(request), await page.sent(request, parse_sentence)
        found = await run_in_threadpool(collection.keep, token, task_id, place, text)
        return JSONResponse({"sentence": text, "remarks": found})

    @page.post("/participant/work/{task_id}/send")
    def send(request: Request, task_id: str) -> Response:
        """Send all sentences of a path."""
        return told(collection.send(page.token(request), task_id))

    @page.post("/participant/work/{task_id}/lines/{place}")
    async def follow(request: Request, task_id: str, place: int) -> Response:
        """Keep where a sentence leads."""
        token, drawn = page.token(request), await page.sent(request, parse_drawing)
        return told(await run_in_threadpool(collection.follow, token, task_id, place, drawn))
