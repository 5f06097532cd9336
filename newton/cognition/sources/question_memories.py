"""Search of memory for an input: the search limits by kind of question, and the standing instructions that apply."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.questions.question_kinds import QuestionKind, demote_echoes, read_question
from newton.cognition.questions.question_rules import (
    BROAD_KINDS,
    NO_GATHERING,
    QuestionGathering,
    StandingStatement,
    add_standing,
    choose_standing,
    rank_for_question,
)
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.gathered_data import TaskData
from newton.cognition.sources.signals import asks_only_about_time
from newton.cognition.sources.source_reader import SourceReader
from newton.concurrency import task_group
from newton.content.frames import Frame, get_frame
from newton.content.profiles import GatherOptions, Profile, get_profile, merge_gather_options
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.deadline import RequestDeadline
from newton.dialogue import log
from newton.heart.entities.entity_lookup import demote_other_subjects
from newton.memory.memory import Kind
from newton.memory.memory_reader import fetch_memories
from newton.memory.query_vectors import embed_text
from newton.memory.ranking import TIME_FIRST, PreferredMemories, RankingWeights
from newton.memory.recall import EMBED_SHARE, SEARCH_SHARE, recall
from newton.memory.search_types import MemorySearch, RecallQuery, RecallResult, SearchLimits
from newton.text.time_expressions import TimeRange

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

SQL = load("newton.cognition.sources", "question_memories.sql")

KINDS: Sequence[Kind] = ("exchange", "fact")  # that state an instruction or a preference
MAX_POOL = 500  # the latest statements, which are compared with the input
MAX_FOUND = 12


async def find_standing(
    tx: Tx, query: RecallQuery, request: ContextBuildRequest, hidden_ids: Sequence[UUID]
) -> tuple[StandingStatement, ...]:
    """Return the instructions and preferences most similar to the input; without a vector, the latest ones."""
    kinds = [kind for kind in KINDS if request.filters.allows_kind(kind)]
    rows = await SQL["find_standing"].fetch_all(
        tx,
        agent_id=request.agent_id,
        model_id=query.model_id,
        embedding=query.vector,
        moment=request.as_of,
        kinds=kinds,
        excluded_ids=hidden_ids,
        max_pool=MAX_POOL,
        max_rows=MAX_FOUND,
    )
    if not rows:
        return ()
    marks = {row["memory_id"]: (row["standing"], row["similarity"]) for row in rows}
    found = await fetch_memories(tx, list(marks), agent_id=request.agent_id, moment=request.as_of)
    return tuple(
        StandingStatement(one._replace(similarity=marks[one.memory_id][1]), marks[one.memory_id][0]) for one in found
    )


DEFAULT_SEARCH_LIMITS: Mapping[Kind, SearchLimits] = {
    "fact": SearchLimits(searched=30, kept=30),
    "episode": SearchLimits(searched=10, kept=10),
    "procedure": SearchLimits(searched=10, kept=10),
    "passage": SearchLimits(searched=20, kept=20),
    "item": SearchLimits(searched=20, kept=20),
    "event": SearchLimits(searched=10, kept=10),
    "decision": SearchLimits(searched=20, kept=20),
}
EXCHANGES_SEARCHED = 200  # results by vector, and as many by words; adjacent messages of the best are added
TOKENS_PER_EXCHANGE = 28  # a low estimate, so that the results more than fill the context
MIN_EXCHANGES, MAX_EXCHANGES = 40, 300


BROAD_FACTOR = 2  # of the messages that are kept if many are asked for, or only those above a minimum enter


def compute_search_limits(tokens: int, *, is_broad: bool = False) -> dict[Kind, SearchLimits]:
    """Return the search limits of each kind. More messages are kept for a search that `is_broad`.

    The number of messages depends on the token budget, because each result takes time.
    """
    wanted = max(tokens // TOKENS_PER_EXCHANGE, MIN_EXCHANGES) * (BROAD_FACTOR if is_broad else 1)
    exchanges = min(wanted, MAX_EXCHANGES)
    return {"exchange": SearchLimits(EXCHANGES_SEARCHED, exchanges), **DEFAULT_SEARCH_LIMITS}


def find_widest_reach(
    request: ContextBuildRequest, frames: Mapping[str, Frame], profiles: Mapping[str, Profile]
) -> GatherOptions:
    """Return gather options (limits of the sources) that suffice for every profile that may be selected.

    The profile is selected only after the search. Raises NotFoundError for an unknown frame or profile.
    """
    possible = [get_frame(frames, request.frame)] if request.frame else frames.values()
    names = [request.profile] if request.profile else sorted({frame.profile for frame in possible})
    named = [get_profile(profiles, name) for name in names]
    delegates = {n for p in named if p.by_frame for n in (*p.by_frame.values(), p.otherwise)}
    considered = (*named, *(profiles[name] for name in delegates))
    return merge_gather_options(request.overrides.override_reach(p.reach) for p in considered)


class FoundMemories(NamedTuple):
    """The memories found for a question, and how they were gathered."""

    recall_result: RecallResult
    gathering: QuestionGathering = NO_GATHERING

    @classmethod
    def nothing(cls, text: str) -> "FoundMemories":
        return cls(RecallResult(query=RecallQuery(text=text), memories=(), missing={}))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSource:
    """Searches memory for an input. Embedding and searches share the time until the `deadline`."""

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

        The unconfirmed (quarantined) replies of the session are found too.
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
        """Return the ids of the unconfirmed replies of the session, or the reason why they could not be read."""
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

        Without an embedding in time, words are compared; the search of memory reports that the embedding is late.
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
