"""Multi-turn chat over a program file: its template, its tokenizer, and one session that keeps what it has read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from llm_export.errors import ArgumentError, FileError
from llm_runner import ReplyEvent, ReplyParser, TemplateError


class Chat:
    """A conversation. Not thread-safe.

    model: llm_runner.Model   tools: JSON schemas that the template shows to the model
    options: of `Session.generate`
    Errors: ArgumentError if the file has no chat template
    """

    def __init__(
        self,
        model,
        system: str = "",
        context_length: int | None = None,
        threads: int | None = None,
        tools: list[dict[str, Any]] | None = None,
        **options,
    ):
        if not model.chat_template:
            raise ArgumentError(
                f"{model.path}: has no chat template: use 'mote run' for models that only continue text"
            )
        self.model = model
        self.tools = tools
        # The marks of reasoning and calls may be special tokens.
        has_marks = ReplyParser(model.chat_template).format != "text"
        self.options = options | {"skip_special_tokens": not has_marks, "skip_eos": True}
        self.session = model.session(context_length=context_length, threads=threads)
        self.generation = None
        self._tokens = _special_tokens(model)
        self._system = [{"role": "system", "content": system}] if system else []
        self.reset()

    def reset(self) -> None:
        """Forgets the conversation, not the system message."""
        self.messages = list(self._system)
        self._num_calls = 0
        self.session.reset()

    def reply(self, text: str) -> Iterator[ReplyEvent]:
        """Appends a message and yields what the reply adds; one that is broken off counts as far as it came."""
        return self._answer([{"role": "user", "content": text}])

    def open_calls(self) -> list[dict[str, Any]]:
        """Returns the tool calls of the last reply that have no result yet."""
        for answered, message in enumerate(reversed(self.messages)):
            if message["role"] != "tool":
                return message.get("tool_calls", [])[answered:]
        return []

    def result(self, text: str) -> Iterator[ReplyEvent]:
        """Appends the result of the first open call; the last one's makes the model go on.

        Errors: ArgumentError if no call is open
        """
        calls = self.open_calls()
        if not calls:
            raise ArgumentError("no tool call waits for a result")
        name = calls[0]["function"]["name"]
        message = {"role": "tool", "name": name, "tool_call_id": calls[0]["id"], "content": text}
        if len(calls) == 1:
            return self._answer([message])
        self.messages.append(message)
        return iter(())

    def _answer(self, added: list[dict[str, Any]]) -> Iterator[ReplyEvent]:
        self.messages += added
        parser = None
        try:
            ids = self.render()
            parser = self.model.reply_parser(ids, tools=self.tools)
            self.generation = self.session.generate(self._unseen(ids), **self.options)
            for piece in self.generation:
                yield from parser.push(piece)
            yield from parser.finish()
        finally:
            if not self._finish(parser):
                del self.messages[-len(added) :]

    def render(self) -> list[int]:
        """Returns the ids of the conversation. Errors: FileError if the template is not valid or refuses it."""
        given = {"tools": self.tools} | self._tokens
        try:
            return self.model.apply_chat_template(self.messages, add_generation_prompt=True, **given)
        except TemplateError as error:
            raise FileError(f"{self.model.path}: its chat template refuses the conversation: {error}") from error

    def _unseen(self, ids: list[int]) -> list[int]:
        """Returns the ids that the session has not read, after it went back to where they part from what it has.

        Templates show earlier turns otherwise than they were generated: without their reasoning, for instance.
        """
        known = len(os.path.commonprefix([self.session.tokens, ids[:-1]]))
        self.session.rewind(known)
        return ids[known:]

    def _finish(self, parser: ReplyParser | None) -> bool:
        """Appends the reply as far as it came; False if there is none, which after a whole generation is no reason to
        forget what was asked.
        """
        is_whole = self.generation is not None and self.generation.finish_reason is not None
        if self.generation is not None:
            self.generation.close()
            self.generation = None
        if parser is None:
            return False
        parser.finish()
        message = parser.message()
        # Templates ask for ids that many models do not write; 9 letters and digits is what the strictest accepts.
        for call in message.get("tool_calls", []):
            call.setdefault("id", f"call{self._num_calls:05d}")
            self._num_calls += 1
        if len(message) == 2 and not message["content"]:
            return is_whole
        self.messages.append(message)
        return True


def _special_tokens(model) -> dict[str, str]:
    """Returns bos_token and eos_token as templates name them."""
    ids = {"bos_token": model.info["bos_token_id"]}
    ids["eos_token"] = next(iter(model.generation_config.get("eos_token_id") or [None]))
    return {name: "" if id is None else model.detokenize([id]) for name, id in ids.items()}
