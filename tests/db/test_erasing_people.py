"""Erasing people under the names given and stated: no word of them is left, and nobody else is touched."""

import re
from itertools import zip_longest
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from newton.agent.services import person_search
from newton.agent.services.erasure import ErasureService
from newton.agent.services.person_search import build_name_pattern
from newton.agent.services.stated_names import SpokenText, find_stated_names
from newton.clock import ManualClock
from newton.content.yaml_files import parse_trusted
from newton.db.pool import Database, Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import InputError
from newton.heart.entities import entity_changes, entity_store
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.support import NOON, agent_scope, count, ground, teller
from tests.system.lines import everything

Line = tuple[str, str]
OLA: list[Line] = [
    ("Nora", "My flatmate Aleksandra Wiśniewska, everybody calls her Ola, moves out in May."),
    ("Nora", "Ola wants to take the green sofa with her."),
    ("Nora", "The landlord writes ALEKSANDRA WISNIEWSKA on her letters."),
    ("Aleksandra Wis\u0301niewska", "The keys are with the caretaker, I leave on the third."),
    ("Ola", "Please call me Lexi, all do."),
    ("Nora", "Lexi's bicycle is in the cellar."),
]
OTHERS: list[Line] = [
    ("Nora", "The Olaf fountain in the park is dry."),
    ("Nora", "Aleksandr Wisniewski repairs pianos."),
    ("Olaf", "I like the park."),
    ("Nora", "Robert Miller sold us a pump."),
]
SAME = {
    "Robert": ["Robert's", "ROBERT", "robert,", "(Robert)", "Robert’s", "@robert", 'a\\nRobert"', "我的朋友Robert的车"],
    "Émile Garneau": ["Emile Garneau", "E\u0301mile  Garneau's", "émile\nGARNEAU", "Emile\\nGarneau"],
    "Łukasz Weiß": ["lukasz weiss", "ŁUKASZ WEISS", "Lukasz Weiß"],
    "Catherine O'Shea": ["catherine O’Shea"],
    "Ёлкин": ["елкин", "ЕЛКИН"],
    "田辺": ["田辺さん"],
    "김민수": ["김민수는"],
    "Will": ["Will's", "WILL"],
    "will": ["will", "Will"],
    "le Capitaine": ["Le Capitaine", "du Capitaine", "LE CAPITAINE"],
    "Nguyễn": ["nguyen", "NGUYEN"],
}
DIFFERENT = {
    "Robert": ["Roberta", "Roberts", "Rob", "Bert", "Robérto", "Robert\u0301a"],
    "Ana Berg": ["Ana", "Berg", "Ana-Lena Berg", "Ana Bergmann", "Diana Berg"],
    "Will": ["will", "willing"],
    "le Capitaine": ["le capitaine du club", "Capitaine"],
    "Cat": ["the cat", "cats", "Cats"],
}
STATED = {
    "Bob, that is Robert Miller, called.": {"Bob"},
    "Dima is short for Robert Miller.": {"Dima"},
    "Robert Miller, also known as Rocket Bob, won.": {"Rocket Bob"},
    "Robert Miller goes by Rob.": {"Rob"},
    "Robert Miller is a plumber and his kids call him Robby.": {"Robby"},
    "We call Robert Miller Bobo since school.": {"Bobo"},
    "My name is Robert Miller. Call me Bo.": {"Bo"},
    "Hi, I'm Zoe. Hi, I'm Robert Miller.": set[str](),
    "Please call Robert Miller Monday.": set[str](),
    "Robert Miller's sister is here, everybody calls her Zoe.": set[str](),
    "Berlin, that is Robert Miller's town.": set[str](),
    "Robert Miller (Acme) met Nora.": set[str](),
    "Call me Zoe and tell Robert Miller.": set[str](),
}


def erasing(db: Database, agent: UUID, *logs: Path) -> ErasureService:
    scope = agent_scope(agent_id=agent, origin="cli", db=db, clock=ManualClock(NOON), count_tokens=count)
    return ErasureService(scope=scope, logs=logs)


async def chat(db: Database, agent: UUID, lines: list[Line]) -> None:
    """Store the lines as messages of their speakers, and those of Nora as facts too, with their vectors."""
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="chat", now=NOON)
        said = [Message(role="user", name=name, content=text, said_at=NOON) for name, text in lines]
        await sessions.append(tx, said, session_id=session_id, ctx=ctx)
        told = [text for name, text in lines if name == "Nora"]
        facts = [NewFact(ref=f"chat {n}", content=text, valid_from=NOON) for n, text in enumerate(told)]
        await fact_store.add_facts(tx, facts, ctx=ground(ctx))
        await entity_store.index_mentions(tx, ctx=ctx)
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()


@pytest.mark.parametrize("name", sorted(SAME | DIFFERENT))
async def test_a_name_is_found_in_any_case_and_with_any_accents_as_a_whole_word(tx: Tx, name: str) -> None:
    pattern = build_name_pattern([name, "Quite Another"])
    for text in (*SAME.get(name, ()), *DIFFERENT.get(name, ())):
        found = await tx.fetchval("select $1::text ~ $2::text", text, pattern)
        assert found == (re.search(pattern, text) is not None) == (text in SAME.get(name, ())), text


async def test_fifty_long_names_are_searched_for_at_once(tx: Tx) -> None:
    pattern = build_name_pattern([f"Aleksandra {'e' * n} von der Wiśniewska-Lindström" for n in range(50)])
    assert await tx.fetchval("select 'ALEKSANDRA EEE VON DER WISNIEWSKA-LINDSTROM' ~ $1::text", pattern)


@pytest.mark.parametrize("text", STATED)
def test_a_name_that_a_text_states_for_a_person_is_found(text: str) -> None:
    assert set(find_stated_names(SpokenText(text, "Nora"), ROBERT_MILLER, ["Robert Miller"])) == STATED[text]


FORMS = parse_trusted((Path(__file__).parents[1] / "data" / "stated_names.yaml").read_text(encoding="utf-8"))
ROBERT_MILLER = re.compile(build_name_pattern(["Robert Miller"]))


def stated_in(person: str, text: str, before: str = "") -> set[str]:
    known = re.compile(build_name_pattern([person, person.split(maxsplit=1)[0]]))
    return set(find_stated_names(SpokenText(text, "Nora", before), known, [person]))


@pytest.mark.parametrize("form", [(one["person"], *form) for one in FORMS for form in one["stated"]], ids=str)
def test_a_further_name_is_found_in_everyday_forms_of_several_languages(form: tuple[str, ...]) -> None:
    # S8
    person, text, name, *before = form
    assert stated_in(person, text, *before) == {name}


@pytest.mark.parametrize("form", [(one["person"], text) for one in FORMS for text in one["not_stated"]], ids=str)
def test_what_is_said_of_others_is_not_taken_for_a_name(form: tuple[str, str]) -> None:
    # S8
    assert stated_in(*form) == set()


ALIASES: list[Line] = [
    ("Nora", "Robert Koch is my uncle from Jena."),
    ("Nora", "My friends call him Bo."),
    ("Nora", "Bo repairs old radios in the attic."),
    ("Nora", "@bkoch is Robert Koch's handle."),
    ("Nora", "The parcel of bkoch came back."),
    ("Nora", "Robert, Bobbel to us, was late for the concert."),
    ("Nora", "Bobbel lost the tickets."),
]


async def test_lines_that_name_only_an_alias_are_found_shown_and_erased(db: Database, agent: UUID) -> None:
    # S8
    others = [("Nora", "Zoe Berg sings. Everyone calls her Zizi."), ("Nora", "Zizi has a cold.")]
    await chat(db, agent, ALIASES + others)
    plan = await erasing(db, agent).plan("Robert Koch")
    assert set(plan.names) == {"Robert Koch", "Bo", "Bobbel", "bkoch"}
    said = {one.name: one.text for one in plan.stated}
    assert said == {"Bo": ALIASES[1][1], "Bobbel": ALIASES[5][1], "bkoch": ALIASES[3][1]}
    done = await erasing(db, agent).erase("Robert Koch", token=plan.token, reason="asked for")
    dump = "\n".join(await everything(db, agent))
    assert done.remains == {} and not re.search(r"(?i)attic|parcel|tickets|concert|bkoch|bobbel", dump)
    assert all(text in dump for _, text in others)


TOLD = parse_trusted((Path(__file__).parents[1] / "data" / "told_aliases.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("story", TOLD, ids=lambda story: story["alias"])
async def test_a_name_that_a_conversation_tells_in_passing_is_erased_or_shown(
    db: Database, agent: UUID, story: dict[str, Any]
) -> None:
    # S8
    lines = story["about"] + story["others"]
    await chat(
        db, agent, [("Nora", text) for pair in zip_longest(story["about"], story["others"]) for text in pair if text]
    )
    plan = await erasing(db, agent).plan(story["person"])
    possible = [one.name for one in plan.possible]
    assert re.search(build_name_pattern([*plan.names, *possible]), story["alias"])
    also = [] if story["alias"] in plan.names else possible
    plan = await erasing(db, agent).plan(story["person"], also=also)
    await erasing(db, agent).erase(story["person"], token=plan.token, reason="asked for", also=also)
    dump = "\n".join(await everything(db, agent))
    assert [text for text in lines if text in dump] == story["others"]


async def test_a_name_that_is_used_like_one_but_is_not_of_the_person_is_not_erased(db: Database, agent: UUID) -> None:
    # S8
    lines = [
        "Robert Koch repairs the roof with Zoe Berg. Everyone here says Bibi to her.",
        "Everyone says Leipzig is dear.",
        "We call Anna Lind on Friday.",
        "Her cousin is called Zizi.",
        "Leipzig was full, Anna Lind said.",
        "Zizi has a cold, use pump_x64, and ask Bibi.",
    ]
    await chat(db, agent, [("Nora", text) for text in lines])
    plan = await erasing(db, agent).plan("Robert Koch")
    assert plan.names == ("Robert Koch",)
    assert not {"Anna", "Anna Lind", "Lind", "Zizi", "Bibi", "pump_x64"} & {one.name for one in plan.possible}


async def test_a_first_name_that_others_have_states_nothing(db: Database, agent: UUID) -> None:
    # S8
    lines = [
        ("Nora", "Robert Koch is my uncle."),
        ("Nora", "Robert Lang sold a pump."),
        ("Nora", "Robert, Bob to us, sings."),
    ]
    await chat(db, agent, lines)
    assert (await erasing(db, agent).plan("Robert Koch")).names == ("Robert Koch",)


async def test_a_fact_about_a_person_states_a_name_without_naming_them(db: Database, agent: UUID) -> None:
    # S8
    async with db.transaction(agent) as tx:
        told = NewFact(ref="1", content="Friends call him Bobo", valid_from=NOON, subject="Robert Koch")
        other = NewFact(ref="2", content="Bobo plays the tuba", valid_from=NOON)
        await fact_store.add_facts(tx, [told, other], ctx=ground(teller(agent)))
    plan = await erasing(db, agent).plan("Robert Koch")
    assert set(plan.names) == {"Robert Koch", "Bobo"} and len(plan.memories) == 2


async def test_no_word_or_vector_of_a_person_is_left_and_nobody_else_is_touched(db: Database, agent: UUID) -> None:
    # S8
    await chat(db, agent, OLA + OTHERS)
    plan = await erasing(db, agent).plan("aleksandra wisniewska")
    assert {"aleksandra wisniewska", "Ola", "Lexi"} <= set(plan.names) and plan.shared_names == ()
    done = await erasing(db, agent).erase("aleksandra wisniewska", token=plan.token, reason="asked for")
    dump = "\n".join(await everything(db, agent))
    assert done.remains == {}
    assert not re.search(r"(?i)\b(?:ola|lexi|aleksandra|wi.{1,2}niewska)\b|green sofa|caretaker|bicycle", dump)
    assert [text for _, text in OTHERS if text not in dump] == []
    async with db.transaction(agent) as tx:
        gone = [memory_id for memory_id, _, _ in plan.memories]
        assert len(gone) >= 10
        assert not await tx.fetchval("select count(*) from memory.embeddings where memory_id = any($1)", gone)
        assert await tx.fetchval("select count(*) from memory.embeddings") >= 7


async def test_other_spellings_stay_until_they_are_given(db: Database, agent: UUID) -> None:
    # S8
    await chat(db, agent, [("Nora", "Robert Miller, known as Bob, sings."), ("Nora", "Rob has a cold.")])
    plan = await erasing(db, agent).plan("Robert Miller")
    assert set(plan.names) == {"Robert Miller", "Bob"}
    plan = await erasing(db, agent).plan("Robert Miller", also=["Rob"])
    done = await erasing(db, agent).erase("Robert Miller", token=plan.token, reason="asked for", also=["Rob"])
    assert done.remains == {} and "has a cold" not in "\n".join(await everything(db, agent))


async def test_the_aliases_of_an_entity_are_erased_under_each_of_its_names(db: Database, agent: UUID) -> None:
    # S8
    async with db.transaction(agent) as tx:
        declared = EntityDeclaration(name="Émile Garneau", type="person", aliases=("Milou", "the tuner"))
        await entity_changes.declare_entities(tx, [declared], ctx=teller(agent))
    lines = ("Milou's felt is worn.", "I saw The Tuner today.", "We paid Garneau for the felt.")
    await chat(db, agent, [("Nora", line) for line in lines])
    plan = await erasing(db, agent).plan("Emile Garneau")
    assert {"Émile Garneau", "Milou", "the tuner"} <= set(plan.names)
    done = await erasing(db, agent).erase("Emile Garneau", token=plan.token, reason="asked for")
    dump = "\n".join(await everything(db, agent)).lower()
    assert done.remains == {} and not any(word in dump for word in ("milou", "tuner", "garneau", "felt"))


async def test_what_is_named_after_a_person_leaves_no_name_behind(db: Database, agent: UUID) -> None:
    # S8
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        place = EntityDeclaration(name="Lot 7", type="place", aliases=("Robert Miller's garage",))
        await entity_changes.declare_entities(tx, [place], ctx=ctx)
        car = NewFact(ref="1", content="It is green", valid_from=NOON, subject="Robert Miller's car")
        await fact_store.add_facts(tx, [car], ctx=ground(ctx))
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="chat", now=NOON)
        said = Message(role="user", name="ROBÉRT MILLER (work)", content="Mine is green.", said_at=NOON)
        await sessions.append(tx, [said], session_id=session_id, ctx=ctx)
    plan = await erasing(db, agent).plan("Robert Miller")
    done = await erasing(db, agent).erase("Robert Miller", token=plan.token, reason="asked for")
    dump = "\n".join(await everything(db, agent))
    assert done.remains == {} and not re.search("(?i)miller|is green", dump)


async def test_a_stated_name_that_others_have_is_shown_and_not_erased(db: Database, agent: UUID) -> None:
    # S8
    park = ("Nora", "I met Martin Luther in the park.")
    await chat(db, agent, [("Nora", "Robert Berg goes by Martin."), park])
    plan = await erasing(db, agent).plan("Robert Berg")
    assert (plan.names, plan.shared_names) == (("Robert Berg",), ("Martin",))
    await erasing(db, agent).erase("Robert Berg", token=plan.token, reason="asked for")
    assert park[1] in "\n".join(await everything(db, agent))


async def test_the_scan_after_an_erasure_reads_archived_texts_and_logs(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    # S8
    log = tmp_path / "postgres.log"
    log.write_text("ERROR: ß (OLA)\nSTATEMENT: Olaf stays\n" + "ß" * (1 << 19) + " Ola's\n", "utf-8")
    size = log.stat().st_size
    await chat(db, agent, OLA)
    plan = await erasing(db, agent, log).plan("Aleksandra Wiśniewska")
    assert person_search.count_in_logs([log], plan.pattern) == {str(log): 2}
    done = await erasing(db, agent, log).erase("Aleksandra Wiśniewska", token=plan.token, reason="asked for")
    text = log.read_text("utf-8")
    assert done.remains == {}
    assert (log.stat().st_size, "Olaf stays" in text, "(xxx)" in text, "xxx's" in text) == (size, True, True, True)


@pytest.mark.parametrize("name", ["Katharine", "'s", ".", "\u0301"])
async def test_an_unknown_name_and_what_is_no_name_are_refused(db: Database, agent: UUID, name: str) -> None:
    await chat(db, agent, [("Nora", "Katharina's cat . sings.")])
    with pytest.raises(InputError):
        await erasing(db, agent).plan(name)
    with pytest.raises(InputError):
        await erasing(db, agent).plan("Katharine", also=[name])
