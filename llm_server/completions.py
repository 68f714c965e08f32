"""POST /v1/completions."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from llm_runner import Generation, Piece, TokenLogprob, __version__
from llm_server.chat import usage
from llm_server.engine import Engine, finish_reason, finite, in_thread, steps
from llm_server.errors import invalid
from llm_server.requests import MAX_CHOICES, CompletionRequest, read_request
from llm_server.streaming import respond, respond_whole


async def completions(request: Request) -> Response:
    """Answers as a whole or as server-sent events."""
    engine: Engine = request.app.state.engine
    asked = await read_request(request, CompletionRequest)
    engine.check_model(asked.model)
    _check(asked)
    completion = Completion(engine, asked, await asyncio.to_thread(_prompts, engine, asked))
    return await (
        respond(request, completion.chunks()) if asked.stream else respond_whole(request, completion.answer())
    )


def _check(asked: CompletionRequest) -> None:
    if asked.suffix:
        raise invalid("suffix", "is not supported: the text can only be continued")
    if asked.best_of is not None and asked.best_of != (asked.n or 1):
        raise invalid("best_of", f"{asked.best_of} is not supported: must be as n")
    if asked.echo and asked.logprobs is not None:
        raise invalid("echo", "is not supported together with logprobs")


def _prompts(engine: Engine, asked: CompletionRequest) -> list[list[int]]:
    """Returns the ids of each prompt."""
    given = asked.prompt
    is_one = isinstance(given, str) or (bool(given) and isinstance(given[0], int))
    prompts = [given] if is_one else given
    if not 1 <= len(prompts) * (asked.n or 1) <= MAX_CHOICES:
        raise invalid("prompt", f"{len(prompts)} prompts times n = {asked.n or 1}: must be 1..{MAX_CHOICES} in all")
    found = []
    for i, prompt in enumerate(prompts):
        name = "prompt" if is_one else f"prompt[{i}]"
        ids = engine.model.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        vocab_size = engine.model.info["vocab_size"]
        for token_id in ids:
            if not 0 <= token_id < vocab_size:
                raise invalid(name, f"the token id {token_id} must be 0..{vocab_size - 1}")
        engine.check_prompt(ids, name)
        found.append(ids)
    return found


@dataclass
class Choice:
    """One continuation, as it is written."""

    index: int
    generation: Generation
    text: str  # so far
    tokens: list[tuple[TokenLogprob, int]] = field(default_factory=list)  # that no chunk has yet, and where they begin


class Completion:
    """One request."""

    def __init__(self, engine: Engine, asked: CompletionRequest, prompts: list[list[int]]):
        self.engine = engine
        self.asked = asked
        self.prompts = prompts
        self.stops = asked.stop_strings()
        self.options = [asked.generation_options(choice) for choice in range(asked.n or 1)]
        self.completion_tokens = 0
        self.cached_tokens = 0
        self.head = {
            "id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time()),
            "model": engine.name, "system_fingerprint": f"mote-{__version__}",
        }  # fmt: skip

    async def answer(self) -> dict[str, Any]:
        choices = []
        async with contextlib.aclosing(self._choices()) as begun:
            async for choice in begun:
                async for _ in self._pieces(choice):
                    pass
                choices.append(self._choice(choice, choice.text, finish_reason(choice.generation.finish_reason)))
        return self.head | {"choices": choices, "usage": self._usage()}

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        async with contextlib.aclosing(self._choices()) as begun:
            async for choice in begun:
                yield self._chunk(choice, choice.text)
                async with contextlib.aclosing(self._pieces(choice)) as pieces:
                    async for piece in pieces:
                        if piece.text:
                            yield self._chunk(choice, piece.text)
                yield self._chunk(choice, "", finish_reason(choice.generation.finish_reason))
        if self.asked.stream_options is not None and self.asked.stream_options.include_usage:
            yield self.head | {"choices": [], "usage": self._usage()}

    async def _choices(self) -> AsyncGenerator[Choice, None]:
        index = 0
        for prompt in self.prompts:
            echo = self.engine.model.detokenize(prompt, skip_special_tokens=True) if self.asked.echo else ""
            async with self.engine.session(prompt) as session:
                for number, options in enumerate(self.options):
                    known = await in_thread(session.rewind_to_prefix, prompt)
                    if number == 0:
                        self.cached_tokens += known
                    yield Choice(index, self._generate(session, prompt[known:], options), echo)
                    index += 1

    def _generate(self, session, ids: list[int], options: dict[str, Any]) -> Generation:
        if self.asked.logprobs is not None:
            options = options | {"logprobs": True, "top_logprobs": self.asked.logprobs}
        return session.generate(ids, stop_strings=self.stops, max_time=self.engine.timeout, **options)

    async def _pieces(self, choice: Choice) -> AsyncIterator[Piece]:
        async with steps(choice.generation) as pieces:
            async for piece in pieces:
                if piece.logprob is not None:
                    self.completion_tokens += 1
                    if piece.finish_reason not in ("eos", "stop_token"):
                        choice.tokens.append((piece.logprob, len(choice.text)))
                choice.text += piece.text
                yield piece

    def _chunk(self, choice: Choice, text: str, reason: str | None = None) -> dict[str, Any]:
        chunk = self.head | {"choices": [self._choice(choice, text, reason)]}
        if self.asked.stream_options is not None and self.asked.stream_options.include_usage:
            chunk["usage"] = None
        return chunk

    def _choice(self, choice: Choice, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": choice.index, "text": text, "logprobs": self._logprobs(choice), "finish_reason": reason}

    def _logprobs(self, choice: Choice) -> dict[str, Any] | None:
        """Takes those that no chunk has yet."""
        if self.asked.logprobs is None:
            return None
        name = self.engine.token_text
        found = {
            "tokens": [name(entry.id) for entry, _ in choice.tokens],
            "token_logprobs": [finite(entry.logprob) for entry, _ in choice.tokens],
            "top_logprobs": [
                {name(token_id): finite(value) for token_id, value in entry.top} for entry, _ in choice.tokens
            ],
            "text_offset": [offset for _, offset in choice.tokens],
        }
        choice.tokens.clear()
        return found

    def _usage(self) -> dict[str, Any]:
        return usage(sum(len(prompt) for prompt in self.prompts), self.completion_tokens, self.cached_tokens)
