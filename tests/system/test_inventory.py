"""What is stored can be seen and edited over HTTP and by the client, each agent's by nobody else."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from newton.client import ApiError, Client
from newton.ids import derive_agent_id
from newton.runtime import agent_registry
from tests.support import has_code
from tests.system.served import OPERATOR, Api


@pytest_asyncio.fixture
async def ana(api: Api) -> AsyncGenerator[Client]:
    async with api.client(await api.token("ana", name="laptop", speaker="person")) as client:
        yield client


@pytest_asyncio.fixture
async def ben(api: Api) -> AsyncGenerator[Client]:
    async with api.client(await api.token("ben")) as client:
        yield client


@pytest_asyncio.fixture
async def operator(api: Api) -> AsyncGenerator[Client]:
    async with api.client(OPERATOR) as client:
        yield client


LIKES = (
    "She plays the cello",
    "Her office is in Lisbon",
    "She owns a red bicycle",
    "Rain makes her happy",
    "Her brother builds boats",
)


async def told(client: Client, *contents: str, **fields: Any) -> list[str]:
    return [(await client.remember(content, **fields))["memory_id"] for content in contents]


async def test_a_list_is_filtered_counted_paged_and_reduced_to_fields(ana: Client) -> None:
    await told(ana, *LIKES, subject="Ana")
    await told(ana, "Ben likes tea", subject="Ben")
    page = await ana.list_memories(subject="Ana", limit=2, fields=["memory_id", "text"])
    assert page["count"] == 5 and page["next"]
    assert [set(item) for item in page["items"]] == [{"memory_id", "text"}] * 2
    second = await ana.list_memories(subject="Ana", limit=2, cursor=page["next"])
    assert "count" not in second or second["count"] is None
    every = [item async for item in ana.iter_pages("/v1/memories", subject="Ana", limit=2)]
    assert len({item["memory_id"] for item in every}) == 5
    assert await ana.call_tool("list_memories", {"text": "tea"}) == {
        **(found := await ana.call_tool("list_memories", {"text": "tea"})),
        "count": 1,
    }
    assert found["items"][0]["text"] == "Ben likes tea" and found["items"][0]["subject"] == "Ben"


async def test_unknown_filters_states_and_cursors_are_refused(ana: Client) -> None:
    for refused in (
        ana.list_memories(states=["gone"]),
        ana.list_memories(cursor="xx"),
        ana.list_memories(fields=["secret"]),
        ana.list_memories(limit=0),
    ):
        with pytest.raises(ApiError, check=has_code("invalid_input")):
            await refused
    await told(ana, "One thing", "Another thing")
    cursor = (await ana.list_memories(limit=1))["next"]
    with pytest.raises(ApiError, check=has_code("invalid_input"), match="cursor"):
        await ana.list_memories(limit=1, sort="uses", cursor=cursor)


async def test_an_edit_changes_three_fields_and_is_recorded_with_its_author(api: Api, ana: Client) -> None:
    (memory_id,) = await told(ana, "The nut allergy is serious", subject="Ana")
    edited = await ana.edit_memory(memory_id, importance=9, core=True, subject="Ben")
    assert set(edited["changed"]) == {"importance", "core", "subject"}
    assert (edited["importance"], edited["is_core"], edited["state"]) == (9, True, "CORE")
    assert (await ana.edit_memory(memory_id, importance=9))["changed"] == []
    assert (await ana.edit_memory(memory_id, derive_importance=True, core=False))["is_importance_set"] is False
    memory = await ana.expand(memory_id)
    assert memory["fact"]["subject"] == "Ben" and memory["state"] == "NEW" and memory["importance"] is None
    changes = [(one["field"], one["old_value"], one["new_value"], one["author"]) for one in memory["edits"]]
    assert changes == [
        ("importance", None, "9", "token laptop"),
        ("subject", "Ana", "Ben", "token laptop"),
        ("core", "false", "true", "token laptop"),
        ("importance", "9", None, "token laptop"),
        ("core", "true", "false", "token laptop"),
    ]
    assert await api.rows("ana", "runtime.events where type = 'memory.edited'") == 2


async def test_other_fields_cannot_be_edited(ana: Client) -> None:
    (memory_id,) = await told(ana, "The kettle is blue")
    with pytest.raises(ApiError, check=has_code("invalid_input"), match="content"):
        await ana.request("PATCH", f"/v1/memories/{memory_id}", body={"content": "It is red", "importance": 9})
    with pytest.raises(ApiError, check=has_code("invalid_input"), match="Nothing to change"):
        await ana.edit_memory(memory_id)
    assert (await ana.expand(memory_id))["full_text"] == "The kettle is blue"


async def test_a_fact_with_another_subject_gives_way_to_the_value_it_had_replaced(ana: Client) -> None:
    lives = {"attribute": "lives in"}
    (old,) = await told(ana, "Ana lives in Porto.", subject="Ana", **lives)
    (new,) = await told(ana, "She lives in Bergen.", subject="Ana", **lives)
    assert (await ana.expand(old))["state"] == "SUPERSEDED"
    await ana.edit_memory(new, subject="Carla")
    assert (await ana.expand(old))["state"] == "NEW"
    with pytest.raises(ApiError, check=has_code("invalid_input"), match="single-valued"):
        await ana.edit_memory(new, remove_subject=True)


async def test_a_change_of_many_is_previewed_bound_to_its_set_and_done_once(api: Api, ana: Client) -> None:
    ids = await told(ana, "Ana likes tea", "Ana likes rice", "Ana likes rain", subject="Ana")
    await told(ana, "Ben likes tea", subject="Ben")
    wanted = {"subject": "Ana", "kinds": ["fact"]}
    preview = await ana.change_memories("forget", wanted)
    assert preview["count"] == 3 and not preview["is_done"] and len(preview["sample"]) == 3
    assert await api.rows("ana", "heart.facts") == 4, "a preview changes nothing"
    with pytest.raises(ApiError, check=has_code("conflict"), match="token"):
        await ana.change_memories("retract", wanted, token=preview["token"])
    await told(ana, "Ana likes snow", subject="Ana")
    with pytest.raises(ApiError, check=has_code("conflict"), match="no longer"):
        await ana.change_memories("forget", wanted, token=preview["token"])
    assert await api.rows("ana", "heart.facts") == 5
    token = (await ana.change_memories("forget", wanted))["token"]
    body = {"action": "forget", "filter": wanted, "token": token}
    replies = [await ana.request("POST", "/v1/memories/bulk", body=body, idempotency_key="once") for _ in range(2)]
    assert replies[0].json() == replies[1].json() and replies[0].json()["count"] == 4
    assert replies[0].json()["sample"] == []
    assert await api.rows("ana", "memory.forgotten where kind = 'fact'") == 4
    with pytest.raises(ApiError, check=has_code("not_found")):
        await ana.expand(ids[0])


async def test_only_an_admin_marks_a_fact_as_core(api: Api) -> None:
    # S002-16
    async with api.client(await api.token("ana", name="bot", scope="write")) as bot:
        [memory_id] = await told(bot, "She is allergic to nuts")
        assert (await bot.edit_memory(memory_id, importance=9))["changed"] == ["importance"]
        with pytest.raises(ApiError) as refused:
            await bot.edit_memory(memory_id, importance=1, core=True)
        assert refused.value.status == 403 and "scope admin" in str(refused.value)
        [kept] = (await bot.list_memories())["items"]
        assert (kept["is_core"], kept["importance"]) == (False, 9)


async def test_importance_core_and_retraction_of_many(ana: Client) -> None:
    ids = await told(ana, "Ana likes tea", "Ana likes rice", subject="Ana")
    wanted = {"subject": "Ana"}
    changes: Any = (("set_importance", {"importance": 7}), ("set_core", {"core": True}), ("retract", {}))
    for action, fields in changes:
        token = (await ana.change_memories(action, wanted, **fields))["token"]
        assert (await ana.change_memories(action, wanted, **fields, token=token))["is_done"]
    memory = await ana.expand(ids[0])
    assert memory["importance"] == 7 and memory["state"] == "INACTIVE"
    assert [one["field"] for one in memory["edits"]] == ["importance", "core"]


async def test_a_change_of_many_needs_a_filter_and_memories_to_which_it_applies(ana: Client) -> None:
    await ana.decide("Use Redis for the cache", confidence=0.8, reasons=[{"kind": "analysis", "text": "fast"}])
    await told(ana, "Ana likes tea")
    refused: Any = (
        ("forget", {}, "filter is empty"),
        ("forget", {"kinds": ["decision"]}, "never deleted"),
        ("retract", {"text": "redis"}, "applies only to facts"),
    )
    for action, wanted, words in refused:
        with pytest.raises(ApiError, check=has_code("invalid_input"), match=words):
            await ana.change_memories(action, wanted)


async def test_nobody_lists_edits_or_deletes_what_another_agent_stores(api: Api, ana: Client, ben: Client) -> None:
    (memory_id,) = await told(ana, "Ana likes tea", subject="Ana")
    await ana.append_messages("talk", [{"role": "user", "content": "Where is the tea?"}])
    for listed in (
        ben.list_memories(),
        ben.list_memories(subject="Ana"),
        ben.list_memories(text="tea"),
        ben.list_memories(sort="uses"),
        ben.list_memories(sort="occurred"),
    ):
        assert (await listed)["items"] == []
    for refused in (ben.list_memories(session="talk"), ben.list_memories(source=memory_id)):
        with pytest.raises(ApiError, check=has_code("not_found")):
            await refused
    with pytest.raises(ApiError, check=has_code("not_found")):
        await ben.edit_memory(memory_id, importance=1)
    assert (await ben.change_memories("forget", {"subject": "Ana"}))["count"] == 0
    token = (await ana.change_memories("forget", {"subject": "Ana"}))["token"]
    with pytest.raises(ApiError, check=has_code("conflict")):
        await ben.change_memories("forget", {"subject": "Ana"}, token=token)
    for call in (ben.agent("ana"), ben.delete_agent("ana"), ben.tokens("ana"), ben.create_token("ana", "thief")):
        with pytest.raises(ApiError, check=has_code("forbidden")):
            await call
    with pytest.raises(ApiError, check=has_code("forbidden")):
        await ben.revoke_token("ana", "laptop")
    with pytest.raises(ApiError, check=has_code("not_found")):
        await ben.entity("Ana")
    assert await api.rows("ana", "heart.facts") == 1


async def test_a_change_of_many_records_only_what_it_changes(ana: Client) -> None:
    ids = await told(ana, *LIKES[:2])
    await ana.edit_memory(ids[0], importance=8)
    changes: Any = (("set_importance", {"importance": 8}), ("set_core", {"core": False}))
    for action, fields in changes:
        preview = await ana.change_memories(action, {"kinds": ["fact"]}, **fields)
        done = await ana.change_memories(action, {"kinds": ["fact"]}, **fields, token=preview["token"])
        assert (done["is_done"], done["count"]) == (True, 2)
    assert [[one["field"] for one in (await ana.expand(each))["edits"]] for each in ids] == [["importance"]] * 2


async def test_the_operator_deletes_an_agent_after_a_preview(api: Api, operator: Client, ana: Client) -> None:
    await told(ana, "Ana likes tea")
    overview = await operator.agent("ana")
    assert overview["counts"] == [{"kind": "fact", "state": "NEW", "quarantined": False, "memories": 1}]
    assert overview["size_bytes"] > 0 and overview["last_activity_at"]
    preview = await operator.delete_agent("ana")
    assert not preview["is_deleted"]
    await told(ana, "Ana likes rice")
    with pytest.raises(ApiError, check=has_code("conflict"), match="no longer"):
        await operator.delete_agent("ana", token=preview["token"])
    token = (await operator.delete_agent("ana"))["token"]
    assert (await operator.delete_agent("ana", token=token))["is_deleted"]
    with pytest.raises(ApiError, check=has_code("not_found")):
        await operator.agent("ana")
    async with api.db.transaction(derive_agent_id("ana")) as tx:
        assert await tx.fetchval("select count(*) from memory.memories") == 0
        assert await tx.fetchval("select count(*) from runtime.tokens") == 0
    with pytest.raises(ApiError, check=has_code("conflict"), match="in use"):
        await operator.delete_agent("default", token="x")


async def test_an_agent_that_another_process_has_deleted_is_gone_from_the_daemon(
    api: Api, operator: Client, ana: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_registry, "MODEL_AGE_MS", 0.0)
    await told(ana, "Ana likes tea")
    async with api.http(OPERATOR, **{"X-Newton-Agent": "ana"}) as http:
        assert (await http.get("/v1/memories")).status_code == 200
        async with api.db.transaction(derive_agent_id("ana")) as tx:
            await tx.execute("select runtime.delete_agent($1)", derive_agent_id("ana"))
        for _ in range(2):
            gone = await http.get("/v1/memories")
            assert (gone.status_code, gone.json()["type"]) == (404, "urn:newton:not_found")


async def test_deleting_an_agent_deletes_the_memories_of_its_users(api: Api, operator: Client, ben: Client) -> None:
    await told(ben, "Ben stays")
    token = await api.token("shop", users="per_user")
    async with api.http(token, **{"X-Newton-User": "carla"}) as http:
        assert (await http.post("/v1/memories", json={"content": "Carla likes tea"})).status_code == 201
    preview = await operator.delete_agent("shop")
    assert preview["agent"]["users"] == 1
    await operator.delete_agent("shop", token=preview["token"])
    assert [one["name"] for one in await operator.agents()] == ["ben", "default"]
    assert (await ben.list_memories())["count"] == 1


async def test_tokens_are_made_listed_and_revoked_by_the_operator(api: Api, operator: Client, ana: Client) -> None:
    text = await operator.create_token("ana", "phone", scope="read")
    async with api.client(text) as phone:
        assert (await phone.get_token_info())["scope"] == "read"
        listed = await operator.tokens("ana")
        assert {one["name"] for one in listed} == {"laptop", "phone"}
        assert text not in str(listed), "the secret is shown once"
        await operator.revoke_token("ana", "phone")
        with pytest.raises(Exception, match="no valid token"):
            await phone.get_token_info()


async def test_an_entity_is_shown_with_its_mentions(api: Api, ana: Client) -> None:
    await told(ana, "Mira met Priya in Oslo", subject="Mira")
    await ana.process(datetime(2026, 1, 1, tzinfo=UTC))
    entity = await ana.entity("mira")
    assert entity["name"] == "Mira"
    assert [one["text"] for one in entity["mentioned_in"]] == ["Mira met Priya in Oslo"]
    with pytest.raises(ApiError, check=has_code("not_found")):
        await ana.entity("nobody")
