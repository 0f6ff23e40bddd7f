"""`wordwing bench`: speed, one JSON line for each figure."""

from typing import Annotated, Literal

import tyro

from wordwing.commands.common import check_counts, check_positive, check_seed


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
    from wordwing.bench.sim import bench_sim

    bench_sim(worlds, landmarks, device, check_positive("seconds", seconds), compare, check_seed(seed))


def model(
    batch: int = 0,
    device: str = "",
    seconds: float = 2.0,
    compile: bool = True,
    seed: int = 0,
) -> None:
    """Measure the policy: parameters, multiply-accumulates, time for a step and contexts/s.

    The default network and the one with the authors' wide LingUNet. A context is one image put on the map and one
    plan predicted; training adds the loss, its gradient and an update of stage 1.

    Args:
        batch: How many contexts at once; 0 takes 1024 on CUDA and 8 on the CPU.
        device: "cpu" or "cuda"; by default CUDA where there is one. On the CPU, two cores are used, and the time for
            one drone's step is measured too.
        seconds: How long to measure each figure for.
        compile: On CUDA, also measure with torch.compile; compiling takes a minute or two.
        seed: Chooses weights and contexts.
    """
    from wordwing.bench.model import bench_model

    bench_model(batch, device, check_positive("seconds", seconds), compile, check_seed(seed))


def emd(
    maps: int = 0,
    device: str = "",
    seconds: float = 2.0,
    seed: int = 0,
) -> None:
    """Measure the earth mover's distance of the visitation reward: error of the batched method, and maps/s.

    Plans are made from sampled demonstrations: typical ones, peaked and spread ones, ones that the flight has followed
    exactly, and ones that it has flown away from. Errors are relative to POT's exact distance; the share of those that
    are beyond both 2 % and 5 mm is called large. Beside them stands how much the exact distance changes because only
    the likeliest cells of a plan are kept.

    Args:
        maps: How many plans; 0 takes 2048 on CUDA and 256 on the CPU.
        device: "cpu" or "cuda"; by default CUDA where there is one. The exact method always runs on one core of a CPU.
        seconds: How long to measure each rate for.
        seed: Chooses demonstrations, plans and flights.
    """
    from wordwing.bench.emd import bench_emd

    bench_emd(maps, device, check_positive("seconds", seconds), check_seed(seed))


def learn(
    device: str = "",
    seconds: float = 10.0,
    compile: bool = True,
    corpus: str = "cage",
    limit: int | None = None,
    recipe: Literal["paper", "gpu"] = "paper",
    scaling: bool = False,
    seed: int = 0,
) -> None:
    """Measure learning: contexts/s of Process A and environment steps/s of Process B, alone and both on one device.

    Everything counts: drawing, both stages, discriminator, rewards, PPO. From these rates follows the time for the
    paper's whole budget of 16 million contexts and 400,000 flights. On the CPU batches are tiny.

    Args:
        device: "cpu" or "cuda"; by default CUDA where there is one.
        seconds: How long to measure each figure for.
        compile: On CUDA, with torch.compile; compiling takes a minute or two.
        corpus: What to fly and learn from; built first if it is not there.
        limit: Only its first so many instructions.
        recipe: Whose batches: 2,048 flights an iteration in paper, 512 in gpu.
        scaling: Measure all of it again with other numbers of worlds and executions and other widths of LingUNet.
        seed: Of corpus and weights.
    """
    from wordwing.bench.learn import LearnBenchmark, bench_learn, bench_scaling

    check_counts(limit=limit, seed=seed)
    plan = LearnBenchmark(device, check_positive("seconds", seconds), compile, corpus, limit, seed, recipe)
    (bench_scaling if scaling else bench_learn)(plan)


def flight(
    seconds: float = 30.0,
    autopilot: Annotated[Literal["ardupilot", "px4"], tyro.conf.arg(name="as")] = "ardupilot",
    policy: str = "pvn2-sureal",
    seed: int = 0,
) -> None:
    """Measure a flight over MAVLink in real time: decisions/s, setpoints/s and how evenly they are sent.

    The lab is served by one process, a second one sends, and the policy decides in a third, as on a real drone.

    Args:
        seconds: How long to fly.
        autopilot: As which autopilot the lab answers.
        policy: Who flies.
        seed: Of the layout, the start and gusts.
    """
    from wordwing.bench.flight import bench_flight

    bench_flight(check_positive("seconds", seconds), autopilot, policy, check_seed(seed))
