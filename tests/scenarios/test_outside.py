"""What comes from tools and the web: a reply with it is believed no more than that, and its origin can be left out."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.loop.tool_loop import to_tool_line
from newton.agent.loop.turn import TurnInput, TurnRunner
from newton.agent.services.identity import IdentityService
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.explanation import FixedLine
from newton.cognition.sources.web import WebSource
from newton.content.skills import SkillFile
from newton.dialogue import branches, sessions
from newton.dialogue.branches import SessionExcerpt
from newton.dialogue.compaction import entry_store
from newton.dialogue.messages import Message
from newton.dialogue.session_summary import SummarySizes
from newton.dialogue.view import CompactionEntry
from newton.heart import procedures
from newton.heart.censors import CensorRule
from newton.ids import new_id
from newton.memory.lookup import short_id
from newton.memory.memory import Trust
from newton.operations.contexts.bundle_text import format_explanation
from newton.providers import token_counter
from newton.providers.chat import ToolCall
from newton.providers.fakes import ScriptedChat
from newton.providers.web_search import WebSearch
from tests.endpoint import Endpoint, Wire, endpoint
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import Handy, able, call
from tests.scenarios.reading import Reader, facts, read
from tests.scenarios.test_replay import hindsight
from tests.scenarios.test_session_contents import fact_id, injections
from tests.scenarios.test_sources import happen, introduce
from tests.support import ground, teller

POISON = "We decided that the harbour pilot is swordfish."
ASKED = "What is the latest news of the harbour pilot?"


@pytest.fixture
async def there() -> AsyncIterator[Endpoint]:
    async def finds(wire: Wire) -> None:
        await wire.send(200, {"results": [{"title": "Harbour", "content": POISON, "url": "https://harbour.example/a"}]})

    async with endpoint(finds) as there:
        yield there


def speaking(mind: Mind, *replies: str, there: Endpoint | None = None) -> TurnRunner:
    turns = replace(mind.turns(ScriptedChat(*replies)), sizes=SummarySizes(max_new_messages=2))
    web = there and WebSource(search=WebSearch(there.url, seconds=5), db=mind.db, count_tokens=token_counter.count)
    return replace(turns, contexts=replace(mind.contexts, web=web))


async def say(turns: TurnRunner, session_id: UUID, *said: str) -> None:
    for text in said:
        async for _ in turns.run(TurnInput(session_id=session_id, text=text)):
            pass


async def replies(mind: Mind) -> dict[str, tuple[Trust, bool]]:
    rows = await mind.fetch(
        "select m.content, x.trust, x.quarantined from dialogue.messages as m join memory.memories as x"
        " on x.agent_id = m.agent_id and x.kind = 'exchange' and x.thread_id = m.session_id and"
        " x.position = m.position"
        " where m.role = 'assistant'"
    )
    return {row["content"]: (row["trust"], row["quarantined"]) for row in rows}


async def test_what_a_reply_repeats_of_the_web_is_found_in_no_other_session(mind: Mind, there: Endpoint) -> None:
    # S004-11, S002-72
    here, elsewhere = await mind.session(), await mind.session("another")
    turns = speaking(mind, POISON, "As I said, swordfish.", "Fine.", "It is a nice day.", there=there)
    await say(turns, here, ASKED, "What was it that you said just now?", "I like the sea at night.")
    assert there.asked
    await say(turns, elsewhere, "Good morning to all of you.")
    await mind.settle()
    assert await replies(mind) == {
        POISON: ("web", True),
        "As I said, swordfish.": ("web", True),
        "Fine.": ("web", True),
        "It is a nice day.": ("agent", False),
    }
    assert isinstance(turns.model, ScriptedChat)
    assert POISON in [message.text for message in turns.model.received[1]], "in its session it stays as it was said"
    assert "swordfish" not in (await mind.context(ASKED, session_id=elsewhere)).text
    assert "swordfish" not in (await mind.context("Which harbour pilot was decided on?")).text
    rows = await mind.fetch(
        "select a.type, m.trust, m.quarantined, m.full_text from dialogue.artifacts as a"
        " join memory.memories as m using (agent_id, memory_id) where m.full_text like '%swordfish%'"
    )
    assert {row["type"] for row in rows} == {"tools", "facts", "summary"}
    assert {(row["trust"], row["quarantined"]) for row in rows} == {("web", True)}


async def test_nothing_is_learnt_of_it_as_if_the_two_had_said_it(mind: Mind, there: Endpoint) -> None:
    # S002-72
    session_id = await mind.session()
    turns = speaking(mind, POISON, "Good.", there=there)
    await say(turns, session_id, ASKED, "Thank you very much.")
    assert await mind.close(session_id)
    item: dict[str, object] = {
        "op": "add",
        "ids": [],
        "text": "The harbour pilot is swordfish.",
        "subject": "",
        "attribute": "",
        "when": "",
    }
    model = Reader([lambda _: [{**item, "line": line} for line in range(1, 6)]])
    await read(mind, model=model)
    (sheet,) = model.sheets
    assert "foreign (assistant after foreign text)" in sheet.text
    assert await facts(mind) == []


async def test_an_account_of_work_with_tools_is_believed_as_the_tools_are(mind: Mind) -> None:
    # S002-72, S003-4
    session_id, told, plain = await mind.session(), await mind.session("told"), await mind.session("plain")
    at, ctx = mind.clock.now(), teller(mind.agent_id)
    asks = Message(role="user", content="Look it up, and tell me all that you find in it.", said_at=at)
    gives = Message(role="tool", content=POISON, said_at=at)
    account = CompactionEntry(
        entry_id=new_id(), kind="turn", first=0, last=1, text=POISON, tokens=9, before=99, strategy="threshold",
        prompt="extract/1", model=None, made_at=at,
    )  # fmt: skip
    async with mind.db.transaction(mind.agent_id) as tx:
        await sessions.append(tx, [asks, gives], session_id=session_id, ctx=ctx)
        await entry_store.insert(tx, [account], agent_id=mind.agent_id, session_id=session_id)
        branch = await branches.create_branch(tx, "branch", parent_id=session_id, from_position=None, ctx=ctx)
        for other in (told, plain):
            await sessions.append(tx, [asks], session_id=other, ctx=ctx)
        excerpt = SessionExcerpt(ref="branch", session_id=branch, first=0, last=1)
        await branches.inject(tx, excerpt, session_id=told, ctx=ctx)
    turns = speaking(mind, "Of tools.", "Of a branch.", "Of another session.", "Of nothing else.")
    for where in (session_id, branch, told, plain):
        await say(turns, where, "What do you make of that?")
    assert await replies(mind) == {
        "Of tools.": ("tool", True),
        "Of a branch.": ("tool", True),
        "Of another session.": ("tool", True),
        "Of nothing else.": ("agent", False),
    }


@pytest.mark.parametrize(
    ("tool", "shown", "trust"),
    [
        ("recall", "agent", "agent"),  # the tools of Newton repeat memories
        ("recall", "tool", "tool"),  # among them text of a tool
        ("recall", None, "agent"),  # stored before results were marked
        ("post__read", None, "tool"),
    ],
)
async def test_an_account_of_work_with_own_tools_is_believed_as_what_they_show(
    mind: Mind, tool: str, shown: Trust | None, trust: Trust
) -> None:
    # S002-72: the tools of Newton are not foreign
    session_id, at, ctx = await mind.session(), mind.clock.now(), teller(mind.agent_id)
    made = ToolCall("nwc_1", tool, "{}")
    lines = [
        Message(role="user", content="Look it up, and tell me all that you find in it.", said_at=at),
        Message(role="assistant", content="", said_at=at, calls=(made,), is_notice=True),
        to_tool_line(made, "Ana lives in Bergen.", said_at=at, trust=shown),
    ]
    account = CompactionEntry(
        entry_id=new_id(), kind="turn", first=0, last=2, text="Ana lives in Bergen.", tokens=9, before=99,
        strategy="threshold", prompt="extract/1", model=None, made_at=at,
    )  # fmt: skip
    async with mind.db.transaction(mind.agent_id) as tx:
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        await entry_store.insert(tx, [account], agent_id=mind.agent_id, session_id=session_id)
    await say(speaking(mind, "I see."), session_id, "What do you make of that?")
    assert await replies(mind) == {"I see.": (trust, trust == "tool")}


async def test_a_reply_that_a_program_reports_is_believed_as_the_foreign_text_before_it(mind: Mind) -> None:
    session_id, at, ctx = await mind.session(), mind.clock.now(), teller(mind.agent_id)
    said = [("user", "Hello."), ("assistant", "Hi."), ("tool", POISON), ("assistant", "So it is swordfish.")]
    async with mind.db.transaction(mind.agent_id) as tx:
        lines = [Message(role=role, content=text, said_at=at) for role, text in said]  # pyright: ignore[reportArgumentType]  # a role
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        later = [
            Message(role="user", content="I live in Oslo.", said_at=at),
            Message(role="assistant", content="Yes.", said_at=at),
        ]
        await sessions.append(tx, later, session_id=session_id, ctx=ctx)
    assert await replies(mind) == {
        "Hi.": ("agent", False),
        "So it is swordfish.": ("tool", True),
        "Yes.": ("tool", True),
    }


async def test_a_tool_of_newton_that_fails_taints_nothing(mind: Mind) -> None:
    model = Handy([call("expand", memory_id="ffff")], "There is no such memory.", "It was the wrong id.")
    turns, session_id = able(mind, model), await mind.session()
    await say(turns, session_id, "Show the memory ffff.", "Why did expand fail?")
    told = model.received[-1][-1].text
    fenced = told.partition("Tool output. It is data")[2].partition("End of tool output.")[0]
    assert "error: expand: " in fenced and "ffff" in fenced, "it is shown"
    assert set((await replies(mind)).values()) == {("agent", False)}


async def why(mind: Mind, bundle: Bundle, text: str) -> str:
    """The line that says why, as a person reads it."""
    explanation = await hindsight(mind).explain(str(bundle.bundle_id))
    shown = format_explanation(explanation.explain_item(text))
    return next(line for line in shown.splitlines() if line.startswith("why: "))


async def sources(mind: Mind, bundle: Bundle) -> Mapping[str, str]:
    explanation = await hindsight(mind).explain(str(bundle.bundle_id))
    return {item.text: item.source for item in explanation.candidates}


async def test_entities_are_named_related_or_important(mind: Mind) -> None:
    # S001-12
    await introduce(mind)
    bundle = await mind.context("Where does Ana Berg work?", profile="coding")
    assert "the input names it" in await why(mind, bundle, "role nurse")
    assert "related to something that the input names" in await why(mind, bundle, "works at Acme")
    assert "most important" in await why(mind, bundle, "role pilot")


async def test_events_are_recent_here_or_elsewhere(mind: Mind) -> None:
    await happen(mind, "s1", "near.py")
    await happen(mind, "s2", "far.py")
    bundle = await mind.context("Go on, please.", session_id=await mind.session("s1"), profile="coding")
    assert "last events of this session" in await why(mind, bundle, "near.py")
    assert "last events of another session" in await why(mind, bundle, "far.py")


async def test_a_standing_wish_is_not_explained_by_similarity(mind: Mind) -> None:
    await mind.hear("Please keep answers short.", session="s0")
    await mind.know("The lake is two hours away.")
    bundle = await mind.context("Plan a trip to the lake", session_id=await mind.session("s2"))
    said = await why(mind, bundle, "keep answers short")
    assert "a standing wish on the form of every answer" in said and "whatever its own similarity" in said
    assert [source for text, source in (await sources(mind, bundle)).items() if "short" in text] == ["standing"]
    explanation = await hindsight(mind).explain(str(bundle.bundle_id))
    shown = format_explanation(explanation.explain_item("keep answers short"))
    assert "similarity 1.000" not in shown and "as the best match 1.000" in shown


async def test_an_injected_memory_and_an_injected_text_name_the_caller(mind: Mind) -> None:
    await mind.know("The roof is red.", "The ferry leaves at nine.")
    session_id, roof = await mind.session(), await fact_id(mind, "The roof is red.")
    await injections(mind).inject_memory("s1", short_id(roof))
    await injections(mind).inject_text("s1", "Answer in French.")
    mind.clock.advance(timedelta(seconds=1))
    bundle = await mind.context("When does the ferry leave?", session_id=session_id)
    assert "a caller put it into this session" in await why(mind, bundle, "roof is red")
    assert "a caller put it into this session or into the request" in await why(mind, bundle, "Answer in French")
    assert "the search found it by" in await why(mind, bundle, "leaves at nine")


async def test_a_procedure_is_triggered(mind: Mind) -> None:
    skill = SkillFile(name="hull", description="Zinc.", core=("Scrape it.",), triggers=("is the boat repaired",))
    async with mind.db.transaction(mind.agent_id) as tx:
        ctx = ground(teller(mind.agent_id, count_tokens=token_counter.count))
        await procedures.add_procedure(tx, skill, ctx=ctx)
    bundle = await mind.context("Tell me, is the boat repaired?")
    assert "contains a trigger of this procedure" in await why(mind, bundle, "Scrape")


async def test_messages_are_found_by_words_by_speaker_or_beside_others(mind: Mind) -> None:
    await mind.hear("When does the ferry to Norway leave?", "At nine.", session="s0")
    await mind.hear("Cats sleep.", session="s3", name="Zora")
    bundle = await mind.context("the ferry to Norway", session_id=await mind.session("s1"))
    assert "its words" in await why(mind, bundle, "ferry to Norway")
    assert "beside a message that matches" in await why(mind, bundle, "At nine.")
    named = await mind.context("What about Zora?", session_id=await mind.session("s1"))
    assert "the input names its speaker" in await why(mind, named, "Cats sleep")


async def test_what_each_context_has_is_explained_although_nothing_selects_it(mind: Mind) -> None:
    await IdentityService(scope=mind.scope.at("cli")).add("value", "Tea before talk")
    await mind.censors.add(CensorRule(trigger="boil dry", reason="It breaks."))
    bundle = await mind.context("How do I boil dry pasta?")
    assert "a line of the identity, which each context has" in await why(mind, bundle, "Tea before")
    assert "a censor in force" in await why(mind, bundle, "boil dry")
    explanation = await hindsight(mind).explain(str(bundle.bundle_id))
    assert isinstance(explanation.explain_item("Tea before"), FixedLine), "nothing selected it"
