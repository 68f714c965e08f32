"""The verbs of the store of models."""

from __future__ import annotations

import click

NAMES = """\b
A name is org/name, as on the hub. org/name:8w is a file of several, org/name@v2 a revision.
Of GGUF files a word of the name is enough: org/name-GGUF:Q4_K_M."""
debug_option = click.option("--debug", is_flag=True, help="Show tracebacks.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(
    short_help="Get a model from the hub into the store.",
    epilog=f"""{NAMES}

\b
Examples:
  mote pull org/name
  mote pull org/name:8w --yes
  mote pull org/name-GGUF:Q6_K --yes"""
)
@click.argument("name")
@click.option(
    "--requantize",
    is_flag=True,
    help="Quantize a second time what a checkpoint stores quantized; else it is kept, or refused where it cannot be.",
)
@click.option("-y", "--yes", is_flag=True, help="Export a checkpoint or GGUF file without asking.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@debug_option
def pull(**options) -> None:
    """Download NAME from the hub to the store, or export its checkpoint or GGUF file.

    A download that was stopped goes on where it was.
    """
    from mote.commands.pull import run

    run(**options)


@click.command("list", short_help="List the models in the store.")
@json_option
def list_models(**options) -> None:
    """List the models in the store."""
    from mote.commands.list import run

    run(**options)


@click.command(
    short_help="Delete models from the store.",
    epilog="""\b
Examples:
  mote rm org/name
  mote rm org/name:8w org/other --yes"""
)
@click.argument("names", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@debug_option
def rm(**options) -> None:
    """Delete models, and what stopped downloads have left, from the store."""
    from mote.commands.rm import run

    run(**options)


@click.command(short_help="Show what a model is and where it came from.")
@click.argument("name")
@json_option
@debug_option
def show(**options) -> None:
    """Show what NAME, a model in the store or a file, is and where it came from."""
    from mote.commands.show import run

    run(**options)


@click.command(
    short_help="Upload a file with a model card to the hub.",
    epilog="""\b
Examples:
  mote push qwen3.mote org/qwen3-mote
  mote push qwen3.mote org/qwen3-mote --dry-run"""
)
@click.argument("file")
@click.argument("name")
@click.option("--private", is_flag=True, help="Make the repository private, if it is new.")
@click.option("--dry-run", is_flag=True, help="Only print the model card.")
@click.option("--replace-card", is_flag=True, help="Replace a model card that somebody else wrote.")
@debug_option
def push(**options) -> None:
    """Upload FILE to the repository NAME of the hub, with a model card."""
    from mote.commands.push import run

    run(**options)


VERBS = (pull, list_models, rm, show, push)
