"""Recall: exact by meaning, exact by words, each kind with a limit of its own, and neighbours beside."""

import hashlib
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest

from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.heart import episodes
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import KINDS, Kind
from newton.memory.memory_reader import fetch_preceding
from newton.memory.ranking import DEFAULT_WEIGHTS
from newton.memory.recall import K1, B, recall
from newton.memory.search_types import MemorySearch, RecallResult, RetrievedMemory, SearchLimits
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.embedding import Embedder, Vector
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from tests.db.world import told
from tests.support import NOON, ground, teller

VOCABULARY = (
    *("harbour", "boat", "winter", "kettle", "garden", "cellar", "bread", "violin"),
    *("letter", "summer", "window", "river", "doctor", "ticket", "mountain", "engine"),
)
FEW: dict[Kind, SearchLimits] = dict.fromkeys(KINDS, SearchLimits(searched=10, kept=20))


class Seeded:
    """Vectors without any sense: the same text has the same one, and no two texts are alike on purpose."""

    name = "seeded"
    identity = "seeded/1"
    dimensions = 64

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        row = np.random.default_rng(seed).normal(size=self.dimensions)
        return (row / np.linalg.norm(row)).astype(np.float32)


def sentences(number: int) -> list[str]:
    dice = random.Random(7)
    return [" ".join(dice.choices(VOCABULARY, k=dice.randint(2, 25))) + f" {n}" for n in range(number)]


async def know(db: Database, agent: UUID, *contents: str) -> None:
    learnt = [NewFact(ref=content, content=content, valid_from=NOON) for content in contents]
    async with db.transaction(agent) as tx:
        await fact_store.add_facts(tx, learnt, ctx=ground(teller(agent)))


async def relive(db: Database, agent: UUID, *contents: str) -> None:
    lived = [replace(told(content), content=content) for content in contents]
    async with db.transaction(agent) as tx:
        await episodes.add_episodes(tx, lived, ctx=teller(agent))


async def hear(db: Database, agent: UUID, *said: str, session: str = "s") -> UUID:
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref=session, now=NOON)
        lines = [Message(role="user", content=text, said_at=NOON) for text in said]
        await sessions.append(tx, lines, session_id=session_id, ctx=teller(agent))
    return session_id


async def asked(
    db: Database, agent: UUID, text: str, embedder: Embedder | None, widths: Mapping[Kind, SearchLimits] = FEW
) -> RecallResult:
    return await recall(text, embedder=embedder, search=MemorySearch(db=db, agent_id=agent, limits=widths))


async def found(
    db: Database, agent: UUID, text: str, embedder: Embedder | None = None, **limits: int
) -> Sequence[RetrievedMemory]:
    widths: dict[Kind, SearchLimits] = {
        kind: SearchLimits(searched=limits[kind], kept=1_000) for kind in KINDS if kind in limits
    }
    return (await asked(db, agent, text, embedder, widths or FEW)).memories


async def test_the_nearest_by_meaning_are_those_of_an_exact_search(db: Database, agent: UUID) -> None:
    texts, model = sentences(200), Seeded()
    await know(db, agent, *texts)
    await EmbeddingOutbox(db, model, agent).drain()
    sought = model.vector("quux").astype(np.float16).astype(np.float32)
    kept = np.stack([model.vector(text) for text in texts]).astype(np.float16).astype(np.float32)
    similar = kept @ sought
    nearest = sorted(texts, key=lambda text: -similar[texts.index(text)])[:30]
    near = await found(db, agent, "quux", model, fact=30)
    assert [f.summary for f in near] == nearest
    for f in near:
        assert f.similarity == pytest.approx(similar[texts.index(f.summary)], abs=1e-5)
        assert f.lexical == 0
    positive = [f for f in near if (f.similarity or 0) > 0]
    assert [f.relevance for f in positive] == pytest.approx([(f.similarity or 0) / max(similar) for f in positive])


async def test_the_best_by_words_are_those_of_bm25(db: Database, agent: UUID) -> None:
    texts = sentences(150)
    await know(db, agent, *texts)
    await hear(db, agent, "the doctors wrote letters about the harbour")
    await hear(db, agent, "no", session="other")
    question = "Which letters came by the harbour in winter, and by which boats? Zebra"
    expected = await bm25(db, agent, question)
    worded = await found(db, agent, question, fact=400, exchange=400)
    assert {f.memory_id for f in worded} == expected.keys()
    assert len(expected) > 100
    for f in worded:
        assert f.lexical == pytest.approx(expected[f.memory_id], rel=0, abs=1e-7)  # a float of four bytes
    own = [f for f in worded if f.kind == "fact"]
    cut = await found(db, agent, question, fact=7)
    best = sorted(own, key=lambda f: (-f.lexical, f.memory_id))[:7]
    assert {f.memory_id for f in cut} == {f.memory_id for f in best}


async def bm25(db: Database, agent: UUID, question: str) -> dict[UUID, float]:
    """BM25 once more, from the lexemes up, as a share of the best score any text could have."""
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select memory_id, summary, full_text, kind, word_count from memory.memories")
        indexed = {
            row["memory_id"]: row["full_text"]
            if row["full_text"]
            else row["summary"].partition("] ")[2] + "\n21 November 2026"
            for row in rows
        }
        lexed: dict[UUID, Counter[str]] = {}
        for memory_id, text in indexed.items():
            words = await tx.fetch(
                "select lexeme, cardinality(positions) as tf from unnest(to_tsvector('english', $1))", text
            )
            lexed[memory_id] = Counter({row["lexeme"]: row["tf"] for row in words})
        wanted = set(await tx.fetchval("select tsvector_to_array(to_tsvector('english', $1))", question))
    assert {row["memory_id"]: row["word_count"] for row in rows} == {m: words.total() for m, words in lexed.items()}
    mean = sum(words.total() for words in lexed.values()) / len(lexed)
    holding = {word: sum(word in words for words in lexed.values()) for word in wanted}
    idf = {w: math.log(1 + (len(lexed) - n + 0.5) / (n + 0.5)) for w, n in holding.items() if n}
    best = sum(idf.values()) * (K1 + 1)
    return {
        memory_id: sum(idf[w] * words[w] * (K1 + 1) / (words[w] + K1 * (1 - B + B * words.total() / mean)) for w in idf)
        / best
        for memory_id, words in lexed.items()
        if any(words[w] for w in idf)
    }


async def test_each_kind_has_a_limit_of_its_own(db: Database, agent: UUID) -> None:
    texts = [f"boat number {n}" for n in range(12)]
    await know(db, agent, *texts)
    await relive(db, agent, *texts)
    for text in texts:
        await hear(db, agent, text, session=text)
    await EmbeddingOutbox(db, Seeded(), agent).drain()
    worded = Counter(f.kind for f in await found(db, agent, "boat", exchange=5, fact=3, episode=1))
    assert worded == {"exchange": 5, "fact": 3, "episode": 1}
    near = Counter(f.kind for f in await found(db, agent, "zzz", Seeded(), exchange=2, fact=4, episode=0))
    assert near == {"exchange": 2, "fact": 4}
    both = Counter(f.kind for f in await found(db, agent, "boat", Seeded(), fact=4))
    assert 4 <= both["fact"] <= 8
    assert both.keys() == {"fact"}


async def test_of_many_that_are_searched_the_most_relevant_of_each_kind_are_kept(db: Database, agent: UUID) -> None:
    await know(db, agent, *sentences(40))
    await hear(db, agent, *[f"winter {n}" for n in range(10)])
    wide = dict.fromkeys(KINDS, SearchLimits(searched=50, kept=50))
    narrow: dict[Kind, SearchLimits] = {kind: SearchLimits(searched=50, kept=4) for kind in KINDS}
    every = (await asked(db, agent, "harbour winter", None, wide)).memories
    kept = (await asked(db, agent, "harbour winter", None, narrow)).memories
    best = [[f for f in every if f.kind == kind][:4] for kind in KINDS]
    assert Counter(f.kind for f in kept) == {"exchange": 4, "fact": 4}
    assert list(kept) == sorted((f for few in best for f in few), key=lambda f: (-f.relevance, f.memory_id))


async def test_a_memory_found_by_meaning_and_by_words_comes_once_with_both(db: Database, agent: UUID) -> None:
    await know(db, agent, "the kettle is in the cellar", "the violin is in the garden")
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    ranked = await found(db, agent, "where is the kettle", HashEmbedder())
    assert [f.summary for f in ranked] == ["the kettle is in the cellar", "the violin is in the garden"]
    assert ranked[0].similarity and ranked[0].similarity > 0.5
    assert (ranked[0].lexical > 0, ranked[1].lexical) == (True, 0)
    assert ranked[0].relevance == 1


async def test_a_memory_found_by_words_alone_has_its_similarity_when_it_has_a_vector(db: Database, agent: UUID) -> None:
    await know(db, agent, *[f"violin {n}" for n in range(5)])
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    await know(db, agent, "violin without a vector")
    ranked = {f.summary: f.similarity for f in await found(db, agent, "violin 3", HashEmbedder(), fact=6)}
    assert ranked["violin 3"] == pytest.approx(1, abs=1e-3)
    assert not ranked["violin without a vector"]


async def test_neighbours_lend_what_a_line_alone_does_not_say(db: Database, agent: UUID) -> None:
    await hear(db, agent, "Where did you put the violin?", "Under the stairs.", "Thanks.", "Bye.", "So long.")
    await hear(db, agent, "Under the table.", session="other")
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    ranked = await found(db, agent, "violin", HashEmbedder())
    relevance = {f.summary.partition(": ")[2]: f.relevance for f in ranked}
    assert relevance["Where did you put the violin?"] == 1
    assert relevance["Under the stairs."] == pytest.approx(0.5, abs=0.05)
    assert relevance["Thanks."] == pytest.approx(0.25, abs=0.05)
    assert relevance["Under the stairs."] > relevance["Thanks."] > relevance["So long."]
    assert relevance["Under the table."] < 0.05


async def test_what_stands_beside_a_found_line_is_found_though_the_search_is_too_narrow(
    db: Database, agent: UUID
) -> None:
    # S002-9
    said = ["Where did you put the violin?", "Under the stairs.", "Thanks.", "Bye.", "So long."]
    session_id = await hear(db, agent, *said)
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    found_there = [f.summary.partition(": ")[2] for f in await found(db, agent, "violin", HashEmbedder(), exchange=1)]
    assert found_there == said[:3]
    # without vectors their place alone speaks for them
    assert [f.similarity for f in await found(db, agent, "violin", exchange=1)] == [0, 0, 0]
    async with db.transaction(agent) as tx:
        await tx.execute(
            "update memory.memories set quarantined = true where thread_id = $1 and position = 1", session_id
        )
    assert [f.position for f in await found(db, agent, "violin", HashEmbedder(), exchange=1)] == [0, 2]


async def test_a_neighbour_that_was_said_later_is_not_known_at_a_moment_before(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s", now=NOON)
        for day, text in enumerate(("Where is the violin?", "Under the stairs.")):
            line = Message(role="user", content=text, said_at=NOON)
            ctx = teller(agent, now=NOON + timedelta(days=day))
            await sessions.append(tx, [line], session_id=session_id, ctx=ctx)
    search = MemorySearch(db=db, agent_id=agent, limits=FEW, moment=NOON + timedelta(hours=1))
    answer = await recall("violin", embedder=None, search=search)
    assert [f.position for f in answer.memories] == [0]


async def test_a_line_of_somebody_whom_the_input_names_counts_more(db: Database, agent: UUID) -> None:
    # S002-9: beyond what the name does as a word
    names = ("Ana Lima", "Ben Lima", "Cyd Lima")
    async with db.transaction(agent) as tx:
        for name in names:
            line = Message(role="user", name=name, content="I play the violin.", said_at=NOON)
            session_id = await sessions.ensure_session(tx, agent_id=agent, ref=name, now=NOON)
            await sessions.append(tx, [line], session_id=session_id, ctx=teller(agent))
    plain = MemorySearch(db=db, agent_id=agent, limits=FEW, weights=replace(DEFAULT_WEIGHTS, speaker=0.0))
    for name in names:
        text = f"the violin of {name.split()[0]}'s"
        first, second, third = (await asked(db, agent, text, None)).memories
        assert first.summary == f"[2026-11-21] {name}: I play the violin."
        assert first.relevance > second.relevance == pytest.approx(third.relevance)
        by_words = (await recall(text, embedder=None, search=plain)).memories
        assert second.relevance < by_words[1].relevance


async def test_without_a_vector_the_words_decide_and_the_reason_is_told(db: Database, agent: UUID) -> None:
    await know(db, agent, "the boat is blue")
    for embedder, reason in (
        (None, "no embedding model is set"),
        (BrokenEmbedder(), "The embedding endpoint does not answer."),
    ):
        answer = await asked(db, agent, "boat", embedder, FEW)
        assert [f.summary for f in answer.memories] == ["the boat is blue"]
        assert answer.missing == {"embeddings": reason}


async def test_stop_words_and_vectors_of_another_model_find_nothing(db: Database, agent: UUID) -> None:
    await know(db, agent, "the boat is blue")
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    assert await found(db, agent, "zzz", Seeded()) == []
    await know(db, agent, "to be or not to be")
    assert await found(db, agent, "to be or not") == []


@pytest.mark.parametrize(
    "text", ["'; drop table memory.memories; --", "a & b | !c <-> d", "100%_\\", "\u202e\U0001f98a" * 50, "x" * 5_000]
)
async def test_any_input_is_only_words(db: Database, agent: UUID, text: str) -> None:
    await know(db, agent, "the boat is blue")
    await found(db, agent, text, HashEmbedder())
    assert [f.summary for f in await found(db, agent, "boat")] == ["the boat is blue"]


async def test_what_stands_before_a_line_comes_nearest_first(db: Database, agent: UUID) -> None:
    session_id = await hear(db, agent, "one", "two", "three", "four")
    async with db.transaction(agent) as tx:
        stood = await fetch_preceding(tx, agent_id=agent, thread_id=session_id, position=3, limit=2)
    assert [f.summary.partition(": ")[2] for f in stood] == ["three", "two"]
    assert [(f.similarity, f.lexical, f.relevance) for f in stood] == [(0, 0, 0), (0, 0, 0)]


async def test_what_is_found_carries_its_clocks_and_counts(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        for ref, day in (("a", 0), ("b", 2)):
            said = NewFact(ref=ref, content="the boat is blue", valid_from=NOON - timedelta(days=9), confidence=0.75)
            ctx = teller(agent, now=NOON + timedelta(days=day))
            await fact_store.add_facts(tx, [said], ctx=ground(ctx))
    (f,) = await found(db, agent, "boat")
    assert (f.kind, f.state, f.trust, f.ref, f.confidence) == ("fact", "CONFIRMED", "user", "a", 0.75)
    assert (f.occurred_at, f.created_at) == (NOON - timedelta(days=9), NOON)
    assert (f.confirmed_at, f.accessed_at, f.uses, f.outcome) == (NOON + timedelta(days=2), None, 0, None)
    assert (f.thread_id, f.position, f.word_count) == (None, None, 2)
