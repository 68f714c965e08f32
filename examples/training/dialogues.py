"""Builds chat dialogues from the functions, classes and docstrings of the sources."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from pydoc_data.topics import topics

from .corpus import Document
from .handwritten import PAIRS

_MAX_CODE_CHARACTERS = 1400
_MAX_PROSE_CHARACTERS = 700
# Few dialogues are hand-written, and they answer what people try first.
_HANDWRITTEN_REPEATS = 16
_SYSTEM_PROMPTS = ("You are a helpful assistant.", "You are a Python programming assistant.")
_SYSTEM_SHARE = 0.2

_WRITE_PROMPTS = (
    "Write the function {signature}.",
    "Write the function {name}.",
    "Write a Python function {name}.",
    "Implement {signature} in Python.",
    "How would you write {name}?",
)
_WRITE_TO_PROMPTS = (
    "Write a function {name}. {summary}",
    "Write a Python function: {summary}",
    "{summary} Write it in Python.",
)
_DESCRIBE_PROMPTS = ("What does {name} do?", "Explain {signature}.", "What is {module}.{name} for?")

Message = dict[str, str]
Dialogue = list[Message]


def build(documents: list[Document], seed: int) -> list[Dialogue]:
    """Returns the dialogues of the training documents, in a fixed order for a given seed."""
    rng = random.Random(seed)
    dialogues = [_dialogue(rng, pair) for pair in _topic_pairs()]
    for prompts, answer in PAIRS:
        for _ in range(_HANDWRITTEN_REPEATS):
            dialogues += [_dialogue(rng, (prompt, answer)) for prompt in prompts]
    for document in documents:
        dialogues += _from_document(document, rng)
    return dialogues


def _from_document(document: Document, rng: random.Random) -> list[Dialogue]:
    try:
        tree = ast.parse(document.text)
    except SyntaxError:
        return []
    module = document.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    dialogues = []
    if summary := _first_paragraph(ast.get_docstring(tree)):
        prompt = rng.choice(("What is the module {} for?", "What does the {} module do?"))
        dialogues.append(_dialogue(rng, (prompt.format(module), summary)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            dialogues += _from_function(document, module, node, rng)
        elif isinstance(node, ast.ClassDef) and (code := _code(document, node)):
            prompt = rng.choice(("Write a class {}.", "Write the class {} in Python."))
            dialogues.append(_dialogue(rng, (prompt.format(node.name), code)))
    return dialogues


def _from_function(document, module, node, rng) -> list[Dialogue]:
    signature = f"{node.name}({ast.unparse(node.args)})"
    docstring = ast.get_docstring(node) or ""
    summary = _first_paragraph(docstring)
    fields = {"name": node.name, "signature": signature, "module": module, "summary": summary}
    write = _WRITE_PROMPTS + (_WRITE_TO_PROMPTS if summary else ())
    code = _code(document, node)
    pairs = []
    if code:
        pairs.append((rng.choice(write).format(**fields), code))
    if summary:
        pairs.append((rng.choice(_DESCRIBE_PROMPTS).format(**fields), summary))
    # One dialogue in two turns now and then, so that a second question is not foreign.
    if len(pairs) == 2 and rng.random() < 0.3:
        return [_dialogue(rng, pairs[0], ("What does it do?", summary))]
    dialogues = [_dialogue(rng, pair) for pair in pairs]
    if summary and len(docstring) <= _MAX_PROSE_CHARACTERS and rng.random() < 0.3:
        request = f"Write a docstring for `def {signature}`."
        dialogues.append(_dialogue(rng, (request, f'"""{docstring}"""')))
    return dialogues


def _topic_pairs():
    for name, text in topics.items():
        paragraphs = text.replace("\n***", "\n\n***").split("\n\n")
        prose = [part for part in paragraphs[1:] if not part.startswith(("**", "   "))]
        summary = _first_paragraph("\n\n".join(prose))
        if summary.endswith("."):
            yield f"Explain {name} in Python.", summary
            yield f"What is {name.replace('-', ' ')} in Python?", summary


def _dialogue(rng: random.Random, *pairs: tuple[str, str]) -> Dialogue:
    messages = []
    if rng.random() < _SYSTEM_SHARE:
        messages.append({"role": "system", "content": rng.choice(_SYSTEM_PROMPTS)})
    for prompt, answer in pairs:
        messages.append({"role": "user", "content": prompt})
        messages.append({"role": "assistant", "content": answer})
    return messages


def _code(document: Document, node) -> str:
    lines = document.text.splitlines()[node.lineno - 1 : node.end_lineno]
    source = textwrap.dedent("\n".join(lines))
    if len(lines) < 2 or len(source) > _MAX_CODE_CHARACTERS or not source[0].isalpha():
        return ""
    return f"```python\n{source}\n```"


def _first_paragraph(docstring: str | None) -> str:
    text = inspect.cleandoc(docstring or "").split("\n\n")[0].strip()
    if not 12 <= len(text) <= _MAX_PROSE_CHARACTERS:
        return ""
    return " ".join(text.split())
