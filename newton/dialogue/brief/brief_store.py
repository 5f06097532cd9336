"""Storage of the brief of a session, and the effect of new messages on it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from newton.concurrency import compute
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.brief.brief_items import BriefDraft, BriefItem, BriefSource, BriefStatus, render_brief_line
from newton.dialogue.brief.item_detection import (
    MIN_WORDS,
    detect_items,
    find_closed,
    find_replaced,
    is_repeated,
    may_close,
    own_sentences,
)
from newton.dialogue.messages import Message, StoredMessage
from newton.ids import new_id
from newton.memory.memory import TokenCounter, Trust, WriteContext
from newton.memory.representations import one_line, to_bullet

SQL = load("newton.dialogue.brief", "brief_store.sql")

TRUSTED: frozenset[Trust] = frozenset({"operator", "user", "agent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefClosing:
    """The end of an item of a brief: its final status, the message that ended it, and the item that replaces it."""

    item_id: UUID
    status: BriefStatus
    position: int
    memory_id: UUID | None
    replaced_by: UUID | None = None


@dataclass(slots=True, kw_only=True)
class BriefUpdate:
    """Collects the changes of a session's brief (its goals, deadlines, rules, constraints and open items).

    `items` are open, oldest first; `closed` ended before. `added` and `closings` are the changes, which `save` stores.
    """

    items: list[BriefItem]
    count_tokens: TokenCounter
    closed: Sequence[BriefItem] = ()
    added: list[BriefItem] = field(default_factory=list[BriefItem])
    closings: list[BriefClosing] = field(default_factory=list[BriefClosing])

    def read_message(self, stored: StoredMessage, memory_id: UUID | None) -> None:
        """Apply what a message says: close the items that it ends, then add its new ones. `memory_id` is its memory."""
        text, role = stored.message.content, stored.message.role
        for sentence in own_sentences(text):
            if change := find_closed(sentence, self._closable(role)):
                self.close(change.item, change.status, stored.position, memory_id)
        for draft in detect_items(text, role=role):
            self.add(draft, stored, memory_id, source="rules")

    def propose(self, draft: BriefDraft, stored: StoredMessage, memory_id: UUID | None) -> BriefItem | None:
        """Add an item that a model quotes from a message of the user; return None if it is not added.

        The message must contain the quotation, the brief must not have or have had the item, and no later item may
        replace it.
        """
        quote = one_line(draft.text)
        is_said = len(quote.split()) >= MIN_WORDS and quote in one_line(stored.message.content)
        if not is_said or quote.endswith("?") or not concerns_brief(stored) or stored.message.role != "user":
            return None
        quoted_draft = draft._replace(text=quote)
        if is_repeated(quoted_draft, [*self.items, *self.closed]):
            return None
        item = self._create(quoted_draft, stored, memory_id, source="model")
        later = [one for one in self.items if one.position > stored.position]
        if any(find_replaced(BriefDraft(one.kind, one.text), [item]) for one in later):
            return None
        return self._insert(item, [one for one in self.items if one.position <= stored.position])

    def add(
        self, draft: BriefDraft, stored: StoredMessage, memory_id: UUID | None, *, source: BriefSource
    ) -> BriefItem | None:
        """Add an item and close the item that it replaces, if any. Return the new item.

        Return None if an open item says the same, or if the item is weak and there is an open one of its kind.
        """
        is_surplus = draft.is_weak and any(item.kind == draft.kind for item in self.items)
        if is_surplus or is_repeated(draft, self.items):
            return None
        return self._insert(self._create(draft, stored, memory_id, source=source), self.items)

    def _create(
        self, draft: BriefDraft, stored: StoredMessage, memory_id: UUID | None, *, source: BriefSource
    ) -> BriefItem:
        said_at, trust = stored.message.said_at, stored.message.trust
        line = to_bullet(render_brief_line(draft.kind, draft.text, said_at, trust))
        return BriefItem(
            item_id=new_id(),
            kind=draft.kind,
            text=draft.text,
            tokens=self.count_tokens(line),
            position=stored.position,
            source=source,
            memory_id=memory_id,
            said_at=said_at,
            trust=trust,
        )

    def _insert(self, item: BriefItem, candidates: Sequence[BriefItem]) -> BriefItem:
        """Add an item, and close the one of the candidates that it replaces."""
        if replaced := find_replaced(BriefDraft(item.kind, item.text), candidates):
            self.close(replaced, "replaced", item.position, item.memory_id, replaced_by=item.item_id)
        self.items.append(item)
        self.added.append(item)
        return item

    def close(
        self,
        item: BriefItem,
        status: BriefStatus,
        position: int,
        memory_id: UUID | None,
        *,
        replaced_by: UUID | None = None,
    ) -> None:
        """End an open item: remove it from `items`, and record its end in `closings`."""
        self.items = [one for one in self.items if one.item_id != item.item_id]
        self.closings.append(
            BriefClosing(
                item_id=item.item_id, status=status, position=position, memory_id=memory_id, replaced_by=replaced_by
            )
        )

    def _closable(self, role: str) -> list[BriefItem]:
        """Return the items that a speaker can close: a person all of them, the assistant only open items."""
        return [item for item in self.items if role == "user" or item.kind == "open_item"]


def concerns_brief(stored: StoredMessage) -> bool:
    """Return whether a message may change a brief at all: trusted words of a person or the assistant."""
    message = stored.message
    return message.role in ("user", "assistant") and not message.is_notice and message.trust in TRUSTED


def needs_brief(stored: StoredMessage) -> bool:
    """Return whether the words of a message may change a brief. If not, the brief need not be loaded."""
    text = stored.message.content
    return concerns_brief(stored) and (
        bool(detect_items(text, role=stored.message.role)) or any(map(may_close, own_sentences(text)))
    )


_ITEM_COLUMNS = ("kind", "text", "tokens", "position", "source")


async def list_items(
    tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None, only_open: bool = False
) -> list[BriefItem]:
    """Return the items of a session, also those that a branch inherits, in the order in which they were said.

    With `moment`, return them as they were then.
    """
    rows = await SQL["list_items"].fetch_all(
        tx, agent_id=agent_id, session_id=session_id, moment=moment, only_open=only_open
    )
    return [BriefItem(**dict(row)) for row in rows]


async def load_update(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> BriefUpdate:
    """Load the open items of a session's brief, so that they can be changed. The caller must hold the session lock."""
    items = await list_items(tx, agent_id=ctx.agent_id, session_id=session_id, only_open=True)
    return BriefUpdate(items=items, count_tokens=ctx.count_tokens)


async def compute_update(
    tx: Tx, messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID], *, session_id: UUID, ctx: WriteContext
) -> BriefUpdate | None:
    """Return the changes of the brief that new messages ask for, not stored yet; None if no message can change it.

    `memory_ids` are the memories of the messages, by position.
    """
    if not any(map(needs_brief, messages)):
        return None
    update = await load_update(tx, session_id=session_id, ctx=ctx)
    read = [one for one in messages if needs_brief(one)]
    await compute(lambda: _read_all(update, read, memory_ids), chars=sum(len(one.message.content) for one in read))
    return update


def _read_all(update: BriefUpdate, messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID]) -> None:
    for stored in messages:
        update.read_message(stored, memory_ids.get(stored.position))


async def add_proposals(
    tx: Tx, proposals: Sequence[BriefDraft], *, first: int, last: int, session_id: UUID, ctx: WriteContext
) -> Sequence[BriefItem]:
    """Add the items that a model proposes for the messages `first` to `last`; return those that are added.

    A proposal is added only if a message of a person says it in these words.
    """
    if not proposals:
        return ()
    key = {"agent_id": ctx.agent_id, "session_id": session_id}
    await log.lock_session(tx, **key)
    items = await list_items(tx, agent_id=ctx.agent_id, session_id=session_id)
    update = BriefUpdate(
        items=[item for item in items if item.status == "open"],
        count_tokens=ctx.count_tokens,
        closed=[item for item in items if item.status != "open"],
    )
    rows = await SQL["list_person_messages"].fetch_all(tx, **key, first=first, last=last)
    for draft in proposals:
        for row in rows:
            if update.propose(draft, _to_stored_message(row, session_id), row["memory_id"]):
                break
    await save(tx, update, session_id=session_id, ctx=ctx)
    return update.added


def _to_stored_message(row: Record, session_id: UUID) -> StoredMessage:
    message = Message(
        role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"], min_trust=row["trust"]
    )
    return StoredMessage(session_id=session_id, position=row["position"], tokens=row["tokens"], message=message)


async def save(tx: Tx, update: BriefUpdate, *, session_id: UUID, ctx: WriteContext) -> None:
    """Store the changes of a brief that were collected in a BriefUpdate."""
    key = {"agent_id": ctx.agent_id, "session_id": session_id}
    if update.added:
        rows = [_to_row(item) for item in update.added]
        await SQL["insert_items"].execute(tx, **key, items=json.dumps(rows), now=ctx.now)
    if update.closings:
        closings = json.dumps([asdict(closing) for closing in update.closings], default=str)
        await SQL["insert_closings"].execute(tx, **key, closings=closings, now=ctx.now, origin=ctx.origin)


def _to_row(item: BriefItem) -> dict[str, object]:
    return {
        **{name: getattr(item, name) for name in _ITEM_COLUMNS},
        "item_id": str(item.item_id),
        "memory_id": item.memory_id and str(item.memory_id),
        "said_at": item.said_at.isoformat(),
    }
