"""Policies on disk: they come back as they were, and every damage is told in one sentence."""

import json
import math
import re
import resource
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from randomly import random_poses
from small_policy import CONFIG, VOCABULARY, small_network
from wordwing.errors import WordwingError
from wordwing.interface import Action, Observation
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.checkpoint import RANGES, load_network, save_network
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.model.stage1 import Stage1Config
from wordwing.policies.learned import LearnedPolicy

FILES = {"config.json", "model.safetensors", "vocab.txt", "README.md"}
STEM = "stage1.vision.sim.stem.weight"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_network(tmp_path / "policy", small_network(), VOCABULARY)
    return tmp_path / "policy"


def actions(policy: LearnedPolicy, rng: np.random.Generator) -> list[Action]:
    policy.reset(["go to the barrel", "left of the 飞"], random_poses(rng, 2))
    taken = []
    for _step in range(2):
        image = torch.from_numpy(rng.integers(0, 256, (2, 72, 128, 3), np.uint8))
        taken.append(policy.act(Observation(image, random_poses(rng, 2), torch.zeros(2))))
    return taken


def same(one: list[Action], other: list[Action], tolerance: float) -> bool:
    return all(
        torch.allclose(a.setpoint.forward, b.setpoint.forward, rtol=0, atol=tolerance)
        and torch.allclose(a.setpoint.yaw_rate, b.setpoint.yaw_rate, rtol=0, atol=tolerance)
        for a, b in zip(one, other, strict=True)
    )


def refused(folder: str | Path) -> str:
    """The sentence that loading a folder gives."""
    with pytest.raises(WordwingError) as error:
        load_network(folder)
    sentence = str(error.value)
    assert "\n" not in sentence
    sentence.encode()
    assert len(sentence) < 500 + len(str(folder))
    return sentence


def edit_config(folder: Path, *path: str, to: Any) -> None:
    """Set an entry of the configuration, or remove it with `to=...`."""
    document = json.loads((folder / "config.json").read_text("utf-8"))
    *parents, name = path
    entry = document
    for parent in parents:
        entry = entry[parent]
    if to is ...:
        del entry[name]
    else:
        entry[name] = to
    (folder / "config.json").write_text(json.dumps(document), "utf-8")


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def numbers(kind: type, path: tuple[str, ...] = ("model",)) -> Iterator[tuple[tuple[str, ...], type]]:
    """Where the numbers of a configuration are, and their kinds."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        if is_dataclass(hints[field.name]):
            yield from numbers(hints[field.name], (*path, field.name))
        elif hints[field.name] in (int, float):
            yield (*path, field.name), hints[field.name]


NUMBERS = list(numbers(ModelConfig))


def test_a_policy_comes_back_to_the_last_bit(folder):
    flown = actions(LearnedPolicy(small_network(), VOCABULARY), np.random.default_rng(1))
    loaded = LearnedPolicy.from_pretrained(folder)
    assert same(actions(loaded, np.random.default_rng(1)), flown, tolerance=0.0)
    assert loaded.vocabulary == VOCABULARY
    assert loaded.network.config == CONFIG
    another = actions(LearnedPolicy(small_network(seed=1), VOCABULARY), np.random.default_rng(1))
    assert not same(another, flown, tolerance=1e-3)


def test_a_policy_of_half_the_size_flies_nearly_the_same(folder, tmp_path):
    save_network(tmp_path / "half", small_network(), VOCABULARY, dtype=torch.float16)
    sizes = [(path / "model.safetensors").stat().st_size for path in (folder, tmp_path / "half")]
    assert sizes[1] < 0.6 * sizes[0]
    taken = [
        actions(LearnedPolicy.from_pretrained(path), np.random.default_rng(1)) for path in (folder, tmp_path / "half")
    ]
    assert same(*taken, tolerance=0.02)
    assert not same(*taken, tolerance=0.0)


def test_a_loaded_network_can_be_trained_on_and_saved_again(folder, tmp_path):
    network, vocabulary = load_network(folder)
    assert all(weights.requires_grad for weights in network.parameters())
    assert {weights.dtype for weights in network.state_dict().values()} == {torch.float32}
    save_network(tmp_path / "again", network, vocabulary)
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert (tmp_path / "again" / "config.json").read_bytes() == (folder / "config.json").read_bytes()


@pytest.mark.parametrize(
    "stage1",
    [
        Stage1Config(CONFIG.stage1.vision, CONFIG.stage1.text, CONFIG.stage1.lingunet, observability=False),
        Stage1Config(CONFIG.stage1.vision, CONFIG.stage1.text, CONFIG.stage1.lingunet, mask_input=True, blank="image"),
        Stage1Config(CONFIG.stage1.vision, CONFIG.stage1.text, LingUNetConfig(5, 8, 4, 16, attention=3), phases=4),
    ],
)
def test_other_kinds_of_network_come_back_too(tmp_path, stage1):
    config = ModelConfig(stage1, stop_threshold=0.25)
    save_network(tmp_path / "policy", small_network(config=config), VOCABULARY)
    network, _vocabulary = load_network(tmp_path / "policy")
    assert network.config == config
    expected = small_network(config=config).state_dict()
    assert all(torch.equal(weights, expected[name]) for name, weights in network.state_dict().items())


def test_a_policy_with_the_table_of_vectors_flies_by_words_that_training_did_not_have(tmp_path, rng):
    text = replace(CONFIG.stage1.text, vectors=True)
    network = small_network(config=replace(CONFIG, stage1=replace(CONFIG.stage1, text=text)))
    vocabulary = replace(VOCABULARY, tokenizer=2)
    save_network(tmp_path / "policy", network, vocabulary)
    assert "projection" not in str(sorted(small_network().state_dict()))
    assert (tmp_path / "policy" / "model.safetensors").stat().st_size < 4_000_000  # without the table
    policy = LearnedPolicy.from_pretrained(tmp_path / "policy")
    assert policy.vocabulary == vocabulary
    image, start = torch.from_numpy(rng.integers(0, 256, (3, 72, 128, 3), np.uint8)), random_poses(rng, 1)
    alike = Observation(image[:1].expand(3, -1, -1, -1), start[torch.zeros(3).long()], torch.zeros(3))
    for loaded in (policy, LearnedPolicy(network, vocabulary)):
        loaded.reset(["go to the couch", "go to the boulder", "go to the couch"], alike.pose)
        couch, boulder, again = loaded.act(alike).setpoint.yaw_rate.tolist()
        assert couch == pytest.approx(again, abs=1e-6)
        assert abs(couch - boulder) > 1e-4
    VOCABULARY.save(tmp_path / "policy" / "vocab.txt")
    assert "vocab.txt: it is of tokenizer 1; with this config.json it must be of tokenizer 2" in refused(
        tmp_path / "policy"
    )


def test_the_default_network_is_within_the_ranges(tmp_path):
    network = PolicyNetwork(ModelConfig(), len(VOCABULARY))
    save_network(tmp_path / "policy", network, VOCABULARY)
    assert load_network(tmp_path / "policy")[0].config == ModelConfig()


def test_the_folder_holds_four_files_that_other_tools_can_read(tmp_path):
    LearnedPolicy(small_network(), VOCABULARY).save(tmp_path / "policy", card="# Mine\n\nFlies to the café.\n")
    assert {path.name for path in (tmp_path / "policy").iterdir()} == FILES
    assert (tmp_path / "policy" / "README.md").read_text("utf-8") == "# Mine\n\nFlies to the café.\n"
    assert (tmp_path / "policy" / "vocab.txt").read_text("utf-8").splitlines() == list(VOCABULARY.words)
    document = json.loads((tmp_path / "policy" / "config.json").read_text("utf-8"))
    assert document["model"]["stage1"]["vision"] == {"channels": 8}
    assert load_file(tmp_path / "policy" / "model.safetensors")[STEM].shape == (8, 3, 3, 3)


@pytest.mark.parametrize("name", ["naïve 飞行", "with space", "Ω" * 60])
def test_any_name_will_do(tmp_path, name):
    save_network(tmp_path / name, small_network(), VOCABULARY)
    assert load_network(tmp_path / name)[1] == VOCABULARY


def test_a_folder_that_is_not_there_or_not_a_policy_is_refused(tmp_path):
    said = refused(tmp_path / "none")
    assert said.startswith(f"{tmp_path / 'none'}: this is not a policy, there is no such folder (with wordwing come ")
    assert "there is no config.json in it" in refused(tmp_path)
    assert "File name too long" in refused("a" * 5000)
    assert "there is no such folder" in refused("a\0b")


def test_the_folder_of_a_training_run_is_answered_with_its_best_policy(tmp_path):
    save_network(tmp_path / "best", small_network(), VOCABULARY)
    assert f'there is no config.json in it; did you mean "{tmp_path / "best"}"? (' in refused(tmp_path)


def test_a_name_that_is_nearly_that_of_a_shipped_policy_gives_a_hint(tmp_path, folder, monkeypatch):
    monkeypatch.setattr("wordwing.model.checkpoint.shipped", lambda: {"pvn2-sureal": folder})
    assert load_network("pvn2-sureal")[0].config == CONFIG
    assert refused("pvn2-surreal").endswith('; did you mean "pvn2-sureal"? (with wordwing come pvn2-sureal)')


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert refused(folder) == f"{folder / name}: there is no such file"
    (folder / name).mkdir()
    assert refused(folder) == f"{folder / name}: this is a folder, not a file"


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"format": 1,}', b"nan", b"9" * 5000])
def test_a_configuration_that_is_not_json_is_refused(folder, text):
    (folder / "config.json").write_bytes(text)
    assert re.search(r"config\.json: (not valid JSON|the file is empty|byte 0 is not UTF-8)", refused(folder))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "this is a list; it must be an object, {…}"),
        (7, "this is 7; it must be an object, {…}"),
        ({}, '"format" is missing; it must be 1, the format that this wordwing reads'),
        ({"\ud800": 1}, '"format" is missing; it must be 1, the format that this wordwing reads'),
        ({"format": 2}, '"format" is 2; it must be 1, the format that this wordwing reads'),
        ({"format": True}, '"format" is true; it must be 1, the format that this wordwing reads'),
        ({"format": "1"}, '"format" is "1"; it must be 1, the format that this wordwing reads'),
        ({"format": 1}, '"model" is missing; it must be an object, {…}'),
        ({"format": 1, "model": {}, "modell": 3}, 'it has an unknown key "modell"; did you mean "model"?'),
        ({"format": 1, "model": {}}, 'model: "stage1" is missing; it must be an object, {…}'),
        ({"format": 1, "model": 3}, '"model" is 3; it must be an object, {…}'),
    ],
)
def test_a_configuration_of_another_kind_or_version_is_refused(folder, document, sentence):
    (folder / "config.json").write_text(json.dumps(document))
    assert refused(folder) == f"{folder / 'config.json'}: {sentence}"


KEYS = "vision, text, lingunet, grounding, observability, mask_input, blank, phases"


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("stage1.lingunet.levls", 5, 'model: "stage1": "lingunet" has an unknown key "levls"; did you mean "levels"?'),
        ("stage1.\a\n", 5, r'model: "stage1" has an unknown key "\u0007\n"; the keys are ' + KEYS),
        (
            "stage1.lingunet.levels",
            ...,
            'model: "stage1": "lingunet": "levels" is missing; it must be a whole number from 2 to 6',
        ),
        (
            "stage1.lingunet.levels",
            1,
            'model: "stage1": "lingunet": "levels" is 1; it must be a whole number from 2 to 6',
        ),
        (
            "stage1.lingunet.levels",
            10**6,
            'model: "stage1": "lingunet": "levels" is 1000000; it must be a whole number from 2 to 6',
        ),
        ("stage1.lingunet", [], 'model: "stage1": "lingunet" is a list; it must be an object, {…}'),
        (
            "stage1.vision.channels",
            0,
            'model: "stage1": "vision": "channels" is 0; it must be a whole number from 1 to 256',
        ),
        (
            "stage1.vision.channels",
            10**5,
            'model: "stage1": "vision": "channels" is 100000; it must be a whole number from 1 to 256',
        ),
        (
            "stage1.vision.channels",
            -8,
            'model: "stage1": "vision": "channels" is -8; it must be a whole number from 1 to 256',
        ),
        (
            "stage1.vision.channels",
            8.0,
            'model: "stage1": "vision": "channels" is 8.0; it must be a whole number from 1 to 256',
        ),
        (
            "stage1.vision.channels",
            "8",
            'model: "stage1": "vision": "channels" is "8"; it must be a whole number from 1 to 256',
        ),
        (
            "stage1.vision.channels",
            True,
            'model: "stage1": "vision": "channels" is true; it must be a whole number from 1 to 256',
        ),
        (
            "stage1.vision.channels",
            None,
            'model: "stage1": "vision": "channels" is null; it must be a whole number from 1 to 256',
        ),
        ("stage1.observability", 1, 'model: "stage1": "observability" is 1; it must be true or false'),
        ("stage1.blank", "text", 'model: "stage1": "blank" is "text"; it must be nothing, instruction or image'),
        ("stage1.blank", ["image"], 'model: "stage1": "blank" is a list; it must be nothing, instruction or image'),
        (
            "stage1.text.dropout",
            1,
            'model: "stage1": "text": "dropout" is 1; it must be a finite number from 0 to 0.99',
        ),
        (
            "stage2.min_deviation",
            0,
            'model: "stage2": "min_deviation" is 0; it must be a finite number from 0.0001 to 10',
        ),
        ("stage2.first_deviation", 0.05, "model.stage2.first_deviation must be above min_deviation"),
        ("mapping.blend", False, 'model: "mapping": "blend" is false; it must be a finite number from 0 to 1'),
        ("stop_threshold", 1.5, 'model: "stop_threshold" is 1.5; it must be a finite number from 0 to 1'),
    ],
)
def test_an_entry_of_the_configuration_that_makes_no_sense_is_named(folder, path, value, sentence):
    edit_config(folder, "model", *path.split("."), to=value)
    assert refused(folder) == f"{folder / 'config.json'}: {sentence}"


@pytest.mark.parametrize(("path", "kind"), NUMBERS, ids=[".".join(path) for path, _kind in NUMBERS])
def test_no_number_of_the_configuration_can_do_harm(folder, path, kind):
    least = RANGES[path[-1]][0]
    absurd = [10**400, -(10**400), *([math.nan, math.inf, -math.inf, 1e300] if kind is float else [least - 1, 2**63])]
    for value in absurd:
        edit_config(folder, *path, to=value)
        place = ": ".join(f'"{key}"' for key in path[1:])
        assert refused(folder).startswith(f"{folder / 'config.json'}: model: {place} is ")


def test_every_number_of_a_configuration_has_its_range():
    assert {path[-1] for path, _kind in NUMBERS} == RANGES.keys()


def test_the_greatest_network_that_a_configuration_may_ask_for_takes_less_than_a_gigabyte(folder):
    for path, kind in NUMBERS:
        if kind is int:
            edit_config(folder, *path, to=RANGES[path[-1]][1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
    assert "model.safetensors: the tensor " in refused(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


def test_a_policy_that_was_saved_before_there_were_switches_has_them_off(folder):
    text = ("stage1", "text")
    switches = ("stage1", "phases"), ("stage1", "lingunet", "attention"), ("stage2", "phases"), (*text, "vectors")
    for path in (*switches, (*text, "offset_dropout")):
        edit_config(folder, "model", *path, to=...)
    assert load_network(folder)[0].config == CONFIG


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({("stage1", "phases"): 3}, "model.stage1.phases is 3; it must be 1, 2, 4 or 8"),
        (
            {("stage1", "phases"): 4, ("stage2", "phases"): 2},
            "model.stage2.phases is 2; it must be 1 or, as model.stage1.phases is, 4",
        ),
        ({("stage1", "lingunet", "attention"): 6}, "model.stage1.lingunet.attention is 6; there are 5 levels"),
    ],
)
def test_switches_that_do_not_fit_together_are_told(folder, changes, sentence):
    for path, value in changes.items():
        edit_config(folder, "model", *path, to=value)
    assert refused(folder) == f"{folder / 'config.json'}: {sentence}"


def test_a_whole_number_will_do_where_any_number_does(folder):
    edit_config(folder, "model", "stage2", "whole_gain", to=2)
    gain = load_network(folder)[0].config.stage2.whole_gain
    assert (gain, type(gain)) == (2.0, float)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda weights: weights.pop(STEM), "is missing; config.json describes a network that has it"),
        (
            lambda weights: weights.update({STEM: torch.zeros(8, 3, 3)}),
            "is [8, 3, 3]; with this config.json and vocab.txt it must be [8, 3, 3, 3]",
        ),
        (lambda weights: weights[STEM][0, 0, 0].fill_(torch.nan), "holds NaN or infinity"),
        (lambda weights: weights[STEM][7, 2, 2].fill_(-torch.inf), "holds NaN or infinity"),
        (
            lambda weights: weights.update({STEM: weights[STEM].long()}),
            "is of torch.int64; it must be of torch.float32, torch.float16, torch.bfloat16",
        ),
    ],
)
def test_a_tensor_that_is_not_right_is_named(folder, change, sentence):
    edit_weights(folder, change)
    assert refused(folder) == f"{folder / 'model.safetensors'}: the tensor {STEM} {sentence}"


def test_a_tensor_too_many_is_named(folder):
    edit_weights(folder, lambda weights: weights.update({"stage3.weight": torch.zeros(2)}))
    expected = "the tensor stage3.weight belongs to no part of the network that config.json describes"
    assert refused(folder) == f"{folder / 'model.safetensors'}: {expected}"


def test_the_configuration_of_another_network_does_not_fit(folder):
    edit_config(folder, "model", "stage1", "lingunet", "last", to=17)
    assert "with this config.json and vocab.txt it must be [16, 17, 3, 3]" in refused(folder)


def test_a_damaged_weights_file_is_refused(folder, rng):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    unknown = whole.replace(b'"F32"', b'"F4" ', 1)
    for damaged in (whole[:-1], whole[: len(whole) // 2], whole[:5], b"", whole + b"x", rng.bytes(5000), unknown):
        path.write_bytes(damaged)
        assert refused(folder).startswith(f"{path}: the file is damaged or not a safetensors file (")
    path.write_bytes(b"\xff" * 8 + whole[8:])  # a header of 2⁶⁴ bytes
    assert refused(folder).startswith(f"{path}: the file is damaged or not a safetensors file (")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*VOCABULARY.words, "pumpkin"], "model.safetensors: the tensor stage1.text.words.weight is [10, 10]"),
        (VOCABULARY.words[:-1], "model.safetensors: the tensor stage1.text.words.weight is [10, 10]"),
        (["go", *VOCABULARY.words[1:]], "vocab.txt: a vocabulary begins with the lines <pad> and <unk>"),
        ([*VOCABULARY.words[:-1], "Two words"], "vocab.txt: line 10 is 'Two words'"),
        ([*VOCABULARY.words[:-1], "go"], 'vocab.txt: "go" is there twice'),
    ],
)
def test_words_of_another_policy_or_damaged_ones_are_refused(folder, words, sentence):
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    assert sentence in refused(folder)


def test_words_that_are_not_text_are_refused(folder):
    (folder / "vocab.txt").write_bytes(b"<pad>\n<unk>\n\xff\xfe\n")
    assert refused(folder) == f"{folder / 'vocab.txt'}: byte 12 is not UTF-8 text; save the file as UTF-8"


def test_a_folder_with_something_else_in_it_is_not_replaced(folder):
    (folder / "thesis.txt").write_text("all my work")
    with pytest.raises(WordwingError, match=r"this is not a policy \(thesis.txt is in it\)"):
        save_network(folder, small_network(1), VOCABULARY)
    assert (folder / "thesis.txt").read_text() == "all my work"


def test_a_policy_is_replaced_by_another(folder):
    save_network(folder, small_network(1), VOCABULARY, card="# Second\n")
    expected = small_network(1).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in load_network(folder)[0].state_dict().items())
    assert (folder / "README.md").read_text() == "# Second\n"
    assert {path.name for path in folder.iterdir()} == FILES


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_save_that_fails_halfway_leaves_the_old_policy(folder, monkeypatch, error):
    def fail(*_: object) -> None:
        raise error

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(Vocabulary, "save", fail)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else WordwingError):
        save_network(folder, small_network(1), VOCABULARY)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize(("value", "dtype"), [(torch.nan, torch.float32), (1e6, torch.float16)])
def test_weights_that_could_not_be_loaded_are_not_saved(folder, value, dtype):
    before = (folder / "model.safetensors").read_bytes()
    network = small_network()
    with torch.no_grad():
        network.stage1.vision["sim"].stem.weight[0, 0, 0, 0] = value
    with pytest.raises(WordwingError, match=f"the tensor {STEM} holds NaN or infinity"):
        save_network(folder, network, VOCABULARY, dtype=dtype)
    assert (folder / "model.safetensors").read_bytes() == before


def test_a_vocabulary_that_is_not_the_networks_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="the vocabulary is not the network's"):
        save_network(tmp_path / "policy", small_network(), Vocabulary(VOCABULARY.words[:-1]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_is_refused_in_a_sentence_where_there_is_none(folder):
    with pytest.raises(WordwingError, match="no CUDA device"):
        LearnedPolicy.from_pretrained(folder, device="cuda")
