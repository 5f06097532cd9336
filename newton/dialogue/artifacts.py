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
from newton.dialogue.condensing import USUAL, Sizes, bullets, due, pieces, spoken, summarised
from newton.dialogue.lines import TRUST_OF_ROLE, Line, Placed, Role, named
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Draft, Teller, Trust, digest, least
from newton.memory.representations import SUMMARY_TOKENS, bullet, forms, one_line
from newton.memory.transitions import Step, move
from newton.providers.chat import Call

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.dialogue", "artifacts.sql")

Type = Literal["summary", "facts", "tools"]

MOST_LINES = 200  # that are read at once; of a longer session without a summary, its last ones

# What was said in short before, and what is said since, into as much of it as fits. A model may do it instead.
Summarise = Callable[[Sequence[str], Callable[[Sequence[str]], bool]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One about to be kept. `said` stands in front of its words and says what it is; `most` is what all of it may cost
    once rendered. `lines` are the first and the last one that it covers; `sources` the memories it was made of."""

    type: Type
    said: str
    text: str
    most: int
    at: datetime
    trust: Trust
    key: tuple[str, ...]
    index: int = 0
    lines: tuple[int, int] | None = None
    source: str | None = None
    sources: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A line of the session with the memory that it became, if it became one."""

    placed: Placed
    memory_id: UUID | None
    trust: Trust | None

    @property
    def tells(self) -> bool:
        """Whether it was said by one of the two, and is neither recalled nor forgotten."""
        return self.memory_id is not None and self.placed.line.role in ("user", "assistant")


class _Summary(NamedTuple):
    """The current summary of a session: what it says, one who says what a line, and the lines that it covers.

    It is not the session's `own` when a branch has it from what it begins with.
    """

    memory_id: UUID
    text: str
    trust: Trust
    first: int
    last: int
    own: bool

    @property
    def units(self) -> list[str]:
        return self.text.split("\n")


class Near(NamedTuple):
    """An artifact with how close it is to an input: its cosine, 0 without one, and the share of the input's words."""

    memory_id: UUID
    first: int | None
    last: int | None
    similarity: float
    lexical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Enquiry:
    """What is looked for in a session; with a `moment`, as it was then."""

    agent_id: UUID
    session_id: UUID
    text: str
    vector: "Vector | None"
    model_id: UUID | None
    moment: datetime | None
    hidden: Sequence[UUID]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who condenses a session, and how."""

    session_id: UUID
    ctx: Teller
    sizes: Sizes = USUAL

    async def keep_outputs(
        self, tx: Tx, placed: Sequence[Placed], memory_ids: Mapping[int, UUID], calls: Mapping[str, Call]
    ) -> None:
        """Keeps what tools put out in pieces. The caller holds the lock of the session; `memory_ids` are those of the
        lines that became memories, and `calls` what was called, by its id."""
        outputs = [line for line in placed if line.line.role == "tool"]
        await self._keep(tx, [one for line in outputs for one in self._outputs(line, memory_ids, calls)])

    async def keep_excerpts(self, tx: Tx, excerpts: Sequence[Artifact]) -> None:
        """Keeps what was found elsewhere for the session."""
        await log.lock(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        await self._keep(tx, excerpts)

    async def note(self, tx: Tx, *, summarise: Summarise = summarised) -> None:
        """Keeps what was said since that lasts, and the summary of all of it when it is due. Done twice it changes
        nothing more."""
        await log.lock(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        await self._note_facts(tx)
        await self._summarise(tx, summarise)

    async def _note_facts(self, tx: Tx) -> None:
        """Each line is read once for them, so one that was forgotten stays so."""
        where = {"agent_id": self.ctx.agent_id, "session_id": self.session_id}
        row = await SQL["get_fact_watermark"].one(tx, **where)
        assert row is not None
        if heard := await self._after(tx, row["position"]):
            await self._keep(tx, [one for line in heard if line.tells for one in self._facts(line)])
            await SQL["set_fact_watermark"].run(tx, **where, position=heard[-1].placed.position)

    async def _summarise(self, tx: Tx, summarise: Summarise) -> None:
        before = await self._current(tx)
        heard = await self._after(tx, before.last if before else -1)
        telling = [line for line in heard if line.tells]
        if not telling or not due(len(heard), sum(line.placed.tokens for line in heard), self.sizes):
            return
        last = heard[-1].placed
        said = f"[{last.line.said_at:%Y-%m-%d}] this session so far, in short: "
        units = [unit for line in telling for unit in spoken(line.placed.line.speaker, line.placed.line.content)]
        taken = summarise(
            [*(before.units if before else ()), *units],
            lambda some: self.ctx.count_tokens(bullet(said + " ".join(some))) <= self.sizes.summary,
        )
        summary = Artifact(
            type="summary",
            said=said,
            text="\n".join(taken),
            most=self.sizes.summary,
            at=last.line.said_at,
            trust=least([*(line.trust for line in heard if line.trust), *((before.trust,) if before else ())]),
            key=("summary", str(last.position), *taken),
            lines=(before.first if before else heard[0].placed.position, last.position),
            sources=(*(line.memory_id for line in telling if line.memory_id), *((before.memory_id,) if before else ())),
        )
        if taken:
            await self._replace(tx, before, summary)

    async def _replace(self, tx: Tx, before: _Summary | None, summary: Artifact) -> None:
        if before and before.own:
            why = "a summary of more of the session took its place"
            await move(tx, [Step(before.memory_id, "replaced", "ACTIVE", "SUPERSEDED", why)], ctx=self.ctx)
        await self._keep(tx, [summary])

    async def _current(self, tx: Tx) -> _Summary | None:
        row = await SQL["get_current_summary"].one(tx, agent_id=self.ctx.agent_id, session_id=self.session_id)
        return _Summary(*row) if row else None

    async def _after(self, tx: Tx, position: int) -> list[Heard]:
        rows = await SQL["list_messages_after"].all(
            tx, agent_id=self.ctx.agent_id, session_id=self.session_id, position=position, max_rows=MOST_LINES
        )
        return [
            Heard(
                placed=Placed(
                    session_id=self.session_id,
                    position=row["position"],
                    tokens=row["tokens"],
                    line=Line(role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"]),
                ),
                memory_id=row["memory_id"],
                trust=row["trust"],
            )
            for row in reversed(rows)
        ]

    def _facts(self, heard: Heard) -> list[Artifact]:
        placed, line = heard.placed, heard.placed.line
        return [
            Artifact(
                type="facts",
                said=f"[{line.said_at:%Y-%m-%d}] {line.speaker}: ",
                text=sentence,
                most=SUMMARY_TOKENS,
                at=line.said_at,
                trust=heard.trust or _trust(line.role),
                key=("facts", str(placed.position), sentence),
                index=index,
                lines=(placed.position, placed.position),
                sources=(heard.memory_id,) if heard.memory_id else (),
            )
            for index, sentence in enumerate(bullets(line.content))
        ]

    def _outputs(self, placed: Placed, memory_ids: Mapping[int, UUID], calls: Mapping[str, Call]) -> list[Artifact]:
        line, memory_id = placed.line, memory_ids.get(placed.position)
        call = calls.get(line.answers or "")
        tool = named(call or Call("", line.name or "no name", ""))
        said = f"[{line.said_at:%Y-%m-%d}] output of a tool ({tool}): "
        size = max(self.sizes.chunk - self.ctx.count_tokens(bullet(said)), 8)
        cut = pieces(line.content, size=size, overlap=self.sizes.overlap, count=self.ctx.count_tokens)
        return [
            Artifact(
                type="tools",
                said=said,
                text=text,
                most=self.sizes.chunk,
                at=line.said_at,
                trust=_trust(line.role),
                key=("tools", str(placed.position), str(index), text),
                index=index,
                lines=(placed.position, placed.position),
                source=tool,
                sources=(memory_id,) if memory_id else (),
            )
            for index, text in enumerate(cut)
        ]

    async def _keep(self, tx: Tx, made: Sequence[Artifact]) -> None:
        if not made:
            return
        agent_id = self.ctx.agent_id
        row = await SQL["next_position"].one(tx, agent_id=agent_id, session_id=self.session_id)
        assert row is not None
        drafts = [self._draft(one, place) for place, one in enumerate(made, row["place"])]
        new = await store.remember(tx, agent_id=agent_id, drafts=drafts)
        kept = [_row(one, draft) for one, draft in zip(made, drafts, strict=True) if draft.memory_id in new]
        await SQL["insert_artifacts"].run(
            tx, agent_id=agent_id, session_id=self.session_id, artifacts=json.dumps(kept), now=self.ctx.now
        )

    def _draft(self, one: Artifact, place: int) -> Draft:
        return Draft(
            memory_id=new_id(),
            kind="artifact",
            state="ACTIVE",
            forms=forms(one.text, count=self.ctx.count_tokens, prefix=one.said, most=one.most),
            full_text=one.text,
            indexed=f"{one.source or ''}\n{one.text}",
            cue=one_line(f"{one.source or ''} {one.text}"),
            occurred_at=one.at,
            created_at=self.ctx.now,
            origin=self.ctx.origin,
            trust=one.trust,
            content_hash=digest(str(self.session_id), *one.key),
            thread=self.session_id,
            place=place,
            sources=one.sources,
        )


async def behind(tx: Tx, *, agent_id: UUID, sizes: Sizes, most: int) -> list[UUID]:
    """Sessions that want a summary of what was said since the last one, at most so many."""
    rows = await SQL["find_stale_sessions"].all(
        tx, agent_id=agent_id, lines=sizes.every, tokens=sizes.tail, max_rows=most
    )
    return [row["session_id"] for row in rows]


async def near(tx: Tx, enquiry: Enquiry) -> list[Near]:
    """The artifacts of a session closest to what is looked for, by meaning or by words, in no order."""
    rows = await SQL["search_artifacts"].all(
        tx,
        agent_id=enquiry.agent_id,
        session_id=enquiry.session_id,
        model_id=enquiry.model_id,
        embedding=enquiry.vector,
        input=enquiry.text,
        moment=enquiry.moment,
        excluded_ids=enquiry.hidden,
        max_rows=enquiry.most,
    )
    return [Near(*row) for row in rows]


def _trust(role: Role) -> Trust:
    return TRUST_OF_ROLE[role]


def _row(one: Artifact, draft: Draft) -> dict[str, object]:
    first, last = one.lines or (None, None)
    return {
        "memory_id": str(draft.memory_id),
        "type": one.type,
        "chunk_index": one.index,
        "first_position": first,
        "last_position": last,
        "source": one.source,
    }
