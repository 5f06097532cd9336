"""Command `newton doctor`: check the installation and print remedies."""

import asyncio
import platform
import shlex
from collections.abc import AsyncGenerator
from dataclasses import asdict, replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import httpx2
from cyclopts import Parameter

from newton import __version__
from newton.agent.compaction.block_summarizer import BlockSummarizer, create_breaker
from newton.agent.llm.failing_models import list_failing_models
from newton.brain.hash_chain import BrokenLink
from newton.clock import monotonic_ms
from newton.db import health
from newton.db.connection import open_owner_connection
from newton.db.distribution import read_cluster_state
from newton.db.health import ServerInfo
from newton.db.pool import Tx
from newton.db.requirements import MissingRequirement, find_missing
from newton.db.server_paths import find_database_folder, find_orphans
from newton.environment import read_sources
from newton.errors import ConfigError, NewtonError, ProviderError
from newton.ids import derive_model_id
from newton.memory import outbox, store
from newton.providers.chat import ChatMessage
from newton.providers.upstreams import list_upstreams
from newton.runtime import daemon_address
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.daemon_client import encode_sources, open_connection
from newton.runtime.cli.operations.health_check import HealthFinding
from newton.runtime.cli.operations.language_checks import check_frame_languages, check_memory_languages
from newton.runtime.cli.operations.window_checks import check_compaction_limit, check_window
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.command_socket import Message
from newton.runtime.jobs.claims import list_agent_queues
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

DAEMON_TIMEOUT_SECONDS = 5
STATE_SYMBOLS = {"ok": "✓", "note": "·", "wrong": "✗"}


async def run_doctor(
    *,
    verify: Annotated[
        bool, Parameter(negative=(), help="Also verify by its hash chain that the decision log is unchanged.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Check every part of the installation and print remedies. The exit status is 1 if a check fails.

    Example: newton doctor --json
    """
    settings = load_settings(agent)
    findings = [finding async for finding in _run_checks(settings, verify=verify)]
    values = {name: "-" if value is None else str(value) for name, value in _list_used_settings(settings).items()}
    if json:
        formatting.print_json({"findings": [asdict(f) for f in findings], "settings": values})
    else:
        for f in findings:
            say(f"{STATE_SYMBOLS[f.state]} {f.detail}" + (f"\n    {f.hint}" if f.hint else ""))
        say("\nSettings (newton.toml, then NEWTON_… in the environment, then flags):")
        width = max(map(len, values)) + 2
        say("\n".join(f"  {name:<{width}}{value}" for name, value in values.items()))
    return 1 if any(f.state == "wrong" for f in findings) else 0


def _list_used_settings(settings: Settings) -> dict[str, object]:
    """Return the settings by name, without those of an embedding or chat model that is not configured."""
    unused = [] if settings.embedding_provider == "openai" else ["embedding_model", "embedding_dimensions"]
    unused += [] if list_upstreams(settings) else ["openai_model"]
    return {name: value for name, value in dict(settings).items() if name not in unused}


async def _run_checks(settings: Settings, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    yield HealthFinding("ok", f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    try:
        missing = await _find_missing(settings)
        for one in missing:
            yield HealthFinding("wrong", one.problem, one.remedy)
        if not missing:
            async for finding in _check_services(settings, verify=verify):
                yield finding
    except NewtonError as error:
        yield HealthFinding("wrong", error.what, error.hint)
    for folder in await asyncio.to_thread(find_orphans):
        yield HealthFinding(
            "note",
            f"the database {folder} belongs to a data folder that does not exist any more",
            f"Delete it if it is not needed: `rm -r {shlex.quote(str(folder))}`.",
        )
    yield await _check_daemon(settings.home)
    async for finding in _check_command_server(settings):
        yield finding
    yield await _check_chat_model(settings)


async def _check_services(settings: Settings, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    async with open_newton(settings) as newton:
        yield HealthFinding("ok", f"{len(newton.frames)} frames and {len(newton.profiles)} profiles are valid")
        yield await _check_frame_languages(newton)
        server = await _read_server_info(newton)
        yield _check_database(server, newton.settings)
        yield _check_encoding(server)
        yield _check_isolation(server)
        async for finding in _check_cluster(newton):
            yield finding
        yield await _count_memories(newton)
        yield await _check_embedder(newton)
        yield await _check_backlog(newton)
        yield await check_memory_languages(newton)
        async for finding in check_window(newton):
            yield finding
        yield check_compaction_limit(newton)
        yield await _check_compaction_model(newton)
        for finding in await _list_failing_models(newton):
            yield finding
        if verify:
            yield await _verify_ledger(newton)


async def _find_missing(settings: Settings) -> list[MissingRequirement]:
    """Return what an external server lacks; nothing is changed."""
    if settings.database_url is None:
        return []
    async with open_owner_connection(settings) as connection:
        return await find_missing(connection)


async def check_running_services(newton: AgentServices) -> AsyncGenerator[HealthFinding]:
    """Yield findings on the database, embedding model and unembedded memories of a running daemon."""
    try:
        yield _check_database(await _read_server_info(newton), newton.settings)
        yield await _check_embedder(newton)
        yield await _check_backlog(newton)
    except NewtonError as error:
        yield HealthFinding("wrong", error.what, error.hint)


async def _read_server_info(newton: AgentServices) -> ServerInfo:
    async with newton.scope.transaction() as tx:
        return await health.read_server_info(tx)


async def _check_frame_languages(newton: AgentServices) -> HealthFinding:
    embedder = newton.scope.embedder
    identity = embedder.identity if embedder else None
    return await asyncio.to_thread(check_frame_languages, newton.frames, identity)  # reads thousands of examples


def _check_database(server: ServerInfo, settings: Settings) -> HealthFinding:
    location = "external" if settings.database_url else f"embedded, data in {find_database_folder(settings.home)}"
    name = f"PostgreSQL {server.version} with pgvector {server.pgvector} ({location})"
    if not server.durable:
        hint = "Turn on fsync, full_page_writes and synchronous_commit."
        return HealthFinding("wrong", f"{name} can lose committed data.", hint)
    return HealthFinding("ok", name)


def _check_encoding(server: ServerInfo) -> HealthFinding:
    if server.utf8:
        return HealthFinding("ok", "text search supports all scripts")
    problem = "the database locale supports only ASCII: words with accents or typographic quotes are not found."
    sql = "create database NAME template template0 encoding 'UTF8' locale 'C.UTF-8'"
    return HealthFinding("wrong", problem, f"Run `{sql}`, set DATABASE_URL to the new database, and import again.")


def _check_isolation(server: ServerInfo) -> HealthFinding:
    if server.rls_enforced and server.isolated == server.tables:
        return HealthFinding("ok", f"row-level security is forced on all {server.tables} tables")
    problem = f"{server.tables - server.isolated} of {server.tables} tables are not isolated by agent."
    return HealthFinding(
        "wrong", problem, "Restore the schema; do not grant the application's role more than the migrations do."
    )


async def _check_cluster(newton: AgentServices) -> AsyncGenerator[HealthFinding]:
    """Yield findings on the nodes of a distributed database; none on a server without Citus."""
    async with newton.scope.transaction() as tx:
        state = await read_cluster_state(tx)
    if state is None:
        return
    if not state.is_distributed:
        hint = "`newton db distribute` distributes the agents over the nodes of the cluster."
        yield HealthFinding("note", f"Citus {state.version} is installed, and all agents are on this server", hint)
        return
    for problem in state.problems:
        yield HealthFinding("wrong", f"{problem}.", "Run `newton db distribute`, then restart the daemons.")
    names = ", ".join(str(node) for node in state.nodes if node.has_shards)
    agents = await list_agent_queues(newton.scope.db)  # from all nodes
    yield HealthFinding(
        "ok",
        f"Citus {state.version}: {state.tables} tables in {state.shards} shards on {names};"
        f" all nodes answer, with {formatting.pluralize(len(agents), 'agent')}",
    )


async def _count_memories(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        counts = await store.count_by_kind(tx, agent_id=newton.scope.agent_id)
    text = ", ".join(f"{number} of kind {kind}" for kind, number in counts.items()) or "none yet"
    return HealthFinding("ok", f"memories of agent {newton.settings.agent}: {text}")


async def _verify_ledger(newton: AgentServices) -> HealthFinding:
    try:
        stored_head = newton.chain_heads.load(newton.scope.agent_id)
        head = await newton.decisions("cli").verify_chain()
    except ConfigError as error:
        return HealthFinding("wrong", error.what, error.hint)
    if isinstance(head, BrokenLink):
        hint = "Restore the database from a backup, then record the decisions made after the backup again."
        return HealthFinding("wrong", f"the decision log is broken at record {head.seq}: {head.reason}", hint)
    records = formatting.pluralize(head.seq, "record")
    if stored_head is None and head.seq:
        path = newton.chain_heads.path(newton.scope.agent_id)
        hint = f"If the decisions were recorded on this machine, the file {path} was deleted."
        return HealthFinding(
            "note", f"the hash chain of {records} is valid, but its last hash is not stored on this machine", hint
        )
    return HealthFinding("ok", f"the decision log is unchanged ({records})")


async def _check_embedder(newton: AgentServices) -> HealthFinding:
    if newton.scope.embedder is None:
        hint = "Set NEWTON_EMBEDDING_PROVIDER=local."
        return HealthFinding("note", "no embedding model is configured: memories are searched by words only", hint)
    started = monotonic_ms()
    try:
        await newton.scope.embedder.embed(["How are you?"])
    except ProviderError as error:
        return HealthFinding(
            "wrong", error.what, f"{error.hint} Until the model works, memories are searched by words only."
        )
    duration = f"{monotonic_ms() - started:.0f} ms for a short text"
    return HealthFinding("ok", f"embedding model {newton.scope.embedder.identity}, {duration}")


async def _check_backlog(newton: AgentServices) -> HealthFinding:
    async with newton.scope.transaction() as tx:
        backlog = await outbox.read_backlog(tx, agent_id=newton.scope.agent_id)
        outdated = await _count_other_model_vectors(tx, newton)
    if backlog.given_up:
        problem = f"{backlog.given_up} memories could not be embedded: {backlog.error}"
        return HealthFinding("wrong", problem, "Search finds memories without a vector by their words only.")
    if backlog.waiting:
        problem = f"{backlog.waiting} memories are not embedded yet and are found by their words only"
        return HealthFinding("note", problem, "`newton serve`, `newton chat` and the next import embed the memories.")
    if outdated:
        problem = f"{outdated} memories have vectors of another embedding model than the configured one"
        return HealthFinding("note", problem, "`newton reembed` embeds the memories with the configured model.")
    return HealthFinding("ok", "all memories are embedded")


async def _count_other_model_vectors(tx: Tx, newton: AgentServices) -> int:
    if newton.configured_embedder is None:
        return 0
    return await outbox.count_embedded_elsewhere(
        tx, agent_id=newton.scope.agent_id, model_id=derive_model_id(newton.configured_embedder.identity)
    )


async def _check_compaction_model(newton: AgentServices) -> HealthFinding:
    """Let the compaction model summarize one message, and return the finding on its summary."""
    try:
        model = newton.compaction().model
    except NewtonError as error:
        return HealthFinding("wrong", f"the compaction model cannot be used: {error.what}", error.hint)
    if model is None:
        return HealthFinding("note", "no compaction model is configured: summaries are extracted from the messages")
    started = monotonic_ms()
    error = await BlockSummarizer(scope=newton.scope, model=model, breaker=create_breaker()).find_failure()
    if error:
        return HealthFinding(
            "wrong",
            f"the compaction model does not summarize: {error}",
            "Set NEWTON_COMPACTION_MODEL to another model.",
        )
    return HealthFinding("ok", f"{model.name} summarizes conversations ({monotonic_ms() - started:.0f} ms)")


async def _list_failing_models(newton: AgentServices) -> list[HealthFinding]:
    """Return the findings on models that failed in the background, and have not answered since."""
    async with newton.scope.transaction() as tx:
        failing = await list_failing_models(tx, agent_id=newton.scope.agent_id)
    hint = "Check the model and its server. Until it answers again, Newton does without it."
    return [HealthFinding("wrong", one.description, hint) for one in failing]


async def _check_daemon(home: Path) -> HealthFinding:
    """Return the finding on whether the daemon of a data folder answers.

    The daemon's certificate is not verified, because the request contains no secret.
    """
    address = daemon_address.read_address(home)
    if address is None:
        return HealthFinding("note", "no daemon uses this data folder", "`newton serve` starts a daemon.")
    name = f"the daemon at {address.url} (Newton {address.version})"
    try:
        async with httpx2.AsyncClient(timeout=DAEMON_TIMEOUT_SECONDS, verify=False, trust_env=False) as client:
            ready = (await client.get(f"{address.url}/health/ready")).status_code == HTTPStatus.OK
    except httpx2.TransportError:
        return HealthFinding(
            "note", f"{name} does not answer", "The daemon was killed or hangs. `newton serve` starts a new one."
        )
    if not ready:
        return HealthFinding(
            "wrong", f"{name} is not ready", "The daemon cannot reach its database; see the daemon's log."
        )
    if address.version != __version__:
        return HealthFinding(
            "note", f"{name} is ready, but this command is Newton {__version__}", "Restart the daemon."
        )
    return HealthFinding("ok", f"{name} is ready")


async def _check_command_server(settings: Settings) -> AsyncGenerator[HealthFinding]:
    """Yield findings on a running daemon: whether it runs commands, has the same settings, and has working services."""
    state = await asyncio.to_thread(_read_daemon_state, settings.home)
    if state is None:
        if daemon_address.read_address(settings.home) is not None:
            yield HealthFinding(
                "note",
                "the daemon runs no commands; each command runs in its own process",
                "The daemon logs the reason when it starts. Restart the daemon if it has another version.",
            )
        return
    started = datetime.fromisoformat(state["started_at"])
    name = f"the daemon (process {state['process']}, since {started:%Y-%m-%d %H:%M})"
    if state["differing"]:
        yield HealthFinding(
            "note",
            f"{name} was started with another value of: {', '.join(state['differing'])}",
            "Commands run in their own process with the settings below. Restart the daemon with the same settings.",
        )
    else:
        yield HealthFinding("ok", f"{name} runs commands with the settings below")
    for finding in (HealthFinding(**fields) for fields in state["findings"]):
        yield replace(finding, detail=f"finding of the daemon: {finding.detail}")


def _read_daemon_state(home: Path) -> Message | None:
    daemon = open_connection(home)
    if daemon is None:
        return None
    try:
        daemon.send({"status": encode_sources(read_sources())})
        return daemon.read()
    except (TypeError, OSError):
        return None
    finally:
        daemon.close()


async def _check_chat_model(settings: Settings) -> HealthFinding:
    try:
        model = ModelDirectory(settings).get()
        if model is None:
            hint = "Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or OPENAI_BASE_URL for your own server."
            return HealthFinding("note", "no chat model is configured: answers quote memory", hint)
        started = monotonic_ms()
        async for _ in model.stream([ChatMessage("user", "Say ok.")], max_tokens=None):
            pass
    except ProviderError as error:
        return HealthFinding("wrong", error.what, error.hint)
    return HealthFinding("ok", f"{model.name} answered in {monotonic_ms() - started:.0f} ms")
