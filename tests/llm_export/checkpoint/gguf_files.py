"""Writes tiny GGUF files as llama.cpp's converter does, with names from the gguf package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from torch import Tensor

ARCHITECTURES = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}


@dataclass(frozen=True)
class Conversion:
    """How a Hugging Face model becomes a file.

    keys: metadata below the architecture's name   arguments: of the config, which a file can state
    """

    architecture: str
    keys: Callable[[object], dict] = lambda config: {}
    change: Callable[[str, Tensor, object], Iterator[tuple[str, Tensor]]] | None = None
    extra: Callable[[object], dict[str, Tensor]] = field(default=lambda config: {})
    arguments: dict = field(default_factory=dict)


def permuted(weights: Tensor, heads: int) -> Tensor:
    rows = weights.shape[0]
    return weights.reshape(heads, 2, rows // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def permute_heads(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    if ".q_proj." in name:
        value = permuted(value, config.num_attention_heads)
    if ".k_proj." in name:
        value = permuted(value, config.num_key_value_heads)
    yield from split_experts(name, value, config)


def split_experts(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    """gate_up_proj [E, 2 N, K] as two tensors."""
    layer = name.split(".")[2] if name.startswith("model.layers.") else ""
    if name.endswith("experts.gate_up_proj"):
        gate, up = value.chunk(2, dim=1)
        yield f"blk.{layer}.ffn_gate_exps.weight", gate
        yield f"blk.{layer}.ffn_up_exps.weight", up
    elif name.endswith("experts.down_proj"):
        yield f"blk.{layer}.ffn_down_exps.weight", value
    elif name.endswith("mlp.shared_expert_gate.weight"):
        yield f"blk.{layer}.ffn_gate_inp_shexp.weight", value.flatten()
    elif name.endswith("block_sparse_moe.router.weight"):
        yield f"blk.{layer}.ffn_gate_inp.weight", value
    else:
        yield name, value


def plus_one(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    yield name, value + 1 if name.endswith("norm.weight") else value


def gpt2(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    yield name, value.t() if value.dim() == 2 and ".h." in name else value


def bloom(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    if "query_key_value" in name:
        heads = config.n_head
        value = value.reshape(heads, 3, -1, *value.shape[1:]).swapaxes(0, 1).reshape(value.shape)
    yield name.removeprefix("transformer."), value


def falcon(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    if "query_key_value" in name:
        groups = config.num_kv_heads if config.new_decoder_architecture else 1
        dim = config.hidden_size // config.num_attention_heads
        qkv = value.reshape(groups, config.num_attention_heads // groups + 2, dim, -1)
        parts = (qkv[:, :-2].reshape(-1, qkv.shape[-1]), qkv[:, -2].reshape(-1, qkv.shape[-1]))
        value = torch.cat((*parts, qkv[:, -1].reshape(-1, qkv.shape[-1]))).reshape(value.shape)
    yield name, value


def lfm2(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    yield name, value.squeeze(1) if name.endswith("conv.conv.weight") else value


def gpt_oss(name: str, value: Tensor, config) -> Iterator[tuple[str, Tensor]]:
    layer = name.split(".")[2] if name.startswith("model.layers.") else ""
    if name.endswith("experts.gate_up_proj"):
        value = value.transpose(1, 2)
        yield f"blk.{layer}.ffn_gate_exps.weight", value[:, ::2]
        yield f"blk.{layer}.ffn_up_exps.weight", value[:, 1::2]
    elif name.endswith("experts.gate_up_proj_bias"):
        yield f"blk.{layer}.ffn_gate_exps.bias", value[:, ::2]
        yield f"blk.{layer}.ffn_up_exps.bias", value[:, 1::2]
    elif name.endswith("experts.down_proj"):
        yield f"blk.{layer}.ffn_down_exps.weight", value.transpose(1, 2)
    elif name.endswith("experts.down_proj_bias"):
        yield f"blk.{layer}.ffn_down_exps.bias", value
    elif name.endswith("self_attn.sinks"):
        yield f"blk.{layer}.attn_sinks.weight", value
    else:
        yield name, value


def experts(config) -> dict:
    names = ("num_experts", "num_local_experts")
    count = next(getattr(config, name) for name in names if getattr(config, name, None))
    fields = {"expert_count": count, "expert_used_count": config.num_experts_per_tok}
    if getattr(config, "moe_intermediate_size", None):
        fields["expert_feed_forward_length"] = config.moe_intermediate_size
    if getattr(config, "shared_expert_intermediate_size", None):
        fields["expert_shared_feed_forward_length"] = config.shared_expert_intermediate_size
    return fields


def scales(config) -> dict:
    return {
        "attention.scale": config.attention_multiplier, "embedding_scale": config.embedding_multiplier,
        "residual_scale": config.residual_multiplier, "logit_scale": config.logits_scaling,
    }  # fmt: skip


def softcaps(config) -> dict:
    return {
        "attn_logit_softcapping": config.attn_logit_softcapping,
        "final_logit_softcapping": config.final_logit_softcapping, "attention.sliding_window": config.sliding_window,
    }  # fmt: skip


def window(config) -> dict:
    return {"attention.sliding_window": config.sliding_window} if config.sliding_window else {}


def alternating(config) -> dict:
    return window(config) | {"attention.sliding_window_pattern": 2}


def llama3_factors(config) -> dict[str, Tensor]:
    rope = config.rope_parameters
    if rope["rope_type"] != "llama3":
        return {}
    low, high, length = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    dim = config.head_dim
    factors = []
    for frequency in 1.0 / (rope["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)):
        wavelength = 2 * math.pi / frequency
        if wavelength < length / high:
            factors.append(1)
        elif wavelength > length / low:
            factors.append(rope["factor"])
        else:
            smooth = (length / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return {"rope_freqs.weight": torch.tensor(factors)}


def long_factors(config) -> dict[str, Tensor]:
    rope = config.rope_parameters
    if rope["rope_type"] != "longrope":
        return {}
    return {f"rope_factors_{name}.weight": torch.tensor(rope[f"{name}_factor"]) for name in ("long", "short")}


def phi3_keys(config) -> dict:
    fields = {"attention.sliding_window": config.sliding_window or 0}
    rope = config.rope_parameters
    original = rope.get("original_max_position_embeddings", config.max_position_embeddings)
    if rope["rope_type"] == "longrope":
        scale = config.max_position_embeddings / original
        factor = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
        fields["rope.scaling.attn_factor"] = factor
    return fields | {"rope.scaling.original_context_length": original}


def lfm2_keys(config) -> dict:
    heads = [config.num_key_value_heads if kind == "full_attention" else 0 for kind in config.layer_types]
    size = config.intermediate_size
    if config.block_auto_adjust_ff_dim:
        size = int(2 * size / 3 * config.block_ffn_dim_multiplier)
        size = config.block_multiple_of * -(-size // config.block_multiple_of)
    return {
        "attention.head_count_kv": heads, "feed_forward_length": size, "shortconv.l_cache": config.conv_L_cache,
        "attention.layer_norm_rms_epsilon": config.norm_eps,
    }  # fmt: skip


def cohere_keys(config) -> dict:
    return {"logit_scale": config.logit_scale} | (alternating(config) if config.model_type == "cohere2" else {})


# Row of tests/contracts/architectures.py -> how it becomes a file
CONVERSIONS: dict[str, Conversion] = {
    "llama": Conversion("llama", change=permute_heads),
    "llama-llama3-tied": Conversion("llama", change=permute_heads, extra=llama3_factors),
    "llama-yarn-bias": Conversion("llama", change=permute_heads),
    "llama-linear": Conversion("llama", change=permute_heads),
    "mistral": Conversion("llama", window, change=permute_heads),
    "mixtral": Conversion("llama", experts, permute_heads),
    "arcee": Conversion("arcee", change=permute_heads),
    "smollm3": Conversion(
        "smollm3", change=permute_heads, arguments={"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]}
    ),
    "granite": Conversion("granite", scales, permute_heads),
    "granitemoe": Conversion("granitemoe", lambda config: scales(config) | experts(config), permute_heads),
    "olmo": Conversion("olmo", change=permute_heads),
    "olmo2": Conversion("olmo2"),
    "olmoe": Conversion("olmoe", experts, split_experts),
    "qwen2": Conversion("qwen2"),
    "qwen3": Conversion("qwen3"),
    "qwen2_moe": Conversion("qwen2moe", experts, split_experts),
    "qwen3_moe": Conversion("qwen3moe", experts, split_experts, arguments={"norm_topk_prob": True}),
    "seed_oss": Conversion("seed_oss"),
    "ernie4_5": Conversion("ernie4_5"),
    "gemma": Conversion("gemma", change=plus_one),
    "gemma2": Conversion("gemma2", softcaps, plus_one, arguments={"query_pre_attn_scalar": 32}),
    "gemma3_text": Conversion("gemma3", alternating, plus_one, arguments={"query_pre_attn_scalar": 32}),
    "phi": Conversion("phi2"),
    "phi3": Conversion("phi3", phi3_keys),
    "phi3-longrope": Conversion("phi3", phi3_keys, extra=long_factors),
    "starcoder2": Conversion("starcoder2", window),
    "stablelm": Conversion("stablelm"),
    "nemotron": Conversion("nemotron", change=plus_one),
    "cohere": Conversion("command-r", cohere_keys),
    "cohere2": Conversion("cohere2", cohere_keys),
    "gpt2": Conversion("gpt2", change=gpt2),
    "bloom": Conversion("bloom", change=bloom),
    "falcon": Conversion("falcon", change=falcon),
    "falcon-new-decoder": Conversion("falcon", change=falcon),
    "lfm2": Conversion("lfm2", lfm2_keys, lfm2),
    "gpt_oss": Conversion("gpt-oss", lambda config: experts(config) | window(config), gpt_oss),
}


def first(config, *names: str, default=None):
    return next((value for name in names if (value := getattr(config, name, None)) is not None), default)


def common_keys(config) -> dict:
    """What the converter writes for every architecture."""
    heads, hidden = config.num_attention_heads, config.hidden_size
    fields = {
        "context_length": first(config, "max_position_embeddings", "n_positions", "seq_length", default=64),
        "embedding_length": hidden,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": first(config, "intermediate_size", "n_inner", "ffn_hidden_size", default=4 * hidden),
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads(config),
    }
    if (epsilon := first(config, "rms_norm_eps")) is not None:
        fields["attention.layer_norm_rms_epsilon"] = epsilon
    elif (epsilon := first(config, "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")) is not None:
        fields["attention.layer_norm_epsilon"] = epsilon
    else:
        fields["attention.layer_norm_epsilon"] = 1e-5
    dim = first(config, "head_dim", default=hidden // heads)
    if "head_dim" in config.to_dict():
        fields |= {"attention.key_length": dim, "attention.value_length": dim}
    rope = first(config, "rope_parameters", default={})
    rope = rope.get("full_attention", rope)
    if rope:
        fields["rope.freq_base"] = float(rope["rope_theta"])
        fields["rope.dimension_count"] = int(dim * rope.get("partial_rotary_factor", 1.0))
        fields |= scaling_keys(rope)
    if (local := first(config, "rope_parameters", default={}).get("sliding_attention")) is not None:
        fields["rope.freq_base_swa"] = float(local["rope_theta"])
    return fields


def kv_heads(config) -> int:
    if config.model_type == "falcon":
        return config.num_kv_heads if config.new_decoder_architecture else 1 if config.multi_query else (
            config.num_attention_heads)  # fmt: skip
    return first(config, "num_key_value_heads", default=config.num_attention_heads)


def scaling_keys(rope: dict) -> dict:
    if rope["rope_type"] not in ("linear", "yarn"):
        return {}
    fields = {"rope.scaling.type": rope["rope_type"], "rope.scaling.factor": float(rope["factor"])}
    if rope["rope_type"] == "yarn":
        fields["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
        for name in ("beta_fast", "beta_slow"):
            if rope.get(name) is not None:
                fields[f"rope.scaling.yarn_{name}"] = float(rope[name])
    return fields


def add_key(writer: gguf.GGUFWriter, key: str, value) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def write_gguf(
    path: Path, conversion: Conversion, model, *, tokenizer: dict | None = None, keys: dict | None = None,
    type_of: Callable[[str, Tensor], Type] = lambda name, value: Type.F32, split_max_tensors: int = 0,
) -> None:  # fmt: skip
    """Writes a model. tokenizer, keys: whole keys of metadata, which win; type_of: of each tensor"""
    config = model.config
    writer = gguf.GGUFWriter(path, conversion.architecture, split_max_tensors=split_max_tensors)
    fields = {f"{conversion.architecture}.{k}": v for k, v in (common_keys(config) | conversion.keys(config)).items()}
    for key, value in (fields | (tokenizer or {}) | (keys or {})).items():
        add_key(writer, key, value)
    names = gguf.get_tensor_name_map(ARCHITECTURES[conversion.architecture], config.num_hidden_layers)
    tied = bool(config.tie_word_embeddings)
    for hf_name, whole in model.state_dict().items():
        if tied and hf_name == "lm_head.weight":
            continue
        changed = conversion.change(hf_name, whole, config) if conversion.change else [(hf_name, whole)]
        for name, value in changed:
            stored = name if name.startswith("blk.") else names.get_name(name, try_suffixes=(".weight", ".bias"))
            assert stored is not None, f"the gguf package has no name for {name}"
            add_tensor(writer, stored, value, type_of(stored, value))
    for name, value in conversion.extra(config).items():
        add_tensor(writer, name, value, Type.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# Bytes of a block that begin a float16 scale; what lies elsewhere may be anything.
HALVES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,), "IQ3_XXS": (0,), "MXFP4": (),
    "NVFP4": (),
}  # fmt: skip


def random_blocks(name: str, rows: int, columns: int = 512) -> np.ndarray:
    """Blocks of any codes and of scales that a model may have: uint8 [rows, blocks, bytes]."""
    generator = np.random.default_rng(rows)
    elements, size = gguf.GGML_QUANT_SIZES[Type[name]]
    raw = generator.integers(0, 256, (rows, columns // elements, size), dtype=np.uint8)
    for at in HALVES[name]:
        raw[..., at : at + 2] = generator.normal(0, 0.002, (*raw.shape[:2], 1)).astype(np.float16).view(np.uint8)
    if name == "MXFP4":
        raw[..., 0] = generator.integers(110, 122, raw.shape[:2])
    if name == "NVFP4":
        raw[..., :4] = generator.integers(0, 24, (*raw.shape[:2], 4))
    return raw


def add_tensor(writer: gguf.GGUFWriter, name: str, value: Tensor, kind: Type) -> None:
    if kind.name in HALVES and kind.name.endswith(("_K", "XS", "NL", "XXS", "NVFP4")):  # the package makes none
        raw = random_blocks(kind.name, value.shape[0], value.shape[1])
        writer.add_tensor(name, raw.reshape(len(raw), -1), raw_dtype=kind)
        return
    array = np.ascontiguousarray(value.float().numpy())
    writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
