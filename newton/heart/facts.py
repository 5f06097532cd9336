"""Facts: statements with a subject, a confidence, and the time from which they hold."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Draft, Teller, digest
from newton.memory.representations import Count, forms, one_line
from newton.memory.store import Telling

SQL = load("newton.heart", "facts.sql")

Learnt = Literal["new", "confirmed", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What somebody says is so. `at` is when it became true; `ref` names this telling of it."""

    ref: str
    content: str
    at: datetime
    subject: str | None = None
    attribute: str | None = None
    confidence: float | None = None

    @property
    def content_hash(self) -> bytes:
        """Of the words alone: who says the same again confirms it."""
        return digest(one_line(self.content))


async def learn(tx: Tx, statements: Sequence[Statement], *, by: Teller, count: Count) -> list[Learnt]:
    """Keeps what is new, confirms what is known, and leaves alone what the same ref has said before.

    Raises ConflictError when a known ref comes with other words.
    """
    told = await _told_before(tx, statements, by=by)
    fresh = {s.ref: s for s in statements if s.ref not in told}
    first = {s.content_hash: s for s in reversed(fresh.values())}
    drafts = {s.ref: _draft(s, by=by, count=count) for s in first.values()}
    written = await store.remember(tx, agent_id=by.agent_id, drafts=list(drafts.values()))
    new = {ref for ref, draft in drafts.items() if draft.memory_id in written}
    rows = [_row(fresh[ref], drafts[ref]) for ref in new]
    await SQL["insert_facts"].run(tx, agent_id=by.agent_id, facts=json.dumps(rows))
    again = [Telling(content_hash=s.content_hash, ref=ref) for ref, s in fresh.items() if ref not in new]
    counted = await store.confirm(tx, again, kind="fact", by=by)
    return ["new" if s.ref in new else "confirmed" if s.ref in counted else "unchanged" for s in statements]


async def _told_before(tx: Tx, statements: Sequence[Statement], *, by: Teller) -> set[str]:
    refs: dict[str, Statement] = {}
    for statement in statements:
        _same_words(statement, refs.setdefault(statement.ref, statement).content_hash)
    known = await store.hashes_by_ref(tx, agent_id=by.agent_id, kind="fact", refs=list(refs))
    for ref, content_hash in known.items():
        _same_words(refs[ref], content_hash)
    return set(known)


def _same_words(statement: Statement, content_hash: bytes) -> None:
    if statement.content_hash != content_hash:
        raise ConflictError(
            f"The fact {statement.ref!r} is there with other words.",
            hint="Send the new statement under a ref of its own.",
        )


def _draft(statement: Statement, *, by: Teller, count: Count) -> Draft:
    return Draft(
        memory_id=new_id(),
        kind="fact",
        state="NEW",
        forms=forms(statement.content, count=count),
        full_text=statement.content,
        indexed=statement.content,
        cue=one_line(statement.content),
        occurred_at=statement.at,
        created_at=by.now,
        origin=by.origin,
        trust=by.trust,
        content_hash=statement.content_hash,
        ref=statement.ref,
        confidence=statement.confidence,
    )


def _row(statement: Statement, draft: Draft) -> dict[str, object]:
    return {
        "memory_id": str(draft.memory_id),
        "subject": statement.subject,
        "attribute": statement.attribute,
        "valid_from": statement.at.isoformat(),
    }
