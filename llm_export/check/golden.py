"""Golden samples: prompts with what the oracle computed, kept in the file so that a device can prove that it agrees."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from llm_export.check import NUM_CONTINUED, CheckResult, Prompt
from llm_export.checkpoint import Checkpoint
from llm_export.checkpoint.tokenizer import TokenizerFile, original_tokenizer
from llm_export.program.instructions import CheckFigures, GoldenSample

PROMPT_TEXTS = ("The quick brown fox jumps over the lazy dog.", "def add(first, second):\n    return")
PROMPT_LENGTH = 7  # tokens of a prompt; text may have twice as many
NUM_PROBES = 16
MIN_TOLERANCE = 1e-3


def make_prompts(checkpoint: Checkpoint, vocab_size: int, max_length: int) -> list[Prompt]:
    """Returns two prompts of one length, 1 to max_length - 1 tokens; of text where there is a tokenizer."""
    length = max(1, min(PROMPT_LENGTH, max_length - 1))
    if checkpoint.tokenizer is not None:
        texts = _text_prompts(checkpoint.tokenizer, vocab_size, max_length - 1)
        if texts:
            return texts
    step = max(vocab_size // (length + 1), 1)
    return [Prompt("", tuple((start + step * i) % vocab_size for i in range(length))) for start in (1, 2)]


def _text_prompts(file: TokenizerFile, vocab_size: int, max_length: int) -> list[Prompt]:
    tokenizer = original_tokenizer(file)
    words = [text.split(" ") for text in PROMPT_TEXTS]
    for count in range(max(map(len, words)), 0, -1):
        prompts = []
        for pieces in words:
            text = " ".join(pieces[:count])
            prompts.append(Prompt(text, tuple(tokenizer.encode(text))))
        cut = min(len(prompt.ids) for prompt in prompts)
        if 0 < cut <= min(max_length, 2 * PROMPT_LENGTH) and all(i < vocab_size for p in prompts for i in p.ids):
            return [_cut(tokenizer, prompt, cut) for prompt in prompts]
    return []


def _cut(tokenizer, prompt: Prompt, length: int) -> Prompt:
    """Shortens a prompt to `length` ids; it keeps a text only if that gives exactly these ids."""
    ids = prompt.ids[:length]
    if len(ids) == len(prompt.ids):
        return prompt
    text = tokenizer.decode(list(ids))
    return Prompt(text if tuple(tokenizer.encode(text)) == ids else "", ids)


def golden_samples(result: CheckResult, rounding: float = 0.0) -> tuple[GoldenSample, ...]:
    """Makes one sample of each checked sequence, up to the first id that the oracle would have chosen differently.

    A sequence in which a router took another expert proves little on a device: it is left out if another one is left.
    rounding: relative error that a target may add by its arithmetic
    """
    samples = []
    keeps_all = all(result.rerouted)
    tolerance = max(MIN_TOLERANCE, result.max_relative_error if keeps_all else 0.0, result.tolerance, rounding)
    for (prompt, continuation), logits, rerouted in zip(
        result.sequences, result.expected, result.rerouted, strict=True
    ):
        if rerouted and not keeps_all:
            continue
        rows = logits[len(prompt.ids) - 1 :]  # row i decides continuation[i]
        best = rows.argmax(-1).tolist()
        count = (
            next((i for i, (a, b) in enumerate(zip(best, continuation, strict=True)) if a != b), len(continuation) - 1)
            + 1
        )
        probes = probe_ids(rows)
        samples.append(
            GoldenSample(
                text=prompt.text,
                prompt_ids=prompt.ids,
                expected_ids=tuple(best[:count]),
                probe_ids=probes,
                probe_logits=tuple(rows[:count, list(probes)].flatten().tolist()),
                tolerance=tolerance,
            )
        )
    return tuple(samples)


def figures(result: CheckResult) -> CheckFigures:
    """Returns what the file keeps of a check."""
    return CheckFigures(
        result.mode, result.median_relative_error, result.max_relative_error, result.tolerance, result.top1_agreement,
        result.num_positions,
    )  # fmt: skip


def probe_ids(rows: torch.Tensor) -> tuple[int, ...]:
    """Returns NUM_PROBES vocabulary entries: the most likely ones, then some spread evenly. rows: [N, vocab_size]"""
    vocab_size = rows.shape[1]
    likely = rows.max(0).values.topk(min(NUM_PROBES // 2, vocab_size)).indices.tolist()
    spread = range(0, vocab_size, max(vocab_size // NUM_PROBES, 1))
    return tuple(dict.fromkeys([*likely, *spread]))[:NUM_PROBES]


def blank_figures(mode: str) -> CheckFigures:
    """Figures as large as those of a check with this mode, for the same reason as `blank_samples`."""
    return CheckFigures(mode, 1.0, 1.0, 1.0, 1.0, 1)


def blank_samples(prompts: Sequence[Prompt]) -> tuple[GoldenSample, ...]:
    """Samples as large as `golden_samples` makes them: they reserve room in a file that is written before its check."""
    ids, numbers = (0,) * NUM_CONTINUED, (0.0,) * (NUM_CONTINUED * NUM_PROBES)
    return tuple(GoldenSample(p.text, p.ids, ids, tuple(range(NUM_PROBES)), numbers, 1.0) for p in prompts)
