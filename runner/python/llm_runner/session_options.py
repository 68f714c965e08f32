"""Options of sessions and of what is asked of a model in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from llm_runner import _core, option_types
from llm_runner.arguments import checked_int
from llm_runner.conversation import Conversation, ConversationOptions
from llm_runner.labels import never_raises
from llm_runner.loaded import LoadedModel
from llm_runner.option_types import GenerationOptions
from llm_runner.options import check_options, native, own_name


class PrefixCache:
    """Keeps what sessions have computed, for others whose text begins alike: system prompts, conversations that go on.

    Given to `Model.session`. Pages of keys and values that several use are one memory.
    Thread safety: any number of threads
    """

    def __init__(self, max_bytes: int):
        """max_bytes: what is held at most; the least recently used goes first"""
        self._max_bytes = checked_int("max_bytes", max_bytes, 0, 2**63 - 1)
        self._core = _core.PrefixCache(self._max_bytes)

    def clear(self) -> None:
        """Forgets everything. Sessions keep what they use."""
        self._core.clear()

    @never_raises
    def __repr__(self) -> str:
        info = self.info
        held = f"{info['bytes'] / 1e6:.1f} of {self._max_bytes / 1e6:.1f} MB"
        return f"PrefixCache: {held}, {info['snapshots']} snapshots, {info['hits']} hits, {info['misses']} misses"

    @property
    def info(self) -> dict[str, int]:
        """bytes, snapshots, hits and misses of look-ups, reused_tokens."""
        return self._core.info()


class SessionOptions(option_types.SessionOptions, total=False):
    """What `Model.session` takes."""

    prefix_cache: PrefixCache | None  # shared with other sessions
    draft_model: LoadedModel | None  # a smaller model that proposes tokens: docs/speculative-decoding.md


class ModelOptions(SessionOptions, GenerationOptions, total=False):
    """What `Model.generate` takes: of a session of its own, and of what is generated in it."""


class ChatOptions(ConversationOptions, GenerationOptions, total=False):
    """What `Session.chat` takes."""


class ModelChatOptions(ChatOptions, SessionOptions, total=False):
    """What `Model.chat` takes: of a session of its own, and of the reply in it."""


def split_options(options: Mapping[str, Any]) -> tuple[SessionOptions, GenerationOptions]:
    """Returns the options of a session, which it checks itself, and of what is generated in it.

    Errors: ArgumentError for a bad one of the latter, and for one of neither
    """
    of_session, others = _split(options, SessionOptions)
    check_options(others, "generation", "session")
    return cast(SessionOptions, of_session), cast(GenerationOptions, others)


def conversation_of(
    model: LoadedModel, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> tuple[Conversation, GenerationOptions]:
    """Renders a conversation by its own among the options of a chat and returns the others with it."""
    of_prompt, others = _split(options, ConversationOptions)
    return Conversation(model, messages, **cast(ConversationOptions, of_prompt)), cast(GenerationOptions, others)


def _split(options: Mapping[str, Any], kind: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the options that a typed dictionary has, by any name of theirs, and the others."""
    own = kind.__annotations__
    of_kind = {name: value for name, value in options.items() if name in own or own_name(name) in own}
    return of_kind, {name: value for name, value in options.items() if name not in of_kind}


def native_session_options(options: Mapping[str, Any]) -> _core.Options:
    """Returns options of a session, its prefix_cache among them, as the library takes them. Errors: ArgumentError."""
    cache = options.get("prefix_cache")
    given = native({name: value for name, value in options.items() if name != "prefix_cache"}, "session")
    if cache is not None:
        given.set_prefix_cache(cache._core)
    return given
