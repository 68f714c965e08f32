"""HQQ checkpoints: values as hqq dequantizes them, what is kept, what is refused."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import llm_export.api
from llm_export.errors import FileError
from tests.llm_export.checkpoint.quantized_files import opened, plain_model
from tests.llm_export.program_reader import read_program

# Fields of a word by bits, the highest first.
FIELDS = {
    8: [0],
    6: [0],
    5: [0],
    4: [4, 0],
    3: [27, 24, 21, 18, 15, 12, 9, 6, 3, 0],
    2: [6, 4, 2, 0],
    1: range(7, -1, -1),
}


def pack(digits: Tensor, bits: int) -> Tensor:
    """As hqq's BitPack: whole blocks of rows, one for each field."""
    shifts = list(FIELDS[bits])
    words = -(-len(digits) // len(shifts))
    padded = torch.zeros(words * len(shifts), digits.shape[1], dtype=torch.int32)
    padded[: len(digits)] = digits
    packed = sum(padded[i * words : (i + 1) * words] << shift for i, shift in enumerate(shifts))
    return packed if bits == 3 else packed.to(torch.uint8)


class Written:
    """A folder as hqq and transformers save it; `expected` is Quantizer.dequantize, in the dtype of scales."""

    def __init__(self, folder, bits, group, axis=1, dtype=torch.float16, whole=False, as_float=False):
        self.path = folder
        self.expected = {}
        generator = torch.Generator().manual_seed(1)
        plain_model().save_pretrained(folder)
        self.tensors = load_file(folder / "model.safetensors")
        for name in [name for name in self.tensors if name.endswith("_proj.weight")]:
            rows, columns = self.tensors.pop(name).shape
            shape = (rows * columns // group, group) if axis == 1 else (group, rows * columns // group)
            of_groups = (shape[0], 1) if axis == 1 else (1, shape[1])
            digits = torch.randint(0, 1 << bits, shape, generator=generator)
            scale = (0.002 + 0.004 * torch.rand(of_groups, generator=generator)).to(dtype)
            zero = (1 << bits) * torch.rand(of_groups, generator=generator)
            zero = (zero.round() if whole else zero).to(dtype)
            packed = pack(digits, bits)
            prefix = name.removesuffix("weight")
            fields = {
                "nbits": bits,
                "group_size": group,
                "axis": axis,
                "shape": [rows, columns],
                "view_as_float": as_float,
            }
            self.tensors |= {prefix + field: torch.tensor(value).int() for field, value in fields.items()}
            self.tensors |= {
                f"{prefix}W_q": packed.view(dtype) if as_float else packed, f"{prefix}scale": scale,
                f"{prefix}zero": zero, f"{prefix}packing": torch.tensor(list(b"4bit_u8"), dtype=torch.uint8),
                f"{prefix}channel_wise": torch.tensor(1, dtype=torch.uint8),
            }  # fmt: skip
            self.expected[name] = ((digits.to(dtype) - zero) * scale).reshape(rows, columns)
        self.save()

    def save(self) -> None:
        save_file(self.tensors, self.path / "model.safetensors")
        path = self.path / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": "hqq"}}))


WHOLE = {bits: {"bits": bits, "group": 64, "whole": True} for bits in (6, 4, 3, 2, 1)}
EXACT = {f"{bits} bits": config for bits, config in WHOLE.items()} | {"as float": WHOLE[4] | {"as_float": True}}
VALUES = {
    "4 bits": {"bits": 4, "group": 64},
    "8 bits of bfloat16": {"bits": 8, "group": 128, "dtype": torch.bfloat16},
    "3 bits of float32": {"bits": 3, "group": 32, "dtype": torch.float32},
    "axis 0": {"bits": 4, "group": 64, "axis": 0, "whole": True},
    "3 bits, axis 0": {"bits": 3, "group": 64, "axis": 0},
    "groups of 8": {"bits": 2, "group": 8, "whole": True},
}


@pytest.mark.parametrize("config", [*EXACT.values(), *VALUES.values()], ids=[*EXACT, *VALUES])
def test_weights_are_what_hqq_makes_of_them_bit_for_bit(tmp_path, config):
    written = Written(tmp_path, **config)
    weights = opened(tmp_path).weights
    for name, expected in written.expected.items():
        assert torch.equal(weights.read(name).to(expected.dtype), expected), name
        assert torch.equal(weights.read_rows(name, 3, 50).to(expected.dtype), expected[3:50]), name


@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
def test_whole_zero_points_are_kept(tmp_path, config):
    Written(tmp_path, **config)
    out = tmp_path / "out.mote"
    report = llm_export.api.export(tmp_path, out, recipe="stored-float", tokenizer=False, check="full")
    assert not report.notes and report.check.max_relative_error < 1e-4
    kept = [spec for spec in read_program(out).planned.program.weights if spec.scales is not None]
    assert sum(len(spec.sources) for spec in kept) == 14


@pytest.mark.parametrize(
    "config, message",
    [
        (VALUES["4 bits"], r"zero' has zero points that are no integers: tiles hold integers of 8 bits"),
        (VALUES["axis 0"], r"axis' = 0: tiles hold groups of consecutive columns"),
        (VALUES["groups of 8"], r"group_size = 8: tiles hold multiples of 32"),
    ],
)
def test_what_tiles_do_not_hold_is_named(tmp_path, config, message):
    Written(tmp_path, **config)
    with pytest.raises(FileError, match=f"model.safetensors: .*{message}.*--requantize quantizes"):
        llm_export.api.export(tmp_path, tmp_path / "out.mote", tokenizer=False)


@pytest.mark.parametrize(
    "leaf, change, message",
    [
        ("nbits", lambda t: t + 3, r"nbits' = \[7.0\]: must be one of \[8, 6, 5, 4, 3, 2, 1, 1.58\]"),
        ("axis", lambda t: t + 1, r"axis' = \[2.0\]: must be one of \[0, 1\]"),
        ("group_size", lambda t: t * 0, r"group_size' = 0: must divide 256 columns"),
        ("group_size", lambda t: t * float("nan"), r"group_size' = \[nan\]: must be one whole number"),
        ("group_size", lambda t: None, r"group_size' is missing"),
        ("shape", lambda t: t[:1], r"shape' = \[128.0\]: must be two sizes"),
        ("shape", lambda t: t * 2, r"W_q' is uint8 \[256, 64\]: must be uint8 \[1024, 64\]"),
        ("W_q", lambda t: t.int(), r"W_q' is int32 \[256, 64\]: must be uint8 \[256, 64\]"),
        ("scale", lambda t: t[:3], r"scale' is float16 \[3, 1\]: must be .* \[512, 1\]"),
        ("zero", lambda t: t.int(), r"zero' is int32 .*: must be bfloat16 or float16 or float32"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(tmp_path, leaf, change, message):
    written = Written(tmp_path, **VALUES["4 bits"])
    name = min(name for name in written.tensors if name.endswith(leaf) and "_proj" in name)
    changed = change(written.tensors.pop(name))
    written.tensors |= {} if changed is None else {name: changed}
    written.save()
    with pytest.raises(FileError, match=message):
        opened(tmp_path)
