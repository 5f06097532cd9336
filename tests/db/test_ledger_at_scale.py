"""Five thousand decisions: verified in one pass, and whatever is done to one of them is found."""

import random
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from newton.brain import ledger
from newton.brain.hash_chain import BrokenLink, ChainHead
from newton.db.pool import Database, Tx
from tests.db.deciding import many
from tests.support import teller

DECISIONS = 5_000
TAMPERINGS = {
    "edit": (
        "update brain.decision_records set body = jsonb_set(body, '{at}',"
        " '\"2026-01-01T00:00:00+00:00\"') where seq = $1"
    ),
    "delete": "delete from brain.decision_records where seq = $1",
    "insert": (
        "insert into brain.decision_records (agent_id, seq, record_id, kind, decision_id,"
        " recorded_at, origin, body, texts_hash,"
        " hash) select agent_id, 1000000 + $1, gen_random_uuid(), 'thought', decision_id, recorded_at, origin, '{}',"
        " null, hash from brain.decision_records where seq = $1"
    ),
    "words": (
        "update brain.decision_texts set texts = texts || '{\"x\": 1}'"
        " where record_id = (select record_id from brain.decision_records where seq = $1)"
    ),
    "swap": (
        "with pair as (select a.seq as one, b.seq as two, a.hash as first, b.hash as second from"
        " brain.decision_records as a"
        " join brain.decision_records as b on b.seq = a.seq + 1 where a.seq = $1)"
        " update brain.decision_records as r set hash = case r.seq when one then second else first end from pair"
        " where r.seq in (one, two)"
    ),
    "cut": "delete from brain.decision_records where seq >= $1",
}


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[Tx]:
    conn = await asyncpg.connect(dsn)
    await conn.execute("set session_replication_role = replica")
    yield conn
    await conn.close()


@pytest.mark.slow  # writes and walks thousands of records
async def test_whatever_is_done_to_one_of_five_thousand_decisions_is_found(
    db: Database, agent: UUID, owner: Tx
) -> None:
    async with db.transaction(agent) as tx:
        for start in range(0, DECISIONS, 500):
            await many(tx, 500, ctx=teller(agent), first=start)
        head = await ledger.verify_chain(tx, agent_id=agent, external_head=None)
    assert isinstance(head, ChainHead)
    assert head.seq == DECISIONS * 3 // 2
    dice = random.Random(5)
    for sql in TAMPERINGS.values():
        for place in (1, head.seq - 1, *dice.sample(range(2, head.seq - 1), 3)):
            unit = owner.transaction()
            await unit.start()
            await owner.execute(sql, place)
            found = await ledger.verify_chain(owner, agent_id=agent, external_head=head)
            assert isinstance(found, BrokenLink), (sql, place)
            await unit.rollback()
    assert await ledger.verify_chain(owner, agent_id=agent, external_head=head) == head
