"""Every metric of one flight, computed from its line of episodes.jsonl alone.

Each metric's formula is in `docs/metrics.md`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from wordwing.evaluation.episodes import Episode
from wordwing.execution.metrics import emd, final_distance, ndtw, nemd, path_distance, sdtw, semd, spl, succeeded
from wordwing.language.meaning.judge import judge
from wordwing.world.paths import lengths, path_length
from wordwing.world.visibility import goal_ahead, goal_in_sight

DECIMALS = 6
"""Metrics are kept to a micrometre, shares to a millionth."""


@dataclass(frozen=True)
class Measures:
    """Of one flight; lengths in metres. None where a metric is not defined for it."""

    success: bool
    """SR: came to rest within 0.47 m of the demonstration's end."""
    success_at_stop: bool
    """The same where STOP was decided, before coming to rest."""
    stopped: bool
    """Ended by STOP, not because the steps ran out."""
    distance: float
    """NE, navigation error: from where it rests to the demonstration's end."""
    distance_at_stop: float
    closest: float
    """Least distance of the flown path from the demonstration's end."""
    oracle_success: bool
    """OSR: passed within 0.47 m of the demonstration's end."""
    emd: float
    stop_emd: float
    """EMD of a drone that stays at the start."""
    nemd: float | None
    semd: float
    length: float
    """Of the flown path."""
    gold_length: float
    spl: float
    ndtw: float
    sdtw: float
    clauses: int | None
    """Of the instruction's meaning; None where it is not known."""
    followed: bool | None
    """Every clause was done, in order, the last one at rest; None where the meaning is not known."""
    judge_path: float | None
    """The judge's path score; None where the meaning is not known."""
    judge_goal: float | None
    first_goal_error: float | None
    """From the goal that stage 1 believed in at the first look to the demonstration's end; None without beliefs."""
    last_goal_error: float | None
    """The same at the last decision."""
    first_unobserved: float | None
    """p_oob of the goal at the first look."""
    goal_ahead: bool
    """The goal is within ±42° of the start's heading: the paper's "visible"."""
    goal_in_sight: bool
    """The goal's place on the ground is in the first picture, and no landmark hides it."""

    def to_json(self) -> dict[str, Any]:
        """The "metrics" of a line of episodes.jsonl."""
        return asdict(self)


def measure(episode: Episode) -> Measures:
    """Measure a flight.

    Lengths are rounded before anything is derived from them, so that 0.47 m is 0.47 m on every machine.
    """
    flown, gold, goal = episode.path, episode.gold, episode.gold[-1]
    distance = _rounded(final_distance(flown, gold))
    at_stop = _rounded(final_distance(flown[: episode.decisions + 1], gold))
    closest = _rounded(path_distance(flown, goal))
    success = succeeded(distance)
    flown_emd, stop_emd = _rounded(emd(flown, gold)), _rounded(emd([episode.start[:2]], gold))
    share = nemd(flown_emd, stop_emd)
    length, gold_length = _rounded(path_length(flown)), _rounded(path_length(gold))
    warped = _rounded(ndtw(flown, gold))
    judgement = judge(episode.meaning, flown, episode.start[2], episode.layout) if episode.meaning else None
    errors = lengths(episode.goals[:, :2] - goal)
    return Measures(
        success=success,
        success_at_stop=succeeded(at_stop),
        stopped=episode.ended_by == "stop",
        distance=distance,
        distance_at_stop=at_stop,
        closest=closest,
        oracle_success=succeeded(closest),
        emd=flown_emd,
        stop_emd=stop_emd,
        nemd=None if share is None else _rounded(share),
        semd=_rounded(semd(success, share)),
        length=length,
        gold_length=gold_length,
        spl=_rounded(spl(success, length, gold_length)),
        ndtw=warped,
        sdtw=_rounded(sdtw(success, warped)),
        clauses=len(judgement.clauses) if judgement else None,
        followed=judgement.followed if judgement else None,
        judge_path=_rounded(judgement.path) if judgement else None,
        judge_goal=_rounded(judgement.goal) if judgement else None,
        first_goal_error=_rounded(errors[0]) if len(errors) else None,
        last_goal_error=_rounded(errors[-1]) if len(errors) else None,
        first_unobserved=_rounded(episode.goals[0, 2]) if len(errors) else None,
        goal_ahead=goal_ahead(episode.start[:2], episode.start[2], goal),
        goal_in_sight=goal_in_sight(episode.layout, episode.start[:2], episode.start[2], goal),
    )


NEWER = ("clauses", "followed")
"""Metrics that lines written before they existed do not have."""


def measures_of(row: dict[str, Any], where: str) -> Measures:
    """The measures that a line of episodes.jsonl has, or those of its flight where the line is older than a metric.

    Args:
        row: The parsed line.
        where: Begins each complaint.
    """
    missing = {field.name for field in fields(Measures)} - set(row["metrics"])
    if missing != set(NEWER):
        return Measures(**row["metrics"])  # a TypeError where a metric is missing that every line has
    measures = measure(Episode.from_json(row, where))
    return Measures(**{name: getattr(measures, name) for name in NEWER} | row["metrics"])


def _rounded(value: float) -> float:
    """The last bits of a sum depend on the machine; those of a file should not."""
    return round(float(value), DECIMALS) + 0.0  # not −0.0
