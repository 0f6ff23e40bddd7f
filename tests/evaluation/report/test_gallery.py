"""The gallery shows flights by its rule, as they were flown."""

import io
import math
from dataclasses import replace

import av
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from golden_images import looks_like
from small_evaluation import plain_episode
from small_flights import flight
from wordwing.evaluation.report.gallery import (
    Choice,
    Example,
    camera_images,
    choose,
    draw_flight,
    examples,
    make_videos,
    reference_of,
    video_frames,
)
from wordwing.evaluation.report.labels import Origin
from wordwing.evaluation.report.summary import flight_table
from wordwing.execution.episodes import episode_line, parse_episode
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.policies.baselines import Average
from wordwing.sim.simulator import Simulator
from wordwing.viz.animation import write_video
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

SIM = Origin("cage", "generated", "test", "sim")
LAYOUT = Layout((Placement("Barrel", 1.5, 1.5, 0.3), Placement("Well", -1.6, 1.2, 0.0)))


def episode(system: str = "average", name: str = "p/0", **others) -> Execution:
    """A flight ahead along x from −1 to 1; the demonstration goes to the right, along −y."""
    gold = np.array([[-1.0, 0.0], [-1.0, -1.5]])
    path = np.stack([np.linspace(-1.0, 1.0, 9), np.zeros(9)], axis=-1)
    return plain_episode(
        path, **{"system": system, "id": name, "layout": LAYOUT, "gold": gold, "decisions": 2} | others
    )


def flights(system: str, distances: dict[str, float]):
    return [flight(system, name, distance=distance) for name, distance in distances.items()]


MIXED = {"p4/0": 0.1, "p1/0": 0.24, "p2/0": 0.3, "p6/0": 0.4, "p0/0": 0.6, "p5/0": 0.7, "p3/0": 0.93, "p7/0": 0.95}


def kinds(choices: list[Choice]) -> dict[str, str]:
    return {choice.kind: choice.id for choice in choices}


def test_a_clear_success_the_median_and_a_clear_failure_are_shown():
    flown = flights("mine", MIXED) + flights("oracle", dict.fromkeys(MIXED, 0.0))
    assert kinds(choose(flight_table(flown), [SIM])) == {"success": "p4/0", "middle": "p0/0", "failure": "p7/0"}


def test_where_nothing_is_clear_any_success_or_failure_is_shown():
    flown = flights("mine", {"p0/0": 0.3, "p1/0": 0.46, "p2/0": 0.48})
    assert kinds(choose(flight_table(flown), [SIM])) == {"success": "p0/0", "middle": "p1/0", "failure": "p2/0"}


def test_who_never_fails_has_no_failure_to_show():
    flown = flights("oracle", {"p0/0": 0.1, "p1/0": 0.2, "p2/0": 0.3})
    assert kinds(choose(flight_table(flown), [SIM])) == {"success": "p0/0", "middle": "p1/0"}
    assert kinds(choose(flight_table(flights("oracle", {"p0/0": 0.1})), [SIM])) == {"middle": "p0/0"}


def test_the_choice_goes_by_a_learned_policy_not_by_those_that_do_not_read():
    near, far = {"p/0": 0.4, "p/1": 0.0}, {"p/0": 0.3, "p/1": 0.9}
    assert reference_of(pd.DataFrame({"oracle": near, "stop": far, "mine": far})) == "mine"
    assert reference_of(pd.DataFrame({"pvn2-bc": near, "pvn2-sureal": far, "pvn-bc": near})) == "pvn2-sureal"
    assert reference_of(pd.DataFrame({"pvn2-bc": near, "pvn-bc": far, "average": far})) == "pvn2-bc"
    assert reference_of(pd.DataFrame({"pvn2-bc": far, "pvn-bc": near, "average": far})) == "pvn-bc"
    assert reference_of(pd.DataFrame({"oracle": near, "average": far})) == "average"
    assert reference_of(pd.DataFrame({"oracle": near, "stop": far})) == "stop"


def test_neither_the_order_of_flights_nor_other_systems_change_the_choice(rng):
    many = {f"p{number:02d}/{place}": float(rng.uniform(0, 2)) for number in range(40) for place in ("0", "0-1")}
    flown = flights("mine", many)
    chosen = choose(flight_table(flown), [SIM])
    assert [choice.segments for choice in chosen] == [2, 2, 2, 1, 1, 1]
    more = flown + flights("oracle", dict.fromkeys(many, 0.0))
    assert choose(flight_table([more[place] for place in rng.permutation(len(more))]), [SIM]) == chosen
    assert choose(flight_table(flown), [SIM], seed=1) != chosen


def test_instructions_that_not_all_have_flown_are_not_chosen():
    flown = flights("mine", MIXED) + flights("oracle", {name: 0.0 for name in MIXED if name != "p4/0"})
    assert kinds(choose(flight_table(flown), [SIM]))["success"] in ("p1/0", "p2/0", "p6/0")


def test_each_origin_has_its_own_choice_in_the_order_given():
    lab = SIM._replace(domain="lab")
    flown = flights("mine", MIXED) + [flight("mine", name, domain="lab", distance=0.1) for name in MIXED]
    assert [choice.origin for choice in choose(flight_table(flown), [lab, SIM])] == [lab] * 2 + [SIM] * 3
    assert {choice.origin for choice in choose(flight_table(flown), [SIM])} == {SIM}


def shown_by(*systems: str, **others):
    choice = Choice(SIM, "p/0", 1, "middle", systems[0])
    strangers = [episode("stop", "q/0"), episode("stop", split="dev")]
    return examples([choice], [*strangers, *(episode(system, **others) for system in systems)])


def test_an_example_has_all_flights_of_its_instruction_in_the_order_of_tables():
    [example] = shown_by("mine", "oracle", "stop")
    assert [flown.episode.provenance.system for flown in example.flights] == ["stop", "mine", "oracle"]
    assert example.instruction == "fly on"
    assert example.flights[0].metrics.distance == pytest.approx(math.hypot(2.0, 1.5), abs=1e-5)
    for flown in example.flights:
        with Image.open(io.BytesIO(flown.image)) as picture:
            assert (picture.format, picture.size) == ("WEBP", (340, 340))
        assert len(flown.image) < 25_000


def test_path_demonstration_circle_of_success_start_and_believed_goal_are_drawn_where_they_are():
    ground = np.full((170, 170, 3), 90, np.uint8)
    goals = np.array([[-1.2, 1.2, 0.5], [0.8, 0.9, 0.1]])
    assert looks_like(draw_flight(episode(goals=goals), ground), "gallery-flight")
    for other in ({"goals": goals[:1]}, {"goals": goals, "gold": np.array([[-1.0, 0.0], [-1.0, -1.4]])}):
        assert not looks_like(draw_flight(episode(**other), ground), "gallery-flight")


def test_a_cross_is_where_the_goal_was_believed_to_be_last():
    ground = np.full((340, 340, 3), 90, np.uint8)
    believing = episode(goals=np.array([[-1.2, 1.2, 0.5], [0.8, 0.9, 0.1]]))
    with_cross, without = (np.asarray(draw_flight(entry, ground)).astype(int) for entry in (believing, episode()))
    row, column = (values.mean() for values in np.nonzero((with_cross != without).any(axis=-1)))
    assert row == pytest.approx(340 * (0.5 - 0.8 / 5.0), abs=1)
    assert column == pytest.approx(340 * (0.5 - 0.9 / 5.0), abs=1)


def test_who_never_moves_is_drawn_too():
    still = episode(poses=np.tile([[-1.0, 0.0, 0.7, 0, 0, 0]], (3, 1)), setpoints=np.zeros((2, 2)), decisions=0)
    assert draw_flight(still, np.full((340, 340, 3), 90, np.uint8)).size == (340, 340)


def test_sim_images_are_those_that_the_drone_saw():
    task = Task("fly on", LAYOUT, (-1.0, 0.2), 0.4, np.array([[-1.0, 0.2], [1.0, 1.0]]))
    [flight] = fly(Average(0.5, 0.3, 9), Simulator(1), [task], keep_images=True)
    again = parse_episode(episode_line(flight, {}), "here")
    images = camera_images(again, "sim", 0)
    assert len(images) == len(flight.images[0]) > 5
    for new, old in zip(images, flight.images[0], strict=True):
        different = (np.abs(new.astype(int) - old) > 8).any(axis=-1)
        assert different.mean() < 0.01, "poses are rounded to a tenth of a millimetre"


def test_videos_are_of_the_reference_first_and_no_more_than_asked_for(tmp_path):
    told = []
    gallery = shown_by("mine", "oracle", "stop")
    made = make_videos(gallery, tmp_path, videos=2, progress=lambda places: told.extend(places) or places)
    names = {flown.episode.provenance.system: flown.video for flown in made[0].flights}
    assert names == {"mine": "videos/01-mine-sim-p-0.mp4", "stop": "videos/02-stop-sim-p-0.mp4", "oracle": None}
    assert sorted(path.name for path in (tmp_path / "videos").iterdir()) == [
        "01-mine-sim-p-0.mp4",
        "02-stop-sim-p-0.mp4",
    ]
    assert len(told) == 2
    with av.open(str(tmp_path / "videos" / "01-mine-sim-p-0.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 9 + 5, "each state, and the last one for a while"


def test_of_few_videos_every_origin_has_some(tmp_path):
    lab = Origin("cage", "generated", "test", "lab")
    in_sim = [Example(Choice(SIM, f"p/{n}", 1, "success", "mine"), "on", shown_by("mine")[0].flights) for n in range(3)]
    in_lab = [replace(entry, choice=replace(entry.choice, origin=lab)) for entry in in_sim]
    made = make_videos([*in_sim, *in_lab], tmp_path, videos=2)
    assert [entry.flights[0].video is not None for entry in made] == [True, False, False, True, False, False]


def test_a_video_has_the_same_bytes_every_time(tmp_path, rng):
    frames = list(video_frames(episode()))
    found, kept = set(), []
    for _ in range(10):
        kept = [*kept[-3:], np.full(rng.integers(1, 10**7), 7, np.uint8)]  # so that memory is not laid out alike
        write_video([frame.copy() for frame in frames], tmp_path / "video.mp4")
        found.add((tmp_path / "video.mp4").read_bytes())
    assert len(found) == 1


def test_a_system_of_any_name_cannot_write_outside_the_folder(tmp_path):
    [example] = make_videos(shown_by("../../.. <evil>/x"), tmp_path / "report")
    assert example.flights[0].video == "videos/01-evil-x-sim-p-0.mp4"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def said_by(monkeypatch, flown: Execution) -> tuple[str, str]:
    """Title and words of a video."""
    said = []

    def frames(flight, overhead, title):
        said.append((title, flight.task.instruction))
        return []

    monkeypatch.setattr("wordwing.evaluation.report.gallery.flight_frames", frames)
    monkeypatch.setattr("wordwing.evaluation.report.gallery.camera_images", lambda *given: [])
    list(video_frames(flown))
    return said[0]


def test_a_video_says_who_flew_where_and_that_lab_images_are_new(monkeypatch):
    assert said_by(monkeypatch, episode("pvn2-sureal")) == ("PVN2-SuReAL in sim", "fly on")
    title, words = said_by(monkeypatch, episode(domain="lab", instruction=None))
    assert "lab stand-in" in title
    assert "taken again" in title
    assert words == "p/0", "the sentence may not be passed on"


def test_lab_images_are_of_the_lab_and_the_same_every_time():
    flight = episode(domain="lab")
    once, twice = (camera_images(flight, "lab", 5) for _ in range(2))
    assert all((a == b).all() for a, b in zip(once, twice, strict=True))
    assert len(once) == 9
    assert (once[0] != camera_images(flight, "sim", 5)[0]).mean() > 0.5
