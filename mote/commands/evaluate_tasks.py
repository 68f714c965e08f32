"""`mote eval --tasks`."""

from __future__ import annotations

import json
import time
from typing import Any

import click

KEPT = ("results", "groups", "group_subtasks", "versions", "n-shot", "higher_is_better", "n-samples")  # of lm-eval's


def run(
    model, tasks, limit, num_fewshot, include_path, apply_chat_template, prefix_token_id, confirm_run_unsafe_code,
    context, kv_dtype, threads, backend, as_json, debug,
):  # fmt: skip
    from llm_export.errors import ArgumentError
    from llm_export.progress import Progress
    from llm_export.quiet import prints_in_notes
    from llm_runner import Model

    loaded = Model.load(model, backend=backend)
    if apply_chat_template and not loaded.chat_template:
        raise ArgumentError(f"{model}: has no chat template for --apply-chat-template")
    progress = Progress()
    with prints_in_notes(), progress.stage("tasks"):
        from mote.harness.language_model import ProgramLM
        from mote.harness.tasks import find_tasks, list_tasks, load_tasks, run_tasks

        names = [name.strip() for name in tasks.split(",") if name.strip()]
        listed = list_tasks(include_path) if names == ["list"] else None
        manager, found = find_tasks(names, include_path) if listed is None else (None, [])
    if listed is not None:
        click.echo(json.dumps(listed, indent=2) if as_json else "\n".join(listed))
        return
    lm = ProgramLM(loaded, context, prefix_token_id, progress, kv_dtype=kv_dtype, threads=threads)
    started = time.perf_counter()
    limit = int(limit) if limit is not None and limit >= 1 else limit
    with prints_in_notes():
        with progress.stage("data sets"):
            ready = load_tasks(manager, found, num_fewshot)
        results = run_tasks(
            lm,
            ready,
            limit=limit,
            apply_chat_template=apply_chat_template,
            fewshot_as_multiturn=apply_chat_template,
            confirm_run_unsafe_code=confirm_run_unsafe_code,
        )
    fields = {name: results[name] for name in KEPT if name in results} | {
        "model": str(model),
        "lm_eval_version": lm_eval_version(),
        "limit": limit,
        "apply_chat_template": apply_chat_template,
        "context": lm.max_length,
        "kv_dtype": kv_dtype,
        "prefix_token_id": lm.prefix_token_id,
        "num_truncated": lm.num_truncated,
        "seconds": time.perf_counter() - started,
    }
    click.echo(json.dumps(fields, indent=2, default=str) if as_json else report(fields))


def lm_eval_version() -> str:
    import lm_eval

    return lm_eval.__version__


def report(fields: dict[str, Any]) -> str:
    """Returns the lines that a person reads."""
    from mote.comparison.tables import table

    scores = fields.get("groups", {}) | fields["results"]
    rows = [row for name, metrics in scores.items() for row in _rows(name, metrics, fields)]
    lines = [table(("task", "metric", "value", "stderr", "n-shot", "questions"), rows)]
    if fields["num_truncated"]:
        lines.append(f"{fields['num_truncated']} prompts were too long and lost their left end")
    how = f"lm-eval {fields['lm_eval_version']}, context of {fields['context']} tokens, {fields['kv_dtype']} cache"
    return "\n".join([*lines, f"{how}, {fields['seconds']:.1f} s"])


def _rows(name: str, metrics: dict[str, Any], fields: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns a row for each metric of a task or group. Keys are "acc,none": a metric and the filter before it."""
    found = []
    for key, value in metrics.items():
        metric, comma, kind = key.partition(",")
        if not comma or metric.endswith("_stderr"):
            continue
        error = metrics.get(f"{metric}_stderr,{kind}")
        found.append(
            (
                str(metrics.get("alias", name)) if not found else "",
                metric if kind == "none" else f"{metric} ({kind})",
                _number(value),
                _number(error),
                str(fields["n-shot"].get(name, "")),
                str(fields["n-samples"].get(name, {}).get("effective", "")),
            )
        )
    return found


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value in (None, "N/A") else str(value)
