"""The shapes of real models with recurrent layers, and what their states add to a token's cost."""

from __future__ import annotations

QWEN3_5_0_8B = {
    "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "hidden_size": 1024,
    "intermediate_size": 3584, "num_hidden_layers": 24, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 256, "linear_num_value_heads": 16, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
    "layer_types": ["full_attention" if i % 4 == 3 else "linear_attention" for i in range(24)],
    "vocab_size": 248320, "max_position_embeddings": 262144, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
    "hidden_act": "silu", "bos_token_id": 248044, "eos_token_id": 248046, "attention_bias": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
}  # fmt: skip
GRANITE_4_H_1B = {
    "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "hidden_size": 1536,
    "intermediate_size": 4096, "shared_intermediate_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 12,
    "num_key_value_heads": 4, "head_dim": 128, "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128,
    "mamba_n_groups": 1, "mamba_expand": 2, "mamba_d_conv": 4, "num_local_experts": 0, "num_experts_per_tok": 0,
    "layer_types": ["full_attention" if i % 10 == 5 else "linear_attention" for i in range(40)],
    "position_embedding_type": "nope", "vocab_size": 100352, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True, "hidden_act": "silu", "bos_token_id": 100257, "eos_token_id": 100257,
    "attention_bias": False, "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 6.0,
    "attention_multiplier": 0.0078125,
}  # fmt: skip
FALCON_H1_0_5B = {
    "architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "hidden_size": 1024,
    "intermediate_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 64, "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_d_state": 128,
    "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_rms_norm": False, "vocab_size": 32784,
    "max_position_embeddings": 16384, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "hidden_act": "silu",
    "rope_theta": 100000000000.0, "bos_token_id": 1, "eos_token_id": 11, "attention_bias": False,
}  # fmt: skip
HYBRIDS = {"qwen3.5-0.8b": QWEN3_5_0_8B, "granite-4-h-1b": GRANITE_4_H_1B, "falcon-h1-0.5b": FALCON_H1_0_5B}
EVERY_LAYER_HAS_BOTH = "falcon_h1"


def is_hybrid(config: dict) -> bool:
    return config["model_type"] in {each["model_type"] for each in HYBRIDS.values()}


def tensor_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the checkpoint's tensors, as the class of transformers has them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def attention_layers(config: dict) -> int:
    """Layers that have a key/value cache."""
    if config["model_type"] == EVERY_LAYER_HAS_BOTH:
        return config["num_hidden_layers"]
    return config["layer_types"].count("full_attention")


def state_elements(config: dict) -> int:
    """float32 elements of all recurrent states: a matrix for each head, and the inputs of the short convolutions."""
    if config["model_type"] == "qwen3_5_text":
        keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
        values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        matrices = values * config["linear_key_head_dim"]
        channels, kernel = 2 * keys + values, config["linear_conv_kernel_dim"]
    else:
        inner = config["mamba_n_heads"] * config["mamba_d_head"]
        matrices = inner * config["mamba_d_state"]
        channels = inner + 2 * config["mamba_n_groups"] * config["mamba_d_state"]
        kernel = config["mamba_d_conv"]
    layers = config["num_hidden_layers"]
    if config["model_type"] != EVERY_LAYER_HAS_BOTH:
        layers -= attention_layers(config)
    return layers * (matrices + channels * (kernel - 1))
