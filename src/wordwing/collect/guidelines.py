"""What people read before and while they write and follow, and what they are told after practice.

The paper's guidelines for those who wrote were not published; these are ours, from the same brief as those of the
corpus `written` (scripts/written/writers.md).
"""

import math
from dataclasses import dataclass

from wordwing.data.schema import Segment
from wordwing.data.statistics import HIT
from wordwing.data.unwritten import REFUSED
from wordwing.language.meaning.judge import judge
from wordwing.language.parser.parsing import parse
from wordwing.language.tokenizer import tokenize
from wordwing.world.layout import Layout

INTRODUCTION = "Tell a drone where to go, and go where others tell you."

TASK = (
    "You take turns. As a writer you watch a small drone fly a path, part by part, and write for each part what you "
    "would say to make it fly there. As a follower you read what somebody else wrote and draw where it leads. A "
    "sentence is kept when its follower ends up where its writer meant."
)

GUIDELINES = (
    "Left and right: they are the drone's. On the map they are reversed when it flies downwards; what its camera sees "
    "tells you.",
    "Your own words: write as you would say it. Call things what you see; there are no right names. Do not use the "
    "same phrasing again and again.",
    "Enough to stop: say near what the drone stops, on which side of it and how far from it. Somebody who has your "
    "words and the field, but not the path, must be able to find the place.",
    "One part after another: each part begins where the one before ended, and the drone still looks the way it was "
    "flying. You can refer to what was said before.",
    "What the drone does not know: the map, the pictures, the colours and numbers of the parts and the letters of the "
    "objects. Colours of objects and fences are fine.",
    "Nothing personal: do not write names, addresses or anything about yourself or others.",
    "As a follower: decide where the words lead, even if they are unclear. What counts is where your line ends.",
    "The field is 4.7 m wide. It is surrounded by a red fence on top, white fence on the right, blue fence on the "
    "bottom, and yellow fence on the left. The drone flies 0.7 m above the ground.",
)

GUIDE = {"introduction": INTRODUCTION, "task": TASK, "guidelines": GUIDELINES}
"""What the page says to everybody."""

FEW_WORDS = 3
"""With fewer words it can hardly be said where to stop."""


@dataclass(frozen=True)
class PracticeFeedback:
    """What somebody is told after practice."""

    text: str
    path: tuple[tuple[float, float], ...] = ()
    """Where the drone was meant to go, for a follower."""


def remarks(text: str) -> list[str]:
    """What a writer may want to change in a sentence before it is sent."""
    found = [f"The drone does not know this: {what}." for what, pattern in REFUSED.items() if pattern.search(text)]
    if len(tokenize(text)) < FEW_WORDS:
        found.append("This is very short. Does it say where to stop?")
    return found


def writing_feedback(text: str, segment: Segment, layout: Layout) -> PracticeFeedback:
    """What is said of a practice sentence: what a program makes of it, and what somebody else wrote.

    Args:
        text: What was written.
        segment: The path, and somebody else's sentence.
        layout: Where it is.
    """
    meaning = parse(text, layout, segment.start_xy).meaning
    checked = "A simple program that looks for mistakes could not read your sentence; people may well understand it."
    if meaning:
        done = judge(meaning, segment.path, segment.start_yaw, layout).done
        checked = "A simple program has looked for mistakes, such as left for right, and found none."
        if not all(done):
            checked = (
                "A simple program thinks that the path does not do all that your sentence says. Check left and right, "
                "and where it ends."
            )
    return PracticeFeedback(f"{checked} Somebody else wrote: “{segment.instruction}”")


def following_feedback(drawn: tuple[tuple[float, float], ...], segment: Segment) -> PracticeFeedback:
    """What is said of a practice drawing."""
    end = segment.path[-1].tolist()
    distance = math.dist(drawn[-1], end)
    fits = "which is near enough" if agrees(drawn, segment) else f"which is too far: {HIT:.2f} m is the most"
    text = f"Your line ends {distance:.2f} m from where the drone was meant to stop, {fits}. The orange line was meant."
    return PracticeFeedback(text, tuple((x, y) for x, y in segment.path.tolist()))


def agrees(drawn: tuple[tuple[float, float], ...], segment: Segment) -> bool:
    """Whether what a follower has drawn ends where the writer meant."""
    return math.dist(drawn[-1], segment.path[-1]) < HIT
