"""Facts told in other words, through the store: joined, linked or kept apart; and nothing of what was told is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from newton.content.yaml_source import parse_trusted
from newton.db.pool import Database
from newton.errors import ConflictError
from newton.heart.facts import fact_store
from newton.heart.facts.fact_comparison import ComparisonReport, SimilarityThresholds, compare_facts
from newton.heart.facts.fact_store import NewFact
from newton.ids import derive_model_id
from newton.memory.outbox import EmbeddingOutbox
from newton.providers.minilm import MiniLM
from tests.support import NOON, ground, teller

HELD_AT_MOST = 45  # of the hundred tellings of twenty facts; a model merges more
BOUNDS = SimilarityThresholds(duplicate_min_cosine=0.95, related_min_cosine=0.85)
DATA: dict[str, Any] = parse_trusted((Path(__file__).parents[1] / "data" / "tellings.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[MiniLM]:
    yield await asyncio.to_thread(MiniLM)


def statement(n: int, content: str, subject: str | None) -> NewFact:
    return NewFact(ref=f"t{n}", content=content, valid_from=NOON, subject=subject, source=f"source {n}")


async def tell(db: Database, agent: UUID, model: MiniLM, *told: NewFact) -> ComparisonReport:
    own = ground(teller(agent))
    async with db.transaction(agent) as tx:
        await fact_store.add_facts(tx, told, ctx=own)
    await EmbeddingOutbox(db, model, agent).drain()
    return await compare_facts(db, own, BOUNDS, model_id=derive_model_id(model.identity))


async def current(db: Database, agent: UUID) -> dict[str, tuple[str, int]]:
    async with db.transaction(agent) as tx:
        rows = await tx.fetch(
            "select m.full_text, m.state, m.confirmations from heart.facts as f"
            " join memory.memories as m using (agent_id, memory_id) where f.is_current"
        )
    return {row["full_text"]: (row["state"], row["confirmations"]) for row in rows}


async def test_told_in_other_words_it_is_confirmed_and_kept_once(db: Database, agent: UUID, model: MiniLM) -> None:
    await tell(db, agent, model, statement(0, "Ana lives in Oslo", "Ana"))
    assert await tell(db, agent, model, statement(1, "By the way, ana is living in Oslo!", "ana")) == ComparisonReport(
        1, 1, 0
    )
    assert await current(db, agent) == {"Ana lives in Oslo": ("CONFIRMED", 1)}
    # the words of that telling tell the same fact from now on, and it is what a third one joins
    await tell(db, agent, model, statement(2, "By the way, ana is living in Oslo!", "Ana"))
    assert await tell(db, agent, model, statement(3, "Note that Ana lives in Oslo.", "Ana")) == ComparisonReport(
        1, 1, 0
    )
    assert await current(db, agent) == {"Ana lives in Oslo": ("CORE", 3)}
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.links where link = 'corroborates'") == 2
        assert await tx.fetchval("select count(*) from memory.memories") == 3, "every telling in its own words stays"


async def test_told_in_other_words_again_it_may_be_repeated_under_its_ref(
    db: Database, agent: UUID, model: MiniLM
) -> None:
    for n, text in enumerate(("Ana lives in Oslo", "ana is living in Oslo!")):
        await tell(db, agent, model, statement(n, text, "Ana"))
    third = statement(2, "ana is living in Oslo!", "Ana")
    await tell(db, agent, model, third)
    await tell(db, agent, model, third)
    assert await current(db, agent) == {"Ana lives in Oslo": ("CONFIRMED", 2)}
    with pytest.raises(ConflictError, match="other content"):
        await tell(db, agent, model, statement(2, "Ana lives in Bergen", "Ana"))


async def test_several_tellings_compared_at_once_all_count_for_the_first(
    db: Database, agent: UUID, model: MiniLM
) -> None:
    await tell(db, agent, model, statement(0, "Ana lives in Oslo", "Ana"))
    texts = ("Ana lives in Oslo.", "Ana lives in Oslo!", "ana lives in oslo", "Ana lives  in Oslo ...")
    told = [statement(n, text, "Ana") for n, text in enumerate(texts, 1)]
    assert await tell(db, agent, model, *told) == ComparisonReport(4, 4, 0)
    assert await current(db, agent) == {"Ana lives in Oslo": ("CORE", 4)}
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(distinct duplicate_of) from heart.facts") == 1


async def test_what_was_told_often_before_it_was_compared_counts_as_often(
    db: Database, agent: UUID, model: MiniLM
) -> None:
    texts = ["Ana lives in Oslo", *["ana is living in oslo!"] * 3]
    told = [statement(n, text, "Ana") for n, text in enumerate(texts)]
    await tell(db, agent, model, *told)
    assert await current(db, agent) == {"Ana lives in Oslo": ("CORE", 3)}
    await tell(db, agent, model, *told)
    assert await current(db, agent) == {"Ana lives in Oslo": ("CORE", 3)}


async def test_compared_again_nothing_changes(db: Database, agent: UUID, model: MiniLM) -> None:
    told = [
        statement(n, text, "Ana") for n, text in enumerate(["Ana lives in Oslo", "ana is living in oslo", "Ana sails"])
    ]
    assert await tell(db, agent, model, *told) == ComparisonReport(3, 1, 0)
    before = await current(db, agent)
    assert await tell(db, agent, model, *told) == ComparisonReport(0, 0, 0)
    assert await current(db, agent) == before


async def test_facts_of_other_subjects_are_not_even_compared(db: Database, agent: UUID, model: MiniLM) -> None:
    told = [
        statement(0, "She lives in Oslo", "Ana"),
        statement(1, "she lives in oslo", "Eva"),
        statement(2, "She lives in Oslo!", None),
    ]
    assert await tell(db, agent, model, *told) == ComparisonReport(3, 0, 0)
    assert len(await current(db, agent)) == 3


@pytest.mark.slow
async def test_a_hundred_tellings_of_twenty_facts_and_fifty_near_misses(
    db: Database, agent: UUID, model: MiniLM
) -> None:
    known = DATA["facts"]
    tellings = [
        (fact["subject"], text) for place in range(5) for fact in known for _, text in [fact["tellings"][place]]
    ]
    assert (len(known), len(tellings)) == (20, 100)
    for n, (subject, text) in enumerate(tellings):
        await tell(db, agent, model, statement(n, text, subject))
    held = await current(db, agent)
    # a telling that is taken for an update supersedes the other one, and both stay stored
    assert sum(1 + confirmations for _, confirmations in held.values()) >= 95, "nearly every telling is counted once"
    replaced = {fact["tellings"][0][1] for fact in known} - held.keys()
    assert len(replaced) <= 2, "another telling took the place of the first one"
    assert len(held) <= HELD_AT_MOST
    subjects = {fact["id"]: fact["subject"] for fact in known}
    misses = [statement(100 + n, miss["text"], subjects[miss["of"]]) for n, miss in enumerate(DATA["near_misses"])]
    assert len(misses) == 50
    assert (await tell(db, agent, model, *misses)).duplicates == 0
