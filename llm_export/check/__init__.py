"""The numeric check that ends every export: the finished file in the C++ runner against the eager oracle.

The file prefills each prompt in two chunks, continues it greedily by `decode`, and scores the whole sequence anew by
`verify`. The oracle then runs the sequences once. At every position the error is the largest difference of two logits
relative to the largest logit (docs/quantization.md, "The check").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from llm_export.check.oracle import FULL_BYTES, Oracle
from llm_export.errors import ArgumentError, CheckError
from llm_export.program.instructions import CPU
from llm_export.program.specs import WeightSpec
from llm_export.threads import one_torch_thread

MODES = ("full", "layers", "off")
NUM_CONTINUED = 8
PERTURBATION = 1e-4  # enough to disturb the rounding of inputs in every layer
NOISE_FACTOR = 3.0
MAX_NOISE_TOLERANCE = 0.2
LOST_SHARE = 1 / 100  # of positions at most, where another token is the most likely one and it was no tie
TIE_FACTOR = 2.0  # of the noise: two logits move by it at most, one up and one down
REROUTED_SHARE = 1 / 8  # of positions at most, where a moved code may have made a router take another expert


@dataclass(frozen=True)
class Prompt:
    text: str  # "" where the checkpoint has no tokenizer
    ids: tuple[int, ...]


@dataclass
class CheckResult:
    """What the check found; errors are relative to the largest logit of their position."""

    mode: str
    max_relative_error: float
    tolerance: float
    noise: float  # what a relative change of PERTURBATION in the embeddings does to the oracle itself
    median_relative_error: float
    num_positions: int
    top1_agreement: float  # share of positions where both have the same largest logit
    sequences: list[tuple[Prompt, tuple[int, ...]]] = field(
        default_factory=list
    )  # prompt, what the file continued it with
    embedding_error: float | None = None  # the largest of the file's vectors; None: it gives none
    expected: list[torch.Tensor] = field(default_factory=list)  # the oracle's logits [len(sequence), vocab_size]
    # Of each sequence: positions of a mixture of experts beyond the tolerance, where a router took another expert.
    rerouted: list[int] = field(default_factory=list)
    lost: int = 0  # positions where another token is the most likely one, though the two logits are no tie in the noise


def choose_mode(mode: str | None, weights: dict[str, WeightSpec]) -> str:
    """Returns `mode`, or where it is None the fullest one that fits the memory budget."""
    if mode is None:
        distinct = {spec.sources: math.prod(spec.shape) for spec in weights.values()}
        return "full" if 4 * sum(distinct.values()) <= FULL_BYTES else "layers"
    if mode not in MODES:
        raise ArgumentError(f"check = '{mode}': must be one of {', '.join(MODES)}")
    return mode


def check_targets(
    path: Path,
    names: Sequence[str],
    oracle: Oracle,
    prompts: Sequence[Prompt],
    mode: str,
    max_length: int,
    opened: Mapping[str, Any] = MappingProxyType({}),
    rounding: Mapping[str, float] = MappingProxyType({}),
) -> tuple[CheckResult, list[str]]:
    """Compares every target that works on this machine with the oracle; the CPU's, if there is one, gives the result.

    path: the file   prompts: of one length   max_length: no sequence gets longer than this
    opened: models of targets that the runner does not have here or does not find by the file alone, with sessions like
        the runner's
    rounding: relative errors that targets may add by their arithmetic
    Returns: the result, and a note for each that could not be checked
    Errors: CheckError if they disagree; BackendError if none could be checked
    Cost: one pass of the oracle, len(prompts) short sessions of the runner for each target
    """
    from llm_runner import BackendError, Model

    results: dict[str, CheckResult] = {}
    expected: _Expected | None = None
    notes = []
    for name in sorted(names, key=lambda name: name != CPU):
        try:
            # What a backend keeps of the unfinished file goes with it: `replacing` removes it, MOTE_CACHE_DIR or not.
            model = opened.get(name) or Model.load(path, backend=name, cache_dir=path.parent)
        except BackendError as error:
            notes.append(f"not checked on {name}: {error}")
            if len(notes) == len(names):
                raise
            continue
        try:
            runs = _run_prompts(model, prompts, max_length, expected)
            expected = expected or _ask_oracle(oracle, prompts, runs)
            added = rounding.get(name, 0.0)
            accepted = replace(expected, noise=max(expected.noise, added), tolerance=max(expected.tolerance, added))
            results[name] = _compare_all(accepted, prompts, runs, mode)
        except CheckError as error:
            raise CheckError(f"{name}: {error}" if len(names) > 1 or name != CPU else str(error)) from error
    return next(iter(results.values())), notes


@dataclass(frozen=True)
class _Expected:
    """What the oracle gives for every prompt and what the first target continued it with."""

    continuations: list[list[int]]
    logits: torch.Tensor  # [len(prompts), T, vocab_size]
    noise: float
    tolerance: float
    has_experts: bool


def _ask_oracle(oracle: Oracle, prompts: Sequence[Prompt], runs: Sequence[_Run]) -> _Expected:
    ids = torch.tensor([list(prompt.ids) + run.continuation[:-1] for prompt, run in zip(prompts, runs, strict=True)])
    with one_torch_thread():
        logits = oracle.logits(torch.cat((ids, ids)), perturbed_rows=len(runs), perturbation=PERTURBATION)
    expected, perturbed = logits[: len(runs)], logits[len(runs) :]

    noise = float(relative_errors(perturbed, expected).max())
    continuations = [run.continuation for run in runs]
    return _Expected(continuations, expected, noise, tolerance(oracle, noise), _has_rounded_experts(oracle))


def _compare_all(expected: _Expected, prompts: Sequence[Prompt], runs: Sequence[_Run], mode: str) -> CheckResult:
    errors = torch.stack([relative_errors(run.by_verify, row) for run, row in zip(runs, expected.logits, strict=True)])
    result = CheckResult(mode, 0.0, expected.tolerance, expected.noise, float(errors.median()), 0, 1.0)
    most_rerouted = int(errors.numel() * REROUTED_SHARE) if expected.has_experts else 0
    for prompt, run, row in zip(prompts, runs, expected.logits, strict=True):
        result.rerouted.append(0)
        _compare(result, prompt, run, row, most_rerouted)
        result.sequences.append((prompt, tuple(run.continuation)))
        result.expected.append(row)
    if result.lost > LOST_SHARE * result.num_positions:
        raise CheckError(
            f"the exported program disagrees with the Hugging Face module, so no file was written: at {result.lost} of "
            f"{result.num_positions} positions another token is the most likely one, and not by a tie within the noise "
            f"of {result.noise:.2g} (at most {LOST_SHARE:.0%} is accepted)"
        )
    return result


def _num_lost(found: torch.Tensor, expected: torch.Tensor, noise: float) -> int:
    """Counts positions where the most likely tokens differ by more than noise explains. [N, vocab_size] each"""
    other = expected.gather(-1, found.argmax(-1, keepdim=True))[..., 0]
    gaps = (expected.amax(-1) - other) / expected.abs().amax(-1).clamp(min=1e-30)
    return int((gaps > TIE_FACTOR * noise).sum())


def tolerance(oracle: Oracle, noise: float) -> float:
    """Returns the relative error that is accepted at a position.

    Where inputs are rounded to 8 bits, a difference in the last bit of a float moves a code now and then, and later
    layers amplify that up to the noise that disturbed rounding makes. Elsewhere only the order of summation differs.
    """
    formats = [spec for spec in oracle.weights.values() if spec.bits]
    if any(spec.activations != "float" for spec in formats):
        return min(max(1e-3, NOISE_FACTOR * noise), MAX_NOISE_TOLERANCE)
    return 1e-3 if formats else 1e-4


def _has_rounded_experts(oracle: Oracle) -> bool:
    """Whether routers choose by numbers that depend on rounding."""
    specs = oracle.weights.values()
    return any(len(spec.shape) == 3 for spec in specs) and any(spec.activations != "float" for spec in specs)


def relative_errors(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Returns max |found - expected| / max |expected| over the last dimension; NaN counts as infinite."""
    errors = (found - expected).abs().amax(-1) / expected.abs().amax(-1).clamp(min=1e-30)
    return torch.where(errors.isnan(), torch.inf, errors)


def _check_tokenizer(model, prompt: Prompt) -> None:
    if prompt.text and (found := model.tokenize(prompt.text)) != list(prompt.ids):
        raise CheckError(
            f"the tokenizer of the exported program disagrees with the tokenizers library, so no file was written: "
            f"{prompt.text!r} gives {found[:16]} instead of {list(prompt.ids)[:16]}"
        )


@dataclass
class _Run:
    """Logits that the file gave, by position; `by_steps` starts at the prompt's last position."""

    continuation: list[int]
    by_steps: torch.Tensor  # [len(continuation), vocab_size], from prefill and decode
    by_verify: torch.Tensor  # [len(prompt) + len(continuation) - 1, vocab_size]


def _run_prompts(model, prompts: Sequence[Prompt], max_length: int, expected: _Expected | None) -> list[_Run]:
    """Runs a file, loaded as a `Model` of llm_runner; it goes on as expected, or greedily where nothing is yet."""
    for prompt in prompts:
        _check_tokenizer(model, prompt)
    steps = max(1, min(NUM_CONTINUED, max_length - len(prompts[0].ids)))
    continuations = expected.continuations if expected is not None else [None] * len(prompts)
    return [_run_file(model, prompt.ids, steps, given) for prompt, given in zip(prompts, continuations, strict=True)]


def _run_file(model, prompt: Sequence[int], steps: int, given: Sequence[int] | None) -> _Run:
    length = len(prompt) + steps
    session = model.session(context_length=length, kv_dtype="float32")
    first = len(prompt) // 2
    if first:
        session.prefill(list(prompt[:first]))
    rows = [session.prefill(list(prompt[first:]))]
    continuation = [given[0] if given else int(rows[0].argmax())]
    while len(continuation) < steps:
        rows.append(session.decode(continuation[-1]))
        continuation.append(given[len(continuation)] if given else int(rows[-1].argmax()))
    again = model.session(context_length=length, kv_dtype="float32")
    whole = again.verify([*prompt, *continuation[:-1]])
    return _Run(continuation, torch.from_numpy(np.stack(rows)), torch.from_numpy(np.asarray(whole)))


def _compare(result: CheckResult, prompt: Prompt, run: _Run, expected: torch.Tensor, most_rerouted: int) -> None:
    first = len(prompt.ids) - 1
    parts = {
        "verify": (0, run.by_verify, expected),
        "prefill": (first, run.by_steps[:1], expected[first : first + 1]),
        "decode": (first + 1, run.by_steps[1:], expected[first + 1 :]),
    }
    agreed = 0
    for method, (offset, found, wanted) in parts.items():
        if found.shape != wanted.shape:
            raise CheckError(
                f"{method} gives logits of shape {list(found.shape)}; the Hugging Face module {list(wanted.shape)}"
            )
        if not len(found):
            continue
        errors = relative_errors(found, wanted)
        worst = int(errors.argmax())
        agreed = int((found.argmax(-1) == wanted.argmax(-1)).sum())
        is_beyond = errors > result.tolerance
        result.rerouted[-1] += int(is_beyond.sum())
        result.lost += _num_lost(found[~is_beyond], wanted[~is_beyond], result.noise)
        if sum(result.rerouted) > most_rerouted or not math.isfinite(float(errors[worst])):
            raise CheckError(
                f"the exported program disagrees with the Hugging Face module, so no file was written: {method} at "
                f"position {offset + worst} has a relative error of {float(errors[worst]):.2g} (at most "
                f"{result.tolerance:.2g} is accepted); {agreed} of {len(found)} positions have the same best token"
            )
        total = result.num_positions + len(found)
        result.top1_agreement = (result.top1_agreement * result.num_positions + agreed) / total
        result.num_positions = total
        result.max_relative_error = max(result.max_relative_error, float(errors[worst]))
