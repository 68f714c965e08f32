"""The runner's options as flags of verbs in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

TYPES = {"integer": click.INT, "number": click.FLOAT}  # of the others the runner reads the text
SPELLINGS = {"threads": ["-t"], "adapters": ["--adapter"]}


class RunnerOptionsCommand(click.Command):
    """A command that also takes options of models and sessions, which are asked of the runner when it is used.

    scopes: as `llm_runner.describe_options` names them   left_out: options that make no sense for the command
    What was given arrives as one argument, `runner_options`: scope -> name -> value.
    """

    def __init__(self, *arguments: Any, scopes: Sequence[str], left_out: Sequence[str] = (), **options: Any):
        super().__init__(*arguments, **options)
        self._scopes = scopes
        self._left_out = left_out
        self._runner_params: list[click.Parameter] | None = None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if self._runner_params is None:
            self._runner_params = [_flag(row) for row in self._rows()]
        first, *own = super().get_params(ctx)
        return [first, *own[:-1], *self._runner_params, *own[-1:]]

    def invoke(self, ctx: click.Context) -> Any:
        given: dict[str, dict[str, Any]] = {scope: {} for scope in self._scopes}
        for row in self._rows():
            value = ctx.params.pop(row["name"])
            if value is not None and value != ():
                given[row["scope"]][row["name"]] = value
        ctx.params["runner_options"] = given
        return super().invoke(ctx)

    def _rows(self) -> list[dict[str, Any]]:
        from llm_runner import describe_options

        return [row for row in describe_options() if row["scope"] in self._scopes and row["name"] not in self._left_out]


def _flag(row: dict[str, Any]) -> click.Option:
    name = "--" + row["name"].replace("_", "-")
    if row["type"] == "flag":
        return click.Option([row["name"], f"{name}/--no-{name[2:]}"], default=None, help=row["help"] + ".")
    accepted = "" if row["type"] == "text" else f": {row['accepted']}"
    return click.Option(
        [row["name"], *SPELLINGS.get(row["name"], []), name],
        type=TYPES.get(row["type"], click.STRING),
        multiple=row["type"] == "texts",
        default=None,
        help=f"{row['help']}{accepted}.",
    )
