"""Writes a man page for each verb, of what the programs say of themselves: the runner's help and the table of options.

python scripts/make_man_pages.py OUT --runner COMMAND [--options OPTIONS.json]

COMMAND runs mote-runner, with its emulator where it is for another machine. With OPTIONS.json, which is what
mote_describe_options gives, the pages are those of `mote`, otherwise those of mote-runner. Needs click and nothing that
is compiled for Python.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADINGS = {"Positionals:": "arguments", "Options:": "options", "Subcommands:": "verbs"}
ENTRY = re.compile(r"  (\S.*?)(?:  +(\S.*))?$")


@dataclass
class Page:
    """What a man page says. options, arguments, verbs: pairs of a name and its description"""

    name: str
    summary: str
    usage: str
    options: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[tuple[str, str]] = field(default_factory=list)
    verbs: list[tuple[str, str]] = field(default_factory=list)
    rest: str = ""  # shown as it is


def read_help(name: str, text: str) -> Page:
    """Reads what the runner prints for --help."""
    lines = text.splitlines()
    usage = next(line for line in lines if line.startswith("Usage: "))
    page = Page(name, lines[0].rstrip("."), usage.removeprefix("Usage: "))
    section: list[tuple[str, str]] | None = None
    for number, line in enumerate(lines):
        if line in HEADINGS:
            section = getattr(page, HEADINGS[line])
        elif section is not None and line.startswith("    ") and section:
            section[-1] = (section[-1][0], f"{section[-1][1]} {line.strip()}".strip())
        elif section is not None and (entry := ENTRY.match(line)):
            section.append((spelling(entry[1]), entry[2] or ""))
        elif section is not None and line.strip():
            page.rest = "\n".join(lines[number:])
            break
    return page


def spelling(text: str) -> str:
    """`-t,--threads INT` as `-t, --threads INT`; `--mmap,--no-mmap{false}` without what only the parser needs."""
    return re.sub(r"(?<=\S),(?=-)", ", ", re.sub(r"\{[^}]*\}", "", text))


def roff(text: str) -> str:
    escaped = text.replace("\\", "\\e")
    for character, name in (("-", "\\-"), ("'", "\\(aq"), ("^", "\\(ha"), ("~", "\\(ti")):
        escaped = escaped.replace(character, name)
    return "\n".join("\\&" + line if line.startswith(".") else line for line in escaped.split("\n"))


def manual(page: Page, version: str, pages: Iterable[str]) -> str:
    """Returns the page in the language of man(7)."""
    title = page.name.replace(" ", "-")
    out = [f'.TH "{title.upper()}" "1" "" "Mote {version}" "Mote"', ".SH NAME", roff(f"{title} - {page.summary}")]
    out += [".SH SYNOPSIS", ".B " + roff(page.name), roff(page.usage.removeprefix(page.name).strip())]
    for heading, entries in (("VERBS", page.verbs), ("ARGUMENTS", page.arguments), ("OPTIONS", page.options)):
        out += [f".SH {heading}"] if entries else []
        for name, text in entries:
            out += [".TP", ".B " + roff(name), roff(text) or "\\&"]
    if page.rest:
        out += [".SH NOTES", ".nf", roff(page.rest), ".fi"]
    others = [other for other in pages if other != title]
    out += [".SH SEE ALSO", roff(", ".join(f"{other}(1)" for other in others))]
    return "\n".join(out) + "\n"


def runner_pages(runner: list[str]) -> tuple[str, list[Page]]:
    """Returns the version, and the pages of mote-runner: its own first, then one a verb."""

    def ask(*words: str) -> str:
        return subprocess.run([*runner, *words], check=True, capture_output=True, text=True).stdout

    version = ask("--version").splitlines()[0].split()[1]
    top = read_help("mote-runner", ask("--help"))
    return version, [top, *(read_help(f"mote-runner {verb}", ask(verb, "--help")) for verb, _ in top.verbs)]


def mote_pages(runner: list[Page], options: list[dict]) -> list[Page]:
    """Returns the pages of `mote`, those of its verbs that go to the runner with what the runner says."""
    sys.path.insert(0, str(ROOT))
    # The verbs ask llm_runner for the table of options; here it comes from a file.
    stand_in = types.ModuleType("llm_runner")
    stand_in.describe_options = lambda: options  # type: ignore[attr-defined]
    sys.modules["llm_runner"] = stand_in
    import click

    from mote.cli import RUNNER_VERBS, cli

    of_runner = {page.name.rpartition(" ")[2]: page for page in runner[1:]}
    context = click.Context(cli, info_name="mote", **cli.context_settings)
    top = click_page(cli, context)
    pages = [top]
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        assert command is not None
        top.verbs.append((verb, RUNNER_VERBS.get(verb) or command.get_short_help_str(200)))
        if verb in RUNNER_VERBS:
            page = of_runner[verb]
            usage = page.usage.replace("mote-runner", "mote", 1)
            pages.append(Page(f"mote {verb}", page.summary, usage, page.options, page.arguments, [], page.rest))
        else:
            pages.append(click_page(command, click.Context(command, info_name=verb, parent=context)))
    return pages


def click_page(command, context) -> Page:
    usage = " ".join(command.collect_usage_pieces(context))
    summary = (command.help or "").strip().split("\n\n")[0].replace("\n", " ").rstrip(".")
    options = [record for record in (param.get_help_record(context) for param in command.get_params(context)) if record]
    rest = (command.epilog or "").replace("\b\n", "").strip("\n")
    return Page(context.command_path, summary, f"{context.command_path} {usage}", options, rest=rest)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes man pages of mote-runner, and of mote.")
    parser.add_argument("out", type=Path, help="folder")
    parser.add_argument("--runner", required=True, help="the command that runs mote-runner")
    parser.add_argument("--options", type=Path, help="JSON of the table of options: also write the pages of mote")
    arguments = parser.parse_args()
    version, pages = runner_pages(shlex.split(arguments.runner))
    if arguments.options:
        pages = mote_pages(pages, json.loads(arguments.options.read_text(encoding="utf-8")))
    arguments.out.mkdir(parents=True, exist_ok=True)
    titles = [page.name.replace(" ", "-") for page in pages]
    for old in arguments.out.glob("*.1"):
        old.unlink()
    for page, title in zip(pages, titles, strict=True):
        (arguments.out / f"{title}.1").write_text(manual(page, version, titles), encoding="utf-8")


if __name__ == "__main__":
    main()
