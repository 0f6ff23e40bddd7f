import json
import shutil
import threading

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from small_policy import VOCABULARY, small_network
from studio_server import LAYOUT, START, RunningStudio, poses
from wordwing.execution.runner import fly
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.studio import server as module
from wordwing.studio.episodes import Episodes
from wordwing.viz.belief_maps import FeatureColours
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

WORLD = Layout(tuple(Placement(**row) for row in LAYOUT["landmarks"]))


def cells(features):
    """[1, C, h, w] to [h, w, C]."""
    return np.moveaxis(features[0].numpy(), 0, -1)


def assert_colours(page, flight):
    """Colours are fitted to the first decision and then stay; what has no features is grey."""
    first = flight.beliefs[0][0]
    known = first.arena[0].numpy() & (cells(first.semantic_map) != 0).any(-1)
    colours = FeatureColours.fit(cells(first.semantic_map)[known])
    grounded = FeatureColours.fit(cells(first.grounding_map)[known])
    for (_header, arrays), belief in zip(page.frames, flight.beliefs[0], strict=False):
        arena = belief.arena[0].numpy()
        known = arena & (cells(belief.semantic_map) != 0).any(-1)
        assert np.array_equal(arrays["features"], colours(cells(belief.image_features)))
        assert np.array_equal(arrays["semantic"][known], colours(cells(belief.semantic_map))[known])
        assert np.array_equal(arrays["grounding"][known], grounded(cells(belief.grounding_map))[known])
        for name in ("semantic", "grounding"):
            assert (arrays[name][~arena] == (232, 232, 229)).all()
            assert (arrays[name][arena & ~known] == (190, 190, 186)).all()


def test_a_page_is_welcomed_with_all_that_it_has_to_know(studio):
    with studio.page() as page:
        page.say("hello", version=1)
        welcome = page.hear()
    assert welcome["type"] == "welcome"
    assert [entry["name"] for entry in welcome["policies"]] == ["small0", "other"]
    assert welcome["default_policy"] == "small0"
    assert len(welcome["landmarks"]) == 89
    assert set(welcome["examples"]) == set(welcome["corpora"]) == {"cage", "field", "house"}
    assert welcome["limits"] == {"text": 2000, "visitors": 8, "landmarks": 40}
    assert (welcome["grid"]["cells"], welcome["grid"]["size"]) == (64, pytest.approx(9.4))


def test_the_flight_that_a_page_sees_is_that_of_an_evaluation(studio):
    with studio.page() as page:
        placed = page.place()
        assert placed["type"] == "placed"
        assert placed["start"] == START
        assert placed["overhead"].startswith("data:image/webp;base64,")
        page.say("speed", value=8)
        page.fly()
        assert page.hear() == {"type": "state", "phase": "flying", "lane": 0, "step": 0}
        ended = page.until("ended")
        page.until("state", phase="ended")
    task = Task("go to the barrel", WORLD, (START["x"], START["y"]), START["yaw"], np.zeros((1, 2)))
    policy = LearnedPolicy(small_network(0), VOCABULARY, "sim")
    [flight] = fly(policy, Simulator(1), [task], max_steps=12, keep_images=True)
    assert ended["reason"] == flight.ended_by[0]
    assert len(page.frames) == len(flight.positions)
    assert np.array([pose[:3] for pose in poses(page)]) == pytest.approx(flight.positions, abs=1e-6)
    for index, (header, arrays) in enumerate(page.frames):
        assert header["step"] == index
        assert header["time"] == pytest.approx(0.3 * index, abs=1e-3)
        assert np.array_equal(arrays["image"], flight.images[0][index])
        belief = flight.beliefs[0][min(index, len(flight.beliefs[0]) - 1)]
        goal = belief.visitation.goal[0].numpy()
        assert header["peaks"][1] == pytest.approx(goal.max(), abs=1e-6)
        assert arrays["goal"] == pytest.approx(255 * goal / goal.max(), abs=0.51)
        assert header["unobserved"] == pytest.approx(belief.visitation.unobserved[0].tolist(), abs=1e-6)
        assert header["goal"] == pytest.approx(
            flight.believed_goals[min(index, len(flight.believed_goals) - 1), :2].tolist(), abs=1e-5
        )
        assert header["settling"] == (index >= flight.end + (flight.stopped))
        assert np.array_equal(arrays["masks"] & 1, belief.observed[0].numpy().astype(np.uint8))
        assert np.array_equal(arrays["masks"] // 2 & 1, belief.arena[0].numpy().astype(np.uint8))
        assert np.array_equal(arrays["masks"] // 4, belief.boundary[0].numpy().astype(np.uint8))
        assert {name: array.shape for name, array in arrays.items()} == {
            "image": (72, 128, 3),
            "features": (18, 32, 3),
            "semantic": (64, 64, 3),
            "grounding": (64, 64, 3),
            "path": (64, 64),
            "goal": (64, 64),
            "masks": (64, 64),
        }
        if index < len(flight.setpoints):
            assert header["setpoint"] == pytest.approx(flight.setpoints[index].tolist(), abs=1e-6)
    assert page.frames[-1][0]["setpoint"] is None
    assert_colours(page, flight)


def test_a_lab_flight_is_the_same_each_time_and_another_with_another_seed(studio):
    seen = []
    for seed in (4, 4, 5):
        with studio.page() as page:
            page.place("lab", seed)
            page.say("speed", value=8)
            page.fly()
            page.until("ended")
        seen.append(poses(page))
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


def test_a_staged_layout_has_what_the_text_names_and_is_the_same_each_time(studio):
    with studio.page() as page:
        answers = []
        for seed in (3, 3, 4):
            page.say("stage", text="fly to the anvil", corpus=None, seed=seed)
            answers.append(page.hear())
    assert "Anvil" in [row["name"] for row in answers[0]["layout"]["landmarks"]]
    assert answers[0] == answers[1]
    assert answers[0]["layout"] != answers[2]["layout"]


def test_unknown_words_are_found_where_they_stand(studio):
    with studio.page() as page:
        text = "go to the 🚁 blorb, thé barel of cafe\u0301"
        page.say("words", text=text, policy="small0", id=7)
        answer = page.hear()
    units = text.encode("utf-16-le")
    found = [units[2 * begin : 2 * end].decode("utf-16-le") for begin, end in answer["unknown"]]
    assert (answer["type"], answer["id"]) == ("words", 7)
    assert found == ["blorb", "thé"]  # "café" is known however it is encoded
    [(begin, end, meant)] = answer["slips"]
    assert (units[2 * begin : 2 * end].decode("utf-16-le"), meant) == ("barel", "barrel")


@pytest.mark.parametrize(
    ("text", "names", "worlds"),
    [
        ("go to the barrel", [], []),
        ("go to the flumpkin, then to the blue fence", [], []),
        ("fly to the Windmill", ["Windmill"], ["field"]),
        ("pass the boat on its left, then go to the boat", ["boat"], ["cage", "field"]),
        ("go past the pumpkin to the banana and the gorilla", ["banana", "gorilla"], ["cage", "field"]),
        ("walk over to the chest of drawers", ["chest of drawers"], ["house"]),
        ("go past the sofa to the barrel", ["sofa"], []),  # a sofa only in houses, a barrel only in fields
    ],
)
def test_what_a_text_names_and_the_layout_lacks_is_found(studio, text, names, worlds):
    with studio.page() as page:
        page.say("words", text=text, policy="small0", id=1)
        assert page.hear()["absent"] == []  # there is no layout yet
        page.place()
        page.say("words", text=text, policy="small0", id=2)
        answer = page.hear()
        assert (answer["absent"], answer["worlds"]) == (names, worlds)
        for world in worlds:
            page.say("stage", text=text, corpus=world, seed=1)
            assert page.hear()["type"] == "placed"
            page.say("words", text=text, policy="small0", id=3)
            assert page.hear()["absent"] == []


@pytest.mark.parametrize("count", [0, 1])
def test_one_landmark_is_enough_and_so_is_none(studio, count):
    with studio.page() as page:
        assert page.place(layout={**LAYOUT, "landmarks": LAYOUT["landmarks"][:count]})["type"] == "placed"
        page.fly("go to the barrel")
        ended = page.until("ended")
    assert [clause["words"].partition("come to rest ")[2] for clause in ended["clauses"]] == ["at the barrel"] * count
    assert (
        ended["verdict"]
        == ('not judged: "barrel" is not in the layout', "what was said was not done, says the judge")[count]
    )


def test_what_cannot_be_done_is_answered_with_a_sentence_and_the_connection_goes_on(studio):
    with studio.page() as page:
        page.fly()
        assert "no world yet" in page.hear()["message"]
        page.place()
        page.fly("...")
        assert "no word" in page.hear()["message"]
        page.fly(policies=("nobody",))
        assert 'no policy is called "nobody"' in page.hear()["message"]
        overlapping = [{"name": "Barrel", "x": 0, "y": 0}, {"name": "Anvil", "x": 0.1, "y": 0}]
        page.say("place", layout={"schema": 1, "landmarks": overlapping}, start=START, seed=0, vehicle="sim")
        assert "overlaps" in page.hear()["message"]
        page.say("keep")
        assert "ended" in page.hear()["message"]
        page.fly()
        page.until("state", phase="flying")
        page.fly()
        assert "stop it first" in page.until("error")["message"]
        page.say("stop")
        page.until("ended")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", 1007),
        (b"\x00\x01", 1007),
        ('{"type": "hello", "version": NaN}', 1007),
        ('{"type": "hello", "version": 2}', 1008),
        ('{"type": "hello", "version": 1, "more": 1}', 1008),
        ('{"type": "launch"}', 1008),
        ("[]", 1008),
        ("[" * 60_000, 1007),
    ],
)
def test_a_malformed_message_closes_its_connection_and_no_other(studio, message, code):
    with studio.page() as other, studio.page() as page:
        page.connection.send(message)
        assert page.hear()["type"] == "error"
        with pytest.raises(ConnectionClosed) as closed:
            page.hear()
        assert closed.value.rcvd.code == code
        other.say("hello", version=1)
        assert other.hear()["type"] == "welcome"


def test_a_message_that_is_too_long_closes_its_connection(studio):
    with studio.page() as page:
        page.connection.send('"' + 70_000 * "x" + '"')
        with pytest.raises(ConnectionClosed) as closed:
            page.hear()
        assert closed.value.rcvd.code == 1009


def test_a_kept_episode_survives_a_restart_and_is_deleted_after_its_time(policies, tmp_path):
    now = [1e9]
    with RunningStudio(policies, tmp_path, steps=3, clock=lambda: now[0]) as first, first.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly(policies=("small0", "other"))
        for _lane in range(2):
            page.until("state", phase="ended")
        page.say("keep")
        kept = page.until("kept")
    name = kept["id"]
    assert len(name) == 22
    now[0] += 29 * 86_400
    with RunningStudio(policies, tmp_path, clock=lambda: now[0]) as second, second.http() as http:
        answer = http.get(f"/episodes/{name}.json")
        assert answer.status_code == 200
        record = answer.json()
        assert record["texts"] == ["go to the barrel"]
        assert record["policies"] == ["small0", "other"]
        assert [lane["policy"] for lane in record["lanes"]] == ["small0", "other"]
        for lane in (0, 1):
            seen = [header for header, _arrays in page.frames if header["lane"] == lane]
            assert_states(record["lanes"][lane]["states"], seen)
        now[0] += 2 * 86_400
        assert http.get(f"/episodes/{name}.json").status_code == 404
    with RunningStudio(policies, tmp_path, clock=lambda: now[0]):
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == []


def assert_states(states, seen):
    """States of an episode are what the page saw."""
    assert len(states) == len(seen)
    for state, header in zip(states, seen, strict=True):
        for key in ("instruction", "step", "stopped", "settling"):
            assert state[key] == header[key]
        for key in ("pose", "setpoint", "stop", "unobserved", "goal"):
            same = None if header[key] is None else pytest.approx(header[key], abs=2e-6)
            assert state[key] == same


def test_a_kept_episode_has_every_instruction_and_how_it_went(policies, tmp_path):
    with RunningStudio(policies, tmp_path, steps=12) as small, small.page() as page:
        page.place("lab")
        page.say("speed", value=8)
        page.fly()
        endings = [page.until("ended")]
        page.say("speed", value=1)
        page.fly("left of the barrel", **{"continue": True})
        page.listen(0.5)  # it has thought once
        page.say("stop")
        endings.append(page.until("ended"))
        page.say("keep")
        name = page.until("kept")["id"]
        record = json.loads((tmp_path / f"{name}.json").read_text())
    [lane] = record["lanes"]
    told = [{key: ending[key] for key in ending if key not in ("type", "lane")} for ending in endings]
    assert lane["endings"] == [{"instruction": number, **ending} for number, ending in enumerate(told)]
    assert_states(lane["states"], [header for header, _arrays in page.frames])
    assert [state["time"] for state in lane["states"]] == pytest.approx(0.3 * np.arange(len(page.frames)))
    assert record["texts"] == ["go to the barrel", "left of the barrel"]
    assert (record["schema"], record["control_period"], record["vehicle"]) == (1, 0.3, "lab")


def test_an_episode_that_cannot_be_kept_is_said_to_be_and_the_connection_goes_on(policies, tmp_path):
    with RunningStudio(policies, tmp_path / "kept", steps=1) as small, small.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly()
        page.until("state", phase="ended")
        shutil.rmtree(tmp_path / "kept")
        (tmp_path / "kept").write_text("a file")
        page.say("keep")
        assert "download it instead" in page.until("error")["message"]
        page.say("hello", version=1)
        assert page.hear()["type"] == "welcome"


def test_nothing_is_kept_unless_asked_for(policies, tmp_path):
    with RunningStudio(policies, tmp_path, steps=3) as small, small.page() as page:
        page.place()
        page.say("speed", value=8)
        page.fly()
        page.until("state", phase="ended")
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".videos-")] == []


def test_episodes_are_found_by_their_names_alone(studio):
    with studio.http() as http:
        for name in ("..%2f..%2fetc%2fpasswd", "%2e%2e/x.json", "a.json", "x" * 22 + ".json", ".json", "%00.json"):
            answer = http.get(f"/episodes/{name}")
            assert answer.status_code in (400, 404), name
            assert "root:" not in answer.text


def test_pages_cards_and_layouts_are_served(studio):
    with studio.http(headers={"origin": studio.url}) as http:
        assert "A card." in http.get("/cards/small0").text
        assert http.get("/cards/small0").headers["content-type"].startswith("text/plain")
        assert http.get("/cards/..%2f..").status_code == 404
        answer = http.post("/layout", content=json.dumps(LAYOUT))
        assert answer.json()["landmarks"][0] == LAYOUT["landmarks"][0] | {"x": 1.0, "y": 0.5}
        refused = http.post("/layout", content='{"schema": 1, "landmarks": [{"name": "Barell", "x": 0, "y": 0}]}')
        assert refused.status_code == 400
        assert 'did you mean "Barrel"' in refused.json()["message"]
        assert http.post("/layout", content=b"\xff\xfe").status_code == 400
        assert http.get("/static/").status_code == 404
        assert http.get("/static/..%2fserver.py").status_code == 404
        assert http.get("/docs").status_code == 404
        assert http.get("/openapi.json").status_code == 404


def test_policies_are_loaded_once_and_shared_by_many_flights(policies):
    one, two = policies["small0"].instance("sim"), policies["small0"].instance("lab")
    assert one.network is two.network
    assert one is not two


def test_episodes_go_on_being_deleted_after_a_day_on_which_their_folder_could_not_be_read(
    policies, tmp_path, monkeypatch
):
    days, enough = [], threading.Event()

    def clean(_episodes):
        days.append(len(days))
        if len(days) == 3:
            enough.set()
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "DAY", 0.05)
    with RunningStudio(policies, tmp_path):
        monkeypatch.setattr(Episodes, "clean", clean)
        assert enough.wait(10)
