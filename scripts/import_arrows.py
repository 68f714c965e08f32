"""Holds every include and import against the table of rooms in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = "docs/architecture.md"
HEADER = "| room | what | may include |"
# Folders whose folders are rooms: each needs a row. Elsewhere in these houses a row is a room with all that is in it.
HOUSES = ("kernels", "kernels/ops", "kernels/vendor", "runner", "backends", "llm_export", "mote")
TOPS = ("base", "kernels", "tokenizer", "runner", "backends", "apps", "llm_export", "llm_server", "mote")
# Where a Python package lies, if not in a folder of its name.
PACKAGES = {
    "llm_export/backends": "backends",
    "llm_runner": "runner/python/llm_runner",
    "llm_tokenizer": "tokenizer/python/llm_tokenizer",
}


class TableError(Exception):
    """The table cannot be read."""


@dataclass(frozen=True)
class Table:
    """rooms: folder, file or pattern with `*` -> rooms and files that it may include beside itself."""

    rooms: dict[str, frozenset[str]]

    def room_of(self, path: str) -> str | None:
        """The room of a file: with a pattern each folder that it matches is one. None: it has no row."""
        folders = [path, *(parent.as_posix() for parent in Path(path).parents)][:-1]
        for folder in folders:
            if self.row_of(folder) is not None:
                return folder
            if Path(folder).parent.as_posix() in HOUSES and folder != path:
                return None
        return None

    def row_of(self, room: str) -> str | None:
        """The row of a room; one that names it goes before a pattern."""
        if room in self.rooms:
            return room
        matches = [row for row in self.rooms if row.count("/") == room.count("/") and fnmatchcase(room, row)]
        return matches[0] if matches else None

    def allows(self, source: str, target: str) -> bool:
        """Whether a file of `source`, a room, may include the file `target`."""
        room, allowed = self.room_of(target), self.rooms[self.row_of(source)]
        return room is None or room == source or bool({target, room, self.row_of(room)} & allowed)


def read_table(page: str) -> Table:
    """Errors: TableError naming the line that is not a row, or what a row names that has none itself."""
    lines = page.splitlines()
    if HEADER not in lines:
        raise TableError(f"has no table that begins with {HEADER}")
    first = lines.index(HEADER) + 2
    rooms: dict[str, frozenset[str]] = {}
    for number, line in enumerate(lines[first:], first + 1):
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        names = [_names(cells[0])] if len(cells) == 3 else []
        allowed = _names(cells[2]) if names else []
        if not names or not names[0] or (not allowed and cells[2] != "-"):
            raise TableError(f"line {number}: must be | `room/`, ... | what | `room`, ... or - |: {line}")
        doubled = sorted(set(names[0]) & set(rooms))
        if doubled:
            raise TableError(f"line {number}: {doubled[0]} has a row already")
        rooms.update(dict.fromkeys(names[0], frozenset(allowed)))
    table = Table(rooms)
    unknown = {name for allowed in rooms.values() for name in allowed if name not in rooms and not table.room_of(name)}
    if unknown:
        raise TableError(f"{', '.join(sorted(unknown))}: may be included and has no row")
    return table


def _names(cell: str) -> list[str]:
    """What stands in backticks, and nothing else beside commas; empty if there is more."""
    names = re.findall(r"`([^`]+)`", cell)
    return [name.rstrip("/") for name in names] if not re.sub(r"`[^`]+`", "", cell).strip(", ") else []


def violations(root: Path, files: Sequence[str], page: str) -> list[str]:
    """What is wrong with the table or against it, a line each.

    files: paths below root   page: the text of docs/architecture.md
    """
    try:
        table = read_table(page)
    except TableError as error:
        return [f"{PAGE}: {error}"]
    sources = [path for path in files if path.endswith((".cpp", ".h", ".py")) and path.split("/")[0] in TOPS]
    rooms = {path: table.room_of(path) for path in sources}
    houseless = sorted({_missing_row(path) for path, room in rooms.items() if room is None})
    found = [f"{PAGE}: the table of rooms has no row for {row}" for row in houseless]
    used = {table.row_of(room) for room in rooms.values() if room is not None}
    found += [f"{PAGE}: the table of rooms has a row for {row}, which is not there" for row in set(table.rooms) - used]
    for path, room in rooms.items():
        for target in _targets(root, path) if room is not None else ():
            if not table.allows(room, target):
                allowed = ", ".join(sorted(table.rooms[table.row_of(room)])) or "nothing"
                found.append(f"{path}: includes {target}; {room} may include {allowed} ({PAGE})")
    return found


def _missing_row(path: str) -> str:
    folder = Path(path).parent.as_posix()
    return path if folder in HOUSES else f"{folder}/"


def _targets(root: Path, path: str) -> Iterator[str]:
    text = (root / path).read_text()
    if path.endswith(".py"):
        yield from _imported(root, path, text)
    else:
        yield from re.findall(r'^\s*#\s*include "([^"]+)"', text, re.MULTILINE)


def _imported(root: Path, path: str, text: str) -> Iterator[str]:
    """The files of ours that a Python file imports, also inside functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = [name.name.replace(".", "/") for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = Path(path).parents[node.level - 1].as_posix() + "/" if node.level else ""
            module = base + (node.module or "").replace(".", "/")
            modules = [f"{module.rstrip('/')}/{name.name}" for name in node.names]
        else:
            continue
        yield from (found for module in modules if (found := _file_of(root, module)))


def _file_of(root: Path, module: str) -> str | None:
    """The file of a module, or of the nearest package around a name; None if it is not ours."""
    for package, folder in PACKAGES.items():
        if module == package or module.startswith(package + "/"):
            module = folder + module[len(package) :]
            break
    if module.split("/")[0] not in TOPS:
        return None
    for part in [module, *(parent.as_posix() for parent in Path(module).parents)][:-1]:
        for file in (f"{part}.py", f"{part}/__init__.py"):
            if (root / file).is_file():
                return file
    return f"{module}/__init__.py"  # a folder without code of its own, or a compiled module
