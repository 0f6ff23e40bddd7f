"""Light and paint of the `sim` camera: Lambert's law on MuJoCo's normals, and materials as their file says."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from importlib.resources import files

import mujoco
import numpy as np
import pytest
import torch

import wordwing.sim.scene
from mujoco_oracle import mujoco_world
from pattern_sampler import pattern_at
from wordwing.camera import Camera
from wordwing.frames import Pose, quaternion_rotate
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.world.assets import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE, Asset, asset, materials
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout, Placement

CPU = torch.device("cpu")
DULL = RenderConfig(textures=False)
MATERIALS = ET.fromstring((files("wordwing.world") / "landmarks" / "materials.xml").read_text()).find("asset")
assert MATERIALS is not None
SPECULAR = {tag.get("name") for tag in MATERIALS.iter("material") if tag.get("specular")}
GLOWING = {tag.get("name") for tag in MATERIALS.iter("material") if tag.get("emission")}


def scene_of(layouts: list[Layout]) -> SimScene:
    return SimScene.of(layouts)


def sun_of(config: RenderConfig) -> np.ndarray:
    """[3] towards the sun: azimuth counter-clockwise from world x, elevation above the horizon."""
    azimuth, elevation = np.radians([config.sun_azimuth_deg, config.sun_elevation_deg])
    return np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])


@dataclass
class Sight:
    """Worlds of one landmark each, a camera before each, and what MuJoCo's rays meet: P pixels in all worlds."""

    layouts: list[Layout]
    poses: Pose
    world: np.ndarray
    pixel: np.ndarray
    """[P] which world and which pixel of its image."""
    point: np.ndarray
    normal: np.ndarray
    ray: np.ndarray
    """[P, 3] where the landmark is hit, its normal there and the ray's direction, world frame."""
    geom: np.ndarray
    """[P] which geom of the landmark is hit."""

    def colours(self, config: RenderConfig) -> np.ndarray:
        """[P, 3] what the `sim` camera draws there, levels of 255."""
        images = Renderer(scene_of(self.layouts), Camera(), config).first_person(self.poses)
        return images.reshape(len(self.layouts), -1, 3).numpy()[self.world, self.pixel].astype(float)

    def of_geoms(self, values: list[np.ndarray]) -> np.ndarray:
        """A property of every world's geoms at the pixels: [P, ...]."""
        starts = np.cumsum([0, *map(len, values[:-1])])
        return np.concatenate(values)[starts[self.world] + self.geom]

    def light(self, sun: np.ndarray) -> np.ndarray:
        """[P, 3] what Lambert's law and a sky that is brighter above can make use of."""
        facing = np.maximum(self.normal @ sun, 0.0)
        return np.stack([np.ones(len(facing)), self.normal[:, 2], facing], axis=-1)


def look(layouts: list[Layout], poses: Pose) -> Sight:
    rays = Camera().rays().reshape(1, -1, 3)
    rays = quaternion_rotate(poses.quaternion[:, None], rays / rays.norm(dim=-1, keepdim=True)).double().numpy()
    rows = []
    for world, layout in enumerate(layouts):
        model = mujoco_world(layout)
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        count, origin = len(rays[world]), poses.position[world].double().numpy()
        geom, distance, normal = np.zeros(count, np.int32), np.zeros(count), np.zeros((count, 3))
        mujoco.mj_multiRay(
            model, data, origin, rays[world].ravel(), None, True, -1, geom, distance, normal.ravel(), count, 1e9
        )
        # Whoever looks from inside sees the inner side.
        inner = (normal * rays[world]).sum(axis=-1, keepdims=True) > 0
        normal = np.where(inner, -normal, normal)
        point = origin + distance[:, None] * rays[world]
        on = np.flatnonzero(geom > 0)
        rows.append((np.full(len(on), world), on, point[on], normal[on], rays[world][on], geom[on] - 1))
    return Sight(layouts, poses, *(np.concatenate(column) for column in zip(*rows, strict=True)))


@dataclass
class Views:
    """All landmarks of the catalogue, anyhow turned, from anywhere around."""

    sight: Sight
    base: np.ndarray
    kind: np.ndarray
    material: np.ndarray
    """[P, 3] colours, [P] geom kinds and [P] names of materials at the pixels."""

    @property
    def matt(self) -> np.ndarray:
        return ~np.isin(self.material, [*SPECULAR, *GLOWING])


@pytest.fixture(scope="module")
def views() -> Views:
    rng = np.random.default_rng(1)
    layouts = []
    for entry in catalogue():
        x, y, yaw, elevation = map(float, rng.uniform([-0.5, -0.5, -3.1, 0.0], [0.5, 0.5, 3.1, 0.3]))
        layouts.append(Layout((Placement(entry.name, x, y, yaw, elevation),)))
    heading = torch.from_numpy(rng.uniform(-np.pi, np.pi, len(layouts))).float()
    away = torch.stack([heading.cos(), heading.sin()], dim=-1)
    centres = torch.tensor([(layout.landmarks[0].x, layout.landmarks[0].y) for layout in layouts])
    heights = torch.from_numpy(rng.uniform(0.4, 1.2, len(layouts))).float()
    sight = look(layouts, Camera().pose(Pose.level(centres - away, heading, heights)))
    bodies = [asset(entry.name) for entry in catalogue()]
    names = np.array([material.name for material in materials()])
    return Views(
        sight,
        sight.of_geoms([body.rgb for body in bodies]),
        sight.of_geoms([body.kind for body in bodies]),
        sight.of_geoms([names[body.material] for body in bodies]),
    )


@pytest.fixture(scope="module")
def light(views: Views) -> np.ndarray:
    """[3, 3] for each channel the sky's light, how much brighter it is above, and the sun's, from matt pixels."""
    colours, terms = views.sight.colours(DULL), views.sight.light(sun_of(DULL))
    found = []
    for channel in range(3):
        ok = views.matt & (colours[:, channel] < 254)
        paint = 255 * views.base[ok, channel, None]
        found.append(np.linalg.lstsq(paint * terms[ok], colours[ok, channel], rcond=None)[0])
    return np.array(found)


def lambert(views: Views, light: np.ndarray, sun: np.ndarray) -> np.ndarray:
    """[P, 3] levels that a matt surface would have."""
    return np.clip(255 * views.base * (views.sight.light(sun) @ light.T), 0, 255)


def test_matt_surfaces_of_every_shape_obey_lamberts_law_whatever_the_landmarks_yaw(views, light):
    assert (light[:, 0] > 0.4).all()
    assert (light[:, 1] > 0.1).all()
    assert (light[:, 2] > 0.25).all()
    off = np.abs(views.sight.colours(DULL) - lambert(views, light, sun_of(DULL))).max(axis=-1)
    for kind in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX):
        which = views.matt & (views.kind == kind)
        assert which.sum() > 1000
        assert (off[which] < 1.1).mean() > 0.997, kind


@pytest.mark.parametrize(("azimuth", "elevation"), [(-120.0, 30.0), (150.0, 80.0), (80.0, 10.0)])
def test_the_same_light_from_elsewhere_falls_by_the_same_law(views, light, azimuth, elevation):
    config = replace(DULL, sun_azimuth_deg=azimuth, sun_elevation_deg=elevation)
    off = np.abs(views.sight.colours(config) - lambert(views, light, sun_of(config))).max(axis=-1)
    assert (off[views.matt] < 1.1).mean() > 0.997


def test_a_round_landmark_is_brightest_on_the_side_of_the_sun_whatever_its_yaw():
    """All round a pumpkin, one image from the sun's side and one from the other."""
    for yaw in (-2.0, 0.0, 0.9):
        for azimuth in (0.0, 90.0, -135.0):
            towards = np.radians([azimuth + 180.0, azimuth])  # looking away from the sun, and into it
            xy = -1.2 * np.stack([np.cos(towards), np.sin(towards)], axis=-1)
            poses = Camera().pose(Pose.level(torch.from_numpy(xy).float(), torch.from_numpy(towards).float(), 0.5))
            sight = look([Layout((Placement("Pumpkin", 0.0, 0.0, yaw),))] * 2, poses)
            config = replace(DULL, sun_azimuth_deg=azimuth, sun_elevation_deg=20.0)
            brightness = sight.colours(config).sum(axis=-1)
            lit, dark = (brightness[sight.world == world].mean() for world in (0, 1))
            assert lit > 1.15 * dark


def test_from_inside_a_landmark_its_inner_walls_are_lit(light):
    layout = Layout((Placement("Fridge", 0.0, 0.0, 0.6),))
    poses = Pose.level(torch.zeros(4, 2), torch.arange(4) * 1.5, 0.5)
    sight = look([layout] * 4, poses)
    assert (sight.geom == 0).mean() > 0.3
    body = asset("Fridge")
    inside = Views(sight, body.rgb[sight.geom], body.kind[sight.geom], np.full(len(sight.geom), "plain"))
    off = np.abs(sight.colours(DULL) - lambert(inside, light, sun_of(DULL))).max(axis=-1)
    assert (off[sight.geom == 0] < 1.1).mean() > 0.99


def test_what_glows_shows_its_own_colour_whatever_the_light(views):
    which = np.isin(views.material, list(GLOWING))
    assert which.sum() > 500
    own = np.floor(255 * views.base[which] + 0.5)
    for config in (
        RenderConfig(),
        RenderConfig(textures=False, sun_azimuth_deg=-100.0, sun_elevation_deg=5.0),
        RenderConfig(shadows=True, sun_azimuth_deg=170.0, sun_elevation_deg=40.0),
    ):
        same = np.abs(views.sight.colours(config)[which] - own).max(axis=-1) <= 1
        assert same.mean() > 0.99


def glint(views: Views, light: np.ndarray, config: RenderConfig) -> tuple[np.ndarray, np.ndarray]:
    """How much brighter [P, 3] than matt pixels are, and how nearly [P] they mirror the sun, a cosine.

    Where a channel has no room for a highlight the first is NaN.
    """
    sun = sun_of(config)
    half = sun - views.sight.ray
    mirrors = (half * views.sight.normal).sum(axis=-1) / np.linalg.norm(half, axis=-1)
    matt = lambert(views, light, sun)
    return np.where(matt < 135, views.sight.colours(config) - matt, np.nan), mirrors


def test_only_glossy_and_metal_surfaces_glint_and_only_where_they_mirror_the_sun(views, light):
    """That matt ones do not is Lambert's law above."""
    assert {"glossy", "metal"} == SPECULAR
    brightest: dict[str, list[np.ndarray]] = {"glossy": [], "metal": []}
    for azimuth in range(-180, 180, 45):
        config = replace(DULL, sun_elevation_deg=30.0, sun_azimuth_deg=azimuth)
        more, mirrors = glint(views, light, config)
        for name, found in brightest.items():
            shiny = views.material == name
            dull = np.abs(more[shiny & (mirrors < 0.7)])
            assert (dull[np.isfinite(dull)] < 2).mean() > 0.99
            found.append(more[shiny & (mirrors > 0.985)])
    for name, specular in (("glossy", 0.9), ("metal", 0.7)):
        found = np.concatenate(brightest[name])
        assert np.isfinite(found).all(axis=-1).sum() > 20
        # A highlight is white, and the shinier the brighter: half of `specular` at its brightest.
        assert np.nanmedian(np.ptp(found, axis=-1)) < 2
        assert 0.35 * specular * 255 < np.nanmedian(found) < 0.5 * specular * 255


def test_what_mujocos_rays_find_in_shadow_is_lit_by_the_sky_alone(views, light):
    config = replace(DULL, shadows=True, sun_elevation_deg=35.0)
    sun, sight = sun_of(config), views.sight
    rng = np.random.default_rng(0)
    drawn, without = sight.colours(config), sight.colours(replace(config, shadows=False))
    sky_only = np.clip(255 * views.base * (sight.light(sun)[:, :2] @ light[:, :2].T), 0, 255)
    agree, shaded, geom = [], 0, np.zeros(1, np.int32)
    for world in range(0, len(sight.layouts), 4):
        model = mujoco_world(sight.layouts[world])
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        away = (sight.world == world) & (sight.normal @ sun > 0.02) & (views.material != "glow")
        for p in rng.choice(np.flatnonzero(away), 40):
            start = sight.point[p] + 1e-3 * sight.normal[p]
            blocked = mujoco.mj_ray(model, data, start, sun, None, True, -1, geom) >= 0
            agree.append(np.abs(drawn[p] - (sky_only[p] if blocked else without[p])).max() < 2)
            shaded += blocked
    assert shaded > 50
    assert np.mean(agree) > 0.98


def test_the_fences_are_lit_as_landmarks_are(light):
    from wordwing.world.fences import FENCES

    yaws = torch.tensor([0.0, -np.pi / 2, np.pi, np.pi / 2])
    poses = Camera().pose(Pose.level(torch.zeros(4, 2), yaws, 0.7))
    middles = torch.tensor([[2.35, 0.0, 0.15], [0.0, -2.35, 0.15], [-2.35, 0.0, 0.15], [0.0, 2.35, 0.15]])
    pixels, _ = Camera().project(middles, poses)
    for config in (DULL, replace(DULL, sun_azimuth_deg=-100.0, sun_elevation_deg=20.0)):
        images = Renderer(scene_of([Layout(())] * 4), Camera(), config).first_person(poses)
        for image, (u, v), fence, middle in zip(images, pixels.tolist(), FENCES, middles.tolist(), strict=True):
            facing = max(float(-np.array([*middle[:2], 0.0]) / 2.35 @ sun_of(config)), 0.0)
            expected = np.clip(255 * np.array(fence.rgb) * (light[:, 0] + light[:, 2] * facing), 0, 255)
            assert np.abs(image[int(v), int(u)].numpy() - expected).max() < 2, fence.colour


def test_the_overhead_map_has_red_on_top_white_right_blue_at_the_bottom_and_yellow_left():
    image = Renderer(scene_of([Layout(())])).overhead(size=500, extent=5.0)[0].int()
    line = round(500 * (0.5 - 2.38 / 5.0))  # the middle of the fences' tops, 6 cm wide
    along = slice(40, 460)
    for edge, name in (
        (image[line, along], "red"),
        (image[along, 499 - line], "white"),
        (image[499 - line, along], "blue"),
        (image[along, line], "yellow"),
    ):
        red, green, blue = edge.unbind(-1)
        looks = {
            "red": (red > 2 * green) & (red > 2 * blue) & (red > 120),
            "white": (edge.amin(-1) > 150) & (edge.amax(-1) - edge.amin(-1) < 30),
            "blue": (blue > 2 * red) & (blue > 2 * green) & (blue > 120),
            "yellow": (red > 2 * blue) & (green > 2 * blue) & (red > 150),
        }
        assert looks[name].all(), name


def canvas(kind: int, size: tuple[float, float, float], material: str, rgb: tuple[float, float, float]) -> Asset:
    """A landmark of one geom, half a metre up."""
    index = [entry.name for entry in materials()].index(material)
    return Asset(
        name=material,
        kind=np.array([kind], np.int32),
        position=np.array([[0.0, 0.0, 0.5]]),
        quaternion=np.array([[1.0, 0.0, 0.0, 0.0]]),
        size=np.array([size]),
        rgb=np.array([rgb]),
        material=np.array([index], np.int32),
    )


def instead_of_the_catalogue(monkeypatch: pytest.MonkeyPatch, assets: list[Asset]) -> list[str]:
    """Scenes made from now on show these bodies; returns the names that they go by."""
    names = [entry.name for entry in catalogue()]
    bodies = dict(zip(names, assets, strict=False))
    monkeypatch.setattr(wordwing.sim.scene, "asset", lambda name: bodies.get(name, assets[-1]))
    monkeypatch.setattr(wordwing.sim.scene, "catalogue_on", wordwing.sim.scene.catalogue_on.__wrapped__)
    return names[: len(assets)]


PATTERNED = {tag.get("name"): tag for tag in MATERIALS.iter("material") if tag.get("texture")}
TEXTURES = {tag.get("name"): tag for tag in MATERIALS.iter("texture")}
ABSOLUTE = ("bands", "checker", "spots")  # as materials.xml says


def numbers(tag: ET.Element, key: str) -> np.ndarray:
    return np.array([float(word) for word in tag.get(key, "").split()])


def second_of(material: str, rgb: np.ndarray) -> np.ndarray:
    """The second colour of a geom that is painted `rgb`."""
    pattern = PATTERNED[material].get("texture")
    second = numbers(TEXTURES[pattern], "rgb2")
    return second if pattern in ABSOLUTE else second * rgb


def amounts(textured: np.ndarray, plain: np.ndarray, rgb: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[..., 3] how much of the second colour pixels show, by each channel; NaN where the two colours are alike."""
    full = plain * (second / rgb - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(full) > 25, (textured - plain) / full, np.nan)


def test_every_material_shows_its_pattern_in_its_two_colours_at_its_repeats_a_metre(monkeypatch):
    rgb, yaw = (0.62, 0.3, 0.5), 0.4
    boards = [canvas(BOX, (1.2, 1.2, 0.01), name, rgb) for name in PATTERNED]
    names = instead_of_the_catalogue(monkeypatch, boards)
    scene = scene_of([Layout((Placement(name, 0.0, 0.0, yaw),)) for name in names])
    textured, plain = (
        Renderer(scene, config=RenderConfig(textures=drawn, sun_elevation_deg=5.0))
        .overhead(300, 1.5, samples=1)
        .double()
        .numpy()
        for drawn in (True, False)
    )
    middle = 1.5 * (0.5 - (np.arange(300) + 0.5) / 300)
    x, y = np.meshgrid(middle, middle, indexing="ij")  # x up, y left
    along, across = np.cos(yaw) * x + np.sin(yaw) * y, np.cos(yaw) * y - np.sin(yaw) * x
    for image, flat, (name, tag) in zip(textured, plain, PATTERNED.items(), strict=True):
        shown = amounts(image, flat, np.array(rgb), second_of(name, np.array(rgb)))
        repeat = numbers(tag, "texrepeat")
        expected = pattern_at(tag.get("texture"), along * repeat[0], across * repeat[1])
        assert np.isfinite(shown[0, 0]).sum() >= 2, name
        off = np.nanmax(np.abs(shown - expected[..., None]), axis=-1)
        assert (off < 0.05).mean() > 0.99, name


def test_from_far_away_a_pattern_fades_into_one_tone_between_its_colours(monkeypatch):
    rgb = np.array([0.62, 0.3, 0.5])
    boards = [canvas(BOX, (2.2, 2.2, 0.01), name, tuple(rgb)) for name in PATTERNED]
    names = instead_of_the_catalogue(monkeypatch, boards)
    scene = scene_of([Layout((Placement(name, 0.0, 0.0),)) for name in names])
    textured, plain = (
        Renderer(scene, config=RenderConfig(textures=drawn, sun_elevation_deg=5.0))
        .overhead(8, 4.0, samples=1)
        .double()
        .numpy()
        for drawn in (True, False)
    )
    for image, flat, name in zip(textured, plain, PATTERNED, strict=True):
        shown = amounts(image, flat, rgb, second_of(name, rgb))
        assert np.nanmin(shown) > 0.2, name
        assert np.nanmax(shown) < 0.8, name
        assert np.nanmax(np.ptp(shown, axis=(0, 1))) < 0.1, name


def test_a_shadow_takes_the_highlight_away(monkeypatch):
    """Glossy and matt balls look alike under a roof."""
    balls = [canvas(SPHERE, (0.3, 0.0, 0.0), material, (0.4, 0.1, 0.1)) for material in ("glossy", "plain")]
    glossy, matt, roof = instead_of_the_catalogue(
        monkeypatch, [*balls, canvas(BOX, (1.2, 1.2, 0.01), "plain", (0.5, 0.5, 0.5))]
    )
    scene = scene_of(
        [Layout((Placement(ball, 0.0, 0.0), Placement(roof, 0.0, 0.0, elevation=0.8))) for ball in (glossy, matt)]
    )
    poses = Camera().pose(Pose.level(torch.tensor([[-1.0, 0.0]] * 2), torch.zeros(2), 0.7))
    config = RenderConfig(textures=False, sun_azimuth_deg=180.0, sun_elevation_deg=60.0)
    shiny, dull = Renderer(scene, Camera(), config).first_person(poses).int()
    assert (shiny - dull).max() > 60
    shiny, dull = Renderer(scene, Camera(), replace(config, shadows=True)).first_person(poses)
    assert torch.equal(shiny, dull)


@dataclass
class Around:
    """A round body seen from all sides."""

    angle: np.ndarray
    height: np.ndarray
    """[P] where pixels lie on it, radians and metres above its middle."""
    amount: np.ndarray
    """[P] of the second colour."""


def walk_around(monkeypatch: pytest.MonkeyPatch, body: Asset) -> Around:
    [name] = instead_of_the_catalogue(monkeypatch, [body])
    monkeypatch.setattr("mujoco_oracle.asset", lambda name: body)
    sides, yaw = 12, 0.7
    heading = torch.arange(sides) * 2 * np.pi / sides
    xy = -0.9 * torch.stack([heading.cos(), heading.sin()], dim=-1)
    layout = Layout((Placement(name, 0.0, 0.0, yaw),))
    sight = look([layout] * sides, Camera().pose(Pose.level(xy, heading, 0.7)))
    flat = np.abs(sight.normal[:, 2]) < 0.3  # the upright part
    high = RenderConfig(sun_elevation_deg=80.0)  # or white would be too bright to measure
    textured, plain = sight.colours(high)[flat], sight.colours(replace(high, textures=False))[flat]
    shown = amounts(textured, plain, body.rgb[0], second_of(body.name, body.rgb[0]))
    point = sight.point[flat]
    return Around(np.arctan2(point[:, 1], point[:, 0]) - yaw, point[:, 2] - 0.5, np.nanmean(shown, axis=-1))


@pytest.mark.parametrize(
    ("kind", "size", "girth"),
    [
        (CYLINDER, (0.3, 0.3, 0.0), 0.6 * np.pi),
        (CAPSULE, (0.25, 0.2, 0.0), 0.5 * np.pi),
        (ELLIPSOID, (0.25, 0.3, 0.4), 0.55 * np.pi),
        (SPHERE, (0.28, 0.0, 0.0), 0.56 * np.pi),
        (CYLINDER, (0.02, 0.4, 0.0), 0.04 * np.pi),
    ],
)
def test_ribs_go_a_whole_number_of_times_around_a_round_body(monkeypatch, kind, size, girth):
    around = walk_around(monkeypatch, canvas(kind, size, "ribs", (0.6, 0.6, 0.6)))
    assert len(around.angle) > 1000

    def explained(waves: int) -> float:
        terms = np.stack([np.cos(waves * around.angle), np.sin(waves * around.angle), around.angle**0], axis=-1)
        rest = around.amount - terms @ np.linalg.lstsq(terms, around.amount, rcond=None)[0]
        return 1 - rest.var() / around.amount.var()

    share = {waves: explained(waves) for waves in range(1, 50)}
    assert max(share, key=share.__getitem__) == round(14 * girth)  # ribs are 14 a metre
    assert max(share.values()) > 0.95


def test_bands_climb_a_round_body_four_a_metre(monkeypatch):
    around = walk_around(monkeypatch, canvas(CYLINDER, (0.2, 0.49, 0.0), "bands", (0.6, 0.1, 0.1)))
    band = np.floor(around.height / 0.125).astype(int)  # half a repeat each
    inside = np.abs(around.height / 0.125 - band - 0.5) < 0.45
    tones = [around.amount[inside & (band == number)] for number in range(-3, 2)]
    assert max(np.ptp(tone) for tone in tones) < 0.05
    assert np.abs(np.diff([tone.mean() for tone in tones])) == pytest.approx(1.0, abs=0.03)
