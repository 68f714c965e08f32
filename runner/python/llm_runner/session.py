"""One sequence of tokens on a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack, cast

import numpy as np

from llm_runner import _core
from llm_runner.adapter import AdapterLike, mix_of
from llm_runner.arguments import checked_ids, checked_int
from llm_runner.asynchronous import AsyncGeneration
from llm_runner.batch import Batch, generate_batch
from llm_runner.beam_search import Beam, BeamSearchOptions
from llm_runner.conversation import ChatGeneration, Conversation
from llm_runner.errors import ArgumentError, CancelledError, MoteError
from llm_runner.generation import Generation, Streamer
from llm_runner.labels import file_label, never_raises
from llm_runner.loaded import LoadedModel
from llm_runner.option_types import GenerationOptions
from llm_runner.options import native, value_of
from llm_runner.reply import ReplyEvent
from llm_runner.session_options import ChatOptions, SessionOptions, conversation_of, native_session_options


class Session:
    """Caches and position of one sequence; `Model.session` opens it.

    Thread safety: calls from several threads take turns; `cancel` and `position` may come at any time.
    """

    def __init__(self, model: LoadedModel, **options: Unpack[SessionOptions]):
        draft_model = options.pop("draft_model", None)
        self._model = model
        self._core = _core.Session(model._core, native_session_options(options))
        self._kv_dtype = str(value_of("kv_dtype", options))
        self._context_length: int = self._core.info()["context_length"]
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
                messages, tools, add_generation_prompt=add_generation_prompt, **variables
            )
            return self.set_tokens(cast(list[int], ids))
        self._core.append(checked_ids(cast(Sequence[int], content)))
        return 0

    def set_tokens(self, ids: Sequence[int]) -> int:
        """Makes ids the tokens of the session; what it holds of them from the first on is kept, the rest computed.

        Returns: how many were kept   Errors: those of `prefill`
        """
        return self._core.set_tokens(checked_ids(ids))

    def set_adapters(self, adapters: AdapterLike | Iterable[AdapterLike]) -> None:
        """From now on computes with these adapters; `[]`: with the model alone.

        adapters: of `Model.load_adapter`, or files as FILE or FILE=WEIGHT, or pairs of one and a weight. Where they are
            others than before, the session's tokens stay and the next call computes them again
        Errors: FileError, ProgramError, ArgumentError for an adapter of another model
        """
        _core.set_adapters(self._core, mix_of(self._model, adapters))

    def logits(self) -> np.ndarray:
        """Returns the logits after the last token, float32 [vocab_size]. Errors: ArgumentError at position 0"""
        return self._core.logits()

    def fork(self) -> Session:
        """Returns a session of its own with the same options and tokens; what they have in common is one memory."""
        forked = object.__new__(Session)
        forked._model = self._model
        forked._core = self._core.fork()
        forked._kv_dtype, forked._context_length = self._kv_dtype, self._context_length
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
        streamer: Streamer | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Generation:
        """Appends the prompt, if there is one, and continues the session's text; see `Model.generate`.

        The session keeps all but the last token.
        """
        ids = self._ids_of(prompt)
        generation = self._start(ids, options)
        if streamer is not None:
            generation.stream_to(streamer, ids)
        return generation

    def agenerate(
        self, prompt: str | Sequence[int] = (), **options: Unpack[GenerationOptions]
    ) -> AsyncGeneration[Generation, str]:
        """As `generate`, for `async for`; see `AsyncGeneration`."""
        return AsyncGeneration(self.generate(prompt, **options))

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
        **options: Unpack[GenerationOptions],
    ) -> ChatGeneration:
        """As `chat`, to a conversation that was rendered before."""
        return ChatGeneration(_core.ChatTurn(conversation._core, self._core, native(options, "generation")), on_close)

    def set_batch(self, batch: Batch | None) -> None:
        """Makes the session's generations and replies sequences of a batch; None: alone again.

        They decode together with those of other sessions, and each has what it would have alone. Whoever asks for a
        next piece makes a step for all; nobody needs to call `Batch.step`. The session's other calls are its own.
        Errors: ArgumentError for a batch of another model
        """
        _core.set_batch(self._core, None if batch is None else batch._core())

    def _start(self, ids, options, on_close=lambda: None) -> Generation:
        return Generation(_core.Generation(self._core, checked_ids(ids), native(options, "generation")), on_close)

    def beam_search(self, prompt: str | Sequence[int] = (), **options: Unpack[BeamSearchOptions]) -> list[Beam]:
        """Appends the prompt, if there is one, and finds its likeliest continuations, as transformers does.

        options: num_beams, num_return_sequences, length_penalty and early_stopping, which are transformers';
            max_new_tokens, ignore_eos and what changes logits; nothing is sampled
        Returns: the best first; the session then has the first one but for its last token
        Errors: ArgumentError naming the option; ContextFullError   Cost of a step: num_beams decode steps
        """
        given = native(options, "generation", "beam_search")
        found = _core.beam_search(self._core, checked_ids(self._ids_of(prompt)), given)
        return [Beam(self._model.detokenize(ids, True), ids, score) for ids, score in found]

    def samples(
        self, count: int, prompt: str | Sequence[int] = (), **options: Unpack[GenerationOptions]
    ) -> Iterator[tuple[int, str]]:
        """Appends the prompt, if there is one, and continues the text `count` times from one prefill, together.

        Each is what `generate` gives, where the i-th has the seed `seed` + i. The session itself keeps the prompt.
        Returns: an iterator over (index, piece of its text)   Errors: as `generate`
        """
        checked_int("count", count, 1, 256)
        self.append(prompt)
        batch = Batch(self._model, count, threads=self.info["num_threads"])
        return generate_batch(batch, [()] * count, options, self)

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

    def move_to(self, backend: str) -> None:
        """From now on computes with this one of the file's targets: "cpu", "vulkan", ...

        Tokens stay, keys and values go along where both can read them; else the next call computes the tokens again. A
        session also moves to "cpu" by itself where a backend fails and the file has that target.
        Errors: ArgumentError naming the targets that there are, BackendError; the session stays as it was
        """
        self._core.move_to(backend)

    @property
    def backend(self) -> str:
        """The file's target that computes: "cpu", "vulkan", ..."""
        return self._core.backend()[0]

    @property
    def moved_because(self) -> str:
        """Why the session left another target by itself, in one sentence; "": it did not."""
        return self._core.backend()[1]

    def set_draft_model(self, model: LoadedModel | None) -> None:
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

    @contextmanager
    def record(self, take: Callable[[int, int, int, np.ndarray], object]) -> Iterator[None]:
        """Gives what every instruction computes to `take`, in order, until the block ends.

        take: called with the places of method, instruction and output in `Model.describe()["methods"]`, and a copy of
            the value; views are among them, but for expanded ones. An array that it returns takes the value's place,
            unless that is a view's. What it raises ends the call that computes, and comes out of the block. It makes
            no calls on the session
        Of a part that a backend runs there is only what leaves it. Batches are not recorded.
        Errors: ArgumentError, out of the block, for an array of another dtype or shape than the value
        """
        raised: list[BaseException] = []

        def sink(method: int, instruction: int, output: int, value: np.ndarray) -> np.ndarray | bool | None:
            try:
                answer = take(method, instruction, output, value)
                return _replacement(answer, value) if isinstance(answer, np.ndarray) else None
            except BaseException as error:
                raised.append(error)
                return False

        self._core.set_value_sink(sink)
        try:
            yield
        except CancelledError:
            if raised:
                raise raised[0] from None
            raise
        finally:
            self._core.set_value_sink(None)

    def close(self) -> None:
        """Frees the caches."""
        self._core.close()

    @never_raises
    def __repr__(self) -> str:
        label = f"Session of {file_label(self._model.path)}"
        try:
            position = self.position
        except MoteError:
            return f"{label}, closed"
        return f"{label}: {position} of {self._context_length} tokens, {self._kv_dtype} cache"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _replacement(array: np.ndarray, value: np.ndarray) -> np.ndarray:
    if array.dtype != value.dtype or array.shape != value.shape:
        raise ArgumentError(
            f"an array in the place of a value: {array.dtype} {list(array.shape)}: must be "
            f"{value.dtype} {list(value.shape)}"
        )
    return np.ascontiguousarray(array)
