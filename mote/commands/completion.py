"""`mote completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


def run(command: click.Command, shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None  # click knows those that the verb takes
    click.echo(kind(command, {}, "mote", "_MOTE_COMPLETE").source())
