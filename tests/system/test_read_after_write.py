"""What is written through any interface can be read at once through it, without its secrets, which are counted."""

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx2
import pytest

from newton.content.yaml_files import parse_trusted
from newton.db.pool import Database
from newton.heart.identity.standing_wishes import detect_instructions
from tests.endpoint import endpoint, says
from tests.system.daemons import Daemon, daemon
from tests.system.served import Api, served
from tests.system.typed import ok, typed

DATA = Path(__file__).parents[1] / "data"
READS = int(os.environ.get("TEST_READS", "24"))
COUNTS = {"http": READS, "mcp": READS, "openai": READS, "cli": int(os.environ.get("TEST_CLI_READS", str(READS)))}
SETTINGS = {"NEWTON_QUOTE_WITHOUT_MODEL": "true"}  # of the daemon, and of the commands beside it
WAIT_SECONDS = 60
BEGINNING_CHARS = 30  # of a fact, by which it is recognised in a context that shortens it
SHORT_ID = re.compile(r"\(([0-9a-f]{8})\)")


class Pair(NamedTuple):
    """A fact of a store, and a question about it in other words."""

    store: int
    fact: str
    question: str


def load_stores() -> tuple[list[list[str]], list[Pair]]:
    """The facts of each store, and the pairs. An instruction is none: by MCP it is proposed for the identity."""
    stores: list[list[str]] = []
    pairs: list[Pair] = []
    for file in ("small_stores.yaml", "small_stores_heldout.yaml"):
        for one in parse_trusted((DATA / file).read_text(encoding="utf-8")):
            known = [
                (one["facts"][item["gold"][0]], item["ask"]) for item in one["questions"] if len(item["gold"]) == 1
            ]
            pairs += [Pair(len(stores), fact, asked) for fact, asked in known if not detect_instructions(fact)]
            stores.append(one["facts"])
    return stores, pairs


STORES, PAIRS = load_stores()


@dataclass(kw_only=True)
class Interface:
    """Writes and reads of one interface. `write` returns the id of the memory."""

    name: str
    write: Callable[[str, str], str]
    read: Callable[[str, str], str]
    ids: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def agent(self, store: int) -> str:
        return f"{self.name}-{store}"

    def is_found(self, pair: Pair) -> bool:
        return pair.fact[:BEGINNING_CHARS] in self.read(self.agent(pair.store), pair.question)


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[Daemon]:
    with daemon(home, **SETTINGS) as made:
        yield made


def call(http: httpx2.Client, agent: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    answer = http.request(method, path, json=body, headers={"X-Newton-Agent": agent, **headers})
    assert answer.is_success, answer.text
    return answer.json()


@contextmanager
def interfaces(running: Daemon, home: Path) -> Generator[list[Interface]]:
    """The four interfaces of a daemon."""
    with running.client() as http:
        yield [
            Interface(name="http", write=http_writer(http), read=http_reader(http)),
            mcp_interface(http),
            openai_interface(http),
            cli_interface(home),
        ]


def http_writer(http: httpx2.Client) -> Callable[[str, str], str]:
    return lambda agent, fact: call(http, agent, "POST", "/v1/memories", {"content": fact})["memory_id"]


def http_reader(http: httpx2.Client) -> Callable[[str, str], str]:
    return lambda agent, question: call(http, agent, "POST", "/v1/context", {"input": question})["text"]


def mcp_interface(http: httpx2.Client) -> Interface:
    def tool(agent: str, name: str, **arguments: str) -> Mapping[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        accept = "application/json, text/event-stream"
        return call(http, agent, "POST", "/mcp?tools=all", body, Accept=accept)["result"]["structuredContent"]

    return Interface(
        name="mcp",
        write=lambda agent, fact: tool(agent, "remember", content=fact, source="own")["memory_id"],
        read=lambda agent, question: tool(agent, "context", input=question)["text"],
    )


def openai_interface(http: httpx2.Client) -> Interface:
    """Chat completions without a model, whose replies quote the context. Each fact is a conversation of its own."""
    numbers = itertools.count()

    def complete(agent: str, text: str, **fields: Any) -> str:
        body = {"model": "newton", "messages": [{"role": "user", "content": text}], **fields}
        headers = {"X-Newton-Session": f"talk {next(numbers)}"}
        return call(http, agent, "POST", "/v1/chat/completions", body, **headers)["choices"][0]["message"]["content"]

    def write(agent: str, fact: str) -> str:
        complete(agent, fact)
        (newest, *_) = call(http, agent, "GET", "/v1/memories?kinds=exchange&limit=1")["items"]
        assert fact[:BEGINNING_CHARS] in newest["text"]
        return newest["memory_id"]

    return Interface(name="openai", write=write, read=lambda agent, question: complete(agent, question, store=False))


def cli_interface(home: Path) -> Interface:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    env = {**bare, "NEWTON_DATA_DIR": str(home / "data"), **SETTINGS}

    def run(agent: str, *words: str) -> str:
        command = [sys.executable, "-m", "newton", *words, "--agent", agent]
        done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=True, timeout=60)
        assert "The daemon did not run the command" not in done.stderr, done.stderr
        return done.stdout

    def write(agent: str, fact: str) -> str:
        (short_id,) = SHORT_ID.findall(run(agent, "remember", fact))
        return short_id

    return Interface(name="cli", write=write, read=lambda agent, question: run(agent, "context", question))


def fill(interface: Interface, http: httpx2.Client, pairs: list[Pair]) -> None:
    """Store all facts of the stores that the pairs use. An OpenAI client stores them as messages.

    What a person forgot is not stored again for an agent, so the facts that one writes are not stored before.
    """
    own = {pair.fact for pair in pairs} if interface.name == "mcp" else set[str]()
    write = interface.write if interface.name == "openai" else http_writer(http)
    for store in sorted({pair.store for pair in pairs}):
        agent = interface.agent(store)
        call(http, "default", "POST", "/v1/agents", {"name": agent})
        for fact in (one for one in STORES[store] if one not in own):
            interface.ids[agent, fact] = write(agent, fact)


def rewrite(interface: Interface, http: httpx2.Client, pair: Pair) -> None:
    key = (interface.agent(pair.store), pair.fact)
    if key in interface.ids and interface.name != "mcp":
        path = f"/v1/memories/{interface.ids[key]}"
        token = call(http, key[0], "DELETE", path)["token"]
        call(http, key[0], "DELETE", f"{path}?token={token}&include_derived=true")
    interface.ids[key] = interface.write(*key)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_a_fact_is_found_at_once_as_a_minute_later(running: Daemon, home: Path) -> None:
    at_once: dict[str, list[tuple[Pair, bool]]] = {}
    with interfaces(running, home) as doors, running.client() as http:
        for interface in doors:
            pairs = list(itertools.islice(itertools.cycle(PAIRS), COUNTS[interface.name]))
            fill(interface, http, pairs)
            at_once[interface.name] = []
            for pair in pairs:
                rewrite(interface, http, pair)
                at_once[interface.name].append((pair, interface.is_found(pair)))
        time.sleep(WAIT_SECONDS)
        late = {door.name: {pair: door.is_found(pair) for pair, _ in at_once[door.name]} for door in doors}
    for name, results in at_once.items():
        counts = Counter((found, late[name][pair]) for pair, found in results)
        soon, later = (sum(n for key, n in counts.items() if key[side]) for side in (0, 1))
        sys.stdout.write(
            f"{name}: {len(results)} pairs, found at once {soon}, after a minute {later}, {dict(counts)}\n"
        )
    missed = [(name, pair) for name, results in at_once.items() for pair, found in results if late[name][pair] > found]
    assert missed == []
    assert all(sum(found for _, found in results) >= len(results) / 2 for results in at_once.values())


KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = f"The bucket opens with {KEY}."
HARMLESS = "The bucket stands in the garden, [REDACTED:aws-key]."  # a marker that somebody typed
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def tool_call(name: str, **arguments: str) -> tuple[str, Any]:
    return "/mcp", {**RPC, "params": {"name": name, "arguments": arguments}}


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def writes(text: str) -> dict[str, tuple[str, Any]]:
    return {
        "a fact": ("/v1/memories", {"content": text}),
        "messages": ("/v1/sessions/s/messages", {"messages": said(text)}),
        "a turn": ("/v1/sessions/s/turns", {"input": text}),
        "a chat completion": ("/v1/chat/completions", {"messages": said(text)}),
        "a response": ("/v1/responses", {"input": text}),
        "a fact by MCP": tool_call("remember", content=text, source="own"),
        "an exchange by MCP": tool_call("note_exchange", session="s", user=text),
    }


OTHER_WRITES: dict[str, dict[str, Any]] = {
    "/v1/censors": {"trigger": "TEXT", "reason": "because"},
    "/v1/decisions": {
        "description": "TEXT",
        "confidence": 0.8,
        "category": "storage",
        "reasons": [{"kind": "analysis", "text": "it is"}],
    },
}


@pytest.fixture(scope="module")
async def api(behind: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    db, home = await Database.open(behind, size=4), tmp_path_factory.mktemp("data")
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, home, openai_base_url=model.url, openai_model="scripted") as made,
    ):
        yield made
    await db.close()


@pytest.mark.parametrize("written", writes(""))
async def test_an_answer_counts_the_secrets_that_were_removed(api: Api, written: str) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    async with api.http(await api.token(f"agent-{uuid4().hex[:8]}"), **accept) as http:
        path, body = writes(HARMLESS)[written]
        harmless = (await http.post(path, json=body)).text.replace("\\", "").replace(" ", "")
        assert '"redacted":{}' in harmless or '"redacted"' not in harmless
        path, body = writes(SECRET)[written]
        answer = await http.post(path, json=body)
        assert answer.is_success and KEY not in answer.text
        assert '"redacted":{"aws-key":1}' in answer.text.replace("\\", "").replace(" ", "")


async def test_a_header_counts_what_was_removed_on_every_other_path(api: Api) -> None:
    async with api.http(await api.token(f"agent-{uuid4().hex[:8]}", "admin")) as http:
        for path, body in OTHER_WRITES.items():
            answer = await http.post(path, json=json.loads(json.dumps(body).replace("TEXT", SECRET)))
            assert answer.is_success, answer.text
            assert answer.headers["X-Newton-Redacted"] == "aws-key=1", path
            harmless = await http.post(path, json=json.loads(json.dumps(body).replace("TEXT", "the bucket")))
            assert "X-Newton-Redacted" not in harmless.headers, path


async def test_nothing_is_said_of_a_private_request(api: Api) -> None:
    async with api.http(await api.token(f"agent-{uuid4().hex[:8]}")) as http:
        answer = await http.post("/v1/chat/completions", json={"messages": said(SECRET), "store": False})
        assert answer.json()["newton"]["redacted"] == {}


def test_the_commands_say_it(home: Path) -> None:
    line = "Stored without 1 secret: 1 aws-key."
    assert line in ok(typed(home, "remember", SECRET))
    assert line in typed(home, "ask", SECRET).stderr
    file = home / "lines.ndjson"
    file.write_text(
        json.dumps({"type": "fact", "ref": "f", "content": f"And with {KEY}.", "at": "2026-01-01T00:00:00Z"})
    )
    assert line in ok(typed(home, "import", str(file)))
    note = home / "note.md"
    note.write_text(f"# Buckets\n\nThis one opens with {KEY}.\n")
    assert line in ok(typed(home, "ingest", str(note)))
