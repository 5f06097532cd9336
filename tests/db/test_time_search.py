"""What is of a time: it happened or was said then, or speaks of it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.memory.times import time_search
from newton.memory.times.time_expressions import find_time_ranges
from tests.support import ANA, ground, teller

MAY = datetime(2023, 5, 8, 10, tzinfo=UTC)
LATER = datetime(2023, 9, 1, tzinfo=UTC)
SAID = (
    (MAY, "I went to the doctor yesterday."),
    (MAY, "We moved in March, and 2021 was quiet: nobody came in 2022."),
    (MAY + timedelta(days=1), "It was a fine day."),
    (MAY + timedelta(days=30), "Last month we sailed, and this month we row."),
)


async def lived(tx: Tx) -> dict[UUID, str]:
    ctx = teller(now=LATER)
    for number, (at, words) in enumerate(SAID):
        session_id = await sessions.ensure_session(tx, agent_id=ANA, ref=f"s{number}", now=at)
        line = Message(role="user", content=words, said_at=at)
        await sessions.append(tx, [line], session_id=session_id, ctx=ctx)
    told = NewFact(ref="f1", content="Ana moved to Oslo last Monday", valid_from=MAY + timedelta(days=2))
    await fact_store.add_facts(tx, [told], ctx=ground(ctx))
    rows = await tx.fetch("select memory_id, summary from memory.memories where agent_id = $1", ANA)
    return {row["memory_id"]: row["summary"] for row in rows}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("on 7 May 2023", ["doctor"]),
        ("on 8 May 2023", ["doctor", "moved in March", "moved to Oslo"]),
        ("on 9 May 2023", ["fine day"]),
        ("on 10 May 2023", []),  # the fact was told then, and tells of another day
        ("in May 2023", ["doctor", "moved in March", "fine day", "sailed", "moved to Oslo"]),
        ("in March 2023", ["moved in March"]),
        ("on 3 March 2023", []),  # a month is of no day
        ("in 2022", ["moved in March"]),
        ("before 2023", ["moved in March"]),
        ("since June 2023", ["sailed"]),
        ("on 9 May 2023 or in March 2023", ["fine day", "moved in March"]),
        ("next year", []),
    ],
)
async def test_what_is_of_a_time(tx: Tx, asked: str, found: list[str]) -> None:
    # S001-12
    said = await lived(tx)
    times = find_time_ranges(asked, now=LATER)
    kinds = ["exchange", "fact"]
    spread = {
        "agent_id": ANA,
        "kinds": kinds,
        "limits": [9, 9],
        "quarantined": [],
        "past_states": [],
        "excluded_ids": [],
        "shown_ids": [],
    }
    told = await time_search.find_in_range(tx, times, spread)
    assert {next(words for words in found if words in said[one]) for one in told} == set(found)
    assert await time_search.filter_in_range(tx, list(said), times, agent_id=ANA) == told.keys()
    without = await time_search.find_in_range(tx, times, {**spread, "excluded_ids": list(told)})
    assert without == {}
