"""The Python classes of adapter.fbs, which flatc makes when the project is built."""

from __future__ import annotations

from llm_export.errors import ProgramError

try:
    from llm_export.program.adapter_generated import *  # noqa: F403
    from llm_export.program.adapter_generated import AdapterT  # noqa: F401
except ModuleNotFoundError as error:
    raise ProgramError(
        "llm_export/program/adapter_generated.py is missing: build the project (`make build` or `pip install .`)"
    ) from error
