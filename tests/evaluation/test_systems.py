"""Who flies: names, what tells one system from another, and AVERAGE's mean action."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from small_evaluation import bare_dataset, save_policy, small_cage
from wordwing.data.corpora import corpus
from wordwing.data.dataset import DERIVED, Dataset
from wordwing.data.demonstrations import flying
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.data.demonstrations.flying import fly_sim, mean_action, training_mean_action
from wordwing.errors import WordwingError
from wordwing.evaluation.systems import find_systems
from wordwing.policies.baselines import MEAN_ACTIONS, Average, MeanAction, Stop
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import load_policy
from wordwing.policies.oracle import Oracle


@pytest.fixture(scope="module")
def cage(tmp_path_factory) -> Dataset:
    return bare_dataset(tmp_path_factory.mktemp("data") / "cage", [("a", "dev", "yard")], name="cage")


@pytest.fixture(scope="module")
def policies(tmp_path_factory) -> Path:
    """A folder with a run and two policies beside it."""
    folder = tmp_path_factory.mktemp("policies")
    save_policy(folder / "one", seed=0)
    save_policy(folder / "two", seed=1)
    shutil.copytree(folder / "one", folder / "sureal-quick" / "best")
    return folder


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[Dataset, Demonstrations]:
    """A dataset that nobody knows, with some paths that are too long to be flown, and ORACLE's flights of it."""
    dataset = small_cage(tmp_path_factory.mktemp("data") / "yard", name="yard", steps=13, train=2)
    flown = fly_sim(dataset, list(dataset.instructions("train")))
    assert 0 < flown.stopped.sum() < len(flown)
    return dataset, flown


def refused(given: list[str], dataset: Dataset) -> str:
    with pytest.raises(WordwingError) as error:
        find_systems(given, dataset)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_baselines_are_called_by_their_names(cage):
    found = find_systems(["oracle", "stop", "average"], cage)
    assert [(system.name, system.policy, system.needs_images) for system in found] == [
        ("oracle", "oracle", False),
        ("stop", "stop", False),
        ("average", "average", False),
    ]
    assert [type(system.load("sim")) for system in found] == [Oracle, Stop, Average]
    assert found[2].load("sim").mean_action == found[2].mean_action == MEAN_ACTIONS["cage"]


def test_a_policy_is_called_after_its_folder_or_its_run_or_as_one_says(cage, policies):
    given = [policies / "one", policies / "sureal-quick" / "best", f"ours={policies / 'two'}", "calm=stop"]
    found = find_systems([str(entry) for entry in given], cage)
    assert [system.name for system in found] == ["one", "sureal-quick", "ours", "calm"]
    assert [Path(system.policy).name for system in found] == ["one", "best", "two", "stop"]
    assert [system.needs_images for system in found] == [True, True, True, False]
    policy = found[2].load("lab")
    assert isinstance(policy, LearnedPolicy)
    assert policy.domain == "lab"


@pytest.mark.parametrize("given", ["average=oracle", "oracle={policy}", "{folder}/stop"])
def test_nobody_else_is_called_as_a_baseline_is(given, cage, policies, tmp_path):
    shutil.copytree(policies / "one", tmp_path / "stop")
    with pytest.raises(WordwingError, match=r"name in tables; give .* another"):
        find_systems([given.format(policy=policies / "one", folder=tmp_path)], cage)
    [system] = find_systems(["oracle=oracle"], cage)
    assert system.name == "oracle"


def test_a_folder_with_an_equals_sign_in_its_name_is_a_folder(cage, policies, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(policies / "one", tmp_path / "lr=3")
    shutil.copytree(policies / "one", tmp_path / "=3")
    [system] = find_systems(["lr=3"], cage)
    assert (system.name, system.policy) == ("lr=3", "lr=3")
    assert [system.name for system in find_systems(["=3", "named=lr=3"], cage)] == ["=3", "named"]


def test_a_fingerprint_changes_with_all_that_decides_a_flight_and_with_nothing_else(cage, policies, tmp_path):
    def fingerprint(folder: Path) -> str:
        [system] = find_systems([str(folder)], cage)
        return system.fingerprint

    first = fingerprint(policies / "one")
    assert first == fingerprint(policies / "sureal-quick" / "best")
    assert first != fingerprint(policies / "two")
    for name, changes in (
        ("config.json", True),
        ("model.safetensors", True),
        ("vocab.txt", True),
        ("README.md", False),
    ):
        folder = shutil.copytree(policies / "one", tmp_path / name)
        with open(folder / name, "ab") as file:
            file.write(b" ")
        assert (fingerprint(folder) != first) == changes, name


def test_fingerprints_of_averages_differ_with_their_mean_actions(tmp_path):
    found = set()
    for name in ("cage", "field"):
        [average] = find_systems(["average"], bare_dataset(tmp_path / name, [("a", "dev", "yard")], name=name))
        found.add(average.fingerprint)
    assert len(found) == 2


def test_names_that_make_no_sense_are_answered_in_a_sentence(cage, policies, tmp_path):
    assert 'no policy is called "oracel", and there is no such folder; did you mean "oracle"?' in refused(
        ["stop", "oracel"], cage
    )
    assert refused(["=x"], cage) == '"=x" has no name before "="; a system is POLICY or NAME=POLICY'
    assert 'no policy is called ""' in refused(["x="], cage)
    assert 'no policy is called ""' in refused([""], cage)
    assert 'no policy is called "xxx' in refused(["x" * 5000], cage)
    assert 'no policy is called "xxx' in refused(["long=" + "x" * 5000], cage)
    twice = 'two systems are called "oracle"; name one of them: NAME=POLICY'
    assert refused(["oracle", "oracle"], cage) == twice
    assert refused(["one=oracle", str(policies / "one")], cage) == twice.replace('"oracle"', '"one"')
    assert "this is not a policy, there is no config.json in it" in refused([str(tmp_path)], cage)
    said = refused([str(policies / "sureal-quick")], cage)
    assert f'did you mean "{policies / "sureal-quick" / "best"}"?' in said
    folder = shutil.copytree(policies / "one", tmp_path / "half")
    (folder / "vocab.txt").unlink()
    assert refused([str(folder)], cage).startswith(f"{folder / 'vocab.txt'}: cannot be read (")


def test_a_policy_may_be_loaded_by_name_without_a_dataset(policies):
    assert load_policy("average", "sim").mean_action == MEAN_ACTIONS["cage"]
    assert load_policy("average", "sim", mean_action=MeanAction(0.1, 0.2, 3)).mean_action == MeanAction(0.1, 0.2, 3)
    assert load_policy(str(policies / "one"), "lab").domain == "lab"
    with pytest.raises(WordwingError, match='no policy is called "pvn9"'):
        load_policy("pvn9", "sim")


def test_the_mean_action_is_the_mean_of_a_plain_loop_over_all_decisions(measured):
    _dataset, flown = measured
    forward, yaw_rate, steps = [], [], []
    for flight in range(len(flown)):
        setpoints = flown.setpoints(flight)
        forward += setpoints.forward.tolist()
        yaw_rate += setpoints.yaw_rate.tolist()
        steps.append(len(setpoints.forward))
    measured_action = mean_action(flown)
    assert measured_action == (round(np.mean(forward), 3), round(np.mean(yaw_rate), 3), round(np.mean(steps)))
    assert type(measured_action.steps) is int


def test_a_dataset_that_nobody_knows_is_measured(measured, monkeypatch):
    dataset, flown = measured
    said: list[str] = []
    assert training_mean_action(dataset, say=said.append) == mean_action(flown)
    assert said == ["flying ORACLE along all training paths, for AVERAGE; wordwing data demonstrate would keep them"]
    [system] = find_systems(["average"], dataset)
    assert system.load("sim").mean_action == system.mean_action == mean_action(flown)


def test_demonstrations_that_are_there_are_not_flown_again(measured, tmp_path, monkeypatch):
    dataset, flown = measured
    copy = Dataset(shutil.copytree(dataset.folder, tmp_path / "yard"))
    flown.save(copy.folder / DERIVED / "sim-train.npz")
    monkeypatch.setattr(flying, "fly_sim", None)
    assert training_mean_action(copy) == mean_action(flown)
    with open(copy.folder / "paragraphs.jsonl", "a") as file:
        file.write("\n")
    with pytest.raises(WordwingError, match="flown in another yard than"):
        training_mean_action(copy)


def test_without_training_there_is_no_average(tmp_path):
    dataset = bare_dataset(tmp_path / "yard", [("a", "dev", "yard")], name="yard")
    sentence = f"{dataset.folder}: AVERAGE is the mean action of the split train, and there is none"
    assert refused(["stop", "average"], dataset) == sentence
    assert find_systems(["stop", "oracle"], dataset)


def test_dev_mini_and_the_corpora_have_their_mean_actions(tmp_path):
    for name, action in MEAN_ACTIONS.items():
        dataset = bare_dataset(tmp_path / name, [("a", "dev", "yard")], name=name)
        assert training_mean_action(dataset) == action
    assert corpus("dev-mini").name in MEAN_ACTIONS


@pytest.mark.long
def test_the_cages_mean_action_is_what_the_oracle_does_on_its_training_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path))
    cage = corpus("cage")
    flown = fly_sim(cage, list(cage.instructions("train")))
    setpoints = [flown.setpoints(flight) for flight in range(len(flown))]
    forward = np.concatenate([entry.forward.double().numpy() for entry in setpoints])
    yaw_rate = np.concatenate([entry.yaw_rate.double().numpy() for entry in setpoints])
    steps = np.mean([len(entry.forward) for entry in setpoints])
    assert MEAN_ACTIONS["cage"] == (round(forward.mean(), 3), round(yaw_rate.mean(), 3), round(steps))
