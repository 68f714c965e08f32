"""One row for every model type of transformers' causal-LM mapping that generates text with a decoder only.

A row gives the arguments of a tiny config: at least two layers, every layer kind, grouped queries and windows shorter
than the tested sequence where the type has them. Weights are random, biases and norms included, so that nothing is 1 or
0 by accident.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from llm_export.checkpoint.model_types import ALIASES, NOT_DECODERS

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
    attention: str = "eager"  # of the reference

    @property
    def name(self) -> str:
        return f"{self.model_type}-{self.variant}" if self.variant else self.model_type


# The token that ends a text is one of the tested ones, the table is small, and no scores of blocks are equal.
QWEN4_NGRAMS = {
    "ple_layer_ids": [1], "ngram_size": 3, "heads_per_ngram": 2, "ngram_vocab_size_base": 50, "split_ngram_parts": 2,
    "make_ngram_vocab_size_divisible_by": 8, "eos_token_id": 100, "indexer_n_heads": 16,
}  # fmt: skip
ALTERNATING = {"layer_types": ["sliding_attention", "full_attention"]}
MLA = {
    "num_key_value_heads": 4, "head_dim": 16, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16, "v_head_dim": 32,
}  # fmt: skip
INDEXER = {"index_topk": 12, "index_n_heads": 16, "index_head_dim": 32}
YARN = {
    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 2.0,
    "beta_slow": 0.5,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16,
    "low_freq_factor": 1.0, "high_freq_factor": 4.0,
}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 3.0}


def longrope(head_dim: int) -> dict:
    """Factors for half of head_dim frequencies, switching at position 12."""
    half = head_dim // 2
    return {
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 12,
        "short_factor": [1.0 + 0.05 * i for i in range(half)], "long_factor": [2.0 + 0.3 * i for i in range(half)],
    }  # fmt: skip


BLT_PART = {
    "vocab_size": 128, "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96,
    "max_position_embeddings": 64,
}  # fmt: skip

# Types whose common values need company. Types that are absent here are captured with the common values alone.
ARGUMENTS: dict[str, dict] = {
    "afmoe": ALTERNATING,
    "axk1": MLA,
    "axk2": MLA | INDEXER,
    "bailing_hybrid": MLA | {"layer_types": ["linear_attention", "full_attention"]},
    "bamba": {"attn_layer_indices": [1]},
    "blt": {
        "encoder_hash_byte_group_vocab": 64, "encoder_hash_byte_group_size": [3], "vocab_size": 128,
        "patching_threshold": 4.6,
        "patcher_config": BLT_PART, "encoder_config": BLT_PART | {"hidden_size_global": 128, "num_hidden_layers": 1},
        "decoder_config": BLT_PART | {"hidden_size_global": 128}, "global_config": BLT_PART | {"hidden_size": 128},
    },
    "codegen": {"rotary_dim": 8},
    "cohere": {"logit_scale": 0.25},
    "cohere2": ALTERNATING | {"logit_scale": 0.25},
    "cohere2_moe": ALTERNATING,
    "cohere_compass_text": ALTERNATING | {
        "logit_scale": 0.25,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    },
    "dbrx": {
        "n_heads": 4, "attn_config": {"kv_n_heads": 2, "clip_qkv": 1.0, "rope_theta": 10000.0},
        "ffn_config": {"hidden_size": 64, "ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "deepseek_v2": MLA | {"num_experts_per_tok": 2, "first_k_dense_replace": 1},
    "deepseek_v3": MLA | {"first_k_dense_replace": 1},
    "deepseek_v32": MLA | INDEXER | {"mlp_layer_types": ["dense", "sparse"]},
    "deepseek_v4": {
        "num_key_value_heads": 1, "num_hidden_layers": 3, "mlp_layer_types": ["hash_moe", "moe", "moe"],
        "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 5}, "index_topk": 3,
        "index_n_heads": 4, "index_head_dim": 32, "q_lora_rank": 32, "o_groups": 2, "o_lora_rank": 32,
        "partial_rotary_factor": 0.5, "hc_sinkhorn_iters": 3, "swiglu_limit": 1.0, "rope_parameters": YARN,
    },
    "dots1": ALTERNATING | {"num_key_value_heads": 2, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
    },
    "doge": {"keep_window_size": 15},
    "dots3_note_text": MLA | INDEXER,
    "exaone4": ALTERNATING,
    "exaone_moe": ALTERNATING,
    "flint": ALTERNATING,
    "gemma3_text": ALTERNATING | {
        "num_hidden_layers": 2,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 8.0},
        },
    },
    "gemma3n_text": {
        "num_hidden_layers": 5, "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 32,
        "vocab_size_per_layer_input": 128, "intermediate_size": 96, "laurel_rank": 32,
        "activation_sparsity_pattern": [0.5, 0.5, 0.0, 0.0, 0.0],
        "layer_types": [
            "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention",
        ],
    },
    "gemma4_text": {
        "num_hidden_layers": 4, "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 32, "global_head_dim": 64,
        "vocab_size_per_layer_input": 128,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    },
    "glm4_moe_lite": MLA,
    "glm_moe_dsa": MLA | INDEXER | {"mlp_layer_types": ["dense", "sparse"], "indexer_types": ["full", "shared"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gptj": {"rotary_dim": 8},
    "falcon_h1": {
        "attention_in_multiplier": 0.9, "attention_out_multiplier": 0.8, "key_multiplier": 0.4,
        "ssm_in_multiplier": 1.3, "ssm_out_multiplier": 0.3, "ssm_multipliers": [0.4, 0.3, 0.5, 0.6, 0.7],
        "mlp_multipliers": [0.9, 0.6],
        "embedding_multiplier": 5.0, "lm_head_multiplier": 0.1,
    },
    "granite": {
        "embedding_multiplier": 6.0, "residual_multiplier": 0.3, "attention_multiplier": 0.07, "logits_scaling": 4.0,
    },
    "granitemoe": {
        "embedding_multiplier": 6.0, "residual_multiplier": 0.3, "attention_multiplier": 0.07, "logits_scaling": 4.0,
    },
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "helium": {"head_dim": 16, "num_key_value_heads": 4},
    "hunyuan_v1_dense": {"head_dim": 32},
    "hunyuan_v1_moe": {"head_dim": 32},
    "inkling2_text": {"layer_types": ["hybrid_sliding", "hybrid"]},
    "inkling_text": {"layer_types": ["hybrid_sliding", "hybrid"]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kimi_linear": MLA | {"layer_types": ["linear_attention", "full_attention"]},
    "kolibri1": ALTERNATING,
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3, "num_dense_layers": 1},
    "lfm3": {
        "layer_types": ["conv", "sliding_attention", "full_attention"], "num_hidden_layers": 3, "conv_L_cache": 5,
    },
    "hy_v4": MLA | INDEXER,
    "llama4_text": {
        "attention_chunk_size": 4, "layer_types": ["chunked_attention", "full_attention"], "no_rope_layers": [1, 0],
        "floor_scale": 4, "intermediate_size_mlp": 96, "moe_layers": [1],
    },
    "longcat_flash": MLA | {"num_layers": 2},
    "mamba2": {"head_dim": 32, "num_heads": 4, "n_groups": 2, "state_size": 16},
    "minicpm3": MLA | {"scale_emb": 3, "scale_depth": 1.4, "dim_model_base": 32},
    "ministral": {"head_dim": 32} | ALTERNATING,
    "nemotron": {"num_key_value_heads": 2},
    "nemotron_h": {"layers_block_type": ["mamba", "attention", "moe", "mlp"], "num_hidden_layers": 4},
    "olmo3": ALTERNATING,
    "openai-gpt": {},
    "qwen3_5_moe_text": {"layer_types": ["linear_attention", "full_attention"]},
    "qwen3_5_text": {"layer_types": ["linear_attention", "full_attention"]},
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"]},
    "qwen4_exp_text": {
        "layer_types": ["linear_attention", "indexed_attention"], "indexer_n_heads": 2, "indexer_kv_heads": 1,
        "indexer_head_dim": 32, "indexer_budget": 4, "indexer_compress_ratio": 2,
    },
    "recurrent_gemma": {"num_hidden_layers": 3, "attention_window_size": 4, "num_key_value_heads": 1},
    "smollm3": {"no_rope_layers": [1, 0], "num_hidden_layers": 2},
    "vaultgemma": ALTERNATING,
    "youtu": MLA,
    "zamba": {"num_hidden_layers": 6, "attn_layer_period": 3, "attn_layer_offset": 2},
    "zamba2": {"num_hidden_layers": 2, "layers_block_type": ["mamba", "hybrid"]},
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip

FAILURES: dict[str, str] = {
    "blt": "is no decoder of one position a token: its global transformer has one for each patch of bytes, and where "
    "patches end depends on the entropies of a second model",
    "cpmant": "is no causal decoder: its mask is all ones, so tokens attend to those behind them",
}


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
    # Configs write into their arguments, and rows share some.
    return AutoConfig.for_model(row.model_type, **deepcopy(arguments | row.arguments))


VARIANTS = [
    Row("llama", {"rope_parameters": LLAMA3, "tie_word_embeddings": True}, "llama3-tied"),
    Row("llama", {"rope_parameters": YARN, "attention_bias": True, "mlp_bias": True}, "yarn-bias"),
    Row("llama", {"rope_parameters": LINEAR}, "linear"),
    Row("llama", {"rope_parameters": DYNAMIC, "max_position_embeddings": 12}, "dynamic", same_calls=True),
    Row("phi3", {"rope_parameters": longrope(16) | {"partial_rotary_factor": 1.0}}, "longrope", same_calls=True),
    Row("falcon", {"alibi": True, "multi_query": False}, "alibi", attention="sdpa"),  # eager adds the bias twice
    Row("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}, "new-decoder"),
    Row("qwen2", {"use_sliding_window": True, "max_window_layers": 1, "tie_word_embeddings": True}, "window-tied"),
    Row("qwen4_exp_text", ARGUMENTS["qwen4_exp_text"] | QWEN4_NGRAMS, "ngrams"),
]
ROWS: list[Row] = [
    Row(name, ARGUMENTS.get(name, {}), failure=FAILURES.get(name, "")) for name in generators()
] + VARIANTS


# Stored buffers whose values follow from the config: minimax's.
COMPUTED = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")


@torch.no_grad()
def randomize(model: torch.nn.Module, seed: int) -> None:
    """Gives every parameter and stored buffer random values of a sensible size."""
    generator = torch.Generator().manual_seed(seed)
    stored = {id(value) for name, value in model.state_dict(keep_vars=True).items() if not name.endswith(COMPUTED)}
    tensors = [*model.parameters(), *(buffer for buffer in model.buffers() if id(buffer) in stored)]
    for tensor in tensors:
        if tensor.dtype == torch.int64 and tensor.dim() == 2:  # the experts of each token id
            tensor.random_(0, COMMON["num_experts"], generator=generator)
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
