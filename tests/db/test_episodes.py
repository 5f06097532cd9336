"""Episodes: told by somebody, or made from what was said in a session."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message, Role
from newton.dialogue.session_close import MAX_MESSAGES, MIN_MESSAGES, close_session
from newton.errors import ConflictError
from newton.heart.episodes import NewEpisode, add_episodes
from tests.support import ANA, NOON, teller

TEA = NewEpisode(
    ref="tea",
    title="Tea",
    content="We had tea.",
    started_at=NOON,
    ended_at=NOON + timedelta(hours=1),
    participants=("Ana", "Ben"),
)


async def say(tx: Tx, *said: str, role: Role = "user", aside: bool = False) -> UUID:
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="s", now=NOON)
    lines = [Message(role=role, content=text, said_at=NOON, is_notice=aside) for text in said]
    await sessions.append(tx, lines, session_id=session_id, ctx=teller())
    return session_id


async def closed(tx: Tx, session_id: UUID) -> int:
    return await close_session(tx, session_id=session_id, ctx=teller(trust="user"))


async def spans(tx: Tx) -> list[tuple[int, int]]:
    rows = await tx.fetch("select first_position, last_position from heart.episodes order by first_position")
    return [tuple(row) for row in rows]


async def test_an_episode_is_kept_with_what_is_its_own(tx: Tx) -> None:
    assert await add_episodes(tx, [TEA], ctx=teller()) == 1
    row = await tx.fetchrow(
        "select e.title, e.started_at, e.ended_at, e.participants, e.session_id, m.summary, m.state, m.full_text"
        " from heart.episodes as e join memory.memories as m using (agent_id, memory_id)"
    )
    assert row is not None
    assert (row["title"], row["started_at"], row["ended_at"]) == ("Tea", NOON, NOON + timedelta(hours=1))
    assert (row["participants"], row["session_id"], row["state"]) == (["Ana", "Ben"], None, "ACTIVE")
    assert (row["summary"], row["full_text"]) == ("[2026-11-21] Tea: We had tea.", "We had tea.")


async def test_the_same_episode_is_kept_once(tx: Tx) -> None:
    assert await add_episodes(tx, [TEA], ctx=teller()) == 1
    assert await add_episodes(tx, [TEA], ctx=teller()) == 0
    assert await tx.fetchval("select count(*) from heart.episodes") == 1
    await add_episodes(tx, [TEA], ctx=teller())
    with pytest.raises(ConflictError, match="'tea' exists with other content"):
        await add_episodes(tx, [replace(TEA, content="We had coffee.")], ctx=teller())


async def test_the_same_episode_twice_in_one_batch_is_kept_once(tx: Tx) -> None:
    assert await add_episodes(tx, [TEA, TEA], ctx=teller()) == 1
    assert await tx.fetchval("select count(*) from heart.episodes") == 1


async def test_episodes_of_a_session_cover_each_line_once(tx: Tx) -> None:
    session_id = await say(tx, "one", "two", "three", "four")
    assert await closed(tx, session_id)
    assert not await closed(tx, session_id), "nothing new was said"
    await say(tx, "five", "six")
    assert not await closed(tx, session_id), "too little was said"
    await say(tx, "seven", "eight", "nine")
    assert await closed(tx, session_id)
    assert await spans(tx) == [(0, 3), (4, 8)]


async def test_a_long_session_becomes_several_episodes_that_cover_each_line_once(tx: Tx) -> None:
    last = 2 * MAX_MESSAGES + MIN_MESSAGES - 1
    session_id = await say(tx, *[f"line {n}" for n in range(last)])
    assert await closed(tx, session_id) == 2, "what is left is too little to tell"
    await say(tx, "one more")
    assert await closed(tx, session_id) == 1
    assert await spans(tx) == [(0, MAX_MESSAGES - 1), (MAX_MESSAGES, 2 * MAX_MESSAGES - 1), (2 * MAX_MESSAGES, last)]


async def test_too_few_lines_and_an_empty_session_have_nothing_to_tell(tx: Tx) -> None:
    session_id = await say(tx, *[f"line {n}" for n in range(MIN_MESSAGES - 1)])
    assert not await closed(tx, session_id)
    assert await spans(tx) == []
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="empty", now=NOON)
    assert not await closed(tx, session_id)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [(["user"], "user"), (["user", "assistant"], "agent"), (["user", "tool", "assistant"], "user"), (["tool"], "tool")],
)
async def test_an_episode_is_made_of_the_lines_that_are_not_foreign(tx: Tx, roles: list[Role], expected: str) -> None:
    for role in roles:
        await say(tx, *[f"{role} says {n}" for n in range(4)], role=role)
    assert await closed(tx, await say(tx))
    assert await tx.fetchval("select trust from memory.memories where kind = 'episode'") == expected
    text = await tx.fetchval("select full_text from memory.memories where kind = 'episode'")
    assert ("tool says" in text) == (expected == "tool")


async def test_an_episode_points_to_the_lines_it_begins_and_ends_with(tx: Tx) -> None:
    session_id = await say(tx, "We went to the harbour.", "It was cold.", "Very.", "Then we went home.")
    await closed(tx, session_id)
    rows = await tx.fetch(
        "select s.summary from memory.sources as l join memory.memories as s"
        " on s.agent_id = l.agent_id and s.memory_id = l.source_id order by s.position"
    )
    assert [row["summary"] for row in rows] == [
        "[2026-11-21] User: We went to the harbour.",
        "[2026-11-21] User: Then we went home.",
    ]
    assert await tx.fetchval("select summary from memory.memories where kind = 'episode'") == (
        "[2026-11-21] We went to the harbour.: User talked, 4 lines. It ended with User: Then we went home."
    )


async def test_an_episode_tells_what_was_come_back_to(tx: Tx) -> None:
    session_id = await say(
        tx,
        "We went to the harbour.",
        "The ferry to Oslo was late because of the ice.",
        "My cat sleeps all day.",
        "So the ferry will be late all week.",
        "Then we went home.",
    )
    await closed(tx, session_id)
    assert await tx.fetchval("select full_text from memory.memories where kind = 'episode'") == (
        "User talked, 5 lines. They came back to this: The ferry to Oslo was late because of the ice."
        " My cat sleeps all day. It ended with User: Then we went home."
    )


async def test_lines_that_only_repeat_memories_do_not_tell_the_episode(tx: Tx) -> None:
    session_id = await say(tx, "From memory: an echo", role="assistant", aside=True)
    await say(tx, "We sold the boat.", "To whom?", "To Carl.")
    assert await closed(tx, session_id)
    summary = await tx.fetchval("select summary from memory.memories where kind = 'episode'")
    assert "echo" not in summary
    assert await spans(tx) == [(0, 3)]
