"""`mote compare`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from llm_runner.errors import ArgumentError
from mote.comparison import profiles, report
from mote.comparison.differences import Comparison, compare_files, compare_modules
from mote.comparison.runs import Run


def run(files, text, checkpoint, backend, profiles_given, method, max_tokens, tolerance, threads, everything, as_json,
        debug):  # fmt: skip
    if profiles_given:
        _compare_profiles(files, as_json)
        return
    if text is None:
        raise ArgumentError("--text: give the text to read, or a file with it")
    comparison = _compare(files, text, checkpoint, backend, method, max_tokens, threads)
    if as_json:
        click.echo(json.dumps(report.as_json(comparison, tolerance), indent=2))
    else:
        click.echo(report.as_text(comparison, tolerance, everything))


def _compare_profiles(files: Sequence[str], as_json: bool) -> None:
    if len(files) != 2:
        raise ArgumentError(f"--profiles: compares two files, got {len(files)}: mote compare --profiles a.json b.json")
    first, second = map(profiles.read_profile, files)
    found = profiles.as_json(first, second)
    click.echo(json.dumps(found, indent=2) if as_json else profiles.as_text(first, second))


def _compare(files, text, checkpoint, backend, method, max_tokens, threads) -> Comparison:
    backends = backend.split(",")
    if checkpoint is not None:
        if len(files) != 1 or len(backends) != 1:
            raise ArgumentError("--checkpoint: compares one file on one backend with it")
        return _compare_with_checkpoint(Run(files[0], backends[0], threads), checkpoint, text, method, max_tokens)
    if len(files) == 1 and len(backends) == 2:
        files = [*files, *files]
    if len(files) != 2 or len(backends) > 2:
        raise ArgumentError(
            "give two .mote files, or one with two backends (--backend cpu,xnnpack) or with its --checkpoint"
        )
    first, second = Run(files[0], backends[0], threads), Run(files[1], backends[-1], threads)
    ids = _tokens(first, text, max_tokens)
    if second.model.tokenize(_text(text)) != first.model.tokenize(_text(text)):
        raise ArgumentError(f"{second.label}: reads the text as other tokens than {first.label}: not of one model")
    return compare_files(first, second, ids, method)


def _compare_with_checkpoint(compared: Run, checkpoint: str, text: str, method, max_tokens) -> Comparison:
    from llm_export.quiet import quiet_imports
    from mote.extras import check_installed

    check_installed("export", "mote compare --checkpoint")
    with quiet_imports():
        from llm_export.check.module_values import module_values, open_oracle
    ids = _tokens(compared, text, max_tokens)
    oracle = open_oracle(checkpoint)
    expected, found = compared.about["vocab_size"], oracle.vocab_size()
    if found != expected:
        raise ArgumentError(f"{checkpoint}: has {found} vocabulary entries, the file {expected}: not its checkpoint")
    modules, logits = module_values(oracle, ids)
    return compare_modules(compared, ids, modules, logits, f"{checkpoint} in PyTorch, float32", method)


def _text(given: str) -> str:
    """The text of a file, if there is one of that name, else what was given."""
    from mote.commands.evaluate import read_text

    try:
        is_file = Path(given).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        is_file = False
    return read_text(given) if is_file else given


def _tokens(compared: Run, text: str, max_tokens: int) -> list[int]:
    most = min(max_tokens, compared.about["max_position_embeddings"])
    ids = compared.model.tokenize(_text(text))[:most]
    if not ids:
        raise ArgumentError("--text: has no tokens: must have at least one")
    return ids
