"""L_SL: what stage 1 is asked for in every context (paper: Process A; Auxiliary Objectives).

The divergence from gold is taken as cross-entropy against gold, KL(gold ‖ predicted) and a constant: the paper's
KL(predicted ‖ gold) is infinite wherever a prediction leaves the support of gold. Every term is a mean over the
contexts of an execution, then over executions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.frames import start_frame
from wordwing.learning.contexts import Contexts
from wordwing.learning.gold import GoldConfig, gold_visitation, observed_part
from wordwing.model.discriminator import Discriminator, wasserstein
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork, PolicyState
from wordwing.model.stage1 import AuxiliaryHeads, Stage1Output
from wordwing.model.visitation import Visitation, cross_entropy

CLEARANCE = 0.47
"""Ground is empty where no landmark stands closer, metres."""


@dataclass(frozen=True)
class Weights:
    """Of the losses of one domain."""

    visitation: float = 1.0
    object: float = 1.0
    grounding: float = 1.0
    mention: float = 1.0


@dataclass(frozen=True)
class LossConfig:
    """Weights of L_SL."""

    sim: Weights = field(default_factory=Weights)
    lab: Weights = field(default_factory=lambda: Weights(visitation=0.05, mention=0.05))
    """402 sentences at full weight are learned by heart."""
    wasserstein: float = 1.0
    """Of L_W."""
    gold: GoldConfig = field(default_factory=GoldConfig)


def run_stage1(network: PolicyNetwork, contexts: Contexts, state: PolicyState) -> Stage1Output:
    """Run stage 1 on every image of every execution in turn.

    Args:
        network: Whose stage 1 runs.
        contexts: E executions of K images.
        state: Of E flights that begin.

    Returns:
        Of C = E · K contexts, execution by execution.
    """
    features = network.stage1.encode_images(contexts.sim_image.flatten(0, 1), "sim")
    if len(contexts.lab_image):
        lab = network.stage1.encode_images(contexts.lab_image.flatten(0, 1), "lab")
        features = torch.cat([features, lab])
    return network.run_stage1(state, features, contexts.pose)[1]


def gold_of(contexts: Contexts, config: GoldConfig, phases: int = 1) -> Visitation:
    """f* of C contexts, before it is masked by what has been observed."""
    pictures = contexts.pose.position.shape[1]
    whole = gold_visitation(contexts.examples.points, contexts.examples.start, config, phases)
    repeated: Visitation = each(lambda tensor: tensor.repeat_interleave(pictures, 0), whole)
    return repeated


@dataclass(frozen=True)
class Losses:
    """Of E executions, each the mean over its contexts, before weighting."""

    trajectory: Tensor
    """[E] cross-entropy of d^p, nats; the mean over its phases."""
    goal: Tensor
    """[E] cross-entropy of d^g, nats."""
    object: Tensor
    """[E] L_percept, nats."""
    grounding: Tensor
    """[E] L_ground, nats."""
    mention: Tensor
    """[E] L_lang, nats."""

    def weighted(self, weights: Weights, part: slice) -> Tensor:
        """[] mean over some executions of the weighted sum."""
        whole = (
            weights.visitation * (self.trajectory + self.goal)
            + weights.object * self.object
            + weights.grounding * self.grounding
            + weights.mention * self.mention
        )
        return whole[part].mean()


def losses(
    network: PolicyNetwork,
    heads: AuxiliaryHeads,
    contexts: Contexts,
    instruction_embedding: Tensor,
    output: Stage1Output,
    gold: GoldConfig,
) -> Losses:
    """Compare what stage 1 makes of the contexts with what was meant and with what stands around."""
    executions, pictures = contexts.pose.position.shape[:2]
    support = network.stage1.support(output.observed)
    wanted = observed_part(gold_of(contexts, gold, network.config.stage1.phases), support)
    divergence = cross_entropy(output.scores, support, wanted)  # [C, 2]
    divergence = divergence.unflatten(0, (executions, pictures)).mean(1)  # [E, 2]
    recognised, grounded = _auxiliary(heads, contexts, output)
    spoken = heads.mention_logits(instruction_embedding).float()
    mention = functional.binary_cross_entropy_with_logits(
        spoken, contexts.examples.mentioned.float(), reduction="none"
    ).mean(1)
    return Losses(divergence[:, 0], divergence[:, 1], recognised, grounded, mention)


def _auxiliary(heads: AuxiliaryHeads, contexts: Contexts, output: Stage1Output) -> tuple[Tensor, Tensor]:
    """L_percept and L_ground [E]: name what the newest picture shows, landmarks and a few empty places."""
    executions, pictures = contexts.pose.position.shape[:2]
    places = torch.cat([contexts.place, contexts.clearing], dim=1)  # [E, 44, 2] world frame
    frame = start_frame(contexts.examples.start)[:, None]
    places = frame.unapply(functional.pad(places, (0, 1)))[..., :2]  # start frame
    standing, empty = places[:, : contexts.place.shape[1]], places[:, contexts.place.shape[1] :]
    apart = (empty[:, :, None] - standing[:, None]).norm(dim=-1)  # [E, 4, 40]
    clear = (apart.masked_fill(~contexts.present[:, None], torch.inf) > CLEARANCE).all(-1)
    exists = torch.cat([contexts.present, clear], dim=1)  # [E, 44]
    kind = torch.cat([contexts.landmark, torch.full_like(empty[..., 0], heads.empty_class, dtype=torch.int64)], dim=1)
    named = functional.pad(contexts.examples.mentioned, (0, 1)).gather(1, kind)  # [E, 44] bool

    places = places.repeat_interleave(pictures, 0)  # [C, 44, 2]
    shown = START_GRID.sample(output.in_view[:, None].float(), places)[:, 0] > 0.5
    shown = shown & exists.repeat_interleave(pictures, 0)

    def mean(logits: Tensor, label: Tensor) -> Tensor:
        each_place = functional.cross_entropy(
            logits.float().flatten(0, 1), label.repeat_interleave(pictures, 0).flatten(), reduction="none"
        ).unflatten(0, shown.shape)
        found = torch.where(shown, each_place, 0.0).sum(1) / shown.sum(1).clamp(min=1)  # [C]
        return found.unflatten(0, (executions, pictures)).mean(1)

    recognised = mean(heads.object_logits(output.semantic_map, places), kind)
    return recognised, mean(heads.grounding_logits(output.grounding_map, places), named.long())


def supervised_loss(
    network: PolicyNetwork,
    heads: AuxiliaryHeads,
    discriminator: Discriminator,
    contexts: Contexts,
    state: PolicyState,
    config: LossConfig,
) -> tuple[Tensor, dict[str, Tensor]]:
    """L_SL of a batch, and what it is made of.

    Args:
        network: Whose stage 1 learns.
        heads: For the auxiliary losses.
        discriminator: For L_W; not used where the batch has none of the lab.
        contexts: The batch.
        state: Of flights that begin with the instructions of the batch.
        config: Weights.
    """
    output = run_stage1(network, contexts, state)
    parts = losses(network, heads, contexts, state.kernels.instruction_embedding, output, config.gold)
    sim, lab = len(contexts.sim_image), len(contexts.lab_image)
    loss = parts.weighted(config.sim, slice(0, sim))
    statistics = {f"supervised/{name}": getattr(parts, name)[:sim].mean() for name in Losses.__dataclass_fields__}
    if lab:
        loss = loss + parts.weighted(config.lab, slice(sim, None))
        statistics |= {f"supervised/lab_{name}": getattr(parts, name)[sim:].mean() for name in ("trajectory", "goal")}
        if config.wasserstein:
            recorded = output.image_features[sim * contexts.pose.position.shape[1] :]
            alike = network.stage1.encode_images(contexts.alike_image, "sim")
            distance = wasserstein(discriminator, alike, recorded)
            loss = loss + config.wasserstein * distance
            statistics["supervised/wasserstein"] = distance
    statistics["supervised/loss"] = loss
    return loss, {name: value.detach() for name, value in statistics.items()}
