"""llama.cpp through llama-cpp-python's low-level API, weights in GGUF."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import hybrids
from benchmarks.peers import Peer, llama_cpp_hybrids, tiles, worker
from benchmarks.peers.llama_cpp_names import LINEARS, NORMS

PEER = Peer(
    name="llama.cpp",
    module=__name__,
    requirements=("llama-cpp-python==0.3.36", "gguf==0.19.0", "numpy"),
    distribution="llama-cpp-python",
    conversion="Q4_0, embedding and head included, repacked at load, without AMX",
    head="4 bits, groups of 32",
    cache="float16",
    avx2={"CMAKE_ARGS": "-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"},
)
FILE = "model.gguf"
EVERY_LAYER = 999
# Of which GGUF spells the name in another way.
ARCHITECTURES = {"qwen3_moe": "qwen3moe"} | llama_cpp_hybrids.ARCHITECTURES
WITH_HEAD = ("olmoe",)  # which llama.cpp runs with a head of its own only
EMBEDDING = "model.embed_tokens.weight"
EXPERT = ".mlp.experts."
STACKS = {"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps"}


def convert(checkpoint: Path, folder: Path) -> None:
    import gguf

    from benchmarks.peers.checkpoint import Checkpoint

    source = Checkpoint(checkpoint)
    kind = source.config["model_type"]
    writer = gguf.GGUFWriter(folder / FILE, ARCHITECTURES.get(kind, kind), use_temp_file=True)
    _add_metadata(writer, source.config)
    for name in source.names():
        if hybrids.is_hybrid(source.config):
            for gguf_name, tensor in llama_cpp_hybrids.tensors(source.config, name, source.tensor(name)).items():
                _add_tensor(writer, gguf_name, tensor)
        elif EXPERT not in name:
            _add_tensor(writer, _gguf_name(name), source.paired(name))
        elif f"{EXPERT}0." in name:
            _add_experts(writer, source, name)
        if kind in WITH_HEAD and name == EMBEDDING:
            _add_tensor(writer, "output.weight", source.paired(name))
    if source.config.get("rope_scaling"):
        writer.add_tensor("rope_freqs.weight", _rope_factors(source.config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_metadata(writer, config: dict) -> None:
    import gguf

    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    if hybrids.is_hybrid(config):
        writer.add_head_count_kv(llama_cpp_hybrids.key_value_heads(config))
        llama_cpp_hybrids.add_metadata(writer, config)
    else:
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_rope_dimension_count(config["head_dim"])
        writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    if "num_experts" in config:
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config.get("moe_intermediate_size", config["intermediate_size"]))
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)


def _gguf_name(name: str) -> str:
    if name == EMBEDDING:
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, index, rest = name.split(".", 3)
    return f"blk.{index}.{(NORMS | LINEARS)[rest.removesuffix('.weight')]}.weight"


def _add_tensor(writer, name: str, tensor) -> None:
    import gguf

    is_linear = tensor.ndim == 2 and llama_cpp_hybrids.is_linear(name) and not name.endswith("ffn_gate_inp.weight")
    if not is_linear:
        writer.add_tensor(name, tensor)
        return
    kind = gguf.GGMLQuantizationType.Q4_0
    writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)


def _add_experts(writer, source, first: str) -> None:
    """first: a matrix of the first expert, whose place in the file is that of all experts' such matrices."""
    import gguf
    import numpy as np

    layer, rest = first.split(f"{EXPERT}0.")
    kind = gguf.GGMLQuantizationType.Q4_0
    names = [f"{layer}{EXPERT}{expert}.{rest}" for expert in range(source.config["num_experts"])]
    stack = np.stack([gguf.quants.quantize(source.tensor(name), kind) for name in names])
    name = STACKS[rest.removesuffix(".weight")]
    writer.add_tensor(f"blk.{layer.split('.')[2]}.{name}.weight", stack, raw_dtype=kind)


def _rope_factors(config: dict):
    """What each frequency of the llama3 scaling is divided by, float32 [head_dim / 2].

    Source: transformers modeling_rope_utils.py, rope type llama3
    """
    import numpy as np

    scaling, dim = config["rope_scaling"], config["head_dim"]
    wavelengths = 2 * np.pi * config["rope_theta"] ** (np.arange(0, dim, 2) / dim)
    turns = scaling["original_max_position_embeddings"] / wavelengths
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / scaling["factor"] + smooth)).astype(np.float32)


class LlamaCpp:
    def __init__(self, path: Path, threads: int, context_length: int, on_gpu: bool = False):
        import llama_cpp

        # Compiled by gcc 12, its AMX kernels end in an illegal instruction.
        tiles.refuse()
        self._api = llama_cpp
        llama_cpp.llama_backend_init()
        if on_gpu and not llama_cpp.llama_supports_gpu_offload():
            raise RuntimeError("llama.cpp finds no GPU")
        loading = llama_cpp.llama_model_default_params()
        loading.n_gpu_layers = EVERY_LAYER if on_gpu else 0
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), loading)
        if not self._model:
            raise RuntimeError(f"{path}: llama.cpp does not load it")
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = context_length
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.no_perf = True
        self._context = llama_cpp.llama_init_from_model(self._model, parameters)
        if not self._context:
            raise RuntimeError(f"{path}: llama.cpp opens no context")
        self._vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))

    def _next(self, ids: list[int]) -> int:
        import numpy as np

        tokens = (self._api.llama_token * len(ids))(*ids)
        status = self._api.llama_decode(self._context, self._api.llama_batch_get_one(tokens, len(ids)))
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status}")
        logits = self._api.llama_get_logits_ith(self._context, -1)
        return int(np.ctypeslib.as_array(logits, (self._vocab_size,)).argmax())

    def generate(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        self._api.llama_memory_clear(self._api.llama_get_memory(self._context), True)
        ids, times, pending = [], [], prompt
        for _ in range(count):
            ids.append(self._next(pending))
            times.append(time.perf_counter())
            pending = ids[-1:]
        return ids, times


def load(folder: Path, threads: int, context_length: int) -> LlamaCpp:
    return LlamaCpp(folder / FILE, threads, context_length)


if __name__ == "__main__":
    worker.main(convert, load)
