"""What a backend can ask of the runner: to keep keys and values itself, and methods of fixed lengths.

Whatever a session does, the text is the CPU's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_export import api
from llm_export.errors import ProgramError
from llm_export.partition.backend import Backend, Blob, Subgraph, Unsupported
from llm_runner import BackendError, Model
from tests.backends.models import session_lines
from tests.backends.toy.lowering import ToyBackend
from tests.contracts.architectures import save_tiny_checkpoint


class FixedLengths(Backend):
    """Takes no instruction: the CPU's kernels run methods of fixed lengths."""

    name = "fixed"

    def __init__(self, token_counts: tuple[int, ...] = (4, 16)):
        self.token_counts = token_counts

    def lower(self, subgraph: Subgraph) -> Blob:
        raise Unsupported("anything")


def export(folder: Path, name: str, backend: Backend, others: tuple[str, ...] = ("cpu",)) -> Path:
    save_tiny_checkpoint(name, folder / "checkpoint")
    path = folder / "model.mote"
    api.export(folder / "checkpoint", path, backends=[backend, *others], recipe="none", check="off")
    return path


@pytest.fixture(scope="module", params=[(), (4, 16)], ids=["any length", "fixed lengths"])
def lengths(request) -> tuple[int, ...]:
    return request.param


@pytest.fixture(scope="module")
def toy_file(lengths, tmp_path_factory) -> Path:
    return export(tmp_path_factory.mktemp("toy"), "llama", ToyBackend(lengths))


@pytest.fixture(scope="module")
def toy_only_file(lengths, tmp_path_factory) -> Path:
    """The same without a target to which a session could go."""
    return export(tmp_path_factory.mktemp("toy_only"), "llama", ToyBackend(lengths), others=())


@pytest.mark.parametrize(
    "environment",
    [{}, {"MOTE_TOY_FORGETS": "1"}, *({"MOTE_TOY_FAILS": str(part)} for part in (1, 2, 3, 8, 9))],
    ids=lambda environment: "".join(key[9:] + value for key, value in environment.items()) or "plain",
)
def test_a_backend_keeps_keys_and_values(toy_file, toy_only_file, environment):
    expected, got = session_lines(toy_file, "cpu"), session_lines(toy_only_file, "toy", **environment)
    assert_same(got, expected)


@pytest.mark.parametrize("environment", [{}, *({"MOTE_TOY_FAILS": str(part)} for part in (1, 2, 3, 8, 9))], ids=str)
@pytest.mark.parametrize("hides", [{}, {"MOTE_TOY_HIDES": "1"}], ids=["rows", "ids"])
def test_a_session_goes_on_elsewhere(toy_file, environment, hides):
    """Where it is moved, and where the toy fails; with its keys and values, or from its ids alone."""
    expected = session_lines(toy_file, "cpu")
    assert_same(session_lines(toy_file, "toy", "cpu", **environment, **hides), expected)


def assert_same(got: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert list(got) == list(expected) and len(got) > 40
    for name, numbers in expected.items():
        assert got[name] == pytest.approx(numbers, abs=2e-5), name


# Sliding windows, recurrent states, rotary embeddings that depend on the call, keys shared by layers, sinks.
@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral", "lfm2", "phi3-longrope", "gemma3n_text", "gpt_oss"])
def test_fixed_lengths_give_the_same_bits(name, tmp_path):
    path = export(tmp_path, name, FixedLengths())
    assert session_lines(path, "fixed") == session_lines(path, "cpu")


def test_a_file_has_a_method_for_each_length(toy_file, lengths):
    methods = [m for m in Model.load(toy_file, backend="cpu").describe()["methods"] if m["target"] == "toy"]
    ranges = {(m["name"], m["min_tokens"], m["max_tokens"]) for m in methods} - {("decode", 1, 1)}
    if lengths:
        assert ranges == {(name, n, n) for name in ("prefill", "verify") for n in lengths}
    else:
        assert {(name, least) for name, least, _ in ranges} == {("prefill", 1), ("verify", 1)}
        assert all(most > 2**20 for _, _, most in ranges)
    assert len({m["label"] for m in methods}) == len(methods) == len(ranges) + 1


@pytest.mark.parametrize("counts", [(1, 4), (4, 4), (0,), (8, 2**40)])
def test_lengths_that_cannot_be(counts, tmp_path):
    with pytest.raises(ProgramError, match=r"token_counts = .*: must be different numbers from 2 to \d+"):
        export(tmp_path, "llama", FixedLengths(counts))


def test_what_the_toy_does_not_take_stays_with_the_cpu(tmp_path):
    save_tiny_checkpoint("gemma2", tmp_path / "checkpoint")
    report = api.export(tmp_path / "checkpoint", tmp_path / "m.mote", backends=[ToyBackend()], check="off")
    assert report.num_delegated["toy", "decode"][0] == 0
    reasons = {r.reason for r in report.refusals if r.op == "mote.attention"}
    assert reasons == {"a window, sinks, slopes or a softcap"}


def test_a_runner_without_the_toy_names_it(toy_file):
    with pytest.raises(BackendError, match="toy: this build has no such backend: it has cpu"):
        Model.load(toy_file, backend="toy")
    assert Model.load(toy_file).describe()["target"] == "cpu"
