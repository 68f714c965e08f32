"""Opens a Hugging Face checkpoint: a folder or a hub id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from transformers import AutoConfig, PretrainedConfig

from llm_export.weights import WeightReader


@dataclass
class Checkpoint:
    model_id: str
    folder: Path
    config: PretrainedConfig
    weights: WeightReader


def open_checkpoint(source, **options) -> Checkpoint:
    folder = Path(source)
    config = AutoConfig.from_pretrained(folder)
    files = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            files.update(dict.fromkeys(file.keys(), path))
    return Checkpoint(str(source), folder, config, WeightReader(files))
