"""What becomes of a sentence in a person's words once a model has read its line."""

import re
from datetime import timedelta
from functools import partial

import pytest

from newton.agent.reconciliation.reconciler import MemoryReconciler
from newton.heart.facts import conflicts
from newton.heart.lifecycle.engine import review
from newton.memory import store
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
    assert len(await facts(mind)) > len(before), "the parser takes the corrections for facts"
    clear = ["Olek sees Dr. Weiss on 22 October at 9:30.", "Nora's sister has moved to Graz with Bo."]

    def answer(sheet: Sheet) -> list[dict[str, object]]:
        return [
            sheet.item("update", "22nd", "Olek", "22nd", text=clear[0]),
            sheet.item("update", "sis has", "moved", text=clear[1]),
        ]

    await read(mind, answer)
    assert sorted(await facts(mind)) == sorted(clear)


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
    await told(mind, "My brother Felix bought a house in Kazimierz, and paid with honey.")
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
    assert len(await facts(mind)) == 1, "the parser takes it for a fact"
    await read(mind, lambda s: [s.item("rule", said[:9], said[:9], text=rule)])
    assert await facts(mind) == [], "it would outlive the rule"
    mind.clock.advance(timedelta(days=1))
    await told(mind, said)
    reader = Reader()
    await read(mind, model=reader)
    assert len(re.findall(r"^[A-Z]\d .*|<S\d", reader.sheets[0].text, re.MULTILINE)) == 1
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
