"""Figures for Prometheus: of the requests, and of how well the agents at hand are served."""

from collections.abc import Iterator
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily

from newton.agent.llm import usage
from newton.clock import monotonic_ms
from newton.cognition.metrics.metrics import QualityMetric
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import ReadAccess
from newton.runtime.wiring import AgentServices

router = APIRouter(tags=["health"])

PERIOD_DAYS = 7
CACHE_MS = 60_000  # figures of a week are not computed anew for each scrape
DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class AgentQualitySample(NamedTuple):
    """How one agent is served, and the tokens that models cost it today."""

    agent: str
    metrics: tuple[QualityMetric, ...]
    tokens_today: int


class PrometheusMetrics:
    """What one process counts."""

    def __init__(self, agents: AgentRegistry) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "newton_http_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self.durations = Histogram(
            "newton_http_request_seconds",
            "Seconds until a request was over.",
            ["method", "route"],
            buckets=DURATION_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge("newton_http_in_flight", "Requests that are not over.", registry=self.registry)
        self._agents = agents
        self._samples: list[AgentQualitySample] = []
        self._sampled_at: float | None = None
        self.registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The figures of the agents, as they were computed last; how a figure is named is how people are told it."""
        figures = GaugeMetricFamily("newton_served", "A figure of the last 7 days.", labels=["agent", "figure", "unit"])
        spent = GaugeMetricFamily("newton_spent_tokens", "Tokens of models since midnight UTC.", labels=["agent"])
        for one in self._samples:
            spent.add_metric([one.agent], one.tokens_today)
            for figure in one.metrics:
                if figure.value is not None:
                    figures.add_metric([one.agent, figure.name, figure.unit], figure.value)
        yield figures
        yield spent

    async def render(self) -> bytes:
        """All of it as Prometheus reads it."""
        if self._sampled_at is None or monotonic_ms() - self._sampled_at > CACHE_MS:
            self._samples = [await _sample_agent(newton) for newton in self._agents.loaded_agents]
            self._sampled_at = monotonic_ms()
        return generate_latest(self.registry)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def get_metrics(request: Request, caller: ReadAccess) -> Response:
    """Requests, durations, and how well each agent of this process is served. For the operator's token alone."""
    caller.require_operator("These figures are of all agents.")
    meters: PrometheusMetrics = request.app.state.metrics
    return Response(await meters.render(), media_type=CONTENT_TYPE_LATEST)


async def _sample_agent(newton: AgentServices) -> AgentQualitySample:
    found = await newton.metrics().report(PERIOD_DAYS)
    async with newton.scope.transaction() as tx:
        spent = await usage.count_tokens_today(tx, agent_id=newton.scope.agent_id, now=newton.scope.now())
    return AgentQualitySample(newton.settings.agent, tuple(found.metrics), spent)
