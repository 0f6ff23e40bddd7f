"""How fast the simulator is, beside MuJoCo's renderers on the same scenes."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp

from wordwing.bench import rate_of, report
from wordwing.camera import Camera
from wordwing.devices import device_title, find_device
from wordwing.errors import WordwingError
from wordwing.frames import Pose, quaternion_multiply
from wordwing.interface import Setpoint
from wordwing.lab.scene import CAMERA_AXES
from wordwing.sim.launch import warp_device
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.simulator import Simulator
from wordwing.world.assets import asset, rotation_matrix
from wordwing.world.catalogue import catalogue, landmark
from wordwing.world.layout import Layout, Placement


def bench_sim(worlds: int, landmarks: int, device_name: str, seconds: float, compare: bool, seed: int) -> None:
    """Print one JSON line for each figure; see `wordwing bench sim --help`."""
    device = find_device(device_name)
    worlds = worlds or (1024 if device.type == "cuda" else 16)
    if not 1 <= landmarks <= 40:
        raise WordwingError(f"--landmarks is {landmarks}; a world holds 1 to 40")
    if worlds < 1:
        raise WordwingError(f"--worlds is {worlds}; at least one is needed")
    torch.set_num_threads(1)  # a core's worth of CPU; Warp's CPU kernels use one anyway
    rng = np.random.default_rng(seed)
    layouts = [crowded_layout(landmarks, rng) for _world in range(worlds)]
    xy, yaw = rng.uniform(-1.9, 1.9, (worlds, 2)), rng.uniform(-np.pi, np.pi, worlds)
    poses = Pose.level(torch.tensor(xy).float(), torch.tensor(yaw).float())
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
    simulator = Simulator(worlds, device)
    simulator.reset(layouts, poses)
    geoms = np.mean([len(asset(p.name)) for layout in layouts for p in layout.landmarks])
    scene = {
        "worlds": worlds,
        "landmarks": landmarks,
        "geoms_per_landmark": round(float(geoms), 1),
        "catalogue": len(catalogue()),
        "width": simulator.camera.config.width,
        "height": simulator.camera.config.height,
        "device": device_title(device),
    }
    camera_pose = simulator.camera.pose(simulator.pose)

    def say(figure: str, value: float, **conditions: Any) -> None:
        report(figure, round(value, 2), **conditions, **scene)

    ours = {}
    for textures, shadows in ((False, False), (True, False), (True, True)):
        renderer = Renderer(simulator.scene, simulator.camera, RenderConfig(textures, shadows))
        rate = worlds * rate_of(partial(renderer.first_person, camera_pose), seconds, device)
        ours[textures, shadows] = rate
        say("frames/s", rate, renderer="wordwing", textures=textures, shadows=shadows)
    for safety, note in ((False, "dynamics and rendering"), (True, "safety, dynamics and rendering")):
        rate = worlds * rate_of(_stepper(simulator, rng, safety), seconds, device)
        say("environment steps/s", rate, textures=True, shadows=False, note=note)
    if device.type == "cuda":
        say("GPU memory, GiB", (free - torch.cuda.mem_get_info(device)[0]) / 2**30)
    if not compare:
        return
    for shadows in (False, True):
        other = WarpRenderer(layouts, camera_pose, simulator.camera, shadows, device)
        rate = worlds * rate_of(other.draw, seconds, device)
        say("frames/s", rate, renderer="mujoco_warp", textures=False, shadows=shadows)
        say("ratio to mujoco_warp", ours[True, shadows] / rate, shadows=shadows, note="ours textured, theirs not")
    _bench_gl(layouts[0], camera_pose[:1], simulator.camera, seconds, ours[True, True], say)


def crowded_layout(count: int, rng: np.random.Generator) -> Layout:
    """`count` different landmarks of the catalogue at random places; they may overlap."""
    chosen = rng.choice(len(catalogue()), count, replace=False)
    places = (map(float, rng.uniform([-2.1, -2.1, -3.1], [2.1, 2.1, 3.1])) for _landmark in chosen)
    return Layout(tuple(Placement(catalogue()[i].name, *place) for i, place in zip(chosen, places, strict=True)))


def _stepper(simulator: Simulator, rng: np.random.Generator, safety: bool) -> Callable[[], object]:
    forward = torch.tensor(rng.uniform(0.0, 0.2, simulator.num_worlds)).float().to(simulator.device)
    yaw_rate = torch.tensor(rng.uniform(-1.0, 1.0, simulator.num_worlds)).float().to(simulator.device)

    def step() -> object:
        simulator.step(Setpoint(forward, yaw_rate), safety=safety)
        return simulator.observe()

    return step


class WarpRenderer:
    """MuJoCo Warp's renderer on the same worlds.

    It shares one model between all worlds, so the model holds the whole catalogue, and each world parks the
    landmarks that it does not use far below the floor.
    """

    def __init__(
        self,
        layouts: list[Layout],
        poses: Pose,
        camera: Camera,
        shadows: bool,
        device: torch.device,
    ) -> None:
        self._device = warp_device(device)
        spec = mujoco.MjSpec()
        spec.stat.extent = 6.0
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[20, 20, 0.1], rgba=[0.3, 0.5, 0.2, 1])
        spec.worldbody.add_light(type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, dir=[-0.5, -0.4, -1])
        spec.worldbody.add_camera(name="drone", fovy=camera.vertical_fov_deg)
        bodies = [asset(entry.name) for entry in catalogue()]
        for body in bodies:
            for kind, size, rgb in zip(body.kind, body.size, body.rgb, strict=True):
                spec.worldbody.add_geom(type=int(kind), size=size, rgba=[*rgb, 1])
        model = spec.compile()
        place, turn = _geom_poses(layouts, model.ngeom)
        axes = CAMERA_AXES.to(poses.quaternion)
        gaze = _matrices(quaternion_multiply(poses.quaternion, axes).cpu().double().numpy())[:, None]
        given = {
            "geom_xpos": place,
            "geom_xmat": turn,
            "cam_xpos": poses.position.cpu().numpy()[:, None].astype(np.float32),
            "cam_xmat": gaze,
            "light_xdir": np.tile(np.array([-0.42, -0.34, -0.84], np.float32), (len(layouts), 1, 1)),
        }
        with wp.ScopedDevice(self._device):
            self._model = mjw.put_model(model)
            self._data = mjw.make_data(model, nworld=len(layouts))
            self._context = mjw.create_render_context(
                model,
                nworld=len(layouts),
                cam_res=(camera.config.width, camera.config.height),
                render_rgb=True,
                render_depth=False,
                use_textures=False,
                use_shadows=shadows,
            )
            for name, values in given.items():
                getattr(self._data, name).assign(values)
            mjw.refit_bvh(self._model, self._data, self._context)

    def draw(self) -> None:
        """Draw all worlds once."""
        with wp.ScopedDevice(self._device):
            mjw.render(self._model, self._data, self._context)


def _geom_poses(layouts: list[Layout], count: int) -> tuple[np.ndarray, np.ndarray]:
    """World poses of every geom in every world: [N, count, 3] and [N, count, 3, 3]; geom 0 is the floor."""
    bodies = [asset(entry.name) for entry in catalogue()]
    first = 1 + np.cumsum([0, *[len(body) for body in bodies]])
    local = [_matrices(body.quaternion) for body in bodies]
    place = np.zeros((len(layouts), count, 3), np.float32)
    turn = np.tile(np.eye(3, dtype=np.float32), (len(layouts), count, 1, 1))
    for index, body in enumerate(bodies):
        place[:, first[index] : first[index + 1]] = body.position - [0, 0, 10 + 3 * index]
    for world, layout in enumerate(layouts):
        for placement in layout.landmarks:
            index = landmark(placement.name).index
            body = bodies[index]
            cos, sin = np.cos(placement.yaw), np.sin(placement.yaw)
            yaw = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
            rows = slice(first[index], first[index + 1])
            place[world, rows] = body.position @ yaw.T + [placement.x, placement.y, placement.elevation]
            turn[world, rows] = yaw @ local[index]
    return place, turn


def _matrices(quaternions: np.ndarray) -> np.ndarray:
    """[N, 3, 3] rotations of (w, x, y, z) quaternions [N, 4]."""
    return np.stack([rotation_matrix(quaternion) for quaternion in quaternions]).astype(np.float32)


def _bench_gl(
    layout: Layout,
    pose: Pose,
    camera: Camera,
    seconds: float,
    ours: float,
    say: Callable[..., None],
) -> None:
    """MuJoCo's off-screen GL renderer on one world, where the machine has GL."""
    from wordwing.lab.scene import lab_spec

    spec = lab_spec(layout)
    spec.cameras[0].pos = pose.position[0].cpu().double().numpy()
    axes = CAMERA_AXES.to(pose.quaternion)
    spec.cameras[0].quat = quaternion_multiply(pose.quaternion, axes)[0].cpu().double().numpy()
    spec.cameras[0].fovy = camera.vertical_fov_deg
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    try:
        warnings.simplefilter("ignore")  # GLFW complains about a missing display; so does the error
        renderer = mujoco.Renderer(model, camera.config.height, camera.config.width)
    except Exception as error:  # every platform fails in its own way without GL
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        report("frames/s", renderer="mujoco GL", skipped=reason)
        return

    def draw() -> object:
        renderer.update_scene(data, camera="drone")
        return renderer.render()

    rate = rate_of(draw, seconds, torch.device("cpu"))
    say("frames/s", rate, renderer="mujoco GL", textures=True, shadows=True, note="one world, lab look")
    say("ratio to mujoco GL", ours / rate, shadows=True, note="both textured")
