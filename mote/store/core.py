"""The C API's store, without the rest of the package llm_runner: `mote run org/name` need not wait for NumPy."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from functools import cache
from typing import Any

_NAME = "llm_runner._core"


@cache
def core() -> Any:
    """Returns the module `llm_runner._core`. Its errors are those of llm_runner.errors, which they import."""
    if "llm_runner" in sys.modules:
        from llm_runner import _core

        return _core
    package = importlib.util.find_spec("llm_runner")
    for finder in sys.meta_path if package else []:
        spec = finder.find_spec(_NAME, package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            sys.modules[_NAME] = module  # for the package, if it is imported later
            spec.loader.exec_module(module)
            return module
    from llm_runner import _core  # says what is wrong

    return _core
