"""Many users behind one token, their turns interleaved: no word of one reaches the model for another."""

import asyncio
import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import pytest

from newton.db.pool import Database
from tests.endpoint import Wire, endpoint, says
from tests.system.served import served

USERS, TURNS, AT_ONCE = 20, 600, 4
MARK = re.compile(r"\buser(\d\d)-word\d+\b")
SUBJECTS = ("locker code", "dog", "landlord", "favourite tea", "doctor", "train", "password hint", "street")


@dataclass
class Helpdesk:
    """The model behind it, which notes whose words it is sent, and the users, who note whose words they are told."""

    dice: random.Random = field(default_factory=lambda: random.Random(20))
    faults: list[str] = field(default_factory=list[str])
    recalled: int = 0

    async def respond(self, wire: Wire) -> None:
        marks = MARK.findall(json.dumps(wire.body["messages"]))
        if len(set(marks)) > 1:
            self.faults.append(f"a model was sent words of the users {sorted(set(marks))}")
        self.recalled += len(marks) > 1
        await says([f"Noted for user{marks[0]}-word0." if marks else "Noted."])(wire)

    async def take_turn(self, client: openai.AsyncOpenAI, number: int) -> None:
        user, subject = self.dice.randrange(USERS), self.dice.choice(SUBJECTS)
        word = f"user{user:02}-word{number}"
        text = self.dice.choice((f"My {subject} is {word}.", f"What is my {subject}? I am {word}.", f"Note {word}."))
        header: dict[str, Any] = {"extra_headers": {"X-Newton-User": f"user {user}"}}
        named: dict[str, Any] = header if self.dice.random() < 0.5 else {"user": f"user {user}"}
        if self.dice.random() < 0.3:
            respond: Any = client.responses.create
            answer = (await respond(model="newton", input=text, **named)).output_text
        else:
            create: Any = client.chat.completions.create
            messages = [{"role": "user", "content": text}]
            answer = (await create(model="newton", messages=messages, **named)).choices[0].message.content
        if set(MARK.findall(answer)) - {f"{user:02}"}:
            self.faults.append(f"user {user} was told {answer}")


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_twenty_users_of_one_token_see_nothing_of_each_other(db: Database, tmp_path: Path) -> None:
    desk, places = Helpdesk(), asyncio.Semaphore(AT_ONCE)
    async with (
        endpoint(desk.respond) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        token = await api.token("helpdesk", "write", users="per_user")
        client = openai.AsyncOpenAI(base_url=f"{api.url}/v1", api_key=token, max_retries=5, timeout=None)

        async def take_turn(number: int) -> None:
            async with places:
                await desk.take_turn(client, number)

        async with client, asyncio.TaskGroup() as tasks:
            for number in range(TURNS):
                tasks.create_task(take_turn(number))
    assert desk.faults == []
    assert desk.recalled > TURNS / 4, "memory must have been used, or the test shows nothing"
    async with db.worker_transaction() as tx:
        assert await tx.fetchval("select count(*) from runtime.agents where parent_agent_id is not null") == USERS
