import errno
import json
import os
import struct
import zlib

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from killing import victims
from wordwing import files
from wordwing.errors import WordwingError
from wordwing.learning.runtime import checkpoints as state
from wordwing.learning.runtime.checkpoints import (
    flatten_optimizer,
    is_saved,
    load_state,
    restore_optimizer,
    save_state,
    squeeze,
    unsqueeze,
)

META = {"kind": "stage1", "settings": {"rate": 1e-3, "name": 'a "quoted" ö'}, "update": 17, "best": None}


def some_tensors():
    torch.manual_seed(0)
    return {
        "weights": torch.randn(300, 7),
        "text.ö": torch.randint(-9, 9, (5, 3, 2)),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.empty(0, 4),
        "half": torch.randn(41).bfloat16(),
        "turned": torch.randn(6, 50).T,
        "mask": torch.rand(1000) < 0.5,
        "rng": torch.get_rng_state(),
        "packed": torch.randint(-(2**15), 2**15, (77, 6)).short(),
    }


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor)


def complaint(folder):
    with pytest.raises(WordwingError) as caught:
        load_state(folder)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(folder) in sentence
    return sentence


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def saved(tmp_path):
    save_state(tmp_path / "run" / "state", some_tensors(), META, max_bytes=4096)
    return tmp_path / "run" / "state"


@pytest.mark.parametrize("max_bytes", [16 * 2**20, 16384, 4096, 1500])
def test_what_was_saved_is_loaded_and_no_file_is_too_large(tmp_path, max_bytes):
    tensors = some_tensors()
    save_state(tmp_path / "state", tensors, META, max_bytes)
    found, meta = load_state(tmp_path / "state")
    assert_same(found, tensors)
    assert meta == META
    sizes = [path.stat().st_size for path in (tmp_path / "state").iterdir()]
    assert max(sizes) <= max_bytes
    data = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    assert len(sizes) <= 1 + -(-data // (max_bytes - 1024))
    assert sorted(os.listdir(tmp_path / "state")) == sorted(
        f"state-{number}-of-{len(sizes)}.safetensors" for number in range(1, len(sizes) + 1)
    )


def test_files_hold_tensors_that_are_not_cut_as_they_are(tmp_path):
    tensors = some_tensors()
    save_state(tmp_path, tensors, META)
    assert_same(load_file(tmp_path / "state-1-of-1.safetensors"), tensors)


def test_long_descriptions_take_no_file_beyond_its_size(tmp_path):
    for length in range(0, 1200, 37):
        save_state(tmp_path / "state", {"a": torch.arange(2000)}, {"long": '"ü' * length}, max_bytes=16384)
        assert max(path.stat().st_size for path in (tmp_path / "state").iterdir()) <= 16384
        tensors, meta = load_state(tmp_path / "state")
        assert meta == {"long": '"ü' * length}
        assert torch.equal(tensors["a"], torch.arange(2000))
    with pytest.raises(ValueError, match="does not fit"):
        save_state(tmp_path / "state", {}, {"long": "a" * 16384}, max_bytes=16384)


def test_tensors_that_share_memory_are_saved_each(tmp_path):
    tied = torch.arange(12.0)
    save_state(tmp_path, {"one": tied, "other": tied, "part": tied[3:7]}, {})
    assert_same(load_state(tmp_path)[0], {"one": tied, "other": tied, "part": torch.tensor([3.0, 4.0, 5.0, 6.0])})


def test_loaded_tensors_can_be_changed(saved):
    for tensor in load_state(saved)[0].values():
        tensor.fill_(1)


def test_the_same_state_makes_the_same_bytes(saved):
    before = contents(saved)
    save_state(saved, some_tensors(), META, max_bytes=4096)
    assert contents(saved) == before


def test_a_new_state_replaces_the_old_one_whatever_its_number_of_files(saved):
    assert len(contents(saved)) > 2
    save_state(saved, {"a": torch.ones(3)}, {"update": 18})
    assert list(contents(saved)) == ["state-1-of-1.safetensors"]
    tensors, meta = load_state(saved)
    assert_same(tensors, {"a": torch.ones(3)})
    assert meta == {"update": 18}
    assert os.listdir(saved.parent) == ["state"]


def test_a_folder_with_other_things_in_it_is_not_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(WordwingError, match="not a training state"):
        save_state(tmp_path, {}, {})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_no_state_is_told_from_a_state(tmp_path, saved):
    assert is_saved(saved)
    assert not is_saved(tmp_path / "none")
    assert not is_saved(tmp_path)
    assert "no such folder" in complaint(tmp_path / "none")
    assert "no training state in this folder" in complaint(tmp_path)
    (tmp_path / "file").write_text("")
    assert "Not a directory" in complaint(tmp_path / "file")


def test_every_missing_file_is_missed(saved):
    for path in sorted(saved.iterdir()):
        data = path.read_bytes()
        path.unlink()
        assert complaint(saved).endswith(f"{path.name} is missing, so the training state is not whole")
        path.write_bytes(data)
    load_state(saved)


def test_a_file_that_is_cut_off_anywhere_is_noticed(saved):
    for path in sorted(saved.iterdir()):
        data = path.read_bytes()
        for length in (0, 5, 8, 60, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:length])
            assert "damaged or cut off" in complaint(saved)
        path.write_bytes(data)
    load_state(saved)


def test_changed_numbers_are_noticed(saved):
    for path in sorted(saved.iterdir()):
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        assert f"{path.name}: the file is damaged" in complaint(saved)
        path.write_bytes(data)


def test_files_of_two_states_are_not_mixed(saved):
    last = max(saved.iterdir(), key=lambda path: int(path.name.split("-")[1]))
    old = last.read_bytes()
    others = {name: tensor + 1 if tensor.dtype == torch.int16 else tensor for name, tensor in some_tensors().items()}
    save_state(saved, others, META, max_bytes=4096)
    last.write_bytes(old)
    assert f"{last.name}: the file is damaged" in complaint(saved)


@pytest.mark.parametrize("name", ["state-1-of-2.safetensors", "state-99-of-{total}.safetensors", "notes.txt"])
def test_files_that_do_not_belong_are_refused(saved, name):
    name = name.format(total=len(contents(saved)))
    (saved / name).write_bytes(b"")
    assert f"{name} does not belong" in complaint(saved)


def rewrite_description(saved, change):
    [path] = saved.glob("state-1-of-*")
    with safe_open(path, "pt") as file:
        text = file.metadata()["wordwing"]
    save_file(load_file(path), path, {"wordwing": change(text)})


def test_descriptions_that_are_wrong_are_told_apart(saved):
    before = contents(saved)

    def after(change):
        rewrite_description(saved, change)
        sentence = complaint(saved)
        for name, data in before.items():
            (saved / name).write_bytes(data)
        return sentence

    def changed(**entries):
        return lambda text: json.dumps(json.loads(text) | entries)

    assert "version is 2; this wordwing reads 1" in after(changed(version=2))
    assert "not JSON" in after(lambda text: text[:-1])
    assert "not JSON" in after(lambda text: "[" * 100_000)
    assert "not the first file of a training state" in after(changed(format="something else"))
    assert "not the first file of a training state" in after(lambda text: "[]")
    assert "damaged" in after(changed(sums=[1]))
    assert "damaged" in after(changed(cut={"weights": [3, 3]}))
    assert "damaged" in after(changed(meta=3))
    [path] = saved.glob("state-1-of-*")
    save_file({"a": torch.ones(1)}, path)
    assert "not the first file of a training state" in complaint(saved)
    path.write_bytes(struct.pack("<Q", 2**63) + b"{")
    assert "damaged" in complaint(saved)


@pytest.mark.parametrize("writes", [0, 1, 3])
def test_a_full_disk_leaves_the_old_state(saved, monkeypatch, writes):
    before = contents(saved)
    opened = []

    def open_on_full_disk(path, mode):
        opened.append(path)
        return open("/dev/full" if len(opened) > writes else path, mode)

    monkeypatch.setattr(state, "open", open_on_full_disk, raising=False)
    for folder in (saved, saved.parent / "new"):
        opened.clear()
        with pytest.raises(WordwingError, match="the disk is full; nothing was changed"):
            save_state(folder, {"a": torch.ones(5000)}, {}, max_bytes=4096)
    assert contents(saved) == before
    assert os.listdir(saved.parent) == ["state"]
    assert_same(load_state(saved)[0], some_tensors())


def test_a_disk_that_is_full_when_numbers_reach_it_leaves_the_old_state(saved, monkeypatch):
    def full(_file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WordwingError, match="the disk is full; nothing was changed"):
        save_state(saved, {"a": torch.ones(3)}, {})
    assert_same(load_state(saved)[0], some_tensors())


def test_what_killed_saves_left_is_removed_and_nothing_else(saved):
    for name in (".state-abcd_123", ".state-0bcd_123", ".state-abcd_123-x", ".state-b-abcd_123", "state-abcd_123"):
        (saved.parent / name).mkdir()
        (saved.parent / name / "state-1-of-9.safetensors").write_bytes(b"half")
    save_state(saved, {}, {})
    left = sorted(os.listdir(saved.parent))
    assert left == [".state-abcd_123-x", ".state-b-abcd_123", "state", "state-abcd_123"]


SETUP = """
from pathlib import Path
import torch
from wordwing import files
from wordwing.learning.runtime.checkpoints import is_saved, load_state, save_state
torch.set_num_threads(1)
folder = Path({folder!r})
if {moved}:
    files._exchange = lambda a, b: False
"""

SAVE_FOR_EVER = """
update = load_state(folder)[1]["update"] if is_saved(folder) else 0
say(update)
while True:
    update += 1
    tensors = {str(size): torch.full((size,), float(update)) for size in (1, 700, 20_000)}
    save_state(folder, tensors, {"update": update}, max_bytes=32768)
    say(update)
"""


@pytest.mark.parametrize("moved", [False, True], ids=["exchanged", "moved away first"])
def test_a_killed_process_leaves_the_last_state_that_it_saved_whole(tmp_path, rng, moved):
    folder = tmp_path / "state"
    said = 0
    with victims(SETUP.format(folder=str(folder), moved=moved), SAVE_FOR_EVER) as children:
        for _kill in range(20):
            lines = children.kill_one_after(rng.uniform(0, 0.2))
            assert int(lines[0]) >= said, "a resumed process begins where the killed one was"
            said = int(lines[-1])
            tensors, meta = load_state(folder) if is_saved(folder) else ({}, {"update": 0})
            assert said <= meta["update"] <= said + 1
            assert [len(tensor) for tensor in tensors.values()] in ([], [1, 20_000, 700])
            assert all(bool((tensor == meta["update"]).all()) for tensor in tensors.values())
            assert len(os.listdir(tmp_path)) <= 3, "one kill leaves at most the old state and half of a new one"
    assert said > 3
    save_state(folder, {}, {})
    assert os.listdir(tmp_path) == ["state"]


def test_a_save_that_was_killed_between_two_moves_is_finished(saved, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    replace, moves = os.replace, []

    def killed(source, target):
        if moves:
            raise KeyboardInterrupt
        moves.append(replace(source, target))

    monkeypatch.setattr(os, "replace", killed)
    monkeypatch.setattr(files.shutil, "rmtree", lambda *_, **__: None)  # a killed process cleans nothing up
    with pytest.raises(KeyboardInterrupt):
        save_state(saved, {"a": torch.ones(3)}, {"update": 18})
    monkeypatch.undo()
    assert not saved.exists()
    assert is_saved(saved)
    assert_same(load_state(saved)[0], {"a": torch.ones(3)})


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1), nn.Linear(7, 2))  # the last one is never used


def train(model, optimiser, steps):
    generator = torch.Generator().manual_seed(steps)
    for _step in range(steps):
        optimiser.zero_grad()
        model[:3](torch.randn(8, 3, generator=generator)).square().mean().backward()
        optimiser.step()


def groups(model):
    return [{"params": model[2].parameters(), "lr": 3e-2}, {"params": [*model[0].parameters(), *model[3].parameters()]}]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("warm", [False, True])
def test_a_restored_adam_goes_on_as_the_saved_one_does(tmp_path, fused, warm):
    model = network()
    adam = torch.optim.Adam(groups(model), lr=1e-2, fused=fused, amsgrad=True)
    train(model, adam, 5)
    tensors = {**model.state_dict(), **flatten_optimizer(adam, "adam"), "adam2.0.exp_avg": torch.ones(99)}
    save_state(tmp_path, tensors, {})
    loaded, _meta = load_state(tmp_path)
    other = network()
    resumed = torch.optim.Adam(groups(other), lr=1e-2, fused=fused, amsgrad=True)
    if warm:  # what it remembers then is overwritten
        train(other, resumed, 3)
    other.load_state_dict({name: loaded[name] for name in other.state_dict()})
    restore_optimizer(resumed, loaded, "adam")
    train(model, adam, 4)
    train(other, resumed, 4)
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)


def test_an_adam_is_flattened_by_the_order_of_its_parameters():
    model = network()
    adam = torch.optim.Adam(groups(model), lr=1e-2)
    assert flatten_optimizer(adam) == {}
    train(model, adam, 2)
    flat = flatten_optimizer(adam, "b.adam")
    assert set(flat) == {f"b.adam.{n}.{key}" for n in range(4) for key in ("step", "exp_avg", "exp_avg_sq")}
    assert flat["b.adam.0.exp_avg"].shape == (1, 5)
    assert flat["b.adam.2.exp_avg_sq"].shape == (5, 3)
    assert flat["b.adam.3.step"] == 2
    train(model, adam, 1)
    assert flat["b.adam.3.step"] == 2, "it is a copy"


def test_restoring_nothing_makes_an_adam_forget():
    model = network()
    adam = torch.optim.Adam(groups(model), lr=1e-2)
    train(model, adam, 2)
    restore_optimizer(adam, {})
    assert flatten_optimizer(adam) == {}
    train(model, adam, 1)


def test_the_memory_of_a_warm_adam_is_overwritten_in_place():
    model = network()
    adam = torch.optim.Adam(groups(model), lr=1e-2)
    train(model, adam, 2)
    places = [value.data_ptr() for entry in adam.state.values() for value in entry.values()]
    kept = {name: tensor + 1 for name, tensor in flatten_optimizer(adam).items()}
    restore_optimizer(adam, kept)
    assert [value.data_ptr() for entry in adam.state.values() for value in entry.values()] == places
    assert_same(flatten_optimizer(adam), kept)


def test_an_adam_of_another_network_is_refused():
    model = network()
    adam = torch.optim.Adam(model.parameters())
    train(model, adam, 1)
    flat = flatten_optimizer(adam)
    for other in (nn.Linear(3, 5), nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 1))):
        with pytest.raises(WordwingError, match="another network"):
            restore_optimizer(torch.optim.Adam(other.parameters()), flat)


@pytest.mark.parametrize("shape", [(0, 6), (1, 6), (5, 1), (1000, 6), (7, 0)])
def test_any_rows_come_back_from_squeezing(rng, shape):
    array = rng.integers(-(2**15), 2**15, shape).astype(np.int16)
    squeezed = squeeze(array)
    assert squeezed.dtype == torch.uint8
    assert squeezed.dim() == 1
    found = unsqueeze(squeezed)
    assert found.dtype == np.int16
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array)


def test_a_view_of_some_columns_can_be_squeezed(rng):
    array = rng.integers(-(2**15), 2**15, (50, 8)).astype(np.int16)
    np.testing.assert_array_equal(unsqueeze(squeeze(array[:, :6])), array[:, :6])


def test_smooth_flights_squeeze_far_better_than_they_compress(rng):
    steps = rng.normal(0, 40, (20_000, 6))
    array = np.cumsum(steps, axis=0).round().astype(np.int64).astype(np.int16)  # angles wrap around
    assert squeeze(array).numel() < 0.75 * len(zlib.compress(array.tobytes(), 9))
