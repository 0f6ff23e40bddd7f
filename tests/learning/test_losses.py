"""L_SL against flying the same pictures one by one, and every term against plain loops over places and cells."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage
from scipy.special import log_expit, log_softmax

from small_policy import CONFIG
from wordwing.learning.contexts import ContextConfig, Contexts, ContextSource
from wordwing.learning.losses import (
    GoldConfig,
    LossConfig,
    Weights,
    gold_visitation,
    losses,
    run_stage1,
    supervised_loss,
)
from wordwing.model.discriminator import Discriminator, DiscriminatorConfig
from wordwing.model.policy import ModelConfig
from wordwing.model.stage1 import AuxiliaryHeads

CELL = 4.7 / 32
SIM, COMMON, LAB, PICTURES = 5, 2, 2, 3
"""ExecutionSet of `sim`, those of them that are of the cage for sure, of the lab; pictures of each."""
EVERY = SIM + LAB
TERMS = ("trajectory", "goal", "object", "grounding", "mention")


@pytest.fixture(scope="module")
def contexts(run) -> Contexts:
    config = ContextConfig(PICTURES, foreign_motions=0.4, look_arounds=0.2)
    source = ContextSource(run.examples, run.executions(), run.lab(), config, (SIM - COMMON, COMMON, LAB))
    return source.draw(torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def network(run):
    return run.network()


@pytest.fixture(scope="module")
def heads(network):
    return heads_of(network.config)


def heads_of(config: ModelConfig) -> AuxiliaryHeads:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return AuxiliaryHeads(config.stage1)


def wild_discriminator(channels: int) -> Discriminator:
    """One whose scores are not all but the same."""
    with torch.random.fork_rng():
        torch.manual_seed(6)
        return Discriminator(DiscriminatorConfig(clamp=0.0), channels)


@pytest.fixture(scope="module")
def seen(network, contexts):
    with torch.no_grad():
        return run_stage1(network, contexts, network.stage1.encode_text(contexts.examples.tokens))[0]


@pytest.fixture(scope="module")
def parts(network, heads, contexts, seen):
    with torch.no_grad():
        kernels = network.stage1.encode_text(contexts.examples.tokens)
        return losses(network, heads, contexts, kernels.instruction_embedding, seen, GoldConfig())


@pytest.mark.parametrize("change", [{}, {"mask_input": True}, {"observability": False}])
def test_looking_at_all_images_at_once_is_looking_at_one_after_the_other(run, contexts, change):
    config = replace(CONFIG, stage1=replace(CONFIG.stage1, **change))
    network = run.network(config=config)
    with torch.no_grad():
        network.stage1.vision["lab"].stem.weight.neg_()  # the eyes of both domains differ
        seen = run_stage1(network, contexts, network.stage1.encode_text(contexts.examples.tokens))[0]
        for row in range(EVERY):
            one = contexts.examples[row : row + 1]
            state = network.begin(one.tokens, one.start)
            for picture in range(PICTURES):
                place = contexts.pose[row : row + 1, picture]
                if row < SIM:
                    state, one_by_one = network(state, contexts.sim_image[row, picture, None], place, "sim")
                else:
                    state, one_by_one = network(state, contexts.lab_image[row - SIM, picture, None], place, "lab")
                at = row * PICTURES + picture
                assert torch.equal(seen.observed[at], state.observed[0])
                assert torch.equal(seen.in_view[at], one_by_one.in_view[0])
                for mine, theirs in (
                    (seen.image_features, one_by_one.image_features),
                    (seen.semantic_map, state.map.features),
                    (seen.grounding_map, one_by_one.grounding_map),
                    (seen.scores.cells, one_by_one.scores.cells),
                    *([(seen.scores.unobserved, one_by_one.scores.unobserved)] if config.stage1.observability else []),
                ):
                    assert (mine[at] - theirs[0]).abs().max() < 1e-4 * (1 + theirs.abs().max())


def in_start_frame(contexts: Contexts, row: int, point: np.ndarray) -> tuple[float, float]:
    start = contexts.examples.start
    x, y = start.xy[row].double().tolist()
    yaw = float(start.yaw[row])
    turned = complex(point[0] - x, point[1] - y) * complex(math.cos(-yaw), math.sin(-yaw))
    return turned.real, turned.imag


def interpolated(picture: np.ndarray, ahead: float, left: float) -> np.ndarray:
    """[C] of maps [C, 64, 64] at a place of the start frame; nothing off the map."""
    at = [[(4.7 - ahead) / CELL - 0.5], [(4.7 - left) / CELL - 0.5]]
    return np.array([ndimage.map_coordinates(channel, at, order=1, mode="constant", cval=0)[0] for channel in picture])


def test_visitation_losses_are_the_mean_cross_entropies_of_an_execution(contexts, network, seen, parts):
    gold = gold_visitation(contexts.examples.points, contexts.examples.start, GoldConfig())
    for row in range(EVERY):
        expected = np.zeros(2)
        for picture in range(PICTURES):
            at = row * PICTURES + picture
            observed = seen.observed[at].numpy()
            for which, whole in enumerate((gold.trajectory[row], gold.goal[row])):
                wanted = whole.double().numpy()
                scores = seen.scores.cells[at, which].double().numpy()
                logs = log_softmax(np.append(scores[observed], float(seen.scores.unobserved[at, which])))
                masses = np.append(wanted[observed], wanted[~observed].sum())
                expected[which] -= (masses * logs).sum() / PICTURES
        assert [float(parts.trajectory[row]), float(parts.goal[row])] == pytest.approx(expected, rel=1e-4)


def test_without_observability_gold_is_asked_for_on_the_whole_map(run, contexts, heads):
    network = run.network(config=replace(CONFIG, stage1=replace(CONFIG.stage1, observability=False)))
    gold = gold_visitation(contexts.examples.points, contexts.examples.start, GoldConfig())
    with torch.no_grad():
        kernels = network.stage1.encode_text(contexts.examples.tokens)
        seen = run_stage1(network, contexts, kernels)[0]
        found = losses(network, heads, contexts, kernels.instruction_embedding, seen, GoldConfig())
    for row in (0, EVERY - 1):
        logs = log_softmax(seen.scores.cells.double().numpy().reshape(EVERY, PICTURES, 2, -1), axis=-1)[row]
        wanted = gold.goal[row].double().numpy().ravel()
        assert float(found.goal[row]) == pytest.approx(-(wanted * logs[:, 1]).sum() / PICTURES, rel=1e-4)


def test_object_and_grounding_losses_name_what_the_newest_image_shows(contexts, heads, seen, parts):
    weights = {name: tensor.detach().double().numpy() for name, tensor in heads.named_parameters()}
    shown_landmarks = shown_clearings = hidden = 0
    for row in range(EVERY):
        standing = [
            (contexts.place[row, slot].double().numpy(), int(contexts.landmark[row, slot]))
            for slot in range(40)
            if contexts.present[row, slot]
        ]
        places = [(point, kind, bool(contexts.examples.mentioned[row, kind])) for point, kind in standing]
        for clearing in contexts.clearing[row].double().numpy():
            if all(math.dist(clearing, point) > 0.47 for point, _kind in standing):
                places.append((clearing, 89, False))
        recognised, grounded = [], []
        for picture in range(PICTURES):
            at = row * PICTURES + picture
            naming, telling = [], []
            for point, kind, named in places:
                here = in_start_frame(contexts, row, point)
                if interpolated(seen.in_view[at, None].double().numpy(), *here)[0] <= 0.5:
                    hidden += 1
                    continue
                features = interpolated(seen.semantic_map[at].double().numpy(), *here)
                naming.append(-log_softmax(weights["object.weight"] @ features + weights["object.bias"])[kind])
                features = interpolated(seen.grounding_map[at].double().numpy(), *here)
                logits = weights["grounding.weight"] @ features + weights["grounding.bias"]
                telling.append(-log_softmax(logits)[int(named)])
                shown_landmarks += kind < 89
                shown_clearings += kind == 89
            recognised.append(np.mean(naming) if naming else 0.0)
            grounded.append(np.mean(telling) if telling else 0.0)
        assert float(parts.object[row]) == pytest.approx(np.mean(recognised), rel=1e-3)
        assert float(parts.grounding[row]) == pytest.approx(np.mean(grounded), rel=1e-3)
    assert min(shown_landmarks, shown_clearings, hidden) > 5


def test_the_mention_loss_is_the_mean_over_all_kinds_of_landmarks(contexts, network, heads, parts):
    with torch.no_grad():
        embedding = network.stage1.encode_text(contexts.examples.tokens).instruction_embedding.double().numpy()
    weight, bias = (tensor.detach().double().numpy() for tensor in heads.mention.parameters())
    for row in range(EVERY):
        terms = []
        for kind in range(89):
            logit = weight[kind] @ embedding[row] + bias[kind]
            terms.append(-log_expit(logit if contexts.examples.mentioned[row, kind] else -logit))
        assert float(parts.mention[row]) == pytest.approx(np.mean(terms), rel=1e-5)
    assert contexts.examples.mentioned.any()


def whole_loss(run, contexts, heads, config: LossConfig):
    network = run.network()
    discriminator = wild_discriminator(8)
    kernels = network.stage1.encode_text(contexts.examples.tokens)
    with torch.no_grad():
        return supervised_loss(network, heads, discriminator, contexts, kernels, config)


def test_executions_count_alike_and_those_of_the_lab_a_twentieth_where_sentences_could_be_learned_by_heart(
    run, contexts, heads, seen, parts
):
    loss, statistics = whole_loss(run, contexts, heads, LossConfig(wasserstein=0.0))
    of = {name: getattr(parts, name).double().numpy() for name in TERMS}
    in_sim = sum(of[name][:SIM].mean() for name in TERMS)
    lab = {name: of[name][SIM:].mean() for name in TERMS}
    in_lab = 0.05 * (lab["trajectory"] + lab["goal"] + lab["mention"]) + lab["object"] + lab["grounding"]
    assert float(loss) == pytest.approx(in_sim + in_lab, rel=1e-5)
    for name in TERMS:
        assert float(statistics[f"supervised/{name}"]) == pytest.approx(of[name][:SIM].mean(), rel=1e-5)
    assert float(statistics["supervised/lab_goal"]) == pytest.approx(lab["goal"], rel=1e-5)


@pytest.mark.parametrize("name", ["visitation", "object", "grounding", "mention"])
def test_each_weight_is_that_of_its_own_terms(run, contexts, heads, parts, name):
    nothing = Weights(0.0, 0.0, 0.0, 0.0)
    config = LossConfig(replace(nothing, **{name: 2.0}), replace(nothing, **{name: 0.5}), wasserstein=0.0)
    terms = ("trajectory", "goal") if name == "visitation" else (name,)
    expected = sum(2.0 * getattr(parts, t)[:SIM].mean() + 0.5 * getattr(parts, t)[SIM:].mean() for t in terms)
    assert float(whole_loss(run, contexts, heads, config)[0]) == pytest.approx(float(expected), rel=1e-5)


def test_the_wasserstein_term_compares_demonstrations_of_both_domains_only(run, contexts, heads, seen, network):
    nothing = Weights(0.0, 0.0, 0.0, 0.0)
    loss, statistics = whole_loss(run, contexts, heads, LossConfig(nothing, nothing, wasserstein=3.0))
    discriminator = wild_discriminator(8)
    assert len(contexts.cage_image) == 2 * COMMON
    with torch.no_grad():
        in_sim = [
            float(discriminator(network.stage1.encode_images(one[None], "sim"))[0]) for one in contexts.cage_image
        ]
        in_lab = [float(discriminator(feature[None])[0]) for feature in seen.image_features[SIM * PICTURES :]]
    distance = np.mean(in_sim) - np.mean(in_lab)
    assert abs(distance) > 1e-3
    assert float(statistics["supervised/wasserstein"]) == pytest.approx(distance, rel=1e-4, abs=1e-6)
    assert float(loss) == pytest.approx(3 * distance, rel=1e-4, abs=1e-6)


def test_without_the_lab_only_sim_counts(run, heads):
    source = ContextSource(run.examples, run.executions(), None, ContextConfig(2), (3, 0, 0))
    contexts = source.draw(torch.Generator().manual_seed(4))
    loss, statistics = whole_loss(run, contexts, heads, LossConfig())
    names = (f"supervised/{name}" for name in TERMS)
    assert float(loss) == pytest.approx(sum(float(statistics[name]) for name in names), rel=1e-5)
    assert set(statistics) == {*(f"supervised/{name}" for name in TERMS), "supervised/loss"}


def test_gradients_reach_all_of_stage_1_and_the_heads(run, contexts):
    network = run.network()
    heads = heads_of(network.config)
    discriminator = wild_discriminator(8)
    kernels = network.stage1.encode_text(contexts.examples.tokens)
    loss, _statistics = supervised_loss(network, heads, discriminator, contexts, kernels, LossConfig())
    loss.backward()
    for name, parameter in [*network.stage1.named_parameters(), *heads.named_parameters()]:
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if not name.endswith("stem.bias"):  # which the norms take out again
            assert parameter.grad.abs().max() > 1e-6, name
    words = contexts.examples.tokens.words[contexts.examples.tokens.words > 0].unique()
    assert (network.stage1.text.words.weight.grad[words].abs().amax(1) > 0).all()
    assert all(parameter.grad is None for parameter in network.stage2.parameters())


@pytest.mark.parametrize(
    ("weights", "reached"),
    [
        (Weights(1, 0, 0, 0), {"vision", "text", "grounding", "lingunet"}),
        (Weights(0, 1, 0, 0), {"vision"}),
        (Weights(0, 0, 1, 0), {"vision", "text", "grounding"}),
        (Weights(0, 0, 0, 1), {"text"}),
    ],
)
def test_each_loss_teaches_what_it_is_made_from(run, contexts, weights, reached):
    network = run.network()
    config = LossConfig(weights, weights, wasserstein=0.0)
    kernels = network.stage1.encode_text(contexts.examples.tokens)
    loss, _statistics = supervised_loss(
        network, heads_of(network.config), wild_discriminator(8), contexts, kernels, config
    )
    loss.backward()
    moved = {
        name.partition(".")[0]
        for name, parameter in network.stage1.named_parameters()
        if parameter.grad is not None and bool((parameter.grad != 0).any())
    }
    assert moved == reached


def test_eyes_of_the_lab_learn_from_the_lab_alone(run, contexts):
    network = run.network()
    nothing = Weights(0, 0, 0, 0)
    kernels = network.stage1.encode_text(contexts.examples.tokens)
    for config, still in (
        (LossConfig(Weights(), nothing, wasserstein=0.0), "lab"),
        (LossConfig(nothing, Weights(), wasserstein=0.0), "sim"),
    ):
        network.zero_grad()
        loss, _statistics = supervised_loss(
            network, heads_of(network.config), wild_discriminator(8), contexts, kernels, config
        )
        loss.backward(retain_graph=True)
        for domain, eyes in network.stage1.vision.items():
            learns = any(bool((parameter.grad != 0).any()) for parameter in eyes.parameters())
            assert learns == (domain != still)
