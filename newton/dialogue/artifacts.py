"""Session artifacts: chunks of tool output, sentences worth remembering, and a rolling summary.

They are found only by searches within their own session.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from newton.concurrency import compute
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log, session_summary
from newton.dialogue.messages import TRUST_OF_ROLE, Message, StoredMessage, describe_call
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes, summarize
from newton.memory import store
from newton.memory.hygiene import remove_prompt_marks
from newton.memory.memory import NewMemory, Trust, WriteContext, digest, lowest_trust
from newton.memory.representations import SUMMARY_TOKENS, make_short_forms, one_line, to_bullet
from newton.memory.store import PlannedTransition, apply_transitions
from newton.providers.chat import ToolCall

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.dialogue", "artifacts.sql")

ArtifactType = Literal["summary", "facts", "tools"]

MAX_MESSAGES = 200  # read at once: the last ones

# Selects from the earlier summary's sentences and the new ones as many as fit; a model may do it instead.
Summarizer = Callable[[Sequence[str], Callable[[Sequence[str]], bool]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A memory of a session to be stored: a chunk of tool output, a sentence worth remembering, or a summary.

    `prefix` precedes its text; both together are rendered in at most `max_tokens`. `positions` are the first and the
    last message that it covers, `sources` the memories from which it was derived. Its content hash is computed from the
    session and `key`.
    """

    type: ArtifactType
    prefix: str
    text: str
    max_tokens: int
    occurred_at: datetime
    trust: Trust
    key: tuple[str, ...]
    index: int = 0
    positions: tuple[int, int] | None = None
    source: str | None = None
    sources: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageMemory:
    """A message of a session, with the id and trust of the memory that was created from it; None without one."""

    stored: StoredMessage
    memory_id: UUID | None
    trust: Trust | None

    @property
    def is_spoken(self) -> bool:
        """Return True for a message of a user or the assistant that has a memory.

        A reply that only quotes memories, and a forgotten message, have none.
        """
        return self.memory_id is not None and self.stored.message.role in ("user", "assistant")


class _CurrentSummary(NamedTuple):
    """The current summary of a session, and the first and last message that it covers.

    `is_own` is False if a branch inherited it from its parent.
    """

    memory_id: UUID
    text: str
    trust: Trust
    first: int
    last: int
    is_own: bool

    @property
    def sentences(self) -> list[str]:
        return self.text.split("\n")


class ArtifactMatch(NamedTuple):
    """An artifact found by a search.

    `similarity` is the cosine similarity to the query, 0 without a vector; `lexical` is the share of the query's words
    in the artifact.
    """

    memory_id: UUID
    first_position: int | None
    last_position: int | None
    similarity: float
    lexical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactQuery:
    """A search for artifacts in one session. With `moment`, it searches the artifacts that existed then."""

    agent_id: UUID
    session_id: UUID
    text: str
    vector: "Vector | None"
    model_id: UUID | None
    moment: datetime | None
    excluded: Sequence[UUID]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactWriter:
    """Stores the artifacts (chunks of tool output, sentences worth remembering, summaries) of one session."""

    session_id: UUID
    ctx: WriteContext
    sizes: SummarySizes = DEFAULT_SIZES

    async def split_tool_outputs(
        self, messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID], calls: Mapping[str, ToolCall]
    ) -> list[Artifact]:
        """Return the chunks of the tool results among the messages, to be stored as memories.

        `memory_ids` are the memories of the messages, by position; `calls` are tool calls by their ids.
        """
        outputs = [line for line in messages if line.message.role == "tool"]
        return await compute(
            lambda: [one for line in outputs for one in self._tool_artifacts(line, memory_ids, calls)],
            chars=sum(len(line.message.content) for line in outputs),
        )

    async def add_excerpts(self, tx: Tx, excerpts: Sequence[Artifact]) -> None:
        """Store artifacts that come from outside of the session, such as web results."""
        await log.lock_session(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        await self.store(tx, excerpts)

    async def update(self, tx: Tx, *, summarizer: Summarizer = summarize) -> None:
        """Store the sentences worth remembering since the last call and, if one is due, a new summary of the session.

        `summarizer` selects the sentences of the summary. A repeated call changes nothing.
        """
        await log.lock_session(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        row = await SQL["read_progress"].fetch_one(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        assert row is not None
        watermark, before = row["watermark"], _CurrentSummary(*row[1:]) if row["memory_id"] else None
        summarized = before.last if before else -1
        messages = await self._load_after(tx, min(watermark, summarized))
        await self._update_facts(tx, [item for item in messages if item.stored.position > watermark])
        await self._update_summary(
            tx, before, [item for item in messages if item.stored.position > summarized], summarizer
        )

    async def _update_facts(self, tx: Tx, messages: Sequence[MessageMemory]) -> None:
        """Store the sentences worth remembering of messages not yet read.

        Each message is read once, so that a forgotten artifact is not stored again.
        """
        if messages:
            where = {"agent_id": self.ctx.agent_id, "session_id": self.session_id}
            await self.store(tx, [one for item in messages if item.is_spoken for one in self._fact_artifacts(item)])
            await SQL["set_fact_watermark"].execute(tx, **where, position=messages[-1].stored.position)

    async def _update_summary(
        self, tx: Tx, before: _CurrentSummary | None, messages: Sequence[MessageMemory], summarizer: Summarizer
    ) -> None:
        """Store a summary of the messages and of the summary before them, if one is due."""
        spoken = [item for item in messages if item.is_spoken]
        tokens = sum(item.stored.tokens for item in messages)
        if not spoken or not session_summary.is_due(len(messages), tokens, self.sizes):
            return
        last, earlier = messages[-1].stored, (before,) if before else ()
        prefix = f"[{last.message.said_at:%Y-%m-%d}] this session so far, in short: "
        texts = [(item.stored.message.speaker, item.stored.message.content) for item in spoken]
        sentences = [one for speaker, text in texts for one in session_summary.speaker_sentences(speaker, text)]
        selected = summarizer(
            [*(before.sentences if before else ()), *sentences],
            lambda chosen: self.ctx.count_tokens(to_bullet(prefix + " ".join(chosen))) <= self.sizes.summary_tokens,
        )
        summary = Artifact(
            type="summary",
            prefix=prefix,
            text="\n".join(selected),
            max_tokens=self.sizes.summary_tokens,
            occurred_at=last.message.said_at,
            trust=lowest_trust([item.trust for item in (*spoken, *earlier) if item.trust]),
            key=("summary", str(last.position), *selected),
            positions=(before.first if before else messages[0].stored.position, last.position),
            sources=tuple(item.memory_id for item in (*spoken, *earlier) if item.memory_id),
        )
        if selected:
            await self._replace_summary(tx, before, summary)

    async def _replace_summary(self, tx: Tx, before: _CurrentSummary | None, summary: Artifact) -> None:
        """Store a summary in place of `before`. One that belongs to the parent of a branch stays current there."""
        if before and before.is_own:
            reason = "replaced by a summary of more of the session"
            transition = PlannedTransition(before.memory_id, "replaced", "ACTIVE", "SUPERSEDED", reason)
            await apply_transitions(tx, [transition], ctx=self.ctx)
        await self.store(tx, [summary])

    async def _load_after(self, tx: Tx, position: int) -> list[MessageMemory]:
        """Return the last MAX_MESSAGES messages after a position, with their memories, in order."""
        rows = await SQL["list_messages_after"].fetch_all(
            tx, agent_id=self.ctx.agent_id, session_id=self.session_id, position=position, max_rows=MAX_MESSAGES
        )
        return [
            MessageMemory(
                stored=StoredMessage(
                    session_id=self.session_id,
                    position=row["position"],
                    tokens=row["tokens"],
                    message=Message(role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"]),
                ),
                memory_id=row["memory_id"],
                trust=row["trust"],
            )
            for row in reversed(rows)
        ]

    def _fact_artifacts(self, item: MessageMemory) -> list[Artifact]:
        """Return the sentences of a message that are worth remembering."""
        stored, line = item.stored, item.stored.message
        return [
            Artifact(
                type="facts",
                prefix=f"[{line.said_at:%Y-%m-%d}] {line.speaker}: ",
                text=sentence,
                max_tokens=SUMMARY_TOKENS,
                occurred_at=line.said_at,
                trust=item.trust or TRUST_OF_ROLE[line.role],
                key=("facts", str(stored.position), sentence),
                index=index,
                positions=(stored.position, stored.position),
                sources=(item.memory_id,) if item.memory_id else (),
            )
            for index, sentence in enumerate(session_summary.lasting_sentences(line.content))
        ]

    def _tool_artifacts(
        self, stored: StoredMessage, memory_ids: Mapping[int, UUID], calls: Mapping[str, ToolCall]
    ) -> list[Artifact]:
        """Return the chunks of a tool's output, each after the day and the call."""
        line, memory_id = stored.message, memory_ids.get(stored.position)
        call = calls.get(line.tool_call_id or "")
        tool = remove_prompt_marks(describe_call(call or ToolCall("", line.name or "no name", "")))
        prefix = f"[{line.said_at:%Y-%m-%d}] output of a tool ({tool}): "
        size = max(self.sizes.chunk_tokens - self.ctx.count_tokens(to_bullet(prefix)), 8)
        limits = {"max_tokens": size, "overlap": self.sizes.overlap_tokens}
        chunks = session_summary.chunk_output(line.content, **limits, count_tokens=self.ctx.count_tokens)
        return [
            Artifact(
                type="tools",
                prefix=prefix,
                text=remove_prompt_marks(text),
                max_tokens=self.sizes.chunk_tokens,
                occurred_at=line.said_at,
                trust=TRUST_OF_ROLE[line.role],
                key=("tools", str(stored.position), str(index), text),
                index=index,
                positions=(stored.position, stored.position),
                source=tool,
                sources=(memory_id,) if memory_id else (),
            )
            for index, text in enumerate(chunks)
        ]

    async def store(self, tx: Tx, artifacts: Sequence[Artifact]) -> None:
        """Store artifacts. The caller must hold the session lock."""
        if not artifacts:
            return
        agent_id = self.ctx.agent_id
        row = await SQL["next_position"].fetch_one(tx, agent_id=agent_id, session_id=self.session_id)
        assert row is not None
        numbered = list(enumerate(artifacts, row["position"]))
        drafts = await compute(
            lambda: [self._to_memory(artifact, position) for position, artifact in numbered],
            chars=sum(len(artifact.text) for artifact in artifacts),
        )
        new = await store.remember(tx, agent_id=agent_id, memories=drafts)
        pairs = zip(artifacts, drafts, strict=True)
        rows = [_to_row(artifact, draft) for artifact, draft in pairs if draft.memory_id in new]
        await SQL["insert_artifacts"].execute(
            tx, agent_id=agent_id, session_id=self.session_id, artifacts=json.dumps(rows), now=self.ctx.now
        )

    def _to_memory(self, artifact: Artifact, position: int) -> NewMemory:
        return NewMemory(
            kind="artifact",
            forms=make_short_forms(
                one_line(artifact.text),  # mostly output of a tool, and the mark of that is on the first line
                count_tokens=self.ctx.count_tokens,
                prefix=artifact.prefix,
                max_tokens=artifact.max_tokens,
            ),
            full_text=artifact.text,
            indexed_text=f"{artifact.source or ''}\n{artifact.text}",
            embedding_text=one_line(f"{artifact.source or ''} {artifact.text}"),
            occurred_at=artifact.occurred_at,
            ctx=replace(self.ctx, trust=artifact.trust),
            content_hash=digest(str(self.session_id), *artifact.key),
            thread_id=self.session_id,
            position=position,
            sources=artifact.sources,
        )


async def find_sessions_due(tx: Tx, *, agent_id: UUID, sizes: SummarySizes, limit: int) -> list[UUID]:
    """Return the ids of up to `limit` sessions whose summary must be updated."""
    rows = await SQL["find_stale_sessions"].fetch_all(
        tx, agent_id=agent_id, lines=sizes.max_new_messages, tokens=sizes.max_new_tokens, max_rows=limit
    )
    return [row["session_id"] for row in rows]


async def find_matches(tx: Tx, query: ArtifactQuery) -> list[ArtifactMatch]:
    """Return the artifacts of a session most similar to the query, by vectors or by words, unordered."""
    parameters = {field.name: getattr(query, field.name) for field in fields(query)}
    rows = await SQL["search_artifacts"].fetch_all(tx, **parameters)
    return [ArtifactMatch(*row) for row in rows]


def _to_row(artifact: Artifact, draft: NewMemory) -> dict[str, object]:
    first, last = artifact.positions or (None, None)
    return {
        "memory_id": str(draft.memory_id),
        "type": artifact.type,
        "chunk_index": artifact.index,
        "first_position": first,
        "last_position": last,
        "source": artifact.source,
    }
