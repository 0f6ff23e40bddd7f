"""Instruction following as a Gymnasium environment of one drone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from wordwing.data.corpora import MINI
from wordwing.envs.vector import RENDERING, FollowVectorEnv, single
from wordwing.world.tasks import Task


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
        batch = self._worlds.step(np.asarray(action)[None])
        observations, rewards, terminated, truncated, infos = batch
        # Gymnasium's batched infos have a mask "_key" beside each "key".
        info = {key: value.item() for key, value in infos.items() if not key.startswith("_")}
        observation = single(observations, 0)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> NDArray[np.uint8] | None:
        """The world from above [300, 300, 3], x up and y left, with the drone and its path."""
        images = self._worlds.render()
        return None if images is None else images[0]
