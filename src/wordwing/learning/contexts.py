"""Batches of contexts for Process A: E executions, K images of each, and all that is asked of them.

Every image makes a context: what has been seen so far, one more image, and the gold distributions masked by what has
been observed. A few images spread over the flight stand for all of them, since neighbours hardly differ; the map
between them is as if the camera had been slower.

Where ORACLE looked gives away where it was going. So some executions are not their instruction's own: the motion of
another instruction's flight, from this start, or a look around on the spot. Gold is that of the instruction. And a
network memorises what it has seen often, so instructions are paraphrased and mirrored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose, in_start_frame, start_frame
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.learning.executions import ExecutionSet
from wordwing.learning.paraphrases import Paraphrases
from wordwing.learning.recipes.limits import Images, Share
from wordwing.learning.training_data import Examples, ExampleSet
from wordwing.model.layers import each
from wordwing.model.text import UNKNOWN_WORD, Tokens
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import PackedLayouts, SimScene


def rotated(examples: Examples, deviation: float, generator: torch.Generator) -> Examples:
    """Examples [E] whose start frames are turned by normally distributed angles.

    Maps, masks and gold are drawn in the start frame, so all of them turn by that one angle, and nothing is resampled.
    """
    start = examples.start
    angle = deviation * torch.randn(len(examples), device=start.position.device, generator=generator)
    return replace(examples, start=Pose.level(start.xy, start.yaw + angle, FLIGHT_HEIGHT))


def with_unknown_words(tokens: Tokens, share: float, generator: torch.Generator) -> Tokens:
    """Instructions [E] of which a share of the words is unknown."""
    draw = torch.rand(tokens.words.shape, device=tokens.words.device, generator=generator)
    lost = (draw < share) & (tokens.words > UNKNOWN_WORD)
    rows = None if tokens.rows is None else tokens.rows.masked_fill(lost, 0)
    return Tokens(torch.where(lost, UNKNOWN_WORD, tokens.words), tokens.lengths, rows)


def mirrored_points(points: Tensor, which: Tensor) -> Tensor:
    """Points [E, ..., 2] (or 3) of the world, those of some executions [E] seen in a mirror along its x axis."""
    sign = _signs(which, points.ndim)
    return torch.cat([points[..., :1], points[..., 1:2] * sign, points[..., 2:]], dim=-1)


def mirrored_pose(pose: Pose, which: Tensor) -> Pose:
    """Poses [E, ...] of which some executions' [E] are seen in that mirror: a rotation R becomes M R M."""
    sign = _signs(which, pose.quaternion.ndim)
    w, x, y, z = pose.quaternion.split(1, dim=-1)
    return Pose(mirrored_points(pose.position, which), torch.cat([w, x * sign, y, z * sign], dim=-1))


def mirrored_image(image: Tensor, which: Tensor) -> Tensor:
    """Images [E, K, H, W, 3], those of some executions [E] with left and right exchanged."""
    return torch.where(which.view(-1, 1, 1, 1, 1), image.flip(-2), image)


def _signs(which: Tensor, ndim: int) -> Tensor:
    """[E, 1, ...] -1 where mirrored, else 1."""
    return torch.where(which, -1.0, 1.0).view(-1, *[1] * (ndim - 1))


CAGE_IMAGES = 2
"""Images of cage demonstrations for each execution of the cage in a batch."""


@dataclass(frozen=True)
class ContextConfig:
    """Which contexts a batch has."""

    images: Images = 8
    """Of each execution, K; the paper takes every one."""
    foreign_motions: Share = 0.4
    """Share of executions that are the motion of another instruction's flight."""
    look_arounds: Share = 0.1
    """Share that turn on the spot."""
    rotation: float = 0.5
    """Standard deviation by which the start heading, and with it every map, is turned, radians."""
    mirrored: Share = 0.0
    """Share of executions that are seen in a mirror, with the words for it."""
    word_dropout: Share = 0.0
    """Share of words that become the unknown word."""
    shares: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(description="numbers above 0")] = ()
    """Of the corpora among executions of any corpus, in their order; by default each instruction is as likely."""


@dataclass(frozen=True)
class Motions:
    """Where E drones look from while they follow E instructions, and what was decided there."""

    example: Tensor
    """[E] int64."""
    pose: Pose
    """[E, K] world frame."""
    setpoint: Tensor
    """[E, K, 2] forward m/s and yaw rate rad/s that ORACLE decided on; zero where it is not known."""
    stop: Tensor
    """[E, K] bool, it decided to STOP."""
    known: Tensor
    """[E, K] bool, whether it is known what ORACLE decided there: in batches, only in its own flights."""
    own: Tensor
    """[E] bool, the execution is that of its instruction."""


@dataclass(frozen=True)
class Contexts(Motions):
    """E executions of K images; those of `sim` come first, then those of the lab."""

    examples: Examples
    """[E], their start headings turned."""
    sim_image: Tensor
    """[E_sim, K, 72, 128, 3] uint8."""
    lab_image: Tensor
    """[E_lab, K, 72, 128, 3] uint8."""
    cage_image: Tensor
    """[A, 72, 128, 3] uint8, of `sim`: from demonstrations of the cage, as the lab's are, to compare features with."""
    landmark: Tensor
    """[E, 40] int64, catalogue index of what stands around."""
    place: Tensor
    """[E, 40, 2] where it stands, world frame, metres."""
    present: Tensor
    """[E, 40] bool, whether anything stands there."""
    clearing: Tensor
    """[E, 4, 2] places chosen at random, world frame, metres."""


class FlightCamera:
    """Renders what drones saw in `sim`: E worlds, K poses in each."""

    def __init__(self, executions: int, images: int, device: torch.device) -> None:
        self.shape = executions, images
        self.camera = Camera()
        self.scene = SimScene(executions * images, device)
        self.renderer = Renderer(self.scene, self.camera, RenderConfig())
        self._worlds = torch.arange(executions * images, device=device)

    def render(self, layouts: PackedLayouts, pose: Pose) -> Tensor:
        """[E, K, 72, 128, 3] uint8 from poses [E, K] in layouts [E]."""
        executions, images = self.shape
        self.scene.place(layouts.take(self._worlds // images), self._worlds)
        drone = Pose(pose.position.flatten(0, 1), pose.quaternion.flatten(0, 1))
        return self.renderer.first_person(self.camera.pose(drone)).unflatten(0, (executions, images))


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


def look_around(start: Pose, images: int, generator: torch.Generator) -> Pose:
    """[E, K] poses of drones that turn on the spot at starts [E], either way, by up to a full turn."""
    device = start.position.device
    angle = 2 * math.pi * (2 * torch.rand(len(start), 1, device=device, generator=generator) - 1)
    yaw = start.yaw[:, None] + angle * torch.linspace(0, 1, images, device=device)
    return Pose.level(start.xy[:, None].expand(-1, images, -1), yaw, FLIGHT_HEIGHT)


class ContextSource:
    """Draws batches: so many executions of any corpus, so many of the cage, so many of the lab."""

    def __init__(
        self,
        examples: ExampleSet,
        executions: ExecutionSet,
        lab: ExecutionSet | None,
        config: ContextConfig,
        sizes: tuple[int, int, int],
        paraphrases: Paraphrases | None = None,
    ) -> None:
        """Make batches from executions.

        Args:
            examples: Of `sim`.
            executions: Of the examples, as they are whenever a batch is drawn.
            lab: Flights of the lab; needed where the last size is not 0.
            config: What batches are like.
            sizes: Executions in a batch: any of `sim`, of the cage in `sim`, of the lab.
            paraphrases: Of the examples; needed where some are mirrored.
        """
        if config.mirrored and paraphrases is None:
            raise ValueError("a mirrored execution needs mirrored instructions")
        self.examples, self.executions, self.lab, self.config = examples, executions, lab, config
        self.sizes, self.paraphrases = sizes, paraphrases
        self.device = examples.device
        self.cage = examples.of("cage") if sizes[1] else None
        """[M] int64 examples of the cage, where they are needed."""
        self.cage_demonstrations = None if self.cage is None else executions[self.cage]
        """Of the cage, as they were in the beginning: what they show is like what the lab's show."""
        self.probabilities = example_probabilities(examples, config.shares) if config.shares else None
        """[N] of each example to be drawn, where corpora have shares."""
        self._camera = FlightCamera(sizes[0] + sizes[1], config.images, self.device)
        self._cage_camera = FlightCamera(CAGE_IMAGES * sizes[1], 1, self.device) if sizes[1] else None

    @torch.no_grad()
    def draw(self, generator: torch.Generator) -> Contexts:
        """A batch."""
        sim = motions = self.sample_motions(generator)
        layouts = self.examples.layouts.take(self.examples.examples.layout[sim.example])
        sim_image = self._camera.render(layouts, sim.pose)
        lab_image = sim_image[:0]
        cage_image = sim_image[:0, 0] if self._cage_camera is None else self.cage_images(self._cage_camera, generator)
        if self.lab is not None and self.sizes[2]:
            recorded, lab_image = self._sample_lab(self.lab, generator)
            motions = each(lambda *parts: torch.cat(parts), sim, recorded)
        flip = torch.rand(len(motions.example), device=self.device, generator=generator) < self.config.mirrored
        examples = self._augmented(motions.example, flip, generator)
        layouts = self.examples.layouts.take(examples.layout)
        slots = torch.arange(layouts.landmark.shape[1], device=self.device)
        places = (len(motions.example), 4, 2)
        return Contexts(
            example=motions.example,
            pose=mirrored_pose(motions.pose, flip),
            setpoint=mirrored_points(motions.setpoint, flip),  # a yaw rate changes its sign as a y does
            stop=motions.stop,
            known=motions.known & motions.own[:, None],
            own=motions.own,
            examples=rotated(examples, self.config.rotation, generator),
            sim_image=mirrored_image(sim_image, flip[: len(sim_image)]),
            lab_image=mirrored_image(lab_image, flip[len(sim_image) :]),
            cage_image=cage_image,
            landmark=layouts.landmark,
            place=mirrored_points(layouts.place[..., :2], flip),
            present=slots < layouts.count[:, None],
            clearing=ARENA_HALF * (2 * torch.rand(places, device=self.device, generator=generator) - 1),
        )

    def _augmented(self, index: Tensor, flip: Tensor, generator: torch.Generator) -> Examples:
        """Examples `index` [E] paraphrased, with unknown words, and mirrored where `flip` [E] is true."""
        examples = self.examples.examples[index]
        if self.paraphrases is not None:
            tokens, mentioned = self.paraphrases.draw(index, flip, generator)
            examples = replace(
                examples,
                tokens=tokens,
                mentioned=mentioned,
                start=mirrored_pose(examples.start, flip),
                points=mirrored_points(examples.points, flip),
            )
        if share := self.config.word_dropout:
            examples = replace(examples, tokens=with_unknown_words(examples.tokens, share, generator))
        return examples

    def sample_motions(self, generator: torch.Generator) -> Motions:
        """Of a batch's drones in `sim`: examples of any corpus, then of the cage."""
        if self.probabilities is None:
            index = torch.randint(len(self.examples), self.sizes[:1], device=self.device, generator=generator)
        else:
            index = self.probabilities.multinomial(self.sizes[0], replacement=True, generator=generator)
        if self.cage is not None:
            chosen = torch.randint(len(self.cage), self.sizes[1:2], device=self.device, generator=generator)
            index = torch.cat([index, self.cage[chosen]])
        return self.mix(index, self.executions.sample_frames(index, self.config.images, generator), generator)

    def cage_images(self, camera: FlightCamera, generator: torch.Generator) -> Tensor:
        """[n, 72, 128, 3] uint8 of `sim`, from anywhere in demonstrations of the cage, one from each of n."""
        cage = self.cage_demonstrations
        assert cage is not None
        assert cage.example is not None
        index, frame = cage.sample_poses(camera.shape[0], generator)
        layouts = self.examples.layouts.take(self.examples.examples.layout[cage.example[index]])
        return camera.render(layouts, cage.pose(index, frame))[:, 0]

    def mix(self, index: Tensor, frames: Tensor, generator: torch.Generator) -> Motions:
        """Examples `index` [E]: their own executions, motions of others among them, look-arounds.

        Args:
            index: [E] int64.
            frames: [E, K] int64, which poses to take of their own executions.
            generator: Of what is drawn.
        """
        config, executions, start = self.config, self.executions, self.examples.examples.start
        own = executions.pose(index, frames)
        other = index[torch.randperm(len(index), device=self.device, generator=generator)]
        elsewhere = executions.pose(other, executions.sample_frames(other, config.images, generator))
        foreign = transplant(elsewhere, start[other], start[index])
        around = look_around(start[index], config.images, generator)
        draw = torch.rand(len(index), 1, 1, device=self.device, generator=generator)
        theirs, turning = draw < config.foreign_motions, draw > 1 - config.look_arounds

        def mixed(own: Tensor, other: Tensor, around: Tensor) -> Tensor:
            return torch.where(theirs, other, torch.where(turning, around, own))

        pose = Pose(
            mixed(own.position, foreign.position, around.position),
            mixed(own.quaternion, foreign.quaternion, around.quaternion),
        )
        return Motions(index, pose, *executions.oracle_actions(index, frames), own=~(theirs | turning)[:, 0, 0])

    def _sample_lab(self, lab: ExecutionSet, generator: torch.Generator) -> tuple[Motions, Tensor]:
        """Executions of D^R as they were flown, and their images."""
        assert lab.example is not None
        index = torch.randint(len(lab), self.sizes[2:], device=self.device, generator=generator)
        frames = lab.sample_frames(index, self.config.images, generator)
        own = torch.ones_like(index, dtype=torch.bool)
        motions = Motions(lab.example[index], lab.pose(index, frames), *lab.oracle_actions(index, frames), own=own)
        return motions, lab.image(index, frames)


def example_probabilities(examples: ExampleSet, shares: Sequence[float]) -> Tensor:
    """[N] how likely each example is if its corpus has one of these shares and all of a corpus are alike."""
    count = examples.examples.corpus.bincount(minlength=len(shares))
    share = torch.tensor(shares, dtype=torch.float32, device=examples.device)
    return (share / share.sum() / count)[examples.examples.corpus]
