"""What a comparison says: summaries, ratios, the Markdown table. Pure functions over what the processes reported."""

from __future__ import annotations

from statistics import median

from benchmarks.shapes import SHAPES, decode_bytes, prefill_macs

OURS = ("mote", "mote-xnnpack", "mote-xnnpack-head", "mote-vulkan")
KV_ELEMENT_BYTES = {"float32": 4, "float16": 2, "int8": 1.125, "int4": 0.625}
RATIOS = ("decode_vs_roofline", "prefill_vs_roofline", "decode_vs_best_peer", "prefill_vs_best_peer")


def spread(values: list[float]) -> dict[str, float]:
    """Returns min, median and max. Errors: ValueError for no values."""
    if not values:
        raise ValueError("no values to summarise")
    return {"min": min(values), "median": median(values), "max": max(values)}


def row(model: str, runtime: str, runs: list[dict], file_bytes: int, facts: dict) -> dict:
    """Returns one row of the report.

    runs: one a process: prompt_tokens, prefill_seconds, decode_steps, decode_seconds, load_seconds,
      cold_start_seconds, private_mb, file_backed_mb     facts: strings to copy: version, head, cache, conversion
    """
    return {
        "model": model,
        "runtime": runtime,
        "prefill_tok_s": spread([run["prompt_tokens"] / run["prefill_seconds"] for run in runs]),
        "decode_tok_s": spread([run["decode_steps"] / run["decode_seconds"] for run in runs]),
        "load_s": median(run["load_seconds"] for run in runs),
        "cold_start_s": median(run["cold_start_seconds"] for run in runs),
        "file_mb": file_bytes / 1e6,
        "private_mb": max(run["private_mb"] for run in runs),
        "file_backed_mb": max(run["file_backed_mb"] for run in runs),
        "runs": len(runs),
        "error": None,
    } | facts


def failed_row(model: str, runtime: str, error: str, facts: dict) -> dict:
    """Returns the row of a peer that has no figures, with the reason."""
    figures = ("prefill_tok_s", "decode_tok_s", "load_s", "cold_start_s", "file_mb", "private_mb", "file_backed_mb")
    return {"model": model, "runtime": runtime} | dict.fromkeys(figures) | {"runs": 0, "error": error} | facts


def steps(profile: dict) -> dict[str, dict]:
    """Returns what a call hands to a GPU, `prefill` of the whole prompt and `decode` of one token at the deepest of the
    depths that were measured: tokens, depth, dispatches, submissions (None: not told), bytes.

    profile: what `mote bench --profile --json` printed
    """
    found = {}
    for method, choose in (("prefill", min), ("decode", max)):
        tests = [test for test in profile["profile"]["tests"] if test["method"] == method and test["calls"]]
        test = choose(tests, key=lambda each: each["depth"])
        calls = test["calls"]
        found[method] = {
            "tokens": test["tokens"] if method == "prefill" else 1,
            # In the middle of the steps that were counted; an own position is read too.
            "depth": test["depth"] + (calls + 1) / 2 if method == "decode" else test["depth"],
            "dispatches": test["all"]["count"] / calls,
            "submissions": test["submissions"] / calls if "submissions" in test else None,
            "bytes": test["all"]["bytes"] / calls,
        }
    return found


def rooflines(config: dict, limits: dict, prompt_tokens: int, generate_tokens: int, cache: str) -> dict[str, float]:
    """Returns the most tokens a second that the machine's limits allow, `prefill` and `decode`.

    Decode is taken at the depth in the middle of the generation.   cache: the element type of the key/value cache
    """
    depth = prompt_tokens + generate_tokens / 2
    return {
        "prefill": limits["int8_gmac_s"] * 1e9 / prefill_macs(config, prompt_tokens),
        "decode": limits["read_gb_s"] * 1e9 / decode_bytes(config, depth, KV_ELEMENT_BYTES[cache]),
    }


def ratios(rows: list[dict], roofline: dict[str, float] | None, runtime: str = OURS[0]) -> dict[str, float | None]:
    """Returns the four ratios of one of ours among one model's rows, medians over medians; None: a side is missing."""
    ours = next((row for row in rows if row["runtime"] == runtime and not row["error"]), None)
    found = dict.fromkeys(RATIOS)
    if ours is None:
        return found
    for phase in ("decode", "prefill"):
        speed = ours[f"{phase}_tok_s"]["median"]
        peers = [row[f"{phase}_tok_s"]["median"] for row in rows if row["runtime"] not in OURS and not row["error"]]
        if roofline:
            found[f"{phase}_vs_roofline"] = speed / roofline[phase]
        if peers:
            found[f"{phase}_vs_best_peer"] = speed / max(peers)
    return found


def document(rows: list[dict], limits: dict | None, setup: dict) -> dict:
    """Returns everything that --json writes.

    limits: read_gb_s and int8_gmac_s, or None if they were not measured
    setup: threads, prompt_tokens, generate_tokens, and whatever else describes the run
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    lines, found, costs = {}, {}, {}
    for model in models:
        costs[model] = {
            "prefill_macs": prefill_macs(SHAPES[model], setup["prompt_tokens"]),
            "decode_macs": prefill_macs(SHAPES[model], 1),
            "step_bytes": decode_bytes(SHAPES[model], 0, 0),
        }
        of_model = [row for row in rows if row["model"] == model]
        cache = next((row["cache"] for row in of_model if row["runtime"] in OURS), "float32")
        if limits:
            lengths = setup["prompt_tokens"], setup["generate_tokens"]
            lines[model] = rooflines(SHAPES[model], limits, *lengths, cache)
        present = [row["runtime"] for row in of_model if row["runtime"] in OURS] or OURS[:1]
        found[model] = {runtime: ratios(of_model, lines.get(model), runtime) for runtime in present}
    none = {"read_gb_s": None, "int8_gmac_s": None}
    return {"setup": setup, "limits": limits or none, "rows": rows, "costs": costs, "rooflines": lines, "ratios": found}


def table(report: dict) -> str:
    """Returns the report as Markdown."""
    setup, limits = report["setup"], report["limits"]
    lines = [
        f"{setup['prompt_tokens']} prompt and {setup['generate_tokens']} generated tokens, {setup['threads']} threads, "
        f"{setup.get('cpu', 'unknown processor')}; median (min to max) of interleaved fresh processes.",
        "",
    ]
    if limits["read_gb_s"] is None:
        lines += [f"The machine's limits were not measured: {setup.get('limits_error', 'not asked for')}", ""]
    else:
        lines += [f"Limits: {limits['read_gb_s']:.1f} GB/s read, {limits['int8_gmac_s']:.0f} int8 GMAC/s.", ""]
    lines += [
        "| model | runtime | prefill tok/s | decode tok/s | load s | cold start s | file MB | private MB | "
        "file-backed MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for model, of_ours in report["ratios"].items():
        lines += [_table_line(row) for row in report["rows"] if row["model"] == model]
        if model in report["rooflines"]:
            line = report["rooflines"][model]
            lines.append(f"| {model} | roofline | {line['prefill']:.0f} | {line['decode']:.0f} | | | | | |")
        for runtime, ratio in of_ours.items():
            for name, key in (("roofline", "roofline"), ("best peer", "best_peer")):
                phases = (_ratio(ratio, f"{phase}_vs_{key}") for phase in ("prefill", "decode"))
                lines.append(f"| {model} | {runtime} / {name} | {' | '.join(phases)} | | | | | |")
    return "\n".join(lines + ["", *_step_lines(report), *_notes(report["rows"])]) + "\n"


def _step_lines(report: dict) -> list[str]:
    """The table of what was handed to a GPU; nothing where none was counted."""
    lines = []
    for row in report["rows"]:
        for phase, found in (row.get("steps") or {}).items():
            least = decode_bytes(SHAPES[row["model"]], found["depth"], KV_ELEMENT_BYTES[row["cache"]])
            cells = [row["model"], row["runtime"], f"{phase} {found['tokens']}", f"{found['dispatches']:.0f}"]
            cells += ["-" if found["submissions"] is None else f"{found['submissions']:.1f}"]
            cells += [f"{found['bytes'] / 1e6:.1f}", f"{found['bytes'] / least:.3f}" if phase == "decode" else ""]
            lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return []
    names = ("model", "runtime", "call", "dispatches", "submissions", "MB", "MB / weights and cache")
    return [f"| {' | '.join(names)} |", "|---|---|---|---|---|---|---|", *lines, ""]


def _table_line(row: dict) -> str:
    cells = [row["model"], row["runtime"]]
    if row["error"]:
        cells += [f"failed: {row['error']}".replace("|", "\\|"), "", "", "", "", "", ""]
    else:
        cells += [_spread(row["prefill_tok_s"]), _spread(row["decode_tok_s"])]
        cells += [f"{row[name]:.2f}" for name in ("load_s", "cold_start_s")]
        cells += [f"{row[name]:.0f}" for name in ("file_mb", "private_mb", "file_backed_mb")]
    return f"| {' | '.join(cells)} |"


def _spread(values: dict[str, float]) -> str:
    return f"{values['median']:.1f} ({values['min']:.1f} to {values['max']:.1f})"


def _ratio(found: dict, name: str) -> str:
    return "-" if found[name] is None else f"{found[name]:.2f}"


def _notes(rows: list[dict]) -> list[str]:
    """One line a runtime: what was converted how."""
    notes = {}
    for row in rows:
        notes.setdefault(
            row["runtime"],
            f"- {row['runtime']} {row['version']}: {row['conversion']}; head {row['head']}; {row['cache']} cache",
        )
    return list(notes.values())
