"""EAGLE-3 heads: checkpoints that draft for a model from the hidden states of some of its layers.

They come in two forms: that of the authors, which SpecForge and AngelSlim write too, and that of speculators.
Source: arXiv 2503.01840; SafeAILab/EAGLE cnets.py; speculators models/eagle3; sglang and vllm llama_eagle3.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transformers import CONFIG_MAPPING, PretrainedConfig

from llm_export.errors import ArgumentError, FileError

SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")
LAYER_FIELDS = (
    *SIZES, "hidden_act", "rms_norm_eps", "max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
)  # fmt: skip
WINDOW_FIELDS = ("sliding_window", "use_sliding_window", "max_window_layers", "layer_types")
MAX_SIZE = 1 << 24
MAX_LAYERS = 64
# Positions of text are the same in all parts of mrope. Frequencies of "dynamic" are those of the length at each call.
ROPE_TYPES = {name: name for name in ("default", "linear", "dynamic", "llama3", "yarn")} | {"mrope": "default"}
LAYER_IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True)
class Eagle3:
    """What the config of a head says, and the names of its tensors."""

    layers: PretrainedConfig  # of its own layers and embeddings
    draft_vocab_size: int
    # Layers of the model whose inputs it reads; their number stands for what the last gives. None: the usual ones.
    inputs: tuple[int, ...] | None
    norm_before_residual: bool
    norm_before_fc: bool  # of all hidden states at once
    fc_norm: bool  # of each of them
    norm_output: bool  # whether it reads its own hidden states behind its norm


def is_head(names: Iterable[str]) -> bool:
    """Whether tensors of these names are those of such a head."""
    return any(name.endswith(".hidden_norm.weight") for name in names)


def own_name(name: str) -> str:
    """Returns the name that a tensor has in the form of speculators."""
    name = name.removeprefix("model.")
    return f"layers.0.{name.removeprefix('midlayer.')}" if name.startswith("midlayer.") else name


def read(source: str, place: Path, fields: dict, names: Iterable[str]) -> Eagle3:
    """Reads the config of a head.

    source: the argument, for messages; place: of the config; names: of its tensors
    Errors: ArgumentError if it is none that Mote runs, FileError if a field is malformed
    """
    kind = fields.get("speculators_model_type", "eagle3")
    if kind != "eagle3":
        raise ArgumentError(f"assistant = {source}: its speculators_model_type is {kind!r}: must be 'eagle3'")
    nested = _object(place, fields, "eagle_config")
    if nested.get("use_aux_hidden_state") is False:
        raise ArgumentError(
            f"assistant = {source}: its use_aux_hidden_state is False: must be an EAGLE-3 head that reads hidden "
            "states of several layers"
        )
    inner = _object(place, fields, "transformer_layer_config") or fields
    names = {own_name(name) for name in names}
    layers = _layers(source, place, inner, names, is_free="speculators_model_type" not in fields)
    said = fields.get("draft_vocab_size")
    draft_vocab_size = layers.vocab_size if said is None else _size(place, "draft_vocab_size", said)
    return Eagle3(
        layers=layers,
        draft_vocab_size=draft_vocab_size,
        inputs=_inputs(place, fields, nested),
        norm_before_residual=bool(fields.get("norm_before_residual")),
        norm_before_fc=bool(fields.get("norm_before_fc")) or "input_norm.weight" in names,
        fc_norm=bool(fields.get("fc_norm")) or "fc_norm.0.weight" in names,
        norm_output=bool(fields.get("norm_output")),
    )


def _object(place: Path, fields: dict, name: str) -> dict:
    found = fields.get(name)
    if found is not None and not isinstance(found, dict):
        raise FileError(f"{place}: {name} = {found!r}: must be an object")
    return found or {}


def _size(place: Path, name: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_SIZE:
        raise FileError(f"{place}: {name} = {value!r}: must be 1..{MAX_SIZE}")
    return value


def _inputs(place: Path, fields: dict, nested: dict) -> tuple[int, ...] | None:
    """speculators and vLLM name layers by their inputs, the config that SGLang reads by their outputs."""
    said, shift = fields.get(LAYER_IDS), 0
    if not said:
        said, shift = nested.get(LAYER_IDS), 1
    if not said:
        return None
    if not isinstance(said, list) or any(type(each) is not int or each < 0 for each in said):
        raise FileError(f"{place}: {LAYER_IDS} = {said!r}: must be a list of layers")
    if len(set(said)) != len(said):
        raise FileError(f"{place}: {LAYER_IDS} = {said!r}: must be different layers")
    return tuple(each + shift for each in said)


def _layers(source: str, place: Path, inner: dict, names: set[str], is_free: bool) -> PretrainedConfig:
    """is_free: whether layers are Llama's whatever type the config has, but for norms of queries and keys."""
    kind = "qwen3" if "layers.0.self_attn.q_norm.weight" in names else "llama"
    said = inner.get("model_type", kind)
    if not is_free and said not in ("llama", "qwen3"):
        raise ArgumentError(f"assistant = {source}: its layers are of type {said!r}: must be 'llama' or 'qwen3'")
    kept = LAYER_FIELDS + (WINDOW_FIELDS if kind == "qwen3" else ())
    given = {name: inner[name] for name in kept if inner.get(name) is not None}
    for name in SIZES:
        if name in given:
            _size(place, name, given[name])
    count = 1 + max((int(name.split(".")[1]) for name in names if _is_of_layer(name)), default=0)
    if count > MAX_LAYERS:
        raise ArgumentError(f"assistant = {source}: has {count} layers: must be at most {MAX_LAYERS}")
    _choose_rope(source, given)
    try:
        return CONFIG_MAPPING[kind](
            **given,
            num_hidden_layers=count,
            attention_bias="layers.0.self_attn.q_proj.bias" in names,
            mlp_bias="layers.0.mlp.gate_proj.bias" in names,
        )
    except Exception as error:  # transformers validates configs with many exception types
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FileError(f"{place}: transformers refuses it: {reason}") from error


def _is_of_layer(name: str) -> bool:
    parts = name.split(".")
    return parts[0] == "layers" and len(parts) > 2 and parts[1].isascii() and parts[1].isdigit() and len(parts[1]) < 6


def _choose_rope(source: str, given: dict) -> None:
    for name in ("rope_scaling", "rope_parameters"):
        found = given.get(name)
        if not isinstance(found, dict):
            continue
        kind = found.get("rope_type", found.get("type", "default"))
        if not isinstance(kind, str) or kind not in ROPE_TYPES:
            known = ", ".join(f"'{each}'" for each in ROPE_TYPES)
            raise ArgumentError(f"assistant = {source}: its {name} is of type {kind!r}: must be one of {known}")
        parts = ("type", "mrope_section", "mrope_interleaved")
        given[name] = {key: value for key, value in found.items() if key not in parts} | {"rope_type": ROPE_TYPES[kind]}
