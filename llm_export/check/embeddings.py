"""The check of the method `embed`: the vectors of the finished file against those of the eager oracle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from llm_export.check import PERTURBATION, CheckResult, Prompt, relative_errors, tolerance
from llm_export.check.golden import MIN_TOLERANCE, NUM_PROBES
from llm_export.check.oracle import Oracle
from llm_export.errors import CheckError
from llm_export.program.instructions import EMBED, GoldenSample
from llm_export.threads import one_torch_thread


def check_embeddings(
    path: Path, names: Sequence[str], oracle: Oracle, prompts: Sequence[Prompt], mode: str
) -> tuple[CheckResult, tuple[GoldenSample, ...]]:
    """Compares the vectors of prompts, before they are divided by their length.

    names: the file's targets, of which the first that works here is taken; all have the same method
    Returns: errors relative to the largest value of a vector, and a golden sample a prompt
    Errors: CheckError if they disagree; BackendError if no target works
    """
    found = _run(path, names, prompts)
    ids = torch.tensor([list(prompt.ids) for prompt in prompts])
    with one_torch_thread():
        vectors = oracle.embeddings(torch.cat((ids, ids)), perturbed_rows=len(ids), perturbation=PERTURBATION)
    expected, perturbed = vectors[: len(ids)], vectors[len(ids) :]
    if found.shape != expected.shape:
        raise CheckError(f"embed gives vectors of shape {list(found.shape)}; PyTorch {list(expected.shape)}")
    noise = float(relative_errors(perturbed, expected).max())
    errors, accepted = relative_errors(found, expected), tolerance(oracle, noise)
    if float(errors.max()) > accepted:
        raise CheckError(
            f"the embeddings of the exported program disagree with PyTorch's, so no file was written: a relative error "
            f"of {float(errors.max()):.2g} (at most {accepted:.2g} is accepted)"
        )
    result = CheckResult(mode, float(errors.max()), accepted, noise, float(errors.median()), len(ids), 1.0)
    return result, _samples(prompts, expected, max(MIN_TOLERANCE, accepted))


def blank_embeddings(prompts: Sequence[Prompt]) -> tuple[GoldenSample, ...]:
    """Samples as large as those of `check_embeddings`: they reserve room in a file that is written before its check."""
    numbers = (0.0,) * NUM_PROBES
    return tuple(GoldenSample(p.text, p.ids, (), tuple(range(NUM_PROBES)), numbers, 1.0, EMBED) for p in prompts)


def _run(path: Path, names: Sequence[str], prompts: Sequence[Prompt]) -> Tensor:
    from llm_runner import BackendError, Model

    for name in names:
        try:
            model = Model.load(path, backend=name, cache_dir=path.parent)
        except BackendError:
            if name == names[-1]:
                raise
            continue
        with model, model.embedder(kv_dtype="float32") as embedder:
            vectors = embedder.embed([list(prompt.ids) for prompt in prompts], normalize=False, truncate=False)
        return torch.from_numpy(np.asarray(vectors))
    raise CheckError("the file has no target")


def _samples(prompts: Sequence[Prompt], expected: Tensor, accepted: float) -> tuple[GoldenSample, ...]:
    probes = tuple(range(0, expected.shape[1], max(expected.shape[1] // NUM_PROBES, 1)))[:NUM_PROBES]
    return tuple(
        GoldenSample(prompt.text, prompt.ids, (), probes, tuple(vector[list(probes)].tolist()), accepted, EMBED)
        for prompt, vector in zip(prompts, expected, strict=True)
    )
