"""The ledger: what is done to it behind the application's back is found, and the application may do nothing to it."""

import random
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest
from asyncpg.transaction import Transaction

from newton.brain import decisions, ledger
from newton.brain.hash_chain import BrokenLink, ChainHead
from newton.db.pool import Database, Tx
from newton.errors import ConflictError
from newton.memory.forgetting import forget
from tests.cases import load_cases
from tests.db.deciding import REDIS, choice, many, recorded, reviewed
from tests.support import ANA, BEN, NOON, part, teller

CASES = load_cases(__file__)


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[Tx]:
    """Who may change anything, and whom no trigger or foreign key stops."""
    conn = await asyncpg.connect(dsn)
    await conn.execute("set session_replication_role = replica")
    yield conn
    await conn.close()


async def unbound(owner: Tx) -> Transaction:
    """Begin a transaction in which no trigger and no foreign key stops the owner, on the node of the agent either."""
    unit = owner.transaction()
    await unit.start()
    await owner.execute("set local session_replication_role = replica")
    return unit


async def lived(db: Database, agent: UUID, number: int = 12) -> ChainHead:
    """A chain with every kind of record in it."""
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        ids = await many(tx, number, ctx=ctx)
        await decisions.add_thought(tx, ids[0], "what if it fails?", ctx=ctx)
        await decisions.amend(tx, ids[0], decisions.DecisionAmendment(text="it was Tuesday", tags=("new",)), ctx=ctx)
        await decisions.supersede(tx, ids[2], ids[0], ctx=ctx)
        await decisions.erase(tx, ids[1], reason="asked for", ctx=ctx)
        return await ledger.get_head(tx, agent_id=agent)


async def found(db: Database, agent: UUID, noted: ChainHead | None = None) -> BrokenLink | ChainHead:
    async with db.transaction(agent) as tx:
        return await ledger.verify_chain(tx, agent_id=agent, external_head=noted)


async def test_a_chain_that_nobody_touched_is_whole(db: Database, agent: UUID) -> None:
    assert await found(db, agent) == await found(db, agent)
    head = await lived(db, agent)
    assert head.seq == 12 + 6 + 5
    assert await found(db, agent) == head
    assert await found(db, agent, noted=head) == head
    assert await found(db, agent, noted=ChainHead(3, bytes(32))) == BrokenLink(
        3, "the chain was rewritten: the head saved outside the database has another hash"
    )


MUTATIONS = CASES["MUTATIONS"]
UNREADABLE = {
    "a number longer than any that is read": (
        "update brain.decision_records set body = body || '{\"x\": 1e5000}' where seq = 2"
    ),
    "words too deep": "update brain.decision_texts"
    " set texts = jsonb_build_object('x', (repeat('[', 5000) || repeat(']', 5000))::jsonb)"
    " where record_id = (select record_id from brain.decision_records where seq = 2)",
}


@pytest.mark.parametrize("mutation", UNREADABLE)
async def test_what_cannot_even_be_read_is_a_fault(db: Database, agent: UUID, owner: Tx, mutation: str) -> None:
    async with db.transaction(agent) as tx:
        await recorded(tx, REDIS, choice("other"), ctx=teller(agent))
    await owner.execute(UNREADABLE[mutation])
    fault = await ledger.verify_chain(owner, agent_id=agent, external_head=None)
    assert isinstance(fault, BrokenLink) and fault.seq == 2


async def test_an_erasure_that_names_no_record_is_a_fault(tx: Tx) -> None:
    (decision_id,) = await recorded(tx, REDIS)
    await ledger.append(
        tx, [ledger.LedgerEntry(kind="erasure", decision_id=decision_id, body={"erased": ["all"]})], ctx=teller()
    )
    fault = await ledger.verify_chain(tx, agent_id=ANA, external_head=None)
    assert isinstance(fault, BrokenLink) and fault.seq == 2


FREE_SEQ = 1_000_000
MOVE = "update brain.decision_records set seq = $2 where agent_id = $3 and seq = $1"
HASH = "select hash from brain.decision_records where agent_id = $2 and seq = $1"
NEW_HEAD = "update brain.chain_heads set seq = $1, hash = $2 where agent_id = $3"
OF_KIND = """
select r.seq from brain.decision_records as r left join brain.decision_texts as t using (agent_id, record_id)
where $1::text is null or r.kind = $1 or ($1 = 'worded' and t.texts is not null)
    or ($1 = 'wordless' and t.texts is null)
order by r.seq
"""


async def test_what_is_changed_behind_the_application_is_found(db: Database, agent: UUID, owner: Tx) -> None:
    head = await lived(db, agent)
    for mutation, (sql, kind) in MUTATIONS.items():
        for row in await owner.fetch(OF_KIND, kind):
            unit = await unbound(owner)
            await owner.execute(sql, row["seq"], agent)
            found_link = await ledger.verify_chain(owner, agent_id=agent, external_head=None)
            assert isinstance(found_link, BrokenLink), (mutation, row["seq"])
            await unit.rollback()
    assert await found(db, agent) == head


async def test_places_that_are_swapped_and_a_tail_that_is_cut_are_found(db: Database, agent: UUID, owner: Tx) -> None:
    head = await lived(db, agent)
    dice = random.Random(7)
    for _ in range(40):
        one, other = sorted(dice.sample(range(1, head.seq + 1), 2))
        unit = await unbound(owner)
        for before, after in ((one, FREE_SEQ), (other, one), (FREE_SEQ, other)):
            await owner.execute(MOVE, before, after, agent)
        fault = await ledger.verify_chain(owner, agent_id=agent, external_head=None)
        assert isinstance(fault, BrokenLink)
        assert fault.seq == one
        await unit.rollback()
    for kept in range(head.seq):
        unit = await unbound(owner)
        await owner.execute("delete from brain.decision_records where agent_id = $2 and seq > $1", kept, agent)
        last = await owner.fetchval(HASH, kept, agent)
        cut = await ledger.verify_chain(owner, agent_id=agent, external_head=None)
        assert isinstance(cut, BrokenLink)
        if last is not None:
            # the head is cut along: in itself all is well, but not beside what was noted outside
            await owner.execute(
                "update brain.chain_heads set seq = $1, hash = $2 where agent_id = $3", kept, last, agent
            )
            assert isinstance(await ledger.verify_chain(owner, agent_id=agent, external_head=head), BrokenLink)
        await unit.rollback()


ATTACKS = (
    "update brain.decision_records set origin = 'x'",
    "delete from brain.decision_records",
    "truncate brain.decision_records",
    "update brain.decision_texts set texts = '{}'",
    "delete from brain.decision_texts",
    "delete from brain.chain_heads",
    "update brain.decisions set confidence = 1",
    "delete from memory.memories where kind = 'decision'",
)


async def test_the_application_may_not_change_or_delete_a_record(db: Database, agent: UUID) -> None:
    await lived(db, agent)
    for attack in ATTACKS:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.ObjectNotInPrerequisiteStateError)):
            async with db.transaction(agent) as tx:
                await tx.execute(attack)


async def test_the_application_erases_only_what_the_chain_says_and_only_of_its_own_agent(tx: Tx) -> None:
    await recorded(tx, REDIS)
    await tx.execute("select brain.erase_decisions($1)", ANA)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with part(tx):
            await tx.execute("select brain.erase_decisions($1)", BEN)
    assert await tx.fetchval("select count(*) from brain.decision_texts") == 1


async def test_a_decision_is_never_forgotten(tx: Tx) -> None:
    # S002-20
    (decision_id,) = await recorded(tx, REDIS)
    with pytest.raises(ConflictError, match=r"never deleted.*erase"):
        await forget(tx, [decision_id], derived=True, reason="a test", ctx=teller())


async def test_the_database_takes_no_second_outcome_and_no_confidence_outside_its_range(tx: Tx) -> None:
    (decision_id,) = await recorded(tx, REDIS, review=reviewed())
    with pytest.raises(asyncpg.UniqueViolationError):
        async with part(tx):
            entry = ledger.LedgerEntry(
                kind="outcome",
                decision_id=decision_id,
                body={"outcome": "failure", "at": NOON.isoformat(), "how": "hand"},
            )
            await ledger.append(tx, [entry], ctx=teller())
    for confidence in (-0.1, 1.1):
        with pytest.raises(asyncpg.CheckViolationError):
            async with part(tx):
                body = {"confidence": confidence, "at": NOON.isoformat(), "category": "c", "stakes": "low"}
                entry = ledger.LedgerEntry(kind="decision", decision_id=decision_id, record_id=decision_id, body=body)
                await ledger.append(tx, [entry], ctx=teller())


async def test_every_confidence_comes_back_as_it_was_stated(tx: Tx) -> None:
    dice = random.Random(3)
    stated = [0.0, -0.0, 1.0, 5e-324, 1e-50, 1e-7, 0.1 + 0.2, 1 - 2**-53, *(dice.random() for _ in range(200))]
    await recorded(tx, *(choice(f"c{n}", confidence=confidence) for n, confidence in enumerate(stated)))
    rows = await tx.fetch("select confidence from brain.decision_records order by seq")
    assert [row["confidence"] for row in rows] == stated
    assert isinstance(await ledger.verify_chain(tx, agent_id=ANA, external_head=None), ChainHead)
