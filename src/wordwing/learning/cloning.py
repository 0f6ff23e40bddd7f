"""Behaviour cloning of stage 2: do as ORACLE did, for PVN-BC and PVN2-BC (paper: Experimental Setup, Systems).

Stage 2 sees gold distributions in some contexts and stage 1's own in the others: a policy that has only ever seen gold
does not know what to do with a doubtful plan. Only executions that are their instruction's own are cloned.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.devices import precision
from wordwing.frames import Pose, in_start_frame
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE
from wordwing.learning.contexts import Contexts, ContextSource
from wordwing.learning.losses import GoldConfig, gold_of, observed_part, run_stage1
from wordwing.learning.recipes.limits import Positive, Rate, Share
from wordwing.learning.runtime.updates import adam, generator_of, optimizer_step
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.model.mapping import arena_cells, boundary_cells
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage1 import Stage1Output
from wordwing.model.stage2 import Stage2
from wordwing.model.visitation import Visitation, visitation


@dataclass(frozen=True)
class CloningConfig:
    """How stage 2 is cloned."""

    gold: Share = 0.5
    """Share of contexts in which it sees gold distributions; the authors' saw nothing else."""
    learning_rate: Rate = 1e-3
    max_gradient_norm: Positive = 10.0


def cloning_loss(stage2: Stage2, view: EgoView, setpoint: Tensor, stop: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """How far stage 2 is from what was decided.

    Args:
        stage2: Learns.
        view: C contexts.
        setpoint: [C, 2] forward m/s and yaw rate rad/s.
        stop: [C] bool.
        mask: [C] bool, where there is something to learn.

    Returns:
        `stop`, the cross-entropy, and `velocity`, the squared error of the shares where not stopped; [] each.
    """
    control = stage2(view)
    shares = torch.stack([setpoint[:, 0] / MAX_FORWARD, setpoint[:, 1] / MAX_YAW_RATE], dim=1)
    chance = functional.binary_cross_entropy_with_logits(control.stop_logit, stop.float(), reduction="none")
    error = (control.mean - shares).square().sum(1)
    flown = mask & ~stop
    return {
        "stop": torch.where(mask, chance, 0.0).sum() / mask.sum().clamp(min=1),
        "velocity": torch.where(flown, error, 0.0).sum() / flown.sum().clamp(min=1),
    }


class Cloning:
    """Clones stage 2 of a network; its stage 1 stays as it is."""

    def __init__(
        self, network: PolicyNetwork, source: ContextSource, config: CloningConfig, gold: GoldConfig, seed: int = 0
    ) -> None:
        self.network, self.source, self.config, self.gold, self.seed = network, source, config, gold, seed
        self.updates = 0
        self.optimizer = adam(list(network.stage2.parameters()), config.learning_rate)

    def update(self) -> dict[str, Tensor]:
        """Learn from one batch; returns metrics to log, on the device."""
        device = self.source.device
        generator = generator_of(device, self.seed, "cloning", self.updates)
        contexts = self.source.draw(generator)
        with torch.no_grad(), precision(device):
            self.network.eval()
            seen = run_stage1(self.network, contexts, self.network.stage1.encode_text(contexts.examples.tokens))[0]
            shown = torch.rand(len(seen.observed), device=device, generator=generator) < self.config.gold
            view = self._view(contexts, seen, shown)
        decided = (contexts.setpoint.flatten(0, 1), contexts.stop.flatten(), contexts.known.flatten())
        losses = cloning_loss(self.network.stage2, view, *decided)
        loss = losses["stop"] + losses["velocity"]
        norm, skipped = optimizer_step(self.optimizer, loss, self.config.max_gradient_norm)
        self.updates += 1
        metrics = {f"cloning/{name}": loss.detach() for name, loss in losses.items()}
        return metrics | {"cloning/gradient_norm": norm, "cloning/skipped_updates": skipped}

    def _view(self, contexts: Contexts, seen: Stage1Output, shown: Tensor) -> EgoView:
        """What stage 2 gets in C contexts: gold where `shown` [C], else what stage 1 predicts."""
        support = self.network.stage1.support(seen.observed)
        wanted = observed_part(gold_of(contexts, self.gold, self.network.config.stage1.phases), support)
        planned = visitation(seen.scores, support)

        def mixed(gold: Tensor, predicted: Tensor) -> Tensor:
            return torch.where(shown.view(-1, *[1] * (gold.ndim - 1)), gold, predicted)

        plan: Visitation = each(mixed, wanted, planned)
        start: Pose = each(lambda tensor: tensor.repeat_interleave(contexts.stop.shape[1], 0), contexts.examples.start)
        pose = Pose(contexts.pose.position.flatten(0, 1), contexts.pose.quaternion.flatten(0, 1))
        masks = seen.observed, arena_cells(start), boundary_cells(start)
        return self.network.view(plan, *masks, in_start_frame(pose, start))
