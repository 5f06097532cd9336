"""Facts in contexts: as of when they are known, what contradicts them, and what a person sees of it later."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from newton.agent.services.memories import FactDraft
from newton.heart.entities import entity_store
from newton.heart.facts.fact_store import NewFact, add_facts
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Trust
from newton.operations.contexts.bundle_text import format_explanation
from newton.providers import token_counter
from tests.scenarios.conftest import Mind
from tests.scenarios.test_replay import hindsight
from tests.scenarios.test_standing import Talk, replays, talk
from tests.support import NOON, ground, teller

__all__ = ["talk"]

QUESTION = "In which town does Carla live?"


async def tell(
    mind: Mind,
    *contents: str,
    days: float = 0,
    until: float | None = None,
    trust: Trust = "user",
    now: datetime | None = None,
) -> list[UUID]:
    """Facts that are valid since some days before today, stored then or at `now`."""
    at = NOON - timedelta(days=days)
    ctx = ground(teller(mind.agent_id, count_tokens=token_counter.count, trust=trust, now=now or at))
    ends = None if until is None else NOON - timedelta(days=until)
    facts = [NewFact(ref=str(new_id()), content=content, valid_from=at, valid_to=ends) for content in contents]
    async with mind.db.transaction(mind.agent_id) as tx:
        await add_facts(tx, facts, ctx=ctx)
        rows = await tx.fetch("select memory_id from memory.memories where full_text = any($1)", list(contents))
    await mind.settle()
    return [row["memory_id"] for row in rows]


async def contest(mind: Mind, later: UUID, earlier: UUID, *, at: datetime | None = None) -> None:
    async with mind.db.transaction(mind.agent_id) as tx:
        ctx = teller(mind.agent_id, now=at or mind.clock.now())
        await store.add_links(tx, "contradicts", [(later, earlier)], ctx=ctx)


def known(text: str) -> Sequence[str]:
    return text.partition("## Known Information\n")[2].partition("##")[0].splitlines()


async def test_facts_of_other_days_carry_their_day(mind: Mind) -> None:
    # S002-16
    await tell(mind, "Carla lives in the town of Bergen.")
    await tell(mind, "Carla does live near her garage in town.", days=40)
    await tell(mind, "Carla is on call in the town.", days=20)
    await tell(mind, "The mother of Carla does live in another town.", days=800)
    await tell(mind, "Carla does live in town with a permit.", days=90, until=1)
    await tell(mind, "Carla does live in a town house.", days=-10, now=NOON)
    await tell(mind, "Carla does live in which town she likes.", trust="agent")
    bundle = await mind.context(QUESTION)
    ends, begins = NOON - timedelta(days=1), NOON + timedelta(days=10)
    assert sorted(known(bundle.text)) == sorted(
        [
            "- Carla lives in the town of Bergen.",
            f"- {_day(40)}: Carla does live near her garage in town.",
            f"- {_day(20)}, maybe outdated: Carla is on call in the town.",
            f"- {NOON - timedelta(days=800):%b '%y}: The mother of Carla does live in another town.",
            f"- until {ends.day} {ends:%b}: Carla does live in town with a permit.",
            f"- from {begins.day} {begins:%b}: Carla does live in a town house.",
            "- said by the assistant: Carla does live in which town she likes.",
        ]
    )
    assert bundle.tokens == token_counter.count(bundle.text)
    (garage,) = [item for item in bundle.as_json()["items"] if "garage" in item["text"]]
    assert garage["told_at"] == (NOON - timedelta(days=40)).isoformat() and not garage["contradicts"]
    assert (await hindsight(mind).replay(str(bundle.bundle_id))).identical


def _day(days: float) -> str:
    at = NOON - timedelta(days=days)
    return f"{at.day} {at:%b}"


async def test_a_confirmed_fact_is_as_of_its_confirmation(mind: Mind) -> None:
    # S002-16
    await tell(mind, "Carla lives in Bergen.", days=60)
    await tell(mind, "Carla lives in Bergen.", days=9)
    assert known((await mind.context(QUESTION)).text) == [f"- {_day(9)}: Carla lives in Bergen."]


async def test_an_unsettled_pair_is_one_item_though_only_one_of_them_was_found(mind: Mind) -> None:
    (oslo,) = await tell(mind, "Her post goes to Oslo.", days=50)
    (bergen,) = await tell(mind, "Carla lives in the town of Bergen.", days=11)
    await tell(mind, *(f"Carla does live in which town? Rumour {n}." for n in range(40)))
    before = await mind.context(QUESTION)
    assert oslo not in {c.memory_id for c in before.candidates}
    await contest(mind, bergen, oslo)
    bundle = await mind.context(QUESTION)
    pair = [f"- {_day(11)}: Carla lives in the town of Bergen.", f"earlier {_day(50)}: Her post goes to Oslo."]
    assert "\n".join(pair) in bundle.text
    assert bundle.tokens == token_counter.count(bundle.text)
    items = {item["memory_id"]: item for item in bundle.as_json()["items"]}
    assert items[str(bergen)]["contradicts"] == [str(oslo)]
    assert items[str(oslo)]["contradicts"] == [str(bergen)]
    assert (await hindsight(mind).replay(str(bundle.bundle_id))).identical


async def test_a_pair_is_two_facts_until_they_were_contested_and_then_each_is_explained_with_both(mind: Mind) -> None:
    (oslo,) = await tell(mind, "Carla lives in Oslo.", days=50)
    (bergen,) = await tell(mind, "Carla lives in Bergen.", days=11)
    await contest(mind, bergen, oslo, at=NOON - timedelta(days=5))
    for days, is_pair in ((6, False), (4, True)):
        past = await mind.context(QUESTION, as_of=NOON - timedelta(days=days))
        assert ("\nearlier " in past.text) == is_pair
        assert "Oslo" in past.text and "Bergen" in past.text
    explanation = await hindsight(mind).explain(str((await mind.context(QUESTION)).bundle_id))
    for memory_id, other in ((oslo, "Carla lives in Bergen."), (bergen, "Carla lives in Oslo.")):
        assert other in format_explanation(explanation.explain_item(str(memory_id)))
    assert format_explanation(explanation).count("unsettled, contradicted by") == 2


async def test_a_conversation_learns_that_facts_were_contested_and_that_a_day_has_passed(talk: Talk) -> None:
    # S002-14
    mind = talk.mind
    asked = "When does the ferry Artemis leave the harbour?"
    first = await talk.given(asked)
    (ferry,) = [item.memory_id for item in first.bundle.items if "Artemis" in item.text]
    (later,) = await tell(mind, "The ferry Artemis leaves the harbour at ten.", days=0)
    await contest(mind, later, ferry)
    assert (await talk.given("So when does the ferry Artemis leave the harbour?")).method == "built"
    assert "unsettled" in talk.told
    assert (await talk.given("So does the ferry Artemis leave the harbour?")).method == "stood"
    mind.clock.advance(timedelta(days=1))
    again = await talk.given("So does the ferry Artemis leave the harbour?")
    assert again.method == "built" and "another day" in again.reason
    assert await replays(mind, again)


async def test_a_relation_is_not_told_beside_the_fact_that_states_it(mind: Mind) -> None:
    # S001-21
    await mind.verbs.remember(FactDraft(content="Carla has her house in Oslo", subject="Carla", attribute="lives in"))
    async with mind.db.transaction(mind.agent_id) as tx:
        ctx = teller(mind.agent_id, count_tokens=token_counter.count, now=mind.clock.now())
        await entity_store.index_mentions(tx, ctx=ctx)
    await mind.settle()
    bundle = await mind.context("Where does Carla live?")
    assert known(bundle.text) == ["- Carla has her house in Oslo"]
    assert [c.reason for c in bundle.candidates if c.kind == "relation"] == ["repeats a fact of the context"]


async def test_a_long_fact_is_told_whole_where_there_is_room_and_else_by_what_answers(mind: Mind) -> None:
    # S002-3, S002-4, S002-11
    clauses = [f"in room {n} the town keeps the files of {n} hundred houses behind a green door" for n in range(1, 13)]
    long = f"Carla says where the papers are: {'; '.join(clauses)}; and the key hangs under the stairs."
    await tell(mind, long)
    assert long in (await mind.context("Where are the papers of the town, Carla?")).text
    papers = (await mind.context("Where does Carla say the papers are?", budget=120)).text
    assert "Carla says where the papers are: in room 1 " in papers and " …\n" in papers and "stairs" not in papers
    key = (await mind.context("Carla, where hangs the key?", budget=120)).text
    assert "… the key hangs under the stairs.\n" in key and "Carla says" not in key
    tight = (await mind.context("Where are the papers of the town, Carla?", budget=40)).text
    assert "Carla says where" in tight and " … " in tight and "under the stairs.\n" in tight
