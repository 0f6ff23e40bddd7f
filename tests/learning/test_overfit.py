import pytest
import torch

from wordwing.data.corpora import Job, build
from wordwing.execution.runner import fly
from wordwing.learning.evaluator import FlightMetrics
from wordwing.learning.recipes.presets import changed, quick
from wordwing.learning.runtime.runs import RunSettings
from wordwing.learning.sureal import train_synchronously
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator

SETTINGS = (
    "data.limit=8",
    "data.dev=2",
    "supervised.executions=8",
    "supervised.contexts.images=5",
    "supervised.contexts.rotation=0",
    "supervised.contexts.foreign_motions=0.3",
    "schedule.warm_up=160",
    "schedule.cloning_updates=100",
    "schedule.iterations=12",
    "schedule.updates=210",
    "schedule.evaluate_every=1000",
    "schedule.first_look_every=1000",
    "reinforcement.flights=32",
    "reinforcement.worlds=16",
)


@pytest.mark.long
def test_sureal_follows_eight_instructions_as_closely_as_the_oracle(tmp_path):
    [cage] = build([Job("cage", tmp_path / "cage", seed=0, share=0.02)])
    config = changed(quick(), [*SETTINGS, f"data.corpora={cage.folder}"])
    process = train_synchronously(RunSettings(tmp_path / "run", torch.device("cpu")), config)
    assert process.stage1_version >= 160
    tasks = [cage.task(one) for one in process.data.training[0]]
    assert len(tasks) == 8
    flown, oracle = (FlightMetrics.of(fly(policy, Simulator(8), tasks)) for policy in (process.policy(), Oracle()))
    assert flown.emd.mean() < oracle.emd.mean() + 0.1
    assert flown.success >= 7 / 8
