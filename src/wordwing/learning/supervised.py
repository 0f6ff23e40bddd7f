"""Process A: supervised learning of stage 1 for both domains (paper: Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from wordwing.devices import compile_once, precision
from wordwing.learning.contexts import ContextConfig, ContextSource, FlightCamera
from wordwing.learning.examples import ExampleSet
from wordwing.learning.executions import Executions, LabExecutions
from wordwing.learning.losses import LossConfig, supervised_loss
from wordwing.learning.sayings import Sayings
from wordwing.learning.seeding import generator_of
from wordwing.learning.stepping import adam, step
from wordwing.model.auxiliary import AuxiliaryHeads
from wordwing.model.discriminator import Discriminator, DiscriminatorConfig, wasserstein
from wordwing.model.policy import PolicyNetwork


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
        batch = self.source.draw(generator)
        with precision(self.device):
            reading = self.network.stage1.read(batch.examples.tokens)
            loss, statistics = self._objective(contexts=batch, reading=reading)
        norm, skipped = step(self.optimizer, loss, config.learning_rate * factor, config.max_gradient_norm)
        self.updates += 1
        return (
            figures
            | statistics
            | {
                "supervised/gradient_norm": norm,
                "supervised/skipped_updates": skipped,
                "supervised/learning_rate": norm.new_full((), config.learning_rate * factor),
            }
        )

    def modules(self) -> dict[str, nn.Module]:
        """Everything that learns here, by name."""
        return {"stage1": self.network.stage1, "heads": self.heads, "discriminator": self.discriminator}

    def optimizers(self) -> dict[str, torch.optim.Adam]:
        """By name."""
        return {"model": self.optimizer, "discriminator": self.discriminator_optimizer}


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
            features = [stage1.see(sim, "sim").float(), stage1.see(lab, "lab").float()]
        loss = torch.zeros((), device=owner.device)
        parts = (part.split(config.discriminator_pictures) for part in features)
        for of_sim, of_lab in zip(*parts, strict=True):
            loss = -wasserstein(discriminator, of_sim, of_lab)
            if config.discriminator.gradient_penalty:
                loss = loss + config.discriminator.gradient_penalty * discriminator.penalty(of_sim, of_lab)
            step(owner.discriminator_optimizer, loss, rate, math.inf)
            discriminator.clamp_weights()
        return {"supervised/discriminator_loss": loss.detach()}
