"""`newton doctor`: what works, what does not, and what to do."""

import platform
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Literal

import httpx2
from cyclopts import Parameter

from newton import __version__
from newton.brain.chain import Fault
from newton.clock import stopwatch
from newton.db import health
from newton.db.pool import Tx
from newton.errors import ConfigError, NewtonError, ProviderError
from newton.ids import model_id
from newton.memory import outbox, store
from newton.providers.chat import ChatMessage
from newton.runtime import address
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.models import chat_model
from newton.runtime.opening import opened
from newton.runtime.wiring import Newton
from newton.settings import Settings

DAEMON_SECONDS = 5
MARKS = {"ok": "✓", "note": "·", "wrong": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: is it right, what was seen, and what to do about it."""

    state: Literal["ok", "note", "wrong"]
    what: str
    todo: str = ""


Verify = Annotated[bool, Parameter(negative=(), help="Also walk the whole ledger of decisions.")]


async def doctor(*, verify: Verify = False, agent: Agent = None, json: AsJson = False) -> int:
    """Look at every part and say what works, what does not, and what to do. Exits with 1 when something is wrong.

    Example: newton doctor --json
    """
    chosen = settings(agent)
    findings = [finding async for finding in _findings(chosen, verify=verify)]
    if json:
        show.as_json({"findings": [asdict(f) for f in findings], "settings": _plain(chosen)})
    else:
        for f in findings:
            say(f"{MARKS[f.state]} {f.what}" + (f"\n    {f.todo}" if f.todo else ""))
        say("\nSettings (newton.toml, then NEWTON_… in the environment, then flags):")
        plain = _plain(chosen)
        width = max(map(len, plain)) + 2
        say("\n".join(f"  {name:<{width}}{value}" for name, value in plain.items()))
    return 1 if any(f.state == "wrong" for f in findings) else 0


def _plain(chosen: Settings) -> dict[str, str]:
    return {name: "-" if value is None else str(value) for name, value in dict(chosen).items()}


async def _findings(chosen: Settings, *, verify: bool) -> AsyncGenerator[Finding]:
    yield Finding("ok", f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    try:
        async with opened(chosen) as newton:
            yield Finding("ok", f"{len(newton.frames)} frames and {len(newton.profiles)} profiles are valid")
            yield await _database(newton)
            yield await _words(newton)
            yield await _isolation(newton)
            yield await _memories(newton)
            yield await _embedder(newton)
            yield await _backlog(newton)
            if verify:
                yield await _ledger(newton)
    except NewtonError as error:
        yield Finding("wrong", error.what, error.hint)
    yield await _daemon(chosen.home)
    yield await _model(chosen)


async def _database(newton: Newton) -> Finding:
    async with newton.scope.transaction() as tx:
        server = await health.server(tx)
    where = "external" if newton.settings.database_url else f"embedded, data under {_base(newton.settings.home)}"
    what = f"PostgreSQL {server.version} with pgvector {server.pgvector} ({where})"
    if not server.durable:
        return Finding("wrong", f"{what} may lose what was written.", "Turn fsync, full_page_writes and commits on.")
    return Finding("ok", what)


def _base(home: Path) -> str:
    """Where the embedded server's files are; of root they lie elsewhere, and the home names the place."""
    pointer = home / "server.place"
    return pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else str(home)


async def _words(newton: Newton) -> Finding:
    async with newton.scope.transaction() as tx:
        server = await health.server(tx)
    if not server.literate:
        what = "the database's locale knows only ASCII: words beside typographic quotes or with accents are not found."
        make = "create database NAME template template0 encoding 'UTF8' locale 'C.UTF-8'"
        return Finding("wrong", what, f"Make another with `{make}`, name it in DATABASE_URL, and import again.")
    return Finding("ok", "words of every script are found")


async def _isolation(newton: Newton) -> Finding:
    async with newton.scope.transaction() as tx:
        server = await health.server(tx)
    if not server.confined or server.isolated < server.tables:
        what = f"{server.tables - server.isolated} of {server.tables} tables are open across agents."
        return Finding("wrong", what, "Restore the schema; do not grant newton_app more than the migrations do.")
    return Finding("ok", f"row level security is forced on all {server.tables} tables")


async def _memories(newton: Newton) -> Finding:
    async with newton.scope.transaction() as tx:
        counts = await store.counts(tx, agent_id=newton.scope.agent_id)
    told = ", ".join(f"{number} of kind {kind}" for kind, number in counts.items()) or "none yet"
    return Finding("ok", f"memories of agent {newton.settings.agent}: {told}")


async def _ledger(newton: Newton) -> Finding:
    try:
        noted = newton.notes.seen(newton.scope.agent_id)
        found = await newton.deciding("cli").verify()
    except ConfigError as error:
        return Finding("wrong", error.what, error.hint)
    if isinstance(found, Fault):
        todo = "Restore the database from a backup; what was decided since can be told again."
        return Finding("wrong", f"the ledger of decisions is broken at record {found.seq}: {found.why}", todo)
    if noted is None and found.seq:
        todo = f"If it was made here, somebody deleted {newton.notes.path(newton.scope.agent_id)}."
        return Finding("note", f"all {found.seq} records of the ledger follow each other; no end was noted here", todo)
    return Finding("ok", f"all {found.seq} records of the ledger of decisions are as they were written")


async def _embedder(newton: Newton) -> Finding:
    if newton.scope.embedder is None:
        return Finding("note", "no embedding model: memories are found by words alone", "Set NEWTON_EMBEDDING=local.")
    started = stopwatch()
    try:
        await newton.scope.embedder.embed(["How are you?"])
    except ProviderError as error:
        return Finding("wrong", error.what, f"{error.hint} Until then memories are found by words alone.")
    return Finding(
        "ok", f"embeddings by {newton.scope.embedder.identity}, {stopwatch() - started:.0f} ms for a question"
    )


async def _backlog(newton: Newton) -> Finding:
    async with newton.scope.transaction() as tx:
        backlog = await outbox.backlog(tx, agent_id=newton.scope.agent_id)
        strangers = await _strangers(tx, newton)
    if backlog.given_up:
        what = f"{backlog.given_up} memories could not be embedded: {backlog.error}"
        return Finding("wrong", what, "They are found by their words alone.")
    if backlog.waiting:
        what = f"{backlog.waiting} memories wait for their vectors and are found by words until then"
        return Finding("note", what, "`newton serve` makes them, and so does `newton chat` or the next import.")
    if strangers:
        what = f"{strangers} memories are found by the vectors of another model than that of your settings"
        return Finding("note", what, "`newton reembed` has that of your settings take over.")
    return Finding("ok", "every memory has its vector")


async def _strangers(tx: Tx, newton: Newton) -> int:
    if newton.configured is None:
        return 0
    return await outbox.strangers(tx, agent_id=newton.scope.agent_id, model_id=model_id(newton.configured.identity))


async def _daemon(home: Path) -> Finding:
    """Whatever certificate it shows: nothing secret is asked or sent."""
    noted = address.found(home)
    if noted is None:
        return Finding("note", "no daemon serves from this data folder", "`newton serve` starts one.")
    what = f"the daemon at {noted.url} (Newton {noted.version})"
    try:
        async with httpx2.AsyncClient(timeout=DAEMON_SECONDS, verify=False, trust_env=False) as client:
            ready = (await client.get(f"{noted.url}/health/ready")).status_code == HTTPStatus.OK
    except httpx2.TransportError:
        return Finding("note", f"{what} does not answer", "It was killed, or hangs; `newton serve` starts another.")
    if not ready:
        return Finding("wrong", f"{what} is not ready", "Its database is away; its log says since when.")
    if noted.version != __version__:
        return Finding("note", f"{what} is ready, but this is {__version__}", "Start it anew.")
    return Finding("ok", f"{what} is ready")


async def _model(chosen: Settings) -> Finding:
    try:
        model = chat_model(chosen)
        if model is None:
            todo = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own."
            return Finding("note", "no chat model: answers quote memory", todo)
        started = stopwatch()
        async for _ in model.stream([ChatMessage("user", "Say ok.")], max_tokens=8):
            pass
    except ProviderError as error:
        return Finding("wrong", error.what, error.hint)
    return Finding("ok", f"{chosen.openai_model} answered in {stopwatch() - started:.0f} ms")
