"""What runs on a device, and how it is repeated there."""

import os

import pytest
import torch
from torch import Tensor

from wordwing import devices
from wordwing.devices import Aside, compile_once, missing_compiler, replayed


def sums(device: str, calls: int) -> list[Tensor]:
    """A running sum of random numbers after each call."""
    generator = torch.Generator(device)
    total, found = torch.zeros(4, device=device), []
    add = replayed(
        lambda: total.add_(torch.rand(4, device=device, generator=generator)), torch.device(device), generator
    )
    for number in range(calls):
        generator.manual_seed(number)
        add()
        found.append(total.clone())
    return found


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_function_that_is_replayed_reads_and_writes_the_same_memory_with_the_same_random_numbers(device):
    expected = torch.zeros(4, device=device)
    for number, total in enumerate(sums(device, 8)):
        expected += torch.rand(4, device=device, generator=torch.Generator(device).manual_seed(number))
        assert torch.allclose(total, expected)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_what_runs_aside_is_there_once_it_is_waited_for(device):
    aside = Aside(torch.device(device))
    numbers = torch.arange(1_000_000, device=device)
    total = aside.run(lambda: numbers.sum())
    other = numbers.max()
    aside.wait()
    assert (int(total), int(other)) == (499_999_500_000, 999_999)


@pytest.mark.parametrize(
    ("triton", "programs", "missing"),
    [
        (True, {"gcc"}, ""),
        (True, {"clang"}, ""),
        (True, {"my-cc"}, ""),
        (True, {"cc"}, "there is no C compiler, such as gcc"),
        (False, {"gcc"}, "Triton is not installed"),
    ],
)
def test_what_is_missing_to_compile_is_said(triton, programs, missing, monkeypatch):
    monkeypatch.setenv("CC", "my-cc")
    monkeypatch.setattr(devices, "find_spec", lambda name: triton or None)
    monkeypatch.setattr(devices.shutil, "which", lambda name: name if name in programs else None)
    assert missing_compiler() == missing


@pytest.mark.parametrize("chosen", [None, "/elsewhere"])
def test_what_is_compiled_is_kept_in_the_cache_unless_another_place_was_chosen(chosen, monkeypatch, tmp_path):
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", chosen or "")
    if chosen is None:
        monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    compile_once(torch.relu)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == (chosen or str(tmp_path / "compiled"))
