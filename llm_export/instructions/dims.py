"""Sizes as linear functions of T."""

from __future__ import annotations

from collections.abc import Iterable

import sympy
import torch

from llm_export.errors import ProgramError
from llm_export.program.instructions import Dim

ZERO, ONE = Dim(0, 0), Dim(0, 1)


def constant(value: int) -> Dim:
    return Dim(0, int(value))


def dim_of(size: int | torch.SymInt) -> Dim:
    """Turns a size of a captured graph into a Dim.

    Errors: ProgramError where it is not linear in T with integer coefficients.
    """
    if isinstance(size, torch.SymInt):
        expression = sympy.expand(size.node.expr)
    else:
        return constant(size)
    symbols = sorted(expression.free_symbols, key=str)
    if not symbols:
        return constant(int(expression))
    if len(symbols) > 1 or not expression.is_polynomial(symbols[0]):
        raise ProgramError(f"size {expression} is not linear in the number of tokens")
    polynomial = sympy.Poly(expression, symbols[0])
    tokens, rest = polynomial.coeff_monomial(symbols[0]), polynomial.coeff_monomial(1)
    if polynomial.degree() > 1 or not (tokens.is_integer and rest.is_integer):
        raise ProgramError(f"size {expression} is not linear in the number of tokens")
    return Dim(int(tokens), int(rest))


def shape_of(tensor: torch.Tensor) -> tuple[Dim, ...]:
    return tuple(dim_of(size) for size in tensor.shape)


def add(a: Dim, b: Dim) -> Dim:
    return Dim(a.tokens + b.tokens, a.constant + b.constant)


def scale(a: Dim, factor: int) -> Dim:
    return Dim(a.tokens * factor, a.constant * factor)


def product(sizes: Iterable[Dim]) -> Dim:
    """Errors: ProgramError where two sizes grow with T."""
    result = ONE
    for size in sizes:
        if result.tokens and size.tokens:
            raise ProgramError(f"a tensor with sizes {result} and {size} is quadratic in the number of tokens")
        factor, other = (size.constant, result) if result.tokens else (result.constant, size)
        result = scale(other, factor)
    return result


def broadcast(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The shape that PyTorch's broadcasting gives."""
    rank = max(len(shape) for shape in shapes)
    result = [ONE] * rank
    for shape in shapes:
        for i, size in enumerate(shape, start=rank - len(shape)):
            if size == ONE:
                continue
            if result[i] not in (ONE, size):
                raise ProgramError(f"shapes with sizes {result[i]} and {size} do not broadcast")
            result[i] = size
    return tuple(result)
