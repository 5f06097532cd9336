"""Recording of decisions, and their later amendment, review, linking, supersession and erasure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from newton.brain import decision_codec, ledger
from newton.brain.decision_codec import DecisionReview, NewDecision
from newton.brain.drafts import NEAR_COSINE, DecisionDraft
from newton.brain.hash_chain import ChainRecord, JsonObject, canonical_json
from newton.brain.ledger import LedgerEntry, list_versions
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory import hygiene, store
from newton.memory.memory import NewMemory, WriteContext, digest
from newton.memory.store import MemoryUpdate, PlannedTransition, apply_transitions

SQL = load("newton.brain", "decisions.sql")

ManualLink = Literal["depends_on", "relates", "contradicts"]


class DecisionLinkDraft(NamedTuple):
    """A link to record between two decisions, which are named by their refs."""

    source: str
    link: Literal["supersedes"] | ManualLink
    target: str


class RecordResult(NamedTuple):
    """The id of a recorded decision. `is_new` is False if an identical one was recorded before."""

    decision_id: UUID
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionAmendment:
    """A later change of a decision; None leaves a field unchanged. `tags` replaces all tags of the decision.

    The confidence cannot be changed.
    """

    text: str | None = None
    tags: tuple[str, ...] | None = None
    category: str | None = None
    look_again_at: datetime | None = None


class StoredDecision(NamedTuple):
    """A decision as its ledger records contain it.

    `draft` is None if its text was erased, `review` without an outcome.
    """

    decision_id: UUID
    body: Mapping[str, Any]
    draft: DecisionDraft | None
    review: DecisionReview | None
    records: Sequence[ChainRecord]

    @property
    def decided_at(self) -> datetime:
        return datetime.fromisoformat(self.body["at"])


async def record(tx: Tx, new_decisions: Sequence[NewDecision], *, ctx: WriteContext) -> list[RecordResult]:
    """Record decisions, with their outcomes if these are known, and return one result for each, in order.

    A decision whose `ref` (external id) is stored already is not recorded again, but an outcome that it adds is. Raises
    InputError for invalid data, and ConflictError if a stored `ref` has different content.
    """
    valid = [decision_codec.validate(decision) for decision in new_decisions]
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)  # so that no concurrent transaction adds these refs
    refs = [decision.draft.ref for decision in valid if decision.draft.ref]
    records_by_ref = await ledger.find_by_refs(tx, refs, agent_id=ctx.agent_id)
    stored = {ref: _from_records(records) for ref, records in records_by_ref.items()}
    new: dict[str, NewDecision] = {}
    names = [decision.draft.ref or str(new_id()) for decision in valid]
    reviews: dict[str, DecisionReview] = {}
    for name, decision in zip(names, valid, strict=True):
        if name not in stored:
            new[name] = _merge(new[name], decision) if name in new else decision
        elif review := _extract_new_review(stored[name], decision):
            decision_codec.ensure_same_outcome(reviews.setdefault(name, review), review, name)
    new_ids = await _write(tx, new, ctx=ctx)
    for name, review in reviews.items():
        await _apply_review(tx, stored[name], review, ctx=ctx)
    ids = new_ids | {name: decision.decision_id for name, decision in stored.items()}
    return [
        RecordResult(ids[name], is_new=name in new_ids and names.index(name) == index)
        for index, name in enumerate(names)
    ]


async def restore_original_time(tx: Tx, draft: DecisionDraft, *, agent_id: UUID) -> DecisionDraft:
    """Return the draft with the decision time that is stored for its `ref`, so that a retry has equal content.

    A draft whose `ref` is not stored is returned unchanged.
    """
    await ledger.lock_chain(tx, agent_id=agent_id)
    stored = await ledger.find_by_refs(tx, [draft.ref] if draft.ref else [], agent_id=agent_id)
    records = stored.get(draft.ref) if draft.ref else None
    return replace(draft, at=_from_records(records).decided_at) if records else draft


async def load_decision(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> StoredDecision:
    """Return a decision from its ledger records. Raises NotFoundError for an unknown id."""
    records = await ledger.list_records(tx, decision_id, agent_id=agent_id)
    if not records:
        raise NotFoundError(
            f"There is no decision {decision_id}.", hint="`newton decisions` lists the decisions with their ids."
        )
    return _from_records(records)


async def add_thought(tx: Tx, decision_id: UUID, text: str, *, ctx: WriteContext) -> None:
    """Add a thought (a step of the deliberation) to a decision.

    Raises NotFoundError for an unknown decision, and ConflictError if it is already reviewed.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    if (await load_decision(tx, decision_id, agent_id=ctx.agent_id)).review:
        raise ConflictError("A reviewed decision cannot get more thoughts.", hint="Record a new decision.")
    words = {"text": decision_codec.clean_note(text, ctx.trust)}
    thought = LedgerEntry(kind="thought", decision_id=decision_id, body={}, words=words)
    await ledger.append(tx, [thought], ctx=ctx)


async def amend(tx: Tx, decision_id: UUID, amendment: DecisionAmendment, *, ctx: WriteContext) -> None:
    """Add a text to a decision, or change its tags, category or review date.

    Raises NotFoundError for an unknown decision, and InputError for an empty amendment.
    """
    stored = await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    review_at = decision_codec.ensure_review_date(amendment.look_again_at, decided_at=stored.decided_at)
    body = {
        "category": None if amendment.category is None else hygiene.clean_name(amendment.category, what="category"),
        "look_again_at": decision_codec.format_time(review_at) if review_at else None,
    }
    texts = {
        "text": None if amendment.text is None else decision_codec.clean_amendment(amendment.text, ctx.trust),
        "tags": None if amendment.tags is None else list(decision_codec.normalize_tags(amendment.tags)),
    }
    has_texts = any(value is not None for value in texts.values())
    if not has_texts and not any(body.values()):
        raise InputError("The amendment is empty.", hint="Give a text, tags, a category or a review date.")
    words = texts if has_texts else None
    await ledger.append(tx, [LedgerEntry(kind="amendment", decision_id=decision_id, body=body, words=words)], ctx=ctx)


async def mark_done(tx: Tx, decision_id: UUID, *, ctx: WriteContext) -> None:
    """Mark a decision as carried out, so that only its outcome is open.

    Raises NotFoundError for an unknown decision, and ConflictError if it is marked or reviewed already.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)  # a concurrent review reads the state
    await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    transition = PlannedTransition(decision_id, "done", "RECORDED", "PENDING", "it was done")
    if not await apply_transitions(tx, [transition], ctx=ctx):
        raise ConflictError(
            "The decision is done already.", hint="`newton decisions show ID` shows the state of the decision."
        )


async def review(tx: Tx, decision_id: UUID, review: DecisionReview, *, ctx: WriteContext) -> None:
    """Record the outcome of a decision. A person's takes the place of a model's, which stays as a report.

    Raises NotFoundError for an unknown decision, ConflictError if it has another outcome already, and InputError if the
    outcome is before the decision or in the future.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    stored = await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    if stored.review and (stored.review.is_of_person or not review.is_of_person):
        what = f"The decision was already reviewed: {stored.review.verdict}, on {stored.review.at:%Y-%m-%d %H:%M}."
        raise ConflictError(what, hint="An outcome can be recorded only once; amend the decision to add to it.")
    if review.at > ctx.now:
        hint = "Give the time at which the outcome was observed, or omit the time to use the present one."
        raise InputError(f"The outcome of {review.at:%Y-%m-%d %H:%M} is in the future.", hint=hint)
    await _apply_review(tx, stored, decision_codec.validate_review(review, decided_at=stored.decided_at), ctx=ctx)


async def supersede(tx: Tx, newer_id: UUID, older_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark the decision `older_id` as superseded by `newer_id`; return False if it is marked already.

    If it has no outcome yet, its outcome becomes partial. Raises NotFoundError for an unknown decision, and InputError
    if the older decision was made later, or if a decision would supersede itself, directly or through others.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    newer = await load_decision(tx, newer_id, agent_id=ctx.agent_id)
    older = await load_decision(tx, older_id, agent_id=ctx.agent_id)
    if newer.decided_at < older.decided_at:
        raise InputError("A decision cannot supersede a later one.", hint="Swap the ids of the two decisions.")
    is_new = await _record_supersession(tx, newer_id, older_id, ctx=ctx)
    if older.review is None:
        review = DecisionReview(verdict="partial", at=newer.decided_at, how="superseded", trust=ctx.trust)
        await _apply_review(tx, older, review, cause=newer_id, ctx=ctx)
    return is_new


async def link(tx: Tx, from_id: UUID, link_type: ManualLink, to_id: UUID, *, ctx: WriteContext) -> bool:
    """Link one decision to another; return False for an existing link, which stays unchanged.

    Raises InputError for a link of a decision to itself, and NotFoundError for an unknown decision.
    """
    if from_id == to_id:
        raise InputError("A decision cannot be linked to itself.", hint="Choose another decision.")
    for decision_id in (from_id, to_id):
        await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    return await _record_link(tx, from_id, link_type, to_id, ctx=ctx)


async def link_by_ref(tx: Tx, links: Sequence[DecisionLinkDraft], *, ctx: WriteContext) -> int:
    """Link decisions that their refs name, and return the number of new links.

    The ref of a decision record names its latest version. A record that supersedes itself supersedes its earlier
    versions. A superseded decision gets no outcome, because nobody judged it. Raises InputError for an unknown ref, and
    for a link of a decision to itself.
    """
    refs = list({ref for one in links for ref in (one.source, one.target)})
    versions = await list_versions(tx, refs, ctx=ctx)
    new = 0
    for source, link_type, target in links:
        for ref in (source, target):
            if ref not in versions:
                raise InputError(f"There is no decision {ref!r}.", hint="Import the decision before the link to it.")
        newest = versions[source][-1].memory_id
        for other in versions[target][:-1] if source == target else versions[target][-1:]:
            if link_type == "supersedes":
                new += await _record_supersession(tx, newest, other.memory_id, ctx=ctx)
            else:
                new += await link(tx, newest, link_type, other.memory_id, ctx=ctx)
    return new


async def relate(tx: Tx, source_id: UUID, similarities: Mapping[UUID, float], *, ctx: WriteContext) -> None:
    """Link a new decision to those of `similarities` that are near it or share a tag with it.

    `similarities` maps decision ids to cosine similarities. The links are not recorded in the ledger.
    """
    ids = {"agent_id": ctx.agent_id, "memory_id": source_id, "memory_ids": list(similarities)}
    near = {decision_id for decision_id, cosine in similarities.items() if cosine >= NEAR_COSINE}
    sharing_tag = {row["decision_id"] for row in await SQL["find_sharing_tag"].fetch_all(tx, **ids)} - near
    await store.add_links(tx, "near", [(source_id, other) for other in sorted(near)], ctx=ctx)
    await store.add_links(tx, "relates", [(source_id, other) for other in sorted(sharing_tag)], ctx=ctx)


async def erase(tx: Tx, decision_id: UUID, *, reason: str, ctx: WriteContext) -> bool:
    """Delete the texts of a decision permanently; return False if it has none. Raises NotFoundError for an unknown id.

    The bodies of its ledger records, which contain no free text, remain. `reason` is recorded in an erasure record.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    stored = await load_decision(tx, decision_id, agent_id=ctx.agent_id)
    record_ids = [str(record.record_id) for record in stored.records if record.words is not None]
    if not record_ids:
        return False
    body = {"erased": record_ids, "because": hygiene.clean_text(reason)}
    await ledger.append(tx, [LedgerEntry(kind="erasure", decision_id=decision_id, body=body)], ctx=ctx)
    await SQL["delete_from_outbox"].execute(tx, agent_id=ctx.agent_id, memory_id=decision_id)
    await SQL["erase_decisions"].execute(tx, agent_id=ctx.agent_id)
    await store.update_memories(tx, [_memory_update(stored._replace(draft=None), stored.review, ctx=ctx)], ctx=ctx)
    return True


def _from_records(records: Sequence[ChainRecord]) -> StoredDecision:
    first = records[0]
    outcome = next((record for record in reversed(records) if record.kind == "outcome"), None)
    return StoredDecision(
        decision_id=first.decision_id,
        body=first.body,
        draft=decision_codec.decode_draft(first.body, first.words) if first.words is not None else None,
        review=decision_codec.decode_review(outcome.body, outcome.words) if outcome else None,
        records=records,
    )


def _extract_new_review(stored: StoredDecision, new_decision: NewDecision) -> DecisionReview | None:
    """Return the outcome to add when a decision is recorded again; None if there is no new one.

    Raises ConflictError if draft or outcome differ from the stored ones. Erased text is not compared.
    """
    review = new_decision.review
    if stored.draft is not None:
        decision_codec.ensure_same_draft(stored.draft, new_decision.draft)
    if review is None or stored.review is None:
        return review
    if stored.draft is None:
        review = replace(review, lesson=stored.review.lesson)
    decision_codec.ensure_same_outcome(stored.review, review, new_decision.draft.ref)
    return None


def _merge(first: NewDecision, again: NewDecision) -> NewDecision:
    """Merge two decisions with the same `ref` in one call. Raises ConflictError if they differ."""
    decision_codec.ensure_same_draft(first.draft, again.draft)
    if first.review and again.review:
        decision_codec.ensure_same_outcome(first.review, again.review, first.draft.ref)
    return replace(first, review=first.review or again.review)


async def _write(tx: Tx, new_decisions: Mapping[str, NewDecision], *, ctx: WriteContext) -> dict[str, UUID]:
    ids = {name: new_id() for name in new_decisions}
    decisions = [(ids[name], decision) for name, decision in new_decisions.items()]
    memories = [_to_new_memory(decision_id, decision, ctx=ctx) for decision_id, decision in decisions]
    await store.remember(tx, agent_id=ctx.agent_id, memories=memories)
    entries = [entry for decision_id, decision in decisions for entry in _to_entries(decision_id, decision)]
    await ledger.append(tx, entries, ctx=ctx)
    reviewed = [_review_transition(one, "RECORDED", decision.review) for one, decision in decisions if decision.review]
    await apply_transitions(tx, reviewed, ctx=ctx)
    return ids


def _to_entries(decision_id: UUID, new_decision: NewDecision) -> list[LedgerEntry]:
    ids = {"decision_id": decision_id, "record_id": decision_id}
    body, words = decision_codec.encode_body(new_decision), decision_codec.encode_texts(new_decision.draft)
    entry = LedgerEntry(kind="decision", **ids, body=body, words=words)
    return [entry, *([_outcome_entry(decision_id, new_decision.review)] if new_decision.review else [])]


def _outcome_entry(decision_id: UUID, review: DecisionReview, cause: UUID | None = None) -> LedgerEntry:
    words = {"lesson": review.lesson} if review.lesson is not None else None
    return LedgerEntry(
        kind="outcome", decision_id=decision_id, body=decision_codec.encode_review(review, by=cause), words=words
    )


def _to_new_memory(decision_id: UUID, new_decision: NewDecision, *, ctx: WriteContext) -> NewMemory:
    """Return the memory by which a recorded decision is searched, with the id of the decision."""
    draft, review = new_decision.draft, new_decision.review
    return NewMemory(
        memory_id=decision_id,
        kind="decision",
        state="RECORDED",
        forms=decision_codec.format_short_forms(draft, review, count_tokens=ctx.count_tokens),
        full_text=decision_codec.format_full(draft, review),
        indexed_text=decision_codec.to_search_text(draft),
        embedding_text=decision_codec.to_embedding_text(draft),
        occurred_at=draft.at,
        ctx=ctx,
        # without the text, so that the hash does not reveal erased text
        content_hash=digest(str(decision_id), canonical_json(decision_codec.encode_body(new_decision))),
        ref=draft.ref,
        confidence=round(draft.confidence, 6),
        outcome=review.verdict if review else "pending",
    )


async def _apply_review(
    tx: Tx, stored: StoredDecision, review: DecisionReview, *, cause: UUID | None = None, ctx: WriteContext
) -> None:
    (row,) = await SQL["get_states"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=[stored.decision_id])
    review, shown = decision_codec.mark_lesson(review, ctx.trust, decision_trust=row["trust"])
    if stored.review:
        await amend(tx, stored.decision_id, DecisionAmendment(text=stored.review.report), ctx=ctx)
    else:
        await apply_transitions(tx, [_review_transition(stored.decision_id, row["state"], review)], ctx=ctx)
    await ledger.append(tx, [_outcome_entry(stored.decision_id, review, cause)], ctx=ctx)
    await store.update_memories(tx, [_memory_update(stored, shown, ctx=ctx)], ctx=ctx)


def _review_transition(decision_id: UUID, state: str, review: DecisionReview) -> PlannedTransition:
    reason = f"its outcome is known: {review.verdict} ({review.how})"
    return PlannedTransition(decision_id, "reviewed", state, "REVIEWED", reason)


def _memory_update(stored: StoredDecision, review: DecisionReview | None, *, ctx: WriteContext) -> MemoryUpdate:
    draft, outcome = stored.draft, review.verdict if review else "pending"
    if draft is None:
        forms = decision_codec.format_erased_forms(stored.body["confidence"], review, count_tokens=ctx.count_tokens)
    else:
        forms = decision_codec.format_short_forms(draft, review, count_tokens=ctx.count_tokens)
    text = decision_codec.format_full(draft, review) if draft else decision_codec.ERASED
    return MemoryUpdate(memory_id=stored.decision_id, forms=forms, full_text=text, outcome=outcome)


async def _record_supersession(tx: Tx, newer_id: UUID, older_id: UUID, *, ctx: WriteContext) -> bool:
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    rows = await SQL["list_superseded"].fetch_all(tx, agent_id=ctx.agent_id, memory_id=older_id)
    if newer_id == older_id or newer_id in {row["other_id"] for row in rows}:
        message = "A decision cannot supersede itself, directly or through others."
        raise InputError(message, hint="Record a new decision that supersedes the old one.")
    return await _record_link(tx, newer_id, "supersedes", older_id, ctx=ctx)


async def _record_link(tx: Tx, from_id: UUID, link_type: store.LinkType, to_id: UUID, *, ctx: WriteContext) -> bool:
    body: JsonObject = {"link": link_type, "other": str(to_id)}
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)
    if body in [record.body for record in await ledger.list_records(tx, from_id, agent_id=ctx.agent_id)]:
        return False
    await ledger.append(tx, [LedgerEntry(kind="link", decision_id=from_id, body=body)], ctx=ctx)
    await store.add_links(tx, link_type, [(from_id, to_id)], ctx=ctx)
    return True
