"""POST /v1/completions."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from llm_runner import Generation, Piece, TokenLogprob, __version__
from llm_server.chat import usage
from llm_server.engine import Engine, finish_reason, finite, in_thread, steps
from llm_server.errors import invalid
from llm_server.prompt_logprobs import prompt_logprobs, text_offsets
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
    if asked.max_tokens == 0 and not asked.echo:
        raise invalid("max_tokens", "0 is only accepted with echo: must be 1 or more")


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


class ScoredToken(NamedTuple):
    """A token of a text."""

    id: int
    logprob: TokenLogprob | None  # None: of the first token, which nothing comes before
    offset: int  # where in the text it begins


@dataclass
class Choice:
    """One continuation, as it is written."""

    index: int
    generation: Generation | None  # None: the prompt is all of it
    text: str  # so far
    tokens: list[ScoredToken] = field(default_factory=list)  # that no chunk has yet

    def finish_reason(self) -> str:
        return finish_reason("length" if self.generation is None else self.generation.finish_reason)


class Completion:
    """One request."""

    def __init__(self, engine: Engine, asked: CompletionRequest, prompts: list[list[int]]):
        self.engine = engine
        self.asked = asked
        self.prompts = prompts
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
                choices.append(self._choice(choice, choice.text, choice.finish_reason()))
        return self.head | {"choices": choices, "usage": self._usage()}

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        async with contextlib.aclosing(self._choices()) as begun:
            async for choice in begun:
                yield self._chunk(choice, choice.text)
                async with contextlib.aclosing(self._pieces(choice)) as pieces:
                    async for piece in pieces:
                        if piece.text:
                            yield self._chunk(choice, piece.text)
                yield self._chunk(choice, "", choice.finish_reason())
        if self.asked.stream_options is not None and self.asked.stream_options.include_usage:
            yield self.head | {"choices": [], "usage": self._usage()}

    async def _choices(self) -> AsyncGenerator[Choice, None]:
        index = 0
        for prompt in self.prompts:
            echo = self.engine.model.detokenize(prompt, skip_special_tokens=True) if self.asked.echo else ""
            async with self.engine.session(prompt) as session:
                scored = await self._scored(session, prompt)
                for number, options in enumerate(self.options):
                    known = await in_thread(session.rewind_to_prefix, prompt)
                    if number == 0 and not scored:
                        self.cached_tokens += known
                    generation = await in_thread(self._generate, session, prompt[known:], options)
                    yield Choice(index, generation, echo, list(scored))
                    index += 1

    async def _scored(self, session, prompt: list[int]) -> list[ScoredToken]:
        """Returns the tokens of a prompt, if they belong to the answer with their log-probabilities."""
        if not self.asked.echo or self.asked.logprobs is None:
            return []
        logprobs = await prompt_logprobs(self.engine, session, prompt, self.asked.logprobs)
        offsets = await asyncio.to_thread(text_offsets, self.engine.model, prompt)
        return [ScoredToken(*token) for token in zip(prompt, [None, *logprobs], offsets, strict=True)]

    def _generate(self, session, ids: list[int], options: dict[str, Any]) -> Generation | None:
        if self.asked.max_tokens == 0:
            return None
        if self.asked.logprobs is not None:
            options = options | {"logprobs": True, "top_logprobs": self.asked.logprobs}
        return session.generate(ids, max_time=self.engine.timeout, **options)

    async def _pieces(self, choice: Choice) -> AsyncIterator[Piece]:
        if choice.generation is None:
            return
        async with steps(choice.generation) as pieces:
            async for piece in pieces:
                if piece.logprob is not None:
                    self.completion_tokens += 1
                    if piece.finish_reason not in ("eos", "stop_token"):
                        choice.tokens.append(ScoredToken(piece.logprob.id, piece.logprob, len(choice.text)))
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
            "tokens": [name(token.id) for token in choice.tokens],
            "token_logprobs": [token.logprob and finite(token.logprob.logprob) for token in choice.tokens],
            "top_logprobs": [
                token.logprob and {name(token_id): finite(value) for token_id, value in token.logprob.top}
                for token in choice.tokens
            ],
            "text_offset": [token.offset for token in choice.tokens],
        }
        choice.tokens.clear()
        return found

    def _usage(self) -> dict[str, Any]:
        return usage(sum(len(prompt) for prompt in self.prompts), self.completion_tokens, self.cached_tokens)
