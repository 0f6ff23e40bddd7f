"""Twenty sentences that are in no corpus, flown in `sim`: a sheet of the videos' last frames, JSON lines with verdicts.

Usage: python experiments/own_sentences/own_sentences.py POLICY SHEET.webp

The sentences paraphrase, change the word order, use other names and misspell. Each is flown once, in a random
layout with the landmarks it names, from a random start. The judge's verdict is that of `wordwing fly`, by clause.
It takes two minutes on a CPU.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from PIL import Image

from wordwing.evaluation.demo import fly_once
from wordwing.execution.verdict import DONE, MISSED, verdict
from wordwing.interface import CONTROL_PERIOD
from wordwing.language.text_checks import misspellings, sample_named_task, unknown_words, word_issues
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import load_policy
from wordwing.viz.belief_video import belief_frames
from wordwing.viz.drawing import save
from wordwing.viz.sheets import contact_sheet

SENTENCES = (
    "Could you hover over to the big orange pumpkin please?",
    "The boat. Go there, stop in front of it.",
    "Keep the gorilla to your left while you sneak past it.",
    "swing round 180 and make for the wooden crate",
    "squeeze through the gap that separates the bananna from the traffic cone",
    "I'd like you beside the stump",
    "Before you stop at the mushroom, fly by the palm tree keeping it on your right.",
    "cirle halfway around the pumpkin clockwize",
    "head strait for the blue contaner and park in front of it",
    "to the airplane, quick!",
    "end up halfway from the cottage to the boulder",
    "On your left is where the tombstone should be when you go by; do that, then stop at the crate.",
    "Leave the windmill on your left and land at the phone booth.",
    "find the red telephone box and stop just short of it",
    "the lighthouse: fly to its far side",
    "go arround the well and stop when you are looking at the tank",
    "amble across to that couch",
    "turn right and go up to the refrigerator",
    "go and stand by the bed",
    "turn around, cross the room and stop at the chest of drawers",
)

SIZE = (480, 270)
"""Size of a frame on the sheet, pixels."""


def main(
    policy: Annotated[str, tyro.conf.Positional], sheet: Annotated[Path, tyro.conf.Positional], /, seed: int = 0
) -> None:
    """Fly all sentences."""
    flier = load_policy(policy, "sim")
    assert isinstance(flier, LearnedPolicy)
    frames, captions = [], []
    for number, sentence in enumerate(SENTENCES):
        corpus, task = sample_named_task(sentence, None, np.random.default_rng([seed, number]))
        task = replace(task, instruction=sentence)
        flight, overhead = fly_once(task, flier, "sim")
        marked = word_issues(sentence, flier.vocabulary)
        last = [len(flight.positions) - 1]
        [frame] = belief_frames(flight, overhead, corpus, marked, states=last)
        frames.append(np.asarray(frame.convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)))
        judged = verdict(flight)
        done = ", ".join(f"{DONE if done else MISSED} {words}" for words, done in judged.clauses)
        counted = f"{sum(done for _, done in judged.clauses)} of {len(judged.clauses)} done"
        captions.append(f"{number + 1}. {counted if judged.clauses else 'not judged'}")
        row = {"number": number + 1, "sentence": sentence, "world": corpus}
        row |= {"unknown words": ", ".join(unknown_words(marked)), "slips": ", ".join(misspellings(marked))}
        row |= {"seconds": round(len(flight.setpoints) * CONTROL_PERIOD, 1)}
        said = {True: "all done", False: "not all done", None: "not judged as a whole"}[judged.followed]
        print(json.dumps(row | {"judge": f"{done}; {said}" if done else said}, ensure_ascii=False), flush=True)
    save(contact_sheet(frames, captions, columns=4, scale=1), sheet)


if __name__ == "__main__":
    tyro.cli(main)
