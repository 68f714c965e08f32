"""What a loaded model tells without computing: its tokens, its prompts, itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from llm_runner import _core
from llm_runner.arguments import checked_ids
from llm_runner.chat import as_json, parsed
from llm_runner.errors import ArgumentError
from llm_runner.labels import count_text, file_label, never_raises
from llm_runner.reply import ReplyParser


class LoadedModel:
    """The part of a `Model` that sessions, grammars and conversations are made of.

    path: of its file; "" if it has none
    """

    def __init__(self, core: _core.Model, path: str):
        self.path = path
        self._core = core
        self._is_closed = False

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
        """vocab_size, max_position_embeddings, bos_token_id, has_tokenizer, generates, embeds, file_bytes, ..."""
        return self._core.info()

    @cached_property
    def num_parameters(self) -> int:
        """Elements of all weights as the file has them: what is tied counts once."""
        tensors = {tensor["name"]: tensor["shape"] for tensor in self.describe()["weights"]["tensors"]}
        return sum(math.prod(shape) for shape in tensors.values())

    def close(self) -> None:
        """Lets go of the file; open sessions keep it."""
        self._is_closed = True
        self._core.close()

    @never_raises
    def __repr__(self) -> str:
        label = f"{type(self).__name__} {file_label(self.path)}"
        return f"{label}, closed" if self._is_closed else f"{label}: {self._summary}"

    @cached_property
    def _summary(self) -> str:
        about = self.describe()
        made = about["provenance"]
        recipe = made["recipe"].partition(" ")[0]
        return (
            f"{made['model_type']}, {count_text(self.num_parameters)} parameters, {recipe}, "
            f"context {about['max_position_embeddings']}, on {about['target']}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
