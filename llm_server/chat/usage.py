"""What answers say of tokens."""

from __future__ import annotations

import math
from typing import Any

from llm_runner import TokenLogprob
from llm_server.engine.engine import Engine


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """Returns what a request cost as OpenAI writes it; cached_tokens of the prompt had been read by an earlier one."""
    return {
        "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens, "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }  # fmt: skip


def logprob_json(engine: Engine, entry: TokenLogprob, top: int) -> dict[str, Any]:
    """Returns a token as chat completions write it."""

    def one(token_id: int, logprob: float) -> dict[str, Any]:
        text = engine.token_text(token_id)
        # A token that is part of a character has no text of its own.
        return {"token": text, "logprob": finite(logprob), "bytes": None if "\ufffd" in text else list(text.encode())}

    return one(entry.id, entry.logprob) | {"top_logprobs": [one(*item) for item in entry.top[:top]]}


def finite(logprob: float) -> float:
    """JSON has no infinity."""
    return logprob if math.isfinite(logprob) else -9999.0
