"""What the modules of a checkpoint compute, in eager PyTorch: the other side of a comparison with a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from llm_export.check.oracle import Oracle, fits_memory
from llm_export.checkpoint import open_checkpoint


def module_values(oracle: Oracle, ids: Sequence[int]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Runs the ids once and keeps what goes into and comes out of every module.

    Returns: "input MODULE" and "output MODULE" -> float32 [1, T, ...] with the module's path, for modules that take or
    give a value of each token (of several, the first); and the logits, float32 [T, vocab_size]
    Cost: one pass, and the memory of all that is returned
    """
    values: dict[str, np.ndarray] = {}
    hooks = [
        module.register_forward_hook(partial(_keep, values, len(ids), path), with_kwargs=True)
        for path, module in oracle.model.named_modules()
        if path and not isinstance(module, nn.ModuleList)
    ]
    try:
        logits = oracle.logits(torch.tensor([list(ids)]))[0]
    finally:
        for hook in hooks:
            hook.remove()
    return values, logits.numpy()


def open_oracle(source: str) -> Oracle:
    """Returns the module of a checkpoint, unquantised; a layer at a time if it is large."""
    checkpoint = open_checkpoint(source)
    return Oracle(checkpoint, keep=fits_memory(checkpoint))


def _keep(values: dict, length: int, path: str, module: nn.Module, args: tuple, kwargs: dict, output: object) -> None:
    for name, found in (("input", (*args, *kwargs.values())), ("output", output)):
        tensor = found if isinstance(found, Tensor) else next(iter(found), None) if isinstance(found, tuple) else None
        if isinstance(tensor, Tensor) and tensor.is_floating_point() and tuple(tensor.shape[:2]) == (1, length):
            values.setdefault(f"{name} {path}", tensor.detach().to(torch.float32).numpy().copy())
