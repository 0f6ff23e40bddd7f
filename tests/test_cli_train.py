"""`wordwing train` as a person meets it."""

import fcntl
import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from tiny_training import command, tiny
from wordwing.cli import main
from wordwing.commands import train
from wordwing.data.dataset import Source, write_dataset
from wordwing.data.generating import Chunk, make
from wordwing.learning.recipes.initial import new_network
from wordwing.learning.runtime.logs import read_scalars
from wordwing.learning.training_data import DataConfig, load_training_data
from wordwing.policies.learned import LearnedPolicy


@pytest.fixture(scope="module")
def cage(tmp_path_factory) -> Path:
    layouts, paragraphs = make(Chunk("cage", "train", 0, 0, 5))
    more_layouts, more_paragraphs = make(Chunk("cage", "dev", 0, 0, 5))
    source = Source("cage", "generated", 0, "a test")
    folder = tmp_path_factory.mktemp("data") / "cage"
    return write_dataset(folder, source, layouts | more_layouts, paragraphs + more_paragraphs).folder


def refused(capsys, *arguments) -> str:
    """The sentence of a command that must exit with 2; what it said of its progress before does not matter."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    [sentence] = [line for line in said.splitlines() if line.startswith("wordwing: ")]
    return sentence


def untrained(cage):
    """What a tiny run with seed 0 begins with."""
    config = tiny(cage)
    return new_network(config, load_training_data(config.data, torch.device("cpu")), torch.device("cpu"))


def moved(module, other) -> bool:
    return any(
        not torch.equal(some, theirs)
        for some, theirs in zip(module.state_dict().values(), other.state_dict().values(), strict=True)
    )


def fly(policy: Path, out: Path, capsys) -> str:
    main(["fly", "go to the barrel", "--policy", str(policy), "--seed", "1", "--out", str(out)])
    assert (out / "flight.mp4").stat().st_size > 1000
    return capsys.readouterr().out


def test_sureal_leaves_policies_that_fly_and_logs_and_says_when_it_is_finished(cage, tmp_path, capsys):
    out = tmp_path / "run"
    main(command(cage, out))
    assert capsys.readouterr().out == f"policies: {out / 'best'} and {out / 'policy'}\n"
    assert "policy decided to stop" in fly(out / "policy", tmp_path / "flight", capsys)
    saved = (out / "policy" / "model.safetensors").stat().st_mtime_ns
    document = json.loads((out / "run.json").read_text())
    assert (document["command"], document["synchronous"]) == ("sureal", True)
    assert document["schedule"]["iterations"] == 2
    rows = read_scalars(out / "log-b")
    names = {name for row in rows for name in row}
    assert {"charts/SPS", "losses/approx_kl", "losses/clipfrac", "losses/explained_variance", "dev/success"} <= names
    assert {"rewards/share_visitation", "rewards/share_stop", "charts/episodic_return", "dev/emd_gap_low"} <= names
    names = {name for row in read_scalars(out / "log-a") for name in row}
    assert {"supervised/loss", "cloning/stop", "executions/demonstrations_left", "executions/length"} <= names
    assert any((out / "log-b").glob("events.out.tfevents.*"))

    main(command(cage, out))
    said = capsys.readouterr().out
    assert said.startswith(f"{out}: this run is finished; another --out begins a new one\n")
    assert (out / "policy" / "model.safetensors").stat().st_mtime_ns == saved


def test_stage1_learns_to_plan_and_leaves_stage_2_as_it_was(cage, tmp_path, capsys):
    out = tmp_path / "run"
    main(command(cage, out, what="stage1"))
    assert capsys.readouterr().out == f"policy: {out / 'policy'}\n"
    network = LearnedPolicy.from_pretrained(out / "policy").network
    assert moved(network.stage1, untrained(cage).stage1)
    assert not moved(network.stage2, untrained(cage).stage2)
    assert "decided to stop" in fly(out / "policy", tmp_path / "flight", capsys)
    assert json.loads((out / "run.json").read_text())["schedule"]["cloning_updates"] == 0
    assert "- command: `wordwing train stage1 " in (out / "policy" / "README.md").read_text()


@pytest.mark.parametrize("ablate", [(), ("--ablate", "pvn")])
def test_bc_clones_stage_2(cage, tmp_path, capsys, ablate):
    out = tmp_path / "run"
    main([*command(cage, out, what="bc"), *ablate])
    network = LearnedPolicy.from_pretrained(out / "policy").network
    assert network.config.stage1.observability == (not ablate)
    assert moved(network.stage2, untrained(cage).stage2)
    assert len([row for row in read_scalars(out / "log-a") if "cloning/velocity" in row]) == 1
    card = (out / "policy" / "README.md").read_text()
    assert "- command: `wordwing train bc " in card
    assert re.search(r"- stage 2: \d+ updates of cloning\n", card)
    main([*command(cage, out, what="bc"), *ablate])
    assert "this run is finished" in capsys.readouterr().out


def test_bc_clones_a_quarter_as_often_as_it_planned_where_nobody_says_how_often():
    def updates(*settings):
        return train._config("bc", "paper", (), settings, None, 0).schedule.cloning_updates

    assert updates("schedule.warm_up=8") == 2
    assert updates("schedule.warm_up=8", "schedule.cloning_updates=5") == 5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("schedule.minuets=3", 'wordwing: --set: there is no setting "schedule.minuets"; did you mean "minutes"?'),
        ("data.dev=0", "wordwing: --set data.dev: this is 0; it must be a whole number of at least 1"),
        ("data.dev", 'wordwing: --set has "data.dev"; a setting is changed by NAME=VALUE'),
        ("data.corpora=nowhere", "wordwing: nowhere: there is no such folder"),
        ("data.lab=all", "the lab's demonstrations are not there; wordwing data demonstrate"),
    ],
)
def test_settings_that_make_no_sense_are_refused(cage, tmp_path, capsys, change, sentence):
    assert sentence in refused(capsys, *command(cage, tmp_path / "run", change))


def test_options_that_are_repeated_add_up(tmp_path, capsys):
    bc = ["train", "bc", "--out", str(tmp_path / "run"), "--device", "cpu"]
    said = refused(capsys, *bc, "--ablate", "no-image", "--ablate", "pvn", "no-instruction", "--set", "data.dev=0")
    assert "--ablate has no-instruction and no-image, which change the same setting" in said
    assert 'seed: this is "one"' in refused(capsys, *bc, "--set", "data.limit=9", "seed=one", "--set", "data.dev=0")
    assert not (tmp_path / "run").exists()


def test_nobody_can_clone_drones_that_stand(tmp_path, capsys):
    said = refused(capsys, "train", "bc", "--ablate", "from-standing", "--out", str(tmp_path / "run"))
    assert "show nothing to clone" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("what", ["sureal", "stage1"])
def test_a_run_that_cannot_be_is_refused_before_it_takes_hours(cage, tmp_path, capsys, what):
    (tmp_path / "file").touch()
    said = refused(capsys, *command(cage, tmp_path / "file", what=what))
    assert said.endswith("file: a run cannot be kept there (it is a file)")
    for name in ("best", "policy", "state"):
        (tmp_path / name / name).mkdir(parents=True)
        said = refused(capsys, *command(cage, tmp_path / name, what=what))
        assert f"{tmp_path / name / name}: it is not known which run this belongs to" in said
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text('{"kilometres": 42}')
    assert "this does not describe a training run" in refused(capsys, *command(cage, tmp_path / "other", what=what))
    assert (tmp_path / "other" / "run.json").read_text() == '{"kilometres": 42}'


def test_minutes_that_are_over_before_the_warm_up_leave_no_random_policy(cage, tmp_path, capsys):
    arguments = command(cage, tmp_path, "schedule.minutes=0.001", "schedule.warm_up=30")
    for _life in range(2):
        said = refused(capsys, *arguments)
        assert "schedule.minutes is 0.001, and the warm-up takes longer" in said
    assert not {"best", "policy"} & {path.name for path in tmp_path.iterdir()}


def test_too_little_memory_is_said_in_a_sentence(cage, tmp_path, capsys, monkeypatch):
    def without_memory(*_, **__):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("wordwing.learning.sureal.load_training_data", without_memory)
    assert "there is not enough memory" in refused(capsys, *command(cage, tmp_path))


def test_only_processes_that_there_are_are_shown(cage, tmp_path, capsys):
    main(command(cage, tmp_path, what="bc"))
    said = capsys.readouterr().err
    assert "B stage 2" not in said
    assert "A stage 1: finished" in said.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["--recipe", "best"], ["--ablate", "no-images"], ["--synchronously"]])
def test_unknown_names_are_refused_without_a_traceback(arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "sureal", "--out", str(tmp_path / "run"), *arguments])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert arguments[-1].lstrip("-") in said.err + said.out
    assert not (tmp_path / "run").exists()


def test_a_negative_seed_and_an_unknown_device_are_refused(tmp_path, capsys):
    assert "--seed is -1" in refused(capsys, "train", "sureal", "--seed", "-1", "--out", str(tmp_path / "run"))
    assert 'no device is called "gpu"' in refused(capsys, "train", "bc", "--device", "gpu")
    assert not (tmp_path / "run").exists()


def test_other_settings_in_the_same_folder_are_refused_and_nothing_is_lost(cage, tmp_path, capsys):
    main(command(cage, tmp_path / "run", what="stage1"))
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*") if path.name != ".lock")
    capsys.readouterr()
    said = refused(capsys, *command(cage, tmp_path / "run", "data.dev=1", what="stage1"))
    assert "it holds another run, which differs in data.dev (2 there, 1 here)" in said
    assert "differs in command (stage1 there, bc here)" in refused(capsys, *command(cage, tmp_path / "run", what="bc"))
    after = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*") if path.name != ".lock")
    assert before == after


def test_a_folder_in_which_another_command_trains_is_refused(cage, tmp_path, capsys):
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = refused(capsys, *command(cage, tmp_path))
    assert "another command is training there" in said
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_checkpoint_that_was_damaged_is_named(cage, tmp_path, capsys):
    main(command(cage, tmp_path, what="stage1"))
    shutil.rmtree(tmp_path / "policy")  # else it would be finished
    shard = tmp_path / "state" / "state-1-of-1.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    assert f"wordwing: {shard}: the file is damaged or cut off" in refused(
        capsys, *command(cage, tmp_path, what="stage1")
    )


def test_a_dataset_without_a_dev_split_is_evaluated_on_its_training_instructions(tmp_path):
    layouts, paragraphs = make(Chunk("cage", "train", 0, 0, 5))
    dataset = write_dataset(tmp_path / "data", Source("mine", "generated", 0, "a test"), layouts, paragraphs)
    data = load_training_data(DataConfig((str(dataset.folder),), lab="none", dev=3), torch.device("cpu"))
    [part] = data.dev
    assert len(part) == 3
    assert {one.split for one in part} == {"train"}
