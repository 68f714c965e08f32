"""Models in Qualcomm's simulator: QNN gives the logits that the CPU's kernels give, as far as float16 goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from backends.qnn.lowering import QnnBackend
from llm_export import api
from llm_runner import Model
from tests.backends.models import DECODE, PREFILL, VERIFY, chosen, logits, session_lines
from tests.contracts.architectures import save_tiny_checkpoint
from tests.demo import CHECKPOINT

MAX_RELATIVE_ERROR = 4e-3  # of the largest logit
SLOTS, LENGTHS = 64, (8,)


def export(name: str, folder: Path, recipe: str = "4w", slots: int = SLOTS, **options) -> Path:
    save_tiny_checkpoint(name, folder / "checkpoint")
    path = folder / "model.mote"
    backends = [QnnBackend(slots, LENGTHS, **options), "cpu"]
    report = api.export(folder / "checkpoint", path, backends=backends, recipe=recipe, group_size=32, check="off")
    left = [r for r in report.refusals if r.method == "decode" and r.op not in ("mote.embedding", "mote.rope_table")]
    assert not left
    return path


# Norms of queries and keys; softcaps and windows; windows; a product for queries, keys and values; gates of other
# functions; rotary embeddings of pairs and of a part of a head; layer norms; squares; slopes;
# experts; experts and sinks.
@pytest.mark.parametrize(
    ("name", "recipe"),
    [("llama", "none"), ("llama", "4w"), ("llama", "8w"), ("qwen3", "4w"), ("gemma2", "4w"), ("mistral", "4w"),
     ("phi3", "4w"), ("olmo2", "none"), ("glm4", "4w"), ("gpt_neox", "4w"), ("cohere2", "8w"), ("arcee", "4w"),
     ("bloom", "4w"), ("falcon-alibi", "none"), ("mixtral", "4w"), ("qwen3_moe", "8w"), ("gpt_oss", "4w")],
)  # fmt: skip
def test_the_same_logits_as_on_the_cpu(name, recipe, tmp_path, qnn):
    path = export(name, tmp_path, recipe)
    ids = torch.randint(3, 120, (PREFILL + DECODE + VERIFY,), generator=torch.Generator().manual_seed(1)).tolist()
    expected = logits(Model.load(path, backend="cpu"), ids)
    got = logits(Model.load(path, backend="qnn"), ids)
    assert np.abs(got - expected).max() <= MAX_RELATIVE_ERROR * np.abs(expected).max()
    kept = list(tmp_path.glob("model.mote.qnn-context-*"))
    assert len(kept) == 1
    assert np.array_equal(logits(Model.load(path, backend="qnn"), ids), got)  # by what was kept
    kept[0].write_bytes(kept[0].read_bytes()[:-9])
    assert np.array_equal(logits(Model.load(path, backend="qnn"), ids), got)  # compiled anew


def test_weights_beyond_one_context_get_several(tmp_path, qnn):
    rows, ids = [], list(range(3, 3 + PREFILL + DECODE + VERIFY))
    for number, bytes_of_context in enumerate((1 << 32, 22_000)):
        (folder := tmp_path / str(number)).mkdir()
        path = export("qwen3", folder, context_bytes=bytes_of_context)
        rows.append(logits(Model.load(path, backend="qnn"), ids))
        assert len(list(folder.glob("model.mote.qnn-context-*"))) == (1, 4)[number]
        assert np.array_equal(logits(Model.load(path, backend="qnn"), ids), rows[-1])  # by what was kept
    assert np.array_equal(*rows)


@pytest.fixture(scope="module")
def llama(tmp_path_factory, qnn) -> Path:
    return export("llama", tmp_path_factory.mktemp("qnn"), "none")


def test_sessions_do_whatever_they_do_on_the_cpu(llama):
    """Forks, saved files, drafts, going back; and sessions that move between both with their keys and values."""
    expected = session_lines(llama, "cpu")
    for other in ("", "cpu"):
        got = session_lines(llama, "qnn", other)
        assert list(got) == list(expected)
        for name, numbers in expected.items():
            assert got[name] == pytest.approx(numbers, abs=2e-2), name


def test_a_text_goes_on_where_there_are_no_slots(tmp_path, qnn):
    """What fills the last call of a prompt up has no slots, which is no reason to leave."""
    slots, ids, rows = 20, list(range(3, 28)), []
    path = export("llama", tmp_path, "none", slots)
    for backend in ("cpu", "qnn"):
        with Model.load(path, backend=backend).session() as session:
            rows.append([session.prefill(ids[: slots - 1])])
            assert session.backend == backend
            rows[-1] += [session.decode(id) for id in ids[slots - 1 :]]
            assert session.backend == "cpu"
            reason = session.moved_because
    assert f"the file was exported for {slots} on QNN" in reason
    assert np.abs(np.array(rows[1]) - np.array(rows[0])).max() <= MAX_RELATIVE_ERROR * np.abs(rows[0]).max()


def test_layers_of_the_demo_model(tmp_path, qnn):
    path = tmp_path / "demo.mote"
    api.export(CHECKPOINT, path, backends=[QnnBackend(32, (8,)), "cpu"], check="off")
    rows = []
    for backend in ("cpu", "qnn"):
        model = Model.load(path, backend=backend)
        ids = model.tokenize("import os\n\n\ndef ")
        with model.session(context_length=32) as session:
            rows.append(np.stack([session.prefill(ids), session.decode(ids[0])]))
    assert np.abs(rows[1] - rows[0]).max() <= 1e-2 * np.abs(rows[0]).max()
    assert np.array_equal(rows[0].argmax(-1), rows[1].argmax(-1))


@pytest.fixture(scope="module")
def llama_file(tmp_path_factory) -> Path:
    """Made without the library."""
    return export("llama", tmp_path_factory.mktemp("no_library"))


def test_says_what_is_missing(llama_file, tmp_path):
    """In processes of their own: a library stays once found."""
    (tmp_path / "libQnnHtp.so").write_text("no library")
    cases = {
        "Qualcomm's libQnnHtp.so is used only where MOTE_QNN_LIBRARIES names the folder": {"MOTE_QNN_LIBRARIES": ""},
        "/nowhere/libQnnHtp.so cannot be loaded": {"MOTE_QNN_LIBRARIES": "/nowhere"},
        f"{tmp_path}/libQnnHtp.so cannot be loaded": {"MOTE_QNN_LIBRARIES": str(tmp_path)},
        "MOTE_QNN_SOC = sm1: must be one of sm8550, sm8650, sm8750, sm8850": {"MOTE_QNN_SOC": "sm1"},
    }
    for text, environment in cases.items():
        result = chosen(llama_file, "qnn", **environment)
        assert result.returncode != 0 and text in result.stderr, result.stderr
    assert chosen(llama_file, "auto").stdout.strip() == "cpu"
