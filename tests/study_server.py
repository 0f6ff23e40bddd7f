"""The page of a study, really served, and somebody who rates without a browser."""

from typing import Any

import httpx
import uvicorn

from running_server import RunningServer
from wordwing.study.server import make_server
from wordwing.study.store import Study
from wordwing.web.pages import PageConfig
from wordwing.web.security import Bucket


class RunningStudy(RunningServer):
    """A study's page in a thread, on loopback."""

    def __init__(self, study: Study, **options: Any) -> None:
        kinds = ("requests", "changes", "newcomers")
        generous = {kind: lambda: Bucket(1e6, 1e6) for kind in kinds}
        self.study = study

        def make(port: int) -> uvicorn.Server:
            self.config = PageConfig(study, port=port, **{**generous, **options})
            return make_server(self.config)

        super().__init__(make)

    def rater(self, token: str | None = None) -> "Rater":
        """A new one, or one with a link."""
        with self.http(headers={"origin": self.url}) as http:
            token = token or http.post("/raters", json={"invitation": self.config.token}).json()["rater"]
        return Rater(self.http(headers={"origin": self.url, "authorization": f"Bearer {token}"}), token)


class Rater:
    """What a rater's page does; keeps every answer of the server."""

    def __init__(self, http: httpx.Client, token: str) -> None:
        self.http, self.token = http, token
        self.heard: list[httpx.Response] = []

    def get(self, path: str) -> Any:
        return self._kept(self.http.get(path))

    def post(self, path: str, content: Any = None) -> Any:
        return self._kept(self.http.post(path, json={} if content is None else content))

    def answer(self, item: dict[str, Any], path: int, goal: int, efficiency: int, **more: Any) -> Any:
        content = {"path": path, "goal": goal, "efficiency": efficiency, "unclear": False, "seconds": 1.5, **more}
        return self.post(f"/rater/items/{item['id']}", content)

    def next(self) -> dict[str, Any] | None:
        return self.get("/rater/next")["item"]

    def rate_everything(self) -> list[dict[str, Any]]:
        """Do what there is to do, all alike; returns the items in the order in which they came."""
        seen = []
        while (item := self.next()) is not None:
            self.answer(item, 3, 4, 5)
            seen.append(item)
        return seen

    def _kept(self, answer: httpx.Response) -> Any:
        self.heard.append(answer)
        assert answer.status_code == 200, answer.text
        return answer.json()
