"""Tiny checkpoints with a head for multi-token prediction, under the names that their makers give its tensors."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.modeling_layers import MtpModel

from llm_export.capture.draft_heads import DraftHead
from tests.contracts.architectures import find, randomize, tiny_model

# As Qwen has them, else behind the layers of the model, as DeepSeek has them.
BESIDE = ("qwen3_5_text", "qwen3_next")
NAMES = (*BESIDE, "deepseek_v3", "glm4_moe")

QWEN = {
    r"^layers\.0\.eh_proj\.": "fc.",
    r"^layers\.0\.enorm\.": "pre_fc_norm_embedding.",
    r"^layers\.0\.hnorm\.": "pre_fc_norm_hidden.",
    r"^layers\.0\.post_norm\.": "norm.",
    r"\.mtp_block\.": ".",
    r"^": "mtp.",
}
DEEPSEEK = {r"\.post_norm\.": ".shared_head.norm.", r"\.mtp_block\.": ".", r"^layers\.0\.": "model.layers.{}."}


def save_with_head(name: str, folder: Path, seed: int = 0) -> None:
    """Writes the checkpoint of a row of tests/contracts/architectures with a head of random weights."""
    model = tiny_model(find(name), seed)
    model.save_pretrained(folder)
    head = DraftHead(model).own
    randomize(head, seed + 1)
    tensors = load_file(folder / "model.safetensors")
    for key, value in _split_experts(head.state_dict()).items():
        for pattern, replacement in (QWEN if name in BESIDE else DEEPSEEK).items():
            key = re.sub(pattern, replacement.format(model.config.num_hidden_layers), key)
        tensors[key] = value.contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def _split_experts(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Checkpoints have the matrices of each expert, transformers stacks of them."""
    parts: dict[str, Tensor] = {}
    for key, value in state.items():
        stem, _, leaf = key.rpartition(".")
        if leaf not in ("gate_up_proj", "down_proj") or value.dim() != 3:
            parts[key] = value
            continue
        for index, expert in enumerate(value):
            names = ("gate_proj", "up_proj") if leaf == "gate_up_proj" else ("down_proj",)
            for part, matrix in zip(names, expert.chunk(len(names)), strict=True):
                parts[f"{stem}.{index}.{part}.weight"] = matrix
    return parts


class Reference:
    """transformers' model and head, eager, as `generate(use_mtp=True)` loads them."""

    def __init__(self, folder: Path):
        model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
        self.model, config = model.eval(), model.config
        # transformers knows the places of released sizes, and of Qwen's heads only their names.
        places = [r"^mtp\.", rf"^model\.layers\.{config.num_hidden_layers}\."]
        self.model._keys_to_ignore_on_load_unexpected = places
        config.num_mtp_layers = 1
        if hasattr(config, "layer_types"):
            config.mtp_layer_types = ["full_attention"]
        self.head = MtpModel.from_pretrained(self.model).eval()

    @torch.no_grad()
    def guesses(self, ids: list[int], count: int) -> list[Tensor]:
        """Returns the logits, [vocab_size], of `count` guesses behind `ids`, each made of the one before."""
        text = torch.tensor([ids])
        states = self.model(text[:, :-1], output_hidden_states=True, use_cache=False).hidden_states[-1]
        tokens, logits = text[:, 1:], []
        for _ in range(count):
            positions = torch.arange(1, tokens.shape[1] + 1)[None]
            own = self.head.forward_layer(0, states, positions, None, input_ids=tokens)
            logits.append(self.head._project_to_logits(own[:, -1])[0])
            tokens = torch.cat([tokens, logits[-1].argmax()[None, None]], dim=1)
            states = torch.cat([states, own[:, -1:]], dim=1)
        return logits
