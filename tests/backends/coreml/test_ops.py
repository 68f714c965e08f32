"""Every op alone, saved in a package and computed from it, against PyTorch."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from backends.coreml import vendor
from backends.coreml.emitter import CoremlEmitter
from backends.coreml.lowering import ASSET, CoremlBackend
from backends.tensor_ops.emitter import FLOAT, Tensor
from backends.tensor_ops.reference import Reference
from tests.backends.tensor_ops.cases import CAPACITY, CASES, check, contents, parts, run


@pytest.fixture(scope="module")
def package(coreml, tmp_path_factory) -> tuple:
    """A function for each case, and what a file would say of them."""
    stored, folder = contents(), tmp_path_factory.mktemp("ops") / "ops.mlpackage"
    made = CoremlBackend(CAPACITY).assemble(parts(), lambda spec: [stored[spec.name]], folder, folder.name, CAPACITY)
    return folder, [Reference.of_bytes(blob, "ops", ASSET) for blob in made.blobs]


@pytest.fixture(scope="module")
def found(package) -> dict:
    folder, references = package
    return dict(run(CoremlBackend().interpreter(folder), references))


@pytest.mark.parametrize("name", CASES)
def test_op(name, found):
    check(name, found[name])


def test_apples_own_reader_takes_what_was_saved(package):
    """It reads manifest, program and weights, and derives all types again."""
    folder, references = package
    model = vendor.package().tools.models.MLModel(str(folder), skip_model_load=True)
    spec = model.get_spec()
    reader = importlib.import_module("coremltools.converters.mil.frontend.milproto.load")
    program = reader.load(spec, spec.specificationVersion, model.weights_dir)
    names = [reference.function for reference in references]
    assert [each.name for each in spec.description.functions] == names
    assert sorted(program.functions) == sorted(names)


def test_numbers_that_are_computed_of_constants(coreml, tmp_path):
    """Models subtract two numbers that they keep as weights; the package folds them while it builds."""
    builder = vendor.PackageBuilder()
    e = CoremlEmitter(builder)

    def body(handles: list) -> tuple[dict, dict]:
        number = e.unary("exp", e.sub(e.constant(1.75), e.constant(0.5)))
        return {"y": e.mul(Tensor((2, 3), FLOAT, handles[0]), e.add(number, e.constant(1.0))).handle}, {}

    builder.function("decode", [("x", (2, 3), FLOAT)], [], body)
    builder.save(tmp_path / "a.mlpackage")
    found = CoremlBackend().interpreter(tmp_path / "a.mlpackage").call("decode", {"x": np.ones((2, 3), FLOAT)}, {})
    assert np.abs(found["y"] - (np.exp(1.25) + 1)).max() < 1e-5
