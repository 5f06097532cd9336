"""Figures for Prometheus: of the requests, and of how well the agents at hand are served."""

from collections.abc import Iterator
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily

from newton.agent import ledger
from newton.clock import stopwatch
from newton.cognition.metrics import Figure
from newton.runtime.api.caller import Reader
from newton.runtime.minds import Minds
from newton.runtime.wiring import Newton

router = APIRouter(tags=["health"])

DAYS = 7
FRESH_MS = 60_000  # figures of a week are not computed anew for each scrape
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Served(NamedTuple):
    """How one agent is served, and the tokens that models cost it today."""

    agent: str
    figures: tuple[Figure, ...]
    spent: int


class Meters:
    """What one process counts."""

    def __init__(self, minds: Minds) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "newton_http_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self.durations = Histogram(
            "newton_http_request_seconds",
            "Seconds until a request was over.",
            ["method", "route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge("newton_http_in_flight", "Requests that are not over.", registry=self.registry)
        self._minds = minds
        self._served: list[Served] = []
        self._at: float | None = None
        self.registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The figures of the agents, as they were computed last; how a figure is named is how people are told it."""
        figures = GaugeMetricFamily("newton_served", "A figure of the last 7 days.", labels=["agent", "figure", "unit"])
        spent = GaugeMetricFamily("newton_spent_tokens", "Tokens of models since midnight UTC.", labels=["agent"])
        for one in self._served:
            spent.add_metric([one.agent], one.spent)
            for figure in one.figures:
                if figure.value is not None:
                    figures.add_metric([one.agent, figure.name, figure.unit], figure.value)
        yield figures
        yield spent

    async def page(self) -> bytes:
        """All of it as Prometheus reads it."""
        if self._at is None or stopwatch() - self._at > FRESH_MS:
            self._served = [await _served(newton) for newton in self._minds.at_hand]
            self._at = stopwatch()
        return generate_latest(self.registry)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request, caller: Reader) -> Response:
    """Requests, durations, and how well each agent of this process is served. For the operator's token alone."""
    caller.must_operate("These figures are of all agents.")
    meters: Meters = request.app.state.meters
    return Response(await meters.page(), media_type=CONTENT_TYPE_LATEST)


async def _served(newton: Newton) -> Served:
    found = await newton.measuring().days(DAYS)
    async with newton.scope.transaction() as tx:
        spent = await ledger.spent(tx, agent_id=newton.scope.agent_id, now=newton.scope.now())
    return Served(newton.settings.agent, tuple(found.figures), spent)
