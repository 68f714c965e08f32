"""A .mote file, ready to run."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO, Any, ClassVar, Unpack

import numpy as np

from llm_runner import _core
from llm_runner.adapter import Adapter
from llm_runner.arguments import checked_ids
from llm_runner.asynchronous import AsyncGeneration
from llm_runner.batch import Batch, generate_batch
from llm_runner.conversation import ChatGeneration
from llm_runner.embedder import Embedder, EmbedInput
from llm_runner.errors import ArgumentError
from llm_runner.generation import Generation, Streamer
from llm_runner.loaded import LoadedModel
from llm_runner.option_types import LoadingOptions
from llm_runner.options import native
from llm_runner.reply import ReplyEvent
from llm_runner.session import Session
from llm_runner.session_options import (
    ModelChatOptions,
    ModelOptions,
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


class Model(LoadedModel):
    """A loaded model; `Model.load` makes it. Thread safety: any number of threads."""

    # Names instead of paths, if the package above this one knows any.
    _path_of_name: ClassVar[Callable[[str], str] | None] = None

    def __init__(self, core: _core.Model, path: str):
        super().__init__(core, path)
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None  # of `embed`

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

        source: a path; the name of a model in the store, which `mote pull` fills; an open file or its descriptor, which
            may be closed afterwards; or bytes in memory, which are used where they are if they begin at a multiple of
            64 and must not change then
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
            if path is source and cls._path_of_name is not None and not os.path.exists(path):
                path = cls._path_of_name(path)
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

    def load_adapter(self, path: str | os.PathLike[str]) -> Adapter:
        """Reads a .mote-adapter file, which `mote adapter` makes of a PEFT folder, for sessions to mix in.

        path: the file; with a weight behind it, as FILE=WEIGHT, that is the adapter's unless another one is given
        Errors: FileError, ProgramError naming the field, ArgumentError for an adapter of another base, BackendError
            where a backend reads the weights: load the model with backend="cpu"
        """
        return Adapter(self, os.fspath(path))

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """Opens a session; options: those of `llm_runner.SessionOptions`."""
        return Session(self, **options)

    def embedder(self, **options: Unpack[SessionOptions]) -> Embedder:
        """Opens what makes vectors of texts, with threads and memory of its own.

        options: those of `llm_runner.SessionOptions` that say how to compute: threads, cpus, priority, prefill_chunk,
            kv_dtype; context_length is the most tokens of a text, as many as the model takes unless given
        Errors: ArgumentError if the file gives no embeddings, or naming the option
        """
        return Embedder(self, **options)

    def embed(
        self,
        texts: EmbedInput | Sequence[EmbedInput],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        dimensions: int | None = None,
        normalize: bool = True,
        truncate: bool = True,
        parse_special_tokens: bool = True,
    ) -> np.ndarray:
        """Returns the vector of a text, float32 [dimensions], or of each of several, float32 [texts, dimensions].

        Arguments and errors: those of `Embedder.embed`; one embedder with the default options serves all calls.
        """
        with self._lock:
            if self._embedder is None:
                self._embedder = Embedder(self)
            embedder = self._embedder
        return embedder.embed(
            texts, prompt_name=prompt_name, prompt=prompt, dimensions=dimensions, normalize=normalize,
            truncate=truncate, parse_special_tokens=parse_special_tokens,
        )  # fmt: skip

    @cached_property
    def embedding_config(self) -> dict[str, Any]:
        """pooling, dimensions, max_tokens, bidirectional, include_prompt, prompts, default_prompt_name.

        Errors: ArgumentError if the file gives no embeddings
        """
        return json.loads(_core.embedding_config(self._core))

    def close(self) -> None:
        """Lets go of the file; open sessions keep it."""
        with self._lock:
            if self._embedder is not None:
                self._embedder.close()
        super().close()

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
