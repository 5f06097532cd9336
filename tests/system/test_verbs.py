"""The same verbs do the same by every interface: MCP, the client over HTTP, and the chat."""

from collections.abc import AsyncGenerator
from typing import Any, TypedDict

import pytest
import pytest_asyncio

from newton.client import ApiError, Client
from tests.support import has_code
from tests.system.served import OPERATOR, Api


class Attribute(TypedDict):
    subject: str
    attribute: str


REASON = {"kind": "empirical", "text": "It held last winter."}
HOME: Attribute = {"subject": "Noor", "attribute": "lives in"}
LONG = " ".join(f"On day {n} the river rose by {n} centimetres." for n in range(400))


@pytest_asyncio.fixture
async def client(api: Api) -> AsyncGenerator[Client]:
    async with api.client(await api.token("ana")) as one:
        yield one


async def tool(client: Client, name: str, **arguments: object) -> Any:
    return await client.call_tool(name, arguments)


async def test_a_decision_by_the_client_is_seen_by_the_tools_and_back(client: Client) -> None:
    made = await client.decide("Move the bridge works to May", confidence=0.7, reasons=[REASON])
    await client.think(made["decision_id"], "The permit may be late.")
    await tool(client, "think", decision_id=made["decision_id"][-8:], text="The crew is free in May.")
    thoughts = (await client.decision(made["decision_id"]))["thoughts"]
    assert [one["text"] for one in thoughts] == ["The permit may be late.", "The crew is free in May."]
    await client.done(made["decision_id"][-8:])
    assert (await tool(client, "decision", decision_id=made["decision_id"]))["state"] == "PENDING"
    assert [one["decision_id"] for one in (await tool(client, "decisions", open=True))["items"]] == [
        made["decision_id"][-8:]
    ]
    await client.review(made["decision_id"], "partial", lesson="Ask for permits early.")
    (outcome,) = (await client.outcomes())["items"]
    assert (outcome["outcome"], outcome["lesson"]) == ("partial", "Ask for permits early.")
    assert (await tool(client, "outcomes", outcome="success"))["items"] == []
    with pytest.raises(ApiError, check=has_code("conflict")):
        await tool(client, "done", decision_id=made["decision_id"])
    with pytest.raises(ApiError, check=has_code("conflict")):
        await client.think(made["decision_id"], "Too late.")


async def test_procedures_and_censors_are_the_same_over_http_and_mcp(client: Client) -> None:
    # procedures of the agent come from files, so it has none here
    assert (await client.procedures())["items"] == [] == (await tool(client, "procedures"))["items"]
    with pytest.raises(ApiError, check=has_code("not_found")):
        await client.procedure_outcome("no such thing", "success")
    with pytest.raises(ApiError, check=has_code("not_found")):
        await client.dismiss_procedure("no such thing", reason="it was a mistake")
    with pytest.raises(ApiError, check=has_code("not_found")):
        await client.call_tool("dismiss_procedure", {"name": "no such thing"})
    assert (await tool(client, "add_censor", trigger="open the sluice", reason="villages lie below"))["is_new"]
    (proposed,) = (await client.censors())["items"]
    assert proposed["is_proposed"], "a model proposes; a person approves"
    assert not (await client.check_censors("open the sluice now"))["matches"]
    assert (await client.approve_censor(proposed["memory_id"]))["changed"]
    (match,) = (await client.check_censors("open the sluice now", counts=True))["matches"]
    assert match["reason"] == "villages lie below"
    await client.false_positive(proposed["memory_id"])
    await client.check_censors("open the sluice now")  # does not count
    (known,) = (await tool(client, "censors"))["items"]
    assert (known["activations"], known["false_positives"]) == (1, 1)
    with pytest.raises(ApiError, check=has_code("forbidden")):  # a person approved it
        await client.call_tool("retire_censor", {"censor_id": proposed["memory_id"]})
    await client.retire_censor(proposed["memory_id"])
    assert (await client.censors())["items"][0]["state"] == "RETIRED"


async def test_a_censor_blocks_what_any_tool_would_store(client: Client) -> None:
    assert (await client.add_censor("blue folder", reason="it is sealed", action="block"))["is_new"]
    fact = await tool(client, "remember", content="The archive is closed on Mondays.", source="own")
    for name, arguments in (
        ("supersede", {"memory_id": fact["memory_id"], "content": "The blue folder lies in the archive."}),
        ("push_task", {"goal": "Read the blue folder", "session": "s"}),
        ("propose_identity", {"section": "instruction", "text": "Always read the blue folder."}),
    ):
        with pytest.raises(Exception, match="censor forbids") as refused:
            await client.call_tool(name, arguments)
        assert getattr(refused.value, "code", "") == "censor_blocked", name


async def test_facts_are_curated_by_mcp_with_the_trust_of_an_agent(client: Client) -> None:
    works = {"subject": "Lena", "attribute": "works in", "source": "own"}
    fact = await tool(client, "remember", content="Lena works in Bern.", **works)
    assert (await tool(client, "confirm", memory_id=fact["memory_id"]))["counted"]
    new = await tool(client, "supersede", memory_id=fact["memory_id"], content="Lena works in Basel.")
    shown = await tool(client, "expand", memory_id=new["superseded_by"])
    assert (shown["text"], shown["trust"]) == ("Lena works in Basel.", "agent")
    await tool(client, "retract", memory_id=new["superseded_by"])
    assert (await client.expand(fact["memory_id"]))["state"] != "SUPERSEDED"


async def test_an_answer_to_remember_names_what_the_fact_replaced_or_contradicts(client: Client) -> None:
    # S002-16
    first = await client.remember("Noor lives in Oslo.", **HOME)
    assert (first["replaced"], first["contested"]) == ([], [])
    second = await client.remember("Noor lives in Bergen.", idempotency_key="moved", **HOME)
    assert second["replaced"] == [{"memory_id": first["memory_id"], "text": "Noor lives in Oslo."}]
    again = await client.remember("Noor lives in Bergen.", idempotency_key="moved", **HOME)
    assert again == second, "a repeated request is answered alike"
    third = await tool(client, "remember", content="Noor lives in Turku.", source="own", **HOME)
    (contested,) = third["contested"]
    assert (contested["memory_id"], contested["text"]) == (second["memory_id"][-8:], "Noor lives in Bergen.")
    assert third["replaced"] == [], "the word of an agent replaces nothing that a person told"
    links = (await client.expand(first["memory_id"]))["links"]
    assert ("is superseded by", second["memory_id"]) in [(one["type"], one["memory_id"]) for one in links]
    with pytest.raises(ApiError, match="Noor lives in Bergen", check=has_code("conflict")):
        await client.confirm(first["memory_id"])


async def test_a_value_that_is_stated_again_replaces_the_one_between(client: Client) -> None:
    # S002-16
    oslo = await client.remember("Noor lives in Oslo.", **HOME)
    bergen = await client.remember("Noor lives in Bergen.", **HOME)
    again = await client.remember("Noor lives in Oslo.", **HOME)
    assert (again["memory_id"], again["status"]) == (oslo["memory_id"], "confirmed")
    assert [one["text"] for one in again["replaced"]] == ["Noor lives in Bergen."]
    with pytest.raises(ApiError, match="Noor lives in Oslo", check=has_code("conflict")):
        await client.confirm(bergen["memory_id"])


async def test_a_contested_value_is_not_named_as_what_replaced_a_fact(client: Client) -> None:
    # S002-16
    oslo = await client.remember("Noor lives in Oslo.", **HOME)
    await tool(client, "remember", content="Noor lives in Turku.", **HOME)
    bergen = await client.remember("Noor lives in Bergen.", **HOME)
    assert oslo["memory_id"] in [one["memory_id"] for one in bergen["replaced"]]
    with pytest.raises(ApiError, match="Noor lives in Bergen", check=has_code("conflict")):
        await client.confirm(oslo["memory_id"])


async def test_a_replayed_answer_to_remember_says_so_and_survives_the_fact(api: Api) -> None:
    # S9
    body = {"content": "The kettle is in the shed."}
    async with api.http(await api.token("ana"), **{"Idempotency-Key": "once"}) as http:
        first = await http.post("/v1/memories", json=body)
        again = await http.post("/v1/memories", json=body)
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
        assert again.json() == first.json() and "Idempotency-Replayed" not in first.headers
        memory_id = first.json()["memory_id"]
        async with api.http(**{"X-Newton-Agent": "ana"}) as operator:
            path = f"/v1/memories/{memory_id}"
            token = (await operator.delete(path)).json()["token"]
            assert (await operator.delete(path, params={"token": token})).status_code == 200
        replayed = await http.post("/v1/memories", json=body)
    assert (replayed.status_code, replayed.json()["memory_id"]) == (201, memory_id)


async def test_a_long_memory_is_read_in_pages_by_the_id_in_the_context(client: Client) -> None:
    # S002-15
    await client.append_messages("river", [{"role": "user", "content": LONG}])
    shown = (await tool(client, "context", input="By how much did the river rise on day 3?"))["text"]
    (line,) = [line for line in shown.splitlines() if "On day 0" in line]
    number = line.split()[1]
    assert number.startswith("#") and number[1:].isdigit() and len(number) == 10
    assert "#" not in (await client.context("By how much did the river rise on day 4?"))["text"].replace("##", "")
    whole, offset = "", 0
    while True:
        page = await tool(client, "expand", memory_id=number, offset=offset, limit=5_000)
        whole += page["text"]
        assert page["remaining_chars"] == len(LONG) - len(whole)
        if not page["remaining_chars"]:
            break
        offset = page["next_offset"]
    assert whole == LONG and "next_offset" not in page
    with pytest.raises(ApiError, check=has_code("invalid_input")):
        await tool(client, "expand", memory_id=number, offset=10**6)


async def test_reports_are_read_everywhere(client: Client, api: Api) -> None:
    assert (await client.metrics(days=3))["turns"] == (await tool(client, "metrics", days=3))["turns"] == 0
    with pytest.raises(ApiError, check=has_code("forbidden")):
        await client.agents()
    async with api.client(OPERATOR) as operator:
        assert "ana" in [one["name"] for one in await operator.agents()]


async def test_the_working_memory_of_a_session_is_a_context_everywhere(client: Client) -> None:
    # S000-11, S000-F2, S000-F4
    with pytest.raises(ApiError, check=has_code("not_found")):
        await client.create_context(session="walk")
    async for _ in client.run_turn("walk", "The path along the dyke is closed."):
        pass
    first = await client.create_context(profile="recent", session="walk", decay_hours=0.5)
    assert "The path along the dyke is closed." in first["text"] and first["profile"] == "recent"
    assert (await tool(client, "create_context", session="walk", profile="recent"))["text"] == first["text"]
    assert (await client.create_context(profile="recent", session="walk", order="best_last"))["text"] == first["text"]
    with pytest.raises(ApiError, check=has_code("not_found")):
        await client.create_context(session="walk", profile="nonsense")
    bundle = (await client.bundles())["items"][0]
    assert (await tool(client, "why", bundle_id=bundle["bundle_id"]))["bundle_id"] == bundle["bundle_id"][-8:]
