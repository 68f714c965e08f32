"""GET /metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response

from llm_server.engine.pool import ModelPool, ServedModel
from llm_server.web.exchange import Exchange

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
MODEL_GAUGES = {
    "mote_requests_running": ("Requests that a model works on", lambda model: model.engine.num_running),
    "mote_requests_waiting": ("Requests that wait for a model", lambda model: model.engine.num_waiting),
    "mote_requests_parallel_max": ("Requests to a model that run side by side", lambda model: model.engine.parallel),
    "mote_prefix_cache_bytes": (
        "What earlier requests have read and others may use",
        lambda model: model.engine.prefix_cache.info["bytes"] if model.engine.prefix_cache else 0,
    ),
}


class Metrics:
    """Counts exchanges as they end; what models do is asked of them at each scrape."""

    def __init__(self, models: ModelPool):
        self._registry = CollectorRegistry()
        self._registry.register(_Models(models))
        self._requests = Counter(
            "mote_requests", "Requests by path, model and HTTP status", ("path", "model", "status"),
            registry=self._registry,
        )  # fmt: skip
        of_model = {"labelnames": ("model",), "registry": self._registry}
        self._prompt_tokens = Counter("mote_prompt_tokens", "Tokens of prompts", **of_model)
        self._cached_tokens = Counter("mote_cached_tokens", "Tokens of prompts that were not read again", **of_model)
        self._reply_tokens = Counter("mote_generation_tokens", "Tokens of replies", **of_model)
        self._duration = Histogram("mote_request_seconds", "From request to end", buckets=SECONDS, **of_model)
        self._first = Histogram(
            "mote_time_to_first_token_seconds", "From request to first token", buckets=SECONDS, **of_model
        )

    def count(self, exchange: Exchange) -> None:
        """Takes the figures of a request that is over."""
        self._requests.labels(exchange.route, exchange.model, str(exchange.status)).inc()
        if not exchange.model:
            return
        self._prompt_tokens.labels(exchange.model).inc(exchange.prompt_tokens)
        self._cached_tokens.labels(exchange.model).inc(exchange.cached_tokens)
        self._reply_tokens.labels(exchange.model).inc(exchange.completion_tokens)
        self._duration.labels(exchange.model).observe(exchange.seconds())
        if exchange.first_token is not None:
            self._first.labels(exchange.model).observe(exchange.first_token)

    async def endpoint(self, request: Request) -> Response:
        """Answers a scrape."""
        return Response(generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class _Models:
    """A collector of the runner's state."""

    def __init__(self, models: ModelPool):
        self._models = models

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        loaded = GaugeMetricFamily("mote_model_loaded", "1: in memory", labels=["model"])
        loads = GaugeMetricFamily("mote_model_loads", "How often it was loaded", labels=["model"])
        for model in self._models:
            loaded.add_metric([model.name], model.engine is not None)
            loads.add_metric([model.name], model.num_loads)
        yield loaded
        yield loads
        yield GaugeMetricFamily(
            "mote_model_memory_bytes", "What the models in memory may take", value=self._models.used_bytes()
        )
        for name, (help, value) in MODEL_GAUGES.items():
            family = GaugeMetricFamily(name, help, labels=["model"])
            for model in self._in_memory():
                family.add_metric([model.name], value(model))
            yield family

    def _in_memory(self) -> list[ServedModel]:
        return [model for model in self._models if model.engine is not None]
