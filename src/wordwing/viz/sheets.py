"""Picture sheets: what landmarks and worlds look like to the drone and from above."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera
from wordwing.frames import Pose
from wordwing.lab.camera import LabCamera
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.drawing import INK, MAP_EXTENT, PAPER, font, map_pixels
from wordwing.world.assets import Look
from wordwing.world.catalogue import Corpus, Landmark
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout


def contact_sheet(
    pictures: Sequence[NDArray[np.uint8]],
    captions: Sequence[str],
    columns: int,
    scale: int = 2,
    title: str = "",
) -> Image.Image:
    """Lay pictures [H, W, 3] of one size out in rows, each over its caption."""
    height, width = pictures[0].shape[0] * scale, pictures[0].shape[1] * scale
    gap, text, head = 6, 20, 34 if title else 6
    rows = math.ceil(len(pictures) / columns)
    sheet = Image.new("RGB", (columns * (width + gap) + gap, head + rows * (height + text + gap)), PAPER)
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text((gap, 8), title, INK, font(18))
    for index, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        x = gap + index % columns * (width + gap)
        y = head + index // columns * (height + text + gap)
        tile = Image.fromarray(picture).resize((width, height), Image.Resampling.NEAREST)
        sheet.paste(tile, (x, y))
        draw.text((x + 2, y + height + 2), caption, INK, font(14))
    return sheet


def portrait_pose(distance: float = 1.5, height: float = 0.7) -> Pose:
    """A hovering drone that looks along +x at a landmark `distance` ahead of it at the origin; [1]."""
    return Pose.level(torch.tensor([[-distance, 0.0]]), torch.zeros(1), height)


def sim_portraits(landmarks: Sequence[Landmark], yaw: float = 2.5) -> NDArray[np.uint8]:
    """Each landmark alone, 1.5 m ahead of the drone's own camera, in its `sim` look: [L, 72, 128, 3]."""
    layouts = [Layout((Placement(entry.name, 0.0, 0.0, yaw),)) for entry in landmarks]
    scene = SimScene.of(layouts)
    camera = Camera()
    pose = camera.pose(portrait_pose())
    poses = Pose(
        pose.position.expand(len(layouts), 3).contiguous(),
        pose.quaternion.expand(len(layouts), 4).contiguous(),
    )
    return Renderer(scene, camera, RenderConfig(shadows=True)).first_person(poses).numpy()


def lab_portraits(landmarks: Sequence[Landmark], yaw: float = 2.5) -> Iterator[NDArray[np.uint8]]:
    """The same portraits in the `lab` look, [72, 128, 3] each, one after the other through the lab's camera."""
    pose = portrait_pose()
    for entry in landmarks:
        layout = Layout((Placement(entry.name, 0.0, 0.0, yaw),))
        yield LabCamera(layout, np.random.default_rng(entry.index)).take(pose, pose).numpy()


def landmark_sheet(landmarks: Sequence[Landmark], lab: Sequence[NDArray[np.uint8]], title: str) -> Image.Image:
    """Every landmark in both looks, side by side, the middle of the drone's picture."""
    pairs = zip(sim_portraits(landmarks), lab, strict=True)
    pictures = [np.concatenate([picture[4:68, 24:104] for picture in pair], axis=1) for pair in pairs]
    captions = [f"{entry.name}: {entry.nouns[0]}" for entry in landmarks]
    return contact_sheet(pictures, captions, columns=5, scale=2, title=title)


def frame_sheet(domain: Look, corpus: Corpus, count: int, seed: int) -> Image.Image:
    """What the drone sees at random poses in random layouts."""
    pictures = []
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        layout = sample_layout(corpus, rng)
        xy = rng.uniform(-1.8, 1.8, 2)
        while layout.inside(xy):
            xy = rng.uniform(-1.8, 1.8, 2)
        # Roughly towards the middle: a sheet of fences would show little.
        yaw = math.atan2(-xy[1], -xy[0]) + rng.uniform(-0.8, 0.8)
        pose = Pose.level(torch.tensor(xy[None]).float(), torch.tensor([yaw]).float(), 0.7)
        if domain == "sim":
            scene = SimScene.of([layout])
            pictures.append(Renderer(scene).first_person(Camera().pose(pose))[0].numpy())
        else:
            pictures.append(LabCamera(layout, rng).take(pose, pose).numpy())
    title = f"{domain}: what the drone sees in {count} random {corpus} layouts"
    return contact_sheet(pictures, [f"seed {seed}, {i}" for i in range(count)], 4, 2, title)


def layout_picture(layout: Layout, size: int = 720) -> Image.Image:
    """A layout from above, x up and y left, every landmark with its name."""
    renderer = Renderer(SimScene.of([layout]), config=RenderConfig(shadows=True))
    picture = Image.fromarray(renderer.overhead(size, MAP_EXTENT)[0].numpy())
    draw = ImageDraw.Draw(picture)
    for placement in layout.landmarks:
        x, y = map_pixels(np.array([placement.x, placement.y]), size)
        draw.text((x, y), placement.name, "white", font(15), anchor="mm", stroke_width=2, stroke_fill=INK)
    return picture
