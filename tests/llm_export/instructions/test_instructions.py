"""Tiny models through passes, instructions and plan against the Hugging Face modules, and what instructions must be."""

from collections import Counter

import pytest
import torch
from torch import nn

from llm_export.errors import UnsupportedError
from llm_export.instructions import lower
from llm_export.passes import Fused
from tests.contracts.architectures import find, tiny_config
from tests.llm_export.passes.graphs import Captured, module_of
from tests.llm_export.tiny import check_against_eager, export_tiny


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gpt2"])
def test_instructions_compute_what_the_module_computes(name, tmp_path):
    row = find(name)
    check_against_eager(export_tiny(tiny_config(row), tmp_path), row.same_calls)


def test_a_llama_layer_is_few_instructions(tmp_path):
    tiny = export_tiny(tiny_config(find("llama")), tmp_path)
    decode = next(method for method in tiny.planned.program.methods if method.name == "decode")
    views = {"aten.view", "aten.slice", "aten.permute"}
    ops = Counter(instruction.op for instruction in decode.instructions if instruction.op not in views)
    assert ops == {
        "mote.embedding": 1, "mote.rope_table": 1, "mote.linear": 7, "mote.rope": 4, "mote.attention": 2,
        "mote.gated_linear": 2,
    }  # fmt: skip
    assert all(size.tokens == 0 for value in decode.values for size in value.shape)
    assert (decode.min_tokens, decode.max_tokens) == (1, 1)


def test_a_weight_is_in_the_table_once(tmp_path):
    program = export_tiny(tiny_config(find("gemma2")), tmp_path).planned.program
    sources = [source for spec in program.weights for source in spec.sources]
    assert len(sources) == len(set(sources))


def lower_alone(captured: Captured):
    """Instructions of a graph that no pass has changed."""
    return lower(Fused(**vars(captured.methods)))


def lowered(forward, x_shape=(64,), **parts):
    return lower_alone(Captured(module_of(forward, **parts), x_shape)).methods[0]


def test_an_unknown_op_is_named_with_its_place():
    with pytest.raises(
        UnsupportedError, match=r"aten\.digamma\.default at model\.layers\.3, modeling_x\.py:12 in forward"
    ):
        captured = Captured(module_of(lambda m, x, p: x.digamma()))
        node = captured.editor().calls("aten.digamma.default")[0]
        node.meta["nn_module_stack"] = {"a": ("model", "X"), "b": ("model.layers.3", "Y")}
        node.meta["stack_trace"] = 'File "/lib/transformers/modeling_x.py", line 12, in forward\n    y = x.digamma()\n'
        lower_alone(captured)


def test_a_size_that_is_quadratic_in_the_tokens_is_refused():
    with pytest.raises(UnsupportedError, match="quadratic|not linear"):
        lowered(lambda m, x, p: (x @ x.transpose(1, 2)).softmax(-1).sum(-1))


def test_types_are_promoted_explicitly():
    method = lowered(lambda m, x, p: x * p[:, :, None] + (p > 3)[:, :, None])
    for instruction in method.instructions:
        if instruction.op in ("aten.mul", "aten.add", "aten.gt"):
            assert len({method.values[index].dtype for index in instruction.inputs}) == 1
    assert [i.op for i in method.instructions].count("aten._to_copy") == 2


def test_a_view_that_strides_do_not_allow_is_copied_first():
    method = lowered(lambda m, x, p: x.view(1, x.shape[1], 4, 16).transpose(1, 2).reshape(1, 4, -1))
    assert [i.op for i in method.instructions] == ["aten.view", "aten.permute", "aten.clone", "aten.view"]


def test_equal_numbers_share_a_weight():
    program = lower_alone(Captured(module_of(lambda m, x, p: (x * 3.0).sin() * 3.0 + 2)))
    assert sorted(spec.name for spec in program.weights) == ["constant.float32.2.0", "constant.float32.3.0"]


def test_half_precision_parameters_are_stored_as_their_op_computes():
    weight = nn.Parameter(torch.empty(64))
    captured = Captured(module_of(lambda m, x, p: x * m.weight, weight=weight))
    name = next(iter(captured.methods.weights))
    spec = captured.methods.weights[name]
    captured.methods.weights[name] = type(spec)(spec.sources, spec.shape, torch.bfloat16)
    assert lower_alone(captured).weights[0].dtype == torch.float32
