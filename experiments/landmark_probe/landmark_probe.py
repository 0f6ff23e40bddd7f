"""How well a policy's vision encoders tell landmarks apart in `sim` and lab images; JSON lines for docs/experiments.md.

Usage: python experiments/landmark_probe/landmark_probe.py POLICY DATASET [--images N] [--seed N] [--sheet IMAGE]

POLICY is a folder, or the name of a policy that comes with wordwing, or NAME=POLICY; DATASET a folder of
`wordwing data build` with the `sim` demonstrations of its train and dev splits (`wordwing data demonstrate`). The layer
that L_percept trains is not part of a saved policy, so a linear layer learns to classify landmarks from the `sim`
encoder's features of `sim` images in train layouts. It is tested in dev layouts, on images of both domains from the
same poses, one of each of N demonstrations, without motion blur, and on landmarks up to 3 m away whose position on the
ground is in view. The lab is wordwing's stand-in for a real one. It takes two minutes on a CPU.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from PIL import Image, ImageDraw
from torch import Tensor
from torch.nn import functional

from wordwing.camera import Camera
from wordwing.data.dataset import Dataset
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.errors import WordwingError
from wordwing.evaluation.report.bootstrap import Resampling
from wordwing.evaluation.systems import split_name
from wordwing.execution.metrics import wilson
from wordwing.frames import Pose
from wordwing.interface import Domain
from wordwing.lab.camera import LabCamera
from wordwing.model.checkpoint import load_network
from wordwing.model.mapping import VisibleGround, project
from wordwing.model.stage1 import Stage1
from wordwing.model.vision import STRIDE
from wordwing.sim.render import Renderer
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.viz.drawing import BLUISH_GREEN, VERMILLION, font, save
from wordwing.viz.sheets import contact_sheet
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout

LOOKS: tuple[tuple[Domain, Domain], ...] = (("sim", "sim"), ("lab", "sim"), ("lab", "lab"))
"""Domains of image and encoder. The gap between the first two is what the third should close."""

REACH = 3.0
"""Landmarks that are farther away are not asked for, metres."""


NEAR = 1.5
"""Distance up to which landmarks are near, metres."""

SCALE, ROWS, BUSY = 3, 4, 3
"""Magnification of the sheet's images, number of poses, and the least number of landmarks in each."""


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


@dataclass(frozen=True)
class Views:
    """N poses from demonstrations, with their layouts and the landmarks in view."""

    names: list[str]
    """[N] of the layouts."""
    layouts: list[Layout]
    """[N]."""
    pose: Pose
    """[N] world frame."""
    found: Sightings


def main(
    policy: Annotated[str, tyro.conf.Positional],
    data: Annotated[Path, tyro.conf.Positional],
    /,
    count: Annotated[int, tyro.conf.arg(name="images")] = 1000,
    seed: int = 0,
    sheet: Path | None = None,
) -> None:
    """Fit in train layouts, test in dev layouts, print, and draw some of the images."""
    name, policy = split_name(policy)
    network, _vocabulary = load_network(policy)
    stage1, camera = network.eval().stage1, network.camera
    dataset = Dataset(data)
    train = views(dataset, "train", count, np.random.default_rng([seed, 0]), camera)
    image = take_images(train.layouts, train.pose, "sim")
    probe = LinearProbe.fit(see_landmarks(stage1, image, train.found, "sim", camera), train.found.kind)
    dev = views(dataset, "dev", count, np.random.default_rng([seed, 1]), camera)
    images = {domain: take_images(dev.layouts, dev.pose, domain, seed) for domain in ("sim", "lab")}
    named = [probe.name(see_landmarks(stage1, images[where], dev.found, encoder, camera)) for where, encoder in LOOKS]
    for row in rows(dev, named):
        print(json.dumps({"policy": name, **row}, ensure_ascii=False), flush=True)
    if sheet is not None:
        save(draw_sheet(dev, images, named), sheet)


def views(dataset: Dataset, split: str, count: int, rng: np.random.Generator, camera: Camera) -> Views:
    """One random pose from each of `count` random demonstrations."""
    flights = Demonstrations.load(dataset.folder / "demonstrations" / f"sim-{split}.npz", dataset)
    if not 1 <= count <= len(flights):
        raise WordwingError(f"{dataset.folder}: {count} images were requested of {len(flights)} {split} demonstrations")
    instructions = {entry.id: entry for entry in dataset.instructions(split)}
    chosen = rng.permutation(len(flights))[:count].tolist()
    pose = Pose.stack([flights.poses(index)[int(rng.integers(flights.decisions[index] + 1))] for index in chosen])
    flown = [instructions[flights.ids[index]] for index in chosen]
    layouts = [dataset.layout(entry.layout, entry.window) for entry in flown]
    return Views([entry.layout for entry in flown], layouts, pose, sightings(layouts, pose, camera))


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


def rows(dev: Views, named: list[Tensor]) -> list[dict]:
    """Accuracy on all, near and far landmarks."""
    found = dev.found
    home = np.array(dev.names)[found.image.numpy()]  # [M]
    right = {look: (names == found.kind).numpy() for look, names in zip(LOOKS, named, strict=True)}  # [M] each
    near = (found.distance <= NEAR).numpy()
    parts = {"all": near | ~near, f"up to {NEAR} m": near, f"beyond {NEAR} m": ~near}
    return [row(look, part, right, home, found, chosen) for look in LOOKS for part, chosen in parts.items()]


def row(
    look: tuple[Domain, Domain],
    part: str,
    right: dict[tuple[Domain, Domain], np.ndarray],
    home: np.ndarray,
    found: Sightings,
    chosen: np.ndarray,
) -> dict:
    """Accuracy of one combination of image and encoder on a part of the landmarks.

    Args:
        look: Domains of image and encoder.
        part: Name of the part.
        right: [M] bool, which landmarks each look named right.
        home: [M] names of their layouts.
        found: The landmarks.
        chosen: [M] bool, which of them belong to the part.
    """
    scores = {name: hits[chosen].astype(float) for name, hits in right.items()}
    hits, count = int(scores[look].sum()), int(chosen.sum())
    resampling = Resampling(home[chosen].tolist())
    by_layout = resampling.interval(scores[look], share=True)
    commonest = np.bincount(found.kind.numpy()[chosen], minlength=1).max()  # what naming all alike gets right
    made = {
        "images": look[0],
        "vision encoder": look[1],
        "distance": part,
        "landmarks, n": count,
        "named right, %": round(100 * hits / max(count, 1), 1),
        "95 %, Wilson": span(*wilson(hits, count)),
        "95 %, resampling layouts": span(by_layout.low, by_layout.high),
        "commonest kind, %": round(100 * int(commonest) / max(count, 1), 1),
    }
    if look == LOOKS[2]:
        closed = resampling.gap_closed(scores[look], average=scores[LOOKS[1]], oracle=scores[LOOKS[0]])
        made["gap closed, %"] = f"{percent(closed.mean)} ({span(closed.low, closed.high)})"
    return made


def span(low: float | None, high: float | None) -> str:
    """An interval of a share."""
    return f"{percent(low)}–{percent(high)}"


def percent(share: float | None) -> str:
    """A percentage, or ? if it is unknown."""
    return "?" if share is None else f"{100 * share:.1f}"


def draw_sheet(dev: Views, images: dict[str, Tensor], named: list[Tensor]) -> Image.Image:
    """The first poses in different layouts that show a few landmarks, and the name given to each."""
    chosen: dict[str, int] = {}
    for number, many in enumerate(dev.found.image.bincount(minlength=len(dev.names)) >= BUSY):
        if many and len(chosen) < ROWS:
            chosen.setdefault(dev.names[number], number)
    tiles, captions = [], []
    for number in chosen.values():
        for (where, encoder), names in zip(LOOKS, named, strict=True):
            tiles.append(labelled(images[where][number], number, dev.found, names))
            captions.append(f"{where} image, {encoder} encoder")
    title = f"Landmarks up to {REACH:.0f} m away, named by a linear layer fitted to sim images; the lab is a stand-in"
    return contact_sheet(tiles, captions, len(LOOKS), 1, title)


def labelled(image: Tensor, number: int, found: Sightings, named: Tensor) -> np.ndarray:
    """An image with names below its landmarks' feet, higher up where another one is in the way."""
    height, width = image.shape[0] * SCALE, image.shape[1] * SCALE
    tile = Image.fromarray(image.numpy()).resize((width, height), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(tile)
    face, line = font(15), 20
    taken: list[tuple[float, float, float]] = []  # middle and half width
    here = (found.image == number).nonzero()[:, 0].tolist()
    for index in sorted(here, key=lambda index: -float(found.pixel[index, 1])):
        right = bool(named[index] == found.kind[index])
        text = f"{catalogue()[int(named[index])].name} {'✓' if right else '✗'}"
        u, v = (SCALE * found.pixel[index]).tolist()
        half = draw.textlength(text, face) / 2 + 3
        x, y = min(max(u, half), width - half), v + line / 2 + 3
        if y > height - line / 2:
            y = v - line / 2 - 3
        while any(abs(x - a) < half + b and abs(y - c) < line for a, c, b in taken):
            y -= line / 2
        taken.append((x, y, half))
        colour = BLUISH_GREEN if right else VERMILLION
        draw.ellipse((u - 3, v - 3, u + 3, v + 3), colour, "white")
        draw.text((x, y), text, colour, face, anchor="mm", stroke_width=2, stroke_fill="white")
    return np.asarray(tile)


if __name__ == "__main__":
    tyro.cli(main)
