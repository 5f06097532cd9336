"""Too many facts of one attribute: few tell them all and point to them; nothing is lost, nobody else's words mix in."""

import re
from datetime import timedelta

import pytest

from newton.db.pool import Database
from newton.heart.facts import fact_store
from newton.heart.facts.fact_merges import generalize_facts, join_texts
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import Trust
from tests.db.telling import known
from tests.support import ANA, NOON, ground, teller

LIKES = [f"Ana likes thing number {n}" for n in range(14)]


async def tell(db: Database, *texts: str, trust: Trust = "user") -> None:
    told = [
        NewFact(
            ref=f"{trust} {text}",
            content=text,
            valid_from=NOON - timedelta(hours=1) + timedelta(minutes=n),
            subject="Ana",
            attribute="likes",
        )
        for n, text in enumerate(texts)
    ]
    async with db.transaction(ANA) as tx:
        await fact_store.add_facts(tx, told, ctx=ground(teller(trust=trust)))


async def held(db: Database) -> list[tuple[str, str, str]]:
    async with db.transaction(ANA) as tx:
        rows = await tx.fetch(
            "select m.full_text, m.state, m.trust from heart.facts as f join memory.memories as m"
            " using (agent_id, memory_id) where f.is_current order by m.created_at, m.memory_id"
        )
    return [(row[0], row[1], row[2]) for row in rows]


async def test_too_many_become_few_that_tell_them_all(db: Database, agent: object) -> None:
    await tell(db, *LIKES)
    assert await generalize_facts(db, ground()) == 14
    now = await held(db)
    told = " ".join(text for text, _, _ in now)
    assert len(now) < 5
    assert set(map(int, re.findall(r"\d+", told))) == set(range(14)), "nothing is lost"
    async with db.transaction(ANA) as tx:
        past = "select count(*) from memory.memories where kind = 'fact' and state = 'SUPERSEDED'"
        assert await tx.fetchval(past) >= 10
        assert await tx.fetchval("select count(*) from memory.sources") >= 10, "they point to what they tell"
    assert await generalize_facts(db, ground()) == 0, "done once"


@pytest.mark.parametrize("how", ["retracted", "superseded"])
async def test_when_one_of_them_does_not_hold_any_more_the_others_hold_by_themselves(
    db: Database, agent: object, how: str
) -> None:
    await tell(db, *LIKES)
    await generalize_facts(db, ground())
    async with db.transaction(ANA) as tx:
        third = await known(tx, "number 3")
        if how == "retracted":
            await fact_store.retract(tx, third, ctx=ground())
        else:
            other = NewFact(ref="other", content="Ana likes nothing third", valid_from=NOON, subject="Ana")
            await fact_store.add_facts(tx, [other], ctx=ground())
            await fact_store.supersede(tx, third, by_fact=await known(tx, "nothing third"), ctx=ground())
    texts = {text for text, _, _ in await held(db)}
    assert {text for text in LIKES if not text.endswith(" 3")} == texts - {"Ana likes nothing third"}
    assert await generalize_facts(db, ground()) == 13, "told in one again, without it"
    assert not any(re.search(r"\b3\b", text) for text, _, _ in await held(db))
    assert await generalize_facts(db, ground()) == 0


async def test_what_holds_only_for_a_time_is_not_told_in_one_with_the_rest(db: Database, agent: object) -> None:
    until = [
        NewFact(
            ref=text, content=text, valid_from=NOON, valid_to=NOON + timedelta(days=9), subject="Ana", attribute="likes"
        )
        for text in LIKES
    ]
    async with db.transaction(ANA) as tx:
        await fact_store.add_facts(tx, until, ctx=ground())
    assert await generalize_facts(db, ground()) == 0


async def test_few_and_what_tools_said_are_not_told_in_one(db: Database, agent: object) -> None:
    await tell(db, *LIKES[:10])
    assert await generalize_facts(db, ground()) == 0
    # what tools said is not told in one with the rest
    await tell(db, *LIKES[:8])
    await tell(db, *LIKES[8:], trust="tool")
    await tell(db, *LIKES[8:])
    assert len(await held(db)) == 14, "a person says so too, so they hold"
    assert await generalize_facts(db, ground()) == 0


def test_a_common_beginning_is_told_once() -> None:
    assert join_texts(["a b c", "a b d e"]) == "a b: c; d e"
    assert join_texts(["x y", "z"]) == "x y; z"
    assert join_texts(["same", "same"]) == "same; same"


async def test_what_models_state_stands_for_nothing_that_a_person_said(db: Database, agent: object) -> None:
    """The facts of a person are told in one of theirs, those of a model apart; a few stay as they are. S002-16"""
    await tell(db, *LIKES[:6])
    await tell(db, *(f"Ana likes sort {n}" for n in range(12)), trust="agent")
    assert await generalize_facts(db, ground()) == 12
    texts = {text: trust for text, _, trust in await held(db)}
    assert {*LIKES[:6]} <= {text for text, trust in texts.items() if trust == "user"}
    await tell(db, *LIKES[6:12])
    assert await generalize_facts(db, ground()) == 12
    assert all(("sort" in text) == (trust == "agent") for text, _, trust in await held(db))


async def test_what_a_person_confirmed_or_marked_is_told_by_itself(db: Database, agent: object) -> None:
    # S002-16
    await tell(db, *LIKES[:12], trust="agent")
    async with db.transaction(ANA) as tx:
        await fact_store.confirm(tx, await known(tx, "number 3"), ref="said", source="said", ctx=ground(teller()))
    await generalize_facts(db, ground())
    assert any(text == LIKES[3] for text, _, _ in await held(db))
