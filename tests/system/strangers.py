"""Agents that do whatever they can, each with words of its own, so that a word of another's is noticed anywhere."""

import asyncio
import random
import re
from uuid import UUID

import httpx2

from tests.system.served import Api

WORD = re.compile(r"agentword\d+")


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
        answer = await self._call(self.dice.randrange(14), kind, known)
        self.answered += 1
        told = set(WORD.findall(answer.text)) - {self.word}
        reached = owner != self.name and known in answer.text and answer.status_code < 300
        if told or answer.status_code >= 500 or reached:
            self.foreign.append(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {told}")

    async def _call(self, which: int, kind: str, known: str) -> httpx2.Response:
        word, post, get = f"{self.word} {self.dice.randrange(99)}", self.http.post, self.http.get
        match which:
            case 0 | 1:
                return self._kept("memories", "memory_id", await post("/v1/memories", json={"content": word}))
            case 2:
                reasons = [{"kind": "analysis", "text": word}]
                given = {"description": word, "confidence": 0.5, "reasons": reasons, "alternatives": ["wait"]}
                return self._kept("decisions", "decision_id", await post("/v1/decisions", json=given))
            case 3:
                made = await post("/v1/context", json={"input": f"what of agentword? {word}", "tokens": 500})
                return self._kept("bundles", "bundle_id", made)
            case 4:
                return await post("/v1/recall", json={"text": "agentword 7", "limit": 50})
            case 5:
                said = {"messages": [{"role": "user", "content": word}]}
                return await post("/v1/sessions/same-name/messages", json=said)
            case 6:
                return await get("/v1/sessions/same-name/view")
            case 7:
                return await post("/v1/tasks", json={"goal": word, "session": "same-name"})
            case 8:
                return await get(self.dice.choice(["/v1/tasks", "/v1/decisions", "/v1/bundles", "/v1/sessions"]))
            case 9:
                return await post(f"/v1/memories/{known}/{self.dice.choice(['confirm', 'retract'])}")
            case 10:
                return await self.http.delete(f"/v1/memories/{known}", params={"confirm": "forget", "derived": "true"})
            case 11:
                return await post(f"/v1/decisions/{known}/review", json={"outcome": "success"})
            case _:
                return await get(f"/v1/{kind}/{known}")

    def _kept(self, kind: str, name: str, answer: httpx2.Response) -> httpx2.Response:
        if answer.status_code < 300:
            self.ids.append((self.name, kind, answer.json()[name]))
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
