"""Persons with projects, whose memories have words of their own, and contexts of them through every interface."""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from newton.client import Client
from tests.endpoint import Endpoint
from tests.system.served import Api
from tests.system.typed import ok, typed

SUBJECTS = ("locker code", "landlord", "printer", "favourite tea", "release day", "budget", "door", "reviewer")
MARK = re.compile(r"\b([a-z]+)word\d+\b")
RULE = "Always say {}rule at the end."


class Scope(NamedTuple):
    """A person, or a project of a person. `mark` begins the words of its memories."""

    person: str
    project: str | None
    mark: str


SCOPES = (
    Scope("ana", None, "ana"),
    Scope("ana", "shop", "anashop"),
    Scope("ana", "Blog of Ana", "anablog"),
    Scope("ben", None, "ben"),
    Scope("ben", "shop", "benshop"),
)
Door = Callable[[Scope, str], Awaitable[str]]


@dataclass(kw_only=True)
class Walls:
    """The persons, who are asked for contexts. `faults` are the words that crossed a wall and the rules that lacked."""

    api: Api
    model: Endpoint
    home: Path
    dsn: str
    dice: random.Random = field(default_factory=lambda: random.Random(59))
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    faults: list[str] = field(default_factory=list[str])
    built: Counter[str] = field(default_factory=Counter[str])
    inherited: int = 0
    typing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def client(self, scope: Scope) -> Client:
        return Client(self.api.url, token=self.tokens[scope.person], project=scope.project)

    def headers(self, scope: Scope) -> dict[str, str]:
        return {} if scope.project is None else {"X-Newton-Project": scope.project}

    async def fill(self, memories: int) -> None:
        """Store so many memories, and a rule of each person."""
        for person in dict.fromkeys(scope.person for scope in SCOPES):
            self.tokens[person] = await self.api.token(person)
        for scope in SCOPES:
            async with self.client(scope) as client:
                if scope.project is None:
                    await client.add_line("instruction", RULE.format(scope.person))
                for number in range(memories // len(SCOPES)):
                    subject = SUBJECTS[number % len(SUBJECTS)]
                    await client.remember(f"The {subject} number {number} is {scope.mark}word{number}.")

    def check(self, scope: Scope, door: str, text: str) -> None:
        """Note which words and which rule a context has."""
        seen = set(MARK.findall(text))
        if foreign := seen - {scope.mark, scope.person}:
            self.faults.append(f"{door}: the context of {scope} has words of {sorted(foreign)}")
        rules = set(re.findall(r"\b([a-z]+)rule\b", text))
        if rules != {scope.person}:
            self.faults.append(f"{door}: the context of {scope} has the rules of {sorted(rules)}")
        self.built[door] += 1
        self.inherited += scope.project is not None and scope.person in seen

    async def build(self, contexts: int, *, at_once: int = 4) -> None:
        """Ask for so many contexts, of any scope through any interface."""
        doors: Sequence[Door] = (self.by_http, self.by_client, self.by_mcp, self.by_chat, self.by_command)
        places = asyncio.Semaphore(at_once)

        async def ask(number: int) -> None:
            scope, door = self.dice.choice(SCOPES), doors[number % len(doors)]
            question = f"What is the {self.dice.choice(SUBJECTS)} number {self.dice.randrange(8)}?"
            async with places:
                self.check(scope, door.__name__, await door(scope, question))

        async with asyncio.TaskGroup() as tasks:
            for number in range(contexts):
                tasks.create_task(ask(number))

    async def by_http(self, scope: Scope, question: str) -> str:
        async with self.api.http(self.tokens[scope.person], **self.headers(scope)) as http:
            return (await http.post("/v1/context", json={"input": question})).raise_for_status().json()["text"]

    async def by_client(self, scope: Scope, question: str) -> str:
        async with self.client(scope) as client:
            return (await client.context(question))["text"]

    async def by_mcp(self, scope: Scope, question: str) -> str:
        async with self.client(scope) as client:
            return json.dumps(await client.call_tool("context", {"input": question}))

    async def by_chat(self, scope: Scope, question: str) -> str:
        """Return the prompt that the model is sent; the question has a number by which it is found."""
        tag, body = f"asked{self.dice.randrange(10**9)}", dict[str, Any]()
        body = {"model": "newton", "messages": [{"role": "user", "content": f"{question} {tag}"}]}
        async with self.api.http(self.tokens[scope.person], **self.headers(scope)) as http:
            (await http.post("/v1/chat/completions", json=body, headers={"X-Newton-Remember": "no"})).raise_for_status()
        return next(text for one in self.model.asked if tag in (text := json.dumps(one["messages"])))

    async def by_command(self, scope: Scope, question: str) -> str:
        named = () if scope.project is None else ("--project", scope.project)
        words = ("context", question, "--agent", scope.person, *named)
        async with self.typing:  # a command that runs in this process changes its environment
            return ok(await asyncio.to_thread(typed, self.home, *words, DATABASE_URL=self.dsn))
