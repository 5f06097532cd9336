"""Concurrent reading of all sources of a context until its deadline. Late and failed sources are reported."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from newton.cognition.request import NO_FILTERS, ContextBuildRequest
from newton.cognition.sources import filters
from newton.cognition.sources.filters import list_task_memories, load_task_scope
from newton.cognition.sources.gathered_data import (
    NO_ARTIFACTS,
    NO_TASK,
    AlwaysOn,
    GatheredSources,
    InputMatches,
    SessionContextData,
    TaskData,
)
from newton.cognition.sources.observations import FoundObservation, ObservationSource
from newton.cognition.sources.parent_memories import (
    NO_PARENT_MATCHES,
    mark_inherited,
    merge_found,
    merge_matches,
)
from newton.cognition.sources.question_memories import FoundMemories, QuestionSource
from newton.cognition.sources.session_artifacts import (
    DEFAULT_ARTIFACT_POLICY,
    ArtifactPolicy,
    ArtifactSource,
    FoundArtifacts,
    should_search_artifacts,
)
from newton.cognition.sources.session_state import SessionState
from newton.cognition.sources.signals import (
    find_asked_times,
)
from newton.cognition.sources.source_queries import (
    SourceRequest,
    read_always_on,
    read_input_matches,
    read_recent_events,
    read_session_data,
    read_state,
)
from newton.cognition.sources.source_reader import SourceReader, cache_vectors
from newton.cognition.sources.web import WEB_SECONDS, WebSource
from newton.concurrency import task_group
from newton.content.profiles import GatherOptions
from newton.db.pool import Database, Tx, visit_agent
from newton.deadline import RequestDeadline
from newton.dialogue import tasks
from newton.errors import ProviderError
from newton.fault_isolation import compute_part, run_part
from newton.heart.events.event_store import RecentEvents
from newton.heart.procedures import match_triggers
from newton.ids import derive_model_id
from newton.memory.memory_reader import fetch_memories
from newton.memory.ranking import DEFAULT_WEIGHTS, RankingWeights
from newton.memory.recall import EMBED_SHARE
from newton.memory.search_types import RetrievedMemory
from newton.text.greetings import strip_greeting

if TYPE_CHECKING:
    from asyncio import Task

    from newton.providers.embedding import Embedder, Vector

MAX_TRIGGERED_PROCEDURES = 10
NOTHING_ABOVE: "tuple[FoundMemories | None, InputMatches]" = (None, NO_PARENT_MATCHES)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSources:
    """Reads the sources of a context until the `deadline`.

    If the input asks for current events, `web` is searched before the sources are read. `known_vectors` are embeddings
    of texts that need not be computed again, `known_session_data` the session data that this turn has already read. For
    a project, the memory of `parent_id`, the agent above it, is searched too, in transactions of its own.
    """

    db: Database
    embedder: "Embedder | None"
    deadline: RequestDeadline
    ranking_weights: RankingWeights = DEFAULT_WEIGHTS
    artifact_policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    web: WebSource | None = None
    known_vectors: "Mapping[str, Vector]" = field(default_factory=dict[str, "Vector"])
    known_session_data: SessionContextData | None = None
    parent_id: UUID | None = None

    async def gather(self, request: ContextBuildRequest, *, reach: GatherOptions, now: datetime) -> GatheredSources:
        """Read all sources concurrently. `reach` limits the number of results; `now` is the time of the context."""
        source_request = SourceRequest(
            request=request,
            reach=reach,
            hidden_ids=await self._find_hidden_ids(request),
            now=now,
            time_ranges=find_asked_times(request.input, now=now) or request.filters.time_ranges,
        )
        reader = SourceReader(self.deadline)
        await self._search_the_web(source_request, reader)
        if self.embedder is None:
            return await self._gather_all(source_request, reader)
        embedder = cache_vectors(self.embedder, self.known_vectors)
        try:
            return await replace(self, embedder=embedder)._gather_all(source_request, reader)
        finally:
            embedder.cancel_pending()

    async def _gather_all(self, source_request: SourceRequest, reader: SourceReader) -> GatheredSources:
        request = source_request.request
        async with task_group() as group:

            def start(name: str, source: Awaitable[T], default: T) -> "Task[T]":
                return group.create_task(reader.read_or_default(name, source, default=default))

            reading_tasks = group.create_task(self._read_task(request, reader))
            session_data = group.create_task(self._read_data_without_tasks(request, now=source_request.now))
            found = start("memories", self._recall(source_request, reading_tasks), FoundMemories.nothing(request.input))
            matches = start("entities and procedures", self._read(source_request, read_input_matches), InputMatches())
            events = (
                start("events", self._read(source_request, read_recent_events), RecentEvents())
                if request.session_id
                else None
            )
            above = start("memories above the project", self._read_above(source_request), NOTHING_ABOVE)
            core = start("input embedding", self._embed_core_after_tasks(request, reading_tasks), None)
            artifacts = start("session artifacts", self._read_artifacts(source_request), NO_ARTIFACTS)
            observations = start("tool results", self._find_observations(source_request), ())
        parent_found, parent_matches = above.result()
        recall_result, gathering = merge_found(found.result(), parent_found) if parent_found else found.result()
        missing = {**recall_result.missing, **reader.missing, **session_data.result().missing}
        gathered = GatheredSources(
            recall_result=recall_result,
            gathering=gathering,
            session_data=session_data.result().with_task(reading_tasks.result()),
            task=reading_tasks.result(),
            core_vector=core.result(),
            input_matches=merge_matches(matches.result(), parent_matches),
            recent_events=events.result() if events else RecentEvents(),
            artifacts=artifacts.result(),
            observations=observations.result(),
            filters=request.filters,
            time_ranges=source_request.time_ranges,
            missing=missing,
        )
        return await self._add_triggered_and_injected(gathered, source_request, reader)

    async def _read_above(self, source_request: SourceRequest) -> tuple[FoundMemories | None, InputMatches]:
        """Search the memory of the agent above the project; return nothing if the context is of no project.

        Nothing above it belongs to the tasks of a session of the project.
        """
        if self.parent_id is None or source_request.request.filters.task:
            return NOTHING_ABOVE
        request = replace(source_request.request, agent_id=self.parent_id, session_id=None, input_memory_id=None)
        hidden_ids = await self._find_hidden_ids(request)
        asked = replace(source_request, request=request, hidden_ids=hidden_ids)
        source = QuestionSource(
            db=self.db, embedder=self.embedder, deadline=self.deadline, weights=self.ranking_weights
        )
        async with task_group() as group:
            finding = group.create_task(source.read(request, NO_TASK, hidden_ids, asked.time_ranges))
            matches = await self._read(asked, read_input_matches)
        return finding.result(), matches

    async def _search_the_web(self, source_request: SourceRequest, reader: SourceReader) -> None:
        request, now = source_request.request, source_request.now
        if self.web is None or not self.web.should_search(request, now=now):
            return
        try:
            async with asyncio.timeout(self.deadline.limit(WEB_SECONDS)):
                searching = self.web.search_and_store(request, now=now)
                await run_part("web search", searching, default=None, missing=reader.missing)
        except TimeoutError:
            reader.missing["web search"] = f"no answer within {WEB_SECONDS:g} seconds"

    async def _read_artifacts(self, source_request: SourceRequest) -> FoundArtifacts:
        if not should_search_artifacts(source_request.request):
            return NO_ARTIFACTS
        source = ArtifactSource(
            db=self.db,
            embedder=self.embedder,
            deadline=self.deadline.share(EMBED_SHARE),
            policy=self.artifact_policy,
        )
        return await source.read(source_request.request, source_request.hidden_ids)

    async def read_observations(
        self, request: ContextBuildRequest, *, now: datetime
    ) -> tuple[Sequence[FoundObservation], Mapping[str, str]]:
        """Return the events of the session and matching ones of other sessions, and the reasons of failed reads."""
        source_request = SourceRequest(
            request=request,
            now=now,
            hidden_ids=await self._find_hidden_ids(request),
            time_ranges=find_asked_times(request.input, now=now),
        )
        embedder = cache_vectors(self.embedder, self.known_vectors) if self.embedder else None
        finding = replace(self, embedder=embedder)._find_observations(source_request)
        reader = SourceReader(self.deadline)
        return await reader.read_or_default("tool results", finding, default=()), reader.missing

    async def _find_observations(self, source_request: SourceRequest) -> Sequence[FoundObservation]:
        request = source_request.request
        if not request.filters.allows_kind("event"):
            return ()
        source = ObservationSource(db=self.db, embedder=self.embedder, deadline=self.deadline.share(EMBED_SHARE))
        return await source.read(request, source_request.hidden_ids, source_request.time_ranges)

    async def read_session_data(self, request: ContextBuildRequest, *, now: datetime) -> SessionContextData:
        """Read the data that needs no search in one transaction: identity, censors, session state and task stack."""
        source_request = self._to_session_request(request, now)
        reader, default = SourceReader(self.deadline), SessionContextData()
        data = await reader.read_or_default("session", self._read(source_request, read_session_data), default=default)
        return replace(data, missing=reader.missing)

    async def _read_data_without_tasks(self, request: ContextBuildRequest, *, now: datetime) -> SessionContextData:
        if self.known_session_data:
            return self.known_session_data
        source_request = self._to_session_request(request, now)
        reader = SourceReader(self.deadline)
        always_on = self._read(source_request, read_always_on)
        session_state = self._read(source_request, read_state)
        async with task_group() as group:
            reading = group.create_task(
                reader.read_or_default("identity and constraints", always_on, default=AlwaysOn())
            )
            state = await reader.read_or_default("session", session_state, default=SessionState())
        return SessionContextData(
            always_on=reading.result(), session_state=state.apply_filters(request.filters), missing=reader.missing
        )

    def _to_session_request(self, request: ContextBuildRequest, now: datetime) -> SourceRequest:
        model_id = derive_model_id(self.embedder.identity) if self.embedder else None
        return SourceRequest(request=request, now=now, model_id=model_id, parent_id=self.parent_id)

    async def _find_hidden_ids(self, request: ContextBuildRequest) -> Sequence[UUID]:
        """Return the memories that must not be found. Raises TimeoutExceededError if they are not known in time."""
        input_ids = [request.input_memory_id] if request.input_memory_id else []
        if request.filters == NO_FILTERS:
            return input_ids
        try:
            async with self.deadline.timeout(), self.db.transaction(request.agent_id) as tx:
                return [*input_ids, *await filters.find_hidden_ids(tx, request.filters, agent_id=request.agent_id)]
        except TimeoutError:
            raise self.deadline.to_error("the filters") from None

    async def _read_task(self, request: ContextBuildRequest, reader: SourceReader) -> TaskData:
        """Read the tasks of the session, within half of the time, because the search waits for them."""
        if request.session_id is None:
            return NO_TASK
        known = self.known_session_data
        if known and known.task_stack.current is None:
            return TaskData(known.task_stack, ended_ranges=known.ended_ranges)
        half_time = SourceReader(self.deadline.share(0.5), reader.missing)
        task = self._load_task(request, request.session_id)
        return await half_time.read_or_default("tasks", task, default=NO_TASK)

    async def _load_task(self, request: ContextBuildRequest, session_id: UUID) -> TaskData:
        agent_id = request.agent_id
        async with self.db.transaction(agent_id) as tx:
            tree = await tasks.load_tree(tx, agent_id=agent_id, session_id=session_id, moment=request.as_of)
            ended_ranges = () if request.filters.task else tree.ended_ranges
            if tree.current is None:
                return TaskData(tree.stack, ended_ranges=ended_ranges)
            key = {"agent_id": agent_id, "session_id": session_id}
            scope = await load_task_scope(tx, tree.current, tree, **key, moment=request.as_of)
            memory_ids = await list_task_memories(tx, scope, agent_id=agent_id)
            return TaskData(tree.stack, scope, memory_ids, ended_ranges)

    async def _recall(self, source_request: SourceRequest, reading_task: "Task[TaskData]") -> FoundMemories:
        source = QuestionSource(
            db=self.db, embedder=self.embedder, deadline=self.deadline, weights=self.ranking_weights
        )
        request, hidden_ids = source_request.request, source_request.hidden_ids
        task = await asyncio.shield(reading_task)  # other sources wait for it too, so that no deadline may cancel it
        return await source.read(request, task, hidden_ids, source_request.time_ranges)

    async def _embed_core_after_tasks(
        self, request: ContextBuildRequest, reading_task: "Task[TaskData]"
    ) -> "Vector | None":
        """Embed the input without its greeting, for the selection of a frame.

        If the session has a task, this is needed even without a greeting: the text that is embedded for the search then
        contains the task's goal too.
        """
        return await self.embed_core(request, always=bool((await asyncio.shield(reading_task)).stack.path))

    async def embed_core(self, request: ContextBuildRequest, *, always: bool = False) -> "Vector | None":
        """Return the vector of the input without its greeting, for the selection of a frame.

        Return None without an embedder or when the request names a frame. An input without a greeting is embedded only
        with `always`, because the search embeds the same text.
        """
        core = strip_greeting(request.input)
        if self.embedder is None or request.frame or (core == request.input and not always):
            return None
        try:
            return (await self.embedder.embed([core]))[0]
        except ProviderError:
            return None  # reported by the memory search

    async def _read(self, source_request: SourceRequest, source: Callable[[Tx, SourceRequest], Awaitable[T]]) -> T:
        async with self.db.transaction(source_request.request.agent_id) as tx:
            return await source(tx, source_request)

    async def _add_triggered_and_injected(
        self, gathered: GatheredSources, source_request: SourceRequest, reader: SourceReader
    ) -> GatheredSources:
        """Add the procedures that the input triggers and the memories injected into the session, unless the search
        found them.
        """
        request, matches = source_request.request, gathered.input_matches
        known_ids = {found.memory_id for found in gathered.recall_result.memories} | set(source_request.hidden_ids)
        entity_types = matches.entity_matches.entity_types
        match = partial(match_triggers, matches.procedure_triggers, request.input, types=entity_types)
        triggered = compute_part("procedure triggers", match, default=[], missing=reader.missing)
        new_ids = [p.memory_id for p in triggered[:MAX_TRIGGERED_PROCEDURES] if p.memory_id not in known_ids]
        injected_ids = {one.memory_id for one in gathered.session_state.injections if one.memory_id} - known_ids
        if not new_ids and not injected_ids:
            return replace(gathered, missing={**gathered.missing, **reader.missing})

        async def read(tx: Tx, _: SourceRequest) -> Sequence[RetrievedMemory]:
            ids = [*sorted(injected_ids), *(one for one in new_ids if one not in injected_ids)]
            own = await fetch_memories(tx, ids, agent_id=request.agent_id, moment=request.as_of)
            if not self.parent_id or len(own) == len(ids):
                return own
            async with visit_agent(tx, self.parent_id, home=request.agent_id):
                above = await fetch_memories(tx, ids, agent_id=self.parent_id, moment=request.as_of)
            return [*own, *mark_inherited(above)]

        found = await reader.read_or_default(
            "triggered or injected memories", self._read(source_request, read), default=()
        )
        return replace(
            gathered,
            procedures=[one for one in found if one.memory_id not in injected_ids],
            injected=[one for one in found if one.memory_id in injected_ids],
            missing={**gathered.missing, **reader.missing},
        )
