"""The working set at rest: a cache that is filled, read and emptied; no memory is lost with it."""

from datetime import timedelta
from uuid import UUID

import pytest

from newton.cognition import working_set
from newton.cognition.working_set import SessionScope
from newton.db.pool import Database, Tx
from newton.dialogue import sessions
from newton.errors import NotFoundError
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.memory.forgetting import forget
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.db.world import desk
from tests.support import ANA, NOON, count, ground, teller

HOUR = timedelta(hours=1)


async def known(tx: Tx, agent_id: UUID, *contents: str, importance: float | None = None) -> list[UUID]:
    told = [NewFact(ref=words, content=words, valid_from=NOON, importance=importance) for words in contents]
    await fact_store.add_facts(tx, told, ctx=ground(teller(agent_id)))
    return [await fact_store.find_fact_id(tx, one, agent_id=agent_id) for one in told]


async def sitting(
    tx: Tx, agent_id: UUID = ANA, *, hours: int = 0, capacity: int = 1_000, ref: str = "s"
) -> SessionScope:
    session_id = await sessions.ensure_session(tx, agent_id=agent_id, ref=ref, now=NOON)
    return SessionScope(agent_id=agent_id, session_id=session_id, now=NOON + hours * HOUR, capacity=capacity)


async def at_hand(tx: Tx, at: SessionScope) -> dict[str, tuple[int, float, float]]:
    """What is held: its uses, and the hours from noon when it came and when it was used."""
    held = await working_set.list_memories(tx, agent_id=at.agent_id, session_id=at.session_id)
    return {f.summary: (f.uses, (f.created_at - NOON) / HOUR, ((f.accessed_at or NOON) - NOON) / HOUR) for f in held}


async def test_every_read_counts_and_says_when(tx: Tx) -> None:
    # S000-17, S000-18
    one, two = await known(tx, ANA, "one", "two")
    await working_set.add_memories(tx, [one, two], scope=await sitting(tx))
    await working_set.add_memories(tx, [two], scope=await sitting(tx, hours=3))
    at = await sitting(tx)
    assert await at_hand(tx, at) == {"one": (1, 0, 0), "two": (2, 0, 3)}
    await working_set.add_memories(tx, [two], scope=await sitting(tx, hours=1))
    assert (await at_hand(tx, at))["two"] == (3, 0, 3), "a clock that goes back makes nothing colder"
    tokens = {
        f.summary: f.summary_tokens for f in await working_set.list_memories(tx, agent_id=ANA, session_id=at.session_id)
    }
    assert tokens == {"one": count("- one\n"), "two": count("- two\n")}


async def test_what_leaves_the_set_stays_in_memory(tx: Tx) -> None:
    # S000 A: ADR-002, ADR-007, ADR-009
    trivia, law = await known(tx, ANA, "trivia"), await known(tx, ANA, "the law", importance=1.0)
    await working_set.add_memories(tx, [*trivia, *law], scope=await sitting(tx))
    hot = await known(tx, ANA, "just said")
    gone = await working_set.add_memories(tx, hot, scope=await sitting(tx, hours=1, capacity=9))
    assert gone == trivia, "eviction keeps the hottest item, and of the others what matters"
    assert set(await at_hand(tx, await sitting(tx))) == {"the law", "just said"}
    assert await tx.fetchval("select count(*) from memory.memories where memory_id = $1", trivia[0]) == 1
    await working_set.add_memories(tx, trivia, scope=await sitting(tx, hours=2))
    assert "trivia" in await at_hand(tx, await sitting(tx)), "it can come back"


async def test_each_session_has_its_own_set_and_an_old_one_lapses(tx: Tx) -> None:
    one, two = await known(tx, ANA, "one", "two")
    mine, other = await sitting(tx), await sitting(tx, ref="other", hours=5)
    await working_set.add_memories(tx, [one], scope=mine)
    await working_set.add_memories(tx, [one, two], scope=other)
    assert await working_set.find_last_session(tx, agent_id=ANA) == (other.session_id, "other")
    await working_set.expire_working_sets(tx, agent_id=ANA, before=NOON + HOUR)
    assert await at_hand(tx, mine) == {}
    assert len(await at_hand(tx, other)) == 2
    await working_set.expire_working_sets(tx, agent_id=ANA, before=NOON + 6 * HOUR)
    with pytest.raises(NotFoundError, match="No session has a working memory"):
        await working_set.find_last_session(tx, agent_id=ANA)


async def test_what_is_forgotten_is_at_hand_no_more(tx: Tx) -> None:
    one, two = await known(tx, ANA, "one", "two")
    at = await sitting(tx)
    await working_set.add_memories(tx, [one, two], scope=at)
    await forget(tx, [one], derived=False, reason="a test", ctx=teller())
    assert set(await at_hand(tx, at)) == {"two"}


async def test_a_context_of_what_is_at_hand(db: Database, agent: UUID) -> None:
    # S000-1, S000-5, S000-11, S000-15, S000-19
    async with db.transaction(agent) as tx:
        held = await known(tx, agent, "light", importance=0.2) + await known(tx, agent, "heavy", importance=0.9)
        at = await sitting(tx, agent)
        await working_set.add_memories(tx, held, scope=at)
    memory = desk(db, agent, at.session_id)
    context = await memory.create_context()
    assert (context.profile.name, context.limit, context.text) == ("balanced", 128_000, "- heavy\n\n- light\n")
    assert (await memory.create_context("important", max_tokens=3)).text == "- heavy\n"
    assert await memory.create_context("important") == await memory.create_context(strategy="important")
    assert (await memory.create_context("auto")).profile.name == "balanced", "S000-F1: nothing was framed yet"
    assert (await memory.create_context(decay_hours=0.5)).profile.recency.time_constant_hours == 0.5  # S000-F2
    with pytest.raises(NotFoundError, match=r"There is no profile 'recentt'\. Did you mean 'recent'"):  # S000-7
        await memory.create_context("recentt")


async def test_use_and_ages_can_be_looked_at(db: Database, agent: UUID) -> None:
    # S000-25
    async with db.transaction(agent) as tx:
        at = await sitting(tx, agent, hours=-4)
        await working_set.add_memories(tx, await known(tx, agent, "one"), scope=at)
        await working_set.add_memories(tx, await known(tx, agent, "two"), scope=await sitting(tx, agent, hours=-2))
    memory = desk(db, agent, at.session_id)
    await memory.create_context()
    await memory.create_context("recent", 3)
    await memory.create_context("recent")
    figures = await memory.get_stats()
    assert figures.hours_since_added == (2, 2.5, 3, 3.5, 4)
    assert figures.hours_since_accessed == (2, 2.5, 3, 3.5, 4)
    assert [(u.profile, u.contexts, u.items, u.total_age_hours) for u in figures.profiles] == [
        ("recent", 2, 3, 2 + 2 + 4),
        ("balanced", 1, 2, 6),
    ]


async def test_what_is_alike_stands_together_by_stored_vectors(db: Database, agent: UUID) -> None:
    # S000-F3, S000-26N
    said = {"blue ferry": 0.9, "red garden": 0.8, "blue ferry Artemis": 0.7, "red garden roses": 0.6}
    async with db.transaction(agent) as tx:
        held = [(await known(tx, agent, words, importance=given))[0] for words, given in said.items()]
        at = await sitting(tx, agent)
        await working_set.add_memories(tx, held, scope=at)
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    memory = desk(db, agent, at.session_id)
    lines = [chosen.text for chosen in (await memory.create_context("clustered")).items]
    assert lines == ["blue ferry", "blue ferry Artemis", "red garden", "red garden roses"]
    assert [chosen.text for chosen in (await memory.create_context()).items] == list(said)


async def test_the_search_for_a_session_is_by_an_index(tx: Tx) -> None:
    at = await sitting(tx)
    await working_set.add_memories(tx, await known(tx, ANA, *map(str, range(50))), scope=at)
    query = working_set.SQL["list_items"]
    rows = await tx.fetch(f"explain {query.sql}", *query.bind(agent_id=ANA, session_id=at.session_id))
    assert "Seq Scan on working" not in "\n".join(row[0] for row in rows)
