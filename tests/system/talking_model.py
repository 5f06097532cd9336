"""A scripted model behind the chat in a terminal: it answers each question by the words in it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from newton.agent.prompting.memory_delta import INPUT_HEADER
from tests.endpoint import Endpoint, Respond, Wire, chunk, endpoint, hangs, says


def words_of(message: Mapping[str, Any]) -> str:
    """The words of a message without the context before them."""
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(parts).rpartition(INPUT_HEADER)[2].strip()


@dataclass(slots=True)
class TalkingModel:
    """`replies` are the responses to a turn by a part of its question, one for each round of tools.

    `usual` answers any other question, and `background` what is no turn: summaries, and what is learnt from sessions.
    """

    replies: dict[str, list[Respond]] = field(default_factory=dict[str, list[Respond]])
    usual: Respond = field(default_factory=lambda: says(["Fine."]))
    background: Respond = field(default_factory=lambda: says(['{"items": []}']))
    behind: Endpoint = field(default_factory=Endpoint)

    def answer(self, question: str, *responses: Respond) -> None:
        self.replies[question] = list(responses)

    async def respond(self, wire: Wire) -> None:
        if not wire.body.get("tools"):
            await self.background(wire)
            return
        messages = wire.body["messages"]
        asked = [words_of(one) for one in messages if one["role"] == "user"][-1]
        # a question that was stopped is sent on before the next one: the last words count
        last = max(self.replies, key=asked.rfind, default="")
        responses = self.replies[last] if last and last in asked else [self.usual]
        await (responses.pop(0) if len(responses) > 1 else responses[0])(wire)

    @property
    def settings(self) -> dict[str, str]:
        return {"OPENAI_BASE_URL": self.behind.url, "OPENAI_MODEL": "scripted"}

    @property
    def turns(self) -> list[Any]:
        """The requests of turns."""
        return [body for body in self.behind.asked if body.get("tools")]


@asynccontextmanager
async def talking_model() -> AsyncGenerator[TalkingModel]:
    model = TalkingModel()
    async with endpoint(model.respond) as model.behind:
        yield model


def types(*words: str, pause: float = 0.02) -> Respond:
    """A reply whose words come one after the other."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        for word in words:
            delta = {"content": f"{word} "}
            await wire.event(chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
            await asyncio.sleep(pause)
        await wire.event(chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        await wire.event("[DONE]")

    return respond


def begins(*words: str) -> Respond:
    """A reply that begins and does not end."""

    async def respond(wire: Wire) -> None:
        await types(*words, pause=0)(EndlessWire(wire.path, wire.body, wire.writer))
        await hangs(wire)

    return respond


class EndlessWire(Wire):
    """A wire that never says that a reply is complete."""

    async def event(self, data: object) -> None:
        if data != "[DONE]" and '"stop"' not in json.dumps(data):
            await Wire.event(self, data)
