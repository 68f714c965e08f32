"""One sequence of tokens on a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import numpy as np

from llm_runner import _core
from llm_runner.asynchronous import AsyncGeneration
from llm_runner.beam_search import Beam, beam_search
from llm_runner.conversation import ChatGeneration, Conversation, ConversationOptions
from llm_runner.errors import ArgumentError
from llm_runner.generation import Generation, Streamer
from llm_runner.options import GenerationOptions, checked_ids, checked_int, native_options
from llm_runner.reply import ReplyEvent

if TYPE_CHECKING:
    from llm_runner.model import Model

KV_DTYPES = ("float32", "float16", "int8", "int4")  # in the order of MOTE_KV_*
CONSTRAINTS = ("json_schema", "regex", "grammar")  # options of a generation that say what its text must be
PRIORITIES = ("normal", "low", "high")  # of MOTE_PRIORITY_*
OVERFLOWS = ("refuse", "shift")  # of MOTE_OVERFLOW_*


class PrefixCache:
    """Keeps what sessions have computed, for others whose text begins alike: system prompts, conversations that go on.

    Given to `Model.session`. Pages of keys and values that several use are one memory.
    Thread safety: any number of threads
    """

    def __init__(self, max_bytes: int):
        """max_bytes: what is held at most; the least recently used goes first"""
        self._core = _core.PrefixCache(checked_int("max_bytes", max_bytes, 0, 2**63 - 1))

    def clear(self) -> None:
        """Forgets everything. Sessions keep what they use."""
        self._core.clear()

    @property
    def info(self) -> dict[str, int]:
        """bytes, snapshots, hits and misses of look-ups, reused_tokens."""
        return self._core.info()


class SessionOptions(TypedDict, total=False):
    """What `Model.session` takes."""

    context_length: int | None  # positions; None: 4096, or the model's maximum if that is less
    kv_dtype: str  # float32 (exact), float16, int8 or int4
    threads: int | None  # None: the physical cores, or one for each of `cpus`
    prefill_chunk: int | None  # tokens computed at once; None: 256
    cpus: str | Sequence[int] | None  # what the threads run on, "0-3,6" or a list, also the calling one; None: any
    priority: str  # low, normal or high, of the threads beside the calling one
    overflow: str  # refuse: more tokens than the context has room for are an error; shift: the oldest are forgotten
    num_keep: int  # first tokens that shift never forgets
    prefix_cache: PrefixCache | None  # shared with other sessions
    draft_model: Model | None  # a smaller model that proposes tokens: docs/speculative-decoding.md


class ModelOptions(SessionOptions, GenerationOptions, total=False):
    """What `Model.generate` takes: of a session of its own, and of what is generated in it."""


class ReplyOptions(GenerationOptions, total=False):
    """What `Session.reply` takes."""

    stop_strings: str | Sequence[str]  # the reply ends before the first of them


class ChatOptions(ConversationOptions, ReplyOptions, total=False):
    """What `Session.chat` takes."""


class ModelChatOptions(ChatOptions, SessionOptions, total=False):
    """What `Model.chat` takes: of a session of its own, and of the reply in it."""


def split_options(options: Mapping[str, Any]) -> tuple[SessionOptions, GenerationOptions]:
    """Returns the options of the session and the others."""
    of_session, others = _split(options, SessionOptions)
    return cast(SessionOptions, of_session), cast(GenerationOptions, others)


def conversation_of(
    model: Model, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> tuple[Conversation, ReplyOptions]:
    """Renders a conversation by its own among the options of a chat and returns the others with it."""
    of_prompt, others = _split(options, ConversationOptions)
    return Conversation(model, messages, **cast(ConversationOptions, of_prompt)), cast(ReplyOptions, others)


def _split(options: Mapping[str, Any], kind: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the options that a typed dictionary has, and the others."""
    of_kind = {name: value for name, value in options.items() if name in kind.__annotations__}
    return of_kind, {name: value for name, value in options.items() if name not in of_kind}


class Session:
    """Caches and position of one sequence; `Model.session` opens it.

    Thread safety: calls from several threads take turns; `cancel` and `position` may come at any time.
    """

    def __init__(self, model: Model, **options: Unpack[SessionOptions]):
        draft_model = options.pop("draft_model", None)
        self._model = model
        self._core = _core.Session(model._core, native_session_options(**cast(dict[str, Any], options)))
        if draft_model is not None:
            self.set_draft_model(draft_model)

    def append(
        self,
        content: str | Sequence[int] | Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any] | Callable] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> int:
        """Appends a text, token ids or the messages of a conversation, without continuing them.

        content: text (BOS and such only at the start of the session; special tokens spelled in it become their ids),
            ids, or all messages of the conversation so far: what the session already holds of their prompt is kept and
            the rest computed, so that a turn costs what is new in it
        tools, add_generation_prompt, variables: for messages, as in `Model.apply_chat_template`
        Returns: tokens that needed no computation
        Errors: ContextFullError, ArgumentError, TemplateError, CancelledError
        """
        if isinstance(content, str):
            self._core.append_text(content.encode("utf-8", "replace"), True)
            return 0
        if content and isinstance(content[0], Mapping):
            messages = cast(Sequence[Mapping[str, Any]], content)
            ids = self._model.apply_chat_template(
                messages, tools, add_generation_prompt=add_generation_prompt, **self._model.special_tokens | variables
            )
            return self.set_tokens(cast(list[int], ids))
        self._core.append(checked_ids(cast(Sequence[int], content)))
        return 0

    def set_tokens(self, ids: Sequence[int]) -> int:
        """Makes ids the tokens of the session; what it holds of them from the first on is kept, the rest computed.

        Returns: how many were kept   Errors: those of `prefill`
        """
        return self._core.set_tokens(checked_ids(ids))

    def logits(self) -> np.ndarray:
        """Returns the logits after the last token, float32 [vocab_size]. Errors: ArgumentError at position 0"""
        return self._core.logits()

    def fork(self) -> Session:
        """Returns a session of its own with the same options and tokens; what they have in common is one memory."""
        forked = object.__new__(Session)
        forked._model = self._model
        forked._core = self._core.fork()
        return forked

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes tokens and caches to a file, whole or not at all. Errors: FileError"""
        self._core.save(os.fspath(path))

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a saved session of the same model file.

        Where kv_dtype, or prefill_chunk of a model with sliding windows, differ from those it was saved with, its
        tokens are computed again.
        Errors: FileError, SessionFileError for another model or a damaged file, ContextFullError; the session stays as
        it was
        """
        self._core.restore(os.fspath(path))

    def prefill(self, ids: Sequence[int]) -> np.ndarray:
        """Appends ids and returns the logits after the last one.

        Returns: float32 [vocab_size]
        Errors: ArgumentError for no ids or ids outside the vocabulary, ContextFullError, CancelledError
        """
        return self._core.prefill(checked_ids(ids))

    def decode(self, id: int) -> np.ndarray:
        """Appends one id and returns the logits after it, float32 [vocab_size]."""
        return self._core.decode(checked_int("id", id, -(2**31), 2**31 - 1))

    def verify(self, ids: Sequence[int]) -> np.ndarray:
        """Appends ids and returns the logits after each, float32 [len(ids), vocab_size]."""
        return self._core.verify(checked_ids(ids))

    def score(self, ids: Sequence[int]) -> np.ndarray:
        """Appends ids and returns how likely each but the first was, given everything before it.

        Returns: float32 [len(ids) - 1], natural logarithms of probabilities by the model's own distribution
        """
        return self._core.score(checked_ids(ids))

    def _ids_of(self, prompt: str | Sequence[int]) -> Sequence[int]:
        """Returns the ids of what the session goes on with: BOS and such only at its start."""
        return self._core.tokenize(prompt.encode("utf-8", "replace"), True) if isinstance(prompt, str) else prompt

    def generate(
        self,
        prompt: str | Sequence[int] = (),
        *,
        stop_strings: str | Sequence[str] = (),
        streamer: Streamer | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Generation:
        """Appends the prompt, if there is one, and continues the session's text; see `Model.generate`.

        The session keeps all but the last token.
        """
        ids = self._ids_of(prompt)
        generation = self._start(ids, stop_strings, options)
        if streamer is not None:
            generation.stream_to(streamer, ids)
        return generation

    def agenerate(
        self,
        prompt: str | Sequence[int],
        *,
        stop_strings: str | Sequence[str] = (),
        **options: Unpack[GenerationOptions],
    ) -> AsyncGeneration[Generation, str]:
        """As `generate`, for `async for`; see `AsyncGeneration`."""
        return AsyncGeneration(self.generate(prompt, stop_strings=stop_strings, **options))

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Unpack[ChatOptions]) -> ChatGeneration:
        """Replies to a conversation; see `Model.chat`.

        The session goes back to the last token that the conversation has in common with what it has read, or takes
        more of it from its prefix cache, and reads the rest, so that a further turn costs its new text only.
        options: those of `llm_runner.ChatOptions` (tools, stop_strings, max_new_tokens, temperature, ...)
        """
        conversation, of_reply = conversation_of(self._model, messages, options)
        return self.reply(conversation, **of_reply)

    def achat(
        self, messages: Sequence[Mapping[str, Any]], **options: Unpack[ChatOptions]
    ) -> AsyncGeneration[ChatGeneration, ReplyEvent]:
        """As `chat`, for `async for`; see `AsyncGeneration`."""
        return AsyncGeneration(self.chat(messages, **options))

    def rewind_to_prefix(self, ids: Sequence[int]) -> int:
        """Goes back or forth to the longest beginning of ids, all but their last one, that needs no computation.

        That is what the session has in common with them, or its prefix cache.
        Returns: how many ids that are; what is to be generated from then is the continuation of `ids[returned:]`
        """
        return self._core.rewind_to_prefix(checked_ids(ids))

    def reply(
        self,
        conversation: Conversation,
        *,
        on_close: Callable[[], None] = lambda: None,
        **options: Unpack[ReplyOptions],
    ) -> ChatGeneration:
        """As `chat`, to a conversation that was rendered before."""
        stop_strings = options.pop("stop_strings", ())
        parser = conversation.reply_parser(any(options.get(name) is not None for name in CONSTRAINTS))
        # The marks of reasoning and calls may be special tokens.
        text_options = {"skip_special_tokens": parser.format == "text", "skip_eos": True}
        known = self.rewind_to_prefix(conversation.ids)
        generation = self._start(conversation.ids[known:], stop_strings, text_options | options, on_close)
        return ChatGeneration(generation, conversation, parser, known)

    def _start(self, ids, stop_strings, options, on_close=lambda: None) -> Generation:
        stops = [stop_strings] if isinstance(stop_strings, str) else list(stop_strings)
        native = native_options_for(self._model, options)
        core = _core.Generation(self._model._core, self._core, checked_ids(ids), native, stops)
        return Generation(core, on_close)

    def beam_search(
        self,
        prompt: str | Sequence[int] = (),
        *,
        num_beams: int = 4,
        num_return_sequences: int = 1,
        length_penalty: float = 1.0,
        early_stopping: bool | str = False,
        **options: Unpack[GenerationOptions],
    ) -> list[Beam]:
        """Appends the prompt, if there is one, and finds its likeliest continuations, as transformers does.

        num_beams ... early_stopping: as transformers' options of these names
        options: max_new_tokens, ignore_eos and what changes logits; nothing is sampled
        Returns: the best first; the session then has the first one but for its last token
        Errors: ArgumentError naming the option; ContextFullError   Cost of a step: num_beams decode steps
        """
        ids = self._ids_of(prompt)
        native = native_options_for(self._model, options)
        return beam_search(self, ids, native, num_beams, num_return_sequences, length_penalty, early_stopping)

    def samples(
        self,
        count: int,
        prompt: str | Sequence[int] = (),
        *,
        stop_strings: str | Sequence[str] = (),
        **options: Unpack[GenerationOptions],
    ) -> Iterator[tuple[int, str]]:
        """Appends the prompt, if there is one, and continues the text `count` times from one prefill, together.

        Each is what `generate` gives, where the i-th has the seed `seed` + i. The session itself keeps the prompt.
        Returns: an iterator over (index, piece of its text)   Errors: as `generate`
        """
        from llm_runner.batch import Batch, generate_batch

        checked_int("count", count, 1, 256)
        self.append(prompt)
        batch = Batch(self._model, count, threads=self.info["num_threads"])
        return generate_batch(batch, [()] * count, stop_strings, options, self)

    @property
    def position(self) -> int:
        """Tokens so far."""
        return self._core.position()

    @property
    def info(self) -> dict[str, Any]:
        """context_length, num_threads, position, arena_bytes (activations), forgotten_tokens (by overflow="shift"),
        state_bytes (of the caches when the context is full), held_state_bytes (as far as tokens have reached).
        """
        return self._core.info()

    @property
    def tokens(self) -> list[int]:
        """The ids at all positions so far."""
        return self._core.tokens()

    def rewind(self, position: int) -> None:
        """Goes back to the first `position` ids; the next call goes on from there.

        What a sliding window or a recurrent state no longer holds is computed again.
        Errors: ArgumentError beyond the present position
        """
        self._core.rewind(checked_int("position", position, 0, 2**31 - 1))

    def set_draft_model(self, model: Model | None) -> None:
        """Gives the session a smaller model that proposes tokens; None takes it away. The text stays the same.

        Errors: ArgumentError if its tokens are others, naming the first difference, or it keeps recurrent states
        """
        self._core.set_draft_model(None if model is None else model._core)

    def reset(self) -> None:
        """Forgets every position."""
        self._core.reset()

    def cancel(self) -> None:
        """Ends the call that another thread has under way, or the next one, with CancelledError."""
        self._core.cancel()

    def check_golden(self) -> dict[str, Any]:
        """Replays the file's golden samples and returns a report with `passed` and `samples`; resets the session."""
        return json.loads(self._core.check_golden())

    def start_profile(self) -> None:
        """Measures every instruction from now on and forgets what was measured before."""
        self._core.start_profile()

    def stop_profile(self) -> dict[str, Any]:
        """Ends the measurement and returns it as a Chrome trace, which `json.dump` writes for chrome://tracing.

        Returns: `traceEvents` with an event for each call of a method (args: tokens) and inside of it for each
        instruction (name: its op; args: instruction, origin, bytes, macs), times in microseconds; `otherData`
        Errors: ArgumentError if no profile was started
        """
        return json.loads(self._core.stop_profile())

    def close(self) -> None:
        """Frees the caches."""
        self._core.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def native_session_options(
    context_length: int | None = None,
    kv_dtype: str = "float32",
    threads: int | None = None,
    prefill_chunk: int | None = None,
    cpus: str | Sequence[int] | None = None,
    priority: str = "normal",
    overflow: str = "refuse",
    num_keep: int = 0,
    prefix_cache: PrefixCache | None = None,
) -> dict[str, Any]:
    """Returns the options of a session as the C API names them. Errors: ArgumentError naming the option."""
    choices = {"kv_dtype": (kv_dtype, KV_DTYPES), "priority": (priority, PRIORITIES), "overflow": (overflow, OVERFLOWS)}
    for name, (value, accepted) in choices.items():
        if value not in accepted:
            raise ArgumentError(f"{name} = {value!r}: must be one of {', '.join(accepted)}")
    sizes = {"context_length": context_length, "threads": threads, "prefill_chunk": prefill_chunk}
    context, num_threads, chunk = (
        0 if size is None else checked_int(name, size, 1, 2**31 - 1) for name, size in sizes.items()
    )
    return {
        "context_length": context,
        "num_threads": num_threads,
        "prefill_chunk": chunk,
        "kv_type": KV_DTYPES.index(kv_dtype),
        "cpus": _cpu_list(cpus),
        "priority": PRIORITIES.index(priority),
        "overflow": OVERFLOWS.index(overflow),
        "num_keep": checked_int("num_keep", num_keep, 0, 2**31 - 1),
        "prefix_cache": None if prefix_cache is None else prefix_cache._core,
    }


def native_options_for(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options of a generation as the C API takes them. Errors: ArgumentError naming the option."""
    native = native_options(
        options,
        lambda text: model.tokenize(text, add_special_tokens=False),
        model.generation_config["eos_token_id"],
    )
    if (grammar := model._grammar_of(options)) is not None:
        native["grammar"] = grammar._core
    return native


def _cpu_list(cpus: str | Sequence[int] | None) -> str:
    """Returns "0-3,6" as the C API takes it; "" for None. Errors: ArgumentError."""
    if cpus is None:
        return ""
    text = cpus if isinstance(cpus, str) else ",".join(str(checked_int("cpus", cpu, 0, 2**31 - 1)) for cpu in cpus)
    if not text:
        raise ArgumentError(f"cpus = {cpus!r}: must name at least one CPU, or be None for any")
    return text
