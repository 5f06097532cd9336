"""The checks of an installation that need its database and models."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace

from newton.agent.compaction.block_summarizer import BlockSummarizer, create_breaker
from newton.agent.llm.failing_models import list_failing_models
from newton.agent.reconciliation.proposal_log import ModelRecord, list_records
from newton.brain.hash_chain import BrokenLink
from newton.clock import monotonic_ms
from newton.cognition.frames.training import NO_EMBEDDER, knows_languages, measure_coverage
from newton.content.frames import Frame
from newton.db import requirements
from newton.db.distribution import read_cluster_state
from newton.db.pool import Tx
from newton.db.requirements import ServerInfo
from newton.db.server_paths import find_database_folder
from newton.errors import ConfigError, NewtonError, ProviderError
from newton.ids import derive_model_id
from newton.memory import store, vectors
from newton.providers import multilingual_e5
from newton.providers.chat import ChatMessage
from newton.providers.context_windows import WindowedModel
from newton.runtime.health.check_result import HealthFinding
from newton.runtime.jobs.claims import list_agent_queues
from newton.runtime.model_directory import ModelDirectory, describe_replies_without_model
from newton.runtime.settings_mapping import build_turn_limits
from newton.runtime.wiring import AgentServices
from newton.settings import Settings
from newton.text.languages import ENGLISH, LANGUAGES, load_language


async def check_window(newton: AgentServices) -> AsyncGenerator[HealthFinding]:
    """Yield the finding on the size of the context window of the agent's model and its source, if it has one."""
    if not isinstance(model := newton.chat_model, WindowedModel):
        return
    window = await model.find_window()
    finding = HealthFinding("ok", f"the context window of {model.name} has {window}")
    hints = {
        "default": "If it is another, set NEWTON_WINDOW_TOKENS, or window_tokens in its table of [models].",
        "refusal": "If the window is larger now, set NEWTON_WINDOW_TOKENS, or window_tokens in its table of [models].",
    }
    yield replace(finding, state="note", hint=hints[window.source]) if window.source in hints else finding


def check_compaction_limit(newton: AgentServices) -> HealthFinding:
    """Return the finding on the maximum tokens of a conversation, which the model's window may reduce."""
    settings, limit = newton.settings, newton.conversation_tokens
    wanted = build_turn_limits(settings).conversation
    if limit < wanted:
        problem = f"conversations have at most {limit:,} tokens, not {wanted:,}: the window leaves no more"
        return HealthFinding("note", problem, "Use a model with a larger window, or set a smaller conversation_tokens.")
    return HealthFinding("ok", f"conversations are compacted ({settings.compaction}) within {limit:,} tokens")


def check_frame_languages(frames: Mapping[str, Frame], identity: str | None) -> HealthFinding:
    """Return the finding on the languages in which frames (kinds of input) are chosen.

    `identity` is that of the embedding model. The finding is a note if a frame has too few examples in a language.
    """
    coverage = measure_coverage(frames, LANGUAGES)
    detail = f"languages of frames: chosen in {_join_names(coverage.languages) or 'none'}"
    if knows_languages(identity or NO_EMBEDDER):
        detail += ", with the embedding model"
    elif identity:
        detail += ", with the embedding model in English and by words and form in the others"
    else:
        detail += ", by words and form"
    detail += "; in all others mostly the neutral frame is used"
    for name, codes in coverage.missing.items():
        detail += f"; the frame {name} has too few examples in {_join_names(codes)}"
    if coverage.missing:
        return HealthFinding("note", detail, "Add examples in these languages to the file of the frame.")
    return HealthFinding("ok", detail)


async def check_memory_languages(newton: AgentServices) -> HealthFinding:
    """Return the finding on the languages of the memories and how each is searched.

    It is a note if memories in another language than English are searched with the embedding model for English.
    """
    async with newton.scope.transaction() as tx:
        counts = await store.count_by_language(tx, agent_id=newton.scope.agent_id)
    stored = ", ".join(f"{count} in {load_language(code).name}" for code, count in counts.items()) or "none yet"
    detail = f"languages of memories: {stored}; searched by words in {_join_names(LANGUAGES)}"
    embedder = newton.scope.embedder
    if embedder is None:
        return HealthFinding("ok", f"{detail}, and not by meaning")
    if embedder.identity == multilingual_e5.read_identity():
        return HealthFinding("ok", f"{detail}, and by meaning in all of these and across them")
    if newton.settings.embedding_provider == "openai":
        return HealthFinding("ok", f"{detail}, and by meaning in those that the model {embedder.name} knows")
    detail = f"{detail}, and by meaning in English only"
    is_english = set(counts) <= {ENGLISH}
    return HealthFinding("ok" if is_english else "note", detail, "" if is_english else _multilingual_hint())


def _join_names(codes: Iterable[str]) -> str:
    return ", ".join(load_language(code).name for code in codes)


def _multilingual_hint() -> str:
    install = "" if multilingual_e5.read_identity() else f"{multilingual_e5.INSTALL_HINT} "
    return f"{install}Set NEWTON_EMBEDDING_PROVIDER=multilingual and run `newton reembed`."


async def check_installation(newton: AgentServices, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    """Yield the findings on the settings, the database, the memories of an agent and the models.

    With `verify`, also verify the hash chain of the decision log. Raises NewtonError if the database cannot be read.
    """
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
    for finding in (*await _list_failing_models(newton), *await _check_proposals(newton)):
        yield finding
    if verify:
        yield await _verify_ledger(newton)


async def _read_server_info(newton: AgentServices) -> ServerInfo:
    async with newton.scope.transaction() as tx:
        return await requirements.read_server_info(tx)


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
        f" all nodes answer, with {_count(len(agents), 'agent')}",
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
    records = _count(head.seq, "record")
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
        backlog = await vectors.read_backlog(tx, agent_id=newton.scope.agent_id)
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
    return await vectors.count_embedded_elsewhere(
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


async def _check_proposals(newton: AgentServices) -> list[HealthFinding]:
    """Return a finding for each model on the items that it proposed, and on why they were dropped."""
    async with newton.scope.transaction() as tx:
        records = await list_records(tx, agent_id=newton.scope.agent_id, now=newton.scope.now())
    return [_describe_record(one) for one in records]


def _describe_record(record: ModelRecord) -> HealthFinding:
    if not record.is_switched_off:
        return HealthFinding("ok", record.description)
    hint = "Configure a larger chat model. Newton learns by its statement parser, and asks this one again after 7 days."
    return HealthFinding("wrong", record.description, hint)


async def check_chat_model(settings: Settings) -> HealthFinding:
    """Ask the chat model for a reply, and return the finding."""
    try:
        model = ModelDirectory(settings).get()
        if model is None:
            hint = "Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or OPENAI_BASE_URL for your own server."
            detail = f"no chat model is configured: {describe_replies_without_model(settings)}"
            return HealthFinding("note", detail, hint)
        started = monotonic_ms()
        async for _ in model.stream([ChatMessage("user", "Say ok.")], max_tokens=None):
            pass
    except ProviderError as error:
        return HealthFinding("wrong", error.what, error.hint)
    return HealthFinding("ok", f"{model.name} answered in {monotonic_ms() - started:.0f} ms")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
