"""What is said to Newton is learnt, whichever interface it comes by."""

import asyncio
import re
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from tests.endpoint import Wire, endpoint, says
from tests.support import until
from tests.system.daemons import Daemon, daemon
from tests.system.test_cli import ok, run
from tests.system.test_mcp import speaking, told

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
