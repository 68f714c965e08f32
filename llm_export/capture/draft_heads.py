"""Multi-token prediction: the layer that a checkpoint has beside its model, which predicts the token after the next.

transformers builds it for `generate(use_mtp=True)` from the model's own decoder layer; here it is found by the tensors
that the checkpoint has for it, whatever the type of the model.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from types import SimpleNamespace

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
from transformers.modeling_layers import MtpModel

from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.weights import Renamed, candidates
from llm_export.errors import UnsupportedError

ATTRIBUTE = "mtp"  # of the model, where the layer's parameters are
MARKS = ("eh_proj.weight", "mtp.fc.weight", "input_proj.weight")  # ends of names that every form has one of


class DraftHeadWarning(UserWarning):
    """Says why the heads of a checkpoint are left out."""


class DraftHead:
    """The first multi-token prediction layer of a checkpoint, over the embeddings and the head of its model.

    Its layer is a submodule of the model, so that parameters of both have the names that the checkpoint's reader knows.
    """

    def __init__(self, model: PreTrainedModel):
        self.model = model
        self.module = MtpModel(_main(model), 1)
        self.own = nn.Module()  # what the model does not have itself
        self.own.layers = self.module.layers
        if self.module.use_shared_post_norm:
            self.own.shared_post_norm = self.module.shared_post_norm
        self.width = int(model.config.hidden_size)
        self._expected = set(self.own.state_dict())
        self._places = (".mtp.", f".layers.{model.config.num_hidden_layers}.")
        mapping = [*_first_layer(model), *get_model_conversion_mapping(self.module, add_legacy=False)]
        mapping += get_model_conversion_mapping(model)
        self._renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        self._converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]

    def rename(self, name: str) -> Renamed | None:
        """Returns what a tensor of the checkpoint is in the model; None: it is none of the layer's."""
        if not any(part in f".{name}" for part in self._places):
            return None
        target, pattern = rename_source_key(name, self._renamings, self._converters)
        if target not in self._expected:
            return None
        converter = next((each for each in self._converters if pattern in each.source_patterns), None)
        return f"{ATTRIBUTE}.{target}", pattern, converter

    def missing(self, names: list[str]) -> list[str]:
        """Returns which of its parameters none of the checkpoint's tensors become."""
        tried = [self.rename(candidate) for name in names for candidate in candidates(name)]
        found = {renamed[0].removeprefix(f"{ATTRIBUTE}.") for renamed in tried if renamed is not None}
        return sorted(self._expected - found)

    def attach(self) -> None:
        setattr(self.model, ATTRIBUTE, self.own.eval().requires_grad_(False))

    def reads(self, last: Tensor) -> Tensor:
        """Returns what it reads of a call of the model. last: hidden states behind the last layer"""
        return last

    def forward(self, input_ids: Tensor, position_ids: Tensor, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits and hidden states of each position.

        input_ids: int64 [1, T], the token behind each position; hidden_states: [1, T, hidden_size], of each position
        """
        states = self.module.forward_layer(0, hidden_states, position_ids, None, input_ids=input_ids)
        return self.module._project_to_logits(states), states


def find(model: PreTrainedModel, checkpoint: Checkpoint) -> DraftHead | None:
    """Returns the draft head whose tensors the checkpoint has; None: it has none that Mote runs.

    model: with parameters on the meta device. Cost: no weight is read
    """
    names = list(checkpoint.weights.names())
    marked = [name for name in names if name.endswith(MARKS)]
    if not marked or not checkpoint.generates or not checkpoint.weights.takes_others():
        return None
    if checkpoint.without_head:
        _leave_out(marked[0], checkpoint.without_head)
        return None
    try:
        head = DraftHead(model)
    except Exception as error:  # classes that transformers builds no such layer for fail in many ways
        _leave_out(marked[0], f"transformers builds no such layer for '{model.config.model_type}' ({error})")
        return None
    if missing := head.missing(names):
        _leave_out(marked[0], f"the checkpoint has no tensor for its '{missing[0]}'")
        return None
    if any(all(head.rename(candidate) is None for candidate in candidates(name)) for name in marked):
        text = f"of {len(marked)} heads for multi-token prediction the first is exported, which drafts every token"
        warnings.warn(text, DraftHeadWarning, stacklevel=2)
    return head


def _leave_out(name: str, reason: str) -> None:
    text = f"exported without the head for multi-token prediction ('{name}'): {reason}"
    warnings.warn(text, DraftHeadWarning, stacklevel=3)


def leave_out(error: UnsupportedError) -> None:
    """Says that a head was found whose trace failed."""
    warnings.warn(f"exported without the head for multi-token prediction: {error}", DraftHeadWarning, stacklevel=2)


def _first_layer(model: PreTrainedModel) -> list[WeightRenaming]:
    """DeepSeek and GLM store the layer behind those of the model, as one more of them."""
    last = model.config.num_hidden_layers
    return [WeightRenaming(source_patterns=f"layers.{last}.", target_patterns="layers.0.mtp_block.")]


def _main(model: PreTrainedModel) -> SimpleNamespace:
    """What MtpModel asks its main model for, with a config that says what layers of the head are."""
    config = deepcopy(model.config)
    config.num_mtp_layers = 1
    for field, usual in (("layer_types", "full_attention"), ("mlp_layer_types", "sparse")):
        kinds = getattr(config, field, None)
        if kinds is not None and getattr(config, f"mtp_{field}", None) is None:
            setattr(config, f"mtp_{field}", [usual if usual in kinds else kinds[-1]])
    return SimpleNamespace(
        config=config,
        lm_head=model.get_output_embeddings(),
        get_decoder=model.get_decoder,
        get_input_embeddings=model.get_input_embeddings,
    )
