"""Decisions through their lives: recorded, thought about, amended, done, reviewed, superseded, erased."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from newton.brain import ledger
from newton.brain.chain import Json, Written, canonical
from newton.brain.choice import NEAR, Choice
from newton.brain.ledger import Entry
from newton.brain.showing import ERASED, cue, erased_forms, in_full, searched, short_forms
from newton.brain.stating import (
    Intent,
    Review,
    body_of,
    checked,
    checked_review,
    choice_of,
    look_again,
    review_body,
    review_of,
    same_again,
    same_outcome,
    tags,
    words_of,
    written,
)
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory import hygiene, store
from newton.memory.memory import Count, Draft, Teller, digest
from newton.memory.store import Retold
from newton.memory.transitions import Step, move

SQL = load("newton.brain", "decisions.sql")

ByHand = Literal["depends_on", "relates", "contradicts"]


class Recorded(NamedTuple):
    """A decision that is in the ledger now. One that was there already, word for word, is not new."""

    decision_id: UUID
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What is added to a decision afterwards. Never its confidence: that is kept as stated. Tags replace the former."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    category: str | None = None
    look_again_at: datetime | None = None


class Known(NamedTuple):
    """A decision as far as changing it asks for. The choice is None when its words were erased."""

    decision_id: UUID
    body: Mapping[str, Any]
    choice: Choice | None
    review: Review | None
    worded: tuple[UUID, ...]

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.body["at"])


async def record(tx: Tx, intents: Sequence[Intent], *, ctx: Teller) -> list[Recorded]:
    """Records decisions, and the outcomes of those that are told afterwards, in one unit of work, in their order.

    A known ref changes nothing, unless it comes with an outcome where there was none. Raises InputError for what cannot
    be, and ConflictError when a known ref comes with other content.
    """
    given = [checked(intent) for intent in intents]
    await ledger.hold(tx, agent_id=ctx.agent_id)  # from here on nobody else brings these refs
    refs = [intent.choice.ref for intent in given if intent.choice.ref]
    told = await ledger.told_before(tx, refs, agent_id=ctx.agent_id)
    known = {ref: _known(records) for ref, records in told.items()}
    fresh: dict[str, Intent] = {}
    named = [intent.choice.ref or str(new_id()) for intent in given]
    late: dict[UUID, tuple[Known, Review]] = {}
    for name, intent in zip(named, given, strict=True):
        if name in known:
            if review := _told_again(known[name], intent):
                was, first = late.setdefault(known[name].decision_id, (known[name], review))
                same_outcome(first, review, was.body["ref"])
        else:
            fresh[name] = _merged(fresh[name], intent) if name in fresh else intent
    written = await _write(tx, fresh, ctx=ctx)
    for was, review in late.values():
        await _review(tx, was, review, ctx=ctx)
    ids = written | {name: was.decision_id for name, was in known.items()}
    return [Recorded(ids[name], new=named.index(name) == place and name in written) for place, name in enumerate(named)]


async def as_told(tx: Tx, choice: Choice, *, agent_id: UUID) -> Choice:
    """The choice as made when its ref was first told, for one that is sent again bears the time of its sending."""
    await ledger.hold(tx, agent_id=agent_id)
    told = await ledger.told_before(tx, [choice.ref] if choice.ref else [], agent_id=agent_id)
    first = told.get(choice.ref) if choice.ref else None
    return replace(choice, at=_known(first).at) if first else choice


async def known(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> Known:
    """Raises NotFoundError."""
    records = await ledger.about(tx, decision_id, agent_id=agent_id)
    if not records:
        raise NotFoundError(f"There is no decision {decision_id}.", hint="`newton decisions` shows ids.")
    return _known(records)


async def think(tx: Tx, decision_id: UUID, text: str, *, ctx: Teller) -> None:
    """Adds a thought to a decision that is open. Raises ConflictError when it was reviewed."""
    await ledger.hold(tx, agent_id=ctx.agent_id)
    if (await known(tx, decision_id, agent_id=ctx.agent_id)).review:
        raise ConflictError("The decision was reviewed; its deliberation is over.", hint="Record a new decision.")
    thought = Entry(kind="thought", decision_id=decision_id, body={}, words={"text": hygiene.clean(text)})
    await ledger.append(tx, [thought], ctx=ctx)


async def amend(tx: Tx, decision_id: UUID, amendment: Amendment, *, ctx: Teller) -> None:
    """Adds to a decision. Raises InputError when nothing is added."""
    was = await known(tx, decision_id, agent_id=ctx.agent_id)
    again = look_again(amendment.look_again_at, decided_at=was.at)
    body = {
        "category": None if amendment.category is None else hygiene.name(amendment.category, what="category"),
        "look_again_at": written(again) if again else None,
    }
    words = {
        "text": None if amendment.text is None else hygiene.clean(amendment.text),
        "tags": None if amendment.tags is None else list(tags(amendment.tags)),
    }
    if not any(value is not None for value in (*body.values(), *words.values())):
        raise InputError("Nothing is amended.", hint="Give a text, tags, a category or a date to look again.")
    said = words if any(value is not None for value in words.values()) else None
    await ledger.append(tx, [Entry(kind="amendment", decision_id=decision_id, body=body, words=said)], ctx=ctx)


async def done(tx: Tx, decision_id: UUID, *, ctx: Teller) -> None:
    """What was decided is done and its outcome awaited. Raises ConflictError when that was said before."""
    await ledger.hold(tx, agent_id=ctx.agent_id)  # who gives the outcome reads the state
    await known(tx, decision_id, agent_id=ctx.agent_id)
    step = Step(memory_id=decision_id, event="done", before="RECORDED", after="PENDING", because="it was done")
    if not await move(tx, [step], ctx=ctx):
        raise ConflictError("The decision is done already.", hint="`newton decisions show ID` shows what became of it.")


async def review(tx: Tx, decision_id: UUID, given: Review, *, ctx: Teller) -> None:
    """Gives a decision its outcome, once. Raises ConflictError when it has one, InputError for one before it or
    ahead of now."""
    await ledger.hold(tx, agent_id=ctx.agent_id)
    was = await known(tx, decision_id, agent_id=ctx.agent_id)
    if was.review:
        raise ConflictError(
            f"The decision was reviewed already: {was.review.verdict}, seen {was.review.at:%Y-%m-%d %H:%M}.",
            hint="An outcome is given once; amend the decision to say more.",
        )
    if given.at > ctx.now:
        raise InputError(f"The outcome of {given.at:%Y-%m-%d %H:%M} lies ahead.", hint="Give it when it is known.")
    await _review(tx, was, checked_review(given, decided_at=was.at), ctx=ctx)


async def supersede(tx: Tx, new: UUID, old: UUID, *, ctx: Teller) -> None:
    """Puts one decision in the place of an earlier one; that has succeeded in part, unless its outcome was known.

    Raises InputError for a decision that would supersede itself, at first hand or round a circle, or a later one.
    """
    await ledger.hold(tx, agent_id=ctx.agent_id)
    mine = await known(tx, new, agent_id=ctx.agent_id)
    was = await known(tx, old, agent_id=ctx.agent_id)
    before = {row["other_id"] for row in await SQL["list_superseded"].all(tx, agent_id=ctx.agent_id, memory_id=old)}
    if new == old or new in before:
        raise InputError(
            "A decision cannot supersede itself, not even by way of others.", hint="Record a new decision for that."
        )
    if mine.at < was.at:
        raise InputError("A decision cannot supersede a later one.", hint="Name them the other way round.")
    await _connect(tx, (new, "supersedes", old), ctx=ctx)
    if was.review is None:
        await _review(tx, was, Review(verdict="partial", at=mine.at, how="superseded"), cause=new, ctx=ctx)


async def link(tx: Tx, one: UUID, name: ByHand, other: UUID, *, ctx: Teller) -> None:
    """A person says how two decisions belong together."""
    if one == other:
        raise InputError("A decision cannot be linked to itself.", hint="Name another one.")
    for decision_id in (one, other):
        await known(tx, decision_id, agent_id=ctx.agent_id)
    await _connect(tx, (one, name, other), ctx=ctx)


async def relate(tx: Tx, new: UUID, alike: Mapping[UUID, float], *, ctx: Teller) -> None:
    """Links a new decision to those that were found for it, with their cosines: to what is near in meaning, and to what
    has a tag in common. These links follow from what is known and are no records."""
    rows = await SQL["find_sharing_tag"].all(tx, agent_id=ctx.agent_id, memory_id=new, memory_ids=list(alike))
    near = {decision_id for decision_id, cosine in alike.items() if cosine >= NEAR}
    sharing = {row["decision_id"] for row in rows} - near
    await store.connect(tx, "near", [(new, one) for one in sorted(near)], ctx=ctx)
    await store.connect(tx, "relates", [(new, one) for one in sorted(sharing)], ctx=ctx)


async def erase(tx: Tx, decision_id: UUID, *, because: str, ctx: Teller) -> bool:
    """Takes every word of a decision away for good; that it was made, and what came of it, stays.

    False if no word was left. `because` is kept.
    """
    await ledger.hold(tx, agent_id=ctx.agent_id)
    was = await known(tx, decision_id, agent_id=ctx.agent_id)
    if not was.worded:
        return False
    body = {"erased": [str(record_id) for record_id in was.worded], "because": hygiene.clean(because)}
    await ledger.append(tx, [Entry(kind="erasure", decision_id=decision_id, body=body)], ctx=ctx)
    await SQL["delete_from_outbox"].run(tx, agent_id=ctx.agent_id, memory_id=decision_id)
    await SQL["erase_decisions"].run(tx, agent_id=ctx.agent_id)
    erased = _retold(was._replace(choice=None), was.review, count=ctx.count_tokens)
    await store.retell(tx, [erased], ctx=ctx)
    return True


def _known(records: Sequence[Written]) -> Known:
    first = records[0]
    outcome = next((record for record in records if record.kind == "outcome"), None)
    return Known(
        decision_id=first.decision_id,
        body=first.body,
        choice=choice_of(first.body, first.words) if first.words is not None else None,
        review=review_of(outcome.body, outcome.words) if outcome else None,
        worded=tuple(record.record_id for record in records if record.words is not None),
    )


def _told_again(was: Known, intent: Intent) -> Review | None:
    """The outcome that this telling adds, if it does. Of what was erased nothing can be compared but the outcome."""
    if was.choice is not None:
        same_again(was.choice, intent.choice)
    if intent.review is None or was.review is None:
        return intent.review
    told = intent.review if was.choice is not None else replace(intent.review, lesson=was.review.lesson)
    same_outcome(was.review, told, intent.choice.ref)
    return None


def _merged(first: Intent, again: Intent) -> Intent:
    """A decision that is told twice in a row."""
    same_again(first.choice, again.choice)
    if first.review and again.review:
        same_outcome(first.review, again.review, first.choice.ref)
    return replace(first, review=first.review or again.review)


async def _write(tx: Tx, fresh: Mapping[str, Intent], *, ctx: Teller) -> dict[str, UUID]:
    ids = {name: new_id() for name in fresh}
    drafts = [_draft(ids[name], intent, ctx=ctx) for name, intent in fresh.items()]
    await store.remember(tx, agent_id=ctx.agent_id, drafts=drafts)
    entries: list[Entry] = []
    for name, intent in fresh.items():
        entries += _entries(ids[name], intent)
    await ledger.append(tx, entries, ctx=ctx)
    await move(tx, [_reviewed(ids[name], "RECORDED", i.review) for name, i in fresh.items() if i.review], ctx=ctx)
    return ids


def _entries(decision_id: UUID, intent: Intent) -> list[Entry]:
    entry = Entry(
        kind="decision",
        decision_id=decision_id,
        record_id=decision_id,
        body=body_of(intent),
        words=words_of(intent.choice),
    )
    return [entry, *([_outcome(decision_id, intent.review)] if intent.review else [])]


def _outcome(decision_id: UUID, given: Review, cause: UUID | None = None) -> Entry:
    words = {"lesson": given.lesson} if given.lesson is not None else None
    return Entry(kind="outcome", decision_id=decision_id, body=review_body(given, by=cause), words=words)


def _draft(decision_id: UUID, intent: Intent, *, ctx: Teller) -> Draft:
    choice = intent.choice
    return Draft(
        memory_id=decision_id,
        kind="decision",
        state="RECORDED",
        forms=short_forms(choice, intent.review, count=ctx.count_tokens),
        full_text=in_full(choice, intent.review),
        indexed=searched(choice),
        cue=cue(choice),
        occurred_at=choice.at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        # without its words, so that nobody can guess them from it once they are erased
        content_hash=digest(str(decision_id), canonical(body_of(intent))),
        ref=choice.ref,
        confidence=round(choice.confidence, 6),
        outcome=intent.review.verdict if intent.review else "pending",
    )


async def _review(tx: Tx, was: Known, given: Review, *, cause: UUID | None = None, ctx: Teller) -> None:
    await ledger.append(tx, [_outcome(was.decision_id, given, cause)], ctx=ctx)
    (row,) = await SQL["get_states"].all(tx, agent_id=ctx.agent_id, memory_ids=[was.decision_id])
    await move(tx, [_reviewed(was.decision_id, row["state"], given)], ctx=ctx)
    await store.retell(tx, [_retold(was, given, count=ctx.count_tokens)], ctx=ctx)


def _reviewed(decision_id: UUID, state: str, given: Review) -> Step:
    because = f"its outcome is known: {given.verdict} ({given.how})"
    return Step(memory_id=decision_id, event="reviewed", before=state, after="REVIEWED", because=because)


def _retold(was: Known, given: Review | None, *, count: Count) -> Retold:
    outcome = given.verdict if given else "pending"
    if was.choice is None:
        short = erased_forms(was.body["confidence"], given, count=count)
        return Retold(memory_id=was.decision_id, forms=short, full_text=ERASED, outcome=outcome)
    short, full = short_forms(was.choice, given, count=count), in_full(was.choice, given)
    return Retold(memory_id=was.decision_id, forms=short, full_text=full, outcome=outcome)


async def _connect(tx: Tx, link: tuple[UUID, store.Link, UUID], *, ctx: Teller) -> None:
    one, name, other = link
    body: Json = {"link": name, "other": str(other)}
    await ledger.hold(tx, agent_id=ctx.agent_id)
    if body in [record.body for record in await ledger.about(tx, one, agent_id=ctx.agent_id)]:
        return  # said before
    await ledger.append(tx, [Entry(kind="link", decision_id=one, body=body)], ctx=ctx)
    await store.connect(tx, name, [(one, other)], ctx=ctx)
