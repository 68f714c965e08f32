"""The models of a server: which there are, which are in memory, and who uses them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_runner import ArgumentError, Model
from llm_server.engine.engine import MAX_PARALLEL, Engine, EngineOptions
from llm_server.engine.grammars import Compiler
from llm_server.engine.memory import memory_bound
from llm_server.engine.steps import in_thread
from llm_server.web.errors import ApiError

log = logging.getLogger("llm_server")

MIB = 2**20


@dataclass(frozen=True)
class PoolOptions:
    """parallel: requests to a model that run side by side; None: as many as the memory has room for
    max_memory: bytes of the models in memory with their adapters and caches; None: most of what is available now
    loading: options of `Model.load`
    adapters: files that requests may name, each with its weight behind "=" unless that is 1
    """

    max_memory: int | None = None
    parallel: int | None = None
    loading: dict[str, Any] = field(default_factory=dict)
    engine: EngineOptions = field(default_factory=EngineOptions)
    adapters: tuple[str, ...] = ()


@dataclass
class ServedModel:
    """A model that requests may name, in memory or not."""

    name: str
    source: Path | Model
    about: dict[str, Any]  # what `Model.describe` says of where it comes from, without its licence
    chat_template: str
    file_bytes: int
    context_length: int
    state_bytes: int  # of the caches of a sequence when the context is full
    modified: float
    generates: bool = True
    embeds: bool = False
    adapters: dict[str, str] = field(default_factory=dict)  # by name: the file, as `Model.load_adapter` takes it
    adapter_bytes: int = 0
    parallel: int = 1
    engine: Engine | None = None
    num_users: int = 0
    last_used: float = 0.0
    num_loads: int = 0

    def bytes_of(self, parallel: int, prefix_cache_bytes: int) -> int:
        """Returns what it takes of memory at most."""
        return self.file_bytes + self.adapter_bytes + parallel * self.state_bytes + prefix_cache_bytes


class ModelPool:
    """Models by name, loaded when they are asked for; the least recently used idle one makes room for another.

    Not thread-safe: it belongs to the event loop.
    """

    def __init__(self, sources: Mapping[str, str | Path | Model], options: PoolOptions):
        """Looks into each file. Errors: ArgumentError for one that cannot be served; those of `Model.load`."""
        if not sources:
            raise ArgumentError("no model: give a .mote file, or a folder with some")
        self.options = options
        self.max_memory = memory_bound() if options.max_memory is None else options.max_memory
        self.compiler = Compiler()
        self._refusals: dict[str, ArgumentError] = {}  # of adapters, by the model that they are not for
        self._models = {name: self._survey(name, source) for name, source in sources.items()}
        self._check_adapters()
        for model in self._models.values():
            model.parallel = self._parallel_of(model)
            self._check_room(model)
        self._loading = asyncio.Lock()
        self._became_idle = asyncio.Event()
        self._waits_for_room = False  # new requests then queue behind the model that is to be loaded
        self._load(self.first)

    @property
    def first(self) -> ServedModel:
        """The model of requests that name none."""
        return next(iter(self._models.values()))

    def __iter__(self):
        return iter(self._models.values())

    def find(self, name: str | None) -> ServedModel:
        """Returns the model of a name or of an adapter's, Ollama's tag :latest left out; None: the first.

        Errors: ApiError 404
        """
        if name is None:
            return self.first
        found = self._models.get(name) or self._models.get(name.removesuffix(":latest"))
        found = found or next((model for model in self if name in model.adapters), None)
        if found is None:
            names = [name for model in self for name in (model.name, *model.adapters)]
            known = ", ".join(map(repr, names))
            text = f"the model {name[:100]!r} does not exist: this server has {known}"
            raise ApiError(404, text, "model", "model_not_found")
        return found

    async def use(self, model: ServedModel) -> Engine:
        """Returns the engine of a model, loading it; it stays until `release`.

        Errors: ApiError 503 if no room becomes free within the time limit; those of `Model.load`
        """
        if model.engine is None or self._waits_for_room:
            async with self._loading:
                if model.engine is None:
                    await self._make_room(model)
                    await in_thread(self._load, model)
                model.num_users += 1
        else:
            model.num_users += 1
        assert model.engine is not None
        return model.engine

    def release(self, model: ServedModel) -> None:
        """Ends a use."""
        model.num_users -= 1
        model.last_used = time.monotonic()
        if model.num_users == 0:
            self._became_idle.set()

    def unload(self, model: ServedModel) -> bool:
        """Takes an idle model out of memory; returns whether it was idle and there."""
        if model.engine is None or model.num_users:
            return False
        engine, model.engine = model.engine, None
        engine.close()
        if not isinstance(model.source, Model):
            engine.model.close()
        log.info("%s: out of memory", model.name)
        return True

    def used_bytes(self) -> int:
        """Returns what the models in memory may take."""
        return sum(self._bytes_of(model) for model in self if model.engine is not None)

    def close(self) -> None:
        """Frees what is not in use."""
        self.compiler.close()
        for model in self:
            if model.engine is not None:
                model.engine.close()

    async def _make_room(self, model: ServedModel) -> None:
        try:
            async with asyncio.timeout(self.options.engine.timeout):
                while self.used_bytes() + self._bytes_of(model) > self.max_memory and any(
                    other.engine is not None for other in self
                ):
                    idle = [other for other in self if other.engine is not None and not other.num_users]
                    if idle:
                        self.unload(min(idle, key=lambda other: other.last_used))
                        continue
                    self._waits_for_room = True
                    self._became_idle.clear()
                    await self._became_idle.wait()
        except TimeoutError:
            text = f"{model.name}: the models in memory were in use for {self.options.engine.timeout:g} seconds"
            raise ApiError(503, text, "model", "no_memory_for_model", retry_after=5) from None
        finally:
            self._waits_for_room = False

    def _survey(self, name: str, source: str | Path | Model) -> ServedModel:
        model = source if isinstance(source, Model) else Model.load(source, **self.options.loading)
        try:
            if not model.info["has_tokenizer"]:
                raise ArgumentError(
                    f"{source}: has no tokenizer, so it cannot read text: export it without --no-tokenizer"
                )
            if model.info["generates"]:
                with model.session(**self.options.engine.session) as session:
                    context_length, state_bytes = session.info["context_length"], session.info["state_bytes"]
            else:
                context_length, state_bytes = model.embedding_config["max_tokens"], 0
            described = model.describe()
            about = {key: value for key, value in described["provenance"].items() if key != "license"}
            modified = Path(model.path).stat().st_mtime if model.path else time.time()
            return ServedModel(
                name, source if isinstance(source, Model) else Path(source), about, model.chat_template,
                model.info["file_bytes"], context_length, state_bytes, modified,
                model.info["generates"], model.info["embeds"], *self._adapters_of(model),
            )  # fmt: skip
        finally:
            if not isinstance(source, Model):
                model.close()

    def _adapters_of(self, model: Model) -> tuple[dict[str, str], int]:
        """Returns those that were made for the model, and their bytes.

        Errors: ArgumentError for two of one name; those of reading
        """
        found: dict[str, str] = {}
        num_bytes = 0
        for text in self.options.adapters:
            try:
                adapter = model.load_adapter(text)
            except ArgumentError as error:
                self._refusals[text] = error
                continue
            if adapter.name in found:
                raise ArgumentError(f"--adapter {text}: requests name adapters by their files' names, and two are one")
            found[adapter.name] = text
            num_bytes += adapter.memory_bytes
            adapter.close()
        return found, num_bytes

    def _check_adapters(self) -> None:
        """Errors: ArgumentError for an adapter of none of the models, or with the name of one."""
        taken = {text for model in self for text in model.adapters.values()}
        for text in self.options.adapters:
            if text not in taken:
                raise self._refusals[text]
        for name in (name for model in self for name in model.adapters):
            if name in self._models:
                raise ArgumentError(f"--adapter {name}: a model has the same name; rename the file")

    def _parallel_of(self, model: ServedModel) -> int:
        """Returns how many sequences have room beside the file: all files at once if they fit, else this one alone."""
        if self.options.parallel is not None:
            return self.options.parallel
        cache = self.options.engine.prefix_cache_bytes
        files = sum(other.bytes_of(0, 0) for other in self._models.values())
        shared = (self.max_memory - files) // len(self._models) - cache
        alone = self.max_memory - model.bytes_of(0, cache)
        room = shared if shared >= model.state_bytes else alone
        return max(1, min(MAX_PARALLEL, room // max(model.state_bytes, 1)))

    def _check_room(self, model: ServedModel) -> None:
        """Errors: ArgumentError if a model alone takes more than the user allows."""
        needed = self._bytes_of(model)
        if needed <= self.max_memory:
            return
        text = (
            f"{model.name} needs {needed // MIB} MiB: its file, adapters, {model.parallel} full contexts (--parallel, "
            "--context-length, --kv-dtype) and the prefix cache (--prefix-cache-mb)"
        )
        if self.options.max_memory is not None:
            raise ArgumentError(f"--max-memory {self.max_memory // MIB} MiB: {text}")
        log.warning("%d MiB of memory may be used, and %s", self.max_memory // MIB, text)

    def _bytes_of(self, model: ServedModel) -> int:
        return model.bytes_of(model.parallel, self.options.engine.prefix_cache_bytes)

    def _load(self, model: ServedModel) -> None:
        start = time.monotonic()
        is_loaded = isinstance(model.source, Model)
        loaded = model.source if is_loaded else Model.load(model.source, **self.options.loading)
        model.engine = Engine(loaded, model.name, model.parallel, self.options.engine, model.adapters)
        model.parallel = model.engine.parallel  # fewer, if they cannot be computed together
        model.num_loads += 1
        text = "%s: in memory after %.2f s, %d requests side by side, %d MiB at most"
        log.info(text, model.name, time.monotonic() - start, model.engine.parallel, self._bytes_of(model) // MIB)
