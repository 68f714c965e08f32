"""The runtimes that compare.py measures, one file each.

A peer's module holds `PEER`, `convert(checkpoint, folder)` and `load(folder, threads, context_length)`, and ends in
`worker.main(convert, load)`: it runs as a program of its own inside the peer's environment, and only there imports
what the peer installs.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field

MODULES = (
    "mote",
    "mote_xnnpack",
    "mote_xnnpack_head",
    "llama_cpp",
    "onnxruntime_genai",
    "openvino_genai",
    "executorch",
    "mote_vulkan",
    "llama_cpp_vulkan",
)


@dataclass(frozen=True)
class Peer:
    """What compare.py must know about a runtime without importing it.

      name: as in --peers and in the report
      requirements: what pip installs into its environment; none: it runs in the environment of compare.py
      without: what pip removes again: dependencies that nothing here needs and that break beside a CPU build of torch
    distribution: the package whose version the report names
      conversion: how the checkpoint is converted; converted files are made again when this text changes
      head: how the output head is stored   cache: element type of the key/value cache
      settings: environment variables of its processes; CMAKE_ARGS: it is compiled, with these
      backend: what it runs on, as --backend of compare.py
      avx2: those that keep it from newer vector instructions where it is installed and run; None: it cannot be told
    """

    name: str
    module: str
    requirements: tuple[str, ...]
    distribution: str
    conversion: str
    head: str
    cache: str
    without: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    avx2: dict[str, str] | None = None
    backend: str = "cpu"


def all_peers() -> dict[str, Peer]:
    """Every runtime by name, Mote first."""
    peers = (importlib.import_module(f"{__name__}.{module}").PEER for module in MODULES)
    return {peer.name: peer for peer in peers}
