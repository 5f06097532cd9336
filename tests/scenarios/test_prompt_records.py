"""The record of a prompt: what a model was sent, kept as references and reproduced byte for byte."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from newton.agent.compaction import service
from newton.agent.loop.prompt import MessageParts
from newton.agent.loop.turn import TurnInput
from newton.agent.loop.turn_types import CallerOptions, PrivateConversation
from newton.agent.services.erasure import ErasureService
from newton.errors import InputError, NotFoundError, ProviderError
from newton.memory.forgetting import forget
from newton.operations.declaration import load_operations
from newton.operations.runner import format_result, to_data
from newton.providers.chat import RequestOptions
from newton.providers.fakes import ScriptedChat
from newton.runtime.chat_backend.protocol import DebugLines
from tests.scenarios.conftest import Meet, Mind
from tests.scenarios.handy import call
from tests.scenarios.recorded import Recorded, caller, live, overflow
from tests.scenarios.test_curation import upkeep
from tests.statements import watched_database

CONNECTIONS = 4
SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def recorded(mind: Mind) -> Recorded:
    return Recorded(mind)


async def run_sql(mind: Mind, sql: str, *values: object) -> object:
    return await mind.fetchval(sql, *values)


async def forget_matching(mind: Mind, pattern: str) -> None:
    async with mind.scope.write() as (tx, ctx):
        rows = await tx.fetch("select memory_id from memory.memories where summary ~ $1", pattern)
        assert rows
        await forget(tx, [row["memory_id"] for row in rows], derived=True, reason="asked to", ctx=ctx)


async def test_each_prompt_is_reproduced_byte_for_byte_whatever_is_done_later(recorded: Recorded) -> None:
    # the record of a prompt (a); S003 ADR-0043: a snapshot of the exact payload, never overwritten
    await live(recorded, 18)
    recorded.window = 6_000
    await recorded.say(f"Read this: {'harbour ' * 9_000}")
    assert await recorded.differences() == []
    shown = await recorded.reproduced()
    kinds = {one.status for prompt in shown for one in prompt.log}
    assert {"sent", "shortened", "summarized", "notice"} <= kinds
    assert {one.finish for one in shown} >= {"stop", "failed"}
    assert len({session_id for session_id, _ in recorded.taken}) > 1


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_a_thousand_prompts_are_reproduced_byte_for_byte(recorded: Recorded) -> None:
    # the record of a prompt (a)
    round_ = 0
    while len(recorded.model.sent) < 1_000:
        await live(recorded, 100, seed=round_)
        round_ += 1
    assert await recorded.differences() == []


@pytest.mark.slow
async def test_what_is_left_out_is_named_with_its_reason(recorded: Recorded) -> None:
    # S003-19, S004-14: what the model saw beside what the log holds
    for n in range(7):
        await recorded.say(f"Note {n}: {'harbour ' * 240}")
    shown = await recorded.prompts.show()
    (prompt,) = shown.calls
    assert prompt.log[-1].status == "sent" and prompt.log[-1].last == shown.input_position
    assert [one.first for one in prompt.log[1:]] == [one.last + 1 for one in prompt.log[:-1]]
    assert prompt.log[0].first == 0 and prompt.log[0].status in ("summarized", "over the window")
    assert prompt.tokens.system > 0 and prompt.tokens.tools > 0
    assert (prompt.served_model, prompt.output_tokens) == ("witness-1", 10)
    assert (prompt.input_tokens or 0) > 1_000, "as counted, because the model reports 100, which is too few"


async def test_a_turn_is_found_by_its_messages_its_prompt_or_as_the_latest(recorded: Recorded) -> None:
    await recorded.say("First.")
    await recorded.say("Second.")
    await recorded.say("Elsewhere.", session="s2")
    latest = await recorded.prompts.show()
    assert (latest.session, latest.input_position) == ("s2", 0)
    assert (await recorded.prompts.show("previous")).session == "s1"
    for position, expected in (("0", 0), ("1", 0), ("2", 2), ("3", 2)):
        assert (await recorded.prompts.show(position, session="s1")).input_position == expected
    prompt_id = str(latest.calls[0].prompt_id)
    assert (await recorded.prompts.show(prompt_id[-8:])).session == "s2"
    with pytest.raises(InputError, match="does not name a turn"):
        await recorded.prompts.show("yesterday")
    with pytest.raises(NotFoundError):
        await recorded.prompts.show("abcdef012345")


async def test_each_call_of_a_turn_has_a_record_and_the_texts_of_its_tools_are_those_of_the_log(
    recorded: Recorded,
) -> None:
    await recorded.say("What do you know?", lines=[[call("recall", query="ferry")], [call("recall", query="dock")]])
    shown = (await recorded.prompts.show()).calls
    assert [len(one.messages) for one in shown] == [2, 4, 6]
    assert [one["sources"] for one in shown[2].messages[2:]] == [[f"message {number}"] for number in range(1, 5)]
    assert await recorded.differences() == []


async def test_a_failed_call_has_a_record_with_the_code_of_its_error(recorded: Recorded) -> None:
    await recorded.say("Hello?", lines=[ProviderError("It is down.", hint="Wait.")])
    (prompt,) = (await recorded.prompts.show()).calls
    assert (prompt.finish, prompt.error) == ("failed", ProviderError.code)
    assert prompt.is_verified and prompt.input_tokens is None


async def test_a_private_turn_leaves_no_record(recorded: Recorded) -> None:
    private = PrivateConversation(view=(), question="Who am I?")
    runner = recorded.turns
    turn = TurnInput(session_id=None, text="Who am I?", already_stored=True, private=private)
    assert [piece async for piece in runner.run(turn)]
    assert len(recorded.model.sent) == 1
    assert await run_sql(recorded.mind, "select count(*) from cognition.prompts") == 0
    assert await run_sql(recorded.mind, "select count(*) from cognition.prompt_texts") == 0


async def test_texts_of_a_caller_are_stored_once(recorded: Recorded) -> None:
    # a text that is stored nowhere else is kept once, by its hash
    for n in range(5):
        await recorded.say(f"Hello {n}.", caller_options=caller(1))
    kinds = "select array_agg(kind order by kind) from cognition.prompt_texts where kind <> 'edition'"
    assert await run_sql(recorded.mind, kinds) == ["fixed", "instructions", "options", "tools", "tools"]
    assert await recorded.differences() == []


async def test_a_secret_is_not_stored_and_the_check_says_so(recorded: Recorded) -> None:
    instructions = f"The key is {SECRET}."
    await recorded.say("Hello.", caller_options=CallerOptions(instructions=instructions))
    (prompt,) = (await recorded.prompts.show()).calls
    assert "The key is [REDACTED:aws-key]." in prompt.messages[0]["content"]
    assert not prompt.is_verified and prompt.mismatch == "a secret was removed before it was stored"
    found = "select count(*) from cognition.prompt_texts where content like '%' || $1 || '%'"
    assert await run_sql(recorded.mind, found, SECRET) == 0


async def test_of_an_image_only_the_hash_is_stored_and_the_prompt_is_verified(recorded: Recorded) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 1_000}}
    parts = MessageParts("Look. [image]", ({"type": "text", "text": "Look."}, image))
    await recorded.say("Look. [image]", caller_options=CallerOptions(input_parts=parts))
    (prompt,) = (await recorded.prompts.show()).calls
    assert prompt.is_verified and prompt.attachments == 1
    longest: Any = await run_sql(
        recorded.mind, "select max(length(content)) from cognition.prompt_texts where kind = 'parts'"
    )
    assert longest < 1_000
    assert await recorded.differences() == []


async def test_a_forgotten_message_is_gone_from_the_records_and_named_in_its_place(recorded: Recorded) -> None:
    # (a), (c): forgetting removes the text, and the check says why the hash does not match
    await recorded.say("My aunt is called Quizzaciously, and she is a diver.")
    await recorded.say("And what is the weather?", session="s2")
    await recorded.say("What did I say?")
    await forget_matching(recorded.mind, "Quizzaciously")
    first, other, last = await recorded.reproduced()
    for prompt in (first, last):
        assert "Quizzaciously" not in str(prompt.messages) and "[forgotten]" in str(prompt.messages)
        assert not prompt.is_verified
        assert "message 0 was forgotten" in (prompt.mismatch or "")
        assert "the hash was withdrawn" in (prompt.mismatch or "")
    assert other.is_verified
    assert {gap.message for gap in last.gaps} == {1}


async def test_a_forgotten_fact_takes_the_context_from_the_records(recorded: Recorded) -> None:
    await recorded.mind.know("The vault code is seven-two-nine.")
    await recorded.say("What is the vault code?", lines=[[call("recall", query="vault code")]])
    before = await recorded.reproduced()
    assert all("seven-two-nine" in str(one.messages) for one in before)
    await forget_matching(recorded.mind, "seven-two-nine")
    for prompt in await recorded.reproduced():
        assert "seven-two-nine" not in str(prompt.messages)
        assert "the context, which contained a memory that was forgotten" in (prompt.mismatch or "")
    assert await run_sql(recorded.mind, "select count(*) from cognition.prompts where salt is not null") == 0


async def test_texts_made_from_a_forgotten_message_go_with_it(recorded: Recorded) -> None:
    # a shortened message, and a message with attachments
    recorded.window = 6_000
    await recorded.say(f"Remember Quizzaciously. {'harbour ' * 9_000}")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    parts = MessageParts("Is it Quizzaciously? [image]", ({"type": "text", "text": "Is it Quizzaciously?"}, image))
    await recorded.say("Is it Quizzaciously? [image]", caller_options=CallerOptions(input_parts=parts))
    found = "select array_agg(kind order by kind) from cognition.prompt_texts where content like '%Quizzaciously%'"
    assert await run_sql(recorded.mind, found) == ["cut", "parts"]
    await forget_matching(recorded.mind, "Quizzaciously")
    assert await run_sql(recorded.mind, found) is None
    assert all("Quizzaciously" not in str(one.messages) for one in await recorded.reproduced())


async def test_erasing_a_person_removes_them_from_the_texts_of_callers(recorded: Recorded) -> None:
    options = CallerOptions(
        instructions="The user is Quizzaciously Smith.",
        request_options=RequestOptions(extra_body={"user": "Quizzaciously"}),
    )
    await recorded.say("Hello.", caller_options=options)
    await recorded.say("Hello again.", caller_options=caller(1))
    erasure = ErasureService(scope=recorded.mind.scope)
    plan = await erasure.plan("quizzaciously")
    assert sorted(kind for _, kind in plan.related) == ["prompt", "prompt"]
    await erasure.erase("quizzaciously", token=plan.token, reason="asked to")
    first, second = await recorded.reproduced()
    assert "Quizzaciously" not in f"{first.messages}{first.options}" and second.is_verified
    assert "[erased: a text that was forgotten or erased]" in first.messages[0]["content"]
    assert [gap.message for gap in first.gaps] == [0, None]
    assert "a text that was forgotten or erased" in (first.mismatch or "")


async def test_a_call_of_the_model_costs_one_statement_more(recorded: Recorded, dsn: str) -> None:
    # (b): the usage of a call was one statement; its record is one more
    async with watched_database(dsn, recorded.mind.agent_id, connections=CONNECTIONS) as (alone, asked):
        counted = Recorded(replace(recorded.mind, db=alone))
        await counted.say("Do you know it?", lines=[[call("recall", query="ferry")]], caller_options=caller(1))
    assert len(counted.model.sent) == 2
    touching = [one for one in asked if "cognition.prompt" in one]
    assert len(touching) == len([one for one in asked if "insert into runtime.usage" in one]) == 2


async def test_records_expire_with_the_contexts_and_keep_theirs_until_then(recorded: Recorded) -> None:
    # (e): the job that deletes old contexts deletes the records as old, and texts that no record needs
    mind = recorded.mind
    await recorded.say("Hello.", caller_options=caller(1))
    await recorded.say("Hello again.", caller_options=caller(100))
    mind.clock.advance(timedelta(days=20))
    await recorded.say("And now?", caller_options=caller(1))
    mind.clock.advance(timedelta(days=15))
    maintenance = replace(upkeep(mind), bundle_retention_days=30)
    async with mind.db.transaction(mind.agent_id) as tx:
        report = await maintenance.apply_retention(tx)
    assert report.prompts == 2
    (kept,) = await recorded.reproduced()
    assert kept.is_verified
    left = await run_sql(mind, "select array_agg(content) from cognition.prompt_texts where kind = 'instructions'")
    assert left == [caller(1).instructions]
    mind.clock.advance(timedelta(days=20))
    async with mind.db.transaction(mind.agent_id) as tx:
        assert (await maintenance.apply_retention(tx)).prompts == 1
    assert await run_sql(mind, "select count(*) from cognition.prompt_texts") == 0
    assert await run_sql(mind, "select count(*) from cognition.bundles") == 0


async def test_a_prompt_that_is_sent_again_shorter_has_a_record_of_each(recorded: Recorded) -> None:
    await recorded.say("Long ago there was a harbour.")
    await recorded.say("Tell me more.", lines=[overflow()])
    shown = (await recorded.prompts.show()).calls
    assert [one.finish for one in shown] == ["failed", "stop"]
    assert await recorded.differences() == []


@pytest.mark.slow
async def test_prompts_of_a_growing_conversation_share_their_edition(recorded: Recorded) -> None:
    # (d): a record says how far the conversation had come, and does not list its messages
    for n in range(6):
        await recorded.say(f"Note {n}.", caller_options=caller(1))
    count = "select count(distinct edition_id) from cognition.prompts"
    assert await run_sql(recorded.mind, count) == 2  # without a conversation before the input, and with one


@pytest.mark.slow
async def test_debug_lines_come_before_the_answer_and_name_frame_task_and_compaction(
    recorded: Recorded, meet: Meet
) -> None:
    # S004-14
    for n in range(7):
        await recorded.say(f"Note {n}: {'harbour ' * 240}")
    async with meet(ScriptedChat("It is nine.")) as backend:
        await backend.run_operation(load_operations()["push_task"], {"goal": "Find the ferry", "session": "s1"})
        turn = backend.run_turn("s1", "When does the ferry leave?", include_context=True)
        pieces = [piece async for piece in turn]
    assert isinstance(pieces[0], DebugLines) and isinstance(pieces[1], str)
    told = {line.split(" ")[1]: json.loads(line.split(" ", 2)[2]) for line in pieces[0].lines}
    assert told["FRAME_DEBUG"]["frame"] and "Find the ferry" in told["TASK_DEBUG"]["tasks"][0]
    assert told["COMPACTION_DEBUG"]["messages"] > 0


async def test_every_interface_shows_the_same_prompt(recorded: Recorded, meet: Meet) -> None:
    async with meet(ScriptedChat("It is nine.")) as backend:
        assert [piece async for piece in backend.run_turn("talk", "When does the ferry leave?")]
        operation = load_operations()["prompt"]
        shown: Any = await backend.run_operation(operation, {"session": "talk"})
        text = format_result(operation, shown)
    (call_,) = shown.calls
    assert call_.is_verified and str(call_.messages[-1]["content"]).endswith("When does the ferry leave?")
    assert "  verified" in text and "--- the log of this stretch\n0: sent as it is" in text
    assert to_data(operation, shown) == to_data(operation, await recorded.prompts.show(session="talk"))


@pytest.mark.slow
async def test_a_summary_that_is_made_for_one_turn_is_kept_with_its_prompt(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a compaction that takes too long is not waited for; its summaries are in no table yet
    monkeypatch.setattr(service, "TURN_SECONDS", 0.0)
    for n in range(7):
        await recorded.say(f"Note {n}: {'harbour ' * 240}")
    details = {one.detail for prompt in await recorded.reproduced() for one in prompt.log}
    assert "for this turn only" in details
    assert await recorded.differences() == []
