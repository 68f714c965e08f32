"""What Core AI has beside the ops that it shares with others: dequantization, and functions that devices know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..tensor_ops.emitter import FLOAT, Author, Emitter, Tensor


class CoreaiAuthor(Author, Protocol):
    def splat(self, value: float, shape: Sequence[int], dtype: str) -> Any: ...
    def composite(
        self, key: tuple, operands: Mapping[str, Any], attributes: Mapping[str, str], body: Callable[..., Any]
    ) -> Any: ...


class CoreaiEmitter(Emitter):
    author: CoreaiAuthor | None

    def __init__(self, author: CoreaiAuthor | None = None, float_dtype: str = FLOAT):
        super().__init__(author, float_dtype)
        self._composites: dict[tuple, tuple[tuple[int, ...], str]] = {}  # shape and dtype of what each gives

    def splat(self, value: float, shape: Sequence[int], dtype: str = FLOAT) -> Tensor:
        """Elements that are all equal; they take no place."""
        handle = None if self.author is None else self.author.splat(value, shape, dtype)
        return Tensor(tuple(shape), dtype, handle)

    def dequantized(self, codes: Tensor, scales: Tensor) -> Tensor:
        """codes * scales, which divide the shape of codes."""
        zero = [self.splat(0, scales.shape, codes.dtype), self.splat(0, scales.shape, scales.dtype)]
        return self._op("blockwise_shift_scale", [codes, scales, *zero], codes.shape, scales.dtype)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        def body(x: Tensor, weight: Tensor) -> Tensor:
            return Emitter.rms_norm(self, x, weight, eps)

        attributes = {"axes": "-1 : si64", "eps": f"{eps:e} : f32"}
        return self.composite("rms_norm", (eps,), {"input": x, "scale": weight}, attributes, body)

    def attention(self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
        def body(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
            return Emitter.attention(self, q, keys, values, mask, scale)

        attributes = {"is_causal": "false", "scale": f"{scale:e} : f32", "window_size": "0 : si64"}
        operands = {"query": q, "key": keys, "value": values, "attn_mask": mask}
        return self.composite("scaled_dot_product_attention", (scale,), operands, attributes, body)

    def composite(
        self,
        name: str,
        key: tuple,
        operands: Mapping[str, Tensor],
        attributes: Mapping[str, str],
        body: Callable[..., Tensor],
    ) -> Tensor:
        """body(*operands) as a function that devices know by its name and attributes, which are in Core AI's words.

        key: what else the body depends on
        """
        if self.author is None:
            return body(*operands.values())
        types = tuple((each.shape, each.dtype) for each in operands.values())
        made: list[Tensor] = []

        def build(*handles: Any) -> Any:
            inner = [Tensor(*kind, handle) for kind, handle in zip(types, handles, strict=True)]
            made.append(body(*inner))
            return self.handle(made[0])

        handles = {each: self.handle(operand) for each, operand in operands.items()}
        whole = (name, key, types)
        handle = self.author.composite(whole, handles, attributes, build)
        if made:
            self._composites[whole] = (made[0].shape, made[0].dtype)
        return Tensor(*self._composites[whole], handle)
