"""A model that calls tools as it is told to, and a mind whose turns have them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from newton.agent.inventory.artifacts import ArtifactService
from newton.agent.loop.tools import AgentToolset
from newton.agent.loop.turn import TurnRunner
from newton.agent.services.curation import CurationService
from newton.agent.services.decisions import DecisionService
from newton.agent.services.guardrails import GuardrailService, load_file_guardrails
from newton.agent.services.memories import MemoryService
from newton.agent.services.working_memory import SessionUseRecorder
from newton.agent.session_data.tasks import TaskService
from newton.providers.chat import ChatMessage, ChatReply, RequestOptions, ToolCall
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_curation import upkeep

Played = str | list[ToolCall]
Act = Callable[[], Awaitable[object]]


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("call_1", name, json.dumps(arguments))


class StagedChat(ScriptedChat):
    """Does something before each of its lines, the last of which it says again and again.

    With `end`, a reply does not end after its line: something else happens, such as an error.
    """

    def __init__(self, *lines: str, before: Act | None = None, end: Act | None = None) -> None:
        super().__init__(*lines)
        self.before, self.end = before, end

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        if self.before:
            await self.before()
        self._lines += self._lines if len(self._lines) == 1 else []
        async for piece in super().stream(messages, max_tokens=max_tokens, schema=schema):
            if self.end is None or isinstance(piece, str):
                yield piece
        if self.end:
            await self.end()


class Endless(StagedChat):
    """Says something and then thinks for ever."""

    def __init__(self, line: str = "") -> None:
        super().__init__(line, end=self.think)
        self.thinking = asyncio.Event()

    async def think(self) -> None:
        self.thinking.set()
        await asyncio.Event().wait()


class BrokenChat(StagedChat):
    """Says something and then raises an error: one that no provider declares, unless another is given."""

    def __init__(self, line: str = "", *, error: Exception | None = None) -> None:
        super().__init__(line, end=self.fail)
        self.error = error or RuntimeError("a defect")

    async def fail(self) -> None:
        raise self.error


class Handy(ScriptedChat):
    """Says or calls what it was given, in order; the last again and again."""

    def __init__(self, *played: Played) -> None:
        super().__init__()
        self._played = list(played)
        self.offered: list[list[str]] = []
        self.options = RequestOptions()

    def plays(self, *played: Played) -> None:
        self._played = list(played)

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncIterator[str | ChatReply]:
        self.received.append(messages)
        self.options = options
        self.offered += [[tool.name for tool in options.all_tools]] if options.all_tools else []
        now = self._played.pop(0) if len(self._played) > 1 else self._played[0]
        text, calls = (now, ()) if isinstance(now, str) else ("", tuple(now))
        if text:
            yield text
        yield ChatReply(text=text, model=self.name, input_tokens=5, output_tokens=2, calls=calls)

    @property
    def told(self) -> dict[str, Any]:
        """What came of its last call, as it was told."""
        return json.loads(self.received[-1][-1].text)


def toolbox(mind: Mind) -> AgentToolset:
    scope = mind.scope.at("agent")
    guarding = GuardrailService(scope=scope, file_guardrails=load_file_guardrails(None))
    return AgentToolset(
        memories=MemoryService(scope=scope),
        curation=CurationService(scope=scope),
        decisions=DecisionService(
            scope=scope, gate=mind.gate, chain_heads=mind.chain_heads, evaluate_guardrails=guarding.evaluate
        ),
        tasks=TaskService(scope=scope),
        gate=mind.gate,
        maintenance=upkeep(mind),
        session_use=SessionUseRecorder(scope=scope, capacity=8_000),
        artifacts=ArtifactService(scope=scope),
    ).with_trust(())


def able(mind: Mind, model: Handy) -> TurnRunner:
    """Turns in which the model has our tools."""
    return replace(mind.turns(model, window=64_000), tools=toolbox(mind))
