"""The drif workspace, in files written by hand: positions are known beforehand."""

import json
import math
import re
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import pytest
import tyro

from original_files import SQUARE, config, curve, entry, unity, workspace, write
from wordwing.commands import datasets
from wordwing.data.dataset import Dataset
from wordwing.data.importers.arenas import Config, to_layout
from wordwing.data.importers.lani import import_drif
from wordwing.data.importers.originals import ImportNotes
from wordwing.data.importers.paths import condensed, ends_along, replayed
from wordwing.errors import WordwingError
from wordwing.world.catalogue import landmark, landmarks


def imported(root, out=None, **options) -> Dataset:
    dataset = import_drif(root, out or root.parent / "made", **options)
    dataset.validate()
    return dataset


def ids(dataset, split=None):
    return [paragraph.id for paragraph in dataset.paragraphs(split)]


def note(dataset, words) -> int:
    """The number that a note gives."""
    [line] = [line for line in dataset.meta["notes"] if words in line]
    return int(re.search(r": (\d+)", line)[1])


def notes(dataset) -> str:
    return "\n".join(dataset.meta["notes"])


def complaint(root, **options) -> str:
    with pytest.raises(WordwingError) as caught:
        import_drif(root, root.parent / "made", **options)
    assert "\n" not in str(caught.value)
    assert not (root.parent / "made").exists()
    return str(caught.value)


def test_segments_are_cut_from_the_path_where_the_annotators_ended_them(tmp_path):
    [paragraph] = imported(workspace(tmp_path / "ws")).paragraphs()
    first, second = paragraph.segments
    # 100 units of 4.7 mm from the corner, which is at -2.35 m.
    np.testing.assert_allclose(first.path, [[-1.88, -1.88], [-0.94, -1.88], [0, -1.88]], atol=1e-9)
    np.testing.assert_allclose(second.path, [[0, -1.88], [0, -0.94], [0, 0]], atol=1e-9)
    assert (first.instruction, second.instruction) == ("go to place 0 .", "go to place 1 .")
    assert first.start_xy == pytest.approx((-1.88, -1.88))
    assert (paragraph.id, paragraph.split) == ("12", "train")


@pytest.mark.parametrize(
    ("rotation", "yaw"), [(0, math.pi / 2), (90, 0.0), (180, -math.pi / 2), (225, -3 * math.pi / 4), (360, math.pi / 2)]
)
def test_rotations_turn_clockwise_from_up(tmp_path, rotation, yaw):
    row = entry(path=[(500, 500), (500, 900)], ends=[1], start_rot=[rotation])
    dataset = imported(workspace(tmp_path / "ws", [row], followed={"12": curve([(500, 500), (500, 900)])}))
    [segment] = next(dataset.paragraphs()).segments
    assert segment.start_xy == (0.0, 0.0)
    assert segment.start_yaw == pytest.approx(yaw, abs=1e-5)
    np.testing.assert_allclose(segment.path, [[0, 0], [0, 1.88]], atol=1e-9)


def test_landmarks_stand_where_the_layout_file_has_them(tmp_path):
    dataset = imported(workspace(tmp_path / "ws"))
    barrel, windmill = dataset.layout("12").landmarks
    assert (barrel.name, barrel.x, barrel.y) == ("Barrel", pytest.approx(-1.41), pytest.approx(-0.94))
    assert (windmill.name, windmill.x, windmill.y) == ("Windmill", pytest.approx(1.41), pytest.approx(0.94))
    assert barrel.radius == pytest.approx(0.47)


def test_the_dataset_says_what_it_is(tmp_path):
    dataset = imported(workspace(tmp_path / "ws"), seed=3)
    assert (dataset.name, dataset.steps, dataset.meta["text"], dataset.meta["seed"]) == ("drif", 50, "human", 3)
    options = "--seed 3 --part all --annotations any"
    assert dataset.meta["command"] == f"wordwing data import drif {tmp_path / 'ws'} {options}"
    assert dataset.meta["counts"]["train"] == {"paragraphs": 1, "layouts": 1, "segments": 2, "instructions": 3}


def test_points_that_turns_repeat_count_once(tmp_path):
    points = [SQUARE[0]] * 3 + [SQUARE[1]] + [SQUARE[2]] * 4 + SQUARE[3:]
    dataset = imported(workspace(tmp_path / "ws", followed={"12": curve(points)}))
    assert [len(segment.path) for segment in next(dataset.paragraphs()).segments] == [3, 3]


def test_what_was_followed_is_preferred_to_what_was_shown(tmp_path):
    near = [(x + 20, z) for x, z in SQUARE]
    both = workspace(tmp_path / "both", shown={"12": curve(near)})
    one = workspace(tmp_path / "one", shown={"12": curve(near)}, followed={})
    a, b = imported(both, tmp_path / "a"), imported(one, tmp_path / "b")
    assert next(a.paragraphs()).segments[0].path[0] == pytest.approx([-1.88, -1.88])
    assert next(b.paragraphs()).segments[0].path[0] == pytest.approx([-1.88 + 0.094, -1.88])
    assert "1 paragraphs with paths that followers flew" in notes(a)
    assert "1 paragraphs with paths that writers were shown" in notes(b)


@pytest.mark.parametrize("stride", [1.0, 1.5])
def test_without_curves_moves_are_replayed_with_the_stride_that_reaches_the_ends(tmp_path, stride):
    row = entry(ends=[2], moves=["FFRRRRRRFF"], start_rot=[0.0])
    row |= {"end_x": [row["start_x"][0] + 2 * stride], "end_z": [row["start_z"][0] + 2 * stride]}
    dataset = imported(workspace(tmp_path / "ws", [row], followed={}))
    [segment] = next(dataset.paragraphs()).segments
    step = stride * 0.094
    corner = np.array([-1.88, -1.88])
    expected = corner + step * np.array([[0, 0], [0, 1], [0, 2], [1, 2], [2, 2]])  # up, then a right angle to the right
    np.testing.assert_allclose(segment.path, expected, atol=1e-4)
    assert f"a move F is {stride} Unity m" in notes(dataset)
    assert "1 paragraphs with paths replayed from moves" in notes(dataset)


def test_a_replay_is_what_a_turtle_does(rng):
    for _ in range(50):
        moves = "".join(rng.choice(list("FLR"), 30))
        place, heading, passed = np.array([0.3, -0.2]), 0.7, [(0.3, -0.2)]
        for letter in moves:
            heading += {"L": 1, "R": -1, "F": 0}[letter] * math.pi / 12
            if letter == "F":
                place = place + 0.1 * np.array([math.cos(heading), math.sin(heading)])
                passed.append(tuple(place))
        np.testing.assert_allclose(replayed(np.array([0.3, -0.2]), 0.7, moves, 0.1), passed, atol=1e-9)


def test_strange_moves_are_never_replayed(tmp_path):
    rows = [entry(), entry("13", moves=["FFS", "F"])]
    dataset = imported(workspace(tmp_path / "ws", rows, configs={"12": config(), "13": config()}))
    assert ids(dataset) == ["12"]
    assert note(dataset, "moves other than F, L and R") == 1


def test_people_who_move_in_steps_leave_curves_that_are_cut_where_they_ended(tmp_path, rng):
    """As the originals came about: a point for every move, so that turns repeat points, and ends on the curve."""
    rows, curves, truth = [], {}, {}
    while len(rows) < 100:
        env = str(len(rows))
        place, heading = rng.uniform(200, 800, 2), rng.integers(24) * 15.0
        points, starts, ends, rotations, moves, segments = [place], [], [], [], [], []
        for _ in range(4):
            starts.append(place)
            rotations.append(heading)
            segments.append([place])
            turns = rng.choice([*"LLR"], 2) if rng.random() < 0.5 else rng.choice([*"RRL"], 2)
            moves.append("".join([*turns, *rng.permutation([*"FFFFFF", turns[0]])]))
            for letter in moves[-1]:
                heading += {"L": -15, "R": 15, "F": 0}[letter]
                if letter == "F":
                    angle = math.radians(heading)
                    place = place + 20 * np.array([math.sin(angle), math.cos(angle)])
                    segments[-1].append(place)
                points.append(place)
            ends.append(place)
        if not 0 <= np.min(points) <= np.max(points) <= 1000:
            continue
        curves[env], truth[env] = curve([point.tolist() for point in points]), segments
        numbers = {
            f"{name}_{axis}": [unity(float(place[index])) for place in places]
            for name, places in (("start", starts), ("end", ends))
            for index, axis in enumerate("xz")
        }
        texts = {"instructions": [*"abcd"], "moves": moves, "start_rot": rotations}
        rows.append(entry(env) | numbers | texts)
    root = workspace(tmp_path / "ws", rows, configs={env: config() for env in curves}, followed=curves)
    dataset = imported(root, tmp_path / "made")
    for path in (root / "configs" / "anno_paths").iterdir():
        path.unlink()
    replays = imported(root, tmp_path / "replays")
    for a, b in zip(dataset.paragraphs(), replays.paragraphs(), strict=True):
        for segment, replay, points in zip(a.segments, b.segments, truth[a.id], strict=True):
            np.testing.assert_allclose(segment.path, (np.array(points) - 500) * 0.0047, atol=1e-4)
            np.testing.assert_allclose(replay.path, segment.path, atol=2e-4)
    assert "a move F is 1.0 Unity m" in notes(dataset)
    assert "differ from the nearest" not in notes(dataset)
    assert "100 layout files hold 1 different layouts" in notes(dataset)


def test_a_curve_that_nobody_followed_gives_way_to_the_moves(tmp_path):
    """A second paragraph of an environment, by somebody who went elsewhere."""
    other = entry(path=[(800, 200), (800, 280)], ends=[1], moves=["F" * 4], start_rot=[0.0])
    dataset = imported(workspace(tmp_path / "ws", [entry(), other]))
    first, second = dataset.paragraphs()
    assert (first.id, second.id) == ("12", "12-1")
    assert first.layout == second.layout
    np.testing.assert_allclose(second.segments[0].path[[0, -1]], [[1.41, -1.41], [1.41, -1.034]], atol=1e-4)
    assert note(dataset, "another path taken") == 1


def test_ends_never_lie_before_the_segment_before(tmp_path):
    """There and back: the nearest point of the whole path to the last end is on the way there."""
    there_and_back = [(100, 100), (200, 100), (300, 100), (400, 100), (400, 110), (300, 110), (200, 110)]
    row = entry(path=there_and_back, ends=(3, 6))
    row["end_z"][1] = unity(101)
    dataset = imported(workspace(tmp_path / "ws", [row], followed={"12": curve(there_and_back)}))
    first, second = next(dataset.paragraphs()).segments
    assert first.path[-1] == pytest.approx([-0.47, -1.88])
    assert second.path[-1] == pytest.approx([-1.41, -1.833])
    assert len(second.path) == 4
    assert note(dataset, "differ from the nearest point") == 1


def test_ends_are_together_as_near_as_their_order_lets_them_be(rng):
    for _ in range(50):
        path, ends = rng.uniform(-2, 2, (9, 2)), rng.uniform(-2, 2, (4, 2))
        found, differing = ends_along(path, ends)
        orders = combinations_with_replacement(range(9), 4)
        best = min(orders, key=lambda order: sum(math.dist(path[i], e) ** 2 for i, e in zip(order, ends, strict=True)))
        assert tuple(found) == best
        free = [min(range(9), key=lambda i, end=end: math.dist(path[i], end)) for end in ends]
        assert differing == sum(a != b for a, b in zip(found, free, strict=True))
    assert ends_along(path, np.zeros((0, 2)))[0].tolist() == []


def test_a_path_that_comes_by_again_does_not_swallow_the_segments_between(tmp_path):
    """The first end is nearer to where the path comes back than to where it first went by."""
    loop = [(100, 100), (300, 100), (500, 100), (500, 300), (300, 300), (300, 110), (100, 300)]
    row = entry(path=loop, ends=(1, 3, 6))
    row["end_z"][0] = unity(108)
    dataset = imported(workspace(tmp_path / "ws", [row], followed={"12": curve(loop)}))
    assert [len(segment.path) for segment in next(dataset.paragraphs()).segments] == [2, 3, 4]


def test_condensing_keeps_the_path(rng):
    path = rng.uniform(-2, 2, (6, 2))
    np.testing.assert_array_equal(condensed(np.repeat(path, [1, 3, 1, 2, 5, 1], axis=0)), path)
    assert condensed(np.zeros((0, 2))).shape == (0, 2)


def test_pairs_are_consecutive_even_where_a_segment_is_left_out(tmp_path):
    row = entry(ends=(1, 2, 2, 3, 4), instructions=["one", "two", "turn left", "three", "four"])
    dataset = imported(workspace(tmp_path / "ws", [row]))
    assert ids(dataset) == ["12", "12.2"]
    texts = [instruction.segment.instruction for instruction in dataset.instructions(counts=(2,))]
    assert texts == ["one two", "three four"]
    assert note(dataset, "segments without a path, left out") == 1
    assert note(dataset, "paragraphs split where a segment is left out") == 1


def test_leaving_out_the_first_or_last_segment_splits_nothing(tmp_path):
    row = entry(ends=(0, 2, 4, 4), instructions=["turn", "one", "two", "stop"])
    dataset = imported(workspace(tmp_path / "ws", [row]))
    assert ids(dataset) == ["12"]
    assert [segment.instruction for segment in next(dataset.paragraphs()).segments] == ["one", "two"]
    assert note(dataset, "segments without a path, left out") == 2


def test_a_segment_of_two_points_is_kept(tmp_path):
    dataset = imported(workspace(tmp_path / "ws", [entry(ends=(1, 4))]))
    assert [len(segment.path) for segment in next(dataset.paragraphs()).segments] == [2, 4]


def test_sentences_stay_as_they_are_but_for_white_space(tmp_path):
    row = entry(instructions=["  Go to\tthe\n Barrel , then STOP . ", ["pass", "the", "“well”"]])
    first, second = next(imported(workspace(tmp_path / "ws", [row])).paragraphs()).segments
    assert (first.instruction, second.instruction) == ("Go to the Barrel , then STOP .", "pass the “well”")


def test_empty_sentences_and_paragraphs_are_left_out_and_counted(tmp_path):
    rows = [entry(instructions=["...", "go on"]), entry(ends=()), entry(instructions=["", " "])]
    dataset = imported(workspace(tmp_path / "ws", rows))
    assert [segment.instruction for segment in next(dataset.paragraphs()).segments] == ["go on"]
    assert ids(dataset) == ["12"]
    assert note(dataset, "segments without words") == 3
    assert note(dataset, "paragraphs without segments") == 1
    assert note(dataset, "paragraphs of which no segment is left") == 1


def test_ends_far_from_the_path_are_counted(tmp_path):
    row = entry()
    row["end_x"][1] += 4.9
    row["end_z"][1] += 1.5  # 5.12 of 50 m, 0.48 of 4.7 m
    dataset = imported(workspace(tmp_path / "ws", [row]))
    assert note(dataset, "end is more than 0.47 m from their path") == 1


def test_segments_that_start_off_their_path_are_left_out(tmp_path):
    row = entry()
    row["start_x"][1] += 6
    row["moves"] = None
    dataset = imported(workspace(tmp_path / "ws", [row]))
    assert [segment.instruction for segment in next(dataset.paragraphs()).segments] == ["go to place 0 ."]
    assert note(dataset, "start more than 0.5 m from their path") == 1


def test_points_out_of_the_arena_are_moved_to_its_edge(tmp_path):
    path = [(-8, 500), (200, 500), (500, 1010)]
    dataset = imported(workspace(tmp_path / "ws", [entry(path=path, ends=[2])], followed={"12": curve(path)}))
    [segment] = next(dataset.paragraphs()).segments
    np.testing.assert_allclose(segment.path, [[-2.35, 0], [-1.41, 0], [0, 2.35]], atol=1e-9)
    assert segment.start_xy == (-2.35, 0.0)
    assert note(dataset, "path points out of the arena") == 2
    assert note(dataset, "starts out of the arena") == 1


def test_annotations_in_layout_units_are_known_by_their_values(tmp_path):
    row = entry()
    for key in ("start_x", "start_z", "end_x", "end_z"):
        row[key] = [(value - 225) * 20 for value in row[key]]
    plain = imported(workspace(tmp_path / "a"), tmp_path / "made-a")
    units = imported(workspace(tmp_path / "b", [row]), tmp_path / "made-b")
    assert [p.to_json() for p in plain.paragraphs()] == [p.to_json() for p in units.paragraphs()]
    assert "train_annotations_7000.json: positions are in layout units" in notes(units)


def test_curves_in_unity_metres_are_known_by_their_values(tmp_path):
    metres = curve([(unity(x), unity(z)) for x, z in SQUARE])
    plain = imported(workspace(tmp_path / "a"), tmp_path / "made-a")
    other = imported(workspace(tmp_path / "b", followed={"12": metres}), tmp_path / "made-b")
    assert [p.to_json() for p in plain.paragraphs()] == [p.to_json() for p in other.paragraphs()]


def test_both_kinds_of_records_and_numbers_as_text_mean_the_same(tmp_path):
    row = entry()
    texts = {key: [str(v) for v in row[key]] for key in ("start_x", "start_z", "start_rot", "end_x", "end_z")}
    nested = {"id": 12, "valid": "true", "metadata": {**row, **texts, "id": 99, "valid": False}}
    single = entry(ends=[4])
    single |= {key: value[0] for key, value in single.items() if isinstance(value, list)}
    a = imported(workspace(tmp_path / "a", [row]), tmp_path / "made-a")
    b = imported(workspace(tmp_path / "b", [nested]), tmp_path / "made-b")
    c = imported(workspace(tmp_path / "c", [single]), tmp_path / "made-c")
    assert [p.to_json() for p in a.paragraphs()] == [p.to_json() for p in b.paragraphs()]
    assert len(next(c.paragraphs()).segments) == 1


def test_other_sets_of_annotations(tmp_path):
    root = workspace(tmp_path / "ws", [entry(instructions=["seven", "7"])])
    for split in ("train", "dev", "test"):
        rows = [entry(instructions=["six", "6"])] if split == "train" else []
        write(root / "configs" / f"{split}_annotations_6000.json", rows)
    results = {"train": [entry(instructions=["four", "4"])], "dev": [], "test": []}
    write(root / "configs" / "annotation_results.json", results)
    for which, text in {"any": "seven", "7000": "seven", "6000": "six", "4000": "four"}.items():
        dataset = imported(root, tmp_path / which, annotations=which)
        assert next(dataset.paragraphs()).segments[0].instruction == text
    for path in (root / "configs").glob("*_7000.json"):
        path.unlink()
    assert next(imported(root).paragraphs()).segments[0].instruction == "six"
    for path in (root / "configs").glob("*_6000.json"):
        path.unlink()
    assert next(imported(root).paragraphs()).segments[0].instruction == "four"


def test_the_folder_configs_will_do(tmp_path):
    root = workspace(tmp_path / "ws")
    assert ids(imported(root / "configs")) == ["12"]


def test_the_same_arena_is_one_layout_under_whatever_ids(tmp_path):
    block = config(("Banana", 200, 200), ("Gorilla", 700, 300), ("Boat", 400, 800))
    turned = config(("Boat", 400, 800), ("Banana", 200, 200), ("Gorilla", 700, 300), radius=[110.0, 90, 100])
    rows = [entry(str(env)) for env in (6004, 6000, 6003, 6001)]
    names = {"6000": block, "6001": block, "6003": turned, "6004": block, "6005": config()}
    root = workspace(
        tmp_path / "ws", rows, test=[entry("6005")], configs=names, followed={env: curve() for env in names}
    )
    dataset = imported(root)
    assert {paragraph.layout for paragraph in dataset.paragraphs("train")} == {"6000"}
    assert {paragraph.layout for paragraph in dataset.paragraphs("test")} == {"6005"}
    assert dataset.meta["shared"] == []
    assert "5 layout files hold 2 different layouts" in notes(dataset)


def test_splits_that_share_layouts_say_so(tmp_path):
    envs = {"1": config(), "2": config(), "3": config(("Apple", 500, 500)), "4": config(("Apple", 500, 500))}
    root = workspace(
        tmp_path / "ws", [entry("1")], dev=[entry("2"), entry("3")], test=[entry("4")], configs=envs,
        followed={env: curve() for env in envs},
    )  # fmt: skip
    dataset = imported(root)
    assert dataset.meta["shared"] == ["dev", "test"]
    assert dataset.meta["splits"]["dev"] == "of its 2 layouts it shares 1 with train"
    assert dataset.meta["splits"]["test"] == "of its 1 layouts it shares 1 with dev"
    assert "dev shares layouts: of 2, 1 with train" in notes(dataset)


def test_paragraph_names_are_unique_over_splits(tmp_path):
    dataset = imported(workspace(tmp_path / "ws", [entry(), entry()], dev=[entry("012")]))
    assert ids(dataset, "train") == ["12", "12-1"]
    assert ids(dataset, "dev") == ["12-2"]


def test_an_environment_may_be_called_like_a_second_paragraph(tmp_path):
    rows = [entry(), entry(), entry("12-1")]
    envs = {"12": config(), "12-1": config(("Tank", 500, 500))}
    root = workspace(tmp_path / "ws", rows, configs=envs, followed={env: curve() for env in envs})
    found = {paragraph.id: paragraph.layout for paragraph in imported(root).paragraphs()}
    assert found == {"12": "12", "12-1": "12", "12-1'": "12-1"}


def test_landmarks_look_somewhere_that_only_seed_and_environment_decide(tmp_path):
    other = config(("Tank", 300, 300))
    alone = imported(workspace(tmp_path / "a"), tmp_path / "1")
    beside = imported(
        workspace(
            tmp_path / "b", [entry("3"), entry()], configs={"3": other, "12": config()},
            followed={"3": curve(), "12": curve()},
        ),
        tmp_path / "2",
    )  # fmt: skip
    again = imported(tmp_path / "a", tmp_path / "3", seed=1)
    assert alone.layout("12") == beside.layout("12")
    assert alone.layout("12") != again.layout("12")
    yaws = [entry.yaw for entry in alone.layout("12").landmarks]
    assert len(set(yaws)) == 2
    assert all(-math.pi <= yaw <= math.pi for yaw in yaws)


def test_two_runs_write_the_same_bytes(tmp_path):
    root = workspace(tmp_path / "ws")
    a, b = imported(root, tmp_path / "a"), imported(root, tmp_path / "b")
    for path in a.folder.iterdir():
        assert path.read_bytes() == (b.folder / path.name).read_bytes()


def test_disabled_and_unknown_landmarks_are_left_out_and_counted(tmp_path):
    rows = config(("Barrel", 200, 300), ("Unicorn", 500, 500), ("Well", 700, 700), isEnabled=[True, True, False])
    dataset = imported(workspace(tmp_path / "ws", configs={"12": rows}))
    assert [entry.name for entry in dataset.layout("12").landmarks] == ["Barrel"]
    assert note(dataset, "disabled landmarks, left out") == 1
    assert "unknown landmarks, left out: 1 (Unicorn)" in notes(dataset)


def test_radii_and_flags_may_be_missing(tmp_path):
    rows = {key: value for key, value in config().items() if key not in ("radius", "isEnabled")}
    dataset = imported(workspace(tmp_path / "ws", configs={"12": rows}))
    assert [entry.radius for entry in dataset.layout("12").landmarks] == [None, None]


def test_a_radius_is_at_least_the_footprint(tmp_path):
    dataset = imported(workspace(tmp_path / "ws", configs={"12": config(("Container", 500, 500), radius=[10])}))
    assert dataset.layout("12").landmarks[0].radius == landmark("Container").footprint
    assert note(dataset, "radii smaller") == 1


def test_lakes_are_cells_along_x_and_z(tmp_path):
    cells = [{"x": 30, "y": 41}, {"x": "30", "y": 40}, {"x": 30, "y": 41}, {"x": 100, "y": 0}, {"x": -1, "y": 5}]
    dataset = imported(workspace(tmp_path / "ws", configs={"12": config(lakeCoords=cells)}))
    assert dataset.layout("12").lakes == ((30, 40), (30, 41))
    assert note(dataset, "lake cells out of the arena") == 2
    # Cell (30, 41) covers 300 to 310 and 410 to 420 units.
    assert dataset.layout("12").lake_at([(305 - 500) * 0.0047, (415 - 500) * 0.0047])
    assert imported(workspace(tmp_path / "b", configs={"12": config(lakeCoords=None)})).layout("12").lakes == ()


def test_landmarks_are_nudged_apart_and_into_the_arena(tmp_path):
    # Barrels of 0.24 m, 0.423 m apart: half of 0.057 m more for each. The Well's 0.36 m reach 0.08 m too far out.
    rows = config(("Barrel", 400, 500), ("Barrel2", 490, 500), ("Well", 960, 500))
    dataset = imported(workspace(tmp_path / "ws", configs={"12": rows}))
    first, second, well = dataset.layout("12").landmarks
    assert second.x - first.x == pytest.approx(0.48, abs=0.01)
    assert first.x + second.x == pytest.approx(2 * (445 - 500) * 0.0047, abs=1e-4)
    assert (first.y, second.y, well.y) == (0, 0, 0)
    assert well.x == pytest.approx(2.35 + 0.05 - 0.36, abs=1e-3)
    assert note(dataset, "landmarks moved") == 3


def test_the_lesser_of_two_at_one_place_is_left_out(tmp_path):
    dataset = imported(workspace(tmp_path / "ws", configs={"12": config(("Column", 500, 500), ("Coach", 500, 505))}))
    assert [entry.name for entry in dataset.layout("12").landmarks] == ["Coach"]
    assert "landmarks overlapping others, left out: 1 (Column in 12)" in notes(dataset)


def test_a_landmark_far_out_is_left_out(tmp_path):
    dataset = imported(workspace(tmp_path / "ws", configs={"12": config(("Column", 500, 500), ("Coach", 5000, 505))}))
    assert [entry.name for entry in dataset.layout("12").landmarks] == ["Column"]
    assert "landmarks out of the arena, left out: 1 (Coach in 12)" in notes(dataset)


def test_a_landmark_in_a_corner_takes_no_other_with_it(tmp_path):
    # The Tank reaches 0.21 m too far on both axes: 0.3 m to move, which is too much.
    rows = config(("Barrel", 500, 500), ("Windmill", 200, 300), ("Tank", 975, 975))
    dataset = imported(workspace(tmp_path / "ws", configs={"12": rows}))
    assert [entry.name for entry in dataset.layout("12").landmarks] == ["Barrel", "Windmill"]
    assert "landmarks out of the arena, left out: 1 (Tank in 12)" in notes(dataset)
    assert "overlapping" not in notes(dataset)


def test_only_what_overlaps_is_left_out(rng):
    """Crowds at the fences, with one landmark far from all others, which nothing must happen to."""
    names = [entry.name for entry in landmarks("field")]
    for _ in range(25):
        crowd = rng.uniform(900, 1020, (8, 2)).round()
        places = np.concatenate([[[200.0, 200.0]], crowd])
        heap = Config(["Column", *rng.choice(names, 8)], *places.T.tolist())
        layout, _ = to_layout(heap, "1", 0, ImportNotes())
        assert (layout.landmarks[0].name, layout.landmarks[0].x) == ("Column", pytest.approx(-1.41))


def test_any_heap_of_landmarks_becomes_a_layout_that_stands(rng):
    names = [entry.name for entry in landmarks("field")]
    for _ in range(25):
        count = int(rng.integers(1, 60))
        centres = rng.uniform(-20, 1020, (count, 2)).round()
        heap = Config(list(rng.choice(names, count)), *centres.T.tolist(), [100.0] * count)
        notes = ImportNotes()
        layout, whole = to_layout(heap, "1", 0, notes)
        layout.validate()
        lost = sum(number for what, number in notes.counts.items() if "left out" in what)
        assert len(layout.landmarks) + lost == count
        assert whole == (lost == 0)
        places = {(round(x, 3), round(z, 3)) for x, z in centres}
        for standing in layout.landmarks:
            x, z = standing.x / 0.0047 + 500, standing.y / 0.0047 + 500
            assert min(math.hypot(x - a, z - b) for a, b in places) * 0.0047 <= 0.25 + 1e-3


def test_what_stands_well_is_not_touched(rng):
    names = [entry.name for entry in landmarks("cage")]
    for _ in range(20):
        places = rng.uniform(100, 900, (5, 2)).round()
        if min(math.dist(a, b) for a, b in combinations(places, 2)) < 260:
            continue
        notes = ImportNotes()
        row = Config(list(rng.choice(names, 5)), *places.T.tolist(), [100.0] * 5)
        layout, whole = to_layout(row, "6000", 0, notes)
        np.testing.assert_allclose(layout.centres, (places - 500) * 0.0047, atol=1e-5)
        assert whole
        assert notes.sentences() == ()


def test_invalid_paragraphs_are_kept_unless_told_otherwise(tmp_path):
    root = workspace(tmp_path / "ws", [entry(valid=False), entry()])
    assert ids(imported(root, tmp_path / "a")) == ["12", "12-1"]
    only = imported(root, tmp_path / "b", valid_only=True)
    assert ids(only) == ["12-1"]
    assert note(only, "paragraphs marked invalid, left out") == 1


def test_field_and_cage_can_be_had_apart(tmp_path):
    envs = {"5999": config(), "6000": config(("Boat", 500, 500)), "7000": config(("Tank", 500, 500))}
    root = workspace(
        tmp_path / "ws", [entry(env) for env in envs], configs=envs, followed={env: curve() for env in envs}
    )
    for part, names in {"all": ["5999", "6000", "7000"], "field": ["5999", "7000"], "cage": ["6000"]}.items():
        dataset = imported(root, tmp_path / part, part=part)
        assert ids(dataset) == names
        assert f"{names.count('6000')} of {len(names)} paragraphs are in REAL environments" in notes(dataset)


def test_missing_files_are_counted(tmp_path):
    rows = [entry(), entry("13"), entry("14", moves=None)]
    dataset = imported(workspace(tmp_path / "ws", rows, configs={"12": config(), "14": config()}))
    assert ids(dataset) == ["12"]
    assert "paragraphs without a layout file, left out: 1 (13)" in notes(dataset)
    assert "paragraphs without curve file and moves, left out: 1 (14)" in notes(dataset)


def test_missing_splits_are_told(tmp_path):
    root = workspace(tmp_path / "ws")
    (root / "configs" / "dev_annotations_7000.json").unlink()
    assert "there are no annotations for dev" in notes(imported(root))


def test_an_empty_curve_is_as_good_as_none(tmp_path):
    dataset = imported(workspace(tmp_path / "ws", followed={"12": curve([])}, shown={"12": curve()}))
    assert ids(dataset) == ["12"]
    assert note(dataset, "curve files without points") == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": None}, '"id" is null'),
        ({"id": "../etc"}, '"id" is "../etc"'),
        ({"id": True}, '"id" is true'),
        ({"instructions": {}}, '"instructions" is an object'),
        ({"instructions": [3, "x"]}, '"instructions" has 3 in it'),
        ({"start_x": [250.0]}, '"start_x" has 1 values, but "instructions" has 2'),
        ({"end_z": None}, '"end_z" is null'),
        ({"start_rot": [0.0, math.nan]}, '"start_rot" has NaN in it'),
        ({"start_z": ["inf", 0]}, '"start_z" has Infinity in it'),
        ({"end_x": [[1], 2]}, '"end_x" has a list of 1 in it'),
        ({"end_x": ["far", 2]}, '"end_x" has "far" in it'),
        ({"moves": ["F"]}, '"moves" has 1 values'),
        ({"moves": [1, 2]}, '"moves" has 1 in it'),
        ({"valid": "maybe"}, '"valid" is "maybe"; it must be true or false'),
        ({"config_file": 3}, '"config_file" is 3'),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, changes, words):
    said = complaint(workspace(tmp_path / "ws", [entry(), entry() | changes]))
    assert said.startswith(f"{tmp_path}/ws/configs/train_annotations_7000.json: entry 2")
    assert words in said
    if "id" not in changes:
        assert "entry 2 (id 12): " in said


@pytest.mark.parametrize("key", ["instructions", "start_x", "start_z", "start_rot", "end_x", "end_z"])
def test_a_missing_key_is_named(tmp_path, key):
    row = entry()
    del row[key]
    assert f'entry 1 (id 12): "{key}" is missing; it must be a list' in complaint(workspace(tmp_path / "ws", [row]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('[{"id": "12", "instr', "line 1, column 15"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": 1}', "this is an object; it must be a list"),
        ("[3]", "entry 1 is 3"),
        ("[null]", "entry 1 is null"),
        ("9" * 5000, "not valid JSON"),
    ],
)
def test_a_broken_annotation_file_is_named(tmp_path, content, words):
    said = complaint(workspace(tmp_path / "ws", content))
    assert said.startswith(f"{tmp_path}/ws/configs/train_annotations_7000.json: ")
    assert words in said


def test_bytes_that_are_no_text_are_named(tmp_path):
    root = workspace(tmp_path / "ws")
    path = root / "configs" / "dev_annotations_7000.json"
    path.write_bytes(b'["\xff"]')
    assert complaint(root) == f"{path}: byte 2 is not UTF-8 text; save the file as UTF-8"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "it must be an object"),
        ("{}", '"landmarkName" is missing'),
        (config() | {"landmarkName": [1, 2]}, '"landmarkName" has 1 in it'),
        (config() | {"xPos": [1]}, '"xPos" has 1 values, but "landmarkName" has 2'),
        (config() | {"zPos": [1, math.nan]}, '"zPos" has NaN in it'),
        (config() | {"radius": "big"}, '"radius" is "big"'),
        (config() | {"isEnabled": [True, 7]}, '"isEnabled" has 7 in it'),
        (config() | {"lakeCoords": {"x": 1}}, '"lakeCoords" is an object'),
        (config() | {"lakeCoords": [3]}, "lakeCoord 1 is 3"),
        (config() | {"lakeCoords": [{"x": 1, "y": math.inf}]}, "Infinity"),
        (config() | {"wordwing": {"landmarks": [{}]}}, '"wordwing"'),
        (config() | {"wordwing": {"landmarks": [{}, {"size": 3}]}}, '"wordwing"'),
        ('{"landmarkName": ["Barrel"', "not valid JSON"),
    ],
)
def test_a_broken_layout_file_is_named(tmp_path, content, words):
    said = complaint(workspace(tmp_path / "ws", configs={"12": content}))
    assert said.startswith(f"{tmp_path}/ws/configs/configs/random_config_12.json: ")
    assert words in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "it must be an object"),
        ("{}", '"x_array" is missing'),
        (curve() | {"z_array": [1]}, '"z_array" has 1 values, but "x_array" has 5'),
        (curve() | {"x_array": [1, 2, 3, 4, None]}, '"x_array" has null in it'),
        (curve([(500, 500)] * 10_001), '"x_array" is a list of 10001'),
        ("", "empty"),
    ],
)
def test_a_broken_curve_file_is_named(tmp_path, content, words):
    said = complaint(workspace(tmp_path / "ws", followed={"12": content}))
    assert said.startswith(f"{tmp_path}/ws/configs/anno_paths/anno_curve_12.json: ")
    assert words in said


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"spans": [[0, 2]]}, '"spans"'),
        ({"spans": [[0, 2], [2, 5]]}, '"spans"'),
        ({"spans": [[2, 1], [1, 2]]}, '"spans"'),
        ({"spans": "all"}, '"spans"'),
        ({"meaning": [None]}, '"meaning"'),
        ({"meaning": [None, [{"kind": "reach", "reference": 2}]]}, "clause"),
        ({"meaning": [None, [{"kind": "fly"}]]}, '"kind" is "fly"; it must be turn'),
    ],
)
def test_broken_additions_of_our_own_are_named(tmp_path, extra, words):
    said = complaint(workspace(tmp_path / "ws", [entry(wordwing=extra)]))
    assert "entry 1 (id 12): " in said
    assert words in said


def test_what_is_no_workspace_is_refused(tmp_path):
    assert "there is no such folder" in complaint(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "train_annotations_7000.json is not there; name a drif workspace" in complaint(tmp_path / "empty")
    assert "train_annotations_6000.json is not there" in complaint(workspace(tmp_path / "ws"), annotations="6000")


def test_a_workspace_without_layouts_or_paths_is_refused(tmp_path):
    said = complaint(workspace(tmp_path / "a", configs={}))
    assert "none of 1 paragraphs has a layout file" in said
    assert f"{tmp_path}/a/configs/configs/random_config_12.json" in said
    said = complaint(workspace(tmp_path / "b", [entry(moves=None)], followed={}))
    assert "none of 1 paragraphs has a segment that can be flown" in said
    assert "none is wanted" in complaint(workspace(tmp_path / "c"), part="cage")


def test_half_a_surrogate_pair_does_no_harm(tmp_path):
    text = json.dumps([entry(instructions=["go \ud800 on", "😀 fly"])])
    first, second = next(imported(workspace(tmp_path / "ws", text)).paragraphs()).segments
    assert (first.instruction, second.instruction) == ("go ? on", "😀 fly")


def test_paths_of_a_paragraph_join(tmp_path):
    segments = next(imported(workspace(tmp_path / "ws", [entry(ends=(1, 2, 3, 4))])).paragraphs()).segments
    for a, b in pairwise(segments):
        np.testing.assert_array_equal(a.path[-1], b.path[0])


def test_the_command_tells_counts_and_oddities(tmp_path, capsys):
    root = workspace(tmp_path / "ws", [entry(valid=False), entry(ends=())])
    datasets.drif(root, out=tmp_path / "my made", seed=4, part="field")
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[0] == "train: 1 paragraphs, 1 layouts, 2 segments, 3 instructions"
    assert "paragraphs marked invalid, kept: 1 (12)" in said.out
    assert "paragraphs without segments, left out: 1 (12)" in said.out
    assert said.out.splitlines()[-1] == str(tmp_path / "my made")
    command = Dataset(tmp_path / "my made").meta["command"]
    assert command.startswith("wordwing data import drif ")
    assert "--out" not in command  # where a dataset goes is no part of what it is
    assert "--seed 4 --part field" in command
    with pytest.raises(WordwingError, match="--seed is -1"):
        datasets.drif(root, out=tmp_path / "b", seed=-1)


def test_the_command_line_has_the_options(tmp_path, capsys):
    root = workspace(tmp_path / "ws", [entry(valid=False), entry()])
    words = [str(root), "--out", str(tmp_path / "made"), "--valid-only", "--annotations", "7000"]
    tyro.cli(datasets.drif, args=words)
    assert "paragraphs marked invalid, left out: 1 (12)" in capsys.readouterr().out
