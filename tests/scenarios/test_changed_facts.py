"""Changes of facts in less usual orders: restated, retracted, returned, planned, and many in a row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from newton.agent.maintenance.statement_extraction import extract_statements
from newton.agent.reconciliation.line_changes import LineChange, insert_changes
from newton.agent.services.conflicts import ConflictService
from newton.agent.services.curation import CurationService
from newton.agent.services.memories import FactDraft, MemoryService
from newton.cognition.request import ContextBuildRequest
from newton.content.yaml_files import parse_trusted
from newton.dialogue import session_close, sessions
from newton.dialogue.messages import Message
from newton.heart.facts import fact_store
from newton.heart.facts.fact_comparison import KnownFact, UncomparedFact, compare_facts, find_changes, read_changes
from newton.heart.lifecycle.engine import run_lifecycle
from newton.heart.persons.person_store import PersonReader
from newton.heart.statements.change_detection import detect_change
from newton.ids import derive_model_id
from newton.memory.memory import Trust
from newton.memory.vectors import EmbeddingOutbox
from newton.providers import token_counter
from tests.scenarios.conftest import Mind
from tests.scenarios.test_curation import curation
from tests.scenarios.test_current_facts import DATA, another_mind, outcome, read_states

pytestmark = pytest.mark.usefixtures("minilm")


async def compare_all(mind: Mind) -> None:
    """Embed and compare what is pending."""
    assert mind.embedder is not None
    await EmbeddingOutbox(mind.db, mind.embedder, mind.agent_id).drain()
    model_id = derive_model_id(mind.embedder.identity)
    await compare_facts(mind.db, mind.scope.write_context(), model_id=model_id)


async def say(mind: Mind, text: str, trust: Trust = "user", at: datetime | None = None) -> UUID:
    """Store a fact without comparing it."""
    verbs = MemoryService(scope=mind.scope.at("test", trust))
    mind.clock.advance(timedelta(hours=1))
    return (await verbs.remember(FactDraft(content=text, at=at))).memory_id


async def test_a_profile_has_what_ended_if_it_says_more_than_what_is_in_its_place(mind: Mind) -> None:
    # S002-17
    told = ("With my sister Brigitte we go to Edinburgh.", "I get up at six.", "I own a red boat with two sails.")
    trip, _, _ = [await say(mind, text) for text in told]
    boat, early = await say(mind, "I own a blue kayak."), await say(mind, "I get up at five.")
    mind.clock.advance(timedelta(days=1))
    curator = CurationService(scope=mind.scope)
    await curator.supersede(str(trip), "We go to Dublin, not to Edinburgh.")
    await curator.supersede(str(early), "I get up at four.")
    mind.clock.advance(timedelta(minutes=1))
    await curator.supersede(str(boat), "I own a blue kayak and a green one.")
    await curator.retract(str(await say(mind, "I have seven cats and a horse.")))
    async with mind.scope.transaction() as tx:
        record = await PersonReader(tx, mind.agent_id, now=mind.clock.now()).read_user()
    assert [one.text for one in record.sections["ended"]] == ["With my sister Brigitte we go to Edinburgh."]
    assert record.total == 5, "what ended is not counted"


async def test_a_duplicate_lends_its_trust_to_no_change(mind: Mind) -> None:
    # the agent's restatement is merged into the fact of the user in the same run in which the change is found
    lisbon = await say(mind, "Maria lives in Lisbon.")
    await say(mind, "Maria is living in Lisbon.", "agent")
    porto = await say(mind, "Maria moved to Porto last month.", "agent")
    await compare_all(mind)
    assert await outcome(mind, lisbon, porto) == "unsure"


@pytest.mark.parametrize("is_read", [False, True])
async def test_a_classifier_does_not_doubt_what_a_model_wrote_beside_the_facts_it_knew(
    mind: Mind, *, is_read: bool
) -> None:
    older = await say(mind, "Carla is allergic to peanuts.")
    newer = await say(mind, "Carla can eat peanuts without any problem.")
    if is_read:
        async with mind.scope.write() as (tx, ctx):
            await insert_changes(tx, [LineChange("learnt", newer, None)], ctx=ctx)
    await compare_all(mind)
    assert await outcome(mind, older, newer) == ("compatible" if is_read else "unsure")


def is_replaced(older: str, newer: str, *, days: int = 2) -> bool:
    """Whether a fact that a model wrote replaces one that was stated so many days before."""
    said_at = datetime(2026, 11, 27, 12, tzinfo=UTC)
    known = KnownFact(
        canonical_id=UUID(int=1),
        text=older,
        cosine=0.8,
        mergeable=False,
        is_later=False,
        is_current=True,
        state="NEW",
        trust="user",
        since=said_at - timedelta(days=days),
        is_multi_valued=False,
        is_vouched=False,
        vector=None,
    )
    fact = UncomparedFact(
        memory_id=UUID(int=2),
        source="chat",
        origin="chat",
        text=newer,
        state="NEW",
        trust="user",
        since=said_at,
        is_vouched=False,
        is_reconciled=True,
        vector=None,
        candidates=(known,),
    )
    return find_changes(fact, read_changes(fact)).supersedes == (UUID(int=1),)


@pytest.mark.parametrize("days", [0, 2])
def test_what_a_model_told_apart_in_one_line_replaces_only_what_was_said_before(days: int) -> None:
    assert is_replaced("Nora's rent is 820 euros.", "Nora's rent is 850 euros.", days=days) == bool(days)


def test_a_model_that_read_a_fact_replaces_it_only_by_a_statement_on_the_same_thing() -> None:
    assert is_replaced("Dev runs our stall on Saturdays.", "Dev's shifts at the stall are over, he moved to Leeds.")
    assert not is_replaced(
        "Our chief conductor is Matthias Brandl.", "Brandl's last concert was on Friday, Yuki Tanabe took the podium."
    )


def test_what_goes_on_is_not_replaced_by_the_statement_that_says_so() -> None:
    price = "Walter of the guild asks 7 euro for a pot of honey."
    assert not is_replaced(price, "Walter of the guild stays at 7 euro for a pot of honey.")
    assert not is_replaced("Noras Miete beträgt 820 Euro.", "Noras Miete bleibt bei 820 Euro.")
    assert is_replaced(price, "Walter of the guild still sells honey, now for 9 euro a pot.")


async def test_an_agent_may_change_what_it_said_twice_but_not_what_a_person_confirmed(mind: Mind) -> None:
    nine, boss = await say(mind, "The standup is at 9:30.", "agent"), await say(mind, "My boss is Camilla.", "agent")
    await say(mind, "The standup is at 9:30.", "agent")
    await CurationService(scope=mind.scope.at("cli", "user")).confirm(boss.hex)
    await compare_all(mind)
    later = await say(mind, "The standup is at 8:45.", "agent"), await say(mind, "My boss is Henrik.", "agent")
    await compare_all(mind)
    assert [await outcome(mind, nine, later[0]), await outcome(mind, boss, later[1])] == ["update", "unsure"]


async def test_facts_that_are_stored_at_once_end_as_told_one_after_another(mind: Mind) -> None:
    # S002-16: an import may list the latest first, and nobody knows how much of it is compared at once
    rents = [f"The rent of flat {n} is {100 * n + rent} euros a month." for rent in (900, 910, 930) for n in range(4)]
    names = ["Philippa's surname is Thornbury.", "Philippa is called Philippa Marlowe since the wedding."]
    tools = ["The newsletter goes out through Mailchimp.", "Buttondown is what sends our newsletter."]
    jobs = ["My boss is Camilla.", "My boss is Henrik.", "Camilla is no longer my boss."]
    start = mind.clock.now()
    told = [(text, start + timedelta(days=day)) for day, text in enumerate([*rents, *names, *tools, *jobs])]
    mind.clock.advance(timedelta(days=30))
    one_by_one = await another_mind(mind, "one-by-one")
    for text, at in told:
        await say(one_by_one, text, at=at)
        await compare_all(one_by_one)
    expected = await read_ending(one_by_one)
    for number, order in enumerate((told, told[::-1], told[::2] + told[1::2])):
        at_once = await another_mind(mind, f"at-once-{number}")
        for text, at in order:
            await say(at_once, text, at=at)
        await compare_all(at_once)
        assert await read_ending(at_once) == expected
    assert {state for state, _ in expected.values()} == {"NEW", "SUPERSEDED"}


async def read_ending(mind: Mind) -> dict[str, tuple[str, bool]]:
    """Return the state of each fact by its text, and whether it is contested."""
    rows = await mind.fetch(
        "select m.full_text, m.state, f.is_contested from heart.facts as f"
        " join memory.memories as m using (agent_id, memory_id)"
    )
    return {row["full_text"]: (row["state"], row["is_contested"]) for row in rows}


async def test_a_value_that_returns_replaces_what_is_current_and_not_only_its_successor(mind: Mind) -> None:
    for time in ("9:30", "10:00", "9:45", "9:30"):
        await say(mind, f"The standup is at {time}.")
        await compare_all(mind)
    assert set(await mind.facts()) == {"The standup is at 9:30."}


async def test_many_old_values_do_not_hide_the_current_one(mind: Mind) -> None:
    for rent in range(900, 1_060, 10):
        await say(mind, f"The rent is {rent} euros a month.")
        await compare_all(mind)
    assert set(await mind.facts()) == {"The rent is 1050 euros a month."}


async def test_a_fact_becomes_current_when_its_validity_begins(mind: Mind) -> None:
    await say(mind, "The rent is 900 euros a month.")
    await say(mind, "The rent is 975 euros a month.", at=mind.clock.now() + timedelta(days=40))
    await compare_all(mind)
    assert set(await mind.facts()) == {"The rent is 900 euros a month."}
    mind.clock.advance(timedelta(days=60))
    await run_lifecycle(mind.db, mind.scope.write_context())
    await compare_all(mind)
    assert set(await mind.facts()) == {"The rent is 975 euros a month."}


async def test_what_a_temporary_fact_replaced_is_current_again_after_its_end(mind: Mind) -> None:
    await say(mind, "Lena lives in Bergen.")
    mind.clock.advance(timedelta(hours=1))
    temporary = FactDraft(content="Lena moved to Oslo.", until=mind.clock.now() + timedelta(days=60))
    await MemoryService(scope=mind.scope.at("test", "user")).remember(temporary)
    await compare_all(mind)
    assert set(await mind.facts()) == {"Lena moved to Oslo."}
    mind.clock.advance(timedelta(days=61))
    await run_lifecycle(mind.db, mind.scope.write_context())
    assert set(await mind.facts()) == {"Lena lives in Bergen."}


async def converse(mind: Mind, text: str, session: str) -> None:
    """Say one sentence in a session of its own, and learn from it."""
    async with mind.scope.write("user") as (tx, ctx):
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref=session, now=ctx.now)
        said = [Message(role="user", content=text, said_at=ctx.now)]
        await sessions.append(tx, said, session_id=session_id, ctx=ctx)
        await session_close.close_session(tx, session_id=session_id, ctx=ctx)
    await extract_statements(mind.db, mind.scope.write_context(), limit=10)
    await compare_all(mind)
    mind.clock.advance(timedelta(days=3))


async def test_a_message_of_which_something_changed_is_marked_in_a_context(mind: Mind) -> None:
    await converse(mind, "We pay 900 euros of rent for our flat. Isn't that a lot?", "may")
    before = mind.clock.now() - timedelta(hours=1)
    await converse(mind, "Our rent was raised to 950 euros.", "june")
    ask = ContextBuildRequest(agent_id=mind.agent_id, input="How much is our rent?", tokens=2_000, fill=True)
    bundle = await mind.contexts.build(ask)
    assert set(await mind.facts()) == {"Our rent was raised to 950 euros."}
    changed = "We pay 900 euros of rent for our flat."
    assert f"- changed since ({changed}): User: {changed} Isn't that a lot?" in bundle.text
    assert "changed since: User: Our rent was raised" not in bundle.text
    assert bundle.tokens == token_counter.count(bundle.text)
    assert "changed since" not in (await mind.contexts.build(replace(ask, as_of=before))).text


@pytest.mark.parametrize(
    ("told", "again"),
    [
        ("I am allergic to nuts.", "As I said, I have a nut allergy."),
        ("Ich wohne in Graz.", "Wie gesagt, ich lebe immer noch in Graz."),
    ],
)
async def test_what_is_told_again_in_other_words_confirms_the_fact(mind: Mind, told: str, again: str) -> None:
    # S002-16: weeks later, without a model
    await say(mind, told)
    mind.clock.advance(timedelta(weeks=3))
    await say(mind, again)
    await compare_all(mind)
    rows = await mind.fetch(
        "select m.full_text, m.state from memory.memories m join heart.facts using (agent_id, memory_id)"
    )
    assert {(row["full_text"], row["state"]) for row in rows} == {(told, "CONFIRMED"), (again, "SUPERSEDED")}


async def test_a_retracted_restatement_confirms_nothing(mind: Mind) -> None:
    kept = await say(mind, "Maria lives in Lisbon.", "agent")
    wrong = await say(mind, "Maria is living in Lisbon.", "agent")
    async with mind.scope.write() as (tx, ctx):
        await fact_store.retract(tx, wrong, ctx=ctx)
    await compare_all(mind)
    assert (await read_states(mind))[kept] == "NEW"


def test_a_long_text_is_not_compared_word_by_word() -> None:
    verdict = detect_change("It is green. " * 5_000, "It is blue now. " * 5_000, cosine=0.9)
    assert verdict.kind == "compatible"


@pytest.mark.parametrize(
    ("older", "newer", "kept"),
    [
        ("Our plumber Theo charges 70 euros an hour.", "Theo now charges 85 euros an hour.", {"Theo is our plumber."}),
        (
            "The staging server Atlas runs Debian 11.",
            "Atlas was upgraded to Debian 12.",
            {"Atlas is the staging server."},
        ),
        ("Our plumber Theo charges 70 euros an hour.", "Our plumber Theo now charges 85 euros an hour.", set[str]()),
        (
            "My brother Esteban is a chef, he has a small restaurant in Laureles named Tiesto.",
            "Esteban closed Tiesto.",
            {"My brother Esteban is a chef."},
        ),
        (
            "I work at Lidl on Mondays, and on Tuesdays I help at the food bank.",
            "I quit Lidl.",
            {"On Tuesdays I help at the food bank."},
        ),
        ("Carla lives in Oslo and works at Acme.", "Carla moved to Bergen.", {"Carla works at Acme."}),
        (
            "Our plumber is old Mr. Tanner, he charges 60 an hour.",
            "Mr. Tanner charges 75 an hour now.",
            {"Our plumber is old Mr. Tanner."},
        ),
        (
            "The gym is on Mill Street. It costs 30 a month.",
            "The gym was raised to 35 a month.",
            {"The gym is on Mill Street."},
        ),
        (
            "I've got a greenhouse on the plot. Tomatoes grow in there.",
            "Nothing is left of the greenhouse.",
            set[str](),
        ),
    ],
)
async def test_what_a_superseded_statement_says_besides_is_kept(
    mind: Mind, older: str, newer: str, kept: set[str]
) -> None:
    # S002-17: it is still true, and only the superseded statement said it
    first, second = await say(mind, older), await say(mind, newer)
    await compare_all(mind)
    assert await outcome(mind, first, second) == "update"
    assert set(await mind.facts()) == {newer, *kept}
    (source,) = await mind.fetch("select trust, origin from memory.memories where memory_id = $1", first)
    rows = await mind.fetch("select trust, origin from memory.memories where full_text = any($1)", [*kept])
    assert [tuple(row) for row in rows] == [tuple(source)] * len(kept)


async def test_of_two_facts_the_one_of_which_the_reader_is_surer_is_replaced(mind: Mind) -> None:
    course = await say(mind, "I'm doing the conference interpreting certificate at Glendon on the side.")
    exam = await say(mind, "The exam is on May 22.")
    await compare_all(mind)
    moved = await say(mind, "From Glendon: the exam has been moved, it's on June 5 now instead of in May.")
    await compare_all(mind)
    assert await outcome(mind, exam, moved) == "update"
    assert (await read_states(mind))[course] == "NEW"


async def test_a_question_that_matches_a_superseded_fact_finds_what_replaced_it(mind: Mind) -> None:
    # S002-17: the current fact shares few words with the question, the superseded one shares all
    moments = list[datetime]()
    await say(mind, "The bakery opens at nine.")
    for text in (
        "Our plumber Theo charges 70 euros an hour.",
        "Theo now charges 85 euros an hour.",
        "Theo raised his rate to 95 euros an hour.",
    ):
        await say(mind, text)
        await compare_all(mind)
        await compare_all(mind)
        moments.append(mind.clock.now())
    question = "What does the plumber charge?"
    for moment, rate in zip([None, *moments], ("95 euros", "70 euros", "85 euros", "95 euros"), strict=True):
        shown = " ".join(item["text"] for item in (await mind.context(question, as_of=moment)).as_json()["items"])
        assert rate in shown and "plumber" in shown
        assert not any(other in shown for other in {"70", "85", "95", "bakery"} - {rate[:2]})


async def test_what_was_kept_of_a_fact_is_forgotten_with_it(mind: Mind) -> None:
    first = await say(mind, "Our plumber Theo charges 70 euros an hour.")
    await say(mind, "Theo now charges 85 euros an hour.")
    await compare_all(mind)
    await compare_all(mind)
    await curation(mind).forget([str(first)], include_derived=True, reason="a test")
    assert set(await mind.facts()) == {"Theo now charges 85 euros an hour."}
    bundle = await mind.context("What does the plumber charge?")
    assert not any("plumber" in item["text"] for item in bundle.as_json()["items"])


@pytest.mark.slow
@pytest.mark.parametrize("most", [4, pytest.param(10, marks=pytest.mark.slow)])
async def test_many_facts_about_few_things_are_not_taken_for_changes(mind: Mind, most: int) -> None:
    # S002-17: five facts on each of ten topics, most of them told again in other words; none of them changes
    topics = parse_trusted((DATA / "week.yaml").read_text(encoding="utf-8"))["topics"][:most]
    for way in ("say", "again"):
        for topic in topics:
            for fact in topic["facts"]:
                await say(mind, fact[way])
            await compare_all(mind)
    replaced = await mind.fetch(
        "select m.summary from memory.links as l join memory.memories as m"
        " on m.agent_id = l.agent_id and m.memory_id = l.other_id where l.link = 'supersedes'"
    )
    conflicts = await ConflictService(scope=mind.scope).list_conflicts()
    assert replaced == []
    assert len(conflicts) <= 0.6 * most, [(pair.older.text, pair.newer.text) for pair in conflicts]


async def test_a_message_whose_fact_was_retracted_is_marked_and_remains_when_the_fact_is_forgotten(mind: Mind) -> None:
    await converse(mind, "My sister lives in Bremen.", "may")
    curation = CurationService(scope=mind.scope.at("test", "user"))
    ask = ContextBuildRequest(agent_id=mind.agent_id, input="Where does my sister live?", tokens=2_000, fill=True)
    bundle = await mind.contexts.build(ask)
    (fact,) = [one for one in bundle.items if one.kind == "fact"]
    plan = await curation.plan_forget(fact.memory_id.hex)
    assert [(one.kind, "Bremen" in one.micro) for one in plan.sources] == [("exchange", True)]
    await curation.retract(fact.memory_id.hex)
    text = (await mind.contexts.build(ask)).text
    assert "changed since" not in bundle.text and "- changed since: User: My sister lives in Bremen." in text
