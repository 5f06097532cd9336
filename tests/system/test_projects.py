"""Projects of a person: what is stored in one is seen there alone, and what the person stored above is seen in each."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from newton.client import ApiError, Client
from newton.db.pool import Database
from newton.ids import derive_agent_id
from newton.memory import agents
from tests.endpoint import endpoint, says
from tests.support import NOON
from tests.system.project_walls import Walls
from tests.system.served import Api, served
from tests.system.typed import ok, typed


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as opened:
        yield opened


async def test_no_word_crosses_a_wall_and_each_context_has_the_rules_of_its_person(
    db: Database, dsn: str, tmp_path: Path
) -> None:
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        walls = Walls(api=api, model=model, home=tmp_path, dsn=dsn)
        await walls.fill(40)
        await walls.build(30)
    assert walls.faults == []
    assert len(walls.built) == 5 and walls.inherited > 5, "or the test shows nothing"


async def test_a_fact_of_a_project_comes_before_what_it_contradicts_above_and_changes_nothing_there(api: Api) -> None:
    token, question = await api.token("ana"), "Where is the shop deployed?"
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        above = (await ana.remember("The shop is deployed on Heroku.", at=NOON - timedelta(days=1)))["memory_id"]
        await shop.remember("The shop is deployed on Hetzner.", at=NOON - timedelta(days=2))
        in_shop = (await shop.context(question))["text"]
        async with Client(api.url, token=token, project="blog") as blog:
            in_blog = await blog.context(question)
        in_ana = (await ana.context(question))["text"]
        assert (await ana.expand(above))["state"] == "NEW"
    first, second = (line for line in in_shop.splitlines() if "The shop is deployed" in line)
    assert "Hetzner" in first and second.startswith("elsewhere all projects, ") and "Heroku" in second
    assert re.search("- all projects, .*: The shop is deployed on Heroku.", in_blog["text"])
    assert "Hetzner" not in in_blog["text"]
    assert [item["inherited"] for item in in_blog["items"] if item["kind"] == "fact"] == [True]
    assert "Heroku" in in_ana and "Hetzner" not in in_ana and "all projects" not in in_ana


async def test_a_memory_above_is_found_explained_and_replayed_in_a_project(api: Api) -> None:
    token = await api.token("ana")
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        above = (await ana.remember("The landlord is called Mr Weber."))["memory_id"]
        bundle = (await shop.context("Who is the landlord?"))["bundle_id"]
        (found,) = (await shop.recall("Who is the landlord?"))["items"]
        assert (found["memory_id"], found["is_inherited"]) == (above, True)
        shown = await shop.expand(above)
        assert shown["is_inherited"] and shown["full_text"] == "The landlord is called Mr Weber."
        assert shown["uses"] == 2, "the context and the search"
        explained = next(one for one in (await shop.why(bundle))["candidates"] if one["memory_id"] == above)
        assert "stored above the project" in explained["note"]
        assert (await shop.replay(bundle))["identical"]
        with pytest.raises(ApiError, match="There is no"):
            await ana.expand((await shop.remember("The till is green."))["memory_id"])


async def test_what_is_forgotten_above_disappears_from_the_contexts_of_projects(api: Api) -> None:
    token = await api.token("ana")
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        above = (await ana.remember("The landlord is called Mr Weber."))["memory_id"]
        bundle = (await shop.context("Who is the landlord?"))["bundle_id"]
        await ana.forget(above, token=(await ana.forget(above))["token"])
        with pytest.raises(ApiError) as gone:
            await shop.why(bundle)
        assert gone.value.code == "not_found"
        assert "Weber" not in (await shop.context("Who is the landlord?"))["text"]


async def test_an_erasure_covers_the_projects_of_the_person(api: Api) -> None:
    token = await api.token("ana")
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        await ana.remember("Rosa Luna keeps the keys.")
        await shop.remember("Rosa Luna orders the tea.")
        plan = await ana.preview_erasure("Rosa Luna")
        assert len(plan["memories"]) >= 2
        await ana.post("/v1/erasures", {"subject": "Rosa Luna", "token": plan["token"], "reason": "asked"})
        assert "Rosa" not in json.dumps(
            [await ana.recall("Who?", min_relevance=0), await shop.recall("Who?", min_relevance=0)]
        )


async def test_a_rule_that_changes_above_holds_in_the_next_turn_of_a_project(db: Database, tmp_path: Path) -> None:
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        token = await api.token("ana")
        async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
            await _take_turn(shop, "Where is the till?")
            await ana.add_line("instruction", "Always answer in verse.")
            place = (await ana.remember("The till is beside the door."))["memory_id"]
            await _take_turn(shop, "And where is the till?")
            sent = json.dumps(model.asked[-1]["messages"])
            assert "Always answer in verse." in sent and "The till is beside the door." in sent
            await ana.retract(place)
            await _take_turn(shop, "And where is the till?")
            latest = (await shop.bundles(session="s"))["items"][0]["bundle_id"]
            assert "beside the door" not in (await shop.bundle(latest))["text"]
            await ana.add_censor(trigger="open the sluice", reason="It floods.", action="block")
            await _take_turn(shop, "Please open the sluice")
    assert "open the sluice" not in json.dumps(model.asked[-1]["messages"][-1])


async def _take_turn(client: Client, text: str) -> None:
    async for _ in client.run_turn("s", text):
        pass


async def test_a_token_of_a_project_is_for_this_project_alone(api: Api) -> None:
    token = await api.token("ana")
    async with Client(api.url, token=token, project="shop") as shop, Client(api.url, token=token) as ana:
        await shop.remember("The till is green.")
        await ana.remember("The landlord is called Mr Weber.")
    bound = await api.token(agents.name_project_agent("ana", "shop"))
    async with Client(api.url, token=bound) as own, Client(api.url, token=bound, project="shop") as named:
        assert {"green", "Weber"} <= set(
            json.dumps(await own.recall("till landlord", min_relevance=0)).replace(".", " ").split()
        )
        assert (await named.recall("Which colour is the till?"))["items"]
        assert (await own.projects())["items"] == []
    async with Client(api.url, token=bound, project="blog") as other:
        with pytest.raises(ApiError) as refused:
            await other.recall("Which colour is the till?")
    assert refused.value.code == "forbidden"


async def test_a_project_belongs_to_the_user_that_the_request_names(api: Api) -> None:
    token = await api.token("desk", users="per_user")
    for user, word in (("alice", "heron"), ("bob", "stork")):
        async with Client(api.url, token=token, user=user, project="shop") as shop:
            await shop.remember(f"The till is called {word}.")
            assert word in json.dumps(await shop.recall("What is the till called?"))
    async with Client(api.url, token=token, user="bob", project="shop") as shop:
        assert "heron" not in json.dumps(await shop.recall("What is the till called?", min_relevance=0))
    async with Client(api.url, token=token, project="shop") as unnamed:
        with pytest.raises(ApiError, match="names no user"):
            await unnamed.recall("What is the till called?")


async def test_only_a_request_that_may_write_creates_a_project(api: Api, db: Database) -> None:
    reading, writing = await api.token("ana", "read"), await api.token("ana", "write")
    for token, code in ((reading, "not_found"), (writing, None)):
        async with Client(api.url, token=token, project="new") as client:
            try:
                await client.context("What is new?")
                assert code is None
            except ApiError as error:
                assert error.code == code
        project = derive_agent_id(agents.name_project_agent("ana", "new"))
        async with db.transaction(project) as tx:
            assert await tx.fetchval("select count(*) from runtime.agents") == int(code is None)


async def test_a_project_is_deleted_with_all_that_it_stores_after_a_preview(api: Api, db: Database) -> None:
    token = await api.token("ana")
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        await shop.remember("The till is green.")
        await ana.remember("The landlord is called Mr Weber.")
        plan: Any = await ana.delete_project("shop")
        assert (plan["name"], len((await ana.projects())["items"])) == ("shop", 1)
        await ana.delete_project("shop", token=plan["token"])
        assert (await ana.projects())["items"] == [] and (await ana.recall("Who is the landlord?"))["items"]
        async with db.transaction(derive_agent_id(agents.name_project_agent("ana", "shop"))) as tx:
            assert await tx.fetchval("select count(*) from memory.memories") == 0
        assert "green" not in json.dumps(await shop.recall("Which colour is the till?", min_relevance=0))


async def test_what_is_moved_ends_in_its_scope_and_keeps_its_origin_in_the_other(api: Api) -> None:
    token = await api.token("ana")
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        fact = (await shop.remember("The till is green.", confidence=0.7, at=NOON))["memory_id"]
        before = await shop.expand(fact)
        plan = await shop.move_memories("person", memory_ids=[fact])
        assert (await shop.expand(fact))["memory_id"] == fact, "a plan changes nothing"
        (new_id,) = (await shop.move_memories("person", memory_ids=[fact], token=plan["token"]))["new_ids"]
        after = await ana.expand(new_id)
        for name in ("full_text", "kind", "origin", "trust", "state", "confidence", "occurred_at", "created_at"):
            assert after[name] == before[name], name
        with pytest.raises(ApiError, match="moved to the person"):
            await shop.forget(fact)
        async with Client(api.url, token=token, project="blog") as blog:
            await blog.remember("The blog has a red banner.")
            assert "all projects: The till is green." in json.dumps(await blog.recall("Which colour is the till?"))
            plan = await ana.move_memories("blog", memory_ids=[new_id])
            await ana.move_memories("blog", memory_ids=[new_id], token=plan["token"])
            assert "The till is green." in json.dumps(await blog.recall("Which colour is the till?"))
        for one in (ana, shop):
            assert "till" not in json.dumps(await one.recall("Which colour is the till?", min_relevance=0))


async def test_decisions_and_rules_are_moved_too_but_not_by_a_token_of_one_project(api: Api) -> None:
    token = await api.token("ana")
    reasons = [{"kind": "analysis", "text": "It is near."}]
    async with Client(api.url, token=token) as ana, Client(api.url, token=token, project="shop") as shop:
        draft = {"description": "Deploy on Hetzner.", "confidence": 0.8, "reasons": reasons}
        decision = (await shop.post("/v1/decisions", draft))["decision_id"]
        await shop.add_censor("sell the till", "It is lent.", action="block")
        censor = (await shop.censors())["items"][0]["memory_id"]
        await shop.add_line("instruction", "Always answer in verse.")
        ids = [decision, censor, (await shop.identity())["lines"][0]["line_id"]]
        async with Client(api.url, token=await api.token(agents.name_project_agent("ana", "shop"))) as confined:
            with pytest.raises(ApiError) as refused:
                await confined.move_memories("person", memory_ids=ids)
        assert refused.value.code == "forbidden"
        plan = await shop.move_memories("person", memory_ids=ids)
        await shop.move_memories("person", memory_ids=ids, token=plan["token"])
        (moved,) = (await ana.decisions())["items"]
        assert (moved["description"], moved["confidence"]) == ("Deploy on Hetzner.", 0.8)
        assert (await shop.decision(decision))["description"] is None, "the record stays, without its text"
        context = (await ana.context("May I sell the till?"))["text"]
        assert "Always answer in verse." in context and "sell the till" in context
        assert (await shop.identity())["lines"] == []


def test_each_command_takes_a_project_from_its_option_or_the_environment(tmp_path: Path) -> None:
    unknown = typed(tmp_path, "recall", "tea", "--project", "shop")
    assert unknown.returncode == 2 and "There is no project 'shop'." in unknown.stderr
    created = typed(tmp_path, "remember", "The tea of the shop is green.", "--project=shop")
    assert created.stderr.splitlines()[:2] == [
        "Created project shop.",
        "  If the name is a typing error, `newton projects delete shop` deletes it.",
    ]
    ok(typed(tmp_path, "remember", "The tea at home is black."))
    in_shop = ok(typed(tmp_path, "recall", "Which tea?", NEWTON_PROJECT="shop"))
    assert "all projects: The tea at home is black." in in_shop and "green" in in_shop
    assert "green" not in ok(typed(tmp_path, "recall", "Which tea?"))
    assert "shop" in ok(typed(tmp_path, "projects"))
    made = json.loads(ok(typed(tmp_path, "tokens", "create", "laptop", "--project", "shop", "--json")))
    assert made["project"] == "shop"
    assert typed(tmp_path, "recall", "tea", "--project").returncode == 2
    ok(typed(tmp_path, "export", "all.ndjson"))
    assert json.loads((tmp_path / "all.ndjson").read_text().splitlines()[0])["projects"] == ["shop"]
