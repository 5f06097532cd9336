"""Prometheus metrics: HTTP requests, failed parts and answers of models, and figures on each loaded agent."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from newton.agent.llm import usage
from newton.agent.llm.failing_models import list_failing_models
from newton.agent.llm.structured import count_answers
from newton.agent.reconciliation.proposal_log import count_outcomes
from newton.clock import monotonic_ms
from newton.dialogue.compaction import entry_store
from newton.fault_isolation import count_failures
from newton.runtime.agent_registry import AgentRegistry

PERIOD_DAYS = 7
COMPACTION_FIGURES = ("runs", "failed", "saved", "spent", "mean_ms", "entries", "restored", "reread", "factor")
CACHE_MS = 60_000  # lifetime of the cached quality metrics, which are computed from a week of rows
DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class PrometheusMetrics:
    """The Prometheus metrics of this process, and a collector of the quality metrics of its agents."""

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
        self.ui_tasks = Counter(
            "newton_ui_tasks",
            "Requests, such as for titles, that chat programs send by themselves.",
            ["task"],
            registry=self.registry,
        )
        self.in_flight = Gauge("newton_http_requests_in_flight", "HTTP requests in progress.", registry=self.registry)
        self._agents = agents
        self._sampled: list[GaugeMetricFamily] = []
        self._sampled_at: float | None = None
        self.registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the counts of failed parts and of answers of models, and the agents' metrics as last sampled.

        The Prometheus library calls this.
        """
        failures = CounterMetricFamily(
            "newton_failed_parts", "Parts of turns and requests that failed.", labels=["part", "error"]
        )
        for names, count in count_failures().items():
            failures.add_metric(names, count)
        yield failures
        answers = CounterMetricFamily(
            "newton_structured_answers",
            "Answers of models in the background: complete, incomplete or unusable.",
            labels=["purpose", "result"],
        )
        for names, count in count_answers().items():
            answers.add_metric(names, count)
        yield answers
        yield from self._sampled

    async def render(self) -> bytes:
        """Return all metrics in the Prometheus text format. Read those of the agents again after `CACHE_MS`."""
        if self._sampled_at is None or monotonic_ms() - self._sampled_at > CACHE_MS:
            self._sampled = await self._sample_agents()
            self._sampled_at = monotonic_ms()
        return generate_latest(self.registry)

    async def _sample_agents(self) -> list[GaugeMetricFamily]:
        labels = ["agent", "metric", "unit"]
        quality = GaugeMetricFamily(
            "newton_agent_quality", "Quality metrics of contexts in the last 7 days.", labels=labels
        )
        tokens = GaugeMetricFamily(
            "newton_llm_tokens_today", "Tokens of model calls since midnight UTC.", labels=["agent"]
        )
        compactions = GaugeMetricFamily(
            "newton_compactions", "Compactions by strategy, all sessions.", labels=["agent", "strategy", "figure"]
        )
        failing = GaugeMetricFamily(
            "newton_failing_models",
            "Calls in a row in the background that a model failed.",
            labels=["agent", "purpose", "model"],
        )
        proposals = GaugeMetricFamily(
            "newton_proposed_changes",
            "The latest changes of memory that a model proposed, kept or dropped by reason.",
            labels=["agent", "model", "outcome"],
        )
        for newton in self._agents.loaded_agents:
            agent, scope = newton.settings.agent, newton.scope
            for metric in (await newton.metrics().report(PERIOD_DAYS)).metrics:
                if metric.value is not None:
                    quality.add_metric([agent, metric.name, metric.unit], metric.value)
            async with scope.transaction() as tx:
                count = await usage.count_tokens_today(tx, agent_id=scope.agent_id, now=scope.now())
                for one in await list_failing_models(tx, agent_id=scope.agent_id):
                    failing.add_metric([agent, one.purpose, one.model], one.calls)
                for names, items in (await count_outcomes(tx, agent_id=scope.agent_id, now=scope.now())).items():
                    proposals.add_metric([agent, *names], items)
                stats = await entry_store.list_run_stats(tx, agent_id=scope.agent_id, session_id=None)
            tokens.add_metric([agent], count)
            for one in stats:
                for figure in COMPACTION_FIGURES:
                    compactions.add_metric([agent, one.strategy, figure], getattr(one, figure))
        return [quality, tokens, compactions, failing, proposals]
