"""What the agent's tools did is in a context when it is asked about, in its session and in others, else not."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from statistics import mean

import pytest
from structlog.testing import capture_logs

from newton.client import Client
from newton.providers.embedding import Embedder
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from tests.observing import Way, load_situations, measure
from tests.scenarios.conftest import Mind, load_minilm, newton
from tests.system.served import OPERATOR, serving

FEW, EVERY = slice(0, None, 4), slice(0, None)


@asynccontextmanager
async def spoken_to(mind: Mind, embedder: Embedder) -> AsyncGenerator[Client]:
    """The mind behind the HTTP API, with this embedder."""
    minds = AgentRegistry(newton(replace(mind, embedder=embedder), embedder))
    with capture_logs():
        async with (
            serving(create_app(minds, operator_token=OPERATOR)) as url,
            Client(url, token=OPERATOR, max_attempts=1) as client,
        ):
            yield client


@pytest.mark.parametrize(
    ("name", "part", "way"),
    [
        pytest.param("observations", FEW, "events", marks=pytest.mark.slow),
        ("observations_last", FEW, "messages"),
        *(
            pytest.param(name, EVERY, way, marks=pytest.mark.slow)
            for name in ("observations", "observations_last")
            for way in ("events", "messages")
        ),
    ],
)
async def test_the_right_observation_is_in_the_context_and_hardly_any_for_another_question(
    mind: Mind, name: str, part: slice, way: Way
) -> None:
    # S001-28: in its session at once, in another one by relevance, above all for a repair
    situations, unrelated = load_situations(name)
    async with spoken_to(mind, load_minilm()) as client:
        found = await measure(client, situations[part], unrelated[part], way)
    assert mean(found.same.values()) >= 0.95, [name for name, has in found.same.items() if not has]
    assert mean(found.other.values()) >= 0.8, [name for name, has in found.other.items() if not has]
    assert mean(many <= 1 for many in found.unrelated_same) >= 0.9, found.unrelated_same
    assert mean(many <= 1 for many in found.unrelated_other) >= 0.9, found.unrelated_other
