"""The page on which people rate, as a web application.

Nothing that is sent tells who flew or what an object is called.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from wordwing.study.questions import GUIDELINES, INTRODUCTION, QUESTIONS, TASK, UNCLEAR, parse_answers
from wordwing.study.store import Item, Study
from wordwing.web.pages import PageConfig, ParticipantPage, page_server

STATIC = Path(__file__).parent / "static"

MAX_BODY = 4_000
"""Bytes of a request: answers need about 100."""

TYPES: dict[str, str] = {"video": "video/mp4", "still": "image/webp", "legend": "image/webp"}

GUIDE = {
    "introduction": INTRODUCTION,
    "task": TASK,
    "guidelines": GUIDELINES,
    "questions": [asdict(question) for question in QUESTIONS],
    "unclear": UNCLEAR,
}
"""What the page says to everybody."""


def application(config: PageConfig[Study]) -> ParticipantPage:
    """The page and what it asks for."""
    page = ParticipantPage(config, STATIC, "rater", GUIDE, TYPES, MAX_BODY)
    _add_routes(page, config.store)
    return page


def make_server(config: PageConfig[Study]) -> uvicorn.Server:
    """A server that is ready to run."""
    return page_server(application(config))


def _add_routes(page: ParticipantPage, study: Study) -> None:
    """What raters ask for."""

    def show(item: Item) -> dict[str, Any]:
        page.shown.add(item.id)
        return asdict(item)

    @page.get("/rater")
    def rater(request: Request) -> Response:
        """How far a rater is, and which items are theirs."""
        token = page.token(request)
        order = [{"id": item, "rated": rated} for item, rated in study.order(token)]
        return JSONResponse({"progress": asdict(study.progress(token)), "order": order})

    @page.get("/rater/next")
    def following(request: Request) -> Response:
        """What the rater has not done yet; null when that is nothing."""
        item = study.next_item(page.token(request))
        return JSONResponse({"item": None if item is None else show(item)})

    @page.get("/rater/items/{item_id}")
    def item(request: Request, item_id: str) -> Response:
        return JSONResponse({"item": show(study.item(page.token(request), item_id))})

    @page.post("/rater/items/{item_id}")
    async def answer(request: Request, item_id: str) -> Response:
        """Keep answers, or say what there is to say about those to a practice item."""
        token, answers = page.token(request), await page.sent(request, parse_answers)

        def keep() -> dict[str, Any]:
            practice = study.item(token, item_id).practice
            comments = None
            if practice:
                comments = [asdict(entry) for entry in study.practise(token, item_id, answers)]
            else:
                study.rate(token, item_id, answers)
            return {"feedback": comments, "progress": asdict(study.progress(token))}

        return JSONResponse(await run_in_threadpool(keep))

    @page.post("/rater/finish")
    def finish(request: Request) -> Response:
        token = page.token(request)
        study.finish(token)
        return JSONResponse({"progress": asdict(study.progress(token))})
