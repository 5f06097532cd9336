"""An agent with something on each page of the dashboard, whose texts try to run a script."""

from uuid import UUID

import httpx2

from newton.agent.actions import action_store
from newton.agent.actions.action_lessons import propose_procedure
from newton.agent.actions.action_store import ToolAction
from newton.clock import SystemClock
from newton.content.skills import SkillFile
from newton.ids import new_id
from newton.memory.memory import digest
from newton.runtime.agent_registry import AgentRegistry
from tests.system.served import OPERATOR, Api

SCRIPT = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
SESSION = "team/plans"
PROCEDURE, PROPOSED, UNWANTED = "rotate-keys", "calling-post-send", "calling-post-list"
REASON = {"kind": "analysis", "text": SCRIPT}


async def fill(api: Api) -> dict[str, str]:
    """Fill the agent, and return the ids that the paths of pages and forms contain, by name."""
    async with api.http() as client:
        ids = await _store_memories(client)
        ids |= await _decide(client)
        ids |= await _talk(client)
        ids |= await _set_rules(client)
        await client.post("/v1/agents", json={"name": "copy"})
    async with api.http(**{"X-Newton-Project": "shop"}) as client:
        await client.post("/v1/memories", json={"content": f"The shop sells lamps. {SCRIPT}"})
    async with api.client(OPERATOR) as agent:  # what an agent says does not replace what a person said
        other = {"content": "Noor lives in Turku.", "subject": "Noor", "attribute": "lives in", "source": "own"}
        await agent.call_tool("remember", other)
    async with api.http() as client:
        found = [one["newer"] for one in (await client.get("/v1/conflicts")).json()["items"]]
        ids["contested_id"] = next(one["memory_id"] for one in found if "Turku" in str(one))
    return ids | await _use_tools(api)


async def _store_memories(client: httpx2.AsyncClient) -> dict[str, str]:
    async def remember(content: str, **fields: str) -> str:
        stored = await client.post("/v1/memories", json={"content": content, **fields})
        return stored.json()["memory_id"]

    home = {"subject": "Noor", "attribute": "lives in"}
    ids = {
        "memory_id": await remember(f"Ana lives in Porto. {SCRIPT}", subject="Ana"),
        "wrong_id": await remember("The kettle is green.", subject="kettle"),
        "gone_id": await remember("The old gate is shut.", subject="gate"),
        "settled_id": await remember("Noor lives in Oslo.", **home),
    }
    for name in ("Bob Smith", "Robert Smith"):
        await remember(f"{name} likes tea. {SCRIPT}", subject=name)
    await remember("Lena Vogel lives in Bern.", subject="Lena Vogel")
    return ids


async def _decide(client: httpx2.AsyncClient) -> dict[str, str]:
    """Record 24 decisions with outcomes, so that the calibration has all its charts, and two open ones."""
    made = list[str]()
    for number in range(26):
        draft = {"description": f"Use {number} {SCRIPT}", "confidence": 0.5 + number % 5 / 10, "reasons": [REASON]}
        made.append((await client.post("/v1/decisions", json={**draft, "category": SCRIPT})).json()["decision_id"])
        if number < 24:
            review = {"outcome": "success" if number % 3 else "failure", "lesson": SCRIPT}
            await client.post(f"/v1/decisions/{made[-1]}/review", json=review)
    return {"decision_id": made[-1], "other_decision_id": made[-2]}


async def _talk(client: httpx2.AsyncClient) -> dict[str, str]:
    messages = [{"role": "user", "content": f"The river rose by {n} cm. " * 20 + SCRIPT} for n in range(40)]
    messages.append({"role": "user", "content": "The report is due on Friday. Never delete the archive."})
    await client.post("/v1/sessions", json={"session": SESSION})
    path = f"/v1/sessions/{SESSION}"
    (await client.post(f"{path}/messages", json={"messages": messages})).raise_for_status()
    await client.post("/v1/tasks", json={"goal": "A" * 200, "session": SESSION})
    await client.post("/v1/tasks", json={"goal": SCRIPT, "session": SESSION})
    (await client.post(f"{path}/compact", json={"max_tokens": 2_000})).raise_for_status()
    (compaction, *_) = (await client.get(f"{path}/compactions")).json()["items"]
    asked = {"input": f"Where does Ana live? {SCRIPT}", "session": SESSION}
    bundles = [(await client.post("/v1/context", json=asked)).json()["bundle_id"] for _ in range(2)]
    episode = (await client.post("/v1/sessions/talk/messages", json={"messages": messages[:2]})).status_code
    assert episode == 201
    await client.post("/v1/sessions/talk/close")
    (closed,) = (await client.get("/v1/memories", params={"kinds": "episode"})).json()["items"]
    return {
        "session": SESSION,
        "compaction_id": compaction["compaction_id"],
        "bundle_id": bundles[0],
        "other_bundle_id": bundles[1],
        "episode_id": closed["memory_id"],
    }


async def _set_rules(client: httpx2.AsyncClient) -> dict[str, str]:
    for text in ("W" * 100, SCRIPT, "Be brief"):
        (await client.post("/v1/identity/lines", json={"section": "value", "text": text})).raise_for_status()
    proposal = {"section": "instruction", "text": f"Name the owner {SCRIPT}"}
    (await client.post("/v1/identity/proposals", json=proposal)).raise_for_status()
    (waiting,) = (await client.get("/v1/identity/proposals")).json()["items"]
    lines = {one["text"]: one["line_id"] for one in (await client.get("/v1/identity")).json()["lines"]}
    censor = {"trigger": "open the sluice", "reason": SCRIPT, "action": "block"}
    (await client.post("/v1/censors", json=censor)).raise_for_status()
    (known,) = (await client.get("/v1/censors")).json()["items"]
    return {
        "line_id": waiting["line_id"],
        "changed_line_id": lines["Be brief"],
        "removed_line_id": lines["W" * 100],
        "censor_id": known["memory_id"],
    }


async def _use_tools(api: Api) -> dict[str, str]:
    """Record calls of a tool of a server, a prohibition, and procedures, of which two wait for approval."""
    minds: AgentRegistry = api.app.state.agents
    mind, now = minds.default, SystemClock().now()
    denied = await mind.permissions("cli").deny("post", f"send {SCRIPT}"[:60])
    session_id = await _find_session(api)
    action = ToolAction(
        action_id=new_id(),
        session_id=session_id,
        server="post",
        tool="send",
        arguments_hash=digest("x"),
        permission="once",
        outcome="failure",
        started_at=now,
        finished_at=now,
    )
    async with mind.scope.at("agent", "tool").write() as (tx, ctx):
        await action_store.insert_action(tx, action, agent_id=ctx.agent_id)
        assert await propose_procedure(tx, "post__send", f"send x {SCRIPT}", "send y", ctx=ctx)
        assert await propose_procedure(tx, "post__list", "list x", "list y", ctx=ctx)
    skill = SkillFile(name=PROCEDURE, description=f"Rotate the keys. {SCRIPT}", core=("Make a key.", "Delete the old."))
    assert await mind.procedures("cli").put(skill)
    return {"permission_id": str(denied)}


async def _find_session(api: Api) -> UUID:
    minds: AgentRegistry = api.app.state.agents
    async with minds.default.scope.transaction() as tx:
        return await tx.fetchval("select session_id from dialogue.sessions limit 1")
