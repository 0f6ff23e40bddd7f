"""Process A: supervised learning of stage 1 for both domains (paper: Algorithm 1).

`Supervised.update` is the inner loop's body, lines 3 to 10 of the paper's box. `ProcessA.step` is what stands around
it: lines 1, 2 and 11 to 14, and cloning of stage 2 where asked for.
"""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from wordwing.devices import compile_once, precision, replayed
from wordwing.execution.packing import PackedExecutions
from wordwing.learning.cloning import Cloning
from wordwing.learning.contexts import ContextSource, FlightCamera
from wordwing.learning.evaluator import Evaluator
from wordwing.learning.executions import ExecutionSet, initial_executions, lab_executions
from wordwing.learning.losses import supervised_loss
from wordwing.learning.paraphrases import Paraphrases, training_paraphrases
from wordwing.learning.recipes.config import RunConfig, SupervisedConfig
from wordwing.learning.recipes.initial import new_network
from wordwing.learning.runtime.checkpoints import Tensors, squeeze, unsqueeze
from wordwing.learning.runtime.messages import Parameters, Rollouts
from wordwing.learning.runtime.updates import adam, optimizer_step, seed_of, set_rate
from wordwing.learning.runtime.worker import RunContext, Worker
from wordwing.learning.training_data import ExampleSet, TrainingData
from wordwing.model.discriminator import Discriminator, wasserstein
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage1 import AuxiliaryHeads

CHECK_EVERY = 10
"""Updates between two checks whether losses are numbers, each of which waits for the device."""

LATE = 0.75
"""Share of the training after which executions have `late_images`."""


class Supervised:
    """Supervised learning of stage 1: each `update` is one iteration of Algorithm 1's inner loop."""

    def __init__(
        self,
        network: PolicyNetwork,
        examples: ExampleSet,
        executions: ExecutionSet,
        lab: ExecutionSet | None,
        config: SupervisedConfig,
        seed: int = 0,
        compiled: bool = False,
        paraphrases: Paraphrases | None = None,
    ) -> None:
        """Require f and f_S with their parameters, the discriminator h, and the executions D^S and D^R.

        Args:
            network: Its stage 1 learns; already on the examples' device.
            examples: The training instructions.
            executions: D^S, which may change between updates.
            lab: D^R, or None to learn from `sim` only.
            config: How.
            seed: Of all random numbers.
            compiled: Whether torch compiles the loss, which takes a minute or two.
            paraphrases: Of the examples.
        """
        self.network, self.examples, self.executions, self.lab, self.config = network, examples, executions, lab, config
        self.seed = seed
        self.device = examples.device
        self.updates = 0
        self.heads = AuxiliaryHeads(network.config.stage1).to(self.device)
        self.discriminator = Discriminator(config.discriminator, network.config.stage1.vision.channels).to(self.device)
        self.discriminator.clamp_weights()
        cage = config.cage_executions if lab is not None else 0
        sizes = (config.executions, cage, cage)
        self.source = ContextSource(examples, executions, lab, config.contexts, sizes, paraphrases)
        self._late: ContextSource | None = None
        if config.late_images:
            factor = config.contexts.images / config.late_images
            any_, cage, recorded = (max(1, round(size * factor)) if size else 0 for size in sizes)
            late = replace(config.contexts, images=config.late_images)
            self._late = ContextSource(examples, executions, lab, late, (any_, cage, recorded), paraphrases)
        self.modules: dict[str, nn.Module] = {
            "stage1": network.stage1,
            "heads": self.heads,
            "discriminator": self.discriminator,
        }
        """Everything that learns here, by name."""
        self.averaged = network
        """What has been learned so far: the network itself, or a copy whose stage 1 is the moving average."""
        if config.average:
            self.averaged = copy.deepcopy(network)
            self.averaged.stage1.requires_grad_(False)
            self.averaged.stage2 = network.stage2  # a stage 2 that is cloned is cloned for both
            self.modules["average"] = self.averaged.stage1
        learned = [*network.stage1.parameters(), *self.heads.parameters()]
        self.optimizer = adam(learned, config.learning_rate, config.weight_decay)
        self.discriminator_optimizer = adam(list(self.discriminator.parameters()), config.discriminator_rate)
        self.optimizers = {"model": self.optimizer, "discriminator": self.discriminator_optimizer}
        loss = partial(supervised_loss, network, self.heads, self.discriminator, config=config.losses)
        self._loss: Callable[..., tuple[Tensor, dict[str, Tensor]]] = compile_once(loss) if compiled else loss
        self._encode = compile_once(self._cage_features) if compiled else self._cage_features
        self._generator = torch.Generator(self.device)
        self._metrics: dict[str, Tensor] = {}
        self._learning = {
            source: replayed(partial(self._learn, source), self.device, self._generator)
            for source in (self.source, self._late)
            if source is not None
        }
        """An update from each source."""
        self._discriminator_camera: FlightCamera | None = None
        if lab is not None and config.losses.wasserstein:
            images = config.discriminator_updates * config.discriminator_images
            self._discriminator_camera = FlightCamera(images, 1, self.device)

    @property
    def contexts_per_update(self) -> int:
        """Contexts that an update learns from."""
        return sum(self.source.sizes) * self.config.contexts.images

    def update(self, progress: float = 0.0) -> dict[str, Tensor]:
        """Update the discriminator a few times and the model once.

        Args:
            progress: Share of the training that is done, for the learning rate's schedule.

        Returns:
            Metrics to log, on the device; the next update overwrites them.
        """
        config = self.config
        factor = config.final_rate + (1 - config.final_rate) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2
        rate = config.learning_rate * factor
        set_rate(self.optimizer, rate)
        set_rate(self.discriminator_optimizer, config.discriminator_rate * factor)
        seed = seed_of(self.seed, "supervised", self.updates)
        self._generator.manual_seed(seed)
        torch.manual_seed(seed)  # dropout and the gradient penalty take no generator
        self.network.train()
        self._learning[self._late if self._late is not None and progress >= LATE else self.source]()
        self.updates += 1
        self._update_average()
        return self._metrics | {"supervised/learning_rate": torch.full((), rate, device=self.device)}

    def _learn(self, source: ContextSource) -> None:
        """Lines 3 to 10."""
        if self._discriminator_camera is not None:
            self._update_discriminator(self._discriminator_camera)  # lines 3–7
        # Line 8: Ξ^R ~ D^R and Ξ^S ~ D^S
        batch = source.draw(self._generator)
        # Lines 9–10: θ^S, θ^R ← ADAM(∇ L_SL(Ξ^R, Ξ^S))
        with precision(self.device):
            kernels = self.network.stage1.encode_text(batch.examples.tokens)
            loss, losses = self._loss(contexts=batch, kernels=kernels)
        norm, skipped = optimizer_step(self.optimizer, loss, self.config.max_gradient_norm)
        self._metrics |= losses | {"supervised/gradient_norm": norm, "supervised/skipped_updates": skipped}

    def _update_discriminator(self, camera: FlightCamera) -> None:
        """Lines 3 to 7: K_discr updates of the discriminator.

        Images are of cage demonstrations only, or it would learn to tell content apart. The vision encoders do not
        change between these updates, so one pass over the images of all of them does.
        """
        discriminator, config = self.discriminator, self.config
        assert self.lab is not None
        with torch.no_grad(), precision(self.device):
            # Lines 4–5: Ξ^R ~ D^R and Ξ^S ~ D^S
            sim = self.source.cage_images(camera, self._generator)
            lab = self.lab.image(*self.lab.sample_poses(len(sim), self._generator))[:, 0]
            features = self._encode(sim, lab)
        loss = torch.zeros((), device=self.device)
        parts = (part.split(config.discriminator_images) for part in features)
        for sim_features, lab_features in zip(*parts, strict=True):
            # Lines 6–7: ψ ← ADAM(∇ -L_W(Ξ^R, Ξ^S))
            loss = -wasserstein(discriminator, sim_features, lab_features)
            if config.discriminator.gradient_penalty:
                loss = loss + config.discriminator.gradient_penalty * discriminator.penalty(sim_features, lab_features)
            optimizer_step(self.discriminator_optimizer, loss)
            discriminator.clamp_weights()
        self._metrics["supervised/discriminator_loss"] = loss.detach()

    def _cage_features(self, sim: Tensor, lab: Tensor) -> tuple[Tensor, Tensor]:
        """F^C of images of both domains."""
        stage1 = self.network.stage1
        return stage1.encode_images(sim, "sim").float(), stage1.encode_images(lab, "lab").float()

    @torch.no_grad()
    def _update_average(self) -> None:
        """Move the average towards the weights: over all updates at first, over the last ones later."""
        if self.averaged is self.network:
            return
        decay = min(self.config.average, (1 + self.updates) / (10 + self.updates))
        mean: list[Tensor] = list(self.averaged.stage1.parameters())
        newest: list[Tensor] = list(self.network.stage1.parameters())
        torch._foreach_lerp_(mean, newest, 1 - decay)


class ProcessA(Worker):
    """Supervised learning of stage 1 with D^S as Process B changes it, and cloning of stage 2 where asked for.

    It can be killed at any moment; the same command resumes from the last checkpoint.
    """

    name = "a"

    def __init__(self, context: RunContext, config: RunConfig, data: TrainingData) -> None:
        super().__init__(context)
        self.config, self.data = config, data
        self.network = new_network(config, data, context.device)
        self.executions = initial_executions(data, config.data, context.say)
        self.executions.keep(config.data.kept_demonstrations)
        lab = lab_executions(data, config.data, context.say)
        paraphrases = training_paraphrases(data, config.data, config.supervised.contexts.mirrored > 0, context.say)
        torch.manual_seed(config.seed + 1)
        self.supervised = Supervised(
            self.network,
            data.examples,
            self.executions,
            lab,
            config.supervised,
            config.seed,
            context.compiled,
            paraphrases,
        )
        own = replace(config.supervised.contexts, foreign_motions=0.0, look_arounds=0.0)
        source = ContextSource(data.examples, self.executions, lab, own, self.supervised.source.sizes, paraphrases)
        gold = config.supervised.losses.gold
        self.cloning = Cloning(self.supervised.averaged, source, config.cloning, gold, config.seed)
        self.modules = self.supervised.modules | {"stage2": self.network.stage2}
        self.optimizers = self.supervised.optimizers | {"cloning": self.cloning.optimizer}
        self.evaluator = Evaluator(data, context.device)
        self.rollout_length = 0.0
        """Mean length of the rollouts that came last."""

    def step(self) -> None:
        """One update: of stage 1 or, between the warm-up and Process B, of a stage 2 that is cloned."""
        schedule, cloning = self.config.schedule, self.phase == "cloning"
        self.merge()  # D^S is shared with Process B
        metrics = self.cloning.update() if cloning else self.supervised.update(self.progress)  # lines 3–10
        skipped = "cloning/skipped_updates" if cloning else "supervised/skipped_updates"
        self.skipped.count(metrics[skipped])
        if self.steps % CHECK_EVERY == 0:
            self.skipped.check(self.context.folder)
        if self.steps % schedule.log_every == 0:
            self.log_metrics(
                {
                    **metrics,
                    skipped: self.skipped.total,
                    "charts/contexts_per_second": self.measure_rate(),
                    "executions/demonstrations_left": self.executions.demonstrations_left,
                    "executions/merged": float(self.executions.merged),
                    "executions/length": self.executions.lengths.float().mean(),
                    "executions/rollout_length": self.rollout_length,
                }
            )
        if not cloning and self.supervised.updates % schedule.first_look_every == 0:
            with self.context.interruptible():
                looks = self.evaluator.first_looks(self.supervised.averaged, self.config.supervised.losses.gold)
            self.metrics |= self.log.scalars(looks, self.steps)
        if self.warm and self.supervised.updates % schedule.send_every == 0:
            self.send()  # lines 11–14

    def merge(self) -> None:
        """Merge what Process B has flown into D^S."""
        for rollouts in self.context.link.take_rollouts():
            self.executions.merge(rollouts)
            self.rollout_length = float(rollouts.executions.lengths.float().mean())

    def send(self) -> None:
        """f_S^B ← f_S: give Process B what has been learned so far; it is launched by the first message."""
        weights = {name: tensor.detach() for name, tensor in self.supervised.averaged.state_dict().items()}
        self.context.link.send_parameters(Parameters(self.supervised.updates, weights))

    @property
    def warm(self) -> bool:
        """Whether Process B may begin: after K_iter^B updates, and those of cloning."""
        schedule = self.config.schedule
        return self.supervised.updates >= schedule.warm_up and self.cloning.updates >= schedule.cloning_updates

    @property
    def phase(self) -> str:
        """For the display."""
        if self.supervised.updates < self.config.schedule.warm_up:
            return "warm-up"
        return "learning" if self.warm else "cloning"

    @property
    def progress(self) -> float:
        """Share of its training that is done, by updates or by time."""
        schedule = self.config.schedule
        by_time = self.seconds / 60 / schedule.minutes if schedule.minutes else 0.0
        return min(1.0, max(self.supervised.updates / schedule.updates, by_time))

    @property
    def steps(self) -> int:
        """Updates of both kinds."""
        return self.supervised.updates + self.cloning.updates

    @property
    def samples(self) -> int:
        """Contexts learned from."""
        return self.steps * self.supervised.contexts_per_update

    def status(self) -> dict[str, Any]:
        """What the display shows."""
        schedule, updates = self.config.schedule, self.supervised.updates
        # Where time ends a run, the number of updates is not known before.
        done = (round(1000 * self.progress), 1000) if schedule.minutes else (updates, schedule.updates)
        done, shown = {
            "warm-up": ((updates, schedule.warm_up), ("supervised/loss", "supervised/goal")),
            "cloning": ((self.cloning.updates, schedule.cloning_updates), ("cloning/stop", "cloning/velocity")),
            "learning": (done, ("supervised/loss", "supervised/goal")),
        }[self.phase]
        return {
            "phase": self.phase,
            "done": done[0],
            "total": done[1],
            "rates": {"contexts/s": self.rate},
            "metrics": {name.partition("/")[2]: self.metrics[name] for name in shown if name in self.metrics},
        }

    def counters(self) -> dict[str, Any]:
        """How far it is."""
        return {
            "updates": self.supervised.updates,
            "cloned": self.cloning.updates,
            "merged": self.executions.merged,
        }

    def extra_tensors(self) -> Tensors:
        """The rollouts in D^S."""
        rollouts = self.executions.rollouts()
        return {
            "executions.index": rollouts.example,
            "executions.lengths": rollouts.executions.lengths,
            "executions.rows": squeeze(rollouts.executions.rows().numpy()),
        }

    def restore_counters(self, counters: Mapping[str, Any], tensors: Tensors) -> None:
        """Resume."""
        rows, lengths = torch.from_numpy(unsqueeze(tensors["executions.rows"])), tensors["executions.lengths"]
        rollouts = Rollouts(tensors["executions.index"], PackedExecutions.from_rows(rows, lengths), 1.0)
        self.executions.restore(rollouts, counters["merged"])
        self.supervised.updates, self.cloning.updates = counters["updates"], counters["cloned"]
