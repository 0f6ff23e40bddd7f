"""Batches of contexts for Process A: E executions, K pictures of each, and all that is asked of them.

Every picture makes a context: what has been seen so far, one more picture, and the gold distributions masked by what
has been observed. A few pictures spread over the flight stand for all of them, since neighbours hardly differ; the map
between them is as if the camera had been slower.

What ORACLE looked at betrays where it was going. So part of the executions are none of their instruction's own: the
motion of another instruction's flight, from this start, or a look around on the spot. Gold is that of the instruction.
And what a network has met often it knows by heart, so instructions come in other words and mirrored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose, in_start_frame, start_frame
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.learning.augmentation import forgetful, mirrored_image, mirrored_points, mirrored_pose, turned
from wordwing.learning.examples import Examples, ExampleSet
from wordwing.learning.executions import Executions, LabExecutions
from wordwing.learning.sayings import Sayings
from wordwing.model.layers import each
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import PackedLayouts, SimScene

ALIKE = 2
"""Pictures of cage demonstrations for each execution of the cage in a batch."""


@dataclass(frozen=True)
class ContextConfig:
    """Which contexts a batch has."""

    pictures: int = 8
    """Of each execution, K; the paper takes every one."""
    others: float = 0.4
    """Share of executions that are the motion of another instruction's flight."""
    look_arounds: float = 0.1
    """Share that turn on the spot."""
    rotation: float = 0.5
    """Standard deviation by which the start heading, and with it every map, is turned, radians."""
    mirrored: float = 0.0
    """Share of executions that are seen in a mirror, with the words for it."""
    forgotten: float = 0.0
    """Share of words that are unknown."""
    shares: tuple[float, ...] = ()
    """Of the corpora among executions of any corpus, in their order; by default each instruction is as likely."""


@dataclass(frozen=True)
class Contexts:
    """E executions of K pictures; those of `sim` come first, then those of the lab."""

    examples: Examples
    """[E], their start headings turned."""
    pose: Pose
    """[E, K] world frame."""
    sim_image: Tensor
    """[E_sim, K, 72, 128, 3] uint8."""
    lab_image: Tensor
    """[E_lab, K, 72, 128, 3] uint8."""
    alike_image: Tensor
    """[A, 72, 128, 3] uint8, of `sim`: from demonstrations of the cage, as the lab's are, to compare features with."""
    landmark: Tensor
    """[E, 40] int64, catalogue index of what stands around."""
    place: Tensor
    """[E, 40, 2] where it stands, world frame, metres."""
    present: Tensor
    """[E, 40] bool, whether anything stands there."""
    clearing: Tensor
    """[E, 4, 2] places chosen at random, world frame, metres."""
    setpoint: Tensor
    """[E, K, 2] forward m/s and yaw rate rad/s that ORACLE decided on; zero where nobody knows."""
    stop: Tensor
    """[E, K] bool, it decided to STOP."""
    known: Tensor
    """[E, K] bool, whether it is known what ORACLE decided there: only in its own flights."""
    own: Tensor
    """[E] bool, the execution is that of its instruction."""


class FlightCamera:
    """Draws what drones saw in `sim`: E worlds, K poses in each."""

    def __init__(self, executions: int, pictures: int, device: torch.device) -> None:
        self.shape = executions, pictures
        self.camera = Camera()
        self.scene = SimScene(executions * pictures, device)
        self.renderer = Renderer(self.scene, self.camera, RenderConfig())
        self._worlds = torch.arange(executions * pictures, device=device)

    def draw(self, layouts: PackedLayouts, pose: Pose) -> Tensor:
        """[E, K, 72, 128, 3] uint8 from poses [E, K] in layouts [E]."""
        executions, pictures = self.shape
        self.scene.place(layouts.take(self._worlds // pictures), self._worlds)
        drone = Pose(pose.position.flatten(0, 1), pose.quaternion.flatten(0, 1))
        return self.renderer.first_person(self.camera.pose(drone)).unflatten(0, (executions, pictures))


def transplant(pose: Pose, start: Pose, new_start: Pose) -> Pose:
    """The same motion from another start, up to where it would leave the arena; from there on the last pose stays.

    Args:
        pose: [E, K] world frame.
        start: [E] where the motion began.
        new_start: [E] where it shall begin.
    """
    frame = start_frame(new_start)[:, None]
    moved = frame @ in_start_frame(pose, start[:, None])
    inside = (moved.xy.abs() <= ARENA_HALF).all(-1)  # [E, K]
    order = torch.arange(inside.shape[1], device=inside.device)
    last = torch.where(inside.long().cumprod(1).bool(), order, 0).cummax(1).values  # [E, K]
    rows = torch.arange(len(last), device=last.device)[:, None]
    return moved[rows, last]


def look_around(start: Pose, pictures: int, generator: torch.Generator) -> Pose:
    """[E, K] poses of drones that turn on the spot at starts [E], either way, by up to a full turn."""
    device = start.position.device
    angle = 2 * math.pi * (2 * torch.rand(len(start), 1, device=device, generator=generator) - 1)
    yaw = start.yaw[:, None] + angle * torch.linspace(0, 1, pictures, device=device)
    return Pose.level(start.xy[:, None].expand(-1, pictures, -1), yaw, FLIGHT_HEIGHT)


@dataclass(frozen=True)
class Motions:
    """Where E drones look from while they hear E instructions, and what was decided there."""

    example: Tensor
    """[E] int64."""
    pose: Pose
    """[E, K] world frame."""
    setpoint: Tensor
    """[E, K, 2] forward m/s and yaw rate rad/s."""
    stop: Tensor
    """[E, K] bool."""
    known: Tensor
    """[E, K] bool, whether anybody knows what was decided."""
    own: Tensor
    """[E] bool, the execution is that of its instruction."""

    @classmethod
    def flown(
        cls, example: Tensor, executions: Executions, index: Tensor, pictures: int, generator: torch.Generator
    ) -> tuple[Motions, Tensor]:
        """Executions `index` [E] of examples [E] as they were flown; also returns the frames [E, K] that were taken."""
        frames = executions.frames(index, pictures, generator)
        own = torch.ones_like(index, dtype=torch.bool)
        return cls(example, executions.at(index, frames), *executions.decisions(index, frames), own=own), frames


def joined(parts: Sequence[Motions]) -> Motions:
    """One after the other."""
    whole: Motions = each(lambda *tensors: torch.cat(tensors), *parts)
    return whole


class ContextSource:
    """Draws batches: so many executions of any corpus, so many of the cage, so many of the lab."""

    def __init__(
        self,
        examples: ExampleSet,
        executions: Executions,
        lab: LabExecutions | None,
        config: ContextConfig,
        sizes: tuple[int, int, int],
        sayings: Sayings | None = None,
    ) -> None:
        """Make batches from executions.

        Args:
            examples: Of `sim`.
            executions: Of the examples, as they are whenever a batch is drawn.
            lab: Flights of the lab; needed where the last size is not 0.
            config: What batches are like.
            sizes: Executions in a batch: any of `sim`, of the cage in `sim`, of the lab.
            sayings: Other words for the examples; needed where some are mirrored.
        """
        if config.mirrored and sayings is None:
            raise ValueError("a mirrored execution needs the words for it")
        self.examples, self.executions, self.lab, self.config = examples, executions, lab, config
        self.sizes, self.sayings = sizes, sayings
        self.device = examples.device
        self.cage = examples.of("cage") if sizes[1] else None
        """[M] int64 examples of the cage, where they are needed."""
        self.demonstrated = None if self.cage is None else executions.copy(self.cage)
        """Of the cage, as they were in the beginning: what they show is like what the lab's show."""
        self.chances = example_chances(examples, config.shares) if config.shares else None
        """[N] of each example to be drawn, where corpora have shares."""
        self._drawing = FlightCamera(sizes[0] + sizes[1], config.pictures, self.device)
        self._alike = FlightCamera(ALIKE * sizes[1], 1, self.device) if sizes[1] else None

    @torch.no_grad()
    def draw(self, generator: torch.Generator) -> Contexts:
        """A batch."""
        sim = motions = self.motions(generator)
        layouts = self.examples.layouts.take(self.examples.examples.layout[sim.example])
        sim_image = self._drawing.draw(layouts, sim.pose)
        lab_image = sim_image[:0]
        alike_image = sim_image[:0, 0] if self._alike is None else self.alike(self._alike, generator)
        if self.lab is not None and self.sizes[2]:
            recorded, lab_image = self._recorded(self.lab, generator)
            motions = joined([sim, recorded])
        flip = torch.rand(len(motions.example), device=self.device, generator=generator) < self.config.mirrored
        examples = self._said(motions.example, flip, generator)
        layouts = self.examples.layouts.take(examples.layout)
        slots = torch.arange(layouts.landmark.shape[1], device=self.device)
        places = (len(motions.example), 4, 2)
        setpoint = mirrored_points(motions.setpoint, flip)  # a yaw rate changes its sign as a y does
        return Contexts(
            examples=turned(examples, self.config.rotation, generator),
            pose=mirrored_pose(motions.pose, flip),
            sim_image=mirrored_image(sim_image, flip[: len(sim_image)]),
            lab_image=mirrored_image(lab_image, flip[len(sim_image) :]),
            alike_image=alike_image,
            landmark=layouts.landmark,
            place=mirrored_points(layouts.place[..., :2], flip),
            present=slots < layouts.count[:, None],
            clearing=ARENA_HALF * (2 * torch.rand(places, device=self.device, generator=generator) - 1),
            setpoint=setpoint,
            stop=motions.stop,
            known=motions.known & motions.own[:, None],
            own=motions.own,
        )

    def _said(self, index: Tensor, flip: Tensor, generator: torch.Generator) -> Examples:
        """Examples `index` [E] as they are said and seen this time, some of them mirrored, [E] bool."""
        examples = self.examples.examples[index]
        if self.sayings is not None:
            tokens, mentioned = self.sayings.draw(index, flip, generator)
            examples = replace(
                examples,
                tokens=tokens,
                mentioned=mentioned,
                start=mirrored_pose(examples.start, flip),
                points=mirrored_points(examples.points, flip),
            )
        if self.config.forgotten:
            examples = replace(examples, tokens=forgetful(examples.tokens, self.config.forgotten, generator))
        return examples

    def motions(self, generator: torch.Generator) -> Motions:
        """Of a batch's drones in `sim`: examples of any corpus, then of the cage."""
        if self.chances is None:
            index = torch.randint(len(self.examples), self.sizes[:1], device=self.device, generator=generator)
        else:
            index = self.chances.multinomial(self.sizes[0], replacement=True, generator=generator)
        if self.cage is not None:
            chosen = torch.randint(len(self.cage), self.sizes[1:2], device=self.device, generator=generator)
            index = torch.cat([index, self.cage[chosen]])
        return self.mixed(index, self.executions.frames(index, self.config.pictures, generator), generator)

    def alike(self, camera: FlightCamera, generator: torch.Generator) -> Tensor:
        """[n, 72, 128, 3] uint8 of `sim`, from anywhere in demonstrations of the cage, one from each of n."""
        assert self.demonstrated is not None
        assert self.cage is not None
        which, frame = self.demonstrated.anywhere(camera.shape[0], generator)
        layouts = self.examples.layouts.take(self.examples.examples.layout[self.cage[which]])
        return camera.draw(layouts, self.demonstrated.at(which, frame))[:, 0]

    def mixed(self, index: Tensor, frames: Tensor, generator: torch.Generator) -> Motions:
        """Examples `index` [E]: their own executions, motions of others among them, look-arounds.

        Args:
            index: [E] int64.
            frames: [E, K] int64, which poses to take of their own executions.
            generator: Of what is drawn.
        """
        config, executions, start = self.config, self.executions, self.examples.examples.start
        own = executions.at(index, frames)
        other = index[torch.randperm(len(index), device=self.device, generator=generator)]
        elsewhere = executions.at(other, executions.frames(other, config.pictures, generator))
        foreign = transplant(elsewhere, start[other], start[index])
        around = look_around(start[index], config.pictures, generator)
        draw = torch.rand(len(index), 1, 1, device=self.device, generator=generator)
        theirs, turning = draw < config.others, draw > 1 - config.look_arounds

        def mixed(own: Tensor, other: Tensor, around: Tensor) -> Tensor:
            return torch.where(theirs, other, torch.where(turning, around, own))

        pose = Pose(
            mixed(own.position, foreign.position, around.position),
            mixed(own.quaternion, foreign.quaternion, around.quaternion),
        )
        return Motions(index, pose, *executions.decisions(index, frames), own=~(theirs | turning)[:, 0, 0])

    def _recorded(self, lab: LabExecutions, generator: torch.Generator) -> tuple[Motions, Tensor]:
        """Demonstrations of the lab, and their pictures."""
        chosen = torch.randint(len(lab), self.sizes[2:], device=self.device, generator=generator)
        pictures = self.config.pictures
        motions, frames = Motions.flown(lab.example[chosen], lab.executions, chosen, pictures, generator)
        return motions, lab.pictures(chosen, frames)


def example_chances(examples: ExampleSet, shares: Sequence[float]) -> Tensor:
    """[N] how likely each example is if its corpus has one of these shares and all of a corpus are alike."""
    count = examples.examples.corpus.bincount(minlength=len(shares))
    share = torch.tensor(shares, dtype=torch.float32, device=examples.device)
    return (share / share.sum() / count)[examples.examples.corpus]
