"""Rotary embeddings as GGUF describes them: scaling keys, and tensors of factors that divide the frequencies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from llm_export.checkpoint.gguf import blocks

if TYPE_CHECKING:
    from llm_export.checkpoint.gguf.config import Description

SCALINGS = ("none", "linear", "yarn", "longrope")
DEFAULT_BASE = 10000.0
# What Llama 3 was published with; only the factor differs between its models.
LLAMA3_LENGTHS = (8192, 4096, 2048, 16384, 32768, 65536, 131072)
LLAMA3_LOW, LLAMA3_HIGH = 1.0, 4.0
MAX_DIFFERENCE = 1e-4  # relative; the converter computes factors in float32


def rope_parameters(about: Description, head_dim: int) -> dict:
    """Returns `rope_parameters` of the config. Errors: FileError naming key and value"""
    base = about.number("rope.freq_base", DEFAULT_BASE)
    parameters: dict = {"rope_type": "default", "rope_theta": base}
    kind = about.metadata.text(about.key("rope.scaling.type"), "none")
    if kind not in SCALINGS:
        raise about.fail("rope.scaling.type", kind, f"must be one of {', '.join(SCALINGS)}")
    dims = about.integer("rope.dimension_count", head_dim)
    if "rope_factors_long.weight" in about.tensors:
        return parameters | _longrope(about, dims)
    if "rope_freqs.weight" in about.tensors:
        return parameters | _factors(about, dims, base)
    if kind == "linear":
        return parameters | {"rope_type": "linear", "factor": about.number("rope.scaling.factor")}
    if kind == "yarn":
        return parameters | _yarn(about)
    return parameters


def _yarn(about: Description) -> dict:
    factor = about.number("rope.scaling.factor")
    fields = {
        "rope_type": "yarn",
        "factor": factor,
        "beta_fast": about.number("rope.scaling.yarn_beta_fast", 32.0),
        "beta_slow": about.number("rope.scaling.yarn_beta_slow", 1.0),
        "original_max_position_embeddings": about.integer(
            "rope.scaling.original_context_length", max(int(about.integer("context_length") / factor), 1)
        ),
    }
    scale = about.number("rope.scaling.attn_factor", about.number("rope.scaling.yarn_attn_factor", 1.0))
    return fields if scale == 1 else fields | {"attention_factor": scale * (1 + 0.1 * math.log(factor))}


def _longrope(about: Description, dims: int) -> dict:
    original = about.integer("rope.scaling.original_context_length")
    return {
        "rope_type": "longrope",
        "factor": about.integer("context_length") / original,
        "long_factor": _read(about, "rope_factors_long.weight", dims // 2),
        "short_factor": _read(about, "rope_factors_short.weight", dims // 2),
        "original_max_position_embeddings": original,
        "attention_factor": about.number("rope.scaling.attn_factor", 1.0),
    }


def _factors(about: Description, dims: int, base: float) -> dict:
    """Llama 3's scaling where the factors are its, else the same factors at every length."""
    factors = _read(about, "rope_freqs.weight", dims // 2)
    known = torch.tensor(factors, dtype=torch.float64)
    for length in dict.fromkeys((*_stated_lengths(about), *LLAMA3_LENGTHS)):
        expected = _llama3_factors(dims, base, max(factors), length)
        if torch.allclose(known, expected, rtol=MAX_DIFFERENCE, atol=0):
            return {
                "rope_type": "llama3", "factor": round(max(factors), 6), "low_freq_factor": LLAMA3_LOW,
                "high_freq_factor": LLAMA3_HIGH, "original_max_position_embeddings": length,
            }  # fmt: skip
    return {
        "rope_type": "longrope", "factor": 1.0, "attention_factor": 1.0,
        "long_factor": factors, "short_factor": factors,
        "original_max_position_embeddings": about.integer("context_length"),
    }  # fmt: skip


def _stated_lengths(about: Description) -> tuple[int, ...]:
    name = "rope.scaling.original_context_length"
    return (about.integer(name),) if about.has(name) else ()


def _llama3_factors(dims: int, base: float, factor: float, length: int) -> torch.Tensor:
    """Source: transformers modeling_rope_utils.py _compute_llama3_parameters"""
    frequencies = base ** -(torch.arange(0, dims, 2, dtype=torch.float64) / dims)
    turns = length * frequencies / (2 * math.pi)
    smooth = (turns - LLAMA3_LOW) / (LLAMA3_HIGH - LLAMA3_LOW)
    between = 1 / ((1 - smooth) / factor + smooth)
    return torch.where(turns > LLAMA3_HIGH, 1.0, torch.where(turns < LLAMA3_LOW, factor, between))


def _read(about: Description, name: str, count: int) -> list[float]:
    if math.prod(about.shape(name)) != count:
        raise about.fail(f"shape of tensor '{name}'", list(about.shape(name)), f"must be [{count}]")
    values = blocks.read_rows(about.tensors[name]).float().flatten()
    if not bool((torch.isfinite(values) & (values > 0)).all()):
        raise about.fail(f"tensor '{name}'", "a value that is not above 0", "must be positive, finite factors")
    return values.tolist()
