"""Ops that only rename elements: views, and copies of a value."""

from __future__ import annotations

from torch.fx import Node

from llm_export.instructions import dims
from llm_export.instructions.builder import MethodBuilder, canonical_dtype
from llm_export.instructions.registry import Arguments, axes, axis, lowers
from llm_export.program.instructions import Dim


@lowers(
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.flatten.using_ints",
    "aten.unflatten.int", "aten.view_as.default", "aten.reshape_as.default",
)  # fmt: skip
def reshape(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return b.view(b.tensor(a["self"]), dims.shape_of(node.meta["val"]))


@lowers("aten.permute.default")
def permute(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    return b.permute(x, [axis(dim, b.rank(x)) for dim in a["dims"]])


@lowers("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    first, second = (axis(dim, b.rank(x)) for dim in list(a.values())[1:3])
    order = list(range(b.rank(x)))
    order[first], order[second] = second, first
    return b.permute(x, order)


@lowers("aten.t.default", "aten.numpy_T.default")
def reverse(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    return b.permute(x, list(reversed(range(b.rank(x)))))


@lowers("aten.movedim.int", "aten.movedim.intlist")
def movedim(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    sources, targets = (
        [axis(dim, b.rank(x)) for dim in ([a[key]] if isinstance(a[key], int) else a[key])]
        for key in ("source", "destination")
    )
    rest = iter(dim for dim in range(b.rank(x)) if dim not in sources)
    moved = dict(zip(targets, sources, strict=True))
    return b.permute(x, [moved[dim] if dim in moved else next(rest) for dim in range(b.rank(x))])


@lowers("aten.unsqueeze.default")
def unsqueeze(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    return unsqueeze_at(b, x, axis(a["dim"], b.rank(x) + 1))


def unsqueeze_at(b: MethodBuilder, x: int, dim: int) -> int:
    shape = [*b.shape(x)[:dim], dims.ONE, *b.shape(x)[dim:]]
    return b.emit_view("aten.unsqueeze", x, shape, lambda probe: probe.unsqueeze(dim), dim=dim)


@lowers("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default")
def squeeze(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    removed = [dim for dim in axes(a.get("dim"), b.rank(x)) if b.shape(x)[dim] == dims.ONE]
    if not removed:
        return x
    shape = [size for dim, size in enumerate(b.shape(x)) if dim not in removed]
    return b.emit_view("aten.squeeze", x, shape, lambda probe: probe.squeeze(tuple(removed)), dims=removed)


@lowers("aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default")
def expand(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return b.expand(b.tensor(a["self"]), dims.shape_of(node.meta["val"]))


@lowers("aten.slice.Tensor", "aten.narrow.default")
def slice_tensor(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    dim, step = axis(a["dim"], b.rank(x)), a.get("step", 1)
    start = b.dim(a["start"] or 0)
    if start.tokens == 0 and start.constant < 0:
        start = dims.add(b.shape(x)[dim], start)
    size = dims.dim_of(node.meta["val"].shape[dim])
    last = dims.add(dims.scale(size, step), dims.constant(1 - step))
    return b.slice(x, dim, start, dims.add(start, last), step)


@lowers("aten.select.int")
def select(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a["self"])
    dim, index = axis(a["dim"], b.rank(x)), b.dim(a["index"])
    if index.tokens == 0 and index.constant < 0:
        index = dims.add(b.shape(x)[dim], index)
    return select_at(b, x, dim, index)


def select_at(b: MethodBuilder, x: int, dim: int, index: Dim) -> int:
    shape = [size for i, size in enumerate(b.shape(x)) if i != dim]
    return b.emit_view("aten.select", x, shape, lambda probe: probe.select(dim, 0), dim=dim, index=index)


@lowers("aten.unbind.int")
def unbind(b: MethodBuilder, node: Node, a: Arguments) -> list[int]:
    x = b.tensor(a["self"])
    dim = axis(a["dim"], b.rank(x))
    return [select_at(b, x, dim, dims.constant(i)) for i in range(len(node.meta["val"]))]


@lowers(
    "aten.split.Tensor", "aten.split_with_sizes.default", "aten.split.sizes", "aten.chunk.default",
    "aten.split_with_sizes_copy.default", "aten.tensor_split.sections",
)  # fmt: skip
def split(b: MethodBuilder, node: Node, a: Arguments) -> list[int]:
    x = b.tensor(a["self"])
    dim, start, pieces = axis(a["dim"], b.rank(x)), dims.ZERO, []
    for piece in node.meta["val"]:
        end = dims.add(start, dims.dim_of(piece.shape[dim]))
        pieces.append(b.slice(x, dim, start, end))
        start = end
    return pieces


@lowers(
    "aten.alias.default", "aten.detach.default", "aten.detach_.default", "aten.lift_fresh_copy.default",
    "aten.view.dtype", "aten.dropout.default", "aten.contiguous.default", "aten.positive.default",
)  # fmt: skip
def same(b: MethodBuilder, node: Node, a: Arguments) -> int:
    x = b.tensor(a.get("self", a.get("input")))
    if canonical_dtype(node.meta["val"].dtype) != canonical_dtype(b.dtype(x)):
        raise b.unsupported("a view as another dtype")
    return x


@lowers("aten.clone.default")
def clone(b: MethodBuilder, node: Node, a: Arguments) -> int:
    """No copy: values are never written in place, and `view` copies by itself where it needs contiguous strides."""
    return b.tensor(a["self"])


@lowers("aten._to_copy.default", "aten.to.dtype", "aten.type_as.default", "aten._to_copy.out")
def to_copy(b: MethodBuilder, node: Node, a: Arguments) -> int:
    return b.cast(b.tensor(a["self"]), canonical_dtype(node.meta["val"].dtype))


@lowers("aten.repeat.default", "aten.tile.default")
def repeat(b: MethodBuilder, node: Node, a: Arguments) -> int:
    """Each repeated dimension becomes [repeats, size] by expand, and one dimension again by a view."""
    x = b.tensor(a["self"])
    repeats = [b.dim(count) for count in a.get("repeats", a.get("dims"))]
    x = b.view(x, [dims.ONE] * (len(repeats) - b.rank(x)) + list(b.shape(x)))
    shape = b.shape(x)
    if all(size == dims.ONE or count == dims.ONE for size, count in zip(shape, repeats, strict=True)):
        return b.expand(x, [dims.product(pair) for pair in zip(shape, repeats, strict=True)])
    x = b.view(x, [part for size in shape for part in (dims.ONE, size)])
    x = b.expand(x, [part for pair in zip(repeats, shape, strict=True) for part in pair])
    return b.view(x, dims.shape_of(node.meta["val"]))
