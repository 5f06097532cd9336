"""What a model changes among known facts without a line: nothing is lost, and a person's facts stay a person's."""

from dataclasses import replace
from datetime import timedelta

import pytest

from newton.agent.reconciliation import line_changes
from newton.agent.reconciliation.known_items import list_user_names
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import Trust
from tests.scenarios.conftest import Mind
from tests.scenarios.reading import Reader, facts, read, told

pytestmark = pytest.mark.usefixtures("minilm")
PLACE = "Nora rents a place in Ruzafa for 950 euros, where she hears the neighbours."
RENT = "The landlord of the rented place takes 1,020 euros as of October 2026."
MERGED = (
    "The landlord of the place in Ruzafa that Nora rents, where she hears the neighbours, takes 1,020 euros as of"
    " October 2026 instead of 950."
)
NEWS = "I play the cello in an orchestra."


async def store(mind: Mind, text: str, trust: Trust) -> None:
    """A fact of this trust, a day before what follows."""
    async with mind.scope.write() as (tx, ctx):
        fact = NewFact(ref=text, content=text, valid_from=ctx.now)
        await fact_store.add_facts(tx, [fact], ctx=replace(ctx, trust=trust))
    mind.clock.advance(timedelta(days=1))


@pytest.mark.parametrize(
    ("place", "rent", "is_merged"),
    [("user", "user", True), ("agent", "agent", True), ("user", "agent", False), ("agent", "user", False)],
)
async def test_a_merged_statement_has_the_lowest_trust_and_displaces_no_higher_one(
    mind: Mind, place: Trust, rent: Trust, *, is_merged: bool
) -> None:
    await store(mind, PLACE, place)
    await store(mind, RENT, rent)
    await told(mind, NEWS, "Our rented place in Ruzafa has neighbours and a landlord.")
    await read(mind, lambda s: [s.item("update", "", "950 euros", "1,020", text=MERGED)])
    now = await facts(mind)
    assert (MERGED in now, PLACE in now, RENT in now) == (is_merged, not is_merged, not is_merged)
    if is_merged:
        async with mind.db.transaction(mind.agent_id) as tx:
            merged = await tx.fetchrow(
                "select trust, (select count(*) from memory.sources as s"
                " where s.agent_id = m.agent_id and s.memory_id = m.memory_id)"
                " from memory.memories as m where m.agent_id = $2 and full_text = $1",
                MERGED,
                mind.agent_id,
            )
            assert merged is not None and tuple(merged) == (rent, 2)
            changes = await line_changes.list_changes(tx, agent_id=mind.agent_id)
            await line_changes.undo_changes(tx, changes, ctx=mind.scope.write_context())
        assert {PLACE, RENT} <= set(await facts(mind)) and MERGED not in await facts(mind)


async def test_a_doubt_about_a_merged_fact_remains(mind: Mind) -> None:
    for text in (PLACE, RENT, "The landlord takes 900 euros."):
        await store(mind, text, "user")
    async with mind.scope.write() as (tx, _):
        await tx.execute(
            "insert into memory.links (agent_id, memory_id, link, other_id, created_at)"
            " select a.agent_id, a.memory_id, 'contradicts', b.memory_id, now() from memory.memories as a"
            " join memory.memories as b on b.agent_id = a.agent_id and b.full_text = $1"
            " where a.agent_id = $2 and a.full_text like '%900 euros%' on conflict do nothing",
            RENT,
            mind.agent_id,
        )
    await told(mind, "Our rented place in Ruzafa has neighbours and a landlord.")
    await read(mind, lambda s: [s.item("update", "", "950 euros", "1,020", text=MERGED)])
    doubted = await mind.fetchval(
        "select count(*) from memory.links as l join memory.memories as m using (agent_id, memory_id)"
        " where l.agent_id = $2 and l.link = 'contradicts' and m.full_text = $1",
        MERGED,
        mind.agent_id,
    )
    assert doubted == 1


@pytest.mark.parametrize(
    ("said", "raw", "is_dropped"),
    [
        (["Fish doctor. Maaike is a vet for salmon in Trondheim."], "", True),
        (["Fish doctor.", "Maaike is a vet for salmon in Trondheim."], "", False),
        (["Maaike is a vet for salmon in Trondheim."], "Fish doctor.", False),
    ],
)
async def test_words_that_say_nothing_are_dropped_if_another_fact_tells_of_their_message(
    mind: Mind, said: list[str], raw: str, *, is_dropped: bool
) -> None:
    if raw:
        await store(mind, raw, "user")
    await told(mind, *said)
    await read(mind)
    mind.clock.advance(timedelta(days=1))
    await told(mind, "The fish doctor Maaike is in Trondheim.", session="s2")
    before = await facts(mind)
    assert "Fish doctor." in before and any("salmon" in one for one in before), before
    await read(mind, lambda s: [s.item("drop", "", "Fish doctor.")])
    assert set(before) - set(await facts(mind)) == ({"Fish doctor."} if is_dropped else set())


@pytest.mark.parametrize("wish", ["Call the user Nacho, not Ignacio.", "Der Nutzer möchte Nacho genannt werden."])
async def test_a_wish_to_be_called_by_a_name_names_the_user_from_then_on(mind: Mind, wish: str) -> None:
    await told(mind, "By the way, only the tax office says Ignacio. Nacho will do nicely.")
    await read(mind, lambda s: [s.item("wish", "Nacho", text=wish)])
    async with mind.db.transaction(mind.agent_id) as tx:
        assert await list_user_names(tx, agent_id=mind.agent_id) == ("Nacho",)
    await told(mind, NEWS, session="s2")
    await read(mind, model=(reader := Reader()))
    assert "User: Nacho (Nora)" in reader.sheets[0].text
