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
from newton.brain.hash_chain import BrokenLink
from newton.clock import monotonic_ms
from newton.db import health
from newton.db.pool import Tx
from newton.errors import ConfigError, NewtonError, ProviderError
from newton.ids import derive_model_id
from newton.memory import outbox, store
from newton.providers.chat import ChatMessage
from newton.runtime import daemon_address
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.model_factory import build_chat_model
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

DAEMON_TIMEOUT_SECONDS = 5
STATE_SYMBOLS = {"ok": "✓", "note": "·", "wrong": "✗"}


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing looked at: is it right, what was seen, and what to do about it."""

    state: Literal["ok", "note", "wrong"]
    what: str
    todo: str = ""


VerifyOption = Annotated[bool, Parameter(negative=(), help="Also walk the whole ledger of decisions.")]


async def run_doctor(*, verify: VerifyOption = False, agent: AgentOption = None, json: JsonOption = False) -> int:
    """Look at every part and say what works, what does not, and what to do. Exits with 1 when something is wrong.

    Example: newton doctor --json
    """
    chosen = load_settings(agent)
    findings = [finding async for finding in _run_checks(chosen, verify=verify)]
    if json:
        formatting.print_json({"findings": [asdict(f) for f in findings], "settings": _settings_to_json(chosen)})
    else:
        for f in findings:
            say(f"{STATE_SYMBOLS[f.state]} {f.what}" + (f"\n    {f.todo}" if f.todo else ""))
        say("\nSettings (newton.toml, then NEWTON_… in the environment, then flags):")
        plain = _settings_to_json(chosen)
        width = max(map(len, plain)) + 2
        say("\n".join(f"  {name:<{width}}{value}" for name, value in plain.items()))
    return 1 if any(f.state == "wrong" for f in findings) else 0


def _settings_to_json(chosen: Settings) -> dict[str, str]:
    return {name: "-" if value is None else str(value) for name, value in dict(chosen).items()}


async def _run_checks(chosen: Settings, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    yield HealthFinding("ok", f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    try:
        async with open_newton(chosen) as newton:
            yield HealthFinding("ok", f"{len(newton.frames)} frames and {len(newton.profiles)} profiles are valid")
            yield await _check_database(newton)
            yield await _check_encoding(newton)
            yield await _check_isolation(newton)
            yield await _count_memories(newton)
            yield await _check_embedder(newton)
            yield await _check_backlog(newton)
            if verify:
                yield await _verify_ledger(newton)
    except NewtonError as error:
        yield HealthFinding("wrong", error.what, error.hint)
    yield await _check_daemon(chosen.home)
    yield await _check_chat_model(chosen)


async def _check_database(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        server = await health.read_server_info(tx)
    where = (
        "external"
        if newton.settings.database_url
        else f"embedded, data under {_embedded_data_folder(newton.settings.home)}"
    )
    what = f"PostgreSQL {server.version} with pgvector {server.pgvector} ({where})"
    if not server.durable:
        return HealthFinding(
            "wrong", f"{what} may lose what was written.", "Turn fsync, full_page_writes and commits on."
        )
    return HealthFinding("ok", what)


def _embedded_data_folder(home: Path) -> str:
    """Where the embedded server's files are; of root they lie elsewhere, and the home names the place."""
    pointer = home / "server.place"
    return pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else str(home)


async def _check_encoding(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        server = await health.read_server_info(tx)
    if not server.utf8:
        what = "the database's locale knows only ASCII: words beside typographic quotes or with accents are not found."
        make = "create database NAME template template0 encoding 'UTF8' locale 'C.UTF-8'"
        return HealthFinding("wrong", what, f"Make another with `{make}`, name it in DATABASE_URL, and import again.")
    return HealthFinding("ok", "words of every script are found")


async def _check_isolation(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        server = await health.read_server_info(tx)
    if not server.rls_enforced or server.isolated < server.tables:
        what = f"{server.tables - server.isolated} of {server.tables} tables are open across agents."
        return HealthFinding("wrong", what, "Restore the schema; do not grant newton_app more than the migrations do.")
    return HealthFinding("ok", f"row level security is forced on all {server.tables} tables")


async def _count_memories(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        counts = await store.count_by_kind(tx, agent_id=newton.scope.agent_id)
    told = ", ".join(f"{number} of kind {kind}" for kind, number in counts.items()) or "none yet"
    return HealthFinding("ok", f"memories of agent {newton.settings.agent}: {told}")


async def _verify_ledger(newton: AgentServices) -> HealthFinding:
    try:
        noted = newton.chain_heads.load(newton.scope.agent_id)
        found = await newton.decisions("cli").verify_chain()
    except ConfigError as error:
        return HealthFinding("wrong", error.what, error.hint)
    if isinstance(found, BrokenLink):
        todo = "Restore the database from a backup; what was decided since can be told again."
        return HealthFinding("wrong", f"the ledger of decisions is broken at record {found.seq}: {found.reason}", todo)
    if noted is None and found.seq:
        todo = f"If it was made here, somebody deleted {newton.chain_heads.path(newton.scope.agent_id)}."
        return HealthFinding(
            "note", f"all {found.seq} records of the ledger follow each other; no end was noted here", todo
        )
    return HealthFinding("ok", f"all {found.seq} records of the ledger of decisions are as they were written")


async def _check_embedder(newton: AgentServices) -> HealthFinding:
    if newton.scope.embedder is None:
        return HealthFinding(
            "note", "no embedding model: memories are found by words alone", "Set NEWTON_EMBEDDING_PROVIDER=local."
        )
    started = monotonic_ms()
    try:
        await newton.scope.embedder.embed(["How are you?"])
    except ProviderError as error:
        return HealthFinding("wrong", error.what, f"{error.hint} Until then memories are found by words alone.")
    return HealthFinding(
        "ok", f"embeddings by {newton.scope.embedder.identity}, {monotonic_ms() - started:.0f} ms for a question"
    )


async def _check_backlog(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        backlog = await outbox.read_backlog(tx, agent_id=newton.scope.agent_id)
        strangers = await _count_other_model_vectors(tx, newton)
    if backlog.given_up:
        what = f"{backlog.given_up} memories could not be embedded: {backlog.error}"
        return HealthFinding("wrong", what, "They are found by their words alone.")
    if backlog.waiting:
        what = f"{backlog.waiting} memories wait for their vectors and are found by words until then"
        return HealthFinding("note", what, "`newton serve` makes them, and so does `newton chat` or the next import.")
    if strangers:
        what = f"{strangers} memories are found by the vectors of another model than that of your settings"
        return HealthFinding("note", what, "`newton reembed` has that of your settings take over.")
    return HealthFinding("ok", "every memory has its vector")


async def _count_other_model_vectors(tx: Tx, newton: AgentServices) -> int:
    if newton.configured_embedder is None:
        return 0
    return await outbox.count_embedded_elsewhere(
        tx, agent_id=newton.scope.agent_id, model_id=derive_model_id(newton.configured_embedder.identity)
    )


async def _check_daemon(home: Path) -> HealthFinding:
    """Whatever certificate it shows: nothing secret is asked or sent."""
    noted = daemon_address.read_address(home)
    if noted is None:
        return HealthFinding("note", "no daemon serves from this data folder", "`newton serve` starts one.")
    what = f"the daemon at {noted.url} (Newton {noted.version})"
    try:
        async with httpx2.AsyncClient(timeout=DAEMON_TIMEOUT_SECONDS, verify=False, trust_env=False) as client:
            ready = (await client.get(f"{noted.url}/health/ready")).status_code == HTTPStatus.OK
    except httpx2.TransportError:
        return HealthFinding(
            "note", f"{what} does not answer", "It was killed, or hangs; `newton serve` starts another."
        )
    if not ready:
        return HealthFinding("wrong", f"{what} is not ready", "Its database is away; its log says since when.")
    if noted.version != __version__:
        return HealthFinding("note", f"{what} is ready, but this is {__version__}", "Start it anew.")
    return HealthFinding("ok", f"{what} is ready")


async def _check_chat_model(chosen: Settings) -> HealthFinding:
    try:
        model = build_chat_model(chosen)
        if model is None:
            todo = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own."
            return HealthFinding("note", "no chat model: answers quote memory", todo)
        started = monotonic_ms()
        async for _ in model.stream([ChatMessage("user", "Say ok.")], max_tokens=8):
            pass
    except ProviderError as error:
        return HealthFinding("wrong", error.what, error.hint)
    return HealthFinding("ok", f"{chosen.openai_model} answered in {monotonic_ms() - started:.0f} ms")
