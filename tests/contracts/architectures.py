"""One row for every model type of transformers' causal-LM mapping that generates text with a decoder only.

A row gives the arguments of a tiny config: at least two layers, every layer kind, grouped queries and windows shorter than the
tested sequence where the type has them. Weights are random, biases and norms included, so that nothing is 1 or 0 by accident.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from llm_export.model_types import ALIASES, NOT_DECODERS

# Values for every config field that a type has; a row's own arguments win.
COMMON = {
    "vocab_size": 128,
    "hidden_size": 64, "n_embd": 64, "d_model": 64, "dim_model": 64, "embedding_size": 64,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "head_dim": 32, "intermediate_size": 96, "n_inner": 96, "ffn_dim": 96, "dim_ff": 96, "dff": 96,
    "max_position_embeddings": 64, "n_positions": 64, "n_ctx": 64,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
    "num_experts_per_tok": 2, "moe_k": 2, "moe_topk": 2, "n_shared_experts": 1,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "n_group": 2, "topk_group": 1,
    "sliding_window": 4, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    "attention_dropout": 0.0,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    model_type: str
    arguments: dict = field(default_factory=dict)
    variant: str = ""
    failure: str = ""  # why the type cannot be captured yet
    # The frequencies of some RoPE types depend on the calls, so the reference makes the same calls with a cache.
    same_calls: bool = False

    @property
    def name(self) -> str:
        return f"{self.model_type}-{self.variant}" if self.variant else self.model_type


ROWS: list[Row] = []


def generators() -> list[str]:
    """Every model type that must have a row."""
    return [name for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if name not in NOT_DECODERS and name not in ALIASES]


def tiny_config(row: Row) -> PretrainedConfig:
    """Builds the config of a row from the common values and its own arguments."""
    defaults = AutoConfig.for_model(row.model_type)
    fields = defaults.to_dict()
    known = set(fields) | set(getattr(type(defaults), "attribute_map", {}))
    arguments = {key: value for key, value in COMMON.items() if key in known and fields.get(key, "") is not None}
    if fields.get("num_key_value_heads") is not None:
        arguments["num_key_value_heads"] = 2
    return AutoConfig.for_model(row.model_type, **(arguments | row.arguments))


@torch.no_grad()
def randomize(model: torch.nn.Module, seed: int) -> None:
    """Gives every parameter and stored buffer random values of a sensible size."""
    generator = torch.Generator().manual_seed(seed)
    stored = {id(value) for value in model.state_dict(keep_vars=True).values()}
    tensors = [*model.parameters(), *(buffer for buffer in model.buffers() if id(buffer) in stored)]
    for tensor in tensors:
        if not tensor.is_floating_point():
            continue
        noise = torch.randn(tensor.shape, generator=generator)
        if tensor.dim() < 2:
            tensor.add_(noise * 0.1)
        else:
            tensor.copy_(noise * 0.8 / tensor.shape[-1] ** 0.5)


def tiny_model(row: Row, seed: int = 0):
    """Returns the Hugging Face module of a row in eager attention, float32."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(tiny_config(row), dtype=torch.float32, attn_implementation="eager")
    randomize(model, seed)
    return model.eval()


def find(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def save_tiny_checkpoint(name: str, folder: Path | str, seed: int = 0) -> None:
    """Writes config.json and model.safetensors (float32) of the row `name` (a model type or type-variant)."""
    tiny_model(find(name), seed).save_pretrained(folder)
