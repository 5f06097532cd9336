"""Search for the memories that the question in an input needs, by the kind of question."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.questions.echo import demote_echoes
from newton.cognition.questions.question_kinds import QuestionKind, read_question
from newton.cognition.questions.question_rules import (
    BROAD_KINDS,
    NO_GATHERING,
    QuestionGathering,
    add_standing,
    rank_for_question,
)
from newton.cognition.questions.standing_choice import StandingStatement, choose_standing
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.gathered_data import TaskData
from newton.cognition.sources.search_limits import compute_search_limits
from newton.cognition.sources.signals import asks_only_about_time
from newton.cognition.sources.source_reader import SourceReader
from newton.cognition.sources.standing_statements import find_standing
from newton.concurrency import task_group
from newton.db.pool import Database
from newton.deadline import RequestDeadline
from newton.dialogue import log
from newton.heart.entities.entity_lookup import demote_other_subjects
from newton.memory.memory import Kind
from newton.memory.query_vectors import embed_text
from newton.memory.ranking import TIME_FIRST, PreferredMemories, RankingWeights
from newton.memory.recall import EMBED_SHARE, SEARCH_SHARE, recall
from newton.memory.search_types import MemorySearch, RecallQuery, RecallResult, SearchLimits
from newton.text.time_expressions import TimeRange

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder


class FoundMemories(NamedTuple):
    """The memories found for a question, and how they were gathered."""

    recall_result: RecallResult
    gathering: QuestionGathering = NO_GATHERING

    @classmethod
    def nothing(cls, text: str) -> "FoundMemories":
        return cls(RecallResult(query=RecallQuery(text=text), memories=(), missing={}))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSource:
    """The search of memory for an input. Embedding and searches share the time until the `deadline`."""

    db: Database
    embedder: "Embedder | None"
    deadline: RequestDeadline
    weights: RankingWeights

    async def read(
        self,
        request: ContextBuildRequest,
        task: TaskData,
        hidden_ids: Sequence[UUID],
        time_ranges: Sequence[TimeRange],
    ) -> FoundMemories:
        """Search memory for the input, together with the goal of the current task, whose memories rank higher.

        The quarantined replies of the session are found too.
        """
        current, reading = task.stack.current, read_question(request.input)
        replies, unread = await self._list_replies(request)
        search = MemorySearch(
            db=self.db,
            agent_id=request.agent_id,
            limits=self._select_limits(request, reading.kind),
            shown_ids=replies,
            moment=request.as_of,
            excluded_ids=hidden_ids,
            time_ranges=time_ranges if self.weights.time_range else (),
            preferred=_select_preferred(request, task),
            deadline=self.deadline,
            weights=self._select_weights(request, time_ranges),
        )
        text = f"{request.input}\n{current.goal}" if current else request.input
        async with task_group() as tasks:
            finding = tasks.create_task(self._find_standing(request, hidden_ids))
            result = await recall(text, embedder=self.embedder, search=search)
        query = replace(result.query, widened_from=request.input)
        memories = demote_echoes(request.input, demote_other_subjects(request.input, result.memories))
        ranked = rank_for_question(reading, memories, max_tokens=request.tokens)
        statements, missing = finding.result()
        chosen = choose_standing(reading, statements, text=request.input, max_tokens=request.tokens)
        memories, gathering = add_standing(ranked, statements, chosen)
        missing = {**result.missing, **missing, **unread}
        return FoundMemories(replace(result, query=query, memories=memories, missing=missing), gathering)

    async def _list_replies(self, request: ContextBuildRequest) -> tuple[Sequence[UUID], dict[str, str]]:
        """Return the quarantined replies of the session, or why they could not be read."""
        if request.session_id is None:
            return (), {}
        reader = SourceReader(self.deadline.share(EMBED_SHARE))
        reading = self._read_replies(request.agent_id, request.session_id)
        return await reader.read_or_default("replies of the session", reading, default=()), reader.missing

    async def _read_replies(self, agent_id: UUID, session_id: UUID) -> Sequence[UUID]:
        async with self.db.transaction(agent_id) as tx:
            return await log.list_quarantined_replies(tx, agent_id=agent_id, session_id=session_id)

    async def _find_standing(
        self, request: ContextBuildRequest, hidden_ids: Sequence[UUID]
    ) -> tuple[Sequence[StandingStatement], dict[str, str]]:
        """Return the instructions and preferences that are similar to the input, or why they could not be read.

        A late embedding is reported by the search of memory; here the words of the input are compared then.
        """
        query = RecallQuery(text=request.input)
        with suppress(TimeoutError):
            async with self.deadline.share(EMBED_SHARE).timeout():
                query, _ = await embed_text(request.input, self.embedder)
        reader = SourceReader(self.deadline.share(SEARCH_SHARE))
        finding = self._search_standing(query, request, hidden_ids)
        return await reader.read_or_default("standing statements", finding, default=()), reader.missing

    async def _search_standing(
        self, query: RecallQuery, request: ContextBuildRequest, hidden_ids: Sequence[UUID]
    ) -> Sequence[StandingStatement]:
        async with self.db.transaction(request.agent_id) as tx:
            return await find_standing(tx, query, request, hidden_ids)

    def _select_limits(self, request: ContextBuildRequest, kind: QuestionKind) -> dict[Kind, SearchLimits]:
        """Return the search limits, by kind, of the kinds of memory that the request allows."""
        limits = compute_search_limits(request.tokens, is_broad=kind in BROAD_KINDS or not request.fill)
        excluded = self.weights.excluded_kinds
        return {k: v for k, v in limits.items() if request.filters.allows_kind(k) and k not in excluded}

    def _select_weights(self, request: ContextBuildRequest, time_ranges: Sequence[TimeRange]) -> RankingWeights:
        """Return the weights for ranking. If the input names only a time, memories of that time come first."""
        if self.weights.time_range and asks_only_about_time(request.input, time_ranges):
            return replace(self.weights, time_range=TIME_FIRST)
        return self.weights


def _select_preferred(request: ContextBuildRequest, task: TaskData) -> PreferredMemories:
    sessions = frozenset(request.related_sessions)
    return PreferredMemories(threads=sessions, ranges=task.message_ranges, ids=task.memory_ids)
