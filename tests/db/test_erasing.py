"""Erasing a subject: of fifty marks in everything told of them none is left, and the chain still verifies."""

from dataclasses import replace
from itertools import islice
from uuid import UUID

import pytest

from newton.agent import events
from newton.agent.services.erasure import ErasureService
from newton.brain import ledger
from newton.brain.hash_chain import ChainHead
from newton.clock import ManualClock
from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Database
from newton.dialogue import context_injections, message_queues, response_store, session_close, sessions, tasks
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.messages import Message
from newton.errors import ConflictError, InputError
from newton.heart import documents, episodes
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_store
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.heart.items import item_store
from newton.heart.items.item_store import ItemAddress
from newton.memory.forgetting import forget
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.db.deciding import REDIS, recorded
from tests.db.world import RESPONSE, contexts, live, told
from tests.support import NOON, agent_scope, count, ground, teller
from tests.system.lines import everything

MARKS = [f"zq{number:02}mark" for number in range(50)]


def erasing(db: Database, agent: UUID) -> ErasureService:
    return ErasureService(
        scope=agent_scope(agent_id=agent, origin="cli", db=db, clock=ManualClock(NOON), count_tokens=count)
    )


async def marked(db: Database, agent: UUID) -> None:
    """Mira in all that can tell of her, with a mark each."""
    ctx, left = teller(agent), iter(MARKS)
    async with db.transaction(agent) as tx:
        about = [NewFact(ref=m, content=f"She keeps {m}", valid_from=NOON, subject="Mira") for m in islice(left, 15)]
        named = [NewFact(ref=m, content=f"Ask Mira for {m}", valid_from=NOON) for m in islice(left, 5)]
        await fact_store.add_facts(tx, [*about, *named], ctx=ground(ctx))
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="hall", now=NOON)
        own = [Message(role="user", name="Mira", content=f"I have {next(left)}", said_at=NOON) for _ in range(15)]
        of = [Message(role="user", content=f"Mira wants {next(left)}", said_at=NOON) for _ in range(5)]
        await sessions.append(tx, [*own, *of], session_id=session_id, ctx=ctx)
        await ArtifactWriter(session_id=session_id, ctx=ctx).update(tx)
        await session_close.close_session(tx, session_id=session_id, ctx=ctx)
        await episodes.add_episodes(tx, [replace(told("m1"), content=f"Tea with Mira and {next(left)}")], ctx=ctx)
        line = await tx.fetchval("select memory_id from memory.memories where summary like '%Mira wants%' limit 1")
        await message_queues.save_summary(tx, "long", f"short {next(left)}", memory_id=line, max_tokens=10, ctx=ctx)
        for mark in islice(left, 4):
            await recorded(tx, replace(REDIS, description=f"Mira gets {mark}"), ctx=ctx)
        for mark in left:
            await identity_store.add(tx, "value", f"Always greet Mira with {mark}", edit=IdentityEdit(ctx=ctx))
        await entity_store.index_mentions(tx, ctx=ctx)
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    for mark in MARKS[::10]:
        await contexts(db).build(ContextBuildRequest(agent_id=agent, input=f"what of Mira and {mark}?", tokens=500))


async def left(db: Database, agent: UUID) -> set[str]:
    dump = "\n".join(await everything(db, agent))
    return {mark for mark in MARKS if mark in dump}


async def test_of_an_erased_subject_no_mark_is_left_and_the_chain_verifies(db: Database) -> None:
    # S8
    ana = await live(db, "ana")
    before = len(await everything(db, ana))
    await marked(db, ana)
    assert await left(db, ana) == set(MARKS)
    going = await erasing(db, ana).plan("mira")
    assert "Mira" in going.names and len(going.decisions) == 4 and going.tenets
    with pytest.raises(ConflictError, match="shown"):
        await erasing(db, ana).erase("mira", token="00000000", reason="asked for")
    assert await left(db, ana) == set(MARKS), "looking takes nothing away"
    await erasing(db, ana).erase("mira", token=going.token, reason="asked for")
    assert await left(db, ana) == set()
    async with db.transaction(ana) as tx:
        assert isinstance(await ledger.verify_chain(tx, agent_id=ana, external_head=None), ChainHead)
        assert await tx.fetchval("select count(*) from memory.forgotten where reason = 'asked for'") >= 40
        assert await tx.fetchval("select count(*) from memory.memories where full_text like '%kettle is blue%'") == 1
    assert len(await everything(db, ana)) > before / 2
    with pytest.raises(InputError, match="Nothing"):
        await erasing(db, ana).plan("mira")


async def a_goal(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="desk", now=NOON)
        await tasks.push(tx, "Write to Mira", session_id=session_id, ctx=ctx)


async def a_reason(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="desk", now=NOON)
        await tasks.push(tx, "Write", session_id=session_id, ctx=ctx)
        await tasks.block(tx, "Mira has the pen", session_id=session_id, ctx=ctx)


async def a_part(db: Database, agent: UUID) -> None:
    """A long fact and a long passage that name her in one of their windows."""
    parts = [f"Cup {n} of the shelf is white and has a jam spoon of its own." for n in range(30)]
    text = " ".join([*parts[:20], "Mira broke a cup.", *parts[20:]])
    async with db.transaction(agent) as tx:
        await fact_store.add_facts(tx, [NewFact(ref="1", content=text, valid_from=NOON)], ctx=ground(teller(agent)))
        source = DocumentSource(ref="/cups.md", title="Cups", format="markdown")
        await documents.replace_passages(tx, source, [TextChunk("Cups", text, count(text))], ctx=teller(agent))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    async with db.transaction(agent) as tx:
        named = await tx.fetch(
            "select memory_id, position from memory.windows where text like '%Mira%'"
            " intersect select memory_id, position from memory.window_embeddings"
        )
    assert len(named) == 2


async def a_title(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        source = DocumentSource(ref="/notes/x.md", title="Letters of Mira", format="markdown")
        await documents.replace_passages(tx, source, [TextChunk("On tea", "Warm the pot first.", 6)], ctx=teller(agent))


async def an_item(db: Database, agent: UUID) -> None:
    """A value that names her in the memory, in a field that is not indexed, and in a namespace."""
    about = {"text": "Mira likes jam.", "for": "Mira"}
    async with db.transaction(agent) as tx:
        for namespace, text in ((("a",), "Mira likes jam."), (("b",), None), (("c",), "likes jam"), (("Mira",), None)):
            value = {"text": "jam"} if namespace == ("Mira",) else about
            await item_store.put_item(tx, ItemAddress(namespace, "1"), value, text=text, ctx=teller(agent))


async def an_input(db: Database, agent: UUID) -> None:
    await contexts(db).build(ContextBuildRequest(agent_id=agent, input="What does Mira want?", tokens=500))


async def a_session(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        for ref in ("Mira", "letters to mira"):
            await sessions.ensure_session(tx, agent_id=agent, ref=ref, now=NOON)


async def a_label(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="desk", now=NOON)
        said = Message(role="user", content="Good morning.", said_at=NOON, ref="morning")
        await sessions.append(tx, [said], session_id=session_id, ctx=ctx)
        record = replace(RESPONSE, metadata={"customer": "Mira"})
        await response_store.store(tx, record, ["morning"], session_id=session_id, agent_id=agent)


async def an_injection(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="desk", now=NOON)
        for text in ("Mira has the key.", "Be brief at lunch."):
            await context_injections.add_text(tx, text, session_id=session_id, ctx=ctx, max_tokens=100)


async def a_reason_to_forget(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        told = NewFact(ref="2", content="Tea at four", valid_from=NOON)
        await fact_store.add_facts(tx, [told], ctx=ground(ctx))
        gone = [await fact_store.find_fact_id(tx, told, agent_id=agent)]
        await forget(tx, gone, derived=True, reason="Mira did not like it", ctx=ctx)


PLACES = (a_goal, a_reason, a_part, a_title, an_item, an_input, a_session, a_label, an_injection, a_reason_to_forget)


async def test_what_stands_in_no_memory_is_erased_as_well(db: Database, agent: UUID) -> None:
    # S8
    count = 0
    for place in PLACES:
        await place(db, agent)
        before, count = count, "\n".join(await everything(db, agent)).count("Mira")
        assert count > before, place
    going = await erasing(db, agent).plan("mira")
    await erasing(db, agent).erase("mira", token=going.token, reason="asked for")
    left = "\n".join(await everything(db, agent))
    assert "mira" not in left.lower() and "Warm the pot" not in left and "jam" not in left
    assert "desk" in left and "lunch" in left, "what does not name her stays"
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.forgotten") >= len(PLACES) // 2
        assert not await tx.fetchval("select count(*) from memory.windows")
        assert not await tx.fetchval("select count(*) from memory.window_embeddings")


async def test_a_reason_that_names_the_subject_is_refused(db: Database, agent: UUID) -> None:
    # S8
    await a_goal(db, agent)
    token = (await erasing(db, agent).plan("mira")).token
    with pytest.raises(InputError, match="reason names"):
        await erasing(db, agent).erase("mira", token=token, reason="Mira, she asked for it")


async def test_an_agent_is_taken_away_as_a_whole_and_nobody_else(db: Database) -> None:
    ana, ben = await live(db, "ana"), await live(db, "ben")
    other = await everything(db, ben)
    await erasing(db, ana).erase_agent()
    async with db.transaction(ana) as tx:
        names = [row[0] for row in await tx.fetch("select runtime.agent_tables()::text")]
        full = {name for name in names if await tx.fetchval(f"select count(*) from {name}")}
        told = await events.read_after(tx, 0, agent_id=ana)
    assert full == {"runtime.agents", "runtime.tokens", "runtime.events"}
    assert [(one.number, one.type) for one in told] == [(2, "agent.erased")]  # who resumes behind 1 hears of it
    assert await everything(db, ben) == other
