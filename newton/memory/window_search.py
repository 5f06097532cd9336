"""Search in the windows of long texts: the part of each text that answers, and how similar it is to the query."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.ranking import SearchHit
from newton.memory.search_types import BestWindow, MemorySearch, RecallQuery

SQL = load("newton.memory", "window_search.sql")

# Weight of the share of the input's words in a window; the cosine has weight 1. Words decide only between windows
# without vectors: the subject of the input is in many windows of a text about it, often not in the one that answers.
WORD_WEIGHT = 0.01


async def score_windows(
    tx: Tx, query: RecallQuery, hits: Sequence[SearchHit], search: MemorySearch
) -> tuple[Mapping[UUID, BestWindow], list[SearchHit]]:
    """Return the best window of each hit with a long text, and the hits with the similarity of that window if higher.

    The model reads only the beginning of a long text, and a sentence among many moves the vector of the whole little.
    One statement reads the windows of all hits; without a long text there is none.
    """
    long_ids = [hit.memory_id for hit in hits if hit.is_long]
    if not long_ids:
        return {}, list(hits)
    rows = await SQL["find_best_windows"].fetch_all(
        tx,
        agent_id=search.agent_id,
        model_id=query.model_id,
        embedding=query.vector,
        input=query.text,
        memory_ids=long_ids,
        word_weight=WORD_WEIGHT,
    )
    windows = {row[0]: BestWindow(*row[1:4]) for row in rows}
    similarities = {row[0]: row[4] for row in rows} if search.weights.similarity else {}
    return windows, [hit._replace(similarity=max(hit.similarity, similarities.get(hit.memory_id, 0.0))) for hit in hits]
