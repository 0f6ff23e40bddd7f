"""Cloning against flying the same pictures one by one, and hand-computed losses."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_expit

from small_policy import CONFIG
from small_run import examples_of, random_rollouts
from wordwing.learning.cloning import Cloning, CloningConfig, cloning_loss
from wordwing.learning.contexts import ContextConfig, Contexts, ContextSource
from wordwing.learning.executions import ExecutionSet
from wordwing.learning.losses import GoldConfig, gold_visitation, observed_part, run_stage1
from wordwing.learning.runtime.updates import generator_of
from wordwing.model.ego import EgoView
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.model.stage1 import Stage1Config
from wordwing.model.stage2 import Stage2, Stage2Config
from wordwing.model.text import TextConfig
from wordwing.model.vision import VisionConfig
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

MIXED = ContextConfig(images=3, foreign_motions=0.3, look_arounds=0.2)
SIZES = (4, 2, 2)


def cloning_of(run, gold: float, network: PolicyNetwork | None = None, contexts: ContextConfig = MIXED, **more):
    source = ContextSource(run.examples, more.pop("executions", None) or run.executions(), run.lab(), contexts, SIZES)
    if network is None:
        network = lively(run.network())
    return Cloning(network, source, CloningConfig(gold=gold, **more), GoldConfig())


def lively(network: PolicyNetwork) -> PolicyNetwork:
    """What it decides depends on what it plans."""
    with torch.no_grad():
        network.stage2.network.last.weight.mul_(100)
    return network


def drawn(cloning: Cloning) -> Contexts:
    """The batch that its next update will learn from."""
    return cloning.source.draw(generator_of(cloning.source.device, cloning.seed, "cloning", cloning.updates))


@torch.no_grad()
def views(network: PolicyNetwork, contexts: Contexts, gold: bool) -> list[EgoView]:
    """What stage 2 gets in each context, by flying along: of its own plan, or of the gold one."""
    found = []
    whole = gold_visitation(contexts.examples.points, contexts.examples.start, GoldConfig())
    for row in range(len(contexts.examples)):
        one = contexts.examples[row : row + 1]
        state = network.begin(one.tokens, one.start)
        for picture in range(contexts.stop.shape[1]):
            if row < len(contexts.sim_image):
                image, domain = contexts.sim_image[row, picture], "sim"
            else:
                image, domain = contexts.lab_image[row - len(contexts.sim_image), picture], "lab"
            state, beliefs = network(state, image[None], contexts.pose[row : row + 1, picture], domain)
            view = beliefs.view
            if gold:
                mine = replace(
                    whole,
                    trajectory=whole.trajectory[row, None],
                    goal=whole.goal[row, None],
                    unobserved=whole.unobserved[row, None],
                )
                plan = observed_part(mine, network.stage1.support(state.observed))
                view = network.view(plan, state.observed, state.arena, state.boundary, beliefs.pose)
            found.append(view)
    return found


def losses_by_hand(network: PolicyNetwork, contexts: Contexts, gold: bool, counted: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy of STOP, and mean squared error of the shares where it was not STOP."""
    chances, errors = [], []
    for at, view in enumerate(views(network, contexts, gold)):
        row, picture = divmod(at, contexts.stop.shape[1])
        if not counted[row, picture]:
            continue
        with torch.no_grad():
            control = network.stage2(view)
        stop = bool(contexts.stop[row, picture])
        logit = float(control.stop_logit[0])
        chances.append(-log_expit(logit if stop else -logit))
        if not stop:
            forward, yaw_rate = contexts.setpoint[row, picture].tolist()
            means = control.mean[0].tolist()
            errors.append((means[0] - forward / 0.7) ** 2 + (means[1] - yaw_rate / 1.0) ** 2)
    return float(np.mean(chances)), float(np.mean(errors))


@pytest.mark.parametrize("gold", [0.0, 1.0])
def test_losses_are_those_of_the_flight_itself_and_only_own_executions_count(run, gold):
    cloning = cloning_of(run, gold, learning_rate=0.0)
    contexts = drawn(cloning)
    assert 2 < int(contexts.own.sum()) < 8
    counted = contexts.own[:, None].expand(-1, 3).numpy()
    stop, velocity = losses_by_hand(cloning.network, contexts, bool(gold), counted)
    everything = losses_by_hand(cloning.network, contexts, bool(gold), np.ones_like(counted))
    figures = cloning.update()
    assert float(figures["cloning/stop"]) == pytest.approx(stop, rel=1e-4)
    assert float(figures["cloning/velocity"]) == pytest.approx(velocity, rel=1e-4)
    assert everything != pytest.approx((stop, velocity), rel=1e-2)


def test_some_contexts_show_gold_and_the_others_the_plan(run):
    cloning = cloning_of(run, 0.5)
    network, contexts = cloning.network, drawn(cloning)
    with torch.no_grad():
        seen = run_stage1(network, contexts, network.stage1.encode_text(contexts.examples.tokens))[0]
        shown = torch.arange(24) % 3 == 0
        mixed = cloning._view(contexts, seen, shown)
    planned, wanted = views(network, contexts, False), views(network, contexts, True)
    for at in range(24):
        right, wrong = (wanted, planned) if shown[at] else (planned, wanted)
        for name in ("close", "whole", "unobserved"):
            assert (getattr(mixed, name)[at] - getattr(right[at], name)[0]).abs().max() < 1e-4
        assert (mixed.whole[at] - wrong[at].whole[0]).abs().max() > 1e-2


def test_without_observability_stage_2_knows_nothing_of_exploration(run):
    config = replace(CONFIG, stage1=replace(CONFIG.stage1, observability=False))
    cloning = cloning_of(run, 0.5, network=lively(run.network(config=config)))
    network, contexts = cloning.network, drawn(cloning)
    with torch.no_grad():
        seen = run_stage1(network, contexts, network.stage1.encode_text(contexts.examples.tokens))[0]
        view = cloning._view(contexts, seen, torch.arange(24) < 12)
    assert (view.whole[:, 2:] == 0).all()
    assert view.unobserved.abs().max() < 1e-6
    planned = views(network, contexts, False)
    assert (view.whole[20] - planned[20].whole[0]).abs().max() < 1e-4


def random_views(rng: np.random.Generator, count: int) -> EgoView:
    arrays = (rng.random((count, 2, 16, 16)), rng.random((count, 4, 24, 24)), rng.random((count, 2)))
    return EgoView(*(torch.from_numpy(array).float() for array in arrays))


def test_the_loss_is_a_mean_over_what_is_masked_in_and_velocities_count_where_nobody_stopped(rng):
    torch.manual_seed(0)
    stage2, view = Stage2(Stage2Config()), random_views(rng, 6)
    setpoint = torch.from_numpy(rng.uniform([0, -1], [0.7, 1], (6, 2))).float()
    stop = torch.tensor([True, False, False, True, False, False])
    mask = torch.tensor([True, True, False, False, True, True])
    with torch.no_grad():
        stage2.network.last.weight.mul_(100)
        control = stage2(view)
        found = cloning_loss(stage2, view, setpoint, stop, mask)
    chance = control.stop_probability.double().numpy()
    terms = [-math.log(chance[0]), *(-math.log(1 - chance[at]) for at in (1, 4, 5))]
    assert float(found["stop"]) == pytest.approx(np.mean(terms), rel=1e-5)
    shares = setpoint.double().numpy() / [0.7, 1.0]
    errors = [((control.mean[at].double().numpy() - shares[at]) ** 2).sum() for at in (1, 4, 5)]
    assert float(found["velocity"]) == pytest.approx(np.mean(errors), rel=1e-5)


def test_where_nothing_is_known_nothing_is_learned(rng):
    stage2 = Stage2(Stage2Config())
    nobody = torch.zeros(3, dtype=torch.bool)
    found = cloning_loss(stage2, random_views(rng, 3), torch.full((3, 2), 0.5), nobody, nobody)
    assert [found["stop"].item(), found["velocity"].item()] == [0, 0]
    (found["stop"] + found["velocity"]).backward()
    assert all((parameter.grad == 0).all() for parameter in stage2.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("kind", ["standing", "rolled"])
def test_neither_rollouts_nor_standing_drones_are_cloned(run, rng, kind):
    executions = run.executions()
    if kind == "standing":
        executions = ExecutionSet.standing(run.examples, 5)
    else:
        total = len(run.examples)
        executions.merge(random_rollouts(rng, list(range(total)), [4] * total, 1.0))
    source = ContextSource(run.examples, executions, None, ContextConfig(2, 0.0, 0.0), (3, 0, 0))
    cloning = Cloning(run.network(), source, CloningConfig(), GoldConfig())
    before = {name: tensor.clone() for name, tensor in cloning.network.state_dict().items()}
    figures = cloning.update()
    assert float(figures["cloning/stop"]) == float(figures["cloning/velocity"]) == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in cloning.network.state_dict().items())


def test_only_stage_2_learns_and_nonsense_teaches_it_nothing(run):
    cloning = cloning_of(run, 0.5)
    network = cloning.network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    figures = cloning.update()
    changed = {name for name, tensor in network.state_dict().items() if not torch.equal(tensor, before[name])}
    learned = {f"stage2.{name}" for name, _parameter in network.stage2.named_parameters()}
    assert changed == learned
    assert float(figures["cloning/gradient_norm"]) > 0
    assert not bool(figures["cloning/skipped_updates"])

    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    remembered = [entry["exp_avg"].clone() for entry in cloning.optimizer.state.values()]
    examples = cloning.source.examples
    points = torch.full_like(examples.examples.points, math.nan)
    cloning.source.examples = replace(examples, examples=replace(examples.examples, points=points))
    assert bool(cloning.update()["cloning/skipped_updates"])
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    kept = [entry["exp_avg"] for entry in cloning.optimizer.state.values()]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(kept, remembered, strict=True))


def fan(bearings: list[float]) -> list[Task]:
    """From the middle of the arena to goals 1.2 m away, at some angles to the left."""
    layout = Layout((Placement("Barrel", 1.8, 1.8), Placement("Box", 1.8, -1.8), Placement("Stump", -1.8, 0.0)))
    return [
        Task("go", layout, (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [1.2 * math.cos(b), 1.2 * math.sin(b)]]))
        for b in bearings
    ]


def test_stage_2_learns_to_turn_to_the_goal_and_to_stop_there(tmp_path):
    examples, executions, vocabulary = examples_of(fan([-1.2, -0.6, 0.6, 1.2]), tmp_path)
    tiny = Stage1Config(VisionConfig(2), TextConfig(2, 2), LingUNetConfig(channels=2, filtered=2, last=2), grounding=1)
    torch.manual_seed(0)
    network = PolicyNetwork(ModelConfig(tiny), len(vocabulary))  # gold is shown, so stage 1 hardly matters
    source = ContextSource(examples, executions, None, ContextConfig(6, 0.0, 0.0, rotation=0.3), (6, 0, 0))
    cloning = Cloning(network, source, CloningConfig(gold=1.0, learning_rate=1e-2), GoldConfig())
    for _update in range(25):
        cloning.update()
    test = ContextSource(examples, executions, None, ContextConfig(6, 0.0, 0.0, rotation=0.3), (16, 0, 0))
    contexts = test.draw(torch.Generator().manual_seed(1))
    with torch.no_grad():
        seen = run_stage1(network, contexts, network.stage1.encode_text(contexts.examples.tokens))[0]
        control = network.stage2(cloning._view(contexts, seen, torch.ones(96, dtype=torch.bool)))
    turning = contexts.setpoint[..., 1].flatten()
    hard = turning.abs() > 0.4
    right = (control.mean[:, 1].sign() == turning.sign())[hard]
    stopped = (control.stop_probability > 0.5) == contexts.stop.flatten()
    assert int(hard.sum()) > 10
    assert right.float().mean() > 0.95
    assert stopped.float().mean() > 0.9
    assert (control.stop_probability[contexts.stop.flatten()] > 0.5).float().mean() > 0.7
