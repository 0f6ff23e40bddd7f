"""Stage 1 and the whole network: what is kept from it, that samples do not mix, that all of it learns."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from wordwing.frames import Pose
from wordwing.model.layers import count_parameters
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import Beliefs, ModelConfig, PolicyNetwork, PolicyState
from wordwing.model.stage1 import AuxiliaryHeads, Domain, Stage1, Stage1Config, TextKernels
from wordwing.model.text import Tokens
from wordwing.model.visitation import Visitation, cross_entropy

WORDS = 40
STEPS = 3


def network(config: Stage1Config | None = None, seed: int = 0) -> PolicyNetwork:
    torch.manual_seed(seed)
    return PolicyNetwork(ModelConfig(config or Stage1Config()), WORDS)


class Flights:
    """Instructions of different lengths, starts all over the arena, and images and poses of some steps."""

    def __init__(self, count: int, seed: int = 0) -> None:
        random = torch.Generator().manual_seed(seed)
        self.lengths = 2 + (5 * torch.arange(count) + 3) % 11
        words = torch.randint(1, WORDS, (count, 12), generator=random)
        self.words = words * (torch.arange(12) < self.lengths[:, None])
        self.start = Pose.level(
            3 * torch.rand(count, 2, generator=random) - 1.5, 6 * torch.rand(count, generator=random), 0.7
        )
        shape = (STEPS * count, 3, 9, 16)
        coarse = functional.interpolate(torch.rand(shape, generator=random), size=(72, 128), mode="bilinear")
        self.images = (255 * coarse).byte().permute(0, 2, 3, 1).reshape(STEPS, count, 72, 128, 3)
        moves = 0.3 * torch.randn(STEPS, count, 3, generator=random)
        self.poses = [Pose.level(self.start.xy + move[:, :2], self.start.yaw + move[:, 2], 0.7) for move in moves]

    def tokens(self, index: Tensor) -> Tokens:
        """Padded only as far as these need."""
        lengths = self.lengths[index]
        return Tokens(self.words[index, : int(lengths.max())], lengths)

    def fly(self, policy: PolicyNetwork, index: Tensor, domain: Domain = "sim") -> tuple[PolicyState, Beliefs]:
        """Some of the flights, up to their last step."""
        state = policy.begin(self.tokens(index), self.start[index])
        for image, pose in zip(self.images, self.poses, strict=True):
            state, beliefs = policy(state, image[index], pose[index], domain)
        return state, beliefs


def outputs(beliefs: Beliefs) -> list[Tensor]:
    """All that is believed, as tensors [N, ...]."""
    control, plan, view = beliefs.control, beliefs.visitation, beliefs.view
    return [
        beliefs.image_features,
        beliefs.semantic_map,
        beliefs.grounding_map,
        beliefs.observed.float(),
        beliefs.scores.cells,
        *([] if beliefs.scores.unobserved is None else [beliefs.scores.unobserved]),
        # Of hundreds of cells each has little: a wrong one must not pass as nearly zero.
        *(100 * part for part in (plan.trajectory, plan.goal, plan.unobserved, view.close, view.whole)),
        control.mean,
        control.deviation,
        control.stop_logit,
    ]


def same(found: Beliefs, expected: Beliefs, index: Tensor | slice) -> bool:
    """Whether beliefs are those of some flights of a batch, but for rounding."""
    pairs = zip(outputs(found), outputs(expected), strict=True)
    return all(torch.allclose(a, b[index], atol=1e-3) for a, b in pairs)


VARIANTS = {
    "pvn2": Stage1Config(),
    "pvn": Stage1Config(observability=False),
    "mask": Stage1Config(mask_input=True),
    "wide": Stage1Config(lingunet=LingUNetConfig.wide()),
    "no image": Stage1Config(blank="image"),
    "no instruction": Stage1Config(blank="instruction"),
    "phases and words": Stage1Config(lingunet=LingUNetConfig(attention=4), phases=4),
}


@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_a_batch_of_flights_is_the_same_as_one_by_one(variant):
    policy, flights = network(VARIANTS[variant]), Flights(4)
    _, together = flights.fly(policy, torch.arange(4))
    for i in range(4):
        _, alone = flights.fly(policy, torch.tensor([i]))
        assert same(alone, together, slice(i, i + 1))


@torch.no_grad()
def test_the_order_of_the_batch_makes_no_difference():
    policy, flights, order = network(), Flights(4), torch.tensor([2, 0, 3, 1])
    _, expected = flights.fly(policy, torch.arange(4))
    _, found = flights.fly(policy, order)
    assert same(found, expected, order)
    assert not same(found, expected, torch.arange(4))


@torch.no_grad()
def test_padding_makes_no_difference():
    policy, flights, index = network(), Flights(3), torch.arange(3)
    _, expected = flights.fly(policy, index)
    flights.words = functional.pad(flights.words, (0, 60))
    flights.tokens = lambda index: Tokens(flights.words[index], flights.lengths[index])  # type: ignore[method-assign]
    _, found = flights.fly(policy, index)
    assert found.view.whole.shape == expected.view.whole.shape
    assert same(found, expected, index)


@torch.no_grad()
def test_words_behind_the_last_one_make_no_difference_to_cells_that_attend():
    policy, flights, index = network(VARIANTS["phases and words"]), Flights(3), torch.arange(3)
    _, expected = flights.fly(policy, index)
    noise = torch.arange(12) >= flights.lengths[:, None]
    flights.words = torch.where(noise, 7, flights.words)
    _, found = flights.fly(policy, index)
    assert all(torch.equal(a, b) for a, b in zip(outputs(found), outputs(expected), strict=True))


@torch.no_grad()
def test_distributions_reach_over_exactly_what_has_been_observed():
    policy, flights = network(), Flights(3)
    _, beliefs = flights.fly(policy, torch.arange(3))
    plan = beliefs.visitation
    assert torch.equal(plan.trajectory > 0, beliefs.observed)
    assert torch.equal(plan.goal > 0, beliefs.observed)
    assert torch.allclose(plan.cells.sum((2, 3)) + plan.unobserved, torch.ones(3, 2), atol=1e-5)


@torch.no_grad()
def test_the_earlier_pvn_plans_everywhere_and_knows_nothing_of_masks():
    policy, flights = network(VARIANTS["pvn"]), Flights(3)
    _, beliefs = flights.fly(policy, torch.arange(3))
    assert beliefs.scores.unobserved is None
    assert (beliefs.visitation.cells > 0).all()
    assert not beliefs.visitation.unobserved.any()
    assert torch.allclose(beliefs.visitation.cells.sum((2, 3)), torch.ones(3, 2), atol=1e-5)
    assert not beliefs.view.whole[:, 2:].any()
    assert beliefs.boundary.any()


@torch.no_grad()
def test_untrained_half_of_what_is_wanted_is_believed_unobserved():
    policy, flights = network(), Flights(6)
    _, beliefs = flights.fly(policy, torch.arange(6))
    assert beliefs.visitation.unobserved.mean().item() == pytest.approx(0.5, abs=0.15)


def tensors(kernels: TextKernels) -> list[Tensor]:
    return [kernels.instruction_embedding, kernels.grounding, *kernels.lingunet]


@torch.no_grad()
def test_without_instructions_all_instructions_are_the_same_and_with_them_none_are():
    flights, others, index = Flights(3), Flights(3), torch.arange(3)
    others.words, others.lengths = others.words.roll(1, 0), others.lengths.roll(1, 0)
    deaf, listening = network(VARIANTS["no instruction"]), network()
    _, expected = flights.fly(deaf, index)
    _, found = others.fly(deaf, index)
    assert all(torch.equal(a, b) for a, b in zip(outputs(found), outputs(expected), strict=True))
    for tensor in tensors(deaf.stage1.encode_text(flights.tokens(index))):
        assert torch.allclose(tensor, tensor[:1].expand_as(tensor), atol=1e-6)
    for tensor in tensors(listening.stage1.encode_text(flights.tokens(index))):
        assert not torch.allclose(tensor[0], tensor[1], atol=1e-3)
        assert not torch.allclose(tensor[1], tensor[2], atol=1e-3)
    assert not same(others.fly(listening, index)[1], flights.fly(listening, index)[1], index)


@torch.no_grad()
def test_without_images_only_poses_and_instructions_matter():
    flights, others, index = Flights(2), Flights(2), torch.arange(2)
    others.images = others.images.flip(0, 1)
    blind, seeing = network(VARIANTS["no image"]), network()
    _, expected = flights.fly(blind, index)
    _, found = others.fly(blind, index)
    assert all(torch.equal(a, b) for a, b in zip(outputs(found), outputs(expected), strict=True))
    assert not same(others.fly(seeing, index)[1], flights.fly(seeing, index)[1], index)


@torch.no_grad()
def test_domains_differ_in_their_vision_encoder_alone():
    policy, flights, index = network(), Flights(2), torch.arange(2)
    _, sim = flights.fly(policy, index, "sim")
    _, lab = flights.fly(policy, index, "lab")
    assert not torch.allclose(sim.image_features, lab.image_features, atol=0.1)
    policy.stage1.vision["lab"].load_state_dict(policy.stage1.vision["sim"].state_dict())
    assert same(flights.fly(policy, index, "lab")[1], sim, index)


def test_stage_1_has_the_sum_of_its_parts_and_a_second_vision_encoder():
    stage1 = Stage1(Stage1Config(lingunet=LingUNetConfig.wide(), grounding=3), 2080)
    # The authors use 1,733,550; their head sees a skip more.
    assert count_parameters(stage1) == 1_733_550 - 24 * 9 * 16 + 111_872


@torch.no_grad()
def test_the_observability_mask_can_be_one_more_map_for_lingunet():
    plain, masked = network().stage1, network(VARIANTS["mask"]).stage1
    assert plain.lingunet.down[0].first.weight.shape[:2] == (40, 40)
    assert masked.lingunet.down[0].first.weight.shape[:2] == (41, 41)
    # The first convolutions of level 1 are 41 → 41 and 41 → 48 instead of 40 → 40 and 40 → 48.
    assert count_parameters(masked) - count_parameters(plain) == 9 * (41 * 41 - 40 * 40) + 1 + 9 * 48
    tokens = Flights(1).tokens(torch.arange(1))
    maps = torch.randn(1, 32, 64, 64)
    half = torch.zeros(1, 64, 64, dtype=torch.bool)
    half[:, 20:] = True
    for stage1, matters in ((plain, False), (masked, True)):
        kernels = stage1.encode_text(tokens)
        found, expected = (stage1.predict(maps, mask, kernels)[1].cells for mask in (half, ~half))
        assert torch.equal(found, expected) != matters
    # As the last channel, 1 where the ground has been observed.
    kernels = masked.encode_text(tokens)
    grounded, scores = masked.predict(maps, half, kernels)
    found = masked.lingunet(torch.cat([maps, grounded, half[:, None].float()], 1), kernels.lingunet)
    assert torch.equal(scores.cells, found.cells)


def test_a_network_moves_to_another_device_and_leaves_nothing_behind():
    # "meta" computes shapes alone, and refuses tensors that were left on the CPU as any other device would.
    policy, flights = network().to("meta"), Flights(2)
    tokens = flights.tokens(torch.arange(2))
    state = policy.begin(Tokens(tokens.words.to("meta"), tokens.lengths.to("meta")), flights.start.to("meta"))
    state, beliefs = policy(state, flights.images[0].to("meta"), flights.poses[0].to("meta"), "sim")
    assert {tensor.device.type for tensor in outputs(beliefs)} == {"meta"}
    assert beliefs.control.mean.shape == (2, 2)
    assert state.observed.device.type == "meta"


def visitation_loss(beliefs: Beliefs) -> Tensor:
    """Against some distribution over what has been observed, and p_oob."""
    cells = torch.rand(beliefs.visitation.cells.shape, generator=torch.Generator().manual_seed(0)).pow(8)
    cells = cells * beliefs.observed[:, None]
    cells = 0.6 * cells / cells.sum((2, 3), keepdim=True)
    gold = Visitation(cells[:, 0], cells[:, 1], torch.full((len(cells), 2), 0.4))
    return cross_entropy(beliefs.scores, beliefs.observed, gold).mean()


def untouched(module: nn.Module) -> list[str]:
    """Parameters without a gradient worth the name; all gradients are finite."""
    found = []
    for name, parameter in module.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()
        if parameter.grad is None or parameter.grad.abs().max() < 1e-6:
            found.append(name)
    return found


@pytest.mark.parametrize("variant", ["pvn2", "phases and words"])
def test_the_visitation_loss_reaches_every_parameter_of_stage_1_in_both_domains(variant):
    policy, flights = network(VARIANTS[variant]), Flights(4)
    # Every norm takes the mean of a channel away, and with it what the first bias adds.
    cancelled = [f"vision.{domain}.stem.bias" for domain in ("sim", "lab")]
    _, sim = flights.fly(policy, torch.arange(4), "sim")
    visitation_loss(sim).backward()
    assert all(name.startswith("vision.lab") or name in cancelled for name in untouched(policy.stage1))
    _, lab = flights.fly(policy, torch.arange(4), "lab")
    visitation_loss(lab).backward()
    assert untouched(policy.stage1) == cancelled
    assert not policy.stage1.text.words.weight.grad[0].any()
    assert all(parameter.grad is None for parameter in policy.stage2.parameters())


def test_each_auxiliary_loss_reaches_its_head_and_what_it_is_about():
    flights, index = Flights(4), torch.arange(4)
    points = torch.tensor([[1.5, 0.0], [2.0, 0.5], [1.2, -0.3]]).expand(4, 3, 2)
    reached = {
        "object": ("vision.sim",),
        "grounding": ("vision.sim", "text", "grounding"),
        "mention": ("text",),
    }
    for name, parts in reached.items():
        policy, heads = network(), AuxiliaryHeads(Stage1Config())
        state, beliefs = flights.fly(policy, index)
        logits = {
            "object": heads.object_logits(beliefs.semantic_map, points),
            "grounding": heads.grounding_logits(beliefs.grounding_map, points),
            "mention": heads.mention(state.kernels.instruction_embedding),
        }[name]
        functional.cross_entropy(logits.flatten(0, -2), torch.ones(logits[..., 0].numel(), dtype=torch.long)).backward()
        assert {head.split(".")[0] for head in untouched(heads)} == set(reached) - {name}
        missed = set(untouched(policy.stage1)) - {"vision.sim.stem.bias"}
        assert missed == {key for key, _ in policy.stage1.named_parameters() if not key.startswith(parts)} - {
            "vision.sim.stem.bias"
        }


def test_decisions_reach_stage_1_and_stage_2_through_the_distributions():
    policy, flights = network(), Flights(4)
    nn.init.normal_(policy.stage2.network.last.weight)
    _, beliefs = flights.fly(policy, torch.arange(4))
    control = beliefs.control
    (control.mean.sum() + control.deviation.sum() + control.stop_logit.sum()).backward()
    assert untouched(policy.stage2) == []
    assert all(name.startswith(("vision.lab", "vision.sim.stem.bias")) for name in untouched(policy.stage1))
