"""Multi-token prediction: layers that a checkpoint has beside its model, each of which predicts a token further on.

transformers builds them for `generate(use_mtp=True)` from the model's own decoder layer; here they are found by the
tensors that the checkpoint has for them, whatever the type of the model.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from functools import partial
from types import SimpleNamespace

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
from transformers.modeling_layers import MtpModel

from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.weights import Renamed, candidates
from llm_export.program.instructions import MTP

ATTRIBUTE = "mtp"  # of the model, where the layer's parameters are
MARKS = ("eh_proj.weight", "mtp.fc.weight", "input_proj.weight")  # ends of names that every form has one of


class DraftHeadWarning(UserWarning):
    """Says why the heads of a checkpoint are left out."""


class DraftHead:
    """The first multi-token prediction layers of a checkpoint, over the embeddings and the head of its model.

    They are submodules of the model, so that parameters of both have the names that the checkpoint's reader knows.
    """

    def __init__(self, model: PreTrainedModel, num_layers: int = 1):
        self.model = model
        self.module = MtpModel(_main(model, num_layers), num_layers)
        self.forwards = [partial(self.forward, depth=depth) for depth in range(num_layers)]
        self.own = nn.Module()  # what the model does not have itself
        self.own.layers = self.module.layers
        if self.module.use_shared_post_norm:
            self.own.shared_post_norm = self.module.shared_post_norm
        self.width = int(model.config.hidden_size)
        self._expected = set(self.own.state_dict())
        behind = range(model.config.num_hidden_layers, model.config.num_hidden_layers + num_layers)
        self._places = (".mtp.", *(f".layers.{index}." for index in behind))
        mapping = [*_behind_the_last(behind), *get_model_conversion_mapping(self.module, add_legacy=False)]
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

    def forward(
        self, input_ids: Tensor, position_ids: Tensor, hidden_states: Tensor, depth: int
    ) -> tuple[Tensor, Tensor]:
        """Returns logits and hidden states of each position.

        input_ids: int64 [1, T], the token `depth` + 1 behind each position; hidden_states: [1, T, hidden_size], of each
        position, by the model or the layer before
        """
        states = self.module.forward_layer(depth, hidden_states, position_ids, None, input_ids=input_ids)
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
    wanted = min(len(marked), len(MTP))
    try:
        head = DraftHead(model, wanted)
    except Exception as error:  # classes that transformers builds no such layer for fail in many ways
        _leave_out(marked[0], f"transformers builds no such layer for '{model.config.model_type}' ({error})")
        return None
    missing = head.missing(names)
    whole = next((i for i in range(wanted) if any(name.startswith(f"layers.{i}.") for name in missing)), wanted)
    if whole == 0 or (missing and whole == wanted):
        _leave_out(marked[0], f"the checkpoint has no tensor for its '{missing[0]}'")
        return None
    if whole < len(marked):
        text = f"of {len(marked)} heads for multi-token prediction the first {whole} are exported"
        warnings.warn(text, DraftHeadWarning, stacklevel=2)
    return head if whole == wanted else DraftHead(model, whole)


def _leave_out(name: str, reason: str) -> None:
    text = f"exported without the head for multi-token prediction ('{name}'): {reason}"
    warnings.warn(text, DraftHeadWarning, stacklevel=3)


def _behind_the_last(layers: range) -> list[WeightRenaming]:
    """DeepSeek and GLM store the layers behind those of the model, as more of them."""
    return [
        WeightRenaming(source_patterns=f"layers.{index}.", target_patterns=f"layers.{depth}.mtp_block.")
        for depth, index in enumerate(layers)
    ]


def _main(model: PreTrainedModel, num_layers: int) -> SimpleNamespace:
    """What MtpModel asks its main model for, with a config that says what layers of the head are."""
    config = deepcopy(model.config)
    config.num_mtp_layers = num_layers
    for field, usual in (("layer_types", "full_attention"), ("mlp_layer_types", "sparse")):
        kinds = getattr(config, field, None)
        if kinds is not None and getattr(config, f"mtp_{field}", None) is None:
            setattr(config, f"mtp_{field}", [usual if usual in kinds else kinds[-1]] * num_layers)
    return SimpleNamespace(
        config=config,
        lm_head=model.get_output_embeddings(),
        get_decoder=model.get_decoder,
        get_input_embeddings=model.get_input_embeddings,
    )
