"""Serves .mote files over HTTP as OpenAI's, Anthropic's and Ollama's APIs do: `mote serve`."""

from llm_server.app import ServerOptions, create_app
from llm_server.serve import is_local, serve
from llm_server.web.guard import Limits

__all__ = ["Limits", "ServerOptions", "create_app", "is_local", "serve"]
