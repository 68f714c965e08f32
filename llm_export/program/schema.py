"""The Python classes of schema.fbs, which flatc makes when the project is built."""

from __future__ import annotations

from llm_export.errors import ProgramError

try:
    from llm_export.program.schema_generated import *  # noqa: F403
    from llm_export.program.schema_generated import ProgramT  # noqa: F401
except ModuleNotFoundError as error:
    raise ProgramError(
        "llm_export/program/schema_generated.py is missing: build the project (`make build` or `pip install .`) or run "
        "`flatc --python --gen-onefile --gen-object-api -o llm_export/program` on llm_export/program/schema.fbs"
    ) from error
