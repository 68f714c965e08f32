"""Vectors of flatbuffers for what backends write; their schemas are compiled for C++ only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import flatbuffers

from llm_export.program.instructions import Dim


def vector(builder: flatbuffers.Builder, items: Sequence, size: int, prepend: Callable) -> int:
    """Elements of `size` bytes, each written by `prepend`."""
    builder.StartVector(size, len(items), min(size, 8))
    for item in reversed(items):
        prepend(item)
    return builder.EndVector()


def offsets(builder: flatbuffers.Builder, tables: Sequence[int]) -> int:
    return vector(builder, tables, 4, builder.PrependUOffsetTRelative)


def dim(builder: flatbuffers.Builder, size: Dim) -> int:
    """struct Dim { tokens:int64; constant:int64; }"""
    builder.Prep(8, 16)
    builder.PrependInt64(size.constant)
    builder.PrependInt64(size.tokens)
    return builder.Offset()


def dims(builder: flatbuffers.Builder, sizes: Sequence[Dim]) -> int:
    return vector(builder, sizes, 16, lambda size: dim(builder, size))
