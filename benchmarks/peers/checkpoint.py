"""Reads a checkpoint with numpy alone, for converters that take tensors."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np


class Checkpoint:
    """config.json and model.safetensors of a folder; tensors are read when they are asked for."""

    def __init__(self, folder: Path):
        self.config = json.loads((folder / "config.json").read_text())
        path = folder / "model.safetensors"
        with open(path, "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        self._header = header
        self._data = np.memmap(path, np.uint8, "r", offset=8 + size)

    def names(self) -> list[str]:
        return list(self._header)

    def bits(self, name: str) -> np.ndarray:
        """Returns a bf16 tensor as the uint16 that it is stored as."""
        entry = self._header[name]
        if entry["dtype"] != "BF16":
            raise ValueError(f"{name}: dtype {entry['dtype']}: must be BF16")
        begin, end = entry["data_offsets"]
        return self._data[begin:end].view(np.uint16).reshape(entry["shape"])

    def tensor(self, name: str) -> np.ndarray:
        """Returns a tensor as float32."""
        return (self.bits(name).astype(np.uint32) << 16).view(np.float32)

    def paired(self, name: str) -> np.ndarray:
        """Returns a tensor as float32, for runtimes that rotate neighbouring pairs where the checkpoint rotates halves.

        Only rows of Llama's q_proj and k_proj move; everything else is `tensor`.
        """
        tensor = self.tensor(name)
        kind = name.split(".")[-2]
        if self.config["model_type"] != "llama" or kind not in ("q_proj", "k_proj"):
            return tensor
        heads = self.config["num_attention_heads" if kind == "q_proj" else "num_key_value_heads"]
        return tensor.reshape(heads, 2, -1, tensor.shape[1]).swapaxes(1, 2).reshape(tensor.shape)
