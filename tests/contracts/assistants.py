"""Tiny checkpoints with an assistant beside them, and what transformers' class guesses."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from llm_export.capture.assistants import all_layers_shared
from tests.contracts.architectures import find, randomize, tiny_model

# Model types, whose assistants choose tokens by centroids where the name says so.
NAMES = ("gemma4_text", "gemma4_text-ordered", "gemma4_unified_text")


def save_with_assistant(name: str, folder: Path, seed: int = 0) -> None:
    """Writes a model and its assistant, both of random weights, into `folder`/model and `folder`/assistant.

    Both look at the last token more than at others, so that some guesses are right.
    """
    model_type, _, variant = name.partition("-")
    model = tiny_model(find(model_type), seed)
    _quieten(model)
    model.save_pretrained(folder / "model")
    text = deepcopy(model.config.to_dict()) | {
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "num_kv_shared_layers": 3,
    }
    if "per_layer_config" in text:  # by the number of the layer
        own = model.config.per_layer_config[model.config.layer_types.index("full_attention")]
        text["per_layer_config"] = {2: {"head_dim": own.head_dim, "num_key_value_heads": own.num_key_value_heads}}
    config = AutoConfig.for_model(
        model_type.replace("_text", "_assistant"),
        text_config=text,
        backbone_hidden_size=model.config.hidden_size,
        use_ordered_embeddings=variant == "ordered",
        num_centroids=16,
        centroid_intermediate_top_k=4,
    )
    assistant = _build(config)
    randomize(assistant, seed + 1)
    _quieten(assistant)
    with torch.no_grad():
        assistant.pre_projection.weight.mul_(0.05)[:, : model.config.hidden_size].fill_diagonal_(1.0)
        assistant.model.norm.weight.copy_(model.model.norm.weight)
        assistant.lm_head.weight.copy_(model.lm_head.weight)
    if assistant.masked_embedding is not None:
        order = torch.randperm(config.text_config.vocab_size, generator=torch.Generator().manual_seed(seed))
        assistant.masked_embedding.token_ordering.copy_(order)
        rows = assistant.lm_head.weight.detach()[order].unflatten(0, (config.num_centroids, -1))
        assistant.masked_embedding.centroids.weight.data.copy_(rows.mean(1))
    assistant.save_pretrained(folder / "assistant")


@torch.no_grad()
def _quieten(model: torch.nn.Module) -> None:
    """Makes what layers add to a token's embedding smaller."""
    for name, value in model.named_parameters():
        if name.endswith(("post_attention_layernorm.weight", "post_feedforward_layernorm.weight", "input_norm.weight")):
            value.mul_(0.2)
        if name.endswith("layer_scalar"):
            value.fill_(1.0)


def _build(config):
    with all_layers_shared(config.text_config):
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()


class Reference:
    """transformers' model and assistant, eager, as `generate(assistant_model=...)` applies them."""

    def __init__(self, folder: Path):
        load = {"attn_implementation": "eager", "dtype": torch.float32}
        self.model = AutoModelForCausalLM.from_pretrained(folder / "model", **load).eval()
        # transformers 5.23 keeps none of a model whose own layers share none.
        own = [each for each in self.model.modules() if getattr(each, "is_kv_shared_layer", None) is False]
        for attention in {each.layer_type: each for each in own}.values():
            attention.store_full_length_kv = True
        with all_layers_shared(AutoConfig.from_pretrained(folder / "assistant").text_config):
            self.assistant = AutoModelForCausalLM.from_pretrained(folder / "assistant", **load).eval()

    @torch.no_grad()
    def guesses(self, ids: list[int], count: int) -> list[Tensor]:
        """Returns the logits, [vocab_size], of `count` guesses behind `ids`, each made of the one before."""
        text = torch.tensor([ids])
        computed = self.model(
            text[:, :-1], output_hidden_states=True, return_shared_kv_states=True, use_cache=False
        )
        token, state, logits = text[:, -1:], computed.hidden_states[-1][:, -1:], []
        for _ in range(count):
            guess = self.assistant(
                inputs_embeds=torch.cat([self.model.get_input_embeddings()(token), state], dim=-1),
                position_ids=torch.tensor([[len(ids) - 1]]),
                attention_mask=torch.ones_like(text),
                shared_kv_states=computed.shared_kv_states,
            )
            token, state = guess.logits.argmax(-1), guess.last_hidden_state
            logits.append(guess.logits[0, -1])
        return logits
