"""Time and memory of `mote export` at the shapes of real models, on random weights.

    python benchmarks/export_memory.py --scratch FOLDER [--shape llama-3.2-1b] [--json]

Prints wall time, the peak of private (anonymous) memory, the peak resident set (mapped checkpoint pages included)
and file sizes.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import torch

SHAPES = {
    "llama-3.2-1b": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
        "vocab_size": 128256,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "hidden_act": "silu",
        "rope_theta": 500000.0, "bos_token_id": 128000, "eos_token_id": 128001,
        "rope_scaling": {
            "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
    },
    "qwen3-0.6b": {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "hidden_act": "silu",
        "rope_theta": 1000000.0, "bos_token_id": 151643, "eos_token_id": 151645,
    },
}  # fmt: skip
RANDOM_ELEMENTS = 1 << 22
SAMPLE_SECONDS = 0.02


def tensor_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the checkpoint's tensors."""
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}"
        for name, shape in {
            "self_attn.q_proj": (queries, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            "self_attn.o_proj": (hidden, queries),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }.items():
            shapes[f"{layer}.{name}.weight"] = shape
        if config["model_type"] == "qwen3":
            shapes |= {f"{layer}.self_attn.{name}_norm.weight": (head,) for name in "qk"}
    return shapes


def write_checkpoint(folder: Path, config: dict) -> None:
    """Writes config.json and model.safetensors with random bf16 weights, a block at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    header, end = {}, 0
    shapes = tensor_shapes(config)
    for name, shape in shapes.items():
        size = 2 * int(torch.Size(shape).numel())
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    noise = torch.randn(2 * RANDOM_ELEMENTS, generator=torch.Generator().manual_seed(0))
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for index, shape in enumerate(shapes.values()):
            _write_tensor(file, shape, noise.roll(7919 * index))
    (folder / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}, indent=2))


def _write_tensor(file, shape: tuple[int, ...], noise: torch.Tensor) -> None:
    left = int(torch.Size(shape).numel())
    values = 1 + 0.1 * noise if len(shape) == 1 else noise * shape[-1] ** -0.5
    data = values.to(torch.bfloat16).view(torch.uint8).numpy()
    while left > 0:
        count = min(left, noise.numel())
        file.write(data[: 2 * count])
        left -= count


def memory_of(process_id: int) -> tuple[int, int]:
    """Returns anonymous bytes now, and the peak resident bytes so far."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = {line.split(":")[0]: line.split() for line in lines}
    return tuple(int(fields[name][1]) * 1024 if name in fields else 0 for name in ("RssAnon", "VmHWM"))


def cpu_seconds() -> float:
    """Returns the processor time of finished child processes: what a busy machine does not stretch."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(folder: Path, output: Path, arguments: list[str]) -> dict:
    """Runs one export in a process of its own."""
    command = [sys.executable, "-m", "llm_export.cli", "export", str(folder), "-o", str(output), *arguments]
    started, cpu_before = time.perf_counter(), cpu_seconds()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    private = resident = 0
    while process.poll() is None:
        anonymous, high_water = memory_of(process.pid)
        private, resident = max(private, anonymous), max(resident, high_water)
        time.sleep(SAMPLE_SECONDS)
    text = process.stdout.read()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}\n{text}")
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(cpu_seconds() - cpu_before, 1),
        "peak_private_bytes": private,
        "peak_resident_bytes": resident,
        "checkpoint_bytes": (folder / "model.safetensors").stat().st_size,
        "file_bytes": output.stat().st_size,
        "output": text.strip(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for checkpoints and files (about 4 GB)")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="default: all")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--keep", action="store_true", help="leave the checkpoints for the next run")
    parser.add_argument("arguments", nargs="*", help="passed on to mote export, behind --")
    options = parser.parse_args()
    rows = {}
    for shape in options.shape or SHAPES:
        folder, output = options.scratch / shape, options.scratch / f"{shape}.mote"
        if not (folder / "config.json").exists():
            write_checkpoint(folder, SHAPES[shape])
        rows[shape] = measure(folder, output, options.arguments)
        output.unlink()
        if not options.keep:
            shutil.rmtree(folder)
    print(json.dumps(rows, indent=2) if options.json else table(rows))


def table(rows: dict[str, dict]) -> str:
    lines = [f"{'shape':14} {'seconds':>8} {'CPU s':>7} {'private':>9} {'resident':>9} {'checkpoint':>11} {'file':>9}"]
    for shape, row in rows.items():
        sizes = (row[f"{key}_bytes"] / 1e9 for key in ("peak_private", "peak_resident", "checkpoint", "file"))
        private, resident, checkpoint, file = (f"{size:.2f} GB" for size in sizes)
        times = f"{row['seconds']:8.1f} {row['cpu_seconds']:7.1f}"
        lines.append(f"{shape:14} {times} {private:>9} {resident:>9} {checkpoint:>11} {file:>9}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
