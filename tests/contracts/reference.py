"""What Hugging Face eager PyTorch computes for a tiny checkpoint."""

from __future__ import annotations

import torch
from transformers import AutoModelForCausalLM, DynamicCache

from tests.contracts.architectures import Row


@torch.no_grad()
def reference_logits(folder, row: Row, input_ids: torch.Tensor, calls: list[int]) -> torch.Tensor:
    """Returns float32 [1, T, vocab_size]; `calls`: tokens of each call, for models whose numbers depend on them."""
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation=row.attention, dtype=torch.float32).eval()
    if not row.same_calls:
        return model(input_ids, use_cache=False).logits
    cache = DynamicCache(config=model.config)
    pieces = input_ids.split(calls, dim=1)
    return torch.cat([model(piece, past_key_values=cache, use_cache=True).logits for piece in pieces], dim=1)
