"""Multi-turn chat over a program file: its template, its tokenizer, and one session that keeps what it has read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llm_export.errors import ArgumentError, FileError


class _GenerationBlock(jinja2.ext.Extension):
    """`{% generation %}` marks what an assistant wrote; rendering ignores the mark."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str):
    raise jinja2.exceptions.TemplateError(message)


def _tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def compile_template(source: str) -> jinja2.Template:
    """Compiles a chat template as transformers does.

    Errors: FileError if it is no Jinja template   Source: transformers utils/chat_template_utils.py
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        return environment.from_string(source)
    except jinja2.TemplateError as error:
        raise FileError(f"the file's chat template is not valid: {error}") from error


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
        self._template = compile_template(model.chat_template)
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

    def render(self) -> str:
        """Returns the conversation as the model reads it. Errors: FileError if the template refuses it."""
        try:
            return self._template.render(messages=self.messages, add_generation_prompt=True, tools=None, **self._tokens)
        except (jinja2.TemplateError, TypeError, ValueError, AttributeError, KeyError) as error:
            raise FileError(f"{self.model.path}: its chat template refuses the conversation: {error}") from error

    def _unseen(self, prompt: str) -> list[int]:
        """Returns the ids that the session has not read; starts it anew where they are no continuation."""
        ids = self.model.tokenize(prompt, add_special_tokens=False)
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
