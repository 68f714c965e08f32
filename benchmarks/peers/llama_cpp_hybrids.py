"""The names by which llama.cpp knows the tensors and sizes of models with recurrent layers.

Values are laid out as they lie in the checkpoint where llama.cpp would move rows or change signs of a real one: speed
does not depend on them.
"""

from __future__ import annotations

from benchmarks.hybrids import EVERY_LAYER_HAS_BOTH
from benchmarks.peers.llama_cpp_names import LINEARS, NORMS

ARCHITECTURES = {"qwen3_5_text": "qwen35", "granitemoehybrid": "granitehybrid", "falcon_h1": "falcon-h1"}
TABLES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "model.final_layernorm": "output_norm",
    "lm_head": "output",
}
MIXERS = {
    "in_proj": "ssm_in",
    "in_proj_qkv": "attn_qkv",
    "in_proj_z": "attn_gate",
    "in_proj_a": "ssm_alpha",
    "in_proj_b": "ssm_beta",
    "conv1d": "ssm_conv1d",
    "norm": "ssm_norm",
    "out_proj": "ssm_out",
}
PARAMETERS = {"dt_bias": "ssm_dt.bias", "A_log": "ssm_a", "D": "ssm_d"}
LAYER = NORMS | LINEARS | {
    "feed_forward.gate_proj": "ffn_gate",
    "feed_forward.up_proj": "ffn_up",
    "feed_forward.down_proj": "ffn_down",
    "shared_mlp.output_linear": "ffn_down",
}
SECOND_NORM = {"qwen3_5_text": "post_attention_norm", "granitemoehybrid": "ffn_norm"}
FUSED = "shared_mlp.input_linear"  # gate above up
SCALES = {
    "embedding_multiplier": "add_embedding_scale",
    "residual_multiplier": "add_residual_scale",
    "attention_multiplier": "add_attention_scale",
    "logits_scaling": "add_logit_scale",
}


def tensors(config: dict, name: str, tensor) -> dict:
    """Returns what a tensor of the checkpoint, float32, is in a GGUF file: names and arrays."""
    kind = config["model_type"]
    stem, _, end = name.rpartition(".")
    if stem in TABLES:
        return {f"{TABLES[stem]}.{end}": tensor}
    _, _, index, rest = name.split(".", 3)
    layer, part = f"blk.{index}", rest.removesuffix(f".{end}")
    if end in PARAMETERS:
        is_column = end != "dt_bias" and kind != "qwen3_5_text"
        return {f"{layer}.{PARAMETERS[end]}": tensor.reshape(-1, 1) if is_column else tensor}
    if part == FUSED:
        gate, up = tensor.reshape(2, -1, tensor.shape[1])
        return {f"{layer}.ffn_gate.weight": gate, f"{layer}.ffn_up.weight": up}
    mixer, _, member = part.partition(".")
    if mixer in ("linear_attn", "mamba"):
        if member == "conv1d" and end == "weight":
            tensor = tensor.reshape(tensor.shape[0], -1)
        if member == "norm" and mixer == "mamba":
            tensor = tensor.reshape(config["mamba_n_groups"], -1)
        return {f"{layer}.{MIXERS[member]}.{end}": tensor}
    if part == "pre_ff_layernorm":
        return {f"{layer}.ffn_norm": tensor}  # without what the others end in
    if part == "post_attention_layernorm":
        return {f"{layer}.{SECOND_NORM[kind]}.{end}": tensor}
    return {f"{layer}.{LAYER[part]}.{end}": tensor}


def is_linear(name: str) -> bool:
    """Whether a GGUF tensor is a matrix that is multiplied with, which has 4 bits."""
    return name.endswith(".weight") and "norm" not in name and "conv1d" not in name


def add_metadata(writer, config: dict) -> None:
    """Adds what the recurrent layers need, and counts of heads where layers differ in them."""
    if config["model_type"] == "qwen3_5_text":
        writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(config["linear_key_head_dim"])
        writer.add_ssm_group_count(config["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
        writer.add_ssm_inner_size(config["linear_num_value_heads"] * config["linear_value_head_dim"])
        rotated = int(config["head_dim"] * config["rope_parameters"]["partial_rotary_factor"])
        writer.add_rope_dimension_count(rotated)
        third = rotated // 6
        writer.add_rope_dimension_sections([rotated // 2 - 2 * third, third, third, 0])
        writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
        return
    writer.add_ssm_conv_kernel(config["mamba_d_conv"])
    writer.add_ssm_state_size(config["mamba_d_state"])
    writer.add_ssm_group_count(config["mamba_n_groups"])
    writer.add_ssm_time_step_rank(config["mamba_n_heads"])
    writer.add_ssm_inner_size(config["mamba_n_heads"] * config["mamba_d_head"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
    for name, add in SCALES.items():
        if name in config:
            getattr(writer, add)(config[name])


def key_value_heads(config: dict) -> int | list[int]:
    """Heads of each layer's cache: llama.cpp takes Granite's layers with none for recurrent ones."""
    heads = config["num_key_value_heads"]
    if config["model_type"] in (EVERY_LAYER_HAS_BOTH, "qwen3_5_text"):
        return heads
    return [heads if kind == "full_attention" else 0 for kind in config["layer_types"]]
