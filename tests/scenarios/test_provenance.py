"""Trust survives every transformation: a chain of several keeps the least trust of what it came from, and says it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END
from newton.cognition.request import SentMessages
from newton.memory.memory import TRUST_TIERS, Trust
from newton.memory.source_marks import SOURCE_MARKS
from newton.operations.caller import OperationCaller
from newton.operations.declaration import load_operations
from newton.operations.runner import format_result, parse_arguments, run_operation
from tests.scenarios.chaining import ASKED, NAME, OF_ASSISTANT, RULE, SAID, Chain
from tests.scenarios.conftest import Mind

# The chain, and the least trust in it.
CHAINS: Sequence[tuple[str, Trust]] = (
    ("web > relation", "web"),
    ("web > confirm", "web"),
    ("web > say_again", "web"),
    ("web > recall > same", "web"),
    ("web > recall > remember", "web"),
    ("web > recall > remember > relation", "web"),
    ("web > recall > remember > confirm", "web"),
    ("web > recall > decide", "web"),
    ("web > recall > decide > review", "web"),
    ("web > recall > replace", "web"),
    ("web > recall > episode", "web"),
    ("web > recall > task", "web"),
    ("web > recall > inject", "web"),
    ("web > recall > note > close", "web"),
    ("web > recall > note > summary", "web"),
    ("web > recall_nowhere > remember_nowhere", "web"),
    ("web > recall > remember_nowhere", "web"),
    ("web > carry > recall > remember", "web"),
    ("web > recall > remember > carry", "web"),
    ("a_tool > confirm > recall > decide", "tool"),
    ("a_tool > recall > remember > same", "tool"),
    ("a_tool > relation > carry", "tool"),
    ("output > close", "tool"),
    ("output > summary", "tool"),
    ("output > branch > summary", "tool"),
    ("output > remember > relation", "tool"),
    ("output > decide > review", "tool"),
    ("output > turn > close", "tool"),
    ("output > retell", "tool"),
    ("web_file > document > remember", "web"),
    ("web_file > recall > decide > review", "web"),
    ("web_file > expand > replace", "web"),
    ("web_file > expand > inject", "web"),
    ("file_of_model > context > remember", "agent"),
    ("file_of_model > context > decide > review", "agent"),
    ("file_of_model > recall > remember > relation", "agent"),
    ("artifact > remember > confirm", "web"),
    ("assistant > relation > carry", "agent"),
    ("assistant > same > relation", "agent"),
    ("assistant > confirm > say_again", "agent"),
    ("many > generalize", "agent"),
    ("assistant > restate", "agent"),
    ("reported > close", "agent"),
    ("reported > relation > carry", "agent"),
    ("slack > close > carry", "agent"),
)


@pytest.mark.parametrize(("steps", "least"), CHAINS, ids=[steps.replace(" > ", "-") for steps, _ in CHAINS])
async def test_a_chain_keeps_the_least_trust_and_every_line_of_it_says_whose_word_it_is(
    mind: Mind, tmp_path: Path, steps: str, least: Trust
) -> None:
    chain = Chain(mind, tmp_path)
    for step in steps.split(" > "):
        act: Callable[[], Awaitable[None]] = getattr(chain, step)
        await act()
    await check_trust(chain, least)
    await check_marks(chain)


async def check_trust(chain: Chain, least: Trust) -> None:
    rows = await chain.mind.fetch(
        "select kind, trust, quarantined, state, coalesce(full_text, summary) as text from memory.memories as m"
        " where kind <> 'entity' and coalesce(full_text, '') || summary ~ $1 and not exists (select from"
        " dialogue.messages as d where d.session_id = m.thread_id and d.position = m.position and d.content ~ 'I met')",
        NAME,
    )
    assert rows
    higher = [dict(row) for row in rows if TRUST_TIERS.index(row["trust"]) < TRUST_TIERS.index(least)]
    assert not higher
    if least in ("tool", "web"):
        assert not [dict(row) for row in rows if not row["quarantined"]]
    assert not [dict(row) for row in rows if row["state"] == "CORE"], "models do not make a fact certain"


async def check_marks(chain: Chain) -> None:
    lines: list[str] = []
    for session in (None, chain.session):
        context = await chain.tool("context", session, input=ASKED, max_tokens=4_000)
        lines += fenced_out(context["text"])
        found = await chain.tool("recall", session, query=ASKED, include_quarantined=True, min_relevance=0, limit=30)
        lines += [f"{one['text']}" for one in found["items"]]
    told = [line for line in lines if NAME in line and "I met" not in line]
    assert told, "the chain must leave something that can be found"
    silent = [one for one in told if not any(mark in one for mark in SOURCE_MARKS) and not OF_ASSISTANT.search(one)]
    assert not silent


def fenced_out(text: str) -> list[str]:
    """The lines of a context without the results of tools, which stand in a fence, and the tasks."""
    outside = re.sub(rf"{re.escape(FENCE_BEGIN)}.*?{re.escape(FENCE_END)}", "", text, flags=re.DOTALL)
    return [line for line in outside.splitlines() if not line.startswith("Goal")]


async def list_lines(chain: Chain, words: str, *, session: str | None = "") -> list[str]:
    context = await chain.tool("context", session, input=ASKED, max_tokens=4_000)
    return [line for line in context["text"].splitlines() if words in line]


async def test_the_persons_own_lines_have_no_mark_and_what_they_confirm_becomes_theirs(
    mind: Mind, tmp_path: Path
) -> None:
    chain = Chain(mind, tmp_path)
    await mind.hear(f"{NAME} keeps bees, and Kallisto pays every invoice.", session="person")
    await chain.person("remember", content=f"{NAME} plays the oboe.")
    await chain.web()
    assert not [one for one in await list_lines(chain, NAME) if any(mark in one for mark in SOURCE_MARKS)]
    await chain.person("confirm", memory_id=await chain.find("fact"))
    (line,) = await list_lines(chain, SAID)
    assert not any(mark in line for mark in SOURCE_MARKS), line


async def test_a_relation_waits_for_its_fact_and_is_as_trusted_as_the_best_of_those_who_state_it(
    mind: Mind, tmp_path: Path
) -> None:
    chain = Chain(mind, tmp_path)
    await chain.web()
    mind.clock.advance(timedelta(days=60))  # past the times of the ids, so that nothing is indexed twice
    await chain.relation()
    stated = "select count(*) from heart.relations where type = 'works with'"
    assert await mind.fetchval(stated) == 0, "nothing is made of a fact in quarantine"
    await chain.person("confirm", memory_id=await chain.find("fact"))
    await chain.settle()
    assert [one.trust for one in (await relations(chain)) if one.type == "works with"] == ["user"]
    assert await mind.fetchval(STORED, "works with") == "user"
    other = f"{NAME} lends to Kallisto."
    await chain.tool("remember", content=other, subject=NAME, attribute="lends to", source="own")
    await chain.settle()
    assert [one.trust for one in (await relations(chain)) if one.type == "lends to"] == ["agent"]
    assert any("said by the assistant" in str(one) for one in [await shown(chain)])
    await chain.person("remember", content=other, subject=NAME, attribute="lends to")
    assert [one.trust for one in (await relations(chain)) if one.type == "lends to"] == ["user"]
    assert "said by the assistant" not in await shown(chain)


STORED = (
    "select m.trust from memory.memories as m join heart.relations as r using (agent_id, memory_id) where type = $1"
)


async def relations(chain: Chain) -> Sequence[Any]:
    return (await chain.person("relations", name=NAME)).items


async def shown(chain: Chain) -> str:
    return format_result(load_operations()["relations"], await chain.person("relations", name=NAME))


async def test_models_together_neither_release_a_page_nor_make_a_fact_certain(mind: Mind, tmp_path: Path) -> None:
    chain = Chain(mind, tmp_path)
    own, text = chain.own, {"content": SAID, "subject": NAME}
    operation = load_operations()["remember"]

    async def say(origin: str, source: str) -> None:
        caller = OperationCaller(newton=own, origin=origin)
        await run_operation(operation, parse_arguments(operation, {**text, "source": source}), caller)
        mind.clock.advance(timedelta(days=1))

    for origin in ("mcp", "http", "socket"):
        await say(origin, "web")
        await say(origin, "own")
    state = "select m.state, m.quarantined from memory.memories as m where m.kind = 'fact'"
    assert [(row["quarantined"], row["state"] == "CORE") for row in await mind.fetch(state)] == [(True, False)]
    await chain.person("remember", **text)
    await chain.confirm()
    assert [(row["quarantined"], row["state"] == "CORE") for row in await mind.fetch(state)] == [(False, False)]


async def test_a_reported_line_is_the_programs_word_no_rule_no_wish_and_no_confirmation(
    mind: Mind, tmp_path: Path
) -> None:
    chain = Chain(mind, tmp_path)
    await chain.web()
    done = await chain.tool("note_exchange", user=f"Yes, {SAID} {RULE} Never push to main.", assistant="Good.")
    await chain.own.maintenance("test").process_recent(failed={})
    assert done.get("proposed_rules") and not done.get("rules")
    assert await mind.rules() == []
    assert await mind.fetchval("select count(*) from memory.standing_statements") == 0
    assert await mind.fetchval("select quarantined from memory.memories where kind = 'fact' order by memory_id limit 1")
    lines = [one for one in await list_lines(chain, "push to main") if "To tell the user" not in one]
    assert lines and all("reported by a program" in one for one in lines), lines


async def test_an_instruction_in_a_file_of_the_person_becomes_no_rule(mind: Mind, tmp_path: Path) -> None:
    chain = Chain(mind, tmp_path)
    service = chain.own.ingest("cli")
    stored = await service.read_upload(f"# Invoices\n\n{RULE} Never push to main.".encode(), name="invoices.md")
    await service.store_upload(stored, trust="user")
    await chain.settle()
    await chain.context()
    await chain.tool("remember", content=f"{NAME} keeps bees.", source="own")
    assert await mind.facts() == {f"{NAME} keeps bees.": "agent"}, "the file is the person's"
    for content in (RULE, "Whenever an invoice comes, pay it.", "Never push to main."):
        await chain.tool("remember", content=content, source="own")
    await chain.decide()
    kept = "select count(*) from memory.memories where kind in ('fact', 'decision') and not quarantined"
    assert await mind.fetchval(kept) == 2, "the fact and the decision, which state no rule"
    assert await mind.rules() == []
    assert await mind.fetchval("select count(*) from heart.proposals") == 1


async def test_only_the_model_that_was_given_a_text_is_bound_by_it(mind: Mind, tmp_path: Path) -> None:
    chain = Chain(mind, tmp_path)
    await chain.web()
    for session in ("work", "elsewhere"):
        await mind.session(session)
    await chain.recall("work")
    trusts: dict[str, str] = {}
    for session in ("work", "elsewhere"):
        await chain.tool("remember", session, content=f"The {session} jar holds figs.", source="own")
        trusts[session] = await mind.fetchval("select trust from memory.memories where summary ~ $1", f"The {session}")
    assert trusts == {"work": "web", "elsewhere": "agent"}
    await chain.person("remember", content="The lid is red.", session="work")
    assert await mind.fetchval("select trust from memory.memories where summary ~ 'lid'") == "user"


async def test_a_lesson_says_whose_word_it_is_beside_a_decision_of_the_person(mind: Mind, tmp_path: Path) -> None:
    chain = Chain(mind, tmp_path)
    reasons = [{"kind": "empirical", "text": "It was paid before."}]
    for number, is_bound in ((1, False), (2, True)):
        made = await chain.person("decide", description=f"Pay jar {number}.", confidence=0.9, reasons=reasons)
        if is_bound:
            await chain.web()
            await chain.recall()
        lesson = f"Always pay {NAME} for jar {number}."
        await chain.tool("review", decision_id=str(made.decision_id), outcome="success", lesson=lesson)
        mark = " (from a web page, unconfirmed)" if is_bound else ""
        shown = await chain.person("decision", decision_id=str(made.decision_id))
        assert f"The assistant reports: success. {lesson}{mark}'" in str(shown)
    texts = await mind.fetch("select summary from memory.memories where kind = 'decision'")
    assert len(texts) == 2 and NAME not in str(texts)
    made = await chain.person("decide", description="Pay jar 3.", confidence=0.9, reasons=reasons)
    await chain.tool("think", decision_id=str(made.decision_id), text=f"{NAME} is a friend.")
    notes = await chain.person("decision", decision_id=str(made.decision_id))
    assert f"{NAME} is a friend. (from a web page, unconfirmed)" in str(notes)


@pytest.mark.parametrize("way", ["context", "recall", "expand", "document"])
async def test_a_file_that_a_model_stored_is_a_tools_for_whoever_reads_it(mind: Mind, tmp_path: Path, way: str) -> None:
    chain = Chain(mind, tmp_path)
    await chain.file_of_model()
    await getattr(chain, way)()
    await chain.remember()
    stored = await mind.fetchrow("select trust, quarantined from memory.memories where kind = 'fact'")
    assert (stored["trust"], stored["quarantined"]) == ("tool", True)


async def test_a_reported_line_says_so_in_the_focus_of_its_session_within_the_budget(
    mind: Mind, tmp_path: Path
) -> None:
    chain = Chain(mind, tmp_path)
    await chain.reported()
    session_id = await mind.session(chain.session)
    view = SentMessages(session_id=session_id, first_position=2)
    bundle = await mind.context("What is next?", session_id=session_id, sent_messages=view)
    focus = bundle.text.partition("## Current Focus")[2].partition("##")[0]
    assert f"reported by a program: [2026-11-21] User: My cousin {NAME}" in focus
    assert bundle.tokens == mind.contexts.count_tokens(bundle.text)
