"""Tables that are split, and one copy of what is gathered from and multiplied by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backends.coreml.lowering import ASSET, CoremlBackend
from backends.coreml.vendor import WEIGHTS
from backends.coreml.weights import CoremlWeights
from backends.tensor_ops.reference import Reference
from llm_export.capture import ops
from tests.backends.parts import Part, Typed, linear_attributes, quantised, random
from tests.backends.tensor_ops.cases import dequantised, stored_bytes

ROWS, COLUMNS = 44, 64
IDS = torch.tensor([[0, 14, 15, 16, 29, 43, 44 - 15]])
TABLES = {
    "4": quantised(random(ROWS, COLUMNS), 4, 32), "8": quantised(random(ROWS, COLUMNS), 8, 32),
    "float32": random(ROWS, COLUMNS), "float16": random(ROWS, COLUMNS).half(),
    "bfloat16": random(ROWS, COLUMNS).bfloat16(),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_an_embedding_that_is_the_head_too(name, coreml, tmp_path, monkeypatch):
    """In pieces of 15 rows and in one, it gives the same; there is one copy of it."""
    table, x = TABLES[name], random(1, 3, COLUMNS)
    head = Part("mote.linear", [(1, 3, COLUMNS), table, None, None, None], (1, 3, ROWS), linear_attributes("float"))
    rows = Part("mote.embedding", [Typed(IDS.shape, torch.int64), table], (*IDS.shape, COLUMNS))
    rows.subgraph.method.name = "rows"
    floats = dequantised(table).float()
    expected = [ops.embedding(IDS, floats), ops.linear(x, floats, None, None, None)]
    sizes = []
    for most in (15, 16384):
        monkeypatch.setattr(CoremlWeights, "most_rows", most)
        package, backend = tmp_path / f"{most}.mlpackage", CoremlBackend(16)
        read = lambda spec: [stored_bytes(head, 0)]  # noqa: E731
        blobs = backend.assemble([rows.subgraph, head.subgraph], read, package, package.name, 16).blobs
        references = [Reference.of_bytes(blob, "file", ASSET) for blob in blobs]
        interpreter = backend.interpreter(package)
        given = [IDS.numpy().astype(np.int32), x.numpy()]
        for reference, data, wanted in zip(references, given, expected, strict=True):
            found = interpreter.call(reference.function, {reference.inputs[0].name: data}, {})["output0"]
            assert np.abs(found - wanted.numpy()).max() <= 1e-5 * wanted.abs().max()
        sizes.append((package / WEIGHTS).stat().st_size)
    stored = ROWS * COLUMNS * {"4": 5, "8": 9, "float16": 16}.get(name, 32) / 8
    assert max(sizes) < stored + 1500
