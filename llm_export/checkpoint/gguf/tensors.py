"""Tensors of a GGUF file by the names and in the layouts of a Hugging Face state dict, made when they are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from llm_export.checkpoint.gguf import blocks, stored
from llm_export.checkpoint.gguf.arrange import Convert, Order, stored_rows_of
from llm_export.checkpoint.gguf.reader import GgufModel, StoredTensor
from llm_export.checkpoint.merged import gather_rows
from llm_export.errors import FileError
from llm_export.program.specs import StoredAs, StoredRows

# Hold what the config already says, or what llama.cpp reads and no Hugging Face module has.
IGNORED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


@dataclass(frozen=True)
class Names:
    """How an architecture's tensors are called in a state dict, and what was done to them.

    whole, layer: GGUF name without .weight or .bias -> name in the state dict
    prefix: what stands before the number of a layer
    orders, converts: by GGUF name as in `layer`
    merged: name in the state dict below a layer -> the tensors that become it, and how
    """

    whole: dict[str, str]
    layer: dict[str, str]
    prefix: str = "model.layers."
    orders: dict[str, Order] | None = None
    converts: dict[str, Convert] | None = None
    merged: dict[str, tuple[tuple[str, ...], Convert]] | None = None


@dataclass(frozen=True)
class _Mapped:
    sources: tuple[StoredTensor, ...]
    order: np.ndarray | None = None
    convert: Convert | None = None


@dataclass(frozen=True)
class ComputedRows:
    """A matrix of blocks, dequantized where it is indexed. order: the stored row of each row"""

    tensor: StoredTensor
    order: np.ndarray | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            return blocks.read_rows(self.tensor, start, stop, self.order)
        chosen = rows.numpy() if self.order is None else self.order[rows.numpy()]
        return blocks.read_rows(self.tensor, 0, len(chosen), chosen)


class GgufTensors:
    """The tensors of a file under a state dict's names. Thread safety: const."""

    kind = "metadata"  # what asks for tensors, in messages

    def __init__(self, model: GgufModel, names: Names, config):
        """Errors: FileError naming a tensor that the architecture does not have, or whose type is unknown"""
        self.place = model.path
        self._mapped: dict[str, _Mapped] = {}
        self._stored_as: dict[str, StoredAs | None] = {}  # whether exponents fit takes all bytes of a tensor to tell
        left = dict(model.tensors)
        for name in IGNORED:
            left.pop(name, None)
        for i in range(config.num_hidden_layers):
            self._map_merged(left, names, i)
        for name, tensor in left.items():
            self._map_one(name, tensor, names, config)
        for name, mapped in self._mapped.items():
            for tensor in mapped.sources:
                blocks.check_type(tensor)
            _check_convertible(name, mapped)

    def names(self) -> Iterable[str]:
        return self._mapped

    def needs_place(self, name: str) -> bool:
        return True  # it would change what the model computes

    def meta(self, name: str) -> Tensor:
        """Returns the tensor without its values."""
        mapped = self._mapped[name]
        metas = [torch.empty(t.shape, dtype=blocks.dtype(t), device="meta") for t in mapped.sources]
        return mapped.convert(metas) if mapped.convert else metas[0]

    def read(self, name: str) -> Tensor:
        mapped = self._mapped[name]
        if mapped.order is not None and len(mapped.sources[0].shape) == 1:  # a bias: its elements are the rows
            return blocks.read_rows(mapped.sources[0]).flatten()[torch.from_numpy(mapped.order)]
        parts = [blocks.read_rows(t, order=mapped.order).reshape(t.shape) for t in mapped.sources]
        return mapped.convert(parts) if mapped.convert else parts[0]

    def read_rows(self, name: str, start: int, stop: int) -> Tensor:
        """Returns rows start..stop-1 of dimension 0; dequantizes only those where no conversion is needed."""
        mapped = self._mapped[name]
        if mapped.convert or len(mapped.sources[0].shape) != 2:
            return self.read(name)[start:stop]
        return blocks.read_rows(mapped.sources[0], start, stop, mapped.order)

    def computed_rows(self, name: str) -> ComputedRows | None:
        mapped = self._mapped[name]
        tensor = mapped.sources[0]
        if mapped.convert or len(tensor.shape) != 2 or not blocks.is_quantized(tensor):
            return None
        return ComputedRows(tensor, mapped.order)

    def path(self, name: str) -> Path:
        return self._mapped[name].sources[0].path

    def stored_as(self, name: str) -> StoredAs | None:
        if name not in self._stored_as:
            self._stored_as[name] = self._describe(name)
        return self._stored_as[name]

    def _describe(self, name: str) -> StoredAs | None:
        mapped = self._mapped[name]
        tensor = mapped.sources[0]
        if not blocks.is_quantized(tensor):
            return None
        places, is_transposed = stored_rows_of(mapped.convert)
        formats = {stored.stored_format(source) for source in mapped.sources}
        found = formats.pop() if len(formats) == 1 and places is not None and len(tensor.shape) > 1 else None
        return StoredAs(tensor.type_name, blocks.bits_per_weight(tensor), found, is_transposed)

    def stored_rows(self, name: str, start: int, stop: int) -> StoredRows:
        mapped = self._mapped[name]
        places, _ = stored_rows_of(mapped.convert)
        each = sum(source.shape[-2] for source in mapped.sources)
        tensors, rows = places(np.arange(start, stop), each)

        def read(index: int, chosen: Tensor) -> StoredRows:
            order = chosen.numpy() if mapped.order is None else mapped.order[chosen.numpy()]
            return stored.stored_rows(mapped.sources[index], 0, len(order), order)

        return gather_rows(read, torch.from_numpy(tensors), torch.from_numpy(rows))

    def _map_merged(self, left: dict[str, StoredTensor], names: Names, layer: int) -> None:
        for target, (leaves, convert) in (names.merged or {}).items():
            sources = [f"blk.{layer}.{leaf}" for leaf in leaves]
            found = [left.pop(source) for source in sources if source in left]
            if len(found) == len(sources):
                self._mapped[f"{names.prefix}{layer}.{target}"] = _Mapped(tuple(found), None, convert)
            elif found:
                missing = next(source for source in sources if all(tensor.name != source for tensor in found))
                raise FileError(f"{self.place}: tensor '{missing}' is missing, but '{found[0].name}' is there. "
                                "Download the file again")  # fmt: skip

    def _map_one(self, name: str, tensor: StoredTensor, names: Names, config) -> None:
        leaf, dot, suffix = name.rpartition(".")
        leaf, suffix = (leaf, dot + suffix) if suffix in ("weight", "bias") else (name, "")
        target, key = names.whole.get(leaf), leaf
        block, _, rest = leaf.removeprefix("blk.").partition(".")
        if leaf.startswith("blk.") and block.isdecimal() and str(int(block)) == block:
            if int(block) >= config.num_hidden_layers:
                layers = config.num_hidden_layers
                raise FileError(f"{tensor.path}: tensor '{name}': must be of a layer below block_count = {layers}")
            target, key = names.layer.get(rest), rest
            target = target and f"{names.prefix}{block}.{target}"
        if target is None:
            known = ", ".join((*names.whole, *(f"blk.N.{leaf}" for leaf in names.layer)))
            raise FileError(
                f"{tensor.path}: tensor '{name}' is unknown for {config.model_type}, so that the model would not "
                f"compute what it should: must be one of {known}"
            )
        order = (names.orders or {}).get(key)
        convert = (names.converts or {}).get(key) if suffix != ".bias" else None
        self._mapped[target + suffix] = _Mapped((tensor,), order and _ordered(order, config, tensor), convert)


def _ordered(order: Order, config, tensor: StoredTensor) -> np.ndarray:
    rows = tensor.num_rows if len(tensor.shape) > 1 else tensor.shape[0]
    try:
        return order(config, rows)
    except ValueError as error:
        raise FileError(f"{tensor.path}: shape of tensor '{tensor.name}' = {list(tensor.shape)}: must be what head "
                        f"counts and lengths in the metadata make it ({error})") from error  # fmt: skip


def _check_convertible(name: str, mapped: _Mapped) -> None:
    if mapped.convert is None:
        return
    try:
        mapped.convert([torch.empty(t.shape, dtype=torch.float32, device="meta") for t in mapped.sources])
    except (RuntimeError, IndexError) as error:
        shapes = ", ".join(f"{list(t.shape)} of '{t.name}'" for t in mapped.sources)
        raise FileError(f"{mapped.sources[0].path}: shape {shapes}: cannot become '{name}'") from error
