"""The page of a collection, really served, and somebody who takes part without a browser."""

from typing import Any

from page_server import Participant, RunningPage
from small_collection import ends
from wordwing.collect.server import make_server
from wordwing.collect.store import Collection


class RunningCollection(RunningPage):
    """A collection's page in a thread, on loopback."""

    def __init__(self, collection: Collection, **options: Any) -> None:
        self.collection = collection
        super().__init__(collection, make_server, **options)

    def person(self, token: str | None = None) -> "Person":
        """A new one, or one with a link."""
        return Person(*self.begin("participant", token))


class Person(Participant):
    """What somebody's page does."""

    def next(self) -> dict[str, Any] | None:
        return self.post("/participant/next")["work"]

    def write(self, work: dict[str, Any], text: str = "go past the barrel, part") -> Any:
        for part in work["parts"]:
            if part["yours"]:
                self.post(f"{address(work)}/sentences/{part['place']}", {"sentence": f"{text} {part['place']}"})
        return self.post(f"{address(work)}/send")

    def follow(self, work: dict[str, Any], where: dict[str, list[float]]) -> Any:
        part = work["parts"][-1]
        path = [part["start"][:2], where[part["media"]]]
        return self.post(f"{address(work)}/lines/{part['place']}", {"path": path})

    def act(self, collection: Collection) -> bool:
        """Do the next thing rightly; whether there was one."""
        work = self.next()
        if work is None:
            return False
        if work["role"] == "write":
            self.write(work)
        else:
            self.follow(work, ends(collection.file))
        return True


def address(work: dict[str, Any]) -> str:
    return f"/participant/work/{work['id']}"
