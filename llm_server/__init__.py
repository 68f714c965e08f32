"""Serves a .mote file over HTTP as OpenAI's API does: `mote serve`. Needs the extra `serve`."""

from llm_server.app import ServerOptions, create_app
from llm_server.guard import Limits
from llm_server.serve import is_local, serve

__all__ = ["Limits", "ServerOptions", "create_app", "is_local", "serve"]
