"""Conversations whose prompts are compared with their records: with tools, summaries, branches and other turns."""

import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from newton.agent.background_runs import BackgroundCompactions
from newton.agent.loop.completion import TokenLimits
from newton.agent.loop.turn import TurnInput, TurnRunner
from newton.agent.loop.turn_types import CallerOptions
from newton.agent.prompt_records.prompt_encoder import to_hashed_message
from newton.agent.prompt_records.reproduction import PromptReproduction
from newton.agent.prompt_records.service import PromptService
from newton.agent.services.sessions import SessionService
from newton.dialogue.messages import Message
from newton.errors import ContextWindowError, ProviderError
from newton.providers.chat import ChatMessage, ChatReply, ReplyPiece, RequestOptions, ToolCall, ToolDefinition
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import able, call

WORDS = ("ferry", "harbour", "ledger", "orchard", "lantern", "violin", "glacier", "parcel", "voucher", "tariff")
TOOL = ToolDefinition("lookup", {"name": "lookup", "parameters": {"type": "object", "properties": {"n": {}}}})


@dataclass(slots=True)
class Sent:
    """What a model was sent in one call."""

    messages: Sequence[ChatMessage]
    max_tokens: int | None
    options: RequestOptions

    def as_json(self) -> dict[str, Any]:
        """The same in the form of a reproduction."""
        return {
            "messages": [to_hashed_message(one) for one in self.messages],
            "tools": [tool.function for tool in self.options.all_tools],
            "options": dict(self.options.extra_body),
        }


@dataclass(slots=True)
class Witness:
    """A model with tools that notes what it is sent. It replies with the next of its lines, or with some words."""

    lines: list[str | list[ToolCall] | ProviderError] = field(default_factory=list[Any])
    sent: list[Sent] = field(default_factory=list[Sent])
    name: str = "witness"

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncIterator[ReplyPiece | ChatReply]:
        self.sent.append(Sent(messages, max_tokens, options))
        line = self.lines.pop(0) if self.lines else f"Reply {len(self.sent)}: {' '.join(WORDS[:3])}."
        if isinstance(line, ProviderError):
            raise line
        text, calls = (line, ()) if isinstance(line, str) else ("Let me look.", tuple(line))
        if text:
            yield text
        yield ChatReply(text=text, model="witness-1", input_tokens=100, output_tokens=10, calls=calls)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: object = None
    ) -> AsyncIterator[str | ChatReply]:
        raise NotImplementedError
        yield ""


@dataclass(slots=True)
class Recorded:
    """An agent whose model is a witness, and the turns that it took: by session, the number of the first call."""

    mind: Mind
    model: Witness = field(default_factory=Witness)
    window: int = 24_000
    conversation: int = 1_200
    background: BackgroundCompactions = field(default_factory=BackgroundCompactions)
    taken: list[tuple[UUID, int]] = field(default_factory=list[tuple[UUID, int]])

    @property
    def turns(self) -> TurnRunner:
        runner = able(self.mind, cast("Any", self.model))
        compaction = replace(runner.compaction, background=self.background)
        limits = TokenLimits(context=800, conversation=self.conversation, reply=100, per_day=10**9, window=self.window)
        return replace(runner, limits=limits, compaction=compaction)

    @property
    def sessions(self) -> SessionService:
        return SessionService(
            scope=self.mind.scope,
            compaction=self.mind.compacting(),
            conversation_tokens=1_200,
            working_set_tokens=8_000,
        )

    @property
    def prompts(self) -> PromptService:
        return PromptService(scope=self.mind.scope)

    async def say(self, text: str, *, session: str = "s1", lines: Sequence[Any] = (), **fields: Any) -> None:
        """One turn; its calls of the model are noted."""
        session_id = await self.mind.session(session)
        self.model.lines = list(lines)
        before = len(self.model.sent)
        async for _ in self.turns.run(TurnInput(session_id=session_id, text=text, **fields)):
            pass
        await self.background.cancel()
        self.taken += [(session_id, number) for number in range(before, len(self.model.sent))]

    async def reproduced(self) -> list[PromptReproduction]:
        """All prompts, in the order in which they were sent."""
        rows = await self.mind.fetch(
            "select distinct on (session_id, input_position) prompt_id from cognition.prompts"
            " order by session_id, input_position, prompt_id"
        )
        found = [one for row in rows for one in (await self.prompts.show(str(row["prompt_id"]))).calls]
        return sorted(found, key=lambda one: one.prompt_id)

    async def differences(self) -> list[str]:
        """What differs between each prompt that was sent and its reproduction; empty if nothing does."""
        found = await self.reproduced()
        assert len(found) == len(self.model.sent), (len(found), len(self.model.sent))
        return [
            f"{number}: {one.mismatch} {json.dumps(shown)[:3000]} != {json.dumps(sent.as_json())[:3000]}"
            for number, (one, sent) in enumerate(zip(found, self.model.sent, strict=True))
            if (shown := as_json(one)) != sent.as_json() or not one.is_verified
        ]


def as_json(one: PromptReproduction) -> Mapping[str, Any]:
    return {
        "messages": [{name: message[name] for name in message if name != "sources"} for message in one.messages],
        "tools": list(one.tools),
        "options": dict(one.options),
    }


def caller(number: int) -> CallerOptions:
    """The options of an API caller: the same for most calls."""
    body = {"temperature": 0.5, "seed": number // 20}
    return CallerOptions(
        request_options=RequestOptions(tools=(TOOL,), extra_body=body),
        instructions=f"You are the clerk of harbour {number // 20}. Be brief.",
    )


def overflow() -> ProviderError:
    return ContextWindowError("The prompt is too long.", hint="Shorten it.")


async def live(recorded: Recorded, number: int, *, seed: int = 7) -> None:
    """Take turns of all kinds, with everything between them that changes stored data."""
    chance, session = random.Random(seed), "s1"
    for n in range(number):
        words = " ".join(chance.choices(WORDS, k=chance.choice([4, 12, 60])))
        session = await _change_session(recorded, session, n)
        if n % 10 == 3:
            await _look_up(recorded, session, n, words)
        else:
            text, lines = _draw_turn(n, words)
            await recorded.say(text, session=session, lines=lines)
        recorded.mind.clock.advance(timedelta(minutes=3))


def _draw_turn(n: int, words: str) -> tuple[str, list[Any]]:
    """The input of a turn, and what the model does."""
    match n % 10:
        case 1:
            return f"Do you know {words}?", [[call("recall", query=words)]]
        case 6:  # the window is too small, and the prompt is sent again, shorter
            return f"Tell me of {words}.", [overflow()]
        case 7:  # a long input
            return f"Read this: {words} " * 60, []
        case _:
            return f"Note {words}, turn {n}.", []


async def _change_session(recorded: Recorded, session: str, n: int) -> str:
    """Store a fact, branch the session, or restore messages; return the session to continue in."""
    if n % 10 == 5:
        await recorded.mind.know(f"The {WORDS[n % len(WORDS)]} number {n} is kept in room {n}.")
    if n % 20 == 8:
        await recorded.sessions.create_branch(session, f"branch{len(recorded.taken)}")
        return f"branch{len(recorded.taken)}"
    if n % 10 == 9:
        entries = await recorded.sessions.list_entries(session)
        if used := [one for one in entries if one.restored_at is None]:
            await recorded.sessions.restore(session, str(used[-1].entry.entry_id))
    return session


async def _look_up(recorded: Recorded, session: str, n: int, words: str) -> None:
    """An API caller's turn: the model calls its tool, and the result comes with the next request."""
    made, text = ToolCall(f"c{len(recorded.taken)}", "lookup", json.dumps({"n": n, "text": words * 3})), f"Look up {n}."
    await recorded.say(text, session=session, lines=[[made]], caller_options=caller(n))
    result = Message(
        role="tool",
        name="lookup",
        content=f"Result {n}: {words} " * 30,
        said_at=recorded.mind.clock.now(),
        tool_call_id=made.id,
    )
    options: dict[str, Any] = {"earlier": [result], "already_stored": True, "caller_options": caller(n)}
    await recorded.say(text, session=session, **options)
