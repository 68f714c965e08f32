"""Quantisation: recipes decide the format of each weight; its numbers are made while the file is written."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from llm_export.capture.methods import Captured, Methods
from llm_export.program.formats import FORMATS, GROUP_SIZES
from llm_export.program.specs import StoredAs, StoredFormat, WeightSpec
from llm_export.quantize.recipes import (
    CHANNEL,
    INPUTS,
    KEEPING,
    SCHEMES,
    Override,
    Recipe,
    Scheme,
    check_overrides,
    describe,
)
from llm_export.quantize.uses import Use, expert_pairs, weight_uses

__all__ = ["Override", "QuantizationWarning", "Quantized", "Recipe", "quantize"]


class QuantizationWarning(UserWarning):
    """Names weights that a recipe could not treat as asked."""


@dataclass(frozen=True, kw_only=True)
class Quantized(Methods):
    """What `quantize` returns: the captured graph, and weights that have the formats in which they are stored."""

    recipe: str  # in words, for people who read the file


def quantize(
    captured: Captured,
    recipe: Recipe,
    overrides: Sequence[Override] = (),
    *,
    signed: bool = True,
    rotated: bool = True,
    stored_as: Callable[[str], StoredAs | None] = lambda name: None,
) -> Quantized:
    """Gives each weight its format; no weight is read.

    overrides: the last one that matches a weight counts
    stored_as: how the checkpoint stores a source of a weight
    signed, rotated: whether all that will run the program take negative multipliers and rotated inputs
    Errors: ArgumentError if an override matches nothing
    """
    uses = weight_uses(captured)
    check_overrides(overrides, [use.names for use in uses.values() if use.kind != "other"])
    changed: dict[tuple[str, ...], WeightSpec] = {}
    notes: dict[str, list[str]] = {}
    for spec in captured.weights.values():
        if spec.sources not in changed:
            stored = None if spec.sources[0] in captured.constants else stored_as(spec.sources[0])
            format = _with_format(spec, uses[spec.sources], recipe, overrides, notes, stored)
            if format.is_rotated and not rotated:
                format = replace(format, activations="int8")
            changed[spec.sources] = replace(format, signed=signed)
    for pair in expert_pairs(captured):
        rounding = {"float" if sources is None else changed[sources].activations for sources in pair}
        if len(rounding) > 1:  # the op rounds the inputs of both matrices alike
            changed |= {sources: replace(changed[sources], activations="float") for sources in pair if sources}
    for note, names in notes.items():
        warnings.warn(f"{note}: {_shorten(names)}", QuantizationWarning, stacklevel=2)
    return Quantized(
        captured.programs,
        captured.states,
        {name: changed[spec.sources] for name, spec in captured.weights.items()},
        captured.constants,
        captured.max_tokens,
        captured.model_type,
        recipe=describe(recipe, overrides),
    )


def _with_format(
    spec: WeightSpec,
    use: Use,
    recipe: Recipe,
    overrides: Sequence[Override],
    notes: dict[str, list[str]],
    stored: StoredAs | None,
) -> WeightSpec:
    name, wanted = recipe.name, recipe.group_size
    scheme = recipe.scheme(use.kind)
    for override in overrides:
        if use.kind != "other" and override.matches(use.names):
            name, wanted = override.scheme, override.group_size or recipe.group_size
            scheme = SCHEMES[name]
    if name in KEEPING and stored is not None and use.kind != "other":
        if stored.format is not None and stored.is_transposed == use.is_transposed:
            return _as_stored(spec, use, stored.format, scheme)
        scheme, wanted = _nearest(stored, scheme), 32
        note = f"stored as {stored.name}, which no tiles hold as it is: quantized a second time, to {scheme.bits} bits"
        notes.setdefault(note, []).append(spec.name)
    if scheme.bits == 0:
        # Nothing computes in float64; the other dtypes are kept.
        return replace(spec, dtype=torch.float32) if spec.dtype == torch.float64 else spec
    columns = use.in_features(spec.shape)
    per_channel = wanted == CHANNEL
    most = GROUP_SIZES[-1] if isinstance(wanted, str) else wanted
    group_size = max((size for size in GROUP_SIZES if size <= most and columns % size == 0), default=0)
    if group_size == 0:
        notes.setdefault(f"left unquantised, in_features is not a multiple of {GROUP_SIZES[0]}", []).append(spec.name)
        return spec
    if group_size != wanted and not per_channel:
        notes.setdefault(f"in_features is not a multiple of {wanted}, groups of {group_size}", []).append(spec.name)
    activations = _rounding(use, scheme)
    if activations == "int8":
        activations = INPUTS[recipe.inputs]
    return replace(spec, bits=scheme.bits, group_size=group_size, per_channel=per_channel, activations=activations)


def _as_stored(spec: WeightSpec, use: Use, format: StoredFormat, scheme: Scheme) -> WeightSpec:
    activations = _rounding(use, scheme)
    return replace(spec, bits=format.bits, group_size=format.group_size, scales=format.scales, activations=activations)


def _rounding(use: Use, scheme: Scheme) -> str:
    """How inputs are rounded: not those of matrices of heads, which are short, and whose errors meet a softmax."""
    return "float" if use.kind in ("embedding", "heads") else scheme.activations


def _nearest(stored: StoredAs, scheme: Scheme) -> Scheme:
    """What loses little of numbers that lie on another grid of so many bits."""
    return Scheme(min(math.ceil(stored.bits) + 2, max(FORMATS)), scheme.activations)


def _shorten(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"
