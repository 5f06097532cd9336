"""The same request is given the same context for half a minute, unless anything is written, through whatever door."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.inventory.memory_edits import FieldChanges, MemoryEditor
from newton.agent.llm import usage
from newton.agent.llm.usage import UsageRecord
from newton.agent.services.memories import FactDraft
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Tx
from newton.heart.censors import CensorRule
from newton.ids import new_id
from newton.memory.agents import get_or_create_agent
from newton.providers.chat import ChatReply
from newton.providers.embedding import Vector
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from tests.db.deciding import REDIS, recorded
from tests.scenarios.conftest import Mind
from tests.scenarios.test_curation import curation, upkeep
from tests.support import NOON, teller

Door = Callable[[Mind, UUID], Awaitable[object]]


def editor(mind: Mind) -> MemoryEditor:
    return MemoryEditor(scope=mind.scope, author="Ana")


def request(mind: Mind, **changed: object) -> ContextBuildRequest:
    plain = ContextBuildRequest(agent_id=mind.agent_id, input="What is the ferry called?", tokens=2_000)
    return replace(plain, **changed)  # pyright: ignore[reportArgumentType]  # named fields


async def twice(
    contexts: ContextBuilder, one: ContextBuildRequest, other: ContextBuildRequest | None = None
) -> tuple[Bundle, Bundle]:
    return await contexts.build(one), await contexts.build(other or one)


async def undisturbed(happens: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it happens in one of ten tries: a write in any database of the server, as by a daemon of another test or
    by its autovacuum, makes a context anew too."""
    for _ in range(10):
        if await happens():
            return True
    return False


async def test_the_same_request_is_given_the_same_context_also_after_another_one(mind: Mind) -> None:
    # S001-32: not even one of a session, or of another cache, whose memories count as used, ends it
    await mind.know("The ferry is called Artemis.")
    contexts, session_id = mind.contexts, await mind.session()

    async def is_same() -> bool:
        first, second = await twice(contexts, request(mind))
        for session in (None, session_id):
            await mind.contexts.build(request(mind, session_id=session), records_access=True)
        return await contexts.build(request(mind)) is second is first

    assert await undisturbed(is_same), "with its id, and nothing new is stored"


async def test_several_requests_are_each_given_their_context_again(mind: Mind) -> None:
    # S001-32: to keep a context is no write that another one depends on
    await mind.know("The ferry is called Artemis.")
    contexts, asked = mind.contexts, [request(mind, tokens=tokens) for tokens in (500, 1_000, 2_000)]
    first = list[Bundle]()

    async def are_same() -> bool:
        first[:] = [await contexts.build(one) for one in asked]
        return [await contexts.build(one) for one in asked] == first

    assert await undisturbed(are_same)
    assert len({bundle.bundle_id for bundle in first}) == 3
    await mind.know("The pier is green.")
    late = await contexts.build(asked[0])
    assert late is not first[0]
    assert await contexts.build(asked[1]) is not first[1], (
        "what was kept before a write is not given with what came after"
    )

    async def is_same() -> bool:
        return await contexts.build(asked[0]) is await contexts.build(asked[0])

    assert await undisturbed(is_same)


async def test_after_half_a_minute_it_is_made_anew(mind: Mind) -> None:
    # S001-32: a life of 30 seconds
    contexts = mind.contexts

    async def lives(seconds: int) -> bool:
        mind.clock.advance(timedelta(seconds=60))
        first = await contexts.build(request(mind))
        mind.clock.advance(timedelta(seconds=seconds))
        return await contexts.build(request(mind)) is first

    assert await undisturbed(lambda: lives(30))
    assert not await undisturbed(lambda: lives(31))


async def test_another_request_is_another_context_and_in_a_session_every_one_is_made(mind: Mind) -> None:
    # S001-32: any option invalidates
    others: list[dict[str, object]] = [
        *({"input": "What is the harbour called?"}, {"tokens": 1_999}, {"frame": "debug"}),
        *({"profile": "balanced"}, {"adaptive_budget": True}, {"as_of": NOON}),
    ]
    for changed in others:
        first, second = await twice(mind.contexts, request(mind), request(mind, **changed))
        assert first is not second, changed
    first, second = await twice(mind.contexts, request(mind, session_id=await mind.session()))
    assert first is not second


def write(work: Callable[[Tx, Mind], Awaitable[object]]) -> Door:
    async def through(mind: Mind, _: UUID) -> None:
        async with mind.db.transaction(mind.agent_id) as tx:
            await work(tx, mind)

    return through


REPLY = ChatReply(text="yes", model="scripted", input_tokens=1, output_tokens=1, estimated=True)
DOORS: dict[str, Door] = {
    "remember": lambda mind, _: mind.verbs.remember(FactDraft(content="The pier is green.")),
    "tell again": lambda mind, _: mind.verbs.remember(FactDraft(content="The pier is green.")),
    "relive": lambda mind, _: mind.verbs.remember_episode("We sailed.", title="Sailing"),
    "recall": lambda mind, _: mind.verbs.recall("ferry", limit=1),
    "read": lambda mind, fact: mind.verbs.record_access([fact]),
    "confirm": lambda mind, fact: curation(mind).confirm(str(fact)),
    "mark": lambda mind, fact: editor(mind).edit(str(fact), FieldChanges(core=True)),
    "supersede": lambda mind, fact: curation(mind).supersede(str(fact), "It is called Hermes."),
    "retract": lambda mind, fact: curation(mind).retract(str(fact)),
    "forget": lambda mind, fact: curation(mind).forget([str(fact)], include_derived=False, reason="a test"),
    "declare": lambda mind, _: curation(mind).set_cardinality("email", single_valued=False),
    "a line of dialogue": lambda mind, _: mind.hear("Hello there"),
    "a session": lambda mind, _: mind.session("another"),
    "a censor": lambda mind, _: mind.censors.add(CensorRule(trigger="sail at night", reason="the rocks")),
    "upkeep": lambda mind, _: upkeep(mind).process_pending(),
    "a decision": write(lambda tx, mind: recorded(tx, REDIS, ctx=teller(mind.agent_id))),
    "the ledger of tokens": write(
        lambda tx, mind: usage.record(tx, UsageRecord(REPLY, "turn"), agent_id=mind.agent_id, now=NOON)
    ),
}


# What clients do all day; the others may end it too, as their writes are not known to be another agent's.
OTHERS_DOORS = ("remember", "relive", "recall", "read", "confirm", "retract", "a line of dialogue")


async def test_whatever_is_written_through_whatever_door_ends_it(mind: Mind) -> None:
    # S001-32: any write invalidates
    contexts = mind.contexts
    for number, (door, used) in enumerate(DOORS.items()):
        fact = (await mind.verbs.remember(FactDraft(content=f"Ferry {number} is called Artemis."))).memory_id

        async def is_same() -> bool:
            first, second = await twice(contexts, request(mind))
            return first is second

        assert await undisturbed(is_same), door
        first = await contexts.build(request(mind))
        await used(mind, fact)
        assert await contexts.build(request(mind)) is not first, door


@pytest.mark.one_server("the coordinator does not know of which agent a transaction on a node is")
async def test_what_another_agent_writes_does_not_end_it(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis.")
    contexts = mind.contexts
    other = replace(mind, agent_id=await get_or_create_agent(mind.db, "another", now=NOON))

    async def is_same() -> bool:
        first = await contexts.build(request(mind))
        for door in OTHERS_DOORS:
            fact = (await other.verbs.remember(FactDraft(content=f"A ferry of {new_id()}."))).memory_id
            await DOORS[door](other, fact)
        await other.context("Something else?")
        return await contexts.build(request(mind)) is first

    assert await undisturbed(is_same)


async def test_what_is_written_while_a_context_is_made_keeps_it_from_being_given_again(mind: Mind) -> None:
    # S001-32: what it was made from may have been older than the write
    await mind.know("The ferry is called Artemis.")
    reached, go_on = asyncio.Event(), asyncio.Event()

    class Slow(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            reached.set()
            await go_on.wait()
            return await super().embed(texts)

    contexts = replace(mind.contexts, embedder=Slow())
    making = asyncio.create_task(contexts.build(request(mind)))
    async with asyncio.timeout(60):
        await reached.wait()
    await mind.hear("The ferry is called Hermes from now on")
    go_on.set()
    first = await making
    assert await contexts.build(request(mind)) is not first


async def test_what_was_made_while_a_source_was_down_is_not_given_again(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis.")
    contexts = mind.contexts
    poor = await replace(contexts, embedder=BrokenEmbedder()).build(request(mind))
    again = await contexts.build(request(mind))
    assert "embeddings" in poor.missing
    assert not again.missing
