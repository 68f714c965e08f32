"""The modules of the package build on each other in one direction, also where only types are imported."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import llm_runner


def imported(path: Path) -> set[str]:
    """Returns the modules of the package that a file names in imports, wherever they stand."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "llm_runner":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("llm_runner."):
            names.add(str(node.module).split(".")[1])
    return names


def test_no_circles():
    folder = Path(llm_runner.__file__).parent
    modules = {path.stem: path for path in folder.glob("*.py") if path.stem != "__init__"}
    assert len(modules) > 10
    graph = {name: imported(path) & modules.keys() for name, path in modules.items()}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("errors") < order.index("session") < order.index("model")
