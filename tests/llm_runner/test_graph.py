"""`mote inspect --graph`: Model Explorer's JSON, DOT and ONNX of one file say the same as its description."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from llm_runner import Model
from mote.commands import runner_binary


@pytest.fixture(scope="module")
def path(demo_files) -> Path:
    return demo_files.path()


@pytest.fixture(scope="module")
def about(path) -> dict:
    return Model.load(path).describe()


def method_of(about: dict, name: str) -> dict:
    return next(method for method in about["methods"] if method["name"] == name)


def inspect(*arguments: object, status: int = 0) -> bytes:
    done = subprocess.run([runner_binary(), "inspect", *map(str, arguments)], capture_output=True)
    assert done.returncode == status, done.stderr.decode()
    return done.stderr if status else done.stdout


def weights_of(about: dict, instruction: dict) -> list[dict]:
    return [about["weights"]["tensors"][weight["tensor"]] for weight in instruction["weights"]]


def attributes(node: dict) -> dict[str, str]:
    return {each["key"]: each["value"] for each in node["attrs"]}


def test_model_explorer_gets_every_instruction_in_its_module_with_its_weights(path, about, tmp_path):
    inspect(path, "--graph", tmp_path / "graph.json")
    collection = json.loads((tmp_path / "graph.json").read_text())
    assert [graph["id"] for graph in collection["graphs"]] == [method["label"] for method in about["methods"]]
    for graph, method in zip(collection["graphs"], about["methods"], strict=True):
        nodes = {node["id"]: node for node in graph["nodes"]}
        assert len(nodes) == len(graph["nodes"]) == method["num_instructions"] + len(method["inputs"]) + 1
        for node in nodes.values():
            assert set(node) <= {"id", "label", "namespace", "attrs", "incomingEdges", "inputsMetadata",
                                 "outputsMetadata"}  # fmt: skip
            for edge in node.get("incomingEdges", []):
                source = nodes[edge["sourceNodeId"]]
                assert edge["sourceNodeOutputId"] in [each["id"] for each in source["outputsMetadata"]]
        for index, instruction in enumerate(method["instructions"]):
            node = nodes[str(index)]
            assert node["label"] == instruction["op"]
            assert node["namespace"] == instruction["origin"].replace(".", "/")
            named = {key: value for key, value in attributes(node).items() if key.startswith("weight (")}
            assert list(named.values()) == [weight["name"] for weight in weights_of(about, instruction)]
            weights = {weight["input"] for weight in instruction["weights"]}
            read = [str(i) for i, value in enumerate(instruction["inputs"]) if value >= 0 and i not in weights]
            assert [edge["targetNodeInputId"] for edge in node["incomingEdges"]] == read
        assert len(nodes["outputs"]["incomingEdges"]) == len(method["outputs"])


def test_model_explorer_sees_shapes_kernels_and_sizes_of_modules(path, about, tmp_path):
    inspect(path, "--graph", tmp_path / "graph.json", "--method", "verify")
    (graph,) = json.loads((tmp_path / "graph.json").read_text())["graphs"]
    linear = next(node for node in graph["nodes"] if node["label"] == "mote.linear")
    assert attributes(linear)["runs on"] == "cpu"
    assert "codes" in attributes(linear)["kernel"]
    shape = attributes({"attrs": linear["outputsMetadata"][0]["attrs"]})["tensor_shape"]
    assert re.fullmatch(r"float32\[1,T,\d+\]", shape)
    whole = graph["groupNodeAttributes"][""]
    assert int(whole["instructions"]) == method_of(about, "verify")["num_instructions"]
    assert "model/layers/0/self_attn" in graph["groupNodeAttributes"]


def test_dot_has_a_cluster_for_each_module_and_resolves_its_edges(path, about):
    text = inspect(path, "--graph", "-", "--graph-format", "dot", "--method", "prefill").decode()
    method = method_of(about, "prefill")
    assert text.count("{") == text.count("}")
    statement = re.compile(r'^\s*("(?:[^"\\]|\\.)*"|outputs)( -> ("(?:[^"\\]|\\.)*"|outputs))? \[.*\];$', re.M)
    nodes, edges = set(), []
    for first, arrow, second in statement.findall(text):
        if arrow:
            edges.append((first, second))
        else:
            assert first not in nodes
            nodes.add(first)
    assert len(nodes) == method["num_instructions"] + len(method["inputs"]) + 1
    assert {end for edge in edges for end in edge} <= nodes
    clusters = re.findall(r'subgraph "cluster_([^"]*)"', text)
    assert len(clusters) == len(set(clusters))
    assert {i["origin"] for i in method["instructions"]} <= set(clusters)
    for instruction in method["instructions"]:
        assert all(weight["name"] in text for weight in weights_of(about, instruction))


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """Reads a message of protobuf that has integers and bytes only."""
    found, place = [], 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        assert key & 7 in (0, 2)
        value: int | bytes = varint()
        if key & 7 == 2:
            place += value
            assert place <= len(message)
            value = message[place - value : place]
        found.append((key >> 3, value))
    return found


def every(message: bytes, number: int) -> list:
    return [value for field, value in fields(message) if field == number]


def test_onnx_has_the_weights_as_tensors_and_every_value_is_made_before_it_is_read(path, about, tmp_path):
    inspect(path, "--graph", tmp_path / "decode.onnx")
    model = (tmp_path / "decode.onnx").read_bytes()
    (graph,) = every(model, 7)
    method = method_of(about, "decode")
    nodes = every(graph, 1)
    assert [f"{every(n, 7)[0].decode()}.{every(n, 4)[0].decode()}" for n in nodes] == [
        instruction["op"] for instruction in method["instructions"]
    ]
    weights = {every(tensor, 8)[0].decode(): every(tensor, 1) for tensor in every(graph, 5)}
    expected = [weight for i in method["instructions"] for weight in weights_of(about, i)]
    assert weights == {weight["name"]: weight["shape"] for weight in expected}
    known = {name.encode() for name in weights} | {every(value, 1)[0] for value in every(graph, 11)}
    for node in nodes:
        assert set(every(node, 1)) - {b""} <= known
        known |= set(every(node, 2))
    assert {every(value, 1)[0] for value in every(graph, 12)} <= known
    domains = {every(each, 1)[0] for each in every(model, 8)}
    assert {every(node, 7)[0] for node in nodes} == domains


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--graph", "FOLDER/graph.txt"], "must end in .json, .dot, .gv or .onnx"),
        (["--graph", "FOLDER/graph.json", "--method", "train"], "--method train: the file has no such method"),
        (["--graph", "FOLDER/nowhere/graph.json"], "graph.json"),
        (["--graph", "FOLDER"], "must end in"),
        (["--method", "decode"], "--graph"),
    ],
)
def test_a_graph_that_cannot_be_written_is_refused(path, tmp_path, arguments, named):
    arguments = [word.replace("FOLDER", str(tmp_path)) for word in arguments]
    assert named in inspect(path, *arguments, status=2).decode()
    assert list(tmp_path.iterdir()) == []


def test_instructions_are_listed_with_their_weights_in_80_columns(path, about):
    text = inspect(path, "--ops", "decode").decode()
    method = method_of(about, "decode")
    assert max(map(len, text.splitlines())) <= 80
    blocks = re.split(r"^(?= {0,3}\d+  )", text, flags=re.M)[1:]
    assert len(blocks) == method["num_instructions"]
    for block, instruction in zip(blocks, method["instructions"], strict=True):
        assert instruction["op"] in block and instruction["origin"] in block
        for weight in weights_of(about, instruction):
            assert weight["name"].split("+")[0].split(".")[-2] in block
            assert weight["format"] in block


def test_tables_fit_80_columns(path):
    tables = inspect(path).decode().split("\nMethods\n")[1]
    assert max(map(len, tables.splitlines())) <= 80
    assert max(map(len, inspect(path, "--kernels").decode().splitlines())) <= 80
