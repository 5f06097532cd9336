"""With a model at least what is known without one: learnt at once, in the person's words, and never less."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, get_args

import httpx2
import pytest
from pydantic import BaseModel

from newton.agent.loop.prompt import INPUT_HEADER
from newton.dialogue.messages import Message
from newton.errors import ProviderError
from newton.memory import agents
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.embedding import Embedder
from newton.providers.fakes import HashEmbedder
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.tools.tool_registry import run_tool
from newton.runtime.wiring import AgentServices
from tests.scenarios.conftest import Mind, load_minilm, newton, serve_http
from tests.scenarios.handy import Handy, Played, call

DoorName = Literal["openai", "responses", "turns", "mcp", "chat"]
PAST = re.compile("changed since| Now: ")  # a message, or a fact with the one in its place
SAID = (
    "My sister Anna lives in Graz and works as a baker.",
    "Hm, what could I cook on Sunday?",
    "I am allergic to walnuts, and my car is a green Skoda.",
    "Our landlord is Mr Brandt.",
    "Our landlord is no longer Mr Brandt, it is Mrs Weiss now.",
    "My boss is called Renate. She plays the oboe.",
)
RUBBISH: dict[str, str | None] = {
    "empty": "",
    "refusing": "I'm sorry, but I cannot help with that.",
    "a list": "[]",
    "cut off": '{"title": "Anna", "facts": [{"content": "Anna lives in',
    "no fact": '{"facts": [{"content": ""}, null], "items": [{"op": "end", "ids": ["F1"], "line": 99}]}',
    "inventing": '{"facts": [{"content": "The user lives in Pyongyang."}], "items": [{"op": "add", "text": "x"}]}',
    "failing": None,
}


class Rubbish(Handy):
    """Answers turns, and anything that is to be structured with the same text; None fails."""

    def __init__(self, text: str | None = "", *played: Played) -> None:
        super().__init__(*(played or ("Fine.",)))
        self.text = text

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        if self.text is None:
            raise ProviderError("The model does not answer.", hint="Start it again.")
        yield self.text
        yield ChatReply(text=self.text, model=self.name, input_tokens=5, output_tokens=2)


@dataclass(slots=True)
class Told:
    """An agent behind its API, told over one interface after the other."""

    own: AgentServices
    http: httpx2.AsyncClient
    model: Handy | None

    async def say(self, door: DoorName, session: str, text: str) -> None:
        """Send a message of the person; without a model, over an interface that needs none."""
        if door == "mcp":
            await self.note(session, text, "Fine.")
        elif self.model is None:
            await self.post(f"/v1/sessions/{session}/messages", {"messages": [{"role": "user", "content": text}]})
        elif door == "openai":
            body = {"messages": [{"role": "user", "content": text}]}
            await self.post("/v1/chat/completions", body, **{"X-Newton-Session": session})
        elif door == "responses":
            await self.post("/v1/responses", {"input": text}, **{"X-Newton-Session": session})
        elif door == "turns":
            await self.post(f"/v1/sessions/{session}/turns", {"input": text})
        else:
            agent = LocalAgent(newton=self.own, turn_runner=self.own.turn_runner(self.model))
            assert [piece async for piece in agent.run_turn(session, text)]
            await agent.process_pending()

    async def ask(self, door: DoorName, session: str, text: str) -> str:
        """What the next turn is given of memory."""
        if door == "mcp":
            return str((await run_tool(self.own, "context", {"input": text, "session": session})).fields["text"])
        if self.model is None:
            await self.say(door, session, "Hello there.")  # a context is of a session that exists
            return (await self.post("/v1/context", {"input": text, "session": session})).json()["text"]
        await self.say(door, session, text)
        return self.model.received[-1][-1].text.rpartition(INPUT_HEADER)[0]

    async def note(self, session: str, text: str, reply: str, tools: Sequence[dict[str, Any]] = ()) -> None:
        """Report an exchange, as an MCP host does."""
        said = {"user": text, "assistant": reply, "tools": list(tools), "session": session}
        assert not (await run_tool(self.own, "note_exchange", said)).is_error

    async def post(self, path: str, body: object, **headers: str) -> httpx2.Response:
        answer = await self.http.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer


@asynccontextmanager
async def told(mind: Mind, model: Rubbish | None, embedder: Embedder) -> AsyncGenerator[Told]:
    own = newton(replace(mind, embedder=embedder), embedder, model)
    async with serve_http(own) as http:
        yield Told(own, http, model)


async def close(own: AgentServices) -> None:
    service = own.sessions("http")
    for session in reversed(await service.list_sessions()):
        await service.close(session.session_id)
    await own.maintenance("job extract").learn_if_possible()


async def list_facts(mind: Mind) -> dict[str, tuple[Any, ...]]:
    rows = await mind.fetch(
        "select m.full_text, m.state, m.trust, m.quarantined, m.confirmations, f.subject, f.attribute, f.is_current"
        " from memory.memories as m join heart.facts as f using (agent_id, memory_id) where f.duplicate_of is null"
    )
    return {row["full_text"]: tuple(row)[1:] for row in rows}


async def tell_all(mind: Mind, agent: str, model: Rubbish | None) -> dict[str, tuple[Any, ...]]:
    """The facts of an agent of its own that was told everything, in a session that is closed then."""
    owner = await agents.get_or_create_agent(mind.db, agent, now=mind.clock.now())
    mind = replace(mind, agent_id=owner)
    own = newton(mind, HashEmbedder(), model)
    for text in SAID:
        if model:
            runner = LocalAgent(newton=own, turn_runner=own.turn_runner(model))
            assert [piece async for piece in runner.run_turn("s", text)]
        else:
            await own.sessions("chat").append("s", [Message(role="user", content=text, said_at=own.scope.now())])
        await own.process_written("chat")
    at_once = await list_facts(mind)
    await close(own)
    facts = await list_facts(mind)
    assert at_once.keys() <= facts.keys()
    return facts


@pytest.mark.parametrize("kinds", [list(RUBBISH)[3:], pytest.param(list(RUBBISH), marks=pytest.mark.slow)])
async def test_a_model_that_answers_rubbish_changes_no_fact(mind: Mind, kinds: Sequence[str]) -> None:
    # S002-16, S002-17; tests/scenarios/test_reconciling.py has the others in the ordinary run
    without = await tell_all(mind, "without", None)
    assert len(without) >= 6, without
    for name in kinds:
        facts = await tell_all(mind, name.replace(" ", "-"), Rubbish(RUBBISH[name]))
        assert {text: facts.get(text) for text in without} == without, name
        assert facts.keys() == without.keys() or name == "inventing", (name, facts.keys() ^ without.keys())


@pytest.mark.parametrize(
    ("said", "remembered"),
    [
        ("My neighbour Greta keeps bees.", "My neighbour Greta keeps bees."),
        ("My neighbour Greta keeps bees.", "The neighbour Greta keeps bees"),
        ("My brother Tom drives a taxi in Porto.", "Tom drives a taxi in Porto."),
    ],
)
async def test_a_statement_that_the_model_remembers_too_counts_once(mind: Mind, said: str, remembered: str) -> None:
    # S002-16: re-encountered is said again
    model = Rubbish("")
    async with told(mind, model, HashEmbedder()) as agent:
        model.plays([call("remember", content=remembered)], "Noted.")
        await agent.say("turns", "s", said)
        await close(agent.own)
        facts = await list_facts(mind)
        states = {row[0] for row in facts.values()}
        assert facts and "CONFIRMED" not in states and {row[3] for row in facts.values()} == {0}, facts
        assert facts.keys() == {said} and facts[said][1] == "user", facts
        model.plays("Noted.")
        mind.clock.advance(timedelta(days=1))
        await agent.say("turns", "another", "My neighbour Greta keeps bees.")
        again = (await list_facts(mind))["My neighbour Greta keeps bees."]
        assert again[0] == ("CONFIRMED" if "Greta" in said else "NEW")


LEADERS: dict[DoorName, tuple[str, str, str]] = {
    "openai": ("Omar", "Lena", "pottery workshop"),
    "responses": ("Ida", "Noor", "chamber choir"),
    "turns": ("Pavel", "Mina", "chess club"),
    "mcp": ("Hugo", "Tess", "night shift"),
    "chat": ("Bruno", "Vera", "bike workshop"),
}


@pytest.mark.parametrize(
    ("doors", "has_model"),
    [
        (("openai", "mcp"), True),
        pytest.param(("responses", "turns", "chat"), True, marks=pytest.mark.slow),
        pytest.param(tuple(LEADERS), False, marks=pytest.mark.slow),
    ],
)
async def test_what_is_told_is_known_in_the_next_turn(
    mind: Mind, doors: Sequence[DoorName], *, has_model: bool
) -> None:
    """Also while the context of the session stands, and when the statement replaces another one."""
    # S002-14, S002-16
    async with told(mind, Rubbish("") if has_model else None, load_minilm()) as agent:
        for door in doors:
            old, new, what = LEADERS[door]
            await agent.say("turns", "earlier", f"{old} leads the {what}.")
            assert old in await agent.ask(door, door, f"Who leads the {what}?")
            await agent.say(door, door, f"{new} leads the {what}, not {old}.")
            for session in (door, f"{door}-2"):
                text = await agent.ask(door, session, f"Who leads the {what} now?")
                lines = [line for line in text.splitlines() if line.startswith("- ")]
                current = [line for line in lines if f"{old} leads" in line and not PAST.search(line)]
                if door == "mcp":  # a model reports it, and may not replace what the person told
                    assert text.find(f"{new} leads") in range(text.find(f"{old} leads the")), text
                else:
                    assert not current, (door, session, text)
                    assert f"{new} leads" in text or session == door, text


assert set(LEADERS) == set(get_args(DoorName))
