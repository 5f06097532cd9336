"""Prometheus metrics: requests, the quality of the loaded agents, and their LLM tokens."""

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily

from newton.agent.llm import usage
from newton.clock import monotonic_ms
from newton.cognition.metrics.metrics import QualityMetric
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.wiring import AgentServices

PERIOD_DAYS = 7
CACHE_MS = 60_000  # lifetime of the cached quality metrics, which are computed from a week of rows
DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class AgentQualitySample(NamedTuple):
    """The quality metrics of one agent, and its LLM tokens of today."""

    agent: str
    metrics: tuple[QualityMetric, ...]
    tokens_today: int


class PrometheusMetrics:
    """The metrics of one process. It is a Prometheus collector of the quality metrics."""

    def __init__(self, agents: AgentRegistry) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "newton_http_requests", "HTTP requests.", ["method", "route", "status"], registry=self.registry
        )
        self.durations = Histogram(
            "newton_http_request_duration_seconds",
            "Duration of HTTP requests.",
            ["method", "route"],
            buckets=DURATION_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge("newton_http_requests_in_flight", "HTTP requests in progress.", registry=self.registry)
        self._agents = agents
        self._samples: list[AgentQualitySample] = []
        self._sampled_at: float | None = None
        self.registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the cached metrics of the agents."""
        quality = GaugeMetricFamily(
            "newton_agent_quality", "Quality metrics of the last 7 days.", labels=["agent", "metric", "unit"]
        )
        tokens = GaugeMetricFamily("newton_llm_tokens_today", "LLM tokens since midnight UTC.", labels=["agent"])
        for sample in self._samples:
            tokens.add_metric([sample.agent], sample.tokens_today)
            for metric in sample.metrics:
                if metric.value is not None:
                    quality.add_metric([sample.agent, metric.name, metric.unit], metric.value)
        yield quality
        yield tokens

    async def render(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        if self._sampled_at is None or monotonic_ms() - self._sampled_at > CACHE_MS:
            self._samples = [await _sample_agent(newton) for newton in self._agents.loaded_agents]
            self._sampled_at = monotonic_ms()
        return generate_latest(self.registry)


async def _sample_agent(newton: AgentServices) -> AgentQualitySample:
    report = await newton.metrics().report(PERIOD_DAYS)
    async with newton.scope.transaction() as tx:
        tokens = await usage.count_tokens_today(tx, agent_id=newton.scope.agent_id, now=newton.scope.now())
    return AgentQualitySample(newton.settings.agent, tuple(report.metrics), tokens)
