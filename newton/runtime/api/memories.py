"""Memories, one at a time: remembered, looked at, confirmed, superseded, retracted, forgotten."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.verbs import Remark
from newton.memory.lookup import Record, Relative
from newton.memory.memory import Kind, Outcome, Trust
from newton.memory.transitions import Transition
from newton.runtime.api.acting import Ruling, Writing
from newton.runtime.api.caller import Reader
from newton.runtime.api.shapes import Answer, Given
from newton.runtime.transfer.given import Name, Time, Words
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1/memories", tags=["memories"])

DOOR = "http"


class ToRemember(Given):
    """A fact as it is told."""

    content: Words = Field(examples=["Ana lives in Porto."])
    subject: Name | None = Field(None, examples=["Ana"])
    attribute: Name | None = Field(None, description="What of the subject it tells.", examples=["lives in"])
    confidence: float | None = Field(None, ge=0, le=1, examples=[0.9])
    importance: float | None = Field(None, ge=0, le=10, examples=[7])
    at: Time | None = Field(None, description="When it became true, with a zone; without it, now.")
    until: Time | None = Field(None, description="When it ends, if that is known.")


class Remembered(Answer):
    """What became of it, and the memory that has it."""

    memory_id: UUID
    learnt: Literal["new", "confirmed", "unchanged"] = Field(examples=["new"])
    at: datetime = Field(description="When it was begun with.")


class Link(Answer):
    """What a memory is to another one."""

    link: str = Field(examples=["supersedes"])
    other_id: UUID
    kind: Kind
    state: str
    micro: str


class Change(Answer):
    """A change of a memory's state."""

    at: datetime
    from_state: str
    to_state: str
    event: str
    because: str
    origin: str


class Memory(Answer):
    """A memory in full: its words, where it comes from, what it is to others, and what became of it."""

    memory_id: UUID
    kind: Kind
    state: str = Field(examples=["ACTIVE"])
    micro: str
    summary: str
    full_text: str
    confidence: float | None
    importance: float | None
    outcome: Outcome | None
    confirmations: int
    uses: int
    occurred_at: datetime
    created_at: datetime
    confirmed_at: datetime | None
    origin: str
    trust: Trust
    quarantined: bool
    ref: str | None
    told: dict[str, str] = Field(description="What else a fact tells: subject, attribute, when it is true.")
    links: list[Link]
    changes: list[Change]


class ToSupersede(Given):
    """What is true instead."""

    content: Words = Field(examples=["Ana lives in Bergen."])
    at: Time | None = Field(None, description="When it became true, with a zone; without it, now.")


class Confirmed(Answer):
    """Whether it counted: the same door confirms a fact once a day."""

    memory_id: UUID
    counted: bool


class Superseded(Answer):
    """The fact that stands in its place."""

    memory_id: UUID
    superseded_by: UUID


class Retracted(Answer):
    """The fact that was never so."""

    memory_id: UUID


class Forgotten(Answer):
    """All that went."""

    forgotten: list[UUID]


@router.post("", status_code=201, response_model=Remembered)
async def remember(told: ToRemember, act: Writing) -> Response:
    """Keep a fact, or confirm it when it is known. Its vector follows; until then it is found by its words."""

    async def work(newton: Newton) -> Remembered:
        began = newton.scope.now()
        kept = await newton.verbs(DOOR).remember(Remark(**told.model_dump()))
        return Remembered(memory_id=kept.memory_id, learnt=kept.learnt, at=began)

    return await act.once(work)


@router.get("/{memory_id}")
async def look(memory_id: UUID, caller: Reader) -> Memory:
    """The whole memory, wherever its full text is kept: what a context shows in short is expanded by this."""
    record, changes, told = await caller.newton.curation(DOOR).look(memory_id.hex)
    return _memory(record, changes, told)


@router.delete("/{memory_id}", response_model=Forgotten)
async def forget(
    memory_id: UUID,
    act: Ruling,
    *,
    confirm: Annotated[Literal["forget"], Query(description="There is no way back: say `forget`.")],
    derived: Annotated[bool, Query(description="Also what was made from it.")] = False,
    because: Annotated[str, Query(max_length=500, description="Why; it is kept beside the id.")] = "asked for",
) -> Response:
    """Forget a memory for good: its words go, a note of when and why stays."""

    async def work(newton: Newton) -> Forgotten:
        gone = await newton.curation(DOOR).forget([memory_id.hex], derived=derived, because=because)
        return Forgotten(forgotten=gone)

    return await act.once(work)


@router.post("/{memory_id}/confirm", response_model=Confirmed)
async def confirm(memory_id: UUID, act: Writing) -> Response:
    """Say that a fact is so."""

    async def work(newton: Newton) -> Confirmed:
        counted = await newton.curation(DOOR).confirm(memory_id.hex)
        return Confirmed(memory_id=memory_id, counted=counted)

    return await act.once(work)


@router.post("/{memory_id}/supersede", status_code=201, response_model=Superseded)
async def supersede(memory_id: UUID, told: ToSupersede, act: Writing) -> Response:
    """Put a new statement in the place of a fact that was true until now."""

    async def work(newton: Newton) -> Superseded:
        new = await newton.curation(DOOR).supersede(memory_id.hex, told.content, at=told.at)
        return Superseded(memory_id=memory_id, superseded_by=new)

    return await act.once(work)


@router.post("/{memory_id}/retract", response_model=Retracted)
async def retract(memory_id: UUID, act: Writing) -> Response:
    """Say that a fact was never so. What it had superseded holds again."""

    async def work(newton: Newton) -> Retracted:
        await newton.curation(DOOR).retract(memory_id.hex)
        return Retracted(memory_id=memory_id)

    return await act.once(work)


def _memory(record: Record, changes: list[Transition], told: dict[str, str]) -> Memory:
    own = {name: getattr(record, name) for name in Memory.model_fields if hasattr(record, name)}
    return Memory(
        **own,
        told=told,
        links=[_link(relative) for relative in record.relatives],
        changes=[_change(change) for change in changes],
    )


def _link(relative: Relative) -> Link:
    return Link(**relative._asdict())


def _change(change: Transition) -> Change:
    return Change(**{name: getattr(change, name) for name in Change.model_fields})
