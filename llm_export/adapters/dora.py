"""DoRA: W' = m (W + s B A) / norm, where norm is that of each row of W + s B A.

So y' = (1 + gain) W x + (1 + gain) s B (A x) with gain = m / norm - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from llm_export.adapters.base import Place
from llm_export.adapters.peft import CONFIG, LoraModule, PeftFolder
from llm_export.capture import build_model
from llm_export.checkpoint import open_checkpoint
from llm_export.errors import ArgumentError, ProgramError


def gains_of(peft: PeftFolder, places: Sequence[Place], checkpoint: str | Path | None) -> list[Tensor | None]:
    """Returns the gains of each module; None for those without magnitudes.

    The norms are those of the checkpoint's own weights, as in PEFT, whatever the base's file rounds them to.
    Errors: ArgumentError if there are magnitudes and no checkpoint, or a checkpoint and no magnitudes
    """
    if peft.method != "dora":
        if checkpoint is not None:
            raise ArgumentError(f"--checkpoint {checkpoint}: only DoRA needs it, and {peft.path} is {peft.method}")
        return [None] * len(peft.modules)
    if checkpoint is None:
        raise ArgumentError(
            f"{peft.path / CONFIG}: use_dora = true: its magnitudes are relative to the weights of the base: give the "
            "checkpoint that it was exported from with --checkpoint"
        )
    opened = open_checkpoint(checkpoint, tokenizer=False, embed=False)
    weights = opened.weights
    weights.bind(build_model(opened.config))
    return [_gains(module, weights.read(place.source)) for module, place in zip(peft.modules, places, strict=True)]


def _gains(module: LoraModule, weight: Tensor) -> Tensor:
    shape = (len(module.b), module.a.shape[1])
    if weight.shape != shape:
        weight = weight.t()  # GPT-2's Conv1D stores [in, out]
    if weight.shape != shape or module.magnitude is None:
        found = list(weight.shape)
        raise ProgramError(f"{module.name}: the checkpoint's weight has shape {found}: must be {list(shape)}")
    changed = weight.float() + module.scale * (module.b.float() @ module.a.float())
    return module.magnitude / torch.linalg.norm(changed, dim=1) - 1
