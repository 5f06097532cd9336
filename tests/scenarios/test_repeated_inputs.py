"""The same input again and again, through each entry of a turn, in sessions of each kind."""

import asyncio
import io
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import yaml
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.services.memories import FactDraft
from newton.agent.session_data.tasks import TaskService
from newton.providers.embedding import Embedder
from newton.runtime.cli.talk.ask import ask
from newton.runtime.cli.talk.chat import chat
from tests.scenarios.conftest import Mind, load_minilm, newton, serve_http
from tests.scenarios.handy import StagedChat
from tests.system.served import OPERATOR

ENTRIES = ("turns", "chat_completions", "responses", "mcp", "ask", "chat")
MODES = ("plain", "task", "injection", "filter", "overrides", "frame", "artifact")


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of a reply, and the parts of the turn that failed; an embedder that is not used is not among them."""

    text: str
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeating:
    """An agent with all its interfaces, in this process. `home` has the token for commands."""

    url: str
    home: Path
    http: httpx2.AsyncClient
    mcp: Client

    async def prepare(self, session: str, mode: str, goal: str, fact: str) -> None:
        """Set up a session in which the same input is given several times."""
        await self._post(f"/v1/sessions/{session}/messages", messages=[{"role": "user", "content": goal}])
        match mode:
            case "task":
                await self._post("/v1/tasks", session=session, goal=goal)
            case "injection":
                await self._post(f"/v1/sessions/{session}/injections", text=fact)
            case "artifact":
                await self._post("/v1/artifacts", session=session, name="notes.txt", content=f"{goal}\n{fact}")
            case _:
                return

    async def take(self, entry: str, session: str, mode: str, text: str) -> Answer:
        """Give an input through an entry, with what the mode asks for; return the answer."""
        frame = "task" if mode == "frame" else None
        if mode == "filter":  # a context of the same session that differs from that of the turn
            await self._post("/v1/context", input=text, session=session, kinds=["fact", "exchange"])
        if mode == "overrides":
            await self._post("/v1/context", input=text, session=session, overrides={"weights": {"recency": 0.4}})
        return await getattr(self, f"_take_{entry}")(session, text, frame)

    async def _post(self, path: str, **body: object) -> dict[str, Any]:
        response = await self.http.post(path, json=body)
        assert response.status_code < 300, response.text
        return response.json()

    async def _take_turns(self, session: str, text: str, frame: str | None) -> Answer:
        response = await self.http.post(f"/v1/sessions/{session}/turns", json={"input": text, "frame": frame})
        assert response.status_code == 200, response.text
        (result,) = [one for one in response.text.split("\n\n") if one.startswith("event: result\n")]
        view = json.loads(result.partition("\ndata: ")[2])
        return Answer(view["text"], view["missing"])

    async def _take_chat_completions(self, session: str, text: str, frame: str | None) -> Answer:
        body = {"model": "newton", "messages": [{"role": "user", "content": text}]}
        response = await self.http.post("/v1/chat/completions", json=body, headers={"X-Newton-Session": session})
        assert response.status_code == 200, response.text
        found = response.json()
        return Answer(found["choices"][0]["message"]["content"], found["newton"]["missing"])

    async def _take_responses(self, session: str, text: str, frame: str | None) -> Answer:
        body = {"model": "newton", "input": text}
        response = await self.http.post("/v1/responses", json=body, headers={"X-Newton-Session": session})
        assert response.status_code == 200, response.text
        found = response.json()
        texts = [part["text"] for item in found["output"] for part in item.get("content", ())]
        return Answer("".join(texts), found["newton"]["missing"])

    async def _take_mcp(self, session: str, text: str, frame: str | None) -> Answer:
        arguments = {"input": text, "session": session, **({"frame": frame} if frame else {})}
        context = await self._call("context", arguments)
        noted = await self._call("note_exchange", {"user": text, "assistant": "Done.", "session": session})
        assert noted
        return Answer(context["text"], context.get("missing", {}))

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.mcp.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def _take_ask(self, session: str, text: str, frame: str | None) -> Answer:
        shown = await self._type(partial(ask, text, json=True), session, frame)
        answer = json.loads(shown)
        return Answer(answer["text"], answer["missing"])

    async def _take_chat(self, session: str, text: str, frame: str | None) -> Answer:
        shown = await self._type(chat, session, frame, typed=f"{text}\n")
        return Answer(shown, {line: line for line in shown.splitlines() if "not available" in line})

    async def _type(
        self, command: Callable[..., Awaitable[int]], session: str, frame: str | None, *, typed: str = ""
    ) -> str:
        """Run a command in this process, with the daemon's address and this input; return what it prints."""
        screen, token_file = io.StringIO(), self.home / "operator.token"
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(screen):
            patch.setenv("NEWTON_DATA_DIR", str(self.home))
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
            patch.setattr(sys, "stderr", screen if typed else sys.stderr)
            status = await command(session=session, frame=frame, daemon=self.url, token_file=token_file)
        assert status == 0, screen.getvalue()
        return screen.getvalue()


@asynccontextmanager
async def repeating(mind: Mind, home: Path, embedder: Embedder, facts: Sequence[str]) -> AsyncGenerator[Repeating]:
    """Serve the agent, which knows the facts."""
    own = newton(mind, embedder, StagedChat("I will see to it."))
    for fact in facts:
        await own.memories("test").remember(FactDraft(content=fact))
    await own.maintenance("test").process_pending(limit=None)
    (home / "operator.token").write_text(OPERATOR, encoding="utf-8")
    async with serve_http(own) as http:
        url = str(http.base_url).rstrip("/")
        async with (
            httpx2.AsyncClient(headers=http.headers, timeout=60) as plain,
            Client(streamable_http_client(f"{url}/mcp?tools=all", http_client=plain)) as mcp,
        ):
            yield Repeating(url=url, home=home, http=http, mcp=mcp)


DATA = Path(__file__).parents[1] / "data" / "followups.yaml"
REPEATS = 3
KEY = {"Idempotency-Key": "run-again"}
NOTES = [
    *("The parser drops the last field of a row.", "The tests of the parser take two minutes.", "Ana owns the parser."),
    *("The build runs on the blue machine.", "Omar reviews each change.", "The release is on Thursday."),
    *("The cache is cleared at midnight.", "The log has a line per request.", "The office is in Graz."),
    *("Coffee is in the kitchen.", "The lift is out of order.", "Nina is on holiday."),
]


class Work(NamedTuple):
    """What somebody works on, and what this person says again meanwhile."""

    goal: str
    facts: Sequence[str]
    followups: Sequence[str]


def read_works(path: Path = DATA) -> list[Work]:
    people = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [Work(one["goal"], one["statements"], one["followups"]) for one in people]


@pytest.mark.parametrize("text", ["Fix it.", "Run the tests again.", "Who owns the parser?"])
async def test_an_input_is_repeated_in_a_session_with_a_task(mind: Mind, text: str) -> None:
    own = replace(mind, embedder=load_minilm())
    await own.know(*NOTES)
    session_id = await own.session()
    await TaskService(scope=own.scope).for_session(session_id).push("Mend the parser of rows")
    for _ in range(REPEATS):
        *_, result = [piece async for piece in own.turns(None).run(TurnInput(session_id=session_id, text=text))]
        assert isinstance(result, TurnResult) and result.text and result.missing == {}
        await own.settle()


async def repeat(mind: Mind, home: Path, works: Sequence[Work], modes: Sequence[str], *, repeats: int = REPEATS) -> int:
    """Give each follow-up several times through each entry; return how many answers came. All must be complete."""
    own, answers = replace(mind, embedder=load_minilm()), 0
    async with repeating(own, home, load_minilm(), [*NOTES, *(fact for work in works for fact in work.facts)]) as agent:
        for number, work in enumerate(works):
            for mode, entry in product(modes, ENTRIES):
                session = f"{entry}-{mode}-{number}"
                await agent.prepare(session, mode, work.goal, work.facts[0])
                for text in [text for text in work.followups for _ in range(repeats)]:
                    answer = await agent.take(entry, session, mode, text)
                    assert answer.text and answer.missing == {}, (entry, mode, text, answer)
                    answers += 1
    return answers


async def test_an_input_is_repeated_through_each_entry(mind: Mind, tmp_path: Path) -> None:
    work = Work("Mend the parser of rows", NOTES[:1], ["Run the tests again."])
    assert await repeat(mind, tmp_path, [work], ["task"], repeats=2) == 2 * len(ENTRIES)


@pytest.mark.slow
async def test_an_input_is_given_again_while_it_is_being_answered(mind: Mind, tmp_path: Path) -> None:
    own = replace(mind, embedder=load_minilm())
    async with repeating(own, tmp_path, load_minilm(), NOTES) as agent:
        await agent.prepare("s1", "task", "Mend the parser of rows", NOTES[0])
        taking = [agent.take("turns", "s1", "task", "Run the tests again.") for _ in range(REPEATS)]
        answers = await asyncio.gather(*taking)
        assert [(answer.text, answer.missing) for answer in answers] == [("I will see to it.", {})] * REPEATS
        noted = {"messages": [{"role": "user", "content": "Run the tests again."}]}
        again = [await agent.http.post("/v1/sessions/s1/messages", json=noted, headers=KEY) for _ in range(2)]
        assert [one.status_code for one in again] == [201, 201] and again[0].json() == again[1].json()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_follow_ups_are_repeated_through_each_entry(mind: Mind, tmp_path: Path, mode: str) -> None:
    works = read_works()
    said = sum(len(work.followups) for work in works)
    assert await repeat(mind, tmp_path, works, [mode]) == said * REPEATS * len(ENTRIES)
