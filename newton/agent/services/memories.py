"""Remember and recall: store facts and episodes, and search all memories."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition.assembly.exclusion_rules import find_repeated_messages, is_near_procedure
from newton.cognition.assembly.relevance_floor import select_answers
from newton.cognition.questions.question_kinds import demote_echoes
from newton.cognition.relevance_model import find_correction, load_relevance_model
from newton.cognition.scoring.relevance import AnswerEstimate, estimate_answers
from newton.cognition.sources.parent_memories import merge_recalled
from newton.deadline import RequestDeadline
from newton.dialogue import log
from newton.dialogue.compaction import entry_store
from newton.errors import InputError
from newton.heart import episodes
from newton.heart.entities.entity_lookup import demote_other_subjects
from newton.heart.episodes import NewEpisode
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import FactOutcome, NewFact
from newton.ids import new_id
from newton.memory import store
from newton.memory.hygiene import clean_name, clean_text, validate_time
from newton.memory.memory import ARCHIVED, KINDS, RECALLABLE_KINDS, Kind, normalize_importance, past_reason
from newton.memory.ranking import NO_PREFERENCE, PreferredMemories
from newton.memory.recall import recall
from newton.memory.redaction.tally import Redactions, count_redactions
from newton.memory.search_types import (
    MemorySearch,
    RecallResult,
    RetrievedMemory,
    SearchLimits,
    shorten_query,
)

NOTHING_KNOWN = "Nothing known answers this. A `min_relevance` of 0 shows the nearest memories."
MODEL_SOURCE = "model"  # of all that models store: they do not confirm each other
MIN_CANDIDATES = 100
MAX_RECALL_LIMIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDraft:
    """A fact to store, true from `at` until `until`. Times must have a time zone.

    `confidence` is from 0 to 1, `importance` from 0 to 10. `is_by_model` means that a model states it or passes it on.
    """

    content: str
    subject: str | None = None
    attribute: str | None = None
    confidence: float | None = None
    importance: float | None = None
    at: datetime | None = None
    until: datetime | None = None
    is_by_model: bool = False


class RememberResult(NamedTuple):
    """The status and id of a stored memory, and the secrets that were removed from it, counted by kind."""

    status: FactOutcome
    memory_id: UUID
    redacted: Redactions


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryService:
    """Storage and search of the memories of one agent.

    `min_relevance` is the least probability that a found memory answers; None requires what a context does. A search
    ends at the `deadline`; without one, each has the default time.
    """

    scope: AgentScope
    min_relevance: float | None = None
    deadline: RequestDeadline | None = None

    def with_min_relevance(self, probability: float | None) -> "MemoryService":
        """Return the same service with another minimum relevance. Raises InputError if it is not from 0 to 1."""
        if probability is not None and not 0 <= probability <= 1:
            raise InputError(
                f"A minimum relevance of {probability} is out of range.", hint="Give a probability from 0 to 1."
            )
        return replace(self, min_relevance=probability)

    def with_deadline(self, deadline: RequestDeadline | None) -> "MemoryService":
        """Return the same service with another deadline for its searches."""
        return replace(self, deadline=deadline)

    async def remember(self, fact: FactDraft) -> RememberResult:
        """Store a fact, or confirm the fact that has the same text.

        Raises InputError for an empty text, a subject or attribute of several lines, a number out of range, a time
        without a zone or an end before the start, and ConflictError for a retracted fact.
        """
        if fact.confidence is not None and not 0 <= fact.confidence <= 1:
            raise InputError(
                f"A confidence of {fact.confidence} is out of range.", hint="Give a confidence from 0 to 1."
            )
        new_fact = NewFact(
            ref=str(new_id()),
            content=clean_text(fact.content),
            subject=clean_name(fact.subject, what="subject") if fact.subject is not None else None,
            attribute=clean_name(fact.attribute, what="attribute") if fact.attribute is not None else None,
            confidence=fact.confidence,
            importance=normalize_importance(fact.importance),
            valid_from=_with_timezone(fact.at) or self.scope.now(),
            valid_to=_with_timezone(fact.until),
            source=MODEL_SOURCE if fact.is_by_model else None,
        )
        await self.scope.reserve_storage(new_fact.content)
        async with self.scope.write() as (tx, ctx):
            (status,) = await fact_store.add_facts(tx, [new_fact], ctx=ctx)
            memory_id = await fact_store.find_fact_id(tx, new_fact, agent_id=ctx.agent_id)
            await fact_store.ensure_not_inactive(tx, memory_id, ctx=ctx)
            return self._publish(RememberResult(status, memory_id, _count(new_fact)), "fact")

    async def remember_episode(
        self, content: str, *, title: str, occurred_at: datetime | None = None
    ) -> RememberResult:
        """Store an episode (something that happened) with its title. `occurred_at` defaults to the current time."""
        at = _with_timezone(occurred_at) or self.scope.now()
        title, content = clean_name(title, what="title"), clean_text(content)
        episode = NewEpisode(ref=str(new_id()), title=title, content=content, started_at=at, ended_at=at)
        await self.scope.reserve_storage(content)
        async with self.scope.write() as (tx, ctx):
            await episodes.add_episodes(tx, [episode], ctx=ctx)
            memory_id = await episodes.find_episode_id(tx, episode, agent_id=ctx.agent_id)
            return self._publish(RememberResult("new", memory_id, count_redactions(title, content)), "episode")

    async def recall(
        self,
        text: str,
        *,
        kinds: Sequence[Kind] | None = None,
        limit: int = 10,
        include_quarantined: bool = False,
        as_of: datetime | None = None,
        session_id: UUID | None = None,
    ) -> RecallResult:
        """Return the `limit` memories most relevant to a text, of the `kinds`, by default of all kinds.

        Quarantined memories are found only with `include_quarantined`, and events with the output of tools also if
        `kinds` names events. Superseded facts rank lower, messages that only ask a question rank last, and retracted
        facts and passages that their document no longer has are left out. Messages, facts, passages and summaries of
        sessions need `min_relevance`. `as_of` searches the memory as it was at that time. Messages of the session
        `session_id` rank higher, and its quarantined replies are found. Raises TimeoutExceededError at the deadline.
        """
        if limit < 1:
            raise InputError(f"The limit of {limit} is too small.", hint="Give a limit of 1 or more.")
        shown: Sequence[Kind] = KINDS if include_quarantined else [kind for kind in kinds or () if kind == "event"]
        is_asked = kinds is not None and "procedure" in kinds
        kinds = RECALLABLE_KINDS if kinds is None else kinds
        if "artifact" in kinds:
            raise InputError(
                "Session artifacts can be recalled only in their own session.",
                hint="Ask a question in the session: `newton ask --session NAME`.",
            )
        if limit > MAX_RECALL_LIMIT:
            raise InputError(
                f"A limit of {limit:,} is too large.", hint=f"Give a limit of at most {MAX_RECALL_LIMIT:,}."
            )
        query = shorten_query(clean_text(text, what="question"))
        width = SearchLimits(searched=max(limit, MIN_CANDIDATES), kept=max(limit, MIN_CANDIDATES))
        search = MemorySearch(
            db=self.scope.db,
            agent_id=self.scope.agent_id,
            limits=dict.fromkeys(kinds, width),
            quarantined_kinds=frozenset(shown),
            excluded_states={"INACTIVE", "RETIRED", ARCHIVED},
            moment=_with_timezone(as_of),
            preferred=PreferredMemories(threads=frozenset([session_id] if session_id else [])),
            deadline=self.deadline or RequestDeadline.after(),
        )
        return await search.deadline.run(self._search(query, search, limit=limit, takes_procedures=is_asked))

    async def _search(self, query: str, search: MemorySearch, *, limit: int, takes_procedures: bool) -> RecallResult:
        """Search, rank by the probability of an answer, drop what is irrelevant, and record the access."""
        search = replace(search, shown_ids=await self._list_replies(search.preferred.threads))
        recalled, as_of = await self._recall_levels(query, search), search.moment
        current = recalled.memories if as_of else _drop_replaced_passages(recalled.memories)
        ranked = demote_echoes(query, demote_other_subjects(query, current))
        answers = await self._estimate_answers(replace(recalled, memories=ranked), moment=as_of)
        others = self._select(
            [f for f in ranked if not f.repeats_query(query)], answers, takes_procedures=takes_procedures
        )
        # the most probable answer first; what tells comes before what asks, and what holds before what is past
        past = {f.memory_id for f in others if past_reason(f.kind, f.state)}
        memories = sorted(others, key=lambda f: (f.is_only_question, f.memory_id in past, -answers.find(f)))[:limit]
        if as_of is None:
            await self.record_access([found.memory_id for found in memories])
        return replace(recalled, memories=memories, probabilities=answers.memories)

    async def _recall_levels(self, query: str, search: MemorySearch) -> RecallResult:
        """Search the memory and, of a project, that of the agent above it; return one ranking."""
        recalled = await recall(query, embedder=self.scope.embedder, search=search)
        if self.scope.parent_id is None:
            return recalled
        above = replace(search, agent_id=self.scope.parent_id, shown_ids=(), preferred=NO_PREFERENCE)
        return merge_recalled(recalled, await recall(query, embedder=self.scope.embedder, search=above))

    async def _list_replies(self, session_ids: Set[UUID]) -> list[UUID]:
        replies = list[UUID]()
        for session_id in session_ids:
            async with self.scope.transaction() as tx:
                replies += await log.list_quarantined_replies(tx, agent_id=self.scope.agent_id, session_id=session_id)
        return replies

    async def _estimate_answers(self, found: RecallResult, *, moment: datetime | None) -> AnswerEstimate:
        model = load_relevance_model()
        async with self.scope.transaction() as tx:
            correction = await find_correction(
                tx, agent_id=self.scope.agent_id, model=model.answer_fingerprint, moment=_with_timezone(moment)
            )
        return estimate_answers(model, found, correction=correction)

    def _select(
        self, memories: Sequence[RetrievedMemory], answers: AnswerEstimate, *, takes_procedures: bool
    ) -> Sequence[RetrievedMemory]:
        """Return the memories that are relevant enough. Without a minimum, these are all.

        Earlier questions answer nothing, so they are left out where answers are judged.
        """
        if self.min_relevance == 0:
            return memories
        if answers.question is not None:
            memories = [found for found in memories if not found.is_only_question]
        # the shipped procedures are about no subject, so each query has the words of some of them
        near = [f for f in memories if f.kind != "procedure" or takes_procedures or is_near_procedure(f)]
        selected = select_answers(answers, _drop_repeated_messages(near), self.min_relevance)
        repeated = find_repeated_messages(selected)
        return [found for found in selected if found.memory_id not in repeated]

    def describe_nothing(self, result: RecallResult) -> str | None:
        """Return an explanation with advice if a search found nothing although there are memories, else None."""
        return NOTHING_KNOWN if not result.memories and result.text_count and self.min_relevance != 0 else None

    async def record_access(self, memory_ids: Sequence[UUID]) -> None:
        """Record that memories were found by a search or shown."""
        async with self.scope.transaction() as tx:
            async for agent_id in self.scope.visit_levels(tx):
                await store.record_access(tx, memory_ids, agent_id=agent_id, now=self.scope.now())

    async def record_reading(self, memory_ids: Sequence[UUID]) -> None:
        """Record that memories were read in full. If a summary stands for one in a session, it was a wrong cut."""
        async with self.scope.write() as (tx, ctx):
            async for agent_id in self.scope.visit_levels(tx):
                await store.record_access(tx, memory_ids, agent_id=agent_id, now=ctx.now)
            await entry_store.record_rereads(tx, memory_ids, ctx=ctx)

    def _publish(self, result: RememberResult, kind: Kind) -> RememberResult:
        payload = {"memory_id": str(result.memory_id), "kind": kind, "status": result.status}
        self.scope.publish("memory.remembered", payload)
        return result


def _drop_repeated_messages(memories: Sequence[RetrievedMemory]) -> Sequence[RetrievedMemory]:
    """Return the memories without messages that repeat a better one."""
    texts = set[str]()
    kept = list[RetrievedMemory]()
    for found in memories:
        if found.kind == "exchange":
            if found.dedup_text in texts:
                continue
            texts.add(found.dedup_text)
        kept.append(found)
    return kept


def _drop_replaced_passages(memories: Sequence[RetrievedMemory]) -> Sequence[RetrievedMemory]:
    """Return the memories without passages that their document no longer has."""
    return [found for found in memories if not (found.kind == "passage" and found.state == "SUPERSEDED")]


def _with_timezone(value: datetime | None) -> datetime | None:
    return None if value is None else validate_time(value)


def _count(fact: NewFact) -> Redactions:
    return count_redactions(fact.content, fact.subject or "", fact.attribute or "")
