"""Attention over a latent: which layers become that, and that they compute what they did."""

from __future__ import annotations

import pytest
import torch

from llm_export.capture.latent_attention import absorb
from llm_export.checkpoint import open_checkpoint
from tests.captures import captured
from tests.contracts.architectures import find, save_tiny_checkpoint
from tests.contracts.reference import reference_logits
from tests.llm_export.eager import EagerProgram

# Keys that are written into an empty tensor, rotated by complex numbers; keys that are chosen, of all layers; repeated.
LATENT = {"deepseek_v2": [(1, 48, 0)] * 2, "deepseek_v32": [(1, 32, 1), (1, 48, 0)] * 2, "minicpm3": [(1, 48, 0)] * 2}


def caches(methods) -> list[tuple[int, int, int]]:
    return [(state.num_heads, state.head_dim, state.value_head_dim) for state in methods.states]


@pytest.mark.parametrize("name", LATENT)
def test_the_cache_holds_the_latent_and_logits_stay(name, tmp_path):
    save_tiny_checkpoint(name, tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    expanded = captured(checkpoint)
    before = caches(expanded)
    absorbed = absorb(expanded)
    assert caches(absorbed) == LATENT[name] and caches(expanded) == before != LATENT[name]
    assert not any(source.endswith("kv_b_proj.weight") for source in absorbed.weights)
    assert set(expanded.weights) - set(absorbed.weights) == {
        source for source in expanded.weights if source.endswith("kv_b_proj.weight")
    }
    ids = torch.randint(3, 120, (1, 12), generator=torch.Generator().manual_seed(1))
    expected = reference_logits(tmp_path, find(name), ids, [12])[0]
    program = EagerProgram(absorbed, checkpoint.weights.read)
    pieces = torch.cat([program.run("verify", piece) for piece in ids.split([7, 1, 4], dim=1)], dim=1)[0]
    assert (pieces - expected).abs().max() <= 1e-4 * expected.abs().max()


@pytest.mark.parametrize("name", ["opt", "gpt2", "smollm3"])
def test_keys_that_are_a_linear_of_the_hidden_state_stay(name, tmp_path):
    """Without a rotation they are parts of linears of one input too, which is no smaller than they are."""
    save_tiny_checkpoint(name, tmp_path)
    methods = captured(open_checkpoint(tmp_path))
    assert caches(absorb(methods)) == caches(methods)


def test_parts_of_a_weight_are_read_by_name(tmp_path):
    save_tiny_checkpoint("deepseek_v2", tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    captured(checkpoint)
    whole, weights = "model.layers.0.self_attn.kv_b_proj.weight", checkpoint.weights
    name = f"{whole}@4,32:64"
    expected = weights.read(whole).view(4, 64, 32)[:, 32:]
    assert name in weights and f"{whole}x@4,32:64" not in weights
    assert weights.shape(name) == (4, 32, 32) and weights.dtype(name) == weights.dtype(whole)
    assert weights.read(name).equal(expected) and weights.rows(name)[:].equal(expected)
    assert weights.read_rows(name, 1, 3).equal(expected[1:3]) and weights.stored_as(name) is None
    assert weights.file_of(name) == weights.file_of(whole)
    with pytest.raises(KeyError):
        weights.read(f"{whole}x@4,32:64")
