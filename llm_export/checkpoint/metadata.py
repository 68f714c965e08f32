"""What a program file says about its model beside graphs and weights."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, version

import torch
import transformers
from transformers import PretrainedConfig

from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.tokenizer import compile_tokenizer
from llm_export.errors import FileError
from llm_export.program.instructions import GoldenSample, Metadata, Provenance

MAX_POSITIONS = 1 << 20  # assumed for models that state no bound


def make_metadata(
    checkpoint: Checkpoint, vocab_size: int, recipe: str, golden_samples: tuple[GoldenSample, ...] = ()
) -> Metadata:
    """Collects provenance, generation defaults, tokenizer and chat template of a checkpoint.

    vocab_size: columns of the logits   recipe: how its weights are quantized, in words
    Errors: FileError if a field of generation_config.json or of the tokenizer has a value that is not accepted
    """
    config, embedding = checkpoint.config, checkpoint.embedding
    generation = dict(checkpoint.generation_config)
    eos = _ids(checkpoint, "eos_token_id", generation.get("eos_token_id", getattr(config, "eos_token_id", None)))
    bos = _ids(checkpoint, "bos_token_id", generation.get("bos_token_id", getattr(config, "bos_token_id", None)))
    return Metadata(
        provenance=_provenance(checkpoint, recipe),
        vocab_size=vocab_size,
        max_position_embeddings=max_positions(config),
        bos_token_id=bos[0] if bos else -1,
        eos_token_ids=eos,
        generation_config=json.dumps(generation, sort_keys=True),
        golden_samples=golden_samples,
        tokenizer=compile_tokenizer(checkpoint.tokenizer) if checkpoint.tokenizer else b"",
        chat_template=self_contained_template(checkpoint.chat_template, checkpoint.tokenizer_config).encode(),
        embedding=embedding.to_json(max_positions(config)) if embedding is not None else "",
    )


def self_contained_template(template: str, tokenizer_config: dict) -> str:
    """Returns a chat template that itself sets the special tokens that it names, as in tokenizer_config.json."""
    lines = ""
    for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
        token = tokenizer_config.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str) and re.search(rf"\b{name}\b", template):
            lines += "{%- set " + name + " = " + json.dumps(token, ensure_ascii=False) + " %}"
    # Jinja drops a newline right behind a block, so an empty output separates the two.
    return lines + ("{{ '' }}" if lines and template.startswith("\n") else "") + template


def max_positions(config: PretrainedConfig) -> int:
    """Returns how many positions the model was made for."""
    for name in ("max_position_embeddings", "max_sequence_length", "max_seq_len", "seq_length", "model_max_length"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return min(int(value * _dynamic_factor(config)), 2**31 - 1)
    return MAX_POSITIONS


def _dynamic_factor(config: PretrainedConfig) -> float:
    """Returns the factor by which dynamic RoPE extends the length that the config names; 1 for other types."""
    rope = getattr(config, "rope_parameters", None) or {}
    return max(1.0, rope.get("factor") or 1.0) if rope.get("rope_type") == "dynamic" else 1.0


def _provenance(checkpoint: Checkpoint, recipe: str) -> Provenance:
    return Provenance(
        model_id=checkpoint.model_id,
        revision=checkpoint.revision,
        model_type=checkpoint.config.model_type,
        recipe=recipe,
        exporter_version=_exporter_version(),
        torch_version=torch.__version__,
        transformers_version=transformers.__version__,
        license=checkpoint.license,
    )


def _exporter_version() -> str:
    try:
        return version("mote-llm")
    except PackageNotFoundError:
        return "unknown"


def _ids(checkpoint: Checkpoint, field: str, value) -> tuple[int, ...]:
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in values):
        raise FileError(f"{checkpoint.folder}: {field} = {value!r}: must be a token id or a list of them")
    return tuple(item for item in values if item >= 0)
