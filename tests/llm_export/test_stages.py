"""No stage of an export can be skipped: what the next one takes is what only the one before gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The modules whose signatures are the way of the data, and the one that goes it.
STAGES = (
    "llm_export/api.py",
    "llm_export/capture/methods.py",
    "llm_export/quantize/__init__.py",
    "llm_export/passes/__init__.py",
    "llm_export/instructions/__init__.py",
    "llm_export/partition/__init__.py",
    "llm_export/partition/targets.py",
    "llm_export/plan.py",
    "llm_export/program/instructions.py",
    "llm_export/program/replacement.py",
    "llm_export/program/writer.py",
)
# torch's own types take minutes to read, and say nothing about stages.
CONFIG = """
[mypy]
follow_imports = silent
check_untyped_defs = True
ignore_missing_imports = True
[mypy-torch.*,torchao.*,transformers.*,numpy.*,tqdm.*,safetensors.*]
follow_imports = skip
"""
PROGRAM = """
from pathlib import Path
from llm_export.capture import capture
from llm_export.capture.methods import Captured
from llm_export.checkpoint import Checkpoint
from llm_export.instructions import lower
from llm_export.partition import Partitioned, partition
from llm_export.partition.targets import parse_targets
from llm_export.passes import Fused, fuse
from llm_export.plan import plan
from llm_export.program.instructions import Lowered, MemoryPlan, Metadata
from llm_export.program.writer import write_program
from llm_export.quantize import Quantized, Recipe, quantize

def stages(checkpoint: Checkpoint, metadata: Metadata) -> None:
    captured = capture(checkpoint)
    quantized = quantize(captured, Recipe())
    fused = fuse(quantized)
    lowered = lower(fused)
    partitioned = partition(lowered, parse_targets("cpu"))
    planned = plan(partitioned)
    write_program(Path("m.mote"), planned, metadata, lambda spec: [])
"""
SKIPPED = (
    "quantize(checkpoint, Recipe())",
    "fuse(captured)",
    "lower(captured)",
    "lower(quantized)",
    'partition(fused, parse_targets("cpu"))',
    "plan(lowered)",
    "plan(partitioned.program)",
    'write_program(Path("m.mote"), partitioned, metadata, lambda spec: [])',
    'write_program(Path("m.mote"), partitioned.program, metadata, lambda spec: [])',
)
CHANGED = (
    "captured.weights = {}",
    "quantized.programs = {}",
    "fused.weights = {}",
    "lowered.methods = []",
    "partitioned.refusals = []",
    "planned.methods = ()",
)


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """mypy(source, ...) -> the errors that it finds, a line each."""
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text(CONFIG)
    cache = ROOT / "build" / "mypy_cache_stages"

    def run(*arguments: str) -> list[str]:
        command = [sys.executable, "-m", "mypy", "--config-file", folder / "mypy.ini", "--cache-dir", cache, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if ": error:" in line]

    return run


def test_the_way_of_the_data_type_checks(mypy):
    assert mypy(*STAGES) == []


def test_a_skipped_stage_does_not_type_check(mypy, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "".join(f"    {line}\n" for line in (*SKIPPED, *CHANGED)))
    first = len(PROGRAM.splitlines()) + 1
    found = [(line.partition(": error:")[0].rpartition(":")[2], line.rpartition("[")[2]) for line in mypy(str(program))]
    expected = ["arg-type]"] * len(SKIPPED) + ["misc]"] * len(CHANGED)
    assert found == [(str(number), code) for number, code in enumerate(expected, first)]
