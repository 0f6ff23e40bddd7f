"""Who can fly in the studio: learned policies, each loaded once and shared by all visitors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wordwing.errors import WordwingError
from wordwing.evaluation.systems import split_name
from wordwing.interface import Domain
from wordwing.model.checkpoint import read_card
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import BASELINES, load_policy

DEFAULT = "pvn2-sureal"
MAX_NAME = 60


@dataclass(frozen=True)
class Member:
    """A policy that can fly."""

    name: str
    """On the page."""
    policy: str
    """Its name or folder, for `load_policy`."""
    loaded: LearnedPolicy
    """The one whose network and vocabulary all wear; it does not fly itself."""

    def wear(self, domain: Domain) -> LearnedPolicy:
        """Somebody who flies with this network, with a memory of their own."""
        return LearnedPolicy(self.loaded.network, self.loaded.vocabulary, domain)

    @property
    def card(self) -> str:
        """The model card, Markdown."""
        try:
            return read_card(self.policy)
        except WordwingError:
            return f"# {self.name}\n\nThere is no model card.\n"


Crew = dict[str, Member]


def load_crew(given: Sequence[str] = (DEFAULT,)) -> Crew:
    """Load policies: "pvn2-sureal", "out/sureal/best" or, with a name for the page, "ours=out/sureal/best"."""
    crew: Crew = {}
    if not given:
        raise WordwingError(f"--policies is empty; name at least one policy, such as {DEFAULT}")
    for entry in given:
        name, policy = split_name(entry)
        if policy in BASELINES:
            raise WordwingError(f'"{policy}" does not read, so the studio cannot offer it; name a learned policy')
        if not name or len(name) > MAX_NAME or not name.isprintable() or "/" in name:
            raise WordwingError(f"{entry[:200]!r} has no name that fits a page; write NAME=POLICY")
        if name in crew:
            raise WordwingError(f'two policies are called "{name}"; name one of them: NAME=POLICY')
        loaded = load_policy(policy, "sim")
        assert isinstance(loaded, LearnedPolicy)
        crew[name] = Member(name, policy, loaded)
    return crew
