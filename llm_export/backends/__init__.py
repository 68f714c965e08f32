"""What programs can be lowered for, a module each; `llm_export.partition.targets` finds them by name."""

from pathlib import Path

# In a source tree the modules lie beside the C++ halves.
__path__.append(str(Path(__file__).parents[2] / "backends"))
