"""Facts: learnt once, confirmed when met again, and never changed under the same ref."""

import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from newton.db.pool import Database, Tx
from newton.errors import ConflictError, InputError
from newton.heart.facts.fact_store import FactOutcome, NewFact, add_facts
from newton.runtime.transfer.import_source import parse_line
from newton.runtime.transfer.importer import write_items
from tests.support import ANA, NOON, ground, teller

COLD = NewFact(ref="a", content="Oslo is cold", valid_from=NOON, subject="Oslo", attribute="climate", confidence=0.9)


async def tell(tx: Tx, *statements: NewFact) -> list[FactOutcome]:
    return await add_facts(tx, statements, ctx=ground())


async def state(tx: Tx) -> tuple[str, int]:
    row = await tx.fetchrow("select state, confirmations from memory.memories where kind = 'fact'")
    assert row is not None
    return row["state"], row["confirmations"]


async def test_a_fact_is_kept_with_what_is_its_own(tx: Tx) -> None:
    assert await tell(tx, COLD) == ["new"]
    row = await tx.fetchrow(
        "select f.subject, f.attribute, f.valid_from, m.confidence, m.full_text, m.ref, m.origin, m.trust"
        " from heart.facts as f join memory.memories as m using (agent_id, memory_id)"
    )
    assert row is not None
    assert row["confidence"] == pytest.approx(0.9)
    assert (row["subject"], row["attribute"], row["valid_from"]) == ("Oslo", "climate", NOON)
    assert (row["full_text"], row["ref"], row["origin"], row["trust"]) == ("Oslo is cold", "a", "test", "user")


async def test_a_fact_met_again_is_confirmed_and_counted(tx: Tx) -> None:
    # S002-16
    await tell(tx, COLD)
    assert await state(tx) == ("NEW", 0)
    later = teller(now=NOON + timedelta(days=3))
    assert await add_facts(tx, [replace(COLD, ref="b")], ctx=ground(later)) == ["confirmed"]
    assert await state(tx) == ("CONFIRMED", 1)
    assert await tx.fetchval("select confirmed_at from memory.memories") == later.now
    await tell(tx, replace(COLD, ref="c"))
    assert await state(tx) == ("CONFIRMED", 2)


async def test_who_confirmed_it_is_kept(tx: Tx) -> None:
    await tell(tx, COLD)
    ctx = teller(trust="operator", origin="door")
    await add_facts(tx, [replace(COLD, ref="b")], ctx=ground(ctx))
    row = await tx.fetchrow("select ref, confirmed_at, origin, trust from memory.confirmations")
    assert row is not None
    assert tuple(row) == ("b", NOON, "door", "operator")
    assert await tx.fetchval("select trust from memory.memories") == "user", "its own trust never changes"


async def test_the_same_telling_counts_once(tx: Tx) -> None:
    await tell(tx, COLD)
    assert await tell(tx, COLD) == ["unchanged"]
    assert await state(tx) == ("NEW", 0)
    assert await tell(tx, replace(COLD, ref="b")) == ["confirmed"]
    assert await tell(tx, replace(COLD, ref="b")) == ["unchanged"]
    assert await state(tx) == ("CONFIRMED", 1)


async def test_white_space_is_no_difference_between_facts(tx: Tx) -> None:
    assert await tell(tx, COLD, replace(COLD, ref="b", content="Oslo  is\ncold")) == ["new", "confirmed"]
    assert await state(tx) == ("CONFIRMED", 1)


async def test_a_ref_that_comes_with_other_words_is_a_conflict(tx: Tx) -> None:
    await tell(tx, COLD)
    with pytest.raises(ConflictError, match="'a' exists with other content"):
        await tell(tx, replace(COLD, content="Oslo is warm"))
    assert await tx.fetchval("select full_text from memory.memories") == "Oslo is cold"


async def test_a_ref_that_comes_twice_in_one_batch_with_other_words_is_a_conflict(tx: Tx) -> None:
    with pytest.raises(ConflictError, match="'a' exists with other content"):
        await tell(tx, COLD, replace(COLD, content="Oslo is warm"))


async def test_a_ref_that_confirmed_one_fact_cannot_tell_another(tx: Tx) -> None:
    await tell(tx, COLD)
    await tell(tx, replace(COLD, ref="b"))
    with pytest.raises(ConflictError, match="'b' exists with other content"):
        await tell(tx, replace(COLD, ref="b", content="Oslo is warm"))


async def test_a_batch_says_what_became_of_each_in_its_order(tx: Tx) -> None:
    await tell(tx, COLD)
    warm = replace(COLD, ref="w", content="Rome is warm")
    assert await tell(tx, replace(COLD, ref="z"), warm, COLD, replace(warm, ref="v"), warm) == [
        "confirmed",
        "new",
        "unchanged",
        "confirmed",
        "new",
    ]
    rows = await tx.fetch("select full_text, confirmations from memory.memories order by full_text")
    assert [tuple(row) for row in rows] == [("Oslo is cold", 1), ("Rome is warm", 1)]
    assert await tx.fetchval("select count(*) from heart.facts where agent_id = $1", ANA) == 2


async def test_what_is_still_to_come_says_so(tx: Tx) -> None:
    told = NewFact(ref="soon", content="Ana lives in Bergen", valid_from=NOON + timedelta(days=90))
    await add_facts(tx, [told], ctx=ground())
    assert await tx.fetchval("select micro from memory.memories") == "[from 2027-02-19] Ana lives in Bergen"


async def test_the_same_few_words_of_another_subject_tell_another_fact(tx: Tx) -> None:
    def oslo(subject: str | None, attribute: str | None) -> NewFact:
        ref = f"{subject} {attribute}"
        return NewFact(ref=ref, content="Oslo", valid_from=NOON, subject=subject, attribute=attribute)

    told = [oslo("Ana", "lives in"), oslo("Ben", "lives in"), oslo("Ana", "born in"), oslo(None, None)]
    assert await add_facts(tx, told, ctx=ground()) == ["new"] * 4
    assert await tx.fetchval("select count(*) from heart.facts where is_current") == 4
    again = replace(oslo("ben", "Lives_in"), ref="again")
    assert await add_facts(tx, [again, *told], ctx=ground()) == ["confirmed"] + ["unchanged"] * 4
    whole = NewFact(ref="w", content="Ben lives in Oslo", valid_from=NOON)
    subject = replace(whole, ref="v", subject="Ben", attribute="lives in")
    assert await add_facts(tx, [whole, subject], ctx=ground()) == ["new", "confirmed"], "words say it all"


AT = NOON.isoformat()


async def taken(db: Database, agent: UUID, *lines: object) -> int:
    items = [parse_line(json.dumps(line).encode()) for line in lines]
    async with db.transaction(agent) as tx:
        return await write_items(tx, items, ctx=ground(teller(agent)))


@pytest.mark.parametrize(
    "line",
    [
        {"type": "fact", "content": "Ana sails", "subject": "Ana", "attribute": "--", "at": AT},
        {"type": "entity", "name": "!!!"},
        {"type": "entity", "name": "Ana", "properties": {"height": float("nan")}},
        {"type": "entity", "name": "Ana", "properties": {"height": float("inf")}},
        {"type": "relation", "source": "Ana", "relation_type": "-", "target": "Oslo"},
        {"type": "relation", "source": "...", "relation_type": "likes", "target": "Oslo"},
    ],
    ids=json.dumps,
)
async def test_what_the_database_would_not_take_is_refused_before(
    db: Database, agent: UUID, line: "dict[str, object]"
) -> None:
    with pytest.raises(InputError) as refused:
        await taken(db, agent, line)
    assert refused.value.hint


EVENT = {"type": "event", "ref": "r", "event_type": "file_read", "payload": {"path": "a"}, "at": AT}
CENSOR = {"type": "censor", "ref": "r", "trigger": "push to main", "reason": "review"}
BOND = {"type": "relation", "ref": "r", "source": "Ana", "relation_type": "knows", "target": "Eva"}


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (EVENT, EVENT | {"payload": {"path": "b"}}),
        (CENSOR, CENSOR | {"trigger": "push to production"}),
        (BOND, BOND | {"target": "Ben"}),
    ],
)
async def test_a_ref_with_other_words_is_refused_and_not_dropped(
    db: Database, agent: UUID, line: "dict[str, object]", other: "dict[str, object]"
) -> None:
    with pytest.raises(ConflictError, match="'r' exists with other content"):
        await taken(db, agent, line, other)
    assert await taken(db, agent, line) == 1
    assert await taken(db, agent, line, line) == 0, "the same again is not refused"
    with pytest.raises(ConflictError, match="'r' exists with other content"):
        await taken(db, agent, other)


async def test_who_is_introduced_is_not_taken_for_another_who_has_that_name_as_a_part(
    db: Database, agent: UUID
) -> None:
    hilton = {"type": "entity", "name": "Paris Hilton", "entity_type": "person", "aliases": ["PH"]}
    paris = {"type": "entity", "name": "Paris", "entity_type": "city", "properties": {"country": "France"}}
    assert await taken(db, agent, hilton) == 1
    assert await taken(db, agent, paris) == 1
    assert await taken(db, agent, hilton, paris, {"type": "entity", "name": "PH"}) == 0, "an alias is a name of it"
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select name, type, properties from heart.entities order by name")
    assert [tuple(row) for row in rows] == [
        ("Paris", "city", '{"country": "France"}'),
        ("Paris Hilton", "person", "{}"),
    ]
