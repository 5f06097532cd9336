"""Talks of several: each statement belongs to who said it, and a role to who has it."""

import re
from datetime import timedelta

import pytest

from newton.dialogue.session_speakers import has_one_speaker
from newton.heart.facts import conflicts
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.reading import Reader, Sheet, read

pytestmark = pytest.mark.usefixtures("minilm")
CHAT = "Our chat:\n[09:14] Sam: I'm allergic to nuts\n[09:15] Me: I live in Ghent\n[09:16] Sam: I live in Bruges now"


async def tell(mind: Mind, *said: tuple[str | None, str], session: str = "talk") -> dict[str, str]:
    """Say lines by speakers, each of which is read at once; return the current facts with their subjects."""
    upkeep = newton(mind, mind.embedder).maintenance("test")
    for name, text in said:
        await mind.hear(text, name=name, session=session)
        await upkeep.learn_statements()
        await upkeep.process_pending()
        mind.clock.advance(timedelta(minutes=5))
    rows = await mind.fetch(
        "select m.full_text, f.subject from memory.memories as m join heart.facts as f using (agent_id, memory_id)"
        " where f.is_current order by m.memory_id"
    )
    return {row["full_text"]: row["subject"] for row in rows}


async def list_conflicts(mind: Mind) -> int:
    async with mind.db.transaction(mind.agent_id) as tx:
        return len(await conflicts.list_conflicts(tx, agent_id=mind.agent_id))


async def test_a_named_participant_speaks_of_themselves(mind: Mind) -> None:
    # S002-16
    facts = await tell(
        mind,
        (None, "I live in Ghent."),
        ("Sam", "I'm allergic to nuts."),
        ("Sam", "I live in Antwerp now."),
        (None, "I am allergic to cats."),
        (None, "I moved to Lier last week."),
    )
    assert facts == {
        "Sam: “I'm allergic to nuts.”": "Sam",
        "Sam: “I live in Antwerp now.”": "Sam",
        "I am allergic to cats.": "user",
        "I moved to Lier last week.": "user",
    }
    assert await list_conflicts(mind) == 0
    told = await mind.context("What is Sam allergic to?", budget=600)
    assert re.search("Sam: “?I'm allergic to nuts", told.text)


async def test_the_user_is_known_by_name_among_others(mind: Mind) -> None:
    # S002-16
    await tell(mind, (None, "My name is Ana Kovac."), session="before")
    facts = await tell(mind, ("ana", "My favourite colour is green."), ("Bob", "My favourite colour is orange."))
    assert facts["My favourite colour is green."] == "user"
    assert facts["Bob: “My favourite colour is orange.”"] == "Bob"


@pytest.mark.parametrize("first", [None, "Ana"])
async def test_a_speaker_with_a_session_of_their_own_displaces_nothing_of_another(
    mind: Mind, first: str | None
) -> None:
    """Without a model and by one that cites their line; the only speaker whom the agent hears is the user. S002-16"""
    mine, hers = "My dentist is Dr. Kral.", "My dentist is Dr. Novak now."
    assert await tell(mind, (first, mine), session="before") == {mine: first or "user"}
    assert mine in await tell(mind, ("Lena", hers), session="of Lena")
    sessions = [await mind.session(one) for one in ("before", "of Lena")]
    async with mind.db.transaction(mind.agent_id) as tx:
        alone = [await has_one_speaker(tx, agent_id=mind.agent_id, session_id=one) for one in sessions]
    assert alone == [first is None, False]

    def obey(sheet: Sheet) -> list[dict[str, object]]:
        claim = "The user's dentist is Dr. Novak."
        return [sheet.item("update", "Novak", mine[:-1], text=claim), sheet.item("add", "Novak", text=claim)]

    await read(mind, model=Reader([lambda _: [], obey]))
    await newton(mind, mind.embedder).maintenance("test").process_recent(failed={})
    assert mine in await mind.facts()


async def test_the_lines_of_a_pasted_chat_belong_to_their_speakers(mind: Mind) -> None:
    # S002-16
    facts = await tell(mind, (None, "I am a plumber."), (None, CHAT), (None, "I live in Lier now."))
    assert facts == {
        "I am a plumber.": "user",
        "Sam: “I'm allergic to nuts.”": "Sam",
        "Sam: “I live in Bruges now.”": "Sam",
        "I live in Lier now.": "user",
    }
    assert await list_conflicts(mind) == 0
    trust = await mind.facts()
    assert (trust["Sam: “I live in Bruges now.”"], trust["I live in Lier now."]) == ("agent", "user")
    assert "said by the assistant" not in (await mind.context("Where does Sam live?", budget=800)).text


async def test_a_role_and_a_name_mean_one_until_another_has_the_role(mind: Mind) -> None:
    # S001-15
    async def aliases() -> dict[str, list[str]]:
        rows = await mind.fetch("select name, aliases from heart.entities where name in ('Lien', 'Sarah')")
        return {row["name"]: row["aliases"] for row in rows}

    await mind.know(*(f"The {n}th bakery of the town sells rye bread from shelf {n}." for n in range(30)))
    await tell(mind, (None, "My girlfriend Lien works at the hospital."), (None, "Meine Freundin wohnt in Löwen."))
    assert await aliases() == {"Lien": ["my girlfriend"]}
    assert "Löwen" in (await mind.context("Where does Lien live?", budget=400)).text
    assert "hospital" in (await mind.context("Wo arbeitet meine Freundin?", budget=400)).text
    await tell(mind, (None, "Meine neue Freundin heißt Sarah."), (None, "My girlfriend plays the violin."))
    assert await aliases() == {"Lien": [], "Sarah": ["my girlfriend"]}
    named = await mind.fetch(
        "select e.name from heart.mentions as n"
        " join heart.entities as e on e.agent_id = n.agent_id and e.memory_id = n.entity_id"
        " join memory.memories as m on m.agent_id = n.agent_id and m.memory_id = n.memory_id"
        " where m.full_text = 'My girlfriend plays the violin.'"
    )
    assert "Sarah" in {row["name"] for row in named}
    assert "Lien" not in {row["name"] for row in named}


async def test_another_speaker_gives_nobody_a_role_of_the_user(mind: Mind) -> None:
    # S001-15
    await tell(mind, (None, "I live in Ghent."), ("Sam", "My girlfriend Tess plays the harp."))
    assert await mind.fetchval("select count(*) from heart.entities where 'my girlfriend' = any(aliases)") == 0
