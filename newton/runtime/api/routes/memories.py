"""Memories, one at a time: remembered, looked at, confirmed, superseded, retracted, forgotten."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.services.memories import FactDraft
from newton.memory.lookup import MemoryDetail, RelatedMemory
from newton.memory.memory import Kind, Outcome, Trust
from newton.memory.transitions import TransitionRecord
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.api.schemas import RequestModel, ResponseModel
from newton.runtime.transfer.schema import CleanText, Name, Timestamp
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/memories", tags=["memories"])

ORIGIN = "http"


class RememberRequest(RequestModel):
    """A fact as it is told."""

    content: CleanText = Field(examples=["Ana lives in Porto."])
    subject: Name | None = Field(None, examples=["Ana"])
    attribute: Name | None = Field(None, description="What of the subject it tells.", examples=["lives in"])
    confidence: float | None = Field(None, ge=0, le=1, examples=[0.9])
    importance: float | None = Field(None, ge=0, le=10, examples=[7])
    at: Timestamp | None = Field(None, description="When it became true, with a zone; without it, now.")
    until: Timestamp | None = Field(None, description="When it ends, if that is known.")


class RememberResponse(ResponseModel):
    """What became of it, and the memory that has it."""

    memory_id: UUID
    learnt: Literal["new", "confirmed", "unchanged"] = Field(examples=["new"])
    at: datetime = Field(description="When it was begun with.")


class MemoryLinkInfo(ResponseModel):
    """What a memory is to another one."""

    link: str = Field(examples=["supersedes"])
    other_id: UUID
    kind: Kind
    state: str
    micro: str


class StateChangeInfo(ResponseModel):
    """A change of a memory's state."""

    at: datetime
    from_state: str
    to_state: str
    event: str
    because: str
    origin: str


class MemoryResponse(ResponseModel):
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
    links: list[MemoryLinkInfo]
    changes: list[StateChangeInfo]


class SupersedeRequest(RequestModel):
    """What is true instead."""

    content: CleanText = Field(examples=["Ana lives in Bergen."])
    at: Timestamp | None = Field(None, description="When it became true, with a zone; without it, now.")


class ConfirmResponse(ResponseModel):
    """Whether it counted: the same door confirms a fact once a day."""

    memory_id: UUID
    counted: bool


class SupersedeResponse(ResponseModel):
    """The fact that stands in its place."""

    memory_id: UUID
    superseded_by: UUID


class RetractResponse(ResponseModel):
    """The fact that was never so."""

    memory_id: UUID


class ForgetResponse(ResponseModel):
    """All that went."""

    forgotten: list[UUID]


@router.post("", status_code=201, response_model=RememberResponse)
async def remember_fact(body: RememberRequest, act: WriteAction) -> Response:
    """Keep a fact, or confirm it when it is known. Its vector follows; until then it is found by its words."""

    async def work(newton: AgentServices) -> RememberResponse:
        began = newton.scope.now()
        kept = await newton.memories(ORIGIN).remember(FactDraft(**body.model_dump()))
        return RememberResponse(memory_id=kept.memory_id, learnt=kept.status, at=began)

    return await act.run_once(work)


@router.get("/{memory_id}")
async def get_memory(memory_id: UUID, caller: ReadAccess) -> MemoryResponse:
    """The whole memory, wherever its full text is kept: what a context shows in short is expanded by this."""
    record, changes, told = await caller.newton.curation(ORIGIN).get(memory_id.hex)
    return _to_memory_response(record, changes, told)


@router.delete("/{memory_id}", response_model=ForgetResponse)
async def forget_memory(
    memory_id: UUID,
    act: AdminAction,
    *,
    confirm: Annotated[Literal["forget"], Query(description="There is no way back: say `forget`.")],
    derived: Annotated[bool, Query(description="Also what was made from it.")] = False,
    because: Annotated[str, Query(max_length=500, description="Why; it is kept beside the id.")] = "asked for",
) -> Response:
    """Forget a memory for good: its words go, a note of when and why stays."""

    async def work(newton: AgentServices) -> ForgetResponse:
        gone = await newton.curation(ORIGIN).forget([memory_id.hex], include_derived=derived, reason=because)
        return ForgetResponse(forgotten=gone)

    return await act.run_once(work)


@router.post("/{memory_id}/confirm", response_model=ConfirmResponse)
async def confirm_memory(memory_id: UUID, act: WriteAction) -> Response:
    """Say that a fact is so."""

    async def work(newton: AgentServices) -> ConfirmResponse:
        counted = await newton.curation(ORIGIN).confirm(memory_id.hex)
        return ConfirmResponse(memory_id=memory_id, counted=counted)

    return await act.run_once(work)


@router.post("/{memory_id}/supersede", status_code=201, response_model=SupersedeResponse)
async def supersede_memory(memory_id: UUID, body: SupersedeRequest, act: WriteAction) -> Response:
    """Put a new statement in the place of a fact that was true until now."""

    async def work(newton: AgentServices) -> SupersedeResponse:
        new = await newton.curation(ORIGIN).supersede(memory_id.hex, body.content, at=body.at)
        return SupersedeResponse(memory_id=memory_id, superseded_by=new)

    return await act.run_once(work)


@router.post("/{memory_id}/retract", response_model=RetractResponse)
async def retract_memory(memory_id: UUID, act: WriteAction) -> Response:
    """Say that a fact was never so. What it had superseded holds again."""

    async def work(newton: AgentServices) -> RetractResponse:
        await newton.curation(ORIGIN).retract(memory_id.hex)
        return RetractResponse(memory_id=memory_id)

    return await act.run_once(work)


def _to_memory_response(
    record: MemoryDetail, changes: list[TransitionRecord], fact_fields: dict[str, str]
) -> MemoryResponse:
    own = {name: getattr(record, name) for name in MemoryResponse.model_fields if hasattr(record, name)}
    return MemoryResponse(
        **own,
        told=fact_fields,
        links=[_to_link_info(relative) for relative in record.relatives],
        changes=[_to_state_change(change) for change in changes],
    )


def _to_link_info(relative: RelatedMemory) -> MemoryLinkInfo:
    return MemoryLinkInfo(**relative._asdict())


def _to_state_change(change: TransitionRecord) -> StateChangeInfo:
    return StateChangeInfo(**{name: getattr(change, name) for name in StateChangeInfo.model_fields})
