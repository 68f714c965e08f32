"""Multi-turn chat over a program file: its template, its tokenizer, and one session that keeps what it has read."""

from __future__ import annotations

from collections.abc import Iterator

from llm_export.errors import ArgumentError, FileError
from llm_runner import TemplateError


class Chat:
    """A conversation. Not thread-safe.

    model: llm_runner.Model   options: of `Session.generate`
    Errors: ArgumentError if the file has no chat template
    """

    def __init__(
        self, model, system: str = "", context_length: int | None = None, threads: int | None = None, **options
    ):
        if not model.chat_template:
            raise ArgumentError(
                f"{model.path}: has no chat template: use 'mote run' for models that only continue text"
            )
        self.model = model
        self.options = options
        self.session = model.session(context_length=context_length, threads=threads)
        self.generation = None
        self._tokens = _special_tokens(model)
        self._system = [{"role": "system", "content": system}] if system else []
        self.reset()

    def reset(self) -> None:
        """Forgets the conversation, not the system message."""
        self.messages = list(self._system)
        self._seen: list[int] = []
        self.session.reset()

    def reply(self, text: str) -> Iterator[str]:
        """Appends a message and yields the reply in pieces; a reply that is broken off counts as far as it came."""
        self.messages.append({"role": "user", "content": text})
        pieces: list[str] = []
        try:
            ids = self._unseen(self.render())
            self.generation = self.session.generate(ids, **self.options)
            for piece in self.generation:
                pieces.append(piece)
                yield piece
        except BaseException:
            if not pieces:
                self.messages.pop()
            raise
        finally:
            self._finish("".join(pieces))

    def render(self) -> list[int]:
        """Returns the ids of the conversation. Errors: FileError if the template is not valid or refuses it."""
        try:
            return self.model.apply_chat_template(self.messages, add_generation_prompt=True, **self._tokens)
        except TemplateError as error:
            raise FileError(f"{self.model.path}: its chat template refuses the conversation: {error}") from error

    def _unseen(self, ids: list[int]) -> list[int]:
        """Returns the ids that the session has not read; starts it anew where they are no continuation."""
        known = len(self._seen)
        if known == 0 or ids[:known] != self._seen or known == len(ids):
            self.session.reset()
            self._seen, known = [], 0
        self._seen = ids
        return ids[known:]

    def _finish(self, text: str) -> None:
        if self.generation is not None:
            self._seen = (self._seen + self.generation.token_ids)[: self.session.position]
            self.generation.close()
            self.generation = None
        if text:
            self.messages.append({"role": "assistant", "content": text})


def _special_tokens(model) -> dict[str, str]:
    """Returns bos_token and eos_token as templates name them."""
    ids = {"bos_token": model.info["bos_token_id"]}
    ids["eos_token"] = next(iter(model.generation_config.get("eos_token_id") or [None]))
    return {name: "" if id is None else model.detokenize([id]) for name, id in ids.items()}
