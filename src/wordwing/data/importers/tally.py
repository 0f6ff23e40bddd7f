"""Counting what an importer met: nothing is dropped or repaired without a number in the dataset's notes."""

from __future__ import annotations

EXAMPLES = 5
"""Most examples named for one kind of oddity."""


class Tally:
    """Facts and counts, in the order in which they first occurred."""

    def __init__(self) -> None:
        self.facts: list[str] = []
        """Sentences about the whole."""
        self.counts: dict[str, int] = {}
        """How often each oddity was met."""
        self._examples: dict[str, dict[str, None]] = {}

    def add(self, what: str, example: str = "", count: int = 1) -> None:
        """Count an oddity.

        Args:
            what: What it is and what became of it: "unknown landmarks, left out".
            example: Where or what it was; the first few different ones are named.
            count: How often.
        """
        if count:
            self.counts[what] = self.counts.get(what, 0) + count
            examples = self._examples.setdefault(what, {})
            if example and len(examples) <= EXAMPLES:
                examples[example] = None

    def notes(self) -> tuple[str, ...]:
        """Facts, then counts: "unknown landmarks, left out: 3 (Unicorn, Barell)"."""
        lines = list(self.facts)
        for what, count in self.counts.items():
            names = list(self._examples[what])
            shown = ", ".join(names[:EXAMPLES]) + (", …" if len(names) > EXAMPLES else "")
            lines.append(f"{what}: {count}" + (f" ({shown})" if shown else ""))
        return tuple(lines)
