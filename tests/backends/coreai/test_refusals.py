"""What cannot become an asset, and what is said of it. None of this needs Apple's package but where it says so."""

from __future__ import annotations

import json

import pytest
import torch

from backends.coreai import vendor
from backends.coreai.lowering import ASSET, CoreaiBackend
from backends.tensor_ops.reference import Reference
from llm_export import api
from llm_export.errors import ArgumentError, FileError, ProgramError
from llm_export.program.specs import StateSpec
from tests.backends.parts import Part, Typed, dims, linear_attributes, numbers, quantised, random
from tests.backends.tensor_ops.sessions import pretend_version
from tests.contracts.architectures import save_tiny_checkpoint

SHAPE = (2, 8)
TILES = quantised(random(32, 64), 4, 32)


def with_state(part: Part, spec: StateSpec) -> Part:
    part.subgraph = part.subgraph.__class__(part.subgraph.method, part.specs, part.constants, frozenset(), (spec,))
    return part


def recurrence(tokens: int, kind: str = "recurrent") -> Part:
    operands = [(1, tokens, 2, 8), (1, tokens, 2, 8), (1, tokens, 2, 4)]
    part = Part("mote.linear_attention", operands, (1, tokens, 2, 4), {"state": dims(0)})
    return with_state(part, StateSpec("memory", kind, shape=(1, 2, 4, 8)))


def grows() -> Part:
    from tests.backends.parts import T

    return Part("aten.abs", [(T, 8)], (T, 8))


EXAMPLES = [
    ("it has no such op here", Part("aten.isinf", [SHAPE], SHAPE)),
    ("calls of any length", grows()),
    ("dtype float16", Part("aten.abs", [Typed(SHAPE, torch.float16)], Typed(SHAPE, torch.float16))),
    ("a weight that is computed",
     Part("mote.linear", [(2, 8), (4, 8), None, None, None], (2, 4), linear_attributes("float"))),
    ("inputs that are rounded to int8",
     Part("mote.linear", [(2, 64), TILES, None, None, None], (2, 32), linear_attributes("int8"))),
    ("function swish", Part("mote.gated_linear", [(2, 64), TILES, None, None], (2, 16),
                            {**linear_attributes("float"), "function": "swish"})),
    ("a weight of dtype uint8 and rank 1", Part("aten.abs", [random(8).to(torch.uint8)], (8,))),
    ("a recurrence over 33 tokens at once: must be at most 32", recurrence(33)),
    ("a scatter over a part of the other axes",
     Part("aten.scatter", [(4, 6), Typed((2, 3), torch.int64), (2, 3)], (4, 6), {"dim": dims(1)})),
]  # fmt: skip


@pytest.mark.parametrize(("words", "part"), EXAMPLES, ids=[words for words, _ in EXAMPLES])
def test_refusals_say_why(words, part):
    assert CoreaiBackend().refusal(part.subgraph) == words


def test_what_is_taken_needs_no_package(monkeypatch):
    monkeypatch.setattr(vendor, "_package", None)
    assert CoreaiBackend().refusal(recurrence(32).subgraph) is None
    assert CoreaiBackend().refusal(Part("aten.clamp", [SHAPE], SHAPE, {"min": numbers(0.0)}).subgraph) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [(None, r"coreai: needs coreai-core 1\.0\.0b3, which is not installed: pip install 'mote-llm\[coreai\]'"),
     ("1.0.0b2", r"coreai: coreai-core is 1\.0\.0b2: must be 1\.0\.0b3: pip install")],
)  # fmt: skip
def test_a_package_that_is_missing_or_another(found, said, tmp_path, monkeypatch):
    pretend_version(monkeypatch, found)
    with pytest.raises(ArgumentError, match=said):
        api.export(tmp_path, tmp_path / "model.mote", backends="coreai")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"backends": "coreai,xnnpack"}, "backend = 'coreai,xnnpack': coreai keeps the weights in an asset of its own"),
     ({"backends": "xnnpack+coreai"}, r"backend = 'xnnpack\+coreai': coreai keeps the weights"),
     ({"weights_file": "w.motew"}, r"weights_file = w\.motew: must be absent: coreai keeps weights in its asset"),
     ({"recipe": "8da4w"}, "recipe = '8da4w': coreai takes no inputs that are rounded to int8: must be one of 1w, ")],
)  # fmt: skip
def test_arguments_that_do_not_go_together(arguments, said, tmp_path, coreai):
    with pytest.raises(ArgumentError, match=said):
        api.export(tmp_path, tmp_path / "model.mote", **{"backends": "coreai", **arguments})


def test_a_model_of_which_not_all_is_taken(tmp_path, coreai):
    """llama with dynamic RoPE: its frequencies depend on the call."""
    save_tiny_checkpoint("llama-dynamic", tmp_path / "checkpoint")
    with pytest.raises(ProgramError, match=r"coreai: does not take aten\.amax of .* asset must hold the whole model"):
        api.export(tmp_path / "checkpoint", tmp_path / "model.mote", backends=[CoreaiBackend(64, (4,))], check="off")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


REFERENCE = Reference("a.aimodel", "00", "decode", 16, (), (), ())


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"format": 2}, "format = 2: must be 1"),
     ({"asset": "../a.aimodel"}, r"asset = '\.\./a\.aimodel': must be a name that ends in \.aimodel"),
     ({"asset": 3}, "asset = 3: must be a text"),
     ({"context_length": 0}, "context_length = 0: must be 1 to 2147483647"),
     ({"inputs": 3}, "is no reference to a Core AI asset"),
     ({"inputs": [{"name": "x", "shape": [-1], "dtype": "float32"}]}, "is no reference to a Core AI asset: shape"),
     ({"other": 1}, "is no reference to a Core AI asset")],
)  # fmt: skip
def test_references_come_from_files(changed, said):
    assert Reference.of_bytes(REFERENCE.to_bytes(), "file", ASSET) == REFERENCE
    fields = json.loads(REFERENCE.to_bytes()) | changed
    with pytest.raises(FileError, match=said):
        Reference.of_bytes(json.dumps(fields).encode(), "file", ASSET)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"3", b"[" * 100_000])
def test_bytes_that_are_no_reference(data):
    with pytest.raises(FileError, match="is no reference to a Core AI asset"):
        Reference.of_bytes(data, "file", ASSET)
