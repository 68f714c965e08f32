"""DeepSeek V4 attends to compressed blocks of the past, chosen by an indexer."""

from __future__ import annotations

from llm_export.errors import UnsupportedError


def patch(model, context) -> None:
    raise UnsupportedError(
        context.model_type, "its attention chooses compressed blocks of keys, which mote::attention does not offer"
    )
