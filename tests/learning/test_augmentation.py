"""Mirrored contexts against flipped maps, mirrored rotations against matrices."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from wordwing.frames import Pose, in_start_frame
from wordwing.learning.contexts import ContextConfig, ContextSource, mirrored_pose, with_unknown_words
from wordwing.learning.losses import GoldConfig, gold_of
from wordwing.learning.paraphrases import paraphrase
from wordwing.model.mapping import project, visible_ground
from wordwing.model.text import Tokens

STILL = ContextConfig(images=3, foreign_motions=0.0, look_arounds=0.0, rotation=0.0)


def drawn(run, mirrored: float, lab: bool = False, seed: int = 5):
    """The same executions, mirrored or not."""
    data = run.data
    paraphrases = paraphrase(data.datasets, data.training, data.vocabulary)
    config, sizes = replace(STILL, mirrored=mirrored), (5, 2, 3) if lab else (5, 2, 0)
    source = ContextSource(run.examples, run.executions(), run.lab() if lab else None, config, sizes, paraphrases)
    return source.draw(torch.Generator().manual_seed(seed))


def seen_from_above(run, contexts):
    """The pictures themselves laid on the ground, [E · K, 3, 64, 64], and what of it they show."""
    network = run.network()
    pose = in_start_frame(contexts.pose, contexts.examples.start[:, None])
    flat = Pose(pose.position.flatten(0, 1), pose.quaternion.flatten(0, 1))
    sight = visible_ground(flat, network.camera, network.config.mapping)
    images = torch.cat([contexts.sim_image, contexts.lab_image]).flatten(0, 1).permute(0, 3, 1, 2).float()
    return project(images, sight, 1, network.camera).numpy(), sight.in_view.numpy()


def test_a_mirrored_batch_shows_and_asks_for_the_same_with_left_and_right_exchanged(run):
    plain, mirror = drawn(run, 0.0, lab=True), drawn(run, 1.0, lab=True)
    ground, in_view = seen_from_above(run, plain)
    other_ground, other_view = seen_from_above(run, mirror)
    both = in_view[:, :, ::-1] & other_view
    assert both.sum() > 0.99 * in_view.sum()
    apart = abs(ground[..., ::-1] - other_ground).max(1)[both]
    assert np.quantile(apart, 0.99) < 0.5, "but for rounding at edges, levels of 255"
    assert abs(ground - other_ground).mean() > 1
    gold, other = gold_of(plain, GoldConfig()), gold_of(mirror, GoldConfig())
    for before, after in ((gold.trajectory, other.trajectory), (gold.goal, other.goal)):
        assert after.numpy() == pytest.approx(before.numpy()[:, :, ::-1], abs=1e-5)
    assert torch.equal(plain.stop, mirror.stop)
    assert torch.equal(plain.setpoint[..., 0], mirror.setpoint[..., 0])
    assert torch.equal(plain.setpoint[..., 1], -mirror.setpoint[..., 1])


def test_a_mirrored_landmark_is_in_the_mirrored_image(run):
    plain, mirror = drawn(run, 0.0), drawn(run, 1.0)
    network = run.network()
    camera = network.camera
    found = 0
    for execution in range(len(plain.landmark)):
        for slot in torch.nonzero(plain.present[execution])[:, 0].tolist():
            pixels = []
            for contexts in (plain, mirror):
                place = torch.cat([contexts.place[execution, slot], torch.zeros(1)])
                pose = contexts.pose[execution : execution + 1, :1][:, 0]
                pixel, in_front = camera.project(place[None], camera.pose(pose))
                pixels.append((pixel[0], bool(in_front[0] & camera.contains(pixel)[0])))
            (one, visible), (other, visible_too) = pixels
            assert visible == visible_too
            if visible:
                assert float(one[0] + other[0]) == pytest.approx(camera.config.width, abs=0.01)
                assert float(one[1]) == pytest.approx(float(other[1]), abs=0.01)
                found += 1
    assert found > 5


def test_a_mirrored_rotation_is_that_of_the_mirrored_axes():
    generator = torch.Generator().manual_seed(0)
    quaternion = torch.nn.functional.normalize(torch.randn(6, 4, generator=generator), dim=1)
    position = torch.randn(6, 3, generator=generator)
    which = torch.tensor([True, False] * 3)
    found = mirrored_pose(Pose(position, quaternion), which)
    mirror = np.diag([1.0, -1.0, 1.0])
    for row in range(6):
        w, x, y, z = quaternion[row].tolist()
        matrix = Rotation.from_quat([x, y, z, w]).as_matrix()
        place = position[row].numpy()
        if which[row]:
            matrix, place = mirror @ matrix @ mirror, mirror @ place
        w, x, y, z = found.quaternion[row].tolist()
        assert Rotation.from_quat([x, y, z, w]).as_matrix() == pytest.approx(matrix, abs=1e-5)
        assert found.position[row].numpy() == pytest.approx(place, abs=1e-6)


def test_word_dropout_makes_a_share_of_the_words_unknown_and_nothing_of_the_padding():
    words = torch.arange(2, 42).repeat(500, 1)
    words[:, 30:] = 0
    tokens = Tokens(words, torch.full((500,), 30))
    found = with_unknown_words(tokens, 0.15, torch.Generator().manual_seed(1))
    lost = found.words == 1
    assert float(lost[:, :30].float().mean()) == pytest.approx(0.15, abs=4 * math.sqrt(0.15 * 0.85 / 15_000))
    assert (found.words[:, 30:] == 0).all()
    assert (found.words[~lost] == words[~lost]).all()
    assert torch.equal(found.lengths, tokens.lengths)


def test_a_word_that_is_dropped_has_no_vector_either():
    rows = torch.arange(40, dtype=torch.int32).repeat(500, 1)
    tokens = Tokens(torch.arange(2, 42).repeat(500, 1), torch.full((500,), 40), rows)
    found = with_unknown_words(tokens, 0.15, torch.Generator().manual_seed(1))
    lost = found.words == 1
    assert lost.any()
    assert (found.rows[lost] == 0).all()
    assert (found.rows[~lost] == rows[~lost]).all()


def test_mirrors_need_the_words_for_them(run):
    with pytest.raises(ValueError, match="a mirrored execution needs mirrored instructions"):
        ContextSource(run.examples, run.executions(), None, replace(STILL, mirrored=0.5), (2, 0, 0))
