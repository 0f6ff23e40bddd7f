"""Process A: supervised learning of stage 1 for both domains (paper: Algorithm 1)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor, nn

from wordwing.devices import compile_once, precision
from wordwing.learning.contexts import ContextConfig, ContextSource, FlightCamera
from wordwing.learning.examples import ExampleSet
from wordwing.learning.executions import Executions, LabExecutions
from wordwing.learning.losses import LossConfig, supervised_loss
from wordwing.learning.runtime.seeding import generator_of
from wordwing.learning.sayings import Sayings
from wordwing.learning.stepping import adam, step
from wordwing.model.discriminator import Discriminator, DiscriminatorConfig, wasserstein
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage1 import AuxiliaryHeads


@dataclass(frozen=True)
class SupervisedConfig:
    """Process A."""

    executions: int = 96
    """Of any corpus in `sim`, in a batch; the paper has one execution of each domain."""
    common: int = 16
    """Of the cage in `sim`, in a batch, and as many of the lab."""
    contexts: ContextConfig = field(default_factory=ContextConfig)
    losses: LossConfig = field(default_factory=LossConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    discriminator_updates: int = 5
    """K_discr: updates of the discriminator for each of the model."""
    discriminator_pictures: int = 32
    """Of each domain, in one of its updates."""
    discriminator_rate: float = 1e-3
    learning_rate: float = 1e-3
    final_rate: float = 1.0
    """Factor on both rates that a cosine reaches at the end; the paper's rate stays."""
    weight_decay: float = 1e-6
    max_gradient_norm: float = 10.0
    """Far above what is usual; the paper has none."""
    average: float = 0.0
    """Decay of the exponential average of stage 1's weights, which then is what Process B gets and what is kept; 0, as
    in the paper, for the weights themselves."""
    late_pictures: int = 0
    """Of each execution in the last quarter of learning, of as many fewer executions, so that maps are learned from
    that have been seen as often as in flight; 0 for as many as before."""


LATE = 0.75
"""Share of all learning after which executions have `late_pictures`."""


class Supervised:
    """Stage 1's teacher: each `update` is one iteration of Algorithm 1's inner loop."""

    def __init__(
        self,
        network: PolicyNetwork,
        examples: ExampleSet,
        executions: Executions,
        lab: LabExecutions | None,
        config: SupervisedConfig,
        seed: int = 0,
        compiled: bool = False,
        sayings: Sayings | None = None,
    ) -> None:
        """Prepare to teach.

        Args:
            network: Its stage 1 learns; already on the examples' device.
            examples: Of `sim`.
            executions: D^S, which may change between updates.
            lab: D^R, or None to learn from `sim` only.
            config: How.
            seed: Of all that is random.
            compiled: Whether to let torch compile the loss, which takes a minute or two.
            sayings: Other words for the examples.
        """
        self.network, self.examples, self.executions, self.lab, self.config = network, examples, executions, lab, config
        self.seed = seed
        self.device = examples.device
        self.updates = 0
        self.heads = AuxiliaryHeads(network.config.stage1).to(self.device)
        self.discriminator = Discriminator(config.discriminator, network.config.stage1.vision.channels).to(self.device)
        self.discriminator.clamp_weights()
        common = config.common if lab is not None else 0
        sizes = (config.executions, common, common)
        self.source = ContextSource(examples, executions, lab, config.contexts, sizes, sayings)
        self._late: ContextSource | None = None
        if config.late_pictures:
            fewer = _scaled(sizes, config.contexts.pictures / config.late_pictures)
            late = replace(config.contexts, pictures=config.late_pictures)
            self._late = ContextSource(examples, executions, lab, late, fewer, sayings)
        self.averaged = _averaged(network) if config.average else network
        """What has been learned so far: the network itself, or one whose stage 1 is the average."""
        learned = [*network.stage1.parameters(), *self.heads.parameters()]
        self.optimizer = adam(learned, config.learning_rate, config.weight_decay)
        self.discriminator_optimizer = adam(list(self.discriminator.parameters()), config.discriminator_rate)
        # As a CUDA graph: several hundred kernels would take longer to launch than to run. What it returns is
        # overwritten by the next update.
        objective = partial(supervised_loss, network, self.heads, self.discriminator, config=config.losses)
        self._objective: Callable[..., tuple[Tensor, dict[str, Tensor]]] = (
            compile_once(objective, "reduce-overhead") if compiled else objective
        )
        self._pool = _FeaturePool(self) if lab is not None and config.losses.wasserstein else None

    @property
    def contexts(self) -> int:
        """Contexts that an update learns from."""
        return sum(self.source.sizes) * self.config.contexts.pictures

    def update(self, progress: float = 0.0) -> dict[str, Tensor]:
        """Train the discriminator a few times and the model once.

        Args:
            progress: Share of all learning that is done, for the schedule.

        Returns:
            Figures to log, on the device.
        """
        config = self.config
        generator = generator_of(self.device, self.seed, "supervised", self.updates)
        torch.manual_seed(generator.initial_seed())  # dropout and the gradient penalty ask for no generator
        factor = config.final_rate + (1 - config.final_rate) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2
        self.network.train()
        figures = {} if self._pool is None else self._pool.teach(generator, config.discriminator_rate * factor)
        source = self._late if self._late is not None and progress >= LATE else self.source
        batch = source.draw(generator)
        with precision(self.device):
            state = self.network.begin(batch.examples.tokens, batch.examples.start)
            loss, statistics = self._objective(contexts=batch, state=state)
        norm, skipped = step(self.optimizer, loss, config.learning_rate * factor, config.max_gradient_norm)
        self.updates += 1
        self._average()
        return (
            figures
            | statistics
            | {
                "supervised/gradient_norm": norm,
                "supervised/skipped_updates": skipped,
                "supervised/learning_rate": norm.new_full((), config.learning_rate * factor),
            }
        )

    @torch.no_grad()
    def _average(self) -> None:
        """Move the average towards the weights: over all updates at first, over the last ones later."""
        if self.averaged is self.network:
            return
        decay = min(self.config.average, (1 + self.updates) / (10 + self.updates))
        mean: list[Tensor] = list(self.averaged.stage1.parameters())
        newest: list[Tensor] = list(self.network.stage1.parameters())
        torch._foreach_lerp_(mean, newest, 1 - decay)

    def modules(self) -> dict[str, nn.Module]:
        """Everything that learns here, by name."""
        modules = {"stage1": self.network.stage1, "heads": self.heads, "discriminator": self.discriminator}
        return modules if self.averaged is self.network else modules | {"average": self.averaged.stage1}

    def optimizers(self) -> dict[str, torch.optim.Adam]:
        """By name."""
        return {"model": self.optimizer, "discriminator": self.discriminator_optimizer}


def _averaged(network: PolicyNetwork) -> PolicyNetwork:
    """The same with a stage 1 of its own; whatever learns stage 2 learns it for both."""
    made = copy.deepcopy(network)
    made.stage1.requires_grad_(False)
    made.stage2 = network.stage2
    return made


def _scaled(sizes: tuple[int, int, int], factor: float) -> tuple[int, int, int]:
    """Sizes of batches times a factor; what there is any of stays at least one."""
    any_, common, lab = (max(1, round(size * factor)) if size else 0 for size in sizes)
    return any_, common, lab


class _FeaturePool:
    """Pictures of both domains for the discriminator: cage demonstrations only, else it would tell content apart.

    The eyes do not change between the discriminator's updates, so one pass over the pictures of all of them does.
    """

    def __init__(self, owner: Supervised) -> None:
        self.owner = owner
        self.count = owner.config.discriminator_updates * owner.config.discriminator_pictures
        self.camera = FlightCamera(self.count, 1, owner.device)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """[n, 72, 128, 3] uint8 of `sim` and of the lab, from anywhere in their demonstrations."""
        lab = self.owner.lab
        assert lab is not None
        sim = self.owner.source.alike(self.camera, generator)
        return sim, lab.pictures(*lab.executions.anywhere(self.count, generator))[:, 0]

    def teach(self, generator: torch.Generator, rate: float) -> dict[str, Tensor]:
        """K_discr updates of the discriminator; returns its last loss."""
        owner = self.owner
        stage1, discriminator, config = owner.network.stage1, owner.discriminator, owner.config
        with torch.no_grad(), precision(owner.device):
            sim, lab = self.draw(generator)
            features = [stage1.encode_images(sim, "sim").float(), stage1.encode_images(lab, "lab").float()]
        loss = torch.zeros((), device=owner.device)
        parts = (part.split(config.discriminator_pictures) for part in features)
        for of_sim, of_lab in zip(*parts, strict=True):
            loss = -wasserstein(discriminator, of_sim, of_lab)
            if config.discriminator.gradient_penalty:
                loss = loss + config.discriminator.gradient_penalty * discriminator.penalty(of_sim, of_lab)
            step(owner.discriminator_optimizer, loss, rate, math.inf)
            discriminator.clamp_weights()
        return {"supervised/discriminator_loss": loss.detach()}
