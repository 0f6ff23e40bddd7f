"""Making a study from saved flights."""

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordwing.data.schema import MAX_TEXT
from wordwing.errors import WordwingError, did_you_mean
from wordwing.evaluation.report.labels import NOT_LEARNED, Origin, ordered
from wordwing.execution.episodes import find_episodes, pose_rows, read_episodes
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import measure
from wordwing.files import replacing
from wordwing.pool import shared
from wordwing.release import VERSION
from wordwing.study.animation import animate
from wordwing.study.database import STUDY, StudySettings
from wordwing.study.questions import Practice
from wordwing.viz.labelled import draw_background, legend, still
from wordwing.web.database import check_new, new_database
from wordwing.web.participants import new_id
from wordwing.world.visibility import goal_ahead, goal_in_sight


@dataclass(frozen=True)
class StudyPlan:
    """What is to be rated."""

    settings: StudySettings
    items: tuple[Execution, ...]
    """Every system's flight of every instruction."""
    practice: tuple[tuple[Execution, Practice], ...]
    """Flights of other instructions, in the order in which they are practised on."""
    instructions: int
    held_out: int
    """How many instructions all systems flew that are only practised on, since there were no others."""


def plan(
    folders: Sequence[Path],
    systems: Sequence[str] = (),
    raters: int = 5,
    items_per_rater: int | None = None,
    segments: Sequence[int] = (1, 2),
    limit: int | None = None,
    practice: int = 3,
    seed: int = 0,
) -> StudyPlan:
    """Choose flights from evaluations; every mistake in what was asked for is one sentence.

    Args:
        folders: Of `wordwing evaluate`, all of one corpus, split and domain.
        systems: Whose flights; empty for all that flew.
        raters: Judgements that each item needs.
        items_per_rater: How many items a rater is given; None for all.
        segments: How many segments instructions have.
        limit: How many instructions at most.
        practice: How many flights are practised on.
        seed: Chooses practice items, instructions and orders.
    """
    if not folders:
        raise WordwingError("a study of what? Name folders of evaluations: --episodes out/evaluate/cage-test-lab")
    flights = _read([find_episodes(folder) for folder in folders])
    first = next(iter(flights.values()))
    systems = _systems({system for system, _id in flights}, systems)
    by_instruction: dict[str, dict[str, Execution]] = defaultdict(dict)
    for (system, name), episode in flights.items():
        if episode.provenance.segments in segments:
            by_instruction[name][system] = episode
    common = [name for name, flown in sorted(by_instruction.items()) if all(system in flown for system in systems)]
    if not common:
        counts = " or ".join(map(str, segments))
        raise WordwingError(f"there is no instruction of {counts} segments that all of {', '.join(systems)} flew")
    for episode in (by_instruction[name][systems[0]] for name in common):
        if why := _unusable(episode):
            raise WordwingError(f"{folders[0]}: the sentence of {episode.provenance.id} {why}")
    rng = np.random.default_rng(seed)
    chosen = [common[place] for place in rng.permutation(len(common))][:limit]
    usable = [name for name, flown in by_instruction.items() if not all(map(_unusable, flown.values()))]
    held_out = max(practice - len(set(usable) - set(chosen)), 0)
    if held_out >= len(chosen):
        raise WordwingError(
            f"all of the systems flew only {len(common)} instructions, which leaves none to rate beside "
            f"{practice} to practise on; choose fewer with --practice"
        )
    kept = sorted(chosen[: len(chosen) - held_out])
    spare = sorted(set(usable) - set(kept))
    settings = StudySettings(
        systems=tuple(systems),
        **Origin.of(first.provenance)._asdict(),
        raters=raters,
        items_per_rater=items_per_rater,
        seed=seed,
        version=VERSION,
        salt=secrets.token_hex(32),
    )
    return StudyPlan(
        settings,
        tuple(by_instruction[name][system] for name in kept for system in systems),
        tuple(_practice([by_instruction[name] for name in spare], practice, rng)),
        len(kept),
        held_out,
    )


def create_study(
    made: StudyPlan, out: Path, processes: int = 1, tick: Callable[[int], None] = lambda flights: None
) -> None:
    """Draw all flights of a plan and write the study, all of it or nothing.

    Args:
        made: What is to be rated.
        out: The study's file; nothing may be there.
        processes: How many share the drawing.
        tick: Called with the number of flights drawn since the last call.
    """
    check_new(out)
    facts = {_key(episode): practice for episode, practice in made.practice}
    # The order of numbers is the order of practice; among items it must tell nothing.
    numbers: dict[tuple[str, str], int] = {key: number for number, key in enumerate(facts, start=1)}
    places = np.random.default_rng([made.settings.seed, 1]).permutation(len(made.items)).tolist()
    numbers |= {_key(episode): len(facts) + 1 + place for place, episode in zip(places, made.items, strict=True)}
    by_instruction: dict[str, list[Execution]] = defaultdict(list)
    for episode in [*(entry for entry, _practice in made.practice), *made.items]:
        by_instruction[episode.provenance.id].append(episode)
    # Rows in the order of instructions, whichever was drawn first.
    order = {name: number for number, name in enumerate(by_instruction, start=1)}
    killed = "a process that drew flights was killed, perhaps because memory ran out; try --processes 1"
    with replacing(out) as temporary:
        with new_database(STUDY, made.settings, temporary, out) as connection:
            for flown, (sheet, videos) in shared(draw_flights, list(by_instruction.values()), processes, killed):
                number = order[flown[0].provenance.id]
                connection.execute(
                    "INSERT INTO instructions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    _instruction_row(number, flown[0], sheet),
                )
                for episode, (video, still) in zip(flown, videos, strict=True):
                    key = _key(episode)
                    known = json.dumps(asdict(facts[key])) if key in facts else None
                    poses = json.dumps(pose_rows(episode).tolist())
                    connection.execute(
                        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)",
                        (numbers[key], new_id(), number, key[0], known, poses),
                    )
                    connection.execute("INSERT INTO films VALUES (?, ?, ?)", (numbers[key], video, still))
                tick(len(flown))
        check_new(out)


def draw_flights(flown: Sequence[Execution]) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """The legend of one instruction, and video and last frame of each of its flights."""
    layout = flown[0].task.layout
    background = draw_background(layout)
    return still(legend(layout)), [animate(episode, background) for episode in flown]


def _read(files: Sequence[Path]) -> dict[tuple[str, str], Execution]:
    """All flights, by system and instruction."""
    found: dict[tuple[str, str], Execution] = {}
    firsts: dict[str, Execution] = {}
    for file in files:
        for episode in read_episodes([file]):
            key = _key(episode)
            if key in found:
                raise WordwingError(f"{file}: {key[0]} flew {key[1]} twice; name each evaluation once")
            first = next(iter(firsts.values()), episode)
            origin, others = Origin.of(episode.provenance), Origin.of(first.provenance)
            if origin != others:
                raise WordwingError(
                    f"{file}: these flights are of {origin.title}, others of {others.title}; "
                    "a study compares systems on one corpus, split and domain"
                )
            same = firsts.setdefault(key[1], episode)
            if _task(same) != _task(episode):
                raise WordwingError(f"{file}: {key[1]} is another instruction there than for {same.provenance.system}")
            found[key] = episode
    if not found:
        raise WordwingError(f"{files[0]}: there are no flights in it yet; wordwing evaluate flies them")
    return found


def _key(episode: Execution) -> tuple[str, str]:
    """System and instruction."""
    return episode.provenance.system, episode.provenance.id


def _task(episode: Execution) -> tuple[object, ...]:
    """The instruction, and where it was flown."""
    task = episode.task
    return task.instruction, task.layout, task.start_xy, task.start_yaw


def _systems(flown: Iterable[str], wanted: Sequence[str]) -> list[str]:
    known = ordered(flown)
    for system in wanted:
        if system not in known:
            hint = did_you_mean(system[:60], known) or f"; {', '.join(known)} did"
            raise WordwingError(f'--systems: "{system[:60]}" did not fly{hint}')
        if wanted.count(system) > 1:
            raise WordwingError(f"--systems: {system} is named twice; name each once")
    return ordered(wanted) if wanted else known


def _unusable(episode: Execution) -> str:
    """Why an episode's sentence cannot be shown; empty if it can."""
    if episode.provenance.withheld:
        return (
            "is not in it, since it may not be passed on, and without it nobody can judge the flight; fly it again "
            "with wordwing evaluate"
        )
    return f"has more than {MAX_TEXT:,} characters" if len(episode.task.instruction) > MAX_TEXT else ""


def _practice(
    spare: Sequence[dict[str, Execution]], count: int, rng: np.random.Generator
) -> Iterator[tuple[Execution, Practice]]:
    """Flights to practise on, each of another instruction: good ones, of ORACLE if it flew, and bad ones in turn."""
    left = [spare[place] for place in rng.permutation(len(spare))]
    for turn in range(count):
        good = turn % 2 == 0
        # Few are measured, for measuring takes a while: the first that is as plain as it should be, or any.
        candidates = [_candidate(flown, good) for flown in left[:12]]
        wanted = {(4, 5)} if good else {(1, 2)}
        plain = (place for place, (_, known) in enumerate(candidates) if set(known.expected.values()) == wanted)
        place = next(plain, 0)
        left.pop(place)
        yield candidates[place]


def _candidate(flown: dict[str, Execution], good: bool) -> tuple[Execution, Practice]:
    """A flight of an instruction that is likely to be good or bad, and what is known of it."""
    names = [name for name in ordered(flown) if not _unusable(flown[name])]
    bad = [name for name in names if name in NOT_LEARNED and name != "oracle"]
    episode = flown[names[-1] if good else (bad or names)[-1]]  # ORACLE is last; AVERAGE moves, STOP does not
    metrics = measure(episode)
    return episode, Practice(metrics.distance, metrics.ndtw)


def _instruction_row(number: int, episode: Execution, sheet: bytes) -> tuple[Any, ...]:
    task = episode.task
    start, yaw, goal = task.start_xy, task.start_yaw, task.gold_path[-1]
    return (
        number,
        episode.provenance.id,
        episode.provenance.segments,
        task.instruction,
        goal_ahead(start, yaw, goal),
        goal_in_sight(task.layout, start, yaw, goal),
        task.layout.to_json(),
        json.dumps([*start, yaw]),
        sheet,
    )
