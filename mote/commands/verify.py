"""`mote verify` for backends that write an asset beside the file: golden samples on an interpreter, on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from mote.extras import check_installed

INTERPRETERS = {"coreai": "the interpreter of coreai-core", "coreml": "Mote's interpreter of MIL"}
MISMATCH = 1  # exit status


def asked_for(arguments: Sequence[str]) -> bool:
    """Whether the words of `mote verify` name such a backend, and the runner of this system has none of that name."""
    runs_here = {"coreml"} if sys.platform == "darwin" else set()
    return _target(arguments) in INTERPRETERS.keys() - runs_here


def _target(arguments: Sequence[str]) -> str:
    named = [b for a, b in zip(arguments, arguments[1:], strict=False) if a == "--backend"]
    named += [word.partition("=")[2] for word in arguments if word.startswith("--backend=")]
    bare = [name.partition(":")[0] for name in named]  # a profile says how a file was made
    return next((name for name in bare if name in INTERPRETERS), "")


def replay_samples(words: Sequence[str]) -> int:
    """Does what the words of `mote verify` ask for. Returns: the exit status. Errors: MoteError"""
    target = _target(words)
    check_installed("export", f"mote verify --backend {target}")
    files = [word for word in words if word.endswith(".mote")]
    if len(files) != 1:
        raise click.UsageError(f"mote verify --backend {target}: must name one .mote file")
    return run(Path(files[0]), target, "--json" in words)


def run(path: Path, target: str, as_json: bool) -> int:
    """Prints a report. Returns: the exit status. Errors: MoteError"""
    from llm_export.partition.targets import find_backend

    model = find_backend(target).open_model(path)
    try:
        samples = [_replay(model, sample) for sample in model.samples if not sample.method]
    finally:
        model.close()
    passed = all(sample["passed"] for sample in samples)
    report = {"passed": passed, "samples": samples, "target": target, "runs_on": INTERPRETERS[target]}
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return 0 if passed else MISMATCH
    click.echo(f"runs on {target}, by {INTERPRETERS[target]}: a device may compute otherwise")
    for sample in samples:
        result = "ok" if sample["passed"] else "DIFFERS"
        click.echo(
            f"{sample['text']!r}: {sample['matched_tokens']} of {sample['tokens']} tokens agree, largest error "
            f"{sample['max_relative_error']:.1e} ({sample['tolerance']:.1e} is allowed): {result}"
        )
    click.echo("The file has no golden samples." if not samples else "verified" if passed else "does not verify")
    return 0 if passed else MISMATCH


def _replay(model, sample) -> dict:
    """As check_golden of the runner's session does."""
    import numpy as np

    from llm_export.program.flat import text

    prompt, expected, probes = (list(ids) for ids in (sample.promptIds, sample.expectedIds, sample.probeIds))
    recorded = np.array(sample.probeLogits, np.float32).reshape(len(expected), len(probes))
    largest, session = float(np.abs(recorded).max()), model.session()
    error, matched, logits = 0.0, 0, session.prefill(prompt)
    for step, id in enumerate(expected):
        error = max(error, float(np.abs(logits[probes] - recorded[step]).max()) / largest)
        matched += bool(logits[id] >= logits.max() - 2 * sample.tolerance * largest)
        if step + 1 < len(expected):
            logits = session.decode(id)
    words = text(sample.text)
    agrees = not (words and model.has_tokenizer) or model.tokenize(words) == prompt
    return {
        "text": words,
        "prompt_tokens": len(prompt),
        "tokens": len(expected),
        "matched_tokens": matched,
        "max_relative_error": error,
        "tolerance": sample.tolerance,
        "tokenizer_agrees": agrees,
        "passed": agrees and matched == len(expected) and error <= sample.tolerance,
    }
