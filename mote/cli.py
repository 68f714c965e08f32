"""The command `mote`: verbs that need Python are here, verbs that need only a file go to `mote-runner`.

Nothing heavy is imported before a verb asks for it, so that `mote run` starts as fast as the runner itself.
"""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import click

from mote.arguments import Verbs, checkpoint_index, model_path, own_words, with_model_paths
from mote.commands import runner_binary, version_text
from mote.commands.runner_options import RunnerOptionsCommand
from mote.commands.verify import asked_for, replay_samples
from mote.completion import ModelPath, RunnerVerb, complete_model
from mote.endings import CLOSED_PIPE_STATUS, is_pipe_closed, output_failure
from mote.extras import check_installed
from mote.libraries import name_libraries
from mote.store_verbs import VERBS as STORE_VERBS

RUNNER_VERBS = {
    "run": "Generate text from a prompt.",
    "chat": "Talk over several turns with the chat template.",
    "embed": "Print the vectors of texts.",
    "advise": "Predict speed and memory of a file on this device.",
    "bench": "Measure prefill and decode speed, load time and memory.",
    "inspect": "Show methods, ops, weights, sizes and the memory plan.",
    "render": "Show the prompt that the chat template makes of messages.",
    "tokenize": "Show the token ids of a text.",
    "verify": "Replay the golden samples on this device.",
}
backend_option = click.option(
    "--backend",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="What runs the file, of what it was exported for; auto: the best that works here.",
)
PASS_THROUGH = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(version_text())
        context.exit()


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  mote export Qwen/Qwen3-0.6B -o qwen3.mote
  mote run qwen3.mote "Why is the sky blue?"
  mote chat qwen3.mote
  mote serve qwen3.mote

A model is a file, or a name such as org/name, which is pulled from the hub when it is first used.""",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Export Hugging Face language models to one file and run them on the device in your hand."""


@cli.command(
    epilog="""\b
Examples:
  mote export Qwen/Qwen3-0.6B
  mote export ./my-checkpoint -o my.mote --recipe 8w
  mote export ./my-checkpoint --override 'model.layers.0.*=8da8w' --override '*.lm_head=none'"""
)
@click.argument("checkpoint")
@click.option("-o", "--output", type=click.Path(), help="File to write.  [default: <model>.mote here]")
@click.option(
    "--recipe",
    help="8da1w to 8da8w (int8 inputs, 1 to 8 bits), 1w to 8w (float inputs), none, or stored, which keeps what is "
    "quantized; see docs/quantization.md.  [default: 8da4w, or stored for a quantized checkpoint]",
)
@click.option(
    "--requantize",
    is_flag=True,
    help="Quantize a second time what the checkpoint stores quantized, with --recipe or 8da4w.",
)
@click.option(
    "--group-size",
    metavar="SIZE",
    help="Weights that share a scale: 32, 64, 128, 256 or channel, which is all of a row.  [default: 32]",
)
@click.option(
    "--embedding-bits", type=int, default=8, show_default=True, help="Bits of embedding and output head: 2 to 8."
)
@click.option(
    "--inputs",
    default="rotated",
    show_default=True,
    metavar="HOW",
    help="How inputs are rounded to int8: rotated before, so that a few large channels spoil nothing; grouped, with a "
    "scale for 32 columns; or token, as they are.",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="PATTERN=SCHEME",
    help="Scheme of the modules that match; repeatable.",
)
@click.option(
    "--calibration",
    is_flag=False,
    flag_value="default",
    metavar="FILE",
    help="Round weights by what a text shows that they do (GPTQ): UTF-8, or .jsonl of chats; without FILE a sample.",
)
@click.option(
    "--target-bits",
    type=float,
    metavar="BITS",
    help="Bits of a weight on average: each gets those with which the predictions for a text lose least.",
)
@click.option(
    "--backend",
    "backends",
    default="cpu",
    show_default=True,
    metavar="NAMES",
    help="What is to run the file, the best first: cpu, xnnpack,cpu, ... The device decides which of them it takes.",
)
@click.option(
    "--check",
    type=click.Choice(["full", "layers", "off"]),
    help="Compare the file with PyTorch: whole module in memory, a layer at a time, or not.  [default: by size]",
)
@click.option(
    "--tokenizer",
    metavar="FOLDER",
    help="Take tokenizer and chat template from this folder.  [default: the checkpoint's]",
)
@click.option(
    "--no-tokenizer", is_flag=True, help="Leave tokenizer and chat template out; the file then takes token ids only."
)
@click.option(
    "--embed/--no-embed",
    default=None,
    help="Also give embeddings; or do not, but generate text.  [default: as the checkpoint is made for]",
)
@click.option(
    "--assistant",
    metavar="CHECKPOINT",
    help="Folder or hub id of what drafts for the model in the same file: an EAGLE-3 head, or Gemma 4's assistant.",
)
@click.option(
    "--weights-file",
    type=click.Path(),
    metavar="FILE.motew",
    help="Put the weights there, beside the output; exports with the same weights share the file.",
)
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--subfolder", default="", help="Folder inside the repository.")
@click.option("--local-files-only", is_flag=True, help="Do not download; use what the hub's cache has.")
@click.option(
    "--trust-remote-code", is_flag=True, help="Run Python code that the checkpoint brings. Only for sources you trust."
)
@click.option("-v", "--verbose", is_flag=True, help="List what backends do not run, and why.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def export(**options) -> None:
    """Write CHECKPOINT, a folder, a hub id or a GGUF file, to one .mote file."""
    check_installed("export", "mote export")
    from mote.commands.export import run

    name_libraries()
    run(**options)


@cli.command(
    epilog="""\b
Examples:
  mote adapter ./my-lora --base qwen3.mote
  mote adapter ./my-dora --base qwen3.mote --checkpoint Qwen/Qwen3-0.6B -o style.mote-adapter
  mote run qwen3.mote --adapter style.mote-adapter=0.5 "Why is the sky blue?\""""
)
@click.argument("folder", type=click.Path())
@click.option("--base", required=True, type=ModelPath(), help="The .mote file that the adapter is for.")
@click.option("-o", "--output", type=click.Path(), help="File to write.  [default: <folder>.mote-adapter here]")
@click.option("--checkpoint", help="Folder or hub id that the base was exported from; for DoRA only.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def adapter(**options) -> None:
    """Write a PEFT FOLDER (LoRA, rsLoRA, DoRA) to a .mote-adapter file for one model."""
    check_installed("export", "mote adapter")
    from mote.commands.adapter import run

    run(**options | {"base": model_path(options["base"])})


@cli.command(
    "eval",
    epilog="""\b
Examples:
  mote eval my.mote --text book.txt
  mote eval my.mote --text book.txt --checkpoint ./my-checkpoint --json
  mote eval my.mote --tasks arc_easy,hellaswag --limit 200""",
)
@click.argument("model", type=ModelPath())
@click.option("--text", "text_path", type=click.Path(), help="UTF-8 text to score.")
@click.option(
    "--checkpoint", help="Folder or hub id: also compare with it in PyTorch (KL divergence, top-1 agreement)."
)
@click.option(
    "--context", type=int, help="Tokens of a window.  [default: 512 of a text, in tasks all that the model can see]"
)
@click.option(
    "--stride", type=int, help="Tokens between windows; the rest of a window is context only.  [default: --context]"
)
@click.option("--max-tokens", type=int, help="Score at most this many tokens.")
@click.option(
    "--tasks", metavar="NAMES", help="Instead of a text: tasks of lm-eval, with commas between them; list: show all."
)
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Only the first questions of each task; below 1: that part.",
)
@click.option(
    "--num-fewshot", type=click.IntRange(0), metavar="N", help="Examples before a question.  [default: the task's]"
)
@click.option(
    "--include-path", multiple=True, metavar="FOLDER", help="Tasks of your own, as YAML files; repeatable."
)
@click.option("--apply-chat-template", is_flag=True, help="Ask tasks' questions through the file's chat template.")
@click.option(
    "--prefix-token-id",
    type=click.IntRange(0),
    metavar="ID",
    help="What texts without a context follow.  [default: the tokenizer's or the file's BOS, else EOS]",
)
@click.option(
    "--confirm-run-unsafe-code", is_flag=True, help="Allow tasks that run the code which the model writes."
)
@click.option(
    "--kv-dtype",
    type=click.Choice(["float32", "float16", "int8", "int4"]),
    default="float32",
    show_default=True,
    help="Elements of the cache of keys and values.",
)
@click.option("--threads", type=int, default=0, help="Threads of the runner.  [default: the physical cores]")
@backend_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def evaluate(**options) -> None:
    """Perplexity of MODEL over a text, or how it does in published tasks."""
    from mote.commands.evaluate import check_options, run

    check_options(options)
    name_libraries()
    run(**options | {"model": model_path(options["model"])})


@cli.command(
    epilog="""\b
Examples:
  mote compare float.mote my.mote --text book.txt
  mote compare my.mote --checkpoint ./my-checkpoint --text "Once upon a time"
  mote compare my.mote --backend cpu,xnnpack --text book.txt --all
  mote compare --profiles before.json after.json"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE [FILE]")
@click.option("--text", metavar="FILE|TEXT", help="What both read: UTF-8 text, or a file of it.")
@click.option("--checkpoint", help="Folder or hub id: compare the file with its modules in PyTorch, unquantised.")
@click.option(
    "--backend",
    default="auto",
    show_default=True,
    metavar="NAME[,NAME]",
    help="What runs the files; two names: the first, and the second.",
)
@click.option("--profiles", "profiles_given", is_flag=True, help="The files are profiles: compare times op by op.")
@click.option(
    "--method",
    type=click.Choice(["verify", "decode"]),
    help="What computes: many tokens a call, or one.  [default: verify, where calls may have any length]",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=64, show_default=True, help="Read at most this many tokens."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=1e-5,
    show_default=True,
    help="Relative error from which on two values count as different.",
)
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads of the runner.  [default: physical cores]")
@click.option("--all", "everything", is_flag=True, help="List every value.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def compare(**options) -> None:
    """Show where two files part, or a file and its checkpoint, or two backends: numeric errors by layer and op."""
    from mote.commands.compare import run

    name_libraries()
    files = options["files"]
    run(**options | {"files": files if options["profiles_given"] else tuple(map(model_path, files))})


@cli.command(
    cls=RunnerOptionsCommand,
    scopes=("session", "model"),
    left_out=("name",),
    epilog="""\b
Examples:
  mote serve qwen3.mote
  mote serve qwen3.mote --port 9000 --context-length 8192 --parallel 2
  mote serve models/ --max-memory 8000
  MOTE_API_KEY=secret mote serve qwen3.mote --host 0.0.0.0""",
)
@click.argument("models", nargs=-1, required=True, type=ModelPath(), metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0: all.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any that is free.")
@click.option("--model-name", help="How requests name the model, if it is one.  [default: the file's name]")
@click.option("--api-key", help="Clients must send it; better in the environment, as MOTE_API_KEY.  [default: none]")
@click.option(
    "--parallel",
    type=click.IntRange(1, 256),
    help="Requests to a model that run together.  [default: up to 256, as many as memory has room for]",
)
@click.option(
    "--max-queue",
    type=click.IntRange(0, 10000),
    default=512,
    show_default=True,
    help="Requests that wait for a model; more get 503.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.001, 86400),
    default=600,
    show_default=True,
    help="Seconds that a request waits, and that it generates.",
)
@click.option(
    "--max-memory",
    "max_memory_mb",
    type=click.IntRange(1, 2**30),
    metavar="MB",
    help="Memory for models and their caches, MiB; idle models make room.  [default: 80 % of what is available]",
)
@click.option(
    "--prefix-cache-mb",
    type=click.IntRange(0, 2**20),
    default=256,
    show_default=True,
    help="What requests have read and others may use, MiB; 0: nothing.",
)
@click.option("--max-body-mb", type=click.IntRange(1, 1024), default=4, show_default=True, help="Largest request, MiB.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name of this machine; repeatable.")
@click.option(
    "--allow-origin", multiple=True, metavar="ORIGIN", help="A site whose pages may use the server; repeatable."
)
@click.option("--strict", is_flag=True, help="Refuse requests with fields that are not known; else they get a warning.")
@click.option("--page/--no-page", default=True, help="Serve the chat page at /.  [default: serve]")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What goes to standard error; info: a line for each request.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def serve(**options) -> None:
    """Serve MODELs, files or folders of them, over HTTP as OpenAI's, Anthropic's and Ollama's APIs do."""
    from mote.commands.serve import run

    name_libraries()
    run(**options | {"models": tuple(map(model_path, options["models"]))})


@cli.command(
    epilog="""\b
Examples:
  eval "$(mote completion bash)"                                    in ~/.bashrc
  eval "$(mote completion zsh)"                                     in ~/.zshrc
  mote completion fish > ~/.config/fish/completions/mote.fish"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete verbs, options and models of `mote`."""
    from mote.commands.completion import run

    run(cli, shell)


def _advise_on_checkpoint(arguments: tuple[str, ...], runner: Path) -> None:
    """Ends the process if they name a checkpoint."""
    from mote.commands.advise import run

    index = checkpoint_index(arguments, runner)
    if index is not None:
        sys.stdout.flush()
        sys.exit(run(arguments, index, runner))


def _forward(verb: str) -> click.Command:
    @click.argument(
        "arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=lambda *about: complete_model(about[-1])
    )
    def command(arguments: tuple[str, ...]) -> None:
        binary = runner_binary()
        if verb == "advise":
            _advise_on_checkpoint(arguments, binary)
        words = with_model_paths(verb, arguments, binary)
        if verb == "verify" and asked_for(words):
            sys.exit(replay_samples(words))
        name_libraries()
        sys.stdout.flush()
        os.execv(binary, [str(binary), verb, *words])

    about = {"short_help": RUNNER_VERBS[verb], "add_help_option": False}
    return click.command(verb, cls=RunnerVerb, context_settings=PASS_THROUGH, **about)(command)


for _verb in RUNNER_VERBS:
    cli.add_command(_forward(_verb))
for _command in STORE_VERBS:
    cli.add_command(_command)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: every expected error is one paragraph on standard error and exit status 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        with own_words():
            status = cli.main(args=arguments, prog_name="mote", standalone_mode=False)
        _end_if_unwritten()
        sys.exit(status or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\ncancelled", err=True)
        sys.exit(130)
    except SystemExit:
        if is_pipe_closed():
            sys.exit(CLOSED_PIPE_STATUS)
        raise
    except Exception as error:
        if isinstance(error, OSError):
            _end_if_unwritten(error)
        if "--debug" in arguments:
            raise
        sys.exit(_report(error))


def _end_if_unwritten(error: OSError | None = None) -> None:
    """Ends the process if standard output cannot be written, which is no defect and no bad input."""
    if failure := output_failure(error):
        status, text = failure
        if text:
            _say(text)
        sys.exit(status)


def _report(error: Exception) -> int:
    """Prints an error as one paragraph; returns the exit status."""
    from llm_runner.errors import MoteError

    if isinstance(error, MoteError):
        text, status = str(error), 2
    elif isinstance(error, (OSError, MemoryError)):
        text, status = str(error) or type(error).__name__, 2
    else:
        name = type(error).__name__
        text, status = f"unexpected {name}: {error}. This is a defect of Mote; --debug shows where it happened", 1
    _say(text)
    return status


def _say(text: str) -> None:
    paragraph = " ".join(text.split())
    click.echo(
        click.style("error: ", fg="red", bold=True) + textwrap.fill(paragraph, 100, initial_indent=" " * 7)[7:],
        err=True,
    )


if __name__ == "__main__":
    main()
