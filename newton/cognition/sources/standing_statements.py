"""Finds the standing instructions and preferences of the person that are most similar to an input."""

from collections.abc import Sequence
from uuid import UUID

from newton.cognition.questions.standing_choice import StandingStatement
from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Kind
from newton.memory.memory_reader import fetch_memories
from newton.memory.search_types import RecallQuery

SQL = load("newton.cognition.sources", "standing_statements.sql")

KINDS: Sequence[Kind] = ("exchange", "fact")  # that state an instruction or a preference
MAX_POOL = 500  # the latest statements, which are compared with the input
MAX_FOUND = 12


async def find_standing(
    tx: Tx, query: RecallQuery, request: ContextBuildRequest, hidden_ids: Sequence[UUID]
) -> tuple[StandingStatement, ...]:
    """Return the statements most similar to the input, the most similar first; without a vector, the latest ones."""
    kinds = [kind for kind in KINDS if request.filters.allows_kind(kind)]
    rows = await SQL["find_standing"].fetch_all(
        tx,
        agent_id=request.agent_id,
        model_id=query.model_id,
        embedding=query.vector,
        moment=request.as_of,
        kinds=kinds,
        excluded_ids=hidden_ids,
        max_pool=MAX_POOL,
        max_rows=MAX_FOUND,
    )
    if not rows:
        return ()
    marks = {row["memory_id"]: (row["standing"], row["similarity"]) for row in rows}
    found = await fetch_memories(tx, list(marks), agent_id=request.agent_id, moment=request.as_of)
    return tuple(
        StandingStatement(one._replace(similarity=marks[one.memory_id][1]), marks[one.memory_id][0]) for one in found
    )
