"""EAGLE-3 heads: layers that draft for a model from the hidden states of several of its layers.

The model's methods compute what the head reads of these, so that it has the contract of a head for multi-token
prediction. Source: arXiv 2503.01840; what forms there are, llm_export/checkpoint/eagle3.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PretrainedConfig, PreTrainedModel

from llm_export.capture.draft_heads import ATTRIBUTE
from llm_export.checkpoint import ASSISTANT_PREFIX, Checkpoint
from llm_export.checkpoint.eagle3 import own_name
from llm_export.checkpoint.weights import Renamed, WeightReader
from llm_export.errors import ArgumentError, UnsupportedError

EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"
# What heads have for their training, or what their configs say too; `d2t` is read as a table of token ids.
UNREAD = {"t2d", "d2t", "verifier_lm_head.weight", "verifier_norm.weight"}
COMPARED_ROWS = 4096


class EagleHead:
    """An EAGLE-3 head over the embeddings of its model, of which it becomes a submodule."""

    def __init__(self, model: PreTrainedModel, checkpoint: Checkpoint, own: PreTrainedModel):
        """own: its layers, with parameters on the meta device. Errors: ArgumentError if its model is another one"""
        self.model, self.source, self.said = model, checkpoint.assistant.source, checkpoint.assistant.eagle
        files = [name for name in checkpoint.weights.names() if name.startswith(ASSISTANT_PREFIX)]
        self._stored = {own_name(name.removeprefix(ASSISTANT_PREFIX)): name for name in files}
        self._shapes = {name: checkpoint.weights.shape(stored) for name, stored in self._stored.items()}
        self.layers = _decoder_layers(model)
        self.inputs = self._chosen_inputs()
        self.width = int(own.config.hidden_size)
        self.num_tokens = int(model.get_output_embeddings().weight.shape[0])
        self._check("vocab_size", own.config.vocab_size, "vocab_size", self.num_tokens)
        self.own = self._module(own)
        self._expected = {name: tuple(value.shape) for name, value in self.own.state_dict().items()}
        self._check_tensors()
        ids = self._token_ids(checkpoint.weights)
        if ids is not None:
            self.own.register_buffer("token_ids", ids, persistent=False)
        self._seen: dict[int, Tensor] = {}

    def _check(self, field: str, value: int, of_model: str, expected: int) -> None:
        if value != expected:
            raise ArgumentError(
                f"assistant = {self.source}: its {field} is {value}, the {of_model} of the model {expected}: must be "
                "an EAGLE-3 head of this model"
            )

    def _chosen_inputs(self) -> tuple[int, ...]:
        count = len(self.layers)
        inputs = self.said.inputs or (2, count // 2, count - 3)
        if min(inputs) < 0 or max(inputs) > count or len(set(inputs)) < len(inputs):
            names = ", ".join(map(str, inputs))
            raise ArgumentError(
                f"assistant = {self.source}: reads the hidden states in front of layers {names}, and the model has "
                f"{count} layers: must be an EAGLE-3 head of this model"
            )
        return inputs

    def _module(self, own: PreTrainedModel) -> nn.Module:
        """What the head has itself: the first of its layers reads an embedding and a hidden state, side by side."""
        config, has = own.config, self._shapes.keys()
        of_model = int(self.model.config.hidden_size)
        make_norm = partial(type(own.norm), eps=config.rms_norm_eps)
        module = nn.Module()
        module.fc = nn.Linear(len(self.inputs) * of_model, self.width, bias="fc.bias" in has)
        if self.said.norm_before_fc:
            module.input_norm = make_norm(len(self.inputs) * of_model)
        if self.said.fc_norm:
            module.fc_norm = nn.ModuleList(make_norm(of_model) for _ in self.inputs)
        module.layers, module.norm, module.rotary_emb = own.layers, own.norm, own.rotary_emb
        first = module.layers[0]
        first.hidden_norm = make_norm(self.width)
        for name in ("q_proj", "k_proj", "v_proj"):
            single = getattr(first.self_attn, name)
            double = nn.Linear(2 * self.width, single.out_features, bias=single.bias is not None)
            setattr(first.self_attn, name, double)
        shares_width = self.width == of_model
        if EMBEDDING in has or not shares_width:
            module.embed_tokens = nn.Embedding(self.num_tokens, self.width)
        if HEAD in has or not shares_width or self.said.draft_vocab_size != self.num_tokens:
            module.lm_head = nn.Linear(self.width, self.said.draft_vocab_size, bias=False)
        return module

    def _check_tensors(self) -> None:
        joint, wanted = self._shapes.get("fc.weight", ()), self._expected["fc.weight"][1]
        if len(joint) == 2 and joint[1] != wanted:
            raise ArgumentError(
                f"assistant = {self.source}: its fc.weight reads {joint[1]} numbers of a position, {len(self.inputs)} "
                f"hidden states of the model are {wanted}: must be an EAGLE-3 head of this model"
            )
        for name, shape in self._expected.items():
            found, shown = self._shapes.get(name), self._shown(name)
            if found is None:
                raise ArgumentError(f"assistant = {self.source}: lacks the tensor '{shown}' of an EAGLE-3 head")
            if found != shape:
                raise ArgumentError(
                    f"assistant = {self.source}: tensor '{shown}' has shape {list(found)}, but its config asks for "
                    f"{list(shape)}"
                )
        unknown = sorted(name for name in self._shapes.keys() - self._expected - UNREAD if "rotary_emb" not in name)
        if unknown:
            raise ArgumentError(
                f"assistant = {self.source}: tensor '{self._shown(unknown[0])}' has no place in an EAGLE-3 head of "
                f"layers as {self.said.layers.model_type} has them"
            )

    def _shown(self, name: str) -> str:
        """Returns the name that a tensor has, or would have, in its file."""
        is_authors = any(".midlayer." in stored for stored in self._stored.values())
        usual = name.replace("layers.0.", "midlayer.") if is_authors else name
        return self._stored.get(name, usual).removeprefix(ASSISTANT_PREFIX)

    def _token_ids(self, weights: WeightReader) -> Tensor | None:
        """Returns the tokens that its logits are of; None: all of them, in order."""
        count = self.said.draft_vocab_size
        if count == self.num_tokens:
            return None
        if "d2t" not in self._shapes:
            raise ArgumentError(
                f"assistant = {self.source}: its draft_vocab_size is {count} and it lacks the tensor 'd2t', which says "
                "what tokens these are"
            )
        offsets = weights.read(self._stored["d2t"])
        if offsets.is_floating_point() or offsets.is_complex() or tuple(offsets.shape) != (count,):
            raise ArgumentError(
                f"assistant = {self.source}: tensor 'd2t' is {str(offsets.dtype).removeprefix('torch.')} "
                f"{list(offsets.shape)}: must be integers, [{count}]"
            )
        places = torch.arange(count)
        outside = (offsets < -places) | (offsets >= self.num_tokens - places)
        if bool(outside.any()):
            place = int(outside.nonzero()[0])
            raise ArgumentError(
                f"assistant = {self.source}: d2t[{place}] = {int(offsets[place])} means token "
                f"{place + int(offsets[place])}: must be one of 0..{self.num_tokens - 1}"
            )
        return places + offsets.long()

    def rename(self, name: str) -> Renamed | None:
        """Returns what a tensor of the checkpoint is in the model; None: it is none of the head's."""
        own = own_name(name.removeprefix(ASSISTANT_PREFIX))
        if not name.startswith(ASSISTANT_PREFIX) or own not in self._expected:
            return None
        return f"{ATTRIBUTE}.{own}", None, None

    def attach(self) -> None:
        for index in self.inputs:
            if index < len(self.layers):
                self.layers[index].register_forward_pre_hook(partial(self._note_input, index), with_kwargs=True)
            else:
                self.layers[-1].register_forward_hook(partial(self._note_output, index))
        setattr(self.model, ATTRIBUTE, self.own.eval().requires_grad_(False))

    def _note_input(self, index: int, layer: nn.Module, args: tuple, kwargs: dict) -> None:
        self._seen[index] = args[0] if args else kwargs.get("hidden_states")

    def _note_output(self, index: int, layer: nn.Module, args: tuple, output: Tensor | tuple | list) -> None:
        self._seen[index] = output if isinstance(output, Tensor) else output[0]

    def share(self, weights: WeightReader) -> None:
        """Takes the model's embeddings where its own are the same. Cost: reads both

        weights: that know the model. Heads are trained on these, so a checkpoint that has them quantized has them.
        """
        table = getattr(self.own, "embed_tokens", None)
        of_model = self.model.get_input_embeddings().weight
        if table is None or table.weight.shape != of_model.shape:
            return
        name = next(name for name, value in self.model.named_parameters() if value is of_model)
        if weights.stored_as(name) is not None or _are_equal(weights, name, f"{ATTRIBUTE}.{EMBEDDING}"):
            self.own.embed_tokens = None

    @property
    def forwards(self) -> list[Callable]:
        """Returns what becomes a method each."""
        return [self.forward]

    def reads(self, last: Tensor) -> Tensor:
        """Returns what it reads of a call of the model, [1, T, width]. last: hidden states behind the last layer"""
        states = [self._seen.get(index) for index in self.inputs]
        for index, value in zip(self.inputs, states, strict=True):
            if value is None or value.dim() != 3 or value.shape[-1] != self.model.config.hidden_size:
                found = "none" if value is None else list(value.shape)
                what = f"its hidden states at layer {index} are {found}, and an EAGLE-3 head reads [1, T, hidden_size]"
                raise UnsupportedError(self.model.config.model_type, what, "Export it without the assistant")
        self._seen.clear()
        if self.said.fc_norm:
            states = [norm(value) for norm, value in zip(self.own.fc_norm, states, strict=True)]
        joined = torch.cat(states, dim=-1)
        return self.own.fc(self.own.input_norm(joined) if self.said.norm_before_fc else joined)

    def forward(self, input_ids: Tensor, position_ids: Tensor, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits and hidden states of the last position.

        input_ids: int64 [1, T], the token behind each position; hidden_states: [1, T, width], of each position
        """
        own = self.own
        table = getattr(own, "embed_tokens", None) or self.model.get_input_embeddings()
        tokens = F.embedding(input_ids, table.weight)  # as they are stored: some models scale what they look up
        turns = own.rotary_emb(hidden_states, position_ids)
        states = self._first_layer(tokens, hidden_states, turns)
        for layer in own.layers[1:]:
            states = layer(states, attention_mask=None, position_ids=position_ids, position_embeddings=turns)
        states = states[:, -1:]
        normed = own.norm(states)
        logits = (getattr(own, "lm_head", None) or self.model.get_output_embeddings())(normed)
        return self._of_all_tokens(logits), normed if self.said.norm_output else states

    def _first_layer(self, tokens: Tensor, states: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        layer = self.own.layers[0]
        normed = layer.hidden_norm(states)
        states = normed if self.said.norm_before_residual else states
        both = torch.cat([layer.input_layernorm(tokens), normed], dim=-1)
        states = states + layer.self_attn(hidden_states=both, attention_mask=None, position_embeddings=turns)[0]
        return states + layer.mlp(layer.post_attention_layernorm(states))

    def _of_all_tokens(self, logits: Tensor) -> Tensor:
        """logits: [1, 1, draft_vocab_size]. Returns: [1, 1, vocab_size]; tokens that it never guesses have -inf"""
        ids = getattr(self.own, "token_ids", None)
        if ids is None:
            return logits
        others = logits.new_full((1, 1, 1), float("-inf")).expand(-1, -1, self.num_tokens)
        return others.scatter(-1, ids[None, None], logits)


def _decoder_layers(model: PreTrainedModel) -> nn.ModuleList:
    """Returns the layers of a model. Errors: UnsupportedError if it has no list of them"""
    # LongCat counts both halves of a layer as hidden layers.
    counts = {model.config.num_hidden_layers, getattr(model.config, "num_layers", None)}
    found = next((each for each in model.modules() if isinstance(each, nn.ModuleList) and len(each) in counts), None)
    if found is None:
        what = "it has no list of its hidden layers, whose hidden states an EAGLE-3 head reads"
        raise UnsupportedError(model.config.model_type, what, "Export it without the assistant")
    return found


def _are_equal(weights: WeightReader, one: str, other: str) -> bool:
    if weights.shape(one) != weights.shape(other):
        return False
    rows = weights.shape(one)[0]
    return all(
        torch.equal(
            weights.read_rows(one, start, min(start + COMPARED_ROWS, rows)).float(),
            weights.read_rows(other, start, min(start + COMPARED_ROWS, rows)).float(),
        )
        for start in range(0, rows, COMPARED_ROWS)
    )


def build(
    model: PreTrainedModel, checkpoint: Checkpoint, build_model: Callable[[PretrainedConfig, bool], PreTrainedModel]
) -> EagleHead | None:
    """Returns the EAGLE-3 head of a checkpoint, if it has one. Errors: ArgumentError if it is one of another model"""
    if checkpoint.assistant is None or checkpoint.assistant.eagle is None:
        return None
    return EagleHead(model, checkpoint, build_model(checkpoint.assistant.config, False))
