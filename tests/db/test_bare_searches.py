"""The searches that a context is measured against give ids and scores, and read nothing else."""

from bench.context import SQL
from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.memory.recall import K1, B
from tests.support import ANA, NOON, teller

SAID = ("The kettle is blue.", "The kettle is in the blue cupboard.", "The cups are white.", "Thanks.")
ASKED = {"agent_id": ANA, "input": "blue cups", "kinds": ["exchange"], "limits": [2], "k1": K1, "b": B}


async def test_the_bare_search_by_words_gives_the_best_and_their_scores(tx: Tx) -> None:
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="s", now=NOON)
    lines = [Message(role="user", content=text, said_at=NOON) for text in SAID]
    await sessions.append(tx, lines, session_id=session_id, ctx=teller())
    rows = await SQL["search_bm25"].fetch_all(tx, **ASKED)
    assert [tuple(row.keys()) for row in rows] == [("memory_id", "score")] * 2
    assert rows[0]["score"] > rows[1]["score"] > 0
    said = "select summary from memory.memories where memory_id = $1"
    assert [await tx.fetchval(said, row["memory_id"]) for row in rows] == [
        "[2026-11-21] User: The cups are white.",
        "[2026-11-21] User: The kettle is blue.",
    ]


def test_it_asks_the_memories_only_for_how_long_texts_are() -> None:
    assert SQL["search_bm25"].sql.count("memory.memories") == 1
    assert "memory.memories" not in SQL["search_vectors"].sql
