"""`mote eval`."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from llm_export.errors import ArgumentError, FileError
from mote.extras import check_installed

# option -> what it is without being given; of one of the two things that can be evaluated
OF_TEXT = {"checkpoint": None, "stride": None, "max_tokens": None}
OF_TASKS = {
    "limit": None,
    "num_fewshot": None,
    "include_path": (),
    "apply_chat_template": False,
    "prefix_token_id": None,
    "confirm_run_unsafe_code": False,
}


def check_options(options: dict[str, Any]) -> None:
    """Errors: ArgumentError if options do not go together, or what they need is not installed."""
    if (options["text_path"] is None) == (options["tasks"] is None):
        raise ArgumentError("give --text FILE or --tasks NAMES, one of the two, to say what is scored")
    what, others = ("--text", OF_TASKS) if options["tasks"] is None else ("--tasks", OF_TEXT)
    for name, unset in others.items():
        if options[name] != unset:
            other = "--tasks" if what == "--text" else "--text"
            raise ArgumentError(f"--{name.replace('_', '-')} goes with {other}, not with {what}")
    check_installed(*(("export", "mote eval") if what == "--text" else ("eval", "mote eval --tasks")))


def run(**options: Any) -> None:
    """options: those of the verb, which `check_options` has seen."""
    if options["tasks"] is None:
        call, others = _run_text, {"tasks", *OF_TASKS}
    else:
        from mote.commands import evaluate_tasks

        call, others = evaluate_tasks.run, {"text_path", *OF_TEXT}
    call(**{name: value for name, value in options.items() if name not in others})


def _run_text(model, text_path, checkpoint, context, stride, max_tokens, kv_dtype, threads, backend, as_json, debug):
    from llm_export.progress import Progress
    from llm_export.quiet import quiet_imports
    from llm_runner import Model

    with quiet_imports():
        from llm_export.check.evaluate import evaluate, file_scorer, windows

    text = read_text(text_path)
    loaded = Model.load(model, backend=backend)
    ids = loaded.tokenize(text)
    context = _context(512 if context is None else context, loaded, len(ids))
    cuts = list(windows(len(ids), context, context if stride is None else stride, max_tokens))
    if not cuts:
        raise ArgumentError(f"{text_path}: has {len(ids)} tokens: must have at least 2")
    reference = _checkpoint_scorer(checkpoint, loaded) if checkpoint else None
    started = time.perf_counter()
    with Progress().stage("eval", sum(cut.stop - cut.first_target for cut in cuts), "tok") as bar:
        result = evaluate(ids, file_scorer(loaded, context, threads or None, kv_dtype), cuts, reference, bar.update)
    fields = asdict(result) | {"context": context, "kv_dtype": kv_dtype, "seconds": time.perf_counter() - started}
    click.echo(json.dumps(fields, indent=2) if as_json else report(fields))


def read_text(path: str) -> str:
    """Errors: FileError if the file cannot be read or is not UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error


def report(fields: dict) -> str:
    """Returns the lines that a person reads."""
    lines = [f"perplexity              {fields['perplexity']:.4f}   over {fields['num_tokens']} tokens"]
    if fields["kl_divergence"] is not None:
        lines += [
            f"checkpoint's perplexity {fields['checkpoint_perplexity']:.4f}   in PyTorch",
            f"KL divergence           {fields['kl_divergence']:.6f} nats a token",
            f"same most likely token  {fields['top1_agreement']:.2%}",
        ]
    how = f"windows of {fields['context']} tokens, {fields['kv_dtype']} cache, {fields['seconds']:.1f} s"
    return "\n".join([*lines, how])


def _context(asked: int, model, num_ids: int) -> int:
    largest = model.info["max_position_embeddings"]
    if asked > largest:
        raise ArgumentError(f"context = {asked}: the model has {largest} positions at most")
    return max(2, min(asked, num_ids)) if asked >= 2 else asked


def _checkpoint_scorer(source: str, model):
    """Returns the scorer of a checkpoint, unquantised; a layer at a time if it is large."""
    import torch

    from llm_export.check.oracle import Oracle, fits_memory
    from llm_export.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(source)
    oracle = Oracle(checkpoint, keep=fits_memory(checkpoint))
    expected, found = model.info["vocab_size"], oracle.vocab_size()
    if found != expected:
        raise ArgumentError(f"{source}: has {found} vocabulary entries, the file {expected}: not its checkpoint")
    return lambda ids: oracle.logits(torch.tensor([list(ids)]))[0]
