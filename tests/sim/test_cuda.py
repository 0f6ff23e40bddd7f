"""The same source on CUDA: the same flights, the same images, and nothing copied to the host on the way."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from randomly import random_lakes, random_poses
from wordwing.bench.sim import crowded_layout
from wordwing.interface import Setpoint
from wordwing.sim.render import RenderConfig
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout

pytestmark = pytest.mark.cuda


def flown(device: str, count: int, rng_seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions and images of the first `count` of 64 worlds after some safe random steps."""
    rng = np.random.default_rng(rng_seed)
    layouts = [crowded_layout(10, rng) for _ in range(64)]
    layouts[::2] = [replace(layout, lakes=random_lakes(rng)) for layout in layouts[::2]]
    poses = random_poses(rng, 64)
    setpoints = torch.from_numpy(rng.uniform([0, -1], [0.7, 1], (5, 64, 2))).float()
    simulator = Simulator(count, device, render=RenderConfig(shadows=True))
    simulator.reset(layouts[:count], poses[:count])
    for forward, yaw_rate in (step.unbind(-1) for step in setpoints[:, :count]):
        simulator.step(Setpoint(forward, yaw_rate), safety=True)
    return simulator.pose.position.cpu(), simulator.images().cpu()


def test_cuda_flies_and_draws_the_same_to_the_last_bit_however_many_worlds():
    first, again, fewer = flown("cuda", 64), flown("cuda", 64), flown("cuda", 3)
    for a, b, c in zip(first, again, fewer, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a[:3], c)


def test_step_and_observe_never_wait_for_the_device():
    simulator = Simulator(64, "cuda")
    lakes = random_lakes(np.random.default_rng(0))
    simulator.reset([Layout((), lakes=lakes[: 9 * world]) for world in range(64)], simulator.pose)
    setpoint = Setpoint(torch.full((64,), 0.3, device="cuda"), torch.zeros(64, device="cuda"))
    simulator.step(setpoint, safety=True)
    simulator.observe()  # kernels are loaded now
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            simulator.step(setpoint, safety=True)
            observation = simulator.observe()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert observation.image.device.type == "cuda"


@pytest.mark.cuda(cpu_kernels=True)
def test_cuda_agrees_with_the_cpu():
    (position, image), (other, other_image) = flown("cuda", 8), flown("cpu", 8)
    assert torch.allclose(position, other, atol=1e-5)
    assert ((image.int() - other_image.int()).abs().amax(-1) > 4).float().mean() < 1e-3
