"""Flights that were never flown, for tests of summaries and tables."""

from typing import Any

from wordwing.evaluation.report.summary import flight_row
from wordwing.execution.execution import Provenance
from wordwing.execution.metrics import Metrics


def measures(success: bool = True, emd: float = 0.2, **others) -> Metrics:
    """Of a flight that is told by whether it succeeded and by its EMD, unless more is said."""
    fields = {
        "success_at_stop": success,
        "stopped": True,
        "distance": 0.1 if success else 0.9,
        "distance_at_stop": 0.1 if success else 0.9,
        "closest": 0.1,
        "oracle_success": True,
        "stop_emd": 0.8,
        "nemd": emd / 0.8,
        "semd": max(0.0, 1 - emd / 0.8) * success,
        "length": 1.0,
        "gold_length": 1.5,
        "spl": float(success),
        "ndtw": 0.5,
        "sdtw": 0.5 * success,
        "clauses": None,
        "followed": None,
        "judge_path": None,
        "judge_goal": None,
        "first_goal_error": None,
        "last_goal_error": None,
        "first_unobserved": None,
        "goal_ahead": True,
        "goal_in_sight": True,
    }
    return Metrics(success=success, emd=emd, **{**fields, **others})


def flight(system: str, name: str, success: bool = True, emd: float = 0.2, **others) -> dict[str, Any]:
    """A row of a table of flights, of an instruction such as "p1/0" or, of two segments, "p1/0-1".

    Every paragraph has a layout of its own.
    """
    keys = {"corpus": "cage", "text": "generated", "split": "test", "domain": "sim"}
    keys |= {key: others.pop(key) for key in list(others) if key in keys}
    layout, _slash, place = name.rpartition("/")
    source = Provenance(system=system, seed=0, id=name, segments=place.count("-") + 1, layout_id=layout, **keys)
    return flight_row(source, measures(success, emd, **others))
