"""The whole state of a training process as a folder, so that a killed run resumes from its last checkpoint.

The folder holds shards, `state-1-of-3.safetensors` and so on, none above 16 MiB. It is replaced at once: loading
always finds a complete state. The first shard's metadata describes the set.
"""

import json
import os
import re
import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, torch as safetensors
from torch import Tensor, nn
from torch.optim import Optimizer

from wordwing.errors import WordwingError, shown
from wordwing.files import check_replaceable, read_bytes, replacing_folder, unwritable

FORMAT = "wordwing training state"

VERSION = 1
"""Of the format; other versions are refused."""

MAX_BYTES = 16 * 2**20
"""Of one shard."""

KEY = "wordwing"
"""Of the description in the first shard's metadata."""

SHARD = re.compile(r"state-([1-9][0-9]*)-of-([1-9][0-9]*)\.safetensors")

Tensors = dict[str, Tensor]

_Piece = tuple[str, int, int]
"""A tensor's name, and from where to where a shard has it, in its flattened elements."""


def save_state(
    folder: str | Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any], max_bytes: int = MAX_BYTES
) -> None:
    """Write a state, all of it or nothing; what an earlier, killed save left beside the folder is removed.

    Args:
        folder: Replaced if it holds a state. Only one process may save to it.
        tensors: By name, of any shapes, on any devices. They are cut where a shard is full.
        meta: What else there is to keep, as JSON: kind, settings, counters.
        max_bytes: Most that a file may have.
    """
    _finish_swap(folder)
    names = _listed(folder)
    mark = next((name for name in names if name.startswith("state-1-of-")), _name(1, 1))
    check_replaceable(folder, [name for name in names if SHARD.fullmatch(name)], mark, "a training state")
    _remove_leftovers(folder)
    whole = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
    shards = _plan(whole, meta, max_bytes)
    sums = [0] * len(shards)
    with replacing_folder(folder) as temporary:
        for number in reversed(range(len(shards))):  # the first one last: it has the sums of all
            pieces = _cut(whole, shards[number])
            data = safetensors.save(pieces)
            sums[number] = _checksum(data)
            if number == 0:
                data = safetensors.save(pieces, {KEY: json.dumps(_describe(whole, shards, sums, meta))})
            with open(temporary / _name(number + 1, len(shards)), "wb") as file:
                file.write(data)


def load_state(folder: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_state` wrote: tensors on the CPU, and `meta`; each mistake gives one sentence."""
    _finish_swap(folder)
    paths = _find_shards(Path(folder))
    data = read_bytes(paths[0], MAX_BYTES, "file of a training state")
    description = _read_description(paths[0], data)
    sums, shapes, meta = description["sums"], description["cut"], description["meta"]
    pieces: dict[str, list[Tensor]] = {}
    for number, path in enumerate(paths):
        data = read_bytes(path, MAX_BYTES, "file of a training state") if number else data
        try:
            found = safetensors.load(data)
        except (SafetensorError, KeyError) as error:  # a KeyError is a kind of number that torch does not have
            raise _damaged(path, str(error)) from None
        if _checksum(data) != sums[number]:
            raise _damaged(path, "its content is not what was saved")
        for name, tensor in found.items():
            pieces.setdefault(name, []).append(tensor)
    try:
        return {
            name: torch.cat(parts).reshape(shapes[name]) if name in shapes else parts[0]
            for name, parts in sorted(pieces.items())  # files have them in any order
        }, meta
    except (RuntimeError, TypeError) as error:
        raise _damaged(paths[0], str(error)) from None


def is_saved(folder: str | Path) -> bool:
    """Whether there is a state to load, whole or not."""
    _finish_swap(folder)
    return any(SHARD.fullmatch(name) for name in _listed(folder))


def tidy(folder: str | Path) -> None:
    """Finish or remove what a killed process left beside any folder that is replaced as a whole."""
    _finish_swap(folder)
    _remove_leftovers(folder)


def flatten_optimizer(optimizer: Optimizer, prefix: str = "optimiser") -> dict[str, Tensor]:
    """What an optimizer like Adam remembers, as copies on the CPU.

    Learning rates and other settings are not in it; parameters that it never moved have nothing to be kept.

    Args:
        optimizer: Adam: `exp_avg`, `exp_avg_sq` and `step` of each parameter.
        prefix: How names begin: "optimiser.7.exp_avg" is of the eighth parameter, in the optimizer's order.
    """
    return {
        f"{prefix}.{number}.{key}": value.detach().to("cpu", copy=True)
        for number, (parameter, _group) in enumerate(_parameters(optimizer))
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor], prefix: str = "optimiser") -> None:
    """Restore an optimizer from what `flatten_optimizer` gave.

    Memory that it has already is overwritten in place, so that captured CUDA graphs see it.

    Args:
        optimizer: Over the same parameters in the same order; they may be on another device.
        tensors: Those of `flatten_optimizer`, among any others.
        prefix: As it was given there.
    """
    parameters = list(_parameters(optimizer))
    kept: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if found := re.fullmatch(rf"{re.escape(prefix)}\.([0-9]+)\.(\w+)", name):
            kept.setdefault(int(found[1]), {})[found[2]] = tensor
    for number, entries in kept.items():
        for key, value in entries.items():
            if number >= len(parameters) or (value.dim() and value.shape != parameters[number][0].shape):
                raise WordwingError(f"the state belongs to another network: {prefix}.{number}.{key} fits no parameter")
    for number, (parameter, group) in enumerate(parameters):
        if number not in kept:
            optimizer.state.pop(parameter, None)
            continue
        state = optimizer.state[parameter]
        for key, value in kept[number].items():
            if key in state:
                state[key].copy_(value)
            else:
                # Adam counts steps on the CPU, unless it works in one kernel or a graph.
                stays = key == "step" and not (group.get("fused") or group.get("capturable"))
                state[key] = value.detach().to("cpu" if stays else parameter.device, copy=True)


def squeeze(array: NDArray[np.int16]) -> Tensor:
    """Packed poses with little room, as bytes; a flight's next pose is near the one before.

    Args:
        array: [rows, columns] int16.

    Returns:
        [bytes] uint8: the columns' differences from row to row, high and low bytes apart, compressed to a half.
    """
    rows, columns = array.shape
    differences = np.diff(array.T, axis=1, prepend=np.zeros((columns, 1), np.int16))  # wraps around, as angles do
    apart = np.ascontiguousarray(differences, "<i2").view(np.uint8).reshape(columns, rows, 2).transpose(0, 2, 1)
    packed = struct.pack("<qq", rows, columns) + zlib.compress(apart.tobytes(), 6)
    return torch.from_numpy(np.frombuffer(packed, np.uint8).copy())


def unsqueeze(squeezed: Tensor) -> NDArray[np.int16]:
    """[rows, columns] int16 that `squeeze` was given."""
    packed = squeezed.cpu().numpy().tobytes()
    rows, columns = struct.unpack_from("<qq", packed)
    apart = np.frombuffer(zlib.decompress(packed[16:]), np.uint8).reshape(columns, 2, rows)
    differences = np.ascontiguousarray(apart.transpose(0, 2, 1)).view("<i2").reshape(columns, rows)
    return np.ascontiguousarray(np.cumsum(differences, axis=1, dtype=np.int16).T)


def module_tensors(modules: Mapping[str, nn.Module]) -> Tensors:
    """What modules have learned, under their names."""
    return {
        f"{name}.{key}": tensor.detach()
        for name, module in modules.items()
        for key, tensor in module.state_dict().items()
    }


def restore_modules(modules: Mapping[str, nn.Module], tensors: Tensors) -> None:
    """Load what `module_tensors` gave, found among any other tensors, into modules."""
    for name, module in modules.items():
        found = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
        try:
            module.load_state_dict(found)
        except RuntimeError:
            raise WordwingError(f"the state belongs to another network: its {name} does not fit") from None


def _parameters(optimizer: Optimizer) -> list[tuple[Tensor, dict[str, Any]]]:
    return [(parameter, group) for group in optimizer.param_groups for parameter in group["params"]]


def _name(number: int, total: int) -> str:
    return f"state-{number}-of-{total}.safetensors"


def _plan(tensors: Mapping[str, Tensor], meta: Mapping[str, Any], max_bytes: int) -> list[list[_Piece]]:
    """What goes into which shard."""
    reserved = 0
    while True:
        shards = _fill(tensors, max_bytes, reserved)
        # As JSON inside JSON, with the longest sums; how much it is depends on how much room it leaves.
        longest = _describe(tensors, shards, [2**32 - 1] * len(shards), meta)
        needed = len(json.dumps({"__metadata__": {KEY: json.dumps(longest)}}))
        if needed <= reserved:
            return shards
        reserved = needed


def _fill(tensors: Mapping[str, Tensor], max_bytes: int, reserved: int) -> list[list[_Piece]]:
    """Fill one shard after the other, in the given order, with `reserved` bytes of the first one left free."""
    frame = 32  # the header's length, its brackets, and what it is padded with
    shards: list[list[_Piece]] = [[]]
    room = max_bytes - frame - reserved
    if room < 0:
        raise ValueError(f"a description of {reserved} bytes does not fit into a file of {max_bytes}")
    for name, tensor in tensors.items():
        header = len(json.dumps(name)) + 96 + 20 * tensor.dim()  # at most; its part of the file's header
        begin, size = 0, tensor.element_size()
        while True:
            end = min(tensor.numel(), begin + max(0, room - header) // size)
            if room >= header and (end > begin or not tensor.numel()):
                shards[-1].append((name, begin, end))
                room -= header + (end - begin) * size
                begin = end
            if begin == tensor.numel() and shards[-1] and shards[-1][-1][0] == name:
                break
            if not shards[-1] and len(shards) > 1:
                raise ValueError(f"{name} does not fit into files of {max_bytes} bytes")
            shards.append([])
            room = max_bytes - frame
    return shards


def _cut(tensors: Mapping[str, Tensor], pieces: Sequence[_Piece]) -> dict[str, Tensor]:
    """The tensors of a shard: flat where they are cut; copies, because safetensors refuses shared memory."""
    found = {}
    for name, begin, end in pieces:
        tensor = tensors[name]
        part = tensor if end - begin == tensor.numel() else tensor.flatten()[begin:end]
        found[name] = part.clone(memory_format=torch.contiguous_format)
    return found


def _describe(
    tensors: Mapping[str, Tensor], shards: Sequence[Sequence[_Piece]], sums: Sequence[int], meta: Mapping[str, Any]
) -> dict[str, Any]:
    """What the first shard says about the set: its files' sums, and the shapes of tensors that were cut."""
    cut = {
        name: list(tensors[name].shape)
        for pieces in shards
        for name, begin, end in pieces
        if end - begin < tensors[name].numel()
    }
    return {"format": FORMAT, "version": VERSION, "sums": list(sums), "cut": cut, "meta": dict(meta)}


def _checksum(data: bytes) -> int:
    """Of a file's tensors, without its header, which the sum itself goes into."""
    begin = 8 + int.from_bytes(data[:8], "little")
    return zlib.crc32(memoryview(data)[begin:])


def _find_shards(folder: Path) -> list[Path]:
    """The files of a state, in order; none is missing and there are no others."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        raise WordwingError(f"{folder}: there is no such folder, so there is no training state to load") from None
    except OSError as error:
        raise WordwingError(f"{folder}: a training state is a folder; this cannot be read ({error.strerror})") from None
    found = {name: (int(match[1]), int(match[2])) for name in names if (match := SHARD.fullmatch(name))}
    if not found:
        raise WordwingError(f"{folder}: there is no training state in this folder")
    [(total, _count)] = Counter(total for _number, total in found.values()).most_common(1)
    if foreign := [name for name in names if name not in found or found[name][1] != total or found[name][0] > total]:
        raise WordwingError(f"{folder}: {foreign[0]} does not belong to the training state of {total} files")
    expected = [_name(number, total) for number in range(1, min(total, len(found) + 1) + 1)]
    if missing := [name for name in expected if name not in found]:
        raise WordwingError(f"{folder}: {missing[0]} is missing, so the training state is not whole")
    return [folder / name for name in expected]


def _read_description(path: Path, data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
        text = header["__metadata__"][KEY]
    except (ValueError, RecursionError):
        raise _damaged(path, "its header is not JSON") from None
    except (KeyError, TypeError):
        raise WordwingError(f"{path}: this is not the first file of a training state") from None
    try:
        description = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise WordwingError(f"{path}: what it says about the training state is not JSON ({error})") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise WordwingError(f"{path}: this is not the first file of a training state")
    if description.get("version") != VERSION:
        version = shown(description.get("version"))
        raise WordwingError(f"{path}: the training state's version is {version}; this wordwing reads {VERSION}")
    total = int(SHARD.fullmatch(path.name)[2])  # type: ignore[index]
    for key, kind in (("sums", list), ("cut", dict), ("meta", dict)):
        if not isinstance(description.get(key), kind) or (key == "sums" and len(description[key]) != total):
            raise _damaged(path, f'"{key}" is {shown(description.get(key))}')
    return description


def _damaged(path: Path, why: str) -> WordwingError:
    return WordwingError(f"{path}: the file is damaged or cut off ({why}); the training state cannot be loaded")


def _listed(folder: str | Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # reading or replacing the folder raises a better error
        return []


def _leftovers(folder: str | Path) -> list[Path]:
    """Temporary folders of saves that were killed, by the names that `replacing_folder` gives them."""
    place = Path(folder).resolve()
    pattern = re.compile(rf"\.{re.escape(place.name)}-[a-z0-9_]{{8}}(-old)?")
    return [place.parent / name for name in _listed(place.parent) if pattern.fullmatch(name)]


def _remove_leftovers(folder: str | Path) -> None:
    for path in _leftovers(folder):
        shutil.rmtree(path, ignore_errors=True)


def _finish_swap(folder: str | Path) -> None:
    """Put the new state in place where a save was killed between moving the old one away and the new one there.

    Only file systems that cannot exchange folders at once have such a moment.
    """
    place = Path(folder).resolve()
    if place.exists():
        return
    for old in _leftovers(folder):
        new = old.with_name(old.name.removesuffix("-old"))
        if old != new:
            try:
                os.replace(new if new.exists() else old, place)
            except OSError as error:
                raise unwritable(folder, error) from None
            return
