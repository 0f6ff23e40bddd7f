"""Paths through layouts that nobody has described yet, and what a sentence about them must not mention."""

import re
from typing import Literal

import numpy as np

from wordwing.data.generating import CUTS
from wordwing.data.segmenting import SHORTEST, smooth
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, sample_walks

World = Literal["cage", "field"]

ROOM = 1.5
"""A path is at least this much longer than its fewest segments at their shortest."""

_UNIT = r"[ -]*(?:(?:m|cm|ft|in|deg)\b|met|cent|feet|foot|inch|yard|pace|step|°|o['’]?clock)"
_COUNT = rf"(?:[1-9]|one|two|three|four|five|six)\b(?![.,]\d|{_UNIT})"
_PART = r"(?:part|segment|section|leg|stage|arrow|path|marker|sheet)"

REFUSED: dict[str, re.Pattern[str]] = {
    what: re.compile(pattern)
    for what, pattern in {
        # "A" may be an article, and L/H, a C-shape and E.T. are no letters of pictures.
        "letter of a picture": (
            r"(?<![\w.'’/-])(?:[B-HJ-M]|A(?! ?[\w(\"“-]))(?![\w'’/-]|\.\w)(?! (?:shape|curve|turn)\b)"
            r"|(?i:\b(?:letter|object|item|thing|landmark|marked|labell?ed) [\"'“]?[a-m]\b(?![ '’-]\w))"
        ),
        "colour of an arrow": (
            r"(?i)\barrows?\b|\b(?:blue|orange|purple|magenta|pink|violet|cyan|turquoise|teal|yellow|gr[ae]y|black)"
            r" (?:line|path|route|track|trail|stroke|segment|leg)\b"
        ),
        "number of a part": (
            rf"(?i)\b{_PART} (?:no\.? |number |#)?{_COUNT}|\bnumber {_COUNT}|#\d|\b(?:start|end|beginning) of {_COUNT}"
            rf"|\b(?:second|third|fourth|fifth|sixth|2nd|3rd|4th|5th|6th) {_PART}\b(?! of)|\bstep \d\s*(?:[:.)-]|$)"
        ),
        "sheet, picture, map or camera image": (
            r"(?i)\bsheets?\b(?! metal)|\bpictures?\b|\bpictured\b|\bmaps?\b|\bimages?\b|\bcamera (?:still|shot)s?\b"
            r"|\b(?:in|on) the (?:photo|drawing|diagram|legend|thumbnail)s?\b"
        ),
    }.items()
}
"""What a sentence must not mention: the drone knows nothing of it."""


def walked_layouts(world: World, count: int, fewest: int, rng: np.random.Generator) -> list[tuple[Layout, Floats]]:
    """So many random layouts, each with a smooth path that is long enough to be cut.

    Args:
        world: What kind of layouts.
        count: How many.
        fewest: Segments that a path must have at least.
        rng: Source of every choice.
    """
    found: list[tuple[Layout, Floats]] = []
    while len(found) < count:
        layouts = [sample_layout(world, rng) for _ in range(count - len(found))]
        walked = zip(layouts, walked_paths(layouts, world, fewest, rng), strict=True)
        found += [(layout, path) for layout, path in walked if path is not None]
    return found


def walked_paths(layouts: list[Layout], world: World, fewest: int, rng: np.random.Generator) -> list[Floats | None]:
    """For each layout a smooth path [P, 2], metres; None where none was found or it is too short to be cut."""
    paths = [None if walk is None else smooth(walk.points) for walk in sample_walks(layouts, rng, WALK_CONFIGS[world])]
    return [path if path is not None and path_length(path) > ROOM * fewest * SHORTEST else None for path in paths]


def segment_count(world: World, path: Floats, span: tuple[int, int], rng: np.random.Generator) -> int:
    """How many segments of about the corpus's usual length a path is cut into, from the fewest to the most."""
    return int(np.clip(round(rng.normal(path_length(path) / CUTS[world].length, 0.5) + 0.4), *span))
