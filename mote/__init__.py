"""Runs and exports language models.

from mote import Model
model = Model.load("model.mote")
for piece in model.generate("Once upon a time", max_new_tokens=64):
    print(piece, end="", flush=True)

`export` and what it raises need PyTorch: pip install 'mote-llm[export]'.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_export.api import ExportReport, export  # noqa: F401
    from llm_export.errors import CheckError, UnsupportedError  # noqa: F401
    from llm_runner import *  # noqa: F403
    from llm_tokenizer import Tokenizer  # noqa: F401

# The command `mote` hands most verbs to a program: so nothing of this package is imported before it is asked for.
_PLACES = {
    "CheckError": "llm_export.errors",
    "ExportReport": "llm_export.api",
    "Tokenizer": "llm_tokenizer",
    "UnsupportedError": "llm_export.errors",
    "export": "llm_export.api",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*import_module("llm_runner").__all__, *_PLACES]
    if name.startswith("__") and name != "__version__":
        raise AttributeError(f"module 'mote' has no attribute {name!r}")
    if _PLACES.get(name) == "llm_export.api":
        from mote.extras import check_installed

        check_installed("export", f"mote.{name}")
    module = import_module(_PLACES.get(name, "llm_runner"))
    if name == "Model":
        module.Model._path_of_name = staticmethod(_path_of_name)
    if name not in module.__dict__:
        raise AttributeError(f"module 'mote' has no attribute {name!r}")
    globals()[name] = value = getattr(module, name)
    return value


def _path_of_name(text: str) -> str:
    """What `Model.load` opens for a path that is not there: the file of the store that has this name."""
    from mote.store.local import local_file

    return str(local_file(text))


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
