"""What cannot become a package, what is said of it, and packages that are damaged."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from backends.coreml import vendor
from backends.coreml.lowering import ASSET, CoremlBackend
from backends.coreml.vendor import MODEL, WEIGHTS
from backends.tensor_ops.reference import Reference
from llm_export import api
from llm_export.errors import ArgumentError, FileError
from tests.backends.parts import ROOT, Part, dims, linear_attributes, numbers, quantised, random
from tests.backends.tensor_ops.cases import stored_bytes
from tests.backends.tensor_ops.sessions import pretend_version


def test_what_is_taken_needs_no_package(monkeypatch):
    monkeypatch.setattr(vendor, "package", None)
    taken = Part("aten.clamp", [(2, 8)], (2, 8), {"min": numbers(0.0)})
    wide = Part("aten.repeat_interleave", [(1, 2, 1, 2, 2)], (1, 4, 1, 2, 2), {"dim": dims(1), "repeats": dims(2)})
    assert CoremlBackend().refusal(taken.subgraph) is None
    many = Part("aten.sum", [(2,) * 6], (2,) * 6, {"dims": dims(1), "keepdim": dims(1)})
    assert CoremlBackend().refusal(wide.subgraph) is None
    assert CoremlBackend().refusal(many.subgraph) == "6 axes that an op tells apart: Core ML has at most 5"


@pytest.mark.parametrize(
    ("found", "said"),
    [(None, r"coreml: needs coremltools 9\.0, which is not installed: pip install 'mote-llm\[coreml\]'"),
     ("8.3", r"coreml: coremltools is 8\.3: must be 9\.0: pip install")],
)  # fmt: skip
def test_a_package_that_is_missing_or_another(found, said, tmp_path, monkeypatch):
    pretend_version(monkeypatch, found)
    with pytest.raises(ArgumentError, match=said):
        api.export(tmp_path, tmp_path / "model.mote", backends="coreml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"backends": "coreml,xnnpack"}, "backend = 'coreml,xnnpack': coreml keeps the weights in an asset of its own"),
     ({"backends": "coreml,coreai"}, "backend = 'coreml,coreai': coreml keeps the weights in an asset of its own"),
     ({"recipe": "8da4w"}, "recipe = '8da4w': coreml takes no inputs that are rounded to int8: must be one of 1w, ")],
)  # fmt: skip
def test_arguments_that_do_not_go_together(arguments, said, tmp_path, coreml):
    with pytest.raises(ArgumentError, match=said):
        api.export(tmp_path, tmp_path / "model.mote", **{"backends": "coreml", **arguments})


LINEAR = Part("mote.linear", [(2, 64), quantised(random(32, 64), 4, 32), None, None, None], (2, 32),
              linear_attributes("float"))  # fmt: skip


def written(folder) -> Reference:
    read = lambda spec: [stored_bytes(LINEAR, 0)]  # noqa: E731
    (blob,) = CoremlBackend().assemble([LINEAR.subgraph], read, folder, folder.name, 16).blobs
    return Reference.of_bytes(blob, "file", ASSET)


def call(folder, reference: Reference) -> dict[str, np.ndarray]:
    interpreter = CoremlBackend().interpreter(folder)
    inputs = {port.name: np.ones(port.shape, np.float32) for port in reference.inputs}
    return interpreter.call(reference.function, inputs, {})


def test_equal_programs_have_equal_bytes(tmp_path, coreml):
    first, second = tmp_path / "a.mlpackage", tmp_path / "b.mlpackage"
    assert written(first).sha256 == written(second).sha256
    assert (first / "Manifest.json").read_bytes() == (second / "Manifest.json").read_bytes()


def test_packages_that_are_damaged(tmp_path, coreml):
    """The interpreter looks at what it reads, whatever the digest says."""
    package = tmp_path / "a.mlpackage"
    reference = written(package)
    assert np.isfinite(call(package, reference)["output0"]).all()
    model, weights = (package / MODEL).read_bytes(), (package / WEIGHTS).read_bytes()
    (package / WEIGHTS).write_bytes(weights[: len(weights) // 2])
    with pytest.raises(FileError, match=r"weight\.bin has no blob of \d+ bytes at \d+"):
        call(package, reference)
    (package / WEIGHTS).write_bytes(weights)
    (package / MODEL).write_bytes(model.replace(b"linear", b"lineal"))
    with pytest.raises(FileError, match="has the op lineal, which is not known here"):
        call(package, reference)
    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        changed = bytearray(model)
        place = int(torch.randint(len(model), (1,), generator=generator))
        changed[place] ^= 1 << int(torch.randint(8, (1,), generator=generator))
        (package / MODEL).write_bytes(changed)
        try:
            call(package, reference)
        except FileError as error:
            assert str(error).startswith(str(package))


def test_other_libraries_stay_as_they_were(coreml):
    """Core ML's package looks for converters' libraries while it is imported: here it finds none, others still do."""
    script = (
        "from backends.coreml.vendor import package; package(); import sys, importlib.util;"
        "assert not {'torch', 'transformers', 'executorch'} & set(sys.modules);"
        "assert importlib.util.find_spec('torch') and importlib.util.find_spec('transformers')"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "Failed to load" not in result.stderr
