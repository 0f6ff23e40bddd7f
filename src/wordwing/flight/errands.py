"""A command to the autopilot, sent again while it may have been lost, and never more than that.

Sending a mode or an arming command again could take the drone back from a pilot who has just taken over. So one is sent
again only after a heartbeat that came after the last try and still shows the old state.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from wordwing.flight.messages import Message
from wordwing.flight.safety import Timeouts
from wordwing.flight.told import RESULTS, Answer

ACCEPTED, IN_PROGRESS = 0, 5
"""MAV_RESULT."""


class Errand:
    """One command until it is answered.

    Args:
        what: It in words: "arm".
        command: MAV_CMD number.
        make: Makes the message for the n-th repetition.
        timeouts: How long to wait, how often to try.
    """

    def __init__(self, what: str, command: int, make: Callable[[int], Message], timeouts: Timeouts) -> None:
        self.what = what
        self.command = command
        self.accepted = False
        self.problem: str | None = None
        """Why it has failed."""
        self._make = make
        self._timeouts = timeouts
        self._sent = 0
        self._sent_at = self._accepted_at = math.inf

    def hear(self, answer: Answer, now: float) -> None:
        """An answer of the autopilot to some command."""
        if answer.command != self.command or not self._sent or self.accepted or answer.result == IN_PROGRESS:
            return
        if answer.result == ACCEPTED:
            self.accepted, self._accepted_at = True, now
        else:
            meaning = RESULTS.get(answer.result, f"result {answer.result}")
            self.problem = f"the autopilot refused to {self.what} ({meaning})"

    def due(self, now: float, heard_at: float) -> Message | None:
        """The message if it is to be sent now; `heard_at` is when the newest heartbeat came."""
        if self.problem is not None:
            return None
        if self.accepted:
            if now - self._accepted_at > self._timeouts.effect:
                self.problem = f"the autopilot agreed to {self.what}, but it did not happen"
            return None
        if self._sent:
            if now - self._sent_at < self._timeouts.answer or heard_at <= self._sent_at:
                return None
            if self._sent >= self._timeouts.tries:
                self.problem = f"the autopilot did not answer {self._sent} requests to {self.what}"
                return None
        message = self._make(self._sent)
        self._sent, self._sent_at = self._sent + 1, now
        return message
