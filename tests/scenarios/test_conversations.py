"""Conversations that go on for long: what is sent and shown stays within the window, and what matters stays known."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import openai
import pytest

from bench.environment import vacuum_analyze
from newton.agent.compaction.service import CompactionService
from newton.agent.loop.prompt import to_chat_messages
from newton.agent.services.sessions import SessionService
from newton.dialogue.compaction.progress_events import CompactionCompleted, CompactionEvent
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.messages import Message
from newton.dialogue.view import MESSAGE_TOKENS, ViewMessage, count_view_tokens
from newton.memory import lookup
from newton.providers import token_counter
from newton.providers.chat import ToolCall, to_openai_message
from tests.endpoint import Wire, endpoint
from tests.scenarios.conftest import Mind
from tests.scenarios.longtalk import Planted, Talk
from tests.scenarios.talking import Talking
from tests.support import NOON

WINDOW = 24_000
KINDS = {"decision", "fact", "dead end", "open item", "path", "error"}
CHECKED = 40  # of each kind at most, spread over the whole session
SETTLED = 50  # turns after which the server learns how much there is, as it does in its own time
LONG = [70, *(pytest.param(turns, marks=pytest.mark.slow) for turns in (100, 500, 2_000))]


@dataclass(slots=True)
class Held:
    """A conversation as an agent holds it: before each call of a model it takes the view, and all goes into the log."""

    mind: Mind
    compacting: CompactionService
    session_id: UUID
    most: int = WINDOW
    views: list[int] = field(default_factory=list[int])
    bare: list[int] = field(default_factory=list[int])
    view: Sequence[ViewMessage] = ()

    @property
    def doors(self) -> SessionService:
        return conversations(self.mind, self.compacting)

    async def say(self, *lines: Message) -> None:
        await self.doors.append("s1", lines)

    async def seen(self) -> Sequence[ViewMessage]:
        """Return what a model is sent."""
        self.view = fit_to_budget(
            await self.compacting.load_view(self.session_id, max_tokens=self.most),
            max_tokens=self.most,
            count_tokens=token_counter.count,
        )
        self.views.append(count_view_tokens(self.view))
        return self.view


def conversations(mind: Mind, compacting: CompactionService) -> SessionService:
    return SessionService(
        compaction=compacting,
        conversation_tokens=100_000,
        working_set_tokens=8_000,
        scope=mind.scope,
    )


async def hold(held: Held, talk: Talk, dsn: str) -> None:
    """The whole talk, with a request after each line that is not the model's own."""
    logged = 0
    for turn, lines in enumerate(talk, 1):
        if turn % SETTLED == 0:
            await vacuum_analyze(dsn)
        for line in lines:
            await held.say(line)
            logged += token_counter.count(line.content) + MESSAGE_TOKENS
            if line.role != "assistant":
                await held.seen()
                held.bare.append(logged)


async def reachable(held: Held, planted: Planted) -> bool:
    """Whether it is in the view, in an account that stands there, in what the session's context says of it, or in what
    recall finds for a question about it."""
    if any(planted.key in item.text or any(planted.key in call.arguments for call in item.calls) for item in held.view):
        return True
    if planted.key in (await held.mind.context(planted.asked, session_id=held.session_id)).text:
        return True
    found = (await held.mind.verbs.recall(planted.asked, limit=20, include_quarantined=True)).memories[:20]
    async with held.mind.db.transaction(held.mind.agent_id) as tx:
        records = [await lookup.read_memory(tx, one.memory_id, agent_id=held.mind.agent_id) for one in found]
    return any(planted.key in record.summary + record.full_text for record in records)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("turns", LONG)
async def test_a_long_session_fits_its_window_and_keeps_what_matters(mind: Mind, dsn: str, turns: int) -> None:
    # S003-19, S003-21, S003-F1: no request above the window, 40 % fewer tokens at least once above 50,000, nothing lost
    told: list[CompactionEvent] = []
    held = Held(mind, mind.compacting(on_event=told.append), await mind.session())
    talk = Talk(turns)
    await hold(held, talk, dsn)
    assert max(held.views) <= WINDOW
    late = [(view, bare) for view, bare in zip(held.views, held.bare, strict=True) if bare > 50_000]
    assert sum(view for view, _ in late) <= 0.6 * sum(bare for _, bare in late)
    assert len([event for event in told if isinstance(event, CompactionCompleted)]) >= 5
    await mind.settle()
    await vacuum_analyze(dsn)
    assert {planted.kind for planted in talk.planted} == KINDS
    for kind in KINDS:
        of_kind = [planted for planted in talk.planted if planted.kind == kind]
        sample = of_kind[:: -(-len(of_kind) // CHECKED)]
        assert sum([await reachable(held, planted) for planted in sample]) >= 0.95 * len(sample), kind


@pytest.mark.slow
async def test_the_log_stays_as_it_was_and_what_was_made_shorter_can_be_taken_back(mind: Mind) -> None:
    # S003-16, restore: the view is the one from before, step by step, and in the end the log itself
    held = Held(mind, mind.compacting(), await mind.session())
    said: list[Message] = []
    for lines in Talk(30):
        said += lines
        await held.say(*lines)
    before = await held.doors.get_view("s1")
    await held.seen()
    logged = await held.doors.read_log("s1")
    assert [(p.position, *p.message.immutable_fields) for p in logged] == [
        (n, *line.immutable_fields) for n, line in enumerate(said)
    ]
    made = [one.entry for one in await held.doors.list_entries("s1")]
    assert made
    for entry in sorted(made, key=lambda e: e.made_at, reverse=True):
        await held.doors.restore("s1", entry.entry_id.hex)
    assert (await held.doors.get_view("s1")).view == before.view
    assert await held.compacting.load_view(held.session_id, max_tokens=10**6) == before.view, "what was restored stays"


@dataclass(slots=True)
class Server:
    """A model behind real HTTP: it says its part of a talk, counts what it is sent, and refuses what is no talk."""

    replies: list[Message]
    largest: int = 0

    async def answer(self, wire: Wire) -> None:
        prompt = sum(self._tokens(one) for one in wire.body["messages"])
        self.largest = max(self.largest, prompt)
        open_: set[str] = set()
        for one in wire.body["messages"]:
            if one["role"] == "tool":
                assert one["tool_call_id"] in open_
                open_.discard(one["tool_call_id"])
            else:
                assert not open_
            open_ |= {call["id"] for call in one.get("tool_calls", ())}
        line = self.replies.pop(0)
        said: dict[str, Any] = {"role": "assistant", "content": line.content or None}
        if line.calls:
            said["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in line.calls
            ]
        choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if line.calls else "stop"}
        usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
        plain = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        await wire.send(200, plain)

    def _tokens(self, one: dict[str, Any]) -> int:
        return (
            token_counter.count(one["content"] or "") + token_counter.count(json.dumps(one.get("tool_calls", ""))) + 3
        )


@pytest.mark.slow
async def test_no_request_of_an_agent_is_above_the_window_of_its_model(mind: Mind) -> None:
    # S003-19 over HTTP, with tools
    talk = [line for lines in Talk(35) for line in lines]
    server = Server([line for line in talk if line.role == "assistant"])
    held = Held(mind, mind.compacting(), await mind.session())
    async with endpoint(server.answer) as here:
        client = openai.AsyncOpenAI(api_key="none", base_url=here.url, max_retries=0)
        for line in (line for line in talk if line.role != "assistant"):
            await held.say(line)
            messages: Any = [to_openai_message(one) for one in to_chat_messages(await held.seen())]
            asked: Any = await client.chat.completions.create(model="m", messages=messages)
            answer = asked.choices[0].message
            called = [ToolCall(one.id, one.function.name, one.function.arguments) for one in answer.tool_calls or ()]
            await held.say(
                Message(role="assistant", content=answer.content or "", said_at=line.said_at, calls=tuple(called))
            )
        await client.close()
    assert server.replies == []
    assert 0 < server.largest <= WINDOW < sum(token_counter.count(line.content) for line in talk)


@pytest.mark.slow
async def test_a_preview_is_what_comes_to_be_and_writes_nothing(mind: Mind) -> None:
    # S003-9
    talking = Talking(mind)
    doors = talking.doors
    for number, lines in enumerate(Talk(48)):
        await talking.says(*lines)
        if number % 12:
            continue
        before = await doors.get_view("s1")
        preview = await doors.preview("s1", max_tokens=6_000)
        assert (await doors.get_view("s1"), len(talking.told)) == (before, 0)
        told = [(item.text, item.first, item.last, item.kind) for item in preview.view]
        compacted = await doors.compact("s1", max_tokens=6_000)
        sent = fit_to_budget(compacted.after.view, max_tokens=6_000, count_tokens=token_counter.count)
        assert [(item.text, item.first, item.last, item.kind) for item in sent] == told
        assert preview.tokens <= 6_000 and preview.logged == before.logged
        talking.told.clear()
    assert (await doors.list_entries("s1")) != []


async def test_lines_that_are_alike_all_count_and_a_call_that_is_repeated_adds_none(mind: Mind) -> None:
    talking = Talking(mind)
    yes, no = (Message(role="user", content=text, said_at=NOON) for text in ("yes", "no"))
    said = [yes, yes, no, yes]
    for _ in range(2):
        await talking.doors.append("s1", said)
        logged = [placed.message.content for placed in await talking.doors.read_log("s1")]
        assert logged == [line.content for line in said]
