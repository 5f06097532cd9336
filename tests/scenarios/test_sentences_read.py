"""What becomes of a sentence in a person's words once a model has read its line."""

from datetime import timedelta
from functools import partial

import pytest

from newton.agent.reconciliation.reconciler import MemoryReconciler
from newton.heart.facts import conflicts
from newton.heart.lifecycle.engine import review
from newton.memory import store
from newton.providers.minilm import MiniLM
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.reading import Reader, asking, facts, read, told

pytestmark = pytest.mark.usefixtures("minilm")


@pytest.fixture
def minilm(mind: Mind) -> None:
    mind.embedder = MiniLM()


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


@pytest.mark.parametrize("op", ["both", "newer"])
async def test_a_pair_that_a_classifier_doubts_is_decided_by_the_call(mind: Mind, op: str) -> None:
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
    reader = Reader([lambda s: [s.item(op, "", "choir"), s.item(op, "", "rent", "Emil")]])
    result = await read(mind, model=reader)
    assert "Doubtful pairs: F1 F" in reader.sheets[0].text
    assert (result.kept, result.dropped) == (1, 1)
    async with mind.scope.transaction() as tx:
        assert await conflicts.count_conflicts(tx, agent_id=mind.agent_id) == 0
    assert ("The choir meets on Tuesdays." in await facts(mind)) == (op == "both")


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
    assert "Felix" in reader.sheets[-1].text.partition("</known>")[0]
