"""Whose memory a request uses, and requests of which nothing is stored."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import openai
import pytest

from newton.agent.prompting.system_prompt import TEMPLATE
from newton.runtime import agent_registry
from newton.runtime.access import tokens
from tests.endpoint import fails, says
from tests.system.scripted import Talk, talking_within
from tests.system.typed import ok, typed

TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title summarizing the chat history.\n### Output:\nJSON.\n<chat_history>\n"
)


@pytest.fixture(scope="module")
async def talk(home: Path, behind: str) -> AsyncIterator[Talk]:
    async with talking_within(home, behind) as made:
        yield made


async def newton(home: Path, *words: str, **settings: str) -> str:
    """What a command prints on the machine of the daemon."""
    return ok(await asyncio.to_thread(typed, home, *words, NEWTON_DATA_DIR=str(home / "data"), **settings))


async def a_token(home: Path, *flags: str, agent: str | None = None) -> str:
    agent = agent or f"app{uuid4().hex[:8]}"
    await newton(home, "agents", "create", agent)
    return json.loads(await newton(home, "tokens", "create", "app", "--agent", agent, "--json", *flags))["token"]


async def said(talk: Talk, token: str, text: str, /, headers: Mapping[str, str] = {}, **more: Any) -> Any:
    async with talk.client(token, **headers) as client:
        create: Any = client.chat.completions.create
        return await create(model="newton", messages=[{"role": "user", "content": text}], **more)


def prompt(talk: Talk) -> str:
    return json.dumps(talk.asked(), ensure_ascii=False)


async def traces(talk: Talk, word: str) -> list[str]:
    """The tables in which a word stands."""
    tables = await talk.fetch(
        "select format('%I.%I', schemaname, tablename) as name from pg_tables"
        " where schemaname not in ('pg_catalog', 'information_schema')"
    )
    in_one = " union all ".join(
        f"select '{row['name']}' as name where exists (select from {row['name']} as t where t::text ilike $1)"
        for row in tables
    )
    return [row["name"] for row in await talk.fetch(in_one, f"%{word}%")]


async def test_each_user_of_a_token_has_a_memory_of_their_own(talk: Talk, home: Path) -> None:
    token = await a_token(home, "--per-user")
    await said(talk, token, "My locker code is 4711-heron.", user="alice")
    await said(talk, token, "My locker code is 0815-stork.", {"X-Newton-User": "bob"})
    await said(talk, token, "What is my locker code?", user="bob")
    assert "0815-stork" in prompt(talk) and "4711-heron" not in prompt(talk)
    await said(talk, token, "What is my locker code?", user="alice")
    assert "4711-heron" in prompt(talk) and "0815-stork" not in prompt(talk)
    await said(talk, token, "What is my locker code?", safety_identifier="carol")
    assert "heron" not in prompt(talk) and "stork" not in prompt(talk)
    listed = await newton(home, "agents", "list", "--json")
    assert {"alice", "bob", "carol"} <= {one["user"] for one in json.loads(listed)}


async def test_every_route_uses_the_memory_of_the_user_that_the_header_names(talk: Talk, home: Path) -> None:
    token = await a_token(home, "--per-user")
    for_dora = {"Authorization": f"Bearer {token}", "X-Newton-User": "dora"}
    stored = await talk.post("/v1/memories", {"content": "The boat is called Kestrel."}, **for_dora)
    assert stored.status_code == 201, stored.text
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    query = {"name": "recall", "arguments": {"query": "What is the boat called?"}}
    found: dict[str, str] = {}
    for user in ("dora", "emil"):
        shown = {**for_dora, "X-Newton-User": user, "Accept": "application/json, text/event-stream"}
        by_http = await talk.post("/v1/recall", {"query": "What is the boat called?"}, **shown)
        by_mcp = await talk.post("/mcp", {**call, "params": query}, **shown)
        assert by_http.status_code == by_mcp.status_code == 200, by_http.text + by_mcp.text
        found[user] = by_http.text + by_mcp.text
    assert found["dora"].count("Kestrel") >= 2 and "Kestrel" not in found["emil"]


async def test_a_response_is_found_by_its_user_only(talk: Talk, home: Path) -> None:
    token = await a_token(home, "--per-user")
    async with talk.client(token) as client:
        made = await client.responses.create(model="newton", input="Remember the heron.", user="alice")
        with pytest.raises(openai.BadRequestError) as unnamed:
            await client.responses.retrieve(made.id)
        assert unnamed.value.param == "user"
        kept = await client.responses.retrieve(made.id, extra_headers={"X-Newton-User": "alice"})
        assert kept.output_text == "Fine."
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id, extra_headers={"X-Newton-User": "bob"})
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="newton", input="Go on.", previous_response_id=made.id, user="bob")


async def test_a_token_that_serves_one_user_refuses_a_second_one_with_the_remedy(talk: Talk, home: Path) -> None:
    token = await a_token(home)
    await said(talk, token, "Nobody is named.")
    await said(talk, token, "My locker code is 4712-egret.", user="alice")
    others: list[dict[str, Any]] = [
        {"user": "bob"},
        {"headers": {"X-Newton-User": "bob"}},
        {"safety_identifier": "bob"},
    ]
    for more in others:
        with pytest.raises(openai.PermissionDeniedError) as refused:
            await said(talk, token, "What is my locker code?", **more)
        assert "--per-user" in str(refused.value) and "--shared-users" in str(refused.value)
    await said(talk, token, "And my locker code?", user=" alice ")
    assert "4712-egret" in prompt(talk)


async def test_users_share_a_memory_where_the_operator_says_so(talk: Talk, home: Path) -> None:
    token = await a_token(home, "--shared-users")
    await said(talk, token, "The gate code is 5501-crane.", user="alice")
    await said(talk, token, "What is the gate code?", user="bob")
    assert "5501-crane" in prompt(talk)


async def test_a_request_without_a_user_or_with_two_is_refused(talk: Talk, home: Path) -> None:
    token = await a_token(home, "--per-user")
    with pytest.raises(openai.BadRequestError) as unnamed:
        await said(talk, token, "Who am I?")
    assert unnamed.value.param == "user" and "X-Newton-User" in str(unnamed.value)
    with pytest.raises(openai.BadRequestError):
        await said(talk, token, "Who am I?", {"X-Newton-User": "alice"}, user="bob")
    with pytest.raises(openai.BadRequestError):
        await said(talk, token, "Who am I?", user="x" * 501)
    shown = {"Authorization": f"Bearer {token}"}
    assert (await talk.post("/v1/recall", {"query": "anything"}, **shown)).status_code == 422
    assert (await talk.post("/v1/embeddings", {"input": "a", "model": "newton"}, **shown)).status_code == 404
    async with talk.client(token) as client:
        assert {one.id for one in (await client.models.list()).data} >= {"newton", "scripted"}
    with pytest.raises(openai.PermissionDeniedError):
        await said(talk, talk.token, "Who am I?", user="alice")
    both = await asyncio.to_thread(typed, home, "tokens", "create", "both", "--per-user", "--shared-users")
    assert both.returncode != 0 and "Give --per-user or --shared-users" in both.stderr


async def refusal(talk: Talk, token: str, user: str) -> tuple[int, str]:
    """The status of a request of a user, and the problem with its remedy."""
    shown = {"Authorization": f"Bearer {token}", "X-Newton-User": user}
    answer = await talk.post("/v1/recall", {"query": "anything"}, **shown)
    body = answer.json()
    return answer.status_code, f"{body.get('detail')} {body.get('hint')}"


async def test_a_token_adds_users_up_to_its_number(talk: Talk, home: Path) -> None:
    token = await a_token(home, "--per-user", "--max-users", "2")
    answers = await asyncio.gather(*(refusal(talk, token, f"user {number}") for number in range(6)))
    assert sorted(status for status, _ in answers) == [200, 200, 403, 403, 403, 403]
    refused = next(said for status, said in answers if status == 403)
    assert "2 users" in refused and "--max-users" in refused
    served = [number for number, (status, _) in enumerate(answers) if status == 200]
    assert [(await refusal(talk, token, f"user {number}"))[0] for number in served] == [200, 200], "known users stay"
    with pytest.raises(openai.PermissionDeniedError):
        await said(talk, token, "Hello.", user="another")
    wrong = await asyncio.to_thread(typed, home, "tokens", "create", "x", "--max-users", "2")
    assert wrong.returncode != 0 and "--per-user" in wrong.stderr


async def test_a_token_adds_few_users_an_hour_and_a_larger_one_more(
    talk: Talk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = f"crowd{uuid4().hex[:8]}"
    token = await a_token(home, "--per-user", agent=agent)
    larger = ("tokens", "create", "more", "--per-user", "--max-users", "2000", "--agent", agent, "--json")
    monkeypatch.setattr(agent_registry, "USERS_PER_HOUR", 3)
    assert [(await refusal(talk, token, f"user {number}"))[0] for number in range(5)] == [200] * 3 + [429] * 2
    assert "Known users are served" in (await refusal(talk, token, "user 4"))[1]
    assert (await refusal(talk, token, "user 0"))[0] == 200
    more = json.loads(await newton(home, *larger))["token"]
    assert [(await refusal(talk, more, f"user {number}"))[0] for number in range(3, 8)] == [200] * 3 + [429] * 2
    monkeypatch.undo()
    assert (agent_registry.USERS_PER_HOUR, tokens.MAX_USERS) == (60, 1_000)
    assert (await refusal(talk, token, "user 7"))[0] == 200


async def test_the_memory_of_a_user_begins_with_the_rules_of_the_agent(talk: Talk, home: Path) -> None:
    agent = f"cook{uuid4().hex[:8]}"
    token = await a_token(home, "--per-user", agent=agent)
    await newton(home, "identity", "add", "value", "Answer like a friendly cook.", "--agent", agent)
    await newton(
        home, "censors", "add", "peanut oil", "--reason", "A guest is allergic.", "--action", "block", "--agent", agent
    )
    await said(talk, token, "What can be fried today?", user="gil")
    assert "Answer like a friendly cook." in prompt(talk)
    talk.plays(says(["Use peanut oil."]))
    answer = await said(talk, token, "Which fat shall it be?", user="hal")
    assert (
        answer.choices[0].finish_reason == "content_filter" and "peanut oil." not in answer.choices[0].message.content
    )


@pytest.mark.parametrize("how", ["store", "header", "stream", "responses"])
async def test_a_private_request_uses_the_memory_and_leaves_no_trace(talk: Talk, home: Path, how: str) -> None:
    token = await a_token(home)
    await said(talk, token, f"The {how} ferry is called Artemis.")
    word, text = f"quokka{uuid4().hex[:10]}", "What is the {} ferry called? My pet is a {}."
    text = text.format(how, word)
    talk.plays(says([f"Artemis, says your {word}."]))
    if how == "store":
        answer = await said(talk, token, text, store=False)
        assert (answer.newton["remembered"], answer.newton["bundle_id"]) == (False, None)
    elif how == "header":
        await said(talk, token, text, {"X-Newton-Remember": "no"})
    elif how == "stream":
        async with talk.client(token) as client:
            create: Any = client.chat.completions.create
            messages = [{"role": "user", "content": text}]
            stream = await create(model="newton", messages=messages, store=False, stream=True)
            pieces = [piece.choices[0].delta.content or "" async for piece in stream]
        assert word in "".join(pieces)
    else:
        async with talk.client(token) as client:
            made = await client.responses.create(model="newton", input=text, store=False)
            assert word in made.output_text
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(made.id)
    assert "is called Artemis" in prompt(talk) and word in prompt(talk)
    assert await traces(talk, word) == []
    assert await traces(talk, f"{how} ferry is called Artemis") != []  # the search finds what is stored
    assert not [file for file in (home / "data").glob("*.log*") if word in file.read_text(errors="ignore")]


async def test_a_private_response_goes_on_from_a_stored_one(talk: Talk, home: Path) -> None:
    token = await a_token(home)
    word = f"wombat{uuid4().hex[:10]}"
    async with talk.client(token) as client:
        first = await client.responses.create(model="newton", input="The kiln is at 980 degrees.")
        await client.responses.create(
            model="newton", input=f"And my {word}?", previous_response_id=first.id, store=False
        )
        assert [text for _, text in talk.shown()] == ["The kiln is at 980 degrees.", "Fine.", f"And my {word}?"]
        await client.responses.create(model="newton", input="Go on.", previous_response_id=first.id)
    assert word not in prompt(talk) and await traces(talk, word) == []


async def test_a_private_request_whose_model_fails_is_an_error(talk: Talk, home: Path) -> None:
    token = await a_token(home)
    await said(talk, token, "The kiln is at 980 degrees.")
    talk.plays(*[fails(500, retry_after="0")] * 4)
    with pytest.raises(openai.InternalServerError, match="HTTP status 500"):
        await said(talk, token, "How hot is the kiln?", store=False)
    talk.plays(*[fails(500, retry_after="0")] * 4)
    with pytest.raises(openai.APIStatusError):
        await said(talk, token, "How hot is the kiln?", store=False, response_format={"type": "json_object"})
    talk.plays()


async def test_what_a_program_asks_by_itself_gets_no_memory_and_leaves_none(talk: Talk, home: Path) -> None:
    token = await a_token(home)
    await said(talk, token, "The ferry is called Artemis.")
    word = f"numbat{uuid4().hex[:10]}"
    talk.plays(says([f'{{"title": "Ferry {word}"}}']))
    task = f"{TITLE}USER: What is the ferry called, {word}?\n</chat_history>"
    answer = await said(talk, token, task)
    assert answer.newton["ui_task"] == "title" and answer.newton["context_tokens"] == 0
    assert talk.asked()["messages"] == [{"role": "user", "content": task}]
    assert await traces(talk, word) == []
    metrics = (await talk.get("/metrics")).text
    assert 'newton_ui_tasks_total{task="title"}' in metrics
    # the header says that it is to be remembered all the same
    answer = await said(talk, token, task, {"X-Newton-Remember": "yes"})
    assert answer.newton["ui_task"] is None and TEMPLATE[:40] in talk.asked()["messages"][0]["content"]
    assert await traces(talk, word) != []


async def test_what_a_program_asks_by_itself_follows_the_identity_and_the_constraints(talk: Talk, home: Path) -> None:
    agent = f"guard{uuid4().hex[:8]}"
    token = await a_token(home, agent=agent)
    await newton(home, "identity", "add", "value", "Answer like a friendly cook.", "--agent", agent)
    block = ("censors", "add", "peanut oil", "--reason", "A guest is allergic.", "--action", "block")
    await newton(home, *block, "--agent", agent)
    messages = {"title": f"{TITLE}USER: Which fat is best?\n</chat_history>", "none": ""}
    for task, text in messages.items():
        instructions: list[Any] = [{"role": "system", "content": "## Active Constraints\n- None. Be brief."}]
        async with talk.client(token) as client:
            create: Any = client.chat.completions.create
            asked = [{"role": "user", "content": text}] if text else [{"role": "assistant", "content": "Hello."}]
            answer = await create(model="newton", messages=[*instructions, *asked])
        assert answer.newton["ui_task"] == (task if text else None) and answer.newton["context_tokens"] == 0
        system = talk.asked()["messages"][0]["content"]
        assert "## Identity\n- " in system and "Answer like a friendly cook." in system and "peanut oil" in system
        assert system.count("## Active Constraints") == 1 and "Be brief." in system
    talk.plays(says(["Frying with peanut oil."]))
    answer = await said(talk, token, messages["title"])
    assert (
        answer.choices[0].finish_reason == "content_filter" and "peanut oil." not in answer.choices[0].message.content
    )
    talk.plays(says(["A title."]))
    answer = await said(talk, token, f"{TITLE}USER: Fry it in peanut oil!\n</chat_history>")
    assert answer.newton["ui_task"] == "title" and "forbids this input" in answer.choices[0].message.content
    assert talk.behind.asked == []
    talk.plays()  # the reply that was not asked for


async def test_feedback_of_a_framework_gets_the_memory_of_the_question_and_is_no_memory(talk: Talk, home: Path) -> None:
    token = await a_token(home)
    await said(talk, token, "The ferry is called Artemis.")
    feedback = '1 validation errors:\n[{"loc": ["cars"]}]\n\nFix the errors and try again.'
    history: list[Any] = [
        {"role": "user", "content": "What is the ferry called?"},
        {"role": "assistant", "content": '{"name": "Artemis"}'},
        {"role": "user", "content": feedback},
    ]
    async with talk.client(token) as client:
        create: Any = client.chat.completions.create
        await create(model="newton", messages=history[:1])
        answer = await create(model="newton", messages=history)
        assert answer.newton["ui_task"] == "validation_feedback" and answer.newton["context_tokens"] > 0
        assert "is called Artemis" in prompt(talk) and talk.shown()[-1] == ("user", feedback)
        more = [{"role": "assistant", "content": "{}"}, {"role": "user", "content": "How many cars does it take?"}]
        await create(model="newton", messages=[*history, *more])
    rows = await talk.fetch("select 1 from memory.memories as m where m::text like '%Fix the errors%'")
    assert rows == []


async def test_a_private_question_in_the_terminal_leaves_no_trace(talk: Talk, home: Path) -> None:
    word = f"dunnart{uuid4().hex[:10]}"
    where = ("--daemon", talk.url)
    talk.plays(says([f"A {word}."]))
    assert word in await newton(home, "ask", f"What is a {word}?", "--private", *where, NEWTON_TOKEN=talk.token)
    assert await traces(talk, word) == []
    await newton(home, "ask", f"What is a {word}?", *where, NEWTON_TOKEN=talk.token)
    assert "dialogue.messages" in await traces(talk, word)
