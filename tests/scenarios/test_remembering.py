"""What storing a fact answers, alike over every interface: what it replaced, what it contests, and what warns of it."""

from datetime import timedelta
from typing import Any, cast

import pytest

from newton.agent.services.memories import FactDraft
from newton.client import ApiError
from newton.heart.censors import CensorRule
from newton.memory.lookup import short_id
from newton.operations.declaration import load_operations
from newton.operations.memories.remember import RememberedMemory, format_remembered
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend, run_named
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.tools.tool_registry import run_tool
from newton.runtime.wiring import AgentServices
from tests.scenarios.conftest import Mind, load_minilm, newton, serve_client
from tests.support import has_code


@pytest.fixture
def own(mind: Mind) -> AgentServices:
    return newton(mind, load_minilm())


def id_of(stored: RememberedMemory) -> str:
    assert stored.memory_id
    return short_id(stored.memory_id)


def shown(stored: RememberedMemory) -> list[str]:
    return format_remembered(stored).splitlines()


async def tell(mind: Mind, partner: ChatBackend, *said: str) -> list[RememberedMemory]:
    reports: list[RememberedMemory] = []
    for text in said:
        mind.clock.advance(timedelta(days=3))
        stored = await partner.run_operation(load_operations()["remember"], {"content": text})
        reports.append(cast("RememberedMemory", stored))
    return reports


async def test_what_a_fact_replaced_and_contests_is_named_over_every_interface(mind: Mind, own: AgentServices) -> None:
    here = LocalAgent(newton=own, turn_runner=own.turn_runner(None))
    async with serve_client(own) as client:
        there = RemoteAgent(client=client, token_info=await client.get_token_info())
        homes = ("The shop closes at six.", "The shop now closes at eight.")
        days = ("The book club meets on Mondays.", "The book club now meets on Thursdays.")
        for partner, said in ((here, homes), (there, days)):
            first, second = await tell(mind, partner, *said)
            assert not first.replaced and not first.contested
            assert [one.memory_id for one in second.replaced] == [first.memory_id]
            assert shown(second)[1] == f"  Replaced: {id_of(first)} {said[0]}"
            record = await client.expand(id_of(first))
            assert record["changes"][-1]["replaced_by"] == {"memory_id": str(second.memory_id), "text": said[1]}
            (repeated,) = await tell(mind, partner, said[1])
            assert repeated.replaced == second.replaced, "a repetition names them again"
        allergies = ("Ben is allergic to peanuts.", "Ben is no longer allergic to peanuts.")
        known, denied = await tell(mind, there, *allergies)
        assert [one.memory_id for one in denied.contested] == [known.memory_id]
        assert shown(denied)[1] == f"  May contradict: {id_of(known)} {allergies[0]}"
    answers: list[Any] = []
    for content in ("The gym opens at seven.", "The gym now opens at nine."):
        mind.clock.advance(timedelta(days=3))
        answers.append((await run_tool(own, "remember", {"content": content, "source": "own"})).fields)
    assert answers[1]["replaced"] == [{"memory_id": answers[0]["memory_id"], "text": "The gym opens at seven."}]
    assert answers[0]["replaced"] == []


async def test_a_fact_that_returns_replaces_its_successor(mind: Mind, own: AgentServices) -> None:
    here = LocalAgent(newton=own, turn_runner=own.turn_runner(None))
    said = ("The shop closes at six.", "The shop now closes at eight.", "The shop closes at six.")
    six, eight, again = await tell(mind, here, *said)
    assert again.memory_id == six.memory_id
    assert [one.memory_id for one in again.replaced] == [eight.memory_id]
    changes = (await own.curation("cli").get(id_of(eight))).changes
    assert changes[-1].replaced_by is not None
    assert changes[-1].replaced_by.memory_id == six.memory_id
    changes = (await own.curation("cli").get(id_of(six))).changes
    assert changes[-1].replaced_by is None, "it is current again"


async def test_a_person_is_warned_where_a_model_is_refused(mind: Mind, own: AgentServices) -> None:
    rule = CensorRule(trigger="deploy on Fridays", reason="nobody is there to help", action="block")
    await own.censors("cli").add(rule)
    text = "We never deploy on Fridays."
    here = LocalAgent(newton=own, turn_runner=own.turn_runner(None))
    async with serve_client(own) as client:
        there = RemoteAgent(client=client, token_info=await client.get_token_info())
        for partner in (here, there):
            (report,) = await tell(mind, partner, text)
            assert report.warning and "nobody is there to help" in report.warning
        with pytest.raises(ApiError, check=has_code("censor_blocked")):
            await client.remember(f"{text} The wiki says so.", source="web")
    assert (await own.censors("cli").list_censors())[0].activations == 1, "a statement of a person is no act"
    refused = await run_tool(own, "remember", {"content": text, "source": "own"})
    assert refused.is_error and refused.fields["code"] == "censor_blocked"
    corrected = {"memory_id": id_of(report), "content": text[3:]}
    assert (await run_named(here, "supersede", **corrected)).superseded_by
    assert (await run_tool(own, "supersede", corrected)).fields["code"] == "censor_blocked"


async def test_what_a_host_read_is_quarantined_unless_it_says_that_the_user_said_it(own: AgentServices) -> None:
    read = await run_tool(own, "remember", {"content": "The museum opens at ten."})
    said = await run_tool(own, "remember", {"content": "Ana wants a window seat.", "source": "own"})
    details = [await own.curation("cli").get(str(one.fields["memory_id"])) for one in (read, said)]
    assert [(one.trust, one.quarantined) for one in details] == [("tool", True), ("agent", False)]
    assert "quarantine" in str(read.fields["hint"]) and "hint" not in said.fields


async def test_a_fact_of_a_machine_with_a_fast_clock_is_current_at_once(mind: Mind, own: AgentServices) -> None:
    async with serve_client(own) as client:
        old = await client.remember("The tea is in the left cupboard.", subject="tea", attribute="lives in")
        ahead = mind.clock.now() + timedelta(minutes=2)
        new = await client.remember("It is in the drawer.", subject="tea", attribute="lives in", at=ahead)
        assert [one["memory_id"] for one in new["replaced"]] == [old["memory_id"]]
        mind.clock.advance(timedelta(minutes=10))
        later = mind.clock.now() + timedelta(days=2)
        planned = await client.remember("It is in the tin.", subject="tea", attribute="lives in", at=later)
        assert planned["replaced"] == [], "what begins in two days replaces nothing yet"


async def test_a_replaced_fact_comes_after_the_new_one_in_a_search_and_is_marked(own: AgentServices) -> None:
    old = await own.memories("cli").remember(FactDraft(content="Ana lives in Oslo near the harbour."))
    await own.curation("cli").supersede(short_id(old.memory_id), "Ana lives in Bergen since May.")
    found = await run_tool(own, "recall", {"query": "where does Ana live in Oslo", "min_relevance": 0})
    items: Any = found.fields["items"]
    texts = [str(item["text"]) for item in items if item["kind"] == "fact"]
    wanted = ["Ana lives in Bergen since May.", "superseded: Ana lives in Oslo near the harbour."]
    assert texts == wanted
    async with serve_client(own) as client:
        items = (await client.recall("where does Ana live in Oslo", min_relevance=0))["items"]
    assert [item["text"] for item in items if item["kind"] == "fact"] == wanted
