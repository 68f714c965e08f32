"""Runs `.mote` files.

from mote import Model
model = Model.load("model.mote")
for piece in model.generate("Once upon a time", max_new_tokens=64):
    print(piece, end="", flush=True)
"""

from llm_runner._core import __version__
from llm_runner.adapter import Adapter
from llm_runner.asynchronous import AsyncGeneration
from llm_runner.batch import Batch, BatchPiece
from llm_runner.beam_search import Beam, BeamSearchOptions
from llm_runner.chat import render_chat_template
from llm_runner.conversation import ChatGeneration, Conversation, ConversationOptions
from llm_runner.embedder import Embedder, Embeddings
from llm_runner.errors import (
    ArgumentError,
    BackendError,
    CancelledError,
    ContextFullError,
    FileError,
    MoteError,
    ProgramError,
    ResourceError,
    SessionFileError,
    StateError,
    TemplateError,
    TokenizerError,
)
from llm_runner.generation import Generation, Piece, Streamer, TokenLogprob, warp
from llm_runner.grammar import Constraint, Grammar, Vocabulary
from llm_runner.log import forward_to_logging
from llm_runner.model import Model, check_tokenizer
from llm_runner.option_types import GenerationOptions, LoadingOptions
from llm_runner.options import check_options, describe_options
from llm_runner.reply import ReplyEvent, ReplyParser, parse_reply, reply_formats
from llm_runner.session import Session
from llm_runner.session_options import ChatOptions, PrefixCache, SessionOptions
from llm_runner.wrong_types import name_wrong_types_in

forward_to_logging()

__all__ = [
    "Adapter",
    "ArgumentError",
    "BackendError",
    "AsyncGeneration",
    "Batch",
    "BatchPiece",
    "Beam",
    "BeamSearchOptions",
    "CancelledError",
    "Constraint",
    "ChatGeneration",
    "ChatOptions",
    "ContextFullError",
    "Conversation",
    "ConversationOptions",
    "Embedder",
    "Embeddings",
    "FileError",
    "Generation",
    "GenerationOptions",
    "Grammar",
    "LoadingOptions",
    "Model",
    "MoteError",
    "Piece",
    "PrefixCache",
    "ProgramError",
    "ReplyEvent",
    "ReplyParser",
    "ResourceError",
    "Session",
    "SessionFileError",
    "SessionOptions",
    "StateError",
    "Streamer",
    "TemplateError",
    "TokenLogprob",
    "TokenizerError",
    "Vocabulary",
    "__version__",
    "check_options",
    "check_tokenizer",
    "describe_options",
    "parse_reply",
    "render_chat_template",
    "reply_formats",
    "warp",
]

name_wrong_types_in(globals(), __all__)
