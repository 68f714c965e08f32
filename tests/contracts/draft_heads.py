"""Tiny checkpoints with a head for multi-token prediction, under the names that their makers give its tensors."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModelForCausalLM
from transformers.modeling_layers import MtpModel

from llm_export.capture.draft_heads import DraftHead
from tests.contracts.architectures import find, randomize, tiny_model

# As Qwen has them, else behind the layers of the model, as DeepSeek has them.
BESIDE = ("qwen3_5_text", "qwen3_next", "exaone_moe")
# Forms of names that transformers' MtpModel does not load.
FORMS = {
    "bailing_hybrid": {r"\.post_norm\.": ".final_layernorm.", r"\.mtp_block\.": "."},
    "hy_v3": {r"\.post_norm\.": ".final_layernorm.", r"\.mtp_block\.": "."},
    "mimo_v2_flash": {
        r"\.post_norm\.": ".final_layernorm.",
        r"\.mtp_block\.post_attention_layernorm\.": ".pre_mlp_layernorm.",
        r"\.mtp_block\.": ".",
        r"^": "model.mtp.",
    },
    "nemotron_h": {  # a head is two blocks
        r"^layers\.0\.mtp_block\.blocks\.": "mtp.layers.",
        r"^layers\.0\.post_norm\.": "mtp.layers.1.final_layernorm.",
        r"^layers\.0\.": "mtp.layers.0.",
    },
}
NAMES = (*BESIDE[:2], "deepseek_v3", "glm4_moe", *FORMS, *BESIDE[2:])
# What their layers are, where it is not full attention with experts.
KINDS = {
    "bailing_hybrid": {"layer_types": "full_attention", "mlp_layer_types": "dense"},
    "exaone_moe": {"layer_types": "full_attention", "mlp_layer_types": "dense"},
    "mimo_v2_flash": {"layer_types": "sliding_attention", "mlp_layer_types": "dense"},
}
USUAL = {"layer_types": "full_attention", "mlp_layer_types": "sparse"}
HEAD = "head.safetensors"  # beside a checkpoint, a head as MtpModel has it
SEVERAL = {"deepseek_v3-3": 3, "glm4_moe-2": 2}  # heads, most of whose guesses are right

QWEN = {
    r"^layers\.0\.eh_proj\.": "fc.",
    r"^layers\.0\.enorm\.": "pre_fc_norm_embedding.",
    r"^layers\.0\.hnorm\.": "pre_fc_norm_hidden.",
    r"^layers\.0\.post_norm\.": "norm.",
    r"\.mtp_block\.": ".",
    r"^": "mtp.",
}
DEEPSEEK = {r"\.post_norm\.": ".shared_head.norm.", r"\.mtp_block\.": "."}


def save_with_head(name: str, folder: Path, seed: int = 0) -> None:
    """Writes the checkpoint of a row of tests/contracts/architectures with a head of random weights."""
    model = tiny_model(find(name.partition("-")[0]), seed)
    head = DraftHead(model, SEVERAL.get(name, 1), KINDS.get(name)).own
    randomize(head, seed + 1)
    if name in SEVERAL:
        _look_at_the_last_token(model, head)
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    renamings = FORMS.get(name, QWEN if name in BESIDE else DEEPSEEK)
    for key, value in _split_experts(head.state_dict()).items():
        for pattern, replacement in renamings.items():
            key = re.sub(pattern, replacement, key)
        if key.startswith("layers."):
            _, depth, rest = key.split(".", 2)
            key = f"model.layers.{model.config.num_hidden_layers + int(depth)}.{rest}"
        tensors[key] = value.contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    if name in FORMS:
        save_file({key: value.contiguous() for key, value in head.state_dict().items()}, folder / HEAD)


@torch.no_grad()
def _look_at_the_last_token(model: nn.Module, head: nn.Module) -> None:
    """The model chooses by the last token alone, and the layers of the head nearly so."""
    for name, value in model.named_parameters():
        if name.startswith("model.layers.") and name.endswith(("o_proj.weight", "down_proj", "down_proj.weight")):
            value.zero_()
    for layer in head.layers:
        layer.eh_proj.weight.mul_(0.02)[:, : model.config.hidden_size].fill_diagonal_(1.0)
        layer.enorm.weight.fill_(1.0)
        layer.post_norm.weight.copy_(model.model.norm.weight)
        for name, value in layer.mtp_block.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj", "down_proj.weight")):
                value.mul_(0.2)


def _split_experts(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Checkpoints have the matrices of each expert, transformers stacks of them."""
    parts: dict[str, Tensor] = {}
    for key, value in state.items():
        stem, _, leaf = key.rpartition(".")
        if leaf not in ("gate_up_proj", "up_proj", "down_proj") or value.dim() != 3:
            parts[key] = value
            continue
        for index, expert in enumerate(value):
            names = ("gate_proj", "up_proj") if leaf == "gate_up_proj" else (leaf,)
            for part, matrix in zip(names, expert.chunk(len(names)), strict=True):
                parts[f"{stem}.{index}.{part}.weight"] = matrix
    return parts


class _InTurn(nn.Module):
    def __init__(self, *blocks: nn.Module):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, hidden_states: Tensor, **others) -> Tensor:
        attention, experts = self.blocks
        return experts(attention(hidden_states, attention_mask=others["attention_mask"]))


class Reference:
    """transformers' model and head, eager, as `generate(use_mtp=True)` loads them."""

    def __init__(self, folder: Path, name: str = ""):
        model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
        self.model, config = model.eval(), model.config
        # transformers knows the places of released sizes, and of Qwen's heads only their names.
        count = SEVERAL.get(name, 1)
        behind = range(config.num_hidden_layers, config.num_hidden_layers + count)
        places = [r"^mtp\.", *(rf"^model\.layers\.{index}\." for index in behind)]
        self.model._keys_to_ignore_on_load_unexpected = places
        config.num_mtp_layers = count
        for field, usual in USUAL.items():
            if hasattr(config, field):
                setattr(config, f"mtp_{field}", [KINDS.get(name, USUAL).get(field, usual)] * count)
        if name in FORMS:
            if name == "nemotron_h":
                config.mtp_layer_types, config.rms_norm_eps = config.mtp_layers_block_type, config.layer_norm_epsilon
            self.head = MtpModel(self.model, count).eval()
            if name == "nemotron_h":
                layer = self.head.layers[0]
                layer.mtp_block = _InTurn(layer.mtp_block, type(layer.mtp_block)(self.head.config, 1)).eval()
            self.head.load_state_dict(load_file(folder / HEAD), strict=False)
        else:
            self.head = MtpModel.from_pretrained(self.model).eval()

    @torch.no_grad()
    def guesses(self, ids: list[int], count: int) -> list[Tensor]:
        """Returns the logits, [vocab_size], of `count` guesses behind `ids`, each made of the one before.

        Beyond those that its layers give, the last layer reads what it gave itself.
        """
        text = torch.tensor([ids])
        states = self.model(text[:, :-1], output_hidden_states=True, use_cache=False).hidden_states[-1]
        tokens = text[:, 1:]
        positions = torch.arange(1, tokens.shape[1] + 1)[None]
        guessed, given, _ = self.head(tokens, states, None, positions, None)
        last, logits = len(self.head.layers) - 1, list(given[0, :-1])
        tokens = torch.cat([tokens, guessed[:, :last]], dim=1)
        for depth in range(last):
            shifted = tokens[:, depth : depth + states.shape[1]]
            states = self.head.forward_layer(depth, states, positions + depth, None, input_ids=shifted)
        tokens = tokens[:, last:]
        while len(logits) < count:
            positions = torch.arange(1, tokens.shape[1] + 1)[None]
            own = self.head.forward_layer(last, states, positions, None, input_ids=tokens)
            logits.append(self.head._project_to_logits(own[:, -1])[0])
            tokens = torch.cat([tokens, logits[-1].argmax()[None, None]], dim=1)
            states = torch.cat([states, own[:, -1:]], dim=1)
        return logits[:count]
