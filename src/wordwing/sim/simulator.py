"""The batched simulator of the `sim` domain: N worlds, each with its own layout, drone and camera."""

from collections.abc import Sequence

import torch
from torch import Tensor

from wordwing.camera import Camera
from wordwing.devices import find_device
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, Pose
from wordwing.interface import CONTROL_PERIOD, Observation, Setpoint
from wordwing.sim.dynamics import SUBSTEP, DynamicsConfig, FleetState
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.world.layout import Layout


class Simulator:
    """N drones in N worlds, in lock-step; time passes only in `step`.

    There is no noise, so the same layouts, poses and setpoints give the same states and images to the last bit
    on the same device, and world i is the same however many others there are.
    """

    def __init__(
        self,
        num_worlds: int,
        device: torch.device | str = "cpu",
        camera: Camera | None = None,
        render: RenderConfig | None = None,
        dynamics: DynamicsConfig | None = None,
        *,
        draw: bool = True,
    ) -> None:
        """Make N worlds without landmarks.

        Args:
            num_worlds: N.
            device: "cpu", "cuda" or "cuda:1".
            camera: What the drones look through.
            render: How images are drawn.
            dynamics: How the drones fly.
            draw: False leaves images black, for policies that do not use them.
        """
        if num_worlds < 1:
            raise WordwingError(f"a simulator needs at least one world, not {num_worlds}")
        self.num_worlds = num_worlds
        self.device = find_device(device)
        self.camera = camera or Camera()
        self.scene = SimScene(num_worlds, self.device)
        self.renderer = Renderer(self.scene, self.camera, render or RenderConfig())
        self.drones = FleetState(num_worlds, self.device, dynamics or DynamicsConfig())
        self.time = torch.zeros(num_worlds, device=self.device)
        self.draw = draw
        start = torch.zeros(num_worlds, 2, device=self.device)
        self.drones.reset(Pose.level(start, start[:, 0], self.drones.config.height), torch.arange(num_worlds))

    def reset(
        self,
        layouts: Sequence[Layout] | PackedLayouts,
        poses: Pose,
        worlds: Tensor | None = None,
    ) -> Observation:
        """Put layouts [M] and hovering drones at poses [M] (world frame) into worlds [M], by default all.

        Only x, y and yaw of a pose count; the drone starts level at its flight height.

        Returns:
            What all N drones see now, those of other worlds included.
        """
        which = self._which(worlds)
        if len(layouts) != len(which) or poses.position.shape != (len(which), 3):
            raise WordwingError(
                f"{len(which)} worlds need as many layouts and poses, not {len(layouts)} and {len(poses)}"
            )
        if not torch.isfinite(poses.position).all() or not torch.isfinite(poses.quaternion).all():
            raise WordwingError("a start pose holds NaN or infinity")
        packed = layouts if isinstance(layouts, PackedLayouts) else PackedLayouts.pack(layouts, self.device)
        self.scene.place(packed, which)
        poses = poses.to(self.device)
        self.drones.reset(Pose.level(poses.xy, poses.yaw, self.drones.config.height), which)
        self.time[which] = 0.0
        return self.observe()

    def begin(self, layouts: PackedLayouts, poses: Pose, worlds: Tensor) -> None:
        """Put layouts [N] into all worlds and hovering drones at poses [N] into worlds [N] bool; asks the host nothing.

        `reset` also checks what it is given, and observes.
        """
        self.scene.place(layouts, slice(None))
        self.drones.begin(Pose.level(poses.xy, poses.yaw, self.drones.config.height), worlds)
        self.time.masked_fill_(worlds, 0.0)

    def _which(self, worlds: Tensor | None) -> Tensor:
        """Indices [M] of worlds, each once and inside the simulator."""
        if worlds is None:
            return torch.arange(self.num_worlds, device=self.device)
        given = worlds.tolist()
        if len(set(given)) != len(given) or not set(given) <= set(range(self.num_worlds)):
            raise WordwingError(f"worlds to reset must be different numbers from 0 to {self.num_worlds - 1}")
        return worlds.to(self.device)

    def step(self, setpoint: Setpoint, *, safety: bool = False) -> Setpoint:
        """Fly one control period of 0.3 s under setpoints [N].

        Returns:
            What was really flown, after the limits and, with `safety`, after the paper's safety rule.
        """
        flown = setpoint.to(self.device).clamp()
        if safety:
            flown = self.drones.restrain(flown, ARENA_HALF)
        self.drones.advance(flown, CONTROL_PERIOD, self.scene.worlds, self.scene.geoms)
        self.time += CONTROL_PERIOD
        return flown

    def snapshot(self) -> list[Tensor]:
        """The drones' states and clocks, to `restore` later; layouts are not part of it."""
        return [tensor.clone() for tensor in (self.time, *self.drones.tensors())]

    def restore(self, snapshot: list[Tensor]) -> None:
        """Go back to a snapshot of this simulator, to the last bit."""
        for tensor, kept in zip((self.time, *self.drones.tensors()), snapshot, strict=True):
            tensor.copy_(kept)

    @property
    def pose(self) -> Pose:
        """[N] true poses of the drones, world frame; a copy."""
        return Pose(self.drones.position.clone(), self.drones.attitude.clone())

    @property
    def velocity(self) -> Tensor:
        """[N, 3] true velocities, m/s, world frame; a copy."""
        return self.drones.velocity.clone()

    @property
    def seconds_inside_landmarks(self) -> Tensor:
        """[N] how long each drone has been flying through landmarks since its reset."""
        return self.drones.hits * SUBSTEP

    def images(self) -> Tensor:
        """[N, 72, 128, 3] uint8 images on the device, never copied to the host."""
        if not self.draw:
            shape = (self.num_worlds, self.camera.config.height, self.camera.config.width, 3)
            return torch.zeros((), dtype=torch.uint8, device=self.device).expand(shape)
        return self.renderer.first_person(self.camera.pose(self.pose))

    def observe(self) -> Observation:
        """What the drones see now."""
        return Observation(self.images(), self.pose, self.time.clone(), self.velocity)

    def overhead(self, size: int = 512, extent: float = 5.0) -> Tensor:
        """[N, size, size, 3] uint8 maps from straight above, x up and y left, `extent` metres wide."""
        return self.renderer.overhead(size, extent)
