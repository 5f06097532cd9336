"""A week of use, and what the metrics say of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from newton.cognition.frames.training import load_or_train
from newton.cognition.metrics.metrics import QualityMetric
from newton.providers.minilm import MiniLM
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.scenarios.conftest import Mind
from tests.scenarios.week import MORNING, Week
from tests.support import NOON


def whole(mind: Mind, tmp_path: Path, *, context_tokens: int = 8_000) -> AgentServices:
    mind.clock.advance(MORNING - NOON)
    contexts = mind.contexts
    settings = load({"data_dir": tmp_path, "context_tokens": context_tokens})
    return AgentServices(
        settings=settings,
        models=ModelDirectory(settings),
        configured_embedder=mind.embedder,
        frames=contexts.frames,
        profiles=contexts.profiles,
        context_builder=contexts,
        scope=mind.scope,
    )


async def lived(newton: AgentServices, week: Week) -> Mapping[str, QualityMetric]:
    await week.live()
    return {figure.name: figure for figure in (await newton.metrics().report(week.days + 1)).metrics}


@pytest.mark.slow
async def test_two_days_of_use_are_measured_as_they_were(mind: Mind, tmp_path: Path) -> None:
    # S002-22: every figure is there, from as many things as there were
    newton = whole(mind, tmp_path)
    week = Week(newton, mind.clock, days=2, topics=1)
    figures = await lived(newton, week)
    made = {answer.bundle.bundle_id: answer.bundle for answer in week.answers}
    assert figures["budget utilisation"].n == len(made)
    assert figures["budget utilisation"].value == pytest.approx(
        sum(bundle.tokens / bundle.budget for bundle in made.values()) / len(made)
    )
    assert figures["refresh rate"].n == len(week.answers) - 3, "three sessions, each with a first turn"
    items = [item for bundle in made.values() for item in bundle.items]
    assert figures["context relevance"].value == pytest.approx(
        sum(item.features["probability"] for item in items) / len(items), abs=1e-4
    )
    assert (figures["facts confirmed"].n, figures["facts confirmed"].value) == (11, pytest.approx(1 / 11))
    assert (figures["recall precision"].value or 0.0) > 0.2


@pytest.mark.slow
async def test_a_week_with_the_real_embedder(mind: Mind, tmp_path: Path) -> None:
    """The targets that hold are held; docs/benchmarks.md has the others, and why."""
    # S002-22
    mind.embedder = await asyncio.to_thread(MiniLM)
    newton = whole(mind, tmp_path)
    likeness = await load_or_train(newton.frames, mind.embedder, cache=tmp_path)
    newton = replace(newton, context_builder=replace(newton.context_builder, classifier=likeness))
    figures = await lived(newton, Week(newton, mind.clock))
    for name in ("cold start, p95", "facts confirmed"):
        assert figures[name].verdict == "ok", figures[name]
    assert (figures["context relevance"].value or 0.0) > 0.35
    assert (figures["recall precision"].value or 0.0) > 0.18
    assert (figures["memories a day"].value or 0.0) > 30
    mind.clock.advance(timedelta(days=30))
    assert {figure.n for figure in (await newton.metrics().report(7)).metrics if figure.sample_unit != "facts"} == {0}
