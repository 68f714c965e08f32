"""Text as it is generated, and the sampling behind it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from llm_runner import _core
from llm_runner.errors import ArgumentError

SAMPLING_OPTIONS = ("do_sample", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
# Any of these asks for sampling where do_sample is not given.
_IMPLY_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "seed")


class Generation:
    """An iterator over pieces of text, each whole characters and never empty.

    Attributes, complete once it ends: `token_ids` (all that were sampled, the end-of-sequence token included) and
    `finish_reason`: "eos", "length", "stop_string", "cancelled", or None while it runs or if it was closed.
    Thread safety: one thread at a time.
    """

    def __init__(self, core: _core.Generation, on_close: Callable[[], None] = lambda: None):
        self._core = core
        self._on_close = on_close
        self._closed = False
        self._statistics: dict[str, Any] | None = None
        self.token_ids: list[int] = []
        self.finish_reason: str | None = None

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        while not self._closed and self.finish_reason is None:
            text, token_id, self.finish_reason = self._core.next()
            if token_id is not None:
                self.token_ids.append(token_id)
            if self.finish_reason is not None:
                self.close()
            if text:
                return text
        raise StopIteration

    def text(self) -> str:
        """Runs to the end and returns what is left of the text."""
        return "".join(self)

    @property
    def statistics(self) -> dict[str, Any]:
        """Tokens, seconds, tokens a second and the memory of the process, so far."""
        if self._statistics is not None:
            return self._statistics
        found = self._core.statistics()
        decoded = max(found["generated_tokens"] - 1, 0)
        found["prefill_tokens_per_second"] = _rate(found["prompt_tokens"], found["prefill_seconds"])
        found["decode_tokens_per_second"] = _rate(decoded, found["decode_seconds"])
        return found

    def close(self) -> None:
        """Stops. The statistics stay."""
        if not self._closed:
            self._closed = True
            self._statistics = self.statistics
            self._core = None
            self._on_close()

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def start(
    model: _core.Model,
    session: _core.Session,
    ids: Sequence[int],
    stop_strings: str | Sequence[str],
    options: dict[str, Any],
    on_close: Callable[[], None] = lambda: None,
) -> Generation:
    """Begins a generation; options that are None keep the model's defaults."""
    stops = [stop_strings] if isinstance(stop_strings, str) else list(stop_strings)
    core = _core.Generation(model, session, checked_ids(ids), native_options(options), stops)
    return Generation(core, on_close)


def native_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that were given, as the C API takes them. Errors: ArgumentError naming the option."""
    given = {name: value for name, value in options.items() if value is not None}
    if "do_sample" not in given and any(name in given for name in _IMPLY_SAMPLING):
        given["do_sample"] = True
    given.setdefault("seed", secrets.randbits(63))
    native = {}
    for name, value in given.items():
        if name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            native[name] = _float(name, value)
        elif name in ("do_sample", "ignore_eos", "skip_special_tokens", "skip_eos"):
            native[name] = int(bool(value))
        else:
            native[name] = checked_int(name, value, 0, 2**64 - 1 if name == "seed" else 2**31 - 1)
    return native


def checked_int(name: str, value: Any, low: int, high: int) -> int:
    """Returns `value` as int. Errors: ArgumentError unless it is one between low and high."""
    try:
        number = value.__index__()
    except AttributeError:
        raise ArgumentError(f"{name} = {value!r}: must be an integer") from None
    if not low <= number <= high:
        raise ArgumentError(f"{name} = {number}: must be {low}..{high}")
    return number


def checked_ids(ids: Sequence[int]) -> list[int]:
    """Returns token ids as a list of int32. Errors: ArgumentError for anything else."""
    if isinstance(ids, (str, bytes)):
        raise ArgumentError("token ids must be integers, not text")
    array = np.asarray(ids)
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentError(f"token ids must be a list of integers, not {array.dtype} {list(array.shape)}")
    if int(array.max()) > 2**31 - 1 or int(array.min()) < -(2**31):
        raise ArgumentError(f"token id {int(array[np.abs(array.astype(object)).argmax()])}: must lie in the vocabulary")
    return array.astype(np.int32).tolist()


def _float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} = {value!r}: must be a number") from None


def _rate(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if seconds > 0 else None


def warp(logits: np.ndarray, previous_ids: Sequence[int] = (), **options: Any) -> np.ndarray:
    """Returns what sampling draws from: the probability of each id after penalty, temperature, top-k, top-p, min-p.

    logits: float32 [vocab_size]   previous_ids: what the repetition penalty applies to
    options: those of `Model.generate`; what is not given is off
    Source: transformers generation/logits_process.py
    """
    unknown = set(options) - set(SAMPLING_OPTIONS)
    if unknown:
        raise ArgumentError(f"unknown option {sorted(unknown)[0]}: must be one of {', '.join(SAMPLING_OPTIONS)}")
    options.setdefault("do_sample", True)
    return _core.warp(np.asarray(logits, np.float32), checked_ids(previous_ids), native_options(options))
