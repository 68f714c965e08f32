"""The last responses, for requests that go on from one."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, NamedTuple

from llm_server.web.errors import ApiError

MAX_RESPONSES = 1000
MAX_BYTES = 64 * 2**20  # of their JSON


class Kept(NamedTuple):
    response: dict[str, Any]
    messages: list[dict[str, Any]]  # of the whole conversation, the reply included
    num_bytes: int


class ResponseStore:
    """Responses by id; the one that was used longest ago goes first. It belongs to the event loop."""

    def __init__(self, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES):
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._num_bytes = 0

    def add(self, response: dict[str, Any], messages: list[dict[str, Any]]) -> None:
        """Keeps a response."""
        kept = Kept(response, messages, len(json.dumps([response, messages])))
        self._kept[response["id"]] = kept
        self._num_bytes += kept.num_bytes
        while len(self._kept) > self._max_responses or self._num_bytes > self._max_bytes:
            self.remove(next(iter(self._kept)))

    def get(self, id: str, param: str | None = None) -> Kept:
        """Errors: ApiError 404 if it is not kept, or no longer."""
        if id not in self._kept:
            text = (
                f"the response {id[:100]!r} is not kept: the server keeps the last {self._max_responses}, "
                f"{self._max_bytes // 2**20} MiB of them at most, of requests without store = false, until it ends"
            )
            raise ApiError(404, text, param, "response_not_found")
        self._kept.move_to_end(id)
        return self._kept[id]

    def remove(self, id: str) -> None:
        """Forgets a response. Errors: as of `get`."""
        self._num_bytes -= self.get(id).num_bytes
        del self._kept[id]
