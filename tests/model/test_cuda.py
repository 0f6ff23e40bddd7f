"""The policy on CUDA, in bf16, beside the CPU's."""

import pytest
import torch

from randomly import random_poses
from wordwing.devices import precision
from wordwing.frames import Pose
from wordwing.interface import Observation
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.policies.learned import LearnedPolicy

pytestmark = pytest.mark.cuda

TEXTS = ["go to the barrel", "turn left", "pass the barrel on its left and stop at the well", "stop"]


def policy_on(device: str) -> LearnedPolicy:
    torch.manual_seed(0)
    vocabulary = Vocabulary.of(TEXTS, min_count=1)
    return LearnedPolicy(PolicyNetwork(ModelConfig(), len(vocabulary)), vocabulary, device=device)


def observations(rng, count: int) -> tuple[Pose, list[Observation]]:
    start = random_poses(rng, len(TEXTS))
    seen = []
    for step in range(count):
        xy = start.xy + 0.1 * step
        image = torch.from_numpy(rng.integers(0, 256, (len(TEXTS), 9, 16, 3), "uint8"))
        image = image.repeat_interleave(8, 1).repeat_interleave(8, 2)
        pose = Pose.level(xy, start.yaw + 0.2 * step, 0.7)
        seen.append(Observation(image, pose, torch.full((len(TEXTS),), 0.3 * step)))
    return start, seen


def test_beliefs_on_cuda_are_those_on_the_cpu(rng):
    start, seen = observations(rng, 4)
    policies = policy_on("cpu"), policy_on("cuda")
    for policy in policies:
        policy.reset(TEXTS, start)
        for observation in seen:
            action = policy.act(observation)
            assert action.stop.device.type == "cpu"
    cpu, cuda = (policy.beliefs for policy in policies)
    assert cpu is not None
    assert cuda is not None
    # A cell whose centre falls on the edge of an image may be seen by one and not by the other.
    assert (cpu.observed != cuda.observed.cpu()).sum() <= 4
    for mine, theirs in zip(cpu.visitation.cells.flatten(0, 1), cuda.visitation.cells.cpu().flatten(0, 1), strict=True):
        assert (mine - theirs).abs().sum() < 0.05
    assert torch.allclose(cpu.visitation.unobserved, cuda.visitation.unobserved.cpu(), atol=0.03)
    assert torch.allclose(cpu.control.mean, cuda.control.mean.cpu(), atol=0.01)


def test_a_decision_never_waits_for_the_device(rng):
    start, seen = observations(rng, 2)
    policy = policy_on("cuda")
    policy.reset(TEXTS, start)
    policy.act(seen[0])
    assert policy.state is not None
    image, pose = seen[1].image.cuda(), seen[1].pose.to("cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.no_grad(), precision(policy.device):
            policy.network(policy.state, image, pose, "sim")
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_drone_on_cuda_that_has_lost_its_pose_hovers_and_its_map_stays(rng):
    start, seen = observations(rng, 2)
    policy = policy_on("cuda")
    policy.reset(TEXTS, start)
    policy.act(seen[0])
    assert policy.state is not None
    before = policy.state.map.features.clone()
    lost = seen[1].pose.position.clone()
    lost[1] = torch.nan
    action = policy.act(Observation(seen[1].image, Pose(lost, seen[1].pose.quaternion), seen[1].time))
    assert (action.setpoint.forward[1], action.setpoint.yaw_rate[1], bool(action.stop[1])) == (0, 0, False)
    assert torch.equal(policy.state.map.features[1], before[1])
    assert not torch.equal(policy.state.map.features[0], before[0])
    assert action.setpoint.forward[0] > 0
