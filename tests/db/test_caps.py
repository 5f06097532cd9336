"""Of what there are too many of only the best is in force; the rest is kept, and neither searched nor lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from newton.content.skills import Skill
from newton.db.pool import Database, Tx
from newton.heart import activations, documents, introducing, procedures
from newton.heart.activations import Result
from newton.heart.chunking import Chunk
from newton.heart.documents import Source
from newton.heart.entities import Introduction
from newton.heart.events import Happening, record
from newton.heart.happenings import checked
from newton.heart.introducing import Bond
from newton.heart.lifecycle.caps import crossing
from newton.heart.lifecycle.engine import live
from newton.heart.lifecycle.thresholds import Thresholds
from newton.memory.memory import Kind
from newton.memory.outbox import Outbox
from newton.memory.recall import Search, Width, recall
from newton.memory.transitions import move
from newton.providers.offline import HashEmbedder
from tests.support import ANA, NOON, ground, teller


async def happen(tx: Tx, *names: str) -> None:
    happenings = [
        Happening(ref=name, event=checked("file_read", NOON + timedelta(hours=n), {"path": name}))
        for n, name in enumerate(names)
    ]
    await record(tx, happenings, ctx=teller())


async def cap(tx: Tx, kind: Kind, most: int) -> None:
    await move(tx, await crossing(tx, kind, most, ctx=teller()), ctx=teller())


async def in_force(tx: Tx, kind: Kind) -> set[str]:
    rows = await tx.fetch("select micro from memory.memories where kind = $1 and state <> 'ARCHIVED'", kind)
    return {row["micro"].partition("] ")[2] or row["micro"] for row in rows}


async def test_the_oldest_events_are_archived_and_come_back_with_the_room(tx: Tx) -> None:
    # S001 caps: 100K events
    await happen(tx, "a", "b", "c", "d")
    await cap(tx, "event", 2)
    assert await in_force(tx, "event") == {"read c", "read d"}
    assert await crossing(tx, "event", 2, ctx=teller()) == []
    await cap(tx, "event", 3)
    assert await in_force(tx, "event") == {"read b", "read c", "read d"}
    await cap(tx, "event", 9)
    assert len(await in_force(tx, "event")) == 4


async def test_the_least_salient_entities_and_the_lightest_relations_are_archived(tx: Tx) -> None:
    # S001 caps: 10K entities (low salience), 50K relations (low weight)
    people = [Introduction(name=name, type="person") for name in ("Ana", "Ben", "Cem")]
    await introducing.introduce(tx, people, ctx=teller())
    await tx.execute("update heart.entities set mentions = 50 where name <> 'Ben'")
    await tx.execute("update heart.entities set mentions = 5 where name = 'Ben'")
    await tx.execute("update heart.entities set mentioned_at = $1 where name = 'Cem'", NOON - timedelta(days=900))
    await cap(tx, "entity", 2)
    assert await in_force(tx, "entity") == {"Ana (person)", "Ben (person)"}
    bonds = [
        Bond(ref=f"{n}", source="Ana", type=type_, target="Ben") for n, type_ in enumerate(["likes", "likes", "met"])
    ]
    await introducing.bind(tx, bonds, ctx=teller())
    await cap(tx, "relation", 1)
    assert await in_force(tx, "relation") == {"Ana likes Ben"}


async def test_the_least_successful_procedures_are_archived_and_an_untried_one_is_middling(tx: Tx) -> None:
    # S001 caps: 1K patterns (low success)
    records: dict[str, Result | None] = {"good": "success", "bad": "failure", "new": None}
    for name, result in records.items():
        skill = Skill(name=name, description=f"{name}.", core=("Do it.",))
        memory_id = await procedures.learn(tx, skill, ctx=ground())
        assert memory_id
        if result:
            await activations.activate(tx, "procedure", [memory_id], place="test", ctx=ground())
            await activations.judge(tx, "procedure", memory_id, result, ctx=ground())
    await cap(tx, "procedure", 2)
    assert await in_force(tx, "procedure") == {"good: good.", "new: new."}
    assert {p.name for p in await procedures.patterns(tx, agent_id=ANA)} == {"good", "new"}
    await cap(tx, "procedure", 1)
    assert await in_force(tx, "procedure") == {"good: good."}


async def test_unread_and_old_passages_are_archived_and_a_document_takes_them_along(tx: Tx) -> None:
    # S001 caps: 100K chunks (old, unread)
    source = Source(ref="/a.md", title="A", format="markdown")
    for day, words in enumerate(("first", "second", "third")):
        ctx = teller(now=NOON + timedelta(days=day))
        await documents.take(tx, replace(source, ref=words), [Chunk("H", words, 3)], ctx=ctx)
    await tx.execute("update memory.memories set accessed_at = $1 where full_text = 'first'", NOON)
    await cap(tx, "passage", 2)
    assert await in_force(tx, "passage") == {"first", "third"}
    await documents.take(tx, replace(source, ref="second"), [Chunk("H", "other", 3)], ctx=teller())
    state = "select state from memory.memories where full_text = 'second'"
    assert await tx.fetchval(state) == "SUPERSEDED"


@pytest.mark.parametrize("way", ["event", "passage"])
async def test_what_is_archived_is_not_searched(db: Database, agent: object, way: str) -> None:
    # S001 caps: archived ones are not searched
    async with db.work(ANA) as tx:
        await happen(tx, "kettle-1", "kettle-2")
        source = Source(ref="/kettle.md", title="Kettles", format="markdown")
        chunks = [Chunk("Use", f"the kettle-{n} is blue", 6) for n in (1, 2)]
        await documents.take(tx, source, chunks, ctx=teller())
    kind: Kind = "event" if way == "event" else "passage"
    embedder = HashEmbedder()
    await Outbox(db, embedder, ANA).drain()
    search = Search(db=db, agent_id=ANA, widths={kind: Width(5, 5)})

    async def found(search: Search) -> list[str]:
        return [one.state for one in (await recall("kettle-1 kettle-2", embedder=embedder, search=search)).found]

    assert await found(search) == ["ACTIVE", "ACTIVE"]
    bounds = replace(ground(), thresholds=Thresholds(most_events=1, most_passages=1))
    due = await live(db, bounds, dry=True)
    assert [step.event for step in due] == ["archived", "archived"]
    assert {step.memory_id for step in await live(db, bounds)} == {step.memory_id for step in due}
    assert await live(db, bounds) == []
    assert await found(search) == ["ACTIVE"]
    assert sorted(await found(replace(search, past=frozenset[str]()))) == ["ACTIVE", "ARCHIVED"]
