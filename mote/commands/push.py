"""`mote push`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from llm_runner import Model
from llm_runner.errors import ArgumentError, FileError
from mote.store.card import is_ours, make_card
from mote.store.hub import client, first_line, plain_errors, read_text
from mote.store.local import local_file
from mote.store.names import Name, parse_name
from mote.units import human_bytes

CARD = "README.md"


def run(file: str, name: str, private: bool, dry_run: bool, replace_card: bool, debug: bool) -> None:
    target = parse_name(name)
    if target is None or target.tag:
        raise ArgumentError(f"'{name}': must be org/name, or org/name@branch")
    path = local_file(file)
    with Model.load(path) as model:
        about = {**model.describe(), "num_parameters": model.num_parameters}
    elsewhere = next((segment["file"] for segment in about["segments"] if "file" in segment), None)
    if elsewhere is not None:
        raise FileError(
            f"{path}: its weights are in {elsewhere}, without which nobody can use it: push a file that was exported "
            "without --weights-file"
        )
    if dry_run:
        click.echo(make_card(target.repo, path.name, about), nl=False)
        return
    api = client()
    with plain_errors(target):
        api.create_repo(target.repo, private=private or None, exist_ok=True)
        old = read_text(target, CARD)
        card = make_card(target.repo, path.name, about, _license(api, about["provenance"]["model_id"]), old)
        keeps_card = bool(old) and not is_ours(old) and not replace_card
        commit = _commit(api, target, path, None if keeps_card else card)
    if keeps_card:
        note = f"{target.repo} has a model card of its own, which was kept; --replace-card writes Mote's"
        click.secho(f"note: {note}", fg="yellow", err=True)
    click.echo(f"{target.repo}: {path.name}, {human_bytes(path.stat().st_size)}: {commit.commit_url}")


def _commit(api, target: Name, path: Path, card: str | None):
    """Uploads the file, and the card unless it is None, in one commit."""
    from huggingface_hub import CommitOperationAdd
    from huggingface_hub.errors import HTTPError
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()

    operations = [CommitOperationAdd(path_in_repo=path.name, path_or_fileobj=path)]
    if card is not None:
        operations.append(CommitOperationAdd(path_in_repo=CARD, path_or_fileobj=card.encode()))
    try:
        return api.create_commit(
            target.repo, operations, commit_message=f"Add {path.name}", revision=target.revision or None
        )
    except HTTPError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # of the transfer of large files
        raise FileError(f"{target.repo}: {path.name} could not be uploaded: {first_line(error)}") from error


def _license(api, model_id: str) -> str:
    """Returns the licence of the base model by the hub's identifier, "" if the hub does not say."""
    with contextlib.suppress(Exception):  # the file's own licence is read then
        card = api.model_info(model_id).card_data if "/" in model_id else None
        return str((card.get("license") if card else "") or "")
    return ""
