"""How each architecture's tensors are called.

Source: gguf-py tensor_mapping.py
"""

from __future__ import annotations

from llm_export.checkpoint.gguf.arrange import (
    as_kernel,
    as_row,
    by_group,
    by_head,
    concatenated,
    interleaved,
    interleaved_bias,
    minus_one,
    rotated,
    same,
    transposed,
)
from llm_export.checkpoint.gguf.tensors import Names

WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
ATTENTION = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}  # fmt: skip
FEED_FORWARD = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
PRE_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
SANDWICH_NORMS = {
    "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip
DENSE = ATTENTION | FEED_FORWARD | PRE_NORMS
ROTATED = {"attn_q": rotated("num_attention_heads"), "attn_k": rotated("num_key_value_heads")}
SHARED_EXPERT = {
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
}  # fmt: skip


def _experts(place: str = "mlp.experts") -> dict:
    return {
        f"{place}.gate_up_proj": (("ffn_gate_exps.weight", "ffn_up_exps.weight"), concatenated),
        f"{place}.down_proj": (("ffn_down_exps.weight",), same),
    }


def _minus_one(*leaves: str) -> dict:
    return dict.fromkeys(leaves, minus_one)


SPARSE = ATTENTION | PRE_NORMS | {"ffn_gate_inp": "mlp.gate"}
PLAIN = Names(WHOLE, DENSE)
PAIRED = Names(WHOLE, DENSE, orders=ROTATED)
GEMMA2 = Names(WHOLE, ATTENTION | FEED_FORWARD | SANDWICH_NORMS, converts=_minus_one("output_norm", *SANDWICH_NORMS))

NAMES: dict[str, Names] = {
    "llama": PAIRED,
    "mixtral": Names(WHOLE, SPARSE, orders=ROTATED, merged=_experts()),
    "arcee": PAIRED,
    "smollm3": PAIRED,
    "granite": PAIRED,
    "granitemoe": Names(
        WHOLE, ATTENTION | PRE_NORMS | {"ffn_gate_inp": "block_sparse_moe.router"}, orders=ROTATED,
        merged=_experts("block_sparse_moe.experts"),
    ),
    "olmo": PAIRED,
    "qwen2": PLAIN,
    "qwen3": Names(WHOLE, DENSE | QK_NORMS),
    "qwen2_moe": Names(WHOLE, SPARSE | SHARED_EXPERT, converts={"ffn_gate_inp_shexp": as_row}, merged=_experts()),
    "qwen3_moe": Names(WHOLE, SPARSE | QK_NORMS, merged=_experts()),
    "olmoe": Names(WHOLE, SPARSE | QK_NORMS, merged=_experts()),
    "olmo2": Names(
        WHOLE,
        ATTENTION | FEED_FORWARD | QK_NORMS
        | {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"},
    ),
    "seed_oss": Names(WHOLE, DENSE | {"post_attention_norm": "post_attention_layernorm"}),
    "ernie4_5": PLAIN,
    "gemma": Names(WHOLE, DENSE, converts=_minus_one("output_norm", *PRE_NORMS)),
    "gemma2": GEMMA2,
    "gemma3_text": Names(
        WHOLE, GEMMA2.layer | QK_NORMS, converts=_minus_one("output_norm", *SANDWICH_NORMS, *QK_NORMS)
    ),
    "phi": Names(
        WHOLE | {"output_norm": "model.final_layernorm"},
        ATTENTION | {"attn_norm": "input_layernorm", "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1",
                     "ffn_down": "mlp.fc2"},
    ),
    "phi3": Names(
        WHOLE,
        PRE_NORMS | {"attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj",
                     "ffn_down": "mlp.down_proj"},
    ),
    "starcoder2": Names(WHOLE, ATTENTION | PRE_NORMS | {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}),
    "stablelm": PLAIN,
    "nemotron": Names(WHOLE, DENSE, converts=_minus_one("output_norm", *PRE_NORMS)),
    "cohere": Names(WHOLE, ATTENTION | FEED_FORWARD | QK_NORMS | {"attn_norm": "input_layernorm"}),
    "cohere2": Names(WHOLE, ATTENTION | FEED_FORWARD | {"attn_norm": "input_layernorm"}),
    "gpt2": Names(
        {"token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f",
         "output": "lm_head"},
        {"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2",
         "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        prefix="transformer.h.",
        converts=dict.fromkeys(("attn_qkv", "attn_output", "ffn_up", "ffn_down"), transposed),
    ),
    "bloom": Names(
        {"token_embd": "transformer.word_embeddings", "token_embd_norm": "transformer.word_embeddings_layernorm",
         "output_norm": "transformer.ln_f", "output": "lm_head"},
        {"attn_norm": "input_layernorm", "attn_qkv": "self_attention.query_key_value",
         "attn_output": "self_attention.dense", "ffn_norm": "post_attention_layernorm",
         "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h"},
        prefix="transformer.h.",
        orders={"attn_qkv": by_head},
    ),
    "falcon": Names(
        {"token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f", "output": "lm_head"},
        {"attn_norm": "input_layernorm", "attn_qkv": "self_attention.query_key_value",
         "attn_output": "self_attention.dense", "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h"},
        prefix="transformer.h.",
        orders={"attn_qkv": by_group},
    ),
    "lfm2": Names(
        {"token_embd": "model.embed_tokens", "token_embd_norm": "model.embedding_norm", "output": "lm_head"},
        {"attn_norm": "operator_norm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.out_proj", "attn_q_norm": "self_attn.q_layernorm",
         "attn_k_norm": "self_attn.k_layernorm", "ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3",
         "ffn_down": "feed_forward.w2", "ffn_norm": "ffn_norm", "shortconv.conv": "conv.conv",
         "shortconv.in_proj": "conv.in_proj", "shortconv.out_proj": "conv.out_proj"},
        converts={"shortconv.conv": as_kernel},
    ),
    "gpt_oss": Names(
        WHOLE,
        ATTENTION | {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
                     "ffn_gate_inp": "mlp.router"},
        merged={
            "self_attn.sinks": (("attn_sinks.weight",), same),
            "mlp.experts.gate_up_proj": (("ffn_gate_exps.weight", "ffn_up_exps.weight"), interleaved),
            "mlp.experts.gate_up_proj_bias": (("ffn_gate_exps.bias", "ffn_up_exps.bias"), interleaved_bias),
            "mlp.experts.down_proj": (("ffn_down_exps.weight",), transposed),
            "mlp.experts.down_proj_bias": (("ffn_down_exps.bias",), same),
        },
    ),
}  # fmt: skip


def falcon_names(has_second_norm: bool) -> Names:
    """Falcon with two norms before a layer calls them by what reads them."""
    plain = NAMES["falcon"]
    layer = plain.layer | ({"attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"} if has_second_norm else {})
    return Names(plain.whole, layer, plain.prefix, plain.orders)
