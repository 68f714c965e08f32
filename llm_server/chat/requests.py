"""A conversation that wants a reply, as OpenAI's chat completions write it; other APIs translate to it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from llm_server.chat.options import OpenAIRequest, PositiveCount
from llm_server.web.errors import invalid

# Names of the template's own arguments, by transformers: as variables they would take another meaning.
RESERVED_VARIABLES = {
    "self", "conversation", "messages", "tools", "documents", "chat_template", "add_generation_prompt",
    "continue_final_message", "tokenize", "padding", "truncation", "max_length", "return_tensors", "return_dict",
    "return_assistant_tokens_mask", "tokenizer_kwargs",
}  # fmt: skip


class ChatRequest(OpenAIRequest):
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_completion_tokens: PositiveCount | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="variables of the template")
    continue_final_message: bool | None = Field(None, description="the reply goes on with the last message")
    documents: list[dict[str, Any]] | None = Field(None, description="for templates that read them")
    store: bool | None = None
    functions: Any = Field(None, description="refused: tools replaced it")
    function_call: Any = Field(None, description="refused: tool_choice replaced it")

    def most_tokens(self) -> int:
        return self.max_completion_tokens or self.max_tokens or 0

    def without_effect(self) -> list[str]:
        found = ["store"] if self.store else []
        # A call that must be made is made once; how many others there are is the model's choice.
        if self.parallel_tool_calls is False and self.tools and self.tool_choice in (None, "auto"):
            found.append("parallel_tool_calls")
        return found

    def template_variables(self) -> dict[str, Any]:
        """Returns what the template reads beside the conversation. Errors: ApiError for a reserved name."""
        variables = dict(self.chat_template_kwargs or {})
        for name in variables:
            if name in RESERVED_VARIABLES:
                text = "is no variable of templates: a request has messages, tools and documents as fields of their own"
                raise invalid(f"chat_template_kwargs.{name}", text)
        if self.reasoning_effort is not None:
            variables.setdefault("reasoning_effort", self.reasoning_effort)
        return variables

    def checked_response_format(self) -> dict[str, Any] | None:
        """Returns response_format as OpenAI has it; llama.cpp's json_object may have a schema."""
        given = self.response_format
        if given is not None and given.get("type") in ("json_object", "json_schema") and "schema" in given:
            return {"type": "json_schema", "json_schema": {"name": "reply", "schema": given["schema"]}}
        return given

    def is_constrained(self) -> bool:
        """Whether a grammar has to be compiled for it."""
        named = self.tool_choice not in (None, "auto", "none")
        return named or (self.response_format or {}).get("type") not in (None, "text")
