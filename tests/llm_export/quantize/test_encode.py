"""The bytes of a stored weight do not depend on how the checkpoint cuts it, and hold what the recipe asks for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from llm_export.errors import FileError
from llm_export.program.formats import stored_bytes
from llm_export.program.specs import WeightSpec
from llm_export.quantize.affine import quantize_rows
from llm_export.quantize.encode import encode
from llm_export.quantize.pack import unpack


def encoded(spec, tensors):
    return np.concatenate(list(encode(spec, tensors.__getitem__)))


@pytest.mark.parametrize("bits", range(1, 9))
def test_parts_of_any_height_are_joined(bits):
    whole = torch.randn(3000, 64)
    tensors = dict(zip(("q", "k", "v"), whole.split([1999, 1, 1000]), strict=True))
    spec = WeightSpec(("q", "k", "v"), (3000, 64), torch.int8, bits=bits, group_size=32)
    data = encoded(spec, tensors)
    assert data.nbytes == stored_bytes(spec)
    found = unpack(torch.from_numpy(data).view(188, -1), bits, 32, 3000)
    assert all(torch.equal(a, b) for a, b in zip(found, quantize_rows(whole, bits, 32), strict=True))


def test_large_weights_are_cut_into_blocks():
    weight = torch.randn(700, 512, generator=torch.Generator().manual_seed(0))
    spec = WeightSpec(("w",), (700, 512), torch.int8, bits=4, group_size=32)
    blocks = list(encode(spec, {"w": weight}.__getitem__))
    assert len(blocks) > 1
    found = unpack(torch.from_numpy(np.concatenate(blocks)).view(44, -1), 4, 32, 700)
    assert torch.equal(found.codes, quantize_rows(weight, 4, 32).codes)


class ComputedRows:
    """A matrix that gives a few rows at a time, as weights do that are stored quantized."""

    def __init__(self, values):
        self.values, self.shape, self.most = values, tuple(values.shape), 0

    def __getitem__(self, rows):
        self.most = max(self.most, len(range(*rows.indices(len(self.values)))))
        return self.values[rows]


@pytest.mark.parametrize("spec", [{"dtype": torch.uint8, "bits": 4, "group_size": 32}, {"dtype": torch.float32}])
def test_rows_are_computed_a_block_at_a_time(spec):
    values = {name: torch.randn(700, 512) for name in "ab"}
    computed = {name: ComputedRows(value) for name, value in values.items()}
    spec = WeightSpec(("a", "b"), (1400, 512), **spec)
    assert np.array_equal(encoded(spec, computed), encoded(spec, values))
    assert 0 < computed["a"].most <= 256


def test_transposed_weights():
    weight = torch.randn(64, 48)
    spec = WeightSpec(("w",), (48, 64), torch.int8, bits=8, group_size=64, transpose=True)
    found = unpack(torch.from_numpy(encoded(spec, {"w": weight})).view(3, -1), 8, 64, 48)
    assert torch.equal(found.codes, quantize_rows(weight.T, 8, 64).codes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dense_weights_keep_their_values(dtype):
    tensors = {"a": torch.randn(5, 7).to(dtype), "b": torch.randn(2, 7).to(dtype)}
    data = encoded(WeightSpec(("a", "b"), (7, 7), dtype), tensors)
    assert torch.equal(torch.from_numpy(data).view(dtype).view(7, 7), torch.cat((tensors["a"], tensors["b"])))


@pytest.mark.parametrize("value", [torch.tensor(3.5), torch.tensor([1, 2, 3])])
def test_constants(value):
    spec = WeightSpec(("c",), tuple(value.shape), value.dtype)
    data = encoded(spec, {"c": value})
    assert torch.equal(torch.from_numpy(data).view(value.dtype), value.flatten())


def test_experts_are_padded_one_by_one():
    weight = torch.randn(3, 24, 32)
    spec = WeightSpec(("w",), (3, 24, 32), torch.int8, bits=4, group_size=32)
    blocks = torch.from_numpy(encoded(spec, {"w": weight})).view(3, 2, -1)
    assert blocks.numel() == stored_bytes(spec)
    for expert in range(3):
        found = unpack(blocks[expert], 4, 32, 24)
        assert torch.equal(found.codes, quantize_rows(weight[expert], 4, 32).codes)


def test_refuses_a_shape_that_the_program_does_not_expect():
    spec = WeightSpec(("w",), (4, 32), torch.float32)
    with pytest.raises(FileError, match=r"w: the checkpoint has shape \[5, 32\]; the program needs \[4, 32\]"):
        encoded(spec, {"w": torch.zeros(5, 32)})


@pytest.mark.parametrize("bits", [0, 4])
def test_each_matrix_of_a_stack_has_the_rows_of_all_its_sources(bits):
    generator = torch.Generator().manual_seed(0)
    gates, ups = (torch.randn(3, rows, 64, generator=generator) for rows in (24, 8))
    spec = WeightSpec(("g",), (3, 32, 64), torch.int8 if bits else torch.float32, bits=bits, group_size=32)
    expected = encoded(spec, {"g": torch.cat((gates, ups), dim=1)})
    assert np.array_equal(encoded(replace(spec, sources=("g", "u")), {"g": gates, "u": ups}), expected)
    with pytest.raises(FileError, match=r"has shape \[3, 24, 64\], \[2, 8, 64\]; the program needs \[3, 32, 64\]"):
        encoded(replace(spec, sources=("g", "u")), {"g": gates, "u": ups[:2]})


@pytest.mark.parametrize("bits", [0, 4])
def test_the_first_matrices_of_a_stack(bits):
    stack = torch.randn(5, 32, 64, generator=torch.Generator().manual_seed(0))
    spec = WeightSpec(("w",), (3, 32, 64), torch.int8 if bits else torch.float32, bits=bits, group_size=32)
    expected = encoded(spec, {"w": stack[:3]})
    assert np.array_equal(encoded(replace(spec, takes_first=True), {"w": stack}), expected)
    with pytest.raises(FileError, match="the program needs"):
        encoded(spec, {"w": stack})
