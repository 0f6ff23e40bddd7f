"""Policies as folders: `config.json`, `model.safetensors`, `vocab.txt` and `README.md`, the model card."""

import json
from dataclasses import asdict, fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import torch
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from safetensors import SafetensorError, torch as safetensors
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import check_replaceable, read_bytes, read_json, read_text, replacing_folder
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.validation import parse

FORMAT = 1
"""Version of config.json; changes when older files would be misread."""

CONFIG, WEIGHTS, WORDS, CARD = "config.json", "model.safetensors", "vocab.txt", "README.md"

RANGES = {
    "channels": (1, 256),
    "words": (1, 512),
    "hidden": (1, 256),
    "filtered": (1, 128),
    "last": (1, 512),
    "filters": (1, 64),
    "embedding": (1, 256),
    "grounding": (1, 64),
    "levels": (2, 6),  # 64 cells can be halved six times
    "attention": (0, 6),
    "phases": (1, 8),
    "dropout": (0.0, 0.99),
    "offset_dropout": (0.0, 0.99),
    "close_gain": (0.0, 1e4),
    "whole_gain": (0.0, 1e4),
    "min_deviation": (1e-4, 10.0),
    "first_deviation": (1e-4, 10.0),
    "first_forward": (0.0, 1.0),
    "first_stop": (-20.0, 20.0),
    "blend": (0.0, 1.0),
    "blind_range": (0.0, 10.0),
    "blind_radius": (0.0, 10.0),
    "stop_threshold": (0.0, 1.0),
}
"""Ranges of the numbers in a configuration; together they keep a network below a gigabyte."""

LATER = ("attention", "phases", "history", "vectors", "offset_dropout")
"""Options that are newer than the first saved policies: where one is missing it is off."""

MAX_SMALL = 1_000_000
"""Largest configuration, model card and header of weights that is read, bytes."""

STORED = (torch.float32, torch.float16, torch.bfloat16)


def _schema(kind: Any) -> type[BaseModel]:
    """A pydantic model of a configuration: numbers are in range, nothing but what is in `LATER` may be missing."""
    types, entries = get_type_hints(kind), dict[str, Any]()
    for entry in fields(kind):
        wanted = types[entry.name]
        if is_dataclass(wanted):
            wanted = _schema(wanted)
        elif entry.name in RANGES:
            least, most = RANGES[entry.name]
            wanted = Annotated[wanted, Field(ge=least, le=most)]
        entries[entry.name] = (wanted, entry.default if entry.name in LATER else ...)
    return create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), **entries)


class _PolicyDocument(BaseModel, extra="forbid"):
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT, description=f"{FORMAT}, the format that this wordwing reads")]
    model: dict[str, Any]


_ModelDocument = _schema(ModelConfig)


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
        network: The weights and their configuration.
        vocabulary: Its words.
        card: The model card: data, commit, command, seed, metrics, limits.
        dtype: Of the weights in the file; float16 halves it.
    """
    check_replaceable(folder, (CONFIG, WEIGHTS, WORDS, CARD), CONFIG, "a policy")
    if len(vocabulary) != network.stage1.text.words.num_embeddings:
        raise ValueError("the vocabulary is not the network's")
    weights = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in network.state_dict().items()}
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise WordwingError(f"{folder}: the tensor {name} holds NaN or infinity, so the policy is not saved")
    document = {"format": FORMAT, "model": asdict(network.config)}
    with replacing_folder(folder) as temporary:
        (temporary / CONFIG).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        (temporary / WEIGHTS).write_bytes(safetensors.save(weights))
        vocabulary.save(temporary / WORDS)
        (temporary / CARD).write_text(card or "# A wordwing policy\n\nNo model card was given.\n", "utf-8")


def load_network(policy: str | Path) -> tuple[PolicyNetwork, Vocabulary]:
    """Read a policy from a folder, or one that comes with wordwing by its name; each mistake gives one sentence."""
    folder = policy_folder(policy)
    config = _read_config(folder / CONFIG)
    vocabulary = Vocabulary.load(folder / WORDS)
    if config.stage1.text.vectors and vocabulary.tokenizer == 1:
        raise WordwingError(f"{folder / WORDS}: it is of tokenizer 1; with this {CONFIG} it must be of tokenizer 2")
    # No memory is taken before the weights have turned out to have these sizes.
    with torch.device("meta"), _Unsampled():
        expected = PolicyNetwork(config, len(vocabulary)).state_dict()
    weights = _read_weights(folder / WEIGHTS, MAX_SMALL + sum(4 * tensor.numel() for tensor in expected.values()))
    for name in sorted(expected.keys() | weights.keys()):
        where = f"{folder / WEIGHTS}: the tensor {name}"
        if name not in weights:
            raise WordwingError(f"{where} is missing; {CONFIG} describes a network that has it")
        if name not in expected:
            raise WordwingError(f"{where} belongs to no part of the network that {CONFIG} describes")
        if weights[name].shape != expected[name].shape:
            found, wanted = list(weights[name].shape), list(expected[name].shape)
            raise WordwingError(f"{where} is {found}; with this {CONFIG} and {WORDS} it must be {wanted}")
        if weights[name].dtype not in STORED:
            raise WordwingError(f"{where} is of {weights[name].dtype}; it must be of {', '.join(map(str, STORED))}")
        if not weights[name].isfinite().all():
            raise WordwingError(f"{where} holds NaN or infinity")
    network = PolicyNetwork(config, len(vocabulary))
    network.load_state_dict(weights)
    return network, vocabulary


class _Unsampled(TorchFunctionMode):
    """Draws nothing from normal distributions, for which torch would import its compiler on the meta device."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else kwargs["tensor"]
        return (torch.empty if function is torch.randn else function)(*args, **kwargs)


def read_card(policy: str | Path) -> str:
    """The model card of a policy, Markdown."""
    return read_text(policy_folder(policy) / CARD, MAX_SMALL, "model card")


def shipped() -> dict[str, Path]:
    """Policies that come with wordwing, by name."""
    folder = Path(str(files("wordwing"))) / "policies"
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{CONFIG}"))}


def policy_folder(policy: str | Path) -> Path:
    """The folder of a policy: the folder itself, or that of one that comes with wordwing by its name."""
    known = shipped()
    if str(policy) in known:
        return known[str(policy)]
    folder = Path(policy)
    try:
        if (folder / CONFIG).is_file():
            return folder
        missing = f"there is no {CONFIG} in it" if folder.is_dir() else "there is no such folder"
        if (folder / "best" / CONFIG).is_file():  # a run of `wordwing train`
            missing += f'; did you mean "{folder / "best"}"?'
    except OSError as error:  # a name that is too long, a folder that others may not enter
        missing = f"the folder cannot be read ({error.strerror})"
    names = f" (with wordwing come {', '.join(known)})" if known else ""
    raise WordwingError(f"{policy}: this is not a policy, {missing}{did_you_mean(str(policy), list(known))}{names}")


def _read_config(path: Path) -> ModelConfig:
    document = parse(_PolicyDocument, read_json(path, MAX_SMALL, "configuration of a policy"), str(path))
    model = parse(_ModelDocument, document.model, f"{path}: model")
    config = TypeAdapter(ModelConfig).validate_python(model.model_dump())
    if config.stage2.first_deviation <= config.stage2.min_deviation:
        raise WordwingError(f"{path}: model.stage2.first_deviation must be above min_deviation")
    if wrong := wrong_switches(config):
        raise WordwingError(f"{path}: {wrong}")
    return config


def wrong_switches(config: ModelConfig) -> str:
    """What is wrong with a configuration whose numbers are all in range; empty if nothing is."""
    phases, seen, lingunet = config.stage1.phases, config.stage2.phases, config.stage1.lingunet
    if phases not in (1, 2, 4, 8):  # parts of the 64 points that stand for a path
        return f"model.stage1.phases is {phases}; it must be 1, 2, 4 or 8"
    if seen not in (1, phases):
        return f"model.stage2.phases is {seen}; it must be 1 or, as model.stage1.phases is, {phases}"
    if lingunet.attention > lingunet.levels:
        return f"model.stage1.lingunet.attention is {lingunet.attention}; there are {lingunet.levels} levels"
    return ""


def _read_weights(path: Path, most: int) -> dict[str, Tensor]:
    data = read_bytes(path, most, f"file of the weights that {CONFIG} and {WORDS} describe")
    try:
        return safetensors.load(data)
    except (SafetensorError, KeyError) as error:  # a KeyError is a number type that torch does not have
        raise WordwingError(f"{path}: the file is damaged or not a safetensors file ({error})") from None
