"""In how many random layouts a policy follows a whole sentence, as one JSON line.

Usage: python experiments/seeds/seeds.py POLICY "TEXT" [--seeds 40]

Flies the sentence in `sim` from the layout and start of each seed that `wordwing fly TEXT --seed N` would draw, all at
once. Prints the seeds of the flights that followed the whole sentence, and how often each clause was done.
"""

import json
from dataclasses import replace
from typing import Annotated

import numpy as np
import tyro

from wordwing.evaluation.demo import STEPS
from wordwing.execution.runner import fly
from wordwing.execution.verdict import verdict
from wordwing.language.parser.parsing import parse
from wordwing.language.text_checks import sample_named_task
from wordwing.policies.loading import load_policy
from wordwing.sim.simulator import Simulator


def main(
    policy: Annotated[str, tyro.conf.Positional], text: Annotated[str, tyro.conf.Positional], /, seeds: int = 40
) -> None:
    """Fly all seeds at once."""
    staged = [sample_named_task(text, None, np.random.default_rng(seed))[1] for seed in range(seeds)]
    tasks = [replace(task, instruction=text) for task in staged]
    flights = fly(load_policy(policy, "sim"), Simulator(len(tasks)), tasks, max_steps=STEPS)
    verdicts = [verdict(flight) for flight in flights]
    kinds = [clause.kind for clause in parse(text, tasks[0].layout, tasks[0].start_xy).meaning]
    done = {kind: sum(found.clauses[place][1] for found in verdicts) for place, kind in enumerate(kinds)}
    followed = [seed for seed, found in enumerate(verdicts) if found.followed]
    print(json.dumps({"text": text, "seeds": seeds, "followed": len(followed), "done": done, "followed by": followed}))


if __name__ == "__main__":
    tyro.cli(main)
