"""The command line as a person meets it: what it writes, what it says, how it fails."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import av
import pytest
import torch
from PIL import Image

from command_line import refused
from small_evaluation import small_cage
from wordwing import __version__
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.policies.learned import LearnedPolicy
from wordwing.release import release


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wordwing", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_it_tells_its_version():
    assert run("--version").stdout == f"wordwing {release()}\n"
    assert release().startswith(__version__)


def test_help_names_every_command_and_teaches_the_first():
    said = run("--help").stdout
    for command in ("fly", "data", "bench"):
        assert command in said
    assert "wordwing fly" in said


def test_a_flight_writes_its_film_a_still_and_the_layout(tmp_path):
    done = run("fly", "go to the barrel", "--policy", "oracle", "--seed", "1", "--out", str(tmp_path / "a"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "ORACLE came to rest" in done.stdout
    assert done.stdout.splitlines()[-1] == f"video: {tmp_path / 'a' / 'flight.mp4'}"
    assert "does not read the text" in done.stdout
    with av.open(str(tmp_path / "a" / "flight.mp4")) as film:
        frames = list(film.decode(video=0))
    assert len(frames) > 10
    assert frames[0].to_ndarray().std() > 10
    assert abs(frames[0].to_ndarray().astype(int) - frames[-1].to_ndarray()).mean() > 1
    with Image.open(tmp_path / "a" / "filmstrip.png") as still:
        assert still.width > 1000
    assert len(json.loads((tmp_path / "a" / "layout.json").read_text())["landmarks"]) >= 5
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"flight.mp4", "filmstrip.png", "layout.json"}


def test_who_says_nothing_else_is_flown_by_the_policy_that_comes_with_wordwing(tmp_path, capsys):
    main(["fly", "turn around and go to the barrel", "--seed", "1", "--out", str(tmp_path)])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == '"turn around and go to the barrel"'
    assert re.fullmatch(r"pvn2-sureal decided to stop after \d\.\d s and \d\.\d\d m", said[1])
    assert said[2:] == [
        "✓ turned around",
        "✓ came to rest at the barrel",
        "everything that was said was done, says the judge",
        f"video: {tmp_path / 'flight.mp4'}",
    ]


def test_the_same_seed_flies_the_same_flight_and_its_layout_can_be_flown_again(tmp_path, capsys):
    for out in ("a", "b"):
        main(["fly", "go", "--policy", "oracle", "--seed", "4", "--out", str(tmp_path / out)])
    for name in ("layout.json", "filmstrip.png"):  # not the film: its encoder promises the same pictures, not bytes
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    layout = str(tmp_path / "a" / "layout.json")
    main(["fly", "go", "--layout", layout, "--policy", "average", "--out", str(tmp_path / "c")])
    assert "AVERAGE came to rest" in capsys.readouterr().out


def test_the_lab_flies_from_the_command_line(tmp_path, capsys):
    main(["fly", "go to the pumpkin", "--policy", "oracle", "--vehicle", "lab", "--seed", "2", "--out", str(tmp_path)])
    assert "ORACLE came to rest" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "   \n\t "])
def test_an_empty_instruction_is_refused(capsys, text):
    assert "the instruction is empty" in refused(capsys, "fly", text)


def test_an_endless_instruction_is_refused(capsys):
    assert "2000 are the most" in refused(capsys, "fly", "left " * 1000)


def test_a_missing_layout_is_refused(capsys, tmp_path):
    assert "there is no such file" in refused(capsys, "fly", "go", "--layout", str(tmp_path / "none.json"))


def test_an_unknown_landmark_in_a_layout_is_refused_with_a_hint(capsys, tmp_path):
    file = tmp_path / "yard.json"
    file.write_text('{"schema": 1, "arena": 4.7, "landmarks": [{"name": "Barell", "x": 0, "y": 0}]}')
    said = refused(capsys, "data", "show", "layout", str(file), "--out", str(tmp_path / "x.png"))
    assert 'yard.json: landmark 1 is called "Barell"; did you mean "Barrel"?' in said
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("landmarks", ["", '{"name": "Barrel", "x": 0.8, "y": 0.6}'])
def test_a_layout_with_one_landmark_or_none_is_flown(capsys, tmp_path, landmarks):
    file = tmp_path / "bare.json"
    file.write_text(f'{{"schema": 1, "arena": 4.7, "landmarks": [{landmarks}]}}')
    for policy in ("oracle", "average"):
        main(["fly", "go", "--layout", str(file), "--policy", policy, "--out", str(tmp_path)])
    assert "ORACLE came to rest" in capsys.readouterr().out


def test_a_start_can_be_given_and_things_that_are_not_there_are_named_before_the_flight(capsys, tmp_path, monkeypatch):
    file = tmp_path / "yard.json"
    file.write_text('{"schema": 1, "arena": 4.7, "landmarks": [{"name": "Barrel", "x": 0.8, "y": 0.6}]}')
    flown = []

    def fly(task, *_others):
        flown.append((task, capsys.readouterr().out))
        raise WordwingError("enough")

    monkeypatch.setattr("wordwing.evaluation.demo.fly_once", fly)
    arguments = ["--layout", str(file), "--start", "-1,0.5,90", "--out", str(tmp_path)]
    assert "enough" in refused(capsys, "fly", "stopp at the sofa grobnik", *arguments)
    [(task, said)] = flown
    assert (task.start_xy, task.start_yaw) == ((-1.0, 0.5), math.pi / 2)
    assert said.splitlines() == [
        "pvn2-sureal does not know: grobnik",
        "pvn2-sureal reads: stopp → stop",
        'nothing in the layout is called "sofa"; what stands there: barrel',
    ]


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        ("1,2", 'it must be X,Y,YAW: metres, metres and degrees'),
        ("here", 'it must be X,Y,YAW'),
        ("3,0,0", "X and Y must be from -2.25 to 2.25 m, inside the arena"),
        ("0,-9,0", "inside the arena"),
        ("nan,0,0", "inside the arena"),
        ("0,0,inf", "YAW must be from -360 to 360 degrees"),
    ],
)  # fmt: skip
def test_a_start_outside_the_arena_is_refused(capsys, tmp_path, start, sentence):
    assert sentence in refused(capsys, "fly", "go", "--start", start, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_drone_that_stands_somewhere_is_not_given_a_start(capsys):
    said = refused(capsys, "fly", "go", "--start", "0,0,0", "--vehicle", "mavlink:udp:127.0.0.1:1")
    assert "a drone over MAVLink starts where it stands" in said


def test_an_output_folder_that_is_a_file_is_refused(capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    assert "cannot be written" in refused(capsys, "fly", "go", "--out", str(tmp_path / "taken"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fly", "go", "--seed", "-1"], "--seed is -1; it must be 0 or more"),
        (["data", "show", "frames", "--seed", "-1"], "--seed is -1"),
        (["data", "show", "frames", "--count", "0"], "--count is 0; it must be from 1 to 200 images"),
        (["data", "show", "frames", "--out", "x.xyz"], "an image's name must end in .png"),
        (["bench", "sim", "--seconds", "nan"], "--seconds is nan; it must be more than 0"),
        (["bench", "sim", "--landmarks", "41"], "--landmarks is 41; a world holds 1 to 40"),
        (["bench", "sim", "--device", "gpu"], 'no device is called "gpu"'),
        (["bench", "sim", "--device", "meta"], 'not on "meta"'),
    ],
)
def test_numbers_and_names_that_make_no_sense_are_refused(capsys, arguments, sentence):
    assert sentence in refused(capsys, *arguments)


def test_cuda_is_refused_in_a_sentence_where_there_is_none(capsys):
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    assert "no CUDA device" in refused(capsys, "bench", "sim", "--device", "cuda")


def test_a_house_layout_that_was_flown_can_be_flown_again(tmp_path, capsys):
    oracle = ["fly", "go", "--policy", "oracle"]
    main([*oracle, "--corpus", "house", "--seed", "3", "--out", str(tmp_path / "a")])
    main([*oracle, "--layout", str(tmp_path / "a" / "layout.json"), "--out", str(tmp_path / "b")])
    assert capsys.readouterr().out.count("ORACLE came to rest") == 2


def test_a_flight_that_cannot_be_saved_leaves_nothing(tmp_path, capsys, monkeypatch):
    """The disk fills up while the still is written: the film that was finished before is not left either."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    assert "the disk is full" in refused(capsys, "fly", "go", "--policy", "oracle", "--out", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_seen_enough_is_no_mistake(tmp_path):
    command = f"{sys.executable} -m wordwing fly go --policy stop --out {tmp_path} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", ["fly", "fly go --seed x", "flly", "fly go --policy pvn9"])
def test_wrong_arguments_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == 2
    assert capsys.readouterr().err.strip()


def test_wrong_arguments_leave_no_traceback_behind():
    done = run("fly", "go", "--policy", "pvn9")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["fl"], {"flight", "fly"}),
        (["data", "show", "l"], {"landmarks", "layout"}),
        (["evaluate", "--sp"], {"--split"}),
    ],
)
def test_bash_completes_commands_and_options_and_offers_nothing_else(typed, offered, tmp_path):
    (tmp_path / "completion").write_text(run("--tyro-print-completion", "bash").stdout)
    script = """source "$1"; shift; COMP_WORDS=(wordwing "$@"); COMP_CWORD=$#; "$(complete -p wordwing | cut -d' ' -f3)"
    printf '%s\n' "${COMPREPLY[@]}" """

    def completed(*words: str) -> list[str]:
        shell = ["bash", "-c", script, "bash", str(tmp_path / "completion"), *words]
        return subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]

    assert set(completed(*typed)) == offered
    options = completed("fly", "--")
    assert {"--layout", "--start", "--policy"} <= set(options)
    assert all(option.startswith("--") and " " not in option for option in options)


def test_a_shell_that_cannot_be_completed_gets_one_sentence(capsys):
    assert "wants the name of a shell: bash or zsh" in refused(capsys, "--tyro-print-completion", "fish")


def test_a_shell_is_completed_in_this_process_too(capsys):
    main(["--tyro-print-completion", "bash"])
    assert "COMPREPLY" in capsys.readouterr().out
    main(["--version"])
    assert capsys.readouterr().out == f"wordwing {release()}\n"


@pytest.mark.parametrize("drawn", [["paragraph", "--split", "nowhere"], ["examples", "--split", "nowhere"]])
def test_a_split_that_is_not_there_cannot_be_drawn(capsys, tmp_path, drawn):
    dataset = str(small_cage(tmp_path / "small", dev=1).folder)
    assert "nowhere" in refused(capsys, "data", "show", drawn[0], dataset, *drawn[1:], "--out", str(tmp_path / "x.png"))


def test_a_random_paragraph_can_be_drawn(tmp_path):
    dataset = str(small_cage(tmp_path / "small", dev=1).folder)
    main(["data", "show", "paragraph", dataset, "--split", "dev", "--out", str(tmp_path / "paragraph.png")])
    with Image.open(tmp_path / "paragraph.png") as picture:
        assert picture.width > 500


def test_a_layout_can_be_drawn(tmp_path, capsys):
    file = tmp_path / "yard.json"
    file.write_text('{"schema": 1, "arena": 4.7, "landmarks": [{"name": "Barrel", "x": 0, "y": 1}]}')
    main(["data", "show", "layout", str(file), "--out", str(tmp_path / "yard.png")])
    with Image.open(tmp_path / "yard.png") as picture:
        assert picture.size == (720, 720)


def test_frames_of_both_domains_can_be_drawn(tmp_path):
    for domain in ("sim", "lab"):
        out = tmp_path / f"{domain}.png"
        main(["data", "show", "frames", "--domain", domain, "--count", "2", "--out", str(out)])
        with Image.open(out) as sheet:
            assert sheet.width > 500


def test_the_bench_prints_json_lines_with_their_conditions(capsys):
    main(["bench", "sim", "--worlds", "2", "--landmarks", "4", "--seconds", "0.05", "--device", "cpu"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    figures = {(row["figure"], row.get("renderer"), row.get("shadows")) for row in rows}
    assert ("frames/s", "wordwing", True) in figures
    assert ("frames/s", "mujoco_warp", False) in figures
    assert ("ratio to mujoco_warp", None, True) in figures
    for row in rows:
        if "skipped" not in row:
            assert row["value"] > 0
            assert (row["worlds"], row["landmarks"], row["width"], row["height"]) == (2, 4, 128, 72)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path):
    """/dev/full answers every write with "no space left", as a full disk does."""
    from wordwing.errors import WordwingError
    from wordwing.files import replacing

    target = tmp_path / "result.json"
    target.write_text("old")
    with pytest.raises(WordwingError, match="the disk is full"), replacing(target), open("/dev/full", "w") as full:
        full.write("new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.fixture(scope="module")
def hesitant(tmp_path_factory) -> Path:
    """The folder of an untrained policy that knows five words and stops at once."""
    torch.manual_seed(0)
    vocabulary = Vocabulary.of(["go to the blue barrel"], min_count=1)
    network = PolicyNetwork(ModelConfig(), len(vocabulary))
    with torch.no_grad():
        network.stage2.network.last.bias[4] = 9.0  # the stop logit
    folder = tmp_path_factory.mktemp("policies") / "hesitant"
    LearnedPolicy(network, vocabulary).save(folder)
    return folder


@pytest.mark.parametrize("vehicle", ["sim", "lab"])
def test_a_learned_policy_flies_and_is_not_measured_against_a_path_that_nobody_asked_for(
    hesitant, vehicle, tmp_path, capsys
):
    main(["fly", "go to the grobnik", "--policy", str(hesitant), "--vehicle", vehicle, "--out", str(tmp_path)])
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["hesitant does not know: grobnik", '"go to the grobnik"']
    assert re.fullmatch(r"hesitant decided to stop after 0\.0 s and 0\.\d\d m", said[2])
    assert said[3] == 'not judged: "grobnik" is not understood'
    assert said[4:] == [f"video: {tmp_path / 'flight.mp4'}"]
    assert {path.name for path in tmp_path.iterdir()} == {"flight.mp4", "filmstrip.png", "layout.json"}
    with av.open(str(tmp_path / "flight.mp4")) as film:
        assert (film.streams.video[0].width, film.streams.video[0].height) == (1600, 900)


@pytest.mark.parametrize("text", ["!? ...", "🌳🚁"])
def test_a_text_without_a_word_is_not_flown_by_a_policy_that_reads(hesitant, text, capsys, tmp_path):
    said = refused(capsys, "fly", text, "--policy", str(hesitant), "--out", str(tmp_path / "out"))
    assert f'there is no word in "{text}"' in said
    assert not (tmp_path / "out").exists()


def test_a_policy_that_is_neither_known_nor_a_folder_is_refused_with_a_hint(capsys, tmp_path):
    said = refused(capsys, "fly", "go", "--policy", "oracel", "--out", str(tmp_path / "out"))
    assert 'no policy is called "oracel"' in said
    assert 'did you mean "oracle"?' in said
    assert 'no policy is called ""' in refused(capsys, "fly", "go", "--policy", "", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_policy_and_a_damaged_policy_are_refused(hesitant, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "not a policy" in refused(
        capsys, "fly", "go", "--policy", str(tmp_path / "empty"), "--out", str(tmp_path / "a")
    )
    damaged = shutil.copytree(hesitant, tmp_path / "damaged")
    weights = damaged / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:10_000])
    said = refused(capsys, "fly", "go", "--policy", str(damaged), "--out", str(tmp_path / "a"))
    assert "model.safetensors: the file is damaged" in said
    assert not (tmp_path / "a").exists()
