"""wordwing flies a quadcopter by plain English.

The names that a user needs first are here: fly a sentence, draw what was believed, load a policy, open a dataset,
evaluate. The method is the two-stage PVN2 policy trained by SuReAL (Blukis et al., CoRL 2019); `docs/paper.md` maps the
paper to this code, and `docs/architecture.md` shows the way through it.
"""

from typing import TYPE_CHECKING, Any

__version__: str

if TYPE_CHECKING:
    from wordwing.data.dataset import Dataset
    from wordwing.evaluation.demo import draw_beliefs, fly_sentence as fly
    from wordwing.evaluation.evaluate import evaluate_policies as evaluate
    from wordwing.execution.execution import Execution
    from wordwing.execution.verdict import verdict
    from wordwing.policies.loading import load_policy
    from wordwing.sim.simulator import Simulator
    from wordwing.world.layout import Layout
    from wordwing.world.tasks import Task

_HOMES = {
    "fly": "evaluation.demo:fly_sentence",
    "draw_beliefs": "evaluation.demo:draw_beliefs",
    "verdict": "execution.verdict:verdict",
    "load_policy": "policies.loading:load_policy",
    "evaluate": "evaluation.evaluate:evaluate_policies",
    "Layout": "world.layout:Layout",
    "Task": "world.tasks:Task",
    "Dataset": "data.dataset:Dataset",
    "Simulator": "sim.simulator:Simulator",
    "Execution": "execution.execution:Execution",
    "__version__": "release:VERSION",
}
"""Where each name is defined. It is imported when it is first used: Ctrl-C must be answered before so much is."""

__all__ = [
    "Dataset",
    "Execution",
    "Layout",
    "Simulator",
    "Task",
    "draw_beliefs",
    "evaluate",
    "fly",
    "load_policy",
    "verdict",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name].split(":")
    globals()[name] = value = getattr(import_module(f"wordwing.{module}"), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
