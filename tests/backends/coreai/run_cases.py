"""Runs tests/backends/tensor_ops/cases.py by Apple's interpreter, and writes what they give. Argument: a folder"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from backends.coreai.lowering import ASSET, CoreaiBackend
from backends.tensor_ops.reference import Reference
from tests.backends.tensor_ops.cases import CAPACITY, contents, parts, run

if __name__ == "__main__":
    folder, stored = Path(sys.argv[1]), contents()
    backend, asset = CoreaiBackend(CAPACITY), folder / "ops.aimodel"
    blobs = backend.assemble(parts(), lambda spec: [stored[spec.name]], asset, asset.name, CAPACITY).blobs
    interpreter = backend.interpreter(asset)
    for name, outputs in run(interpreter, [Reference.of_bytes(blob, "ops", ASSET) for blob in blobs]):
        np.savez(folder / f"{name}.npz", *outputs)
    interpreter.close()
