import math
from collections.abc import Iterator
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.testing import assert_array_equal

from small_evaluation import small_cage
from wordwing.data import corpora
from wordwing.data.dataset import Dataset
from wordwing.envs import ENV_ID, FollowEnv, FollowVectorEnv, follow, register_envs
from wordwing.errors import WordwingError
from wordwing.execution import metrics, runner
from wordwing.interface import Action, Setpoint
from wordwing.sim.simulator import Simulator
from wordwing.viz.animation import FLOWN, map_pixels
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task, sample_tasks

pytestmark = pytest.mark.filterwarnings("error")

AHEAD = np.array([0.5, 0.0, 0.0], np.float32)
HOVER = np.zeros(3, np.float32)
STOP = np.array([0.0, 0.0, 1.0], np.float32)


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return sample_tasks("cage", 5, np.random.default_rng(0))


def straight(x: float = 0.0, yaw: float = 0.0, length: float = 1.0) -> Task:
    """Fly straight on over an empty floor."""
    ahead = np.array([math.cos(yaw), math.sin(yaw)])
    path = np.array([x, 0.0]) + np.linspace(0.0, length, 51)[:, None] * ahead
    return Task("fly straight on", Layout(()), (x, 0.0), yaw, path)


def random_actions(rng: np.random.Generator, count: int, stops: float = 0.1) -> np.ndarray:
    forward, yaw_rate = rng.uniform(0.0, 0.7, count), rng.uniform(-1.0, 1.0, count)
    return np.stack([forward, yaw_rate, rng.random(count) < stops], axis=-1).astype(np.float32)


def same(a: object, b: object) -> bool:
    return data_equivalence(a, b, exact=True)


def fly(env: FollowEnv, actions: list[np.ndarray]) -> list[tuple]:
    """Everything the environment says, resetting it wherever an episode ends."""
    said = []
    for action in actions:
        said.append(env.step(action))
        if said[-1][2] or said[-1][3]:
            said.append(env.reset())
    return said


def test_gymnasium_finds_nothing_to_complain_about():
    check_env(gymnasium.make(f"wordwing.envs:{ENV_ID}").unwrapped)


def test_registering_again_changes_nothing_and_warns_of_nothing():
    spec = gymnasium.spec(ENV_ID)
    register_envs()
    assert gymnasium.spec(ENV_ID) is spec


def test_gymnasium_makes_the_vector_environment_with_batched_spaces(tasks):
    mode = "vector_entry_point"
    envs = gymnasium.make_vec(ENV_ID, num_envs=3, vectorization_mode=mode, tasks=tasks)
    assert isinstance(envs, FollowVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert envs.action_space.shape == (3, 3)
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert observations["rgb"].shape == (3, 72, 128, 3)
    assert len(observations["instruction"]) == 3


def test_the_same_seed_gives_the_same_episodes_and_another_seed_others():
    actions = [AHEAD, AHEAD, STOP, AHEAD]
    env = FollowEnv()
    first = [env.reset(seed=7), *fly(env, actions)]
    again = [env.reset(seed=7), *fly(env, actions)]
    assert same(first, again)
    assert not same(first[0], first[-2])  # a reset without a seed begins another episode
    assert not same(first[0], env.reset(seed=8))


@pytest.mark.parametrize("given", [True, False])
def test_a_world_does_not_depend_on_how_many_there_are(given, tasks):
    rng = np.random.default_rng(1)
    few = FollowVectorEnv(2, tasks=tasks if given else None, max_steps=4)
    many = FollowVectorEnv(4, tasks=tasks if given else None, max_steps=4)
    a, b = few.reset(seed=3)[0], many.reset(seed=3)[0]
    for _ in range(6):
        for key in a:
            assert same(a[key], b[key][:2])
        actions = random_actions(rng, 4, stops=0.2)
        a, b = few.step(actions[:2])[0], many.step(actions)[0]


def test_every_world_flies_every_given_task_once_before_any_again(tasks):
    envs = FollowVectorEnv(2, tasks=tasks)
    flown = []
    for _ in range(2 * len(tasks)):
        envs.reset(seed=5 if not flown else None)
        flown.append([tasks.index(envs.current_tasks[world]) for world in (0, 1)])
    rounds = np.array(flown).reshape(2, len(tasks), 2)
    assert (np.sort(rounds, axis=1) == np.arange(len(tasks))[:, None]).all()
    assert not np.array_equal(rounds[..., 0], rounds[..., 1])


@pytest.mark.parametrize("mode", AutoresetMode)
def test_each_autoreset_mode_is_that_of_gymnasiums_own_vector_environment(mode, tasks):
    rng = np.random.default_rng(2)
    ours = FollowVectorEnv(3, tasks=tasks, max_steps=5, autoreset_mode=mode)
    gyms = SyncVectorEnv([lambda: FollowEnv(tasks=tasks, max_steps=5)] * 3, autoreset_mode=mode)
    assert same(ours.reset(seed=4), gyms.reset(seed=4))
    stopped = ran_out = 0
    for _ in range(16):
        actions = random_actions(rng, 3)
        said = ours.step(actions)
        assert same(said, gyms.step(actions))
        _, _, terminated, truncated, _ = said
        stopped, ran_out = stopped + terminated.sum(), ran_out + truncated.sum()
        ended = terminated | truncated
        if mode == AutoresetMode.DISABLED and ended.any():
            assert same(
                ours.reset(options={"reset_mask": ended}),
                gyms.reset(options={"reset_mask": ended}),
            )
    assert stopped > 0
    assert ran_out > 0


def test_next_step_autoreset_is_a_loop_over_single_environments(tasks):
    rng = np.random.default_rng(3)
    envs = FollowVectorEnv(2, tasks=tasks, max_steps=3)
    envs.reset(seed=10)
    singles = [FollowEnv(tasks=tasks, max_steps=3) for _ in range(2)]
    for world, env in enumerate(singles):
        env.reset(seed=10 + world)
    over = [False, False]
    for _ in range(8):
        actions = random_actions(rng, 2, stops=0.3)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for world, env in enumerate(singles):
            expected = (
                (env.reset()[0], 0.0, False, False, {})  # its action is ignored
                if over[world]
                else env.step(actions[world])
            )
            assert_array_equal(observations["rgb"][world], expected[0]["rgb"])
            assert_array_equal(observations["pose"][world], expected[0]["pose"])
            assert observations["instruction"][world] == expected[0]["instruction"]
            assert (rewards[world], terminated[world], truncated[world]) == expected[1:4]
            for key, value in expected[4].items():
                assert infos[f"_{key}"][world]
                assert infos[key][world] == value
            over[world] = expected[2] or expected[3]


def test_same_step_autoreset_keeps_the_last_observation_and_shows_the_first(tasks):
    envs = FollowVectorEnv(2, tasks=tasks, autoreset_mode="SameStep")
    alone = FollowEnv(tasks=tasks)
    envs.reset(seed=0)
    alone.reset(seed=0)
    observations, rewards, terminated, _, infos = envs.step(np.stack([STOP, AHEAD]))
    last, reward, _, _, info = alone.step(STOP)
    assert terminated.tolist() == infos["_final_obs"].tolist() == [True, False]
    assert same(infos["final_obs"][0], last)
    assert {key: infos["final_info"][key][0] for key in info} == info
    assert rewards[0] == reward
    assert same(follow.single(observations, 0), alone.reset()[0])


def test_what_was_returned_may_be_written_to(tasks):
    envs = [FollowVectorEnv(2, tasks=tasks) for _ in range(2)]
    actions = np.stack([AHEAD, AHEAD])
    observations = [each.reset(seed=0)[0] for each in envs]
    for key in ("rgb", "pose"):
        observations[0][key][:] = 0
    assert same(*(each.step(actions) for each in envs))
    assert_array_equal(actions, [AHEAD, AHEAD])


def test_resetting_some_worlds_leaves_the_others_as_they_were(tasks):
    actions = random_actions(np.random.default_rng(4), 3, stops=0.0)
    envs = [FollowVectorEnv(3, tasks=tasks, autoreset_mode="Disabled") for _ in range(2)]
    for each in envs:
        each.reset(seed=6)
        each.step(actions)
    mask = np.array([False, True, False])
    envs[0].reset(options={"reset_mask": mask})
    for _ in range(3):
        a, b = (each.step(actions)[0] for each in envs)
        for key in ("rgb", "pose"):
            assert_array_equal(a[key][~mask], b[key][~mask])
            assert not np.array_equal(a[key][mask], b[key][mask])


def test_a_world_that_ends_leaves_the_others_as_they_were(tasks):
    envs = [FollowVectorEnv(2, tasks=tasks) for _ in range(2)]
    for each in envs:
        each.reset(seed=6)
        each.step(np.stack([AHEAD, AHEAD]))
    for first in (STOP, AHEAD):
        a, reward_a, *_ = envs[0].step(np.stack([first, AHEAD]))
        b, reward_b, *_ = envs[1].step(np.stack([AHEAD, AHEAD]))
        assert_array_equal(a["rgb"][1], b["rgb"][1])
        assert_array_equal(a["pose"][1], b["pose"][1])
        assert reward_a[1] == reward_b[1]


def test_stop_terminates_and_is_rewarded_where_the_demonstration_ends():
    for length, bonus in ((0.0, 1.0), (0.46, 1.0), (0.48, 0.0)):
        env = FollowEnv(tasks=[straight(length=length)])
        env.reset(seed=0)
        _, reward, terminated, truncated, info = env.step(STOP)
        assert (terminated, truncated) == (True, False)
        assert reward == pytest.approx(bonus, abs=1e-6)
        assert info["success"] == bool(bonus)
        assert info["distance"] == pytest.approx(length, abs=1e-6)
        assert (info["steps"], info["left_arena"]) == (1, False)


def test_running_out_of_steps_truncates_without_a_bonus():
    env = FollowEnv(tasks=[straight(length=0.0)], max_steps=3)
    env.reset(seed=0)
    said = [env.step(HOVER) for _ in range(3)]
    assert [(terminated, truncated) for _, _, terminated, truncated, _ in said] == [
        (False, False),
        (False, False),
        (False, True),
    ]
    assert [bool(info) for *_, info in said] == [False, False, True]
    assert said[-1][1] == pytest.approx(0.0, abs=1e-6)
    assert said[-1][4]["success"]
    assert said[-1][4]["steps"] == 3


def test_stop_at_the_last_step_terminates_and_does_not_truncate():
    env = FollowEnv(tasks=[straight()], max_steps=1)
    env.reset(seed=0)
    assert env.step(STOP)[2:4] == (True, False)


@pytest.mark.parametrize("yaw", [0.0, math.pi])
def test_leaving_the_arena_terminates_and_the_safety_rule_prevents_it(yaw):
    task = straight(x=2.0 * math.cos(yaw), yaw=yaw, length=0.34)
    env = FollowEnv(tasks=[task], safety=False)
    env.reset(seed=0)
    terminated = False
    while not terminated:
        observation, _, terminated, truncated, info = env.step(AHEAD)
        assert terminated == (abs(observation["pose"][0]) > 2.35)
        assert not truncated
    assert info["left_arena"]
    assert not info["success"]

    env = FollowEnv(tasks=[task], safety=True, max_steps=20)
    env.reset(seed=0)
    said = [env.step(AHEAD) for _ in range(20)]
    assert said[-1][2:4] == (False, True)
    assert not said[-1][4]["left_arena"]


def test_reward_is_the_approach_to_the_end_of_the_demonstration(tasks):
    rng = np.random.default_rng(5)
    env = FollowEnv(tasks=tasks)
    observation, _ = env.reset(seed=1)
    goal = env.task.gold_path[-1]
    for action in random_actions(rng, 10, stops=0.0):
        then = math.dist(observation["pose"][:2], goal)
        observation, reward, *_ = env.step(action)
        assert reward == pytest.approx(then - math.dist(observation["pose"][:2], goal), abs=1e-12)


class Script:
    """A policy for `fly` that reads its actions off a list."""

    needs_gold_path = False

    def __init__(self, actions: np.ndarray) -> None:
        self.actions = iter(torch.from_numpy(actions))

    def reset(self, instructions, start, gold_paths=None) -> None:
        pass

    def act(self, observation) -> Action:
        forward, yaw_rate, stop = next(self.actions)[:, None]
        return Action(Setpoint(forward, yaw_rate), stop > 0.5)


@pytest.mark.parametrize("stops", [True, False])
def test_the_outcome_is_what_evaluation_finds_for_the_same_flight(stops, tasks):
    actions = random_actions(np.random.default_rng(6), 8, stops=0.0)
    actions[:, 0] = 0.7  # so that it has far to go until it rests
    actions[-1, 2] = stops
    env = FollowEnv(tasks=tasks, max_steps=8)
    env.reset(seed=2)
    *_, info = [env.step(action) for action in actions][-1]
    [flight] = runner.fly(Script(actions), Simulator(1), [env.task], max_steps=8)
    assert flight.ended_by[0] == ("stop" if stops else "steps")
    assert info["distance"] == metrics.final_distance(flight.path, env.task.gold_path)
    assert info["emd"] == metrics.emd(flight.path, env.task.gold_path)


def test_no_emd_is_computed_before_the_end(monkeypatch):
    def forbidden(*_):
        raise AssertionError("computed too early")

    monkeypatch.setattr(follow, "emd", forbidden)
    env = FollowEnv(tasks=[straight()])
    env.reset(seed=0)
    env.step(AHEAD)
    with pytest.raises(AssertionError, match="too early"):
        env.step(STOP)


@pytest.mark.parametrize(
    ("action", "meant"),
    [
        ([np.nan, np.nan, np.nan], [0.0, 0.0, 0.0]),
        ([np.nan, 0.5, 0.0], [0.0, 0.5, 0.0]),
        ([9.0, -9.0, 0.5], [0.7, -1.0, 0.0]),
        ([-9.0, np.inf, -9.0], [0.0, 1.0, 0.0]),
    ],
)
def test_setpoints_are_brought_into_their_limits_and_nan_hovers(action, meant):
    said = []
    for each in (action, meant):
        env = FollowEnv(tasks=[straight()])
        env.reset(seed=0)
        env.step(AHEAD)
        said.append(env.step(np.array(each, np.float32)))
    assert same(*said)
    assert not said[0][2]


@pytest.fixture(scope="module")
def cached(tmp_path_factory) -> Iterator[Dataset]:
    """A small cage where the corpora are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORDWING_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield small_cage(corpora.corpus_folder("cage", 0), steps=7, train=2, dev=1)


@pytest.mark.parametrize(
    ("name", "split", "flown"), [("cage", None, "train"), ("cage", "dev", "dev"), (None, None, "dev")]
)
def test_the_corpus_that_is_named_is_flown_all_of_it(cached, name, split, flown):
    dataset = cached if name else corpora.corpus("dev-mini")
    expected = [dataset.task(entry) for entry in dataset.instructions(flown)]
    env = FollowEnv(**({"corpus": name} if name else {}), split=split)
    assert env._worlds.max_steps == dataset.steps
    found = []
    for episode in range(len(expected)):
        observation, _ = env.reset(seed=None if episode else 3)
        assert observation in env.observation_space
        assert observation["instruction"] == env.task.instruction
        found.append(env.task)
    key = lambda task: (task.instruction, task.start_xy, task.start_yaw, task.gold_path.tolist())  # noqa: E731
    assert sorted(map(key, found)) == sorted(map(key, expected))
    assert list(map(key, found)) != list(map(key, expected)), "in an order of its own"


def test_episodes_of_a_corpus_stay_in_their_spaces(cached):
    rng = np.random.default_rng(7)
    env = FollowEnv("cage")
    observation, _ = env.reset(seed=3)
    for action in random_actions(rng, 6, stops=0.0):
        assert observation in env.observation_space
        observation = env.step(action)[0]


def test_even_a_drone_that_has_left_the_arena_is_observed_within_the_spaces():
    envs = FollowVectorEnv(2, tasks=[straight(x=2.2)], safety=False)
    observations, _ = envs.reset(seed=0)
    for _ in range(8):
        assert observations in envs.observation_space
        observations = envs.step(np.full((2, 3), [0.7, 0.0, 0.0], np.float32))[0]


def test_the_image_shows_the_drone_where_it_is_and_the_path_behind_it():
    env = FollowEnv(tasks=[straight(x=-1.0)], render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    before = env.render()
    assert before.shape == (300, 300, 3)
    assert before.dtype == np.uint8
    for _ in range(12):
        observation = env.step(AHEAD)[0]
    after = env.render()
    start = map_pixels(np.array([-1.0, 0.0]), 300).astype(int)
    drone = map_pixels(observation["pose"][:2], 300).astype(int)
    assert drone[1] < start[1] - 50  # x is up
    for column, row in (start, drone):
        assert tuple(after[row, column]) == FLOWN
    assert tuple(before[start[1], start[0]]) == FLOWN
    assert tuple(before[drone[1], drone[0]]) != FLOWN


def test_the_image_of_a_new_episode_shows_its_own_world(tasks):
    env = FollowEnv(tasks=tasks, render_mode="rgb_array")
    pictures = {}
    for seed in (0, 0, *range(1, 6)):
        env.reset(seed=seed)
        pictures.setdefault(env.task.start_xy, []).append(env.render())
    assert len(pictures) > 1
    for ours in pictures.values():
        assert all(same(ours[0], picture) for picture in ours)
    fences = (slice(20, -20), slice(20, -20))
    (a, *_), (b, *_), *_ = pictures.values()
    assert (a[fences] != b[fences]).any(axis=-1).mean() > 0.05


def test_without_a_render_mode_there_is_no_image():
    env = FollowEnv(tasks=[straight()])
    env.reset(seed=0)
    assert env.render() is None


def test_a_step_before_a_reset_is_refused(tasks):
    with pytest.raises(ResetNeeded, match="before the first step"):
        FollowVectorEnv(2, tasks=tasks).step(np.zeros((2, 3)))
    env = FollowEnv(tasks=tasks)
    env.reset(seed=0)
    env.step(STOP)
    with pytest.raises(ResetNeeded, match="has ended in world 0"):
        env.step(HOVER)


def test_actions_of_another_shape_are_refused(tasks):
    envs = FollowVectorEnv(2, tasks=tasks)
    envs.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"\[2, 3\], not \[3\]"):
        envs.step(HOVER)


@pytest.mark.parametrize("mask", [[True], [False, False], [1, 0]])
def test_a_reset_mask_that_makes_no_sense_is_refused(mask, tasks):
    envs = FollowVectorEnv(2, tasks=tasks)
    envs.reset(seed=0)
    with pytest.raises(WordwingError, match="2 booleans"):
        envs.reset(options={"reset_mask": np.array(mask)})


def test_arguments_that_make_no_sense_are_answered_with_a_sentence(tasks):
    with pytest.raises(WordwingError, match='there is no corpus "cages"; did you mean "cage"'):
        FollowEnv("cages")
    with pytest.raises(WordwingError, match='no render mode is called "human"; there is rgb_array'):
        FollowEnv(render_mode="human")
    with pytest.raises(WordwingError, match="tasks is empty"):
        FollowEnv(tasks=[])
    with pytest.raises(WordwingError, match="task 2: an instruction is 1 to 2000 printable"):
        FollowEnv(tasks=[tasks[0], replace(tasks[1], instruction="fliege zum Faß")])
    with pytest.raises(WordwingError, match="max_steps is 0"):
        FollowEnv(max_steps=0)
    with pytest.raises(WordwingError, match="2 worlds need as many seeds, not 3"):
        FollowVectorEnv(2, tasks=tasks).reset(seed=[1, 2, 3])
