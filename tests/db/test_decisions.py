"""Decisions in the database: recorded once, reviewed once, never changed, and found again."""

import asyncio
from contextvars import Context
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from newton.brain import decisions, ledger, queries
from newton.brain.decision_codec import NewDecision
from newton.brain.decisions import DecisionAmendment
from newton.brain.drafts import TrackRecord, Verdict
from newton.brain.hash_chain import ChainHead
from newton.brain.queries import DecisionFilter
from newton.db.pool import Database, Tx
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits
from newton.memory.store import list_transitions
from tests.cluster import count_lock_waits
from tests.db.deciding import REDIS, choice, recorded, reviewed
from tests.support import ANA, NOON, teller, until

LATER = NOON + timedelta(days=40)
LATER_ON = teller(now=LATER)


async def spine(tx: Tx, decision_id: UUID) -> tuple[str, str, str, str]:
    row = await tx.fetchrow(
        "select state, outcome, micro, summary from memory.memories where memory_id = $1", decision_id
    )
    assert row is not None
    return tuple(row)


async def waiting(onlooker: Tx) -> bool:
    """Whether a transaction of this database waits for another."""
    await onlooker.execute("select pg_stat_clear_snapshot()")
    return await count_lock_waits(onlooker) == 1


async def whole_chain(tx: Tx) -> bool:
    return isinstance(await ledger.verify_chain(tx, agent_id=ANA, external_head=None), ChainHead)


async def test_a_decision_goes_from_recorded_to_pending_to_reviewed(tx: Tx) -> None:
    # S002-5, S002-6, S002-20
    (decision_id,) = await recorded(tx, REDIS)
    state, outcome, micro, summary = await spine(tx, decision_id)
    assert (state, outcome) == ("RECORDED", "pending")
    assert micro.startswith("[pending, 0.85] Use Redis")
    assert "Reads outnumber writes" in summary
    await decisions.mark_done(tx, decision_id, ctx=LATER_ON)
    assert (await spine(tx, decision_id))[0] == "PENDING"
    given = reviewed("success", at=LATER, lesson="Warm it up first")
    await decisions.review(tx, decision_id, given, ctx=LATER_ON)
    state, outcome, micro, summary = await spine(tx, decision_id)
    assert (state, outcome) == ("REVIEWED", "success")
    assert micro.startswith("[success, 0.85] Use Redis")
    assert "Lesson: Warm it up first" in summary
    made = await list_transitions(tx, agent_id=ANA, memory_id=decision_id)
    assert [(step.event, step.to_state) for step in made] == [("done", "PENDING"), ("reviewed", "REVIEWED")]
    assert await whole_chain(tx)


async def test_an_outcome_is_given_once_and_not_before_the_decision(tx: Tx) -> None:
    (decision_id,) = await recorded(tx, REDIS)
    with pytest.raises(InputError, match="before the decision"):
        await decisions.review(tx, decision_id, reviewed(at=NOON - timedelta(days=1)), ctx=LATER_ON)
    await decisions.review(tx, decision_id, reviewed("failure"), ctx=LATER_ON)
    with pytest.raises(ConflictError, match="already reviewed: failure"):
        await decisions.review(tx, decision_id, reviewed("success"), ctx=LATER_ON)
    with pytest.raises(ConflictError, match="is done already"):
        await decisions.mark_done(tx, decision_id, ctx=LATER_ON)
    with pytest.raises(NotFoundError, match="no decision"):
        await decisions.review(tx, new_id(), reviewed(), ctx=LATER_ON)


async def test_the_same_ref_is_the_same_decision_and_never_another_one(tx: Tx) -> None:
    told = replace(REDIS, ref="d1")
    first = await decisions.record(tx, [NewDecision(draft=told), NewDecision(draft=told)], ctx=teller())
    assert [made.is_new for made in first] == [True, False]
    assert first[0].decision_id == first[1].decision_id
    again = await decisions.record(tx, [NewDecision(draft=told)], ctx=LATER_ON)
    assert again == [(first[0].decision_id, False)]
    for other in (replace(told, confidence=0.9), replace(told, context=None), replace(told, tags=())):
        with pytest.raises(ConflictError, match="'d1' exists with different content"):
            await decisions.record(tx, [NewDecision(draft=other)], ctx=teller())
    assert await tx.fetchval("select count(*) from brain.decision_records") == 1


async def test_an_outcome_that_comes_with_a_later_telling_is_taken_once(tx: Tx) -> None:
    told, outcome = replace(REDIS, ref="d1"), reviewed("partial", lesson="half")
    (first,) = await recorded(tx, told)
    for _ in range(2):
        await decisions.record(tx, [NewDecision(draft=told, review=outcome)], ctx=LATER_ON)
    assert (await spine(tx, first))[:2] == ("REVIEWED", "partial")
    with pytest.raises(ConflictError, match="was already reviewed: partial"):
        other = NewDecision(draft=told, review=reviewed("failure"))
        await decisions.record(tx, [other], ctx=LATER_ON)
    assert await tx.fetchval("select count(*) from brain.decision_records") == 2


async def test_two_outcomes_in_one_telling_of_a_known_decision_are_refused(tx: Tx) -> None:
    told = replace(REDIS, ref="d1")
    await recorded(tx, told)
    both = [NewDecision(draft=told, review=reviewed("success")), NewDecision(draft=told, review=reviewed("failure"))]
    with pytest.raises(ConflictError, match="was already reviewed: success"):
        await decisions.record(tx, both, ctx=LATER_ON)
    assert await tx.fetchval("select count(*) from brain.decision_records") == 1


async def test_an_outcome_is_not_seen_before_it_comes(tx: Tx) -> None:
    (decision_id,) = await recorded(tx, REDIS)
    with pytest.raises(InputError, match="is in the future"):
        await decisions.review(tx, decision_id, reviewed(at=LATER + timedelta(days=1)), ctx=LATER_ON)


async def test_who_says_done_waits_for_who_gives_the_outcome(db: Database, agent: UUID, dsn: str) -> None:
    ctx = teller(agent, now=LATER)
    async with db.transaction(agent) as tx:
        (decision_id,) = await recorded(tx, REDIS, ctx=teller(agent))

    async def judged() -> None:
        async with db.transaction(agent) as tx:
            await decisions.review(tx, decision_id, reviewed(), ctx=ctx)

    onlooker = await asyncpg.connect(dsn)
    async with db.transaction(agent) as tx:
        await decisions.mark_done(tx, decision_id, ctx=ctx)
        task = asyncio.create_task(judged(), context=Context())
        await until(lambda: waiting(onlooker))
    await task
    await onlooker.close()
    async with db.transaction(agent) as tx:
        assert isinstance(await ledger.verify_chain(tx, agent_id=agent, external_head=None), ChainHead)


async def test_without_a_ref_the_same_words_are_another_decision(tx: Tx) -> None:
    assert len(set(await recorded(tx, REDIS, REDIS))) == 2


async def test_thoughts_belong_to_an_open_decision(tx: Tx) -> None:
    (decision_id,) = await recorded(tx, REDIS)
    await decisions.add_thought(tx, decision_id, "What if it is down?", ctx=teller())
    await decisions.review(tx, decision_id, reviewed(), ctx=LATER_ON)
    with pytest.raises(ConflictError, match="cannot get more thoughts"):
        await decisions.add_thought(tx, decision_id, "Too late", ctx=LATER_ON)
    whole = await queries.get_decision(tx, decision_id, agent_id=ANA)
    assert [note.text for note in whole.thoughts] == ["What if it is down?"]
    assert whole.draft == REDIS
    assert whole.review == reviewed()


async def test_an_amendment_adds_and_the_record_stays_as_it_was(tx: Tx) -> None:
    (decision_id,) = await recorded(tx, REDIS)
    before = await tx.fetchval("select hash from brain.decision_records where record_id = $1", decision_id)
    await decisions.amend(tx, decision_id, DecisionAmendment(text="The budget was cut", category="cost"), ctx=LATER_ON)
    await decisions.amend(tx, decision_id, DecisionAmendment(tags=("money",), look_again_at=LATER), ctx=LATER_ON)
    (now,) = await queries.list_decisions(tx, DecisionFilter(tag="money"), agent_id=ANA, now=LATER)
    assert (now.category, now.look_again_at, now.confidence) == ("cost", LATER, 0.85)
    assert await queries.list_decisions(tx, DecisionFilter(tag="cache"), agent_id=ANA, now=LATER) == []
    assert await tx.fetchval("select hash from brain.decision_records where record_id = $1", decision_id) == before
    with pytest.raises(InputError, match="The amendment is empty"):
        await decisions.amend(tx, decision_id, DecisionAmendment(), ctx=LATER_ON)
    whole = await queries.get_decision(tx, decision_id, agent_id=ANA)
    assert [(note.text, note.tags) for note in whole.amendments] == [("The budget was cut", None), (None, ("money",))]


async def test_what_is_superseded_succeeded_in_part_unless_its_outcome_was_known(tx: Tx) -> None:
    old, known, new = await recorded(
        tx, REDIS, choice("Use a queue"), choice("Use Memcached", at=NOON + timedelta(days=2))
    )
    await decisions.review(tx, known, reviewed("failure"), ctx=LATER_ON)
    for before in (old, known):
        await decisions.supersede(tx, new, before, ctx=LATER_ON)
    assert (await spine(tx, old))[:2] == ("REVIEWED", "partial")
    assert (await spine(tx, known))[:2] == ("REVIEWED", "failure")
    (one,) = [
        d for d in await queries.list_decisions(tx, DecisionFilter(), agent_id=ANA, now=LATER) if d.decision_id == old
    ]
    assert (one.review_method, one.reviewed_at) == ("superseded", NOON + timedelta(days=2))
    edges = (await queries.get_decision(tx, old, agent_id=ANA)).links
    assert {(edge.memory_id, edge.link, edge.other_id) for edge in edges} == {
        (new, "supersedes", old),
        (new, "supersedes", known),
    }


async def test_supersession_goes_in_no_circle(tx: Tx) -> None:
    one, two, three = await recorded(tx, choice("one"), choice("two"), choice("three"))
    await decisions.supersede(tx, two, one, ctx=LATER_ON)
    await decisions.supersede(tx, three, two, ctx=LATER_ON)
    for new, old in ((one, three), (one, two), (one, one)):
        with pytest.raises(InputError, match="cannot supersede itself"):
            await decisions.supersede(tx, new, old, ctx=LATER_ON)
    (earlier,) = await recorded(tx, choice("before", at=NOON - timedelta(days=1)))
    with pytest.raises(InputError, match="cannot supersede a later one"):
        await decisions.supersede(tx, earlier, three, ctx=LATER_ON)


async def test_decisions_are_linked_by_hand(tx: Tx) -> None:
    one, two = await recorded(tx, choice("one"), choice("two"))
    await decisions.link(tx, one, "depends_on", two, ctx=teller())
    whole = await queries.get_decision(tx, two, agent_id=ANA)
    assert [(edge.memory_id, edge.link, edge.other_id) for edge in whole.links] == [(one, "depends_on", two)]
    assert [relative.type for relative in whole.memory.links] == ["is depended on by"]
    await decisions.link(tx, one, "depends_on", two, ctx=LATER_ON)
    assert await tx.fetchval("select count(*) from brain.decision_records where kind = 'link'") == 1, "it is said once"
    with pytest.raises(InputError, match="to itself"):
        await decisions.link(tx, one, "relates", one, ctx=teller())


async def test_what_is_due_comes_first_due_and_only_while_it_is_open(tx: Tx) -> None:
    late, later, future, done = await recorded(
        tx,
        replace(choice("late"), look_again_at=NOON + timedelta(days=3)),
        replace(choice("later"), look_again_at=NOON + timedelta(days=2)),
        replace(choice("future"), look_again_at=NOON + timedelta(days=300)),
        replace(choice("done"), look_again_at=NOON + timedelta(days=1)),
    )
    await decisions.review(tx, done, reviewed(), ctx=LATER_ON)
    due = await queries.list_decisions(tx, DecisionFilter(due=True), agent_id=ANA, now=LATER)
    assert [d.decision_id for d in due] == [later, late]
    assert all(d.is_overdue for d in due)
    still_open = await queries.list_decisions(tx, DecisionFilter(open=True), agent_id=ANA, now=LATER)
    assert {d.decision_id for d in still_open} == {late, later, future}


async def test_the_standing_counts_what_was_judged_and_what_is_overdue(tx: Tx) -> None:
    assert await queries.get_track_record(tx, agent_id=ANA, category="architecture", now=LATER) == TrackRecord()
    rated: list[tuple[Verdict, float]] = [("success", 0.8), ("partial", 0.6), ("failure", 0.7)]
    for verdict, confidence in rated:
        await recorded(tx, replace(REDIS, confidence=confidence), review=reviewed(verdict))
    await recorded(tx, REDIS)
    await recorded(tx, choice("other"), review=reviewed("success"))
    stands = await queries.get_track_record(tx, agent_id=ANA, category="architecture", now=LATER)
    assert stands == TrackRecord(
        decisions=5,
        judged=4,
        open=1,
        overdue=1,
        success_rate=2.5 / 4,
        brier=pytest.approx((0.2**2 + 0.1**2 + 0.7**2 + 0.3**2) / 4),  # type: ignore[arg-type]  # compares as one
        category_judged=3,
        category_success_rate=0.5,
    )


async def test_what_is_judged_comes_in_the_order_of_the_decisions(tx: Tx) -> None:
    await recorded(tx, replace(REDIS, at=NOON + timedelta(hours=1)), review=reviewed("failure"))
    await recorded(tx, choice("earlier"), review=reviewed("success"))
    await recorded(tx, choice("open"))
    judged = await queries.list_reviewed_decisions(tx, agent_id=ANA)
    assert [(j.outcome, j.confidence) for j in judged] == [("success", 0.7), ("failure", 0.85)]
    assert judged[1].reason_kinds == ("analysis", "empirical")
    assert (judged[1].category, judged[1].stakes, judged[1].frame) == ("architecture", "high", None)


async def test_erasing_leaves_no_word_of_it_and_a_chain_that_verifies(tx: Tx) -> None:
    marker = "xylophon"
    secret = replace(REDIS, description=f"Hide it under the {marker}e", tags=(marker,), ref="d1")
    (decision_id, other) = await recorded(tx, secret, REDIS)
    await decisions.add_thought(tx, decision_id, f"the {marker}e is loud", ctx=teller())
    await decisions.amend(tx, decision_id, DecisionAmendment(text=f"a {marker}e, really"), ctx=teller())
    await decisions.review(tx, decision_id, reviewed(lesson=f"no {marker}e"), ctx=LATER_ON)
    assert await decisions.erase(tx, decision_id, reason="asked for", ctx=LATER_ON)
    names = await tx.fetch(
        "select c.oid::regclass::text as name from pg_class as c where relkind = 'r' and relname <> 'schema_migrations'"
        " and relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')"
    )
    for row in names:
        held = await tx.fetchval(f"select count(*) from {row['name']} as t where t::text ilike $1", f"%{marker}%")
        assert held == 0, row["name"]
    assert (await spine(tx, decision_id))[2:] == ("[success, 0.85] [erased]", "[success, 0.85] [erased]")
    assert await whole_chain(tx)
    whole = await queries.get_decision(tx, decision_id, agent_id=ANA)
    assert (whole.draft, whole.erasures[0].body["because"]) == (None, "asked for")
    assert len(await queries.list_reviewed_decisions(tx, agent_id=ANA)) == 1
    assert not await decisions.erase(tx, decision_id, reason="again", ctx=LATER_ON)
    # what is told again under its ref neither brings the words back nor contradicts
    again = await decisions.record(tx, [NewDecision(draft=secret)], ctx=LATER_ON)
    assert again == [(decision_id, False)]
    assert (await spine(tx, other))[2].startswith("[pending, 0.85] Use Redis")


async def test_a_decision_can_be_recalled(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        (decision_id,) = await recorded(tx, REDIS, ctx=teller(agent))
    search = MemorySearch(db=db, agent_id=agent, limits={"decision": SearchLimits(20, 20)})
    found = await recall("Which session cache do we use?", embedder=None, search=search)
    assert [(f.memory_id, f.outcome) for f in found.memories] == [(decision_id, "pending")]
