"""Text to token ids and back, exactly as Hugging Face, SentencePiece, tiktoken and Mistral do it.

tokenizer = Tokenizer.from_file("tokenizer.json")
tokenizer.encode("Hello").ids
"""

from llm_tokenizer.errors import ArgumentError, FileError, InvalidTokenizerError, ResourceError, TokenizerError
from llm_tokenizer.tokenizer import Encoding, Tokenizer, compile_tokenizer

__all__ = [
    "ArgumentError",
    "Encoding",
    "FileError",
    "InvalidTokenizerError",
    "ResourceError",
    "Tokenizer",
    "TokenizerError",
    "compile_tokenizer",
]
