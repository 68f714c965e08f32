"""A backend for tests whose asset is a file for the CPU, by which fake_library.cpp computes functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from backends.tensor_ops.emitter import Emitter
from backends.tensor_ops.function import Function
from backends.tensor_ops.lowering import named
from backends.tensor_ops.reference import Asset, references
from llm_export import api
from llm_export.partition.backend import Backend, Blob, Subgraph
from tests.contracts.architectures import save_tiny_checkpoint

ASSET = Asset("the tests", ".fake", ("model.mote",))


class FakeBackend(Backend):
    """folder: an asset that is there already, a file for the CPU of the same checkpoint"""

    name = "fake"
    owns_states = True
    min_instructions = 1

    def __init__(self, folder: Path, context_length: int, token_counts: Sequence[int]):
        self.folder, self.context_length, self.token_counts = folder, context_length, tuple(token_counts)

    def lower(self, subgraph: Subgraph) -> Blob:
        function = Function(subgraph, Emitter(), None, self.context_length)
        function.states = dict.fromkeys(port.name for port in function.state_inputs())
        (data,) = references(ASSET, self.folder, self.folder.name, named([function]), self.context_length)
        return Blob(data, ())


def export(
    folder: Path,
    name: str = "llama",
    others: Sequence[str] = ("cpu",),
    *,
    context_length: int = 64,
    token_counts: Sequence[int] = (4, 16),
    check: str = "off",
) -> Path:
    """A file of a tiny model with its asset. others: targets beside the asset's"""
    save_tiny_checkpoint(name, folder / "checkpoint")
    asset = folder / "model.fake"
    asset.mkdir()
    api.export(folder / "checkpoint", asset / "model.mote", recipe="none", check=check)
    backend = FakeBackend(asset, context_length, token_counts)
    path = folder / "model.mote"
    api.export(folder / "checkpoint", path, backends=[backend, *others], recipe="none", check=check)
    return path
