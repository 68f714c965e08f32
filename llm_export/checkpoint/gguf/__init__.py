"""Opens a GGUF file as a checkpoint: weights, config, tokenizer and chat template from its metadata alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformers import PretrainedConfig

from llm_export.checkpoint.gguf.config import Description, read_config
from llm_export.checkpoint.gguf.names import NAMES, falcon_names
from llm_export.checkpoint.gguf.reader import GgufModel, find_gguf, open_gguf
from llm_export.checkpoint.gguf.tensors import GgufTensors
from llm_export.checkpoint.gguf.tokenizer import (
    Vocabulary,
    end_ids,
    read_vocabulary,
    tokenizer_config,
    tokenizer_json,
)

__all__ = ["GgufContents", "find_gguf", "read_gguf"]

# Key -> field of generation_config.json
SAMPLING = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repetition_penalty",
}


@dataclass(frozen=True)
class GgufContents:
    """What a file holds, in the words of a Hugging Face folder."""

    model: GgufModel
    config: PretrainedConfig
    tensors: GgufTensors
    generation_config: dict
    tokenizer_config: dict
    tokenizer_json: bytes  # b"": not asked for
    chat_template: str
    license: str


def read_gguf(path: Path, *, tokenizer: bool = True) -> GgufContents:
    """Opens a file, or all parts of a split one.

    tokenizer: whether its tokenizer is to be read; a file may describe one that is not known here
    Errors: FileError naming file, field and value; UnsupportedError for an architecture that is unknown here
    """
    model = open_gguf(path)
    config = read_config(model)
    names = NAMES[config.model_type if config.model_type != "mistral" else "llama"]
    if config.model_type == "falcon":
        names = falcon_names(Description(model).in_any_layer("attn_norm_2.weight"))
    tensors = GgufTensors(model, names, config)
    vocabulary = read_vocabulary(model.metadata, config.vocab_size) if tokenizer else None
    return GgufContents(
        model=model,
        config=config,
        tensors=tensors,
        generation_config=_generation(model, vocabulary),
        tokenizer_config=tokenizer_config(vocabulary) if vocabulary else {},
        tokenizer_json=tokenizer_json(vocabulary, model.architecture) if vocabulary else b"",
        chat_template=model.metadata.text("tokenizer.chat_template", ""),
        license=_license(model),
    )


def _generation(model: GgufModel, vocabulary: Vocabulary | None) -> dict:
    metadata = model.metadata
    fields: dict = {name: metadata.number(key, positive=False) for key, name in SAMPLING.items() if key in metadata}
    if "general.sampling.top_k" in metadata:
        fields["top_k"] = metadata.integer("general.sampling.top_k")
    if fields:
        fields["do_sample"] = fields.get("temperature", 1.0) > 0
    ends = end_ids(vocabulary) if vocabulary else []
    return fields | ({"eos_token_id": ends} if ends else {})


def _license(model: GgufModel) -> str:
    """Returns what the metadata say of licence and origin, a line each."""
    keys = [key for key in model.metadata.values if key.startswith(("general.license", "general.base_model."))]
    if "general.license" not in keys:
        return ""
    origin = ("general.name", "general.organization", "general.author", "general.source.url", "general.repo_url")
    values = {key: model.metadata.values[key] for key in (*keys, *origin) if key in model.metadata}
    lines = [f"{key} = {value}" for key, value in values.items() if isinstance(value, str)]
    name = model.metadata.text("general.license")
    return "\n".join([name, "", f"From the metadata of {model.path.name}:", *lines, ""])
