"""Instruction following as Gymnasium environments: N worlds in one batched simulator, or one drone."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import CameraConfig
from wordwing.data.corpora import MINI, corpus
from wordwing.errors import WordwingError
from wordwing.execution.metrics import emd, final_distance, succeeded
from wordwing.execution.runner import MAX_STEPS, SETTLE_STEPS, execute, start_poses
from wordwing.frames import ARENA_HALF, ARENA_SIZE, Pose
from wordwing.interface import CONTROL_PERIOD, MAX_FORWARD, MAX_YAW_RATE, Action, Observation, Setpoint
from wordwing.sim.simulator import Simulator
from wordwing.viz.drawing import FLOWN, MAP_EXTENT, drone_outline, map_pixels
from wordwing.world.tasks import Task

STOP_BONUS = 1.0
"""Reward for a STOP that brings the drone to rest where the demonstration ends."""

IMAGE_SIZE = 300
"""Edge of a rendered image, pixels."""

RENDERING: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1 / CONTROL_PERIOD}
"""What Gymnasium wants to know about rendering; at this rate a video runs at the flight's pace."""

CHARACTERS = "".join(map(chr, range(32, 127)))
"""What instructions of given tasks may be written with: printable ASCII."""

MAX_CHARACTERS = 2000
"""Of an instruction."""


class _CorpusTasks:
    """The tasks of a split of a corpus, made when they are asked for."""

    def __init__(self, name: str, split: str | None) -> None:
        self._dataset = corpus(name)
        splits = self._dataset.splits
        self._instructions = [
            entry
            for entry in self._dataset.instructions(split or ("train" if "train" in splits else splits[0]))
            if 1 <= len(entry.segment.instruction) <= MAX_CHARACTERS
        ]
        self.steps = self._dataset.steps
        self.characters = "".join(sorted({*CHARACTERS}.union(*(e.segment.instruction for e in self._instructions))))

    def __len__(self) -> int:
        return len(self._instructions)

    def __getitem__(self, index: int) -> Task:
        return self._dataset.task(self._instructions[index])


def single_spaces(characters: str) -> tuple[gym.spaces.Dict, gym.spaces.Box]:
    """What one drone observes, with instructions of these characters, and what it is told; see `FollowEnv`."""
    # Gymnasium wants finite bounds: no drone gets that far, and quaternions are unit to rounding.
    most = np.array([ARENA_SIZE] * 3 + [1 + 1e-6] * 4, np.float32)
    observation = gym.spaces.Dict(
        rgb=gym.spaces.Box(0, 255, (CameraConfig.height, CameraConfig.width, 3), np.uint8),
        pose=gym.spaces.Box(-most, most),
        instruction=gym.spaces.Text(MAX_CHARACTERS, charset=characters),
    )
    low = np.array([0.0, -MAX_YAW_RATE, 0.0], np.float32)
    high = np.array([MAX_FORWARD, MAX_YAW_RATE, 1.0], np.float32)
    return observation, gym.spaces.Box(low, high)


class FollowVectorEnv(VectorEnv[dict[str, Any], NDArray[np.float32], NDArray[Any]]):
    """N drones in N worlds, each with an instruction to follow.

    Observations, actions, rewards, endings and infos are those of `FollowEnv`, batched: `rgb`
    [N, 72, 128, 3], `pose` [N, 7], `instruction` a tuple of N strings, actions [N, 3]. All worlds
    are in one `Simulator` on `device`, but what goes in and out is numpy on the host, as Gymnasium
    has it; code that learns on the device should use `Simulator` itself.

    Seeds work as in Gymnasium's `SyncVectorEnv`: `reset(seed=s)` gives world i the seed s + i, and
    its n-th episode follows from that seed and n alone. So world i is the same to the last bit
    however many others there are and whenever they end, and the same as a `FollowEnv` with the seed
    s + i. Runs that shall share no task need seeds at least N apart.

    What becomes of a world whose episode has ended is `metadata["autoreset_mode"]`:

    - `NEXT_STEP`: the next `step` ignores its action and begins its next episode; it returns the
      first observation with reward 0 and neither flag set.
    - `SAME_STEP`: its next episode begins at once. `step` returns the first observation of the new
      episode with the reward and the flags of the old one, whose last observation and info are in
      `infos["final_obs"]` and `infos["final_info"]`.
    - `DISABLED`: it must be reset before the next `step`, with
      `reset(options={"reset_mask": mask})`, mask [N] bool. The other worlds fly on.

    Args:
        num_envs: N.
        corpus: Whose instructions are flown: "dev-mini", 64 that come with wordwing, or a corpus by name, which is
            built into the cache if it is not there. Each world flies all of them, in an order of its own, before it
            flies one again.
        tasks: Tasks to fly instead, in the same way.
        split: Of the corpus; by default train or, in dev-mini, the only one.
        max_steps: Steps after which an episode is truncated; by default as many as the corpus gives a flight.
        safety: Slow down drones that would leave the arena (paper: Quadcopter Safety).
        device: Where to simulate.
        render_mode: "rgb_array", or None for no images.
        autoreset_mode: One of the above.
    """

    def __init__(
        self,
        num_envs: int = 1,
        corpus: str = MINI,
        tasks: Sequence[Task] | None = None,
        *,
        split: str | None = None,
        max_steps: int | None = None,
        safety: bool = True,
        device: torch.device | str = "cpu",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        modes = RENDERING["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise WordwingError(f'no render mode is called "{render_mode}"; there is {", ".join(modes)}')
        if max_steps is not None and max_steps < 1:
            raise WordwingError(f"max_steps is {max_steps}; it must be at least 1")
        self.tasks = _CorpusTasks(corpus, split) if tasks is None else tuple(tasks)
        characters = self.tasks.characters if isinstance(self.tasks, _CorpusTasks) else CHARACTERS
        self.single_observation_space, self.single_action_space = single_spaces(characters)
        if isinstance(self.tasks, tuple):
            _check_tasks(self.tasks, self.single_observation_space["instruction"])
        if max_steps is None:
            max_steps = self.tasks.steps if isinstance(self.tasks, _CorpusTasks) else MAX_STEPS
        self.simulator = Simulator(num_envs, device)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.num_envs = num_envs
        self.max_steps = max_steps
        self.safety = safety
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**RENDERING, "autoreset_mode": self.autoreset_mode}

        self.current_tasks: dict[int, Task] = {}
        """What each world flies now; nothing before the first reset."""
        first_seed = int(np.random.default_rng().integers(2**31))
        self._seeds = [first_seed + world for world in range(num_envs)]
        self._episode = np.full(num_envs, -1)
        self._steps = np.zeros(num_envs, int)
        self._ended = np.zeros(num_envs, bool)
        self._instructions = [""] * num_envs
        self._goal = np.zeros((num_envs, 2))  # metres, world frame, as all below
        self._pose = np.zeros((num_envs, 7), np.float32)
        self._path = np.zeros((num_envs, max_steps + 1, 2), np.float32)
        self._overhead: NDArray[np.uint8] | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the next episode, or the first one of a seed.

        Args:
            seed: s for the seeds s + i, or a list with one for each world; None goes on.
            options: `reset_mask` [N] bool leaves the other worlds as they are.
        """
        worlds = self._worlds_to_reset(options or {})
        if not isinstance(seed, Sequence):
            super().reset(seed=seed)
            seed = [None if seed is None else seed + world for world in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise WordwingError(f"{self.num_envs} worlds need as many seeds, not {len(seed)}")
        for world in worlds:
            if (new := seed[world]) is not None:
                self._seeds[world], self._episode[world] = new, -1
        return self._see(self._begin(worlds)), {}

    def step(
        self,
        actions: NDArray[np.float32],
    ) -> tuple[dict[str, Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Fly one control period of 0.3 s.

        Args:
            actions: [N, 3]; setpoints are brought into their limits, and NaN hovers.
        """
        actions = np.array(actions, np.float32)
        self._check_step(actions)
        flying = ~self._ended
        stop = flying & (actions[:, 2] > 0.5)
        forward, yaw_rate, stopping = torch.from_numpy(actions).to(self.simulator.device).unbind(-1)
        action = Action(Setpoint(forward, yaw_rate).clamp(), stopping > 0.5)
        execute(self.simulator, action, torch.from_numpy(flying).to(forward.device), safety=self.safety)
        self._steps += flying
        before = self._goal_distance()
        due = np.flatnonzero(~flying).tolist()
        observations = self._see(self._begin(due) if due else self.simulator.observe())
        rewards = np.where(flying, before - self._goal_distance(), 0.0)

        left = flying & (np.abs(self._pose[:, :2]) > ARENA_HALF).any(axis=-1)
        terminated = stop | left
        truncated = flying & ~terminated & (self._steps >= self.max_steps)
        self._ended = terminated | truncated
        infos: dict[str, Any] = {}
        over = np.flatnonzero(self._ended).tolist()
        if over:
            same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
            rest = self._come_to_rest()
            for world in over:
                # The period after STOP was already the first one of coming to rest.
                settling = rest[: SETTLE_STEPS - stop[world], world]
                info = self._outcome(world, settling, bool(left[world]))
                rewards[world] += STOP_BONUS * (stop[world] and info["success"])
                if same_step:
                    info = {"final_obs": single(observations, world), "final_info": info}
                infos = self._add_info(infos, info, world)
            if same_step:
                observations = self._see(self._begin(over))
        return observations, rewards, terminated, truncated, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The worlds from above, x up and y left, each with its drone and the path so far.

        Returns:
            N images [300, 300, 3], 5 m across, or None without a render mode.
        """
        if self.render_mode is None:
            return None
        if not self.current_tasks:
            raise ResetNeeded("there is nothing to render before the first reset")
        if self._overhead is None:
            self._overhead = self.simulator.overhead(IMAGE_SIZE, MAP_EXTENT).cpu().numpy()
        pose = torch.from_numpy(self._pose)
        yaws = Pose(pose[:, :3], pose[:, 3:]).yaw.tolist()
        paths = (path[: steps + 1] for path, steps in zip(self._path, self._steps, strict=True))
        return tuple(map(_draw_flight, self._overhead, paths, yaws))

    def _begin(self, worlds: list[int]) -> Observation:
        """Begin the next episode in some worlds."""
        self._episode[worlds] += 1
        self._steps[worlds] = 0
        self._ended[worlds] = False
        self._overhead = None
        tasks = [self._next_task(world) for world in worlds]
        for world, task in zip(worlds, tasks, strict=True):
            self.current_tasks[world] = task
            self._instructions[world] = task.instruction
            self._goal[world] = task.gold_path[-1]
        return self.simulator.reset([task.layout for task in tasks], start_poses(tasks), torch.tensor(worlds))

    def _next_task(self, world: int) -> Task:
        """The task of a world's seed and episode."""
        seed, episode = self._seeds[world], int(self._episode[world])
        rounds, place = divmod(episode, len(self.tasks))
        return self.tasks[_generator(seed, rounds).permutation(len(self.tasks))[place]]

    def _see(self, observation: Observation) -> dict[str, Any]:
        """Copy an observation to the host and note where the drones are."""
        pose = torch.cat([observation.pose.position, observation.pose.quaternion], dim=-1)
        self._pose = pose.cpu().numpy()
        self._path[np.arange(self.num_envs), self._steps] = self._pose[:, :2]
        return {
            "rgb": observation.image.cpu().numpy(),
            "pose": self._pose.copy(),
            "instruction": tuple(self._instructions),
        }

    def _goal_distance(self) -> NDArray[np.float64]:
        """[N] metres from the drones to the ends of their demonstrations."""
        return np.linalg.norm(self._pose[:, :2] - self._goal, axis=-1)

    def _come_to_rest(self) -> NDArray[np.float32]:
        """Where the drones would be after each period of `fly`'s time to come to rest.

        Nothing changes in the simulator: other worlds are still flying.

        Returns:
            [SETTLE_STEPS, N, 2] metres, world frame.
        """
        before = self.simulator.snapshot()
        nobody = torch.zeros(self.num_envs, dtype=torch.bool, device=self.simulator.device)
        hover = Action(Setpoint.zero(self.num_envs, self.simulator.device), ~nobody)
        path = []
        for _ in range(SETTLE_STEPS):
            execute(self.simulator, hover, nobody, safety=False)  # a standstill is safe
            path.append(self.simulator.pose.xy)
        self.simulator.restore(before)
        return torch.stack(path).cpu().numpy()

    def _outcome(self, world: int, settling: NDArray[np.float32], left: bool) -> dict[str, Any]:
        """How a flight went that ends by coming to rest along `settling` [P, 2], world frame."""
        steps = int(self._steps[world])
        path = np.concatenate([self._path[world, : steps + 1], settling])
        gold = self.current_tasks[world].gold_path
        distance = final_distance(path, gold)
        return {
            "success": succeeded(distance) and not left,
            "distance": distance,
            "emd": emd(path, gold),
            "steps": steps,
            "left_arena": left,
        }

    def _check_step(self, actions: NDArray[np.float32]) -> None:
        if not self.current_tasks:
            raise ResetNeeded("call reset before the first step")
        if self.autoreset_mode == AutoresetMode.DISABLED and self._ended.any():
            worlds = ", ".join(map(str, np.flatnonzero(self._ended)))
            raise ResetNeeded(f"the episode has ended in world {worlds}; reset it before a step")
        if actions.shape != self.action_space.shape:
            expected = list(self.action_space.shape or ())
            raise InvalidAction(f"actions must be {expected}, not {list(actions.shape)}")

    def _worlds_to_reset(self, options: dict[str, Any]) -> list[int]:
        mask = options.get("reset_mask")
        if mask is None:
            return list(range(self.num_envs))
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise WordwingError(f"reset_mask must be {self.num_envs} booleans, one of them true")
        if not self.current_tasks:
            raise ResetNeeded("reset all worlds before some of them; leave reset_mask out")
        return np.flatnonzero(mask).tolist()


class FollowEnv(gym.Env[dict[str, Any], NDArray[np.float32]]):
    """A drone that is told in English where to fly.

    An episode is a task of a corpus: a layout of landmarks, a start, an instruction, and the demonstration's path,
    which is not shown.

    Observation:
        `rgb` [72, 128, 3] uint8, the drone's camera; `pose` [7] float32, its position x, y, z in
        metres and quaternion w, x, y, z, body to world; `instruction`, a string.

    Action:
        [3] float32: forward velocity in [0, 0.7] m/s, yaw rate in [-1, 1] rad/s, positive to the
        left, and STOP if the third, in [0, 1], is above 0.5. Setpoints beyond their limits are
        clipped; NaN is taken for 0, so that a broken policy hovers. A step is 0.3 s.

    End:
        STOP terminates the episode; the drone brakes, whatever the setpoint. Leaving the arena, |x|
        or |y| > 2.35 m, terminates it too. `max_steps` truncate it.

    Reward:
        The metres by which the step brought the drone closer, in a straight line, to the end of the
        demonstration, and 1 more for a STOP after which it comes to rest within 0.47 m of it. This
        is a reward of the task, simple on purpose; SuReAL trains with its own, intrinsic one.

    Info, at the end only:
        `distance` and `emd`, metres from the demonstration's end and its path, are those of
        `fly`: of the flight until the drone has come to rest, which is simulated beyond the
        last observation. `success`: it rests within 0.47 m and has not left the arena, STOP or no
        STOP. `left_arena`: it has. `steps`: how many were flown.

    The arguments are those of `FollowVectorEnv`, of which this is a batch of one. With a seed the
    n-th episode is always the same; a reset without a seed begins the next one.
    """

    metadata = RENDERING

    def __init__(
        self,
        corpus: str = MINI,
        tasks: Sequence[Task] | None = None,
        *,
        split: str | None = None,
        max_steps: int | None = None,
        safety: bool = True,
        device: torch.device | str = "cpu",
        render_mode: str | None = None,
    ) -> None:
        self._worlds = FollowVectorEnv(
            1,
            corpus,
            tasks,
            split=split,
            max_steps=max_steps,
            safety=safety,
            device=device,
            render_mode=render_mode,
            autoreset_mode=AutoresetMode.DISABLED,
        )
        self.observation_space = self._worlds.single_observation_space
        self.action_space = self._worlds.single_action_space
        self.render_mode = render_mode

    @property
    def task(self) -> Task:
        """The task of this episode."""
        return self._worlds.current_tasks[0]

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the next episode or, with a seed, its first; there are no options."""
        super().reset(seed=seed)
        observations, _ = self._worlds.reset(seed=seed)
        return single(observations, 0), {}

    def step(
        self,
        action: NDArray[np.float32],
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Fly one control period of 0.3 s."""
        observations, rewards, terminated, truncated, infos = self._worlds.step(np.asarray(action)[None])
        # Gymnasium's batched infos have a mask "_key" beside each "key".
        info = {key: value.item() for key, value in infos.items() if not key.startswith("_")}
        return single(observations, 0), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> NDArray[np.uint8] | None:
        """The world from above [300, 300, 3], x up and y left, with the drone and its path."""
        images = self._worlds.render()
        return None if images is None else images[0]


def single(observations: dict[str, Any], world: int) -> dict[str, Any]:
    """One world's part of batched observations; a copy, lest keeping it keep all the others."""
    return {
        "rgb": observations["rgb"][world].copy(),
        "pose": observations["pose"][world].copy(),
        "instruction": observations["instruction"][world],
    }


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def _check_tasks(tasks: Sequence[Task], instructions: gym.Space[Any]) -> None:
    if not tasks:
        raise WordwingError("tasks is empty; give at least one, or None for those of a corpus")
    for number, task in enumerate(tasks, start=1):
        if task.instruction not in instructions:
            raise WordwingError(
                f"task {number}: an instruction is 1 to 2000 printable ASCII characters, "
                f"which {task.instruction[:40]!r} is not"
            )


def _draw_flight(
    overhead: NDArray[np.uint8],
    path: NDArray[np.float32],
    yaw: float,
) -> NDArray[np.uint8]:
    """A world from above with the path so far and, at its end, the drone as an arrow."""
    image = Image.fromarray(overhead)
    draw = ImageDraw.Draw(image)
    if len(path) > 1:
        draw.line([tuple(point) for point in map_pixels(path, len(overhead))], FLOWN, 3)
    draw.polygon(drone_outline(path[-1], yaw, len(overhead)), FLOWN, "white")
    return np.array(image)
