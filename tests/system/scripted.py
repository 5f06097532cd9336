"""Newton, which talks with a scripted endpoint: each test says what the model is to answer next."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import openai

from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from newton.runtime.bootstrap import open_newton
from newton.settings import Settings, load
from tests.endpoint import NOTHING_CHANGES, Endpoint, Respond, Wire, endpoint, is_reading, says
from tests.system.daemons import Daemon, daemon
from tests.system.served import OPERATOR, serving


@dataclass(slots=True)
class Talk:
    """Newton, the endpoint behind it, and what that answers next; `reading` if it is asked what new lines change."""

    url: str
    token: str
    behind: Endpoint
    dsn: str
    script: list[Respond]
    usual: list[Respond]
    reading: list[Respond]

    def client(self, token: str | None = None, **headers: str) -> openai.AsyncOpenAI:
        """The client of OpenAI, pointed at Newton."""
        return openai.AsyncOpenAI(
            base_url=f"{self.url}/v1",
            api_key=token or self.token,
            default_headers=headers,
            max_retries=0,
            timeout=60,
            http_client=openai.DefaultAsyncHttpxClient(verify=False),
        )

    async def post(self, path: str, body: object, **headers: str) -> httpx2.Response:
        shown = {"Authorization": f"Bearer {self.token}", **headers}
        async with httpx2.AsyncClient(base_url=self.url, headers=shown, timeout=60, verify=False) as client:
            return await client.post(path, json=body)

    async def get(self, path: str) -> httpx2.Response:
        shown = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(base_url=self.url, headers=shown, timeout=60, verify=False) as client:
            return await client.get(path)

    async def fetch(self, sql: str, *given: object) -> list[asyncpg.Record]:
        """What is in the database, as its owner sees it."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetch(sql, *given)
        finally:
            await connection.close()

    async def lines(self, name: str) -> dict[str, list[str]]:
        """The own lines of the session of that name and of those that went on from it elsewhere."""
        rows = await self.fetch(
            "select s.ref, m.content from dialogue.sessions s join dialogue.messages m using (agent_id, session_id)"
            " where starts_with(s.ref, $1) order by m.position",
            name,
        )
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row["ref"], []).append(row["content"])
        return found

    def plays(self, *responses: Respond) -> None:
        self.script[:] = responses
        self.behind.asked.clear()

    def always(self, respond: Respond) -> None:
        """From now on it answers so."""
        self.usual[:] = [respond]
        self.plays()

    def asked(self, place: int = -1) -> dict[str, Any]:
        """What the model was sent."""
        return self.behind.asked[place]

    def shown(self, place: int = -1) -> Sequence[tuple[str, str | None]]:
        """The same, as roles and words, without the system's and without what was recalled."""
        said = [one for one in self.asked(place)["messages"] if one["role"] != "system"]
        return [(one["role"], one["content"] and one["content"].rpartition(INPUT_HEADER)[2]) for one in said]


@asynccontextmanager
async def _scripted(dsn: str) -> AsyncGenerator[Talk]:
    """Such an endpoint, without anybody yet who asks it."""
    script: list[Respond] = []
    usual, reading = [says(["Fine."])], [says([NOTHING_CHANGES])]

    async def respond(wire: Wire) -> None:
        if is_reading(wire.body):
            behind.asked.pop()
            await reading[0](wire)
        else:
            await (script.pop(0) if script else usual[0])(wire)

    async with endpoint(respond) as behind:
        yield Talk("", "", behind, dsn, script, usual, reading)


@asynccontextmanager
async def talking(home: Path, dsn: str, **env: str) -> AsyncGenerator[tuple[Talk, Daemon]]:
    """A daemon that asks such an endpoint."""
    async with _scripted(dsn) as talk:
        address = {"OPENAI_BASE_URL": talk.behind.url, "OPENAI_MODEL": "scripted"}
        with daemon(home, **{"NEWTON_EMBEDDING_PROVIDER": "none", **address, **env}) as made:
            talk.url, talk.token = made.url, made.token
            yield talk, made


@asynccontextmanager
async def talking_within(home: Path, dsn: str, **settings: object) -> AsyncGenerator[Talk]:
    """The server of a daemon, within the process of the test, which begins in a tenth of the time of a daemon."""
    async with _scripted(dsn) as talk:
        address = {"openai_base_url": talk.behind.url, "openai_model": "scripted"}
        chosen = {"database_url": dsn, "data_dir": home / "data", "embedding_provider": "none", **address, **settings}
        async with newton_served(load(chosen, env={})) as url:
            talk.url, talk.token = url, OPERATOR
            yield talk


@asynccontextmanager
async def newton_served(settings: Settings) -> AsyncGenerator[str]:
    """The address of the server of a daemon with these settings, within this process."""
    async with (
        open_newton(settings, long_running=True) as newton,
        serving(create_app(AgentRegistry(newton), operator_token=OPERATOR)) as url,
    ):
        yield url
