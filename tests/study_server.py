"""The page of a study, really served, and somebody who rates without a browser."""

from typing import Any

from page_server import Participant, RunningPage
from wordwing.study.server import make_server
from wordwing.study.store import Study


class RunningStudy(RunningPage):
    """A study's page in a thread, on loopback."""

    def __init__(self, study: Study, **options: Any) -> None:
        self.study = study
        super().__init__(study, make_server, **options)

    def rater(self, token: str | None = None) -> "Rater":
        """A new one, or one with a link."""
        return Rater(*self.begin("rater", token))


class Rater(Participant):
    """What a rater's page does."""

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
