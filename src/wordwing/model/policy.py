"""The policy π = g(f(·)) in flight: what it keeps, what it believes, what it decides (paper: Model)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from wordwing.camera import Camera
from wordwing.devices import find_device, precision
from wordwing.errors import WordwingError
from wordwing.frames import Pose, in_start_frame, start_frame
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Action, Domain, Observation
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.ego import EgoView, ego_view
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.mapping import MappingConfig, SemanticMap, arena_cells, boundary_cells, look, project
from wordwing.model.stage1 import Reading, Stage1, Stage1Config
from wordwing.model.stage2 import Control, Stage2, Stage2Config
from wordwing.model.text import MAX_WORDS, Tokens
from wordwing.model.vision import STRIDE
from wordwing.model.visitation import Scores, Visitation, visitation

ABSURD = 1000.0
"""Times the fastest flight or turn that no sound policy decides on; what is merely too fast is flown at the limit."""


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides which tensors a policy has and what they mean."""

    stage1: Stage1Config = field(default_factory=Stage1Config)
    stage2: Stage2Config = field(default_factory=Stage2Config)
    mapping: MappingConfig = field(default_factory=MappingConfig)
    stop_threshold: float = 0.5
    """κ: STOP where its probability is above."""


@dataclass(frozen=True)
class State:
    """All that a policy remembers of N flights."""

    start: Pose
    """[N] world frame."""
    reading: Reading
    """Of N instructions."""
    map: SemanticMap
    """S^W of N flights, start frame."""
    observed: Tensor
    """M^W [N, 64, 64] bool, start frame."""
    arena: Tensor
    """[N, 64, 64] bool, start frame."""
    boundary: Tensor
    """B^W [N, 64, 64] bool, start frame."""

    def put(self, worlds: Tensor, fresh: State) -> State:
        """A copy in which flights `worlds` [M] have begun anew as `fresh` [M]; the others go on."""
        return each(lambda mine, theirs: mine.index_copy(0, worlds, theirs.to(mine.dtype)), self, fresh)


@dataclass(frozen=True)
class Beliefs:
    """What the policy made of one observation of N drones: every step from pixels to setpoints, start frame."""

    pose: Pose
    """[N] of the drones, start frame."""
    image_features: Tensor
    """F^C [N, 32, 18, 32]."""
    semantic_map: Tensor
    """S^W [N, 32, 64, 64]."""
    grounding_map: Tensor
    """R^W [N, 8, 64, 64]."""
    observed: Tensor
    """M^W [N, 64, 64] bool."""
    arena: Tensor
    """[N, 64, 64] bool."""
    boundary: Tensor
    """B^W [N, 64, 64] bool."""
    scores: Scores
    """Of LingUNet, before they are normalised."""
    visitation: Visitation
    """d^p, d^g and both p_oob."""
    view: EgoView
    """What stage 2 gets of it."""
    control: Control
    """What to do."""

    def of(self, index: int) -> Beliefs:
        """What one of the drones believes: a batch of one, on the CPU, that keeps nothing of the others alive."""
        return each(lambda tensor: tensor[index, None].detach().cpu().clone(), self)


class PolicyNetwork(nn.Module):
    """Both stages, and the geometry between them. PVN2, or PVN without `stage1.observability`."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.camera = Camera()
        self.stage1 = Stage1(config.stage1, vocabulary_size)
        self.stage2 = Stage2(config.stage2)

    def begin(self, tokens: Tokens, start: Pose) -> State:
        """Begin N flights at poses [N], world frame."""
        arena = arena_cells(start)
        return State(
            start=start,
            reading=self.stage1.read(tokens),
            map=SemanticMap.empty(len(arena), self.config.stage1.vision.channels, arena.device),
            observed=torch.zeros_like(arena),
            arena=arena,
            boundary=boundary_cells(start),
        )

    def observe(self, state: State, image: Tensor, pose: Pose, domain: Domain) -> tuple[State, Tensor]:
        """Put pictures [N, 72, 128, 3] taken at poses [N] (world frame) on the maps; also returns F^C."""
        sight = look(in_start_frame(pose, state.start), self.camera, self.config.mapping)
        image_features = self.stage1.see(image, domain)
        ground_features = project(image_features, sight, STRIDE, self.camera)
        semantic_map = state.map.accumulate(ground_features, sight.in_view, self.config.mapping.blend)
        observed = state.observed | (sight.covered & state.arena)
        return replace(state, map=semantic_map, observed=observed), image_features

    def plan(self, state: State) -> tuple[Tensor, Scores]:
        """R^W, and LingUNet's scores of the distributions."""
        grounding_map = self.stage1.ground(state.map.features, state.reading)
        return grounding_map, self.stage1.predict(state.map.features, grounding_map, state.observed, state.reading)

    def view(self, state: State, plan: Visitation, pose: Pose) -> EgoView:
        """What stage 2 gets to see from poses [N], start frame."""
        return self.view_of(plan, state.observed, state.arena, state.boundary, pose)

    def view_of(self, plan: Visitation, observed: Tensor, arena: Tensor, boundary: Tensor, pose: Pose) -> EgoView:
        """The same of masks [N, 64, 64] bool, start frame; PVN knows nothing of exploration."""
        unexplored = arena & ~observed
        if not self.config.stage1.observability:
            unexplored, boundary = torch.zeros_like(unexplored), torch.zeros_like(boundary)
        return ego_view(plan, unexplored, boundary, pose, ordered=self.config.stage2.phases > 1)

    def forward(self, state: State, image: Tensor, pose: Pose, domain: Domain) -> tuple[State, Beliefs]:
        """One decision of N drones.

        Args:
            state: What is remembered.
            image: [N, 72, 128, 3] uint8.
            pose: [N] world frame.
            domain: Where the pictures come from.

        Returns:
            What is remembered now, and what is believed.
        """
        state, image_features = self.observe(state, image, pose, domain)
        grounding_map, scores = self.plan(state)
        plan = visitation(scores, self.stage1.support(state.observed))
        here = in_start_frame(pose, state.start)
        view = self.view(state, plan, here)
        beliefs = Beliefs(
            pose=here,
            image_features=image_features,
            semantic_map=state.map.features,
            grounding_map=grounding_map,
            observed=state.observed,
            arena=state.arena,
            boundary=state.boundary,
            scores=scores,
            visitation=plan,
            view=view,
            control=self.stage2(view),
        )
        return state, beliefs


class LearnedPolicy:
    """A network that flies: means instead of samples, STOP above κ."""

    needs_gold_path = False

    def __init__(
        self,
        network: PolicyNetwork,
        vocabulary: Vocabulary,
        domain: Domain = "sim",
        device: torch.device | str = "cpu",
    ) -> None:
        """Wear a network.

        Args:
            network: Moved to the device.
            vocabulary: Its words.
            domain: Whose pictures it will get.
            device: Where it thinks; in bf16 on CUDA.
        """
        self.device = find_device(device)
        self.network = network.to(self.device).eval()
        self.vocabulary = vocabulary
        self.domain = domain
        self.state: State | None = None
        self.beliefs: Beliefs | None = None

    @classmethod
    def from_pretrained(
        cls, policy: str | Path, domain: Domain = "sim", device: torch.device | str = "cpu"
    ) -> LearnedPolicy:
        """Load a folder that `save` wrote, or a policy that comes with wordwing, by its name."""
        from wordwing.model.checkpoint import load_network

        network, vocabulary = load_network(policy)
        return cls(network, vocabulary, domain, device)

    def save(self, folder: str | Path, card: str = "") -> None:
        """Write `config.json`, `model.safetensors`, `vocab.txt` and the model card `README.md`."""
        from wordwing.model.checkpoint import save_network

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
        centres = START_GRID.centres(self.device).flatten(0, 1)
        best = centres[plan.goal.flatten(1).argmax(1)]  # [N, 2] start frame
        place = start_frame(self.state.start).apply(functional.pad(best, (0, 1)))[:, :2]
        return torch.cat([place, plan.unobserved[:, 1:].to(place)], 1)


def check_decisions(beliefs: Beliefs, pose: Pose) -> None:
    """Raise a `WordwingError` if decisions at poses [N] make no sense: weights may be finite and absurd all the same.

    Who has lost its pose decides on NaN, and hovers.
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
