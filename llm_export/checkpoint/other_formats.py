"""What people give to `mote export` that is no Hugging Face checkpoint, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

from llm_export.errors import FileError

MOTE_MAGIC = b"MOTE\r\n\x1a\n"
NEEDED = (
    "must be a Hugging Face checkpoint: a folder with config.json and model.safetensors, or a name on the hub; "
    "or a GGUF file"
)


def refuse_file(path: Path) -> None:
    """Errors: FileError that says what the file is, always."""
    raise FileError(f"{path}: is {_file_kind(path)}; {NEEDED}")


def refuse_folder(folder: Path) -> None:
    """Errors: FileError that says what a folder without config.json holds, always."""
    adapter = folder / "adapter_config.json"
    if adapter.is_file():
        base = _base_model(adapter)
        raise FileError(
            f"{folder}: is a LoRA adapter{f' of {base}' if base else ''}, which has no weights of its own: export "
            f"that model, then make the adapter a file beside it with 'mote adapter {folder} --base FILE.mote'"
        )
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if "model_index.json" in names:
        raise FileError(f"{folder}: is a pipeline of diffusers, and no language model")
    raise FileError(f"{folder}: has no config.json: must be a Hugging Face checkpoint folder, or have one GGUF file")


def _file_kind(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError:
        return "a file"
    if start.startswith(MOTE_MAGIC):
        return "a .mote file already: 'mote run' runs it"
    if start.startswith(b"PK\x03\x04"):
        return "a zip archive, or pickled weights of PyTorch, which are not read"
    if path.suffix == ".safetensors" or start[8:9] == b"{":
        return "one safetensors file: give the folder that it is in, with its config.json"
    return "a file"


def _base_model(adapter: Path) -> str:
    try:
        name = json.loads(adapter.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        return ""
    return name if isinstance(name, str) else ""
