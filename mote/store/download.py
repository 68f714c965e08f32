"""One file of the hub: what was there is kept, and it is verified before it gets its name."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_export.pieces import PieceWriter
from llm_runner.errors import FileError
from mote.store.catalog import MANIFEST, PART, beside, read_json, write_json
from mote.store.hub import HubFile, Repository, client, first_line, plain_errors
from mote.units import human_bytes

CHUNK_BYTES = 1 << 20
NUM_TRIES = 5  # in a row that bring nothing
FIRST_WAIT_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0
SPARE_BYTES = 64 << 20  # left free on the disk

OnBytes = Callable[[int], object]


def download(repository: Repository, file: HubFile, path: Path, on_bytes: OnBytes = lambda count: None) -> str:
    """Downloads a file to `path` and returns its sha256. Goes on with what an earlier call has left.

    on_bytes: called with how many bytes there are more; with what is there already first
    Errors: FileError; what has come is kept but where it proved wrong. The caller holds the store's lock
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _Part(path, file)
    check_free_space(path.parent, file.bytes - part.bytes, str(repository.name))
    on_bytes(part.bytes)
    with plain_errors(repository.name):
        _fill(part, repository, on_bytes)
    sha256, blob_id = _hashes(part.path)
    found, expected = (sha256, file.sha256) if file.sha256 else (blob_id, file.blob_id)
    if expected and found != expected:
        part.drop()
        raise FileError(
            f"{repository.name.repo}: {file.path} arrived damaged: its hash is {found[:12]}..., the hub's is "
            f"{expected[:12]}...; what came was deleted, try again"
        )
    os.replace(part.path, path)
    part.drop()
    return sha256


def check_free_space(folder: Path, num_bytes: int, what: str) -> None:
    """Errors: FileError if the disk has no room for that many bytes more."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if num_bytes + SPARE_BYTES > free:
        raise FileError(
            f"{what}: needs {human_bytes(num_bytes)} more in {folder}, where {human_bytes(free)} are free: "
            f"'mote list' and 'mote rm' make room, MOTE_HOME=FOLDER moves the store"
        )


class _Part:
    """What there is of a file, with what it is a part of beside it."""

    def __init__(self, path: Path, file: HubFile):
        self.path = beside(path, PART)
        self.file = file
        self._info_path = beside(self.path, MANIFEST)
        wanted = {"sha256": file.sha256, "blob_id": file.blob_id, "bytes": file.bytes}
        found = read_json(self._info_path)
        if not all(found.get(key) == value for key, value in wanted.items()) or self.bytes > file.bytes:
            self.drop()
        self._info: dict[str, Any] = {"etag": ""} | found | wanted
        write_json(self._info_path, self._info)

    @property
    def bytes(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def headers(self) -> dict[str, str]:
        """What a request asks for; if the file has changed since, the answer is all of it."""
        have, etag = self.bytes, self._info["etag"]
        if not have:
            return {}
        return {"Range": f"bytes={have}-"} | ({"If-Range": etag} if etag else {})

    def note_etag(self, etag: str) -> None:
        strong = etag if etag.startswith('"') else ""
        if strong != self._info["etag"]:
            self._info["etag"] = strong
            write_json(self._info_path, self._info)

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self._info_path.unlink(missing_ok=True)


def _fill(part: _Part, repository: Repository, on_bytes: OnBytes) -> None:
    """Asks again while connections break, as long as something comes."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.errors import HTTPError

    api = client()
    url = hf_hub_url(repository.name.repo, part.file.path, revision=repository.commit, endpoint=api.endpoint)
    tries = 0
    while (before := part.bytes) < part.file.bytes or not part.path.exists():
        reason = "the hub sent less than the file has"
        try:
            _receive(part, url, api, on_bytes)
        except HTTPError as error:
            if getattr(error, "response", None) is not None:
                raise  # the hub answered, and the next answer would be the same
            reason = first_line(error)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise FileError(f"{part.path}: the disk is full; free some space, the same command goes on") from error
        tries = 0 if part.bytes > before else tries + 1
        if tries == NUM_TRIES:
            raise FileError(
                f"{repository.name.repo}: {part.file.path} broke off at {human_bytes(part.bytes)} of "
                f"{human_bytes(part.file.bytes)} ({reason}); the same command goes on from there"
            )
        if tries:
            time.sleep(FIRST_WAIT_SECONDS * 2 ** (tries - 1))


def _receive(part: _Part, url: str, api: Any, on_bytes: OnBytes) -> None:
    """Appends the answer to one request."""
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    # Compressed, an answer would have other positions than the file.
    headers = build_hf_headers(token=api.token, library_name="mote") | {"Accept-Encoding": "identity"} | part.headers
    with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT_SECONDS) as response:
        have = part.bytes
        if response.status_code == 416:
            on_bytes(-have)
            part.path.unlink()
            return
        hf_raise_for_status(response)
        goes_on = response.status_code == 206 and response.headers.get("content-range", "").startswith(f"bytes {have}-")
        if have and not goes_on:
            on_bytes(-have)
        part.note_etag(response.headers.get("etag", ""))
        with PieceWriter(part.path, "ab" if goes_on else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                on_bytes(len(chunk))


def _hashes(path: Path) -> tuple[str, str]:
    """Returns the sha256 of a file and git's hash of it."""
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            sha256.update(chunk)
            blob.update(chunk)
    return sha256.hexdigest(), blob.hexdigest()
