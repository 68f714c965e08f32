"""`mote show`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from llm_runner import Model
from llm_runner.labels import count_text
from mote.store.catalog import Store
from mote.store.local import local_file
from mote.units import human_bytes


def run(name: str, as_json: bool, debug: bool) -> None:
    path = local_file(name)
    with Model.load(path) as model:
        about = {**model.describe(), "num_parameters": model.num_parameters}
    manifest = next((entry.manifest for entry in Store().list() if entry.path.resolve() == path.resolve()), None)
    fields = summary(path, about) | {"manifest": manifest or None}
    click.echo(json.dumps(fields, indent=2) if as_json else report(fields))


def summary(path: Path, about: dict) -> dict:
    """Returns what a description of a file says in short."""
    made = about["provenance"]
    return {
        "path": str(path),
        "bytes": about["file_bytes"],
        "model_id": made["model_id"],
        "revision": made["revision"],
        "model_type": made["model_type"],
        "num_parameters": about.get("num_parameters"),
        "recipe": made["recipe"],
        "context_length": about["max_position_embeddings"],
        "vocab_size": about["vocab_size"],
        "targets": list(about["targets"]),
        "has_tokenizer": bool(about["tokenizer"]),
        "has_chat_template": bool(about["chat_template"]),
        "license": _first_line(made["license"]),
        "check": about.get("check"),
    }


def report(fields: dict) -> str:
    """Returns the lines that a person reads."""
    manifest = fields["manifest"] or {}
    parameters = fields["num_parameters"]
    check = fields["check"]
    source = f"{manifest.get('source')} of {manifest.get('repo')} {manifest.get('commit', '')[:12]}"
    lines = {
        "model": f"{fields['model_id']} ({fields['model_type']})",
        "parameters": count_text(parameters) if parameters else "",
        "recipe": fields["recipe"],
        "size": human_bytes(fields["bytes"]),
        "context": f"up to {fields['context_length']} positions",
        "runs on": ", ".join(fields["targets"]),
        "tokenizer": "yes" if fields["has_tokenizer"] else "no",
        "chat template": "yes" if fields["has_chat_template"] else "no",
        "checked": check_sentence(check) if check else "",
        "licence": manifest.get("license") or fields["license"],
        "from": source if manifest else "",
        "pulled": manifest.get("pulled_at", ""),
        "sha256": manifest.get("sha256", ""),
        "path": fields["path"],
    }
    return "\n".join(f"{heading:<14} {text}" for heading, text in lines.items() if text)


def check_sentence(check: dict) -> str:
    """Returns what the exporter's comparison with PyTorch found."""
    return (
        f"relative error {check['median_relative_error']:.1e} in the median, "
        f"{check['max_relative_error']:.1e} at most; same likeliest token at {check['top1_agreement']:.0%} of "
        f"{check['num_positions']} positions"
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
