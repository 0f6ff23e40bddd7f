"""A learned policy in flight: it carries a network's state from decision to decision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from wordwing.devices import find_device, precision
from wordwing.errors import WordwingError
from wordwing.frames import Pose, start_frame
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Action, Domain, Observation
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.checkpoint import load_network, save_network
from wordwing.model.policy import Beliefs, PolicyNetwork, PolicyState
from wordwing.model.text import MAX_WORDS, Tokens

ABSURD = 1000.0
"""Times the fastest flight or turn that no sound policy decides on; what is merely too fast is flown at the limit."""


class LearnedPolicy:
    """Flies a network's mean actions, and stops where the probability of STOP is above κ."""

    needs_gold_path = False

    def __init__(
        self,
        network: PolicyNetwork,
        vocabulary: Vocabulary,
        domain: Domain = "sim",
        device: torch.device | str = "cpu",
    ) -> None:
        """Fly a network.

        Args:
            network: Is moved to the device.
            vocabulary: The words it knows.
            domain: Which camera its images come from.
            device: Where it is computed; in bf16 on CUDA.
        """
        self.device = find_device(device)
        self.network = network.to(self.device).eval()
        self.vocabulary = vocabulary
        self.domain = domain
        self.state: PolicyState | None = None
        self.beliefs: Beliefs | None = None

    @classmethod
    def from_pretrained(
        cls, policy: str | Path, domain: Domain = "sim", device: torch.device | str = "cpu"
    ) -> LearnedPolicy:
        """Load a folder that `save` wrote, or a policy that comes with wordwing, by its name."""
        network, vocabulary = load_network(policy)
        return cls(network, vocabulary, domain, device)

    def save(self, folder: str | Path, card: str = "") -> None:
        """Write `config.json`, `model.safetensors`, `vocab.txt` and the model card `README.md`."""
        save_network(folder, self.network, self.vocabulary, card)

    @torch.no_grad()
    def reset(
        self,
        instructions: Sequence[str],
        start: Pose,
        gold_paths: Sequence[Tensor] | None = None,
        worlds: Tensor | None = None,
    ) -> None:
        """Begin N flights; or only flights `worlds` [M] of those under way, with M instructions and starts."""
        if len(instructions) != len(start):
            raise ValueError(f"{len(instructions)} instructions for {len(start)} drones")
        tokens = Tokens.encode(instructions, self.vocabulary, self.device)
        if self.network.config.stage1.lingunet.attention:
            tokens = tokens.padded(MAX_WORDS)  # words of flights that begin later must fit in beside these
        with precision(self.device):
            fresh = self.network.begin(tokens, start.to(self.device))
        if worlds is None:
            self.state = fresh
        elif self.state is None:
            raise ValueError("no flights are under way, so none of them can be reset")
        else:
            self.state = self.state.put(worlds.to(self.device), fresh)
        self.beliefs = None

    @torch.no_grad()
    def act(self, observation: Observation) -> Action:
        """Look, plan, decide; `beliefs` then holds why."""
        if self.state is None:
            raise ValueError("reset comes before act")
        if len(observation.pose) != len(self.state.start):
            raise ValueError(f"{len(observation.pose)} observations for {len(self.state.start)} drones")
        image, pose = observation.image.to(self.device), observation.pose.to(self.device)
        with precision(self.device):
            self.state, self.beliefs = self.network(self.state, image, pose, self.domain)
        control = self.beliefs.control
        check_decisions(self.beliefs, pose)
        setpoint = control.setpoint.to(observation.image.device)
        stop = control.stop_probability > self.network.config.stop_threshold
        return Action(setpoint, stop.to(observation.image.device))

    def goals(self) -> Tensor:
        """[N, 3] what it believes now: x and y of the likeliest goal among what it has observed, and p_oob.

        Metres, world frame.
        """
        if self.state is None or self.beliefs is None:
            raise ValueError("act comes before goals")
        plan = self.beliefs.visitation
        place = start_frame(self.state.start).apply_xy(plan.likeliest_goal)
        return torch.cat([place, plan.unobserved[:, 1:].to(place)], 1)


def check_decisions(beliefs: Beliefs, pose: Pose) -> None:
    """Raise a `WordwingError` if decisions at poses [N] make no sense: weights may be finite and absurd all the same.

    A drone that has lost its pose decides NaN, and hovers.
    """
    control, plan = beliefs.control, beliefs.visitation
    believed = torch.cat([plan.cells.flatten(1), plan.unobserved, control.stop_logit[:, None]], 1)
    sound = (control.mean.abs() <= ABSURD).all(1) & believed.isfinite().all(1)
    sound |= ~torch.cat([pose.position, pose.quaternion], 1).isfinite().all(1)
    if not sound.all():
        forward, yaw_rate = control.mean[(~sound).nonzero()[0, 0]].tolist()
        raise WordwingError(
            f"the policy's decision makes no sense (forward {MAX_FORWARD * forward:.3g} m/s, "
            f"yaw rate {MAX_YAW_RATE * yaw_rate:.3g} rad/s), so it is not flown; its weights are damaged"
        )
