"""The check of imports reads docs/architecture.md and notices what is against it, or missing from it."""

from pathlib import Path

import pytest

from scripts import import_arrows

ROOT = Path(__file__).parents[2]
PAGE = """
# Rooms

| room | what | may include |
|---|---|---|
| `base/` | status | - |
| `kernels/` | registry | `base` |
| `kernels/ops/*/` | ops | `kernels` |
| `kernels/ops/moe/` | experts | `kernels`, `kernels/ops/linear` |
| `runner/program/` | program | `base`, `kernels/op.h` |
| `llm_export/errors.py`, `llm_export/plan.py` | shared | - |
| `llm_export/check/` | check | `llm_export/errors.py`, `runner/python` |
| `runner/python/` | package | - |

Text after the table.
"""
FILES = {
    "base/status.h": "",
    "kernels/op.h": '#include "base/status.h"\n',
    "kernels/cost.h": "",
    "kernels/ops/linear/op.cpp": '#include "kernels/op.h"\n#include "kernels/ops/linear/tiles.h"\n',
    "kernels/ops/linear/tiles.h": "",
    "kernels/ops/moe/op.cpp": '#include "kernels/ops/linear/tiles.h"\n',
    "runner/program/bind.cpp": '#include <vector>\n#include "kernels/op.h"\n#include "schema_generated.h"\n',
    "runner/python/llm_runner/__init__.py": "from llm_runner import _core\n",
    "llm_export/errors.py": "",
    "llm_export/plan.py": "import torch\n",
    "llm_export/check/__init__.py": "from llm_export import errors\nfrom llm_runner import Model\n",
}


def violations(root: Path, files: dict[str, str] | None = None, page: str = PAGE) -> list[str]:
    tree = FILES | (files or {})
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return import_arrows.violations(root, list(tree), page)


def test_this_repository_names_rooms_at_their_depth():
    table = import_arrows.read_table((ROOT / import_arrows.PAGE).read_text())
    rooms = {
        "kernels/ops/linear/op.cpp": "kernels/ops/linear",
        "runner/session/state/memory.h": "runner/session",
        "llm_export/check/oracle.py": "llm_export/check",
        "tokenizer/model/bpe.h": "tokenizer",
    }
    assert {path: table.room_of(path) for path in rooms} == rooms


def test_arrows_of_the_table_are_allowed(tmp_path):
    assert violations(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "text", "target"),
    [
        ("base/log.h", '#include "kernels/op.h"\n', "kernels/op.h"),
        ("base/log.h", '#if FAST\n  #  include "kernels/op.h"\n#endif\n', "kernels/op.h"),
        ("kernels/ops/norm/op.cpp", '#include "kernels/ops/linear/tiles.h"\n', "kernels/ops/linear/tiles.h"),
        ("kernels/ops/moe/op.cpp", '#include "base/status.h"\n', "base/status.h"),
        ("runner/program/map.cpp", '#include "kernels/cost.h"\n', "kernels/cost.h"),  # its op.h only
        ("llm_export/plan.py", "from llm_export.check import x\n", "llm_export/check/__init__.py"),
        ("llm_export/plan.py", "def f():\n    import llm_export.check\n", "llm_export/check/__init__.py"),
        ("llm_export/check/a.py", "from ..plan import x\n", "llm_export/plan.py"),
        ("llm_export/check/a.py", "from llm_export import plan\n", "llm_export/plan.py"),
        ("llm_export/errors.py", "import llm_runner\n", "runner/python/llm_runner/__init__.py"),
    ],
)
def test_another_arrow_is_a_violation(tmp_path, path, text, target):
    (found,) = violations(tmp_path, {path: text})
    assert found.startswith(f"{path}: includes {target}; ")


def test_a_new_room_needs_a_row(tmp_path):
    new = ["runner/chat/turn.cpp", "kernels/simd/a.h", "llm_export/api.py", "kernels/ops/sort/op.cpp"]
    found = violations(tmp_path, dict.fromkeys(new, ""))
    assert [line.rpartition(" ")[2] for line in found] == ["kernels/simd/", "llm_export/api.py", "runner/chat/"]


def test_a_row_needs_a_room(tmp_path):
    page = PAGE.replace("| `base/` | status | - |", "| `base/` | status | - |\n| `runner/gone/` | left | `base` |")
    found = violations(tmp_path, page=page)
    assert found == ["docs/architecture.md: the table of rooms has a row for runner/gone, which is not there"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("| room | what |", "| folder | what |", "has no table that begins with"),
        ("| `base/` | status | - |", "| base | status | - |", "line 6: must be"),
        ("| `base/` | status | - |", "| `base/` | status |", "line 6: must be"),
        ("| `base/` | status | - |", "| `base/` | status | nothing |", "line 6: must be"),
        ("| `kernels/` | registry | `base` |", "| `kernels/` | registry | `base` and more |", "line 7: must be"),
        ("| `kernels/ops/*/` | ops |", "| `base/` | ops |", "base has a row already"),
        ("| registry | `base` |", "| registry | `bass` |", "bass: may be included and has no row"),
    ],
)
def test_a_table_that_cannot_be_read_is_a_violation(tmp_path, old, new, what):
    assert old in PAGE
    (found,) = violations(tmp_path, page=PAGE.replace(old, new))
    assert what in found
