"""docs/adding-an-op.md, followed: the op in toy/ is captured, exported and run; every op has its row and its cases."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers.models.llama import modeling_llama

from llm_export import api
from llm_export.capture import ops, recurrent_ops
from llm_runner import Model, MoteError
from tests.contracts.architectures import find, tiny_model
from tests.contracts.ops import CASES
from tests.kernels.toy import ops as toy

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(os.environ.get("MOTE_TEST_KERNELS", ROOT / "build/dev/tests/kernels"))
STATELESS = [case for case in CASES + toy.CASES if case.op != "attention"]  # tests/kernels/test_attention*.cpp has that


def run(program: str, *arguments: str | Path, stdin: str = "") -> str:
    command = [PROGRAMS / program, *arguments]
    result = subprocess.run(command, input=stdin, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def words(kind: str, tensor: Tensor | None, with_elements: bool = True) -> str:
    if tensor is None:
        return "absent\n"
    dtype = "float32" if tensor.is_floating_point() else "int64"
    elements = map(repr, tensor.flatten().tolist() if with_elements else [])
    return " ".join([kind, dtype, str(tensor.dim()), *map(str, tensor.shape), *elements]) + "\n"


def call_of(case, tensors: list[Tensor | None], expected: Tensor) -> str:
    """What run_op reads: the instruction that an export makes of the case."""
    lines = [f"mote.{case.op}\n", *(words("input", tensor) for tensor in tensors)]
    kinds = {"int": "integer", "List[int]": "integers", "float": "number", "str": "text"}
    for argument in getattr(torch.ops.mote, case.op).default._schema.arguments:
        if kind := kinds.get(str(argument.type)):
            value = case.attributes.get(argument.name, argument.default_value)
            value = f"{len(value)} {' '.join(map(str, value))}" if kind == "integers" else value
            lines.append(f"{kind} {argument.name} {value}\n")
    return "".join(lines) + words("output", expected, with_elements=False)


@pytest.mark.parametrize("case", STATELESS, ids=lambda case: f"{case.op} {case.name}")
def test_kernel_computes_the_case(case):
    tensors = case.inputs(torch.Generator().manual_seed(0))
    expected = case.expected(*tensors)
    found = torch.tensor([float(word) for word in run("run_op", stdin=call_of(case, tensors, expected)).split()])
    torch.testing.assert_close(found.double().view(expected.shape), expected.double(), rtol=2e-5, atol=2e-5)


def test_reference_of_the_toy_computes_its_case():
    for case in toy.CASES:
        tensors = case.inputs(torch.Generator().manual_seed(0))
        found = torch.ops.mote.soft_clip(*tensors, **case.attributes)
        torch.testing.assert_close(found.double(), case.expected(*tensors), rtol=1e-5, atol=1e-5)


def schemas() -> dict[str, list[str]]:
    """Every `mote::` op of the exporter with the names of its arguments."""
    text = "".join(Path(module.__file__).read_text() for module in (ops, recurrent_ops))
    names = re.findall(r'@define\(\s*"(\w+)\(', text)
    return {name: [a.name for a in getattr(torch.ops.mote, name).default._schema.arguments] for name in names}


@pytest.mark.parametrize("name, arguments", schemas().items())
def test_row_names_every_argument(name, arguments):
    page = (ROOT / "docs/ops.md").read_text()
    row = next((line for line in page.splitlines() if line.startswith(f"| `mote.{name}` |")), "")
    missing = [argument for argument in arguments if not re.search(rf"\b{argument}\b", row)]
    assert not missing, f"docs/ops.md: the row of mote.{name} does not name {missing}"


class ClippedMLP(modeling_llama.LlamaMLP):
    def __init__(self, config):
        super().__init__(config)
        self.limit = nn.Parameter(torch.ones(config.hidden_size))

    def forward(self, x):
        return torch.ops.mote.soft_clip(super().forward(x), self.limit, scale=1.5)


@pytest.fixture(scope="module")
def clipped(tmp_path_factory):
    """A Llama whose feed-forward layers call the toy, and its file."""
    folder = tmp_path_factory.mktemp("clipped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modeling_llama, "LlamaMLP", ClippedMLP)
        model = tiny_model(find("llama"))
        model.save_pretrained(folder / "checkpoint")
        api.export(folder / "checkpoint", folder / "model.mote", recipe="none", check="off")
    return model, folder / "model.mote"


@pytest.fixture(scope="module")
def printed(clipped) -> dict[str, list[float]]:
    lines = [line.split(":") for line in run("run_model", clipped[1]).splitlines()]
    return {name: [float(number) for number in numbers.split()] for name, numbers in lines}


def test_runner_computes_what_eager_does(clipped, printed):
    model, _ = clipped
    for count in (1, 7, 20):
        ids = (torch.arange(count) * 37 + 11) % model.config.vocab_size
        with torch.no_grad():
            expected = model(ids[None]).logits[0, -1]
        torch.testing.assert_close(torch.tensor(printed[f"prefill {count}"]), expected, rtol=1e-4, atol=1e-4)


def test_rule_for_rows_lets_the_model_batch(printed):
    alone = {name[6:]: numbers for name, numbers in printed.items() if name.startswith("alone")}
    together = {name[9:]: numbers for name, numbers in printed.items() if name.startswith("together")}
    assert together == alone and sorted(map(len, alone.values())) == [12, 12, 12]  # 6 ids, 6 log-probabilities


def test_profile_has_the_cost(clipped, printed):
    config = clipped[0].config
    elements = 7 * config.hidden_size
    float32_bytes = 4 * (2 * elements + config.hidden_size)
    assert printed["mote.soft_clip"] == [config.num_hidden_layers, float32_bytes, 2 * elements]


def test_a_runner_without_the_op_names_it(clipped):
    with pytest.raises(MoteError, match=r"\(mote\.soft_clip, .*mlp\).*: this runner has no op of that name"):
        Model.load(clipped[1])
