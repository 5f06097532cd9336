"""Concurrent reading of all sources of a context. Late or failed sources are skipped and reported."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from newton.cognition.greetings import strip_greeting
from newton.cognition.request import NO_FILTERS, ContextBuildRequest
from newton.cognition.sources import filters
from newton.cognition.sources.gathered_data import (
    NO_ARTIFACTS,
    AlwaysOn,
    GatheredSources,
    InputMatches,
    SessionContextData,
)
from newton.cognition.sources.session_artifacts import (
    DEFAULT_ARTIFACT_POLICY,
    ArtifactPolicy,
    ArtifactSource,
    CachingEmbedder,
    FoundArtifacts,
    should_search_artifacts,
)
from newton.cognition.sources.session_state import SessionState, read_session_state
from newton.cognition.sources.signals import (
    asks_only_about_time,
    classify_intent,
    find_asked_times,
    select_event_types,
)
from newton.cognition.sources.web import WebSource
from newton.concurrency import task_group, with_timeout
from newton.content.profiles import GatherOptions
from newton.db.pool import Database, Tx
from newton.dialogue import tasks as task_stack
from newton.dialogue.task_tree import EMPTY_STACK, TaskStack
from newton.errors import ProviderError
from newton.heart import censors, procedures
from newton.heart.censors import Censor
from newton.heart.entities import entity_lookup
from newton.heart.entities.entity_lookup import EntityQuery
from newton.heart.events import event_store
from newton.heart.events.event_store import EventQuery, RecentEvents
from newton.heart.identity import identity_store as identity
from newton.heart.procedure_matching import match_triggers
from newton.memory.memory import Kind
from newton.memory.ranking import DEFAULT_WEIGHTS, TIME_FIRST, RankingWeights
from newton.memory.recall import fetch_memories, recall
from newton.memory.search_types import MemorySearch, RecallQuery, RecallResult, RetrievedMemory, SearchLimits
from newton.memory.time_expressions import TimeRange

if TYPE_CHECKING:
    from asyncio import Task

    from newton.providers.embedding import Embedder, Vector

DEFAULT_SEARCH_LIMITS: Mapping[Kind, SearchLimits] = {
    "fact": SearchLimits(searched=30, kept=30),
    "episode": SearchLimits(searched=10, kept=10),
    "procedure": SearchLimits(searched=10, kept=10),
    "passage": SearchLimits(searched=20, kept=20),
    "event": SearchLimits(searched=10, kept=10),
    "decision": SearchLimits(searched=20, kept=20),
}
EXCHANGES_SEARCHED = 200  # by vector and as many by words; neighbours of the best are added
TOKENS_PER_EXCHANGE = 28  # a low estimate, so that the results more than fill the context
MIN_EXCHANGES, MAX_EXCHANGES = 40, 300
MAX_TRIGGERED_PROCEDURES = 10

T = TypeVar("T")


@dataclass(slots=True)
class _SourceReader:
    """Reads sources concurrently, each with a timeout."""

    timeout_seconds: float
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def read_or_default(self, name: str, source: Awaitable[T], *, default: T) -> T:
        try:
            return await with_timeout(source, seconds=self.timeout_seconds)
        except TimeoutError:
            self.missing[name] = f"no answer within {self.timeout_seconds:g} seconds"
            return default


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """A request with the parameters common to all sources."""

    request: ContextBuildRequest
    reach: GatherOptions
    hidden_ids: Sequence[UUID]
    now: datetime
    time_ranges: Sequence[TimeRange] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSources:
    """The sources of a context. `timeout_seconds` applies to each source.

    `web` is searched first, when the input asks for current events. `known_vectors` maps texts to their vectors.
    """

    db: Database
    embedder: "Embedder | None"
    timeout_seconds: float
    ranking_weights: RankingWeights = DEFAULT_WEIGHTS
    artifact_policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    web: WebSource | None = None
    known_vectors: "Mapping[str, Vector]" = field(default_factory=dict[str, "Vector"])

    async def gather(self, request: ContextBuildRequest, *, reach: GatherOptions, now: datetime) -> GatheredSources:
        """Read all sources concurrently, up to the limits of `reach`. `now` is the moment of the context."""
        wanted = find_asked_times(request.input, now=now) or request.filters.time_ranges
        asked = SourceRequest(
            request=request, reach=reach, hidden_ids=await self._find_hidden_ids(request), now=now, time_ranges=wanted
        )
        reading = _SourceReader(self.timeout_seconds)
        await self._search_the_web(asked, reading)
        if self.embedder is None:
            return await self._gather_all(asked, reading)
        once = CachingEmbedder(self.embedder, self.known_vectors)
        try:
            return await replace(self, embedder=once)._gather_all(asked, reading)
        finally:
            once.cancel_pending()

    async def _gather_all(self, source_request: SourceRequest, reader: _SourceReader) -> GatheredSources:
        request, now = source_request.request, source_request.now
        nothing = RecallResult(query=RecallQuery(text=request.input), memories=(), missing={})
        async with task_group() as tasks:

            def ask(name: str, source: Callable[[Tx, SourceRequest], Awaitable[T]], *, instead: T) -> "Task[T]":
                return tasks.create_task(
                    reader.read_or_default(name, self._read(source_request, source), default=instead)
                )

            stacking = tasks.create_task(self._read_task_stack(request, reader))
            recalling = tasks.create_task(
                reader.read_or_default("memories", self._recall(source_request, stacking), default=nothing)
            )
            looking = tasks.create_task(self._read_data_without_tasks(request, now=now))
            knowing = ask("entities and procedures", _read_input_matches, instead=InputMatches())
            happened = ask("events", _read_recent_events, instead=RecentEvents()) if request.session_id else None
            core = tasks.create_task(
                reader.read_or_default("core", self._embed_core_after_tasks(request, stacking), default=None)
            )
            earlier = tasks.create_task(
                reader.read_or_default("session artifacts", self._read_artifacts(source_request), default=NO_ARTIFACTS)
            )
        recalled, around = recalling.result(), replace(looking.result(), task_stack=stacking.result())
        gathered = GatheredSources(
            recall_result=recalled,
            session_data=around,
            core_vector=core.result(),
            input_matches=knowing.result(),
            recent_events=happened.result() if happened else RecentEvents(),
            artifacts=earlier.result(),
            filters=request.filters,
            time_ranges=source_request.time_ranges,
            missing={**recalled.missing, **reader.missing, **around.missing},
        )
        return await self._add_triggered_procedures(gathered, source_request, reader)

    async def _search_the_web(self, source_request: SourceRequest, reader: _SourceReader) -> None:
        if self.web is None or not self.web.should_search(source_request.request, now=source_request.now):
            return
        try:
            await reader.read_or_default(
                "web search", self.web.search_and_store(source_request.request, now=source_request.now), default=None
            )
        except ProviderError as error:
            reader.missing["web search"] = error.what

    async def _read_artifacts(self, source_request: SourceRequest) -> FoundArtifacts:
        if not should_search_artifacts(source_request.request):
            return NO_ARTIFACTS
        looking = ArtifactSource(
            db=self.db, embedder=self.embedder, timeout_seconds=self.timeout_seconds / 2, policy=self.artifact_policy
        )
        return await looking.read(source_request.request, source_request.hidden_ids)

    async def read_session_data(self, request: ContextBuildRequest, *, now: datetime) -> SessionContextData:
        """Read the data that needs no search."""
        reading = _SourceReader(self.timeout_seconds)
        async with task_group() as tasks:
            stacking = tasks.create_task(self._read_task_stack(request, reading))
            looking = tasks.create_task(self._read_data_without_tasks(request, now=now))
        around = looking.result()
        return replace(around, task_stack=stacking.result(), missing={**around.missing, **reading.missing})

    async def _read_data_without_tasks(self, request: ContextBuildRequest, *, now: datetime) -> SessionContextData:
        asked, reading = (
            SourceRequest(request=request, reach=GatherOptions(), hidden_ids=(), now=now),
            _SourceReader(self.timeout_seconds),
        )
        async with task_group() as tasks:
            standing = tasks.create_task(
                reading.read_or_default(
                    "identity and constraints", self._read(asked, _read_always_on), default=AlwaysOn()
                )
            )
            situating = tasks.create_task(
                reading.read_or_default("session", self._read(asked, _read_session_state), default=SessionState())
            )
        return SessionContextData(
            always_on=standing.result(),
            session_state=situating.result().apply_filters(request.filters),
            missing=reading.missing,
        )

    async def _find_hidden_ids(self, request: ContextBuildRequest) -> Sequence[UUID]:
        itself = [request.input_memory_id] if request.input_memory_id else []
        if request.filters == NO_FILTERS:
            return itself
        async with self.db.transaction(request.agent_id) as tx:
            return [*itself, *await filters.find_hidden_ids(tx, request.filters, agent_id=request.agent_id)]

    async def _read_task_stack(self, request: ContextBuildRequest, reader: _SourceReader) -> TaskStack:
        """Read the task stack. The search waits for it, so it gets half of the timeout."""
        if request.session_id is None:
            return EMPTY_STACK
        quicker = _SourceReader(self.timeout_seconds / 2, reader.missing)
        return await quicker.read_or_default(
            "tasks", self._load_task_stack(request, request.session_id), default=EMPTY_STACK
        )

    async def _load_task_stack(self, request: ContextBuildRequest, session_id: UUID) -> TaskStack:
        async with self.db.transaction(request.agent_id) as tx:
            where = {"agent_id": request.agent_id, "session_id": session_id}
            return (await task_stack.load_tree(tx, **where, moment=request.as_of)).stack

    async def _recall(self, source_request: SourceRequest, stack_task: "Task[TaskStack]") -> RecallResult:
        """Search for the input together with the current goal."""
        request, current = source_request.request, (await stack_task).current
        search = MemorySearch(
            db=self.db,
            agent_id=request.agent_id,
            limits=self._select_search_limits(request),
            moment=request.as_of,
            excluded_ids=source_request.hidden_ids,
            time_ranges=source_request.time_ranges if self.ranking_weights.time_range else (),
            timeout_seconds=self.timeout_seconds / 2,
            weights=_select_ranking_weights(self.ranking_weights, source_request),
        )
        text = f"{request.input}\n{current.goal}" if current else request.input
        return await recall(text, embedder=self.embedder, search=search)

    async def _embed_core_after_tasks(
        self, request: ContextBuildRequest, stack_task: "Task[TaskStack]"
    ) -> "Vector | None":
        """Embed the core. With a task, always: the search text then includes the goal."""
        return await self.embed_core(request, always=bool((await stack_task).path))

    async def embed_core(self, request: ContextBuildRequest, *, always: bool = False) -> "Vector | None":
        """Return the vector of the input without its greeting.

        None when the frame is given, or when there is no greeting unless `always`.
        """
        core = strip_greeting(request.input)
        if self.embedder is None or request.frame or (core == request.input and not always):
            return None
        try:
            return (await self.embedder.embed([core]))[0]
        except ProviderError:
            return None  # reported by the memory search

    def _select_search_limits(self, request: ContextBuildRequest) -> dict[Kind, SearchLimits]:
        """Return the search limits of the kinds that the request allows."""
        wanted = compute_search_limits(request.tokens)
        return {
            k: w
            for k, w in wanted.items()
            if request.filters.allows_kind(k) and k not in self.ranking_weights.excluded_kinds
        }

    async def _read(self, source_request: SourceRequest, source: Callable[[Tx, SourceRequest], Awaitable[T]]) -> T:
        async with self.db.transaction(source_request.request.agent_id) as tx:
            return await source(tx, source_request)

    async def _add_triggered_procedures(
        self, gathered: GatheredSources, source_request: SourceRequest, reader: _SourceReader
    ) -> GatheredSources:
        """Add triggered procedures that the search did not find. There are rarely any."""
        met = {found.memory_id for found in gathered.recall_result.memories} | set(source_request.hidden_ids)
        patterns, types = gathered.input_matches.procedure_triggers, gathered.input_matches.entity_matches.entity_types
        meant = match_triggers(patterns, source_request.request.input, types=types)[:MAX_TRIGGERED_PROCEDURES]
        unmet = [pattern.memory_id for pattern in meant if pattern.memory_id not in met]
        if not unmet:
            return gathered

        async def read(tx: Tx, asked: SourceRequest) -> Sequence[RetrievedMemory]:
            return await fetch_memories(tx, unmet, agent_id=asked.request.agent_id, moment=asked.request.as_of)

        found = await reader.read_or_default("procedures", self._read(source_request, read), default=())
        missing = {**gathered.missing, **reader.missing}
        return replace(gathered, procedures=found, missing=missing)


def _select_ranking_weights(default: RankingWeights, source_request: SourceRequest) -> RankingWeights:
    """For an input that only names a time, rank memories of that time first."""
    if default.time_range and asks_only_about_time(source_request.request.input, source_request.time_ranges):
        return replace(default, time_range=TIME_FIRST)
    return default


async def _read_always_on(tx: Tx, source_request: SourceRequest) -> AlwaysOn:
    agent_id = source_request.request.agent_id
    return AlwaysOn(
        identity=await identity.read_identity(tx, agent_id=agent_id, moment=source_request.request.as_of),
        censors=await _read_censors(tx, source_request.request),
    )


async def _read_censors(tx: Tx, request: ContextBuildRequest) -> Sequence[Censor]:
    if request.as_of is None:
        return await censors.list_in_force(tx, agent_id=request.agent_id, model_id=None)
    return await censors.list_in_force_at(tx, agent_id=request.agent_id, moment=request.as_of)


async def _read_input_matches(tx: Tx, source_request: SourceRequest) -> InputMatches:
    request = source_request.request
    enquiry = EntityQuery(
        agent_id=request.agent_id,
        text=request.input,
        now=source_request.now,
        max_salient=source_request.reach.salient,
        max_depth=source_request.reach.depth,
        moment=request.as_of,
        excluded_ids=source_request.hidden_ids,
    )
    patterns = await procedures.list_triggers(tx, agent_id=request.agent_id)
    return InputMatches(entity_matches=await entity_lookup.find_entities(tx, enquiry), procedure_triggers=patterns)


async def _read_recent_events(tx: Tx, source_request: SourceRequest) -> RecentEvents:
    request, reach = source_request.request, source_request.reach
    assert request.session_id is not None, "nothing is late without a session"
    around = EventQuery(
        agent_id=request.agent_id,
        session_id=request.session_id,
        max_events=reach.events,
        max_sessions=reach.sessions,
        moment=request.as_of,
        excluded_ids=source_request.hidden_ids,
        preferred_types=select_event_types(classify_intent(request.input)),
    )
    return await event_store.find_recent(tx, around)


async def _read_session_state(tx: Tx, source_request: SourceRequest) -> SessionState:
    return await read_session_state(tx, source_request.request, now=source_request.now)


def compute_search_limits(tokens: int) -> dict[Kind, SearchLimits]:
    """Return the search limits of each kind; messages only as many as could fit, because each costs time."""
    lines = min(max(tokens // TOKENS_PER_EXCHANGE, MIN_EXCHANGES), MAX_EXCHANGES)
    return {"exchange": SearchLimits(EXCHANGES_SEARCHED, lines), **DEFAULT_SEARCH_LIMITS}
