"""Multi-token prediction: layers that a checkpoint has beside its model, each of which predicts a token further on.

transformers builds them for `generate(use_mtp=True)` from the model's own decoder layer; here they are found by the
tensors that the checkpoint has for them, whatever the type of the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from itertools import product
from types import SimpleNamespace

from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
from transformers.modeling_layers import MtpModel

from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.weights import Renamed, candidates
from llm_export.program.instructions import MTP

ATTRIBUTE = "mtp"  # of the model, where the layer's parameters are
MARKS = ("eh_proj.weight", "mtp.fc.weight", "input_proj.weight")  # ends of names that every form has one of
OTHERS = ("mtp.", "mtp_")  # starts of parts of names in forms that have none of them
# What forms of names call what transformers' `MtpLayer` has, beside those that transformers renames itself.
NAMES = {".final_layernorm.": ".post_norm.", ".pre_mlp_layernorm.": ".post_attention_layernorm."}
SHARED = ("embed_tokens.weight", "shared_head.head.weight", "rotary_emb.inv_freq")  # ends of names of the model's own
KINDS = {"layer_types": "full_attention", "mlp_layer_types": "sparse"}  # fields of configs, and what heads usually are


class DraftHeadWarning(UserWarning):
    """Says why the heads of a checkpoint are left out."""


class DraftHead:
    """The first multi-token prediction layers of a checkpoint, over the embeddings and the head of its model.

    They are submodules of the model, so that parameters of both have the names that the checkpoint's reader knows.
    """

    def __init__(self, model: PreTrainedModel, num_layers: int = 1, kinds: dict[str, str] | None = None):
        """kinds: of its layers, by the field of the config that says so; without, the usual ones"""
        self.model = model
        self.module = MtpModel(_main(model, num_layers, kinds or next(_kinds(model.config))), num_layers)
        blocks = _blocks(model.config)
        _stack_blocks(self.module, len(blocks))
        self.forwards = [partial(self.forward, depth=depth) for depth in range(num_layers)]
        self.own = nn.Module()  # what the model does not have itself
        self.own.layers = self.module.layers
        if self.module.use_shared_post_norm:
            self.own.shared_post_norm = self.module.shared_post_norm
        self.width = int(model.config.hidden_size)
        self._expected = set(self.own.state_dict())
        behind = range(model.config.num_hidden_layers, model.config.num_hidden_layers + num_layers)
        self._places = (".mtp.", *(f".layers.{index}." for index in behind))
        mapping = [WeightRenaming(source_patterns=name, target_patterns=own) for name, own in NAMES.items()]
        mapping += [*_by_blocks(num_layers, len(blocks)), *_behind_the_last(behind)]
        mapping += [*get_model_conversion_mapping(self.module, add_legacy=False)]
        mapping += get_model_conversion_mapping(model)
        self._renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        self._converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]

    def rename(self, name: str) -> Renamed | None:
        """Returns what a tensor of the checkpoint is in the model; None: it is none of the layer's."""
        if not self._is_placed(name):
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

    def left_over(self, names: list[str]) -> list[str]:
        """Returns which of the checkpoint's tensors lie where its own do, and have no place in it."""
        placed = (name for name in names if self._is_placed(name) and not name.endswith(SHARED))
        return [name for name in placed if all(self.rename(candidate) is None for candidate in candidates(name))]

    def _is_placed(self, name: str) -> bool:
        return any(part in f".{name}" for part in self._places)

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
    marked = marked or [name for name in names if any(part.startswith(OTHERS) for part in name.split("model."))][:1]
    if not marked or not checkpoint.generates or not checkpoint.weights.takes_others():
        return None
    if checkpoint.without_head:
        _leave_out(marked[0], checkpoint.without_head)
        return None
    wanted, reason = min(len(marked), len(MTP)), ""
    for kinds in _kinds(model.config):
        try:
            head = DraftHead(model, wanted, kinds)
        except Exception as error:  # classes that transformers builds no such layer for fail in many ways
            reason = reason or f"transformers builds no such layer for '{model.config.model_type}' ({error})"
            continue
        missing, others = head.missing(names), head.left_over(names)
        whole = next((i for i in range(wanted) if any(name.startswith(f"layers.{i}.") for name in missing)), wanted)
        if others and not missing:
            reason = reason or f"transformers' layer has no place for '{others[0]}'"
        elif whole == 0 or (missing and whole == wanted):
            reason = reason or f"the checkpoint has no tensor for its '{missing[0]}'"
        else:
            return _first(head, model, kinds, whole, len(marked))
    _leave_out(marked[0], reason)
    return None


def _first(head: DraftHead, model: PreTrainedModel, kinds: dict[str, str], whole: int, found: int) -> DraftHead:
    if whole < found:
        text = f"of {found} heads for multi-token prediction the first {whole} are exported"
        warnings.warn(text, DraftHeadWarning, stacklevel=3)
    return head if whole == len(head.forwards) else DraftHead(model, whole, kinds)


def _leave_out(name: str, reason: str) -> None:
    text = f"exported without the head for multi-token prediction ('{name}'): {reason}"
    warnings.warn(text, DraftHeadWarning, stacklevel=3)


def _behind_the_last(layers: range) -> list[WeightRenaming]:
    """DeepSeek and GLM store the layers behind those of the model, as more of them."""
    return [
        WeightRenaming(source_patterns=f"layers.{index}.", target_patterns=f"layers.{depth}.mtp_block.")
        for depth, index in enumerate(layers)
    ]


class _Blocks(nn.Module):
    """Blocks of one mixer each that are a layer together."""

    def __init__(self, blocks: list[nn.Module]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, hidden_states: Tensor, **others) -> Tensor:
        for block in self.blocks:
            hidden_states = block(hidden_states, **others)
        return hidden_states


def _blocks(config: PretrainedConfig) -> list[str]:
    """Returns the kinds of the blocks that make a layer of a head, where layers have one mixer each (Nemotron H)."""
    return list(getattr(config, "mtp_layers_block_type", None) or [])


def _stack_blocks(module: MtpModel, count: int) -> None:
    for depth, layer in enumerate(module.layers if count else []):
        kind = type(layer.mtp_block)
        layer.mtp_block = _Blocks([kind(module.config, depth * count + index) for index in range(count)])


def _by_blocks(num_layers: int, count: int) -> list[WeightRenaming]:
    """Nemotron H numbers the blocks of all its heads in a row."""
    renamings = []
    for index in range(num_layers * count):
        depth, block = divmod(index, count)
        places = {"norm": f"mtp_block.blocks.{block}.norm", "mixer": f"mtp_block.blocks.{block}.mixer"}
        for own in ("enorm", "hnorm", "eh_proj", "post_norm"):
            places[own] = own
        renamings += [
            WeightRenaming(rf"mtp\.layers\.{index}\.{name}\.", f"mtp.layers.{depth}.{place}.")
            for name, place in places.items()
        ]
    return renamings


def _kinds(config: PretrainedConfig) -> Iterator[dict[str, str]]:
    """Yields what layers of a head may be, by the field of the config that says so: the usual, then what the model has.

    Nothing is chosen where the config says it, or has no such field.
    """
    choices = []
    for field, usual in KINDS.items():
        found = getattr(config, field, None)
        if found is None or _blocks(config) or getattr(config, f"mtp_{field}", None) is not None:
            continue
        kinds = dict.fromkeys(reversed(found))
        choices.append([(field, kind) for kind in sorted(kinds, key=lambda kind, usual=usual: kind != usual)])
    return (dict(chosen) for chosen in product(*choices))


def _main(model: PreTrainedModel, num_layers: int, kinds: dict[str, str]) -> SimpleNamespace:
    """What MtpModel asks its main model for, with a config that says what layers of the head are."""
    config = deepcopy(model.config)
    config.num_mtp_layers = num_layers
    for field, kind in kinds.items():
        setattr(config, f"mtp_{field}", [kind] * num_layers)
    if blocks := _blocks(config):
        config.mtp_layer_types, config.rms_norm_eps = blocks * num_layers, config.layer_norm_epsilon
    return SimpleNamespace(
        config=config,
        lm_head=model.get_output_embeddings(),
        get_decoder=model.get_decoder,
        get_input_embeddings=model.get_input_embeddings,
    )
