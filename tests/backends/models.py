"""Tiny models of every type, run by a backend and by the CPU's kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from llm_export import api
from llm_runner import Model
from tests.backends.parts import ROOT
from tests.contracts.architectures import ROWS, find, save_tiny_checkpoint

RUN_SESSION = Path(os.environ.get("MOTE_RUN_SESSION", ROOT / "build/dev/tests/backends/run_session"))

PREFILL, DECODE, VERIFY = 7, 4, 4
MAX_RELATIVE_ERROR = 1e-3  # largest |a - b| over largest |b|
# A last bit moves the int8 code of an input now and then, for all who attend to its position: docs/quantization.md.
MAX_AFTER_A_MOVED_CODE = 5e-2

# Some of each family.
SOME = """
apertus bitnet bloom cohere2 deepseek_v3 diffllama falcon gemma2 gemma3n_text gemma4_text glm4 glm4_moe_lite gpt2
gpt_bigcode gpt_neo gpt_oss gptj granitemoeshared helium hrm_text laguna lfm2_moe llama llama4_text minicpm3 minimax_m2
modernbert-decoder mpt nemotron olmo2 opt phi phi3 qwen2_moe qwen3 rwkv stablelm xglm
""".split()  # noqa: SIM905
ALL = [row.name for row in ROWS if not row.failure and not row.variant]


def each_type(names: list[str]) -> pytest.MarkDecorator:
    """A test for each of these types, or of all with MOTE_TEST_ALL_TYPES."""
    tested = ALL if os.environ.get("MOTE_TEST_ALL_TYPES") else names
    rows = [pytest.param(find(name), id=name, marks=pytest.mark.xdist_group(name)) for name in tested]
    return pytest.mark.parametrize("row", rows)


def logits(model: Model, ids: list[int], kv_dtype: str = "float32") -> np.ndarray:
    options = {"context_length": len(ids), "threads": 2, "prefill_chunk": 4, "kv_dtype": kv_dtype}
    with model.session(**options) as session:
        rows = [session.prefill(ids[:PREFILL])]
        rows += [session.decode(id) for id in ids[PREFILL : PREFILL + DECODE]]
        rows += list(session.verify(ids[PREFILL + DECODE :]))
        assert session.backend == model.describe()["target"], session.moved_because
    return np.stack(rows)


def errors_of(
    backend: str,
    row_name: str,
    folder: Path,
    recipe: str,
    group_size: int | str = 32,
    *,
    kv_dtype: str = "float32",
    delegated: float = 0.25,
) -> np.ndarray:
    """The largest difference of two logits of each position, relative to the largest one.

    kv_dtype: of the CPU's caches   delegated: least share of the instructions that the backend takes
    """
    save_tiny_checkpoint(row_name, folder / "checkpoint")
    path = folder / "model.mote"
    report = api.export(
        folder / "checkpoint", path, backends=f"cpu,{backend}", check="off", recipe=recipe, group_size=group_size
    )
    taken, total = report.num_delegated[backend, "decode"]
    assert taken >= total * delegated, [(r.op, r.reason) for r in report.refusals if r.method == "decode"]
    ids = torch.randint(3, 120, (PREFILL + DECODE + VERIFY,), generator=torch.Generator().manual_seed(1)).tolist()
    expected = logits(Model.load(path, backend="cpu"), ids, kv_dtype)
    return np.abs(logits(Model.load(path, backend=backend), ids, kv_dtype) - expected).max(-1) / np.abs(expected).max()


def session_lines(path: Path, backend: str, other: str = "", **environment: str) -> dict[str, list[float]]:
    """The numbers of each line of run_session, in order.

    other: a target that sessions also run on
    """
    run = [RUN_SESSION, path, backend, path.parent, *filter(None, [other])]
    result = subprocess.run(run, env=os.environ | environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    # What a vendor's library prints begins with a blank.
    lines = [line.split(":") for line in result.stdout.splitlines() if not line.startswith(" ")]
    return {f"{i} {name}": [float(number) for number in numbers.split()] for i, (name, numbers) in enumerate(lines)}


def chosen(path: Path, wanted: str, **environment: str) -> subprocess.CompletedProcess:
    """What a process of its own runs a file on: libraries and drivers stay once found, CPU features once read."""
    script = (
        "import sys; from llm_runner import Model; m = Model.load(sys.argv[1], backend=sys.argv[2]);"
        "print(m.describe()['target'])"
    )
    run = [sys.executable, "-c", script, str(path), wanted]
    return subprocess.run(run, env={"PATH": ""} | environment, capture_output=True, text=True)
