"""Every model type on a tiny checkpoint against Hugging Face eager: the captured graph in eager PyTorch, then the
exported file in the C++ runner. Then as a user exports it, by the plain command."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llm_export import api
from llm_export.checkpoint import open_checkpoint
from llm_runner import Model, ProgramError
from mote.cli import main
from tests.captures import captured
from tests.contracts.architectures import ROWS, Row, find, generators, save_tiny_checkpoint, tiny_model
from tests.contracts.batch import check_batch
from tests.contracts.reference import reference_logits
from tests.contracts.sessions import check_session
from tests.contracts.tokenizer import save_tiny_tokenizer
from tests.llm_export.eager import EagerProgram

PREFILL, CHUNK, DECODE, VERIFY = 7, 4, 8, 4
CALLS = [4, 3] + [1] * DECODE + [VERIFY]
MAX_RELATIVE_ERROR = 1e-4  # largest |a - b| over largest |b|
MAX_ERROR_OF_HALVES = 1e-2  # the same with a float16 cache, which sessions have unless told otherwise


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def graph_logits(program: EagerProgram, ids: list[int]) -> np.ndarray:
    pieces = torch.tensor([ids]).split(CALLS, dim=1)
    return torch.cat([program.run("verify", piece) for piece in pieces], dim=1)[0].numpy()


def runner_logits(path, ids: list[int], **options) -> np.ndarray:
    """Returns the logits that the runner gives: of the positions from PREFILL - 1 on."""
    options |= {"context_length": len(ids), "threads": 1, "prefill_chunk": CHUNK}
    with Model.load(path) as model, model.session(**options) as session:
        rows = [session.prefill(ids[:PREFILL])]
        rows += [session.decode(id) for id in ids[PREFILL : PREFILL + DECODE]]
        rows += list(session.verify(ids[PREFILL + DECODE :]))
    return np.stack(rows)


def relative_error(logits: np.ndarray, expected: np.ndarray) -> float:
    return np.abs(logits - expected).max() / np.abs(expected).max()


def rows(chosen: list[Row]):
    """A test for each row; the worker that has captured an architecture gets all of its tests."""
    marked = [pytest.param(row, id=row.name, marks=pytest.mark.xdist_group(row.name)) for row in chosen]
    return pytest.mark.parametrize("row", marked)


SUPPORTED = [row for row in ROWS if not row.failure]


@rows(SUPPORTED)
def test_graph_and_file_compute_what_hugging_face_computes(row: Row, tmp_path):
    folder, path = tmp_path / "checkpoint", tmp_path / "model.mote"
    save_tiny_checkpoint(row.name, folder)
    ids = torch.randint(3, 120, (sum(CALLS),), generator=torch.Generator().manual_seed(1)).tolist()
    expected = reference_logits(folder, row, torch.tensor([ids]), CALLS)[0].numpy()
    checkpoint = open_checkpoint(folder)
    graph = EagerProgram(captured(checkpoint), checkpoint.weights.read)
    error = relative_error(graph_logits(graph, ids), expected)
    assert error <= MAX_RELATIVE_ERROR, f"{row.name}: graph: relative error {error:.2e}"
    api.export(folder, path, recipe="none", check="off")
    error = relative_error(runner_logits(path, ids, kv_dtype="float32"), expected[PREFILL - 1 :])
    assert error <= MAX_RELATIVE_ERROR, f"{row.name}: runner: relative error {error:.2e}"
    error = relative_error(runner_logits(path, ids), expected[PREFILL - 1 :])
    assert error <= MAX_ERROR_OF_HALVES, f"{row.name}: float16 cache: relative error {error:.2e}"
    if row.same_calls:  # the frequencies follow from the call's largest position
        with pytest.raises(ProgramError, match=r"\(aten\.amax, .*\) makes a token's row depend on those of other"):
            check_batch(path, ids)
    else:
        check_batch(path, ids)
        check_session(path, ids, tmp_path)


def mote(*arguments) -> int:
    """Runs the command in this process; returns its exit status."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return caught.value.code


@rows(SUPPORTED)
def test_the_plain_command_writes_a_file_that_generates(row: Row, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    save_tiny_checkpoint(row.name, "checkpoint")
    save_tiny_tokenizer(tmp_path / "checkpoint")
    assert mote("export", "checkpoint") == 0, capfd.readouterr().err
    assert "agrees with PyTorch (full)" in capfd.readouterr().out
    with Model.load("checkpoint.mote") as model:
        with model.session() as session:
            golden = session.check_golden()
        pieces = list(model.generate("The quick", max_new_tokens=4, ignore_eos=True, do_sample=False).pieces())
    assert golden["passed"] and golden["samples"] and all(sample["text"] for sample in golden["samples"]), golden
    assert len(pieces) == 4


def test_every_generator_has_one_row():
    names = [row.model_type for row in ROWS if not row.variant]
    assert sorted(names) == sorted(generators())


def test_cpmant_is_no_causal_decoder():
    """Its first token sees the last one: logits depend on how a text is divided into calls."""
    model = tiny_model(find("cpmant"))
    ids = torch.arange(5, 15)[None]
    other = ids.clone()
    other[0, -1] = 50
    with torch.no_grad():
        first, second = (model(each, use_cache=False).logits[0, 0] for each in (ids, other))
    assert (first - second).abs().max() > 1e-3 * first.abs().max()


def test_blt_has_no_position_a_token_in_every_layer():
    """Of two texts of one length, its global transformer sees sequences of different lengths."""
    model, lengths = tiny_model(find("blt")), []
    model.model.global_transformer.register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(kwargs["inputs_embeds"].shape[1]), with_kwargs=True
    )
    for seed in range(4):
        ids = torch.randint(5, 100, (1, 24), generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            model(ids, use_cache=False)
    assert len(set(lengths)) > 1 and max(lengths) < 24, lengths


REFUSED = [row for row in ROWS if row.failure]


@rows(REFUSED)
def test_types_that_are_expected_to_fail_are_refused_in_a_sentence(row: Row, tmp_path, capfd):
    save_tiny_checkpoint(row.name, tmp_path / "checkpoint")
    capfd.readouterr()
    assert mote("export", tmp_path / "checkpoint", "-o", tmp_path / "model.mote") == 2
    said = " ".join(capfd.readouterr().err.split())
    assert said.startswith(f"error: model type '{row.model_type}' cannot be exported: "), said
    assert said.count("error: ") == 1 and not (tmp_path / "model.mote").exists()
