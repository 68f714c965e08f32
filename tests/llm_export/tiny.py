"""Tiny random checkpoints through capture, passes, instructions and plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from llm_export.capture import capture
from llm_export.capture.methods import Methods
from llm_export.checkpoint import Checkpoint, open_checkpoint
from llm_export.instructions import lower
from llm_export.partition import partition
from llm_export.partition.targets import Target
from llm_export.passes import Fused, fuse
from llm_export.plan import plan
from llm_export.program.instructions import Lowered, MemoryPlan
from llm_export.quantize import Recipe, quantize
from tests.contracts.architectures import randomize
from tests.llm_export.eager import materialize
from tests.llm_export.interpreter import Interpreter


@dataclass
class Tiny:
    model: PreTrainedModel  # HF eager
    checkpoint: Checkpoint
    fused: Fused
    lowered: Lowered
    planned: MemoryPlan  # on the CPU alone

    def weights(self) -> list[Tensor]:
        program = self.planned.program
        constants = Methods({}, [], {}, program.constants)
        return [
            materialize(spec, constants,
            self.checkpoint.weights.read).to(spec.dtype if not spec.dtype.is_floating_point else torch.float32)
            for spec in program.weights
        ]  # fmt: skip

    def interpreter(self) -> Interpreter:
        return Interpreter(self.planned, self.weights())


def save_tiny(config: PretrainedConfig, folder: Path, seed: int = 0) -> PreTrainedModel:
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    randomize(model, seed)
    model.save_pretrained(folder)
    return model


def export_tiny(config: PretrainedConfig, folder: Path) -> Tiny:
    model = save_tiny(config, folder)
    checkpoint = open_checkpoint(folder)
    fused = fuse(quantize(capture(checkpoint), Recipe("none")))
    lowered = lower(fused)
    return Tiny(model, checkpoint, fused, lowered, plan(partition(lowered, [Target()])))


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).abs().max() / expected.abs().max())


@torch.no_grad()
def check_against_eager(tiny: Tiny, same_calls: bool = False, tolerance: float = 1e-4) -> None:
    """Compares prefill of 6 tokens, 3 decode steps and a verify of 4 tokens with the Hugging Face module."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, tiny.model.config.vocab_size, (1, 13), generator=generator)
    interpreter = tiny.interpreter()
    calls = [("prefill", 0, 6), ("decode", 6, 7), ("decode", 7, 8), ("decode", 8, 9), ("verify", 9, 13)]
    cache = None
    for name, start, end in calls:
        actual = interpreter.run(name, ids[:, start:end], start)
        if same_calls:
            result = tiny.model(input_ids=ids[:, start:end], past_key_values=cache, use_cache=True)
            cache, expected = result.past_key_values, result.logits
        else:
            expected = tiny.model(input_ids=ids[:, :end], use_cache=False).logits[:, start:]
        expected = expected if name == "verify" else expected[:, -1:]
        error = relative_error(actual, expected.float())
        assert error < tolerance, f"{name} of positions {start}..{end}: relative error {error}"
