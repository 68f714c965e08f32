"""JetMoE's attention, whose queries have experts."""

from __future__ import annotations

from llm_export.checkpoint import open_checkpoint
from tests.captures import captured
from tests.contracts.architectures import save_tiny_checkpoint


def test_keys_that_several_experts_see_are_stored_once(tmp_path):
    save_tiny_checkpoint("jetmoe", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    config = checkpoint.config
    assert config.num_experts_per_tok > 1
    heads = [state.num_heads for state in captured(checkpoint).states]
    assert heads == [config.num_key_value_heads] * config.num_hidden_layers
