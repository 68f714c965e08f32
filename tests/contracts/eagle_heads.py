"""Tiny checkpoints with an EAGLE-3 head beside them, and what such a head guesses by its description.

transformers has no class for them. Source: arXiv 2503.01840; speculators models/eagle3; SafeAILab/EAGLE cnets.py
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from tests.contracts.architectures import find, randomize, tiny_config

# In the form of speculators, as SGLang's tools write them, and with the layers that the authors take.
NAMES = ("qwen3-eagle3", "llama-eagle3", "qwen3_5_text-eagle3")
VOCAB, WIDTH = 128, 64
CONFIG = {
    "hidden_size": WIDTH, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "rms_norm_eps": 1e-5, "vocab_size": VOCAB, "max_position_embeddings": 64, "hidden_act": "silu",
}  # fmt: skip
AUTHORS = CONFIG | {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "num_hidden_layers": 1, "draft_vocab_size": 96,
    "rope_theta": 500000.0, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]},
}  # fmt: skip
SPECULATORS = {
    "architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "draft_vocab_size": 96,
    "norm_before_residual": True, "fc_norm": True, "norm_output": True, "eagle_aux_hidden_state_layer_ids": [3, 0, 2],
    "transformer_layer_config": CONFIG | {"model_type": "qwen3", "num_hidden_layers": 2},
}  # fmt: skip
USUAL = AUTHORS | {
    "eagle_config": {"use_aux_hidden_state": True}, "norm_before_fc": True,
    "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 16},
}  # fmt: skip
DYNAMIC = AUTHORS | {"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}, "max_position_embeddings": 16}
# Config of the head, layers of the model, those whose inputs the head reads.
FORMS = {
    "llama-eagle3": (AUTHORS, 4, (1, 2, 3)),
    "qwen3-eagle3": (SPECULATORS, 3, (3, 0, 2)),
    "qwen3_5_text-eagle3": (USUAL, 7, (2, 3, 4)),
    "llama-dynamic-eagle3": (DYNAMIC, 4, (1, 2, 3)),
}


def save_with_eagle(name: str, folder: Path, seed: int = 0) -> None:
    """Writes a model and its head into `folder`/model and `folder`/assistant."""
    fields, count, inputs = FORMS[name]
    config = tiny_config(find(name.partition("-")[0]))
    config.num_hidden_layers = count
    if hasattr(config, "layer_types"):
        config.layer_types = [config.layer_types[index % len(config.layer_types)] for index in range(count)]
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    randomize(model, seed)
    tensors = _random_tensors(fields, len(inputs), seed + 1)
    if fields is not USUAL:
        _count_up(model, tensors)
    if fields is SPECULATORS:
        tensors["embed_tokens.weight"] = model.get_input_embeddings().weight.detach().clone()
    model.save_pretrained(folder / "model")
    write_head(folder / "assistant", fields, tensors)


def write_head(folder: Path, fields: dict, tensors: dict[str, Tensor]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields))
    save_file({name: value.contiguous() for name, value in tensors.items()}, folder / "model.safetensors")


def _random_tensors(fields: dict, num_inputs: int, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    of_speculators = "transformer_layer_config" in fields
    inner = CONFIG["head_dim"]
    rows = {"q_proj": 4 * inner, "k_proj": 2 * inner, "v_proj": 2 * inner}
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (WIDTH, num_inputs * WIDTH), "norm.weight": (WIDTH,)}
    shapes["lm_head.weight"] = (fields["draft_vocab_size"], WIDTH)
    for index in range(2 if of_speculators else 1):
        prefix = f"layers.{index}." if of_speculators else "midlayer."
        for part, count in rows.items():
            shapes[f"{prefix}self_attn.{part}.weight"] = (count, WIDTH if index else 2 * WIDTH)
        shapes[f"{prefix}self_attn.o_proj.weight"] = (WIDTH, 4 * inner)
        shapes |= {f"{prefix}mlp.{part}.weight": (96, WIDTH) for part in ("gate_proj", "up_proj")}
        shapes[f"{prefix}mlp.down_proj.weight"] = (WIDTH, 96)
        norms = ["input_layernorm", "post_attention_layernorm", *([] if index else ["hidden_norm"])]
        shapes |= {f"{prefix}{norm}.weight": (WIDTH,) for norm in norms}
        if of_speculators:
            shapes |= {f"{prefix}self_attn.{norm}.weight": (inner,) for norm in ("q_norm", "k_norm")}
    if fields.get("fc_norm"):
        shapes |= {f"fc_norm.{index}.weight": (WIDTH,) for index in range(num_inputs)}
    if fields.get("norm_before_fc"):
        shapes["input_norm.weight"] = (num_inputs * WIDTH,)
        shapes["embed_tokens.weight"] = (VOCAB, WIDTH)
        shapes |= {f"midlayer.self_attn.{part}.bias": (count,) for part, count in rows.items()}
        shapes["midlayer.self_attn.o_proj.bias"] = (WIDTH,)
    tensors = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator)
        tensors[name] = noise * 0.8 / shape[-1] ** 0.5 if len(shape) > 1 else 1.0 + noise * 0.1
    if fields["draft_vocab_size"] != VOCAB:
        ids = torch.randperm(VOCAB, generator=generator)[: fields["draft_vocab_size"]].sort().values
        tensors["d2t"] = ids - torch.arange(len(ids))
        tensors["t2d"] = torch.zeros(VOCAB, dtype=torch.bool).index_fill(0, ids, True)
    return tensors


@torch.no_grad()
def _count_up(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Lets the model say the token behind the last, and the head the one behind that: its first guesses are right.

    Embeddings of neighbours lie a turn apart, and layers add little to them.
    """
    angles = torch.arange(VOCAB)[:, None] * torch.arange(1, WIDTH // 2 + 1) * (2 * math.pi / VOCAB)
    places = torch.cat([angles.cos(), angles.sin()], dim=-1)
    model.get_input_embeddings().weight.copy_(places)
    model.get_output_embeddings().weight.copy_(places.roll(1, 0))
    for name, value in (*model.named_parameters(), *tensors.items()):
        if name.endswith(("o_proj.weight", "down_proj.weight", "fc.weight")):
            value.mul_(0.1)
    tensors["fc.weight"][:, :WIDTH] += torch.eye(WIDTH)
    ids = torch.arange(len(tensors["d2t"])) + tensors["d2t"]
    tensors["lm_head.weight"] = places[(ids - 2) % VOCAB] + 0.1 * tensors["lm_head.weight"]


class Reference:
    """transformers' model, eager, and the head as it is described, over all positions for every guess."""

    def __init__(self, folder: Path):
        load = {"attn_implementation": "eager", "dtype": torch.float32}
        self.model = AutoModelForCausalLM.from_pretrained(folder / "model", **load).eval()
        fields = self.fields = json.loads((folder / "assistant/config.json").read_text())
        _, _, self.inputs = next(form for form in FORMS.values() if form[0] == fields)
        inner = fields.get("transformer_layer_config", fields)
        kept = (*CONFIG, "rope_theta", "rope_scaling")
        self.config = CONFIG_MAPPING["llama"](**{name: inner[name] for name in kept if name in inner})
        self.rope = LlamaRotaryEmbedding(self.config)
        tensors = load_file(folder / "assistant/model.safetensors")
        self.tensors = {name.replace("midlayer.", "layers.0."): value for name, value in tensors.items()}
        self.seen: dict[int, Tensor] = {}
        self.model.model.norm.register_forward_pre_hook(
            lambda module, args: self.seen.update({len(self.model.model.layers): args[0]})
        )

    def _norm(self, name: str, states: Tensor) -> Tensor:
        weight = self.tensors[f"{name}.weight"]
        return F.rms_norm(states, (states.shape[-1],), weight, self.config.rms_norm_eps)

    def _linear(self, name: str, states: Tensor) -> Tensor:
        return F.linear(states, self.tensors[f"{name}.weight"], self.tensors.get(f"{name}.bias"))

    def _attention(self, prefix: str, states: Tensor) -> Tensor:
        q, k, v = (
            self._linear(f"{prefix}.{part}", states).unflatten(-1, (-1, CONFIG["head_dim"])).transpose(1, 2)
            for part in ("q_proj", "k_proj", "v_proj")
        )
        if f"{prefix}.q_norm.weight" in self.tensors:
            q, k = self._norm(f"{prefix}.q_norm", q), self._norm(f"{prefix}.k_norm", k)
        cos, sin = self.rope(states, torch.arange(states.shape[1])[None])

        def turned(x: Tensor) -> Tensor:
            low, high = x.chunk(2, dim=-1)
            return x * cos[:, None] + torch.cat([-high, low], dim=-1) * sin[:, None]

        mixed = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        return self._linear(f"{prefix}.o_proj", mixed.transpose(1, 2).flatten(2))

    def _mlp(self, prefix: str, states: Tensor) -> Tensor:
        gate = F.silu(self._linear(f"{prefix}.gate_proj", states))
        return self._linear(f"{prefix}.down_proj", gate * self._linear(f"{prefix}.up_proj", states))

    def _head(self, tokens: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of all tokens at the last position, and hidden states that the next guess reads."""
        table = self.tensors.get("embed_tokens.weight", self.model.get_input_embeddings().weight)
        index = 0
        while f"layers.{index}.input_layernorm.weight" in self.tensors:
            at = f"layers.{index}"
            if index == 0:
                normed = self._norm(f"{at}.hidden_norm", states)
                states = normed if self.fields.get("norm_before_residual") else states
                inputs = torch.cat([self._norm(f"{at}.input_layernorm", table[tokens]), normed], dim=-1)
            else:
                inputs = self._norm(f"{at}.input_layernorm", states)
            states = states + self._attention(f"{at}.self_attn", inputs)
            states = states + self._mlp(f"{at}.mlp", self._norm(f"{at}.post_attention_layernorm", states))
            index += 1
        normed = self._norm("norm", states)
        logits = self._linear("lm_head", normed[0, -1])
        ids = torch.arange(len(logits)) + self.tensors.get("d2t", 0)
        spread = torch.full((VOCAB,), float("-inf")).index_copy(0, ids, logits)
        return spread, normed if self.fields.get("norm_output") else states

    @torch.no_grad()
    def guesses(self, ids: list[int], count: int) -> list[Tensor]:
        """Returns the logits, [vocab_size], of `count` guesses behind `ids`, each made of the one before."""
        text = torch.tensor([ids])
        hidden = self.model(text[:, :-1], output_hidden_states=True, use_cache=False).hidden_states
        read = [self.seen[index] if index in self.seen else hidden[index] for index in self.inputs]
        if self.fields.get("fc_norm"):
            read = [self._norm(f"fc_norm.{index}", value) for index, value in enumerate(read)]
        joined = torch.cat(read, dim=-1)
        states = self._linear("fc", self._norm("input_norm", joined) if self.fields.get("norm_before_fc") else joined)
        tokens, logits = text[:, 1:], []
        for _ in range(count):
            found, own = self._head(tokens, states)
            logits.append(found)
            tokens = torch.cat([tokens, found.argmax()[None, None]], dim=1)
            states = torch.cat([states, own[:, -1:]], dim=1)
        return logits


def draft_ids(folder: Path) -> set[int]:
    """Returns the tokens that a head can guess."""
    offsets = load_file(folder / "assistant/model.safetensors")["d2t"]
    return set((torch.arange(len(offsets)) + offsets).tolist())
