"""Every op alone, saved in a package and computed from it, against PyTorch."""

from __future__ import annotations

import pytest

from backends.coreml.lowering import ASSET, CoremlBackend
from backends.tensor_ops.reference import Reference
from tests.backends.tensor_ops.cases import CAPACITY, CASES, check, contents, parts, run


@pytest.fixture(scope="module")
def found(coreml, tmp_path_factory) -> dict:
    stored, package = contents(), tmp_path_factory.mktemp("ops") / "ops.mlpackage"
    backend = CoremlBackend(CAPACITY)
    blobs = backend.assemble(parts(), lambda spec: [stored[spec.name]], package, package.name, CAPACITY)
    return dict(run(backend.interpreter(package), [Reference.of_bytes(blob, "ops", ASSET) for blob in blobs]))


@pytest.mark.parametrize("name", CASES)
def test_op(name, found):
    check(name, found[name])
