"""How a checkpoint makes embeddings: what its sentence-transformers files say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_MAPPING_NAMES

from llm_export.checkpoint.files import open_tensors, read_text
from llm_export.errors import FileError, UnsupportedError

POOLINGS = ("mean", "lasttoken", "cls", "max", "mean_sqrt_len_tokens", "weightedmean")
# Flags of older pooling configs, each with its mode.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
ONE_TOKEN = ("lasttoken", "cls")  # poolings that choose a token, so that what follows them may come before them
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor] | None] = {
    "Identity": None,
    "Tanh": torch.tanh,
    "ReLU": torch.relu,
    "Sigmoid": torch.sigmoid,
    "GELU": nn.functional.gelu,
    "SiLU": nn.functional.silu,
}
MAX_LENGTH = 1 << 20  # a larger model_max_length says that there is none

Reader = Callable[[Path], dict | None]  # the object in a JSON file, None where there is no such file


@dataclass(frozen=True)
class Dense:
    """activation(x W^T + b) of every token's hidden state; weight float32 [out, in], bias float32 [out]."""

    weight: Tensor
    bias: Tensor | None
    activation: str = "Identity"

    def __call__(self, x: Tensor) -> Tensor:
        function = ACTIVATIONS[self.activation]
        y = nn.functional.linear(x, self.weight, self.bias)
        return y if function is None else function(y)


@dataclass(frozen=True)
class EmbeddingSetup:
    """How hidden states after the last norm become a vector, and what users may ask for by name."""

    pooling: str = "lasttoken"  # one of POOLINGS
    include_prompt: bool = True
    dense: tuple[Dense, ...] = ()
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    max_tokens: int | None = None

    def to_json(self, max_positions: int) -> str:
        """Returns the field `embedding` of a file (docs/file-format.md). max_positions: that the model has"""
        fields: dict[str, Any] = {
            "pooling": self.pooling,
            "include_prompt": self.include_prompt,
            "max_tokens": min(self.max_tokens or max_positions, max_positions),
            "prompts": self.prompts,
        }
        if self.default_prompt_name is not None:
            fields["default_prompt_name"] = self.default_prompt_name
        return json.dumps(fields, ensure_ascii=False, sort_keys=True)


def is_bidirectional(config: PretrainedConfig) -> bool:
    """Whether tokens attend to those that follow them."""
    return getattr(config, "use_bidirectional_attention", None) in (True, "all") or (
        getattr(config, "is_causal", True) is False
    )


def is_base_model(config: PretrainedConfig) -> bool:
    """Whether the checkpoint was saved without an output head, or has no use for one."""
    names = set(getattr(config, "architectures", None) or [])
    with_head = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    return is_bidirectional(config) or bool(names & set(MODEL_MAPPING_NAMES.values()) - with_head)


def read_setup(folder: Path, config: PretrainedConfig, tokenizer_config: dict, read: Reader) -> EmbeddingSetup | None:
    """Reads sentence-transformers' files; None where there are none.

    Errors: FileError naming file and field; UnsupportedError for a module that Mote does not have
    """
    modules = _modules(folder / "modules.json")
    if modules is None:
        return None
    names = [name for name, _ in modules if name != "Dropout"]
    if names[:2] != ["Transformer", "Pooling"] or set(names[2:]) - {"Dense", "Normalize"}:
        accepted = "must be Transformer, Pooling, any number of Dense, and Normalize"
        raise UnsupportedError(config.model_type, f"its modules.json has {', '.join(names)}: {accepted}")
    if modules[0][1] != folder:
        raise UnsupportedError(
            config.model_type, f"its Transformer lies in {modules[0][1].name}, not beside modules.json"
        )
    pooling = _read_pooling(config.model_type, modules[names.index("Pooling")][1] / "config.json", read)
    dense = tuple(_read_dense(config.model_type, path, read) for name, path in modules if name == "Dense")
    if pooling["pooling"] not in ONE_TOKEN and any(layer.activation != "Identity" for layer in dense):
        raise UnsupportedError(
            config.model_type, f"its Dense has an activation behind '{pooling['pooling']}' pooling, so it cannot be a "
            "part of what each token goes through"
        )  # fmt: skip
    given = read(folder / "config_sentence_transformers.json") or {}
    return EmbeddingSetup(
        dense=_joined(dense),
        max_tokens=_max_tokens(folder, tokenizer_config, read),
        **pooling,
        **_prompts(folder / "config_sentence_transformers.json", given),
    )


def default_setup(config: PretrainedConfig) -> EmbeddingSetup:
    """What a checkpoint gives that says nothing of embeddings."""
    return EmbeddingSetup(pooling="mean" if is_bidirectional(config) else "lasttoken")


def _modules(path: Path) -> list[tuple[str, Path]] | None:
    """Class names and folders of the modules, in order."""
    if not path.is_file():
        return None
    text = read_text(path)
    try:
        entries = json.loads(text)
        found = sorted((entry["idx"], entry["type"].rpartition(".")[2], entry["path"]) for entry in entries)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileError(f"{path}: must be a JSON list of objects with idx, type and path: {error!r}") from error
    for _, _, name in found:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise FileError(f"{path}: path = '{name}': must be a folder inside {path.parent}")
    return [(kind, path.parent / name if name else path.parent) for _, kind, name in found]


def _read_pooling(model_type: str, path: Path, read: Reader) -> dict[str, Any]:
    fields = read(path)
    if fields is None:
        raise FileError(f"{path}: is not there, but modules.json has a Pooling. Download it")
    modes = fields.get("pooling_mode", [mode for flag, mode in POOLING_FLAGS.items() if fields.get(flag)] or ["mean"])
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise UnsupportedError(model_type, f"its pooling is {' and '.join(map(str, modes))}: must be one of "
                               f"{', '.join(POOLINGS)}")  # fmt: skip
    return {"pooling": modes[0], "include_prompt": bool(fields.get("include_prompt", True))}


def _read_dense(model_type: str, folder: Path, read: Reader) -> Dense:
    fields = read(folder / "config.json") or {}
    activation = str(fields.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise UnsupportedError(model_type, f"its Dense has the activation {activation}: must be one of "
                               f"{', '.join(ACTIVATIONS)}")  # fmt: skip
    named = {fields.get(name) or "sentence_embedding" for name in ("module_input_name", "module_output_name")}
    if named != {"sentence_embedding"} or fields.get("use_residual"):
        raise UnsupportedError(model_type, f"its Dense in {folder.name} has a residual, or reads or writes another "
                               "value than sentence_embedding")  # fmt: skip
    path = folder / "model.safetensors"
    with open_tensors(path) as file:
        names = file.keys()
        if "linear.weight" not in names:
            raise FileError(f"{path}: lacks tensor 'linear.weight'")
        weight = file.get_tensor("linear.weight").float()
        bias = file.get_tensor("linear.bias").float() if "linear.bias" in names else None
    return Dense(weight, bias, activation)


def _joined(layers: tuple[Dense, ...]) -> tuple[Dense, ...]:
    """Makes one layer of those in a row that are linear, where that has fewer weights."""
    joined: list[Dense] = []
    for layer in layers:
        last = joined[-1] if joined else None
        if last is not None and last.activation == "Identity" and _saves(last, layer):
            joined[-1] = _product(last, layer)
        else:
            joined.append(layer)
    return tuple(joined)


def _saves(first: Dense, second: Dense) -> bool:
    return second.weight.shape[0] * first.weight.shape[1] <= first.weight.numel() + second.weight.numel()


def _product(first: Dense, second: Dense) -> Dense:
    weight = second.weight.double() @ first.weight.double()
    bias = None if second.bias is None else second.bias.double()
    if first.bias is not None:
        moved = second.weight.double() @ first.bias.double()
        bias = moved if bias is None else moved + bias
    return Dense(weight.float(), None if bias is None else bias.float(), second.activation)


def _prompts(path: Path, fields: dict) -> dict[str, Any]:
    given = fields.get("prompts") or {}
    if not isinstance(given, dict) or not all(text is None or isinstance(text, str) for text in given.values()):
        raise FileError(f"{path}: prompts: must be an object of texts")
    prompts = {name: text for name, text in given.items() if text is not None}
    name = fields.get("default_prompt_name")
    if name is not None and name not in prompts:
        raise FileError(f"{path}: default_prompt_name = {name!r}: must be null or one of {', '.join(prompts)}")
    return {"prompts": prompts, "default_prompt_name": name}


def _max_tokens(folder: Path, tokenizer_config: dict, read: Reader) -> int | None:
    """The most tokens of a text that the files name; None where they name none."""
    fields = read(folder / "sentence_bert_config.json") or {}
    if fields.get("do_lower_case"):
        raise FileError(f"{folder / 'sentence_bert_config.json'}: do_lower_case = true: must be false")
    found = [fields.get("max_seq_length"), tokenizer_config.get("model_max_length")]
    return next((value for value in found if isinstance(value, int) and 0 < value <= MAX_LENGTH), None)
