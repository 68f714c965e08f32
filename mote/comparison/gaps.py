"""How far arrays are apart, added up over calls."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Gap:
    """Sums in float64 over everything that was added; the first of each pair is the reference."""

    elements: int = 0
    reference_energy: float = 0.0
    other_energy: float = 0.0
    error_energy: float = 0.0
    product: float = 0.0
    max_abs: float = 0.0

    def add(self, reference: np.ndarray, other: np.ndarray) -> None:
        """reference, other: arrays of one number of elements"""
        x, y = reference.astype(np.float64).ravel(), other.astype(np.float64).ravel()
        error = y - x
        self.elements += x.size
        self.reference_energy += float(x @ x)
        self.other_energy += float(y @ y)
        self.error_energy += float(error @ error)
        self.product += float(x @ y)
        largest = float(np.abs(error).max(initial=0.0))
        self.max_abs = largest if math.isnan(largest) else max(self.max_abs, largest)

    @property
    def relative(self) -> float:
        """|other - reference| / |reference| in the Euclidean norm; infinite where anything is not a number."""
        if not math.isfinite(self.error_energy):
            return math.inf
        if self.error_energy == 0:
            return 0.0
        return math.sqrt(self.error_energy / self.reference_energy) if self.reference_energy > 0 else math.inf

    @property
    def snr_db(self) -> float:
        """Energy of the reference to that of the error; infinite for equal arrays."""
        if self.relative == 0:
            return math.inf
        return -20 * math.log10(self.relative) if math.isfinite(self.relative) else -math.inf

    @property
    def cosine(self) -> float:
        scale = math.sqrt(self.reference_energy * self.other_energy)
        return self.product / scale if scale > 0 else 1.0 if self.error_energy == 0 else 0.0

    def as_json(self) -> dict[str, float | None]:
        """Infinities are null."""
        found = {"relative": self.relative, "snr_db": self.snr_db, "cosine": self.cosine, "max_abs": self.max_abs}
        return {name: value if math.isfinite(value) else None for name, value in found.items()}


@dataclass
class LogitsGap:
    """Averages over positions of what two models predict."""

    tokens: int = 0
    kl: float = 0.0  # sum, nats
    agreed: int = 0
    max_relative: float = 0.0  # of a position: the largest difference to the largest logit

    def add(self, reference: np.ndarray, other: np.ndarray) -> None:
        """reference, other: float32 [T, vocab_size]"""
        x, y = _log_softmax(reference), _log_softmax(other)
        self.tokens += len(x)
        self.kl += float((np.exp(x) * (x - y)).sum())
        self.agreed += int((reference.argmax(-1) == other.argmax(-1)).sum())
        errors = np.abs(other - reference).max(-1) / np.maximum(np.abs(reference).max(-1), 1e-30)
        self.max_relative = max(self.max_relative, float(np.nan_to_num(errors, nan=math.inf).max(initial=0.0)))

    def as_json(self) -> dict[str, float | None]:
        count = max(self.tokens, 1)
        kl = self.kl / count
        return {
            "kl_divergence": kl if math.isfinite(kl) else None,
            "top1_agreement": self.agreed / count,
            "max_relative_error": self.max_relative if math.isfinite(self.max_relative) else None,
        }


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
