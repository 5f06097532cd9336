"""Models whose window is smaller than a setting: every turn is answered, and a window is learnt once."""

import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import asyncpg
import httpx2
import openai
import pytest

from newton.settings import load
from tests.endpoint import endpoint
from tests.narrow_servers import CHARS_PER_TOKEN, Dialect, NarrowServer
from tests.system.scripted import newton_served
from tests.system.served import OPERATOR

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NUMBERED: tuple[Dialect, ...] = ("openai", "anthropic", "vllm", "llama.cpp", "lm studio")  # they name the window
FEW: tuple[Dialect, ...] = ("openai", "ollama")
WORDS = Path("tests/data/unrelated_facts.txt").read_text(encoding="utf-8").split()
MANY = 1_000_000_000
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks something up in the books of the harbour.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


@dataclass(slots=True)
class Speaker:
    """A person, or a program, that talks with one model: by turns, or by OpenAI's protocol, which sends all again."""

    url: str
    model: str
    says: int
    way: str = "turns"
    messages: list[Any] = field(default_factory=list[Any])
    chance: random.Random = field(default_factory=lambda: random.Random(11))
    session: str = field(default_factory=lambda: uuid4().hex)

    def draw(self) -> str:
        text = ""
        while len(text) < self.says:
            text += f"{self.chance.choice(WORDS)} "
        return f"{text.strip()}?"

    async def speak(self, **more: Any) -> str:
        """The reply to the next input. Raises an error unless the model gave it."""
        return await (self.take_turn() if self.way == "turns" else self.chat(**more))

    async def take_turn(self) -> str:
        headers = {"Authorization": f"Bearer {OPERATOR}"}
        body = {"input": self.draw(), "model": self.model}
        async with httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60, verify=False) as client:
            response = await client.post(f"/v1/sessions/{self.session}/turns", json=body)
        assert response.status_code == 200, response.text
        events = [part.split("\ndata: ", 1) for part in response.text.split("\n\n") if part.startswith("event:")]
        (name, data), *_ = reversed(events)
        assert name == "event: result", response.text
        result = json.loads(data)
        assert not result["degraded"], result
        return result["text"]

    async def chat(self, *, max_tokens: int | None = None) -> str:
        self.messages.append({"role": "user", "content": self.draw()})
        async with openai.AsyncOpenAI(
            base_url=f"{self.url}/v1",
            api_key=OPERATOR,
            default_headers={"X-Newton-Session": self.session},
            max_retries=0,
            timeout=60,
            http_client=openai.DefaultAsyncHttpxClient(verify=False),
        ) as client:
            while True:
                message = await self.complete(client, max_tokens)
                self.messages.append(message)
                for call in message.get("tool_calls", ()):
                    found = {"role": "tool", "tool_call_id": call["id"], "content": self.draw()}
                    self.messages.append(found)
                if not message.get("tool_calls"):
                    return message["content"]

    async def complete(self, client: openai.AsyncOpenAI, max_tokens: int | None) -> Any:
        create: Any = client.chat.completions.create
        fields: dict[str, Any] = {"model": self.model, "messages": self.messages}
        fields |= {"tools": [TOOL]} if "tools" in self.way else {}
        fields |= {"max_tokens": max_tokens} if max_tokens else {}
        if "stream" not in self.way:
            return (await create(**fields)).choices[0].message.model_dump(exclude_none=True)
        text, calls = "", dict[int, dict[str, str]]()
        async for part in await create(**fields, stream=True):
            for choice in part.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or ():
                    one = calls.setdefault(call.index, {"id": call.id, "name": call.function.name, "arguments": ""})
                    one["arguments"] += call.function.arguments or ""
        made = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in calls.values()
        ]
        return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


@asynccontextmanager
async def narrow(
    home: Path, dsn: str, servers: Sequence[NarrowServer], **settings: object
) -> AsyncGenerator[tuple[str, dict[str, NarrowServer]]]:
    """Newton with a table of `[models]` for each server: its address, and the servers by their names."""
    async with AsyncExitStack() as stack:
        tables: dict[str, object] = {}
        prefix = f"s{uuid4().hex[:8]}"  # the usage of a model is stored under its name
        for number, server in enumerate(servers):
            made = await stack.enter_async_context(endpoint(server.respond, lists=True))
            provider = "anthropic" if server.dialect == "anthropic" else "openai"
            tables[f"{prefix}-{number}"] = {"provider": provider, "base_url": made.url, "model": "m"}
        chosen = {
            "database_url": dsn,
            "data_dir": home,
            "embedding_provider": "none",
            "llm_tokens_per_day": MANY,  # the tests of this file share a database, and so a day
            "default_model": f"{prefix}-0",
            **settings,
        }
        url = await stack.enter_async_context(newton_served(load({**chosen, "models": tables}, env={})))
        yield url, dict(zip(tables, servers, strict=True))


def learnt(home: Path) -> list[int]:
    found = json.loads((home / "model_windows.json").read_text(encoding="utf-8"))
    return [tokens for tokens, _ in found.values()]


WAYS = ("turns", "chat", "chat, stream", "chat, tools", "chat, stream, tools")


@pytest.mark.parametrize("dialects", [FEW, pytest.param(DIALECTS, marks=pytest.mark.slow)], ids=["few", "all"])
async def test_a_window_is_learnt_once_and_no_turn_is_lost(
    tmp_path: Path, behind: str, dialects: Sequence[Dialect]
) -> None:
    servers = [NarrowServer(dialect, 4_096, says=1_500, tool_turns=3) for dialect in dialects]
    async with narrow(tmp_path, behind, servers) as (url, named):
        for number, (name, server) in enumerate(named.items()):
            speaker = Speaker(url, name, says=3_000, way=WAYS[number % len(WAYS)])
            for _ in range(3):
                assert (await speaker.speak()).startswith("Reply")
            assert server.refused == 1, server
    assert learnt(tmp_path).count(4_096) == len({*dialects} & {*NUMBERED})
    assert all(2_048 <= tokens <= 4_600 for tokens in learnt(tmp_path)), learnt(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("dialects", [NUMBERED[1:2], pytest.param(NUMBERED[2:], marks=pytest.mark.slow)])
async def test_a_window_that_is_told_is_kept_to(tmp_path: Path, behind: str, dialects: Sequence[Dialect]) -> None:
    servers = [NarrowServer(dialect, 6_000, says=1_500, reports=6_000) for dialect in dialects]
    async with narrow(tmp_path, behind, servers) as (url, named):
        for name, server in named.items():
            speaker = Speaker(url, name, says=4_000, way="chat, stream, tools")
            for _ in range(3):
                assert (await speaker.speak()).startswith("Reply")
            assert server.refused == 0 and server.longest > 1_900, server
    assert not (tmp_path / "model_windows.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("stated", [{"reports": 32_768}, {"window_tokens": 20_000}])
async def test_a_window_is_learnt_though_a_larger_one_is_stated(tmp_path: Path, behind: str, stated: Any) -> None:
    server = NarrowServer("vllm", 4_096, says=1_500, **{name: stated[name] for name in stated if name == "reports"})
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(endpoint(server.respond, lists=True))
        table, model = {"base_url": made.url, "model": "m"}, f"s{uuid4().hex[:8]}"
        for _ in range(2):  # a restart forgets nothing
            settings = {
                "database_url": behind,
                "data_dir": tmp_path,
                "embedding_provider": "none",
                "llm_tokens_per_day": MANY,
                "models": {model: table},
            }
            settings |= {name: stated[name] for name in stated if name == "window_tokens"}
            async with newton_served(load(settings, env={})) as url:
                speaker = Speaker(url, model, says=4_500)
                for _ in range(2):
                    assert (await speaker.speak()).startswith("Reply")
                async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {OPERATOR}"}) as client:
                    listed = (await client.get("/v1/models")).json()["data"]
                (one,) = [one for one in listed if one["id"] == "newton"]
                assert (one["context_window"], one["context_window_source"]) == (4_096, "refusal")
    assert server.refused == 1


@pytest.mark.slow
async def test_a_smaller_window_that_is_set_is_kept_to(tmp_path: Path, behind: str) -> None:
    server = NarrowServer("llama.cpp", 16_384, says=1_500, reports=16_384)
    async with narrow(tmp_path, behind, [server], window_tokens=5_000) as (url, (name, *_)):
        speaker = Speaker(url, name, says=2_500, way="chat, stream")
        for _ in range(4):
            assert (await speaker.speak()).startswith("Reply")
    assert 2_000 < server.longest < 5_000


@pytest.mark.slow
async def test_a_limit_of_the_reply_fits_into_the_window(tmp_path: Path, behind: str) -> None:
    server = NarrowServer("openai", 4_096, says=1_000)
    async with narrow(tmp_path, behind, [server]) as (url, (name, *_)):
        speaker = Speaker(url, name, says=1_500, way="chat")
        for _ in range(4):
            assert (await speaker.speak(max_tokens=8_000)).startswith("Reply")
    assert server.refused == 1 and server.limits[0] == 8_000
    assert all(1_000 < (limit or 0) < 4_096 for limit in server.limits[1:])


async def test_instructions_that_fit_no_window_are_an_error_and_nothing_is_stored(tmp_path: Path, behind: str) -> None:
    server = NarrowServer("vllm", 4_096, reports=4_096)
    async with narrow(tmp_path, behind, [server]) as (url, (name, *_)):
        speaker = Speaker(url, name, says=100, way="chat")
        speaker.messages = [{"role": "system", "content": "Obey the rules of the harbour. " * 900}]
        with pytest.raises(openai.BadRequestError) as refused:
            await speaker.speak()
        assert refused.value.code == "context_length_exceeded"
        assert f"context window of {name}/m (4,096 tokens)" in refused.value.message
        assert "a larger context window" in refused.value.message
        connection = await asyncpg.connect(behind)
        sql = "select count(*) from dialogue.messages join dialogue.sessions s using (session_id)"
        sql += " where starts_with(s.ref, $1)"
        assert await connection.fetchval(sql, speaker.session) == 0
        await connection.close()
        speaker.messages = [{"role": "system", "content": "Obey."}]
        assert (await speaker.speak()).startswith("Reply")


@pytest.mark.slow
async def test_tools_are_offered_as_far_as_they_fit(tmp_path: Path, behind: str) -> None:
    servers = [NarrowServer("vllm", window, reports=window) for window in (2_048, 4_096, 12_000, 20_000, 64_000)]
    async with narrow(tmp_path, behind, servers) as (url, named):
        for name in named:
            assert (await Speaker(url, name, says=100).speak()).startswith("Reply")
    offered = [set(server.tools[0]) for server in servers]
    assert offered[0] <= {"recall"}
    assert "recall" in offered[1] and offered[1] <= offered[2] == offered[3] == offered[4]


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("window", [4_096, 6_000, 8_192, 16_384, 32_768])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_sixty_turns_are_answered_within_each_window(
    tmp_path: Path, behind: str, dialect: Dialect, window: int
) -> None:
    size = int(window * CHARS_PER_TOKEN / 40)  # of each message: the window is full after some twenty turns
    server, way = NarrowServer(dialect, window, says=size, tool_turns=5), WAYS[(window + len(dialect)) % len(WAYS)]
    async with narrow(tmp_path, behind, [server], llm_tokens_per_day=10**9) as (url, (name, *_)):
        speaker = Speaker(url, name, says=size, way=way)
        for _ in range(60):
            assert (await speaker.speak()).startswith("Reply")
    assert server.refused == 1, way
    assert server.longest > 0.6 * window
    if "no number" in dialect:  # a guess is not written
        assert not (tmp_path / "model_windows.json").exists()
        return
    (tokens,) = learnt(tmp_path)
    assert tokens == window or (dialect not in NUMBERED and 0.6 * window < tokens < 1.1 * window)
