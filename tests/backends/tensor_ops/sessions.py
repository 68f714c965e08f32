"""Sessions of assets and of the CPU's kernels, with the same tokens."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_export import api
from llm_export.errors import ArgumentError
from llm_export.partition.backend import Backend
from llm_export.partition.targets import find_backend
from llm_runner import Model
from tests.contracts.architectures import save_tiny_checkpoint

PREFILL, DECODE, REWOUND = 7, 4, 3
CONTEXT, COUNTS = 64, (4,)  # of backends for tiny models
MAX_RELATIVE_ERROR = 2e-3  # largest |a - b| over largest |b|


def installed(name: str) -> Backend:
    """The backend, whose vendor's package is there; without it the test is skipped."""
    backend = find_backend(name)
    try:
        backend.check_installed()
    except ArgumentError as error:
        pytest.skip(str(error))
    return backend


def rows(session, ids: Sequence[int], prefill: int = PREFILL) -> np.ndarray:
    """Logits of a prompt's last token, of tokens one by one, and of several at once."""
    first = prefill + DECODE
    found = [session.prefill(ids[:prefill])]
    found += [session.decode(id) for id in ids[prefill:first]]
    found += list(session.verify(ids[first:]))
    return np.stack(found)


def of_model(model, ids: Sequence[int], prefill: int = PREFILL) -> dict[str, np.ndarray]:
    """Logits, and the same after the session has gone back."""
    session = model.session(context_length=len(ids))
    found = {"logits": rows(session, ids, prefill)}
    back = 0 if model.has_recurrent else REWOUND
    session.rewind(back)
    found["again"] = rows(session, ids[back:], prefill - back)
    model.close()
    return found


def ids_of(count: int, vocabulary: int = 120) -> list[int]:
    return torch.randint(3, vocabulary, (count,), generator=torch.Generator().manual_seed(1)).tolist()


def on_the_cpu(path: Path, ids: list[int], prefill: int = PREFILL, kv_dtype: str = "float32") -> np.ndarray:
    options = {"context_length": len(ids), "threads": 2, "prefill_chunk": 4, "kv_dtype": kv_dtype}
    with Model.load(path, backend="cpu") as model, model.session(**options) as session:
        return rows(session, ids, prefill)


def errors(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def export(name: str, folder: Path, backend: Backend, recipe: str = "4w", **options) -> tuple[Path, Path]:
    """The same checkpoint for the CPU and as an asset."""
    save_tiny_checkpoint(name, folder / "checkpoint")
    cpu, other = folder / "cpu.mote", folder / f"{backend.name}.mote"
    options |= {"check": "off", "recipe": recipe}
    api.export(folder / "checkpoint", cpu, **options)
    report = api.export(folder / "checkpoint", other, backends=[backend], **options)
    assert not report.refusals, {(refusal.op, refusal.reason) for refusal in report.refusals}
    assert all(taken == total for taken, total in report.num_delegated.values())
    return cpu, other


def pretend_version(monkeypatch, found: str | None) -> None:
    """Of every package. None: none is installed."""

    def version(name: str) -> str:
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)


def refusal(main, capfd, *arguments) -> str:
    """What the command says, in one line."""
    capfd.readouterr()
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        assert ended.code == 2
        return " ".join(capfd.readouterr().err.split())
    raise AssertionError(f"{arguments} were not refused")
