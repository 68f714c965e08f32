"""The shapes of real models, random checkpoints of them, and what a token costs at each.

Values are drawn as a fresh model's would be, scaled by 1/sqrt(in-features), so that activations neither overflow
nor vanish; speed does not depend on them.
"""

from __future__ import annotations

import json
import struct
from math import prod
from pathlib import Path

from benchmarks import hybrids

LLAMA_3_2_1B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
    "hidden_act": "silu", "rope_theta": 500000.0, "bos_token_id": 128000, "eos_token_id": 128001,
    "attention_bias": False, "mlp_bias": False,
    "rope_scaling": {
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
}  # fmt: skip
QWEN3_0_6B = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
    "hidden_act": "silu", "rope_theta": 1000000.0, "bos_token_id": 151643, "eos_token_id": 151645,
    "attention_bias": False,
}  # fmt: skip
# Four of 48 and of 16 layers: experts of one layer are like those of the next. The head is the embedding, as above.
QWEN3_30B_A3B_4_LAYERS = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
    "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "hidden_act": "silu",
    "rope_theta": 1000000.0, "bos_token_id": 151643, "eos_token_id": 151645, "attention_bias": False,
}  # fmt: skip
OLMOE_4_LAYERS = {
    "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024,
    "num_experts": 64, "num_experts_per_tok": 8, "norm_topk_prob": False, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 50304,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "hidden_act": "silu",
    "rope_theta": 10000.0, "bos_token_id": 50279, "eos_token_id": 50279, "attention_bias": False, "clip_qkv": None,
}  # fmt: skip
# Four of 27 layers, of which the first has no experts. Attention is over a latent.
DEEPSEEK_V2_LITE_4_LAYERS = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 2048,
    "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 1, "topk_group": 1,
    "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": False, "routed_scaling_factor": 1.0,
    "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": None,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "head_dim": 64,
    "vocab_size": 102400, "max_position_embeddings": 163840, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
    "hidden_act": "silu", "rope_theta": 10000.0, "bos_token_id": 100000, "eos_token_id": 100001,
    "attention_bias": False,
}  # fmt: skip
EXPERTS = {"qwen3-30b-a3b-4-layers": QWEN3_30B_A3B_4_LAYERS, "olmoe-4-layers": OLMOE_4_LAYERS}
EXPERTS |= {"deepseek-v2-lite-4-layers": DEEPSEEK_V2_LITE_4_LAYERS}
WHOLE = {"llama-3.2-1b": LLAMA_3_2_1B, "qwen3-0.6b": QWEN3_0_6B}
# Layers are alike, so that two of them tell how runtimes compare on prompts that would take half an hour with all.
SHAPES = WHOLE | EXPERTS | hybrids.HYBRIDS | {"qwen3-0.6b-2-layers": QWEN3_0_6B | {"num_hidden_layers": 2}}
CHECKPOINT_VERSION = 2  # goes up whenever the same shape gives different files
RANDOM_ELEMENTS = 1 << 22
# Nobody tokenizes, but some converters refuse a checkpoint without a tokenizer.
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
}  # fmt: skip
TOKENIZER_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
GROUP_BITS = 4.25  # four bits a weight and a multiplier for each group of 32


def tensor_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the checkpoint's tensors."""
    if hybrids.is_hybrid(config):
        return hybrids.tensor_shapes(config)
    hidden = config["hidden_size"]
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}"
        for name, shape in {
            **_attention_shapes(config),
            **_feed_forward_shapes(config, index),
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }.items():
            shapes[f"{layer}.{name}.weight"] = shape
    return shapes


def _attention_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    hidden, head, heads = config["hidden_size"], config["head_dim"], config["num_attention_heads"]
    if "kv_lora_rank" in config:
        latent, rotary = config["kv_lora_rank"], config["qk_rope_head_dim"]
        key, value = config["qk_nope_head_dim"], config["v_head_dim"]
        return {
            "self_attn.q_proj": (heads * (key + rotary), hidden),
            "self_attn.kv_a_proj_with_mqa": (latent + rotary, hidden),
            "self_attn.kv_a_layernorm": (latent,),
            "self_attn.kv_b_proj": (heads * (key + value), latent),
            "self_attn.o_proj": (hidden, heads * value),
        }
    queries, keys = heads * head, config["num_key_value_heads"] * head
    norms = {"qwen3": (head, head), "qwen3_moe": (head, head), "olmoe": (queries, keys)}
    widths = zip("qk", norms.get(config["model_type"], ()), strict=False)
    return {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        **{f"self_attn.{name}_norm": (width,) for name, width in widths},
    }


def _feed_forward_shapes(config: dict, layer: int) -> dict[str, tuple[int, int]]:
    hidden, inner = config["hidden_size"], config.get("moe_intermediate_size", config["intermediate_size"])
    if _num_experts(config) == 0 or layer < config.get("first_k_dense_replace", 0):
        return {f"mlp.{name}": shape for name, shape in _gated(hidden, config["intermediate_size"]).items()}
    shared = config.get("n_shared_experts", 0)
    return (
        {"mlp.gate": (_num_experts(config), hidden)}
        | {
            f"mlp.experts.{expert}.{name}": shape
            for expert in range(_num_experts(config))
            for name, shape in _gated(hidden, inner).items()
        }
        | {f"mlp.shared_experts.{name}": shape for name, shape in _gated(hidden, shared * inner).items() if shared}
    )


def _gated(hidden: int, inner: int) -> dict[str, tuple[int, int]]:
    return {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}


def _num_experts(config: dict) -> int:
    return config.get("num_experts", config.get("n_routed_experts", 0))


def head_weights(config: dict) -> int:
    """Weights of the output head, which the embedding shares or is as large as."""
    return config["vocab_size"] * config["hidden_size"]


def layer_weights(config: dict) -> int:
    """Weights of the linears of all layers, of experts those that a token chooses: its multiply-accumulates."""
    tables = ("model.embed_tokens.weight", "lm_head.weight")
    shapes = {name: shape for name, shape in tensor_shapes(config).items() if len(shape) == 2 and name not in tables}
    whole = sum(rows * columns for name, (rows, columns) in shapes.items() if ".experts." not in name)
    stacks = sum(rows * columns for name, (rows, columns) in shapes.items() if ".experts." in name)
    chosen = stacks * config["num_experts_per_tok"] // _num_experts(config) if stacks else 0
    return whole + chosen


def decode_bytes(config: dict, depth: float, kv_element_bytes: float) -> float:
    """Bytes that a decode step must move: every 4-bit weight, the head once, `depth` positions of the cache, and
    recurrent states, which are read and written."""
    layers, states = config["num_hidden_layers"], 0
    if hybrids.is_hybrid(config):
        layers, states = hybrids.attention_layers(config), 2 * 4 * hybrids.state_elements(config)
    width = 2 * config["num_key_value_heads"] * config["head_dim"]
    if "kv_lora_rank" in config:
        width = config["kv_lora_rank"] + config["qk_rope_head_dim"]
    positions = layers * width
    weights = (layer_weights(config) + head_weights(config)) * GROUP_BITS / 8
    return weights + states + depth * positions * kv_element_bytes


def prefill_macs(config: dict, prompt_tokens: int) -> float:
    """Multiply-accumulates a prompt token: the linears of all layers, and its share of the head for one position."""
    return layer_weights(config) + head_weights(config) / prompt_tokens


def write_checkpoint(folder: Path, config: dict) -> None:
    """Writes a checkpoint with random bf16 weights, a block at a time, and a tokenizer of one token."""
    folder.mkdir(parents=True, exist_ok=True)
    header, end = {}, 0
    shapes = tensor_shapes(config)
    for name, shape in shapes.items():
        size = 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        _write_tensors(file, list(shapes.values()))
    for name, content in {
        "config.json": config | {"dtype": "bfloat16"},
        "generation_config.json": {name: config[name] for name in ("bos_token_id", "eos_token_id")},
        "tokenizer.json": TOKENIZER,
        "tokenizer_config.json": TOKENIZER_CONFIG,
    }.items():
        (folder / name).write_text(json.dumps(content, indent=2))


def _write_tensors(file, shapes: list[tuple[int, ...]]) -> None:
    import torch  # not needed by the processes that only ask for shapes

    noise = torch.randn(2 * RANDOM_ELEMENTS, generator=torch.Generator().manual_seed(0))
    for index, shape in enumerate(shapes):
        rolled = noise.roll(7919 * index)
        values = 1 + 0.1 * rolled if len(shape) == 1 else rolled * prod(shape[1:]) ** -0.5
        data = values.to(torch.bfloat16).view(torch.uint8).numpy()
        left = prod(shape)
        while left > 0:
            count = min(left, noise.numel())
            file.write(data[: 2 * count])
            left -= count
