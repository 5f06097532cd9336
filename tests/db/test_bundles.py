"""Bundles at rest: what the next input asks of them costs the same however many there are."""

import re

from newton.cognition.sources.session_state import SQL, find_session_frame
from newton.db.pool import Tx
from newton.ids import new_id
from tests.support import ANA, NOON

OTHERS = """
insert into cognition.bundles (
    agent_id, bundle_id, session_id, created_at, input, frame, profile, budget, tokens, text, memory_ids,
    candidates, trace
)
select
    $1, gen_random_uuid(), s.session_id, $2::timestamptz + n * interval '1 s', '', 'of ' || s.ref, 'p', 1, 0, '', '{}',
    '', '{}'
from dialogue.sessions as s, generate_series(1, $3) as n
where s.agent_id = $1
returning agent_id
"""
SESSION = "insert into dialogue.sessions (agent_id, session_id, ref, created_at) values ($1, $2, $3, $4)"


async def test_the_frame_of_a_session_is_looked_up_among_its_own_bundles(tx: Tx) -> None:
    old, new = new_id(), new_id()
    await tx.execute(SESSION, ANA, old, "old", NOON)
    await tx.execute(OTHERS, ANA, NOON, 2000)
    await tx.execute(OTHERS.replace("s.session_id, $2", "null, $2"), ANA, NOON, 2000)
    await tx.execute(SESSION, ANA, new, "new", NOON)
    assert await find_session_frame(tx, agent_id=ANA, session_id=old) == "of old"
    assert await find_session_frame(tx, agent_id=ANA, session_id=new) is None
    for session_id in (old, new):
        query = SQL["get_last_context"]
        rows = await tx.fetch(
            f"explain (analyze, buffers off) {query.sql}",
            *query.bind(agent_id=ANA, session_id=session_id, moment=None, since=None, position=None),
        )
        plan = "\n".join(row[0] for row in rows)
        assert "bundles_session_idx" in plan
        # each of the few rows is one that the limits left
        assert not re.search(r"Removed by Filter: ([2-9]|1\d)|Sort  \(.*rows=[1-9]\S* loops", plan), plan
