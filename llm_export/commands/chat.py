"""`mote chat`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

HELP = "/reset forgets the conversation, /result TEXT answers a tool call, /exit leaves, Ctrl-C stops a reply"


def run(model, system, context_length, threads, tools, debug, **sampling):
    from llm_export.chat import Chat
    from llm_runner import Model

    conversation = Chat(
        Model.load(model),
        system,
        context_length or None,
        threads or None,
        _read_tools(tools) if tools else None,
        **generation_options(**sampling),
    )
    interactive = sys.stdin.isatty()
    if interactive:
        click.secho(HELP, dim=True, err=True)
    while True:
        text = _ask(interactive)
        if text is None or text == "/exit":
            return
        if text == "/reset":
            conversation.reset()
        elif text.split()[:1] == ["/result"]:
            _give_result(conversation, text.removeprefix("/result").strip())
        elif text.startswith("/"):
            click.secho(f"unknown command {text.split()[0]}: {HELP}", fg="yellow", err=True)
        elif text:
            _show(conversation, conversation.reply(text))


def generation_options(temperature=None, **options) -> dict:
    """Returns the options of `Session.generate`: temperature 0 is greedy search."""
    if temperature == 0:
        return options | {"do_sample": False}
    return options | {"temperature": temperature}


def _ask(interactive: bool) -> str | None:
    """Returns the next line, None at the end of the input."""
    try:
        return input("\001\033[1m\002> \001\033[0m\002" if interactive else "").strip()
    except EOFError:
        return None
    except KeyboardInterrupt:
        click.echo(err=True)
        return ""


def _read_tools(path: str) -> list[dict]:
    """Returns the tools of a JSON file. Errors: ArgumentError."""
    from llm_export.errors import ArgumentError

    try:
        tools = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--tools {path}: {error}") from None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ArgumentError(f"--tools {path}: must be a JSON list of tool schemas")
    return tools


def _give_result(conversation, text: str) -> None:
    if not conversation.open_calls():
        click.secho("no tool call waits for a result", fg="yellow", err=True)
        return
    _show(conversation, conversation.result(text))


class _Screen:
    """Content and calls go to the standard output, reasoning, dimmed, to the error output."""

    def __init__(self):
        self._is_reasoning = False
        self._is_in_line: bool | None = None  # None: nothing was written

    def show(self, event) -> None:
        if event.kind == "reasoning":
            click.secho(event.text, dim=True, nl=False, err=True)
            self._is_reasoning = True
            sys.stderr.flush()
            return
        self._end_reasoning()
        if event.kind == "content":
            self._write(event.text)
        elif event.kind == "tool_call_begin":
            self._new_line()
            self._write(f"{event.text}(", fg="cyan")
        elif event.kind == "tool_call_arguments":
            self._write(event.text, fg="cyan")
        elif event.kind == "tool_call_end":
            self._write(")", fg="cyan")
            self._new_line()
        else:
            self._write(" is no call:", fg="yellow")
            self._new_line()

    def end(self) -> None:
        self._end_reasoning()
        if self._is_in_line is not False:
            click.echo()

    def _end_reasoning(self) -> None:
        if self._is_reasoning:
            click.echo("\n", err=True)
            self._is_reasoning = False

    def _new_line(self) -> None:
        if self._is_in_line:
            self._write("\n")

    def _write(self, text: str, **style) -> None:
        click.secho(text, nl=False, **style)
        self._is_in_line = not text.endswith("\n")
        sys.stdout.flush()


def _show(conversation, reply) -> None:
    screen = _Screen()
    try:
        for event in reply:
            screen.show(event)
    except KeyboardInterrupt:
        reply.close()
        click.secho(" [stopped]", dim=True, nl=False, err=True)
    except Exception as error:
        # Many templates want results before anything else is said.
        is_refused = type(error).__name__ == "FileError" and conversation.open_calls()
        if type(error).__name__ != "ContextFullError" and not is_refused:
            raise
        click.secho(f"{error}. /reset starts anew", fg="yellow", err=True)
    screen.end()
    waiting = [call["function"]["name"] for call in conversation.open_calls()]
    if waiting:
        click.secho(f"{waiting[0]} waits for /result TEXT", dim=True, err=True)
