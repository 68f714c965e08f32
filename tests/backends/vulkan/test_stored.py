"""Weights as GGUF files store them, on a GPU: the logits of the CPU's kernels."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type

from llm_export import api
from llm_export.checkpoint.gguf import stored
from llm_runner import Model
from tests.backends.models import MAX_AFTER_A_MOVED_CODE, logits
from tests.contracts.architectures import find, tiny_model
from tests.llm_export.checkpoint.gguf_files import CONVERSIONS, write_gguf
from tests.llm_export.checkpoint.test_gguf_files import TOKENIZER

IDS = [5, 40, 7, 99, 23, 64, 11, 80, 3, 17, 90, 55, 31, 8, 71]


WITH_FLOATS = ("Q4_1", "Q6_K", "IQ4_NL", "NVFP4")  # whose inputs stay floats too


@pytest.mark.parametrize(
    ("name", "recipe"),
    [*((name, None) for name in stored.FORMATS), *((name, "stored-float") for name in WITH_FLOATS)],
)
def test_every_format(name, recipe, tmp_path, vulkan):
    torch.manual_seed(0)
    model = tiny_model(find("llama"))
    config = deepcopy(model.config)
    config.hidden_size = config.intermediate_size = 256
    config.head_dim = 256 // config.num_attention_heads
    wide = type(model)(config).eval()
    types = {True: Type[name], False: Type.F32}
    gguf, path = tmp_path / "tiny.gguf", tmp_path / "tiny.mote"
    write_gguf(gguf, CONVERSIONS["llama"], wide, type_of=lambda _, value: types[value.dim() == 2], tokenizer=TOKENIZER)
    report = api.export(gguf, path, recipe=recipe, backends="vulkan,cpu", check="off", show_progress=False)
    taken, total = report.num_delegated["vulkan", "decode"]
    assert taken == total, [(r.op, r.reason) for r in report.refusals]
    expected = logits(Model.load(path, backend="cpu"), IDS, "float16")
    errors = np.abs(logits(Model.load(path, backend="vulkan"), IDS) - expected).max(-1) / np.abs(expected).max()
    assert errors.max() <= (1e-3 if recipe else MAX_AFTER_A_MOVED_CODE), errors
