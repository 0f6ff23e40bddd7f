"""What raters read and are asked (paper: Human Evaluation Details, Figure "The instructions given to the …").

Task, guidelines and the words of the checkbox are the paper's. Of the questions its text gives the order (1 path,
2 goal, 3 efficiency), the five points, and the best answer, "Yes, perfectly"; the questions themselves and the other
answers were in an image that is not part of the text, so their wording is ours.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field

from wordwing.validation import parse

Key = Literal["path", "goal", "efficiency"]
KEYS: tuple[Key, ...] = get_args(Key)

SCALE = (1, 2, 3, 4, 5)
"""Scores, from worst to best."""

INTRODUCTION = "We need your help to understand how well our drone follows instructions."

TASK = (
    "Your task: Read the navigation instruction below, and watch the animation of the drone trying to follow the "
    "instruction. Then answer three questions. Consider the guidelines below:"
)

GUIDELINES = (
    "Looking around: The drone can only see what's directly in front of it as indicated by the highlighted region. "
    "Depending on the instruction, it may have to look for certain objects to understand where to go, and looking "
    "around for them is the right way to go and is efficient.",
    "Bad instructions: If the instruction is unclear, impossible, or full of confusing mistakes, please indicate it by "
    "checking the checkbox. You must still answer all the questions - consider if the drone's behavior was reasonable "
    "given the bad instruction.",
    "Objects: The drone observes the environment from a first-person view. The numbered images illustrate how each "
    "object would look like to the drone. Consider the appearance of objects from the first-person perspective in "
    "relation to the instructions.",
    "Note: Try to answer each question in isolation, focusing on the specific behavior. For example, if the drone "
    'reached the goal correctly, but took the wrong path, you should answer "Yes, perfectly" for question 2, while '
    "giving a worse score for question 1. Similarly, if the drone went straight for the goal, that would be considered "
    '"efficient" behavior, even though it may have taken the wrong path to get there',
    "The drone might sometimes decide not to do anything at all, maybe because it thinks it's already where it was "
    "instructed to go. If that happens you won't see any movement in the animation.",
    'The drone always "stops" at the end, even if the motion appears to end abruptly.',
    "The field is surrounded by a red fence on top, white fence on the right, blue fence on the bottom, and yellow "
    "fence on the left. The colorful borders are there to help you better distinguish between these colors.",
)

UNCLEAR = "The instruction is unclear, impossible, or full of confusing mistakes."
"""What checking the checkbox says."""

MAX_SECONDS = 86_400.0
"""Longest time that a judgement is said to have taken."""


@dataclass(frozen=True)
class Question:
    """One of the three."""

    key: Key
    text: str
    answers: tuple[str, str, str, str, str]
    """From score 1 to score 5."""


BEST = "Yes, perfectly"
_ANSWERS = ("No, not at all", "Hardly", "Partly", "Mostly", BEST)

QUESTIONS = (
    Question("path", "Did the drone follow the path that the instruction describes?", _ANSWERS),
    Question("goal", "Did the drone stop where the instruction told it to go?", _ANSWERS),
    Question("efficiency", "Was the drone's behavior efficient?", _ANSWERS),
)


Score = Annotated[int, Field(ge=1, le=5)]


@dataclass(frozen=True)
class Answers:
    """One judgement of one flight."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    path: Score
    goal: Score
    efficiency: Score
    """Scores from 1 to 5."""
    unclear: bool = False
    """The instruction is bad."""
    seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)] = 0.0
    """How long it took."""


def parse_answers(sent: object) -> Answers:
    """Answers as a page sends them; nothing may be missing, and there may be nothing else."""
    return parse(Answers, {"unclear": None, "seconds": None, **sent} if isinstance(sent, dict) else sent, "answers")


class Rating(NamedTuple):
    """What one rater said about one flight, for the report."""

    rater: int
    instruction: str
    """Its id."""
    system: str
    path: int
    goal: int
    efficiency: int
    """Scores from 1 to 5."""
    unclear: bool
    goal_ahead: bool
    """The instruction's goal is within 42° of the heading at the start."""
    seconds: float = 0.0


NEAR, FAR = 0.47, 1.0
"""A flight that rests nearer to the demonstration's end, metres, is good to practise on, one farther is bad; nearer
counts as success in evaluations, too."""

SIMILAR, DISSIMILAR = 0.8, 0.4
"""The same of nDTW, which is 1 where flown and demonstrated path are the same."""


@dataclass(frozen=True)
class Practice:
    """What is known of a flight that raters practise on."""

    distance: float
    """From where it rests to the demonstration's end, metres."""
    likeness: float
    """nDTW of flown and demonstrated path."""

    @property
    def expected(self) -> dict[Key, tuple[int, int]]:
        """Lowest and highest score that fit, for the questions where that is plain."""
        good: dict[Key, bool] = {"goal": self.distance < NEAR, "path": self.likeness > SIMILAR}
        bad: dict[Key, bool] = {"goal": self.distance > FAR, "path": self.likeness < DISSIMILAR}
        return {key: (4, 5) if good[key] else (1, 2) for key in good if good[key] or bad[key]}


@dataclass(frozen=True)
class Feedback:
    """What a rater reads after a practice item, about one question."""

    key: Key
    fits: bool | None
    """Whether the score is one that fits; None where all do."""
    text: str


def feedback(practice: Practice, answers: Answers) -> tuple[Feedback, ...]:
    """What to say about practice answers, question by question; only what was measured is said."""
    stopped = f"The drone stopped about {practice.distance:.1f} m from the place that was shown for this instruction"
    facts: dict[Key, dict[tuple[int, int] | None, str]] = {
        "path": {
            (4, 5): "The path is close to the one that was shown for this instruction.",
            (1, 2): "The path is far from the one that was shown for this instruction.",
            None: "The path is partly like the one that was shown for this instruction.",
        },
        "goal": {
            (4, 5): f"{stopped}, which counts as reached.",
            (1, 2): f"{stopped}, which is far.",
            None: f"{stopped}.",
        },
        "efficiency": {
            None: "Judge this apart from the others: looking around for objects is efficient, and so is going straight "
            "to a wrong goal.",
        },
    }
    found = []
    for key in KEYS:
        span = practice.expected.get(key)
        fits, hint = None, ""
        if span is not None:
            fits = span[0] <= getattr(answers, key) <= span[1]
            hint = " Your answer fits." if fits else f" A score of {span[0]} or {span[1]} would fit."
        found.append(Feedback(key, fits, facts[key][span] + hint))
    return tuple(found)
