"""What the store's core asks for, by the hub's HTTP client; the core decides what becomes of the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from mote.store.catalog import Store
from mote.store.core import core
from mote.store.hub import client, first_line

TIMEOUT_SECONDS = 30.0
KEEP_FREE_BYTES = 64 << 20  # left free on the disk


@dataclass(frozen=True)
class Progress:
    """path: of the file, None before it is known which   bytes: that are there   total_bytes: -1: not known yet

    waits_for: what the download waits for, "" while it does not
    """

    name: str
    path: Path | None
    bytes: int
    total_bytes: int
    waits_for: str = ""


class Download:
    """Gets one file into a store. A context manager: until its end nobody else downloads to the model.

    What has come stays when it ends early, and another download of the same goes on with it.
    """

    def __init__(self, store: Store, what: str, *, sha256: str = "", allow_metered: bool = False):
        """what: a name of the hub, or an URL, whose file's hash may be given

        Errors: ArgumentError; also with the line to type if huggingface_hub is not installed
        """
        api = client()
        from huggingface_hub import get_token

        token = "" if "://" in what else api.token or get_token() or ""
        self.repository: dict[str, Any] | None = None  # what the hub has answered about it
        self._body = bytearray()
        self._core = core().Download(
            store.core, what, api.endpoint, token, sha256, allow_metered, KEEP_FREE_BYTES
        )  # fmt: skip

    def __enter__(self) -> Download:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._core.close()

    @property
    def is_new(self) -> bool:
        """Whether the store has another file than before, at the end."""
        return self._core.info()[4]

    @property
    def progress(self) -> Progress:
        name, path, count, total, _ = self._core.info()
        return Progress(name, Path(path) if path else None, count, total)

    def run(self) -> Iterator[Progress]:
        """Goes through all of it, and tells how far it is.

        Errors: FileError where it cannot be had, arrived damaged, or has no room; StateError on a metered network;
        those of opening a model for a file that this device cannot run
        """
        while (step := self._core.next()) is not None:
            url, headers, wait_ms, reason = step
            if url:
                yield from self._exchange(url, headers)
            else:
                yield Progress(**{**vars(self.progress), "waits_for": reason})
                sleep(wait_ms / 1000)
        yield self.progress

    def set_metered(self, is_metered: bool) -> None:
        """Says whether the network is metered now. Thread safety: any thread."""
        self._core.set_metered(is_metered)

    def _exchange(self, url: str, headers: str) -> Iterator[Progress]:
        from huggingface_hub.errors import HTTPError
        from huggingface_hub.utils import build_hf_headers, get_session

        given = {"User-Agent": build_hf_headers(token=False, library_name="mote")["user-agent"]}
        given |= dict(line.split(": ", 1) for line in headers.splitlines())
        try:
            with get_session().stream(
                "GET", url, headers=given, timeout=TIMEOUT_SECONDS, follow_redirects=False
            ) as response:
                found = "\n".join(f"{name}: {value}" for name, value in response.headers.multi_items())
                if self._core.respond(response.status_code, found):
                    yield from self._receive(response)
        except HTTPError as error:
            self._end(first_line(error))
        else:
            self._end("")

    def _receive(self, response: Any) -> Iterator[Progress]:
        self._body.clear()
        for chunk in response.iter_raw():
            self._core.write(chunk)
            progress = self.progress
            if progress.path is None:
                self._body += chunk
            else:
                yield progress

    def _end(self, broken: str) -> None:
        if not broken and self._body and self.progress.path is None:
            found = json.loads(self._body) if self._body.startswith(b"{") else None
            self.repository = found if isinstance(found, dict) else None
        self._core.end(broken)
