"""What the cells of the matrix have to show: in the result of the client, at the model server and in the memory."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.runtime.tools.tool_registry import TOOLS
from tests.clients.conftest import ClientBench
from tests.clients.matrix import ClientRow
from tests.clients.programs.harness import WEATHER_TEXT, CellTask

# What can go wrong, by case: the HTTP status, and a word that the message has.
STATUSES = {"token": 401, "model": 404, "down": 503}
PHRASES = {
    "token": "token",
    "model": "gpt-9",
    "down": "http://127.0.0.1:9/v1",
    "daemon": "",
    "input": "limit",
    "agent": "nobody",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """A cell that ran: its task, its result, and the servers."""

    row: ClientRow
    task: CellTask
    result: dict[str, Any]
    bench: ClientBench

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What the model server was sent during the cell."""
        return self.bench.models.asked

    async def stored(self) -> str:
        """Return everything that the agent of the cell keeps: memories, sessions and contexts, as JSON."""
        found: list[Any] = []
        async with self.bench.api(self.task.token) as api:
            for path in ("/v1/memories?states=all", "/v1/sessions", "/v1/bundles"):
                answer = await api.get(path)
                assert answer.status_code == 200, answer.text
                found += answer.json()["items"]
        return json.dumps(found)


Check = Callable[[CellOutcome], Awaitable[None]]


async def check_chat(one: CellOutcome) -> None:
    assert one.result["text"].strip() == f"You said: {one.task.say}"
    assert len(one.asked) == 1
    assert one.task.say in await one.stored()


async def check_stream(one: CellOutcome) -> None:
    assert "".join(one.result["chunks"]).strip() == f"You said: {one.task.say}"
    assert len(one.result["chunks"]) > 1
    assert len(one.asked) == 1


async def check_tools(one: CellOutcome) -> None:
    assert one.result["calls"] == [["weather", {"place": "Porto"}]]
    assert one.result["text"].strip() == f"You said: {WEATHER_TEXT}"
    first, second = one.asked
    assert "weather" in one.bench.models.tool_names(first)
    assert [message["role"] for message in second["messages"]][-3:] == ["user", "assistant", "tool"]


async def check_structured(one: CellOutcome) -> None:
    assert one.result["parsed"] == {"drink": "tea", "cups": 4}
    (sent,) = one.asked
    assert one.bench.models.format_of(sent)["properties"].keys() == {"drink", "cups"}


async def check_images(one: CellOutcome) -> None:
    assert one.result["text"].strip() == f"I was shown 1: {one.task.say}"
    (sent,) = one.asked
    parts: list[Any] = [part for message in sent["messages"] for part in message["content"] if isinstance(part, dict)]
    assert [part["image_url"]["url"] for part in parts if part["type"] == "image_url"] == [one.task.image]


async def check_remembers(one: CellOutcome) -> None:
    """The second conversation has no message of the first one, and its context has the fact."""
    assert len(one.asked) == 2
    (message,) = [message for message in one.asked[1]["messages"] if message["role"] != "system"]
    context, _, said = str(message["content"]).rpartition(INPUT_HEADER)
    assert said.strip() == one.task.question
    assert one.task.fact in context
    async with one.bench.api(one.task.token) as api:
        assert len((await api.get("/v1/sessions")).json()["items"]) == 2


async def check_errors(one: CellOutcome) -> None:
    described = one.result
    assert {case: error["class"] for case, error in described.items()} == one.row.errors, described
    for case, error in described.items():
        assert error["status"] in (STATUSES.get(case), None), described
        phrase = one.row.phrases.get(case, PHRASES[case])
        assert error["message"] and phrase in error["message"], described
    assert one.asked == []


async def check_private(one: CellOutcome) -> None:
    assert one.result["text"].strip() == f"You said: {one.task.say}"
    assert len(one.asked) == 1
    stored = await one.stored()
    assert stored == "[]", "something is stored"


OPENAI: Mapping[str, Check] = {
    "chat": check_chat,
    "stream": check_stream,
    "tools": check_tools,
    "structured": check_structured,
    "images": check_images,
    "remembers": check_remembers,
    "errors": check_errors,
    "private": check_private,
}


async def check_context(one: CellOutcome) -> None:
    """The model is sent the context of another session as a system message."""
    assert len(one.asked) == 2
    context = [message["content"] for message in one.asked[1]["messages"] if message["role"] == "system"]
    rest = [message["content"] for message in one.asked[1]["messages"] if message["role"] != "system"]
    assert one.task.fact in str(context) and rest == [one.task.question]


async def check_mcp_tools(one: CellOutcome) -> None:
    assert {"remember", "recall", "context"} <= set(one.result["names"]) <= set(TOOLS), one.result["names"]
    assert not one.result["stored"]["is_error"]
    assert one.task.fact in one.result["found"]["text"]
    assert one.task.fact in await one.stored()


async def check_mcp_structure(one: CellOutcome) -> None:
    found = one.result["found"]
    assert found["structured"] == json.loads(found["text"])
    assert any(item["text"].endswith(one.task.fact) for item in found["structured"]["items"]), found


async def check_mcp_memory(one: CellOutcome) -> None:
    assert one.task.fact in one.result["structured"]["text"]


async def check_hook_tools(one: CellOutcome) -> None:
    denied, done = one.result["denied"], one.result["done"]
    assert denied["answer"]["permissionDecision"] == "deny", denied
    assert "Two people lost work" in denied["answer"]["permissionDecisionReason"]
    assert (done["status"], done["notes"]) == (0, "")
    command = "pytest" if "claude-code" in one.row.args else "cargo test"
    assert command in await one.stored()


async def check_hook_memory(one: CellOutcome) -> None:
    assert one.result["told"] == {"status": 0, "answer": {}, "notes": ""}
    assert one.task.fact in one.result["asked"]["answer"]["additionalContext"]


async def check_hook_errors(one: CellOutcome) -> None:
    for case, shown in one.result.items():
        assert f"exit status {shown['status']}" == one.row.errors[case]
        assert shown["answer"] == {}
        assert len(shown["notes"].splitlines()) == 1 and "newton" in shown["notes"], shown
    assert "newton serve" in one.result["daemon"]["notes"]
    assert "token" in one.result["token"]["notes"]


ADAPTER = {**OPENAI, "remembers": check_context}
MCP = {
    "tools": check_mcp_tools,
    "structured": check_mcp_structure,
    "remembers": check_mcp_memory,
    "errors": check_errors,
}
HOOKS = {"tools": check_hook_tools, "remembers": check_hook_memory, "errors": check_hook_errors}
CHECKS: Mapping[str, Mapping[str, Check]] = {"openai": OPENAI, "adapter": ADAPTER, "mcp": MCP, "hooks": HOOKS}
