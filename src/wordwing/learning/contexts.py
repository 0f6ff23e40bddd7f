"""Batches of contexts for Process A: E executions, K pictures of each, and all that is asked of them.

Every picture makes a context: what has been seen so far, one more picture, and the gold distributions masked by what
has been observed. A few pictures spread over the flight stand for all of them, since neighbours hardly differ; the map
between them is as if the camera had been slower.

What ORACLE looked at betrays where it was going. So part of the executions are none of their instruction's own: the
motion of another instruction's flight, from this start, or a look around on the spot. Gold is that of the instruction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose, in_start_frame, start_frame
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.learning.examples import Examples, ExampleSet
from wordwing.learning.executions import Executions, LabExecutions
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import PackedLayouts, Scene


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
        self.scene = Scene(executions * pictures, device)
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


class ContextSource:
    """Draws batches: so many executions of any corpus, so many of the cage, so many of the lab."""

    def __init__(
        self,
        examples: ExampleSet,
        executions: Executions,
        lab: LabExecutions | None,
        config: ContextConfig,
        sizes: tuple[int, int, int],
    ) -> None:
        """Make batches from executions.

        Args:
            examples: Of `sim`.
            executions: Of the examples, as they are whenever a batch is drawn.
            lab: Flights of the lab; needed where the last size is not 0.
            config: What batches are like.
            sizes: Executions in a batch: any of `sim`, of the cage in `sim`, of the lab.
        """
        self.examples, self.executions, self.lab, self.config = examples, executions, lab, config
        self.sizes = sizes
        self.device = examples.device
        self._cage = examples.of("cage") if sizes[1] else None
        self._drawing = FlightCamera(sizes[0] + sizes[1], config.pictures, self.device)

    def choose(self, generator: torch.Generator) -> Tensor:
        """[E_sim] int64 examples: any, then those of the cage."""
        index = torch.randint(len(self.examples), self.sizes[:1], device=self.device, generator=generator)
        if self._cage is None:
            return index
        cage = torch.randint(len(self._cage), self.sizes[1:2], device=self.device, generator=generator)
        return torch.cat([index, self._cage[cage]])

    def motions(self, index: Tensor, frames: Tensor, generator: torch.Generator) -> tuple[Pose, Tensor]:
        """Where to look from while hearing instructions `index` [E_sim].

        Args:
            index: [E_sim].
            frames: [E_sim, K] poses to take of their own executions.
            generator: Of what is drawn.

        Returns:
            [E_sim, K] poses, world frame, and whether they are the instruction's own, [E_sim] bool.
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
        return pose, ~(theirs | turning)[:, 0, 0]

    @torch.no_grad()
    def draw(self, generator: torch.Generator) -> Contexts:
        """A batch."""
        index = self.choose(generator)
        frames = self.executions.frames(index, self.config.pictures, generator)
        pose, own = self.motions(index, frames, generator)
        setpoint, stop, known = self.executions.decisions(index, frames)
        layouts = self.examples.layouts.take(self.examples.examples.layout[index])
        sim_image = self._drawing.draw(layouts, pose)
        lab_image = sim_image[:0]
        if self.lab is not None and self.sizes[2]:
            chosen = torch.randint(len(self.lab), self.sizes[2:], device=self.device, generator=generator)
            frames = self.lab.executions.frames(chosen, self.config.pictures, generator)
            recorded = self.lab.executions.at(chosen, frames)
            flown, stopped, sure = self.lab.executions.decisions(chosen, frames)
            lab_image = self.lab.pictures(chosen, frames)
            index = torch.cat([index, self.lab.example[chosen]])
            pose = Pose(
                torch.cat([pose.position, recorded.position]), torch.cat([pose.quaternion, recorded.quaternion])
            )
            setpoint, stop, known = torch.cat([setpoint, flown]), torch.cat([stop, stopped]), torch.cat([known, sure])
            own = torch.cat([own, torch.ones_like(stopped[:, 0])])
        examples = self.examples.examples[index]
        layouts = self.examples.layouts.take(examples.layout)
        slots = torch.arange(layouts.landmark.shape[1], device=self.device)
        places = (len(index), 4, 2)
        return Contexts(
            examples=turned(examples, self.config.rotation, generator),
            pose=pose,
            sim_image=sim_image,
            lab_image=lab_image,
            landmark=layouts.landmark,
            place=layouts.place[..., :2],
            present=slots < layouts.count[:, None],
            clearing=ARENA_HALF * (2 * torch.rand(places, device=self.device, generator=generator) - 1),
            setpoint=setpoint,
            stop=stop,
            known=known & own[:, None],
            own=own,
        )


def turned(examples: Examples, deviation: float, generator: torch.Generator) -> Examples:
    """Examples [E] whose start frames are turned by normally distributed angles.

    Maps, masks and gold are drawn in the start frame, so all of them turn by that one angle, and nothing is resampled.
    """
    start = examples.start
    angle = deviation * torch.randn(len(examples), device=start.position.device, generator=generator)
    return replace(examples, start=Pose.level(start.xy, start.yaw + angle, FLIGHT_HEIGHT))
