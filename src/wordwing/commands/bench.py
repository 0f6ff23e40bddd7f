"""`wordwing bench`: speed, one JSON line for each figure."""

from __future__ import annotations

from wordwing.commands.options import check_positive, check_seed


def sim(
    worlds: int = 0,
    landmarks: int = 12,
    device: str = "",
    seconds: float = 2.0,
    compare: bool = True,
    seed: int = 0,
) -> None:
    """Measure the batched simulator: frames/s and environment steps/s.

    Args:
        worlds: How many worlds; 0 takes 1024 on CUDA and 16 on the CPU.
        landmarks: Landmarks in each world, a different choice out of 89 in every one.
        device: "cpu" or "cuda"; by default CUDA where there is one.
        seconds: How long to measure each figure for.
        compare: Also measure MuJoCo Warp's renderer, and MuJoCo's off-screen GL renderer where there is one, on the
            same scenes.
        seed: Chooses layouts and poses.
    """
    from wordwing.sim.bench import bench_sim

    bench_sim(worlds, landmarks, device, check_positive("seconds", seconds), compare, check_seed(seed))


def model(
    batch: int = 0,
    device: str = "",
    seconds: float = 2.0,
    compile: bool = True,
    seed: int = 0,
) -> None:
    """Measure the policy: parameters, multiply-accumulates, time for a step and contexts/s.

    The default network and the one with the authors' wide LingUNet. A context is one picture put on the map and one
    plan predicted; training adds the loss, its gradient and an update of stage 1.

    Args:
        batch: How many contexts at once; 0 takes 1024 on CUDA and 8 on the CPU.
        device: "cpu" or "cuda"; by default CUDA where there is one. On the CPU, two cores are used, and the time for
            one drone's step is measured too.
        seconds: How long to measure each figure for.
        compile: On CUDA, also measure with torch.compile; compiling takes a minute or two.
        seed: Chooses weights and contexts.
    """
    from wordwing.learning.cost import bench_model

    bench_model(batch, device, check_positive("seconds", seconds), compile, check_seed(seed))
