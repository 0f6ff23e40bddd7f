"""One flight for people to watch: sample a task, fly it, write a video, and say how it went."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from wordwing.devices import one_thread
from wordwing.errors import WordwingError
from wordwing.evaluation.report.labels import title
from wordwing.execution.environments import open_environment
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import SUCCESS_DISTANCE, emd, final_distance, succeeded
from wordwing.execution.runner import fly
from wordwing.execution.verdict import verdict
from wordwing.files import replacing
from wordwing.interface import CONTROL_PERIOD, Domain, Policy
from wordwing.language.text_checks import (
    WordIssue,
    missing_sentence,
    misspellings,
    sample_named_task,
    unknown_words,
    word_issues,
)
from wordwing.language.tokenizer import tokenize
from wordwing.policies.baselines import MEAN_ACTIONS
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import load_policy
from wordwing.viz.animation import MAP_SIZE, filmstrip, flight_frames, still_states, write_video
from wordwing.viz.belief_video import belief_frames, belief_strip
from wordwing.viz.overhead import overheads
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import path_length
from wordwing.world.tasks import StartPose, Task, sample_task_in

STEPS = 100
"""Decisions that a flight is given: as many as errands and people's have, since what is named can be anywhere."""

BASELINE_BEHAVIOUR = {
    "oracle": "follows the demonstration; it does not read the text",
    "average": "flies straight on; it does not read the text",
    "stop": "stays where it is; it does not read the text",
}


@one_thread()
def record_flight(
    instruction: str,
    layout_file: Path | None,
    corpus: Corpus | None,
    seed: int,
    policy_name: str,
    vehicle: Domain,
    out: Path,
    start: StartPose | None = None,
) -> None:
    """Fly once and write a video, a still image of it and the layout into a folder.

    A learned policy reads the text, so the path that was sampled with the start is not what it is asked to fly: it is
    neither drawn nor measured against. The judge says clause by clause whether it did what the text means. What is
    known before the flight is said before it.
    """
    layout = Layout.load(layout_file) if layout_file else None
    corpus, task = sample_flight_task(instruction, layout, corpus, seed, start)
    policy = load_policy(policy_name, vehicle, mean_action=MEAN_ACTIONS[corpus])
    name = Path(policy_name).resolve().name
    if isinstance(policy, LearnedPolicy):
        marked = word_issues(instruction, policy.vocabulary)
        for sentence in before_flight(instruction, task.layout, marked, name):
            print(sentence, flush=True)
        flight, overhead = fly_once(task, policy, vehicle, seed)
        heading, said = f"{name} in {vehicle}", verdict(flight).lines
        frames = belief_frames(flight, overhead, heading, marked, policy.network.config.stop_threshold)
        strip: Callable[[list[Image.Image]], Image.Image] = partial(
            belief_strip, flight, overhead=overhead, title=heading, marked=marked, verdict=said
        )
        said = [ending(flight, name), *said]
    else:
        flight, overhead = fly_once(task, policy, vehicle, seed)
        name, behaviour = title(policy_name), BASELINE_BEHAVIOUR[policy_name]
        frames = flight_frames(flight, overhead, f"{name} in {vehicle}: {behaviour}")
        strip = filmstrip
        said = [f"{name} {behaviour}", summary(flight, policy_name)]
    write_videos(flight, frames, strip, out)
    print(f'"{instruction}"', *said, f"video: {out / 'flight.mp4'}", sep="\n")


def fly_sentence(
    instruction: str,
    *,
    policy: Policy | str = "pvn2-sureal",
    layout: Layout | None = None,
    corpus: Corpus | None = None,
    seed: int = 0,
    domain: Domain = "sim",
    start: StartPose | None = None,
) -> Execution:
    """Fly one sentence, with the images and beliefs of every decision kept.

    Args:
        instruction: What the drone is told, in plain English.
        policy: The name or folder of a policy, or one that is loaded.
        layout: The landmarks; by default a random layout with those that the sentence names.
        corpus: Which kind of random layout and start; by default the first of cage, field and house that has what the
            sentence names.
        seed: Chooses the layout, the start and, in the lab, gusts and noise; the same seed gives the same flight.
        domain: "sim", the batched simulator, or "lab".
        start: Where the drone begins, world frame; by default the seed chooses.
    """
    corpus, task = sample_flight_task(instruction, layout, corpus, seed, start)
    flown_by = load_policy(policy, domain, mean_action=MEAN_ACTIONS[corpus]) if isinstance(policy, str) else policy
    return fly_once(task, flown_by, domain, seed)[0]


def draw_beliefs(flight: Execution, title: str = "wordwing") -> Image.Image:
    """Draw one flight as a sheet: what the policy saw and believed on its way, its path from above, and the verdict.

    Args:
        flight: With images and beliefs, as `fly_sentence` keeps them.
        title: Stands above it.
    """
    if not flight.images[0] or not flight.beliefs[0]:
        raise WordwingError("this flight kept no images and beliefs, so there is nothing to draw of them")
    [overhead] = overheads([flight.task.layout], MAP_SIZE)
    frames = list(belief_frames(flight, overhead, title, states=still_states(flight)))
    return belief_strip(flight, frames, overhead, title, verdict=verdict(flight).lines)


def sample_flight_task(
    instruction: str, layout: Layout | None, corpus: Corpus | None, seed: int, start: StartPose | None
) -> tuple[Corpus, Task]:
    """The task of flying an instruction in a layout, or in a random one with what it names; see `fly_sentence`."""
    if not tokenize(instruction):
        raise WordwingError(f'there is no word in "{instruction}"; try: wordwing fly "go to the barrel"')
    rng = np.random.default_rng(seed)
    if layout is None:
        corpus, task = sample_named_task(instruction, corpus, rng, start)
    else:
        corpus = corpus or "cage"
        task = sample_task_in(layout, corpus, rng, start)
    return corpus, replace(task, instruction=instruction)


def before_flight(instruction: str, layout: Layout | None, marked: Sequence[WordIssue], name: str) -> list[str]:
    """What can be said before a flight: words that the policy does not know, misspellings, missing landmarks."""
    unknown, read = unknown_words(marked), misspellings(marked)
    missing = None if layout is None else missing_sentence(instruction, layout)
    return [
        *[f"{name} does not know: {', '.join(unknown)}"] * bool(unknown),
        *[f"{name} reads: {', '.join(read)}"] * bool(read),
        *([missing] if missing else []),
    ]


def fly_once(task: Task, policy: Policy, vehicle: Domain, seed: int = 0) -> tuple[Execution, NDArray[np.uint8]]:
    """Fly a task once, with all that a video of it needs.

    Args:
        task: What is flown.
        policy: What flies it.
        vehicle: Where.
        seed: Of gusts and noise in the lab.

    Returns:
        The flight, and the world from above, [S, S, 3].
    """
    with open_environment(vehicle, [task], seed=seed) as environment:
        [flight] = fly(policy, environment, [task], max_steps=STEPS, keep_images=True)
    return flight, overheads([task.layout], MAP_SIZE)[0]


def write_videos(
    flight: Execution, frames: Iterable[Image.Image], strip: Callable[[list[Image.Image]], Image.Image], out: Path
) -> None:
    """Write `flight.mp4`, `filmstrip.png` and `layout.json` of a flight: all of them or none.

    Frames are made one by one and let go, but for those that `strip` makes a still image of, while the last ones are
    encoded.
    """
    kept: dict[int, Image.Image] = {}
    states = still_states(flight)

    def passing() -> Iterator[Image.Image]:
        for index, frame in enumerate(frames):
            if index in states:
                kept[index] = frame
            yield frame
        drawn.append(drawing.submit(lambda: strip([kept[index] for index in states]).save(still)))

    drawn: list[Future[None]] = []
    with (
        replacing(out / "flight.mp4") as video,
        replacing(out / "filmstrip.png") as still,
        replacing(out / "layout.json") as layout,
        ThreadPoolExecutor(1) as drawing,
    ):
        write_video(passing(), video)
        for done in drawn:
            done.result()
        layout.write_text(flight.task.layout.to_json(), "utf-8")


def summary(flight: Execution, policy_name: str) -> str:
    """Say in one line how a flight with a demonstration went."""
    distance = final_distance(flight.path, flight.task.gold_path)
    near = "within" if succeeded(distance) else "not within"
    return (
        f"{title(policy_name)} came to rest {distance:.2f} m from the end of the path, {near} "
        f"{SUCCESS_DISTANCE} m (EMD {emd(flight.path, flight.task.gold_path):.2f} m){_through(flight)}"
    )


def ending(flight: Execution, name: str) -> str:
    """Say in one line how a flight without a demonstration ended."""
    seconds = flight.end * CONTROL_PERIOD
    ended = "decided to stop after" if flight.stopped else "had not stopped when its time was up after"
    return f"{name} {ended} {seconds:.1f} s and {path_length(flight.path.astype(np.float64)):.2f} m{_through(flight)}"


def _through(flight: Execution) -> str:
    inside = flight.seconds_inside_landmarks[0]
    return f", {inside:.1f} s of it through landmarks" if inside else ""
