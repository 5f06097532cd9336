"""Search for the part of a message that replaces a known fact.

A statement that replaces a fact is worth remembering whatever its form: the classifier of statements rejects "the doc
halved it to 10", which is important beside "I take 20 mg in the morning".
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database
from newton.db.queries import load
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.statements.change_detection import detect_change, is_comparable, score_vectors
from newton.providers.embedding import Vector
from newton.providers.minilm import load_reader

SQL = load("newton.agent.maintenance", "changing_statements.sql")

MAX_FACTS = 5  # of the facts nearest to a message, that its parts are compared with


class _NearFact(NamedTuple):
    text: str
    vector: Vector


async def find_changing_parts(
    db: Database,
    ctx: LifecycleContext,
    spans: Mapping[str, Sequence[str]],
    vectors: Mapping[str, Vector],
    *,
    model_id: UUID,
) -> dict[str, str]:
    """Map each message with a part that replaces a known fact to the shortest such part.

    `spans` are the parts of each message (`list_spans`), `vectors` those of messages and parts by the model for which
    change detection was trained.
    """
    if not spans:
        return {}
    near: defaultdict[str, list[_NearFact]] = defaultdict(list)
    async with db.transaction(ctx.agent_id) as tx:
        rows = await SQL["find_nearest_facts"].fetch_all(
            tx,
            agent_id=ctx.agent_id,
            model_id=model_id,
            vectors=[HalfVector(vectors[message]) for message in spans],
            max_rows=MAX_FACTS,
        )
    names = list(spans)
    for row in rows:
        near[names[row["position"] - 1]].append(_NearFact(row["text"], row["vector"].to_numpy().astype("float32")))
    return await asyncio.to_thread(_choose_parts, spans, near, vectors)


def _choose_parts(
    spans: Mapping[str, Sequence[str]], near: Mapping[str, Sequence[_NearFact]], vectors: Mapping[str, Vector]
) -> dict[str, str]:
    pairs = {
        (fact.text, part): fact
        for message, parts in spans.items()
        for part in parts
        for fact in near.get(message, ())
        if is_comparable(fact.text, part, cosine=float(fact.vector @ vectors[part]))
    }
    readings = zip(pairs, load_reader().score_pairs(list(pairs)), strict=True) if pairs else ()
    changing = {
        part
        for (older, part), reading in readings
        if _replaces(pairs[older, part], part, vectors[part], reading=reading)
    }
    found = {message: next((part for part in parts if part in changing), None) for message, parts in spans.items()}
    return {message: part for message, part in found.items() if part}


def _replaces(fact: _NearFact, part: str, vector: Vector, *, reading: float) -> bool:
    cosine, score = float(fact.vector @ vector), score_vectors(fact.vector, vector)
    return detect_change(fact.text, part, cosine=cosine, vector_score=score, reading=reading).kind == "update"
