"""The Hugging Face config of a GGUF file, from its metadata and the shapes of its tensors.

Source: llama.cpp src/llama-model.cpp load_hparams, conversion/*.py; transformers integrations/ggml.py
"""

from __future__ import annotations

from collections.abc import Callable

from transformers import AutoConfig, PretrainedConfig

from llm_export.checkpoint.gguf.fields import Array
from llm_export.checkpoint.gguf.reader import GgufModel
from llm_export.checkpoint.gguf.rope import rope_parameters
from llm_export.errors import FileError, UnsupportedError

MAX_LAYERS = 4096
MAX_EXPERTS = 65536
MAX_HEAD_DIM = 65536
MAX_REASON = 300  # characters of what transformers says


class Description:
    """Metadata of one architecture: keys without its name before them."""

    def __init__(self, model: GgufModel):
        self.model, self.metadata, self.tensors = model, model.metadata, model.tensors
        self.architecture = model.architecture

    def key(self, name: str) -> str:
        return f"{self.architecture}.{name}"

    def has(self, name: str) -> bool:
        return self.key(name) in self.metadata

    def integer(self, name: str, default: int | None = None, *, low: int = 1, high: int = 2**31 - 1) -> int:
        return self.metadata.integer(self.key(name), default, low=low, high=high)

    def number(self, name: str, default: float | None = None, *, positive: bool = True) -> float:
        return self.metadata.number(self.key(name), default, positive=positive)

    def same(self, name: str, default: int | None = None) -> int:
        """Returns a number that files may state for each layer, but that must be one for all."""
        values = set(self.metadata.integers(self.key(name), self.num_layers, default))
        if len(values) != 1 or min(values) < 1:
            shown = ", ".join(map(str, sorted(values)))
            raise FileError(f"{self.model.path}: {self.key(name)} = {shown}: must be one number above 0 for all layers")
        return values.pop()

    def fail(self, name: str, value, accepted: str) -> FileError:
        return FileError(f"{self.model.path}: {self.key(name)} = {value}: {accepted}")

    @property
    def num_layers(self) -> int:
        return self.integer("block_count", high=MAX_LAYERS)

    def shape(self, tensor: str) -> tuple[int, ...]:
        if tensor not in self.tensors:
            raise FileError(f"{self.model.path}: tensor '{tensor}' is missing. Download the file again")
        return self.tensors[tensor].shape

    def in_any_layer(self, leaf: str) -> bool:
        return any(f"blk.{i}.{leaf}" in self.tensors for i in range(self.num_layers))

    def layer_types(self, default: int) -> list[str]:
        """Returns which layers have a window: as an array says, else all but each `default`-th or stated one."""
        key = self.key("attention.sliding_window_pattern")
        if isinstance(self.metadata.values.get(key), Array):
            sliding = self.metadata.integers(key, self.num_layers, high=1)
        else:
            pattern = self.integer("attention.sliding_window_pattern", default)
            sliding = [(i + 1) % pattern for i in range(self.num_layers)]
        return ["sliding_attention" if value else "full_attention" for value in sliding]

    @property
    def head_dim(self) -> int:
        """As it is stated, else as the shape of the first layer's queries has it."""
        heads, hidden = self.same("attention.head_count"), self.integer("embedding_length")
        queries = self.tensors.get("blk.0.attn_q.weight")
        own = (queries.shape[0] if queries else hidden) // heads or 1
        dim = self.integer("attention.key_length", min(own, MAX_HEAD_DIM), high=MAX_HEAD_DIM)
        if self.integer("attention.value_length", dim) != dim:
            raise self.fail("attention.value_length", self.integer("attention.value_length"),
                            f"must be {dim}, the length of a key")  # fmt: skip
        return dim

    @property
    def rotated_part(self) -> float:
        dim = self.integer("rope.dimension_count", self.head_dim)
        if dim > self.head_dim:
            raise self.fail("rope.dimension_count", dim, f"must be at most {self.head_dim}, the length of a head")
        return dim / self.head_dim


def read_config(model: GgufModel) -> PretrainedConfig:
    """Makes the config of a file.

    Errors: UnsupportedError for an architecture that is unknown here; FileError naming key and value
    """
    about = Description(model)
    build = CONFIGS.get(about.architecture)
    if build is None:
        raise UnsupportedError(
            about.architecture,
            f"{model.path}: general.architecture = {about.architecture}: must be one of {', '.join(sorted(CONFIGS))}",
            "Export the Hugging Face checkpoint that the file was made of",
        )
    fields = _ids(about) | {
        "vocab_size": about.shape("token_embd.weight")[0],
        "tie_word_embeddings": "output.weight" not in about.tensors,
        **build(about),
    }
    _check_layers(about)
    try:
        config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    except Exception as error:  # transformers validates configs with many exception types
        reason = " ".join(str(error).split())[:MAX_REASON] or type(error).__name__
        raise FileError(
            f"{model.path}: transformers refuses the config that its metadata describe: {reason}"
        ) from error
    return config


def _check_layers(about: Description) -> None:
    """Errors: FileError unless each layer has tensors, before a module of so many layers is made."""
    blocks = {name.split(".")[1] for name in about.tensors if name.startswith("blk.")}
    missing = next((i for i in range(about.num_layers) if str(i) not in blocks), None)
    if missing is not None:
        raise about.fail(
            "block_count", about.num_layers, f"must be {missing}: the file has no tensor 'blk.{missing}.*'"
        )


def _ids(about: Description) -> dict:
    vocab_size = about.shape("token_embd.weight")[0]
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    keys = {field: f"tokenizer.ggml.{name}_token_id" for field, name in names.items()}
    return {
        field: about.metadata.integer(key, high=vocab_size - 1) if key in about.metadata else None
        for field, key in keys.items()
    }


def _sizes(about: Description) -> dict:
    return {
        "hidden_size": about.integer("embedding_length"),
        "num_hidden_layers": about.num_layers,
        "max_position_embeddings": about.integer("context_length"),
        "num_attention_heads": about.same("attention.head_count"),
        "num_key_value_heads": about.same("attention.head_count_kv", about.same("attention.head_count")),
    }


def _decoder(about: Description, model_type: str, *, epsilon: str = "rms_norm_eps", partial: bool = False) -> dict:
    """What most decoders have. epsilon: how the config calls it; partial: only a part of a head may be rotated"""
    rms = epsilon == "rms_norm_eps"
    key = "attention.layer_norm_rms_epsilon" if rms or not about.has("attention.layer_norm_epsilon") else (
        "attention.layer_norm_epsilon")  # fmt: skip
    part = about.rotated_part
    if part != 1 and not partial:
        raise about.fail("rope.dimension_count", about.integer("rope.dimension_count"), f"must be {about.head_dim}")
    rope = rope_parameters(about, about.head_dim)
    return _sizes(about) | {
        "model_type": model_type,
        "head_dim": about.head_dim,
        "intermediate_size": about.same("feed_forward_length"),
        epsilon: about.number(key),
        "rope_parameters": rope | ({"partial_rotary_factor": part} if partial else {}),
    }


def _biases(about: Description, **fields: str) -> dict:
    """Returns for each field whether any layer has the tensor."""
    return {field: about.in_any_layer(tensor) for field, tensor in fields.items()}


def _experts(about: Description, count: str = "num_experts") -> dict:
    return {
        count: about.integer("expert_count", high=MAX_EXPERTS),
        "num_experts_per_tok": about.integer("expert_used_count", high=MAX_EXPERTS),
    }


def _expert_size(about: Description) -> int:
    return about.integer("expert_feed_forward_length", about.shape("blk.0.ffn_gate_exps.weight")[-2])


def _llama(about: Description) -> dict:
    if about.integer("expert_count", 0, low=0):
        return _decoder(about, "mixtral") | _experts(about, "num_local_experts") | {"sliding_window": None}
    fields = _decoder(about, "llama") | _biases(about, attention_bias="attn_q.bias", mlp_bias="ffn_up.bias")
    window = about.integer("attention.sliding_window", 0, low=0)
    if 0 < window < fields["max_position_embeddings"]:
        return fields | {"model_type": "mistral", "sliding_window": window}
    return fields


def _qwen2moe(about: Description) -> dict:
    shared = about.shape("blk.0.ffn_gate_shexp.weight")[0]
    experts = _experts(about) | {
        "moe_intermediate_size": _expert_size(about),
        "shared_expert_intermediate_size": about.integer("expert_shared_feed_forward_length", shared),
    }
    fields = _decoder(about, "qwen2_moe")
    return fields | experts


def _qwen3moe(about: Description) -> dict:
    size = _expert_size(about)
    fields = _sizes(about) | {
        "model_type": "qwen3_moe", "head_dim": about.head_dim, "moe_intermediate_size": size,
        "intermediate_size": about.integer("feed_forward_length", size), "norm_topk_prob": True,
        "rms_norm_eps": about.number("attention.layer_norm_rms_epsilon"),
        "rope_parameters": rope_parameters(about, about.head_dim),
    }  # fmt: skip
    return fields | _experts(about)


def _gemma2(about: Description) -> dict:
    return _decoder(about, "gemma2") | {
        "attn_logit_softcapping": about.number("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": about.number("final_logit_softcapping", 30.0),
        "sliding_window": about.integer("attention.sliding_window", 4096),
        "query_pre_attn_scalar": _gemma_scale(about, large=46),
    }


def _gemma_scale(about: Description, large: int) -> int:
    """The largest model of a family divides scores by another length than its heads'. large: its number of layers"""
    hidden, heads = about.integer("embedding_length"), about.same("attention.head_count")
    return hidden // heads if about.num_layers == large else about.head_dim


def _gemma3(about: Description) -> dict:
    fields = _decoder(about, "gemma3_text")
    local = {"rope_type": "default", "rope_theta": about.number("rope.freq_base_swa", 10000.0)}
    window = about.integer("attention.sliding_window", 0, low=0)
    types = about.layer_types(6) if window else ["full_attention"] * about.num_layers
    softcap = about.number("final_logit_softcapping") if about.has("final_logit_softcapping") else None
    return fields | {
        "rope_parameters": {"sliding_attention": local, "full_attention": fields["rope_parameters"]},
        "sliding_window": window or 4096, "layer_types": types, "final_logit_softcapping": softcap,
        "query_pre_attn_scalar": _gemma_scale(about, large=62),
    }  # fmt: skip


def _phi3(about: Description) -> dict:
    fields = _decoder(about, "phi3", partial=True)
    window = about.integer("attention.sliding_window", 0, low=0)
    original = about.integer("rope.scaling.original_context_length", fields["max_position_embeddings"])
    return fields | {"sliding_window": window or None, "original_max_position_embeddings": original}


def _phi2(about: Description) -> dict:
    return _decoder(about, "phi", epsilon="layer_norm_eps", partial=True)


def _starcoder2(about: Description) -> dict:
    fields = _decoder(about, "starcoder2", epsilon="norm_epsilon") | _biases(about, use_bias="attn_q.bias")
    return fields | {"sliding_window": about.integer("attention.sliding_window", 0, low=0) or None}


def _stablelm(about: Description) -> dict:
    fields = _decoder(about, "stablelm", epsilon="layer_norm_eps", partial=True)
    return fields | _biases(about, use_qkv_bias="attn_q.bias") | {
        "use_parallel_residual": not about.in_any_layer("ffn_norm.weight")}  # fmt: skip


def _nemotron(about: Description) -> dict:
    return _decoder(about, "nemotron", epsilon="norm_eps", partial=True) | _biases(
        about, attention_bias="attn_q.bias", mlp_bias="ffn_up.bias")  # fmt: skip


def _gpt2(about: Description) -> dict:
    return {
        "model_type": "gpt2", "n_embd": about.integer("embedding_length"), "n_layer": about.num_layers,
        "n_head": about.same("attention.head_count"), "n_positions": about.shape("position_embd.weight")[0],
        "n_inner": about.same("feed_forward_length"),
        "layer_norm_epsilon": about.number("attention.layer_norm_epsilon"),
    }  # fmt: skip


def _bloom(about: Description) -> dict:
    return {
        "model_type": "bloom", "hidden_size": about.integer("embedding_length"), "n_layer": about.num_layers,
        "n_head": about.same("attention.head_count"), "seq_length": about.integer("context_length"),
        "layer_norm_epsilon": about.number("attention.layer_norm_epsilon"),
    }  # fmt: skip


def _falcon(about: Description) -> dict:
    heads, groups = about.same("attention.head_count"), about.same("attention.head_count_kv", 1)
    second = about.in_any_layer("attn_norm_2.weight")
    return {
        "model_type": "falcon", "hidden_size": about.integer("embedding_length"),
        "num_hidden_layers": about.num_layers, "num_attention_heads": heads, "num_kv_heads": groups,
        "max_position_embeddings": about.integer("context_length"),
        "ffn_hidden_size": about.same("feed_forward_length"),
        "layer_norm_epsilon": about.number("attention.layer_norm_epsilon"),
        "rope_parameters": rope_parameters(about, about.integer("embedding_length") // heads),
        "new_decoder_architecture": second or 1 < groups < heads, "multi_query": groups == 1,
        "num_ln_in_parallel_attn": 2 if second else 1, "parallel_attn": True, "alibi": False,
        "bias": about.in_any_layer("attn_qkv.bias"),
    }  # fmt: skip


def _lfm2(about: Description) -> dict:
    heads = about.metadata.integers(about.key("attention.head_count_kv"), about.num_layers)
    if not any(heads):
        raise about.fail("attention.head_count_kv", "0 in all layers", "must be above 0 in those that attend")
    rope = {"rope_type": "default", "rope_theta": about.number("rope.freq_base")}
    return {
        "model_type": "lfm2", "hidden_size": about.integer("embedding_length"), "num_hidden_layers": about.num_layers,
        "max_position_embeddings": about.integer("context_length"),
        "intermediate_size": about.same("feed_forward_length"),
        "block_auto_adjust_ff_dim": False, "num_attention_heads": about.same("attention.head_count"),
        "num_key_value_heads": max(heads), "layer_types": ["full_attention" if n else "conv" for n in heads],
        "norm_eps": about.number("attention.layer_norm_rms_epsilon"),
        "conv_L_cache": about.integer("shortconv.l_cache"),
        "conv_bias": about.in_any_layer("shortconv.in_proj.bias"), "rope_parameters": rope,
    }  # fmt: skip


def _granite(about: Description, model_type: str = "granite") -> dict:
    scales = {
        "attention_multiplier": about.number("attention.scale", about.head_dim**-0.5),
        "embedding_multiplier": about.number("embedding_scale", 1.0),
        "residual_multiplier": about.number("residual_scale", 1.0),
        "logits_scaling": about.number("logit_scale", 1.0),
    }
    biases = _biases(about, attention_bias="attn_q.bias")
    return _decoder(about, model_type) | scales | biases


def _granitemoe(about: Description) -> dict:
    return _granite(about, "granitemoe") | _experts(about, "num_local_experts")


def _olmo(about: Description) -> dict:
    clip = about.number("attention.clamp_kqv") if about.has("attention.clamp_kqv") else None
    fields = _decoder(about, "olmo", epsilon="layer_norm_eps")
    del fields["layer_norm_eps"]
    return fields | {"clip_qkv": clip}


def _olmo2(about: Description) -> dict:
    if about.has("attention.sliding_window"):
        raise about.fail("attention.sliding_window", about.integer("attention.sliding_window"), "must be absent: "
                         "Olmo 3 is not read from GGUF; export its Hugging Face checkpoint")  # fmt: skip
    return _decoder(about, "olmo2")


def _olmoe(about: Description) -> dict:
    return _decoder(about, "olmoe") | _experts(about)


def _cohere(about: Description) -> dict:
    fields = _decoder(about, "cohere", epsilon="layer_norm_eps")
    return fields | _biases(about, use_qk_norm="attn_q_norm.weight", attention_bias="attn_q.bias") | {
        "logit_scale": about.number("logit_scale")}  # fmt: skip


def _cohere2(about: Description) -> dict:
    fields = _decoder(about, "cohere2", epsilon="layer_norm_eps")
    return fields | _biases(about, attention_bias="attn_q.bias") | {
        "logit_scale": about.number("logit_scale"), "sliding_window": about.integer("attention.sliding_window"),
        "layer_types": about.layer_types(4)}  # fmt: skip


def _gpt_oss(about: Description) -> dict:
    size = _expert_size(about)
    rope = rope_parameters(about, about.head_dim)
    return _sizes(about) | _experts(about, "num_local_experts") | {
        "model_type": "gpt_oss", "head_dim": about.head_dim, "intermediate_size": size,
        "rms_norm_eps": about.number("attention.layer_norm_rms_epsilon"),
        "sliding_window": about.integer("attention.sliding_window"),
        "rope_parameters": rope | ({"truncate": False} if rope["rope_type"] == "yarn" else {}),
    }  # fmt: skip


def _biased(model_type: str, **fields: str) -> Callable[[Description], dict]:
    return lambda about: _decoder(about, model_type) | _biases(about, **fields)


# general.architecture -> how its config is made
CONFIGS: dict[str, Callable[[Description], dict]] = {
    "arcee": _biased("arcee", attention_bias="attn_q.bias", mlp_bias="ffn_up.bias"),
    "bloom": _bloom,
    "cohere2": _cohere2,
    "command-r": _cohere,
    "ernie4_5": _biased("ernie4_5", use_bias="attn_q.bias"),
    "falcon": _falcon,
    "gemma": lambda about: _decoder(about, "gemma"),
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gpt-oss": _gpt_oss,
    "gpt2": _gpt2,
    "granite": _granite,
    "granitemoe": _granitemoe,
    "lfm2": _lfm2,
    "llama": _llama,
    "nemotron": _nemotron,
    "olmo": _olmo,
    "olmo2": _olmo2,
    "olmoe": _olmoe,
    "phi2": _phi2,
    "phi3": _phi3,
    "qwen2": lambda about: _decoder(about, "qwen2"),
    "qwen2moe": _qwen2moe,
    "qwen3": _biased("qwen3", attention_bias="attn_q.bias"),
    "qwen3moe": _qwen3moe,
    "seed_oss": _biased("seed_oss", attention_bias="attn_q.bias", attention_out_bias="attn_output.bias"),
    "smollm3": _biased("smollm3", attention_bias="attn_q.bias"),
    "stablelm": _stablelm,
    "starcoder2": _starcoder2,
}
