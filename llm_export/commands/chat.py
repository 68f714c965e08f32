"""`mote chat`."""

from __future__ import annotations

import sys

import click

HELP = "/reset forgets the conversation, /exit leaves, Ctrl-C stops a reply"


def run(model, system, context_length, threads, debug, **sampling):
    from llm_export.chat import Chat
    from llm_runner import Model

    conversation = Chat(
        Model.load(model), system, context_length or None, threads or None, **generation_options(**sampling)
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
        elif text.startswith("/"):
            click.secho(f"unknown command {text.split()[0]}: {HELP}", fg="yellow", err=True)
        elif text:
            _answer(conversation, text)


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


def _answer(conversation, text: str) -> None:
    reply = conversation.reply(text)
    try:
        for piece in reply:
            click.echo(piece, nl=False)
            sys.stdout.flush()
    except KeyboardInterrupt:
        reply.close()
        click.secho(" [stopped]", dim=True, nl=False, err=True)
    except Exception as error:
        if type(error).__name__ != "ContextFullError":
            raise
        click.secho(f"{error}. /reset starts anew", fg="yellow", err=True)
    click.echo()
