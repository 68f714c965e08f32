"""POST /v1/completions."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from llm_runner import Generation, Piece, TokenLogprob, __version__
from llm_server.chat.options import MAX_CHOICES, Count, OpenAIRequest
from llm_server.chat.turn import grammar_options, lease, openai_reason
from llm_server.chat.usage import finite, usage
from llm_server.engine.engine import Engine
from llm_server.engine.steps import in_thread, steps
from llm_server.openai.prompt_logprobs import prompt_logprobs, text_offsets
from llm_server.web.bodies import read_request
from llm_server.web.errors import invalid
from llm_server.web.exchange import Exchange, exchange_of
from llm_server.web.streaming import SERVER_SENT, respond, respond_whole


class CompletionRequest(OpenAIRequest):
    prompt: str | list[str] | list[int] | list[list[int]]
    max_tokens: Count | None = Field(None, description="0: the prompt is only echoed")
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None


async def completions(request: Request) -> Response:
    """Answers as a whole or as server-sent events."""
    asked = await read_request(request, CompletionRequest)
    _check(asked)
    completion = await begin_completion(request, asked)
    if asked.stream:
        return await respond(request, completion.chunks(), SERVER_SENT)
    return await respond_whole(request, completion.answer())


async def begin_completion(request: Request, asked: CompletionRequest) -> Completion:
    """Finds the model of a request and reads its prompts. Errors: ApiError naming the field."""
    engine = await lease(request, asked.model)
    constraint = await grammar_options(request, engine, asked)
    prompts = await asyncio.to_thread(_prompts, engine, asked)
    return Completion(engine, asked, prompts, constraint, exchange_of(request))


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
        engine.check_ids(ids, name)
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
        return openai_reason("length" if self.generation is None else self.generation.finish_reason)


class Completion:
    """One request."""

    def __init__(
        self, engine: Engine, asked: CompletionRequest, prompts: list[list[int]], constraint: dict[str, Any],
        exchange: Exchange,
    ):  # fmt: skip
        self.engine = engine
        self.asked = asked
        self.prompts = prompts
        self.mix = engine.mix(asked.model, asked.adapters)
        self.exchange = exchange
        exchange.prompt_tokens = sum(len(prompt) for prompt in prompts)
        self.options = [asked.generation_options(choice) | constraint for choice in range(asked.n or 1)]
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
                async with contextlib.aclosing(self._pieces(choice)) as pieces:
                    async for _ in pieces:
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
        if self.asked.has_usage:
            yield self.head | {"choices": [], "usage": self._usage()}

    async def _choices(self) -> AsyncGenerator[Choice, None]:
        index = 0
        for prompt in self.prompts:
            echo = self.engine.model.detokenize(prompt, skip_special_tokens=True) if self.asked.echo else ""
            async with self.engine.session(prompt, self.mix) as session:
                scored = await self._scored(session, prompt)
                for number, options in enumerate(self.options):
                    known = await in_thread(session.rewind_to_prefix, prompt)
                    if number == 0 and not scored:
                        self.cached_tokens += known
                        self.exchange.cached_tokens += known
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
        seconds = self.asked.most_seconds(self.engine.timeout)
        return session.generate(ids, **options | {"max_time": seconds})

    async def _pieces(self, choice: Choice) -> AsyncIterator[Piece]:
        if choice.generation is None:
            return
        async with steps(choice.generation) as pieces:
            async for piece in pieces:
                if piece.logprob is not None:
                    self.completion_tokens += 1
                    self.exchange.on_token()
                    if piece.finish_reason not in ("eos", "stop_token"):
                        choice.tokens.append(ScoredToken(piece.logprob.id, piece.logprob, len(choice.text)))
                choice.text += piece.text
                yield piece

    def _chunk(self, choice: Choice, text: str, reason: str | None = None) -> dict[str, Any]:
        chunk = self.head | {"choices": [self._choice(choice, text, reason)]}
        if self.asked.has_usage:
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
