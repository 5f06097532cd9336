"""A context is gathered from many sources: each has its deadline, and what is late is left out and named."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from newton.agent.services.memories import FactDraft
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest, ContextFilters, ContextOverrides
from newton.content.skills import SkillFile
from newton.db.pool import Database
from newton.errors import DatabaseError
from newton.heart import documents, procedures
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_changes
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.events.event_store import NewEvent, record_events
from newton.heart.events.event_types import validate_event
from newton.memory import store
from newton.providers import token_counter
from newton.providers.embedding import Vector
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from tests.scenarios.conftest import Mind
from tests.scenarios.test_replay import hindsight
from tests.support import NOON, ground, teller

QUESTION = "Where does Ana Berg work, and is the boat repaired?"


async def introduce(mind: Mind) -> None:
    ctx = teller(mind.agent_id, count_tokens=token_counter.count)
    people = [
        EntityDeclaration(name="Ana Berg", type="person", properties={"role": "nurse"}),
        EntityDeclaration(name="Zora", type="person", properties={"role": "pilot"}),
    ]
    async with mind.db.transaction(mind.agent_id) as tx:
        await entity_changes.declare_entities(tx, people, ctx=ctx)
        bond = RelationDeclaration(ref="b1", source="Ana Berg", type="works_at", target="Acme")
        await entity_changes.declare_relations(tx, [bond], ctx=ctx)


async def happen(mind: Mind, session: str, *names: str) -> None:
    session_id = await mind.session(session)
    happenings = [
        NewEvent(
            ref=f"{session} {name}", event=validate_event("file_write", NOON, {"path": name}), session_id=session_id
        )
        for name in names
    ]
    async with mind.db.transaction(mind.agent_id) as tx:
        await record_events(tx, happenings, ctx=teller(mind.agent_id, count_tokens=token_counter.count))


def texts(bundle: Bundle) -> list[str]:
    return [item.text for item in bundle.items]


async def test_who_is_named_stands_in_known_information_with_what_belongs_to_them(mind: Mind) -> None:
    # S001-11, S001-20, S001-21, S001-27, S001-29
    await introduce(mind)
    bundle = await mind.context(QUESTION)
    known = bundle.text.partition("## Known Information\n")[2]
    assert sorted(known.splitlines()) == ["- Ana Berg (person): role nurse", "- Ana Berg works at Acme"]
    assert {item.layer for item in bundle.items} == {"facts"}
    assert all(item.reason for item in bundle.items)


async def test_the_most_salient_come_unasked_only_under_profiles_that_want_them(mind: Mind) -> None:
    # S001-20
    await introduce(mind)
    assert "Zora" not in (await mind.context(QUESTION)).text
    assert "- Zora (person): role pilot\n" in (await mind.context(QUESTION, profile="coding")).text


async def test_late_events_of_the_session_are_in_its_context_and_those_of_others_under_some_profiles(
    mind: Mind,
) -> None:
    # S001-16, S001-23
    await happen(mind, "s1", "near.py")
    await happen(mind, "s2", "far.py")
    here = await mind.session("s1")
    bundle = await mind.context("Go on, please.", session_id=here)
    assert [t for t in texts(bundle) if "far.py" in t] == []
    (event,) = [item for item in bundle.items if "near.py" in item.text]
    assert bundle.find_source(event) == "recent"
    assert event.features["salience"] == 0.5
    coding = await mind.context("Go on, please.", session_id=here, profile="coding")
    assert len([t for t in texts(coding) if "near.py" in t or "far.py" in t]) == 2


async def test_a_request_overrides_values_of_the_profile_and_the_frame(mind: Mind) -> None:
    # S001-4, S001-6, S001-10, S001-26
    await introduce(mind)
    reach, budget = {"salient": 10}, {"recent": 10, "semantic": 40, "entity": 40, "patterns": 10}
    overrides = ContextOverrides.model_validate({"weights": {"salience": 0.5}, "reach": reach, "budget": budget})
    usual, bundle = await mind.context(QUESTION), await mind.context(QUESTION, overrides=overrides)
    assert "Zora (person): role pilot" not in texts(usual)
    assert "Zora (person): role pilot" in texts(bundle)
    stated = bundle.as_json()
    assert (stated["profile"]["weights"]["salience"], stated["profile"]["reach"]["salient"]) == (0.5, 10)
    assert stated.get("overrides") == overrides.as_json()
    flexible = sum(bundle.layers[name].share for name in ("decisions", "facts", "procedures", "episodes"))
    assert bundle.layers["episodes"].share == pytest.approx(flexible * 10 / 100, abs=1)
    replayed = await hindsight(mind).replay(str(bundle.bundle_id))
    assert (replayed.identical, replayed.changes_since) == (True, ())


async def test_a_procedure_that_is_asked_for_is_in_though_no_search_has_found_it(mind: Mind) -> None:
    # S001-22
    async with mind.db.transaction(mind.agent_id) as tx:
        for n in range(12):  # as many as are searched for, and nearer to the input
            skill = SkillFile(name=f"boat-{n}", description="Is the boat repaired? boat repaired", core=("Look.",))
            await procedures.add_procedure(
                tx, skill, ctx=ground(teller(mind.agent_id, count_tokens=token_counter.count))
            )
        asked = SkillFile(
            name="hull", description="Zinc.", core=("Scrape the hull.",), triggers=("is the boat repaired",)
        )
        await procedures.add_procedure(tx, asked, ctx=ground(teller(mind.agent_id, count_tokens=token_counter.count)))
    await mind.settle()
    bundle = await mind.context("Is the boat repaired?")
    assert "## Procedure: hull\n" in bundle.text


FILTERED: Sequence[tuple[ContextFilters, set[str]]] = [
    (ContextFilters(), {"fact", "exchange", "entity", "relation", "event", "passage"}),
    (ContextFilters(kinds=frozenset({"fact"})), {"fact"}),
    (ContextFilters(kinds=frozenset({"entity", "event"})), {"entity", "event"}),
    (ContextFilters(since=NOON + timedelta(days=1)), {"fact", "entity", "relation"}),
    (ContextFilters(event_types=frozenset({"error"})), {"fact", "exchange", "entity", "relation", "passage"}),
    (ContextFilters(entity_types=frozenset({"town"})), {"fact", "exchange", "relation", "event", "passage"}),
]


async def test_filters_say_what_may_be_in_a_context(mind: Mind) -> None:
    # S001-5
    await introduce(mind)
    await happen(mind, "s1", "Ana Berg/the boat is repaired.md")
    await mind.hear("Ana Berg said the boat is repaired.")
    async with mind.db.transaction(mind.agent_id) as tx:
        source = DocumentSource(ref="/boat.md", title="Boat", format="markdown")
        ctx = teller(mind.agent_id, count_tokens=token_counter.count)
        await documents.replace_passages(tx, source, [TextChunk("Boat", "The boat is repaired in May.", 8)], ctx=ctx)
    mind.clock.advance(timedelta(days=2))
    await mind.know("Ana Berg does work on the boat that is repaired")
    for filters, left in FILTERED:
        bundle = await mind.context(QUESTION, filters=filters, session_id=await mind.session("s1"))
        assert {item.kind for item in bundle.items} == left, filters
        assert bundle.as_json().get("filters", {}) == filters.as_json()


async def test_nothing_that_became_so_later_stands_in_a_context_up_to_then(mind: Mind) -> None:
    # S001-5: a relation that rests on a later fact neither
    kept = await mind.verbs.remember(FactDraft(content="Ana Berg works at Acme"))
    await introduce(mind)
    await mind.settle()
    async with mind.db.transaction(mind.agent_id) as tx:
        (relation,) = await tx.fetch("select memory_id from memory.memories where kind = 'relation'")
        await store.add_links(
            tx,
            "evidence",
            [(kept.memory_id, relation["memory_id"])],
            ctx=teller(mind.agent_id, count_tokens=token_counter.count),
        )
    for day, left in ((1, True), (-1, False)):
        before = await mind.context(
            "Where does Ana Berg work?", filters=ContextFilters(until=NOON - timedelta(days=day))
        )
        assert ("relation" not in {c.kind for c in before.candidates}) == left


async def test_what_is_filtered_out_crowds_out_nothing(mind: Mind) -> None:
    # S001-5: in the search, not after it
    await mind.know(*(f"The boat is repaired, says number {n}" for n in range(40)))
    whole = await mind.context("Is the boat repaired?", budget=20_000)
    found = frozenset(c.memory_id for c in whole.candidates)
    assert len(found) < 40, "there are more than are kept"
    rest = await mind.context("Is the boat repaired?", budget=20_000, filters=ContextFilters(exclude=found))
    assert len(rest.items) == 40 - len(found)
    assert not found & {c.memory_id for c in rest.candidates}


async def test_what_the_caller_adds_stands_in_a_section_of_its_own_within_the_budget(mind: Mind) -> None:
    # S001-4, S001-27: Additional Context
    await mind.know(*(f"Fact {n} about the boat." for n in range(20)))
    added = "The build is red.\n\n## Active Constraints\n" + "A long remark about the boat. " * 40
    for budget in (1, 30, 120, 2_000):
        bundle = await mind.context("Is the boat repaired?", budget=budget, additional=added)
        assert token_counter.count(bundle.text) == bundle.tokens <= budget
        assert budget == 2_000 or bundle.missing["additional"].startswith("no room for the last "), budget
    section = bundle.text.partition("## Additional Context\n")[2]
    assert section.startswith("- The build is red.\n- ## Active Constraints\n- A long remark")
    assert bundle.layers["additional"].used == bundle.layers["additional"].share
    assert "additional" not in bundle.missing


async def test_a_program_sees_the_components_the_strategy_and_what_was_considered(mind: Mind) -> None:
    # S001-6, S001-7
    await introduce(mind)
    await mind.know("The boat is repaired", "The boat is repaired in May")
    answer = (await mind.context(QUESTION, profile="newton")).as_json()
    assert answer["input"] == QUESTION
    assert answer["profile"]["name"] == "newton"
    assert answer["considered"] == {"entity": 1, "fact": 2, "relation": 1}
    assert {item["source"] for item in answer["items"]} == {"entity", "relation", "semantic"}
    assert all({"memory_id", "text", "tokens", "features", "score"} <= item.keys() for item in answer["items"])
    assert (answer["truncated"], answer["timings_ms"].keys()) == (False, {"recall", "think"})
    assert (await mind.context(QUESTION, budget=20)).as_json()["truncated"]


class Sleeper(HashEmbedder):
    """An embedder that does not come back by itself."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.Event().wait()
        return await super().embed(texts)


@asynccontextmanager
async def locked(dsn: str, table: str) -> AsyncGenerator[None]:
    """Somebody else has the table and does not let go of it."""
    other = await asyncpg.connect(dsn)
    try:
        async with other.transaction():
            await other.execute(f"lock table {table} in access exclusive mode")
            yield
    finally:
        await other.close()


@pytest.fixture
async def asked(mind: Mind) -> Mind:
    """A mind that has something from every source."""
    await introduce(mind)
    await happen(mind, "s1", "boat.py")
    await mind.know("The boat is repaired")
    return mind


async def hurried(mind: Mind) -> Bundle:
    """Within a second, with connections that are open already."""
    request = ContextBuildRequest(
        agent_id=mind.agent_id, input=QUESTION, tokens=8_000, profile="coding", session_id=await mind.session("s1")
    )
    return await replace(mind.contexts, timeout_seconds=1.0).build(request)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "late", "gone"),
    [
        ("heart.entity_names", ["entities and procedures"], "Acme"),
        ("heart.events", ["events", "tool results"], None),  # the search finds the event all the same
        ("heart.censors, brain.calibration_snapshots", ["identity and constraints", "session"], None),
        ("memory.postings", ["words", "session artifacts", "tool results"], None),
        ("dialogue.tasks", ["tasks"], None),
    ],
)
async def test_a_source_that_is_late_is_left_out_and_named_and_the_rest_is_there(
    asked: Mind, dsn: str, table: str, late: list[str], gone: str | None
) -> None:
    # S001-11, S001-33
    await asked.context(QUESTION)
    async with locked(dsn, table):
        bundle = await hurried(asked)
    assert set(bundle.missing) == set(late)
    assert all("no answer within" in why for why in bundle.missing.values())
    for words in {"Acme", "boat.py", "The boat is repaired"} - {gone}:
        assert words in bundle.text
    assert gone is None or gone not in bundle.text


async def test_an_embedder_that_is_slow_or_down_leaves_the_words(asked: Mind) -> None:
    await asked.context(QUESTION)
    slow = await hurried(replace(asked, embedder=Sleeper()))
    assert slow.missing == {"embeddings": "no answer within 1 seconds"}
    down = await replace(asked, embedder=BrokenEmbedder()).context(QUESTION)
    assert down.missing.keys() == {"embeddings"}
    for bundle in (slow, down):
        assert {"Ana Berg works at Acme", "The boat is repaired"} <= set(texts(bundle))


async def test_a_database_that_is_down_is_an_error(asked: Mind, dsn: str) -> None:
    closed = await Database.open(dsn, size=2)
    await closed.close()
    with pytest.raises(DatabaseError):
        await replace(asked, db=closed).context(QUESTION)
