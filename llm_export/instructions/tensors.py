"""Creation, joining and indexing."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from llm_export.instructions import dims
from llm_export.instructions.builder import MethodBuilder
from llm_export.instructions.pointwise import binary, choose, operand, result_dtype
from llm_export.instructions.registry import Arguments, axis, lowers
from llm_export.instructions.views import unsqueeze_at
from llm_export.program.instructions import Dim


def full(b: MethodBuilder, node: Node, value: Any) -> int:
    """Makes a tensor of which every element is `value`, a number that is known at export."""
    if isinstance(value, Node):
        raise b.unsupported("a tensor filled with a symbolic number")
    return b.emit("aten.full", [], dims.shape_of(node.meta["val"]), result_dtype(node),
    size=dims.shape_of(node.meta["val"]),
                  value=float(value))  # fmt: skip


@lowers("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def lower_full(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return full(b, node, a["fill_value"])


@lowers("aten.fill.Scalar")
def fill(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return full(b, node, a["value"])


@lowers("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default", "aten.empty.memory_format",
        "aten.empty_like.default", "aten.new_empty.default", "aten.zero.default")  # fmt: skip
def zeros(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return full(b, node, 0)


@lowers("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return full(b, node, 1)


@lowers("aten.scalar_tensor.default")
def scalar_tensor(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return operand(b, a["s"], result_dtype(node)) if not isinstance(a["s"], Node) else full(b, node, a["s"])


@lowers("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(b: MethodBuilder, node: Node, a: Arguments) -> int:
    bounds = [a.get("start", 0), a["end"], a.get("step", 1)]
    if any(isinstance(bound, float) for bound in bounds):
        raise b.unsupported("arange over fractions")
    start, end, step = (b.dim(bound) for bound in bounds)
    out = b.emit("aten.arange", [], dims.shape_of(node.meta["val"]), torch.int64, start=start, end=end, step=step)
    return b.cast(out, result_dtype(node))


@lowers("aten.constant_pad_nd.default", "aten.pad.default")
def pad(b: MethodBuilder, node: Node, a: Arguments) -> int:
    if a.get("mode", "constant") != "constant":
        raise b.unsupported(f"padding of mode {a['mode']}")
    x, amounts = b.tensor(a["self"]), [b.dim(amount) for amount in a["pad"]]
    if any(amount.tokens == 0 and amount.constant < 0 for amount in amounts):
        x, amounts = crop(b, x, amounts)
    if all(amount == dims.ZERO for amount in amounts):
        return x
    shape = list(b.shape(x))
    for i, amount in enumerate(amounts):
        dim = len(shape) - 1 - i // 2
        shape[dim] = dims.add(shape[dim], amount)
    value = float(a["value"] or 0)
    return b.emit("aten.constant_pad_nd", [x], shape, b.dtype(x), pad=amounts, value=value)


def crop(b: MethodBuilder, x: int, amounts: list[Dim]) -> tuple[int, list[Dim]]:
    """Turns negative padding into slices."""
    for i in range(0, len(amounts), 2):
        dim = b.rank(x) - 1 - i // 2
        before, after = (
            amount if amount.tokens == 0 and amount.constant < 0 else dims.ZERO for amount in amounts[i : i + 2]
        )
        x = b.slice(x, dim, dims.scale(before, -1), dims.add(b.shape(x)[dim], after))
    return x, [dims.ZERO if amount.tokens == 0 and amount.constant < 0 else amount for amount in amounts]


@lowers("aten.tril.default", "aten.triu.default")
def triangle(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    return b.emit("aten." + node.target._schema.name[6:], [x], b.shape(x), b.dtype(x), diagonal=b.dim(a["diagonal"]))


def concatenate(b: MethodBuilder, parts: list[int], dim: int) -> int:
    size = dims.ZERO
    for part in parts:
        size = dims.add(size, b.shape(part)[dim])
    shape = [size if i == dim else other for i, other in enumerate(b.shape(parts[0]))]
    return b.emit("aten.cat", parts, shape, b.dtype(parts[0]), dim=dim)


@lowers("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(b: MethodBuilder, node: Node, a: Arguments) -> int:
    tensors = [x for x in a["tensors"] if x.meta["val"].dim() > 1 or x.meta["val"].shape[0] != 0]
    parts = [operand(b, x, result_dtype(node)) for x in tensors]
    return parts[0] if len(parts) == 1 else concatenate(b, parts, axis(a["dim"], b.rank(parts[0])))


@lowers("aten.stack.default")
def stack(b: MethodBuilder, node: Node, a: Arguments) -> int:
    parts = [operand(b, x, result_dtype(node)) for x in a["tensors"]]
    dim = axis(a["dim"], b.rank(parts[0]) + 1)
    return concatenate(b, [unsqueeze_at(b, part, dim) for part in parts], dim)


@lowers("aten.roll.default")
def roll(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    if not a["dims"]:
        raise b.unsupported("roll over all elements")
    for shift, dim in zip(a["shifts"], a["dims"], strict=True):
        dim = axis(dim, b.rank(x))
        size = b.shape(x)[dim]
        if size.tokens == 0:
            shift %= size.constant
        if shift == 0:
            continue
        cut = dims.constant(-shift) if shift < 0 else dims.add(size, dims.constant(-shift))
        x = concatenate(b, [b.slice(x, dim, cut, size), b.slice(x, dim, dims.ZERO, cut)], dim)
    return x


@lowers("aten.repeat_interleave.self_int")
def repeat_interleave(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    if a["dim"] is None:
        x, dim = b.view(x, [dims.product(b.shape(x))]), 0
    else:
        dim = axis(a["dim"], b.rank(x))
    shape = dims.shape_of(node.meta["val"])
    return b.emit("aten.repeat_interleave", [x], shape, b.dtype(x), repeats=b.dim(a["repeats"]), dim=dim)


def index_along(b: MethodBuilder, x: int, index: int, dim: int) -> int:
    """x with dimension `dim` replaced by the dimensions of `index`; negative indices count from the end."""
    shape = b.shape(x)
    flat = b.view(b.cast(index, torch.int64), [dims.product(b.shape(index))])
    picked = b.emit(
        "aten.index_select", [x, flat], [*shape[:dim], *b.shape(flat), *shape[dim + 1 :]], b.dtype(x), dim=dim
    )
    return b.view(picked, [*shape[:dim], *b.shape(index), *shape[dim + 1 :]])


@lowers("aten.index.Tensor")
def index(b: MethodBuilder, node: Node, a: Arguments) -> int:
    given = [(dim, index) for dim, index in enumerate(a["indices"]) if index is not None]
    x = b.tensor(a["self"])
    if any(entry.meta["val"].dtype == torch.bool for _, entry in given):
        raise b.unsupported("indexing by a mask, whose result has a size that depends on the data")
    if len(given) == 1:
        dim, entry = given[0]
        return index_along(b, x, b.tensor(entry), dim)
    if [dim for dim, _ in given] != list(range(len(given))):
        raise b.unsupported("indexing by several tensors that do not start at the first dimension")
    return index_jointly(b, x, [b.cast(b.tensor(entry), torch.int64) for _, entry in given])


def index_jointly(b: MethodBuilder, x: int, indices: list[int]) -> int:
    """x[i, j, ..]: the leading dimensions are flattened, and the indices combined in the same way."""
    flat_index, sizes = indices[0], b.shape(x)[: len(indices)]
    for size, entry in zip(sizes[1:], indices[1:], strict=True):
        if size.tokens:
            raise b.unsupported("indexing by several tensors over the tokens")
        flat_index = binary(b, "add", binary(b, "mul", flat_index, b.number(size.constant, torch.int64)), entry)
    return index_along(b, b.view(x, [dims.product(sizes), *b.shape(x)[len(indices) :]]), flat_index, 0)


@lowers("aten.index_select.default")
def index_select(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    return index_along(b, x, b.tensor(a["index"]), axis(a["dim"], b.rank(x)))


@lowers("aten.embedding.default")
def embedding(b: MethodBuilder, node: Node, a: Arguments) -> int:
    """A lookup in a table that is computed; those in a stored table became mote.embedding in a pass."""
    return index_along(b, operand(b, a["weight"], torch.float32), b.tensor(a["indices"]), 0)


@lowers("aten.gather.default")
def gather(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x, index = b.tensor(a["self"]), b.tensor(a["index"])
    return b.emit("aten.gather", [x, index], b.shape(index), b.dtype(x), dim=axis(a["dim"], b.rank(x)))


@lowers("aten.scatter.src", "aten.scatter.value")
def scatter(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x, index = b.tensor(a["self"]), b.tensor(a["index"])
    source = operand(b, a.get("src", a.get("value")), b.dtype(x))
    source = b.expand(source, b.shape(index)) if "src" not in a else source
    return b.emit("aten.scatter", [x, index, source], b.shape(x), b.dtype(x), dim=axis(a["dim"], b.rank(x)))


@lowers("aten.one_hot.default")
def one_hot(b: MethodBuilder, node: Node, a: Arguments) -> int:
    index = b.tensor(a["self"])
    count = dims.dim_of(node.meta["val"].shape[-1])
    classes = b.emit("aten.arange", [], [count], torch.int64, start=0, end=count, step=1)
    equal = unsqueeze_at(b, index, b.rank(index))
    shape = dims.broadcast(b.shape(equal), b.shape(classes))
    return b.cast(b.emit("aten.eq", [equal, classes], shape, torch.bool), torch.int64)


@lowers("aten.copy.default")
def copy(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return b.expand(operand(b, a["src"], result_dtype(node)), dims.shape_of(node.meta["val"]))


@lowers("aten.slice_scatter.default", "aten.select_scatter.default")
def slice_scatter(b: MethodBuilder, node: Node, a: Arguments) -> int:
    """x with a range of one dimension replaced: what is before, the new part, and what is behind, joined."""
    x, part = b.tensor(a["self"]), operand(b, a["src"], result_dtype(node))
    dim = axis(a["dim"], b.rank(x))
    size = b.shape(x)[dim]
    if a.get("step", 1) != 1:
        return stepped_scatter(b, x, part, dim, a)
    if "select" in str(node.target):
        part = unsqueeze_at(b, part, dim)
    start = b.dim(a.get("index", a.get("start")) or 0)
    start = dims.add(size, start) if start.tokens == 0 and start.constant < 0 else start
    end = dims.add(start, b.shape(part)[dim])
    outer = [(dims.ZERO, start), (end, size)]
    before, behind = ([b.slice(x, dim, low, high)] if low != high else [] for low, high in outer)
    parts = [*before, part, *behind]
    return part if len(parts) == 1 else concatenate(b, parts, dim)


def stepped_scatter(b: MethodBuilder, x: int, part: int, dim: int, a: Arguments) -> int:
    """x with every step-th entry of one dimension replaced: each entry chooses between x and its entry of the part."""
    size, count = b.shape(x)[dim], b.shape(part)[dim]
    if size.tokens or count.tokens:
        raise b.unsupported("slice_scatter with a step over the tokens")
    offset = torch.arange(size.constant) - (a.get("start") or 0) % size.constant
    entry = torch.div(offset, a["step"], rounding_mode="floor")
    replaced = (offset % a["step"] == 0) & (entry >= 0) & (entry < count.constant)
    index = b.constant(entry.clamp(0, count.constant - 1))
    spread = b.emit("aten.index_select", [part, index], b.shape(x), b.dtype(x), dim=dim)
    condition = b.constant(replaced.reshape(-1, *[1] * (b.rank(x) - 1 - dim)))
    return choose(b, condition, spread, x)
