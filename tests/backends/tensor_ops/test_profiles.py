"""Profiles of backends that write assets: float16, and that of the Neural Engine."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from llm_export import api
from llm_export.errors import ArgumentError
from llm_export.partition.targets import find_backend
from mote.cli import main
from tests.backends.coreai.runs import in_a_process
from tests.backends.models import ALL
from tests.backends.tensor_ops.sessions import (
    CONTEXT,
    COUNTS,
    PREFILL,
    errors,
    export,
    ids_of,
    installed,
    of_model,
    on_the_cpu,
)
from tests.contracts.architectures import save_tiny_checkpoint

PROFILES = ["coreml:float16", "coreai:float16", "coreai:ane"]
# A plain decoder; layers that read states of others; a state that goes through every token.
SOME = ["llama", "gemma3n_text", "lfm2"]
TYPES = ALL if os.environ.get("MOTE_TEST_ALL_TYPES") else SOME


@pytest.fixture(params=PROFILES)
def name(request) -> str:
    installed(request.param)
    return request.param


def recipe_of(backend) -> dict:
    return {"recipe": "4w"} if backend.takes_groups else {"recipe": "8w", "group_size": "channel"}


@pytest.mark.parametrize("row", TYPES)
def test_logits_near_those_of_the_cpu(row, name, tmp_path):
    plain = find_backend(name)
    backend = type(plain)(CONTEXT, COUNTS, plain.profile)
    cpu, file = export(row, tmp_path, backend, **recipe_of(backend))
    ids = ids_of(15)
    if plain.name == "coreai":
        (found,) = in_a_process([{"file": file, "ids": ids, "prefill": PREFILL}])
    else:
        found = of_model(backend.open_model(file), ids)
    expected = on_the_cpu(cpu, ids)
    assert errors(found["logits"], expected) <= backend.rounding
    assert errors(found["again"], expected[-found["again"].shape[0] :]) <= backend.rounding


def test_the_check_and_the_samples_allow_for_float16(name, tmp_path, capfd):
    save_tiny_checkpoint("llama", tmp_path / "checkpoint")
    file = tmp_path / "model.mote"
    report = api.export(tmp_path / "checkpoint", file, backends=name, check="full")
    assert 1e-4 < report.check.max_relative_error <= report.check.tolerance == find_backend(name).rounding
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(file), "--backend", name, "--json"])
    assert ended.value.code == 0 and json.loads(capfd.readouterr().out)["passed"]


def test_the_cpu_beside_a_profile(name, tmp_path):
    """What an asset holds in another form, the file of a model as small as this one has whole."""
    plain = find_backend(name)
    backend = type(plain)(CONTEXT, COUNTS, plain.profile)
    cpu, _ = export("llama", tmp_path, backend, **recipe_of(backend))
    shared = tmp_path / "shared.mote"
    options = {"check": "off", **recipe_of(backend)}
    api.export(tmp_path / "checkpoint", shared, backends=[backend, "cpu"], **options)
    assert np.array_equal(on_the_cpu(shared, ids_of(15)), on_the_cpu(cpu, ids_of(15)))


@pytest.mark.parametrize(
    ("text", "said"),
    [("coreai:npu", "must be one of coreai, coreai:float32, coreai:float16, coreai:ane"),
     ("coreml:ane", "must be one of coreml, coreml:float32, coreml:float16"), ("coreai:", "must be one of coreai,"),
     ("xnnpack:float16", "must be xnnpack")],
)  # fmt: skip
def test_profiles_that_there_are_not(text, said):
    with pytest.raises(ArgumentError, match=f"backend = '{text}': {said}"):
        find_backend(text)


def test_groups_are_refused(tmp_path):
    installed("coreai:ane")
    save_tiny_checkpoint("llama", tmp_path / "checkpoint")
    with pytest.raises(ArgumentError, match="group_size = 32: coreai:ane takes one scale for each row"):
        api.export(tmp_path / "checkpoint", tmp_path / "m.mote", backends="coreai:ane", recipe="4w", group_size=32)
