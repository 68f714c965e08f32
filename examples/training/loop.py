"""Trains one model: Muon for the matrices, AdamW for the rest, one schedule for both."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional
from tqdm import tqdm

from .data import Dataset

_BATCH_TOKENS = 8192
_SHORT, _LONG = 512, 2048
# Long windows cost more, so only the end of the run, which sets the final weights, has them.
_LONG_SHARE = 0.02
_WARMUP_STEPS = 40
_DECAY_SHARE = 0.25
_GRAD_CLIP = 1.0


@dataclass(frozen=True)
class Recipe:
    """What differs between the two models: steps and peak learning rates."""

    steps: int
    matrix_rate: float = 0.02
    other_rate: float = 8e-3


def prepare(device: torch.device, threads: int) -> None:
    """Sets the process up for training.

    On Linux the allocator is told to keep freed memory: page faults on fresh activations
    otherwise take a third of a step.
    """
    torch.set_num_threads(threads)
    if device.type == "cpu" and sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(option, 2**31 - 1)


def train(
    model: torch.nn.Module,
    dataset: Dataset,
    recipe: Recipe,
    device: torch.device,
    every: int = 0,
    report: Callable[[int], None] = lambda step: None,
) -> float:
    """Trains the model in place and calls report each `every` steps.

    Returns: the seconds it took
    """
    model.to(device).train()
    optimizers, schedulers = _optimizers(model, recipe)
    batches = _batches(model, dataset, recipe.steps)
    started = time.monotonic()
    progress = tqdm(range(1, recipe.steps + 1), unit="step", mininterval=5)
    for step in progress:
        loss = _loss(model, next(batches).to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), _GRAD_CLIP)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for scheduler in schedulers:
            scheduler.step()
        if step % 10 == 0:
            progress.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if every and step % every == 0:
            report(step)
    return time.monotonic() - started


def _batches(model: torch.nn.Module, dataset: Dataset, steps: int) -> Iterator[torch.Tensor]:
    num_long = round(steps * _LONG_SHARE)
    # On a CPU the fused attention is slower until its score matrix outgrows the caches.
    phases = ((_SHORT, steps - num_long, "eager"), (_LONG, num_long, "sdpa"))
    for length, count, attention in phases:
        model.set_attn_implementation(attention)
        batches = dataset.batches(_BATCH_TOKENS // length, length)
        for _ in range(count):
            yield next(batches)


def _loss(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=_has_bfloat16(tokens.device)):
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits  # [rows, length, vocab]
    return functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())


def _has_bfloat16(device: torch.device) -> bool:
    # Without the instruction, a CPU emulates bfloat16 and is slower than in float32.
    return device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()


def _optimizers(model: torch.nn.Module, recipe: Recipe):
    matrices, embeddings, norms = [], [], []
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            norms.append(parameter)
        else:
            (embeddings if "embed" in name else matrices).append(parameter)
    others = [
        {"params": embeddings, "weight_decay": 0.01},
        {"params": norms, "weight_decay": 0.0},
    ]
    optimizers = [
        torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.05),
        torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.95)),
    ]

    def factor(step: int) -> float:
        warmup = (step + 1) / _WARMUP_STEPS
        decay = (recipe.steps - step) / (_DECAY_SHARE * recipe.steps)
        return max(0.0, min(1.0, warmup, decay))

    return optimizers, [torch.optim.lr_scheduler.LambdaLR(o, factor) for o in optimizers]
