"""Prompts continue those before them, so that the server of a model can reuse its prompt cache."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from newton.agent.prompt_records.prompt_encoder import to_hashed_message
from newton.agent.prompting.memory_delta import INPUT_HEADER, MEMORY_HEADER, SYSTEM_HEADER
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft
from newton.cognition.metrics.service import MetricsService
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.providers.chat import ChatMessage
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import call
from tests.scenarios.recorded import Recorded, caller
from tests.scenarios.test_curation import curation
from tests.scenarios.test_prompt_records import forget_matching

FACTS = (
    "The ferry to Brava leaves at nine.",
    "The ferry is called Artemis.",
    "The harbour master is called Ines.",
    "The ledger is kept in the blue safe.",
    "The safe opens with a brass key.",
    "The lighthouse keeper breeds geese.",
    "The violin was mended by Otto.",
    "The orchard has eleven pear trees.",
    "The tariff for a car is forty euros.",
    "The parcel office closes at noon.",
)
QUESTIONS = (
    "When does the ferry to Brava leave?",
    "And what is the ferry called?",
    "Who is the harbour master?",
    "Where is the ledger kept?",
    "How does the safe open?",
    "What does the lighthouse keeper do?",
    "Who mended the violin?",
    "How many pear trees are in the orchard?",
    "What is the tariff for a car?",
    "When does the parcel office close?",
)
MIN_SHARE = 0.9


@pytest.fixture
async def recorded(mind: Mind) -> Recorded:
    await mind.know(*FACTS)
    return Recorded(mind, conversation=20_000, window=60_000)


def as_texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [json.dumps(to_hashed_message(message)) for message in messages]


def shares(recorded: Recorded) -> list[tuple[int, int]]:
    """Of the first prompt of each turn but the first one, the characters of its messages, and those at their start that
    the prompt before it had too.
    """
    prompts = [as_texts(one.messages) for one in recorded.model.sent]
    found: list[tuple[int, int]] = []
    for before, after in pairwise(prompts):
        if json.loads(after[-1])["role"] == "user":
            same = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
            found.append((sum(map(len, after)), sum(map(len, after[:same]))))
    return found


async def talk(recorded: Recorded, *, tools: bool = False, **fields: Any) -> None:
    """Twenty turns: questions, and news in between."""
    for n, question in enumerate(QUESTIONS):
        lines = [[call("recall", query=question)]] if tools else []
        await recorded.say(question, lines=lines, **fields)
        await recorded.say(f"By the way, the gate number {n} was painted green today.", **fields)


@pytest.mark.parametrize(
    ("client", "tools"),
    [
        ("chat", True),
        ("api", False),
        pytest.param("chat", False, marks=pytest.mark.slow),
        pytest.param("api", True, marks=pytest.mark.slow),
    ],
)
async def test_a_prompt_repeats_nine_tenths_of_the_one_before(recorded: Recorded, client: str, *, tools: bool) -> None:
    fields = {"caller_options": caller(1)} if client == "api" else {}
    await talk(recorded, tools=tools, **fields)
    found = shares(recorded)
    assert len(found) == 19
    share = sum(same for _, same in found) / sum(size for size, _ in found)
    assert share >= MIN_SHARE
    (metric,) = (one for one in (await report(recorded)).metrics if one.name == "identical prefix")
    assert metric.value is not None and abs(metric.value - share) < 0.02
    differences = (await report(recorded)).prompt_differences
    assert not differences


async def report(recorded: Recorded) -> Any:
    mind = recorded.mind
    return await MetricsService(agent_id=mind.agent_id, db=mind.db, clock=mind.clock).report(30)


@pytest.mark.slow
async def test_each_memory_is_sent_once_and_stays_where_it_was_sent(recorded: Recorded) -> None:
    await talk(recorded)
    last = recorded.model.sent[-1].messages
    for question, fact in zip(QUESTIONS, FACTS, strict=True):
        place = next(n for n, one in enumerate(last) if one.text.endswith(question))
        before = "".join(one.text for one in last[1 : place + 1] if one.role == "user")
        assert fact.rstrip(".") in before, "an item that an input needs is in its block or in an earlier one"
        assert sum(one.text.count(fact.rstrip(".")) for one in last if one.role == "user") == 1


@pytest.mark.slow
async def test_a_later_process_sends_the_same_bytes(recorded: Recorded) -> None:
    await talk(recorded)
    before = as_texts(recorded.model.sent[-1].messages)
    again = Recorded(recorded.mind, conversation=20_000, window=60_000)
    await again.say("When does the ferry to Brava leave, again?")
    assert as_texts(again.model.sent[0].messages)[: len(before)] == before


async def test_a_message_of_a_parent_without_blocks_is_answered_again(recorded: Recorded, dsn: str) -> None:
    fields: dict[str, Any] = {"caller_options": caller(1)}
    await recorded.say(QUESTIONS[0], **fields)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("delete from dialogue.prompt_blocks")  # as for a message that is older than they are
    finally:
        await connection.close()
    await recorded.sessions.create_branch("s1", "again", at=0)
    await recorded.say(QUESTIONS[0], session="again", already_stored=True, **fields)
    await recorded.say(QUESTIONS[1], session="again", **fields)
    parent, again, later = recorded.model.sent
    assert as_texts(again.messages) == as_texts(parent.messages)
    assert len(later.messages) == 4
    assert [one.is_verified for one in await recorded.reproduced()] == [False, True, True]


async def test_a_branch_begins_with_the_bytes_of_its_parent(recorded: Recorded) -> None:
    await recorded.say(QUESTIONS[0])
    await recorded.say(QUESTIONS[2])
    await recorded.sessions.create_branch("s1", "aside")
    await recorded.say(QUESTIONS[3], session="aside")
    before, after = (as_texts(one.messages) for one in recorded.model.sent[-2:])
    assert after[: len(before)] == before


async def test_a_branch_of_an_earlier_day_is_told_the_day(recorded: Recorded) -> None:
    await recorded.say(QUESTIONS[0])
    recorded.mind.clock.advance(timedelta(days=1))
    await recorded.sessions.create_branch("s1", "aside")
    await forget_matching(recorded.mind, "Brava")  # and the block that names the first day
    await recorded.say("Which day is it?", session="aside")
    messages = recorded.model.sent[-1].messages
    assert "This conversation began on Saturday, 21 November 2026" in messages[0].text
    assert messages[-1].text.startswith("=== System, Sunday, 22 November 2026 ===\n")


@pytest.mark.parametrize("text", [QUESTIONS[0], "Who is the harbour master?"])
async def test_an_inherited_input_is_answered_again_with_the_rules_of_now(recorded: Recorded, text: str) -> None:
    # The button "regenerate" of a client, which sends the conversation up to its input again: one that was sent without
    # a block, because the one before it had all, and one with a block.
    await recorded.say(QUESTIONS[0])
    recorded.mind.clock.advance(timedelta(minutes=1))
    await recorded.say(text)
    await add_rule(recorded.mind, "never suggest nuts")
    parent = await recorded.mind.session("s1")
    await recorded.mind.branch("again", of=parent, at=2)
    await recorded.say(text, session="again", already_stored=True, caller_options=caller(1))
    before, again = (one.messages[-1].text for one in recorded.model.sent[-2:])
    assert again.count("never suggest nuts") == again.count(INPUT_HEADER) == 1 and again.endswith(text)
    assert again.startswith(before.partition(INPUT_HEADER)[0] if INPUT_HEADER in before else SYSTEM_HEADER)
    await recorded.say(QUESTIONS[2], session="again", caller_options=caller(1))
    assert "never suggest nuts" in recorded.model.sent[-1].messages[-1].text, "an unstored block counts as not sent"
    assert await recorded.differences() == []


async def test_a_rule_without_room_is_not_said_to_have_ended(recorded: Recorded) -> None:
    async with recorded.mind.scope.write() as (tx, ctx):
        await identity_store.add(tx, "preference", "call me Zoe", edit=IdentityEdit(ctx=ctx))
    await recorded.say(QUESTIONS[0])
    assert "call me Zoe" in recorded.model.sent[0].messages[0].text
    for n in range(20):
        await add_rule(
            recorded.mind, f"always spell the name of harbour {n} in letters, {'and also twice, ' * 8}please"
        )
    await recorded.say(QUESTIONS[2])
    text = recorded.model.sent[-1].messages[-1].text
    assert "always spell the name of harbour 0" in text
    assert "No longer in force" not in text and "for lack of room" not in text


async def test_an_erased_rule_leaves_the_blocks_that_said_its_end(recorded: Recorded) -> None:
    await recorded.say(QUESTIONS[0])
    tenet_id = await add_rule(recorded.mind, "never mention Zaphod")
    await recorded.say(QUESTIONS[2])
    identity = IdentityService(scope=replace(recorded.mind.scope, origin="cli"))
    await identity.remove(tenet_id)
    await recorded.say(QUESTIONS[3])
    assert "never mention Zaphod" in recorded.model.sent[-1].messages[-1].text
    await identity.erase(tenet_id, reason="asked to")
    assert await recorded.mind.fetchval("select count(*) from dialogue.prompt_blocks where text ~ 'Zaphod'") == 0


async def test_a_rule_said_later_is_a_dated_line_with_the_authority_of_the_system(recorded: Recorded) -> None:
    await recorded.say(QUESTIONS[0])
    tenet_id = await add_rule(recorded.mind, "never suggest nuts")
    await recorded.say(QUESTIONS[2])
    await recorded.say(QUESTIONS[3])
    first, second, third = (one.messages for one in recorded.model.sent)
    assert first[0] == second[0] == third[0], "the system message is the same"
    line = "In force from now on:\n- The user says: never suggest nuts\n"
    system, _, rest = second[-1].text.partition(MEMORY_HEADER)
    assert system.startswith("=== System, Saturday, 21 November 2026 ===\n") and line in system and line not in rest
    assert "never suggest nuts" not in third[-1].text and line in "".join(one.text for one in third)
    async with recorded.mind.scope.write() as (tx, ctx):
        await identity_store.remove(tx, tenet_id, edit=IdentityEdit(ctx=ctx))
    await recorded.say(QUESTIONS[4])
    assert "No longer in force:\n- The user says: never suggest nuts\n" in recorded.model.sent[-1].messages[-1].text
    await recorded.say(QUESTIONS[5])
    assert "never suggest nuts" not in recorded.model.sent[-1].messages[-1].text, "said once"
    await add_rule(recorded.mind, "answer in French")
    recorded.conversation = 1_200
    for n in range(7):
        await recorded.say(f"Note {n}: {'harbour ' * 240}")
    system = recorded.model.sent[-1].messages[0].text
    assert "- The user says: answer in French\n" in system, "made anew after a compaction"
    assert "answer in French" not in str(recorded.model.sent[-1].messages[1:]) and "nuts" not in system


async def add_rule(mind: Mind, text: str) -> str:
    async with mind.scope.write() as (tx, ctx):
        assert await identity_store.add(tx, "instruction", text, edit=IdentityEdit(ctx=ctx))
        identity = await identity_store.read_identity(tx, agent_id=mind.agent_id)
    return str(identity.tenets[-1].tenet_id)


async def test_a_replaced_fact_is_named_where_it_was_sent_before(recorded: Recorded) -> None:
    await curation(recorded.mind).set_cardinality("pilot", single_valued=True)
    for name in ("Greta", "Bruno"):
        draft = FactDraft(content=f"The pilot of the port is {name}.", subject="port", attribute="pilot")
        await recorded.mind.verbs.remember(draft)
        await recorded.mind.settle()
        recorded.mind.clock.advance(timedelta(minutes=5))
        await recorded.say("Who is the pilot of the port today?")
    assert "is Greta" in recorded.model.sent[-2].messages[-1].text
    block = recorded.model.sent[-1].messages[-1].text.partition(INPUT_HEADER)[0]
    line = "## No Longer True\n- The pilot of the port is Greta. Now: The pilot of the port is Bruno.\n"
    assert line in block
    await recorded.say(QUESTIONS[3])
    assert "Greta" not in recorded.model.sent[-1].messages[-1].text, "said once"


async def test_a_forgotten_memory_leaves_the_later_prompts_and_the_break_is_counted(recorded: Recorded) -> None:
    await recorded.say(QUESTIONS[0])
    await recorded.say(QUESTIONS[2])
    await recorded.say(QUESTIONS[3])
    assert "Ines" in str(recorded.model.sent[-1].messages)
    await forget_matching(recorded.mind, "Ines")
    await recorded.say(QUESTIONS[4])
    assert "Ines" not in str(recorded.model.sent[-1].messages)
    assert recorded.model.sent[-1].messages[:3] == recorded.model.sent[-2].messages[:3], "only its block went"
    (prompt,) = (await recorded.prompts.show()).calls
    assert prompt.difference == "conversation" and prompt.is_verified
    assert (await report(recorded)).prompt_differences == {"conversation": 1}
    assert await recorded.mind.fetchval("select count(*) from dialogue.prompt_blocks where text like '%Ines%'") == 0


async def test_the_first_prompt_of_a_session_and_of_a_process_has_no_share(recorded: Recorded) -> None:
    await recorded.say(QUESTIONS[0])
    (prompt,) = (await recorded.prompts.show()).calls
    assert prompt.identical_chars is None
    await recorded.say(QUESTIONS[1])
    (prompt,) = (await recorded.prompts.show()).calls
    assert prompt.identical_chars and prompt.difference is None
