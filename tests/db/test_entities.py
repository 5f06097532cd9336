"""Entities and relations: who is known, and how two become one."""

from datetime import timedelta

from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message, Role
from newton.heart.entities import entity_changes, entity_store
from newton.heart.entities.entity_changes import EntityMergePlan, RelationDeclaration
from newton.heart.entities.entity_lookup import list_subject_keys
from newton.heart.entities.entity_store import (
    BATCH,
    MENTIONED_WITH,
    EntityDeclaration,
    find_relations,
    index_mentions,
    list_entities,
    load_index,
)
from newton.heart.facts import fact_edits, fact_store
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


async def state(tx: Tx, *contents: tuple[str, str, str], day: int = 1) -> None:
    at = NOON.replace(day=day)
    facts = [NewFact(ref=c, content=c, valid_from=at, subject=s, attribute=a) for c, s, a in contents]
    await fact_store.add_facts(tx, facts, ctx=ground())


async def merge(tx: Tx, name: str, into: str) -> EntityMergePlan:
    index = await load_index(tx, agent_id=ANA)
    merged, kept = index.resolve(name), index.resolve(into)
    assert merged and kept
    plan = await entity_changes.plan_merge(tx, merged.entity_id, kept.entity_id, agent_id=ANA)
    await entity_changes.merge_entities(tx, plan, ctx=ground())
    await fact_edits.move_subjects(tx, plan.subject_keys, plan.kept, ctx=ground())
    return plan


async def relations(tx: Tx) -> set[str]:
    rows = await tx.fetch(
        "select micro from heart.relations join memory.memories using (agent_id, memory_id) where agent_id = $1",
        ANA,
    )
    return {row["micro"] for row in rows}


async def declare(tx: Tx, *triples: tuple[str, str, str]) -> None:
    stated = [RelationDeclaration(ref=" ".join(one), source=one[0], type=one[1], target=one[2]) for one in triples]
    await entity_changes.declare_relations(tx, stated, ctx=teller())


async def test_a_merge_keeps_names_properties_mentions_and_relations_once(tx: Tx) -> None:
    bob = EntityDeclaration(name="Bob Smith", type="person", aliases=("Bobby",), properties={"role": "plumber"})
    robert = EntityDeclaration(name="Robert Smith", properties={"city": "Oslo"})
    await entity_changes.declare_entities(tx, [bob, robert], ctx=teller())
    await declare(tx, ("Bob Smith", "works at", "Acme"), ("Robert Smith", "works at", "Acme"))
    await declare(tx, ("Acme", "employs", "Bob Smith"), ("Bob Smith", "brother of", "Robert Smith"))
    await state(tx, ("Bob Smith repairs the boiler.", "Bob Smith", "does"))
    await index_mentions(tx, ctx=teller())
    plan = await merge(tx, "Bobby", "Robert Smith")
    assert [one.type for one in plan.moved] == ["employs"] and [one.type for one in plan.known] == ["works at"]
    assert [one.type for one in plan.between] == ["brother of"] and (plan.mentions, plan.facts) == (1, 1)
    assert {"Robert Smith works at Acme", "Acme employs Robert Smith"} <= await relations(tx)
    assert not any("Bob" in line for line in await relations(tx))
    entities = {one.name: one for one in await list_entities(tx, agent_id=ANA, limit=10)}
    assert "Bob Smith" not in entities
    assert (entities["Robert Smith"].type, entities["Robert Smith"].mentions) == ("person", 1)
    index = await load_index(tx, agent_id=ANA)
    for name in ("Bob Smith", "Bobby", "Robert Smith", "Robert"):
        assert index.resolve(name) == index.find_exact("Robert Smith"), name
    confirmations = "select count(*) from memory.confirmations where agent_id = $1 and ref like '%works at%'"
    assert await tx.fetchval(confirmations, ANA) == 2, "the evidence of both relations is kept"


async def test_facts_about_either_name_compete_and_are_listed_by_each(tx: Tx) -> None:
    await entity_changes.declare_entities(
        tx, [EntityDeclaration(name=name) for name in ("Bob Smith", "Robert Smith")], ctx=teller()
    )
    await state(tx, ("Robert Smith lives in Oslo.", "Robert Smith", "lives in"))
    await state(tx, ("Bob Smith lives in Bergen.", "Bob Smith", "lives in"), day=2)
    await merge(tx, "Bob Smith", "Robert Smith")
    await state(tx, ("Bob Smith lives in Porto.", "Bob Smith", "lives in"), day=3)
    query = """select m.full_text, m.state, f.subject
        from heart.facts f join memory.memories m using (agent_id, memory_id)
        where m.agent_id = $1 order by m.occurred_at"""
    rows = [tuple(row) for row in await tx.fetch(query, ANA)]
    assert [(text, state) for text, state, _ in rows] == [
        ("Robert Smith lives in Oslo.", "SUPERSEDED"),
        ("Bob Smith lives in Bergen.", "SUPERSEDED"),
        ("Bob Smith lives in Porto.", "NEW"),
    ]
    assert rows[2][2] == "Bob Smith", "a fact keeps the name that it states"
    for name in ("Bob Smith", "Robert Smith"):
        assert await list_subject_keys(tx, name, agent_id=ANA) == ["bob smith", "robert smith"]


async def test_a_merged_relation_is_imported_again_without_a_conflict(tx: Tx) -> None:
    await declare(tx, ("Bob Smith", "works at", "Acme"))
    await declare(tx, ("Robert Smith", "lives in", "Oslo"))
    await merge(tx, "Bob Smith", "Robert Smith")
    before = await relations(tx)
    await declare(tx, ("Bob Smith", "works at", "Acme"))
    assert await relations(tx) == before == {"Robert Smith works at Acme", "Robert Smith lives in Oslo"}
