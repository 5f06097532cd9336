"""Compactions in the database: whole or not at all, dropped and never made again, gone with what is forgotten."""

import random
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from newton.clock import ManualClock
from newton.db.pool import Database, Tx
from newton.dialogue import log, sessions
from newton.dialogue.compaction import entry_store
from newton.dialogue.messages import Message
from newton.dialogue.view import outermost_entries
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from tests.db.conversing import append, entry, forgets, keep, restore, session, texts, view
from tests.support import ANA, NOON, teller
from tests.talks import calls, gives, says, turn

TALK = [*turn(0, work=1), *turn(1, work=1), *turn(2, work=1)]


async def test_an_entry_stands_for_its_lines(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    await keep(tx, session_id, entry(0, 3), entry(5, 6, kind="tools"), entry(10, 10, kind="mask"))
    shown = await view(tx, session_id)
    assert [(item.first, item.last, item.kind) for item in shown] == [
        (0, 3, "turn"),
        (4, 4, "line"),
        (5, 6, "tools"),
        (7, 7, "line"),
        (8, 8, "line"),
        (9, 9, "line"),
        (10, 10, "mask"),
        (11, 11, "line"),
    ]
    assert (shown[6].role, shown[6].tool_call_id, shown[6].name) == ("tool", "c2.0", "read_file")
    assert shown[5].calls == TALK[9].calls


async def test_restoring_gives_back_exactly_what_was_shown_before(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    bare = await view(tx, session_id)
    (inner,) = await keep(tx, session_id, entry(1, 2, kind="tools"))
    once = await view(tx, session_id)
    (outer,) = await keep(tx, session_id, entry(0, 3))
    (merged,) = await keep(tx, session_id, entry(0, 7, kind="goals"))
    assert await restore(tx, session_id, merged) == [merged.entry_id]
    assert (await texts(tx, session_id))[0] == outer.text
    assert await restore(tx, session_id, outer) == [outer.entry_id]
    assert await view(tx, session_id) == once
    assert await restore(tx, session_id, inner) == [inner.entry_id]
    assert await view(tx, session_id) == bare


async def test_restoring_an_inner_entry_drops_those_that_cover_it_and_no_other(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    inner, other = await keep(tx, session_id, entry(1, 2, kind="tools"), entry(5, 6, kind="tools"))
    (outer,) = await keep(tx, session_id, entry(0, 3))
    (merged,) = await keep(tx, session_id, entry(0, 7, kind="goals"))
    assert set(await restore(tx, session_id, inner)) == {inner.entry_id, outer.entry_id, merged.entry_id}
    assert [item.kind for item in await view(tx, session_id)].count("tools") == 1
    assert other.text in await texts(tx, session_id)
    assert await restore(tx, session_id, inner) == [], "it is dropped already"


async def test_restored_lines_are_pinned_in_what_is_read(tx: Tx) -> None:
    # a restored message stays restored
    session_id = await session(tx, "s", *TALK)
    (one,) = await keep(tx, session_id, entry(0, 3))
    assert (await log.load_view(tx, agent_id=ANA, session_id=session_id)).pinned == frozenset()
    await restore(tx, session_id, one)
    assert (await log.load_view(tx, agent_id=ANA, session_id=session_id)).pinned == {0, 1, 2, 3}


async def test_what_lies_beside_it_under_the_same_account_is_not_pinned(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    (inner,) = await keep(tx, session_id, entry(2, 2, kind="mask"))
    await keep(tx, session_id, entry(0, 3), entry(4, 7))
    await keep(tx, session_id, entry(0, 7, kind="goals"))
    await restore(tx, session_id, inner)
    assert (await log.load_view(tx, agent_id=ANA, session_id=session_id)).pinned == {2}


async def test_every_entry_is_listed_with_when_it_was_dropped(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    (inner,) = await keep(tx, session_id, entry(1, 2, kind="tools"))
    (outer,) = await keep(tx, session_id, entry(0, 3))
    await restore(tx, session_id, outer)
    listed = await entry_store.list_entries(tx, agent_id=ANA, session_id=session_id)
    assert [(one.entry, one.restored_at) for one in listed] == [(outer, NOON), (inner, None)]


async def test_an_entry_of_another_session_cannot_be_restored_here(tx: Tx) -> None:
    here, there = await session(tx, "here", *TALK), await session(tx, "there", *TALK)
    (one,) = await keep(tx, there, entry(0, 3))
    with pytest.raises(NotFoundError, match="no compaction entry"):
        await restore(tx, here, one)
    assert (await texts(tx, there))[0] == one.text


async def test_what_was_planned_on_a_view_that_has_changed_is_not_kept(tx: Tx) -> None:
    # no double compaction: neither an entry nor a restoration in between is overlooked
    session_id = await session(tx, "s", *TALK)
    seen = (await log.load_view(tx, agent_id=ANA, session_id=session_id)).sources

    async def late(one: object) -> bool:
        return await entry_store.save_if_unchanged(tx, [one], agent_id=ANA, session_id=session_id, sources=seen)  # pyright: ignore[reportArgumentType]  # an entry

    (first,) = await keep(tx, session_id, entry(0, 3))
    assert not await late(entry(0, 3))
    assert not await late(entry(4, 7)), "it has to end before what changed"
    await restore(tx, session_id, first)
    seen = (await log.load_view(tx, agent_id=ANA, session_id=session_id)).sources
    await keep(tx, session_id, entry(4, 7))
    assert await late(entry(1, 2, kind="tools")), "what came behind it changes nothing for it"
    assert len(await entry_store.list_entries(tx, agent_id=ANA, session_id=session_id)) == 3


async def test_what_was_planned_before_lines_were_forgotten_is_not_kept(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    seen = (await log.load_view(tx, agent_id=ANA, session_id=session_id)).sources
    await forgets(tx, session_id, 0)
    made = [entry(0, 3, text="Please look at part 0")]
    assert not await entry_store.save_if_unchanged(tx, made, agent_id=ANA, session_id=session_id, sources=seen)


@pytest.mark.parametrize(
    "bad",
    [
        replace(entry(0, 3), tokens=500),
        replace(entry(0, 3), tokens=0),
        replace(entry(0, 3), text=""),
        replace(entry(3, 0), first=3, last=0),
        replace(entry(0, 3), strategy=""),
    ],
    ids=["no shorter", "nothing", "empty", "backwards", "nameless"],
)
async def test_an_entry_that_makes_no_sense_is_refused_by_the_database(tx: Tx, bad: object) -> None:
    # compaction lowers the token count or is rejected
    session_id = await session(tx, "s", *TALK)
    with pytest.raises(asyncpg.CheckViolationError):
        await keep(tx, session_id, bad)  # pyright: ignore[reportArgumentType]  # an entry


async def test_the_log_stays_as_it_is_whatever_stands_for_it(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    before = await tx.fetch("select * from dialogue.messages order by position")
    (one,) = await keep(tx, session_id, entry(0, 7))
    await restore(tx, session_id, one)
    assert await tx.fetch("select * from dialogue.messages order by position") == before
    assert await log.get_token_count(tx, agent_id=ANA, session_id=session_id) == sum(r["tokens"] + 4 for r in before)


# --- forgetting ---


async def test_forgetting_a_line_takes_the_entries_that_tell_of_it(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    await keep(tx, session_id, entry(1, 2, kind="tools"), entry(5, 6, kind="tools"))
    await keep(tx, session_id, entry(0, 3, text="Please look at part 0"), entry(4, 7))
    await keep(tx, session_id, entry(0, 7, kind="goals", text="of part 0 and 1"))
    await forgets(tx, session_id, 0)
    assert (await texts(tx, session_id))[:4] == ["[forgotten]", "[tools 1-2]", TALK[3].content, "[turn 4-7]"]
    left = await tx.fetchval("select string_agg(text, ' ') from dialogue.compaction_entries")
    assert "part 0" not in left


async def test_what_was_restored_stays_so_when_a_line_of_it_is_forgotten(tx: Tx) -> None:
    session_id = await session(tx, "s", *TALK)
    (one,) = await keep(tx, session_id, entry(0, 3, text="Please look at part 0"))
    await restore(tx, session_id, one)
    await forgets(tx, session_id, 0)
    assert (await log.load_view(tx, agent_id=ANA, session_id=session_id)).pinned == {0, 1, 2, 3}
    assert await tx.fetchval("select text from dialogue.compaction_entries") == "[forgotten]"


async def test_a_forgotten_call_and_a_forgotten_answer_still_belong_together(tx: Tx) -> None:
    # a call and its result are never split
    lines = [says("user", "Look."), calls("a", "b", text="I look.", arguments='{"path": "secret.txt"}')]
    lines += [gives("a", "the secret"), gives("b", "x"), says("assistant", "Done.")]
    session_id = await session(tx, "s", *lines)
    await forgets(tx, session_id, 1)
    await forgets(tx, session_id, 2)
    shown = await view(tx, session_id)
    assert [call.id for call in shown[1].calls] == ["a", "b"]
    assert [item.tool_call_id for item in shown[2:4]] == ["a", "b"]
    words = await tx.fetchval("select string_agg(m::text, ' ') from dialogue.messages as m")
    assert "secret" not in words


# --- bad input ---


@pytest.mark.parametrize(
    "lines",
    [
        [gives("a", "x")],
        [gives("a", "x"), calls("a")],
        [calls("a"), gives("b", "x")],
        [calls("a"), gives("a", "x"), replace(gives("a", "y"), ref="2")],
    ],
    ids=["no call", "before its call", "another's", "twice"],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_an_answer_without_an_open_call_is_refused(tx: Tx, lines: list[Message], *, at_once: bool) -> None:
    session_id = await session(tx, "s")
    with pytest.raises(InputError, match="not open in this session"):
        if at_once:
            await append(tx, session_id, *lines)
        else:
            for line in lines:
                await append(tx, session_id, line)


async def test_an_id_may_come_again_when_its_call_has_its_answer(tx: Tx) -> None:
    # some endpoints number calls from the beginning in each turn
    session_id = await session(tx, "s")
    for number in range(3):
        for line in (calls("call_0", text=f"step {number}"), gives("call_0", f"gave {number}")):
            await append(tx, session_id, line)
    assert [item.tool_call_id for item in await view(tx, session_id)] == [None, "call_0"] * 3
    with pytest.raises(InputError):
        await append(tx, session_id, gives("call_0", "once more"))


async def test_an_answer_sent_again_is_left_out(tx: Tx) -> None:
    session_id = await session(tx, "s", calls("a"), gives("a", "x"))
    assert await append(tx, session_id, calls("a"), gives("a", "x")) == []


async def test_a_known_id_with_other_words_changes_nothing(tx: Tx) -> None:
    session_id = await session(tx, "s", replace(says("user", "one"), ref="1"), replace(calls("a"), ref="2"))
    for other in (
        replace(says("user", "two"), ref="1"),
        replace(calls("b"), ref="2"),
        replace(calls("a", arguments="{}"), ref="2"),
    ):
        with pytest.raises(ConflictError, match="other content"):
            await append(tx, session_id, other)
    assert len(await view(tx, session_id)) == 2


async def test_lines_stand_in_the_order_in_which_they_came_whatever_their_times(tx: Tx) -> None:
    late = replace(says("user", "first"), said_at=NOON.replace(year=2030))
    early = replace(says("assistant", "second"), said_at=NOON.replace(year=2001))
    session_id = await session(tx, "s", late)
    await append(tx, session_id, early)
    assert await texts(tx, session_id) == ["first", "second"]


async def test_a_long_line_is_kept_whole_and_shown_trimmed(tx: Tx) -> None:
    text = "\n".join(f"{n} value = {n}" for n in range(5_000))
    session_id = await session(tx, "s", calls("a"), gives("a", text), says("user", "x" * 90_000))
    _, output, said = await view(tx, session_id)
    assert output.kind == said.kind == "mask"
    assert output.tokens <= 2_004 and said.tokens <= 8_004
    assert output.text.startswith("[Artifact ") and "\n1| 0 value = 0\n" in output.text
    assert output.text.endswith("\n5000| 4999 value = 4999")
    kept = await log.load_messages(tx, [log.MessageRange(0, log.MAX_POSITION)], agent_id=ANA, session_id=session_id)
    assert kept[1].message.content == text
    assert said.is_input and output.tool_call_id == "a"
    (trim, _) = await entry_store.list_entries(tx, agent_id=ANA, session_id=session_id)
    await restore(tx, session_id, trim.entry)
    assert (await view(tx, session_id))[1].text == text


# --- who may ---


async def test_one_at_a_time_makes_a_session_shorter(tx: Tx) -> None:
    one, two = new_id(), new_id()
    here, there = await session(tx, "here", *TALK), await session(tx, "there", *TALK)

    async def held(holder: UUID, session_id: UUID = here, seconds: float = 60) -> bool:
        return await log.acquire_lease(tx, holder, "compaction", agent_id=ANA, session_id=session_id, seconds=seconds)

    assert await held(one) and await held(one), "it may ask again"
    assert not await held(two)
    assert await held(two, there), "another session is not meant"
    await log.release_lease(tx, two, "compaction", agent_id=ANA, session_id=here)
    assert not await held(two), "only the holder lets go"
    await log.release_lease(tx, one, "compaction", agent_id=ANA, session_id=here)
    assert await held(two)


async def test_a_holder_that_died_is_waited_for_no_longer_than_it_asked(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s", now=NOON)
        await sessions.append(tx, TALK, session_id=session_id, ctx=ctx)
        assert await log.acquire_lease(tx, new_id(), "compaction", agent_id=agent, session_id=session_id, seconds=0.0)
    clock = ManualClock(NOON)  # ours says nothing here: the database's does
    async with db.transaction(agent) as tx:
        assert clock.now() == NOON
        assert await log.acquire_lease(tx, new_id(), "compaction", agent_id=agent, session_id=session_id, seconds=60)
    async with db.transaction(agent) as tx:
        assert not await log.acquire_lease(
            tx, new_id(), "compaction", agent_id=agent, session_id=session_id, seconds=60
        )


@pytest.mark.parametrize(
    "change",
    [
        "update dialogue.compaction_entries set text = 'x'",
        "delete from dialogue.compaction_entries",
        "delete from dialogue.entry_restorations",
        "update dialogue.compaction_runs set tokens_after = 0",
        "delete from dialogue.lineage",
        "delete from dialogue.injections",
        "delete from dialogue.leases",
    ],
)
async def test_what_was_made_cannot_be_changed(tx: Tx, change: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await tx.execute(change)


async def test_the_database_knows_which_entries_are_shown(tx: Tx) -> None:
    chance = random.Random(5)
    for number in range(40):
        session_id = await session(tx, f"s{number}", *TALK)
        firsts = [chance.randrange(12) for _ in range(chance.randrange(1, 12))]
        made = [
            replace(entry(first, first + chance.randrange(6)), made_at=NOON + timedelta(seconds=chance.randrange(3)))
            for first in firsts
        ]
        await entry_store.insert(tx, made, agent_id=ANA, session_id=session_id)
        for one in chance.sample(made, len(made) // 3):
            await restore(tx, session_id, one)
        known = await entry_store.list_entries(tx, agent_id=ANA, session_id=session_id)
        seen = await log.load_sources(tx, agent_id=ANA, session_id=session_id)
        assert seen.entries == outermost_entries([one.entry for one in known if one.restored_at is None])
