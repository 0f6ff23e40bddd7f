"""Picture sheets: what landmarks and worlds look like to the drone and from above."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import PackedLayouts, Scene
from wordwing.world.catalogue import Landmark
from wordwing.world.layout import Layout, Placement

INK = (32, 32, 32)
PAPER = (250, 250, 248)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The typeface of every picture, embedded in Pillow, so that pictures are the same everywhere."""
    return ImageFont.load_default(size)


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
    sheet = Image.new(
        "RGB", (columns * (width + gap) + gap, head + rows * (height + text + gap)), PAPER
    )
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
    scene = Scene(len(layouts), torch.device("cpu"))
    scene.place(PackedLayouts.pack(layouts), torch.arange(len(layouts)))
    camera = Camera()
    pose = camera.pose(portrait_pose())
    poses = Pose(
        pose.position.expand(len(layouts), 3).contiguous(),
        pose.quaternion.expand(len(layouts), 4).contiguous(),
    )
    return Renderer(scene, camera, RenderConfig(shadows=True)).first_person(poses).numpy()


def layout_picture(layout: Layout, size: int = 720) -> Image.Image:
    """A layout from above, x up and y left, every landmark with its name."""
    scene = Scene(1, torch.device("cpu"))
    scene.place(PackedLayouts.pack([layout]), torch.arange(1))
    extent = 2 * ARENA_HALF + 0.3
    renderer = Renderer(scene, config=RenderConfig(shadows=True))
    picture = Image.fromarray(renderer.overhead(size, extent)[0].numpy())
    draw = ImageDraw.Draw(picture)
    for placement in layout.landmarks:
        x = size * (0.5 - placement.y / extent)
        y = size * (0.5 - placement.x / extent)
        draw.text(
            (x, y), placement.name, "white", font(15), anchor="mm", stroke_width=2, stroke_fill=INK
        )
    return picture
