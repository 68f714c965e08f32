"""Every op alone, saved in a package and computed from it, against PyTorch."""

from __future__ import annotations

import importlib

import pytest

from backends.coreml import vendor
from backends.coreml.lowering import ASSET, CoremlBackend
from backends.tensor_ops.reference import Reference
from tests.backends.tensor_ops.cases import CAPACITY, CASES, check, contents, parts, run


@pytest.fixture(scope="module")
def package(coreml, tmp_path_factory) -> tuple:
    """A function for each case, and what a file would say of them."""
    stored, folder = contents(), tmp_path_factory.mktemp("ops") / "ops.mlpackage"
    blobs = CoremlBackend(CAPACITY).assemble(
        parts(), lambda spec: [stored[spec.name]], folder, folder.name, CAPACITY
    )
    return folder, [Reference.of_bytes(blob, "ops", ASSET) for blob in blobs]


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
