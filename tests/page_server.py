"""A page on which people take part, really served, and somebody who takes part without a browser."""

from collections.abc import Callable
from typing import Any

import httpx
import uvicorn

from running_server import RunningServer
from wordwing.web.pages import PageConfig
from wordwing.web.security import Bucket


class RunningPage(RunningServer):
    """In a thread, on loopback."""

    def __init__(self, store: Any, make_server: Callable[[PageConfig[Any]], uvicorn.Server], **options: Any) -> None:
        kinds = ("requests", "changes", "newcomers")
        generous = {kind: lambda: Bucket(1e6, 1e6) for kind in kinds}

        def make(port: int) -> uvicorn.Server:
            self.config = PageConfig(store, port=port, **{**generous, **options})
            return make_server(self.config)

        super().__init__(make)

    def begin(self, who: str, token: str | None = None) -> tuple[httpx.Client, str]:
        """What a new participant, or one with a link, asks with; and the token."""
        with self.http(headers={"origin": self.url}) as http:
            token = token or http.post(f"/{who}s", json={"invitation": self.config.token}).json()[who]
        return self.http(headers={"origin": self.url, "authorization": f"Bearer {token}"}), token


class Participant:
    """What a page does; keeps every answer of the server."""

    def __init__(self, http: httpx.Client, token: str) -> None:
        self.http, self.token = http, token
        self.heard: list[httpx.Response] = []

    def get(self, path: str) -> Any:
        return self._kept(self.http.get(path))

    def post(self, path: str, content: Any = None) -> Any:
        return self._kept(self.http.post(path, json={} if content is None else content))

    def _kept(self, answer: httpx.Response) -> Any:
        self.heard.append(answer)
        assert answer.status_code == 200, answer.text
        return answer.json()
