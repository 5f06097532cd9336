"""A person's will over memory is one promise over all interfaces: what is not to be kept or to be forgotten is nowhere.

S002-24: "do not store", "forget", private sessions, imports.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from structlog.testing import capture_logs

from newton.agent.services.memories import FactDraft
from newton.dialogue.messages import Message
from newton.memory.tombstones import FORGOTTEN, WITHHELD
from newton.providers.fakes import HashEmbedder
from newton.providers.minilm import MiniLM
from newton.runtime.tools.tool_registry import run_tool
from newton.runtime.transfer.import_lines import MessageItem
from newton.runtime.transfer.import_source import read_file
from newton.runtime.transfer.importer import write_items
from newton.runtime.wiring import AgentServices
from tests.db.catalog import SCHEMAS
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_superset import DoorName, Rubbish, told
from tests.scenarios.test_turn import log
from tests.stored_rows import TABLES
from tests.system.lines import message, written
from tests.unit.source_trees import ROOT

VAN = "We need new tyres for the van."
BIOPSY = "My biopsy was on Tuesday at Saint Vincent."
SECRET, KEPT = "Vincent", "tyres"
WILLS = {
    "in the message": [VAN, f"Off the record: {BIOPSY}"],
    "after a sentence": [f"{VAN} Don't write this down: {BIOPSY}"],
    "announced": [VAN, "The next thing I say is off the record.", BIOPSY],
    "until lifted": [
        *("From now on don't keep anything I say until I tell you.", BIOPSY, "Saint Vincent was crowded."),
        *("You can take notes again.", VAN),
    ],
    "said before": [VAN, BIOPSY, "Please don't keep that."],
    "by topic": [BIOPSY, VAN, "Forget what I said about the biopsy."],
    "a sentence of a message": [f"{BIOPSY} {VAN}", "Forget what I said about the biopsy."],
    "in German": [VAN, "Meine Biopsie war im Saint Vincent.", "Vergiss bitte, was ich über die Biopsie gesagt habe."],
}
DOORS: Sequence[tuple[DoorName, bool]] = [("openai", True), ("responses", True), ("turns", True), ("chat", True)]


async def find_everywhere(mind: Mind, word: str) -> list[str]:
    return (await find_words(mind, [word])).get(word, [])


async def find_words(mind: Mind, words: Sequence[str]) -> dict[str, list[str]]:
    """The rows of all tables of the agent that have these words, also as bytes."""
    found = defaultdict[str, list[str]](list)
    async with mind.db.transaction(mind.agent_id) as tx:
        for (table,) in await tx.fetch(TABLES, SCHEMAS):
            if await tx.fetchval("select has_table_privilege($1, 'select')", table):
                rows = await tx.fetch(f"select t::text as row from {table} as t")
                for (row,) in rows:
                    for word in words:
                        if word in row or word.encode().hex() in row:
                            found[word].append(f"{table}: {row}")
    return found


async def finish(mind: Mind) -> None:
    upkeep = newton(mind, HashEmbedder()).maintenance("job")
    await upkeep.learn_if_possible()
    await upkeep.process_pending()


@pytest.mark.parametrize("said", WILLS.values(), ids=WILLS)
@pytest.mark.parametrize(("door", "has_model"), [*DOORS, ("turns", False)])
async def test_what_is_not_to_be_kept_is_nowhere(
    mind: Mind, door: DoorName, said: Sequence[str], *, has_model: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    async with told(mind, Rubbish("Saint Vincent, noted.") if has_model else None, HashEmbedder()) as one:
        for text in said:
            await one.say(door, "s", text)
        await finish(mind)
        exported = (await one.http.get("/v1/export")).text
    assert await find_everywhere(mind, SECRET) == []
    assert await find_everywhere(mind, KEPT)
    assert SECRET not in exported and SECRET not in "".join(capfd.readouterr())


TOLD = yaml.safe_load((ROOT / "tests/data/wills_told.yaml").read_text(encoding="utf-8"))
ALL_DOORS = ("chat", "turns", "openai", "mcp", "import")


async def bring(own: AgentServices, folder: Path, told_cases: Sequence[Any], day: datetime) -> None:
    """Import a file of conversations in which all this was said."""
    lines = [
        message(text, session=f"file {n}", ref=f"{n}-{k}", at=(day + timedelta(hours=n, minutes=k)).isoformat())
        for n, case in enumerate(told_cases)
        for k, text in enumerate(case["said"])
    ]
    report = await own.importer().run(read_file(written(folder, *lines)))
    assert not report.rejections, report.rejections


async def choose(mind: Mind, gone: Sequence[str]) -> str:
    """The answer of the person who is asked what to forget: the numbers of the statements with words that must go."""
    async with mind.db.transaction(mind.agent_id) as tx:
        asked = await tx.fetchval("select choices from dialogue.session_wills where choices <> '[]'")
        ids = [UUID(one["id"]) for one in json.loads(asked or "[]")]
        rows = await tx.fetch(
            "select memory_id, full_text, summary from memory.memories where memory_id = any($1)", ids
        )
    texts = {row["memory_id"]: row["full_text"] or row["summary"] for row in rows}
    numbers = [n for n, one in enumerate(ids, 1) if any(word in texts[one] for word in gone)]
    return ", ".join(map(str, numbers)) or ("none" if ids else "")


@pytest.mark.parametrize("door", ALL_DOORS)
async def test_one_promise_through_five_doors(
    mind: Mind, door: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No table, export or log has the words, and the conversations imported again bring none back."""
    has_model = door in ("chat", "turns", "openai")
    day = mind.clock.now()
    async with told(mind, Rubbish("Fine.") if has_model else None, HashEmbedder()) as one:
        with capture_logs() as logs:
            if door == "import":
                await bring(one.own, tmp_path, TOLD, day - timedelta(days=9))
            for n, case in enumerate(TOLD if door != "import" else ()):
                for text in case["said"]:
                    await one.say(door, f"talk {n}", text)
                    if chosen := await choose(mind, case["gone"]):
                        await one.say(door, f"talk {n}", chosen)
            await finish(mind)
            carried = [case for case in TOLD if door != "mcp" or case.get("veiled")]
            gone = [word for case in carried for word in case["gone"]]
            assert await find_words(mind, gone) == {}
            lost = {case["stays"] for case in TOLD} - set(await find_words(mind, [case["stays"] for case in TOLD]))
            exported = (await one.http.get("/v1/export")).text
            assert lost == set() and [word for word in gone if word in exported] == []
            await bring(one.own, tmp_path, TOLD if door != "mcp" else carried, day - timedelta(days=5))
            await finish(mind)
        assert await find_words(mind, gone) == {}
    output = f"{logs}{capfd.readouterr()}"
    assert [word for word in gone if word in output] == []


async def test_a_report_of_a_model_keeps_itself_out_and_forgets_nothing(mind: Mind) -> None:
    async with told(mind, None, HashEmbedder()) as one:
        await one.say("turns", "s", VAN)
        await one.note("s", f"Between us: {BIOPSY}", "Saint Vincent, I see.")
        await one.note("s", "Forget what I said about the van.", "Done.")
        await one.note("s", "From now on don't keep anything I say until I tell you.", "Done.")
        await one.say("turns", "s", "My cat is called Miro.")
    assert await find_everywhere(mind, SECRET) == []
    assert await find_everywhere(mind, KEPT)
    assert await find_everywhere(mind, "Miro"), "a report puts nothing of the person off the record"


async def test_a_reply_that_repeats_what_is_forgotten_goes_too(mind: Mind) -> None:
    model = Rubbish("", "Fine.", "Your biopsy was on Tuesday at Saint Vincent.", "Fine.")
    async with told(mind, model, HashEmbedder()) as one:
        for text in (BIOPSY, "When was my biopsy?", VAN, "Forget what I said about the biopsy."):
            await one.say("turns", "s", text)
    assert await find_everywhere(mind, SECRET) == []
    assert await find_everywhere(mind, KEPT)


async def test_several_statements_are_listed_and_chosen(mind: Mind) -> None:
    async with told(mind, Rubbish("Fine."), HashEmbedder()) as one:
        for text in ("The biopsy was at Saint Vincent.", "The biopsy of Rex is on Friday.", VAN):
            await one.say("turns", "s", text)
        asked = await one.post("/v1/sessions/s/turns", {"input": "Forget everything I told you about the biopsy."})
        assert "1. The biopsy" in asked.text and "2. The biopsy" in asked.text
        assert await find_everywhere(mind, SECRET)
        done = await one.post("/v1/sessions/s/turns", {"input": "the second"})
        assert "Forgotten: 1 statement" in done.text
    assert await find_everywhere(mind, SECRET) == []
    assert await find_everywhere(mind, "Rex")


async def test_the_reply_says_what_was_done_without_a_model(mind: Mind) -> None:
    async with told(mind, None, HashEmbedder()) as one:
        posted = await one.post(
            "/v1/sessions/s/messages", {"messages": [{"role": "user", "content": f"Between us: {BIOPSY}"}]}
        )
        assert posted.json()["wills"] == ["Off the record: this message is not kept."]
        answered = await one.post("/v1/sessions/s/turns", {"input": "Forget what I said about the boat."})
        assert "nothing to forget" in answered.text


ASKED_FOR = {
    "who": ("My dentist is the one in Mill Street.", "Please forget who my dentist is.", "Mill"),
    "where": ("I live in Graz.", "forget where I live", "Graz"),
    "what": ("My salary is 4000 euros.", "Forget what my salary is.", "4000"),
    "when": ("Mein Geburtstag ist am 3. März.", "Vergiss bitte, wann mein Geburtstag ist.", "3. März"),
    "por": ("Mi dentista es el doctor Novak.", "Olvida quién es mi dentista.", "Novak"),
    "où": ("J'habite à Lyon.", "Oublie où j'habite.", "Lyon"),
    "где": ("Я живу в Омске.", "Забудь, где я живу.", "Омск"),
    "谁": ("我的牙医在人民路工作。", "忘掉我的牙医是谁。", "人民路"),
}


@pytest.mark.parametrize(("told_before", "wish", "word"), ASKED_FOR.values(), ids=ASKED_FOR)
@pytest.mark.parametrize("has_model", [True, False])
async def test_what_a_question_names_is_forgotten(
    mind: Mind, told_before: str, wish: str, word: str, *, has_model: bool
) -> None:
    async with told(mind, Rubbish("Fine.") if has_model else None, HashEmbedder()) as one:
        for text in (told_before, VAN, wish):
            await one.say("turns", "s", text)
        await finish(mind)
    assert await find_everywhere(mind, word) == []
    assert await find_everywhere(mind, KEPT)


async def test_what_others_do_is_not_forgotten_for_what_the_person_does(mind: Mind) -> None:
    async with told(mind, None, HashEmbedder()) as one:
        await one.say("turns", "s", "My wife lives in Rome.")
        asked = await one.post("/v1/sessions/s/turns", {"input": "forget where I live"})
        assert "Which of these should I forget?" in asked.text
    assert await find_everywhere(mind, "Rome")


CLAUSES = {
    "and": ("I'm Graham and I drive the 42 taxi.", "Forget the taxi.", "taxi", "Graham"),
    "owner": ("me sister Bev lives in Whitby and she's got two lads", "forget about Bev's lads", "lads", "Whitby"),
    "three": (
        "We moved to Leeds, I teach maths and our son plays the cello.",
        "Forget about the cello.",
        "cello",
        "maths",
    ),
    "not alone": ("I live in Leeds and work as a joiner.", "Forget where I live.", "joiner", "tyres"),
}


@pytest.mark.parametrize(("told_before", "wish", "gone", "stays"), CLAUSES.values(), ids=CLAUSES)
async def test_forgetting_takes_the_clause_and_no_more(
    mind: Mind, told_before: str, wish: str, gone: str, stays: str
) -> None:
    """A clause that is not understood alone goes with its sentence."""
    async with told(mind, None, HashEmbedder()) as one:
        for text in (VAN, told_before):
            await one.say("turns", "s", text)
        await finish(mind)
        await one.say("turns", "s", wish)
        await finish(mind)
        facts = await mind.facts()
    assert await find_everywhere(mind, gone) == []
    assert await find_everywhere(mind, stays) and any(stays in fact for fact in facts), facts


async def test_a_topic_in_other_words_is_asked_about_and_one_that_is_not_there_is_said_to_be_none(mind: Mind) -> None:
    async with told(mind, None, MiniLM()) as one:
        for text in ("I owe the bank nine thousand.", VAN):
            await one.say("turns", "s", text)
        await finish(mind)
        none = await one.post("/v1/sessions/s/turns", {"input": "Forget everything I told you about Marcus."})
        asked = await one.post(
            "/v1/sessions/s/turns", {"input": "Forget everything I told you about my money troubles."}
        )
        assert "nothing to forget" in none.text
        assert "1. I owe the bank" in asked.text and "2." not in asked.text
        await one.say("turns", "s", "yes")
    assert await find_everywhere(mind, "nine thousand") == []
    assert await find_everywhere(mind, KEPT)


async def test_a_veil_asks_about_nothing_and_what_else_a_request_says_stays(mind: Mind) -> None:
    async with told(mind, None, HashEmbedder()) as one:
        for text in ("Mein Auto ist blau.", "Mein Gehalt ist 4100 Euro."):
            await one.say("turns", "s", text)
        veiled = await one.post("/v1/sessions/s/turns", {"input": "Unter uns: Marek trinkt zu viel."})
        assert "forget?" not in veiled.text
        await one.say("turns", "t", "Kim earns 9100 at Vector.")
        await one.say("turns", "t", "Forget what I said about what Kim earns. Kim comes to dinner on Sunday.")
        await finish(mind)
    assert await find_words(mind, ["Marek", "9100"]) == {}
    assert await find_everywhere(mind, "dinner on Sunday") and await find_everywhere(mind, "blau")


async def test_a_request_that_shows_only_behind_what_was_said_is_forgotten_with_it(mind: Mind) -> None:
    """The person is asked, their answer is no statement, and what corrected the forgotten one goes too."""
    said = [
        "got 48% for thermo test 2 eish",
        "lab report due friday 12pm",
        "pls dont remember my thermo mark its embarrassing",
    ]
    async with told(mind, None, MiniLM()) as one:
        for text in said:
            await one.say("turns", "s", text)
        assert await find_everywhere(mind, "thermo mark")  # as it may be no will
        await one.say("turns", "s", "1")
        await one.say("turns", "t", "me n ayanda got caught w wine in res, written warning")
        for text in ("its a womens res so theyre strict", "scratch the warning, u didnt hear it from me", "2"):
            await one.say("turns", "t", text)
        await finish(mind)
    assert await find_words(mind, ["48%", "thermo", "wine"]) == {}
    assert [text for text in await mind.facts() if "friday" in text and "12pm" in text]


@pytest.mark.parametrize(
    ("said", "is_asked"),
    [("Vergiss es.", False), ("Laisse tomber.", False), ("Forget that.", True), ("Oublie ça. Qui es-tu ?", True)],
)
async def test_never_mind_deletes_nothing(mind: Mind, said: str, *, is_asked: bool) -> None:
    """Neither in answer to a question of the assistant nor before another task; what may be meant is asked."""
    async with told(mind, Rubbish("", "Shall I look for a garage?"), HashEmbedder()) as one:
        await one.say("turns", "s", VAN)
        asked = await one.post("/v1/sessions/s/turns", {"input": said})
        assert ("Which of these should I forget?" in asked.text) == is_asked
        assert await find_everywhere(mind, KEPT)


async def test_an_import_brings_nothing_back_and_a_new_telling_does(mind: Mind) -> None:
    old = [
        Message(role="user", content=text, said_at=mind.clock.now(), ref=f"m{n}")
        for n, text in enumerate((BIOPSY, VAN))
    ]
    async with told(mind, None, HashEmbedder()) as one:
        ctx = replace(one.own.scope.at("import").write_context(), now=mind.clock.now())

        async def bring(session: str) -> None:
            async with mind.db.transaction(mind.agent_id) as tx:
                await write_items(tx, [MessageItem(session=session, message=line) for line in old], ctx=ctx)

        await bring("old")
        await one.say("turns", "s", "Forget what I said about the biopsy.")
        for session in ("old", "another"):  # the same file, and the same conversation under another name
            await bring(session)
        await finish(mind)
        assert await find_everywhere(mind, SECRET) == []
        assert [text for _, text in await log(mind, await mind.session("another"))] == [FORGOTTEN, VAN]
        mind.clock.advance(timedelta(minutes=1))
        await one.say("turns", "s", BIOPSY)
        assert await find_everywhere(mind, SECRET)


async def test_a_client_that_sends_the_conversation_again_brings_nothing_back(mind: Mind) -> None:
    said = [{"role": "user", "content": f"Off the record: {BIOPSY}"}]
    async with told(mind, Rubbish("", "Saint Vincent, I see.", "Fine."), HashEmbedder()) as one:
        reply = (await one.post("/v1/chat/completions", {"messages": said})).json()["choices"][0]["message"]
        assert reply["content"].endswith("(Off the record: this message is not kept.)")
        again = [*said, reply, {"role": "user", "content": VAN}]
        await one.post("/v1/chat/completions", {"messages": again})
        assert one.model and SECRET in str(one.model.received[0]), "the turn itself has the words"
    assert await find_everywhere(mind, SECRET) == []
    assert len(await find_everywhere(mind, WITHHELD)) == 2


async def test_what_a_person_forgot_is_not_stored_by_the_agent_and_it_is_told_so(mind: Mind) -> None:
    stored = await mind.verbs.remember(FactDraft(content="Vera keeps bees."))
    await mind.forget(stored.memory_id)
    again = {"content": "Vera keeps bees.", "source": "own"}
    refused = await run_tool(newton(mind, HashEmbedder()), "remember", again)
    assert refused.is_error and "asked to forget this" in str(refused.fields)
    assert await mind.facts() == {}
    await mind.verbs.remember(FactDraft(content="Vera keeps bees."))
    assert set(await mind.facts()) == {"Vera keeps bees."}
