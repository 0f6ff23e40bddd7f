"""The policy network π = g(f(·)): what it remembers, what it believes, what it decides (paper: Model)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from wordwing.camera import Camera
from wordwing.frames import Pose, in_start_frame
from wordwing.interface import Domain
from wordwing.model.ego import EgoView, ego_view
from wordwing.model.layers import each
from wordwing.model.mapping import MappingConfig, SemanticMap, arena_cells, boundary_cells, look, project
from wordwing.model.stage1 import Reading, Stage1, Stage1Config
from wordwing.model.stage2 import Control, Stage2, Stage2Config
from wordwing.model.text import Tokens
from wordwing.model.vision import STRIDE
from wordwing.model.visitation import Scores, Visitation, visitation


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
