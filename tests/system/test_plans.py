"""Plans of a model behind real HTTP: in the chat, and in the daemon for a client of the OpenAI protocol."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import aside, calls_tools, endpoint, says
from tests.system.scripted import talking_within
from tests.system.typed import chatted, ok, typed

STEPS = ["Read the log", "Mend the cause"]
PLAN = calls_tools(("c1", "task", {"action": "start", "text": "Mend the build", "steps": STEPS}), text="I have a plan.")
FIRST = calls_tools(("c2", "task", {"action": "finish", "text": "The cache is cold"}))
LAST = calls_tools(("c3", "task", {"action": "finish", "text": "It is warm now"}))


@pytest.mark.slow
def test_a_plan_is_shown_in_the_chat_step_by_step_and_a_simple_request_makes_none(home: Path) -> None:
    with aside(endpoint(says(["Hello."]), PLAN, FIRST, LAST, says(["It is mended."]))) as server:
        own = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "scripted"}
        talk = "Hello!\nMake a plan for mending the build by Friday, step by step.\n/tasks\n"
        done = chatted(home, talk, "--session", "build", **own)
    turns = [asked["tools"] for asked in server.asked if asked.get("tools")]
    offered = [{one["function"]["name"] for one in tools} for tools in turns]
    assert "task" not in offered[0] and all("task" in names for names in offered[1:])
    stdout, lines = ok(done), done.stderr.splitlines()
    begin = lines.index("▸ 1. Mend the build")
    assert lines[begin : begin + 7] == [
        "▸ 1. Mend the build",
        "   ▸ 2. Read the log  ← current",
        "   ○ 3. Mend the cause",
        "   ✓ 2. Read the log -> The cache is cold",
        "   ▸ 3. Mend the cause  ← current",
        "✓ 1. Mend the build -> It is warm now",
        "   ✓ 3. Mend the cause -> It is warm now",
    ]
    assert "I have a plan.\n" in stdout and "✓ 1. Mend the build\n     It is warm now\n" in stdout
    listed = json.loads(ok(typed(home, "tasks", "--session", "build", "--json")))["items"]
    assert [(one["number"], one["parent_id"] and 1, one["status"]) for one in listed] == [
        (1, None, "complete"), (2, 1, "complete"), (3, 1, "complete"),
    ]  # fmt: skip


async def test_a_plan_in_the_daemon_outlives_its_turn_and_compaction_and_is_in_the_next_prompt(
    home: Path, dsn: str
) -> None:
    # S001-37, S003-16: the current task is preserved
    async with talking_within(home, dsn) as talk:
        talk.plays(PLAN, FIRST, says(["I stop here."]))
        said: list[dict[str, str]] = [{"role": "user", "content": "Mend the build, please."}]
        comments = await talk.post("/v1/chat/completions", {"model": "newton", "stream": True, "messages": said},
                                   **{"X-Newton-Session": "build"})  # fmt: skip
        assert ": newton    ○ 3." not in comments.text and ": newton ○ 3. Mend the cause" in comments.text
        items = (await talk.get("/v1/tasks?session=build")).json()["items"]
        assert [one["status"] for one in items] == ["active", "complete", "active"]
        page = await talk.post("/v1/sessions/build/compact", {"max_tokens": 1})
        assert page.status_code == 200
        said += [{"role": "assistant", "content": "I have a plan.\n\nI stop here."}]
        said += [{"role": "user", "content": "Go on."}]
        talk.plays(LAST, says(["Done."]))
        async with talk.client(**{"X-Newton-Session": "build"}) as client:
            create: Any = client.chat.completions.create
            reply = await create(model="newton", messages=said)
        prompt = json.dumps(talk.asked(0)["messages"])
        assert "Goal: Mend the build" in prompt and "Now: Mend the cause" in prompt
        assert "Done: Read the log -> The cache is cold" in prompt
        assert (reply.choices[0].message.content or "").endswith("Done.")
        items = (await talk.get("/v1/tasks?session=build")).json()["items"]
        assert {one["status"] for one in items} == {"complete"}
