"""The examples of a page of documentation: fenced and indented blocks, and what is between backticks."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"(`{3,})([^`]*)$")
NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
NAMES = {"sh": "shell"}
PROGRAMS = {"mote", "mote-runner", "make", "cmake", "ctest", "python", "pip", "pytest", "git", "curl", "printf", "cat"}


@dataclass(frozen=True)
class Block:
    """An example.
    kind: shell, python, c, cpp, json, output, or text, which is none
    not_run: why it is not run; empty where it is
    file: what examples that follow call it: the second word of the fence
    """

    page: str
    line: int
    kind: str
    text: str
    not_run: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, source: str) -> list[Block]:
    """Returns the blocks of a page in their order."""
    lines = source.splitlines()
    found, not_run, index = [], "", 0
    while index < len(lines):
        start, reason = index, NOT_RUN.match(lines[index].strip())
        if fence := FENCE.match(lines[index].strip()):
            end = next(i for i in range(index + 1, len(lines)) if lines[i].strip() == fence[1])
            word, text, index = fence[2], lines[index + 1 : end], end + 1
        elif lines[index].startswith("    ") and (index == 0 or not lines[index - 1].strip()):
            while index < len(lines) and (lines[index].startswith("    ") or not lines[index].strip()):
                index += 1
            word, text = "", lines[start:index]
        else:
            if lines[index].strip():
                not_run = reason[1] if reason else ""
            index += 1
            continue
        text = textwrap.dedent("\n".join(text)).rstrip() + "\n"
        kind, _, file = word.strip().partition(" ")
        found.append(Block(page, start + 1, NAMES.get(kind, kind) or kind_of(text), text, not_run, file))
        not_run = ""
    return found


def kind_of(text: str) -> str:
    """What a block is that does not say it."""
    words = re.sub(r"^([A-Z_]+=\S* )+", "", text).split()
    if text.startswith("$ ") or Path(words[0]).name in PROGRAMS:
        return "shell"
    try:
        return "python" if is_code(ast.parse(text)) else "text"
    except SyntaxError:
        return "text"


def is_code(module: ast.Module) -> bool:
    """A name alone, such as a path in a block of its own, is no code."""
    return any(isinstance(node, (ast.Call, ast.Import, ast.ImportFrom, ast.Assign)) for node in ast.walk(module))


def spans_of(source: str) -> list[str]:
    """Returns what stands between backticks in the text of a page, outside of blocks."""
    outside = re.sub(r"^(`{3,}).*?^\1$", "", source, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", re.sub(r"^    .*$", "", outside, flags=re.MULTILINE))


def commands_of(text: str) -> list[tuple[str, str]]:
    """Returns the commands of a shell block with the output that the block shows, empty where it shows none.

    In a block that begins with "$ " every such line is a command and the rest is output; else every line is a command.
    A command goes on in the next line behind a backslash or within quotes.
    """
    transcript = text.startswith("$ ")
    commands: list[tuple[str, str]] = []
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if not transcript and not line.strip():
            continue
        if transcript and not line.startswith("$ "):
            commands[-1] = (commands[-1][0], commands[-1][1] + line + "\n")
            continue
        command = line.removeprefix("$ ")
        while is_unfinished(command):
            command += "\n" + lines.pop(0)
        commands.append((command, ""))
    return commands


def is_unfinished(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:  # no closing quotation, or nothing behind a backslash
        return True
    return command.endswith("\\")
