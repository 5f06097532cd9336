"""Permissions, calls and the approval of procedures over HTTP: each agent sees and changes only its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from newton.agent.actions.action_lessons import propose_procedure
from newton.db.pool import Database
from newton.runtime.agent_registry import AgentRegistry
from tests.system.served import Api, served


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as made:
        yield made


async def test_an_agent_lists_and_revokes_only_its_own_permissions_and_approves_only_its_own_procedures(
    api: Api,
) -> None:
    # S9
    tokens = {name: await api.token(name) for name in ("ana", "ben")}
    reader = await api.token("ben", "read")
    minds: AgentRegistry = api.app.state.agents
    ben_mind = await minds.get("ben")
    denied = str(await ben_mind.permissions("cli").deny("post", "send"))
    async with ben_mind.scope.at("agent", "tool").write() as (tx, ctx):
        assert await propose_procedure(tx, "post__send", "post__send x", "post__send y", ctx=ctx)
    name = "calling-post-send"
    async with api.http(tokens["ana"]) as ana, api.http(tokens["ben"]) as ben, api.http(reader) as reads:
        assert (await ana.get("/v1/permissions")).json()["items"] == []
        assert (await ana.get("/v1/actions")).json()["items"] == []
        assert (await ana.delete(f"/v1/permissions/{denied}")).status_code == 404
        assert (await ana.post(f"/v1/procedures/{name}/approve")).status_code == 404
        assert (await reads.delete(f"/v1/permissions/{denied}")).status_code == 403
        assert (await reads.post(f"/v1/procedures/{name}/approve")).status_code == 403
        (listed,) = (await ben.get("/v1/permissions")).json()["items"]
        assert (listed["permission_id"], listed["verdict"]) == (denied, "deny")
        assert (await ben.post(f"/v1/procedures/{name}/approve")).json()["changed"] is True
        assert (await ben.post(f"/v1/procedures/{name}/approve")).json()["changed"] is False
        assert (await ben.delete(f"/v1/permissions/{denied}")).json()["permission_id"] == denied
        assert (await ben.get("/v1/permissions")).json()["items"] == []


async def test_a_dismissed_procedure_is_not_proposed_again(api: Api) -> None:
    tokens = {name: await api.token(name) for name in ("ana", "ben")}
    reader = await api.token("ben", "read")
    minds: AgentRegistry = api.app.state.agents
    mind = await minds.get("ben")

    async def propose(tool: str, call: str = "post__send") -> bool:
        async with mind.scope.at("agent", "tool").write() as (tx, ctx):
            return await propose_procedure(tx, tool, f"{call} x", f"{call} y", ctx=ctx)

    assert await propose("post__send")
    path, why = "/v1/procedures/calling-post-send", {"reason": "the address was a mistake of mine"}
    async with api.http(tokens["ana"]) as ana, api.http(tokens["ben"]) as ben, api.http(reader) as reads:
        assert (await ana.post(f"{path}/dismiss", json=why)).status_code == 404
        assert (await reads.post(f"{path}/dismiss", json=why)).status_code == 403
        assert (await ben.get(path)).json()["is_proposed"] is True
        assert (await ben.post(f"{path}/dismiss", json=why)).json()["changed"] is True
        assert (await ben.post(f"{path}/dismiss", json={})).json()["changed"] is False
        assert (await ben.post(f"{path}/approve")).json()["changed"] is False, "it waits no longer"
        known = (await ben.get(path)).json()
        assert (known["state"], known["is_proposed"]) == ("RETIRED", False)
        (change,) = (await ben.get(f"/v1/memories/{known['memory_id']}")).json()["changes"]
        assert change["reason"] == "a person dismissed it: the address was a mistake of mine"
        assert not await propose("post__send")
    async with api.client(tokens["ben"]) as client:
        assert await propose("post__list", "post__list")
        assert (await client.call_tool("dismiss_procedure", {"name": "calling-post-list"}))["changed"] is True
        assert (await client.dismiss_procedure("calling-post-list"))["changed"] is False
    async with api.http(tokens["ben"]) as ben:
        assert not await propose("post__send_again"), "nor under another name"
        names = [one["name"] for one in (await ben.get("/v1/procedures")).json()["items"]]
        assert names == ["calling-post-list", "calling-post-send"]
    assert (await mind.maintenance("job lifecycle").run_lifecycle()).steps == [], "it stays retired"
