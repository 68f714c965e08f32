"""Reads the folders that PEFT's `save_pretrained` writes. Whatever would make another text than PEFT's is refused."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from llm_export.checkpoint.files import open_tensors, read_text
from llm_export.errors import FileError, ProgramError

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
MATRIX = re.compile(r"(.+)\.lora_(A|B|magnitude_vector)(?:\.weight)?")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)

# What does not change what a saved adapter computes: how it was made, and what the fields below say in full.
WITHOUT_EFFECT = frozenset((
    "peft_type", "auto_mapping", "base_model_name_or_path", "revision", "task_type", "inference_mode", "peft_version",
    "r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "target_modules", "exclude_modules",
    "layers_to_transform", "layers_pattern", "lora_dropout", "fan_in_fan_out", "init_lora_weights", "eva_config",
    "runtime_config", "ephemeral_gpu_offload", "ensure_weight_tying", "qalora_group_size", "megatron_core",
    "lora_ga_config",
))  # fmt: skip
# These begin by changing the weights of the base, and the folder says nothing of that.
CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
REPETITION, REPEATED_GROUP = re.compile(r"[*+?{]"), re.compile(r"\)[*+?{]")
MOST_REPETITIONS = 3
LONGEST_NAME = 256
LARGEST = 1e9  # of alpha and rank
EMPTY: tuple[Any, ...] = (None, False, "none", [], {}, "")


@dataclass(frozen=True)
class LoraModule:
    """What is added to one linear: scale * B (A x)."""

    name: str  # of the module in the Hugging Face model
    a: Tensor  # [rank, in_features]
    b: Tensor  # [out_features, rank], of the dtype of a
    scale: float
    magnitude: Tensor | None = None  # DoRA: float32 [out_features]


@dataclass(frozen=True)
class PeftFolder:
    path: Path
    method: str  # "lora", "rslora" or "dora"
    modules: tuple[LoraModule, ...]

    @property
    def name(self) -> str:
        return self.path.resolve().name


def read_peft(folder: Path) -> PeftFolder:
    """Reads config and matrices. Errors: FileError; ProgramError naming file, field, value and what is accepted."""
    if not (folder / CONFIG).is_file():
        raise FileError(f"{folder}: has no {CONFIG}: must be a folder that PEFT's save_pretrained wrote")
    if not (folder / TENSORS).is_file():
        raise FileError(f"{folder}: has no {TENSORS}: save the adapter with PEFT's save_pretrained as safetensors")
    config = _read_config(folder / CONFIG)
    tensors = _read_tensors(folder / TENSORS)
    modules = tuple(_module(folder, config, name, matrices) for name, matrices in sorted(tensors.items()))
    method = "dora" if config.get("use_dora") else "rslora" if config.get("use_rslora") else "lora"
    return PeftFolder(folder, method, modules)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ProgramError(f"{path}: is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise ProgramError(f"{path}: must be a JSON object")
    if config.get("peft_type") != "LORA":
        raise ProgramError(f"{path}: peft_type = {_shown(config.get('peft_type'))}: must be LORA (with DoRA or rsLoRA)")
    initial = config.get("init_lora_weights")
    if isinstance(initial, str) and initial.lower().startswith(CHANGES_BASE):
        raise ProgramError(
            f"{path}: init_lora_weights = {_shown(initial)}: it changes the weights of the base; convert the adapter "
            "with PEFT's save_pretrained(..., path_initial_model_for_weight_conversion=...)"
        )
    for field, value in config.items():
        if field not in WITHOUT_EFFECT and value not in EMPTY:
            raise ProgramError(
                f"{path}: {field} = {_shown(value)}: is not supported: must be empty; LoRA, rsLoRA and DoRA on linears "
                "with rank_pattern and alpha_pattern are"
            )
    for field in ("rank_pattern", "alpha_pattern"):
        if not isinstance(config.get(field) or {}, dict):
            raise ProgramError(f"{path}: {field} = {_shown(config[field])}: must be an object")
    return config


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_tensors(path: Path) -> dict[str, dict[str, Tensor]]:
    """Returns the matrices "A", "B" and perhaps "magnitude_vector" of each module."""
    found: dict[str, dict[str, Tensor]] = {}
    with open_tensors(path) as file:
        for key in file.keys():  # noqa: SIM118 (it is no dict)
            if key.endswith(".base_layer.weight"):  # of lm_head, beside its matrices: the base's, which LoRA freezes
                continue
            match = MATRIX.fullmatch(key.removeprefix(PREFIX))
            if match is None or not key.startswith(PREFIX) or len(key) > LONGEST_NAME:
                raise ProgramError(
                    f"{path}: {key[:200]}: must be lora_A, lora_B or lora_magnitude_vector of a linear; embeddings and "
                    "whole modules (modules_to_save) are not supported"
                )
            try:
                found.setdefault(match[1], {})[match[2]] = file.get_tensor(key)
            except SafetensorError as error:
                raise FileError(f"{path}: {key[:200]}: cannot be read: {error}") from error
    if not found:
        raise ProgramError(f"{path}: has no tensors: must have lora_A and lora_B of at least one linear")
    return found


def _module(folder: Path, config: dict[str, Any], name: str, matrices: dict[str, Tensor]) -> LoraModule:
    place = f"{folder / TENSORS}: {name}"
    if not {"A", "B"} <= set(matrices):
        raise ProgramError(f"{place}: has lora_{'A' if 'A' in matrices else 'B'} only: must have lora_A and lora_B")
    a, b = matrices["A"], matrices["B"]
    if a.dim() != 2 or b.dim() != 2 or a.shape[0] != b.shape[1] or not a.numel() or not b.numel():
        raise ProgramError(
            f"{place}: lora_A has shape {list(a.shape)}, lora_B {list(b.shape)}: must be [rank, in_features] and "
            "[out_features, rank]"
        )
    rank = _matching(config, "rank_pattern", "r", name, folder)
    if len(a) != rank:
        raise ProgramError(f"{place}: lora_A has rank {len(a)}: must be {rank}, as {CONFIG} says")
    alpha = _matching(config, "alpha_pattern", "lora_alpha", name, folder)
    for matrix in (a, b):
        if matrix.dtype not in DTYPES:
            raise ProgramError(f"{place}: is of {matrix.dtype}: must be float32, float16 or bfloat16")
    if a.dtype != b.dtype:
        a, b = a.float(), b.float()
    magnitude = matrices.get("magnitude_vector")
    if (magnitude is not None) != bool(config.get("use_dora")):
        raise ProgramError(
            f"{place}: {'has a' if magnitude is not None else 'has no'} lora_magnitude_vector, but use_dora = "
            f"{_shown(config.get('use_dora'))} in {CONFIG}: must agree"
        )
    if magnitude is not None:
        magnitude = magnitude.float().flatten()
        if len(magnitude) != len(b):
            raise ProgramError(f"{place}: lora_magnitude_vector has {len(magnitude)} elements: must be {len(b)}")
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    return LoraModule(name, a, b, scale, magnitude)


def _matching(config: dict[str, Any], patterns: str, field: str, name: str, folder: Path) -> Any:
    """The value of the first pattern that matches the module's name or its end, else of the field; a number."""
    value = config.get(field)
    for pattern, other in (config.get(patterns) or {}).items():
        if _matches(pattern, name, f"{folder / CONFIG}: {patterns}: {_shown(pattern)}"):
            value, field = other, f"{patterns}[{_shown(pattern)}]"
            break
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST
    if not is_number or (patterns == "rank_pattern" and value < 1):
        raise ProgramError(f"{folder / CONFIG}: {field} = {_shown(value)}: must be a number of at most 1e9")
    return value


def _matches(pattern: str, name: str, place: str) -> bool:
    """Whether a pattern of PEFT's means a module. Errors: ProgramError for one that could take forever."""
    if len(REPETITION.findall(pattern)) > MOST_REPETITIONS or REPEATED_GROUP.search(pattern):
        raise ProgramError(f"{place}: must have at most {MOST_REPETITIONS} repetitions, and none of a group")
    try:
        return re.match(rf"(.*\.)?({pattern})$", name) is not None
    except (re.error, RecursionError, OverflowError) as error:
        raise ProgramError(f"{place}: is no regular expression: {error}") from error
