"""What a session has come to in short, as memories of its own: found in it, and in no other."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.messages import TRUST_OF_ROLE, Message, Role, StoredMessage, describe_call
from newton.dialogue.session_summary import (
    DEFAULT_SIZES,
    SummarySizes,
    chunk_output,
    is_due,
    lasting_sentences,
    speaker_sentences,
    summarize,
)
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import NewMemory, Trust, WriteContext, digest, lowest_trust
from newton.memory.representations import SUMMARY_TOKENS, make_short_forms, one_line, to_bullet
from newton.memory.transitions import PlannedTransition, apply_transitions
from newton.providers.chat import ToolCall

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.dialogue", "artifacts.sql")

ArtifactType = Literal["summary", "facts", "tools"]

MAX_MESSAGES = 200  # that are read at once; of a longer session without a summary, its last ones

# What was said in short before, and what is said since, into as much of it as fits. A model may do it instead.
Summarizer = Callable[[Sequence[str], Callable[[Sequence[str]], bool]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One about to be kept. `said` stands in front of its words and says what it is; `most` is what all of it may cost
    once rendered. `lines` are the first and the last one that it covers; `sources` the memories it was made of."""

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
    """A line of the session with the memory that it became, if it became one."""

    stored: StoredMessage
    memory_id: UUID | None
    trust: Trust | None

    @property
    def is_spoken(self) -> bool:
        """Whether it was said by one of the two, and is neither recalled nor forgotten."""
        return self.memory_id is not None and self.stored.message.role in ("user", "assistant")


class _CurrentSummary(NamedTuple):
    """The current summary of a session: what it says, one who says what a line, and the lines that it covers.

    It is not the session's `own` when a branch has it from what it begins with.
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
    """An artifact with how close it is to an input: its cosine, 0 without one, and the share of the input's words."""

    memory_id: UUID
    first_position: int | None
    last_position: int | None
    similarity: float
    lexical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactQuery:
    """What is looked for in a session; with a `moment`, as it was then."""

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
    """Who condenses a session, and how."""

    session_id: UUID
    ctx: WriteContext
    sizes: SummarySizes = DEFAULT_SIZES

    async def add_tool_outputs(
        self, tx: Tx, messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID], calls: Mapping[str, ToolCall]
    ) -> None:
        """Keeps what tools put out in pieces. The caller holds the lock of the session; `memory_ids` are those of the
        lines that became memories, and `calls` what was called, by its id."""
        outputs = [line for line in messages if line.message.role == "tool"]
        await self._store(tx, [one for line in outputs for one in self._tool_artifacts(line, memory_ids, calls)])

    async def add_excerpts(self, tx: Tx, excerpts: Sequence[Artifact]) -> None:
        """Keeps what was found elsewhere for the session."""
        await log.lock_session(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        await self._store(tx, excerpts)

    async def update(self, tx: Tx, *, summarizer: Summarizer = summarize) -> None:
        """Keeps what was said since that lasts, and the summary of all of it when it is due. Done twice it changes
        nothing more."""
        await log.lock_session(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        await self._update_facts(tx)
        await self._update_summary(tx, summarizer)

    async def _update_facts(self, tx: Tx) -> None:
        """Each line is read once for them, so one that was forgotten stays so."""
        where = {"agent_id": self.ctx.agent_id, "session_id": self.session_id}
        row = await SQL["get_fact_watermark"].fetch_one(tx, **where)
        assert row is not None
        if heard := await self._load_after(tx, row["position"]):
            await self._store(tx, [one for line in heard if line.is_spoken for one in self._fact_artifacts(line)])
            await SQL["set_fact_watermark"].execute(tx, **where, position=heard[-1].stored.position)

    async def _update_summary(self, tx: Tx, summarizer: Summarizer) -> None:
        before = await self._load_summary(tx)
        heard = await self._load_after(tx, before.last if before else -1)
        telling = [line for line in heard if line.is_spoken]
        if not telling or not is_due(len(heard), sum(line.stored.tokens for line in heard), self.sizes):
            return
        last = heard[-1].stored
        said = f"[{last.message.said_at:%Y-%m-%d}] this session so far, in short: "
        units = [
            unit
            for line in telling
            for unit in speaker_sentences(line.stored.message.speaker, line.stored.message.content)
        ]
        taken = summarizer(
            [*(before.sentences if before else ()), *units],
            lambda some: self.ctx.count_tokens(to_bullet(said + " ".join(some))) <= self.sizes.summary_tokens,
        )
        summary = Artifact(
            type="summary",
            prefix=said,
            text="\n".join(taken),
            max_tokens=self.sizes.summary_tokens,
            occurred_at=last.message.said_at,
            trust=lowest_trust([*(line.trust for line in heard if line.trust), *((before.trust,) if before else ())]),
            key=("summary", str(last.position), *taken),
            positions=(before.first if before else heard[0].stored.position, last.position),
            sources=(*(line.memory_id for line in telling if line.memory_id), *((before.memory_id,) if before else ())),
        )
        if taken:
            await self._replace_summary(tx, before, summary)

    async def _replace_summary(self, tx: Tx, before: _CurrentSummary | None, summary: Artifact) -> None:
        if before and before.is_own:
            why = "a summary of more of the session took its place"
            await apply_transitions(
                tx, [PlannedTransition(before.memory_id, "replaced", "ACTIVE", "SUPERSEDED", why)], ctx=self.ctx
            )
        await self._store(tx, [summary])

    async def _load_summary(self, tx: Tx) -> _CurrentSummary | None:
        row = await SQL["get_current_summary"].fetch_one(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        return _CurrentSummary(*row) if row else None

    async def _load_after(self, tx: Tx, position: int) -> list[MessageMemory]:
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
        placed, line = item.stored, item.stored.message
        return [
            Artifact(
                type="facts",
                prefix=f"[{line.said_at:%Y-%m-%d}] {line.speaker}: ",
                text=sentence,
                max_tokens=SUMMARY_TOKENS,
                occurred_at=line.said_at,
                trust=item.trust or _trust_for_role(line.role),
                key=("facts", str(placed.position), sentence),
                index=index,
                positions=(placed.position, placed.position),
                sources=(item.memory_id,) if item.memory_id else (),
            )
            for index, sentence in enumerate(lasting_sentences(line.content))
        ]

    def _tool_artifacts(
        self, stored: StoredMessage, memory_ids: Mapping[int, UUID], calls: Mapping[str, ToolCall]
    ) -> list[Artifact]:
        line, memory_id = stored.message, memory_ids.get(stored.position)
        call = calls.get(line.tool_call_id or "")
        tool = describe_call(call or ToolCall("", line.name or "no name", ""))
        said = f"[{line.said_at:%Y-%m-%d}] output of a tool ({tool}): "
        size = max(self.sizes.chunk_tokens - self.ctx.count_tokens(to_bullet(said)), 8)
        cut = chunk_output(
            line.content, max_tokens=size, overlap=self.sizes.overlap_tokens, count_tokens=self.ctx.count_tokens
        )
        return [
            Artifact(
                type="tools",
                prefix=said,
                text=text,
                max_tokens=self.sizes.chunk_tokens,
                occurred_at=line.said_at,
                trust=_trust_for_role(line.role),
                key=("tools", str(stored.position), str(index), text),
                index=index,
                positions=(stored.position, stored.position),
                source=tool,
                sources=(memory_id,) if memory_id else (),
            )
            for index, text in enumerate(cut)
        ]

    async def _store(self, tx: Tx, artifacts: Sequence[Artifact]) -> None:
        if not artifacts:
            return
        agent_id = self.ctx.agent_id
        row = await SQL["next_position"].fetch_one(tx, agent_id=agent_id, session_id=self.session_id)
        assert row is not None
        drafts = [self._to_memory(one, place) for place, one in enumerate(artifacts, row["place"])]
        new = await store.remember(tx, agent_id=agent_id, memories=drafts)
        kept = [_to_row(one, draft) for one, draft in zip(artifacts, drafts, strict=True) if draft.memory_id in new]
        await SQL["insert_artifacts"].execute(
            tx, agent_id=agent_id, session_id=self.session_id, artifacts=json.dumps(kept), now=self.ctx.now
        )

    def _to_memory(self, artifact: Artifact, position: int) -> NewMemory:
        return NewMemory(
            memory_id=new_id(),
            kind="artifact",
            state="ACTIVE",
            forms=make_short_forms(
                artifact.text,
                count_tokens=self.ctx.count_tokens,
                prefix=artifact.prefix,
                max_tokens=artifact.max_tokens,
            ),
            full_text=artifact.text,
            indexed_text=f"{artifact.source or ''}\n{artifact.text}",
            embedding_text=one_line(f"{artifact.source or ''} {artifact.text}"),
            occurred_at=artifact.occurred_at,
            created_at=self.ctx.now,
            origin=self.ctx.origin,
            trust=artifact.trust,
            content_hash=digest(str(self.session_id), *artifact.key),
            thread_id=self.session_id,
            position=position,
            sources=artifact.sources,
        )


async def find_sessions_due(tx: Tx, *, agent_id: UUID, sizes: SummarySizes, limit: int) -> list[UUID]:
    """Sessions that want a summary of what was said since the last one, at most so many."""
    rows = await SQL["find_stale_sessions"].fetch_all(
        tx, agent_id=agent_id, lines=sizes.max_new_messages, tokens=sizes.max_new_tokens, max_rows=limit
    )
    return [row["session_id"] for row in rows]


async def find_matches(tx: Tx, query: ArtifactQuery) -> list[ArtifactMatch]:
    """The artifacts of a session closest to what is looked for, by meaning or by words, in no order."""
    rows = await SQL["search_artifacts"].fetch_all(
        tx,
        agent_id=query.agent_id,
        session_id=query.session_id,
        model_id=query.model_id,
        embedding=query.vector,
        input=query.text,
        moment=query.moment,
        excluded_ids=query.excluded,
        max_rows=query.limit,
    )
    return [ArtifactMatch(*row) for row in rows]


def _trust_for_role(role: Role) -> Trust:
    return TRUST_OF_ROLE[role]


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
