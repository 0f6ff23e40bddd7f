import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from wordwing.frames import Pose, start_frame
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.evaluator import FirstLooks, assess, predict
from wordwing.learning.losses import GoldConfig
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.model.stage1 import Stage1Config
from wordwing.model.visitation import cross_entropy, entropy, visitation
from wordwing.world.tasks import Task

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "first_look"))
from first_look import excess_without_reading, fit, four_ways


def looks_of(tasks: list[Task]) -> tuple[FirstLooks, Vocabulary]:
    vocabulary = Vocabulary.of([task.instruction for task in tasks], min_count=1)
    return FirstLooks.of(tasks, vocabulary), vocabulary


def action_penalty(
    looks: FirstLooks, vocabulary: Vocabulary, stage1: Stage1Config, steps: int, rate: float
) -> torch.Tensor:
    torch.manual_seed(0)
    network = PolicyNetwork(ModelConfig(stage1=stage1), len(vocabulary))
    fit(network, looks, steps, len(looks), rate, GoldConfig())
    found = assess(network, looks, GoldConfig())
    return (found.cross_entropy - found.gold_entropy).mean(0)


def test_every_drone_looks_from_its_own_start():
    tasks = four_ways(0, places=3)
    looks, _vocabulary = looks_of(tasks)
    assert looks.image.shape == (12, 1, 72, 128, 3)
    assert torch.equal(looks.image[0], looks.image[3])
    assert not torch.equal(looks.image[3], looks.image[4])
    part = looks[torch.tensor([5])]
    assert torch.equal(part.image[0], looks.image[5])
    assert part.start.xy[0].tolist() == pytest.approx(tasks[5].start_xy, abs=1e-6)


def test_goal_error_is_the_distance_from_the_likeliest_cell_to_the_end_of_the_path():
    tasks = four_ways(0, places=1)
    looks, vocabulary = looks_of(tasks)
    torch.manual_seed(1)
    network = PolicyNetwork(ModelConfig(), len(vocabulary)).eval()
    found = assess(network, looks, GoldConfig(), batch=3)
    with torch.no_grad():
        outcome = predict(network, looks, GoldConfig())
    goal = visitation(outcome.scores, outcome.observed).goal
    for number, task in enumerate(tasks):
        row, column = divmod(int(goal[number].argmax()), 64)
        ahead, left = (31.5 - row) * 4.7 / 32, (31.5 - column) * 4.7 / 32
        start = Pose.level(torch.tensor(task.start_xy), torch.tensor(task.start_yaw))
        place = start_frame(start).apply(torch.tensor([ahead, left, 0.0]))[:2].numpy()
        assert float(found.goal_error[number]) == pytest.approx(np.hypot(*(place - task.gold_path[-1])), abs=1e-4)


def test_a_few_updates_bring_the_loss_down():
    looks, vocabulary = looks_of(four_ways(0, places=1))
    small = Stage1Config(lingunet=LingUNetConfig(channels=16, filtered=8, last=16))
    before = action_penalty(looks, vocabulary, small, steps=0, rate=2e-3)
    after = action_penalty(looks, vocabulary, small, steps=20, rate=2e-3)
    assert (after < 0.8 * before).all()


def test_no_prediction_that_ignores_the_text_comes_near_the_gold_of_four_ways():
    looks, vocabulary = looks_of(four_ways(0, places=2))
    network = PolicyNetwork(ModelConfig(), len(vocabulary)).eval()
    least = excess_without_reading(network, looks)
    assert (least > 0.5).all()
    # Any other prediction that is the same for all four is worse.
    for _trial in range(3):
        outcome = predict(network, looks, GoldConfig())
        outcome.scores.cells[:] = 3 * torch.randn(2, 1, 2, 64, 64).expand(2, 4, 2, 64, 64).flatten(0, 1)
        loss = cross_entropy(outcome.scores, outcome.observed, outcome.gold)
        assert ((loss - entropy(outcome.gold)).mean(0) > least).all()


@pytest.mark.long
def test_stage_1_learns_four_instructions_from_each_of_eight_places():
    looks, vocabulary = looks_of(four_ways(0))
    torch.manual_seed(0)
    network = PolicyNetwork(ModelConfig(), len(vocabulary))
    fit(network, looks, steps=300, batch=8, rate=1e-3, gold=GoldConfig())
    found = assess(network, looks, GoldConfig())
    assert ((found.cross_entropy - found.gold_entropy).mean(0) < 0.05).all()
