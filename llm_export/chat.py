"""Multi-turn chat over a program file: its template, its tokenizer, and one session that keeps what it has read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llm_export.errors import ArgumentError, FileError
from llm_runner import ChatGeneration, ReplyEvent, TemplateError


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
        self.options = options
        self.session = model.session(context_length=context_length, threads=threads)
        self._system = [{"role": "system", "content": system}] if system else []
        self.reset()

    def reset(self) -> None:
        """Forgets the conversation, not the system message."""
        self.messages = list(self._system)
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
        reply = None
        try:
            reply = self._begin()
            yield from reply
        finally:
            if not self._keep(reply):
                del self.messages[-len(added) :]

    def _begin(self) -> ChatGeneration:
        """Errors: FileError if the template is not valid or refuses the conversation."""
        try:
            return self.session.chat(self.messages, tools=self.tools, **self.options)
        except TemplateError as error:
            raise FileError(f"{self.model.path}: its chat template refuses the conversation: {error}") from error

    def _keep(self, reply: ChatGeneration | None) -> bool:
        """Appends the reply as far as it came; False if there is none, which after a whole generation is no reason to
        forget what was asked.
        """
        if reply is None:
            return False
        is_whole = reply.finish_reason is not None
        reply.close()
        message = reply.message
        if len(message) == 2 and not message["content"]:
            return is_whole
        self.messages.append(message)
        return True
