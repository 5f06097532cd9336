"""Lists of memories: what each filter selects, in which order, page by page, of one agent only, by an index."""

from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from newton.db.pool import Database, Tx
from newton.db.queries import SqlQuery
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import InputError
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.ids import new_id
from newton.memory.memory import KINDS, derive_importance
from newton.memory.memory_list import (
    SORT_KEYS,
    SQL,
    ListedMemory,
    ListOrder,
    ListPosition,
    MemoryFilter,
    count_memories,
    list_positions,
    parse_states,
    read_rows,
)
from tests.statements import list_scans
from tests.support import ANA, NOON, ground, teller

MANY_ROWS = 20_000
NEWEST = ListOrder()
ALL = MemoryFilter(states=("all",))


async def told(tx: Tx, content: str, *, days: int = 0, trust: str = "user", subject: str | None = None) -> UUID:
    ctx = ground(teller(trust=trust, now=NOON + timedelta(days=days)))  # pyright: ignore[reportArgumentType]  # a tier
    fact = NewFact(ref=str(new_id()), content=content, valid_from=NOON - timedelta(days=days), subject=subject)
    await fact_store.add_facts(tx, [fact], ctx=ctx)
    return await fact_store.find_fact_id(tx, fact, agent_id=ANA)


async def texts(tx: Tx, wanted: MemoryFilter, ordered: ListOrder = NEWEST) -> list[str]:
    found = await list_positions(tx, wanted, ordered, after=None, limit=100, agent_id=ANA)
    assert len(found) == await count_memories(tx, wanted, agent_id=ANA)
    return [row.text for row in await read_rows(tx, [one.memory_id for one in found], agent_id=ANA)]


async def test_quarantined_and_retracted_memories_are_listed_only_when_asked_for(tx: Tx) -> None:
    await told(tx, "Ana lives in Porto")
    wrong = await told(tx, "Ana lives on the moon", days=1)
    await fact_store.retract(tx, wrong, ctx=ground(teller()))
    await told(tx, "A page says that Ana moved", days=2, trust="web")
    assert await texts(tx, MemoryFilter()) == ["Ana lives in Porto"]
    assert await texts(tx, MemoryFilter(states=("past",))) == ["Ana lives on the moon"]
    assert await texts(tx, MemoryFilter(states=("INACTIVE",))) == ["Ana lives on the moon"]
    assert await texts(tx, MemoryFilter(states=("quarantined",))) == ["A page says that Ana moved"]
    assert await texts(tx, MemoryFilter(states=("NEW",))) == ["Ana lives in Porto"]
    assert len(await texts(tx, ALL)) == 3
    assert parse_states(["new", "PAST"]) == ["NEW", "past"]
    with pytest.raises(InputError, match="no state 'gone'"):
        parse_states(["gone"])


async def test_each_filter_selects_what_it_names(tx: Tx) -> None:
    await told(tx, "Ana lives in Porto", subject="Ana")
    await told(tx, "Ben reviews the migrations", days=1, subject="Ben")
    await told(tx, "An agent noted the migrations", days=2, trust="agent")
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="talk", now=NOON)
    said = Message(role="user", content="Let us plan the migrations", said_at=NOON)
    await sessions.append(tx, [said], session_id=session_id, ctx=teller())
    assert await texts(tx, MemoryFilter(subject_keys=["ana"])) == ["Ana lives in Porto"]
    assert await texts(tx, MemoryFilter(kinds=("exchange",))) == await texts(tx, MemoryFilter(session_id=session_id))
    found = await texts(tx, MemoryFilter(text="migration review"))
    assert found == ["Ben reviews the migrations"], "every word, stemmed"
    assert await texts(tx, MemoryFilter(trusts=("agent",))) == ["An agent noted the migrations"]
    assert await texts(tx, MemoryFilter(origins=("elsewhere",))) == []
    stored = MemoryFilter(created_since=NOON + timedelta(days=1), created_until=NOON + timedelta(days=2))
    assert await texts(tx, stored) == ["Ben reviews the migrations"]
    assert await texts(tx, MemoryFilter(until=NOON - timedelta(days=1))) == ["An agent noted the migrations"]
    both = MemoryFilter(subject_keys=["ben"], text="porto")
    assert await texts(tx, both) == [], "conditions are joined by and"


async def test_what_was_made_from_a_memory_is_found_by_its_source(tx: Tx) -> None:
    source = await told(tx, "Ana said that she moved")
    made = NewFact(ref="made", content="Ana moved", valid_from=NOON, sources=(source,))
    await fact_store.add_facts(tx, [made], ctx=ground())
    assert await texts(tx, MemoryFilter(source_id=source)) == ["Ana moved"]


@pytest.mark.parametrize(("sort", "order"), list(product(SORT_KEYS, ("asc", "desc"))))
async def test_pages_hold_every_memory_once_in_the_order_of_the_key(tx: Tx, sort: str, order: str) -> None:
    ordered = ListOrder(sort, order)  # pyright: ignore[reportArgumentType]  # the parameters above
    for n in range(11):
        memory_id = await told(tx, f"Statement number {n}", days=n // 3)  # several have the same time
        if n % 2:
            await tx.execute(
                "update memory.memories set uses = $2, accessed_at = $3, confirmed_at = $3, importance = $4"
                " where memory_id = $1",
                memory_id,
                n % 3,
                NOON + timedelta(days=n % 4),
                (n % 5) / 10,
            )
    for wanted in (MemoryFilter(), MemoryFilter(text="statement")):
        found: list[ListPosition] = []
        while page := await list_positions(
            tx, wanted, ordered, after=found[-1] if found else None, limit=4, agent_id=ANA
        ):
            found += page
        rows = await read_rows(tx, [one.memory_id for one in found], agent_id=ANA)
        assert len({row.memory_id for row in rows}) == len(rows) == 11
        keys = [key_of(row, sort) for row in rows]
        assert keys == sorted(keys, reverse=order == "desc")


def key_of(row: ListedMemory, sort: str) -> float:
    value = getattr(row, sort if sort in ("uses", "importance") else f"{sort}_at")
    return value if isinstance(value, int | float) else value.timestamp() if value else 0


async def test_a_cursor_of_another_order_is_refused(tx: Tx) -> None:
    with pytest.raises(InputError, match="another list"):
        await list_positions(
            tx, MemoryFilter(), ListOrder("uses"), after=ListPosition("noon", new_id()), limit=1, agent_id=ANA
        )


async def test_the_importance_of_the_database_is_that_of_the_code(tx: Tx) -> None:
    states = ("NEW", "CONFIRMED", "CORE", "EFFECTIVE", "ESCALATED", "ACTIVE")
    for kind, state, outcome, uses in product(KINDS, states, (None, "failure", "success", "partial"), (0, 3, 1_000)):
        query = "select memory.effective_importance(null, $1, $2, $3, $4)"
        stored = await tx.fetchval(query, kind, state, outcome, uses)
        assert stored == pytest.approx(derive_importance(kind, state, outcome, uses)), (kind, state, outcome, uses)


MANY = """
insert into memory.memories (
    agent_id, memory_id, kind, state, micro, summary, micro_tokens, summary_tokens, word_count, occurred_at, created_at,
    origin, trust, quarantined, content_hash
)
select
    $1, gen_random_uuid(), case n % 2 when 0 then 'fact' else 'episode' end,
    case n % 2 when 0 then 'NEW' else 'ACTIVE' end, 'x', 'x', 1, 1, 0, $2::timestamptz + n * interval '1 second',
    $2::timestamptz + n * interval '1 second', 'test', 'user', false, sha256(n::text::bytea)
from generate_series(1, $3::integer) as n
returning agent_id
"""


async def test_a_page_of_many_memories_reads_only_as_many_entries_of_an_index(
    db: Database, dsn: str, agent: UUID
) -> None:
    async with db.transaction(agent) as tx:
        await tx.execute(MANY, agent, NOON, MANY_ROWS)
    owner = await asyncpg.connect(dsn)
    await owner.execute("vacuum analyze memory.memories")
    await owner.close()
    position = {"after_time": NOON + timedelta(seconds=MANY_ROWS // 2), "after_id": new_id(), "max_rows": 21}
    async with db.transaction(agent) as tx:
        for name in ("list_by_created_desc", "list_by_created_asc", "list_by_occurred_desc", "list_by_occurred_asc"):
            scans = await plan_scans(tx, SQL[name], agent, **position)
            assert {scan["Index Name"] for scan in scans} == {f"memories_{name.split('_')[2]}_idx"}, name
            assert sum(scan["Actual Rows"] * scan["Actual Loops"] for scan in scans) <= 21 * 2 + 1, name
        await tx.execute("set local enable_seqscan = off")  # the table has one agent, so reading all of it is as good
        (scan,) = await plan_scans(tx, SQL["count_all"], agent)
        assert scan["Node Type"].startswith("Index"), "a count can use an index"


async def plan_scans(tx: Tx, query: SqlQuery, agent: UUID, **arguments: object) -> list[dict[str, Any]]:
    """The scans of memory.memories in the plan, as it was carried out."""
    bound = query.bind(agent_id=agent, **MemoryFilter().columns, **arguments)
    rows = await tx.fetch(f"explain (analyze, format json) {query.sql}", *bound)
    return list_scans(rows[0][0], "memories")
