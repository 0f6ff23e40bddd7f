"""The policy π = g(f(·)): its state during a flight, its beliefs and its decisions (paper: Model)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from wordwing.camera import Camera
from wordwing.frames import Pose, in_start_frame
from wordwing.interface import Domain
from wordwing.model.ego import EgoView, ego_view
from wordwing.model.history import History
from wordwing.model.layers import each
from wordwing.model.mapping import MappingConfig, SemanticMap, arena_cells, boundary_cells, project, visible_ground
from wordwing.model.stage1 import Stage1, Stage1Config, Stage1Output, TextKernels
from wordwing.model.stage2 import Control, Stage2, Stage2Config
from wordwing.model.text import Tokens
from wordwing.model.vision import STRIDE
from wordwing.model.visitation import Visitation, visitation


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides which tensors a policy has and what they mean."""

    stage1: Stage1Config = field(default_factory=Stage1Config)
    stage2: Stage2Config = field(default_factory=Stage2Config)
    mapping: MappingConfig = field(default_factory=MappingConfig)
    stop_threshold: float = 0.5
    """κ: STOP where its probability is above this."""


@dataclass(frozen=True)
class PolicyState:
    """What a policy keeps between the images of N flights."""

    start: Pose
    """[N] world frame."""
    kernels: TextKernels
    """Of N instructions."""
    map: SemanticMap
    """S^W of N flights, start frame."""
    observed: Tensor
    """M^W [N, 64, 64] bool, start frame."""
    arena: Tensor
    """[N, 64, 64] bool, start frame."""
    boundary: Tensor
    """B^W [N, 64, 64] bool, start frame."""
    history: History | None = None
    """Of N flights; None without history."""

    def put(self, worlds: Tensor, fresh: PolicyState) -> PolicyState:
        """A copy in which flights `worlds` [M] are replaced by `fresh` [M]."""
        return each(lambda mine, theirs: mine.index_copy(0, worlds, theirs.to(mine.dtype)), self, fresh)


@dataclass(frozen=True)
class Beliefs(Stage1Output):
    """All intermediate results for one observation of N drones, from image features to setpoints, start frame."""

    arena: Tensor
    """[N, 64, 64] bool."""
    boundary: Tensor
    """B^W [N, 64, 64] bool."""
    visitation: Visitation
    """d^p, d^g and both p_oob."""
    view: EgoView
    """Stage 2's input."""
    control: Control
    """Stage 2's output."""

    def of(self, index: int) -> Beliefs:
        """The beliefs of one drone: a batch of one, on the CPU, independent of the others."""
        return each(lambda tensor: tensor[index, None].detach().cpu().clone(), self)


class PolicyNetwork(nn.Module):
    """Both stages, and the geometry between them. PVN2, or PVN without `stage1.observability`."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.camera = Camera()
        self.stage1 = Stage1(config.stage1, vocabulary_size)
        self.stage2 = Stage2(config.stage2)

    def begin(self, tokens: Tokens, start: Pose) -> PolicyState:
        """Begin N flights at poses [N], world frame."""
        return self.begin_with(self.stage1.encode_text(tokens), start)

    def begin_with(self, kernels: TextKernels, start: Pose) -> PolicyState:
        """Begin N flights of encoded instructions; compiled code that calls it knows that their maps are empty."""
        arena = arena_cells(start)
        return PolicyState(
            start=start,
            kernels=kernels,
            map=SemanticMap.empty(len(arena), self.config.stage1.vision.channels, arena.device),
            observed=torch.zeros_like(arena),
            arena=arena,
            boundary=boundary_cells(start),
            history=History.empty(len(arena), arena.device) if self.config.stage2.history else None,
        )

    def observe(self, state: PolicyState, features: Tensor, pose: Pose) -> tuple[list[PolicyState], Tensor, Pose]:
        """Add K successive images of each of N flights to their maps.

        Args:
            state: Of N flights.
            features: F^C [N · K, 32, 18, 32] of the images, flight by flight.
            pose: [N, K] where they were taken, world frame.

        Returns:
            The states after each image; [N · K, 64, 64] bool, the cells that each image shows; and [N · K] where they
            were taken, start frame.
        """
        here: Pose = each(lambda tensor: tensor.flatten(0, 1), in_start_frame(pose, state.start[:, None]))
        ground = visible_ground(here, self.camera, self.config.mapping)
        images = pose.position.shape[1]
        parts = (project(features, ground, STRIDE, self.camera), ground.in_view, ground.covered)
        states = []
        for new, in_view, covered in zip(*(part.unflatten(0, (-1, images)).unbind(1) for part in parts), strict=True):
            semantic_map = state.map.accumulate(new, in_view, self.config.mapping.blend)
            state = replace(state, map=semantic_map, observed=state.observed | (covered & state.arena))
            states.append(state)
        return states, ground.in_view, here

    def run_stage1(self, state: PolicyState, features: Tensor, pose: Pose) -> tuple[PolicyState, Stage1Output]:
        """Stage 1's forward pass, in flight with the newest image and in training with all images of an execution.

        Args:
            state: Of N flights.
            features: F^C [N · K, 32, 18, 32] of the images, flight by flight.
            pose: [N, K] where they were taken, world frame.

        Returns:
            The state after the last image, and stage 1's output for N · K contexts, flight by flight.
        """
        states, in_view, here = self.observe(state, features, pose)
        semantic_map, observed, kernels = states[-1].map.features, states[-1].observed, state.kernels
        if len(states) > 1:
            maps = torch.stack([one.map.features.permute(0, 2, 3, 1) for one in states], dim=1)  # pixel by pixel
            semantic_map = maps.flatten(0, 1).permute(0, 3, 1, 2)
            observed = torch.stack([one.observed for one in states], dim=1).flatten(0, 1)
            kernels = each(lambda tensor: tensor.repeat_interleave(len(states), 0), kernels)
        grounding_map, scores = self.stage1.predict(semantic_map, observed, kernels)
        return states[-1], Stage1Output(features, semantic_map, grounding_map, observed, in_view, scores, here)

    def view(
        self,
        plan: Visitation,
        observed: Tensor,
        arena: Tensor,
        boundary: Tensor,
        pose: Pose,
        flown: Tensor | None = None,
        motion: Tensor | None = None,
    ) -> EgoView:
        """Stage 2's input at poses [N], of masks [N, 64, 64] bool, all in the start frame; PVN's masks are empty.

        With history `flown` and `motion` are those of `History.follow`.
        """
        unexplored = arena & ~observed
        if not self.config.stage1.observability:
            unexplored, boundary = torch.zeros_like(unexplored), torch.zeros_like(boundary)
        return ego_view(plan, unexplored, boundary, pose, self.config.stage2.phases > 1, flown, motion)

    def forward(self, state: PolicyState, image: Tensor, pose: Pose, domain: Domain) -> tuple[PolicyState, Beliefs]:
        """One decision of N drones.

        Args:
            state: Of N flights.
            image: [N, 72, 128, 3] uint8.
            pose: [N] world frame.
            domain: Where the images come from.

        Returns:
            The new state, and the beliefs.
        """
        state, output = self.run_stage1(state, self.stage1.encode_images(image, domain), pose[:, None])
        plan = visitation(output.scores, self.stage1.support(state.observed))
        done: tuple[Tensor, ...] = ()
        if state.history is not None:
            history, motion = state.history.follow(output.pose)
            state, done = replace(state, history=history), (history.cells, motion)
        view = self.view(plan, state.observed, state.arena, state.boundary, output.pose, *done)
        beliefs = Beliefs(
            image_features=output.image_features,  # one by one: what `vars` gives, torch.compile cannot trace
            semantic_map=output.semantic_map,
            grounding_map=output.grounding_map,
            observed=output.observed,
            in_view=output.in_view,
            scores=output.scores,
            pose=output.pose,
            arena=state.arena,
            boundary=state.boundary,
            visitation=plan,
            view=view,
            control=self.stage2(view),
        )
        return state, beliefs
