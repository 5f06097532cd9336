"""Sessions over HTTP, MCP, the client and the command line: what is put into them, their statistics and strategies."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client as McpClient

from newton.client import ApiError
from tests.system.served import Api
from tests.system.test_mcp import refused, speaking, told
from tests.system.typed import ok, typed

RED = "The lighthouse is painted red."
OUTPUT = "\n".join(f"row {n}: the value of the cell is {n * 7}" for n in range(80))


@pytest.fixture
async def ana(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with api.http(await api.token("ana")) as client:
        yield client


def work(turns: int) -> list[dict[str, Any]]:
    """Turns of work with a tool, whose outputs are long."""
    lines: list[dict[str, Any]] = []
    for n in range(turns):
        call = {"id": f"c{n}", "name": "read_file", "arguments": json.dumps({"path": f"part{n}.txt"})}
        lines += [
            {"role": "user", "content": f"Read part {n} for Mira Berg."},
            {"role": "assistant", "content": "", "calls": [call]},
            {"role": "tool", "content": OUTPUT, "answers": f"c{n}", "name": "read_file"},
            {"role": "assistant", "content": f"Part {n} has eighty rows."},
        ]
    return lines


async def test_a_memory_and_a_text_are_put_into_a_session_and_taken_out(ana: httpx2.AsyncClient) -> None:
    # S001-4
    red = (await ana.post("/v1/memories", json={"content": RED})).json()["memory_id"]
    where = "/v1/sessions/plan%2Fa/injections"
    made = await ana.post(where, json={"memory_id": red[-8:]})
    assert made.status_code == 201 and made.json()["memory_id"] == red and made.json()["type"] == "memory"
    text = (await ana.post(where, json={"text": "Answer in French."})).json()
    listed = (await ana.get(where)).json()["items"]
    assert [one.pop("text") for one in listed] == [RED, "Answer in French."] and listed == [made.json(), text]
    asked = {"input": "What is for dinner?", "session": "plan/a"}
    context = (await ana.post("/v1/context", json=asked)).json()
    assert "- Answer in French." in context["text"]
    assert [(item["memory_id"], item["source"]) for item in context["items"]] == [(red, "injected")]
    assert (await ana.delete(f"{where}/{red}")).json()["injection_id"] == made.json()["injection_id"]
    assert (await ana.delete(f"{where}/{text['injection_id']}")).status_code == 200
    assert (await ana.delete(f"{where}/{text['injection_id']}")).status_code == 404
    assert "French" not in (await ana.post("/v1/context", json=asked)).json()["text"]
    for body in ({}, {"text": "x", "memory_id": red}, {"text": " "}, {"memory_id": "zz"}, {"texts": "x"}):
        assert (await ana.post(where, json=body)).status_code == 422, body
    await ana.post("/v1/sessions/other/messages", json={"messages": [{"role": "user", "content": "The key is blue."}]})
    await ana.post("/v1/sessions/plan%2Fa/messages", json={"messages": [{"role": "user", "content": "Hello."}]})
    shown = await ana.post(where, json={"messages": {"session": "other", "first": 0, "last": 0}})
    assert (shown.json()["type"], shown.json()["session"], shown.json()["last"]) == ("messages", "other", 0)
    assert "The key is blue." in (await ana.get("/v1/sessions/plan%2Fa/view")).text
    assert (await ana.delete(f"{where}/{shown.json()['injection_id']}")).status_code == 200
    assert "The key is blue." not in (await ana.get("/v1/sessions/plan%2Fa/view")).text


async def test_the_statistics_and_entities_of_a_session_are_shown(api: Api, ana: httpx2.AsyncClient) -> None:
    # S003-20, S003-1
    await ana.post("/v1/sessions/work/messages", json={"messages": work(6)})
    await ana.post("/v1/sessions/work/injections", json={"text": "Answer in French."})
    await ana.post("/v1/context", json={"input": "What has part 3?", "session": "work"})
    before = (await ana.get("/v1/sessions/work/stats")).json()
    assert before["messages"] == 24 and before["masked"] == {"messages": 0, "tokens_saved": 0}
    assert before["parts"]["tool_calls"]["messages"] == 12 and before["parts"]["user"]["messages"] == 6
    assert before["view_tokens"] == sum(part["tokens"] for part in before["parts"].values()) == before["log_tokens"]
    assert before["injected_tokens"] > 0 and before["context"]["layers"]["additional"] >= before["injected_tokens"]
    limit = int(before["log_tokens"] * 1.1)
    compacted = await ana.post(
        "/v1/sessions/work/compact", json={"max_tokens": limit, "strategy": "mask_outputs(share=0.5, turns=2)"}
    )
    assert compacted.status_code == 200, compacted.text
    after = (await ana.get("/v1/sessions/work/stats")).json()
    assert after["masked"]["messages"] == after["parts"]["masked"]["messages"] == 4
    assert after["masked"]["tokens_saved"] > 0 and after["log_tokens"] == before["log_tokens"]
    assert [(one["kind"], one["in_use"]) for one in after["compactions"]] == [("mask", 4)]
    assert [one["strategy"] for one in after["runs"]] == ["mask_outputs"]
    (mira,) = [
        one for one in (await ana.get("/v1/sessions/work/entities")).json()["items"] if one["name"] == "Mira Berg"
    ]
    assert mira["mentions"] == 6
    assert (await ana.get("/v1/sessions/nowhere/stats")).status_code == 404
    async with api.client(await api.token("ana")) as client:
        assert await client.session_stats("work") == (await ana.get("/v1/sessions/work/stats")).json()
        assert [one["name"] for one in (await client.session_entities("work", limit=1))["items"]] == ["Mira Berg"]


async def test_a_strategy_holds_for_one_request(ana: httpx2.AsyncClient) -> None:
    # S003-14, S003-F2
    await ana.post("/v1/sessions/work/messages", json={"messages": work(6)})
    whole = (await ana.get("/v1/sessions/work/view")).json()
    limit = {"max_tokens": int(whole["tokens"] * 1.1)}
    masked = (await ana.get("/v1/sessions/work/view", params={**limit, "strategy": "mask_outputs(share=0.5)"})).json()
    kept = (await ana.get("/v1/sessions/work/view", params={**limit, "strategy": "none"})).json()
    assert masked["tokens"] < kept["tokens"] == whole["tokens"]
    assert (await ana.get("/v1/sessions/work/compactions")).json()["items"] == [], "a look stores nothing"
    wrong = await ana.get("/v1/sessions/work/view", params={"strategy": "mask_outputs(shares=1)"})
    assert wrong.status_code == 422 and "not a valid setting of mask_outputs" in wrong.text
    turn = await ana.post("/v1/sessions/work/turns", json={"input": "And?", "strategy": "nothing"})
    assert turn.status_code == 422 and "not a compaction strategy" in turn.text
    assert (await ana.post("/v1/sessions/work/turns", json={"input": "And?", "strategy": "none"})).status_code == 200
    body = {"model": "newton", "messages": [{"role": "user", "content": "And?"}]}
    wrong = await ana.post("/v1/chat/completions", json=body, headers={"X-Newton-Strategy": "nothing"})
    assert wrong.status_code == 400 and "not a compaction strategy" in wrong.text


# Strategies that are also refused as the setting `compaction`, and a part of the reason.
NEVER_RUNS = pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        ("threshold(share=2)", "threshold(share=2) never fires"),
        ("mask_outputs(share=1.5), threshold", "mask_outputs(share=1.5) never fires"),
        ("threshold(share=0.5, target=0.5)", "never ends"),
        ("threshold(target=0.9)", "never ends"),
        ("goal_batch, goal_merge", "goal_batch never fires alone"),
        ("threshold, goal_batch(fewest=9)", "never fires: a batch has too few turns"),
        ("threshold, goal_merge(share=0.5)", "one summary may fill the conversation"),
    ],
)


@NEVER_RUNS
async def test_a_request_with_a_strategy_that_never_runs_is_refused(
    ana: httpx2.AsyncClient, strategy: str, reason: str
) -> None:
    # S003-14
    await ana.post("/v1/sessions/work/messages", json={"messages": work(1)})
    body = {"model": "newton", "messages": [{"role": "user", "content": "And?"}]}
    answers = [
        await ana.post("/v1/sessions/work/compact", json={"strategy": strategy}),
        await ana.get("/v1/sessions/work/view", params={"strategy": strategy}),
        await ana.post("/v1/sessions/work/turns", json={"input": "And?", "strategy": strategy}),
        await ana.post("/v1/chat/completions", json=body, headers={"X-Newton-Strategy": strategy}),
    ]
    assert [answer.status_code for answer in answers] == [422, 422, 422, 400], [answer.text for answer in answers]
    assert all(reason in answer.text for answer in answers)


@NEVER_RUNS
def test_a_command_with_a_strategy_that_never_runs_is_refused(home: Path, strategy: str, reason: str) -> None:
    # S003-14
    for words in (["sessions", "compact", "work"], ["sessions", "view", "work"], ["ask", "Hello"], ["chat"]):
        done = typed(home, *words, "--strategy", strategy)
        assert done.returncode == 2 and reason in done.stderr, done
    refused = typed(home, "sessions", "list", NEWTON_COMPACTION=strategy)
    assert refused.returncode != 0 and reason in refused.stderr, refused


async def test_a_context_is_limited_to_a_task_over_http(api: Api, ana: httpx2.AsyncClient) -> None:
    # S001-5, S001-37
    async with api.client(await api.token("ana")) as client:
        for goal, number in (("Repair the boat", "forty"), ("Repair the house", "ninety")):
            await client.push_task(goal, session="repairs")
            line: Any = {"role": "user", "content": f"The lock there is number {number}."}
            await client.append_messages("repairs", [line])
            await client.block_task("Mira has the key", session="repairs")
        assert (await client.resume_task(2, session="repairs"))["current_number"] == 2
        asked: dict[str, Any] = {"input": "What is the number of the lock?", "session": "repairs"}
        free = await client.context(**asked)
        assert "forty" in free["text"] and "ninety" in free["text"]
        assert (
            free["task"] | {"items": 1} == {"number": 2, "memories": "preferred", "items": 1} and free["task"]["items"]
        )
        for task, number in (("current", "ninety"), (1, "forty")):
            limited = await client.context(**asked, task=task)
            assert {item["text"].rpartition(" ")[2] for item in limited["items"]} == {f"{number}."}
            assert limited["task"] and limited["task"]["memories"] == "only"
        await client.fail_task("The key is lost", session="repairs", replacement_goal="Break the lock")
        asks: Any = ({"session": "repairs", "task": 9}, {"session": None, "task": 1})
        for wrong in asks:
            with pytest.raises(ApiError) as error:
                await client.context(**(asked | wrong))
            assert error.value.code == "invalid_input"


async def ended(client: McpClient) -> None:
    """The tasks of the session of the connection come to an end, and its statistics are read."""
    stats = await told(client, "session_stats")
    assert (stats["session"], stats["messages"]) == ("repairs", 3) and stats["context"]["tokens"] > 0
    assert [one["number"] for one in (await told(client, "tasks"))["items"]] == [1]
    assert (await told(client, "block_task", reason="Mira has the key"))["status"] == "blocked"
    assert (await told(client, "resume_task", number=1))["status"] == "active"
    assert (await told(client, "fail_task", reason="The key is lost"))["status"] == "failed"
    assert (await told(client, "messages", limit=1))["items"][0]["content"].endswith("forty.")
    assert [one["session"] for one in (await told(client, "bundles", session="repairs"))["items"]] == ["repairs"] * 4
    await told(client, "note_exchange", user="Hello.", session="other")
    assert (await told(client, "list_memories", kinds=["exchange"]))["count"] == 4, "a filter is no default"
    with_memory = await client.get_prompt("with-memory", {"query": "What is the number of the lock?"})
    assert "Answer in French." in str(with_memory.messages[0].content)
    assert (await refused(client, "inject", text="x", memory_id="y"))["code"] == "invalid_input"


async def test_the_session_of_a_connection_is_that_of_its_tool_calls(api: Api) -> None:
    # S001-35, S000-1: tasks, filters and working memory over MCP
    token = await api.token("ana")
    async with speaking(api.url, token, **{"X-Newton-Session": "repairs"}) as client:
        red = await told(client, "remember", content=RED, source="own")
        assert "lighthouse" in (await told(client, "create_context"))["text"]
        assert (await told(client, "note_exchange", user="The lock of the boat is number forty."))[
            "session"
        ] == "repairs"
        await told(client, "push_task", goal="Repair the house")
        await told(client, "note_exchange", user="The lock of the house is number ninety.", assistant="I see.")
        asked = {"input": "What is the number of the lock?"}
        free = await told(client, "context", **asked)
        assert "forty" in free["text"] and free["task"]["memories"] == "preferred"
        limited = await told(client, "context", **asked, task="current")
        assert "forty" not in limited["text"] and "ninety" in limited["text"]
        facts = await told(client, "context", input="Which colour has the lighthouse?", kinds=["fact"])
        assert RED in facts["text"] and "User: " not in facts["text"]
        assert (await told(client, "inject", text="Answer in French."))["type"] == "text"
        injected = await told(client, "inject", memory_id=red["memory_id"])
        shown = await told(client, "context", **asked)
        assert "- said by the assistant: Answer in French." in shown["text"] and RED in shown["text"]
        assert len((await told(client, "injections"))["items"]) == 2
        assert (await told(client, "eject", injection_id=injected["injection_id"]))["type"] == "memory"
        await ended(client)
    async with speaking(api.url, token) as client:
        assert (await told(client, "note_exchange", user="Hello."))["session"] == "mcp"
        context = await told(client, "context", **asked)
        assert "Answer in French." not in context["text"] and "task" not in context


def test_what_is_put_into_a_session_is_shown_on_the_command_line(home: Path) -> None:
    ok(typed(home, "remember", RED))
    (red,) = json.loads(ok(typed(home, "list", "--json")))["items"]
    said = ok(typed(home, "sessions", "inject", "plan", "--memory", red["memory_id"]))
    assert said.splitlines()[0] == f'Injected the memory "{RED}".'
    ok(typed(home, "sessions", "inject", "plan", "--text", "Answer in French."))
    assert len(json.loads(ok(typed(home, "sessions", "injections", "plan", "--json")))["items"]) == 2
    shown = ok(typed(home, "context", "What is for dinner?", "--session", "plan"))
    assert RED in shown and "Answer in French." in shown
    ok(typed(home, "tasks", "push", "Cook", "--session", "plan"))
    limited = json.loads(ok(typed(home, "context", "What is red?", "--session", "plan", "--task", "current", "--json")))
    assert limited["task"]["memories"] == "only" and limited["filters"] == {"task": "1"}
    assert "Removed the memory" in ok(typed(home, "sessions", "eject", "plan", red["memory_id"]))
    assert "0 messages, 0 tokens" in ok(typed(home, "sessions", "stats", "plan"))
    wrong = typed(home, "ask", "Hello", "--strategy", "nothing")
    assert wrong.returncode == 2 and "not a compaction strategy" in wrong.stderr
