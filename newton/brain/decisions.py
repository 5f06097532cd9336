"""The life cycle of decisions: record, think, amend, mark done, review, supersede, erase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from newton.brain import ledger
from newton.brain.codec import (
    DecisionReview,
    NewDecision,
    decode_draft,
    decode_review,
    encode_body,
    encode_review,
    encode_texts,
    ensure_review_date,
    ensure_same_draft,
    ensure_same_outcome,
    format_time,
    normalize_tags,
    validate,
    validate_review,
)
from newton.brain.decision_text import (
    ERASED,
    format_erased_forms,
    format_full,
    format_short_forms,
    to_embedding_text,
    to_search_text,
)
from newton.brain.draft import NEAR_COSINE, DecisionDraft
from newton.brain.hash_chain import ChainRecord, JsonObject, canonical_json
from newton.brain.ledger import LedgerEntry
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory import hygiene, store
from newton.memory.memory import NewMemory, TokenCounter, WriteContext, digest
from newton.memory.store import MemoryUpdate
from newton.memory.transitions import PlannedTransition, apply_transitions

SQL = load("newton.brain", "decisions.sql")

ManualLink = Literal["depends_on", "relates", "contradicts"]


class RecordResult(NamedTuple):
    """A decision in the ledger. `is_new` is False if an identical one was recorded before."""

    decision_id: UUID
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionAmendment:
    """An addition to a decision. Tags replace the former ones; confidence cannot be changed."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    category: str | None = None
    look_again_at: datetime | None = None


class StoredDecision(NamedTuple):
    """A decision as loaded for a change. The draft is None when its text was erased."""

    decision_id: UUID
    body: Mapping[str, Any]
    draft: DecisionDraft | None
    review: DecisionReview | None
    text_record_ids: tuple[UUID, ...]

    @property
    def decided_at(self) -> datetime:
        return datetime.fromisoformat(self.body["at"])


async def record(tx: Tx, new_decisions: Sequence[NewDecision], *, ctx: WriteContext) -> list[RecordResult]:
    """Record decisions, with known outcomes, in one transaction, in order.

    A known ref changes nothing, unless it adds an outcome. Raises InputError for invalid data, and ConflictError when a
    known ref comes with different content.
    """
    given = [validate(intent) for intent in new_decisions]
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)  # no concurrent transaction can add these refs from here on
    refs = [intent.draft.ref for intent in given if intent.draft.ref]
    told = await ledger.find_by_refs(tx, refs, agent_id=ctx.agent_id)
    known = {ref: _from_records(records) for ref, records in told.items()}
    fresh: dict[str, NewDecision] = {}
    named = [intent.draft.ref or str(new_id()) for intent in given]
    late: dict[UUID, tuple[StoredDecision, DecisionReview]] = {}
    for name, intent in zip(named, given, strict=True):
        if name in known:
            if review := _extract_new_review(known[name], intent):
                was, first = late.setdefault(known[name].decision_id, (known[name], review))
                ensure_same_outcome(first, review, was.body["ref"])
        else:
            fresh[name] = _merge(fresh[name], intent) if name in fresh else intent
    written = await _write(tx, fresh, ctx=ctx)
    for was, review in late.values():
        await _apply_review(tx, was, review, ctx=ctx)
    ids = written | {name: was.decision_id for name, was in known.items()}
    return [
        RecordResult(ids[name], is_new=named.index(name) == place and name in written)
        for place, name in enumerate(named)
    ]


async def restore_original_time(tx: Tx, draft: DecisionDraft, *, agent_id: UUID) -> DecisionDraft:
    """Return the draft with the time of its first recording, because a retry bears the time of the retry."""
    await ledger.lock_chain(tx, agent_id=agent_id)
    told = await ledger.find_by_refs(tx, [draft.ref] if draft.ref else [], agent_id=agent_id)
    first = told.get(draft.ref) if draft.ref else None
    return replace(draft, at=_from_records(first).decided_at) if first else draft


async def load_decision(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> StoredDecision:
    """Load a decision. Raises NotFoundError."""
    records = await ledger.list_records(tx, decision_id, agent_id=agent_id)
    if not records:
        raise NotFoundError(f"There is no decision {decision_id}.", hint="`newton decisions` lists the ids.")
    return _from_records(records)


async def add_thought(tx: Tx, decision_id: UUID, text: str, *, ctx: WriteContext) -> None:
    """Add a thought to an open decision. Raises ConflictError when it is reviewed."""
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    if (await load_decision(tx, decision_id, agent_id=ctx.agent_id)).review:
        raise ConflictError(
            "The decision is reviewed already and takes no more thoughts.", hint="Record a new decision."
        )
    thought = LedgerEntry(kind="thought", decision_id=decision_id, body={}, words={"text": hygiene.clean_text(text)})
    await ledger.append(tx, [thought], ctx=ctx)


async def amend(tx: Tx, decision_id: UUID, amendment: DecisionAmendment, *, ctx: WriteContext) -> None:
    """Amend a decision. Raises InputError for an empty amendment."""
    was = await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    again = ensure_review_date(amendment.look_again_at, decided_at=was.decided_at)
    body = {
        "category": None if amendment.category is None else hygiene.clean_name(amendment.category, what="category"),
        "look_again_at": format_time(again) if again else None,
    }
    words = {
        "text": None if amendment.text is None else hygiene.clean_text(amendment.text),
        "tags": None if amendment.tags is None else list(normalize_tags(amendment.tags)),
    }
    if not any(value is not None for value in (*body.values(), *words.values())):
        raise InputError("The amendment is empty.", hint="Give a text, tags, a category or a review date.")
    said = words if any(value is not None for value in words.values()) else None
    await ledger.append(tx, [LedgerEntry(kind="amendment", decision_id=decision_id, body=body, words=said)], ctx=ctx)


async def mark_done(tx: Tx, decision_id: UUID, *, ctx: WriteContext) -> None:
    """Mark a decision as done, awaiting its outcome. Raises ConflictError when it is done already."""
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)  # a concurrent review reads the state
    await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    step = PlannedTransition(
        memory_id=decision_id, event="done", from_state="RECORDED", to_state="PENDING", reason="it was done"
    )
    if not await apply_transitions(tx, [step], ctx=ctx):
        raise ConflictError("The decision is done already.", hint="`newton decisions show ID` shows what became of it.")


async def review(tx: Tx, decision_id: UUID, review: DecisionReview, *, ctx: WriteContext) -> None:
    """Record the outcome of a decision, once.

    Raises ConflictError when it has one, and InputError for an outcome before the decision or in the future.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    was = await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    if was.review:
        raise ConflictError(
            f"The decision was reviewed already: {was.review.verdict}, seen {was.review.at:%Y-%m-%d %H:%M}.",
            hint="An outcome can be recorded only once; amend the decision to add to it.",
        )
    if review.at > ctx.now:
        raise InputError(
            f"The outcome of {review.at:%Y-%m-%d %H:%M} is in the future.", hint="Record it once it is known."
        )
    await _apply_review(tx, was, validate_review(review, decided_at=was.decided_at), ctx=ctx)


async def supersede(tx: Tx, newer_id: UUID, older_id: UUID, *, ctx: WriteContext) -> None:
    """Supersede an earlier decision; its outcome becomes partial unless it is known.

    Raises InputError for a decision that would supersede itself, directly or in a cycle, or a later one.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    mine = await load_decision(tx, newer_id, agent_id=ctx.agent_id)
    was = await load_decision(tx, older_id, agent_id=ctx.agent_id)
    before = {
        row["other_id"] for row in await SQL["list_superseded"].fetch_all(tx, agent_id=ctx.agent_id, memory_id=older_id)
    }
    if newer_id == older_id or newer_id in before:
        raise InputError(
            "A decision cannot supersede itself, directly or through others.", hint="Record a new decision for that."
        )
    if mine.decided_at < was.decided_at:
        raise InputError("A decision cannot supersede a later one.", hint="Swap the two ids.")
    await _record_link(tx, (newer_id, "supersedes", older_id), ctx=ctx)
    if was.review is None:
        await _apply_review(
            tx, was, DecisionReview(verdict="partial", at=mine.decided_at, how="superseded"), cause=newer_id, ctx=ctx
        )


async def link(tx: Tx, from_id: UUID, link_type: ManualLink, to_id: UUID, *, ctx: WriteContext) -> None:
    """Link two decisions."""
    if from_id == to_id:
        raise InputError("A decision cannot be linked to itself.", hint="Choose another decision.")
    for decision_id in (from_id, to_id):
        await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    await _record_link(tx, (from_id, link_type, to_id), ctx=ctx)


async def relate(tx: Tx, source_id: UUID, similarities: Mapping[UUID, float], *, ctx: WriteContext) -> None:
    """Link a new decision to similar ones, by cosine similarity and by shared tags. These links are derived, not
    recorded."""
    rows = await SQL["find_sharing_tag"].fetch_all(
        tx, agent_id=ctx.agent_id, memory_id=source_id, memory_ids=list(similarities)
    )
    near = {decision_id for decision_id, cosine in similarities.items() if cosine >= NEAR_COSINE}
    sharing = {row["decision_id"] for row in rows} - near
    await store.add_links(tx, "near", [(source_id, one) for one in sorted(near)], ctx=ctx)
    await store.add_links(tx, "relates", [(source_id, one) for one in sorted(sharing)], ctx=ctx)


async def erase(tx: Tx, decision_id: UUID, *, reason: str, ctx: WriteContext) -> bool:
    """Permanently delete the text of a decision; the record of it and of its outcome remains.

    Returns False if there was no text. The reason is kept.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    was = await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    if not was.text_record_ids:
        return False
    body = {"erased": [str(record_id) for record_id in was.text_record_ids], "because": hygiene.clean_text(reason)}
    await ledger.append(tx, [LedgerEntry(kind="erasure", decision_id=decision_id, body=body)], ctx=ctx)
    await SQL["delete_from_outbox"].execute(tx, agent_id=ctx.agent_id, memory_id=decision_id)
    await SQL["erase_decisions"].execute(tx, agent_id=ctx.agent_id)
    erased = _memory_update(was._replace(draft=None), was.review, count_tokens=ctx.count_tokens)
    await store.update_memories(tx, [erased], ctx=ctx)
    return True


def _from_records(records: Sequence[ChainRecord]) -> StoredDecision:
    first = records[0]
    outcome = next((record for record in records if record.kind == "outcome"), None)
    return StoredDecision(
        decision_id=first.decision_id,
        body=first.body,
        draft=decode_draft(first.body, first.words) if first.words is not None else None,
        review=decode_review(outcome.body, outcome.words) if outcome else None,
        text_record_ids=tuple(record.record_id for record in records if record.words is not None),
    )


def _extract_new_review(stored: StoredDecision, new_decision: NewDecision) -> DecisionReview | None:
    """Return the outcome that a repeated recording adds, if any. Erased text cannot be compared."""
    if stored.draft is not None:
        ensure_same_draft(stored.draft, new_decision.draft)
    if new_decision.review is None or stored.review is None:
        return new_decision.review
    told = (
        new_decision.review if stored.draft is not None else replace(new_decision.review, lesson=stored.review.lesson)
    )
    ensure_same_outcome(stored.review, told, new_decision.draft.ref)
    return None


def _merge(first: NewDecision, again: NewDecision) -> NewDecision:
    """Merge a decision that occurs twice in one call."""
    ensure_same_draft(first.draft, again.draft)
    if first.review and again.review:
        ensure_same_outcome(first.review, again.review, first.draft.ref)
    return replace(first, review=first.review or again.review)


async def _write(tx: Tx, new_decisions: Mapping[str, NewDecision], *, ctx: WriteContext) -> dict[str, UUID]:
    ids = {name: new_id() for name in new_decisions}
    drafts = [_to_new_memory(ids[name], intent, ctx=ctx) for name, intent in new_decisions.items()]
    await store.remember(tx, agent_id=ctx.agent_id, memories=drafts)
    entries: list[LedgerEntry] = []
    for name, intent in new_decisions.items():
        entries += _to_entries(ids[name], intent)
    await ledger.append(tx, entries, ctx=ctx)
    await apply_transitions(
        tx,
        [_review_transition(ids[name], "RECORDED", i.review) for name, i in new_decisions.items() if i.review],
        ctx=ctx,
    )
    return ids


def _to_entries(decision_id: UUID, new_decision: NewDecision) -> list[LedgerEntry]:
    entry = LedgerEntry(
        kind="decision",
        decision_id=decision_id,
        record_id=decision_id,
        body=encode_body(new_decision),
        words=encode_texts(new_decision.draft),
    )
    return [entry, *([_outcome_entry(decision_id, new_decision.review)] if new_decision.review else [])]


def _outcome_entry(decision_id: UUID, review: DecisionReview, cause: UUID | None = None) -> LedgerEntry:
    words = {"lesson": review.lesson} if review.lesson is not None else None
    return LedgerEntry(kind="outcome", decision_id=decision_id, body=encode_review(review, by=cause), words=words)


def _to_new_memory(decision_id: UUID, new_decision: NewDecision, *, ctx: WriteContext) -> NewMemory:
    choice = new_decision.draft
    return NewMemory(
        memory_id=decision_id,
        kind="decision",
        state="RECORDED",
        forms=format_short_forms(choice, new_decision.review, count_tokens=ctx.count_tokens),
        full_text=format_full(choice, new_decision.review),
        indexed_text=to_search_text(choice),
        embedding_text=to_embedding_text(choice),
        occurred_at=choice.at,
        ctx=ctx,
        # without the text, so that it cannot be guessed from the hash once it is erased
        content_hash=digest(str(decision_id), canonical_json(encode_body(new_decision))),
        ref=choice.ref,
        confidence=round(choice.confidence, 6),
        outcome=new_decision.review.verdict if new_decision.review else "pending",
    )


async def _apply_review(
    tx: Tx, stored: StoredDecision, review: DecisionReview, *, cause: UUID | None = None, ctx: WriteContext
) -> None:
    await ledger.append(tx, [_outcome_entry(stored.decision_id, review, cause)], ctx=ctx)
    (row,) = await SQL["get_states"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=[stored.decision_id])
    await apply_transitions(tx, [_review_transition(stored.decision_id, row["state"], review)], ctx=ctx)
    await store.update_memories(tx, [_memory_update(stored, review, count_tokens=ctx.count_tokens)], ctx=ctx)


def _review_transition(decision_id: UUID, state: str, review: DecisionReview) -> PlannedTransition:
    because = f"its outcome is known: {review.verdict} ({review.how})"
    return PlannedTransition(
        memory_id=decision_id, event="reviewed", from_state=state, to_state="REVIEWED", reason=because
    )


def _memory_update(
    stored: StoredDecision, review: DecisionReview | None, *, count_tokens: TokenCounter
) -> MemoryUpdate:
    outcome = review.verdict if review else "pending"
    if stored.draft is None:
        short = format_erased_forms(stored.body["confidence"], review, count_tokens=count_tokens)
        return MemoryUpdate(memory_id=stored.decision_id, forms=short, full_text=ERASED, outcome=outcome)
    short, full = format_short_forms(stored.draft, review, count_tokens=count_tokens), format_full(stored.draft, review)
    return MemoryUpdate(memory_id=stored.decision_id, forms=short, full_text=full, outcome=outcome)


async def _record_link(tx: Tx, link: tuple[UUID, store.LinkType, UUID], *, ctx: WriteContext) -> None:
    one, name, other = link
    body: JsonObject = {"link": name, "other": str(other)}
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    if body in [record.body for record in await ledger.list_records(tx, one, agent_id=ctx.agent_id)]:
        return  # linked already
    await ledger.append(tx, [LedgerEntry(kind="link", decision_id=one, body=body)], ctx=ctx)
    await store.add_links(tx, name, [(one, other)], ctx=ctx)
