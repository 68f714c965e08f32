"""What the words of a command line mean: verbs and options with typing errors, names of models in place of files."""

from __future__ import annotations

import contextlib
import difflib
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from mote.store.names import is_name

MODEL_OPTIONS = ("--draft",)  # of the runner, whose values are models too


class Verbs(click.Group):
    """A group of verbs in the order in which they were added, that suggests the closest one for an unknown one."""

    def resolve_command(self, ctx, args):
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise click.UsageError(unknown("verb", args[0], self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx) -> list[str]:
        return list(self.commands)


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """Returns the sentence about a verb or option that does not exist, with the closest one if one is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"there is no {kind} '{word}'" + (f": did you mean '{close[0]}'?" if close else "")


@contextlib.contextmanager
def own_words() -> Iterator[None]:
    """Inside, click's error about an unknown option reads as Mote's others do."""
    try:
        yield
    except click.NoSuchOption as error:
        raise click.UsageError(unknown("option", error.option_name, error.possibilities or ()), error.ctx) from error


def model_path(text: str) -> str:
    """Returns the file of an argument that is a path or a name; a name that is not in the store is pulled.

    Errors: FileError if it cannot be; ArgumentError if somebody must be asked, and nobody can
    """
    if not is_name(text):
        return text
    from mote.store.catalog import Store

    try:
        return str(Store().find(text))
    except Exception:  # a FileError, whose import takes as long as the rest of the package
        from mote.commands.pull import local_path

        return local_path(text)


def with_model_paths(verb: str, words: Sequence[str], runner: Path) -> list[str]:
    """Returns the arguments of a verb of the runner, names of models replaced by their files.

    Models are the first argument that is neither an option nor an option's value, and the values of MODEL_OPTIONS.
    """
    found = list(words)
    if not any(map(is_name, words)) or "-h" in words or "--help" in words:
        return found
    index = model_index(verb, words, runner)
    for i, word in enumerate(words):
        if i == index or (i > 0 and words[i - 1] in MODEL_OPTIONS):
            found[i] = model_path(word)
    return found


def checkpoint_index(words: Sequence[str], runner: Path) -> int | None:
    """Returns where the arguments name a folder, or a repository that is not in the store; None: they name a file."""
    index = model_index("advise", words, runner)
    if index is None or index >= len(words) or "-h" in words or "--help" in words:
        return None
    word = words[index]
    if Path(word).is_dir():
        return index
    if not is_name(word):
        return None
    from llm_runner.errors import FileError
    from mote.store.catalog import Store

    try:
        Store().find(word)
    except FileError:
        return index
    return None


def model_index(verb: str, words: Sequence[str], runner: Path) -> int | None:
    """Returns where the first argument is that is neither an option nor an option's value."""
    switches: set[str] | None = None
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            return i + 1
        if not word.startswith("-") or word == "-":
            return i
        # -t4 and --threads=4 have their value in them.
        if "=" not in word and (word.startswith("--") or len(word) == 2):
            switches = runner_switches(verb, runner) if switches is None else switches
            i += word not in switches
        i += 1
    return None


def runner_switches(verb: str, runner: Path) -> set[str]:
    """Returns the options of a verb of the runner that take no value, from its help and the table of options."""
    from llm_runner import describe_options

    with_value = {"--" + row["name"].replace("_", "-") for row in describe_options() if row["type"] != "flag"}
    text = subprocess.run([runner, verb, "--help"], capture_output=True, text=True, check=False).stdout
    switches: set[str] = set()
    for line in text.splitlines():
        match = re.match(r" {2}(-[^ ]+)( (?!Excludes)[^ ])?", line)
        if match is None:
            continue
        spellings = {spelling.partition("{")[0] for spelling in match[1].split(",")}
        if "{" in match[1] or not (match[2] or with_value & spellings):
            switches |= spellings
    return switches
