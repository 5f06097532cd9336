"""Operations that show one memory: in full, and how it changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import Ref
from newton.agent.services.curation import MemoryRecord
from newton.memory.lookup import MAX_PAGE_CHARS, PAGE_CHARS, RelatedMemory, cut_page, short_id
from newton.memory.memory import PERSON_TIERS, Kind, Trust
from newton.memory.memory_list import MemoryEdit
from newton.memory.representations import one_line
from newton.memory.source_marks import format_trust
from newton.memory.store import TransitionRecord
from newton.operations.declaration import operation
from newton.operations.fields import MemoryRef
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

UNSET = "unset"  # a field without a value


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryExcerpt:
    """A part of the text of a memory, as a model reads it. `next_offset` is where the next part begins."""

    memory_id: UUID
    kind: Kind
    state: str
    trust: Trust
    occurred_at: datetime
    fact: dict[str, str]
    text: str
    remaining_chars: int
    next_offset: int | None
    quarantined: Annotated[bool, Field(exclude=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHistory:
    """The state changes and the edits of a memory, each the oldest first, and the facts that replaced it."""

    memory_id: UUID
    kind: Kind
    state: str
    quarantined: bool
    created_at: datetime
    origin: str
    changes: Sequence[TransitionRecord]
    edits: Sequence[MemoryEdit]
    replaced_by: Sequence[RelatedMemory]


def _format_record(record: MemoryRecord | MemoryExcerpt) -> str:
    if isinstance(record, MemoryExcerpt):
        return record.text
    confidence = "" if record.confidence is None else f" · confidence {record.confidence:.0%}"
    trust = format_trust(record.trust, kind=record.kind, quarantined=record.quarantined)
    state = f"{record.state}{' · quarantined' if record.quarantined else ''}{confidence}"
    lines = [
        f"{record.kind} {record.memory_id}",
        f"  {state} · {pluralize(record.confirmations, 'confirmation')}",
        f"  since {record.occurred_at:%Y-%m-%d %H:%M} · trust {trust}",
        f"  created {record.created_at:%Y-%m-%d %H:%M} by {record.origin}",
        *(f"  {name}: {value}" for name, value in record.fact.items()),
        *([f"  importance {record.importance:g} of 10"] if record.importance is not None else []),
        *["", record.full_text],
        *([f"({record.remaining_chars:,} more characters)"] if record.remaining_chars else []),
    ]
    if record.links:
        lines += ["", *map(_format_link, record.links)]
    return "\n".join(lines)


def _format_link(linked: RelatedMemory) -> str:
    name = f"{linked.type} {linked.kind} {short_id(linked.memory_id)} ({linked.state})"
    return f"  {name}: {one_line(linked.micro)}"


def _format_history(history: ChangeHistory) -> str:
    dated = sorted([*_format_changes(history.changes), *_format_edits(history.edits)], key=itemgetter(0))
    name = f"{history.kind} {short_id(history.memory_id)}"
    lines = [
        f"{history.created_at:%Y-%m-%d %H:%M}  {name} created by {history.origin}",
        *(f"{at:%Y-%m-%d %H:%M}  {text}" for at, text in dated),
        f"current state: {history.state}{', quarantined' if history.quarantined else ''}",
        *(f"superseded by: {short_id(newer.memory_id)} {one_line(newer.micro)}" for newer in history.replaced_by),
    ]
    return "\n".join(lines)


def _format_changes(changes: Sequence[TransitionRecord]) -> Iterator[tuple[datetime, str]]:
    for one in changes:
        states = one.to_state if one.from_state == one.to_state else f"{one.from_state} → {one.to_state}"
        yield one.changed_at, f"{states}  {one.event}: {one.reason} ({one.origin})"


def _format_edits(edits: Sequence[MemoryEdit]) -> Iterator[tuple[datetime, str]]:
    for one in edits:
        old, new = (UNSET if value is None else value for value in (one.old_value, one.new_value))
        yield one.edited_at, f"{one.field}: {old} → {new}  (by {one.author}, {one.origin})"


@operation(
    "GET /v1/memories/{memory_id}",
    "reads",
    name="expand",
    command="show",
    text=_format_record,
    core=("memory_id", "offset", "limit", "session"),
)
async def show_memory(
    caller: "OperationCaller",
    memory_id: MemoryRef,
    offset: Annotated[int, Field(ge=0, description="The position of the first character of the text.")] = 0,
    *,
    limit: Annotated[
        int | None,
        Field(ge=1, description=f"Maximum characters of the text. Default: all, for a model {PAGE_CHARS:,}."),
    ] = None,
    session: Annotated[
        Ref | None, Field(description="The session in which the memory is read, so that its working memory has it.")
    ] = None,
) -> MemoryRecord | MemoryExcerpt:
    """Show a memory in full, with its state, source, date, trust, links and changes.

    A model reads a long text in pages: each result says how many characters are left, and where the next page begins.

    Example: newton show 3f9c2a71
    """
    record = await caller.curation.get(memory_id)
    is_person = caller.trust in PERSON_TIERS
    if session or not is_person:
        toolset = await caller.toolset_in(session, creates=False)
        await toolset.memories.record_reading([record.memory_id])
        await toolset.session_use.record([record.memory_id])
    if is_person:
        page = cut_page(record.full_text, offset=offset, limit=limit or len(record.full_text))
        return replace(record, full_text=page.text, remaining_chars=page.remaining_chars)
    page = cut_page(record.full_text, offset=offset, limit=min(limit or PAGE_CHARS, MAX_PAGE_CHARS))
    return MemoryExcerpt(
        memory_id=record.memory_id,
        kind=record.kind,
        state=record.state,
        trust=record.trust,
        quarantined=record.quarantined,
        occurred_at=record.occurred_at,
        fact=record.fact,
        text=page.text,
        remaining_chars=page.remaining_chars,
        next_offset=page.offset + len(page.text) if page.remaining_chars else None,
    )


@operation(
    "GET /v1/memories/{memory_id}/history",
    "reads",
    name="history",
    command="history",
    text=_format_history,
    absent={"mcp": "A model does not need this: Newton does it by itself, or a person does it."},
)
async def show_history(caller: "OperationCaller", memory_id: MemoryRef) -> ChangeHistory:
    """Show all state changes and edits of a memory with their time, reason and origin.

    Example: newton history 3f9c2a71
    """
    record = await caller.curation.get(memory_id)
    return ChangeHistory(
        memory_id=record.memory_id,
        kind=record.kind,
        state=record.state,
        quarantined=record.quarantined,
        created_at=record.created_at,
        origin=record.origin,
        changes=record.changes,
        edits=record.edits,
        replaced_by=record.replaced_by,
    )
