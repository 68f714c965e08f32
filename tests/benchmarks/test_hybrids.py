"""Shapes with recurrent layers: what a token costs, and what llama.cpp is given of them."""

import pytest

from benchmarks import decode_parts, hybrids, rewinding
from benchmarks.peers import llama_cpp_hybrids
from benchmarks.shapes import SHAPES, decode_bytes, head_weights, layer_weights, tensor_shapes


class Named:
    """An array of which only the shape matters."""

    def __init__(self, shape):
        self.shape = shape

    def reshape(self, *shape):
        return Named(shape) if len(shape) < 3 else (self, self)


class Recorder:
    def __init__(self):
        self.added = {}

    def __getattr__(self, name):
        return lambda value: self.added.__setitem__(name, value)


def test_weights_and_states_of_a_delta_rule():
    config = SHAPES["qwen3.5-0.8b"]
    recurrent = (6144 + 2048 + 16 + 16 + 2048) * 1024
    attention = (4096 + 512 + 512 + 2048) * 1024
    assert layer_weights(config) == 18 * recurrent + 6 * attention + 24 * 3 * 3584 * 1024
    assert hybrids.state_elements(config) == 18 * (16 * 128 * 128 + 6144 * 3)
    weights = (layer_weights(config) + head_weights(config)) * 4.25 / 8
    assert decode_bytes(config, 100, 2) == weights + 8 * hybrids.state_elements(config) + 100 * 2 * 6 * 2 * 256 * 2


@pytest.mark.parametrize("name", hybrids.HYBRIDS)
def test_llama_cpp_is_given_every_tensor_once(name):
    config = SHAPES[name]
    shapes = tensor_shapes(config)
    found: dict = {}
    for tensor, shape in shapes.items():
        given = llama_cpp_hybrids.tensors(config, tensor, Named(shape))
        assert given and not found.keys() & given.keys(), tensor
        found |= given
    assert {name.split(".")[1] for name in found if name.startswith("blk.")} == {
        str(index) for index in range(config["num_hidden_layers"])
    }
    matrices = [name for name in found if llama_cpp_hybrids.is_linear(name) and len(found[name].shape) == 2]
    assert "token_embd.weight" in matrices and not any("norm" in name or "conv" in name for name in matrices)
    writer = Recorder()
    llama_cpp_hybrids.add_metadata(writer, config)
    assert writer.added["add_ssm_conv_kernel"] == 4
    heads = llama_cpp_hybrids.key_value_heads(config)
    assert heads == config["num_key_value_heads"] or heads.count(0) == 36


def test_distances_end_with_all_tokens():
    assert rewinding.distances(1) == [1]
    assert rewinding.distances(6) == [1, 2, 4, 6]


def test_going_back_is_measured(capsys, demo_files):
    rewinding.main([str(demo_files.path()), "--tokens", "3", "--rounds", "1", "--threads", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["1", "2", "3"]


def test_parts_of_a_step_are_all_instructions_and_the_head_apart(capsys, demo_files):
    decode_parts.main([str(demo_files.path()), "--tokens", "2", "--depth", "8", "--threads", "1"])
    lines = capsys.readouterr().out.splitlines()
    names = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:]
    assert "the output head" in names and "mote.attention" in names and len(names) == len(set(names))
    made = [("mote.linear", 4000, [9.0, 2.0]), ("mote.linear", 100_000, [80.0, 70.0]), ("aten.mul", 10, [1.0, 1.0])]
    text = decode_parts.table(made, 0)
    assert "| the output head | 1 | 0.1 | 0.050 | 2.0 |" in text and text.endswith("The head itself: 0.07 ms.")
