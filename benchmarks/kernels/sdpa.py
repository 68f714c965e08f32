"""PyTorch's scaled_dot_product_attention over one layer, as transformers calls it."""

from __future__ import annotations

import torch

from benchmarks.kernels import cases


def time_case(case: cases.Case) -> float:
    torch.set_num_threads(case.threads)
    dtype = getattr(torch, case.type)
    q = torch.randn(1, case.heads, case.tokens, case.head_dim).to(dtype)
    layers = [
        [torch.randn(1, case.kv_heads, case.context, case.head_dim).to(dtype) for _ in range(2)]
        for _ in range(case.layers(dtype.itemsize))
    ]
    seen = torch.ones(case.tokens, case.context, dtype=torch.bool).tril(case.context - case.tokens)
    mask = seen if case.tokens > 1 else None

    def run() -> None:
        for k, v in layers:
            torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)

    with torch.no_grad():
        return cases.seconds_a_run(run) / len(layers)


if __name__ == "__main__":
    cases.main(time_case)
