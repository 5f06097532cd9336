"""Merge of two entities: nothing that is known of either is lost, and both are found by each name."""

from newton.db.pool import Tx
from newton.heart.entities import entity_declarations, entity_merge
from newton.heart.entities.entity_declarations import RelationDeclaration
from newton.heart.entities.entity_merge import EntityMergePlan
from newton.heart.entities.entity_store import EntityDeclaration, index_mentions, list_entities, load_index
from newton.heart.entities.subject_names import list_subject_keys
from newton.heart.facts import fact_edits, fact_store
from newton.heart.facts.fact_store import NewFact
from tests.support import ANA, NOON, ground, teller


async def state(tx: Tx, *contents: tuple[str, str, str], day: int = 1) -> None:
    at = NOON.replace(day=day)
    facts = [NewFact(ref=c, content=c, valid_from=at, subject=s, attribute=a) for c, s, a in contents]
    await fact_store.add_facts(tx, facts, ctx=ground())


async def merge(tx: Tx, name: str, into: str) -> EntityMergePlan:
    index = await load_index(tx, agent_id=ANA)
    merged, kept = index.resolve(name), index.resolve(into)
    assert merged and kept
    plan = await entity_merge.plan_merge(tx, merged.entity_id, kept.entity_id, agent_id=ANA)
    await entity_merge.merge_entities(tx, plan, ctx=ground())
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
    await entity_declarations.declare_relations(tx, stated, ctx=teller())


async def test_a_merge_keeps_names_properties_mentions_and_relations_once(tx: Tx) -> None:
    bob = EntityDeclaration(name="Bob Smith", type="person", aliases=("Bobby",), properties={"role": "plumber"})
    robert = EntityDeclaration(name="Robert Smith", properties={"city": "Oslo"})
    await entity_declarations.declare_entities(tx, [bob, robert], ctx=teller())
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
    await entity_declarations.declare_entities(
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
