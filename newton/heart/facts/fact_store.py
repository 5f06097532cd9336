"""Facts: statements with a subject, a confidence and a period of validity."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.entities.entity_lookup import resolve_subjects
from newton.heart.facts import fact_edits
from newton.heart.facts.attributes import normalize_attribute, normalize_subject, select_single_valued
from newton.heart.identity.standing_wishes import find_standing_type
from newton.heart.lifecycle.engine import AttributeKey, LifecycleContext, lock_attributes, read_successors, review
from newton.heart.statements.clauses import find_appositions, list_untouched
from newton.heart.statements.tokenizer import fold_words
from newton.memory import store, tombstones
from newton.memory.lookup import RelatedMemory
from newton.memory.memory import NewMemory, WriteContext, digest
from newton.memory.representations import keep_lines, make_long_forms, make_short_forms, one_line, start_prefix
from newton.memory.store import MemoryConfirmation
from newton.text.time_expressions import find_mentioned_times, resolve_dates

SQL = load("newton.heart.facts", "fact_store.sql")

FactOutcome = Literal["new", "confirmed", "unchanged"]

MAX_SUMMARY_TOKENS = 400  # more than of other kinds, because a fact is shown in full where there is room

# Serializes writers of `supersedes` links, which could otherwise form a cycle.
SUPERSEDE_LOCK: AttributeKey = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact to store. `ref` is the idempotency key.

    Confirmations with different `source` count as independent. The `sources` of a generalization are the facts that it
    covers. Search also finds a fact by its `tags`. `subject_key` is the normalized name of the entity of which
    `subject` is another name, and `restates` a fact of no person with this text and other times; `add_facts` sets both.
    Raises InputError if the fact ends before it begins.
    """

    ref: str
    content: str
    valid_from: datetime
    valid_to: datetime | None = None
    subject: str | None = None
    attribute: str | None = None
    confidence: float | None = None
    importance: float | None = None
    source: str | None = None
    is_core: bool = False
    is_generalization: bool = False
    sources: tuple[UUID, ...] = ()
    tags: tuple[str, ...] = ()
    subject_key: str | None = None
    restates: UUID | None = None

    def __post_init__(self) -> None:
        if self.valid_to is not None and self.valid_to < self.valid_from:
            raise InputError("The fact ends before it begins.", hint="Give an end after the start.")

    @property
    def content_hash(self) -> bytes:
        """The hash of the text; of text, subject and attribute if the text does not contain the subject."""
        if self.restates:
            return digest(one_line(self.content), str(self.restates))
        text, subject = one_line(self.content), normalize_subject(self.subject or "")
        if not subject or re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", text.casefold()):
            return digest(text)
        return digest(text, subject, normalize_attribute(self.attribute) if self.attribute else "")

    @property
    def attribute_key(self) -> AttributeKey | None:
        """The normalized subject and attribute; None if the fact lacks one of them."""
        if self.subject is None or self.attribute is None:
            return None
        return self.subject_key or normalize_subject(self.subject), normalize_attribute(self.attribute)

    def confirmation_source(self, ctx: WriteContext) -> str:
        return self.source or f"{ctx.origin} {self.valid_from:%Y-%m-%d}"


class FactRef(NamedTuple):
    """The id and current state of a fact; for a duplicate, those of its original."""

    memory_id: UUID
    state: str
    quarantined: bool


async def add_facts(tx: Tx, facts: Sequence[NewFact], *, ctx: LifecycleContext) -> list[FactOutcome]:
    """Store new facts, and confirm those that are stored already; return the outcome for each fact, in order.

    A fact whose `ref` is stored already is skipped, and one that a person asked to forget, unless a person states it.
    Raises ConflictError if that `ref` belongs to another fact.
    """
    buried = await tombstones.find_unwanted(tx, [fact.content for fact in facts], ctx=ctx)
    refs = [(fact.ref, fact.content_hash) for fact in facts]
    known = await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="fact")
    unknown = [fact for fact in facts if fact.ref not in known and fact.content not in buried]
    keys = await resolve_subjects(tx, {fact.subject for fact in unknown if fact.subject}, agent_id=ctx.agent_id)
    fresh = {fact.ref: replace(fact, subject_key=keys.get(fact.subject or "")) for fact in unknown}
    stated = {ref: fact.attribute_key for ref, fact in fresh.items() if fact.attribute_key}
    single = await select_single_valued(tx, stated, agent_id=ctx.agent_id)
    await lock_attributes(tx, [single[ref] for ref in fresh if ref in single], ctx=ctx)
    held = await _find_by_hash(tx, list(fresh.values()), ctx=ctx)
    fresh = await _restate_misdated(tx, fresh, held, ctx=ctx)
    distinct: dict[bytes, NewFact] = {}
    for fact in fresh.values():
        if fact.content_hash not in held:
            distinct.setdefault(fact.content_hash, fact)
    drafts = {fact.ref: _to_new_memory(fact, ctx=ctx) for fact in distinct.values()}
    written = await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    new = {ref: draft.memory_id for ref, draft in drafts.items() if draft.memory_id in written}
    rows = [_to_row(fresh[ref], new[ref], single=ref in single, ctx=ctx) for ref in new]
    await SQL["insert_facts"].execute(tx, agent_id=ctx.agent_id, facts=json.dumps(rows))
    others = [fact for ref, fact in fresh.items() if ref not in new]
    restated = {one.restates: new[ref] for ref, one in fresh.items() if one.restates and ref in new}
    await fact_edits.merge_duplicates(tx, list(restated.items()), ctx=ctx)
    counted, confirmed = await _confirm_existing(tx, others, held, ctx=ctx)
    await review(tx, ctx, "fact", [*confirmed, *new.values()])
    return ["new" if fact.ref in new else "confirmed" if fact.ref in counted else "unchanged" for fact in facts]


async def supersede(
    tx: Tx, memory_id: UUID, *, by_fact: UUID, ctx: LifecycleContext, besides: Sequence[str] = ()
) -> None:
    """Supersede the fact `memory_id` by another. If it is stated again later, it becomes current again.

    Its clauses that neither the other fact nor the texts `besides` concern are stored as new facts.

    Raises NotFoundError for an unknown fact, and ConflictError if both are one fact, the old one supersedes the new one
    already, or `by_fact` is quarantined or retracted.
    """
    old, new = await _find_pair(tx, memory_id, by_fact, ctx=ctx)
    row = await SQL["check_supersession_cycle"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=new, other_id=old)
    if row and row["cyclic"]:
        raise ConflictError(f"The fact {old} already supersedes {new}.", hint="Retract the fact that is wrong.")
    if row and row["known"]:
        await fact_edits.renew_validity(tx, [(new, ctx.now)], ctx=ctx)
    await store.add_links(tx, "supersedes", [(new, old)], ctx=ctx)
    await review(tx, ctx, "fact", [old, new])
    await keep_rest(tx, [(new, old)], ctx=ctx, besides=besides)


async def keep_rest(
    tx: Tx,
    pairs: Sequence[tuple[UUID | None, UUID]],
    *,
    ctx: LifecycleContext,
    besides: Sequence[str] = (),
    rests: Mapping[UUID, Sequence[str]] | None = None,
) -> None:
    """Store as new facts the parts of superseded or ended facts that are still true: as in `rests`, if it names them.

    Each pair is (newer fact, older fact that it supersedes), or (None, fact that the texts `besides` end). Kept are the
    clauses of the older fact that neither the newer fact nor `besides` is about, and descriptions of names such as "our
    plumber Theo" if the newer fact lacks the noun. A new fact has the source of the older one, and is deleted with it.
    """
    ids = sorted({memory_id for pair in pairs for memory_id in pair if memory_id})
    rows = await SQL["list_versions"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=ids) if ids else []
    versions = {row["memory_id"]: row for row in rows}
    for new, old in pairs:
        known, text = versions[old], versions[old]["full_text"]
        newer = versions[new]["full_text"] if new else " ".join(besides)
        untouched = [] if known["valid_to"] or (rests and old in rests) else list_untouched(text, newer, besides)
        kept = [*(rests or {}).get(old, ()), *untouched]
        said = fold_words(" ".join((newer, *kept)))
        kept += [one.statement for one in find_appositions(text) if new and one.noun not in said]
        same = {"valid_from": known["valid_from"], "subject": known["subject"], "source": known["source"]}
        refs = [f"kept:{old}:{digest(one).hex()[:16]}" for one in kept]
        facts = [NewFact(ref=ref, content=one, sources=(old,), **same) for ref, one in zip(refs, kept, strict=True)]
        if facts:
            await add_facts(tx, facts, ctx=replace(ctx, origin=known["origin"], trust=known["trust"]))


async def disprove(tx: Tx, memory_id: UUID, *, by_fact: UUID, ctx: LifecycleContext) -> None:
    """Mark the fact `memory_id` as disproved by another. Facts that it superseded become current again.

    Raises NotFoundError for an unknown id, and ConflictError if both are one or `by_fact` is quarantined or retracted.
    """
    old, new = await _find_pair(tx, memory_id, by_fact, ctx=ctx)
    await store.add_links(tx, "was_wrong", [(new, old)], ctx=ctx)
    await fact_edits.retract_facts(tx, [old], ctx=ctx)


async def retract(tx: Tx, memory_id: UUID, *, ctx: LifecycleContext) -> None:
    """Mark a fact as wrong. Facts that it superseded become current again. Raises NotFoundError for an unknown id."""
    (found,) = await _find_facts(tx, [memory_id], ctx=ctx)
    await fact_edits.retract_facts(tx, [found.memory_id], ctx=ctx)


async def confirm(tx: Tx, memory_id: UUID, *, ref: str, source: str, ctx: LifecycleContext) -> bool:
    """Count a confirmation; return False if its `ref` was counted before. Raises NotFoundError for an unknown fact."""
    (found,) = await _find_facts(tx, [memory_id], ctx=ctx)
    confirmation = MemoryConfirmation(memory_id=found.memory_id, ref=ref, source=source)
    counted = await store.confirm(tx, [confirmation], ctx=ctx)
    if counted:
        await fact_edits.renew_validity(tx, [(found.memory_id, ctx.now)], ctx=ctx)
    await review(tx, ctx, "fact", [found.memory_id])
    return bool(counted)


async def read_subject_and_attribute(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> tuple[str | None, str | None]:
    """Return the subject and the attribute of a fact as stated, or None. Raises NotFoundError for an unknown fact."""
    row = await read_fact(tx, memory_id, agent_id=agent_id)
    return row["subject"], row["attribute"]


async def read_details(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> dict[str, str]:
    """Return the subject, the attribute, the end of validity and the tags of a fact as texts, by field name.

    Empty fields are left out. Raises NotFoundError for an unknown fact.
    """
    row = await read_fact(tx, memory_id, agent_id=agent_id)
    end = row["valid_to"] and f"{row['valid_to']:%Y-%m-%d %H:%M}"
    fields = {
        **{"subject": row["subject"], "attribute": row["attribute"]},
        **{"until": end, "tags": ", ".join(row["tags"])},
    }
    return {name: value for name, value in fields.items() if value}


async def list_adjacent_values(tx: Tx, memory_id: UUID, *, agent_id: UUID, now: datetime) -> list[RelatedMemory]:
    """Return the facts that a fact superseded, and the fact that superseded it, as related memories.

    These are facts on the same subject and single-valued attribute. They supersede each other by time, without a link.
    """
    successors = await read_successors(tx, memory_id, agent_id=agent_id, now=now)
    links = {one: "supersedes" for one, later in successors.items() if later == memory_id}
    if memory_id in successors:
        links[successors[memory_id]] = "is superseded by"
    rows = await SQL["list_short_texts"].fetch_all(tx, agent_id=agent_id, memory_ids=list(links))
    return [RelatedMemory(links[row["memory_id"]], *row) for row in rows]


async def read_fact(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> Record:
    """Return subject, attribute, valid_to and tags of a fact. Raises NotFoundError for an unknown fact."""
    row = await SQL["get_fact"].fetch_one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise _not_found_error(memory_id)
    return row


async def find_fact_id(tx: Tx, fact: NewFact, *, agent_id: UUID) -> UUID:
    """Return the id of the stored fact of this content, or of its original; raise ConflictError for a forgotten one."""
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=agent_id, hashes=[fact.content_hash])
    if not rows:
        raise ConflictError("A person asked to forget this, so it was not stored.", hint="Ask them to tell it again.")
    return rows[0]["memory_id"]


async def _find_by_hash(tx: Tx, facts: Sequence[NewFact], *, ctx: WriteContext) -> dict[bytes, UUID]:
    """Return by content hash the ids of the stored facts with the same content, which are locked against deletion."""
    hashes = [fact.content_hash for fact in facts]
    rows = await SQL["find_by_hash"].fetch_all(tx, agent_id=ctx.agent_id, hashes=hashes) if hashes else ()
    return {row["content_hash"]: row["memory_id"] for row in rows}


async def _restate_misdated(
    tx: Tx, facts: Mapping[str, NewFact], held: Mapping[bytes, UUID], *, ctx: WriteContext
) -> dict[str, NewFact]:
    """Return the facts by ref; what a person states at another time than a model did becomes a fact of its own."""
    known = {ref: held[fact.content_hash] for ref, fact in facts.items() if fact.content_hash in held}
    stated = [(known[ref], facts[ref].valid_from, facts[ref].valid_to) for ref in known]
    misdated = await fact_edits.list_misdated(tx, stated, ctx=ctx)
    own = {ref: replace(facts[ref], restates=one) for ref, one in known.items() if one in misdated}
    return {**facts, **own}


async def ensure_not_inactive(tx: Tx, memory_id: UUID, *, ctx: LifecycleContext) -> None:
    """Raise ConflictError if the fact was retracted, and NotFoundError if it does not exist."""
    (found,) = await _find_facts(tx, [memory_id], ctx=ctx)
    _reject_inactive(found)


def _reject_inactive(fact: FactRef) -> None:
    if fact.state == "INACTIVE":
        hint = "Use another fact, or store the statement again in other words."
        raise ConflictError(f"The fact {fact.memory_id} was retracted as wrong.", hint=hint)


async def lock_facts(
    tx: Tx, memory_ids: Sequence[UUID], *, ctx: LifecycleContext, replaces: bool = False
) -> Sequence[Record]:
    """Lock the attributes of facts that change, or that one `replaces`; return them, originals for duplicates."""
    rows = await SQL["find_canonical"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    keys = [(row["subject_key"], row["attribute"]) for row in rows if row["single"]]
    await lock_attributes(tx, [SUPERSEDE_LOCK, *keys] if rows and replaces else keys, ctx=ctx)
    return rows


async def _find_facts(
    tx: Tx, memory_ids: Sequence[UUID], *, ctx: LifecycleContext, replaces: bool = False
) -> list[FactRef]:
    """Lock facts as `lock_facts` does, and return them in order. Raises NotFoundError for an unknown id."""
    rows = await lock_facts(tx, memory_ids, ctx=ctx, replaces=replaces)
    found = {row["named"]: FactRef(row["memory_id"], row["state"], row["quarantined"]) for row in rows}
    for memory_id in memory_ids:
        if memory_id not in found:
            raise _not_found_error(memory_id)
    return [found[memory_id] for memory_id in memory_ids]


async def _find_pair(tx: Tx, old_id: UUID, new_id: UUID, *, ctx: LifecycleContext) -> tuple[UUID, UUID]:
    """Return the ids of the old and the new fact, or of their originals.

    Raises NotFoundError for an unknown id, and ConflictError if both are one or the new one is quarantined or
    retracted.
    """
    old, new = await _find_facts(tx, [old_id, new_id], ctx=ctx, replaces=True)
    if old.memory_id == new.memory_id:
        raise ConflictError("A fact cannot supersede itself.", hint="Name two different facts.")
    if new.quarantined:
        raise ConflictError(f"The fact {new.memory_id} is in quarantine.", hint="Confirm the fact first if it is true.")
    _reject_inactive(new)
    return old.memory_id, new.memory_id


def _not_found_error(memory_id: UUID) -> NotFoundError:
    return NotFoundError(f"There is no fact {memory_id}.", hint="Find ids with `newton recall --kind fact`.")


async def _confirm_existing(
    tx: Tx, facts: Sequence[NewFact], known: Mapping[bytes, UUID], *, ctx: LifecycleContext
) -> tuple[set[str], list[UUID]]:
    """Confirm facts that are stored already; return the refs that were not counted before, and the ids of these facts.

    Raises ConflictError if another process has stored a `ref` with other content meanwhile.
    """
    if not facts:
        return set(), []
    if any(fact.content_hash not in known for fact in facts):  # another process has stored it meanwhile
        known = await _find_by_hash(tx, facts, ctx=ctx)
    known = {fact.content_hash: known[fact.content_hash] for fact in facts if fact.content_hash in known}
    confirmations: list[MemoryConfirmation] = []
    for fact in facts:
        if fact.content_hash not in known:
            raise store.ref_conflict_error("fact", fact.ref)  # another process stored this ref in the meantime
        memory_id = known[fact.content_hash]
        confirmations.append(
            MemoryConfirmation(memory_id=memory_id, ref=fact.ref, source=fact.confirmation_source(ctx))
        )
    await fact_edits.restore_withdrawn(tx, list(known.values()), ctx=ctx)
    counted = await store.confirm(tx, confirmations, ctx=ctx)
    await fact_edits.renew_validity(tx, [(known[fact.content_hash], fact.valid_from) for fact in facts], ctx=ctx)
    return counted, list(known.values())


def _to_new_memory(fact: NewFact, *, ctx: WriteContext) -> NewMemory:
    # the short forms show that a fact is not valid yet, and which day is meant by "next Friday"
    prefix = start_prefix(f"{fact.valid_from:%Y-%m-%d}") if fact.valid_from.date() > ctx.now.date() else ""
    return NewMemory(
        kind="fact",
        state="NEW",
        forms=make_short_forms(
            resolve_dates(keep_lines(fact.content), moment=min(fact.valid_from, ctx.now)),
            count_tokens=ctx.count_tokens,
            prefix=prefix,
            max_tokens=MAX_SUMMARY_TOKENS,
            keep_end=True,
        ),
        long_forms=make_long_forms(fact.content, count_tokens=ctx.count_tokens, prefix=prefix),
        full_text=fact.content,
        indexed_text="\n".join((fact.content, *(tag.replace("_", " ") for tag in fact.tags))),
        embedding_text=one_line(fact.content),
        occurred_at=fact.valid_from,
        ctx=ctx,
        content_hash=fact.content_hash,
        ref=fact.ref,
        confidence=fact.confidence,
        importance=fact.importance,
        sources=fact.sources,
        mentioned_times=find_mentioned_times(fact.content, moment=fact.valid_from),
        standing=find_standing_type(fact.content) if ctx.trust == "user" else None,
    )


def _to_row(fact: NewFact, memory_id: UUID, *, single: bool, ctx: WriteContext) -> Mapping[str, object]:
    return {
        "memory_id": str(memory_id),
        "subject": fact.subject,
        "subject_key": fact.subject_key or (normalize_subject(fact.subject) if fact.subject else None),
        "attribute": normalize_attribute(fact.attribute) if fact.attribute else None,
        "single": single,
        "valid_from": fact.valid_from.isoformat(),
        "valid_to": fact.valid_to.isoformat() if fact.valid_to else None,
        "source": fact.confirmation_source(ctx),
        "marked": fact.is_core,
        "generalizes": fact.is_generalization,
        "tags": fact.tags,
    }
