"""What the page is told about the world: the catalogue, example sentences, and a placed layout from above."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from wordwing.data.schema import MAX_TEXT
from wordwing.language.missing_landmarks import CORPORA
from wordwing.studio.crew import DEFAULT, Crew
from wordwing.studio.frames import GRID
from wordwing.studio.live import Start
from wordwing.studio.messages import VERSION, start_json
from wordwing.viz.drawing import MAP_EXTENT
from wordwing.viz.overhead import overheads
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import MAX_LANDMARKS, Layout

EXAMPLES = {
    "cage": [
        "go to the pumpkin and stop in front of it",
        "turn left and fly to the boat",
        "pass the gorilla on its left, then stop at the banana",
        "fly between the rock and the traffic cone",
        "go around the mushroom to the tree stump",
    ],
    "field": [
        "find the red telephone box and stop just short of it",
        "keep the windmill on your left and go to the lighthouse",
        "fly to the well, then turn right towards the tank",
        "go past the bench to the barrel",
        "head for the anvil",
    ],
    "house": [
        "walk over to the sofa",
        "turn right and go up to the fridge",
        "go past the table to the bed",
        "cross the room and stop at the chest of drawers",
        "go to the television and stop in front of it",
    ],
}
"""Our own sentences; none is in a corpus."""

OVERHEAD = 720
"""Edge of the picture from above, pixels."""


def welcome(crew: Crew, limit: int) -> dict[str, Any]:
    """All that a page has to know before its first flight."""
    return {
        "type": "welcome",
        "version": VERSION,
        "policies": [{"name": name, "title": name, "card_url": f"/cards/{name}"} for name in crew],
        "corpora": list(CORPORA),
        "landmarks": [
            {"name": kind.name, "radius": kind.footprint, "nouns": list(kind.nouns), "set": kind.set}
            for kind in catalogue()
        ],
        "examples": EXAMPLES,
        "limits": {"text": MAX_TEXT, "visitors": limit, "landmarks": MAX_LANDMARKS},
        "default_policy": DEFAULT if DEFAULT in crew else next(iter(crew)),
        "grid": GRID,
    }


def placed(start: Start, picture: str) -> dict[str, Any]:
    """The message about where everything is now."""
    return {"type": "placed", **start_json(start), "overhead": picture, "extent": MAP_EXTENT}


def overhead_picture(layout: Layout) -> str:
    """A layout from above, x up and y left, as an address that a page can show."""
    [ground] = overheads([layout], OVERHEAD)
    file = io.BytesIO()
    Image.fromarray(ground).save(file, "WEBP", quality=82, method=2)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
