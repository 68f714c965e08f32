"""ExecuTorch with the XNNPACK backend, exported by its own export_llm."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.peers import Peer, worker

PEER = Peer(
    name="executorch",
    module=__name__,
    requirements=("executorch==1.5.1", "torch==2.13.0"),
    distribution="executorch",
    conversion="export_llm, XNNPACK, 8da4w in groups of 32 (head too, stored apart), 4-bit embedding, custom SDPA",
    head="4 bits, groups of 32",
    cache="float32",
)
FILE = "model.pte"
CONTEXT_LENGTH = 1024
MODEL_CLASSES = {"llama": "llama3_2", "qwen3": "qwen3_0_6b"}
NAMES = {
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "self_attn.q_norm": "attention.q_norm_fn",
    "self_attn.k_norm": "attention.k_norm_fn",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


def convert(checkpoint: Path, folder: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    weights, parameters = folder / "weights.pth", folder / "params.json"
    _write_weights(checkpoint, weights)
    parameters.write_text(json.dumps(_parameters(config)))
    settings = {
        "base.model_class": MODEL_CLASSES[config["model_type"]],
        "base.checkpoint": weights,
        "base.params": parameters,
        "model.use_kv_cache": True,
        "model.use_sdpa_with_kv_cache": True,
        "model.dtype_override": "fp32",
        "quantization.qmode": "8da4w",
        "quantization.group_size": 32,
        "quantization.use_hqq": False,
        "quantization.embedding_quantize": "'4,32'",
        "backend.xnnpack.enabled": True,
        "backend.xnnpack.extended_ops": True,
        "export.max_seq_length": CONTEXT_LENGTH,
        "export.max_context_length": CONTEXT_LENGTH,
        "export.output_dir": folder,
        "export.output_name": FILE,
        "hydra.run.dir": folder,
    }
    command = [sys.executable, "-m", "executorch.extension.llm.export.export_llm"]
    # The file is written where the command runs, whatever output_dir says.
    worker.call(command + [f"{name}={value}" for name, value in settings.items()], folder)
    if not (folder / FILE).exists():
        raise SystemExit(f"export_llm ended well but wrote no {FILE}")
    weights.unlink()


def _parameters(config: dict) -> dict:
    """The model's sizes as ExecuTorch's params.json spells them."""
    qwen = config["model_type"] == "qwen3"
    return {
        "dim": config["hidden_size"],
        "hidden_dim": config["intermediate_size"],
        "head_dim": config["head_dim"],
        "n_heads": config["num_attention_heads"],
        "n_kv_heads": config["num_key_value_heads"],
        "n_layers": config["num_hidden_layers"],
        "norm_eps": config["rms_norm_eps"],
        "rope_theta": config["rope_theta"],
        "vocab_size": config["vocab_size"],
        "use_scaled_rope": not qwen,
        "use_hf_rope": qwen,
        "use_qk_norm": qwen,
        "qk_norm_before_rope": qwen,
    }


def _write_weights(checkpoint: Path, path: Path) -> None:
    import torch

    from benchmarks.peers.checkpoint import Checkpoint

    source = Checkpoint(checkpoint)
    state = {_name(name): torch.from_numpy(source.paired(name)).to(torch.bfloat16) for name in source.names()}
    state["output.weight"] = state["tok_embeddings.weight"]
    torch.save(state, path)


def _name(name: str) -> str:
    if name == "model.embed_tokens.weight":
        return "tok_embeddings.weight"
    if name == "model.norm.weight":
        return "norm.weight"
    _, _, index, rest = name.split(".", 3)
    return f"layers.{index}.{NAMES[rest.removesuffix('.weight')]}.weight"


class ExecuTorch:
    def __init__(self, path: Path, threads: int):
        import torch
        from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
        from executorch.extension.pybindings import portable_lib  # before the custom ops, which register with it
        from executorch.kernels import quantized  # noqa: F401

        portable_lib._unsafe_reset_threadpool(threads)
        self._torch = torch
        self._module = portable_lib._load_for_executorch(str(path))

    def _next(self, ids: list[int], position: int) -> int:
        inputs = (self._torch.tensor([ids]), self._torch.tensor([position]))
        return int(self._module.forward(inputs)[0].reshape(-1).argmax())

    def generate(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        ids, times, pending, position = [], [], prompt, 0
        for _ in range(count):
            ids.append(self._next(pending, position))
            times.append(time.perf_counter())
            position += len(pending)
            pending = ids[-1:]
        return ids, times


def load(folder: Path, threads: int, context_length: int) -> ExecuTorch:
    if context_length > CONTEXT_LENGTH:
        raise ValueError(f"{context_length} positions: the model was exported for {CONTEXT_LENGTH}")
    return ExecuTorch(folder / FILE, threads)


if __name__ == "__main__":
    worker.main(convert, load)
