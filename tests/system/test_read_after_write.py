"""A fact that is written through any interface is found at once, by a question in other words, as a minute later.

The facts and questions are those of the small stores in `tests/data`. Each store is an agent that has all its facts. A
fact is deleted, written again, and its question is asked with the next request. After a minute all questions are asked
again of the same memories. `TEST_READS` is the number of pairs for each interface, and `TEST_CLI_READS` that of the
command line.
"""

import itertools
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from newton.content.yaml_files import parse_trusted
from newton.heart.identity.standing_wishes import detect_instructions
from tests.system.daemons import Daemon, daemon

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
    """Store all facts of the stores that the pairs use. An OpenAI client stores them as messages."""
    write = interface.write if interface.name == "openai" else http_writer(http)
    for store in sorted({pair.store for pair in pairs}):
        agent = interface.agent(store)
        call(http, "default", "POST", "/v1/agents", {"name": agent})
        for fact in STORES[store]:
            interface.ids[agent, fact] = write(agent, fact)


def rewrite(interface: Interface, http: httpx2.Client, pair: Pair) -> None:
    key = (interface.agent(pair.store), pair.fact)
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
