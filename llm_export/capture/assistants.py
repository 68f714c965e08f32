"""Assistants: checkpoints that draft for a model from its hidden states, keys and values.

An assistant has no keys and values of its own. Its layers attend to those of the model's last layer of the same kind,
from one position for all tokens that it guesses in a row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PretrainedConfig, PreTrainedModel

from llm_export.capture.draft_heads import ATTRIBUTE
from llm_export.checkpoint import ASSISTANT_PREFIX, Checkpoint
from llm_export.checkpoint.weights import Renamed
from llm_export.errors import ArgumentError

if TYPE_CHECKING:
    from llm_export.capture import CaptureContext

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


class Assistant:
    """An assistant over the embeddings and the caches of its model, of which it becomes a submodule."""

    def __init__(self, model: PreTrainedModel, checkpoint: Checkpoint, own: PreTrainedModel):
        """own: the assistant, with parameters on the meta device. Errors: ArgumentError if its model is another one"""
        self.model, self.own, self.source = model, own, checkpoint.assistant.source
        self.width = int(model.config.hidden_size)
        config = own.config
        self._check("backbone_hidden_size", config.backbone_hidden_size, "hidden_size", self.width)
        rows = int(model.get_output_embeddings().weight.shape[0])
        self._check("vocab_size", config.get_text_config().vocab_size, "vocab_size", rows)
        names = set(checkpoint.weights.names())
        own.model.embed_tokens = None  # it reads those of the model
        self._tied = f"{ASSISTANT_PREFIX}{HEAD}" not in names
        self._expected = set(own.state_dict())
        if own.masked_embedding is not None:
            own.masked_embedding.forward = _chosen_logits(own.masked_embedding)

    def _check(self, field: str, value: int, of_model: str, expected: int) -> None:
        if value != expected:
            raise ArgumentError(
                f"assistant = {self.source}: its {field} is {value}, the {of_model} of the model {expected}: must be "
                "an assistant of this model"
            )

    def rename(self, name: str) -> Renamed | None:
        """Returns what a tensor of the checkpoint is in the model; None: it is none of the assistant's."""
        own = name.removeprefix(ASSISTANT_PREFIX)
        if own == name:
            return None
        if self._tied and own == EMBEDDING:
            own = HEAD
        return (f"{ATTRIBUTE}.{own}", None, None) if own in self._expected else None

    def attach(self) -> None:
        setattr(self.model, ATTRIBUTE, self.own)

    def prepare(self, context: CaptureContext) -> None:
        """Finds the caches that its layers read, after the trace of the model. They keep what its windows see."""
        last = {}
        for index, state in enumerate(context.states):
            kind = getattr(self.model.get_submodule(state.name.partition("#")[0]), "layer_type", None)
            if state.kind == "kv_cache" and kind is not None:
                last[kind] = index
        self._context, self._caches = context, last
        for layer in self.own.model.layers:
            attention = layer.self_attn
            if attention.is_sliding:  # transformers counts the key at a distance of the window too
                attention.sliding_window += 1
            self._check_cache(attention)

    def _check_cache(self, attention: nn.Module) -> None:
        kind, states = attention.layer_type, self._context.states
        index = self._caches.get(kind)
        if index is None:
            raise ArgumentError(
                f"assistant = {self.source}: reads keys of layers of type '{kind}', of which the model has none: must "
                "be an assistant of this model"
            )
        state, layer = states[index], attention.config.per_layer_config[attention.layer_idx]
        self._check(f"head_dim of '{kind}'", layer.head_dim, "head_dim", state.head_dim)
        self._check(f"num_key_value_heads of '{kind}'", layer.num_key_value_heads, "heads", state.num_heads)
        if attention.is_sliding and state.window:
            states[index] = replace(state, window=max(state.window, attention.sliding_window))

    @property
    def forwards(self) -> list[Callable]:
        """Returns what becomes a method each."""
        return [self.forward]

    def reads(self, last: Tensor) -> Tensor:
        """Returns what it reads of a call of the model. last: hidden states behind the last layer"""
        return last

    def forward(self, input_ids: Tensor, position_ids: Tensor, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits and hidden states of each position.

        input_ids: int64 [1, T], the token behind each position; hidden_states: [1, T, hidden_size], of each position
        """
        tokens = self.model.get_input_embeddings()(input_ids)
        windows = {each.self_attn.layer_type: each.self_attn.sliding_window or 0 for each in self.own.model.layers}
        lent = {kind: self._context.lend(self._caches[kind], window) for kind, window in windows.items()}
        states = self.own.model(
            inputs_embeds=self.own.pre_projection(torch.cat([tokens, hidden_states], dim=-1)),
            attention_mask=dict.fromkeys(windows),
            position_ids=position_ids + 1,  # that of the token
            shared_kv_states=lent,
            logits_to_keep=None,  # every position
            use_cache=False,
        ).last_hidden_state
        choose = self.own.masked_embedding
        logits = self.own.lm_head(states) if choose is None else choose(states, self.own.lm_head.weight)
        return logits, self.own.post_projection(states)


def _chosen_logits(module: nn.Module):
    """What the class computes, of each position on its own: logits of tokens near the likeliest centroids."""

    def forward(states: Tensor, weight: Tensor) -> Tensor:
        _, nearest = torch.topk(module.centroids(states), module.centroid_intermediate_top_k, dim=-1)
        tokens = module.token_ordering.view(module.num_centroids, -1)[nearest].flatten(2)  # [1, T, N]
        scores = (F.embedding(tokens, weight) @ states.unsqueeze(-1)).squeeze(-1)
        others = scores.amin(-1, keepdim=True) - 1.0
        return others.expand(-1, -1, module.vocab_size).scatter(-1, tokens, scores)

    return forward


def build(
    model: PreTrainedModel, checkpoint: Checkpoint, build_model: Callable[[PretrainedConfig], PreTrainedModel]
) -> Assistant | None:
    """Returns the assistant of a checkpoint, if it has one. Errors: ArgumentError if it is one of another model"""
    if checkpoint.assistant is None or checkpoint.assistant.eagle is not None:
        return None
    config = checkpoint.assistant.config
    with all_layers_shared(config.get_text_config()):
        return Assistant(model, checkpoint, build_model(config))


@contextlib.contextmanager
def all_layers_shared(config: PretrainedConfig) -> Iterator[None]:
    """Inside, layers of an assistant can be built: transformers 5.23 wants one that keeps keys and values."""
    kind = type(config)
    original = kind.kv_sharing_modes

    def modes(self) -> list[str | None]:
        shared = self.num_kv_shared_layers == self.num_hidden_layers
        return ["reuse"] * self.num_hidden_layers if shared else original.fget(self)

    kind.kv_sharing_modes = property(modes)
    try:
        yield
    finally:
        kind.kv_sharing_modes = original
