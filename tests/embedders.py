"""Tiny random checkpoints with sentence-transformers' files, and what PyTorch makes of texts with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoModel, Gemma3TextConfig, PreTrainedModel, Qwen3Config

from tests.contracts.architectures import randomize
from tests.demo import CHECKPOINT

SIZES = {
    "vocab_size": 4096, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "head_dim": 16,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
PROMPTS = {"query": "Instruct: find what answers.\nQuery: ", "document": ""}
WINDOW = 8
IDENTITY = "torch.nn.modules.linear.Identity"


@dataclass
class TinyEmbedder:
    """A checkpoint in `folder`, and its module.

    pool: hidden states [T, D] of a text, behind the Dense layers -> vector   dense: (weight, bias, function) a layer
    """

    folder: Path
    model: PreTrainedModel
    tokenizer: Tokenizer
    pool: Callable[[Tensor], Tensor]
    dense: list[tuple[Tensor, Tensor | None, Callable[[Tensor], Tensor]]] = field(default_factory=list)

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    @torch.no_grad()
    def vector(self, text: str | Sequence[int], normalize: bool = True) -> np.ndarray:
        """float32 [D], by transformers' eager attention and sentence-transformers' order: pooling, then Dense."""
        ids = self.ids(text) if isinstance(text, str) else list(text)
        pooled = self.pool(self.model(input_ids=torch.tensor([ids])).last_hidden_state[0])
        for weight, bias, function in self.dense:
            pooled = function(torch.nn.functional.linear(pooled, weight, bias))
        return (torch.nn.functional.normalize(pooled, dim=-1) if normalize else pooled).numpy()


def qwen3_like(folder: Path) -> TinyEmbedder:
    """As Qwen3-Embedding: causal, the last token's state, prompts by name, an end token behind every text."""
    config = Qwen3Config(**SIZES, num_hidden_layers=3, tie_word_embeddings=True)
    embedder = _save(folder, config, end="<|im_end|>", pool=lambda hidden: hidden[-1])
    write_files(folder, "lasttoken")
    return embedder


def gemma_like(folder: Path) -> TinyEmbedder:
    """As EmbeddingGemma: bidirectional with windows, the mean, two Dense without activation."""
    layers = ["sliding_attention", "full_attention", "sliding_attention"]
    config = Gemma3TextConfig(
        **SIZES, num_hidden_layers=3, layer_types=layers, sliding_window=2 * (WINDOW - 1),
        use_bidirectional_attention=True,
    )  # fmt: skip
    embedder = _save(folder, config, begin="<|im_start|>", end="<|im_end|>", pool=lambda hidden: hidden.mean(0))
    dense = write_files(folder, "mean", dense=[(64, 160, IDENTITY), (160, 64, IDENTITY)])
    embedder.dense = [(weight, bias, lambda x: x) for weight, bias in dense]
    return embedder


def write_files(
    folder: Path, pooling: str, *, dense: Sequence[tuple[int, int, str]] = (), include_prompt: bool = True,
    max_tokens: int | None = 64,
) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
    """Writes what sentence-transformers reads; dense: (inputs, outputs, activation). Returns: their weights, biases."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), *((f"{i + 2}_Dense", "Dense") for i in range(len(dense)))]
    modules.append((f"{len(modules)}_Normalize", "Normalize"))
    _write(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ])  # fmt: skip
    names = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken"}
    flags = {f"pooling_mode_{name}": mode == pooling for mode, name in names.items()}
    _write(folder / "1_Pooling" / "config.json",
           {"word_embedding_dimension": 64, **flags, "include_prompt": include_prompt})  # fmt: skip
    _write(folder / "config_sentence_transformers.json", {"prompts": PROMPTS, "default_prompt_name": None})
    _write(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
    generator = torch.Generator().manual_seed(5)
    made = []
    for index, (inputs, outputs, activation) in enumerate(dense):
        weight = torch.randn(outputs, inputs, generator=generator) * inputs**-0.5
        bias = torch.randn(outputs, generator=generator)
        path = folder / f"{index + 2}_Dense"
        _write(path / "config.json", {"in_features": inputs, "out_features": outputs, "bias": True,
                                      "activation_function": activation})  # fmt: skip
        save_file({"linear.weight": weight, "linear.bias": bias}, path / "model.safetensors")
        made.append((weight, bias))
    return made


def _save(folder: Path, config, *, begin: str = "", end: str = "", pool) -> TinyEmbedder:
    torch.manual_seed(0)
    model = AutoModel.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    randomize(model, 0)
    # As in trained models, a layer adds little to the state, so that 4 bits do not turn it over.
    for name, parameter in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            parameter.data *= 0.05
    model.save_pretrained(folder)
    template = json.loads((CHECKPOINT / "tokenizer.json").read_text())
    around = [token for token in (begin, end) if token]
    ids = {token["content"]: token["id"] for token in template["added_tokens"]}
    template["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [*([_special(begin)] if begin else []), _sequence("A", 0), *([_special(end)] if end else [])],
        "pair": [_sequence("A", 0), _sequence("B", 1)],
        "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in around},
    }
    _write(folder / "tokenizer.json", template)
    settings = json.loads((CHECKPOINT / "tokenizer_config.json").read_text())
    _write(folder / "tokenizer_config.json", settings)
    return TinyEmbedder(folder, model, Tokenizer.from_file(str(folder / "tokenizer.json")), pool)


def _special(token: str) -> dict:
    return {"SpecialToken": {"id": token, "type_id": 0}}


def _sequence(name: str, type_id: int) -> dict:
    return {"Sequence": {"id": name, "type_id": type_id}}


def _write(path: Path, value) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
