"""DeepSeek V4's caches of compressed blocks hold a row for each block, not for each token."""

from __future__ import annotations

import json

import pytest

from llm_export.api import export
from llm_runner import Model
from tests.contracts.architectures import find, save_tiny_checkpoint
from tests.contracts.tokenizer import save_tiny_tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    folder = tmp_path_factory.mktemp("deepseek_v4")
    save_tiny_checkpoint("deepseek_v4", folder)
    save_tiny_tokenizer(folder)
    config = json.loads((folder / "config.json").read_text()) | {"max_position_embeddings": 2048}
    (folder / "config.json").write_text(json.dumps(config))
    export(str(folder), folder / "tiny.mote", recipe="none")
    return Model.load(folder / "tiny.mote")


def test_a_token_costs_its_part_of_a_block(model):
    rates = find("deepseek_v4").arguments["compress_rates"].values()
    states = [state for state in model.describe()["states"] if state["kind"] == "kv_cache" and state["stride"] > 1]
    assert {state["stride"] for state in states} == set(rates)
    for state in states:
        width = state["num_heads"] * (state["head_dim"] + (state["value_head_dim"] + 15) // 16 * 16)
        assert state["bytes_per_position"]["float32"] == width * 4 // state["stride"]


def test_pages_are_of_256_blocks(model):
    with model.session(context_length=1536, rewind_tokens=0) as session:
        session.prefill([5] * 520)  # two pages of blocks of 2, and one of blocks of 5
        held = session.info["held_state_bytes"]
        session.append([5] * 500)
        assert session.info["held_state_bytes"] == held
        session.append([5] * 10)
        assert held < session.info["held_state_bytes"] <= session.info["state_bytes"]
