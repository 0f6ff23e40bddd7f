"""Making a study from saved flights."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from wordwing.data.schema import MAX_TEXT
from wordwing.errors import WordwingError, did_you_mean
from wordwing.evaluation.report.labels import NOT_LEARNED, ordered
from wordwing.execution.episodes import find_episodes, pose_rows, read_episodes
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import measure
from wordwing.files import replacing
from wordwing.pool import shared
from wordwing.release import VERSION
from wordwing.study.animation import animate, legend, stage, webp
from wordwing.study.database import Settings, new_database
from wordwing.study.questions import Practice
from wordwing.study.store import TOKEN_BYTES
from wordwing.world.visibility import goal_ahead, goal_in_sight


@dataclass(frozen=True)
class Plan:
    """What is to be rated."""

    settings: Settings
    items: tuple[Execution, ...]
    """Every system's flight of every instruction."""
    practice: tuple[tuple[Execution, Practice], ...]
    """Flights of other instructions, in the order in which they are practised on."""
    instructions: int
    held_out: int
    """How many instructions all systems flew that are only practised on, since there were no others."""


@dataclass(frozen=True)
class Wishes:
    """What whoever makes a study can choose."""

    systems: tuple[str, ...] = ()
    """Empty for all that flew."""
    raters: int = 5
    items_per_rater: int | None = None
    segments: tuple[int, ...] = (1, 2)
    limit: int | None = None
    """How many instructions at most."""
    practice: int = 3
    seed: int = 0


def plan(folders: Sequence[Path], wishes: Wishes) -> Plan:
    """Choose flights from evaluations; every mistake in what was asked for is one sentence.

    Args:
        folders: Of `wordwing evaluate`, all of one corpus, split and domain.
        wishes: What to choose.
    """
    if not folders:
        raise WordwingError("a study of what? Name folders of evaluations: --episodes out/evaluate/cage-test-lab")
    flights = _read([find_episodes(folder) for folder in folders])
    first = next(iter(flights.values()))
    systems = _systems({system for system, _id in flights}, wishes.systems)
    by_instruction: dict[str, dict[str, Execution]] = defaultdict(dict)
    for (system, name), episode in flights.items():
        if episode.provenance.segments in wishes.segments:
            by_instruction[name][system] = episode
    common = [name for name, flown in sorted(by_instruction.items()) if all(system in flown for system in systems)]
    if not common:
        raise WordwingError(
            f"there is no instruction of {_words(wishes.segments)} segments that all of {', '.join(systems)} flew"
        )
    _check_texts(folders, [by_instruction[name][systems[0]] for name in common])
    rng = np.random.default_rng(wishes.seed)
    shuffled = [common[place] for place in rng.permutation(len(common))]
    chosen = shuffled[: wishes.limit]
    spare = [name for name in by_instruction if name not in set(chosen)]
    held_out = max(wishes.practice - len(_usable(spare, by_instruction)), 0)
    if held_out >= len(chosen):
        raise WordwingError(
            f"all of the systems flew only {len(common)} instructions, which leaves none to rate beside "
            f"{wishes.practice} to practise on; choose fewer with --practice"
        )
    kept = chosen[: len(chosen) - held_out]
    spare = _usable([name for name in by_instruction if name not in set(kept)], by_instruction)
    settings = Settings(
        systems=tuple(systems),
        corpus=first.provenance.corpus,
        text=first.provenance.text,
        split=first.provenance.split,
        domain=first.provenance.domain,
        raters=wishes.raters,
        items_per_rater=wishes.items_per_rater,
        seed=wishes.seed,
        version=VERSION,
        salt=secrets.token_hex(32),
    )
    return Plan(
        settings,
        tuple(by_instruction[name][system] for name in sorted(kept) for system in systems),
        tuple(_practice([by_instruction[name] for name in sorted(spare)], wishes.practice, rng)),
        len(kept),
        held_out,
    )


def create_study(made: Plan, out: Path, processes: int = 1, tick: Callable[[int], None] = lambda flights: None) -> None:
    """Draw all flights of a plan and write the study, all of it or nothing.

    Args:
        made: What is to be rated.
        out: The study's file; nothing may be there.
        processes: How many share the drawing.
        tick: Told how many flights have been drawn since it was last told.
    """
    check_new(out)
    facts = {_key(episode): practice for episode, practice in made.practice}
    # The order of numbers is the order of practice; among items it must tell nothing.
    numbers: dict[tuple[str, str], int] = {key: number for number, key in enumerate(facts, start=1)}
    places = np.random.default_rng([made.settings.seed, 1]).permutation(len(made.items)).tolist()
    for place, episode in zip(places, made.items, strict=True):
        numbers[_key(episode)] = len(facts) + 1 + place
    by_instruction: dict[str, list[Execution]] = defaultdict(list)
    for episode in [*(entry for entry, _practice in made.practice), *made.items]:
        by_instruction[episode.provenance.id].append(episode)
    killed = "a process that drew flights was killed, perhaps for want of memory; try --processes 1"
    with replacing(out) as temporary:
        with new_database(temporary, out) as connection:
            connection.executemany("INSERT INTO settings VALUES (?, ?)", made.settings.to_rows())
            drawn = shared(draw_flights, list(by_instruction.values()), processes, killed)
            # Rows in the order of instructions, whichever was drawn first.
            order = {name: number for number, name in enumerate(by_instruction, start=1)}
            for flown, (sheet, films) in drawn:
                _insert_instruction(connection, order[flown[0].provenance.id], flown[0], sheet)
                for episode, (film, still) in zip(flown, films, strict=True):
                    key = _key(episode)
                    _insert_item(connection, numbers[key], order[key[1]], episode, facts.get(key))
                    connection.execute("INSERT INTO films VALUES (?, ?, ?)", (numbers[key], film, still))
                tick(len(flown))
        check_new(out)


def check_new(out: Path) -> None:
    """Raise a `WordwingError` if something is there; a study may hold ratings that nobody can give again."""
    if out.exists():
        raise WordwingError(f"{out}: this is there already, perhaps with ratings in it; choose another --out")


def draw_flights(flown: Sequence[Execution]) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """The legend of one instruction, and film and last frame of each of its flights."""
    scene = stage(flown[0].task.layout)
    return webp(legend(flown[0].task.layout)), [animate(episode, scene) for episode in flown]


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
            if _origin(episode) != _origin(first):
                raise WordwingError(
                    f"{file}: these flights are of {_origin(episode)}, others of {_origin(first)}; "
                    "a study compares systems on one corpus, split and domain"
                )
            same = firsts.setdefault(key[1], episode)
            if _task(same) != _task(episode):
                raise WordwingError(f"{file}: {key[1]} is another instruction there than for {same.provenance.system}")
            found[key] = episode
    if not found:
        raise WordwingError(f"{files[0]}: there are no flights in it yet; wordwing evaluate flies them")
    return found


def _origin(episode: Execution) -> str:
    flight = episode.provenance
    return f"{flight.corpus} {flight.split}, {flight.domain}, {flight.text} instructions"


def _key(episode: Execution) -> tuple[str, str]:
    """System and instruction."""
    return episode.provenance.system, episode.provenance.id


def _task(episode: Execution) -> tuple[object, ...]:
    """What a drone was told, and where."""
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


def _check_texts(folders: Sequence[Path], episodes: Iterable[Execution]) -> None:
    for episode in episodes:
        name = episode.provenance.id
        if episode.provenance.withheld:
            raise WordwingError(
                f"{folders[0]}: the sentence of {name} is not in it, since it may not be passed on, and "
                "without it nobody can judge the flight; fly it again with wordwing evaluate"
            )
        if len(episode.task.instruction) > MAX_TEXT:
            raise WordwingError(f"{folders[0]}: the sentence of {name} has more than {MAX_TEXT:,} characters")


def _usable(names: Iterable[str], flown: dict[str, dict[str, Execution]]) -> list[str]:
    """Instructions that can be shown."""
    return [name for name in names if any(_showable(episode) for episode in flown[name].values())]


def _showable(episode: Execution) -> bool:
    return not episode.provenance.withheld and len(episode.task.instruction) <= MAX_TEXT


def _practice(
    spare: Sequence[dict[str, Execution]], count: int, rng: np.random.Generator
) -> Iterator[tuple[Execution, Practice]]:
    """Flights to practise on, each of another instruction: good ones, of ORACLE if it flew, and bad ones in turn."""
    left = [spare[place] for place in rng.permutation(len(spare))]
    for turn in range(count):
        good = turn % 2 == 0
        # Few are measured, for measuring takes a while: the first that is as plain as it should be, or any.
        candidates = [_candidate(flown, good) for flown in left[:12]]
        plain = [
            place
            for place, (_episode, facts) in enumerate(candidates)
            if set(facts.expected.values()) == ({(4, 5)} if good else {(1, 2)})
        ]
        place = plain[0] if plain else 0
        left.pop(place)
        yield candidates[place]


def _candidate(flown: dict[str, Execution], good: bool) -> tuple[Execution, Practice]:
    """A flight of an instruction that is likely to be good or bad, and what is known of it."""
    names = [name for name in ordered(flown) if _showable(flown[name])]
    bad = [name for name in names if name in NOT_LEARNED and name != "oracle"]
    likely = names[-1] if good else (bad or names)[-1]  # ORACLE is last; AVERAGE moves, STOP does not
    return flown[likely], Practice.of(measure(flown[likely]))


def _insert_instruction(connection: sqlite3.Connection, number: int, episode: Execution, sheet: bytes) -> None:
    task = episode.task
    goal = task.gold_path[-1]
    row = (
        number,
        episode.provenance.id,
        episode.provenance.segments,
        task.instruction,
        goal_ahead(task.start_xy, task.start_yaw, goal),
        goal_in_sight(task.layout, task.start_xy, task.start_yaw, goal),
        task.layout.to_json(),
        json.dumps([*task.start_xy, task.start_yaw]),
        sheet,
    )
    connection.execute("INSERT INTO instructions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _insert_item(
    connection: sqlite3.Connection, number: int, instruction: int, episode: Execution, practice: Practice | None
) -> None:
    connection.execute(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)",
        (
            number,
            secrets.token_hex(TOKEN_BYTES),
            instruction,
            episode.provenance.system,
            None if practice is None else json.dumps(asdict(practice)),
            json.dumps(pose_rows(episode).tolist()),
        ),
    )


def _words(segments: Sequence[int]) -> str:
    return " or ".join(map(str, segments))
