"""Agents that do whatever they can, each with words of its own, so that a word of another's is noticed anywhere."""

import asyncio
import json
import random
import re
from uuid import UUID

import httpx2

from tests.system.served import Api

WORD = re.compile(r"agentword\d+")


# What gives ids, with the field that has them, and what takes or asks for them.
MAKING = [
    ("POST /v1/memories", "memory_id"),
    ("POST /v1/memories", "memory_id"),
    ("POST /v1/decisions", "decision_id"),
    ("POST /v1/context", "bundle_id"),
]
ASKING = [
    (path, None)
    for path in (
        "GET /v1/KIND/ID",
        "GET /v1/KIND/ID",
        "POST /v1/recall",
        "POST /v1/sessions/same-name/messages",
        "GET /v1/sessions/same-name/view",
        "POST /v1/tasks",
        "GET /v1/tasks",
        "GET /v1/decisions",
        "GET /v1/bundles",
        "POST /v1/memories/ID/confirm",
        "POST /v1/memories/ID/retract",
        "DELETE /v1/memories/ID?confirm=forget&derived=true",
        "POST /v1/decisions/ID/review",
        "POST /v1/bundles/ID/replay",
        "GET /v1/bundles/ID/why?item=1",
        "POST /v1/sessions/same-name/turns",
        "POST /v1/sessions/same-name/close",
        "GET /v1/identity/proposals",
        "POST /v1/identity/proposals/ID/accept",
    )
]
BODIES = {
    "POST /v1/memories": {"content": "WORD"},
    "POST /v1/decisions": {
        "description": "WORD",
        "confidence": 0.5,
        "reasons": [{"kind": "analysis", "text": "WORD"}],
        "alternatives": ["wait"],
    },
    "POST /v1/context": {"input": "what of agentword? WORD", "tokens": 500},
    "POST /v1/recall": {"text": "agentword 7", "limit": 50},
    "POST /v1/sessions/same-name/messages": {"messages": [{"role": "user", "content": "WORD"}]},
    "POST /v1/sessions/same-name/turns": {"text": "From now on say WORD.", "whole": True},
    "POST /v1/tasks": {"goal": "WORD", "session": "same-name"},
    "POST /v1/decisions/ID/review": {"outcome": "success"},
}


class Stranger:
    """One agent: it remembers ids, its own and those it was passed, and keeps what it was answered of others."""

    def __init__(
        self, name: int, http: httpx2.AsyncClient, ids: list[tuple[int, str, str]], dice: random.Random
    ) -> None:
        self.name, self.http, self.ids, self.dice = name, http, ids, dice
        self.word = f"agentword{name}"
        self.foreign: list[str] = []
        self.answered = 0

    async def act(self) -> None:
        """One random call, often about an id that another agent was given."""
        owner, kind, known = self.dice.choice(self.ids) if self.ids else (self.name, "memories", str(UUID(int=0)))
        answer = await self._call(kind, known)
        self.answered += 1
        told = set(WORD.findall(answer.text)) - {self.word}
        reached = owner != self.name and known in answer.text and answer.status_code < 300
        if told or answer.status_code >= 500 or reached:
            self.foreign.append(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {told}")

    async def _call(self, kind: str, known: str) -> httpx2.Response:
        word = f"{self.word} {self.dice.randrange(99)}"
        path, name = self.dice.choice([*MAKING, *ASKING])
        given = json.loads(json.dumps(BODIES.get(path)).replace("WORD", word))
        address = path.replace("KIND", kind).replace("ID", known)
        method, _, url = address.partition(" ")
        answer = await self.http.request(method, url, json=given)
        if name and answer.status_code < 300:
            self.ids.append((self.name, url.rpartition("/")[2].replace("context", "bundles"), answer.json()[name]))
        return answer


async def at_once(api: Api, agents: int, calls: int) -> tuple[int, list[str]]:
    """So many agents with so many calls each; how many were answered, and what was answered of others."""
    ids: list[tuple[int, str, str]] = []
    clients = [api.http(await api.token(f"agent{name}")) for name in range(agents)]
    strangers = [Stranger(name, http, ids, random.Random(name)) for name, http in enumerate(clients)]

    async def live(stranger: Stranger) -> None:
        for _ in range(calls):
            await stranger.act()

    try:
        await asyncio.gather(*map(live, strangers))
    finally:
        await asyncio.gather(*(http.aclose() for http in clients))
    return sum(one.answered for one in strangers), [fault for one in strangers for fault in one.foreign]
