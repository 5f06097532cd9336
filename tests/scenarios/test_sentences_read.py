"""What becomes of a sentence, and of what is known, once a model has read the lines."""

import re
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from newton.agent.reconciliation import line_changes
from newton.agent.reconciliation.known_items import list_user_names
from newton.agent.reconciliation.reconciler import MemoryReconciler
from newton.heart.facts import conflicts, fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import review
from newton.memory import store
from newton.memory.memory import Trust
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.reading import Reader, Sheet, asking, facts, read, told

pytestmark = pytest.mark.usefixtures("minilm")


async def test_what_a_sentence_with_pronouns_says_is_stored_as_clear_facts_in_its_place(mind: Mind) -> None:
    said = "Olek goes to school in Barna, Kasia takes him there, she is a nurse in Galway."
    await told(mind, said, "My sister Anna lives in Graz and plays the oboe.")
    assert any("she is a nurse" in one for one in await facts(mind))
    clear = ["Olek goes to school in Barna.", "Kasia takes Olek to school in Barna.", "Kasia is a nurse in Galway."]
    items = [("Olek", text) for text in clear] + [("Anna", "Nora's sister Anna lives in Graz.")]
    await read(mind, lambda s: [s.item("add", line, text=text) for line, text in items])
    assert set(await facts(mind)) == {*clear, "My sister Anna lives in Graz and plays the oboe."}
    text = (await mind.context("Where does Olek go to school, and who takes him there?")).text
    assert said in text and "changed since" not in text, "the message says nothing that has changed"


async def test_a_correction_does_not_stay_beside_the_fact_that_it_corrects(mind: Mind) -> None:
    await told(mind, "Olek sees Dr. Weiss on 20 October at 9:30.")
    before = await facts(mind)
    mind.clock.advance(timedelta(days=1))
    await told(mind, "No no, the 22nd, Thursday.", "sis has moved to Graz with Bo.")
    assert len(await facts(mind)) > len(before), "the parser takes what is told with the correction for a fact"
    stated = "Olek sees Dr. Weiss on 22nd October at 9:30."
    assert stated in await facts(mind), "and writes the corrected sentence whole"
    clear = ["Olek sees Dr. Weiss on 22 October at 9:30.", "Nora's sister has moved to Graz with Bo."]

    def answer(sheet: Sheet) -> list[dict[str, object]]:
        return [
            sheet.item("update", "22nd", "Olek", "22nd", text=clear[0]),
            sheet.item("update", "sis has", "moved", text=clear[1]),
        ]

    await read(mind, answer)
    assert sorted(await facts(mind)) == sorted([stated, clear[1]])


@pytest.mark.parametrize(("price", "stays"), [("46 euros", False), ("45 euros", True)])
async def test_a_sentence_is_merged_into_the_fact_of_a_later_line_that_says_it_alone(
    mind: Mind, price: str, stays: bool
) -> None:
    said = "I found a green glaze in Manises, 46 euros the metre. My brother Felix works at the harbour."
    await told(mind, said, "My sister Anna needs nine metres of it.")
    before = [one for one in await facts(mind) if "glaze" in one]
    assert before, "the parser takes it for a fact"
    felix, glaze = (
        "Nora's brother Felix works at the harbour.",
        f"Nora found a green glaze in Manises at {price} the metre.",
    )
    await read(mind, lambda s: [s.item("add", "46", text=felix), s.item("add", "nine", text=glaze)])
    after = await facts(mind)
    assert [one for one in after if one in before] == (before if stays else [])
    assert stays or glaze in after
    text = (await mind.context("What does the green glaze cost?")).text
    assert "changed since" not in text, "the message says nothing that has changed"


async def test_a_sentence_of_which_a_detail_is_missing_in_the_clear_facts_stays(mind: Mind) -> None:
    said = "My boss Renate rides with me on Fridays, she pays 38 euros an hour."
    await told(mind, said)
    before = await facts(mind)
    await read(mind, lambda s: [s.item("update", "Renate", "Renate", text="Nora's boss Renate rides with Nora.")])
    assert set(before) <= set(await facts(mind))


async def test_a_sentence_that_is_not_meant_is_no_fact_and_others_stay(mind: Mind) -> None:
    await told(mind, "My sister Anna lives in Graz.")
    mind.clock.advance(timedelta(days=1))
    await told(mind, "He bought a house in Kazimierz, and paid with honey.")
    assert any("Kazimierz" in one for one in await facts(mind))
    await read(mind, lambda s: [s.item("not_asserted", "honey", "Kazimierz", "Anna")])
    assert await facts(mind) == ["My sister Anna lives in Graz."]
    text = (await mind.context("Who bought a house in Kazimierz?")).text
    assert "Kazimierz" in text and "changed since" not in text, "a joke has not changed"


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("Before we start: don't ever quote a price to Bo that I haven't given you.", "Never quote a price to Bo."),
        ("My mails to the bank carry only numbers that I gave.", "Mails to the bank carry only numbers of the user."),
    ],
)
async def test_a_sentence_that_is_a_rule_is_no_fact_as_well_and_is_shown_once(mind: Mind, said: str, rule: str) -> None:
    await told(mind, said)
    assert len(await facts(mind)) <= 1, "the parser may take it for a fact"
    was_fact = bool(await facts(mind))
    await read(mind, lambda s: [s.item("rule", said[:9], said[:9], text=rule)])
    assert await facts(mind) == [], "it would outlive the rule"
    mind.clock.advance(timedelta(days=1))
    await told(mind, said)
    reader = Reader()
    await read(mind, model=reader)
    assert was_fact is False or len(re.findall(r"^[A-Z]\d .*|<S\d", reader.sheets[0].text, re.MULTILINE)) == 1
    assert await facts(mind) == []


@pytest.mark.parametrize("op", ["both", "newer", "left alone", "no answer"])
async def test_a_pair_that_a_classifier_doubts_is_not_shown_and_decided_by_the_call(mind: Mind, op: str) -> None:
    await told(mind, "The choir meets on Tuesdays.")
    mind.clock.advance(timedelta(days=1))
    await told(mind, "Emil sings in the town choir.", "Our rent is 820 euros.")
    async with mind.scope.write() as (tx, ctx):
        known = await tx.fetch(
            "select memory_id, full_text from memory.memories where kind = 'fact' order by full_text"
        )
        ids = {row["full_text"].split()[0]: row["memory_id"] for row in known}
        await store.add_links(tx, "contradicts", [(ids["Emil"], ids["The"])], ctx=ctx)
        await review(tx, ctx, "fact", list(ids.values()))
        assert await conflicts.count_conflicts(tx, agent_id=mind.agent_id) == 1

    def answer(sheet: Sheet) -> list[dict[str, object]]:
        if op in ("both", "newer"):
            return [sheet.item(op, "", "choir"), sheet.item(op, "", "rent", "Emil")]
        rent = sheet.item("update", "rent", "rent", text="Nora's rent is 820 euros.")
        return [rent] if op == "left alone" else []

    reader = Reader([answer])
    result = await read(mind, model=reader)
    assert "pair" not in reader.sheets[0].text
    assert (result.kept, result.dropped) == {"left alone": (1, 0), "no answer": (0, 0)}.get(op, (1, 1))
    async with mind.scope.transaction() as tx:
        assert await conflicts.count_conflicts(tx, agent_id=mind.agent_id) == (op == "no answer")
    assert ("The choir meets on Tuesdays." in await facts(mind)) == (op != "newer")


async def test_lines_that_come_during_a_call_are_parsed_before_they_are_read(mind: Mind) -> None:
    await told(mind, "My sister Anna lives in Graz.")
    assert mind.embedder
    maintenance = newton(mind, mind.embedder).maintenance("test")
    reader = Reader()

    async def hear() -> None:
        reader.meanwhile = None
        await mind.hear("My brother Felix works at the harbour.")

    reader.meanwhile = hear
    parse = partial(maintenance.process_recent, failed={})
    await MemoryReconciler(llm=asking(mind, reader), parse=parse).reconcile(10)
    assert re.search(r"<S\d My brother Felix", reader.sheets[-1].text)


PLACE = "Nora rents a place in Ruzafa for 950 euros, where she hears the neighbours."
RENT = "The landlord of the rented place takes 1,020 euros as of October 2026."
MERGED = (
    "The landlord of the place in Ruzafa that Nora rents, where she hears the neighbours, takes 1,020 euros as of"
    " October 2026 instead of 950."
)
NEWS = "I play the cello in an orchestra."


async def keep(mind: Mind, text: str, trust: Trust) -> None:
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
    await keep(mind, PLACE, place)
    await keep(mind, RENT, rent)
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
        await keep(mind, text, "user")
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
        await keep(mind, raw, "user")
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
        assert await list_user_names(tx, mind.scope) == ("Nacho",)
    await told(mind, NEWS, session="s2")
    await read(mind, model=(reader := Reader()))
    assert "User: Nacho (Nora)" in reader.sheets[0].text
