"""How far a flown path is from the demonstration's (paper: Automated Evaluation Details), and how sure a share is.

Paths are polylines [P, 2] in metres, in any one frame; an empty one or one with NaN is refused with a `ValueError`.
Each metric's formula, and why it is this one, is in `docs/metrics.md`.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from wordwing.execution.execution import Execution
from wordwing.language.meaning.clauses import Meaning
from wordwing.language.meaning.judge import Judgement, judge_best
from wordwing.world.paths import Floats, lengths, line_distance, lines_of, path_length, resample
from wordwing.world.visibility import goal_ahead, goal_in_sight

SUCCESS_DISTANCE = 0.47
"""A flight succeeds when the drone comes to rest less than this from the demonstration's end, metres."""

EMD_SPACING = 0.02
"""Distance between the points that stand for a path, metres."""

PIVOTS = 10_000_000
"""Most pivots of the network simplex: more than any path needs. At its limit POT would only warn, and return a
transport that is not the cheapest."""


@overload
def succeeded(distance: float) -> bool: ...
@overload
def succeeded(distance: Floats) -> NDArray[np.bool_]: ...
@overload
def succeeded(distance: Tensor) -> Tensor: ...
def succeeded(distance: float | Floats | Tensor) -> bool | NDArray[np.bool_] | Tensor:
    """Whether a distance from the demonstration's end, metres, is a success: less than 0.47 m."""
    return distance < SUCCESS_DISTANCE


def points_of(path: ArrayLike) -> Floats:
    """A path as an array [P, 2]; anything else is refused."""
    points = np.asarray(path, np.float64)
    if not points.size:
        raise ValueError("a path needs at least one point")
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"a path is [P, 2], not {list(points.shape)}")
    if not np.isfinite(points).all():
        raise ValueError("a path holds NaN or infinity")
    return points


def evenly(path: ArrayLike, spacing: float = EMD_SPACING) -> Floats:
    """A path [P, 2] as n = max(2, round(length / spacing) + 1) even points with both its ends.

    A path of no length is one point.
    """
    return resample(points_of(path), spacing)


def emd(flown: ArrayLike, gold: ArrayLike, spacing: float = EMD_SPACING) -> float:
    """Earth mover's distance in metres between two paths [P, 2], their mass spread evenly along them."""
    import ot  # POT and scipy take a second to import, and most importers of this module only fly
    from scipy.spatial.distance import cdist

    a, b = evenly(flown, spacing), evenly(gold, spacing)
    cost = cdist(a, b)
    if min(cost.shape) == 1:  # all mass goes to, or comes from, one point
        return float(cost.mean())
    masses = (np.full(size, 1 / size) for size in cost.shape)
    return float(ot.emd2(*masses, cost, numItermax=PIVOTS, center_dual=False, check_marginals=False))


def final_distance(flown: ArrayLike, gold: ArrayLike) -> float:
    """Metres between the ends of two paths [P, 2]."""
    return math.dist(points_of(flown)[-1], points_of(gold)[-1])


def path_distance(path: ArrayLike, point: ArrayLike) -> float:
    """Least distance in metres of a path [P, 2], all along its lines, from a point [2]."""
    [distance] = line_distance(points_of(np.asarray(point)[None]), lines_of(points_of(path)))
    return float(distance)


def spl(success: bool, flown_length: float, gold_length: float) -> float:
    """Success weighted by path length: success · ℓ / max(p, ℓ), with p flown and ℓ demonstrated; of 0 / 0 success."""
    longer = max(flown_length, gold_length)
    return success * (gold_length / longer if longer > 0 else 1.0)


def dtw(a: ArrayLike, b: ArrayLike) -> float:
    """Dynamic time warping: the least sum of distances over ways to walk along points [A, 2] and [B, 2] together.

    A step goes on by one point on either or on both; first and last points meet.
    """
    from scipy.spatial.distance import cdist

    cost = cdist(points_of(a), points_of(b))
    cost = cost if len(cost) <= cost.shape[1] else cost.T
    # A row at a time: D[i, j] = c[i, j] + min(m[j], D[i, j - 1]) with m[j] = min(D[i - 1, j], D[i - 1, j - 1]), so
    # with C the sums of c along the row D[i, j] = C[j] + min over k <= j of (m[k] - C[k - 1]).
    sums = cost.cumsum(axis=1)
    least = sums[0]
    for row, total in zip(cost[1:], sums[1:], strict=True):
        entry = least.copy()
        np.minimum(entry[1:], least[:-1], out=entry[1:])
        least = total + np.minimum.accumulate(entry - (total - row))
    return float(least[-1])


def ndtw(flown: ArrayLike, gold: ArrayLike) -> float:
    """Normalised dynamic time warping exp(−DTW / (|gold| · 0.47 m)) in (0, 1], of even points every 2 cm."""
    points = evenly(gold)
    return math.exp(-dtw(evenly(flown), points) / (len(points) * SUCCESS_DISTANCE))


def sdtw(success: bool, flown_ndtw: float) -> float:
    """Success weighted by normalised dynamic time warping: success · nDTW."""
    return success * flown_ndtw


def nemd(flown_emd: float, stop_emd: float) -> float | None:
    """EMD as a share of that of a drone that stays at the start, metres both.

    0 where EMD is 0, and None where only the other is: leaving the start is then infinitely worse than staying.
    """
    if flown_emd == 0:
        return 0.0
    return flown_emd / stop_emd if stop_emd > 0 else None


def semd(success: bool, share: float | None) -> float:
    """Success weighted by NEMD: success · max(0, 1 − NEMD), 0 where there is no NEMD."""
    return success * max(0.0, 1 - share) if share is not None else 0.0


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; (0, 1) of nothing."""
    if not total:
        return 0.0, 1.0
    z, share = 1.959963984540054, hits / total
    centre = hits + z * z / 2
    half = z * math.sqrt(total * share * (1 - share) + z * z / 4)
    low, high = (centre - half) / (total + z * z), (centre + half) / (total + z * z)
    return low if hits else 0.0, high if hits < total else 1.0


@dataclass(frozen=True)
class Metrics:
    """All metrics of one flight; lengths in metres. None where a metric is not defined for it."""

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
    """The goal's place on the ground is in the first image, and no landmark hides it."""

    def to_json(self) -> dict[str, Any]:
        """The "metrics" of a line of episodes.jsonl."""
        return asdict(self)


def measure(execution: Execution) -> Metrics:
    """Measure a batch of one.

    Positions are rounded before they are measured, as episodes.jsonl keeps them, so that a line that is read gives the
    same; and lengths before anything is derived from them, so that 0.47 m is 0.47 m on every machine.
    """
    task, meaning = execution.task, execution.provenance.meaning
    flown, gold, goals = (as_kept(part) for part in (execution.path, task.gold_path, execution.believed_goals))
    goal, start, yaw = gold[-1], task.start_xy, task.start_yaw
    distance = _rounded(final_distance(flown, gold))
    at_stop = _rounded(final_distance(flown[: execution.end + 1], gold))
    closest = _rounded(path_distance(flown, goal))
    success = succeeded(distance)
    flown_emd, stop_emd = _rounded(emd(flown, gold)), _rounded(emd([start], gold))
    share = nemd(flown_emd, stop_emd)
    length, gold_length = _rounded(path_length(flown)), _rounded(path_length(gold))
    warped = _rounded(ndtw(flown, gold))
    _, judgement = judge_flight(execution) or (None, None)
    errors = lengths(goals[:, :2] - goal)
    return Metrics(
        success=success,
        success_at_stop=succeeded(at_stop),
        stopped=execution.stopped,
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
        clauses=len(meaning) if meaning else None,
        followed=judgement.followed if judgement else None,
        judge_path=_rounded(judgement.path) if judgement else None,
        judge_goal=_rounded(judgement.goal) if judgement else None,
        first_goal_error=_rounded(errors[0]) if len(errors) else None,
        last_goal_error=_rounded(errors[-1]) if len(errors) else None,
        first_unobserved=_rounded(goals[0, 2]) if len(errors) else None,
        goal_ahead=goal_ahead(start, yaw, goal),
        goal_in_sight=goal_in_sight(task.layout, start, yaw, goal),
    )


def judge_flight(execution: Execution) -> tuple[Meaning, Judgement] | None:
    """What the judge says of a batch of one, and the meaning that it goes by; None where none is known."""
    source, task = execution.provenance, execution.task
    if not source.meaning:
        return None
    path, yaws = as_kept(execution.path), as_kept(execution.yaws)
    return judge_best((source.meaning, *source.alternatives), path, task.start_yaw, task.layout, yaws)


def as_kept(values: NDArray[Any]) -> Floats:
    """Lengths to a tenth of a millimetre and angles to a tenth of a milliradian, as episodes.jsonl keeps them."""
    return np.round(values.astype(float), 4) + 0.0  # not −0.0


def _rounded(value: float) -> float:
    """A metric to a micrometre, a share to a millionth: the last bits of a sum depend on the machine."""
    return round(float(value), 6) + 0.0
