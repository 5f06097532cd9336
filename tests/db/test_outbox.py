"""The embedding outbox: a memory never waits for a model, and a model's vector lands exactly once."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest

from newton.agent.services.memories import FactDraft, MemoryService
from newton.clock import ManualClock
from newton.db.pool import Database, in_transaction
from newton.errors import ProviderError
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.ids import derive_model_id
from newton.memory.vectors import BATCH, MAX_ATTEMPTS, DrainControl, EmbeddingOutbox, read_backlog
from newton.providers.embedding import Embedder, Vector
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from tests.support import DEFAULT_THRESHOLDS, NOON, agent_scope, count, ground, teller

POISON = "poison"


class Picky(HashEmbedder):
    """Takes any text but the poisoned ones, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        assert not in_transaction(), "no model is asked inside a transaction"
        self.asked += texts
        if any(POISON in text for text in texts):
            raise ProviderError("It cannot take that text.", hint="Leave it out.")
        return await super().embed(texts)


def verbs(db: Database, agent: UUID, embedder: Embedder | None) -> MemoryService:
    return MemoryService(
        scope=agent_scope(
            agent_id=agent,
            origin="test",
            db=db,
            clock=ManualClock(NOON),
            count_tokens=count,
            thresholds=DEFAULT_THRESHOLDS,
            embedder=embedder,
        )
    )


async def know(db: Database, agent: UUID, *contents: str) -> None:
    told = [NewFact(ref=content, content=content, valid_from=NOON) for content in contents]
    async with db.transaction(agent) as tx:
        await fact_store.add_facts(tx, told, ctx=ground(teller(agent)))


async def waiting(db: Database, agent: UUID) -> tuple[int, int]:
    async with db.transaction(agent) as tx:
        found = await read_backlog(tx, agent_id=agent)
    return found.waiting, found.given_up


async def embedded(db: Database, agent: UUID) -> list[str]:
    """The contents that have a vector, one for each vector."""
    async with db.transaction(agent) as tx:
        rows = await tx.fetch(
            "select m.full_text from memory.embeddings as e join memory.memories as m"
            " on m.agent_id = e.agent_id and m.memory_id = e.memory_id order by 1"
        )
    return [row["full_text"] for row in rows]


async def test_a_memory_is_kept_and_found_by_its_words_while_no_model_answers(db: Database, agent: UUID) -> None:
    down = verbs(db, agent, BrokenEmbedder())
    assert (await down.remember(FactDraft(content="The spare key hangs behind the boiler"))).status == "new"
    drained = await EmbeddingOutbox(db, BrokenEmbedder(), agent).drain()
    found = await down.recall("where is the spare key?")
    assert drained.stopped_by == "The embedding endpoint does not answer."
    assert (drained.embedded, drained.failed) == (0, 0)
    assert [f.summary for f in found.memories] == ["The spare key hangs behind the boiler"]
    assert found.missing == {"embeddings": "The embedding endpoint does not answer."}
    assert await waiting(db, agent) == (1, 0), "an outage of the model is no fault of the text"


async def test_what_waited_is_embedded_once_when_the_model_is_back(db: Database, agent: UUID) -> None:
    await know(db, agent, "one", "two", "three")
    await EmbeddingOutbox(db, BrokenEmbedder(), agent).drain()
    first = await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    second = await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    assert (first.embedded, second.embedded) == (3, 0)
    assert await embedded(db, agent) == ["one", "three", "two"]
    assert await waiting(db, agent) == (0, 0)


async def test_the_vector_is_the_models_own(db: Database, agent: UUID) -> None:
    await know(db, agent, "the harbour at dawn")
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    async with db.transaction(agent) as tx:
        row = await tx.fetchrow("select model_id, embedding from memory.embeddings")
        model = await tx.fetchrow("select * from memory.models where model_id = $1", row["model_id"] if row else None)
    assert row is not None
    assert model is not None
    expected = (await HashEmbedder().embed(["the harbour at dawn"]))[0]
    assert np.allclose(row["embedding"].to_numpy(), expected, atol=1e-3)
    assert (row["model_id"], model["identity"], model["dimensions"]) == (
        derive_model_id(HashEmbedder.identity),
        HashEmbedder.identity,
        HashEmbedder.dimensions,
    )


async def test_several_workers_at_once_deliver_each_vector_once(db: Database, agent: UUID) -> None:
    texts = [f"text {n:03}" for n in range(60)]
    await know(db, agent, *texts)
    await asyncio.gather(*(EmbeddingOutbox(db, HashEmbedder(), agent).drain() for _ in range(4)))
    assert await embedded(db, agent) == texts
    assert await waiting(db, agent) == (0, 0)


async def test_a_text_no_model_can_take_is_given_up_after_eight_tries_and_holds_up_nobody(
    db: Database, agent: UUID
) -> None:
    await know(db, agent, "good", POISON, "fine")
    picky = Picky()
    outbox = EmbeddingOutbox(db, picky, agent)
    first = await outbox.drain()
    assert (first.embedded, first.failed, first.stopped_by) == (2, 1, None)
    assert await embedded(db, agent) == ["fine", "good"]
    for _ in range(MAX_ATTEMPTS - 1):
        assert await waiting(db, agent) == (1, 0)
        await know(db, agent, f"after {len(picky.asked)}")
        assert (await outbox.drain()).embedded == 1
    assert await waiting(db, agent) == (0, 1)
    picky.asked.clear()
    await know(db, agent, "last")
    assert (await outbox.drain()).embedded == 1
    assert picky.asked == ["last"], "it is not tried again"
    async with db.transaction(agent) as tx:
        left = await read_backlog(tx, agent_id=agent)
    assert left.error == "It cannot take that text."
    found = await verbs(db, agent, HashEmbedder()).recall(f"{POISON} again")
    assert POISON in [f.summary for f in found.memories], "it is still found by its words"


async def test_more_than_a_batch_is_emptied_and_each_batch_is_reported(db: Database, agent: UUID) -> None:
    await know(db, agent, *[f"text {n}" for n in range(BATCH + 10)])
    seen: list[int] = []
    drained = await EmbeddingOutbox(db, HashEmbedder(), agent).drain(control=DrainControl(on_progress=seen.append))
    assert drained.embedded == BATCH + 10
    assert [count for count in seen if count] == [BATCH, 10]
    assert await waiting(db, agent) == (0, 0)


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_no_more_is_embedded_than_was_asked_for(db: Database, agent: UUID, most: int) -> None:
    await know(db, agent, "a", "b", "c", "d", "e")
    assert (await EmbeddingOutbox(db, HashEmbedder(), agent).drain(limit=most)).embedded == most
    assert await waiting(db, agent) == (5 - most, 0)


async def test_a_memory_that_is_rolled_back_leaves_nothing_to_embed(db: Database, agent: UUID) -> None:
    with pytest.raises(RuntimeError, match="changed my mind"):
        async with db.transaction(agent) as tx:
            told = [NewFact(ref="r", content="never mind", valid_from=NOON)]
            await fact_store.add_facts(tx, told, ctx=ground(teller(agent)))
            raise RuntimeError("changed my mind")
    assert await waiting(db, agent) == (0, 0)
