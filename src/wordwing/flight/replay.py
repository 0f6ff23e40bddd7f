"""Videos of flights from their logs, with what the policy believed where the log holds its images."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from pydantic import Field
from torch import Tensor

from wordwing.errors import WordwingError, printable
from wordwing.evaluation.demo import ending, write_videos
from wordwing.execution.execution import Execution
from wordwing.execution.runner import beliefs_of, believed_goals, decide
from wordwing.execution.verdict import BROKEN_OFF, verdict
from wordwing.flight.logs import EVENTS, LoggedEvent, load_frame, read_events
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, Observation
from wordwing.language.text_checks import word_issues
from wordwing.model.checkpoint import shipped
from wordwing.model.policy import Beliefs
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import BASELINES, load_policy
from wordwing.validation import Number, parse
from wordwing.viz.animation import MAP_SIZE, filmstrip, flight_frames
from wordwing.viz.belief_video import belief_frames, belief_strip
from wordwing.viz.drawing import GREY, LIGHT, font
from wordwing.viz.overhead import overheads
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

T = TypeVar("T")

MAX_OBSERVATIONS = 2000
"""Of one flight: ten minutes."""


@dataclass(frozen=True)
class ObservationEvent:
    """What is read of an `observation` line."""

    position: Annotated[tuple[Number, Number, Number], Field(description="3 numbers")]
    quaternion: Annotated[tuple[Number, Number, Number, Number], Field(description="4 numbers")]


@dataclass(frozen=True)
class FlownEvent:
    """What is read of a `flown` line."""

    forward: Number
    yaw_rate: Number


def replay(log: Path, out: Path, policy: str | None = None, say: Callable[[str], None] = print) -> None:
    """Write the video of a log.

    Args:
        log: A flight's folder.
        out: Folder for flight.mp4, filmstrip.png and layout.json.
        policy: Whose beliefs about the images are shown; None for the one that flew.
        say: Shows a sentence about how the flight went.
    """
    flight, header = read_flight(log)

    def show(text: str) -> None:
        say(printable(text))

    logged = str(header.get("policy") or "")
    # A log, which may be somebody else's, does not choose a folder to read from.
    name = policy or (logged if logged in (*BASELINES, *shipped()) else "")
    title = f"{Path(name or logged).name or 'somebody'} on {header.get('vehicle') or 'a drone'}"
    overhead = overheads([flight.task.layout], MAP_SIZE)[0]
    seen = bool(flight.images[0])
    thinker = load_policy(name, "lab") if seen and name and name not in BASELINES else None
    strip: Callable[[list[Image.Image]], Image.Image] = filmstrip
    if isinstance(thinker, LearnedPolicy):
        flight = think_again(flight, thinker)
        marked = word_issues(flight.task.instruction, thinker.vocabulary)
        frames = belief_frames(flight, overhead, title, marked, thinker.network.config.stop_threshold)
        strip = partial(
            belief_strip, flight, overhead=overhead, title=title, marked=marked, verdict=_judged(flight, header)
        )
    else:
        if seen and logged and not name:
            show(f"to see what it thought, name its folder: --policy {logged}")
        if not seen:
            flight = replace(flight, images=((_unseen(),) * len(flight.positions),))
        frames = flight_frames(flight, overhead, title)
    write_videos(flight, frames, strip, out)
    show(f'"{flight.task.instruction}"')
    why = header.get("broken off")
    seconds = len(flight.setpoints) * CONTROL_PERIOD
    show(ending(flight, title) if why is None else f"{title} was broken off after {seconds:.1f} s: {why}")
    for line in _judged(flight, header):
        show(line)
    show(f"video: {out / 'flight.mp4'}")


def _judged(flight: Execution, header: dict[str, Any]) -> list[str]:
    """What the judge says of a flight that came to its end, where it is known what stood in the arena."""
    if "broken off" in header:
        return [BROKEN_OFF]
    return verdict(flight).lines if header.get("layout") is not None else []


def read_flight(log: Path) -> tuple[Execution, dict[str, Any]]:
    """A flight as its log has it, and what its first event says, and why it was "broken off", if it was.

    Where the log does not say what stood in the arena, its layout is empty. Images are there only if all of them
    were kept.
    """
    events = read_events(log)
    header = next((event.values for event in events if event.kind == "flight"), None)
    if header is None:
        raise WordwingError(f"{log}: the log does not say what was flown; it ends before the flight began")
    seen = [event for event in events if event.kind == "observation"]
    if len(seen) < 2:
        count = "is one observation" if seen else "are no observations"
        raise WordwingError(f"{log}: there {count} in this log; a video needs two or more")
    if len(seen) > MAX_OBSERVATIONS:
        raise WordwingError(
            f"{log}: there are more than {MAX_OBSERVATIONS} observations in this log, too many for a video"
        )
    folder = log if log.is_dir() else log.parent
    observations = [_parse(ObservationEvent, event, log) for event in seen]
    positions = np.array([observation.position for observation in observations], np.float32)
    quaternions = np.array([observation.quaternion for observation in observations], np.float32)
    setpoints = np.zeros((len(seen) - 1, 2), np.float32)  # from each observation to the next
    index = -1
    for event in events:
        index += event.kind == "observation"
        if event.kind == "flown" and 0 <= index < len(setpoints):
            flown = _parse(FlownEvent, event, log)
            setpoints[index] = flown.forward, flown.yaw_rate
    end = next((event.values for event in events if event.kind == "end"), None)
    if end is None:
        texts = [str(event.values.get("text")) for event in events if event.kind == "phase" and _ends(event.values)]
        header = {**header, "broken off": texts[0] if texts else "the log ends"}
        end = {"decisions": len(seen)}
    decisions = end.get("decisions")
    images = [load_frame(folder, str(event.values.get("frame"))) for event in seen]
    kept = [image.numpy() for image in images if image is not None]
    layout = header.get("layout")
    start = Pose(torch.from_numpy(positions[0]), torch.from_numpy(quaternions[0]))
    task = Task(
        instruction=str(header.get("instruction") or ""),
        layout=Layout(()) if layout is None else Layout.from_document(layout, f"{log / EVENTS}: the layout"),
        start_xy=(float(positions[0, 0]), float(positions[0, 1])),
        start_yaw=float(start.yaw),
        gold_path=np.zeros((0, 2)),
    )
    flight = Execution.single(
        task=task,
        positions=positions,
        quaternions=quaternions,
        setpoints=setpoints,
        decisions=min(max(decisions, 0), len(seen)) if isinstance(decisions, int) else len(seen),
        ended_by="stop" if end.get("by") == "stop" else "steps",
        images=kept if len(kept) == len(seen) else [],
    )
    return flight, header


def think_again(flight: Execution, policy: LearnedPolicy) -> Execution:
    """A flight with what a policy believes at each decision, over the images and poses that were observed then."""
    poses = flight.pose[0]
    policy.reset([flight.task.instruction], poses[:1])
    beliefs: list[Beliefs] = []
    goals: list[Tensor] = []
    count = min(flight.end + (flight.stopped), len(flight.images[0]))
    for index in range(max(count, 1)):
        image = torch.from_numpy(flight.images[0][index])[None]
        decide(policy, Observation(image, poses[index : index + 1], torch.tensor([float(index)])))
        beliefs += beliefs_of(policy, 0)
        believed = believed_goals(policy)
        assert believed is not None
        goals.append(believed.double().cpu())
    return replace(flight, beliefs=(tuple(beliefs),), goals=torch.stack(goals, dim=1))


def _ends(values: dict[str, Any]) -> bool:
    """Whether a `phase` event is the end of a flight on decisions; in old logs only its text has the phase."""
    return str(values.get("phase") or values.get("text")).startswith(("landing", "released", "lost"))


def _parse(kind: type[T], event: LoggedEvent, log: Path) -> T:
    return parse(kind, event.values, f"{log}: line {event.line} of {EVENTS}")


def _unseen() -> NDArray[np.uint8]:
    """Stands for images that were not kept."""
    image = Image.new("RGB", (128, 72), LIGHT)
    ImageDraw.Draw(image).text((64, 36), "not recorded", GREY, font(12), anchor="mm")
    return np.asarray(image)
