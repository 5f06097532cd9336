"""What a person says through any interface is learnt, found and in force at once, also in other sessions."""

import asyncio
import json
import re
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from newton.db.pool import Database
from newton.errors import ProviderError
from newton.ids import derive_agent_id
from newton.providers.fakes import HashEmbedder
from newton.providers.minilm import MiniLM
from tests.endpoint import Wire, endpoint, says
from tests.support import until
from tests.system.daemons import Daemon, daemon
from tests.system.served import Api, served
from tests.system.test_cli import ok, run
from tests.system.test_mcp import speaking, told

TOLD = (
    "Hey, short introduction: I'm Mia, I work as a nurse in Lyon and I'm allergic to hazelnuts.",
    "My sister Jo has a greyhound called Biscuit, and my brother Tom drives a taxi.",
    "I play the oboe in an orchestra on Tuesdays. My boss is called Renate.",
    "My car is a green Skoda. Do you know a good garage?",
    "Our flat is above a bakery, but the rent is only 700 euros.",
)
ASKED = {
    "What do I do for a living?": "nurse",
    "Which city do I work in?": "Lyon",
    "What food should I avoid because of my allergy?": "hazelnuts",
    "What breed is my sister's dog?": "greyhound",
    "What is the job of my brother?": "taxi",
    "Which musical instrument do I play?": "oboe",
    "Who is my manager at work?": "Renate",
    "What vehicle do I own?": "Skoda",
    "What is below our apartment?": "bakery",
    "How much do we pay for our apartment each month?": "700",
}


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


async def ask(http: httpx2.AsyncClient, text: str, session: str) -> str:
    """The reply by the protocol of OpenAI."""
    body = {"messages": [{"role": "user", "content": text}]}
    answer = await http.post("/v1/chat/completions", json=body, headers={"X-Newton-Session": session})
    assert answer.is_success, answer.text
    return answer.json()["choices"][0]["message"]["content"]


async def tell(http: httpx2.AsyncClient, *texts: str, session: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    answer = await http.post(f"/v1/sessions/{session}/messages", json={"messages": messages})
    assert answer.is_success, answer.text


async def facts(api: Api, agent: str) -> list[str]:
    async with api.db.transaction(derive_agent_id(agent)) as tx:
        rows = await tx.fetch("select full_text from memory.memories where kind = 'fact'")
    return [row["full_text"] for row in rows]


async def test_what_one_session_states_another_one_knows_at_once(db: Database, minilm: MiniLM, tmp_path: Path) -> None:
    # S002-17
    async with (
        served(db, tmp_path, embedder=minilm, quote_without_model=True) as api,
        api.http(await api.token("mia")) as http,
    ):
        await tell(http, *TOLD[:2], session="a")
        for text in TOLD[2:]:
            await ask(http, text, "a")
        replies = {question: await ask(http, question, f"b{n}") for n, question in enumerate(ASKED)}
        missing = {question for question, word in ASKED.items() if word not in replies[question]}
        assert not missing, replies


async def test_a_correction_in_the_same_conversation_is_no_fact_of_its_own(
    db: Database, minilm: MiniLM, tmp_path: Path
) -> None:
    said = (
        "Yusuf's cello lesson is on Thursday at 5.",
        "No wait, the lesson is on Wednesday now.",
        "Oh, sorry. Actually, my flight leaves on Sunday.",
        "Hold on, my neighbour Greta keeps bees.",
    )
    async with served(db, tmp_path, embedder=minilm) as api, api.http(await api.token("yusuf")) as http:
        await tell(http, *said, session="a")
        assert set(await facts(api, "yusuf")) == {
            "Yusuf's cello lesson is on Thursday at 5.",
            "Yusuf's cello lesson is on Wednesday at 5.",
            "My flight leaves on Sunday.",
            "My neighbour Greta keeps bees.",
        }


@pytest.mark.parametrize("said", ["Hiya, Moira here.", "Which soup keeps well? cheers, Moira"])
async def test_who_introduces_themselves_in_passing_is_known_by_that_name(
    db: Database, tmp_path: Path, said: str
) -> None:
    # S002-17
    async with served(db, tmp_path, quote_without_model=True) as api, api.http(await api.token("moira")) as http:
        for text in ("We have two cats.", said):
            await ask(http, text, "a")
        for session in ("a", "b"):
            reply = await ask(http, "What's my name?", session)
            assert "Moira" in reply and "two cats" not in reply, reply
        profile = (await http.get("/v1/about")).json()
        assert profile["names"] == ["Moira"]
        assert not [one for one in profile["sections"] if one["title"] == "Other"], profile


async def test_a_profile_shows_the_latest_of_what_is_contested(db: Database, minilm: MiniLM, tmp_path: Path) -> None:
    # S002-17
    async with (
        served(db, tmp_path, embedder=minilm, quote_without_model=True) as api,
        api.http(await api.token("rita")) as http,
    ):
        await tell(http, "I'm allergic to nuts.", "I'm not allergic to nuts.", session="a")
        assert set(await facts(api, "rita")) == {"I'm allergic to nuts.", "I'm not allergic to nuts."}, (
            "nothing changed"
        )
        profile = (await http.get("/v1/about")).json()
        shown = [(one["text"], one["before"]) for section in profile["sections"] for one in section["facts"]]
        assert (profile["count"], shown) == (1, [("I'm not allergic to nuts.", "I'm allergic to nuts.")])
        reply = await ask(http, "What do you know about me?", "b")
        assert reply.partition("Health and limits:\n")[2].partition("\n")[0].endswith("I'm not allergic to nuts."), (
            reply
        )


KILN = [{"role": "user", "content": "The kiln stands in the shed."}]
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
WRITES: dict[str, tuple[str, Any]] = {
    "a fact": ("/v1/memories", {"content": "The kiln stands in the shed."}),
    "messages": ("/v1/sessions/kiln/messages", {"messages": KILN}),
    "a turn": ("/v1/sessions/kiln/turns", {"input": "The kiln stands in the shed."}),
    "a chat completion": ("/v1/chat/completions", {"messages": KILN}),
    "a stream": ("/v1/chat/completions", {"messages": KILN, "stream": True}),
    "a response": ("/v1/responses", {"input": "The kiln stands in the shed."}),
    "a fact by MCP": ("/mcp", {**RPC, "params": {"name": "remember", "arguments": {"content": "The kiln is hot."}}}),
    "an exchange by MCP": (
        "/mcp",
        {**RPC, "params": {"name": "note_exchange", "arguments": {"session": "kiln", "user": "The kiln is hot."}}},
    ),
}


@pytest.mark.parametrize("written", WRITES)
async def test_what_is_written_is_embedded_before_the_answer(db: Database, tmp_path: Path, written: str) -> None:
    path, body = WRITES[written]
    accept = {"Accept": "application/json, text/event-stream"}
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="scripted") as api,
        api.http(await api.token("ana"), **accept) as http,
    ):
        answer = await http.post(path, json=body)
        assert answer.is_success, answer.text
        assert await api.rows("ana", "memory.embeddings") > 0
        assert await api.rows("ana", "memory.outbox") == 0


async def test_an_embedder_that_fails_leaves_the_work_to_the_job(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: HashEmbedder, texts: object) -> None:
        raise ProviderError("The embedding model is down.", hint="Start it.")

    async with served(db, tmp_path) as api, api.http(await api.token("ana")) as http:
        with monkeypatch.context() as broken:
            broken.setattr(HashEmbedder, "embed", fail)
            answer = await http.post("/v1/sessions/kiln/messages", json={"messages": KILN})
        assert answer.status_code == 201, answer.text
        assert await api.rows("ana", "memory.outbox") > 0


SAID = ("I moved to Bergen in May.", "Good morning! My sister is called Ana.", "What is the weather like?")
FACTS = ["I moved to Bergen in May.", "My sister is called Ana."]
DRAFT_MARKS = re.compile(r"<S\d+ |>(?=[.!?])|(?<=[.!?])>")  # around the words that are a fact already
AGENTS = ("talker", "asker", "poster", "caller", "host")
OFFLINE = {"NEWTON_EMBEDDING_PROVIDER": "none"}


@pytest.fixture(scope="module")
def quoting(home: Path) -> Iterator[Daemon]:
    with daemon(home, **OFFLINE, NEWTON_QUOTE_WITHOUT_MODEL="true") as made:
        made.begins(*AGENTS)
        yield made


async def learnt(dsn: str, agent: str) -> tuple[list[str], int, set[str]]:
    """The facts of an agent, the number of its episodes, and the trust of its facts."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            "select m.kind, m.full_text, m.trust from memory.memories as m join runtime.agents as a using (agent_id)"
            " where a.name = $1 and m.kind in ('fact', 'episode') order by m.occurred_at, m.memory_id",
            agent,
        )
    finally:
        await connection.close()
    facts = [row for row in rows if row["kind"] == "fact"]
    return [row["full_text"] for row in facts], len(rows) - len(facts), {row["trust"] for row in facts}


async def typed(home: Path, *words: str, stdin: str = "", **settings: str) -> None:
    """Run a command beside the loop that a daemon or a model of the test needs."""
    ok(await asyncio.to_thread(partial(run, home, *words, stdin=stdin, **OFFLINE, **settings)))


async def becomes_idle(home: Path, agent: str, **settings: str) -> None:
    """Its sessions have been idle for long enough."""
    await typed(home, "jobs", "run", "extract", "--agent", agent, NEWTON_SESSION_IDLE_MINUTES="0", **settings)


async def complete(served: Daemon, agent: str) -> None:
    """The conversation over the protocol of OpenAI, whose clients send all of it each time."""
    messages: list[dict[str, str]] = []
    shown = {"Authorization": f"Bearer {served.token}", "X-Newton-Agent": agent, "X-Newton-Session": "s"}
    async with httpx2.AsyncClient(base_url=served.url, headers=shown, timeout=60, verify=False) as client:
        for text in SAID:
            messages.append({"role": "user", "content": text})
            answer = await client.post("/v1/chat/completions", json={"model": "newton", "messages": messages})
            body: Any = answer.json()
            messages.append({"role": "assistant", "content": body["choices"][0]["message"]["content"]})


@pytest.mark.slow
async def test_the_same_conversation_teaches_the_same_by_every_interface(
    quoting: Daemon, home: Path, behind: str
) -> None:
    await typed(home, "chat", "--agent", "talker", stdin="\n".join(SAID) + "\n")
    for text in SAID:
        await typed(home, "ask", text, "--session", "s", "--agent", "asker")
    with quoting.client(**{"X-Newton-Agent": "poster"}) as client:
        for text in SAID:
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
            assert client.post("/v1/sessions/s/messages", json={"messages": messages}).is_success
    await complete(quoting, "caller")
    async with speaking(quoting.url, quoting.token, **{"X-Newton-Agent": "host"}) as client:
        for text in SAID:
            await told(client, "note_exchange", user=text, assistant="I see.", session="s")
    assert await learnt(behind, "talker") == (FACTS, 1, {"user"}), "a conversation that is closed is learnt at once"
    assert (await learnt(behind, "poster"))[:2] == (FACTS, 0), "what the others state is known while they go on"
    for agent in (*AGENTS, "poster"):
        await becomes_idle(home, agent)
    found = {agent: await learnt(behind, agent) for agent in AGENTS}
    trusts = {"host": {"agent"}}  # a model reports what the user said
    assert found == {agent: (FACTS, 1, trusts.get(agent, {"user"})) for agent in AGENTS}


async def test_a_session_that_is_closed_is_learnt_at_once_by_the_daemon(served: Daemon, house: Path) -> None:
    dsn = tomllib.loads((house / "newton.toml").read_text(encoding="utf-8"))["database_url"]
    served.begins("closer")
    with served.client(**{"X-Newton-Agent": "closer"}) as client:
        client.post("/v1/sessions/s/messages", json={"messages": [{"role": "user", "content": SAID[0]}]})
        assert client.post("/v1/sessions/s/close").is_success

    async def is_learnt() -> bool:
        return await learnt(dsn, "closer") == (FACTS[:1], 1, {"user"})

    await until(is_learnt)


@pytest.mark.slow
async def test_with_a_model_every_interface_hands_it_the_same_lines(home: Path, behind: str) -> None:
    asked: list[str] = []

    async def respond(wire: Wire) -> None:
        prompt = str(wire.body["messages"][-1]["content"])
        asked.extend([DRAFT_MARKS.sub("", prompt)] if "<lines>" in prompt else [])
        await says(['{"items": []}' if "<lines>" in prompt else "I see."])(wire)

    async with endpoint(respond) as model:
        address = {"OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "scripted"}
        with daemon(home, **OFFLINE, **address) as served:
            served.begins("modelled")
            await complete(served, "modelled")
            await becomes_idle(home, "modelled", **address)
    facts, episodes, trusts = await learnt(behind, "modelled")
    assert (sorted(facts), episodes, trusts) == (sorted(FACTS), 1, {"user"})
    assert all(any(said in prompt for prompt in asked) for said in SAID)


RULE = "Never suggest restaurants with live music"

MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


async def by_turn(http: httpx2.AsyncClient, text: str) -> None:
    (await http.post("/v1/sessions/s/turns", json={"input": text})).raise_for_status()


async def by_openai(http: httpx2.AsyncClient, text: str) -> None:
    body = {"model": "newton", "messages": [{"role": "user", "content": text}]}
    (await http.post("/v1/chat/completions", json=body)).raise_for_status()


async def by_messages(http: httpx2.AsyncClient, text: str) -> None:
    body = {"messages": [{"role": "user", "content": text}]}
    (await http.post("/v1/sessions/s/messages", json=body)).raise_for_status()


@pytest.mark.parametrize("tell", [by_turn, by_openai, by_messages])
async def test_a_rule_is_in_force_at_once_and_a_later_line_replaces_it(
    db: Database, tmp_path: Path, tell: Callable[[httpx2.AsyncClient, str], Awaitable[None]]
) -> None:
    async with served(db, tmp_path, quote_without_model=True) as api, api.http(await api.token("told")) as http:
        await tell(http, f"Thanks. {RULE}.")
        await tell(http, "From now on answer in French.")
        await tell(http, f"The waiter said: {RULE}. Was he rude?")
        await tell(http, "From now on answer in German.")
        lines = (await http.get("/v1/identity")).json()["lines"]
        assert [line["text"] for line in lines] == [RULE, "From now on answer in German"]
        assert all(line["said_on"] for line in lines)
        assert (await http.get("/v1/identity/proposals")).json()["items"] == []


async def test_what_an_agent_reports_over_mcp_waits_and_the_answer_says_so(db: Database, tmp_path: Path) -> None:
    async with served(db, tmp_path) as api, api.http(await api.token("noted", "write"), **MCP_HEADERS) as http:
        call = {"name": "note_exchange", "arguments": {"session": "s", "user": f"{RULE}.", "assistant": "Yes."}}
        answer = await http.post("/mcp", json={**RPC, "params": call})
        assert json.loads(answer.json()["result"]["content"][0]["text"])["proposed_rules"] == [RULE]
        assert (await http.get("/v1/identity")).json()["lines"] == []
        assert [one["text"] for one in (await http.get("/v1/identity/proposals")).json()["items"]] == [RULE]
