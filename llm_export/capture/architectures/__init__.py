"""What capture alone cannot take: one file per `model_type`, found by its file name.

A file defines `patch(model, context)`: it replaces forwards of submodules by ones that call `mote::` ops. `context` is
the `CaptureContext` of llm_export/capture/; the model is on fake weights and must compute what it did before. It may
define `prepare(implementation)` too, called before the model is built, for classes that look that name up, and
`REFERENCE_ATTENTION`, the attention of transformers that the check compares with where "eager" computes it wrongly.
`TRANSPOSED_EXPERTS` says that stacks of experts lie [E, in_features, out_features] where their modules do not say so.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


def find(model_type: str) -> ModuleType | None:
    """Returns the module `llm_export.capture.architectures.<model_type>`, or None where the model captures as it is."""
    name = f"{__name__}.{model_type.replace('-', '_')}"
    if importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)
