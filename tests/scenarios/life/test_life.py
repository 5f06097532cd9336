"""Six weeks of one life, by every interface, without and with a model."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from newton.brain.hash_chain import ChainHeadFiles
from newton.clock import ManualClock
from newton.cognition.frames.training import load_or_train
from newton.cognition.metrics.metrics import QualityMetric
from newton.db.pool import Database
from newton.memory import agents
from newton.providers import token_counter
from newton.providers.minilm import MiniLM
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.endpoint import endpoint
from tests.scenarios.conftest import Mind, load_minilm
from tests.scenarios.life.life import Ending, Life, begin_life, check, live
from tests.scenarios.life.model import play_model
from tests.scenarios.life.story import FIRST_MONDAY, INTERFACES, count_acts, list_matters, load_story
from tests.support import agent_scope
from tests.system.served import OPERATOR, serving

STORY = load_story()
MATTERS = list_matters(STORY)
MISSED_WITHOUT_MODEL, STALE_WITHOUT_MODEL = 9, 5  # of 60 matters; the statement classifier favours precision


@asynccontextmanager
async def open_registry(
    db: Database, clock: ManualClock, embedder: MiniLM, home: Path, **settings: str
) -> AsyncGenerator[tuple[AgentRegistry, str]]:
    owner = await agents.get_or_create_agent(db, "default", now=clock.now())
    made = Mind(db, owner, clock, embedder, ChainHeadFiles(home, "here")).contexts
    classifier = await load_or_train(made.frames, embedder, cache=home)
    made = replace(made, classifier=classifier)
    scope = agent_scope(agent_id=owner, db=db, clock=clock, count_tokens=token_counter.count, embedder=embedder)
    chosen = load({"data_dir": home, "bundle_retention_days": 0, "quote_without_model": True, **settings})
    newton = AgentServices(
        settings=chosen,
        models=ModelDirectory(chosen),
        configured_embedder=embedder,
        frames=made.frames,
        profiles=made.profiles,
        context_builder=made,
        scope=scope,
    )
    registry = AgentRegistry(newton)
    with capture_logs():
        async with serving(create_app(registry, operator_token=OPERATOR)) as url:
            yield registry, url


def test_the_story_has_sixty_matters_and_twenty_five_changes() -> None:
    assert (len(MATTERS), sum(len(matter.values) - 1 for matter in MATTERS)) == (60, 25)
    assert {session.by for session in STORY} == set(INTERFACES)


@pytest.mark.slow
@pytest.mark.parametrize("with_model", [False, True], ids=["without a model", "with a model"])
async def test_six_weeks_of_one_life(
    db: Database, tmp_path: Path, record_property: Callable[[str, object], None], *, with_model: bool
) -> None:
    # S002-16, S002-17, S002-18, S002-22; docs/benchmarks.md has the figures, and the targets that are missed
    clock = ManualClock(FIRST_MONDAY)
    async with AsyncExitStack() as stack:
        settings = dict[str, str]()
        if with_model:
            model = await stack.enter_async_context(endpoint(play_model(STORY, MATTERS)))
            settings = {"openai_base_url": model.url, "openai_model": "scripted"}
        registry, url = await stack.enter_async_context(open_registry(db, clock, load_minilm(), tmp_path, **settings))
        life = await stack.enter_async_context(begin_life(registry, url, clock, "marta"))
        await live(STORY, clock, [life])
        ending = await life.end()
        check_facts(ending, with_model=with_model)
        await check_episodes(life)
        await check_prohibitions(life)
        await check_procedures(life)
        figures = {one.name: one for one in (await life.newton.metrics().report(43)).metrics}
        check_figures(figures, with_model=with_model)
    for name, figure in figures.items():
        record_property(name, figure.value)


def check_facts(ending: Ending, *, with_model: bool) -> None:
    """Check what is current. The floors are the figures as they are: a lower one is a regression."""
    found = check(ending, MATTERS)
    # Told in two ways: we moved to the house, and we live in it; I sold the Volvo and drive a Kia, and I drive a Kia. A
    # model's confirmation does not merge the latter, as the earlier statement says more than the later one.
    assert set(found.repeated) <= ({"car"} if with_model else {"home", "car"}), found.repeated
    if with_model:
        assert found.missing == []
        assert set(found.stale) <= {"lotte-teacher"}, "it was told of 'her'"
    else:
        assert len(found.missing) <= MISSED_WITHOUT_MODEL, found.missing
        assert len(found.stale) <= STALE_WITHOUT_MODEL, found.stale
    newest = {text for matter in MATTERS for text in matter.newest}
    alone = [
        matter.key for matter in MATTERS if not any(text in ending.current for text in (*matter.newest, *matter.older))
    ]
    assert not [key for key in alone if key not in found.missing]
    twice = {text for matter in MATTERS if len(matter.newest) > 1 for text in matter.newest}
    assert not (ending.superseded & newest) - twice, "no newest value is replaced"


async def check_episodes(life: Life) -> None:
    """Check that each session has its episode, and that there are no others than those of tasks that ended."""
    async with life.newton.scope.transaction() as tx:
        total = await tx.fetchval("select count(*) from heart.episodes")
        rows = await tx.fetch(
            "select distinct s.ref from dialogue.sessions as s join heart.episodes as e using (agent_id, session_id)"
        )
    assert {row["ref"] for row in rows} == {session.name for session in STORY}
    assert total == len(STORY) + count_acts(STORY, "task")


async def check_prohibitions(life: Life) -> None:
    contexts = await life.contexts()
    assert all(one["identical"] for one in contexts)
    for reason, since in life.forbidden.items():
        later = [one for one in contexts if datetime.fromisoformat(one["created_at"]) > since]
        assert len(later) > 50
        assert not [one["input"] for one in later if reason not in one["text"]]


async def check_procedures(life: Life) -> None:
    (wheel,) = (await life.http.procedures())["items"]
    assert (wheel["activations"], wheel["successes"], wheel["failures"]) == (3, 2, 1)


def check_figures(figures: Mapping[str, QualityMetric], *, with_model: bool) -> None:
    """Check the figures of the targets; those that are missed have a floor below what is measured."""
    values = {name: figure.value or 0.0 for name, figure in figures.items()}
    again = {line.say for one in STORY for line in one.lines if line.act == "again"}
    assert figures["cold start, p95"].sample_size > 20  # most turns add to a context or keep it
    assert figures["procedures succeeded"].value == pytest.approx(2 / 3)
    assert figures["censors right"].sample_size == 0, "no act was near what is forbidden"
    # With a model, contexts hold fewer and more relevant memories: they use less of the budget, and cover the next
    # input less often.
    assert values["context relevance"] > (0.5 if with_model else 0.35)
    assert values["budget utilisation"] > (0.025 if with_model else 0.03)
    assert values["facts confirmed"] > (0.13 if with_model else 0.12), f"{len(again)} statements are told again"
    if with_model:
        assert values["refresh rate"] < 0.7
        assert values["recall precision"] > 0.005


@pytest.mark.slow
async def test_the_same_life_ends_the_same_by_every_interface(db: Database, tmp_path: Path) -> None:
    # S002-16
    clock = ManualClock(FIRST_MONDAY)
    async with open_registry(db, clock, load_minilm(), tmp_path) as (registry, url), AsyncExitStack() as stack:
        lives = [
            await stack.enter_async_context(begin_life(registry, url, clock, f"by-{one}", one)) for one in INTERFACES
        ]
        await live(STORY, clock, lives)
        endings = {one: await life.end() for one, life in zip(INTERFACES, lives, strict=True)}
        for life in lives:
            await check_episodes(life)
            await check_prohibitions(life)
    assert [one for one, end in endings.items() if end != endings["chat"]] == []
