"""`mote serve`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from llm_runner import Model


def run(model, host, port, model_name, api_key, parallel, max_queue, timeout, prefix_cache_mb, max_body_mb, allow_host,
        allow_origin, page, debug, runner_options):  # fmt: skip
    from llm_server import Limits, ServerOptions, is_local, serve

    api_key = api_key or os.environ.get("MOTE_API_KEY") or None
    if not is_local(host) and api_key is None:
        text = (
            f"warning: anybody who reaches {host} can use the model: give --api-key, or MOTE_API_KEY in the environment"
        )
        click.secho(text, fg="yellow", err=True)
    options = ServerOptions(
        model_name=model_name or Path(model).stem,
        parallel=parallel,
        max_queue=max_queue,
        timeout=timeout,
        prefix_cache_bytes=prefix_cache_mb * 2**20,
        api_key=api_key,
        allowed_hosts=(*allow_host, host),
        allowed_origins=allow_origin,
        page=page,
        limits=Limits(max_body_bytes=max_body_mb * 2**20),
        session=runner_options["session"],
    )

    loaded = Model.load(model, **runner_options["model"])

    def on_listening(url: str) -> None:
        about = f"{options.model_name} at {url}/v1" + (f", chat page at {url}/" if page else "")
        click.echo(f"{about}{_runs_on(loaded)}. Ctrl-C ends it.", err=True)

    serve(loaded, options, host, port, on_listening)


def _runs_on(model: Model) -> str:
    about = model.describe()
    return f", on {about['target']}" if list(about["targets"]) != ["cpu"] else ""
