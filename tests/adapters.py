"""Random adapters as PEFT writes them, and what PEFT computes with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")


def eager_model(checkpoint: Path):
    return AutoModelForCausalLM.from_pretrained(checkpoint, attn_implementation="eager", dtype=torch.float32).eval()


@torch.no_grad()
def save_lora(
    checkpoint: Path, folder: Path, *, targets=ATTENTION + MLP, seed: int = 0, dtype=torch.float32, **config
) -> Path:
    """Writes a PEFT folder with random matrices that change the text of a tiny checkpoint. Returns the folder."""
    torch.manual_seed(seed)
    config = {"r": 4, "lora_alpha": 12} | config
    model = get_peft_model(
        eager_model(checkpoint), LoraConfig(task_type="CAUSAL_LM", target_modules=list(targets), **config)
    )
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "lora_A" in name or "lora_B" in name:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.15)
            parameter.data = parameter.data.to(dtype)
        elif "lora_magnitude_vector" in name:
            parameter.mul_(1 + 0.2 * torch.rand(parameter.shape, generator=generator))
    model.save_pretrained(folder)
    return folder


@torch.no_grad()
def peft_logits(checkpoint: Path, mix: dict[Path, float], ids: list[int]) -> np.ndarray:
    """Returns float32 [T, vocab_size] of the eager module with adapters, each scaled by its weight."""
    model = eager_model(checkpoint)
    for number, folder in enumerate(mix):
        if number == 0:
            model = PeftModel.from_pretrained(model, folder, adapter_name="0", torch_dtype=torch.float32)
        else:
            model.load_adapter(folder, adapter_name=str(number))
    for module in model.modules():
        scaling = getattr(module, "scaling", None)
        for number, weight in enumerate(mix.values()):
            if isinstance(scaling, dict) and str(number) in scaling:
                scaling[str(number)] *= weight
    if mix:
        model.base_model.set_adapter([str(number) for number in range(len(mix))])
    return model.eval().float()(torch.tensor([ids]), use_cache=False).logits[0].numpy()
