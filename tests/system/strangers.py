"""Agents that do whatever they can at every door, each with a mark of its own, so that one of another's is noticed
anywhere."""

import asyncio
import itertools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from newton.concurrency import task_group
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.tools.tool_registry import run_tool
from tests.endpoint import Respond, Wire, says
from tests.system.served import Api

MARK = re.compile(r"agentword\d{3}")
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Door = Literal["rest", "openai", "mcp", "events", "export", "inside", "command", "refused"]
HALL: Mapping[Door, int] = {"rest": 14, "openai": 3, "mcp": 5, "export": 1, "inside": 5, "refused": 3}  # how often


class Asked(NamedTuple):
    """What is asked of the API: where, with what, and where in the answer the id is that others may try."""

    way: str
    body: Mapping[str, Any] | None = None
    gives: str | None = None


REST = [
    Asked("POST /v1/memories", {"content": "WORD"}, "memory_id"),
    Asked("POST /v1/memories", {"content": "WORD"}, "memory_id"),
    Asked(
        "POST /v1/decisions",
        {
            "description": "WORD",
            "confidence": 0.5,
            "reasons": [{"kind": "analysis", "text": "WORD"}],
            "alternatives": ["wait"],
        },
        "decision_id",
    ),
    Asked("POST /v1/context", {"input": "what of agentword? WORD", "max_tokens": 500}, "bundle_id"),
    Asked("GET /v1/KIND/ID"),
    Asked("GET /v1/KIND/ID"),
    Asked("POST /v1/recall", {"query": "agentword 7", "limit": 50}),
    Asked("POST /v1/sessions/same-name/messages", {"messages": [{"role": "user", "content": "WORD"}]}),
    Asked("GET /v1/sessions/same-name/view"),
    Asked("POST /v1/tasks", {"goal": "WORD", "session": "same-name"}),
    Asked("GET /v1/tasks"),
    Asked("GET /v1/decisions"),
    Asked("GET /v1/bundles"),
    Asked("POST /v1/memories/ID/confirm"),
    Asked("POST /v1/memories/ID/supersede", {"content": "WORD"}),
    Asked("POST /v1/memories/ID/retract"),
    Asked("DELETE /v1/memories/ID?include_derived=true"),
    Asked("POST /v1/decisions/ID/review", {"outcome": "success"}),
    Asked("POST /v1/bundles/ID/replay"),
    Asked("GET /v1/bundles/ID/explain?item=1"),
    Asked("POST /v1/sessions/same-name/turns", {"input": "From now on say WORD.", "include_context": True}),
    Asked("POST /v1/sessions/same-name/close"),
    Asked("GET /v1/identity/proposals"),
    Asked("POST /v1/identity/proposals/ID/accept"),
]
TOOLS: list[tuple[str, Mapping[str, Any]]] = [
    ("remember", {"content": "WORD"}),
    ("recall", {"query": "agentword 7", "limit": 30}),
    ("context", {"input": "what of agentword? WORD", "budget": 500}),
    ("expand", {"memory_id": "ID"}),
    ("decide", {"description": "WORD", "confidence": 0.5, "reasons": [{"kind": "analysis", "text": "WORD"}]}),
    ("review", {"decision_id": "ID", "outcome": "success"}),
    ("forget", {"memory_id": "ID", "reason": "a trial"}),
]
SHUT: list[tuple[str, Mapping[str, Any] | None]] = [
    ("POST /v1/recall", {"query": "agentword 7"}),
    ("POST /v1/chat/completions", {"messages": [{"role": "user", "content": "agentword"}]}),
    ("POST /mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
    ("GET /v1/events", None),
    ("GET /v1/export", None),
]
COMMANDS = [["recall", "agentword 7"], ["remember", "WORD"], ["context", "what of agentword?"], ["show", "ID"]]


@dataclass(slots=True)
class Street:
    """What all of them see: ids that were made, whose they are, what was answered, and what should not have been."""

    made: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    answered: Counter[Door] = field(default_factory=Counter[Door])
    refused: Counter[int] = field(default_factory=Counter[int])
    faults: list[str] = field(default_factory=list[str])

    def judge(self, door: Door, word: str, told: str, *, about: str, taken: bool = True) -> None:
        """Looks through what was answered; what was refused may name the id that was asked for."""
        self.answered[door] += 1
        foreign = set(MARK.findall(told)) - {word}
        if taken:
            foreign |= {one for one in IDS.findall(told) if self.owners.get(one, word) != word}
        if foreign:
            self.faults.append(f"{door}: {word} was told of {sorted(foreign)} by {about}")


def echo(street: Street) -> Respond:
    """A model that answers with each mark in its prompt, of which there may be one."""

    async def respond(wire: Wire) -> None:
        marks = sorted(set(MARK.findall(json.dumps(wire.body))))
        if len(marks) != 1:
            street.faults.append(f"openai: a model was sent {marks}")
        await says([" and ".join(marks)])(wire)

    return respond


class Patient(httpx2.AsyncHTTPTransport):
    """Sends again what there was no place for, at a random moment of the time that the answer names."""

    def __init__(self, street: Street) -> None:
        super().__init__()
        self.street = street

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        while answer.status_code == 429:
            self.street.refused[429] += 1
            await answer.aclose()
            await asyncio.sleep(int(answer.headers["Retry-After"]) * random.random())
            answer = await super().handle_async_request(request)
        return answer


class Stranger:
    """One agent, which calls at random, often with an id that another was given."""

    def __init__(self, number: int, street: Street, http: httpx2.AsyncClient, *, strange: list[dict[str, str]]) -> None:
        self.name, self.word = f"agent{number}", f"agentword{number:03d}"
        self.street, self.http = street, http
        self.strange = itertools.cycle([*strange[-number - 1 :], *strange[: -number - 1]])
        self.dice = random.Random(number)

    async def live(self, calls: int, minds: AgentRegistry, url: str) -> None:
        """So many calls by all doors, while it listens to its events."""
        async with (
            task_group() as tasks,
            Client(streamable_http_client(f"{url}/mcp?tools=all", http_client=self.http)) as client,
        ):
            tasks.create_task(self._listen())
            doors: Mapping[Door, Callable[[], Awaitable[None]]] = {
                "rest": self._rest,
                "openai": self._chat,
                "mcp": lambda: self._mcp(client),
                "export": self._export,
                "inside": lambda: self._inside(minds),
                "refused": self._refused,
            }
            drawn: list[Door] = self.dice.choices(list(HALL), list(HALL.values()), k=calls - len(HALL))
            for door in (*HALL, *drawn):
                await doors[door]()
            await self.http.post("/v1/sessions", json={"session": "the last"})

    def _filled(self, given: object) -> tuple[Any, str, str]:
        """With a word of its own and an id of anybody's, which is told too."""
        kind, known = self.dice.choice(self.street.made) if self.street.made else ("memories", str(UUID(int=0)))
        words = json.dumps(given).replace("WORD", f"{self.word} {self.dice.randrange(99)}")
        return json.loads(words.replace("KIND", kind).replace("ID", known)), kind, known

    def _own(self, kind: str, known: str) -> None:
        self.street.owners[known] = self.word
        self.street.made.append((kind, known))

    async def _rest(self, asked: Asked | None = None) -> None:
        asked = asked or self.dice.choice(REST)
        (way, body), _, known = self._filled((asked.way, asked.body))
        method, _, where = way.partition(" ")
        answer = await self.http.request(method, where, json=body)
        taken = answer.status_code < 300
        self.street.judge("rest", self.word, answer.text, about=way, taken=taken)
        foreign = "ID" in asked.way and self.street.owners.get(known) != self.word
        if answer.status_code >= 500 or (foreign and answer.status_code != 404):
            self.street.faults.append(f"rest: {way} of {self.street.owners.get(known)} was {answer.status_code}")
        if foreign:
            self.street.refused[answer.status_code] += 1
        if asked.gives and taken:
            self._own(where.rpartition("/")[2].replace("context", "bundles"), answer.json()[asked.gives])

    async def remember(self) -> None:
        await self._rest(REST[0])

    async def read(self) -> None:
        """Reads by an id that somebody was given."""
        await self._rest(Asked("GET /v1/KIND/ID"))

    async def _chat(self) -> None:
        says_ = {"role": "user", "content": f"What of agentword, {self.word} {self.dice.randrange(99)}?"}
        headers = {"X-Newton-Session": "same-name"} if self.dice.random() < 0.5 else {}
        body = {"messages": [says_], "stream": self.dice.random() < 0.5}
        answer = await self.http.post("/v1/chat/completions", json=body, headers={**headers, "X-Newton-Debug": "1"})
        self.street.judge("openai", self.word, answer.text, about="a chat")
        if answer.status_code != 200 or self.word not in answer.text:
            self.street.faults.append(f"openai: {answer.status_code} {answer.text[:200]}")

    async def _mcp(self, client: Client) -> None:
        (name, given), _, known = self._filled(self.dice.choice(TOOLS))
        result = await client.call_tool(name, given)
        told = json.dumps(result.structured_content)
        self.street.judge("mcp", self.word, told, about=name, taken=not result.is_error)
        if known in given.values() and self.street.owners.get(known) != self.word and not result.is_error:
            self.street.faults.append(f"mcp: {name} of another's")

    async def _inside(self, minds: AgentRegistry) -> None:
        """As a command does it, which has the same parts in a process of its own."""
        (name, given), _, _ = self._filled(self.dice.choice(TOOLS))
        told = await run_tool(await minds.get(self.name), name, given)
        text = json.dumps(told.fields, default=str)
        self.street.judge("inside", self.word, text, about=name, taken=not told.is_error)

    async def _export(self) -> None:
        answer = await self.http.get("/v1/export")
        self.street.judge("export", self.word, answer.text, about="export", taken=answer.status_code == 200)

    async def _refused(self) -> None:
        """What nobody may: without a token in force, from a page of another's, in the name of another."""
        headers = dict(next(self.strange))
        due = int(headers.pop("due"))
        way, body = self.dice.choice(SHUT)
        method, _, where = way.partition(" ")
        answer = await self.http.request(method, where, json=body, headers=headers)
        self.street.judge("refused", self.word, answer.text, about=where)
        self.street.refused[answer.status_code] += 1
        if answer.status_code != due:
            self.street.faults.append(f"refused: {where} {headers} was {answer.status_code}, not {due}")

    async def _listen(self) -> None:
        """Hears all that is told of itself, until the last thing it has done."""
        last = False
        async with self.http.stream("GET", "/v1/events", headers={"Last-Event-ID": "0"}, timeout=None) as stream:
            async for line in stream.aiter_lines():
                last = last or "session.created" in line
                if line.startswith("data"):
                    self.street.judge("events", self.word, line, about="events")
                    if last:
                        return

    async def command(self, home: Path) -> None:
        """One command, typed in a process of its own."""
        words, _, known = self._filled(self.dice.choice(COMMANDS))
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "newton", *words, "--agent", self.name, "--json"],
            cwd=home,
            env={
                "NEWTON_DATA_DIR": str(home / "data"),
                "NEWTON_EMBEDDING_PROVIDER": "none",
                "PYTHONPATH": ":".join(sys.path),
            },
            stdout=asyncio.subprocess.PIPE,
        )
        told = (await process.communicate())[0].decode()
        self.street.judge("command", self.word, told, about=" ".join(words))
        if words[0] == "show" and self.street.owners.get(known) != self.word and process.returncode != 2:
            self.street.faults.append(f"command: show of another's ended with {process.returncode}")


async def at_once(api: Api, street: Street, *, agents: int, calls: int, commands: Path | None = None) -> None:
    """So many agents with so many calls each, at once; and each types a command in that folder, two at a time."""
    strange = await api.strange("agent0")
    held = [await api.token(f"agent{number}") for number in range(agents)]
    clients = [
        httpx2.AsyncClient(
            base_url=api.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=None,
            transport=Patient(street),
        )
        for token in held
    ]
    strangers = [Stranger(number, street, http, strange=strange) for number, http in enumerate(clients)]
    minds: AgentRegistry = api.app.state.agents
    typists = asyncio.Semaphore(2)

    async def types(one: Stranger) -> None:
        async with typists:
            if commands:
                await one.command(commands)

    try:
        await strangers[0].remember()
        await strangers[1].read()  # an id of another's, whatever the dice do later
        async with task_group() as tasks:
            for one in strangers:
                tasks.create_task(one.live(calls, minds, api.url))
                tasks.create_task(types(one))
    finally:
        await asyncio.gather(*(http.aclose() for http in clients))
