"""The effect of new messages on the brief of a session. Pure."""

from dataclasses import dataclass, field
from uuid import UUID

from newton.dialogue.brief.brief_items import BriefDraft, BriefItem, BriefSource, BriefStatus, render_brief_line
from newton.dialogue.brief.item_changes import find_closed, find_replaced, is_repeated, may_close
from newton.dialogue.brief.item_detection import detect_items, own_sentences
from newton.dialogue.messages import StoredMessage
from newton.ids import new_id
from newton.memory.memory import TokenCounter, Trust
from newton.memory.representations import to_bullet

TRUSTED: frozenset[Trust] = frozenset({"operator", "user", "agent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefClosing:
    """The end of an item: what became of it, by which message, and the item that replaces it."""

    item_id: UUID
    status: BriefStatus
    position: int
    memory_id: UUID | None
    replaced_by: UUID | None = None


@dataclass(slots=True, kw_only=True)
class BriefUpdate:
    """Changes of a brief: new items and closings. `items` are the open items, the oldest first."""

    items: list[BriefItem]
    count_tokens: TokenCounter
    added: list[BriefItem] = field(default_factory=list[BriefItem])
    closings: list[BriefClosing] = field(default_factory=list[BriefClosing])

    def read_message(self, stored: StoredMessage, memory_id: UUID | None) -> None:
        """Apply what a message says: first what it closes, then what it adds or replaces."""
        text, role = stored.message.content, stored.message.role
        for sentence in own_sentences(text):
            if change := find_closed(sentence, self._closable(role)):
                self.close(change.item, change.status, stored.position, memory_id)
        for draft in detect_items(text, role=role):
            self.add(draft, stored, memory_id, source="rules")

    def add(
        self, draft: BriefDraft, stored: StoredMessage, memory_id: UUID | None, *, source: BriefSource
    ) -> BriefItem | None:
        """Add an item unless the brief says the same already; close the item that it replaces."""
        is_surplus = draft.is_weak and any(item.kind == draft.kind for item in self.items)
        if is_surplus or is_repeated(draft, self.items):
            return None
        said_at = stored.message.said_at
        line = to_bullet(render_brief_line(draft.kind, draft.text, said_at))
        item = BriefItem(
            item_id=new_id(),
            kind=draft.kind,
            text=draft.text,
            tokens=self.count_tokens(line),
            position=stored.position,
            source=source,
            memory_id=memory_id,
            said_at=said_at,
        )
        if replaced := find_replaced(draft, self.items):
            self.close(replaced, "replaced", stored.position, memory_id, replaced_by=item.item_id)
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
    """Return whether a message can change a brief: spoken words of a person or the assistant that are trusted."""
    message = stored.message
    return message.role in ("user", "assistant") and not message.is_notice and message.trust in TRUSTED


def needs_brief(stored: StoredMessage) -> bool:
    """Return whether a message may change a brief by its words, so that most messages read no brief at all."""
    text = stored.message.content
    return concerns_brief(stored) and (
        bool(detect_items(text, role=stored.message.role)) or any(map(may_close, own_sentences(text)))
    )
