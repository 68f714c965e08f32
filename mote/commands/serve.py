"""`mote serve`."""

from __future__ import annotations

import logging
import os
from collections import Counter
from pathlib import Path

import click

from llm_runner import ArgumentError

LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def run(models, host, port, model_name, api_key, parallel, max_queue, timeout, max_memory_mb, prefix_cache_mb,
        max_body_mb, allow_host, allow_origin, strict, page, log_level, debug, runner_options):  # fmt: skip
    from llm_server import Limits, ServerOptions, is_local, serve

    _log_to_stderr(log_level)
    api_key = api_key or os.environ.get("MOTE_API_KEY") or None
    if not is_local(host) and api_key is None:
        _warn(f"anybody who reaches {host} can use the model: give --api-key, or MOTE_API_KEY in the environment")
    adapters = runner_options["session"].pop("adapters", ())
    options = ServerOptions(
        parallel=parallel,
        max_queue=max_queue,
        timeout=timeout,
        max_memory=None if max_memory_mb is None else max_memory_mb * 2**20,
        prefix_cache_bytes=prefix_cache_mb * 2**20,
        strict=strict,
        api_key=api_key,
        allowed_hosts=(*allow_host, host),
        allowed_origins=allow_origin,
        page=page,
        limits=Limits(max_body_bytes=max_body_mb * 2**20),
        session=runner_options["session"],
        loading=runner_options["model"],
        adapters=adapters,
    )

    def on_listening(url: str, app) -> None:
        served = list(app.state.models)
        can_chat = any(model.chat_template for model in served)
        if not can_chat:
            _warn("no file has a chat template: only /v1/completions and /api/generate with raw have replies")
        about = f"{', '.join(model.name for model in served)} at {url}/v1"
        about += f", chat page at {url}/" if page and can_chat else ""
        click.echo(f"{about}{_runs_on(app.state.models.first.engine.model)}. Ctrl-C ends it.", err=True)

    serve(_by_name(models, model_name), options, host, port, on_listening)


def _by_name(paths: tuple[str, ...], model_name: str | None) -> dict[str, Path]:
    """Returns the files of paths, of which folders stand for the .mote files in them, by the names of requests."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.mote")) if path.is_dir() else [path]
        if not inside:
            raise ArgumentError(f"{path}: the folder has no .mote file")
        found += inside
    if model_name is not None:
        if len(found) > 1:
            raise ArgumentError(f"--model-name {model_name}: is for one model, and there are {len(found)}")
        return {model_name: found[0]}
    twice = [name for name, count in Counter(path.stem for path in found).items() if count > 1]
    if twice:
        raise ArgumentError(f"{twice[0]}.mote: is given twice, and requests name models by their files' names")
    return {path.stem: path for path in found}


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(format=LOG_FORMAT, level=logging.WARNING)
    logging.getLogger("llm_server").setLevel(level.upper())
    if level == "debug":
        logging.getLogger("mote").setLevel(logging.DEBUG)


def _warn(text: str) -> None:
    click.secho(f"warning: {text}", fg="yellow", err=True)


def _runs_on(model) -> str:
    about = model.describe()
    return f", on {about['target']}" if list(about["targets"]) != ["cpu"] else ""
