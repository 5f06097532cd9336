"""Who and what an input names, and what belongs to them."""

from datetime import timedelta
from uuid import UUID

import pytest

from newton.db.pool import Tx
from newton.heart.entities import entity_changes, entity_store
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.heart.entities.entity_lookup import (
    MAX_CANDIDATES_PER_STEP,
    EntityMatches,
    EntityQuery,
    find_entities,
    find_named_entities,
)
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.facts import fact_store
from newton.heart.lifecycle.engine import review
from newton.memory.store import PlannedTransition, apply_transitions
from tests.db.telling import on, says
from tests.support import ANA, NOON, ground, teller


async def introduce(tx: Tx, *introductions: EntityDeclaration) -> None:
    await entity_changes.declare_entities(tx, introductions, ctx=teller())


async def bind(tx: Tx, *bonds: tuple[str, str, str]) -> None:
    each = [RelationDeclaration(ref=" ".join(bond), source=bond[0], type=bond[1], target=bond[2]) for bond in bonds]
    await entity_changes.declare_relations(tx, each, ctx=teller())


def enquiry(text: str, *, salient: int = 0, depth: int = 1, **more: object) -> EntityQuery:
    return EntityQuery(agent_id=ANA, text=text, now=NOON, max_salient=salient, max_depth=depth, **more)  # pyright: ignore[reportArgumentType]  # named fields


def told(found: EntityMatches) -> list[str]:
    return [one.summary for one in found.memories]


ANA_BERG = EntityDeclaration(name="Ana Berg", type="person", aliases=("Annie",), properties={"role": "nurse"})


@pytest.mark.parametrize("text", ["Where is Ana Berg?", "ask annie", "Is Ana well?", "ANA BERG'S shift"])
async def test_an_entity_is_met_by_its_names_and_aliases_and_told_with_type_and_properties(tx: Tx, text: str) -> None:
    # S001-15, S001-20, S001-29
    await introduce(tx, ANA_BERG, EntityDeclaration(name="Ben", type="person"))
    found = await find_entities(tx, enquiry(text))
    assert told(found) == ["Ana Berg (person): role nurse"]
    assert found.entity_types == {"person"}
    assert {one.memory_id for one in found.memories} == found.mentioned_ids


@pytest.mark.parametrize("text", ["the manager is in Bergen", "Anabel and Anne", "banana", ""])
async def test_a_part_of_a_word_names_nobody(tx: Tx, text: str) -> None:
    # S001-15: word boundaries
    await introduce(tx, ANA_BERG)
    assert told(await find_entities(tx, enquiry(text))) == []


async def test_a_name_that_came_later_is_looked_up_too(tx: Tx) -> None:
    await introduce(tx, EntityDeclaration(name="Ana Berg"))
    await introduce(tx, ANA_BERG)
    assert told(await find_entities(tx, enquiry("ask Annie"))) == ["Ana Berg (person): role nurse"]


async def test_of_a_bare_name_or_those_named_together_nothing_is_told(tx: Tx) -> None:
    # S001-21, S001-29
    await bind(tx, ("Ana", "works_at", "Acme"))
    assert told(await find_entities(tx, enquiry("How is Ana?"))) == ["Ana works at Acme"]
    assert told(await find_entities(tx, enquiry("How is Acme?"))) == ["Ana works at Acme"], "in both directions"
    await bind(tx, ("Mira", entity_store.MENTIONED_WITH, "Priya"), ("Priya", "works_at", "Acme"))
    assert told(await find_entities(tx, enquiry("Mira?"))) == []
    assert told(await find_entities(tx, enquiry("Mira?", depth=2))) == ["Priya works at Acme"]


async def test_relations_are_followed_breadth_first_to_a_depth_and_round_a_circle_once(tx: Tx) -> None:
    # S001-21
    ring = ["Mira", "Priya", "Rex", "Lena"]
    await bind(tx, *((one, "knows", other) for one, other in zip(ring, [*ring[1:], ring[0]], strict=True)))
    assert told(await find_entities(tx, enquiry("Mira?", depth=0))) == []
    near = await find_entities(tx, enquiry("Mira?"))
    assert sorted(told(near)) == ["Lena knows Mira", "Mira knows Priya"]
    whole = await find_entities(tx, enquiry("Mira?", depth=5))
    assert len(told(whole)) == 4
    assert sorted(whole.distances.values()) == [1, 1, 2, 2]
    assert [whole.distances[one.memory_id] for one in whole.memories] == [1, 1, 2, 2]


async def test_of_a_hub_what_fits_the_input_best_is_taken(tx: Tx) -> None:
    await bind(tx, *(("Hub", "links_to", f"Node{n:02}") for n in range(30)), ("Hub", "runs_on", "Linux"))
    found = await find_entities(tx, enquiry("What does Hub run on, Node17 or Linux?"))
    assert len(found.memories) == MAX_CANDIDATES_PER_STEP
    assert set(told(found)[:2]) == {"Hub links to Node17", "Hub runs on Linux"}
    assert found.memories[0].relevance > found.memories[-1].relevance


async def test_the_weightier_relation_comes_first_and_weight_is_its_salience(tx: Tx) -> None:
    # S001-21: score weight
    await bind(tx, ("Hub", "links_to", "Acme"))
    await entity_changes.declare_relations(
        tx,
        [RelationDeclaration(ref=f"again {n}", source="Hub", type="uses", target="Redis") for n in range(4)],
        ctx=teller(),
    )
    found = await find_entities(tx, enquiry("Hub"))
    assert told(found) == ["Hub uses Redis", "Hub links to Acme"]
    weights = [found.salience[one.memory_id] for one in found.memories]
    assert weights == pytest.approx([4 / 6, 1 / 3])


async def test_what_rests_on_facts_that_hold_no_more_is_not_told(tx: Tx) -> None:
    # A superseded fact is never stated as current, nor is what was read from it.
    for value, day in (("Oslo", 0), ("Bergen", 5)):
        await fact_store.add_facts(tx, [says(value, day, subject="Mira")], ctx=on(day))
        await entity_store.index_mentions(tx, ctx=teller(now=NOON + timedelta(days=day)))
    assert told(await find_entities(tx, enquiry("Mira"))) == ["Mira lives in Bergen"]
    then = await find_entities(tx, enquiry("Mira", moment=NOON + timedelta(days=1)))
    assert told(then) == ["Mira lives in Oslo"], "as it was held then"
    assert told(await find_entities(tx, enquiry("Mira", moment=NOON - timedelta(days=1)))) == []


async def test_the_most_salient_come_unasked_and_bare_names_do_not(tx: Tx) -> None:
    # S001-20: + 10 most salient
    people = [EntityDeclaration(name=f"Person{n:02}", type="person") for n in range(15)]
    await introduce(tx, *people, ANA_BERG, EntityDeclaration(name="Bare"))
    await tx.execute("update heart.entities set mentions = 20 + right(name, 2)::int where name like 'Person%'")
    await tx.execute("update heart.entities set mentions = 999 where name = 'Bare'")
    faded = NOON - timedelta(days=900)
    await tx.execute("update heart.entities set mentioned_at = $1 where name = 'Person14'", faded)
    found = await find_entities(tx, enquiry("Ana Berg", salient=10))
    assert told(found) == ["Ana Berg (person): role nurse", *(f"Person{n:02} (person)" for n in range(13, 3, -1))]
    ranked = [found.salience[one] for one in found.salient_ids]
    assert ranked == sorted(ranked, reverse=True)
    assert len(ranked) == 10
    assert told(await find_entities(tx, enquiry("Ana Berg"))) == ["Ana Berg (person): role nurse"]


async def test_what_is_hidden_crowds_out_nothing(tx: Tx) -> None:
    # S001-5
    await introduce(tx, *(EntityDeclaration(name=f"Person{n}", type="person") for n in range(3)))
    await bind(tx, ("Person0", "knows", "Person1"))
    whole = await find_entities(tx, enquiry("Person0", salient=2))
    hidden = [found.memory_id for found in whole.memories if found.summary != "Person2 (person)"]
    assert told(await find_entities(tx, enquiry("Person0", salient=2, excluded_ids=hidden))) == ["Person2 (person)"]


async def test_who_is_met_again_when_archived_is_the_same(tx: Tx) -> None:
    await introduce(tx, ANA_BERG)
    (entity,) = await find_named_entities(tx, enquiry("Ana Berg"))
    await apply_transitions(
        tx, [PlannedTransition(entity.memory_id, "archived", "ACTIVE", "ARCHIVED", "a test")], ctx=teller()
    )
    assert [one.state for one in (await find_entities(tx, enquiry("Ana Berg"))).memories] == ["ARCHIVED"]
    await introduce(tx, EntityDeclaration(name="Ana Berg", properties={"city": "Oslo"}))
    await fact_store.add_facts(tx, [says("well", subject="Ana Berg", attribute="is")], ctx=ground())
    await entity_store.index_mentions(tx, ctx=teller())
    assert await tx.fetchval("select count(*) from heart.entities where key = 'ana berg'") == 1
    assert await review(tx, ground(), "fact", list[UUID]()) == []


async def test_preferred_types_come_first_and_exclude_nothing(tx: Tx) -> None:
    # S001-10, S001-20, S001-21: the types of a pack
    people = [EntityDeclaration(name=name, type="person") for name in ("Ana", "Ben")]
    await introduce(tx, *people, EntityDeclaration(name="Redis", type="service"))
    await bind(
        tx, *(("Ana", "met", f"Guest {n}") for n in range(MAX_CANDIDATES_PER_STEP)), ("Ana", "depends_on", "Tea")
    )
    usual = await find_entities(tx, enquiry("Is Cai here?", salient=3))
    chosen = await find_entities(tx, enquiry("Is Cai here?", salient=3, preferred_types=("service",)))
    assert told(chosen)[0] == "Redis (service)"
    assert set(told(chosen)) == set(told(usual))
    met = told(await find_entities(tx, enquiry("Ana?", preferred_relation_types=("depends_on",))))
    assert "Ana depends on Tea" in met
    assert len([line for line in met if " met " in line]) == MAX_CANDIDATES_PER_STEP - 1
