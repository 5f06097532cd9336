"""Facts: statements with a subject, a confidence, and the time in which they hold."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.attributes import normal, single_valued, subject_key
from newton.heart.lifecycle.engine import Ground, Key, lock, review
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import OUTSIDE, Draft, Teller, digest
from newton.memory.representations import forms, one_line
from newton.memory.spans import spoken_of
from newton.memory.store import Telling

SQL = load("newton.heart", "facts.sql")

Learnt = Literal["new", "confirmed", "unchanged"]

# Who says what supersedes what, and so could close a circle, does so alone.
CIRCLE: Key = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What somebody says is so.

    It holds from `at`, and until `until` when that is known. `ref` names this telling of it; `source` is where it was
    told, if that is more than the door it came through. One that generalises others has them as `sources`.
    """

    ref: str
    content: str
    at: datetime
    until: datetime | None = None
    subject: str | None = None
    attribute: str | None = None
    confidence: float | None = None
    importance: float | None = None
    source: str | None = None
    core: bool = False
    generalises: bool = False
    sources: tuple[UUID, ...] = ()

    def __post_init__(self) -> None:
        if self.until is not None and self.until < self.at:
            raise InputError("The fact ends before it begins.", hint="Give an end that is after its time.")

    @property
    def content_hash(self) -> bytes:
        """Of the words alone, so that who says the same again confirms it; and of what they are about, where the words
        do not name it: "Oslo" told of Ana and of Ben is not the same."""
        words = one_line(self.content)
        subject = subject_key(self.subject or "")
        if not subject or re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", words.casefold()):
            return digest(words)
        return digest(words, subject, normal(self.attribute) if self.attribute else "")

    @property
    def key(self) -> Key | None:
        """Subject and attribute as they are compared; None when it lacks one of them."""
        if self.subject is None or self.attribute is None:
            return None
        return subject_key(self.subject), normal(self.attribute)

    def told_by(self, ctx: Teller) -> str:
        return self.source or f"{ctx.origin} {self.at:%Y-%m-%d}"


class Found(NamedTuple):
    """A fact that was named, or the one that it only tells again, as it is."""

    memory_id: UUID
    state: str
    quarantined: bool


async def learn(tx: Tx, statements: Sequence[Statement], *, ctx: Ground) -> list[Learnt]:
    """Keeps what is new, confirms what is known, and leaves alone what the same ref has said before.

    Raises ConflictError when a known ref comes with other words.
    """
    refs = [(s.ref, s.content_hash) for s in statements]
    told = await store.told_before(tx, refs, agent_id=ctx.agent_id, kind="fact")
    fresh = {s.ref: s for s in statements if s.ref not in told}
    single = await _single(tx, list(fresh.values()), ctx=ctx)
    await lock(tx, [s.key for s in fresh.values() if s.ref in single and s.key], ctx=ctx)
    first: dict[bytes, Statement] = {}
    for statement in fresh.values():
        first.setdefault(statement.content_hash, statement)
    drafts = {s.ref: _draft(s, ctx=ctx) for s in first.values()}
    written = await store.remember(tx, agent_id=ctx.agent_id, drafts=list(drafts.values()))
    new = {ref for ref, draft in drafts.items() if draft.memory_id in written}
    rows = [_row(fresh[ref], drafts[ref], single=ref in single, source=fresh[ref].told_by(ctx)) for ref in new]
    await SQL["insert_facts"].run(tx, agent_id=ctx.agent_id, facts=json.dumps(rows))
    again = [s for ref, s in fresh.items() if ref not in new]
    counted, touched = await _confirmed(tx, again, ctx=ctx)
    await review(tx, ctx, "fact", [*touched, *(drafts[ref].memory_id for ref in new)])
    return ["new" if s.ref in new else "confirmed" if s.ref in counted else "unchanged" for s in statements]


async def supersede(tx: Tx, memory_id: UUID, *, by_fact: UUID, ctx: Ground) -> None:
    """Puts one fact in the place of another, and of no other. Should that be told again later, it holds again.

    Raises NotFoundError for an unknown fact, ConflictError for one that would come to supersede itself, is quarantined
    or was said to be wrong.
    """
    old, new = await _between(tx, memory_id, by_fact, ctx=ctx)
    row = await SQL["check_supersession_cycle"].one(tx, agent_id=ctx.agent_id, memory_id=new, other_id=old)
    if row and row["cyclic"]:
        raise ConflictError(f"The fact {old} takes the place of {new} already.", hint="Retract the one that is wrong.")
    if row and row["known"]:
        await _retold(tx, [(new, ctx.now)], ctx=ctx)
    await store.connect(tx, "supersedes", [(new, old)], ctx=ctx)
    await review(tx, ctx, "fact", [old, new])


async def disprove(tx: Tx, memory_id: UUID, *, by_fact: UUID, ctx: Ground) -> None:
    """One fact says that another was never so. What that other had superseded is restored. Raises as `supersede`."""
    old, new = await _between(tx, memory_id, by_fact, ctx=ctx)
    await store.connect(tx, "was_wrong", [(new, old)], ctx=ctx)
    await _retracted(tx, old, ctx=ctx)


async def retract(tx: Tx, memory_id: UUID, *, ctx: Ground) -> None:
    """A person says that it was never so. What it had superseded is restored."""
    (found,) = await _found(tx, [memory_id], ctx=ctx)
    await _retracted(tx, found.memory_id, ctx=ctx)


async def _retracted(tx: Tx, memory_id: UUID, *, ctx: Ground) -> None:
    await SQL["retract_fact"].run(tx, agent_id=ctx.agent_id, memory_id=memory_id)
    await review(tx, ctx, "fact", [memory_id])


async def corroborate(tx: Tx, memory_id: UUID, *, ref: str, source: str, ctx: Ground) -> bool:
    """Somebody says that it is so, now. False when this telling was counted before."""
    (found,) = await _found(tx, [memory_id], ctx=ctx)
    telling = Telling(memory_id=found.memory_id, ref=ref, source=source)
    counted = await store.confirm(tx, [telling], ctx=ctx)
    if counted:
        await _retold(tx, [(found.memory_id, ctx.now)], ctx=ctx)
    await review(tx, ctx, "fact", [found.memory_id])
    return bool(counted)


async def mark(tx: Tx, memory_id: UUID, *, ctx: Ground) -> None:
    """A person says that this is a core fact."""
    (found,) = await _found(tx, [memory_id], ctx=ctx)
    await SQL["mark_core"].run(tx, agent_id=ctx.agent_id, memory_id=found.memory_id)
    await review(tx, ctx, "fact", [found.memory_id])


async def about(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> tuple[str | None, str | None]:
    """Subject and attribute of a fact as they were told. Raises NotFoundError."""
    row = await SQL["get_fact"].one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise _unknown(memory_id)
    return row["subject"], row["attribute"]


async def told(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> dict[str, str]:
    """What a fact tells beside its words, by name. Raises NotFoundError."""
    row = await SQL["get_fact"].one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise _unknown(memory_id)
    named = {"subject": row["subject"], "attribute": row["attribute"]}
    ends = {"until": f"{row['valid_to']:%Y-%m-%d %H:%M}"} if row["valid_to"] else {}
    return {name: value for name, value in named.items() if value} | ends


async def telling(tx: Tx, statement: Statement, *, agent_id: UUID) -> UUID:
    """The fact that has these words, or that they tell again. The statement must have been learnt."""
    rows = await SQL["find_by_hash"].all(tx, agent_id=agent_id, hashes=[statement.content_hash])
    return rows[0]["memory_id"]


async def ensure_not_wrong(tx: Tx, memory_id: UUID, *, ctx: Ground) -> None:
    """Raises ConflictError for a fact that was said to be wrong: no telling brings it back; and NotFoundError."""
    (found,) = await _found(tx, [memory_id], ctx=ctx)
    _not_wrong(found)


def _not_wrong(found: Found) -> None:
    if found.state == "INACTIVE":
        raise ConflictError(
            f"The fact {found.memory_id} was said to be wrong.", hint="Name another, or say it in other words."
        )


async def _found(tx: Tx, memory_ids: Sequence[UUID], *, ctx: Ground, alone: Sequence[Key] = ()) -> list[Found]:
    """The facts that these stand for; from here on nobody else writes values of their attributes.

    Raises NotFoundError when one of them is no fact of this agent.
    """
    rows = await SQL["find_canonical"].all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    await lock(tx, [*alone, *((row["subject_key"], row["attribute"]) for row in rows if row["single"])], ctx=ctx)
    found = {row["named"]: Found(row["memory_id"], row["state"], row["quarantined"]) for row in rows}
    for memory_id in memory_ids:
        if memory_id not in found:
            raise _unknown(memory_id)
    return [found[memory_id] for memory_id in memory_ids]


async def _between(tx: Tx, old_id: UUID, new_id: UUID, *, ctx: Ground) -> tuple[UUID, UUID]:
    """The facts that both stand for, of which the second has a say."""
    old, new = await _found(tx, [old_id, new_id], ctx=ctx, alone=[CIRCLE])
    if old.memory_id == new.memory_id:
        raise ConflictError("A fact cannot take its own place.", hint="Name two facts that say different things.")
    if new.quarantined:
        raise ConflictError(f"The fact {new.memory_id} is in quarantine.", hint="Confirm it first if it is so.")
    _not_wrong(new)
    return old.memory_id, new.memory_id


def _unknown(memory_id: UUID) -> NotFoundError:
    return NotFoundError(f"There is no fact {memory_id}.", hint="`newton recall --kind fact` shows ids.")


async def _single(tx: Tx, statements: Sequence[Statement], *, ctx: Teller) -> set[str]:
    """The refs of those that tell a value of an attribute which has one at a time."""
    keys = {s.ref: s.key for s in statements if s.key}
    attributes = {attribute for _, attribute in keys.values()}
    single = await single_valued(tx, sorted(attributes), agent_id=ctx.agent_id) if attributes else set[str]()
    return {ref for ref, (_, attribute) in keys.items() if attribute in single}


async def _confirmed(tx: Tx, statements: Sequence[Statement], *, ctx: Teller) -> tuple[set[str], list[UUID]]:
    """Counts statements whose words are known. Returns the refs not counted before, and the facts they are about."""
    if not statements:
        return set(), []
    hashes = [s.content_hash for s in statements]
    rows = await SQL["find_by_hash"].all(tx, agent_id=ctx.agent_id, hashes=hashes)
    known = {row["content_hash"]: row["memory_id"] for row in rows}
    for statement in statements:
        if statement.content_hash not in known:
            raise store.other_words("fact", statement.ref)  # somebody took its ref a moment ago
    tellings = [Telling(memory_id=known[s.content_hash], ref=s.ref, source=s.told_by(ctx)) for s in statements]
    counted = await store.confirm(tx, tellings, ctx=ctx)
    await _retold(tx, [(known[s.content_hash], s.at) for s in statements], ctx=ctx)
    return counted, list(known.values())


async def _retold(tx: Tx, tellings: Sequence[tuple[UUID, datetime]], *, ctx: Teller) -> None:
    """Each holds again from then on, if those who say so may be believed."""
    if ctx.trust not in OUTSIDE:
        memory_ids, ats = zip(*tellings, strict=True)
        await SQL["reconfirm"].run(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, asserted_at=ats)


def _draft(statement: Statement, *, ctx: Teller) -> Draft:
    return Draft(
        memory_id=new_id(),
        kind="fact",
        state="NEW",
        forms=forms(statement.content, count=ctx.count_tokens, prefix=_still_to_come(statement, ctx)),
        full_text=statement.content,
        indexed=statement.content,
        cue=one_line(statement.content),
        occurred_at=statement.at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=statement.content_hash,
        ref=statement.ref,
        confidence=statement.confidence,
        importance=statement.importance,
        sources=statement.sources,
        times=spoken_of(statement.content, at=statement.at),
    )


def _still_to_come(statement: Statement, ctx: Teller) -> str:
    """What says that it does not hold yet, in every context that shows it."""
    return f"[from {statement.at:%Y-%m-%d}] " if statement.at.date() > ctx.now.date() else ""


def _row(statement: Statement, draft: Draft, *, single: bool, source: str) -> Mapping[str, object]:
    return {
        "memory_id": str(draft.memory_id),
        "subject": statement.subject,
        "subject_key": subject_key(statement.subject) if statement.subject else None,
        "attribute": normal(statement.attribute) if statement.attribute else None,
        "single": single,
        "valid_from": statement.at.isoformat(),
        "valid_to": statement.until.isoformat() if statement.until else None,
        "source": source,
        "marked": statement.core,
        "generalises": statement.generalises,
    }
