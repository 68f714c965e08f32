"""What a shell proposes for the words of `mote`: options of both programs, files of models, names in the store."""

from __future__ import annotations

import contextlib
import re
import subprocess
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from mote.commands import runner_binary

# In the runner's help: "  -t,--threads INT   help", "  --mmap,--no-mmap{false}   help".
HELP_LINE = re.compile(r" {2}(-\S+)(?: .*)?$")


class ModelPath(click.Path):
    """A file of a model, or a name of one in the store."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return complete_model(incomplete)


class RunnerVerb(click.Command):
    """A verb that goes to the runner: its options are those of the runner's help."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in runner_options(self.name or "") if name.startswith(incomplete)]


def runner_options(verb: str) -> list[str]:
    """Returns all spellings of the options of a verb of the runner."""
    text = subprocess.run([runner_binary(), verb, "--help"], capture_output=True, text=True, check=False).stdout
    lines = (HELP_LINE.match(line) for line in text.splitlines())
    return [spelling.partition("{")[0] for line in lines if line for spelling in line[1].split(",")]


def complete_model(incomplete: str) -> list[CompletionItem]:
    """Returns files *.mote that begin so, else folders; and names in the store. Where there are none, any file."""
    names = [name for name in _store_names() if name.startswith(incomplete)]
    folder, _, start = incomplete.rpartition("/")
    place = Path(folder + "/" if incomplete.startswith("/") else folder or ".").expanduser()
    prefix = incomplete[: len(incomplete) - len(start)]
    found = []
    with contextlib.suppress(OSError):
        entries = sorted(place.iterdir())
        hidden = start.startswith(".")
        entries = [entry for entry in entries if entry.name.startswith(start) and entry.name.startswith(".") == hidden]
        found += [prefix + entry.name for entry in entries if entry.suffix == ".mote" and entry.is_file()]
        if not found:
            found += [prefix + entry.name + "/" for entry in entries if entry.is_dir()]
    items = [CompletionItem(text) for text in [*found, *names]]
    return items or [CompletionItem(incomplete, type="file")]


def _store_names() -> list[str]:
    from mote.store.catalog import Store

    try:
        return [entry.name for entry in Store().list() if entry.is_whole]
    except Exception:  # a key that proposes nothing says nothing either
        return []
