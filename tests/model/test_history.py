"""What a drone has done, against a loop over cells and sums by hand."""

import math
from itertools import pairwise

import numpy as np
import torch

from wordwing.frames import Pose
from wordwing.model.ego import EgoView, ego_view
from wordwing.model.grid import START_GRID
from wordwing.model.history import REACH, History
from wordwing.model.stage2 import Stage2, Stage2Config
from wordwing.model.visitation import Visitation


def test_cells_near_the_path_have_been_flown_over_and_no_others(rng):
    points = rng.uniform(-2, 2, (5, 2))
    history = History.empty(1, "cpu")
    for x, y in points:
        history, _motion = history.follow(Pose.level(torch.tensor([[x, y]]).float(), torch.zeros(1), 0.7))
    steps = np.linspace(0, 1, 400)[:, None]
    path = np.concatenate([a + steps * (b - a) for a, b in pairwise(points)])
    centres = START_GRID.centres("cpu").numpy().reshape(-1, 1, 2)
    distance = np.linalg.norm(centres - path, axis=-1).min(1).reshape(64, 64)
    clear = np.abs(distance - REACH) > 0.01
    assert (history.cells[0].numpy() == (distance <= REACH))[clear].all()
    assert 50 < int(history.cells.sum()) < 2000


def test_motion_is_what_the_drone_did_since_the_last_decision_in_shares_of_the_most():
    history = History.empty(2, "cpu")
    xy, yaw = torch.tensor([[0.0, 0.0], [1.0, -1.0]]), torch.tensor([math.pi / 2, 3.0])
    history, motion = history.follow(Pose.level(xy, yaw, 0.7))
    assert (motion == 0).all(), "nothing is known of the time before"
    xy = xy + torch.tensor([[0.0, 0.21], [0.0, 0.0]])
    history, motion = history.follow(Pose.level(xy, torch.tensor([math.pi / 2, 3.2]), 0.7))
    assert torch.allclose(motion, torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.2 / 0.3]]), atol=1e-5)
    _track, motion = history.follow(Pose.level(xy - torch.tensor([[0.105, 0.0], [0.0, 0.0]]), history.last[:, 2], 0.7))
    assert torch.allclose(motion[0], torch.tensor([0.0, 0.5, 0.0]), atol=1e-5), "to the left"


def test_a_drone_that_has_lost_its_pose_moves_nowhere_and_goes_on_afterwards():
    history, _motion = History.empty(1, "cpu").follow(Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7))
    nowhere = Pose.level(torch.full((1, 2), torch.nan), torch.zeros(1), 0.7)
    lost, motion = history.follow(nowhere)
    assert motion.isnan().any(), "it decides NaN, and hovers"
    assert torch.equal(lost.cells, history.cells)
    _found, motion = lost.follow(Pose.level(torch.ones(1, 2), torch.zeros(1), 0.7))
    assert (motion == 0).all()


def test_a_view_has_what_has_been_flown_over_and_how_much_of_each_phase(rng):
    phases = torch.zeros(1, 2, 64, 64)
    phases[0, 0, 10:20, 30], phases[0, 1, 40:50, 30] = 0.1, 0.1
    plan = Visitation(phases.mean(1), phases[:, 1], torch.zeros(1, 2), phases, torch.zeros(1, 2))
    none = torch.zeros(1, 64, 64, dtype=torch.bool)
    flown = none.clone()
    flown[0, 10:15, 30] = True
    pose = Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7)
    motion = torch.tensor([[0.5, 0.0, -0.25]])
    view = ego_view(plan, none, none, pose, True, flown, motion)
    assert torch.allclose(view.done, torch.tensor([[0.5, 0.0, -0.25, 0.5, 0.0]]))
    assert view.whole.shape == (1, 6, 24, 24)
    assert view.whole[0, -1].sum() * 16 == torch.tensor(5.0), "a share of each coarse cell"
    assert view.flown.shape == (1, 1, 16, 16)
    plain = ego_view(plan, none, none, pose, True)
    assert torch.equal(plain.whole, view.whole[:, :-1])
    assert plain.done is None


def test_all_of_a_stage_2_with_history_learns_and_it_sees_what_has_been_done():
    torch.manual_seed(0)
    stage2 = Stage2(Stage2Config(history=True, phases=2))
    view = EgoView(
        torch.rand(5, 3, 16, 16),
        torch.rand(5, 6, 24, 24),
        torch.rand(5, 2),
        torch.rand(5, 1, 16, 16),
        torch.rand(5, 5, requires_grad=True),
    )
    control = stage2(view)
    (control.mean.sum() + control.deviation.sum() + control.stop_logit.sum()).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in stage2.parameters())
    assert view.done.grad.any(dim=0).all()
