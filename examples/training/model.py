"""Defines the two models and writes them as Hugging Face checkpoints."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from .tokenizer import END_OF_TEXT, MAX_LENGTH, TURN_END
from .tokenizer import save as save_tokenizer

_DEMO = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
_DRAFT = {
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
}
SHAPES = {"demo": _DEMO, "demo-draft": _DRAFT}


def create(name: str, tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3ForCausalLM:
    """Returns the named model with random weights that depend on the seed alone."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        **SHAPES[name],
        vocab_size=len(tokenizer),
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids(TURN_END),
        pad_token_id=tokenizer.convert_tokens_to_ids(END_OF_TEXT),
    )
    return Qwen3ForCausalLM(config)


def save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes weights in bfloat16, configuration and tokenizer; the model is left as it was."""
    stop = [tokenizer.convert_tokens_to_ids(token) for token in (TURN_END, END_OF_TEXT)]
    model = copy.deepcopy(model).to("cpu", torch.bfloat16)
    model.generation_config = GenerationConfig(
        eos_token_id=stop, pad_token_id=stop[1], do_sample=True, temperature=0.7, top_p=0.9
    )
    model.save_pretrained(folder)
    save_tokenizer(tokenizer, folder)
