"""What is written is read back, and nothing half-written is left behind."""

import json
from dataclasses import replace

import pytest
import torch

from llm_export.errors import FileError, ProgramError
from llm_export.instructions.dims import constant
from llm_export.partition import Partitioned
from llm_export.plan import plan
from llm_export.program.formats import stored_bytes
from llm_export.program.instructions import (
    CheckFigures,
    Dim,
    GoldenSample,
    Instruction,
    LoweredMethod,
    Metadata,
    Numbers,
    Program,
    Provenance,
    Value,
)
from llm_export.program.specs import StateSpec, WeightSpec
from llm_export.program.writer import SEGMENT_ALIGNMENT, replace_metadata, write_program
from tests.llm_export.program_reader import read_program

WEIGHTS = [
    WeightSpec(("a.weight", "b.weight"), (3, 5), torch.float32),
    WeightSpec(("c",), (), torch.bool),
    WeightSpec(("d.weight",), (20, 64), torch.bfloat16, bits=4, group_size=32),
    WeightSpec(("e",), (7,), torch.bfloat16),
]


def content(spec):
    generator = torch.Generator().manual_seed(len(spec.name))
    return bytes(torch.randint(0, 256, (stored_bytes(spec),), dtype=torch.uint8, generator=generator).tolist())


def chunks(spec):
    data = content(spec)
    yield data[:7]
    yield memoryview(data)[7:]


@pytest.fixture
def planned():
    values = [
        Value("input", torch.int64, (constant(1), Dim(1, 0))),
        Value("weight", torch.float32, (constant(3), constant(5)), weight=0),
        Value("activation", torch.float32, (constant(5), constant(3)), alias_of=1),
        Value("activation", torch.float32, (constant(1), Dim(2, 3))),
    ]
    instructions = [
        Instruction("aten.permute", [1], [2], {"dims": (constant(1), constant(0))}, "model.layers.0"),
        Instruction(
            "mote.test",
            [0, -1, 2],
            [3],
            {"scale": Numbers((0.1, -2.5)), "size": (Dim(2, 3),), "function": "silu", "none": ()},
        ),
    ]
    method = LoweredMethod("verify", values, [0], ["input_ids"], [3], instructions, 1, 99)
    states = [StateSpec("layers.0", "kv_cache", 2, 16, 8, window=4), StateSpec("mixer", "recurrent", shape=(2, 3))]
    return plan(Partitioned(Program([method], states, list(WEIGHTS), {})))


@pytest.fixture
def metadata():
    provenance = Provenance("org/model", "abc", "llama", "none", "0.1", "2.13", "5.23", "Apache, é")
    golden = GoldenSample("hi", (1, 2), (3,), (4, 5), (0.5, -1.0), 1e-4)
    template, check = "{{ x }} é".encode(), CheckFigures("full", 0.5, 0.25, 0.125, 0.75, 30)
    return Metadata(provenance, 128, 64, 1, (2, 3), '{"top_p": 0.9}', (golden,), b'{"model": {}}', template, check)


def test_reads_back_what_was_written(tmp_path, planned, metadata):
    path = tmp_path / "m.mote"
    size = write_program(path, planned, metadata, chunks)
    file = read_program(path)
    file.check_segments()
    assert size == path.stat().st_size
    assert file.planned.program.methods == planned.program.methods
    assert file.planned.methods == planned.methods
    assert file.planned.program.states == planned.program.states
    assert file.metadata.golden_samples[0].tolerance == pytest.approx(1e-4)
    assert (file.metadata.provenance, file.metadata.check) == (metadata.provenance, metadata.check)
    assert (file.metadata.tokenizer, file.metadata.chat_template) == (metadata.tokenizer, metadata.chat_template)
    assert (file.metadata.eos_token_ids, file.metadata.generation_config) == ((2, 3), '{"top_p": 0.9}')
    for index, spec in enumerate(WEIGHTS):
        assert bytes(file.weight_bytes(index)) == content(spec)
        assert (file.weights[index].name, file.weights[index].shape) == (spec.name, spec.shape)
    assert file.weight(0).shape == (3, 5)


def test_segments_and_weights_are_aligned(tmp_path, planned, metadata):
    write_program(tmp_path / "m.mote", planned, metadata, chunks)
    file = read_program(tmp_path / "m.mote")
    assert [segment.kind for segment in file.segments] == ["weights", "tokenizer", "chat_template"]
    assert all(segment.offset % SEGMENT_ALIGNMENT == 0 for segment in file.segments)
    assert all(offset % 64 == 0 for offset in file.weight_offsets)
    assert file.segments[-1].offset + file.segments[-1].bytes == len(file.contents)


def test_a_weight_of_the_wrong_size_is_refused(tmp_path, planned, metadata):
    with pytest.raises(ProgramError, match=r"a\.weight\+b\.weight: 3 bytes were produced, the format needs 60"):
        write_program(tmp_path / "m.mote", planned, metadata, lambda spec: [b"abc"])


def test_metadata_is_replaced_in_place(tmp_path, planned, metadata):
    path = tmp_path / "m.mote"
    size = write_program(path, planned, metadata, chunks)
    other = replace(metadata, golden_samples=(replace(metadata.golden_samples[0], text="hi", expected_ids=(9,)),))
    replace_metadata(path, planned, replace(other, generation_config="{}"))
    file = read_program(path)
    file.check_segments()
    assert path.stat().st_size == size
    assert (file.metadata.golden_samples[0].expected_ids, file.metadata.generation_config) == ((9,), "{}")
    assert bytes(file.weight_bytes(0)) == content(WEIGHTS[0])
    written = path.read_bytes()
    with pytest.raises(ProgramError, match=r"m\.mote: the metadata takes \d+ bytes more than was reserved"):
        replace_metadata(path, planned, replace(metadata, generation_config=json.dumps({"x": "y" * 4096})))
    assert path.read_bytes() == written


@pytest.mark.parametrize("damage", ["truncate", "append", "flip", "magic", "version", "empty"])
def test_damaged_files_are_refused(tmp_path, planned, metadata, damage):
    path = tmp_path / "m.mote"
    write_program(path, planned, metadata, chunks)
    data = bytearray(path.read_bytes())
    if damage == "truncate":
        data = data[:-1]
    elif damage == "append":
        data += b"x"
    elif damage == "empty":
        data = b""
    else:
        data[{"flip": 200, "magic": 0, "version": 8}[damage]] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="m.mote"):
        read_program(path)


def test_a_damaged_segment_is_found(tmp_path, planned, metadata):
    path = tmp_path / "m.mote"
    write_program(path, planned, metadata, chunks)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="segment chat_template"):
        read_program(path).check_segments()


def test_figures_of_a_check_take_the_place_of_any_others(tmp_path, planned, metadata):
    path = tmp_path / "m.mote"
    write_program(path, planned, metadata, chunks)
    size = path.stat().st_size
    zeros = CheckFigures("full", 0.0, 0.0, 0.0, 0.0, 0)
    replace_metadata(path, planned, replace(metadata, check=zeros))
    assert read_program(path).metadata.check == zeros
    replace_metadata(path, planned, metadata)
    assert (read_program(path).metadata.check, path.stat().st_size) == (metadata.check, size)
