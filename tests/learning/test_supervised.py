"""Process A's updates: who is moved by what, when nothing is moved, and that the words are learned."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from small_policy import CONFIG
from small_run import SmallRun, examples_of, random_rollouts
from wordwing.frames import Pose
from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.contexts import ContextConfig, ContextSource, FlightCamera
from wordwing.learning.losses import GoldConfig, LossConfig, Weights, gold_visitation, losses, run_stage1
from wordwing.learning.recipes.config import SupervisedConfig
from wordwing.learning.runtime.updates import adam, generator_of, optimizer_step, set_rate
from wordwing.model.discriminator import DiscriminatorConfig, wasserstein
from wordwing.model.policy import PolicyNetwork

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "first_look"))
from first_look import four_ways

SMALL = SupervisedConfig(
    executions=2, cage_executions=1, contexts=ContextConfig(images=2), discriminator_updates=3, discriminator_images=2
)
NOTHING = Weights(0.0, 0.0, 0.0, 0.0)


def learner_of(run: SmallRun, config: SupervisedConfig = SMALL, seed: int = 0, lab: bool = True) -> Supervised:
    torch.manual_seed(7)
    return Supervised(run.network(), run.examples, run.executions(), run.lab() if lab else None, config, seed)


def copies(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def moved(module: nn.Module, before: dict[str, torch.Tensor]) -> set[str]:
    return {name for name, tensor in module.state_dict().items() if not torch.equal(tensor, before[name])}


def memory(optimizer: torch.optim.Adam) -> list[torch.Tensor]:
    """All that Adam remembers."""
    return [tensor.clone() for entry in optimizer.state.values() for _name, tensor in sorted(entry.items())]


def test_an_update_moves_stage_1_and_the_heads_and_leaves_stage_2_alone(run):
    learner = learner_of(run)
    before = {name: copies(module) for name, module in learner.modules.items()}
    stage2 = copies(learner.network.stage2)
    metrics = learner.update()
    assert learner.updates == 1
    assert moved(learner.network.stage1, before["stage1"]) == set(before["stage1"])
    assert moved(learner.heads, before["heads"]) == set(before["heads"])
    still = {"last.bias"}  # which takes itself out of the difference of two scores
    assert moved(learner.discriminator, before["discriminator"]) == set(before["discriminator"]) - still
    assert moved(learner.network.stage2, stage2) == set()
    assert all(math.isfinite(float(value)) for value in metrics.values())
    assert not bool(metrics["supervised/skipped_updates"])


def test_the_models_optimiser_does_not_move_the_discriminator(run):
    learner = learner_of(run, replace(SMALL, discriminator_rate=0.0))
    before = copies(learner.discriminator)
    for _update in range(2):
        learner.update()
    assert moved(learner.discriminator, before) == set()
    assert any(bool((parameter.grad != 0).any()) for parameter in learner.discriminator.parameters())
    mine = {id(parameter) for group in learner.optimizer.param_groups for parameter in group["params"]}
    assert mine.isdisjoint(id(parameter) for parameter in learner.discriminator.parameters())


def test_the_discriminators_optimiser_does_not_move_the_model(run):
    learner = learner_of(run, replace(SMALL, learning_rate=0.0))
    before = copies(learner.network)
    metrics = learner.update()
    assert moved(learner.network, before) == set()
    assert float(metrics["supervised/discriminator_loss"]) != 0


def test_the_discriminator_is_updated_k_times_for_each_update_of_the_model_and_stays_clamped(run):
    learner = learner_of(run, replace(SMALL, discriminator_rate=0.1))
    for parameter in learner.discriminator.parameters():
        assert parameter.abs().max() <= 0.01
    for _update in range(2):
        learner.update()
        for parameter in learner.discriminator.parameters():
            assert parameter.abs().max() <= 0.01
    counts = [{int(entry["step"]) for entry in o.state.values()} for o in learner.optimizers.values()]
    assert counts == [{2}, {6}]


def test_without_a_wasserstein_loss_or_a_lab_there_is_no_discriminator_to_train(run):
    for learner in (
        learner_of(run, replace(SMALL, losses=LossConfig(wasserstein=0.0))),
        learner_of(run, lab=False),
    ):
        before = copies(learner.discriminator)
        metrics = learner.update()
        assert moved(learner.discriminator, before) == set()
        assert "supervised/discriminator_loss" not in metrics
        assert "supervised/wasserstein" not in metrics


def test_the_discriminator_sees_cage_demonstrations_of_both_domains_even_when_rollouts_have_replaced_them(run, rng):
    learner = learner_of(run, replace(SMALL, discriminator_updates=10, discriminator_images=4))
    total = len(run.examples)
    learner.executions.merge(random_rollouts(rng, list(range(total)), [5] * total, 1.0))
    assert learner.executions.demonstrations_left == 0
    shown = []
    learner.discriminator.register_forward_pre_hook(lambda _module, inputs: shown.append(inputs[0].clone()))
    images: dict[str, torch.Tensor] = {}
    for domain, encoder in learner.network.stage1.vision.items():
        encoder.register_forward_pre_hook(
            lambda _m, inputs, domain=domain: images.setdefault(domain, inputs[0].clone())
        )
    learner._update_discriminator(learner._discriminator_camera)

    assert sum(len(features) for features in shown) == 80
    assert len(images["sim"]) == len(images["lab"]) == 40
    from_lab = {image.numpy().tobytes() for image in learner.lab.images}
    assert {image.numpy().tobytes() for image in images["lab"]} <= from_lab
    flights = [(number, run.flight(number)) for number in run.examples.of("cage").tolist()]
    camera = FlightCamera(sum(len(flight) for _number, flight in flights), 1, learner.device)
    where = torch.cat([torch.full((len(flight),), number) for number, flight in flights])
    poses = Pose(*(torch.cat([getattr(f, name) for _n, f in flights])[:, None] for name in ("position", "quaternion")))
    all_seen = camera.render(run.examples.layouts.take(run.examples.examples.layout[where]), poses)[:, 0]
    demonstrated = {image.numpy().tobytes() for image in all_seen}
    found = {image.numpy().tobytes() for image in images["sim"]}
    assert found <= demonstrated
    assert len(found) > 25


def test_the_discriminator_raises_the_distance_that_the_model_lowers(run):
    config = replace(
        SMALL,
        cage_executions=2,
        losses=LossConfig(NOTHING, NOTHING, wasserstein=1.0),
        discriminator=DiscriminatorConfig(clamp=0.0),
        discriminator_updates=8,
        discriminator_images=4,
        discriminator_rate=4e-3,
        learning_rate=1e-3,
    )
    learner = learner_of(run, config)
    generator = generator_of(learner.device, 1, "test", 0)
    sim = learner.source.cage_images(learner._discriminator_camera, generator)
    lab = learner.lab.image(*learner.lab.sample_poses(len(sim), generator))[:, 0]

    def distance() -> float:
        with torch.no_grad():
            stage1 = learner.network.stage1
            return float(
                wasserstein(learner.discriminator, stage1.encode_images(sim, "sim"), stage1.encode_images(lab, "lab"))
            )

    first = distance()
    learner._generator.manual_seed(generator.initial_seed())
    learner._update_discriminator(learner._discriminator_camera)
    taught = distance()
    assert taught > first + 0.1
    learner._discriminator_camera = None  # from here on only the model learns
    for _update in range(5):
        learner.update()
    assert distance() < 0.9 * taught


def test_the_learning_rate_falls_along_a_cosine_to_its_last_share(run):
    learner = learner_of(run, replace(SMALL, learning_rate=2e-3, discriminator_rate=4e-3, final_rate=0.1))
    for progress, share in ((0.0, 1.0), (0.5, 0.55), (1.0, 0.1), (2.0, 0.1)):
        metrics = learner.update(progress)
        assert float(metrics["supervised/learning_rate"]) == pytest.approx(2e-3 * share, rel=1e-5)
        assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(2e-3 * share)
        assert learner.discriminator_optimizer.param_groups[0]["lr"] == pytest.approx(4e-3 * share)


def test_the_same_seed_learns_the_same_and_another_one_does_not(run):
    first, again, other = learner_of(run), learner_of(run), learner_of(run, seed=1)
    for learner in (first, again, other):
        for _update in range(2):
            learner.update()
    assert moved(first.network, copies(again.network)) == set()
    assert len(moved(first.network.stage1, copies(other.network.stage1))) > 10


def test_an_update_depends_on_its_number_not_on_those_before_it(run):
    learner, late = learner_of(run), learner_of(run)
    rates = replace(SMALL, learning_rate=0.0, discriminator_rate=0.0)
    learner.config = late.config = rates
    metrics = [learner.update() for _update in range(3)]
    late.updates = 2
    assert float(late.update()["supervised/loss"]) == float(metrics[2]["supervised/loss"])
    assert float(metrics[1]["supervised/loss"]) != float(metrics[2]["supervised/loss"])


@pytest.mark.parametrize("what", ["dropout", "gradient penalty"])
def test_an_update_depends_on_nothing_else_that_is_random(run, what):
    text = replace(CONFIG.stage1.text, dropout=0.5)
    model = replace(CONFIG, stage1=replace(CONFIG.stage1, text=text)) if what == "dropout" else CONFIG
    discriminator = DiscriminatorConfig(clamp=0.0, gradient_penalty=10.0) if what != "dropout" else SMALL.discriminator
    config = replace(SMALL, discriminator=discriminator)
    found = []
    for elsewhere in (1, 2):
        torch.manual_seed(7)
        learner = Supervised(run.network(config=model), run.examples, run.executions(), run.lab(), config)
        torch.manual_seed(elsewhere)
        metrics = learner.update()
        found.append([float(metrics[f"supervised/{name}"]) for name in ("loss", "discriminator_loss")])
    assert found[0] == found[1]


def spoil_points(learner: Supervised) -> None:
    examples = learner.examples
    spoiled = replace(examples.examples, points=torch.full_like(examples.examples.points, math.nan))
    learner.source.examples = replace(examples, examples=spoiled)


def spoil_features(learner: Supervised) -> None:
    learner.network.stage1.vision["sim"].register_forward_hook(lambda _module, _inputs, features: features * math.nan)


def spoil_loss(learner: Supervised) -> None:
    compute = learner._loss

    def infinite(**given):
        loss, statistics = compute(**given)
        return loss * math.inf, statistics

    learner._loss = infinite


@pytest.mark.parametrize("spoil", [spoil_points, spoil_features, spoil_loss])
@pytest.mark.parametrize("updates", [0, 2])
def test_nonsense_in_a_batch_changes_neither_parameters_nor_what_adam_remembers(run, spoil, updates):
    learner = learner_of(run)
    for _update in range(updates):
        learner.update()
    before = {name: copies(module) for name, module in learner.modules.items()}
    remembered = memory(learner.optimizer)
    spoil(learner)
    metrics = learner.update()
    assert bool(metrics["supervised/skipped_updates"])
    for name in ("stage1", "heads"):
        assert moved(learner.modules[name], before[name]) == set()
    if updates:
        assert all(torch.equal(a, b) for a, b in zip(memory(learner.optimizer), remembered, strict=True))
    assert {int(entry["step"]) for entry in learner.optimizer.state.values()} <= {updates}
    if spoil is spoil_features:  # the discriminator was shown the same nonsense
        assert moved(learner.discriminator, before["discriminator"]) == set()


def test_after_nonsense_learning_goes_on_as_if_it_had_not_been(run):
    plain, spoiled = learner_of(run, lab=False), learner_of(run, lab=False)
    plain.update()
    spoiled.update()
    examples = spoiled.source.examples
    spoil_points(spoiled)
    assert bool(spoiled.update()["supervised/skipped_updates"])
    spoiled.source.examples = examples
    spoiled.updates = 1
    plain.update()
    spoiled.update()
    assert moved(plain.network, copies(spoiled.network)) == set()


def test_a_step_is_that_of_plain_adam_with_shortened_gradients():
    mine, theirs = (nn.Parameter(torch.tensor([3.0, -2.0, 0.5])) for _ in range(2))
    optimizer = adam([mine], 0.1, weight_decay=0.01)
    reference = torch.optim.Adam([theirs], 0.1, weight_decay=0.01)
    for number in range(5):
        target = torch.tensor([1.0, float(number), -2.0])
        set_rate(optimizer, 0.05)
        norm, lost = optimizer_step(optimizer, (10 * (mine - target) ** 2).sum(), max_norm=7.0)
        reference.param_groups[0]["lr"] = 0.05
        gradient = 20 * (theirs.detach() - target)
        assert float(norm) == pytest.approx(float(gradient.norm()), rel=1e-5)
        theirs.grad = gradient * min(1.0, 7.0 / float(gradient.norm()))
        reference.step()
        assert mine.detach().numpy() == pytest.approx(theirs.detach().numpy(), rel=1e-5)
        assert not bool(lost)
    optimizer_step(optimizer, mine.sum())
    assert optimizer.param_groups[0]["lr"] == 0.05


def test_groups_of_parameters_have_their_gradients_clipped_apart():
    small, large = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    optimizer = adam([small], 0.1)
    optimizer.add_param_group({"params": [large]})
    clipped = []
    really = optimizer.step
    optimizer.step = lambda: (clipped.extend([small.grad.clone(), large.grad.clone()]), really())  # type: ignore
    norm, _lost = optimizer_step(optimizer, (small * torch.tensor([0.3, 0.4])).sum() + 40 * large.sum(), max_norm=1.0)
    assert torch.allclose(clipped[0], torch.tensor([0.3, 0.4])), "short enough"
    assert torch.allclose(clipped[1], torch.full((2,), 0.5**0.5), atol=1e-5), "shortened to 1"
    assert float(norm) == pytest.approx(math.hypot(0.5, 40 * 2**0.5), rel=1e-5)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -math.inf])
def test_a_step_is_left_out_when_only_the_gradient_or_only_the_loss_is_not_a_number(nonsense):
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = adam([weight], 0.1)
    optimizer_step(optimizer, weight.sum())
    before, remembered = weight.detach().clone(), memory(optimizer)

    class Spoiled(torch.autograd.Function):
        """Itself forwards, nonsense backwards."""

        @staticmethod
        def forward(_context, given):
            return given.clone()

        @staticmethod
        def backward(_context, gradient):
            return gradient * nonsense

    for loss in (Spoiled.apply(weight).sum(), weight.sum() + nonsense):
        _norm, lost = optimizer_step(optimizer, loss)
        assert bool(lost)
        assert torch.equal(weight, before)
        assert all(torch.equal(a, b) for a, b in zip(memory(optimizer), remembered, strict=True))
    _norm, lost = optimizer_step(optimizer, weight.sum())
    assert not bool(lost)
    assert (weight < before).all()


def test_generators_differ_by_seed_purpose_and_number_and_by_nothing_else():
    def drawn(*given) -> float:
        return float(torch.rand((), generator=generator_of(torch.device("cpu"), *given), dtype=torch.float64))

    names = [(0, "a", 0), (1, "a", 0), (0, "b", 0), (0, "a", 1), (0, "a", 10), (10, "a", 0), (0, "a1", 0)]
    assert len({drawn(*name) for name in names}) == len(names)
    assert drawn(0, "a", 1) == drawn(0, "a", 1)


def entropy_of(cells: torch.Tensor, observed: torch.Tensor) -> float:
    """Nats of a distribution [64, 64] of which all that was not observed lies in one place."""
    masses = torch.cat([cells[observed], cells[~observed].sum()[None]]).double()
    return float(torch.special.entr(masses).sum())


def test_four_instructions_from_one_place_are_told_apart(tmp_path):
    examples, executions, vocabulary = examples_of(four_ways(3, places=1), tmp_path)
    torch.manual_seed(1)
    network = PolicyNetwork(CONFIG, len(vocabulary))
    config = SupervisedConfig(
        executions=4,
        contexts=ContextConfig(images=2, foreign_motions=0.5, look_arounds=0.5, rotation=0.0),
        losses=LossConfig(Weights(1.0, 0.2, 0.2, 0.2)),
        learning_rate=1e-2,
        final_rate=0.1,
    )
    learner = Supervised(network, examples, executions, None, config)
    for number in range(60):
        learner.update(number / 60)

    source = ContextSource(examples, executions, None, config.contexts, (24, 0, 0))
    index = source.sample_motions(torch.Generator().manual_seed(0)).example
    contexts = source.draw(torch.Generator().manual_seed(0))
    network.eval()
    with torch.no_grad():
        kernels = network.stage1.encode_text(contexts.examples.tokens)
        seen = run_stage1(network, contexts, kernels)[0]
        parts = losses(network, learner.heads, contexts, kernels.instruction_embedding, seen, GoldConfig())
    reached = float((parts.trajectory + parts.goal).mean())
    # All start at one place and in half of the contexts nobody knows where to but by the words. Who does not read them
    # can do no better than the mean of the four golds; who does, no better than gold.
    gold = gold_visitation(examples.examples.points, examples.examples.start, GoldConfig()).cells  # [4, 2, 64, 64]
    blind = least = 0.0
    for row, observed in enumerate(seen.observed):
        for which in range(2):
            blind += entropy_of(gold[:, which].mean(0), observed) / len(seen.observed)
            least += entropy_of(gold[index[row // 2], which], observed) / len(seen.observed)
    assert blind - least > 1
    assert least < reached < least + 0.3 * (blind - least)


def test_the_average_of_stage_1_is_the_exponential_one_of_all_its_weights(run):
    learner = learner_of(run, replace(SMALL, average=0.6))
    name = "text.lstm.weight_hh_l0"
    expected = copies(learner.network.stage1)[name].double()
    for update in range(1, 16):
        learner.update()
        decay = min(0.6, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * copies(learner.network.stage1)[name].double()
    found = copies(learner.averaged.stage1)[name]
    assert torch.allclose(found.double(), expected, atol=1e-6)
    assert not torch.allclose(found, copies(learner.network.stage1)[name], atol=1e-5)
    assert learner.averaged.stage2 is learner.network.stage2


def test_the_average_does_not_change_what_is_learned(run):
    plain, averaged = learner_of(run), learner_of(run, replace(SMALL, average=0.9))
    for _update in range(2):
        plain.update()
        averaged.update()
    assert plain.averaged is plain.network
    assert moved(averaged.network.stage1, copies(plain.network.stage1)) == set()


def test_in_the_last_quarter_fewer_executions_have_more_images(run):
    config = replace(SMALL, executions=4, cage_executions=2, late_images=4)
    learner, seen = learner_of(run, config), []
    compute = learner._loss
    learner._loss = lambda **given: seen.append(given["contexts"].pose.position.shape[:2]) or compute(**given)
    for progress in (0.0, 0.74, 0.75, 1.0):
        learner.update(progress)
    assert seen == [(8, 2), (8, 2), (4, 4), (4, 4)]
