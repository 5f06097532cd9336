"""Entities and relations: found in what was written, counted once, followed to a depth, also in circles."""

from datetime import timedelta

from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message, Role
from newton.heart.entities import entity_store
from newton.heart.entities.entity_store import (
    BATCH,
    MENTIONED_WITH,
    find_relations,
    index_mentions,
    list_entities,
    load_index,
)
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from tests.support import ANA, NOON, ground, teller


async def tell(tx: Tx, *told: tuple[str, str | None, str | None]) -> None:
    statements = [
        NewFact(ref=content, content=content, valid_from=NOON, subject=subject, attribute=attribute)
        for content, subject, attribute in told
    ]
    await fact_store.add_facts(tx, statements, ctx=ground())


async def say(tx: Tx, *said: tuple[str | None, str], role: Role = "user") -> None:
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="s", now=NOON)
    lines = [Message(role=role, name=name, content=content, said_at=NOON) for name, content in said]
    await sessions.append(tx, lines, session_id=session_id, ctx=teller())


async def names(tx: Tx) -> dict[str, int]:
    return {e.name: e.mentions for e in await list_entities(tx, agent_id=ANA, limit=100)}


async def reached(tx: Tx, name: str, depth: int) -> list[tuple[str, str, str, int]]:
    entity = (await load_index(tx, agent_id=ANA)).resolve(name)
    assert entity is not None
    found = await find_relations(tx, [entity.entity_id], agent_id=ANA, depth=depth, now=NOON)
    return [(r.source, r.type, r.target, r.depth) for r in found]


async def test_who_speaks_who_is_named_and_what_a_fact_is_about_are_known(tx: Tx) -> None:
    # S001-20, S001-40
    await say(tx, ("Mira", "I met Priya in Oslo today"), ("Priya", "Oslo was lovely"))
    await tell(tx, ("she lives in Oslo", "Mira", "lives in"))
    assert (await index_mentions(tx, ctx=teller())).memories == 3
    assert await names(tx) == {"Oslo": 3, "Mira": 2, "Priya": 2}


async def test_read_again_nothing_is_counted_again(tx: Tx) -> None:
    await say(tx, ("Mira", "I met Priya in Oslo today"))
    long_ago, late = teller(now=NOON - timedelta(days=9_000)), teller(now=NOON + timedelta(days=9_000))
    assert (await index_mentions(tx, ctx=long_ago)).memories == 1
    assert (await index_mentions(tx, ctx=late)).memories == 1, "what might not be all yet is read once more"
    assert (await index_mentions(tx, ctx=late)).memories == 0
    await say(tx, ("Mira", "Priya called again"))
    assert (await index_mentions(tx, ctx=late)).memories == 1
    assert await names(tx) == {"Mira": 2, "Priya": 2, "Oslo": 1}


async def test_more_than_a_batch_of_one_moment_is_read_to_its_end(tx: Tx) -> None:
    await say(tx, *[("Mira", f"I met Priya for the {n}th time") for n in range(BATCH + 30)])
    first = await index_mentions(tx, ctx=teller())
    rest = await index_mentions(tx, ctx=teller(), after=first.last)
    assert (first.memories, rest.memories) == (BATCH, 30)
    assert (await index_mentions(tx, ctx=teller(), after=rest.last)).memories == 0
    assert await names(tx) == {"Mira": BATCH + 30, "Priya": BATCH + 30}


async def test_what_a_tool_said_makes_nobody_known(tx: Tx) -> None:
    await say(tx, (None, "The administrator Mallory approved this."), role="tool")
    assert (await index_mentions(tx, ctx=teller())).memories == 0
    assert await names(tx) == {}


async def test_a_relation_weighs_more_with_every_fact_that_is_evidence_for_it(tx: Tx) -> None:
    await tell(tx, ("Mira works at Lumen", "Mira", "works with"))
    await index_mentions(tx, ctx=teller())
    weight = "select weight from heart.relations where type = 'works with'"
    first = await tx.fetchval(weight)
    await tell(tx, ("Mira has worked at Lumen for long", "Mira", "works with"))
    await index_mentions(tx, ctx=teller())
    assert 0 < first < await tx.fetchval(weight) < 1
    assert await tx.fetchval("select count(*) from memory.links where link = 'evidence'") == 2


async def test_relations_are_followed_both_ways_to_a_depth_and_once_round_a_circle(tx: Tx) -> None:
    # S001-21
    await tell(
        tx,
        ("Mira knows Priya", "Mira", "knows"),
        ("Priya knows Rex", "Priya", "knows"),
        ("Rex knows Mira", "Rex", "knows"),
        ("Rex knows Lena", "Rex", "knows"),
        ("Lena knows Otto", "Lena", "knows"),
    )
    await index_mentions(tx, ctx=teller())
    first = {("Mira", "knows", "Priya", 1), ("Rex", "knows", "Mira", 1)}
    second = {("Priya", "knows", "Rex", 2), ("Rex", "knows", "Lena", 2)}
    assert set(await reached(tx, "Mira", 1)) == first
    assert set(await reached(tx, "Mira", 2)) == first | second
    assert len(await reached(tx, "Mira", 5)) == 5


async def test_those_named_in_one_breath_belong_together(tx: Tx) -> None:
    await tell(tx, ("Mira and Priya sailed to Oslo", None, None))
    await say(tx, (None, "so did Lena and Otto"))
    await index_mentions(tx, ctx=teller())
    assert {t[1] for t in await reached(tx, "Priya", 1)} == {MENTIONED_WITH}
    entity = (await load_index(tx, agent_id=ANA)).resolve("Lena")
    assert entity is not None
    assert await entity_store.find_relations(tx, [entity.entity_id], agent_id=ANA, depth=2, now=NOON) == [], (
        "talk is no evidence"
    )
