"""BLT's global transformer has a position for each patch of bytes, and the text decides how many there are.

A patch ends where a second model is unsure of the next byte. It gives the largest elements of its bytes' states, and
transformers computes all patches again for each byte.
"""

from __future__ import annotations

from llm_export.capture.guards import place_of
from llm_export.errors import UnsupportedError


def patch(model, context) -> None:
    raise UnsupportedError(
        context.model_type,
        f"BltGlobalTransformer ({place_of(model.model.global_transformer)}) has a position for each patch of bytes, "
        "whose ends depend on the entropies of a second model, so that a byte is no position of every layer",
        "Choose a model that decodes one token at a time",
    )
