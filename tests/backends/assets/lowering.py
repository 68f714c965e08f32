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
COREAI = Asset("Core AI", ".aimodel", ("main.mlirb",))  # run by fake_coreai.cpp in place of Core AI


class FakeBackend(Backend):
    """folder: an asset that is there already, a file for the CPU of the same checkpoint; gets what functions take"""

    owns_states = True
    min_instructions = 1

    def __init__(
        self, name: str, asset: Asset, folder: Path, context_length: int, token_counts: Sequence[int], carries: bool
    ):
        self.name, self.asset, self.carries = name, asset, carries
        self.folder, self.context_length, self.token_counts = folder, context_length, tuple(token_counts)

    def lower(self, subgraph: Subgraph) -> Blob:
        function = Function(subgraph, Emitter(), None, self.context_length)
        function.emitter.carries_states = self.carries
        function.states = dict.fromkeys(port.name for port in function.state_inputs())
        (name, function), *_ = named([function]).items()
        (data,) = references(self.asset, self.folder, self.folder.name, {name: function}, self.context_length)
        (self.folder / f"{name}.json").write_bytes(data)
        return Blob(data, ())


def export(
    folder: Path,
    name: str = "llama",
    others: Sequence[str] = ("cpu",),
    *,
    context_length: int = 64,
    token_counts: Sequence[int] = (4, 16),
    check: str = "off",
    backend: str = "fake",
    kind: Asset = ASSET,
    carries: bool = False,
) -> Path:
    """A file of a tiny model with its asset. others: targets beside the asset's   carries: states are inputs"""
    save_tiny_checkpoint(name, folder / "checkpoint")
    asset = folder / f"model{kind.suffix}"
    asset.mkdir()
    of_cpu = folder / "cpu.mote"
    api.export(folder / "checkpoint", of_cpu, recipe="none", check=check)
    of_cpu.rename(asset / kind.files[0])
    lowering = FakeBackend(backend, kind, asset, context_length, token_counts, carries)
    path = folder / "model.mote"
    api.export(folder / "checkpoint", path, backends=[lowering, *others], recipe="none", check=check)
    return path
