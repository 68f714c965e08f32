"""A .mote file, ready to run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO, Any, Unpack

import numpy as np

from llm_runner import _core
from llm_runner.asynchronous import AsyncGeneration
from llm_runner.batch import Batch, generate_batch
from llm_runner.chat import as_json, parsed
from llm_runner.conversation import ChatGeneration
from llm_runner.errors import ArgumentError
from llm_runner.generation import Generation, Streamer
from llm_runner.option_types import LoadingOptions
from llm_runner.options import checked_ids, native
from llm_runner.reply import ReplyEvent, ReplyParser
from llm_runner.session import (
    ModelChatOptions,
    ModelOptions,
    Session,
    SessionOptions,
    conversation_of,
    split_options,
)

Source = str | os.PathLike[str] | int | IO[bytes] | bytes | bytearray | memoryview


def check_tokenizer(tokenizer_json: bytes | str) -> None:
    """Checks that the text of a tokenizer.json is one that a .mote file may hold.

    Errors: TokenizerError naming the field, its value and what is supported
    """
    _core.check_tokenizer(tokenizer_json.encode() if isinstance(tokenizer_json, str) else bytes(tokenizer_json))


def descriptor_of(source: Source) -> int | None:
    """Returns the descriptor of an open file, None for what is none."""
    if isinstance(source, int) and not isinstance(source, bool):
        return source
    if not hasattr(source, "fileno") or isinstance(source, os.PathLike):
        return None
    try:
        return source.fileno()
    except OSError as error:
        raise ArgumentError("a file in memory has no descriptor: give its getbuffer()") from error
    except ValueError as error:
        raise ArgumentError(f"the file is not open: {error}") from error


class Model:
    """A loaded model; `Model.load` makes it. Thread safety: any number of threads.

    path: of its file; "" if it has none
    """

    def __init__(self, core: _core.Model, path: str):
        self.path = path
        self._core = core

    @classmethod
    def load(
        cls,
        source: Source,
        *,
        offset: int | None = None,
        length: int | None = None,
        on_progress: Callable[[float], object] | None = None,
        **options: Unpack[LoadingOptions],
    ) -> Model:
        """Maps and checks a .mote file. Errors: FileError, ProgramError, BackendError, ArgumentError.

        source: a path; an open file or its descriptor, which may be closed afterwards; or bytes in memory, which are
            used where they are if they begin at a multiple of 64 and must not change then
        offset, length: bytes of an open file that are the model; None: from its begin, to its end
        on_progress: called with how much is done, 0..1; what it raises ends the loading and comes out of it
        options: those of `llm_runner.LoadingOptions`: backend ("cpu", "xnnpack", ...; "auto" unless given), cache_dir,
            mmap (False: reads the whole file into memory, for slow or removable storage, or copies the bytes), and
            name, of what has no path, in messages; else "descriptor 5", "memory", or what an open file says
        """
        own_name = getattr(source, "name", None)
        if options.get("name") is None and isinstance(own_name, str):
            options["name"] = own_name
        given = native(options, "model")
        if on_progress is not None:
            given.set_progress(on_progress)
        fd = descriptor_of(source)
        if fd is not None:
            return cls(_core.Model.open_fd(fd, offset or 0, -1 if length is None else length, given), "")
        if offset is not None or length is not None:
            raise ArgumentError("offset and length are of an open file or descriptor: slice a memoryview instead")
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            return cls(_core.Model.open(path, given), path)
        data: Any = source
        try:
            memoryview(data)
        except TypeError:
            kind = type(data).__name__
            raise ArgumentError(f"a model is loaded from a path, an open file or bytes, not from {kind}") from None
        return cls(_core.Model.open_memory(data, given), "")

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        streamer: Streamer | None = None,
        **options: Unpack[ModelOptions],
    ) -> Generation:
        """Continues a prompt in a session of its own and returns an iterator over the text.

        prompt: text, or token ids
        streamer: one of transformers, or an object with its `put` and `end`; the call then returns at the end
        options: those of `llm_runner.SessionOptions` (context_length, kv_dtype, threads, ...) and of
            `llm_runner.GenerationOptions` (max_new_tokens, temperature, top_p, stop_strings, ...)
        Errors: ArgumentError naming the option; ContextFullError if the prompt does not fit
        """
        session_options, generation_options = split_options(options)
        session = self.session(**session_options)
        ids = self.tokenize(prompt) if isinstance(prompt, str) else prompt
        generation = session._start(ids, generation_options, on_close=session.close)
        if streamer is not None:
            generation.stream_to(streamer, ids)
        return generation

    def generate_batch(
        self,
        prompts: Sequence[str | Sequence[int]],
        *,
        max_sequences: int = 16,
        **options: Unpack[ModelOptions],
    ) -> Iterator[tuple[int, str]]:
        """Continues several prompts together and returns an iterator over (index of the prompt, piece of its text).

        Each text is what `generate` gives for its prompt alone, where the i-th has the seed `seed` + i.
        max_sequences: that are computed at the same time; more prompts wait for their turn
        options: as for `generate`
        Errors: as `generate`; ProgramError for a model whose sequences cannot be computed together
        """
        session_options, generation_options = split_options(options)
        return generate_batch(Batch(self, max_sequences, **session_options), prompts, generation_options)

    def batch(
        self,
        max_sequences: int = 16,
        **options: Unpack[SessionOptions],
    ) -> Batch:
        """Opens a batch: sequences that decode together, and may join at any time.

        max_sequences: 1..256 that are computed at the same time; more wait for their turn
        options: as for `session`, of sequences that bring none; threads, cpus and priority are the batch's
        Errors: ArgumentError naming the option; ProgramError for a model whose sequences cannot be computed together
        """
        return Batch(self, max_sequences, **options)

    def agenerate(self, prompt: str | Sequence[int], **options: Any) -> AsyncGeneration[Generation, str]:
        """As `generate`, for `async for`; see `AsyncGeneration`."""
        return AsyncGeneration(self.generate(prompt, **options))

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Unpack[ModelChatOptions]) -> ChatGeneration:
        """Replies to a conversation in a session of its own; `Session.chat` keeps what it has read for the next turn.

        messages: as for `apply_chat_template`
        options: those of `llm_runner.ChatOptions` (tools, chat_template_kwargs, max_new_tokens, ...) and of
            `llm_runner.SessionOptions`
        Returns: an iterator over what the reply adds (`ReplyEvent`), which then has the message
        Errors: as `generate`; TemplateError with jinja2's message; ArgumentError if the file has no template
        """
        conversation, others = conversation_of(self, messages, options)
        session_options, reply_options = split_options(others)
        session = self.session(**session_options)
        return session.reply(conversation, on_close=session.close, **reply_options)

    def achat(
        self, messages: Sequence[Mapping[str, Any]], **options: Unpack[ModelChatOptions]
    ) -> AsyncGeneration[ChatGeneration, ReplyEvent]:
        """As `chat`, for `async for`; see `AsyncGeneration`."""
        return AsyncGeneration(self.chat(messages, **options))

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """Opens a session; options: those of `llm_runner.SessionOptions`."""
        return Session(self, **options)

    def score(
        self, prompt: str | Sequence[int], context_length: int | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Returns how likely each token of a text but the first is, given those before it.

        prompt: text, or token ids   context_length: None: as long as the text
        Returns: float32 [tokens - 1], natural logarithms; the mean is minus the cross-entropy in nats
        """
        ids = self.tokenize(prompt) if isinstance(prompt, str) else checked_ids(prompt)
        with self.session(context_length=context_length or max(len(ids), 1), threads=threads) as session:
            return session.score(ids)

    def tokenize(self, text: str, add_special_tokens: bool = True, parse_special_tokens: bool = True) -> list[int]:
        """Returns the token ids of a text.

        add_special_tokens: BOS and such, as the tokenizer asks
        parse_special_tokens: special tokens spelled in the text become their ids
        """
        if not isinstance(text, str):
            raise ArgumentError(f"text must be a str, not {type(text).__name__}")
        return self._core.tokenize(text.encode("utf-8", "replace"), add_special_tokens, parse_special_tokens)

    def detokenize(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Returns the text of token ids; bytes that are no UTF-8 become U+FFFD."""
        return self._core.detokenize(checked_ids(ids), skip_special_tokens)

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any] | Callable] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        **variables: Any,
    ) -> list[int] | str:
        """Returns the prompt of a conversation, as ids or (tokenize=False) as text.

        Arguments are those of transformers' method of the same name; chat_template None: the file's own
        variables: whatever else the template reads, such as enable_thinking
        Special tokens that the conversation spells stay text; the ids are otherwise those that transformers gives.
        Errors: TemplateError with jinja2's message; ArgumentError if the file has no template or no tokenizer
        """
        given = as_json(conversation, tools, documents, add_generation_prompt, continue_final_message, variables)
        text, _, ids = _core.render_of_model(
            self._core, parsed(chat_template) if chat_template else None, *given, tokenize
        )
        return ids if tokenize else text

    def reply_parser(
        self,
        prompt: str | Sequence[int] = "",
        tools: Sequence[Mapping[str, Any] | Callable] | None = None,
        format: str | None = None,
    ) -> ReplyParser:
        """Returns a parser of this model's reply to a prompt (text or ids), for text generated with
        skip_special_tokens=False, skip_eos=True.

        tools, format: as for `ReplyParser`
        """
        text = prompt if isinstance(prompt, str) else self.detokenize(prompt)
        return ReplyParser(self.chat_template, text, tools=tools, format=format)

    encode = tokenize
    decode = detokenize

    def describe(self) -> dict[str, Any]:
        """Returns everything that `mote inspect` shows: methods, ops, weights, states, segments, provenance."""
        return json.loads(self._core.describe())

    def check_segments(self) -> None:
        """Checks the checksums of all segments. Errors: ProgramError. Cost: reads the whole file."""
        self._core.check_segments()

    @cached_property
    def chat_template(self) -> str:
        """The Jinja chat template, "" if the file has none."""
        return self._core.chat_template()

    @cached_property
    def generation_config(self) -> dict[str, Any]:
        """generation_config.json of the checkpoint, eos_token_id always a list."""
        return json.loads(self._core.generation_config())

    @cached_property
    def info(self) -> dict[str, Any]:
        """vocab_size, max_position_embeddings, bos_token_id, has_tokenizer, has_chat_template, file_bytes, ..."""
        return self._core.info()

    def close(self) -> None:
        """Lets go of the file; open sessions keep it."""
        self._core.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
