"""Sessions: every line once, in order, for good; and each line a memory."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from newton.agent.services.memories import MemoryService
from newton.clock import ManualClock
from newton.db.pool import Database, Tx
from newton.dialogue import session_close, sessions
from newton.dialogue.log import MAX_POSITION, MessageRange, load_messages
from newton.dialogue.messages import Message, Role, StoredMessage
from newton.errors import ConflictError
from newton.memory import agents
from newton.providers.chat import ToolCall
from tests.emptied import FREE
from tests.support import ANA, DEFAULT_THRESHOLDS, NOON, agent_scope, count, teller


def line(text: str, *, role: Role = "user", ref: str | None = None, name: str | None = None) -> Message:
    return Message(role=role, content=text, said_at=NOON, ref=ref, name=name)


async def session(tx: Tx, ref: str = "s") -> UUID:
    return await sessions.ensure_session(tx, agent_id=ANA, ref=ref, now=NOON)


async def append(tx: Tx, session_id: UUID, *lines: Message) -> list[StoredMessage]:
    return await sessions.append(tx, lines, session_id=session_id, ctx=teller())


async def log(tx: Tx) -> list[tuple[int, str]]:
    rows = await tx.fetch("select position, content from dialogue.messages order by session_id, position")
    return [tuple(row) for row in rows]


async def test_lines_stand_in_the_order_in_which_they_came(tx: Tx) -> None:
    session_id = await session(tx)
    await append(tx, session_id, line("one"), line("two"))
    placed = await append(tx, session_id, line("three"))
    assert [p.position for p in placed] == [2]
    assert await log(tx) == [(0, "one"), (1, "two"), (2, "three")]


# where what is derived from messages is stored: outputs, briefs, observations, artifacts, digests
ARTIFACTS = ["dialogue.artifacts", "dialogue.artifact_versions"]
DERIVED = [*ARTIFACTS, "dialogue.brief_items", "dialogue.compaction_entries", "heart.events"]


@pytest.fixture(params=DERIVED)
async def failing_once(dsn: str, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """The first write to a table conflicts with another transaction."""
    owner = await asyncpg.connect(dsn, server_settings=FREE)
    await owner.execute(f"""
        create sequence public.attempts;
        grant usage on sequence public.attempts to public;
        create function public.fail_once() returns trigger language plpgsql as $$ begin
            if nextval('public.attempts') = 1 then raise serialization_failure; end if;
            return null;
        end $$;
        create trigger fail_once after insert on {request.param} execute function public.fail_once()
    """)
    yield
    await owner.execute("drop function public.fail_once() cascade; drop sequence public.attempts")
    await owner.close()


@pytest.mark.one_server("Citus refuses triggers on a distributed table")
@pytest.mark.usefixtures("failing_once")
async def test_a_conflict_in_a_derived_record_repeats_the_whole_transaction(db: Database, agent: UUID) -> None:
    missing = dict[str, str]()

    async def work(tx: Tx) -> None:
        session_id = await session(tx)
        asked = replace(line("", role="assistant"), calls=(ToolCall("1", "shell", "{}"),))
        shown = replace(line("It works.\n" * 3_000, role="tool"), tool_call_id="1")
        told = [line("From now on answer briefly."), asked, shown]
        await sessions.append(tx, told, session_id=session_id, ctx=teller(), missing=missing)

    await db.run_with_retry(agent, work)
    async with db.transaction(agent) as tx:
        counts = {
            table: await tx.fetchval(f"select count(*) from {table}") for table in ("dialogue.messages", *DERIVED)
        }
    assert counts["dialogue.messages"] == 3 and all(counts.values()) and not missing


async def test_a_line_sent_again_is_left_out(tx: Tx) -> None:
    assert await session(tx, "a") == await session(tx, "a") != await session(tx, "b")
    # a line sent again is left out
    session_id = await session(tx)
    await append(tx, session_id, line("one", ref="1"), line("two"))
    placed = await append(tx, session_id, line("one", ref="1"), line("two"), line("three"))
    assert [p.message.content for p in placed] == ["three"]
    assert await append(tx, session_id, line("two"), line("three")) == []
    assert await log(tx) == [(0, "one"), (1, "two"), (2, "three")]
    assert await tx.fetchval("select count(*) from memory.memories") == 3
    session_id = await session(tx)
    with pytest.raises(ConflictError, match="other content"):
        await append(tx, session_id, line("one", ref="1"), line("two", ref="1"))


async def test_lines_alike_in_everything_are_kept_apart_by_their_number(tx: Tx) -> None:
    session_id = await session(tx)
    alike = [line("yes"), replace(line("yes"), occurrence=1)]
    assert len(await append(tx, session_id, *alike)) == 2
    assert await append(tx, session_id, *alike) == []


@pytest.mark.parametrize(
    "other",
    [line("other words", ref="1"), line("one", ref="1", role="assistant"), line("one", ref="1", name="Ben")],
    ids=["words", "role", "name"],
)
async def test_a_known_ref_with_other_words_is_a_conflict(tx: Tx, other: Message) -> None:
    session_id = await session(tx)
    await append(tx, session_id, line("one", ref="1"))
    with pytest.raises(ConflictError, match="'1' of this session exists with other content"):
        await append(tx, session_id, line("before"), other)
    assert await log(tx) == [(0, "one")]


async def test_another_session_has_refs_of_its_own(tx: Tx) -> None:
    for ref in ("a", "b"):
        await append(tx, await session(tx, ref), line("hello", ref="1"))
    assert await tx.fetchval("select count(*) from dialogue.messages") == 2
    assert await tx.fetchval("select count(*) from memory.memories") == 2


@pytest.mark.parametrize(
    "change",
    ["update dialogue.messages set content = 'x'", "delete from dialogue.messages", "truncate dialogue.messages"],
)
async def test_what_was_said_cannot_be_changed(tx: Tx, change: str) -> None:
    await append(tx, await session(tx), line("one"))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await tx.execute(change)


async def test_a_line_becomes_a_memory_with_its_date_and_speaker(tx: Tx) -> None:
    session_id = await session(tx)
    spoken = Message(role="user", name="Caroline", content="I sold the boat.", said_at=datetime(2023, 5, 8, tzinfo=UTC))
    await append(tx, session_id, spoken)
    row = await tx.fetchrow("select * from memory.memories")
    assert row is not None
    assert row["summary"] == "[2023-05-08] Caroline: I sold the boat."
    assert (row["kind"], row["thread_id"], row["position"], row["full_text"]) == ("exchange", session_id, 0, None)
    assert (row["occurred_at"], row["created_at"]) == (spoken.said_at, NOON)
    words = await tx.fetch("select lexeme from memory.postings")
    assert {"carolin", "sold", "boat", "8", "may", "2023"} == {row["lexeme"] for row in words}


@pytest.mark.parametrize(
    ("role", "trust"), [("user", "user"), ("assistant", "agent"), ("system", "agent"), ("tool", "tool")]
)
async def test_a_line_is_believed_as_its_role_is(tx: Tx, role: Role, trust: str) -> None:
    await append(tx, await session(tx), line("hello", role=role))
    assert await tx.fetchval("select trust from memory.memories") == trust


async def test_a_line_that_only_repeats_memories_is_logged_and_not_remembered(tx: Tx) -> None:
    session_id = await session(tx)
    await append(tx, session_id, replace(line("From memory"), is_notice=True), line("I see"))
    assert await log(tx) == [(0, "From memory"), (1, "I see")]
    assert await tx.fetchval("select array_agg(position) from memory.memories") == [1]


async def test_the_end_of_a_session_comes_oldest_first_with_its_tokens(tx: Tx) -> None:
    session_id = await session(tx)
    await append(tx, session_id, *[line(f"line number {n}") for n in range(5)])
    last = await load_messages(tx, [MessageRange(3, MAX_POSITION)], agent_id=ANA, session_id=session_id)
    assert [(p.position, p.message.content) for p in last] == [(3, "line number 3"), (4, "line number 4")]
    assert [p.tokens for p in last] == [count("line number 3")] * 2


async def test_eight_writers_of_one_session_lose_nothing_and_leave_no_gap(dsn: str) -> None:
    db = await Database.open(dsn, size=8)
    agent_id = await agents.get_or_create_agent(db, "ana", now=NOON)

    async def speak(writer: int) -> list[int]:
        positions: list[int] = []
        for n in range(10):
            async with db.transaction(agent_id) as tx:
                session_id = await sessions.ensure_session(tx, agent_id=agent_id, ref="busy", now=NOON)
                said = [line(f"{writer}.{n}.{part}") for part in range(2)]
                placed = await sessions.append(tx, said, session_id=session_id, ctx=teller(agent_id))
                positions += [p.position for p in placed]
        return positions

    try:
        heard = await asyncio.gather(*(speak(writer) for writer in range(8)))
        async with db.transaction(agent_id) as tx:
            rows = await log(tx)
            places = await tx.fetch("select position from memory.memories order by position")
    finally:
        await db.close()
    assert sorted(position for one in heard for position in one) == list(range(160))
    assert [position for position, _ in rows] == list(range(160))
    assert {content for _, content in rows} == {f"{w}.{n}.{p}" for w in range(8) for n in range(10) for p in range(2)}
    assert [row["position"] for row in places] == list(range(160))
    for writer in range(8):
        own = [content for _, content in rows if content.startswith(f"{writer}.")]
        assert own == sorted(own), "a writer's lines keep their order"


async def test_what_a_tool_said_is_only_found_by_who_asks_for_it(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s", now=NOON)
        said = [line("the vault code is in the manual", role="tool"), line("where is the vault manual")]
        await sessions.append(tx, said, session_id=session_id, ctx=teller(agent))
    clock = ManualClock(NOON + timedelta(days=1))
    verbs = MemoryService(
        scope=agent_scope(
            agent_id=agent,
            origin="test",
            db=db,
            clock=clock,
            count_tokens=count,
            thresholds=DEFAULT_THRESHOLDS,
            embedder=None,
        )
    )
    usual, asked = await verbs.recall("vault code"), await verbs.recall("vault code", include_quarantined=True)
    assert [f.trust for f in usual.memories] == ["user"]
    assert {f.trust for f in asked.memories} == {"tool", "user"}


LINE = "The ferry to the island leaves at nine, and Ana must call the harbour before 3 May. "
CASES: dict[str, list[tuple[Role, str]]] = {
    "one long message": [("user", LINE * 4_000)],
    "a long reply": [("assistant", f"{LINE}\n" * 4_000)],
    "many messages": [("user", f"{LINE} {n}") for n in range(500)],
}


@pytest.mark.parametrize("case", CASES)
async def test_long_messages_do_not_hold_the_event_loop(db: Database, agent: UUID, case: str) -> None:
    # R11
    counted, loop_thread = {True: 0, False: 0}, threading.get_ident()

    def count_and_note(text: str) -> int:
        counted[threading.get_ident() == loop_thread] += len(text)
        return count(text)

    ctx = teller(agent, count_tokens=count_and_note)
    messages = [
        Message(role=role, content=text, said_at=NOON, occurrence=n) for n, (role, text) in enumerate(CASES[case])
    ]
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="long", now=NOON)
        stored = await sessions.append(tx, messages, session_id=session_id, ctx=ctx)
        assert counted[True] < 0.05 * counted[False], "appended"
    async with db.transaction(agent) as tx:
        await session_close.close_session(tx, session_id=session_id, ctx=ctx)
    assert len(stored) == len(messages) and counted[True] < 0.05 * counted[False], "closed"
