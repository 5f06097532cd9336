"""Recall with an encoder of questions beside the embedding model: order, failures, lateness and connections."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import numpy as np
import pytest

from newton.cognition.sources.source_reader import CachingQuestionEmbedder
from newton.db.pool import Database, Tx
from newton.deadline import NO_DEADLINE, RequestDeadline
from newton.errors import ProviderError
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import KINDS
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, RecallResult, SearchLimits
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.embedding import Embedder, Vector
from newton.providers.fakes import HashEmbedder
from tests.support import NOON, ground, teller

KETTLE, VIOLIN = "the kettle is in the cellar", "where is the violin"


async def know(db: Database, agent: UUID, *contents: str) -> None:
    """Store facts with their vectors."""
    learnt = [NewFact(ref=content, content=content, valid_from=NOON) for content in contents]
    async with db.transaction(agent) as tx:
        await fact_store.add_facts(tx, learnt, ctx=ground(teller(agent)))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()


def soon(seconds: float) -> RequestDeadline:
    return RequestDeadline.after(seconds, accepts_partial=True)


async def asked(
    db: Database, agent: UUID, text: str, embedder: Embedder, deadline: RequestDeadline = NO_DEADLINE
) -> RecallResult:
    limits = dict.fromkeys(KINDS, SearchLimits(searched=10, kept=20))
    search = MemorySearch(db=db, agent_id=agent, limits=limits, deadline=deadline)
    return await recall(text, embedder=embedder, search=search)


class Answering(HashEmbedder):
    """Encodes any question as what it would be answered by; the plain vector of a text waits for `late` seconds."""

    def __init__(self, answer: str, late: float = 0.0) -> None:
        self.answer, self.late = answer, late
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append("embed")
        await asyncio.sleep(self.late)
        return await super().embed(texts)

    async def embed_questions(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append("embed questions")
        await asyncio.sleep(0)
        return await super().embed([self.answer for _ in texts])


async def test_a_question_is_searched_for_by_its_answer_and_compared_by_its_text(db: Database, agent: UUID) -> None:
    # S002-25: relevance
    facts = [KETTLE, VIOLIN]
    await know(db, agent, *facts)
    text = "where is the boiler"
    answer = await asked(db, agent, text, Answering(facts[0]))
    plain, *stored = await HashEmbedder().embed([text, *facts])
    found_facts = {f.summary: (f.similarity, answer.find_answer_similarity(f)) for f in answer.memories}
    for fact, vector in zip(facts, stored, strict=True):
        assert found_facts[fact] == pytest.approx((float(plain @ vector), float(stored[0] @ vector)), abs=2e-3)
    assert answer.memories[0].summary == facts[0]
    assert (answer.missing, answer.query.vector is not answer.query.search_vector) == ({}, True)


async def test_the_search_for_a_question_does_not_need_the_vector_of_its_text(db: Database, agent: UUID) -> None:
    # S002-25
    await know(db, agent, KETTLE, VIOLIN)
    answer = await asked(db, agent, "which boiler", Answering(KETTLE, late=9), soon(0.6))
    assert answer.memories[0].summary == KETTLE
    assert answer.memories[0].similarity == pytest.approx(1, abs=2e-3)
    assert answer.missing == {"embeddings": "no answer within 0.6 seconds"}
    assert (answer.query.vector, answer.query.is_encoded, answer.answer_similarities) == (None, False, {})


async def test_a_text_is_embedded_when_its_question_is_encoded() -> None:
    # the search waits for the question, and both would share the cores
    embedder = Answering(KETTLE)
    caching = CachingQuestionEmbedder(embedder, embedder, {})
    async with asyncio.TaskGroup() as tasks:
        question = tasks.create_task(caching.embed_questions(["where?"]))
        await asyncio.sleep(0)
        texts = [tasks.create_task(caching.embed(["where?"])) for _ in range(2)]
        assert embedder.asked == ["embed questions"]
    assert embedder.asked == ["embed questions", "embed"]
    assert np.array_equal(texts[0].result()[0], texts[1].result()[0])
    assert not np.array_equal(question.result()[0], texts[0].result()[0])


class FailingEncoder(Answering):
    """Encodes no question: it raises an error, or waits for longer than any test."""

    def __init__(self, *, is_late: bool) -> None:
        super().__init__(KETTLE)
        self.is_late = is_late

    async def embed_questions(self, texts: Sequence[str]) -> list[Vector]:
        if self.is_late:
            await asyncio.Event().wait()
        raise ProviderError("The encoder is damaged.", hint="Reinstall Newton.")


@pytest.mark.parametrize(
    ("is_late", "reason"), [(False, "The encoder is damaged."), (True, "no answer within 2 seconds")]
)
async def test_without_its_encoder_a_question_is_searched_for_with_the_vector_of_its_text(
    db: Database, agent: UUID, *, is_late: bool, reason: str
) -> None:
    # S002-25: the search by meaning does not depend on the encoder
    await know(db, agent, KETTLE, VIOLIN)
    answer = await asked(db, agent, "where is the boiler", FailingEncoder(is_late=is_late), soon(2))
    (plain,) = await HashEmbedder().embed(["where is the boiler"])
    assert answer.missing == {"question encoder": reason}
    assert answer.query.vector is not None
    assert np.array_equal(answer.query.vector, plain)
    assert answer.query.vector is answer.query.search_vector
    assert [one.summary for one in answer.memories if one.similarity > 0.5] == [VIOLIN]


async def test_texts_wait_for_all_questions_that_are_being_encoded() -> None:
    embedder = Answering(KETTLE)
    caching = CachingQuestionEmbedder(embedder, embedder, {})
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(caching.embed_questions(["where?"]))
        await asyncio.sleep(0)
        tasks.create_task(caching.embed_questions(["when?"]))
        tasks.create_task(caching.embed(["where?"]))
        await first
        assert embedder.asked == ["embed questions", "embed questions"]
    assert embedder.asked == ["embed questions", "embed questions", "embed"]


class CountingDatabase(Database):
    """Counts the transactions that began, and those that are open. `ended` is set whenever one ends."""

    began, open_count = 0, 0

    @classmethod
    def share(cls, db: Database) -> "CountingDatabase":
        counting = cls(db._pool, db._queue, db._connect)
        counting.ended = asyncio.Event()
        return counting

    ended: asyncio.Event

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        self.began, self.open_count = self.began + 1, self.open_count + 1
        try:
            async with super().transaction(agent, snapshot=snapshot) as tx:
                yield tx
        finally:
            self.open_count -= 1
            self.ended.set()


class Patient(Answering):
    """Embeds a text only when two searches have run and no connection is in use any more."""

    def __init__(self, db: CountingDatabase) -> None:
        super().__init__(KETTLE)
        self.db = db

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        while self.db.began < 2 or self.db.open_count:
            self.db.ended.clear()
            await self.db.ended.wait()
        return await super().embed(texts)


async def test_no_connection_is_held_while_a_text_is_embedded(db: Database, agent: UUID) -> None:
    # S002-25: a slow provider of embeddings does not use up the pool
    await know(db, agent, KETTLE, VIOLIN)
    counting = CountingDatabase.share(db)
    async with asyncio.timeout(60):  # it would wait for ever
        answer = await asked(counting, agent, "which boiler", Patient(counting))
    assert (answer.missing, answer.query.is_encoded, counting.began) == ({}, True, 3)
    assert answer.memories[0].summary == KETTLE


async def test_the_text_is_embedded_after_its_question_is_encoded(db: Database, agent: UUID) -> None:
    embedder = Answering(KETTLE)
    await asked(db, agent, "which boiler", embedder)
    assert embedder.asked == ["embed questions", "embed"]
