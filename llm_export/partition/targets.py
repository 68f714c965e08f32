"""The ways to run a program that a user asks for by name: "xnnpack,cpu"."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from llm_export.errors import ArgumentError
from llm_export.partition.backend import Backend
from llm_export.program.instructions import CPU

# The class of each backend, in a module of llm_export.backends.
CLASSES = {
    "coreai": ("coreai.lowering", "CoreaiBackend"),
    "coreml": ("coreml.lowering", "CoremlBackend"),
    "qnn": ("qnn.lowering", "QnnBackend"),
    "vulkan": ("vulkan.lowering", "VulkanBackend"),
    "xnnpack": ("xnnpack.lowering", "XnnpackBackend"),
}


@dataclass(frozen=True)
class Target:
    """A way to run the whole program: these backends, the first one first, and the CPU's kernels for the rest."""

    backends: tuple[Backend, ...] = ()

    @property
    def name(self) -> str:
        return "+".join(backend.name for backend in self.backends) or CPU

    @property
    def rounding(self) -> float:
        return max((backend.rounding for backend in self.backends), default=0.0)


def all_take(targets: Sequence[Target], what: str) -> bool:
    """what: an attribute of backends, such as takes_groups"""
    return all(getattr(backend, what) for target in targets for backend in target.backends)


def find_backend(text: str) -> Backend:
    """A backend by its name, or one of its profiles: "coreai", "coreai:ane". Errors: ArgumentError naming all"""
    name, colon, profile = text.partition(":")
    if name not in CLASSES:
        raise ArgumentError(f"backend = '{text}': must be one of {', '.join([CPU, *CLASSES])}")
    module, kind = CLASSES[name]
    found = getattr(importlib.import_module(f"llm_export.backends.{module}"), kind)
    if colon and profile not in found.profiles:
        known = ", ".join([name, *(f"{name}:{each}" for each in found.profiles)])
        raise ArgumentError(f"backend = '{text}': must be {'one of ' if found.profiles else ''}{known}")
    return found(profile=profile) if colon else found()


def parse_targets(names: str | Sequence[str | Backend]) -> list[Target]:
    """The targets of a text such as "xnnpack,cpu", or of its parts; "+" joins backends that share one target.

    names: a part may also be a backend itself, with options of its own or without a name in CLASSES
    Errors: ArgumentError
    """
    parts = names.split(",") if isinstance(names, str) else list(names)
    targets = [Target((part,)) if isinstance(part, Backend) else _target(part.strip()) for part in parts]
    ways = [target.name for target in targets]
    doubled = next((way for i, way in enumerate(ways) if way in ways[:i]), None)
    if doubled is not None:
        raise ArgumentError(f"backend = '{','.join(ways)}': has {doubled} twice")
    if not targets:
        raise ArgumentError("backend: must name at least one")
    return targets


def _target(text: str) -> Target:
    names = text.split("+")
    if len(set(names)) < len(names):
        raise ArgumentError(f"backend = '{text}': names a backend twice")
    # The CPU runs what is left, so it need not be named.
    return Target(tuple(find_backend(name) for name in names if name != CPU))
