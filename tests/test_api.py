"""The ten names that `import wordwing` offers."""

import json
import subprocess
import sys

import numpy as np
import pytest

import wordwing
from small_policy import VOCABULARY, small_network
from wordwing.data.corpora import corpus
from wordwing.errors import WordwingError
from wordwing.policies.learned import LearnedPolicy
from wordwing.world.tasks import StartPose


def test_each_name_is_what_its_home_defines():
    homes = {name: wordwing._HOMES[name].split(":") for name in wordwing.__all__}
    assert len(homes) == 10
    for name, (module, attribute) in homes.items():
        assert getattr(wordwing, name) is getattr(sys.modules[f"wordwing.{module}"], attribute)
    assert set(homes) <= set(dir(wordwing))
    with pytest.raises(AttributeError, match="no attribute 'glide'"):
        _ = wordwing.glide


def test_the_import_alone_loads_nothing_large():
    code = "import sys, wordwing; sys.exit(bool({'torch', 'warp', 'mujoco', 'pandas', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_sentence_is_flown_judged_and_drawn():
    policy = LearnedPolicy(small_network(), VOCABULARY)
    start = StartPose(-1.0, 0.5, 0.25)
    flight = wordwing.fly("go to the barrel", policy=policy, seed=3, start=start)
    assert isinstance(flight, wordwing.Execution)
    np.testing.assert_allclose(flight.path[0], [-1.0, 0.5], atol=1e-6)
    assert "barrel" in {landmark.kind.name.lower() for landmark in flight.task.layout.landmarks}
    again = wordwing.fly("go to the barrel", policy=policy, seed=3, start=start)
    np.testing.assert_array_equal(flight.path, again.path)
    assert wordwing.verdict(flight).lines
    sheet = wordwing.draw_beliefs(flight)
    assert len(set(sheet.resize((64, 64)).getdata())) > 50


def test_the_layout_that_is_given_is_flown_in():
    layout = wordwing.fly("go to the barrel", policy="stop", seed=1).task.layout
    assert wordwing.fly("go to the barrel", policy="stop", layout=layout, seed=2).task.layout is layout


def test_a_flight_without_beliefs_is_not_drawn():
    with pytest.raises(WordwingError, match="no images and beliefs"):
        wordwing.draw_beliefs(wordwing.fly("go to the barrel", policy="stop"))
    with pytest.raises(WordwingError, match="there is no word"):
        wordwing.fly("…")


def test_policies_are_evaluated_by_name_on_a_dataset(tmp_path):
    summary = wordwing.evaluate(["stop", "oracle"], corpus("dev-mini"), tmp_path, limit=3)
    lines = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text("utf-8").splitlines()]
    assert [line["system"] for line in lines] == ["stop"] * 3 + ["oracle"] * 3
    assert summary.to_json() == (tmp_path / "summary.json").read_text("utf-8")
    with pytest.raises(WordwingError, match=r'no policy is called "orakle".*did you mean "oracle"'):
        wordwing.evaluate(["orakle"], corpus("dev-mini"), tmp_path / "none")
