"""Each architecture's GGUF file becomes the model that it was made of: the same config, weights and logits."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from llm_export.checkpoint import open_checkpoint
from llm_export.checkpoint.gguf.config import CONFIGS
from tests.contracts.architectures import find, tiny_model
from tests.llm_export.checkpoint.gguf_files import CONVERSIONS, write_gguf

IDS = torch.tensor([[5, 9, 17, 33, 64, 101, 7, 7, 90]])


def loaded(checkpoint):
    """The module with the weights that the checkpoint gives."""
    model = AutoModelForCausalLM.from_config(checkpoint.config, dtype=torch.float32, attn_implementation="eager")
    checkpoint.weights.bind(model)
    state = {name: checkpoint.weights.read(name) for name in checkpoint.weights.names()}
    model.load_state_dict(state, strict=True)
    return model.eval()


@pytest.fixture
def make(tmp_path):
    torch.set_num_threads(1)

    def make(name: str, **options):
        row = find(name)
        model = tiny_model(replace(row, arguments=row.arguments | CONVERSIONS[name].arguments))
        write_gguf(tmp_path / "tiny.gguf", CONVERSIONS[name], model, **options)
        return model, open_checkpoint(tmp_path / "tiny.gguf", tokenizer=False)

    return make


def test_every_architecture_is_tried():
    assert {conversion.architecture for conversion in CONVERSIONS.values()} == set(CONFIGS)


@pytest.mark.parametrize("name", CONVERSIONS)
@torch.no_grad()
def test_gives_back_the_model(make, name):
    original, checkpoint = make(name)
    model = loaded(checkpoint)
    assert checkpoint.config.model_type == find(name).model_type
    expected = original.state_dict()
    assert model.state_dict().keys() == expected.keys()
    for key, value in model.state_dict().items():
        torch.testing.assert_close(value, expected[key], rtol=0, atol=2e-7, msg=key)
    logits, wanted = model(IDS).logits, original(IDS).logits
    assert float((logits - wanted).abs().max() / wanted.abs().max()) < 1e-5


@torch.no_grad()
def test_factors_that_are_not_llama_3s_are_kept(tmp_path):
    conversion = CONVERSIONS["llama"]
    factors = {"rope_freqs.weight": torch.linspace(1.0, 3.0, 16)}
    write_gguf(tmp_path / "tiny.gguf", replace(conversion, extra=lambda config: factors), tiny_model(find("llama")))
    model = loaded(open_checkpoint(tmp_path / "tiny.gguf", tokenizer=False))
    plain = 10000.0 ** -(torch.arange(0, 32, 2) / 32)
    torch.testing.assert_close(model.model.rotary_emb.inv_freq, plain / factors["rope_freqs.weight"])
    assert model.model.rotary_emb.attention_scaling == 1
