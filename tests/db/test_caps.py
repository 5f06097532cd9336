"""Of what there are too many of only the best is in force; the rest is kept, and neither searched nor lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from newton.content.skills import SkillFile
from newton.db.pool import Database, Tx
from newton.heart import documents, procedures
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_changes
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.events.event_store import NewEvent, record_events
from newton.heart.events.event_types import validate_event
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import ActivationResult, plan_cap_transitions, run_lifecycle
from newton.memory.memory import Kind
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits
from newton.memory.store import apply_transitions
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.support import ANA, DEFAULT_THRESHOLDS, NOON, ground, teller


async def happen(tx: Tx, *names: str) -> None:
    happenings = [
        NewEvent(ref=name, event=validate_event("file_read", NOON + timedelta(hours=n), {"path": name}))
        for n, name in enumerate(names)
    ]
    await record_events(tx, happenings, ctx=teller())


async def cap(tx: Tx, kind: Kind, most: int) -> None:
    await apply_transitions(tx, await plan_cap_transitions(tx, kind, most, ctx=teller()), ctx=teller())


async def in_force(tx: Tx, kind: Kind) -> set[str]:
    rows = await tx.fetch("select micro from memory.memories where kind = $1 and state <> 'ARCHIVED'", kind)
    return {row["micro"].partition("] ")[2] or row["micro"] for row in rows}


async def test_the_oldest_events_are_archived_and_come_back_with_the_room(tx: Tx) -> None:
    # S001 caps: 100K events
    await happen(tx, "a", "b", "c", "d")
    await cap(tx, "event", 2)
    assert await in_force(tx, "event") == {"read c", "read d"}
    assert await plan_cap_transitions(tx, "event", 2, ctx=teller()) == []
    await cap(tx, "event", 3)
    assert await in_force(tx, "event") == {"read b", "read c", "read d"}
    await cap(tx, "event", 9)
    assert len(await in_force(tx, "event")) == 4


async def test_the_least_salient_entities_and_the_lightest_relations_are_archived(tx: Tx) -> None:
    # S001 caps: 10K entities (low salience), 50K relations (low weight)
    people = [EntityDeclaration(name=name, type="person") for name in ("Ana", "Ben", "Cem")]
    await entity_changes.declare_entities(tx, people, ctx=teller())
    await tx.execute("update heart.entities set mentions = 50 where name <> 'Ben'")
    await tx.execute("update heart.entities set mentions = 5 where name = 'Ben'")
    await tx.execute("update heart.entities set mentioned_at = $1 where name = 'Cem'", NOON - timedelta(days=900))
    await cap(tx, "entity", 2)
    assert await in_force(tx, "entity") == {"Ana (person)", "Ben (person)"}
    bonds = [
        RelationDeclaration(ref=f"{n}", source="Ana", type=type_, target="Ben")
        for n, type_ in enumerate(["likes", "likes", "met"])
    ]
    await entity_changes.declare_relations(tx, bonds, ctx=teller())
    await cap(tx, "relation", 1)
    assert await in_force(tx, "relation") == {"Ana likes Ben"}


async def test_the_least_successful_procedures_are_archived_and_an_untried_one_is_middling(tx: Tx) -> None:
    # S001 caps: 1K patterns (low success)
    records: dict[str, ActivationResult | None] = {"good": "success", "bad": "failure", "new": None}
    for name, result in records.items():
        skill = SkillFile(name=name, description=f"{name}.", core=("Do it.",))
        memory_id = await procedures.add_procedure(tx, skill, ctx=ground())
        assert memory_id
        if result:
            await engine.record_activations(tx, "procedure", [memory_id], stage="test", ctx=ground())
            await engine.record_result(tx, "procedure", memory_id, result, ctx=ground())
    await cap(tx, "procedure", 2)
    assert await in_force(tx, "procedure") == {"good: good.", "new: new."}
    assert {p.name for p in await procedures.list_triggers(tx, agent_id=ANA)} == {"good", "new"}
    await cap(tx, "procedure", 1)
    assert await in_force(tx, "procedure") == {"good: good."}


async def test_unread_and_old_passages_are_archived_and_a_document_takes_them_along(tx: Tx) -> None:
    # S001 caps: 100K chunks (old, unread)
    source = DocumentSource(ref="/a.md", title="A", format="markdown")
    for day, words in enumerate(("first", "second", "third")):
        ctx = teller(now=NOON + timedelta(days=day))
        await documents.replace_passages(tx, replace(source, ref=words), [TextChunk("H", words, 3)], ctx=ctx)
    await tx.execute("update memory.memories set accessed_at = $1 where full_text = 'first'", NOON)
    await cap(tx, "passage", 2)
    assert await in_force(tx, "passage") == {"first", "third"}
    await documents.replace_passages(tx, replace(source, ref="second"), [TextChunk("H", "other", 3)], ctx=teller())
    state = "select state from memory.memories where full_text = 'second'"
    assert await tx.fetchval(state) == "SUPERSEDED"


@pytest.mark.parametrize("way", ["event", "passage"])
async def test_what_is_archived_is_not_searched(db: Database, agent: object, way: str) -> None:
    # S001 caps: archived ones are not searched
    async with db.transaction(ANA) as tx:
        await happen(tx, "kettle-1", "kettle-2")
        source = DocumentSource(ref="/kettle.md", title="Kettles", format="markdown")
        chunks = [TextChunk("Use", f"the kettle-{n} is blue", 6) for n in (1, 2)]
        await documents.replace_passages(tx, source, chunks, ctx=teller())
    kind: Kind = "event" if way == "event" else "passage"
    embedder = HashEmbedder()
    await EmbeddingOutbox(db, embedder, ANA).drain()
    search = MemorySearch(db=db, agent_id=ANA, limits={kind: SearchLimits(5, 5)})

    async def found(search: MemorySearch) -> list[str]:
        return [one.state for one in (await recall("kettle-1 kettle-2", embedder=embedder, search=search)).memories]

    assert await found(search) == ["ACTIVE", "ACTIVE"]
    bounds = replace(ground(), thresholds=replace(DEFAULT_THRESHOLDS, max_events=1, max_passages=1))
    due = await run_lifecycle(db, bounds, dry_run=True)
    assert [step.event for step in due] == ["archived", "archived"]
    assert {step.memory_id for step in await run_lifecycle(db, bounds)} == {step.memory_id for step in due}
    assert await run_lifecycle(db, bounds) == []
    assert await found(search) == ["ACTIVE"]
    assert sorted(await found(replace(search, excluded_states=frozenset[str]()))) == ["ACTIVE", "ARCHIVED"]
