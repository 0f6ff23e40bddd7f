"""Which kinds of clauses were done, by system: what of an instruction a policy does not follow."""

from collections.abc import Iterable
from dataclasses import dataclass

from wordwing.execution.execution import Execution
from wordwing.execution.metrics import judge_flight
from wordwing.language.meaning.clauses import KINDS, Kind


@dataclass
class ClauseRate:
    """Clauses of one kind in one system's flights."""

    clauses: int = 0
    done: int = 0
    """Scored at least 0.5."""
    scores: float = 0.0
    """Their sum."""

    @property
    def share(self) -> float:
        """Of them that were done."""
        return self.done / self.clauses

    @property
    def score(self) -> float:
        """Their mean."""
        return self.scores / self.clauses


def clause_rates(flights: Iterable[Execution]) -> dict[str, dict[Kind, ClauseRate]]:
    """By system and kind, in the order of `KINDS`; of sentences with alternatives the one that was followed best."""
    found: dict[str, dict[Kind, ClauseRate]] = {}
    for flight in flights:
        judged = judge_flight(flight)
        if judged is None:
            continue
        rates = found.setdefault(flight.provenance.system, {})
        for clause, score, done in zip(judged[0], judged[1].clauses, judged[1].done, strict=True):
            rate = rates.setdefault(clause.kind, ClauseRate())
            rate.clauses += 1
            rate.done += done
            rate.scores += score
    return {system: {kind: rates[kind] for kind in KINDS if kind in rates} for system, rates in found.items()}
