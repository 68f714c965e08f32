"""Scores by which modules choose the keys that a token attends to, which become `mote::indexer`.

transformers' indexers keep their keys in the cache (`update_indexer`), multiply queries with them, take what is
positive, sum it over heads with weights and choose the best keys. While a module is traced, its keys are an object that
remembers what is done with it.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PretrainedConfig, PreTrainedModel

from llm_export.errors import UnsupportedError

LAYER = "indexed_attention"  # what configs call layers whose keys are chosen


@dataclass(frozen=True)
class IndexScores:
    """relu(q k) of heads, or its sum over heads with weights. Factors are part of q or of the weights."""

    context: object
    module: nn.Module
    keys: Tensor  # [1, T, D]
    queries: Tensor | None = None  # [1, T, H, D]
    positive: bool = False
    weights: Tensor | None = None  # [1, T, H]

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.matmul and isinstance(args[1], cls):
            return args[1]._multiplied(args[0])
        if function in (F.relu, torch.relu):
            return replace(args[0], positive=True)
        raise args[0]._refusal(getattr(function, "__name__", str(function)))

    def _refusal(self, what: str) -> UnsupportedError:
        text = f"{type(self.module).__name__} scores keys by '{what}', which mote::indexer does not offer"
        return UnsupportedError(self.context.model_type, text)

    def _multiplied(self, factor: Tensor) -> IndexScores:
        if self.queries is None:
            return replace(self, queries=factor)
        if not self.positive or self.weights is not None:
            raise self._refusal("matmul")
        return replace(self, weights=factor.squeeze(-2))

    def __mul__(self, factor: float) -> IndexScores:
        if not isinstance(factor, int | float) or factor <= 0 or self.queries is None:
            raise self._refusal("mul")
        return replace(self, queries=self.queries * factor)

    def __add__(self, mask: Tensor) -> IndexScores:
        if mask.numel() != 1:
            raise self._refusal("add")
        return self

    def transpose(self, *_) -> IndexScores:
        return self

    float = unsqueeze = squeeze = to = transpose
    __rmul__ = __mul__

    @property
    def shape(self) -> tuple[int, ...]:
        return (sys.maxsize,)  # as many keys as there are; what is more than the op takes stays its limit

    def topk(self, count: int, dim: int = -1, **_) -> SimpleNamespace:
        if self.weights is None or dim != -1:
            raise self._refusal("topk")
        q, k = self.queries.transpose(1, 2), self.keys.unsqueeze(1)
        return SimpleNamespace(indices=self.context.indexer(self.module, q, k, self.weights, topk=count).squeeze(2))


class _Keys:
    """What an indexer gets as cache."""

    def __init__(self, context, module: nn.Module):
        self._context, self._module = context, module

    def update_indexer(self, keys: Tensor, *_) -> IndexScores:
        return IndexScores(self._context, self._module, keys)


def chooses_keys(config: PretrainedConfig) -> bool:
    return LAYER in (getattr(config, "layer_types", None) or [])


def indexers(model: PreTrainedModel) -> list[nn.Module]:
    """Modules that keep keys of their own in the cache."""
    return [module for module in model.modules() if "update_indexer" in inspect.getsource(type(module).forward)]


@contextlib.contextmanager
def replaced(model: PreTrainedModel, context) -> Iterator[None]:
    """Inside, indexers of `model` call `mote::indexer`."""
    with contextlib.ExitStack() as stack:
        for module in indexers(model) if chooses_keys(model.config) else ():

            def give_keys(module, args, kwargs):
                return args, kwargs | {"past_key_values": _Keys(context, module)}

            stack.callback(module.register_forward_pre_hook(give_keys, with_kwargs=True).remove)
        yield
