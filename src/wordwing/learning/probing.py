"""A linear probe: how well landmarks can be named from image features, in `sim` and in the lab (Auxiliary Objectives).

L_percept trains a linear layer to name what stands at a place; it is not part of a saved policy. So another one is
fitted here, to features of the `sim` encoder on `sim` images. Applied to its features on lab images, and to those of
the lab's own encoder, it says how far apart the domains are and how much of that the lab's encoder makes up for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from wordwing.camera import Camera
from wordwing.frames import Pose
from wordwing.interface import Domain
from wordwing.lab.camera import LabCamera
from wordwing.model.mapping import VisibleGround, project
from wordwing.model.stage1 import Stage1
from wordwing.model.vision import STRIDE
from wordwing.sim.render import Renderer
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.world.layout import Layout

REACH = 3.0
"""Landmarks that are farther away are not asked for, metres."""


@dataclass(frozen=True)
class Sightings:
    """M landmarks whose place on the ground is in view, image by image; one may hide another."""

    image: Tensor
    """[M] int64, which image shows it."""
    kind: Tensor
    """[M] int64, its place in the catalogue."""
    pixel: Tensor
    """[M, 2] (u, v) of its centre on the ground."""
    distance: Tensor
    """[M] from below the drone to its centre, metres."""

    def __len__(self) -> int:
        return len(self.kind)


def sightings(layouts: Sequence[Layout], pose: Pose, camera: Camera, reach: float = REACH) -> Sightings:
    """The landmarks that images show.

    Args:
        layouts: Around each of N drones.
        pose: [N] of the drones, world frame.
        camera: Theirs.
        reach: How far away a landmark may be, metres.
    """
    packed = PackedLayouts.pack(layouts)
    ground = functional.pad(packed.place[..., :2], (0, 1))  # [N, K, 3], elevation zero: where the map has them
    pixels, in_front = camera.project(ground, camera.pose(pose)[:, None])
    distance = (ground[..., :2] - pose.xy[:, None]).norm(dim=-1)  # [N, K]
    exists = torch.arange(ground.shape[1]) < packed.count[:, None]
    shown = exists & in_front & camera.contains(pixels) & (distance <= reach)
    return Sightings(shown.nonzero()[:, 0], packed.landmark[shown], pixels[shown], distance[shown])


def take_images(layouts: Sequence[Layout], pose: Pose, domain: Domain, seed: int = 0) -> Tensor:
    """What N drones that stand still see from poses [N], world frame: [N, 72, 128, 3] uint8.

    Args:
        layouts: Around each of them; equal ones are built once in the lab.
        pose: Theirs.
        domain: Where they are.
        seed: Of the noise and the exposure of the lab's images, which `sim` does not have.
    """
    if domain == "sim":
        camera = Camera()
        return Renderer(SimScene.of(layouts), camera).first_person(camera.pose(pose))
    numbers: dict[Layout, list[int]] = {}
    for number, layout in enumerate(layouts):
        numbers.setdefault(layout, []).append(number)
    image = torch.empty(len(layouts), 72, 128, 3, dtype=torch.uint8)
    for layout, chosen in numbers.items():
        lab = LabCamera(layout, np.random.default_rng(seed))
        for number in chosen:
            lab.begin(np.random.default_rng([seed, number]))  # each image is of another flight
            here = pose[number : number + 1]
            image[number] = lab.take(here, here)
    return image


def features_at(image_features: Tensor, pixel: Tensor, camera: Camera) -> Tensor:
    """[M, C] features F^C [M, C, h, w] at pixels [M, 2], as they are laid on the ground."""
    inside = camera.contains(pixel)[:, None, None]
    sight = VisibleGround(pixel[:, None, None], inside, inside)
    return project(image_features, sight, STRIDE, camera)[..., 0, 0]


@torch.no_grad()
def see_landmarks(
    stage1: Stage1, image: Tensor, found: Sightings, domain: Domain, camera: Camera, batch: int = 64
) -> Tensor:
    """[M, C] features of landmarks by the vision encoder of a domain, which need not be the images' own.

    Args:
        stage1: Has the encoders.
        image: [N, 72, 128, 3] uint8.
        found: The landmarks in them, image by image.
        domain: Which encoder.
        camera: That took the images.
        batch: Images that are encoded together.
    """
    parts = []
    for begin in range(0, len(image), batch):
        features = stage1.encode_images(image[begin : begin + batch], domain)
        here = (found.image >= begin) & (found.image < begin + batch)
        parts.append(features_at(features[found.image[here] - begin], found.pixel[here], camera))
    return torch.cat(parts)


@dataclass(frozen=True)
class LinearProbe:
    """Multinomial logistic regression on standardised features."""

    mean: Tensor
    """[C] of the features that it was fitted to."""
    deviation: Tensor
    """[C] of the same."""
    weight: Tensor
    """[K, C]."""
    bias: Tensor
    """[K]."""
    kinds: Tensor
    """[K] int64, places in the catalogue: what it can name."""

    @classmethod
    def fit(cls, features: Tensor, kind: Tensor, decay: float = 1e-4) -> LinearProbe:
        """The likeliest one, which is unique.

        Args:
            features: [M, C].
            kind: [M] int64, places in the catalogue.
            decay: Times half the squared weights, added to the mean cross-entropy, nats. A tenth and ten times of it
                do no better on `sim` images that were left out.
        """
        kinds, label = kind.unique(return_inverse=True)
        features = features.double()
        mean, deviation = features.mean(0), features.std(0, correction=0).clamp(min=1e-6)
        inputs = (features - mean) / deviation
        weight = inputs.new_zeros(len(kinds), inputs.shape[1]).requires_grad_()
        bias = inputs.new_zeros(len(kinds)).requires_grad_()
        optimizer = torch.optim.LBFGS(
            [weight, bias], max_iter=2000, tolerance_grad=1e-6, tolerance_change=1e-12, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = functional.cross_entropy(inputs @ weight.mT + bias, label) + decay / 2 * weight.square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return cls(mean, deviation, weight.detach(), bias.detach(), kinds)

    def name(self, features: Tensor) -> Tensor:
        """[M] int64, the likeliest kinds of landmarks with features [M, C]."""
        inputs = (features.double() - self.mean) / self.deviation
        return self.kinds[(inputs @ self.weight.mT + self.bias).argmax(1)]
