"""The autopilot's parameters before arming: read, judged and, with the user's leave, written."""

import math
from collections import Counter
from dataclasses import dataclass

from wordwing.flight.mavlink.flight_stacks import FlightStack, RequiredParameter
from wordwing.flight.mavlink.messages import AUTOPILOT_VERSION, GLOBAL_ORIGIN, Message, MessageFactory
from wordwing.flight.mavlink.parse_message import ParameterValue

EVERY = 0.4
"""Seconds before an unanswered request is sent again."""

TRIES = 6
"""How often a parameter is asked for, or written."""

OPTIONAL_TRIES = 3
"""How often one that not every version has is asked for."""

AT_A_TIME = 4
"""Requests in one tick, so that a slow radio link is not flooded."""


@dataclass(frozen=True)
class ParameterFinding:
    """One parameter as it is and as it should be."""

    name: str
    """As this autopilot calls it."""
    value: float | None
    """None if the autopilot has not sent it."""
    wanted: str
    """In words, in this autopilot's units."""
    write: float
    """What would be written."""
    right: bool
    why: str

    def __str__(self) -> str:
        found = "was not told by the autopilot" if self.value is None else f"is {self.value:g}"
        return f"parameter {self.name} {found}; it must be {self.wanted}, because {self.why}"


class ParameterCheck:
    """Asks for all wanted parameters under all their names, and remembers what comes."""

    def __init__(self, stack: FlightStack) -> None:
        self._stack = stack
        self._values: dict[str, tuple[float, int]] = {}
        self._asked: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._writing: dict[str, float] = {}

    def update(self, parameter: ParameterValue) -> None:
        """A parameter's value has come, asked for or not."""
        value = self._stack.decode(parameter.field, parameter.kind)
        if math.isfinite(value):
            self._values[parameter.name] = (value, parameter.kind)
            wanted = self._writing.get(parameter.name)
            if wanted is not None and abs(value - wanted) < 1e-4 * max(1.0, abs(wanted)):
                del self._writing[parameter.name]

    def due(self, factory: MessageFactory, now: float) -> list[Message]:
        """Requests to send now, and writes if these have been ordered."""
        messages = []
        for name, value in self._writing.items():
            if self._ready(name, now, self._written, TRIES):
                messages.append(factory.write_parameter(name, value, self._values[name][1]))
        for wanted in self._stack.wanted:
            for name in wanted.names if self._known(wanted) is None else ():
                if len(messages) < AT_A_TIME and self._ready(name, now, self._asked, _tries(wanted)):
                    messages.append(factory.read_parameter(name))
        return messages

    def write(self) -> list[ParameterFinding]:
        """Begin to write what is wrong and known.

        Returns:
            What is written: the old value is in `value`, the new one in `write`.
        """
        wrong = [finding for finding in self.findings() if not finding.right and finding.value is not None]
        self._writing = {finding.name: finding.write for finding in wrong}
        self._written.clear()
        self._last.clear()
        return wrong

    @property
    def complete(self) -> bool:
        """Whether all have come, or have been asked for often enough, and nothing is being written."""
        asked = all(
            self._known(wanted) is not None or all(self._asked[name] >= _tries(wanted) for name in wanted.names)
            for wanted in self._stack.wanted
        )
        return asked and all(self._written[name] >= TRIES for name in self._writing)

    def findings(self) -> list[ParameterFinding]:
        """All that matter, one each."""
        found = []
        for wanted in self._stack.wanted:
            name = self._known(wanted)
            if name is None:
                if not wanted.optional:
                    found.append(ParameterFinding(wanted.name, None, wanted.range, wanted.write, False, wanted.why))
                continue
            value, scale = self._values[name][0], wanted.scale(name)
            scaled = RequiredParameter(
                name, wanted.least * scale, wanted.most * scale, wanted.write * scale, wanted.why
            )
            right = wanted.accepts(name, value)
            found.append(ParameterFinding(name, value, scaled.range, scaled.write, right, wanted.why))
        return found

    def _known(self, wanted: RequiredParameter) -> str | None:
        """The name under which it has come."""
        return next((name for name in wanted.names if name in self._values), None)

    def _ready(self, name: str, now: float, counts: Counter[str], tries: int) -> bool:
        """Whether it is time to send about a parameter; counts it if so."""
        if counts[name] >= tries or now - self._last.get(name, -math.inf) < EVERY:
            return False
        counts[name] += 1
        self._last[name] = now
        return True


def _tries(wanted: RequiredParameter) -> int:
    return OPTIONAL_TRIES if wanted.optional else TRIES


ROUND_PERIOD = 1.0
"""Seconds between two rounds of requests for messages; three times that later on."""

ROUNDS = 3
"""How often messages are asked for in any case; more often only while something is missing."""


class PreflightRequests:
    """Asks again while packets may have been lost."""

    def __init__(self, factory: MessageFactory) -> None:
        self.parameters = ParameterCheck(factory.stack)
        self._factory = factory
        self._rounds = 0
        self._asked_at = -math.inf

    def tick(self, ready: bool, version_known: bool, now: float) -> list[Message]:
        """Requests to send now."""
        factory, first, messages = self._factory, self._rounds < ROUNDS, []
        if (first or not ready) and now - self._asked_at >= (ROUND_PERIOD if first else 3 * ROUND_PERIOD):
            self._rounds += 1
            self._asked_at = now
            messages += [factory.interval(kind, hertz) for kind, hertz in factory.stack.rates.items()]
            messages += [] if factory.stack.lands_with_an_origin else [factory.request(GLOBAL_ORIGIN)]
            messages += [] if version_known else [factory.request(AUTOPILOT_VERSION)]
        return messages + self.parameters.due(factory, now)
