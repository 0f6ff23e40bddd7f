"""L_SL: gold visitation distributions f*, and the losses of stage 1 (paper: Process A; Auxiliary Objectives).

Gold: each point of the demonstrated path, and its end, is blurred by a Gaussian whose mass in every cell is exact. What
the blur carries out of the arena or off the map is spread over the rest, never called unobserved: it is nowhere. Then
what lies on ground that the drone has not observed yet becomes p_oob.

The divergence from gold is taken as cross-entropy against gold, KL(gold ‖ predicted) and a constant: the paper's
KL(predicted ‖ gold) is infinite wherever a prediction leaves the support of gold. Every term is a mean over the
contexts of an execution, then over executions.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.frames import Pose, start_frame
from wordwing.learning.contexts import Contexts
from wordwing.learning.recipes.limits import Positive
from wordwing.model.discriminator import Discriminator, wasserstein
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.mapping import arena_cells
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage1 import AuxiliaryHeads, Stage1Output, TextKernels
from wordwing.model.visitation import Visitation, cross_entropy


@dataclass(frozen=True)
class GoldConfig:
    """How sure the gold distributions are."""

    blur: Positive = 1.0
    """Standard deviation, cells of 0.147 m; a third of it in the authors' software."""


def gold_visitation(points: Tensor, start: Pose, config: GoldConfig, phases: int = 1) -> Visitation:
    """What a path asks for when all has been observed; p_oob is zero.

    Args:
        points: [N, P, 2] along N paths, first to last, world frame, metres.
        start: [N] start poses, world frame.
        config: The blur.
        phases: Equal parts of the points, in order, that the trajectory is also wanted for; 1 for none.
    """
    points = start_frame(start)[:, None].unapply_xy(points)  # [N, P, 2] start frame
    inside = START_GRID.contains(points)
    # In double: near 1 a distribution function has no digits for the tails in single, and autocast leaves it alone.
    along = _cell_masses(points.double(), config.blur * START_GRID.cell)  # [N, P, 2, 64]
    weights = inside.double()[..., None]
    trajectory = torch.einsum("npi,npj->nij", along[:, :, 0] * weights, along[:, :, 1])
    # A path that leaves the map ends, for the map, where it left.
    order = torch.arange(points.shape[1], device=points.device)
    last = torch.where(inside, order, 0).amax(1)  # [N]
    end = along[torch.arange(len(points), device=points.device), last]  # [N, 2, 64]
    goal = end[:, 0, :, None] * end[:, 1, None, :]
    arena = arena_cells(start)
    none = points.new_zeros(len(points), 2)
    gold = Visitation(_normalised(trajectory * arena), _normalised(goal * arena), none)
    if phases == 1:
        return gold
    rows, columns = ((along[:, :, k] * weights).unflatten(1, (phases, -1)) for k in (0, 1))
    parts = torch.einsum("nkpi,nkpj->nkij", rows, columns) * arena[:, None]  # [N, phases, 64, 64]
    # A phase that lies off the map is, for the map, where the path left it.
    lost = parts.sum((2, 3), keepdim=True) == 0
    ordered = torch.where(lost, gold.goal[:, None], _normalised(parts))
    return replace(gold, phases=ordered, phases_unobserved=none.new_zeros(len(none), phases))


def observed_part(gold: Visitation, observed: Tensor) -> Visitation:
    """What of it a drone can know that has observed cells [N, 64, 64]; the rest becomes p_oob."""
    trajectory, goal = gold.trajectory * observed, gold.goal * observed
    lost = torch.stack([gold.trajectory - trajectory, gold.goal - goal], dim=1).sum((2, 3))
    known = Visitation(trajectory, goal, gold.unobserved + lost)
    if gold.phases is None or gold.phases_unobserved is None:
        return known
    phases = gold.phases * observed[:, None]
    hidden = gold.phases_unobserved + (gold.phases - phases).sum((2, 3))
    return replace(known, phases=phases, phases_unobserved=hidden)


def _cell_masses(points: Tensor, deviation: float) -> Tensor:
    """[..., 2, 64] how much of a Gaussian around each point falls into each row, and into each column."""
    steps = torch.arange(START_GRID.cells + 1, dtype=points.dtype, device=points.device)
    edges = START_GRID.half - steps * START_GRID.cell  # downwards, as rows go
    below = torch.special.ndtr((edges - points[..., None]) / deviation)  # [..., 2, 65]
    return below[..., :-1] - below[..., 1:]


def _normalised(masses: Tensor) -> Tensor:
    return (masses / masses.sum((-2, -1), keepdim=True).clamp(min=1e-100)).float()


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
    """402 sentences at full weight are memorised."""
    wasserstein: float = 1.0
    """Of L_W."""
    gold: GoldConfig = field(default_factory=GoldConfig)


def run_stage1(network: PolicyNetwork, contexts: Contexts, kernels: TextKernels) -> tuple[Stage1Output, Tensor]:
    """Run stage 1 on every image of every execution in turn.

    Args:
        network: Whose stage 1 runs.
        contexts: E executions of K images.
        kernels: Of the E instructions.

    Returns:
        Of C = E · K contexts, execution by execution; and F^C of the images of the cage.
    """
    images = contexts.sim_image.flatten(0, 1)
    encoded = network.stage1.encode_images(torch.cat([images, contexts.cage_image]), "sim")
    features, cage = encoded.split([len(images), len(contexts.cage_image)])
    if len(contexts.lab_image):
        lab = network.stage1.encode_images(contexts.lab_image.flatten(0, 1), "lab")
        features = torch.cat([features, lab])
    state = network.begin_with(kernels, contexts.examples.start)
    return network.run_stage1(state, features, contexts.pose)[1], cage


def gold_of(contexts: Contexts, config: GoldConfig, phases: int = 1) -> Visitation:
    """f* of C contexts, before it is masked by what has been observed."""
    images = contexts.pose.position.shape[1]
    whole = gold_visitation(contexts.examples.points, contexts.examples.start, config, phases)
    return each(lambda tensor: tensor.repeat_interleave(images, 0), whole)


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
    executions, images = contexts.pose.position.shape[:2]
    support = network.stage1.support(output.observed)
    wanted = observed_part(gold_of(contexts, gold, network.config.stage1.phases), support)
    divergence = cross_entropy(output.scores, support, wanted)  # [C, 2]
    divergence = divergence.unflatten(0, (executions, images)).mean(1)  # [E, 2]
    recognised, grounded = _auxiliary(heads, contexts, output)
    spoken = heads.mention(instruction_embedding).float()
    mention = functional.binary_cross_entropy_with_logits(
        spoken, contexts.examples.mentioned.float(), reduction="none"
    ).mean(1)
    return Losses(divergence[:, 0], divergence[:, 1], recognised, grounded, mention)


def _auxiliary(heads: AuxiliaryHeads, contexts: Contexts, output: Stage1Output) -> tuple[Tensor, Tensor]:
    """L_percept and L_ground [E]: name what the newest image shows, landmarks and a few empty places."""
    executions, images = contexts.pose.position.shape[:2]
    places = torch.cat([contexts.place, contexts.clearing], dim=1)  # [E, 44, 2] world frame
    places = start_frame(contexts.examples.start)[:, None].unapply_xy(places)
    standing, empty = places[:, : contexts.place.shape[1]], places[:, contexts.place.shape[1] :]
    apart = (empty[:, :, None] - standing[:, None]).norm(dim=-1)  # [E, 4, 40]
    clear = (apart.masked_fill(~contexts.present[:, None], torch.inf) > CLEARANCE).all(-1)
    exists = torch.cat([contexts.present, clear], dim=1)  # [E, 44]
    kind = torch.cat([contexts.landmark, torch.full_like(empty[..., 0], heads.empty_class, dtype=torch.int64)], dim=1)
    named = functional.pad(contexts.examples.mentioned, (0, 1)).gather(1, kind)  # [E, 44] bool

    places = places.repeat_interleave(images, 0)  # [C, 44, 2]
    shown = START_GRID.sample(output.in_view[:, None].float(), places)[:, 0] > 0.5
    shown = shown & exists.repeat_interleave(images, 0)

    def mean(logits: Tensor, label: Tensor) -> Tensor:
        each_place = functional.cross_entropy(
            logits.float().flatten(0, 1), label.repeat_interleave(images, 0).flatten(), reduction="none"
        ).unflatten(0, shown.shape)
        found = torch.where(shown, each_place, 0.0).sum(1) / shown.sum(1).clamp(min=1)  # [C]
        return found.unflatten(0, (executions, images)).mean(1)

    recognised = mean(heads.object_logits(output.semantic_map, places), kind)
    return recognised, mean(heads.grounding_logits(output.grounding_map, places), named.long())


def supervised_loss(
    network: PolicyNetwork,
    heads: AuxiliaryHeads,
    discriminator: Discriminator,
    contexts: Contexts,
    kernels: TextKernels,
    config: LossConfig,
) -> tuple[Tensor, dict[str, Tensor]]:
    """L_SL of a batch, and what it is made of.

    Args:
        network: Whose stage 1 learns.
        heads: For the auxiliary losses.
        discriminator: For L_W; not used where the batch has none of the lab.
        contexts: The batch.
        kernels: Of the instructions of the batch.
        config: Weights.
    """
    output, cage = run_stage1(network, contexts, kernels)
    parts = losses(network, heads, contexts, kernels.instruction_embedding, output, config.gold)
    sim, lab = len(contexts.sim_image), len(contexts.lab_image)
    loss = parts.weighted(config.sim, slice(0, sim))
    metrics = {f"supervised/{name}": getattr(parts, name)[:sim].mean() for name in Losses.__dataclass_fields__}
    if lab:
        loss = loss + parts.weighted(config.lab, slice(sim, None))
        metrics |= {f"supervised/lab_{name}": getattr(parts, name)[sim:].mean() for name in ("trajectory", "goal")}
        if config.wasserstein:
            recorded = output.image_features[sim * contexts.pose.position.shape[1] :]
            distance = wasserstein(discriminator, cage, recorded)
            loss = loss + config.wasserstein * distance
            metrics["supervised/wasserstein"] = distance
    metrics["supervised/loss"] = loss
    return loss, {name: value.detach() for name, value in metrics.items()}
