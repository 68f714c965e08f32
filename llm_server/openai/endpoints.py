"""What of OpenAI's API there is."""

from __future__ import annotations

from llm_server.chat.requests import ChatRequest
from llm_server.openai.chat_completions import chat_completions
from llm_server.openai.completions import CompletionRequest, completions
from llm_server.openai.embeddings import EmbeddingRequest, embeddings
from llm_server.openai.models import models, one_model
from llm_server.web.endpoints import Endpoint

ENDPOINTS = [
    Endpoint("OpenAI", "GET", "/v1/models", models, "lists the models"),
    Endpoint("OpenAI", "GET", "/v1/models/{name:path}", one_model, "describes a model"),
    Endpoint("OpenAI", "POST", "/v1/chat/completions", chat_completions, "replies to a conversation", ChatRequest),
    Endpoint("OpenAI", "POST", "/v1/completions", completions, "continues a text", CompletionRequest),
    Endpoint("OpenAI", "POST", "/v1/embeddings", embeddings, "gives the vectors of texts", EmbeddingRequest),
]
