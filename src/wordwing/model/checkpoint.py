"""Policies as folders: `config.json`, `model.safetensors`, `vocab.txt` and `README.md`, the model card."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.files import check_replaceable, replacing_folder
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.policy import ModelConfig, PolicyNetwork

FORMAT = 1
"""Counts changes after which older files mean something else."""

CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocab.txt", "README.md"

T = TypeVar("T")


def save_network(
    folder: str | Path,
    network: PolicyNetwork,
    vocabulary: Vocabulary,
    card: str = "",
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a policy, all of it or nothing.

    Args:
        folder: Replaced if it holds a policy.
        network: The weights and what they mean.
        vocabulary: The words that it knows.
        card: The model card: data, commit, command, seed, metrics, limits.
        dtype: Of the weights in the file; float16 halves it.
    """
    from safetensors.torch import save_file

    check_replaceable(folder, (CONFIG, WEIGHTS, WORDS, CARD), CONFIG, "a policy")
    if len(vocabulary) != network.stage1.text.words.num_embeddings:
        raise ValueError("the vocabulary is not the network's")
    document = {"format": FORMAT, "model": asdict(network.config)}
    weights = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in network.state_dict().items()}
    with replacing_folder(folder) as temporary:
        (temporary / CONFIG).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        save_file(weights, temporary / WEIGHTS)
        vocabulary.save(temporary / WORDS)
        (temporary / CARD).write_text(
            card or "# A wordwing policy\n\nNothing was said about how it was made.\n", "utf-8"
        )


def load_network(policy: str | Path) -> tuple[PolicyNetwork, Vocabulary]:
    """Read a policy from a folder, or one that comes with wordwing by its name; each mistake gives one sentence."""
    folder = _find(policy)
    config = _read_config(folder / CONFIG)
    vocabulary = Vocabulary.load(folder / WORDS)
    network = PolicyNetwork(config, len(vocabulary))
    weights = _read_weights(folder / WEIGHTS)
    expected = network.state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        where = f"{folder / WEIGHTS}: the tensor {name}"
        if name not in weights:
            raise WordwingError(f"{where} is missing; {CONFIG} describes another network")
        if name not in expected:
            raise WordwingError(f"{where} belongs to no part of the network that {CONFIG} describes")
        if weights[name].shape != expected[name].shape:
            found, wanted = list(weights[name].shape), list(expected[name].shape)
            raise WordwingError(f"{where} is {found}; with this {CONFIG} and {WORDS} it must be {wanted}")
        if not weights[name].isfinite().all():
            raise WordwingError(f"{where} holds NaN or infinity")
    network.load_state_dict(weights)
    return network, vocabulary


def shipped() -> dict[str, Path]:
    """Policies that come with wordwing, by name."""
    folder = Path(str(files("wordwing"))) / "policies"
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{CONFIG}"))}


def _find(policy: str | Path) -> Path:
    known = shipped()
    if str(policy) in known:
        return known[str(policy)]
    folder = Path(policy)
    if not (folder / CONFIG).is_file():
        names = f"; with wordwing come {', '.join(known)}" if known else ""
        missing = f"there is no {CONFIG} in it" if folder.is_dir() else "there is no such folder"
        raise WordwingError(f"{policy}: this is not a policy, {missing}{did_you_mean(str(policy), list(known))}{names}")
    return folder


def _read_config(path: Path) -> ModelConfig:
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise WordwingError(f"{path}: the file cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise WordwingError(f"{path}: this is not JSON ({error})") from None
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT or isinstance(version, bool):
        raise WordwingError(f"{path}: the format is {shown(version)}; this wordwing reads {FORMAT}")
    return _build(ModelConfig, document.get("model"), f"{path}: model")


def _build(kind: type[T], document: Any, where: str) -> T:
    """A dataclass of numbers, words and other such dataclasses, from JSON."""
    if not isinstance(document, dict):
        raise WordwingError(f"{where} is {shown(document)}; it must be an object")
    kinds = get_type_hints(kind)
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    for name in document:
        if name not in names:
            raise WordwingError(f'{where} has an unknown entry "{name}"{did_you_mean(name, names)}')
    for name in names:
        if name not in document:
            raise WordwingError(f'{where} has no "{name}"')
    return kind(**{name: _value(kinds[name], document[name], f"{where}.{name}") for name in names})


def _value(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        return _build(kind, value, where)  # type: ignore[arg-type]
    if get_origin(kind) is not None:  # a Literal
        if value in get_args(kind):
            return value
        raise WordwingError(f"{where} is {shown(value)}; it must be one of {', '.join(get_args(kind))}")
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise WordwingError(f"{where} is {shown(value)}; it must be a {kind.__name__}")
    if kind in (int, float) and not -1e6 < value < 1e6:  # NaN is not, either
        raise WordwingError(f"{where} is {shown(value)}; that cannot be")
    return value


def _read_weights(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = load_file(path)
    except FileNotFoundError:
        raise WordwingError(f"{path}: there is no such file") from None
    except (SafetensorError, OSError) as error:
        raise WordwingError(f"{path}: the file is damaged or not a safetensors file ({error})") from None
    return {name: tensor.float() for name, tensor in weights.items()}
