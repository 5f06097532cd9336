"""Long texts are counted and cut outside of the event loop."""

import threading
from uuid import UUID

import pytest

from newton.db.pool import Database
from newton.dialogue import session_close, sessions
from newton.dialogue.messages import Message, Role
from tests.support import NOON, count, teller

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
