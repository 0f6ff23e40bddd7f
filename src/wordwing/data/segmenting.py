"""From a walk to a paragraph: a smooth path cut into segments, each with its sentence.

In LANI a second person follows the paragraph and cuts text and path where one thing is done and the next begins. Here
the cut and the sentence are chosen together: of several ends near a random length, the first of which something clear
can be said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from wordwing.data.schema import Segment
from wordwing.language.meaning.flown_path import Track
from wordwing.language.writing.writer import Persona, Writer
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, points_along, resample

STEP = 0.05
"""Distance between the points of a smooth path, metres."""

STORED = 0.1
"""Distance between the points of a segment's path, metres."""

SMOOTH = 0.12
"""Scale of the smoothing, metres: people do not follow every wiggle of a drawn line."""

HEADING_REACH = 0.2
"""Distance over which the heading at the end of a segment is taken, metres."""

SHORTEST = 0.45
"""Least length of a segment, metres."""


@dataclass(frozen=True)
class CutConfig:
    """How long segments and paragraphs are."""

    length: float
    """Mean length of a segment aimed at, metres."""
    spread: float = 0.4
    """Standard deviation of its logarithm."""
    segments: float = 4.7
    """Segments in a paragraph aimed at, where its walk is long enough."""
    looks_away: float = 0.35
    """How often a paragraph begins with a heading that has nothing to do with its path."""

    def sample_length(self, rng: np.random.Generator) -> float:
        """Length of a paragraph's path, metres."""
        return self.length * float(np.clip(rng.normal(self.segments, 1.0), 2.0, None))


def smooth(path: Floats) -> Floats:
    """A walk [P, 2] without its wiggles: [Q, 2] points every 5 cm, the same ends."""
    even = resample(path, STEP)
    count = len(even)
    if count < 2:
        return even
    padded = np.pad(even, ((count, count), (0, 0)), mode="reflect", reflect_type="odd")
    return np.asarray(gaussian_filter1d(padded, SMOOTH / STEP, axis=0)[count : 2 * count], float)


def write_segments(
    layout: Layout,
    path: Floats,
    rivals: Sequence[Floats],
    config: CutConfig,
    training: bool,
    rng: np.random.Generator,
    yaw: float | None = None,
) -> list[Segment]:
    """Cut a smooth path into segments and write a sentence for each, in one person's words.

    Args:
        layout: The arena.
        path: [P, 2] smooth, metres, world frame.
        rivals: Other paths in the layout, which sentences should not fit.
        config: How long segments are.
        training: Whether phrasings that are kept for dev and test must not be used.
        rng: Source of every choice.
        yaw: Heading at the beginning, radians; by default any that suits.

    Returns:
        Segments that follow each other from the path's beginning to its end; [] if no words were found for a part.
    """
    writer = Writer(layout, Persona.sample(rng), training, rng)
    whole = path_length(path)
    others = [_stretch(rival, config, layout, rng) for rival in rivals for _ in range(3)]
    begin, yaw = 0.0, _first_heading(path, config, rng) if yaw is None else yaw
    segments: list[Segment] = []
    while begin < whole:
        for end in _ends(begin, whole, config, rng):
            points = _part(path, begin, end)
            ahead = [_ahead(path, end, whole, config, layout)] if whole - end > config.length else []
            sentence = writer.write(Track(points, yaw, layout), [*others, *ahead])
            if sentence is not None:
                x, y = points[0].tolist()
                segments.append(Segment(sentence.text, (x, y), yaw, points, sentence.meaning))
                begin, yaw = end, heading(points)
                break
        else:
            return []
    return segments


def cut_segments(path: Floats, count: int, config: CutConfig, rng: np.random.Generator) -> list[Segment]:
    """Cut a smooth path into a number of segments of different lengths, for others to write the sentences.

    Args:
        path: [P, 2] smooth, metres, world frame; at least `count` times `SHORTEST` long.
        count: How many segments.
        config: How much their lengths differ.
        rng: Source of every choice.

    Returns:
        Segments without words that follow each other from the path's beginning to its end.
    """
    whole = path_length(path)
    if whole < count * SHORTEST:
        raise ValueError(f"{count} segments need a path of {count * SHORTEST:.2f} m; this one has {whole:.2f} m")
    shares = np.exp(rng.normal(0.0, config.spread, count))
    ends = (SHORTEST + (whole - count * SHORTEST) * shares / shares.sum()).cumsum()
    segments: list[Segment] = []
    begin, yaw = 0.0, _first_heading(path, config, rng)
    for end in ends.tolist():
        points = _part(path, begin, end)
        x, y = points[0].tolist()
        segments.append(Segment("", (x, y), yaw, points))
        begin, yaw = end, heading(points)
    return segments


def _ends(begin: float, whole: float, config: CutConfig, rng: np.random.Generator) -> list[float]:
    """Where a segment may end, metres along the path, best guess first."""
    middle = config.length * math.exp(rng.normal(0.0, config.spread) - config.spread**2 / 2)
    lengths = middle + np.array([0.0, 0.15, -0.15, 0.3, -0.3, 0.5]) * config.length
    ends = begin + np.clip(lengths, SHORTEST, None)
    # A rest too short for a segment of its own belongs to the last one.
    return list(dict.fromkeys(whole if whole - end < SHORTEST else float(end) for end in ends))


def _part(path: Floats, begin: float, end: float) -> Floats:
    count = max(round((end - begin) / STORED), 1)
    return points_along(path, np.linspace(begin, end, count + 1)).round(4)


def heading(points: Floats) -> float:
    """Direction of flight at the end of a path, radians."""
    back = max(round(HEADING_REACH / STORED), 1)
    offset = points[-1] - points[max(len(points) - 1 - back, 0)]
    return round(math.atan2(offset[1], offset[0]), 5)


def _first_heading(path: Floats, config: CutConfig, rng: np.random.Generator) -> float:
    """Heading at the start of a paragraph: roughly along the path, or anywhere, so that the drone must look around."""
    if rng.random() < config.looks_away:
        return round(float(rng.uniform(-math.pi, math.pi)), 5)
    offset = points_along(path, np.array([HEADING_REACH]))[0] - path[0]
    return round(math.remainder(math.atan2(offset[1], offset[0]) + rng.normal(0.0, 0.25), 2 * math.pi), 5)


def _stretch(path: Floats, config: CutConfig, layout: Layout, rng: np.random.Generator) -> Track:
    """A random part of another path, as long as a segment, with the heading it is entered with."""
    whole = path_length(path)
    length = min(whole, config.length * rng.uniform(0.7, 1.5))
    begin = rng.uniform(0.0, whole - length)
    before = _part(path, max(begin - HEADING_REACH, 0.0), begin) if begin > STEP else None
    points = _part(path, begin, begin + length)
    return Track(points, heading(before if before is not None else points[:2]), layout)


def _ahead(path: Floats, begin: float, whole: float, config: CutConfig, layout: Layout) -> Track:
    """The way on after a segment's end, which its sentence should not mean."""
    points = _part(path, begin, min(whole, begin + config.length))
    return Track(points, heading(points[:2]), layout)
