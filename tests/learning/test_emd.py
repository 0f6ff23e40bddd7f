"""The earth mover's distance against linear programming, POT, closed forms and loops along paths."""

import json
import math

import numpy as np
import ot
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog
from torch import Tensor

from wordwing.bench import emd as emd_bench
from wordwing.bench.emd import KINDS, Problems, make_problems
from wordwing.cli import main
from wordwing.learning.emd import KEEP, SparseMap, batched_emd, dirac_emd, emd, exact_emd, stop_emd, visited_weights
from wordwing.model.layers import each
from wordwing.world.tasks import sample_tasks

CELL = 4.7 / 32
Floats = NDArray[np.float64]


def centre(index: int) -> tuple[float, float]:
    return 4.7 - (index // 64 + 0.5) * CELL, 4.7 - (index % 64 + 0.5) * CELL


def random_problem(rng, count: int, points: int, cells: int) -> tuple[Tensor, Tensor, SparseMap]:
    """Points and cells anywhere on the map, all weights above zero."""
    index = np.stack([rng.choice(4096, cells, replace=False) for _map in range(count)])
    return (
        torch.from_numpy(rng.uniform(-3, 3, (count, points, 2))).float(),
        torch.from_numpy(rng.dirichlet(np.ones(points), count)).float(),
        SparseMap(
            torch.from_numpy(index.astype(np.int16)), torch.from_numpy(rng.dirichlet(np.ones(cells), count)).float()
        ),
    )


def on_one_cell(index: int, count: int = 1) -> SparseMap:
    cells = torch.zeros(count, 4096)
    cells[:, index] = 1
    return SparseMap.of(cells.reshape(count, 64, 64), keep=8)


def transport_cost(points: Floats, a: Floats, centres: Floats, b: Floats) -> float:
    """The least cost by scipy's linear programming, plan entry by plan entry."""
    cost = np.array([[math.dist(p, c) for c in centres] for p in points])
    rows = [np.outer(np.arange(len(a)) == i, np.ones(len(b))).ravel() for i in range(len(a))]
    columns = [np.outer(np.ones(len(a)), np.arange(len(b)) == j).ravel() for j in range(len(b))]
    return linprog(cost.ravel(), A_eq=np.array(rows + columns), b_eq=np.concatenate([a, b])).fun


@pytest.fixture(scope="module")
def realistic() -> Problems:
    rng = np.random.default_rng(5)
    return make_problems(sample_tasks("field", 6, rng), 128, rng)


def test_a_sparse_map_holds_the_likeliest_cells_and_sums_to_one(rng):
    cells = rng.random((3, 64, 64)).astype(np.float32)
    sparse = SparseMap.of(torch.from_numpy(cells), keep=10)
    assert sparse.index.dtype == torch.int16
    for row, index, weight in zip(cells.reshape(3, -1), sparse.index.numpy(), sparse.weight.numpy(), strict=True):
        assert index.tolist() == np.argsort(-row)[:10].tolist()
        assert weight == pytest.approx(row[index] / row[index].sum(), rel=1e-6)


def test_a_map_of_zeros_stays_one_and_a_faint_one_is_brought_to_one():
    cells = torch.zeros(2, 64, 64)
    cells[1, 3, 4], cells[1, 63, 63] = 3e-30, 1e-30
    sparse = SparseMap.of(cells, keep=4)
    assert sparse.weight[0].tolist() == [0, 0, 0, 0]
    assert sparse.weight[1].tolist() == pytest.approx([0.75, 0.25, 0, 0])
    assert sparse.index[1, :2].tolist() == [3 * 64 + 4, 4095]


def test_sparse_maps_can_be_chosen_from_by_masks_and_numbers(rng):
    sparse = SparseMap.of(torch.from_numpy(rng.random((6, 64, 64))), keep=5)
    table = each(lambda tensor: tensor.reshape(2, 3, 5), sparse)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    assert len(table[mask]) == 3
    assert table[mask].index.tolist() == sparse.index[[0, 2, 5]].tolist()
    assert table[1, 2].weight.tolist() == sparse.weight[5].tolist()


def test_cells_lie_where_the_map_has_them():
    sparse = SparseMap(torch.tensor([[0, 1, 64, 4095]], dtype=torch.int16), torch.full((1, 4), 0.25))
    edge, inner = 4.7 - CELL / 2, 4.7 - 1.5 * CELL
    expected = [[edge, edge], [edge, inner], [inner, edge], [-edge, -edge]]
    assert sparse.centres[0].tolist() == [pytest.approx(xy, abs=1e-5) for xy in expected]


def test_the_exact_distance_is_that_of_linear_programming(rng):
    points, weights, cells = random_problem(rng, 4, 5, 7)
    found = exact_emd(points, weights, cells)
    for n in range(4):
        a, b = weights[n].double().numpy(), cells.weight[n].double().numpy()
        centres = np.array([centre(int(index)) for index in cells.index[n]])
        expected = transport_cost(points[n].double().numpy(), a / a.sum(), centres, b / b.sum())
        assert found[n].item() == pytest.approx(expected, abs=1e-5)


def test_only_the_shares_of_the_weights_count_for_the_exact_distance(rng):
    points, weights, cells = random_problem(rng, 4, 5, 7)
    torch.testing.assert_close(exact_emd(points, 3 * weights, cells), exact_emd(points, weights, cells))


def test_the_batched_distance_is_within_two_percent_on_maps_of_every_kind(realistic):
    cells = SparseMap.of(realistic.likely)
    exact = exact_emd(realistic.points.double(), realistic.weights.double(), cells)
    batched = batched_emd(realistic.points, realistic.weights, cells).double()
    assert set(realistic.kind.tolist()) == set(range(len(KINDS)))
    assert exact.min() > 0.05  # so that a part of the distance says enough
    assert (batched <= exact + 1e-5).all()
    error = (exact - batched) / exact
    assert error.max() < 0.02
    assert error.mean() < 0.004


@pytest.mark.long
def test_the_batched_distance_is_within_two_percent_on_thousands_of_maps():
    rng = np.random.default_rng(6)
    problems = make_problems(sample_tasks("cage", 64, rng), 3000, rng)
    cells = SparseMap.of(problems.likely)
    exact = exact_emd(problems.points.double(), problems.weights.double(), cells)
    error = exact - batched_emd(problems.points, problems.weights, cells).double()
    seen = exact > 0
    assert (error[seen] / exact[seen]).quantile(0.99) < 0.015
    assert (error <= torch.maximum(0.02 * exact, torch.tensor(0.005))).all()


def test_the_batched_distance_to_a_single_cell_is_the_mean_distance(rng):
    points, weights, _cells = random_problem(rng, 2, 30, 4)
    found = batched_emd(points, weights, on_one_cell(777, count=2))
    for n in range(2):
        total = sum(float(w) * math.dist(p, centre(777)) for w, p in zip(weights[n], points[n].tolist(), strict=True))
        assert found[n].item() == pytest.approx(total, abs=1e-4)


def test_two_islands_out_of_balance_cost_the_way_between_them():
    # Nine tenths of the path at one cell, half of the map: four tenths cross 20 cells.
    cells = torch.zeros(1, 64, 64)
    cells[0, 20, 30] = cells[0, 40, 30] = 1
    points = torch.tensor([[centre(20 * 64 + 30), centre(40 * 64 + 30)]])
    found = batched_emd(points, torch.tensor([[0.9, 0.1]]), SparseMap.of(cells, keep=16))
    assert found.item() == pytest.approx(0.4 * 20 * CELL, rel=5e-3)


def test_points_on_the_cells_themselves_have_no_distance(rng):
    _points, _weights, cells = random_problem(rng, 3, 1, 40)
    found = batched_emd(cells.centres, cells.weight, cells)
    assert found.abs().max() < 1e-3


def test_paths_far_off_the_plan_are_as_far_as_their_offset_when_shape_and_plan_agree():
    # All of a row of cells moved straight ahead by 30 cells.
    cells = torch.zeros(1, 64, 64)
    cells[0, 10, 20:44] = 1
    points = torch.tensor([[centre(40 * 64 + column) for column in range(20, 44)]])
    found = batched_emd(points, torch.full((1, 24), 1 / 24), SparseMap.of(cells))
    assert found.item() == pytest.approx(30 * CELL, rel=1e-3)


@pytest.mark.parametrize("method", [exact_emd, batched_emd])
def test_a_map_of_zeros_is_no_distance_away_and_disturbs_nobody(rng, method):
    points, weights, cells = random_problem(rng, 3, 6, 9)
    alone = method(points[2:], weights[2:], cells[2:])
    cells.weight[1] = 0
    found = method(points, weights, cells)
    assert found[1] == 0
    assert found[2] == alone[0]
    assert found[0] > 0


@pytest.mark.parametrize("method", [exact_emd, batched_emd])
def test_points_and_cells_without_weight_do_not_count_wherever_they_stand(rng, method):
    points, weights, cells = random_problem(rng, 4, 6, 9)
    expected = method(points, weights, cells)
    places, shares = torch.full((4, 13, 2), torch.nan), torch.zeros(4, 13)
    places[:, 1:12:2], shares[:, 1:12:2] = points, weights
    places[:, :12:2] = 0.0
    index, masses = torch.zeros(4, 20, dtype=torch.int16), torch.zeros(4, 20)
    index[:, 2::2], masses[:, 2::2] = cells.index, cells.weight
    assert torch.allclose(method(places, shares, SparseMap(index, masses)), expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("method", [exact_emd, batched_emd])
def test_no_maps_have_no_distances(method):
    empty = SparseMap(torch.zeros(0, 4, dtype=torch.int16), torch.zeros(0, 4))
    assert method(torch.zeros(0, 3, 2), torch.zeros(0, 3), empty).shape == (0,)


def test_on_the_cpu_the_distance_is_exact_unless_asked_otherwise(rng):
    problem = random_problem(rng, 3, 6, 9)
    assert torch.equal(emd(*problem), exact_emd(*problem))
    assert torch.equal(emd(*problem, "exact"), exact_emd(*problem))
    assert torch.equal(emd(*problem, "batched"), batched_emd(*problem))
    assert not torch.equal(emd(*problem, "batched"), exact_emd(*problem))


@pytest.mark.cuda
def test_the_distance_on_cuda_is_within_two_percent(realistic):
    problem = (realistic.points, realistic.weights, SparseMap.of(realistic.likely))
    found, exact = emd(*each(lambda tensor: tensor.cuda(), problem)), exact_emd(*problem)
    assert found.is_cuda
    assert torch.allclose(found.cpu(), exact, rtol=0.02, atol=1e-5)


def test_a_single_point_is_as_far_as_the_mean_distance(rng):
    points, _weights, cells = random_problem(rng, 4, 1, 9)
    expected = exact_emd(points, torch.ones(4, 1), cells)
    assert torch.allclose(dirac_emd(points[:, 0], cells), expected, rtol=0, atol=1e-5)


def test_the_stop_distance_is_the_earth_movers_distance_to_one_point(rng):
    goal = rng.random((3, 64, 64)) ** 20
    goal[1] *= 1e-6
    position = rng.uniform(-2, 2, (3, 2))
    found = stop_emd(torch.from_numpy(goal).float(), torch.from_numpy(position).float())
    centres = np.array([centre(index) for index in range(4096)])
    for n in range(3):
        cost = ot.dist(position[n : n + 1], centres, metric="euclidean")
        expected = ot.emd2([1.0], goal[n].ravel() / goal[n].sum(), cost)
        assert found[n].item() == pytest.approx(expected, rel=1e-5)


def test_stopping_costs_nothing_where_no_goal_has_been_seen():
    goal = torch.zeros(2, 64, 64)
    goal[1, 20, 20] = 0.1
    found = stop_emd(goal, torch.zeros(2, 2))
    assert found[0] == 0
    assert found[1].item() == pytest.approx(math.hypot(*centre(20 * 64 + 20)), rel=1e-5)


def test_the_mass_of_a_path_is_spread_evenly_along_it(rng):
    position = torch.from_numpy(rng.uniform(-1, 1, (5, 8, 2))).float()
    count = torch.tensor([2, 3, 5, 8, 1])
    found = visited_weights(position, count)
    for n in range(4):
        points = position[n, : count[n]].tolist()
        expected = [0.0] * 8
        for k in range(len(points) - 1):
            expected[k] += math.dist(points[k], points[k + 1]) / 2
            expected[k + 1] += math.dist(points[k], points[k + 1]) / 2
        assert found[n].tolist() == pytest.approx([part / sum(expected) for part in expected], abs=1e-6)
    assert found[4].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_a_path_of_no_length_has_all_its_mass_on_its_first_point():
    position = torch.full((1, 4, 2), 0.7)
    position[0, 3] = 5.0
    assert visited_weights(position, torch.tensor([3])).tolist() == [[1, 0, 0, 0]]


def test_what_stands_beyond_the_path_has_no_mass_even_if_it_is_no_number():
    position = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [math.nan, math.nan]]])
    assert visited_weights(position, torch.tensor([2])).tolist() == [[0.5, 0.5, 0]]


def test_turning_on_the_spot_changes_no_distance(rng):
    path = torch.from_numpy(rng.uniform(-1, 1, (1, 4, 2))).float()
    turning = path[:, [0, 0, 0, 1, 2, 2, 3, 3]]
    cells = random_problem(rng, 1, 1, 50)[2]
    expected = exact_emd(path, visited_weights(path, torch.tensor([4])), cells)
    found = exact_emd(turning, visited_weights(turning, torch.tensor([8])), cells)
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)


def test_the_command_prints_errors_and_rates_as_json_lines(capsys, monkeypatch):
    monkeypatch.setattr(emd_bench, "TASKS", 4)
    main(["bench", "emd", "--maps", "24", "--device", "cpu", "--seconds", "0.01"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [errors] = [row for row in rows if row["figure"] == "error of batched, %" and row["kind"] == "all"]
    assert 0 < errors["value"] < errors["p99"] <= errors["max"] < 2
    assert 0 < errors["mean_mm"] < errors["p99_mm"] <= errors["max_mm"]
    assert errors["large"] == 0
    assert 0.1 < errors["median_emd_m"] < 2
    rates = {row["figure"]: row for row in rows if row["figure"].endswith("maps/s")}
    assert set(rates) == {"exact maps/s", "batched maps/s"}
    for row in rates.values():
        assert row["value"] > 1
        assert (row["maps"], row["batch"]) == (24, 64)
        assert 1 < row["points"] <= 101
        assert 1 < row["cells"] <= KEEP
        assert "one core of" in row["device"]


def test_the_same_seed_makes_the_same_problems():
    tasks = sample_tasks("cage", 2, np.random.default_rng(0))
    first, second, other = (make_problems(tasks, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.likely, second.likely)
    assert torch.equal(first.points, second.points)
    assert not torch.equal(first.points, other.points)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--maps", "-1"], "--maps is -1; it must be from 1 to 100000"),
        (["--seconds", "0"], "--seconds is 0.0; it must be more than 0"),
        (["--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (["--device", "gpu"], 'no device is called "gpu"'),
    ],
)
def test_options_that_make_no_sense_are_refused(capsys, arguments, sentence):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "emd", *arguments])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err


def test_the_exact_distance_is_of_shares_whatever_the_masses_add_up_to(rng):
    points, weights, cells = random_problem(rng, 3, 5, 8)
    heavier = exact_emd(points, 3 * weights, SparseMap(cells.index, 0.2 * cells.weight))
    assert torch.allclose(heavier, exact_emd(points, weights, cells), atol=1e-6)
