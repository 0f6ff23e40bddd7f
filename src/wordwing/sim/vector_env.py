"""Instruction following as a vector environment for Gymnasium: N worlds in one batched simulator.

`wordwing.sim.envs` has the environment of one drone, and registers both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import torch
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from wordwing.errors import WordwingError, did_you_mean
from wordwing.evaluation.metrics import SUCCESS_DISTANCE, emd, final_distance
from wordwing.evaluation.rollout import MAX_STEPS, SETTLE_STEPS, Task, start_poses
from wordwing.frames import ARENA_HALF, ARENA_SIZE, Pose
from wordwing.interface import CONTROL_PERIOD, MAX_FORWARD, MAX_YAW_RATE, Observation, Setpoint
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout
from wordwing.world.paths import WalkConfig, sample_flights
from wordwing.world.samplers import Corpus, sample_layout

STOP_BONUS = 1.0
"""Reward for stopping where the demonstration ends."""

PICTURE_SIZE = 300
"""Edge of a rendered frame, pixels."""

CHARACTERS = "".join(map(chr, range(32, 127)))
"""What instructions are written with: printable ASCII."""

MAX_CHARACTERS = 2000
"""Length of the longest instruction."""


def single_observation_space() -> gym.spaces.Dict:
    """What one drone observes: `rgb`, `pose` (x, y, z, qw, qx, qy, qz; world frame), `instruction`."""
    # Finite, because Gymnasium asks for it, but out of reach; a quaternion is unit to rounding only.
    reach = np.array([ARENA_SIZE] * 3 + [1 + 1e-6] * 4, np.float32)
    return gym.spaces.Dict(
        rgb=gym.spaces.Box(0, 255, (72, 128, 3), np.uint8),
        pose=gym.spaces.Box(-reach, reach, dtype=np.float32),
        instruction=gym.spaces.Text(MAX_CHARACTERS, charset=CHARACTERS),
    )


def single_action_space() -> gym.spaces.Box:
    """What one drone is told: forward m/s, yaw rate rad/s (positive left), and STOP above 0.5."""
    low = np.array([0.0, -MAX_YAW_RATE, 0.0], np.float32)
    high = np.array([MAX_FORWARD, MAX_YAW_RATE, 1.0], np.float32)
    return gym.spaces.Box(low, high, dtype=np.float32)


def sample_tasks(corpus: Corpus, count: int, rng: np.random.Generator) -> list[Task]:
    """Draw layouts of a corpus and a flight of 1 to 3 m in each; layouts without room for one are redrawn.

    The instructions are generated, not written by people, and name only the goal: "fly to the
    barrel", where a barrel is the landmark nearest to the end of the path. Many tasks at once take
    about 20 ms each, a single one 100 to 300 ms.
    """
    config = getattr(WalkConfig, corpus)()
    tasks: list[Task] = []
    while len(tasks) < count:
        layouts = [sample_layout(corpus, rng) for _ in range(count - len(tasks))]
        flights = sample_flights(layouts, rng, config)
        for layout, flight in zip(layouts, flights, strict=True):
            if flight is not None:
                start, end = flight.path[0], flight.path[-1]
                words = _name_goal(layout, end, rng)
                start_xy = (float(start[0]), float(start[1]))
                tasks.append(Task(words, layout, start_xy, flight.start_yaw, flight.path))
    return tasks


def _name_goal(layout: Layout, end: NDArray[np.float64], rng: np.random.Generator) -> str:
    nearest = np.linalg.norm(layout.centres - end, axis=-1).argmin()
    return f"fly to the {rng.choice(layout.landmarks[nearest].kind.nouns)}"


class FollowVectorEnv(VectorEnv[dict[str, Any], NDArray[np.float32], NDArray[Any]]):
    """N drones in N worlds, each following its own instruction.

    Observations, actions, rewards, endings and `info` are those of `wordwing.sim.envs.FollowEnv`,
    batched: `rgb` [N, 72, 128, 3], `pose` [N, 7], `instruction` a tuple of N strings, actions
    [N, 3]. All worlds live in one `Simulator` on `device`, and a step is a few kernel launches
    however many there are. What comes out is always numpy on the host, as Gymnasium has it; code
    that learns on the device should use `Simulator` itself.

    Seeds are Gymnasium's: `reset(seed=s)` gives world i the seed s + i, and its n-th episode
    follows from this seed and n alone. So world i is the same to the last bit however many others
    there are and whenever they end, the same as a `FollowEnv` with seed s + i, and the whole the
    same as a `SyncVectorEnv` of such. Runs that shall have no task in common need seeds at least N
    apart. A list of N seeds is also taken; without a seed a reset goes on to the next episode.

    What happens to worlds whose episode has ended is `metadata["autoreset_mode"]`:

    - `NEXT_STEP`: the next `step` ignores their actions, resets them and returns their first
      observation, with reward 0 and neither flag set.
    - `SAME_STEP`: they are reset at once. `step` returns the first observation of the new episode
      with the reward and flags of the old one; its last observation and its info are in
      `infos["final_obs"]` and `infos["final_info"]`.
    - `DISABLED`: the caller resets them with `reset(options={"reset_mask": mask})`, `mask` [N]
      bool, before the next `step`; the other worlds are left as they are.

    Args:
        num_envs: How many worlds.
        corpus: Where tasks are sampled from, see `sample_tasks`; a single one takes 100 to 300 ms.
        tasks: The tasks to fly, instead; every world flies each of them once, in an order of its
            own, before it flies any again.
        max_steps: Steps after which an episode is truncated; 100 is usual on `house`.
        safety: Whether to slow drones down that would leave the arena (paper: Quadcopter Safety).
        device: Where to simulate.
        render_mode: "rgb_array", or None.
        autoreset_mode: One of the above.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["rgb_array"],
        "render_fps": 1 / CONTROL_PERIOD,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        corpus: Corpus = "cage",
        tasks: Sequence[Task] | None = None,
        *,
        max_steps: int = MAX_STEPS,
        safety: bool = True,
        device: torch.device | str = "cpu",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.single_observation_space = single_observation_space()
        self.single_action_space = single_action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.num_envs = num_envs
        self.corpus = _choice("corpus", corpus, get_args(Corpus))
        self.tasks = None if tasks is None else self._checked(tasks)
        if max_steps < 1:
            raise WordwingError(f"max_steps is {max_steps}; it must be at least 1")
        self.max_steps = max_steps
        self.safety = safety
        if render_mode is not None:
            _choice("render mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.simulator = Simulator(num_envs, device)

        self.flying: list[Task] = []
        """The task that each world flies now; empty before the first reset."""
        luck = int(np.random.default_rng().integers(2**31))
        self._seeds = [luck + world for world in range(num_envs)]
        self._episodes = np.full(num_envs, -1)
        self._steps = np.zeros(num_envs, int)
        self._ended = np.zeros(num_envs, bool)
        self._goal = np.zeros((num_envs, 2))
        self._pose = np.zeros((num_envs, 7), np.float32)
        self._path = np.zeros((num_envs, max_steps + 1, 2), np.float32)
        self._instructions: tuple[str, ...] = ()
        self._overhead: NDArray[np.uint8] | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin a new episode in all worlds, or in those of `options["reset_mask"]` [N] bool.

        Args:
            seed: s for seeds s + i, or one for each world; None for the next episode.
            options: Nothing else in it is looked at.
        """
        worlds = np.flatnonzero(self._reset_mask(options or {}))
        if not isinstance(seed, Sequence):
            super().reset(seed=seed)
            seed = None if seed is None else [seed + world for world in range(self.num_envs)]
        if seed is not None:
            if len(seed) != self.num_envs:
                raise WordwingError(f"{self.num_envs} worlds need as many seeds, not {len(seed)}")
            for world in worlds:
                given = seed[world]
                if given is not None:
                    self._seeds[world], self._episodes[world] = given, -1
        return self._see(self._begin(worlds)), {}

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[
        dict[str, Any],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Fly one control period of 0.3 s under actions [N, 3]; what is beyond their limits is clipped."""
        self._check_ready()
        actions = np.array(actions, np.float32)  # a copy, for it is written to
        if actions.shape != (self.num_envs, 3):
            raise InvalidAction(f"actions must be [{self.num_envs}, 3], not {list(actions.shape)}")
        flying = ~self._ended
        stop = flying & (actions[:, 2] > 0.5)
        actions[stop | ~flying, :2] = 0.0
        forward, yaw_rate, _ = torch.from_numpy(actions).to(self.simulator.device).unbind(-1)
        self.simulator.step(Setpoint(forward, yaw_rate), safety=self.safety)
        self._steps[flying] += 1

        before = self._distances()
        due = np.flatnonzero(~flying)
        observations = self._see(self._begin(due) if due.size else self.simulator.observe())
        rewards = np.where(flying, before - self._distances(), 0.0)

        left = flying & (np.abs(self._pose[:, :2]) > ARENA_HALF).any(axis=-1)
        terminated = stop | left
        truncated = flying & ~terminated & (self._steps >= self.max_steps)
        self._ended = terminated | truncated
        infos: dict[str, Any] = {}
        if self._ended.any():
            over = np.flatnonzero(self._ended)
            rest = self._come_to_rest()
            for world in over:
                info = self._judge(world, rest[: SETTLE_STEPS - stop[world], world], left[world])
                rewards[world] += STOP_BONUS * (stop[world] and info["success"])
                if self.autoreset_mode == AutoresetMode.SAME_STEP:
                    info = {"final_obs": single(observations, world), "final_info": info}
                infos = self._add_info(infos, info, world)
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                observations = self._see(self._begin(over))
        return observations, rewards, terminated, truncated, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """The worlds from above, x up and y left, each with its drone and the path so far.

        Returns:
            N pictures [300, 300, 3] of 5 m across; None without a render mode.
        """
        if self.render_mode is None:
            return None
        if not self.flying:
            raise ResetNeeded("call reset before render")
        from wordwing.evaluation.animation import MAP_EXTENT  # takes a second to import

        if self._overhead is None:
            self._overhead = self.simulator.overhead(PICTURE_SIZE, MAP_EXTENT).cpu().numpy()
        pose = torch.from_numpy(self._pose)
        yaws = Pose(pose[:, :3], pose[:, 3:]).yaw.tolist()
        paths = (path[: steps + 1] for path, steps in zip(self._path, self._steps, strict=True))
        return tuple(map(_picture, self._overhead, paths, yaws))

    def _begin(self, worlds: NDArray[np.int64]) -> Observation:
        """Put the next episode into worlds [M]; the others stay as they are."""
        self._episodes[worlds] += 1
        self.flying = self.flying or [self._draw(world) for world in range(self.num_envs)]
        return self.simulator.observe()

    def _checked(self, tasks: Sequence[Task]) -> Sequence[Task]:
        raise NotImplementedError
