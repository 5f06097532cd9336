"""Six weeks of one life, by every interface, without and with a model."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from newton.clock import ManualClock
from newton.cognition.frames.training import load_or_train
from newton.db.pool import Database
from newton.memory import agents
from newton.providers import token_counter
from newton.providers.minilm import MiniLM
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.endpoint import endpoint
from tests.scenarios.conftest import Mind
from tests.scenarios.life.life import Life, begin_life, check, live
from tests.scenarios.life.model import play_model
from tests.scenarios.life.story import FIRST_MONDAY, INTERFACES, list_matters, load_story
from tests.support import agent_scope
from tests.system.served import OPERATOR, serving

STORY = load_story()
MATTERS = list_matters(STORY)


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@asynccontextmanager
async def open_registry(
    db: Database, clock: ManualClock, embedder: MiniLM, home: Path, **settings: str
) -> AsyncGenerator[tuple[AgentRegistry, str]]:
    owner = await agents.get_or_create_agent(db, "default", now=clock.now())
    made = Mind(db, owner, clock, embedder).contexts
    classifier = await load_or_train(made.frames, embedder, cache=home)
    made = replace(made, classifier=classifier)
    scope = agent_scope(agent_id=owner, db=db, clock=clock, count_tokens=token_counter.count, embedder=embedder)
    newton = AgentServices(
        settings=load({"data_dir": home, "bundle_retention_days": 0, **settings}),
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
@pytest.mark.parametrize("with_model", [False, True])
async def test_six_weeks(db: Database, minilm: MiniLM, tmp_path: Path, *, with_model: bool) -> None:
    clock = ManualClock(FIRST_MONDAY)
    async with AsyncExitStack() as stack:
        settings = dict[str, str]()
        if with_model:
            model = await stack.enter_async_context(endpoint(play_model(STORY, MATTERS)))
            settings = {"openai_base_url": model.url, "openai_model": "scripted"}
        registry, url = await stack.enter_async_context(open_registry(db, clock, minilm, tmp_path, **settings))
        life = await stack.enter_async_context(begin_life(registry, url, clock, "marta"))
        await live(STORY, clock, [life])
        await show(life)


async def show(life: Life) -> None:
    ending = await life.end()
    print(check(ending, MATTERS))
    print("CURRENT", *ending.current, sep="\n  ")
    print("SUPERSEDED", *sorted(ending.superseded), sep="\n  ")
    print("CONTESTED", *sorted(ending.contested), sep="\n  ")
    print("episodes", await life.count("select count(*) from heart.episodes"))
    contexts = await life.contexts()
    print(len(contexts), sum(one["identical"] for one in contexts))
    for reason, since in life.forbidden.items():
        later = [one for one in contexts if one["created_at"] > since.isoformat()]
        print(reason, len(later), sum(reason in one["text"] for one in later))
    print(await life.http.procedures())
    for metric in (await life.newton.metrics().report(43)).metrics:
        print(metric.name, metric.value, metric.n, metric.verdict)
    async with life.newton.scope.transaction() as tx:
        for row in await tx.fetch(
            "select s.ref, m.role, m.content from dialogue.sessions s join dialogue.messages m using (agent_id, session_id)"
            " order by s.session_id, m.position"
        ):
            print("   ", *row)
        for row in await tx.fetch(
            "select stage, activated_at, c.trigger from heart.activations a join heart.censors c using (agent_id, memory_id)"
        ):
            print("   ", *row)
        for row in await tx.fetch("select method, reason, answered_by, count(*) from cognition.turns group by 1,2,3"):
            print("   ", *row)


@pytest.mark.slow
async def test_every_interface_alone_ends_the_same(db: Database, minilm: MiniLM, tmp_path: Path) -> None:
    clock = ManualClock(FIRST_MONDAY)
    async with open_registry(db, clock, minilm, tmp_path) as (registry, url), AsyncExitStack() as stack:
        lives = [
            await stack.enter_async_context(begin_life(registry, url, clock, f"by-{one}", one)) for one in INTERFACES
        ]
        await live(STORY, clock, lives)
        endings = {one: await life.end() for one, life in zip(INTERFACES, lives, strict=True)}
    first = endings["chat"]
    for one, end in endings.items():
        print(one, len(end.current), check(end, MATTERS))
        print("   now", sorted(set(end.current) ^ set(first.current)))
        print("   sup", sorted(end.superseded ^ first.superseded))
        print("   con", sorted(end.contested ^ first.contested))
